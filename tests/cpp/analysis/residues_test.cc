// Threads that are apart wherever accesses begin, compared with all pairs of threads, iterations and bases.
// Offsets are random sums of what the thread and its loop add.
#include "barriers/residues.h"

#include <gtest/gtest.h>

#include <random>

#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/function.h"

namespace helve::barriers {
namespace {

struct Form {
  int64_t by_thread, by_quotient, by_loop, constant;
  int64_t at(int64_t t, int64_t i) const { return by_thread * t + by_quotient * (t / 3) + by_loop * i + constant; }
};

constexpr int64_t kThreads = 6, kTurns = 3;

BlockAccess access(const VarRef& t, const VarRef& i) {
  BlockAccess out;
  out.buffer = make_buffer("A", kFloat32, MemoryScope::Param, {int_imm(64)});
  out.thread = t;
  out.inner = {{t, int_imm(0), int_imm(kThreads)}, {i, int_imm(0), int_imm(kTurns)}};
  return out;
}
Expr offset(const Form& form, const VarRef& t, const VarRef& i) {
  const Expr thread(t), turn(i);
  return thread * int_imm(form.by_thread) + floor_div(thread, int_imm(3)) * int_imm(form.by_quotient) +
         turn * int_imm(form.by_loop) + int_imm(form.constant);
}

/// Do two threads meet, where bases differ by a multiple of each modulus, or by nothing where it is 0?
bool meet(const std::vector<Form>& a, const std::vector<Form>& b, const std::vector<int64_t>& moduli) {
  for (int64_t s = 0; s < kThreads; ++s) {
    for (int64_t t = 0; t < kThreads; ++t) {
      for (int64_t i = 0; i < kTurns && s != t; ++i) {
        for (int64_t j = 0; j < kTurns; ++j) {
          bool all = true;
          for (size_t d = 0; d < a.size(); ++d) {
            const int64_t apart = a[d].at(s, i) - b[d].at(t, j);
            all &= moduli[d] == 0 ? apart == 0 : apart % moduli[d] == 0;
          }
          if (all) return true;
        }
      }
    }
  }
  return false;
}

TEST(Residues, ThreadsThatMeetForSomeBases) {
  std::mt19937 random(7);
  const auto number = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint64_t>(most + 1)); };
  const auto form = [&] { return Form{number(4), number(6), number(8) * (random() % 2 ? 1 : -1), number(5) - 2}; };
  int apart = 0;
  for (int n = 0; n < 2000; ++n) {
    const VarRef s = make_var("s"), t = make_var("t"), i = make_var("i"), j = make_var("j");
    std::vector<Form> one, other;
    std::vector<int64_t> moduli;
    std::vector<ComparedOffsets> compared;
    for (int64_t d = 0; d <= number(1); ++d) {
      one.push_back(form());
      other.push_back(random() % 2 ? one.back() : form());
      moduli.push_back(std::vector<int64_t>{0, 1, 2, 6, 16, 48}[random() % 6]);
      compared.push_back({offset(one.back(), s, i), offset(other.back(), t, j), moduli.back()});
    }
    const std::optional<bool> found = threads_apart(access(s, i), access(t, j), compared);
    ASSERT_TRUE(found.has_value());
    ASSERT_EQ(*found, !meet(one, other, moduli)) << n;
    apart += *found;
  }
  EXPECT_GT(apart, 100);
  EXPECT_LT(apart, 1900);
}

TEST(Residues, WhatAConditionLeavesOut) {
  const VarRef s = make_var("s"), t = make_var("t"), i = make_var("i"), j = make_var("j");
  BlockAccess one = access(s, i), other = access(t, j);
  const std::vector<ComparedOffsets> compared = {{floor_div(Expr(s), int_imm(3)), floor_div(Expr(t), int_imm(3)), 0}};
  EXPECT_EQ(threads_apart(one, other, compared), std::optional(false));
  one.conditions = {apply(Op::Eq, {floor_mod(Expr(s), int_imm(3)), int_imm(0)})};
  other.conditions = {apply(Op::Eq, {floor_mod(Expr(t), int_imm(3)), int_imm(0)})};
  EXPECT_EQ(threads_apart(one, other, compared), std::optional(true));
}

TEST(Residues, WhatCannotBeCounted) {
  const VarRef s = make_var("s"), i = make_var("i"), n = make_var("n");
  BlockAccess one = access(s, i);
  const std::vector<ComparedOffsets> compared = {{Expr(s), Expr(s), 4}};
  EXPECT_TRUE(threads_apart(one, one, compared));
  one.inner[1].extent = Expr(n);
  EXPECT_FALSE(threads_apart(one, one, compared)) << "a range that is not known";
  one.inner[1].extent = int_imm(1 << 20);
  EXPECT_FALSE(threads_apart(one, one, compared)) << "too many";
}

}  // namespace
}  // namespace helve::barriers
