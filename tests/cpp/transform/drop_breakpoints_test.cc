// Breakpoints are left out, wherever they stand, and everything else stays.
#include "run_pass.h"

namespace helve::testing {
namespace {

TEST(DropBreakpoints, LeavesThemOut) {
  const BufferRef a = param("A", kFloat32, {8});
  const VarRef i = make_var("i"), j = make_var("j");
  const auto stop = [&](const VarRef& var) { return breakpoint({"i", "A"}, {Expr(var)}, {a}); };
  const auto half = [&](const VarRef& var) {
    return store(a, {Expr(var)}, load(a, {Expr(var)}) + load(a, {Expr(var)}));
  };
  const FunctionRef plain = function("main", {a}, one_block({serial(j, idx(8), {half(j)})}));
  expect_becomes(drop_breakpoints, function("main", {a}, one_block({serial(i, idx(8), {stop(i), half(i)})})), plain);
  expect_untouched(drop_breakpoints, plain);
}

}  // namespace
}  // namespace helve::testing
