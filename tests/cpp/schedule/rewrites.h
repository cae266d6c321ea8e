// Rewrites of loop nests by hand, legal or not, with the origins of their statements.
// Primitives of the schedule are not used: the checker is judged by rewrites that know nothing of it.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "helve/arith/simplify.h"
#include "helve/ir/tensor/visit.h"
#include "helve/schedule/legality.h"

namespace helve::testing {

inline constexpr size_t kNoOrigin = SIZE_MAX;

/// A region as a tree that can be changed; leaves remember what they come from.
struct Tree {
  StmtKind kind = StmtKind::Seq;
  std::vector<Tree> parts;
  // For
  LoopKind loop = LoopKind::Serial;
  VarRef var;
  Expr begin, extent;
  // If
  Expr condition;
  bool has_else = false;
  // A leaf, or an Alloc
  Stmt stmt;
  size_t before_visit = 0;  ///< kNoOrigin: a statement that copies an element
  std::vector<std::pair<VarRef, Expr>> values;
};

class TreeOf {
 public:
  static Tree make(const Stmt& region) {
    TreeOf of;
    return of.tree(region);
  }

 private:
  Tree tree(const Stmt& s) {
    const size_t visit = visits_++;
    Tree out;
    out.kind = s->kind;
    if (const Seq* n = as<Seq>(s)) {
      for (const Stmt& part : n->stmts) out.parts.push_back(tree(part));
    } else if (const For* n = as<For>(s)) {
      out.loop = n->loop;
      out.var = n->vars[0];
      out.begin = n->begins[0];
      out.extent = n->extents[0];
      vars_.push_back(out.var);
      out.parts.push_back(tree(n->body));
      vars_.pop_back();
    } else if (const If* n = as<If>(s)) {
      out.condition = n->condition;
      out.parts.push_back(tree(n->then_body));
      out.has_else = n->else_body.get() != nullptr;
      if (n->else_body) out.parts.push_back(tree(n->else_body));
    } else {
      out.stmt = s;
      out.before_visit = visit;
      for (const VarRef& var : vars_) out.values.emplace_back(var, Expr(var));
    }
    return out;
  }
  size_t visits_ = 0;
  std::vector<VarRef> vars_;
};

inline bool is_leaf(const Tree& t) { return t.kind == StmtKind::Store || t.kind == StmtKind::TileOp; }

/// A tree with variables replaced.
inline void substitute_in(Tree& t, const Substitution& values) {
  for (Tree& part : t.parts) substitute_in(part, values);
  if (t.begin) t.begin = substitute(t.begin, values);
  if (t.extent) t.extent = substitute(t.extent, values);
  if (t.condition) t.condition = substitute(t.condition, values);
  if (t.stmt) t.stmt = substitute(t.stmt, values);
  for (auto& [var, value] : t.values) value = substitute(value, values);
}

inline Tree loop_tree(LoopKind kind, const VarRef& var, Expr begin, Expr extent, std::vector<Tree> parts) {
  Tree out;
  out.kind = StmtKind::For;
  out.loop = kind;
  out.var = var;
  out.begin = std::move(begin);
  out.extent = std::move(extent);
  Tree body;
  body.parts = std::move(parts);
  out.parts = {std::move(body)};
  return out;
}

struct Rewritten {
  Stmt region;
  std::vector<Origin> origins;
};

inline Stmt stmt_of(const Tree& t) {
  std::vector<Stmt> parts;
  for (const Tree& part : t.parts) parts.push_back(stmt_of(part));
  switch (t.kind) {
    case StmtKind::Seq: return seq(std::move(parts));
    case StmtKind::For: return for_loop(t.loop, {t.var}, {t.begin}, {t.extent}, parts[0]);
    case StmtKind::If: return if_then(t.condition, parts[0], t.has_else ? parts[1] : Stmt());
    default: return t.stmt;
  }
}

/// Leaves keep their order in statement and tree.
inline Rewritten rewritten(const Tree& t) {
  Rewritten out{stmt_of(t), {}};
  std::vector<const Tree*> leaves;
  const std::function<void(const Tree&)> find = [&](const Tree& each) {
    if (is_leaf(each)) leaves.push_back(&each);
    for (const Tree& part : each.parts) find(part);
  };
  find(t);
  size_t visit = 0, leaf = 0;
  walk(out.region, [&](const Stmt& s) {
    if (s->kind == StmtKind::Store || s->kind == StmtKind::TileOp) {
      const Tree& from = *leaves.at(leaf++);
      if (from.before_visit != kNoOrigin) out.origins.push_back({s.get(), visit, from.before_visit, from.values});
    }
    ++visit;
  });
  return out;
}

/// Random rewrites of a tree. Each returns what it did; empty if it did not apply.
class RandomRewrite {
 public:
  RandomRewrite(uint32_t seed, Tree tree) : random_(seed), tree_(std::move(tree)) {}

