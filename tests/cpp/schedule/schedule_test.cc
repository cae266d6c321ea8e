// Schedules without Python: steps, cursors through them, traces.
// What each primitive makes of a program is told by tests/python/test_schedule.py; here is what C++ callers rely on.
#include "helve/schedule/schedule.h"

#include <gtest/gtest.h>

#include <set>

#include "helve/ir/tensor/equal.h"
#include "helve/print/printer.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

const BufferRef a = param("A", kFloat32, {8, 8}), b = param("B", kFloat32, {8, 8});

/// for i: for j: A[i, j] = B[i, j], over `n` rows
FunctionRef copy_rows(int64_t n) {
  const VarRef i = make_var("i"), j = make_var("j");
  const Stmt body = store(a, {Expr(i), Expr(j)}, load(b, {Expr(i), Expr(j)}));
  return function("f", {a, b}, one_block({serial(i, idx(n), {serial(j, idx(8), {body})})}));
}

Cursor at(const ScheduleVersionRef& version, FinderKind kind, const std::string& name) {
  return find_all(*version->function, kind, name).at(0);
}

ScheduleVersionRef step(const ScheduleVersionRef& version, const std::string& name,
                        std::vector<ScheduleArgument> values, std::optional<std::string> unsafe = {}) {
  return with_step(version, *primitive_row(name), std::move(values), unsafe, {});
}

ScheduleVersionRef tiled(const FunctionRef& f) {
  const ScheduleVersionRef start = start_schedule(f);
  const ScheduleVersionRef split = step(start, "split", {at(start, FinderKind::Loop, "i"), int64_t{3}, "guard"});
  return step(split, "reorder", {std::vector<Cursor>{at(split, FinderKind::Loop, "j"), split->results[1]}});
}

Code refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& error) {
    return error.diagnostic().code;
  }
  return Code{};
}

TEST(Schedule, StepsMakeVersionsAndOldOnesStay) {
  const FunctionRef f = copy_rows(8);
  const ScheduleVersionRef last = tiled(f);
  EXPECT_EQ(print(last->function->body), R"(with T.Kernel(1) as bx:
    for io in T.serial(3, scheduled=True):
        for j in T.serial(8, scheduled=True):
            for ii in T.serial(3, scheduled=True):
                if io * 3 + ii < 8:
                    A[io * 3 + ii, j] = B[io * 3 + ii, j]
)");
  EXPECT_EQ(last->step.primitive, "reorder");
  EXPECT_TRUE(structural_equal(last->before->before->function, f));
}

TEST(Schedule, CursorsAreCarriedFromVersionToVersion) {
  const ScheduleVersionRef last = tiled(copy_rows(8)), first = last->before->before;
  const Carried store = carry(at(first, FinderKind::Store, "A"), first, last);
  EXPECT_TRUE(store.related);
  EXPECT_EQ(store.cursor, at(last, FinderKind::Store, "A"));
  EXPECT_FALSE(carry(at(last, FinderKind::Store, "A"), last, first).related);
  const ScheduleVersionRef unrolled = step(last, "unroll", {at(last, FinderKind::Loop, "ii")});
  const Carried gone = carry(at(first, FinderKind::Store, "A"), first, unrolled);
  EXPECT_TRUE(gone.related && !gone.cursor);
  EXPECT_EQ(gone.gone_by, "unroll");
}

TEST(Schedule, ACursorToALoopOfWhichAStepMadeAnotherIsGone) {
  const ScheduleVersionRef last = tiled(copy_rows(8)), first = last->before->before;
  const Carried block = carry(at(first, FinderKind::Loop, "i"), first, last);
  EXPECT_EQ(block.gone_by, "split");
  EXPECT_EQ(block.cursor, at(last, FinderKind::Loop, "io"));
  const Carried kept = carry(at(first, FinderKind::Loop, "j"), first, last);
  EXPECT_EQ(kept.gone_by, "");
  EXPECT_EQ(kept.cursor, at(last, FinderKind::Loop, "j"));
}

TEST(Schedule, EveryStatementIsANodeOfItsOwn) {
  ScheduleVersionRef version = start_schedule(copy_rows(2));
  version = step(version, "unroll", {at(version, FinderKind::Loop, "j")});
  version = step(version, "unroll", {at(version, FinderKind::Loop, "i")});
  std::set<const StmtNode*> nodes;
  size_t count = 0;
  walk_cursors(*version->function, [&](const Cursor&, const Stmt& s) {
    nodes.insert(s.get());
    ++count;
  });
  EXPECT_EQ(nodes.size(), count);
  EXPECT_EQ(count, 1u + 2 * 8);
}

TEST(Schedule, StepsOfATraceFitOtherSizes) {
  const ScheduleVersionRef last = tiled(copy_rows(8));
  ScheduleVersionRef other = start_schedule(copy_rows(6));
  other = replay_step(other, last->before->step, {});
  EXPECT_EQ(at(other, FinderKind::Text, "for io in T.serial(2, *)*"), at(other, FinderKind::Loop, "io"));
  EXPECT_EQ(refusal([&] { replay_step(other, last->before->step, {}); }), Code::ScheduleNothingFound);
}

TEST(Schedule, RefusalsHaveCodes) {
  const ScheduleVersionRef start = start_schedule(copy_rows(8));
  const Cursor loop = at(start, FinderKind::Loop, "i"), stored = at(start, FinderKind::Store, "A");
  EXPECT_EQ(refusal([&] { step(start, "split", {loop, int64_t{0}, "guard"}); }), Code::ScheduleArgumentValue);
  EXPECT_EQ(refusal([&] { step(start, "split", {loop, int64_t{4}, "other"}); }), Code::ScheduleArgumentValue);
  EXPECT_EQ(refusal([&] { step(start, "split", {stored, int64_t{4}, "guard"}); }), Code::ScheduleForm);
  EXPECT_EQ(refusal([&] { step(start, "split", {loop, int64_t{3}, "exact"}); }), Code::ScheduleIllegal);
  EXPECT_EQ(refusal([&] { step(start, "split", {loop, int64_t{3}, "exact"}, "it does"); }), Code::ScheduleIllegal);
}

TEST(Schedule, AStepThatIsRefusedCanBeLookedAt) {
  const ScheduleVersionRef start = start_schedule(copy_rows(8));
  const Cursor loop = at(start, FinderKind::Loop, "i");
  const FunctionRef f = unchecked_step(start, *primitive_row("split"), {loop, int64_t{3}, "exact"}, {});
  EXPECT_EQ(print(statement_at(*f, loop)), R"(for io in T.serial(2, scheduled=True):
    for ii in T.serial(3, scheduled=True):
        for j in T.serial(8):
            A[io * 3 + ii, j] = B[io * 3 + ii, j]
)");
  EXPECT_EQ(refusal([&] { unchecked_step(start, *primitive_row("split"), {loop, int64_t{0}, "exact"}, {}); }),
            Code::ScheduleArgumentValue);
}

TEST(Schedule, TheTableNamesEachPrimitiveOnce) {
  std::set<std::string_view> names;
  for (const PrimitiveRow& row : primitive_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(primitive_row(row.name), &row);
  }
  EXPECT_EQ(primitive_row("tile"), nullptr);
}

}  // namespace
}  // namespace helve::testing
