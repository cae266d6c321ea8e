// Edits and cursors: a marked statement is where its cursor says.
// Random trees, random chains of edits; what stands where is told by marks that no edit looks at.
#include "helve/schedule/edit.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

const BufferRef a = param("A", kFloat32, {8});

/// Every statement has a mark: a store stores it, a loop runs so many times, a branch compares with it.
struct Forest {
  std::mt19937 random;
  int64_t marks = 0;

  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); }

  Stmt store_mark() { return store(a, {idx(++marks)}, f32(0)); }

  Stmt tree(int depth) {
    const size_t kind = depth == 0 ? 0 : below(4);
    if (kind <= 1) return store_mark();
    const int64_t mark = ++marks;
    if (kind == 2) return serial(make_var("i"), idx(mark), {block(depth - 1)});
    const Stmt then_body = block(depth - 1);
    return if_then(less(idx(0), idx(mark)), then_body, below(2) ? block(depth - 1) : Stmt());
  }

  Stmt block(int depth) {
    std::vector<Stmt> list;
    for (size_t n = below(4); n > 0; --n) list.push_back(tree(depth));
    return seq(std::move(list));
  }
};

int64_t constant(const Expr& e) {
  if (const int64_t* value = int_value(e)) return *value;
  return 0;
}

int64_t mark_of(const Stmt& s) {
  if (const Store* n = as<Store>(s)) return constant(n->indices[0]);
  if (const For* n = as<For>(s)) return constant(n->extents[0]);
  return constant(as<Apply>(as<If>(s)->condition)->args[1]);
}

std::map<int64_t, Cursor> places(const FunctionRef& f) {
  std::map<int64_t, Cursor> found;
  walk_cursors(*f, [&](const Cursor& at, const Stmt& s) { found.emplace(mark_of(s), at); });
  return found;
}

/// A random place to put statements, its block's end included.
Cursor some_gap(Forest& forest, const FunctionRef& f) {
  std::vector<Cursor> all;
  for (size_t i = 0; i <= block_of(f->body).size(); ++i) all.push_back(Cursor{{{"body", i}}});
  walk_cursors(*f, [&](const Cursor& at, const Stmt& s) {
    for_each_block(s, [&](const std::string& field, const Stmt& body) {
      for (size_t i = 0; i <= block_of(body).size(); ++i) all.push_back(at.child(field, i));
    });
  });
  return all[forest.below(all.size())];
}

Block some_block(Forest& forest, const FunctionRef& f) {
  const Cursor first = some_gap(forest, f);
  const size_t left = block_of(body_around(*f, first)).size() - first.position();
  return {first, left == 0 ? 0 : 1 + forest.below(left)};
}

/// What an edit does, and which marks it takes away.
struct Tried {
  Edited edited;
  Block gone{Cursor{{{"body", 0}}}, 0};
};

Tried some_edit(Forest& forest, const FunctionRef& f) {
  const Block block = some_block(forest, f);
  switch (block.size == 0 ? 0 : forest.below(6)) {
    case 0: return {insert(f, block.first, {forest.block(1), forest.store_mark()})};
    case 1: return {erase(f, block), block};
    case 2: return {replace(f, block, {forest.tree(2), forest.block(1)}), block};
    case 3: {
      const int64_t mark = ++forest.marks;
      return {wrap(f, block, "body", [&](Stmt body) { return serial(make_var("w"), idx(mark), {body}); })};
    }
    case 4: {
      const int64_t mark = ++forest.marks;
      return {wrap(f, block, "else_body", [&](Stmt body) { return if_then(less(idx(0), idx(mark)), seq({}), body); })};
    }
    default: {
      Cursor target = some_gap(forest, f);
      while (block.holds(target) && target.steps.size() > block.first.steps.size()) target = some_gap(forest, f);
      return {move(f, block, target)};
    }
  }
}