  const Tree& tree() const { return tree_; }

  std::string step() {
    std::vector<Tree*> nodes;
    const std::function<void(Tree&)> find = [&](Tree& t) {
      nodes.push_back(&t);
      for (Tree& part : t.parts) find(part);
    };
    find(tree_);
    Tree& t = *nodes[static_cast<size_t>(number(0, static_cast<int64_t>(nodes.size()) - 1))];
    if (t.kind == StmtKind::For) return change_loop(t);
    if (t.kind == StmtKind::Seq && t.parts.size() > 1) return change_sequence(t);
    return {};
  }

 private:
  int64_t number(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  bool chance(int64_t of) { return number(1, of) == 1; }

  std::string change_loop(Tree& t) {
    switch (number(0, 9)) {
      case 0: return split(t);
      case 1: return interchange(t);
      case 2: return reverse(t);
      case 3: return fission(t);
      case 4: return skew(t);
      case 5: return shift(t);
      case 6: t.loop = LoopKind::Parallel; return "parallel " + t.var->name;
      case 7: return unroll(t);
      case 8: return lift(t);
      default: return wrong_extent(t);
    }
  }

  std::string split(Tree& t) {
    const int64_t factor = number(1, 3);
    const VarRef outer = make_var(t.var->name + "o"), inner = make_var(t.var->name + "i");
    const Expr at = Expr(outer) * int_imm(factor) + Expr(inner);
    Tree body = t.parts[0];
    substitute_in(body, {{t.var.get(), t.begin + at}});
    Tree guarded = body;
    if (!chance(6)) {
      guarded = Tree();
      guarded.kind = StmtKind::If;
      guarded.condition = less(at, t.extent);
      guarded.parts = {body};
    }
    Tree inside = loop_tree(LoopKind::Serial, inner, int_imm(0), int_imm(factor), {guarded});
    t = loop_tree(t.loop, outer, int_imm(0), ceil_div(t.extent, int_imm(factor)), {inside});
    return "split " + outer->name;
  }

  std::string interchange(Tree& t) {
    Tree* inner = &t.parts[0];
    while (inner->kind == StmtKind::Seq && inner->parts.size() == 1) inner = &inner->parts[0];
    if (inner->kind != StmtKind::For) return {};
    if (mentions(inner->begin, t.var.get()) || mentions(inner->extent, t.var.get())) return {};
    std::swap(t.var, inner->var);
    std::swap(t.begin, inner->begin);
    std::swap(t.extent, inner->extent);
    std::swap(t.loop, inner->loop);
    return "interchange " + t.var->name;
  }

  std::string reverse(Tree& t) {
    const VarRef back = make_var(t.var->name + "r");
    substitute_in(t.parts[0], {{t.var.get(), t.begin + t.extent - int_imm(1) - Expr(back)}});
    t.begin = int_imm(0);
    t.var = back;
    return "reverse " + back->name;
  }

  std::string fission(Tree& t) {
    Tree* body = &t.parts[0];
    while (body->kind == StmtKind::Seq && body->parts.size() == 1) body = &body->parts[0];
    if (body->kind != StmtKind::Seq || body->parts.size() < 2) return {};
    for (const Tree& part : body->parts) {
      if (part.kind == StmtKind::Alloc) return {};
    }
    Tree both;
    for (size_t n = 0; n < body->parts.size(); ++n) {
      both.parts.push_back(loop_tree(t.loop, t.var, t.begin, t.extent, {body->parts[n]}));
    }
    if (chance(6)) both.parts.pop_back();
    t = both;
    return "fission";
  }

  std::string skew(Tree& t) {
    Tree* inner = &t.parts[0];
    while (inner->kind == StmtKind::Seq && inner->parts.size() == 1) inner = &inner->parts[0];
    if (inner->kind != StmtKind::For) return {};
    const VarRef skewed = make_var(inner->var->name + "s");
    const int64_t factor = number(-1, 2);
    substitute_in(inner->parts[0], {{inner->var.get(), Expr(skewed) - Expr(t.var) * int_imm(factor)}});
    inner->begin = inner->begin + Expr(t.var) * int_imm(factor);
    inner->var = skewed;
    return "skew " + skewed->name;
  }

  std::string shift(Tree& t) {
    const VarRef moved = make_var(t.var->name + "m");
    substitute_in(t.parts[0], {{t.var.get(), Expr(moved) + t.begin - int_imm(2)}});
    t.begin = int_imm(2);
    t.var = moved;
    return "shift " + moved->name;
  }

  /// The allocation that a body begins with stands before the loop.
  std::string lift(Tree& t) {
    Tree* body = &t.parts[0];
    while (body->kind == StmtKind::Seq && !body->parts.empty()) {
      if (body->parts[0].kind == StmtKind::Alloc) {
        const Tree allocation = body->parts[0];
        body->parts.erase(body->parts.begin());
        t = sequence({allocation, t});
        return "lift";
      }
      body = &body->parts[0];
    }
    return {};
  }

  std::string unroll(Tree& t) {
    const int64_t* extent = int_value(t.extent);
    if (!extent || *extent > 3 || holds_allocation(t)) return {};
    Tree all;
    for (int64_t n = 0; n < *extent; ++n) {
      Tree copy = t.parts[0];
      substitute_in(copy, {{t.var.get(), t.begin + int_imm(n)}});
      all.parts.push_back(copy);
    }
    if (chance(3) && all.parts.size() > 1) std::swap(all.parts[0], all.parts[1]);
    t = all;
    return "unroll";
  }
  static bool holds_allocation(const Tree& t) {
    if (t.kind == StmtKind::Alloc) return true;
    for (const Tree& part : t.parts) {
      if (holds_allocation(part)) return true;
    }
    return false;
  }

  std::string wrong_extent(Tree& t) {
    if (!chance(3)) return {};
    t.extent = chance(2) ? t.extent + int_imm(1) : max(int_imm(0), t.extent - int_imm(1));
    return "another extent of " + t.var->name;
  }

  std::string change_sequence(Tree& t) {
    const size_t at = static_cast<size_t>(number(0, static_cast<int64_t>(t.parts.size()) - 2));
    Tree &one = t.parts[at], &two = t.parts[at + 1];
    if (chance(2) && one.kind == StmtKind::For && two.kind == StmtKind::For) {
      substitute_in(two.parts[0], {{two.var.get(), Expr(one.var) - one.begin + two.begin}});
      one.parts[0] = sequence({one.parts[0], two.parts[0]});
      t.parts.erase(t.parts.begin() + static_cast<int64_t>(at) + 1);
      return "fuse " + one.var->name;
    }
    if (one.kind == StmtKind::Alloc) {
      if (two.kind != StmtKind::For || at + 2 != t.parts.size()) return {};
      two.parts[0] = sequence({one, two.parts[0]});
      t.parts.erase(t.parts.begin() + static_cast<int64_t>(at));
      return "sink";
    }
    if (chance(8) && !holds_allocation(one)) {
      two = sequence({two, one});
      return "repeat a statement";
    }
    std::swap(one, two);
    return "swap";
  }
  static Tree sequence(std::vector<Tree> parts) {
    Tree out;
    out.parts = std::move(parts);
    return out;
  }

  std::mt19937 random_;
  Tree tree_;
};

}  // namespace helve::testing
