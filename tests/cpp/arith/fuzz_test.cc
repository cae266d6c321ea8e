// Random expressions under random facts: values kept and evaluated, forms stable, intervals and proofs sound.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "evaluate.h"
#include "helve/arith/evaluator.h"
#include "helve/arith/simplify.h"

namespace helve {
namespace {

using namespace helve::testing;

/// Variables, facts about them, and assignments that satisfy the facts.
struct World {
  std::vector<VarRef> index;
  std::vector<VarRef> bools;
  VarRef data = make_var("d", DType{TypeCode::Int, 8});
  std::vector<Expr> conditions;
  Facts facts;
  std::vector<Assignment> assignments;
  bool huge = false;  ///< has constants with which values may leave 64 bits
};

class Fuzz {
 public:
  explicit Fuzz(uint64_t seed) : random_(seed) {}

  int64_t pick(int64_t low, int64_t high) {
    const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;  // 0: all of them
    return static_cast<int64_t>(static_cast<uint64_t>(low) + (span ? random_() % span : random_()));
  }

  int64_t constant() {
    static constexpr int64_t kUsual[] = {1, 2, 3, 4, 8, 16, 32, 5, 6, 12, 64, 31};
    const int64_t kind = pick(0, 9);
    const int64_t magnitude = kind < 6 ? kUsual[pick(0, 11)] : kind < 9 ? pick(0, 9) : huge_ ? pick(0, INT64_MAX) : 100;
    return pick(0, 4) == 0 ? -magnitude : magnitude;
  }

  Expr index(const World& w, int depth) {
    if (depth == 0 || pick(0, 6) == 0) {
      return pick(0, 2) == 0 ? int_imm(constant()) : Expr(w.index[static_cast<size_t>(pick(0, 4))]);
    }
    auto sub = [&] { return index(w, depth - 1); };
    int64_t c = constant();
    switch (pick(0, 19)) {
      case 0:
      case 1:
      case 2: return sub() + sub();
      case 3:
      case 4: return sub() - sub();
      case 5:
      case 6: return sub() * int_imm(c);
      case 7: return sub() * sub();
      case 8:
      case 9:
      case 10: return floor_div(sub(), int_imm(c == 0 ? 7 : c));
      case 11:
      case 12:
      case 13: return floor_mod(sub(), int_imm(c == 0 ? 7 : c));
      case 14: return pick(0, 1) == 0 ? min(sub(), sub()) : max(sub(), sub());
      case 15: return select(condition(w, depth - 1), sub(), sub());
      case 16: return apply(pick(0, 1) == 0 ? Op::Neg : Op::Abs, {sub()});
      case 17: return rare(w, depth);
      case 18: {
        const Expr d = sub();  // a literal zero is refused by the builder
        if (const int64_t* v = int_value(d); v && *v == 0) return d;
        return pick(0, 1) == 0 ? floor_div(sub(), d) : floor_mod(sub(), d);
      }
      default: return cast(cast(sub(), DType{TypeCode::Int, 8}) + Expr(w.data), kIndex);
    }
  }

  Expr rare(const World& w, int depth) {
    const Expr a = index(w, depth - 1);
    switch (pick(0, 5)) {
      case 0: return apply(Op::ShiftRight, {a, int_imm(pick(0, 5))});
      case 1: return apply(Op::ShiftLeft, {a, int_imm(pick(0, 5))});
      case 2: return apply(Op::BitAnd, {a, int_imm((int64_t{1} << pick(0, 6)) - 1)});
      case 3: return apply(Op::BitXor, {a, index(w, depth - 1)});
      case 4: return apply(Op::BitNot, {a});
      default: return apply(Op::BitOr, {a, int_imm(pick(0, 9))});
    }
  }

  Expr condition(const World& w, int depth) {
    static constexpr Op kCompare[] = {Op::Lt, Op::Le, Op::Gt, Op::Ge, Op::Eq, Op::Ne};
    if (depth <= 0) {
      const int64_t kind = pick(0, 3);
      if (kind == 0) return Expr(w.bools[static_cast<size_t>(pick(0, 1))]);
      return apply(kCompare[pick(0, 5)], {index(w, 0), index(w, 0)});
    }
    switch (pick(0, 6)) {
      case 0: return logical_and(condition(w, depth - 1), condition(w, depth - 1));
      case 1: return apply(Op::Or, {condition(w, depth - 1), condition(w, depth - 1)});
      case 2: return apply(Op::Not, {condition(w, depth - 1)});
      default: return apply(kCompare[pick(0, 5)], {index(w, depth - 1), index(w, depth - 1)});
    }
  }

