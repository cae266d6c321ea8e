// What is proved of one statement's loops and remembered must hold of another statement's.
#include <gtest/gtest.h>

#include "helve/ir/tensor/visit.h"
#include "helve/schedule/legality.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

const VarRef n = make_var("n"), i = make_var("i"), j = make_var("j");

/// `for i in n: for j in 4: (if 0 < n < 100: A[i, j] = 1); B[i, j] = 1`, whose outer loop then runs over n as an int32,
/// which is n only where that fits.
struct Narrow {
  BufferRef a = make_buffer("A", kInt32, MemoryScope::Param, {Expr(n), idx(4)});
  BufferRef b = make_buffer("B", kInt32, MemoryScope::Param, {Expr(n), idx(4)});
  Stmt first = store(a, {Expr(i), Expr(j)}, int_imm(1, kInt32)),
       second = store(b, {Expr(i), Expr(j)}, int_imm(1, kInt32));

  Legality check(bool guards_second) const {
    const auto guarded = [&](const Stmt& s) {
      return if_then(less(idx(0), Expr(n)), if_then(less(Expr(n), idx(100)), s));
    };
    const Stmt body = seq({guarded(first), guards_second ? guarded(second) : second});
    const auto nest = [&](const Expr& extent) { return serial(i, extent, {serial(j, idx(4), {body})}); };
    const FunctionRef f = dynamic_function("f", {n}, {a, b}, nest(Expr(n)));
    const Stmt after = nest(cast(cast(Expr(n), kInt32), kIndex));
    std::vector<Origin> origins;
    size_t visit = 0;
    walk(after, [&](const Stmt& s) {
      if (s == first || s == second) origins.push_back({s.get(), visit, visit, {}});
      ++visit;
    });
    return check_rewrite(*f, f->body, after, origins, ExactEngine());
  }
};

TEST(Instances, AConversionThatAGuardOfOneStatementMakesExact) {
  const Narrow narrow;
  const Legality both = narrow.check(true);
  EXPECT_EQ(both.verdict, Verdict::Proved) << text_of(both);
  EXPECT_EQ(narrow.check(false).verdict, Verdict::Unknown) << "n may be larger than an int32";
}

}  // namespace
}  // namespace helve::testing
