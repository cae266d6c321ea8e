// Asynchronous copies as the interpreter counts them, and what it reports of their elements.
#include "async_copies.h"

#include "checked.h"

namespace helve::testing {
namespace {

Span line(int number) { return {intern_file("k.py"), number, 5, number, 9}; }

using interp::AsyncCopies;
using interp::CopyNumber;

constexpr size_t kQueue = 0, kOther = 1;

bool is_complete(const AsyncCopies& copies, const CopyNumber& copy) { return copies.completed().contains(copy, false); }
bool has_arrived(const AsyncCopies& copies, const CopyNumber& copy) { return copies.completed().contains(copy, true); }

/// The line where the oldest unfinished copy began; 0 where all are complete.
int unfinished(const AsyncCopies& copies) {
  const auto left = copies.unfinished();
  return left ? left->second.line : 0;
}

TEST(AsyncCopies, CompleteInTheOrderInWhichTheyBegan) {
  AsyncCopies copies;
  EXPECT_EQ(unfinished(copies), 0);
  const CopyNumber first = copies.begin(kQueue, line(1)), second = copies.begin(kQueue, line(2));
  copies.commit(kQueue, line(3));
  const CopyNumber third = copies.begin(kQueue, line(4));
  copies.commit(kQueue, line(5));
  EXPECT_LT(first.number, second.number);
  EXPECT_LT(second.number, third.number);
  copies.wait(kQueue, 2);
  EXPECT_FALSE(is_complete(copies, first));
  copies.wait(kQueue, 1);  // what was committed together is one group
  EXPECT_TRUE(is_complete(copies, first) && is_complete(copies, second));
  EXPECT_FALSE(is_complete(copies, third));
  EXPECT_EQ(unfinished(copies), 4);
  copies.wait(kQueue, 0);
  EXPECT_TRUE(is_complete(copies, third));
  EXPECT_EQ(unfinished(copies), 0);
}

TEST(AsyncCopies, AWaitCoversItsQueueAlone) {
  AsyncCopies copies;
  const CopyNumber one = copies.begin(kQueue, line(1)), other = copies.begin(kOther, line(2));
  copies.commit(kOther, line(3));
  copies.wait(kOther, 0);
  EXPECT_TRUE(is_complete(copies, other));
  EXPECT_FALSE(is_complete(copies, one));
  EXPECT_EQ(unfinished(copies), 1);
  copies.commit(kQueue, line(4));
  copies.begin(kOther, line(5));
  copies.wait(kQueue, 0);
  EXPECT_TRUE(is_complete(copies, one));
  EXPECT_EQ(unfinished(copies), 5);
  EXPECT_EQ(copies.unfinished()->first, kOther);
}

TEST(AsyncCopies, NoWaitCoversWhatIsNotCommitted) {
  AsyncCopies copies;
  const CopyNumber open = copies.begin(kQueue, line(1));
  copies.wait(kQueue, 0);
  EXPECT_FALSE(is_complete(copies, open));
  EXPECT_EQ(unfinished(copies), 1);
  copies.commit(kQueue, line(2));
  copies.wait(kQueue, 0);
  EXPECT_TRUE(is_complete(copies, open));
}

TEST(AsyncCopies, ACommitOfNothingIsAGroup) {
  AsyncCopies copies;
  copies.begin(kQueue, line(1));
  copies.commit(kQueue, line(2));
  copies.commit(kQueue, line(3));
  copies.wait(kQueue, 1);
  EXPECT_EQ(unfinished(copies), 3);
}

TEST(AsyncCopies, AWaitForSourcesLeavesWhatIsWrittenOnItsWay) {
  AsyncCopies copies;
  const CopyNumber first = copies.begin(kQueue, line(1));
  copies.commit(kQueue, line(1));
  const CopyNumber second = copies.begin(kQueue, line(2));
  copies.commit(kQueue, line(2));
  copies.wait(kQueue, 1, true);
  EXPECT_TRUE(is_complete(copies, first));
  EXPECT_FALSE(has_arrived(copies, first));
  EXPECT_FALSE(is_complete(copies, second));
  copies.wait(kQueue, 0, true);
  EXPECT_TRUE(is_complete(copies, second));
  EXPECT_EQ(unfinished(copies), 0);
  copies.wait(kQueue, 1);  // counts from the youngest, whatever was waited for before
  EXPECT_TRUE(has_arrived(copies, first));
  EXPECT_FALSE(has_arrived(copies, second));
  const CopyNumber alone = copies.begin_alone(kQueue);
  EXPECT_EQ(unfinished(copies), 0);
  copies.wait(kQueue, 1);
  EXPECT_FALSE(has_arrived(copies, alone));
  copies.wait(kQueue, 0);
  EXPECT_TRUE(has_arrived(copies, second) && has_arrived(copies, alone));
}

TEST(AsyncCopies, AllHaveArrivedWhereTheKernelEnds) {
  AsyncCopies copies;
  const CopyNumber first = copies.begin(kQueue, line(1));
  copies.commit(kQueue, line(1));
  copies.wait(kQueue, 0, true);
  copies.finish();
  EXPECT_TRUE(has_arrived(copies, first));
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
