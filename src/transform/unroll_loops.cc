// Unrolled loops become copies of their bodies.
// Input: any function. Output: no Unroll loop of a constant extent, save for those that would be too much code.
// Before:  for r in T.unroll(2): C[i * 2 + r] = A[i * 2 + r] * s
// After:   C[i * 2] = A[i * 2] * s
//          C[i * 2 + 1] = A[i * 2 + 1] * s
// The order of iterations stays. A loop that is left carries the wish to whoever generates code.
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"
#include "helve/ir/tensor/renewed.h"
#include "with_value.h"

namespace helve {

namespace {

constexpr int64_t kMaxCopies = 64;          // of one loop
constexpr int64_t kMaxNestedCopies = 1024;  // of the innermost body of a nest

Stmt unrolled(const Stmt& s, int64_t copies) {
  if (!s) return s;
  const auto parts = [&](int64_t inside) {
    return map_parts(s, [](const Expr& e) { return e; }, [&](const Stmt& part) { return unrolled(part, inside); });
  };
  const For* loop = as<For>(s);
  const int64_t* extent = loop && loop->loop == LoopKind::Unroll ? int_value(loop->extents[0]) : nullptr;
  if (!extent || *extent > kMaxCopies || copies * *extent > kMaxNestedCopies) return parts(copies);
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
