// Loops over numbers in mixed radix, as loops over their digits, and back.
// Statements keep their places, so that origins stay right by number; what changes is how loops are counted, and with
// it the values of variables in origins.
#include "mixed_radix.h"

#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

#include "helve/analysis/mixed_radix.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/call_facts.h"
#include "helve/ir/tensor/visit.h"

namespace helve::legality {

namespace {

/// A loop variable that is counted by digits: var = high * radix + low.
struct Digits {
  VarRef high, low;
  Expr radix;
};

/// Two loop variables that are counted as one: var = high * radix + low.
struct Joined {
  VarRef high, low, var, none;
  Expr radix;
};

/// How loops of both regions are counted; one variable has one way, wherever it is used.
struct Counting {
  std::unordered_map<const Var*, Digits> digits;
  std::unordered_map<const Var*, Joined> joined;  ///< by both variables

  bool empty() const { return digits.empty() && joined.empty(); }

  Expr apply_to(const Expr& e) const {
    bool concerned = false;
    walk(e, [&](const Expr& node) {
      const Var* var = as<Var>(node);
      concerned |= var && (digits.contains(var) || joined.contains(var));
    });
    if (!concerned) return e;
    Substitution by_value;
    for (const auto& [var, each] : joined) {
      if (var == each.low.get()) by_value.emplace(var, Expr(each.var) - Expr(each.high) * each.radix);
    }
    const Expr without_pairs = by_value.empty() ? e : simplify(substitute(e, by_value));
    return with_digits(without_pairs);
  }

 private:
  Expr with_digits(const Expr& e) const {
    if (const Var* var = as<Var>(e)) {
      const auto at = digits.find(var);
      return at == digits.end() ? e : Expr(at->second.high) * at->second.radix + Expr(at->second.low);
    }
    const Apply* node = as<Apply>(e);
    if (node && (node->op == Op::FloorDiv || node->op == Op::FloorMod)) {
      const Var* var = as<Var>(node->args[0]);
      const auto at = var ? digits.find(var) : digits.end();
      if (at != digits.end() && same_expr(node->args[1], at->second.radix)) {
        return Expr(node->op == Op::FloorDiv ? at->second.high : at->second.low);
      }
    }
    return map_children(e, [&](const Expr& child) { return with_digits(child); });
  }
};

/// The variables, begins and extents of a loop or a grid.
struct Header {
  std::vector<VarRef> vars;
  std::vector<Expr> begins, extents;
};

Header header_of(const Stmt& s) {
  if (const For* loop = as<For>(s)) return {loop->vars, loop->begins, loop->extents};
  if (const Kernel* grid = as<Kernel>(s)) {
    return {grid->vars, std::vector<Expr>(grid->vars.size(), int_imm(0)), grid->extents};
  }
  return {};
}

Stmt with_header(const Stmt& s, const Header& header) {
  if (const For* loop = as<For>(s)) {
    return Stmt(copy_with(*loop, [&](For& out) {
      out.vars = header.vars;
      out.begins = header.begins;
      out.extents = header.extents;
    }));
  }
  return Stmt(copy_with(*as<Kernel>(s), [&](Kernel& out) {
    out.vars = header.vars;
    out.extents = header.extents;
  }));
}

const For* only_loop(const Stmt& body) {
  const Seq* block = as<Seq>(body);
  return as<For>(block && block->stmts.size() == 1 ? block->stmts[0] : body);
}

bool begins_at_zero(const Expr& begin) {
  const int64_t* value = int_value(begin);
  return value && *value == 0;
}

/// Finds what may be counted in another way, then takes back what may not be so everywhere.
class Finder {
 public:
  explicit Finder(const Question& question) : question_(question), facts_(facts_of_calls(*question.before)) {}

  Counting run() {
    for (const Stmt& region : {question_.before_region, question_.after_region}) {
      walk(region, [&](const Stmt& s) {
        propose_digits(s);
        propose_joined(s);
      });
    }
    for (const Stmt& region : {question_.before_region, question_.after_region}) require_everywhere(region);
    return std::move(out_);
  }