TEST(Edits, MarkedStatementsAreWhereTheirCursorsSay) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Forest forest{std::mt19937(seed)};
    const FunctionRef start = function("f", {a}, forest.block(4));
    FunctionRef f = start;
    const std::map<int64_t, Cursor> first = places(start);
    Forwarding all;
    std::map<int64_t, bool> lost;
    for (int edits = 0; edits < 6; ++edits) {
      const std::map<int64_t, Cursor> before = places(f);
      const Tried tried = some_edit(forest, f);
      const std::map<int64_t, Cursor> after = places(tried.edited.function);
      for (const auto& [mark, at] : before) {
        const std::optional<Cursor> now = tried.edited.forward(at);
        if (tried.gone.holds(at)) {
          EXPECT_FALSE(now) << to_string(at);
          lost[mark] = true;
          continue;
        }
        ASSERT_TRUE(now && after.contains(mark)) << "seed " << seed << ", " << to_string(at);
        EXPECT_EQ(to_string(*now), to_string(after.at(mark))) << "seed " << seed;
      }
      f = tried.edited.function;
      all = all.then(tried.edited.forward);
    }
    const std::map<int64_t, Cursor> last = places(f);
    for (const auto& [mark, at] : first) {
      const std::optional<Cursor> now = all(at);
      EXPECT_EQ(now.has_value(), !lost.contains(mark));
      if (now) {
        EXPECT_EQ(mark_of(statement_at(*f, *now)), mark);
        EXPECT_EQ(*now, last.at(mark));
      }
    }
  }
}

TEST(Edits, PlacesBetweenStatementsAreCarriedToo) {
  const Stmt one = store(a, {idx(1)}, f32(0)), two = store(a, {idx(2)}, f32(0)), three = store(a, {idx(3)}, f32(0));
  const FunctionRef f = function("f", {a}, seq({one, two, three}));
  const Cursor end{{{"body", 3}}}, second{{{"body", 1}}};
  EXPECT_EQ(to_string(*erase(f, {second, 1}).forward.gap(second)), "body[1]");
  EXPECT_FALSE(erase(f, {second, 1}).forward(second));
  EXPECT_EQ(to_string(*erase(f, {second, 1}).forward.gap(end)), "body[2]");
  EXPECT_EQ(
      to_string(
          *wrap(f, {second, 2}, "body", [](Stmt s) { return serial(make_var("i"), idx(2), {s}); }).forward.gap(end)),
      "body[2]");
}

TEST(Edits, ARevisedStatementKeepsWhatIsBelowIt) {
  const VarRef i = make_var("i"), j = make_var("j");
  const FunctionRef f = function("f", {a}, serial(i, idx(8), {store(a, {Expr(i)}, f32(0))}));
  const Cursor loop{{{"body", 0}}};
  const Edited edited = revise(f, loop, serial(j, idx(8), {store(a, {Expr(j)}, f32(0))}));
  EXPECT_EQ(edited.forward(loop.child("body", 0)), loop.child("body", 0));
  EXPECT_TRUE(as<Store>(statement_at(*edited.function, loop.child("body", 0))));
}

TEST(Cursors, LeadToStatementsOrNowhere) {
  const VarRef i = make_var("i");
  const FunctionRef f =
      function("f", {a}, serial(i, idx(8), {if_then(less(Expr(i), idx(3)), store(a, {Expr(i)}, f32(0)))}));
  const Cursor loop{{{"body", 0}}}, branch = loop.child("body", 0);
  EXPECT_TRUE(as<Store>(statement_at(*f, branch.child("then_body", 0))));
  EXPECT_FALSE(statement_at(*f, branch.child("else_body", 0)));
  EXPECT_FALSE(statement_at(*f, branch.child("body", 0)));
  EXPECT_FALSE(statement_at(*f, loop.child("body", 7).child("body", 0)));
  EXPECT_FALSE(statement_at(*f, Cursor{{{"then_body", 0}}}));
  EXPECT_TRUE(branch.child("then_body", 0).within(loop));
  EXPECT_FALSE(loop.within(branch));
  EXPECT_EQ(to_string(branch.child("then_body", 0)), "body[0].body[0].then_body[0]");
}

}  // namespace
}  // namespace helve::testing
