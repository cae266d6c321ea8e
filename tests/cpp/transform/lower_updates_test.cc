// Updates become plain stores, and everything else stays.
#include <functional>

#include "run_pass.h"

namespace helve::testing {
namespace {

class LowerUpdates : public ::testing::Test {
 protected:
  const DType float16{TypeCode::Float, 16};
  const BufferRef a_ = param("A", kFloat32, {8});
  const BufferRef s_ = param("S", float16, {8});

  FunctionRef program(const std::function<Stmt(const Expr&)>& body) const {
    const VarRef i = make_var("i");
    return function("main", {a_, s_}, one_block({serial(i, idx(8), {body(Expr(i))})}));
  }
};

TEST_F(LowerUpdates, ComputesInTheTypeOfTheOperands) {
  for (const StoreMode mode : {StoreMode::Add, StoreMode::Mul, StoreMode::Max, StoreMode::Min}) {
    const FunctionRef f = program([&](const Expr& i) { return store(s_, {i}, load(a_, {i}), {}, mode); });
    const FunctionRef plain = program(
        [&](const Expr& i) { return store(s_, {i}, apply(combining_operator(mode), {load(s_, {i}), load(a_, {i})})); });
    expect_becomes(lower_updates, f, plain);
    EXPECT_FALSE(structural_equal(f, plain)) << to_string(mode);
  }
}

TEST_F(LowerUpdates, KeepsWhatHasNone) {
  expect_untouched(lower_updates, program([&](const Expr& i) {
                     return seq({store(a_, {i}, load(a_, {i}) + load(a_, {i})),
                                 store(a_, {i}, load(a_, {i}), {}, StoreMode::AtomicMax)});
                   }));
}

}  // namespace
}  // namespace helve::testing