 private:
  static bool is_plain(const Expr& radix) { return !int_value(radix) && !has_load(radix); }
  bool is_not_negative(const Expr& e) const { return can_prove(apply(Op::Le, {int_imm(0), e}), facts_); }

  void look_at_values(const std::function<void(const Expr&)>& look) const {
    for (const Origin& origin : question_.origins) {
      for (const auto& [old, value] : origin.values) look(value);
    }
  }

  /// The first m of `var // m` or `var % m`, in the statement or in origins.
  Expr radix_of(const Stmt& s, const Var* var) const {
    Expr found;
    const auto look = [&](const Expr& e) {
      const Apply* node = as<Apply>(e);
      const bool divides = node && (node->op == Op::FloorDiv || node->op == Op::FloorMod);
      if (!found && divides && node->args[0].get() == var && is_plain(node->args[1])) found = node->args[1];
    };
    walk_exprs(s, look);
    look_at_values([&](const Expr& value) { walk(value, look); });
    return found;
  }

  void propose_digits(const Stmt& s) {
    const Header header = header_of(s);
    for (size_t d = 0; d < header.vars.size(); ++d) {
      const VarRef& var = header.vars[d];
      if (int_value(header.extents[d]) || out_.digits.contains(var.get())) continue;
      const Expr radix = radix_of(s, var.get());
      if (!radix || !is_not_negative(radix)) continue;
      const std::string high = var->name + " // " + to_text(radix), low = var->name + " % " + to_text(radix);
      out_.digits.emplace(var.get(), Digits{make_var(high), make_var(low), radix});
    }
  }

  void propose_joined(const Stmt& s) {
    const For* outer = as<For>(s);
    const For* inner = outer ? only_loop(outer->body) : nullptr;
    if (!inner || outer->vars.size() != 1 || inner->vars.size() != 1) return;
    const Expr& radix = inner->extents[0];
    const VarRef &high = outer->vars[0], &low = inner->vars[0];
    if (!is_plain(radix) || !is_not_negative(radix)) return;
    if (out_.joined.contains(high.get()) || out_.joined.contains(low.get())) return;
    const Joined pair{high, low, make_var(high->name + low->name), make_var("none"), radix};
    out_.joined.emplace(high.get(), pair);
    out_.joined.emplace(low.get(), pair);
  }

  /// Takes back what a loop of the region cannot be counted by.
  void require_everywhere(const Stmt& region) {
    std::unordered_set<const StmtNode*> inner_loops;
    walk(region, [&](const Stmt& s) {
      const Header header = header_of(s);
      for (size_t d = 0; d < header.vars.size(); ++d) {
        const Var* var = header.vars[d].get();
        const auto digits = out_.digits.find(var);
        if (digits != out_.digits.end() &&
            !(begins_at_zero(header.begins[d]) && exact_quotient(header.extents[d], digits->second.radix))) {
          out_.digits.erase(digits);
        }
        const auto joined = out_.joined.find(var);
        if (joined == out_.joined.end() || inner_loops.contains(s.get())) continue;
        const Joined pair = joined->second;
        if (const For* inner = is_pair(pair, s)) {
          inner_loops.insert(inner);
        } else {
          out_.joined.erase(pair.high.get());
          out_.joined.erase(pair.low.get());
        }
      }
    });
  }

  /// The inner loop, if the statement is the outer one and both are used in high * radix + low only.
  const For* is_pair(const Joined& pair, const Stmt& s) const {
    const For* outer = as<For>(s);
    const For* inner = outer ? only_loop(outer->body) : nullptr;
    if (!inner || outer->vars != std::vector{pair.high} || inner->vars != std::vector{pair.low}) return nullptr;
    if (!begins_at_zero(outer->begins[0]) || !begins_at_zero(inner->begins[0])) return nullptr;
    if (!same_expr(inner->extents[0], pair.radix) || mentions(pair.radix, pair.high.get())) return nullptr;
    if (is_independent(*outer) != is_independent(*inner)) return nullptr;
    const Substitution by_value{{pair.low.get(), Expr(pair.var) - Expr(pair.high) * pair.radix}};
    bool together = true;
    const auto look = [&](const Expr& e) {
      const bool either = mentions(e, pair.low.get()) || mentions(e, pair.high.get());
      together &= !either || !mentions(simplify(substitute(e, by_value)), pair.high.get());
    };
    walk(inner->body, [&](const Stmt& below) { for_each_part(below, look, [](const Stmt&) {}); });
    look_at_values(look);
    return together ? inner : nullptr;
  }

