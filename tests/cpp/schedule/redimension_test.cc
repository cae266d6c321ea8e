// A buffer whose elements get other places: right where no two that live at a time share one, with mutants.
#include <gtest/gtest.h>

#include "helve/ir/tensor/visit.h"
#include "helve/schedule/legality.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

using Place = std::function<std::vector<Expr>(const Expr&)>;

/// Eight elements that are stored to memory of their own, in a loop, and read in another one.
struct Stage {
  BufferRef a = param("A", kInt32, {8}), c = param("C", kInt32, {8});
  VarRef i = make_var("i"), k = make_var("k");

  Stmt region(const BufferRef& memory, const Place& written, const Place& read, LoopKind kind) const {
    const auto loop = [&](const VarRef& var, const Stmt& s) { return for_loop(kind, {var}, {idx(0)}, {idx(8)}, s); };
    return seq({alloc(memory), loop(i, store(memory, written(Expr(i)), load(a, {Expr(i)}))),
                loop(k, store(c, {Expr(k)}, load(memory, read(Expr(k)))))});
  }

  Legality check(const Place& written, const Place& read, LoopKind kind = LoopKind::Serial) const {
    const BufferRef one = shared("W", kInt32, {8}), two = shared("W", kInt32, {2, 4});
    const Place plain = [](const Expr& e) { return std::vector<Expr>{e}; };
    const FunctionRef f = function("f", {a, c}, region(one, plain, plain, kind));
    const Stmt after = region(two, written, read, kind);
    std::vector<Origin> origins;
    size_t visit = 0;
    walk(after, [&](const Stmt& s) {
      origins.push_back({s.get(), visit, visit, {}});
      ++visit;
    });
    return check_rewrite(*f, f->body, after, origins, ExactEngine(), {one, two});
  }
};

std::vector<Expr> split(const Expr& e) { return {floor_div(e, idx(4)), floor_mod(e, idx(4))}; }

TEST(Redimension, EveryElementHasAPlaceOfItsOwn) {
  const Stage stage;
  for (const LoopKind kind : {LoopKind::Serial, LoopKind::Parallel}) {
    const Legality found = stage.check(split, split, kind);
    EXPECT_EQ(found.verdict, Verdict::Proved) << text_of(found);
    EXPECT_FALSE(found.reassociates);
  }
}

TEST(Redimension, ReadsAreOfTheElementThatTheyWereOf) {
  const Stage stage;
  const Place shifted = [](const Expr& e) { return split(floor_mod(e + idx(1), idx(8))); };
  EXPECT_EQ(stage.check(split, shifted).fault, RewriteFault::Value);
  const Legality both = stage.check(shifted, shifted);
  EXPECT_EQ(both.verdict, Verdict::Proved) << text_of(both);
}

TEST(Redimension, ElementsThatLiveTogetherShareNoPlace) {
  const Stage stage;
  const Place folded = [](const Expr& e) { return std::vector<Expr>{idx(0), floor_mod(e, idx(4))}; };
  EXPECT_EQ(stage.check(folded, folded).fault, RewriteFault::Value);
  EXPECT_NE(stage.check(folded, folded, LoopKind::Parallel).verdict, Verdict::Proved);
}

}  // namespace
}  // namespace helve::testing
