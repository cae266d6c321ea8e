// Unrolled loops become copies of their bodies.
// Input: any function. Output: no Unroll loop of a constant extent, save for those that would be too much code; one
// that is scheduled is refused instead (ScheduledLoop).
// Before:  for r in T.unroll(2): C[i * 2 + r] = A[i * 2 + r] * s
// After:   C[i * 2] = A[i * 2] * s
//          C[i * 2 + 1] = A[i * 2 + 1] * s
// The order of iterations stays. A loop that is left carries the wish to whoever generates code.
#include <fmt/format.h>

#include "helve/arith/simplify.h"
#include "helve/ir/tensor/renewed.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "helve/transform/passes.h"
#include "with_value.h"

namespace helve {

namespace {

constexpr int64_t kMaxCopies = 64;          // of one loop that is not scheduled
constexpr int64_t kMaxNestedCopies = 1024;  // of the innermost body of a nest

[[noreturn]] void refuse(const For& loop, int64_t copies) {
  const std::string around = copies > 1 ? fmt::format(" in each of {} copies", copies) : "";
  throw UserError(Code::ScheduledLoop, loop.span,
                  {{"loop", "T.unroll"},
                   {"reason", fmt::format("it has {} iterations{}, and a nest has at most {} copies of its body",
                                          *int_value(loop.extents[0]), around, kMaxNestedCopies)},
                   {"remedy", "divide the loop, and unroll the inner one"}});
}

Stmt unrolled(const Stmt& s, int64_t copies) {
  if (!s) return s;
  const auto parts = [&](int64_t inside) {
    return map_parts(s, [](const Expr& e) { return e; }, [&](const Stmt& part) { return unrolled(part, inside); });
  };
  const For* loop = as<For>(s);
  const int64_t* extent = loop && loop->loop == LoopKind::Unroll ? int_value(loop->extents[0]) : nullptr;
  if (!extent) return parts(copies);
  const bool too_many = *extent > kMaxNestedCopies || copies * *extent > kMaxNestedCopies;
  if (loop->scheduled && too_many) refuse(*loop, copies);
  if (!loop->scheduled && (*extent > kMaxCopies || too_many)) return parts(copies);
  const Stmt body = unrolled(loop->body, copies * std::max<int64_t>(*extent, 1));
  std::vector<Stmt> out;
  for (int64_t i = 0; i < *extent; ++i) {
    const Stmt copy = with_value(body, loop->vars[0].get(), simplify(loop->begins[0] + int_imm(i)));
    out.push_back(i == 0 ? copy : renewed(copy));
  }
  return seq(std::move(out), s->span);
}

}  // namespace

FunctionRef unroll_loops(const FunctionRef& f, const PassOptions&) { return with_body(f, unrolled(f->body, 1)); }

}  // namespace helve