  const Question& question_;
  const Facts facts_;
  Counting out_;
};

Header counted(const Header& header, const Counting& counting) {
  Header out;
  for (size_t d = 0; d < header.vars.size(); ++d) {
    const Var* var = header.vars[d].get();
    if (const auto at = counting.digits.find(var); at != counting.digits.end()) {
      const Digits& digits = at->second;
      out.vars.insert(out.vars.end(), {digits.high, digits.low});
      out.begins.insert(out.begins.end(), {int_imm(0), int_imm(0)});
      out.extents.insert(out.extents.end(), {simplify(exact_quotient(header.extents[d], digits.radix)), digits.radix});
      continue;
    }
    out.begins.push_back(header.begins[d]);
    const auto at = counting.joined.find(var);
    const bool high = at != counting.joined.end() && at->second.high.get() == var;
    out.vars.push_back(at == counting.joined.end() ? header.vars[d] : high ? at->second.var : at->second.none);
    out.extents.push_back(at == counting.joined.end() ? header.extents[d]
                          : high                      ? simplify(header.extents[d] * at->second.radix)
                                                      : int_imm(1));
  }
  return out;
}

Stmt counted(const Stmt& s, const Counting& counting) {
  if (!s) return s;
  const Stmt below = map_parts(
      s, [&](const Expr& e) { return counting.apply_to(e); },
      [&](const Stmt& inner) { return counted(inner, counting); });
  const Header header = header_of(below);
  return header.vars.empty() ? below : with_header(below, counted(header, counting));
}

std::vector<const StmtNode*> numbered(const Stmt& region) {
  std::vector<const StmtNode*> out;
  walk(region, [&](const Stmt& s) { out.push_back(s.get()); });
  return out;
}

/// Values of the variables of the old region, as it is counted now, from those as it was.
std::vector<std::pair<VarRef, Expr>> values_of(const Origin& origin, const Counting& counting) {
  const auto value_of = [&](const VarRef& var) {
    for (const auto& [old, value] : origin.values) {
      if (old == var) return value;
    }
    return Expr(var);
  };
  std::vector<std::pair<VarRef, Expr>> out;
  for (const auto& [old, value] : origin.values) {
    if (!counting.digits.contains(old.get()) && !counting.joined.contains(old.get())) {
      out.emplace_back(old, counting.apply_to(value));
    }
  }
  for (const auto& [var, digits] : counting.digits) {
    const Expr value = value_of(VarRef(var));
    out.emplace_back(digits.high, simplify(counting.apply_to(floor_div(value, digits.radix))));
    out.emplace_back(digits.low, simplify(counting.apply_to(floor_mod(value, digits.radix))));
  }
  for (const auto& [var, pair] : counting.joined) {
    if (var != pair.high.get()) continue;
    const Expr together = value_of(pair.high) * pair.radix + value_of(pair.low);
    out.emplace_back(pair.var, simplify(counting.apply_to(together)));
    out.emplace_back(pair.none, int_imm(0));
  }
  return out;
}

}  // namespace

std::optional<Question> in_mixed_radix(const Question& question) {
  const Counting counting = Finder(question).run();
  if (counting.empty()) return std::nullopt;
  // A value that took the place of a load names that load, which counting by digits would make another node.
  for (const Origin& origin : question.origins) {
    if (!origin.inlined.empty()) return std::nullopt;
  }
  Question out;
  out.before_region = counted(question.before_region, counting);
  out.after_region = counted(question.after_region, counting);
  out.before = with_body(question.before, rewrite(question.before->body, [&](const Stmt& s) {
                           return s == question.before_region ? out.before_region : s;
                         }));
  const std::vector<const StmtNode*> after = numbered(out.after_region);
  for (const Origin& origin : question.origins) {
    out.origins.push_back(
        {after[origin.after_visit], origin.after_visit, origin.before_visit, values_of(origin, counting), {}});
  }
  return out;
}

}  // namespace helve::legality
