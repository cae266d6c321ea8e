// Work that recurses, on a stack that is large enough for it.
// Programs have a bounded depth, so the stack that a walk needs is bounded; the thread that calls may have less than
// that, since its creator chose the size.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <type_traits>

namespace helve {

/// Bytes that walks over a function of the greatest depth need; that a whole compile does, code generators included.
inline constexpr size_t kWalkStack = size_t{2} << 20;
inline constexpr size_t kCompileStack = size_t{6} << 20;

/// Runs `work` here where `bytes` of stack are left, else on a thread of its own, and waits. What it throws is thrown
/// here.
void run_with_stack(size_t bytes, const std::function<void()>& work);

/// The same for work with a result.
template <class F>
auto with_stack(size_t bytes, F&& work) {
  using Result = std::invoke_result_t<F>;
  std::optional<Result> result;
  run_with_stack(bytes, [&] { result.emplace(work()); });
  return std::move(*result);
}

}  // namespace helve
