// Values in the place of loads: the law of legality/inlined.h, with mutants that must not pass.
// Random steps that inline are in tests/python/test_schedule_accepted.py.
#include <gtest/gtest.h>

#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/update.h"
#include "helve/ir/tensor/visit.h"
#include "helve/schedule/legality.h"
#include "ir/tensor/programs/build_ir.h"
#include "visits.h"

namespace helve::testing {
namespace {

const VarRef kX = make_var("x"), kI = make_var("i");

/// `for x in 8: X[x] = value(x); between; for i in 7: B[i] = X[i + 1]`, and the value in the place of the load.
struct Case {
  BufferRef a, b, x;
  std::function<Expr(const Expr&)> value;
  Stmt between = seq({});
  LoopKind loop = LoopKind::Serial;
  StoreMode mode = StoreMode::Write;  ///< of the store to X
  int64_t begin = 0;  ///< of x
  RegionForm form = RegionForm::Program;

  explicit Case(DType dtype = kInt32)
      : a(param("A", dtype, {9})), b(param("B", dtype, {9})), x(shared("X", dtype, {9})) {
    value = [this](const Expr& at) { return load(a, {at}) + load(a, {idx(0)}); };
  }

  /// Of `now` in the place of X[i + 1], said to be what the store stored at x = `instance`; judged by values are X and
  /// `by_value`.
  Legality check(const Expr& now, const Expr& instance, std::vector<BufferRef> by_value = {},
                 bool keeps_store = false) const {
    const Expr element = load(x, {Expr(kI) + idx(1)});
    const Stmt stored = store(x, {Expr(kX)}, value(Expr(kX)), {}, mode), used = store(b, {Expr(kI)}, element);
    const Stmt made = store(b, {Expr(kI)}, now);
    const Stmt producer = for_loop(LoopKind::Serial, {kX}, {idx(begin)}, {idx(8 - begin)}, stored);
    const auto consumer = [&](const Stmt& s) { return for_loop(loop, {kI}, {idx(0)}, {idx(7)}, s); };
    const std::vector<Param> params = a == b ? std::vector<Param>{a} : std::vector<Param>{a, b};
    const FunctionRef f = function("f", params, seq({alloc(x), producer, between, consumer(used)}));
    const Stmt after =
        keeps_store ? seq({alloc(x), producer, between, consumer(made)}) : seq({alloc(x), between, consumer(made)});
    std::vector<Origin> origins;
    const auto add = [&](const Stmt& is, const Stmt& was) {
      const size_t before = visit_of(f->body, was.get());
      origins.push_back({is.get(), visit_of(after, is.get()), before, {}});
    };
    add(made, used);
    if (keeps_store) add(stored, stored);
    walk(between, [&](const Stmt& s) {
      if (s->kind == StmtKind::Store) add(s, s);
    });
    origins[0].inlined = {{element.get(), visit_of(f->body, stored.get()), {{kX, instance}}}};
    by_value.push_back(x);
    return check_rewrite(*f, f->body, after, origins, ExactEngine(), by_value, form);
  }
};

const Expr kNext = Expr(kI) + idx(1);

TEST(Inlined, TheValueOfTheStoreThatIsSeen) {
  const Case c;
  const Legality found = c.check(c.value(kNext), kNext);
  EXPECT_EQ(found.verdict, Verdict::Proved) << text_of(found);
  EXPECT_EQ(c.check(c.value(kNext), kNext, {}, true).verdict, Verdict::Proved);
}

TEST(Inlined, TheValueOfAnotherInstance) {
  const Case c;
  const Legality found = c.check(c.value(Expr(kI)), Expr(kI));
  EXPECT_EQ(found.fault, RewriteFault::Value);
  EXPECT_EQ(text_of(found),
            "'X[i + 1]' at i = 0 reads what 'X[x]' at x = 1 writes, and would read what 'X[x]' at x = 0 "
            "writes");
}

TEST(Inlined, AnotherValue) {
  const Case c;
  EXPECT_NE(c.check(c.value(Expr(kI)), kNext).verdict, Verdict::Proved);
  EXPECT_NE(c.check(c.value(kNext) + load(c.a, {kNext}), kNext).verdict, Verdict::Proved);
  EXPECT_NE(c.check(load(c.a, {kNext}), kNext).verdict, Verdict::Proved);
  EXPECT_NE(c.check(load(c.b, {kNext}) + load(c.a, {idx(0)}), kNext, {c.b}).verdict, Verdict::Proved);
}

TEST(Inlined, AnOperandThatIsOverwrittenBetween) {
  Case c;
  c.between = store(c.a, {idx(3)}, int_imm(1, kInt32));
  const Legality found = c.check(c.value(kNext), kNext, {c.a});
  EXPECT_EQ(found.fault, RewriteFault::Value);
  EXPECT_EQ(text_of(found), "'A[x]' at x = 3 reads what stood there before, and would read what 'A[3]' writes");
  EXPECT_EQ(c.check(c.value(kNext), kNext).verdict, Verdict::Unknown);  // nobody judges A by its values
  c.between = store(c.a, {idx(8)}, int_imm(1, kInt32));
  EXPECT_EQ(c.check(c.value(kNext), kNext, {c.a}).verdict, Verdict::Proved);
}

TEST(Inlined, AStoreThatIsOverwrittenItself) {
  Case c;
  c.between = store(c.x, {idx(3)}, int_imm(1, kInt32));
  const Legality found = c.check(c.value(kNext), kNext);
  EXPECT_EQ(found.fault, RewriteFault::Value);
  EXPECT_EQ(text_of(found), "'X[i + 1]' at i = 2 reads what 'X[3]' writes, and would read what 'X[x]' at x = 3 writes");
}

TEST(Inlined, AnOperandThatAnIterationWithoutOrderWrites) {
  Case c;
  c.b = c.a;  // for i in Parallel(7): A[i] = X[i + 1]
  EXPECT_NE(c.check(c.value(kNext), kNext, {c.a}).verdict, Verdict::Proved);
  c.value = [&](const Expr& at) { return load(c.a, {at}); };
  EXPECT_EQ(c.check(c.value(kNext), kNext, {c.a}).verdict, Verdict::Proved);
  c.loop = LoopKind::Parallel;
  EXPECT_EQ(c.check(c.value(kNext), kNext, {c.a}).fault, RewriteFault::Shared);
}

TEST(Inlined, AnOperandThatIsOneLoadAtTwoPlaces) {
  Case c;
  const auto value = [](const Expr& at, const Expr& first, const Expr& second) {
    const Expr early = less(at, idx(4)), zero = int_imm(0, kInt32);
    return apply(Op::Select, {early, first, zero}) + apply(Op::Select, {early, zero, second});
  };
  c.value = [&](const Expr& at) {
    const Expr operand = load(c.a, {at});
    return value(at, operand, operand);
  };
  const Expr now = value(kNext, load(c.a, {kNext}), load(c.a, {kNext}));
  c.between = store(c.a, {idx(0)}, int_imm(1, kInt32));
  for (const Expr& each : {c.value(kNext), now}) EXPECT_EQ(c.check(each, kNext, {c.a}).verdict, Verdict::Proved);
  c.between = store(c.a, {idx(6)}, int_imm(1, kInt32));
  for (const Expr& each : {c.value(kNext), now}) {
    const Legality found = c.check(each, kNext, {c.a});
    EXPECT_EQ(found.fault, RewriteFault::Value) << "the second place reads A[6]" << text_of(found);
  }
}

TEST(Inlined, AnUpdateStoresNoValueOfItsOwn) {
  Case c;
  c.mode = StoreMode::Add;
  EXPECT_NE(c.check(c.value(kNext), kNext, {}, true).verdict, Verdict::Proved);
}

TEST(Inlined, AStoreThatIsTakenApartComputesNothingElse) {
  Case c;
  c.form = RegionForm::WithoutStores;
  const Legality found = c.check(c.value(kNext), kNext);
  EXPECT_EQ(found.fault, RewriteFault::Lost) << "X[0] is for nobody";
  EXPECT_EQ(text_of(found), "'X[x]' at x = 0 would not run");
  c.begin = 1;
  const Legality all = c.check(c.value(kNext), kNext);
  EXPECT_EQ(all.verdict, Verdict::Proved) << text_of(all);
}

TEST(Inlined, AStoreThatIsTakenApartIsWhereverItIsRead) {
  Case c;
  c.form = RegionForm::WithoutStores;
  c.begin = 2;
  const Legality found = c.check(c.value(kNext), kNext);
  EXPECT_EQ(found.fault, RewriteFault::Value) << "X[1] holds nothing";
  EXPECT_TRUE(found.nothing);
}

TEST(Inlined, AStoreRounds) {
  const Case c(DType{TypeCode::BFloat, 16});
  EXPECT_NE(c.check(c.value(kNext), kNext).verdict, Verdict::Proved);
  const Legality rounded = c.check(as_stored(c.value(kNext)), kNext);
  EXPECT_EQ(rounded.verdict, Verdict::Proved) << text_of(rounded);
  const Case wide(kFloat32);
  EXPECT_EQ(as_stored(wide.value(kNext))->kind, ExprKind::Apply);
  EXPECT_EQ(wide.check(wide.value(kNext), kNext).verdict, Verdict::Proved);
}

}  // namespace
}  // namespace helve::testing