  World world(int samples) {
    World w;
    w.huge = huge_;
    for (const char* name : {"i", "j", "t", "n", "m"}) w.index.push_back(make_var(name));
    for (const char* name : {"p", "q"}) w.bools.push_back(make_var(name, kBool));
    const Expr i = w.index[0], j = w.index[1], t = w.index[2], n = w.index[3], m = w.index[4];
    int64_t low[5], high[5];
    for (size_t v = 0; v < 5; ++v) {
      low[v] = pick(0, 2) != 0 ? 0 : -pick(0, 40);
      high[v] = pick(0, 1) == 0 ? 31 : low[v] + pick(0, 70);
      if (pick(0, 3) != 0) {
        w.facts.bind(w.index[v], {low[v], high[v]});
        w.conditions.push_back(apply(Op::Le, {int_imm(low[v]), Expr(w.index[v])}));
        w.conditions.push_back(apply(Op::Le, {Expr(w.index[v]), int_imm(high[v])}));
      }
    }
    auto loop = [&](const VarRef& var, const Expr& begin, const Expr& extent) {
      w.facts.bind_loop(var, begin, extent);
      w.conditions.push_back(apply(Op::Le, {begin, Expr(var)}));
      w.conditions.push_back(less(Expr(var), begin + extent));
    };
    if (pick(0, 1) == 0) loop(w.index[0], int_imm(0), pick(0, 1) == 0 ? n : min(int_imm(32), n - t * int_imm(32)));
    if (pick(0, 2) == 0) loop(w.index[2], int_imm(pick(-1, 2)), ceil_div(n, int_imm(pick(2, 32))));
    if (pick(0, 2) == 0) loop(w.index[1], i, m);
    if (pick(0, 2) == 0) {
      const auto v = static_cast<size_t>(pick(0, 4));
      const int64_t modulus = pick(2, 12), remainder = pick(0, modulus - 1);
      const Expr known = apply(Op::Eq, {floor_mod(Expr(w.index[v]), int_imm(modulus)), int_imm(remainder)});
      if (pick(0, 1) == 0) {
        w.facts.bind_residue(w.index[v], Residue::of(modulus, remainder));
      } else {
        w.facts.assume(known);
      }
      w.conditions.push_back(known);
    }
    if (pick(0, 2) == 0) {
      const Expr guard = condition(w, 1);
      w.facts.assume(guard);
      w.conditions.push_back(guard);
    }
    for (int tries = 0; tries < samples * 30 && static_cast<int>(w.assignments.size()) < samples; ++tries) {
      Assignment at;
      for (size_t v = 0; v < 5; ++v) {
        at[w.index[v].get()] = pick(0, 4) == 0 ? pick(-70, 70) : pick(low[v], high[v]);
      }
      for (const VarRef& b : w.bools) at[b.get()] = pick(0, 1);
      at[w.data.get()] = pick(-128, 127);
      bool fits = true;
      for (const Expr& c : w.conditions) {
        std::optional<Wide> holds = evaluate(c, at);
        fits = fits && holds && *holds != 0;
      }
      if (fits) w.assignments.push_back(std::move(at));
    }
    return w;
  }

  void allow_huge_constants() { huge_ = true; }

