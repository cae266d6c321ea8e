// Compiled kernels called as a binding calls them.
// Every test of the driver runs functions of plain float32 and int32 tensors; what a call needs is made here.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>

#include "helve/driver/compile.h"
#include "helve/support/diagnostic.h"
#include "ir/tensor/programs/build_ir.h"
#include "runtime/host_tensor.h"

namespace helve::testing {

/// The bytes of all tensor parameters after a call on small whole numbers that depend on `seed` only.
inline std::vector<std::vector<std::byte>> call(const CompiledKernel& kernel, unsigned seed = 1,
                                                const std::vector<std::vector<int64_t>>& shapes = {}) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> pick(-4, 4);
  std::vector<std::unique_ptr<runtime::HostTensor>> tensors;
  std::vector<runtime::TensorArgument> arguments;
  std::vector<size_t> counts;
  for (const Param& p : kernel.function()->params) {
    const Buffer& buffer = **std::get_if<BufferRef>(&p);
    const std::vector<int64_t> shape = shapes.empty() ? *constant_shape(buffer.shape) : shapes[tensors.size()];
    const runtime::DLDataType dtype = {
        static_cast<uint8_t>(buffer.dtype.is_float() ? runtime::kDLFloat : runtime::kDLInt), 32, 1};
    auto& tensor = *tensors.emplace_back(std::make_unique<runtime::HostTensor>(dtype, shape));
    size_t count = 1;
    for (int64_t e : shape) count *= static_cast<size_t>(e);
    for (size_t i = 0; i < count; ++i) {
      const int32_t whole = pick(random);
      const float real = static_cast<float>(whole);
      const void* from = buffer.dtype.is_float() ? static_cast<const void*>(&real) : &whole;
      std::memcpy(static_cast<std::byte*>(tensor.view().data) + i * 4, from, 4);
    }
    counts.push_back(count);
    arguments.push_back(tensor.arg());
  }
  kernel.call(arguments, {}, {});
  std::vector<std::vector<std::byte>> out;
  for (size_t t = 0; t < tensors.size(); ++t) {
    const auto* data = static_cast<const std::byte*>(tensors[t]->view().data);
    out.emplace_back(data, data + counts[t] * 4);
  }
  return out;
}

inline std::vector<float> as_floats(const std::vector<std::byte>& bytes) {
  std::vector<float> out(bytes.size() / 4);
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

inline std::shared_ptr<const CompiledKernel> compile_for(Target target, const FunctionRef& f, int64_t chunk = 1) {
  CompileOptions options;
  options.target = target;
  options.verify_passes = true;
  options.persistent_chunk = chunk;
  return compile(f, options);
}

/// C[i] = A[i] + B[i] over tensors of n elements, in blocks of 16.
inline FunctionRef vector_add() {
  const VarRef n = make_var("n"), b = make_var("b"), i = make_var("i");
  const auto tensor = [&](const char* name) { return make_buffer(name, kFloat32, MemoryScope::Param, {Expr(n)}); };
  const BufferRef x = tensor("A"), y = tensor("B"), z = tensor("C");
  const Expr begin = Expr(b) * idx(16);
  const Stmt add = for_loop(LoopKind::Parallel, i, min(idx(16), Expr(n) - begin),
                            store(z, {begin + i}, load(x, {begin + i}) + load(y, {begin + i})));
  return dynamic_function("add", {n}, {x, y, z}, kernel({b}, {ceil_div(n, idx(16))}, 128, add));
}

inline std::vector<Target> all_targets() {
#ifdef HELVE_WITH_LLVM
  return {Target::Interp, Target::Llvm};
#else
  return {Target::Interp};
#endif
}

}  // namespace helve::testing
