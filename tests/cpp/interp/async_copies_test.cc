// Asynchronous copies as the interpreter counts them, and what it reports of their elements.
#include "async_copies.h"

#include "checked.h"

namespace helve::testing {
namespace {

Span line(int number) { return {intern_file("k.py"), number, 5, number, 9}; }

TEST(AsyncCopies, CompleteInTheOrderInWhichTheyBegan) {
  interp::AsyncCopies copies;
  EXPECT_EQ(copies.unfinished(), nullptr);
  const int64_t first = copies.begin(line(1)), second = copies.begin(line(2));
  copies.commit(line(3));
  const int64_t third = copies.begin(line(4));
  copies.commit(line(5));
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
  copies.wait(2);
  EXPECT_FALSE(copies.is_complete(first));
  copies.wait(1);  // what was committed together is one copy
  EXPECT_TRUE(copies.is_complete(first) && copies.is_complete(second));
  EXPECT_FALSE(copies.is_complete(third));
  ASSERT_NE(copies.unfinished(), nullptr);
  EXPECT_EQ(copies.unfinished()->line, 4);
  copies.wait(0);
  EXPECT_TRUE(copies.is_complete(third));
  EXPECT_EQ(copies.unfinished(), nullptr);
}

TEST(AsyncCopies, NoWaitCoversWhatIsNotCommitted) {
  interp::AsyncCopies copies;
  const int64_t open = copies.begin(line(1));
  copies.wait(0);
  EXPECT_FALSE(copies.is_complete(open));
  ASSERT_NE(copies.unfinished(), nullptr);
  EXPECT_EQ(copies.unfinished()->line, 1);
  copies.commit(line(2));
  copies.wait(0);
  EXPECT_TRUE(copies.is_complete(open));
}

TEST(AsyncCopies, ACommitOfNothingIsACopy) {
  interp::AsyncCopies copies;
  copies.begin(line(1));
  copies.commit(line(2));
  copies.commit(line(3));
  copies.wait(1);
  ASSERT_NE(copies.unfinished(), nullptr);
  EXPECT_EQ(copies.unfinished()->line, 3);
}

TEST(AsyncCopies, AWaitForSourcesLeavesWhatIsWrittenOnItsWay) {
  interp::AsyncCopies copies;
  const int64_t first = copies.begin(line(1));
  copies.commit(line(1));
  const int64_t second = copies.begin(line(2));
  copies.commit(line(2));
  copies.wait(1, true);
  EXPECT_TRUE(copies.is_complete(first));
  EXPECT_FALSE(copies.has_arrived(first));
  EXPECT_FALSE(copies.is_complete(second));
  copies.wait(0, true);
  EXPECT_TRUE(copies.is_complete(second));
  EXPECT_EQ(copies.unfinished(), nullptr);
  copies.wait(1);  // counts from the youngest, whatever was waited for before
  EXPECT_TRUE(copies.has_arrived(first));
  EXPECT_FALSE(copies.has_arrived(second));
  const int64_t alone = copies.begin_alone();
  EXPECT_EQ(copies.unfinished(), nullptr);
  copies.wait(1);
  EXPECT_FALSE(copies.has_arrived(alone));
  copies.wait(0);
  EXPECT_TRUE(copies.has_arrived(second) && copies.has_arrived(alone));
}

TEST(AsyncCopies, AllHaveArrivedWhereTheKernelEnds) {
  interp::AsyncCopies copies;
  const int64_t first = copies.begin(line(1));
  copies.commit(line(1));
  copies.wait(0, true);
  copies.finish();
  EXPECT_TRUE(copies.has_arrived(first));
}

/// The report of a block that begins a copy of A into X and goes on with `rest`; X then goes to B.
class InFlight : public ::testing::Test {
 protected:
  const BufferRef a = param("A", kInt32, {4}), b = param("B", kInt32, {4}), x = shared("X", kInt32, {4});

  Stmt begin(const BufferRef& from, const BufferRef& to) const {
    return tile_op(TileOpcode::CopyAsync, {whole_region(from), whole_region(to), int_imm(0, kInt32)}, line(1));
  }
  static Stmt wait(int64_t pending) { return tile_op(TileOpcode::WaitAsync, {pending}); }
  Stmt read(const BufferRef& from) const { return store(b, {idx(1)}, load(from, {idx(1)}, line(3)), line(3)); }

  std::optional<Diagnostic> report(std::vector<Stmt> body) {
    body.insert(body.begin(), alloc(x));
    from_ = {1, 2, 3, 4};
    to_.assign(4, 0);
    return checked(function("main", {a, b}, one_block(std::move(body))), {tensor(from_, {4}), tensor(to_, {4})});
  }
  std::optional<Code> code(std::vector<Stmt> body) {
    const std::optional<Diagnostic> found = report(std::move(body));
    return found ? std::optional(found->code) : std::nullopt;
  }

  std::vector<int32_t> from_, to_;
};

TEST_F(InFlight, TheDestinationIsNeitherReadNorWritten) {
  EXPECT_EQ(code({begin(a, x), read(x), wait(0)}), Code::CopyInFlight);
  EXPECT_EQ(code({begin(a, x), store(x, {idx(3)}, int_imm(7, kInt32), line(2)), wait(0)}), Code::CopyInFlight);
  EXPECT_EQ(code({begin(a, x), begin(a, x), wait(0)}), Code::CopyInFlight);
}

TEST_F(InFlight, TheSourceIsReadAndNotWritten) {
  EXPECT_EQ(code({begin(a, x), read(a), wait(0), read(x)}), std::nullopt);
  EXPECT_EQ(to_, (std::vector<int32_t>{0, 2, 0, 0}));
  EXPECT_EQ(code({begin(a, x), store(a, {idx(0)}, int_imm(7, kInt32), line(2)), wait(0)}), Code::CopyInFlight);
}

TEST_F(InFlight, AWaitThatCoversTheCopyEndsIt) {
  EXPECT_EQ(code({begin(a, x), wait(0), read(x)}), std::nullopt);
  EXPECT_EQ(to_, (std::vector<int32_t>{0, 2, 0, 0}));
  EXPECT_EQ(code({begin(a, x), wait(1), read(x), wait(0)}), Code::CopyInFlight);
  const BufferRef y = shared("Y", kInt32, {4});
  EXPECT_EQ(code({alloc(y), begin(a, x), begin(a, y), wait(1), read(x), wait(0)}), std::nullopt);
  EXPECT_EQ(code({alloc(y), begin(a, x), begin(a, y), wait(1), read(y), wait(0)}), Code::CopyInFlight);
}

TEST_F(InFlight, ACopyUnderWayWhereTheKernelEnds) {
  const VarRef i = make_var("i");
  const Stmt maybe = serial(i, cast(load(a, {idx(0)}), kIndex), {begin(a, x)});  // once
  const std::optional<Diagnostic> found = report({maybe});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->code, Code::UnfinishedCopy);
  EXPECT_EQ(found->span.line, 1);
}

}  // namespace
}  // namespace helve::testing