 private:
  std::mt19937_64 random_;
  bool huge_ = false;
};

std::string describe(const World& w, const Expr& before, const Expr& after, const Assignment* at = nullptr) {
  std::string out = to_text(before) + "\n  became " + to_text(after) + "\n  given";
  for (const Expr& c : w.conditions) out += " [" + to_text(c) + "]";
  if (!at) return out;
  out += "\n  at";
  for (const VarRef& v : w.index) out += " " + v->name + "=" + std::to_string(static_cast<int64_t>(at->at(v.get())));
  for (const VarRef& v : w.bools) out += " " + v->name + "=" + std::to_string(static_cast<int64_t>(at->at(v.get())));
  return out + " d=" + std::to_string(static_cast<int64_t>(at->at(w.data.get())));
}

bool in_interval(Wide value, const Interval& range) {
  return (!range.low || value >= *range.low) && (!range.high || value <= *range.high);
}

bool in_residue(Wide value, const Residue& residue) {
  return residue.modulus == 0 ? value == residue.remainder : (value - residue.remainder) % residue.modulus == 0;
}

/// Has the expression for the evaluator the value that it has for the oracle? Only what leaves 64 bits may have none.
bool check_evaluator(const World& w, const Expr& e) {
  std::vector<VarRef> vars = w.index;
  vars.insert(vars.end(), w.bools.begin(), w.bools.end());
  vars.push_back(w.data);
  const Evaluator evaluator(e, vars);
  for (const Assignment& at : w.assignments) {
    std::vector<int64_t> values;
    for (const VarRef& var : vars) values.push_back(static_cast<int64_t>(at.at(var.get())));
    const std::optional<Wide> expected = evaluate(e, at);
    const std::optional<int64_t> value = evaluator.at(values);
    if (value ? expected && *expected == *value : !expected || w.huge) continue;
    ADD_FAILURE() << "the evaluator has another value: " << describe(w, e, e, &at);
    return false;
  }
  return true;
}

/// All laws of one expression; false after a failure, which is reported.
bool check(const World& w, const Expr& e, int& evaluated) {
  if (!check_evaluator(w, e)) return false;
  const Expr out = simplify(e, w.facts);
  EXPECT_EQ(out->dtype, e->dtype) << describe(w, e, out);
  const Expr again = simplify(out, w.facts);
  if (again != out) {
    ADD_FAILURE() << "not the same pointer the second time: " << describe(w, e, out) << "\n  then " << to_text(again);
    return false;
  }
  const Interval range = interval_of(e, w.facts), range_out = interval_of(out, w.facts);
  const Residue residue = residue_of(e, w.facts), residue_out = residue_of(out, w.facts);
  const bool proved = e->dtype.is_bool() && can_prove(e, w.facts);
  for (const Assignment& at : w.assignments) {
    std::optional<Wide> before = evaluate(e, at);
    if (!before) continue;
    ++evaluated;
    std::optional<Wide> after = evaluate(out, at);
    if (!after || *after != *before) {
      ADD_FAILURE() << (after ? "another value: " : "a new fault: ") << describe(w, e, out, &at);
      return false;
    }
    if (!in_interval(*before, range) || !in_interval(*before, range_out)) {
      ADD_FAILURE() << "a value outside the interval: " << describe(w, e, out, &at);
      return false;
    }
    if (!in_residue(*before, residue) || !in_residue(*before, residue_out)) {
      ADD_FAILURE() << "a value outside the residue: " << describe(w, e, out, &at);
      return false;
    }
    if (proved && *before == 0) {
      ADD_FAILURE() << "proved, and false: " << describe(w, e, out, &at);
      return false;
    }
  }
  return true;
}

int rounds(int usual) { return long_tests() ? usual * 20 : usual; }

TEST(Fuzz, IndexExpressionsKeepTheirValues) {
  Fuzz fuzz(1);
  int evaluated = 0, failures = 0;
  for (int round = 0; round < rounds(1500) && failures < 5; ++round) {
    const World w = fuzz.world(24);
    for (int k = 0; k < 20 && failures < 5; ++k) failures += !check(w, fuzz.index(w, 1 + k % 4), evaluated);
  }
  EXPECT_GT(evaluated, rounds(20000));
}

TEST(Fuzz, ConditionsKeepTheirValues) {
  Fuzz fuzz(2);
  int evaluated = 0, failures = 0;
  for (int round = 0; round < rounds(1000) && failures < 5; ++round) {
    const World w = fuzz.world(24);
    for (int k = 0; k < 20 && failures < 5; ++k) failures += !check(w, fuzz.condition(w, 1 + k % 3), evaluated);
  }
  EXPECT_GT(evaluated, rounds(20000));
}

TEST(Fuzz, HugeConstantsAreNeverWrong) {
  Fuzz fuzz(3);
  fuzz.allow_huge_constants();
  int evaluated = 0, failures = 0;
  for (int round = 0; round < rounds(1000) && failures < 5; ++round) {
    const World w = fuzz.world(12);
    for (int k = 0; k < 20 && failures < 5; ++k) {
      const Expr e = k % 2 == 0 ? fuzz.index(w, 1) : fuzz.condition(w, 1);  // one operator: 128 bits hold every value
      failures += !check(w, e, evaluated);
    }
  }
  EXPECT_GT(evaluated, rounds(10000));
}

TEST(Fuzz, DeepExpressionsAreStable) {
  Fuzz fuzz(4);
  int changed = 0;
  for (int round = 0; round < rounds(600); ++round) {
    World w = fuzz.world(0);
    const Expr e = fuzz.index(w, 7);
    const Expr out = simplify(e, w.facts);
    ASSERT_EQ(simplify(out, w.facts), out) << describe(w, e, out);
    changed += out != e;
  }
  EXPECT_GT(changed, 50);
}

}  // namespace
}  // namespace helve
