// Unification of the statements of a function with those of a program.
// Loops and names are paired on the way; what subscripts say of parameters is collected and solved at the end, when all
// variables have partners. Subscripts are equal if they simplify to one sum.
#include "unify.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "helve/arith/simplify.h"
#include "helve/arith/sum.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/visit.h"
#include "helve/schedule/find.h"

namespace helve {

namespace {

/// An access of a parameter, and the one of the program in its place.
struct AccessPair {
  std::vector<Range> leaf, program;
  BufferRef buffer;
  bool region;
  Stmt at;
};

/// Two index expressions that have to be equal.
struct IndexPair {
  Expr leaf, program;
  Stmt at;
};

class Unifier {
 public:
  Unifier(const Function& leaf, const Arguments& arguments) : leaf_(leaf), arguments_(arguments) {
    for (const VarRef& dim : leaf.dims) open_.insert(dim.get());
    for (const Param& param : leaf.params) {
      if (const VarRef* scalar = std::get_if<VarRef>(&param)) open_.insert(scalar->get());
    }
  }

  Unification run(const std::vector<Stmt>& pattern, const std::vector<Stmt>& program) {
    blocks(pattern, program, program[0]);
    solve_views();
    for (const IndexPair& each : equal_) {
      const Expr difference = simplify(tidy(each.leaf) - each.program);
      const int64_t* zero = int_value(difference);
      if (!zero || *zero != 0) {
        differ(each.at, fmt::format("'{}' is not '{}'", brief_text(each.program), brief_text(each.leaf)));
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void differ(const Stmt& at, const std::string& reason) const {
    arguments_.refuse(fmt::format("the statement is not that of '{}': {}", leaf_.name, reason), at,
                      "name statements that the function has, with its parameters in the place of buffers");
  }

  // Statements.

  void blocks(const std::vector<Stmt>& a, const std::vector<Stmt>& b, const Stmt& around) {
    if (a.size() != b.size()) differ(around, fmt::format("it holds {} statements, not {}", b.size(), a.size()));
    for (size_t i = 0; i < a.size(); ++i) statements(a[i], b[i]);
  }

  void statements(const Stmt& a, const Stmt& b) {
    if (a->kind != b->kind) differ(b, fmt::format("there stands '{}'", head_text(a)));
    dispatch(a, [&](const auto& node) {
      using N = std::decay_t<decltype(node)>;
      unify_nodes(node, static_cast<const N&>(*b), b);
    });
  }

  void unify_nodes(const For& a, const For& b, const Stmt& at) {
    if (a.loop != b.loop || a.vars.size() != b.vars.size() || a.num_stages != b.num_stages) {
      differ(at, fmt::format("there stands '{}'", head_text(Stmt(&a))));
    }
    // Iterations are counted from the begins of both.
    std::vector<Expr> ours;
    for (size_t d = 0; d < a.vars.size(); ++d) {
      index(a.extents[d], b.extents[d], at);
      ours.push_back(in_leaf(b.begins[d]));
    }
    for (size_t d = 0; d < a.vars.size(); ++d) {
      const Expr theirs = simplify(Expr(b.vars[d]) - b.begins[d] + tidy(a.begins[d]));
      pair(a.vars[d], theirs, b.vars[d], simplify(Expr(a.vars[d]) - a.begins[d] + ours[d]));
    }
    blocks(block_of(a.body), block_of(b.body), at);
  }
  void unify_nodes(const Kernel& a, const Kernel& b, const Stmt& at) {
    if (a.vars.size() != b.vars.size() || a.threads != b.threads) {
      differ(at, fmt::format("there stands '{}'", head_text(Stmt(&a))));
    }
    for (size_t d = 0; d < a.vars.size(); ++d) {
      index(a.extents[d], b.extents[d], at);
      pair(a.vars[d], Expr(b.vars[d]), b.vars[d], Expr(a.vars[d]));
    }
    blocks(block_of(a.body), block_of(b.body), at);
  }
  void unify_nodes(const If& a, const If& b, const Stmt& at) {
    expressions(a.condition, b.condition, at);
    blocks(block_of(a.then_body), block_of(b.then_body), at);
    blocks(block_of(a.else_body), block_of(b.else_body), at);
  }
  void unify_nodes(const While& a, const While& b, const Stmt& at) {
    expressions(a.condition, b.condition, at);
    blocks(block_of(a.body), block_of(b.body), at);
  }
  void unify_nodes(const Bind& a, const Bind& b, const Stmt& at) {
    if (a.var->dtype != b.var->dtype) differ(at, fmt::format("there stands '{}'", head_text(Stmt(&a))));
    expressions(a.value, b.value, at);
    pair(a.var, Expr(b.var), b.var, Expr(a.var));
  }
  void unify_nodes(const Alloc& a, const Alloc& b, const Stmt& at) {
    const Buffer &ours = *a.buffer, &theirs = *b.buffer;
    const bool alike = ours.dtype == theirs.dtype && ours.scope == theirs.scope && ours.rank() == theirs.rank() &&
                       ours.tile == theirs.tile && ours.layout == theirs.layout && ours.offset == theirs.offset;
    if (!alike) differ(at, fmt::format("there stands '{}'", head_text(Stmt(&a))));
    for (size_t d = 0; d < ours.rank(); ++d) index(ours.shape[d], theirs.shape[d], at);
    own_.emplace(&ours, b.buffer);
  }
  void unify_nodes(const Store& a, const Store& b, const Stmt& at) {
    if (a.mode != b.mode) differ(at, fmt::format("there stands '{}'", head_text(Stmt(&a))));
    elements(a.buffer, a.indices, b.buffer, b.indices, at);
    expressions(a.value, b.value, at);
    if (!a.previous != !b.previous) differ(at, fmt::format("there stands '{}'", head_text(Stmt(&a))));
    if (a.previous) pair(a.previous, Expr(b.previous), b.previous, Expr(a.previous));
  }
  void unify_nodes(const Prefetch& a, const Prefetch& b, const Stmt& at) {
    elements(a.buffer, a.indices, b.buffer, b.indices, at);
  }
  void unify_nodes(const Report& a, const Report& b, const Stmt& at) {
    const bool alike = a.fault == b.fault && a.text == b.text && a.names == b.names && a.around == b.around;
    if (!alike) differ(at, fmt::format("there stands '{}'", head_text(Stmt(&a))));
    for (size_t i = 0; i < a.values.size(); ++i) expressions(a.values[i], b.values[i], at);
  }
  void unify_nodes(const TileOp& a, const TileOp& b, const Stmt& at) {
    if (a.op != b.op) differ(at, fmt::format("there stands '{}'", head_text(Stmt(&a))));
    for (size_t i = 0; i < a.operands.size(); ++i) {
      if (a.operands[i].index() != b.operands[i].index()) differ(at, "an operand is of another kind");
      std::visit([&](const auto& ours) { operand(ours, std::get<std::decay_t<decltype(ours)>>(b.operands[i]), at); },
                 a.operands[i]);
    }
  }
  template <class N>
  void unify_nodes(const N& a, const N&, const Stmt& at) {
    differ(at, fmt::format("'{}' is taken for no other statement", head_text(Stmt(&a))));
  }

  void operand(const Region& a, const Region& b, const Stmt& at) {
    std::vector<const Range*> ours, theirs;
    for (const Range& range : a.ranges) {
      if (!range.point) ours.push_back(&range);
    }
    for (const Range& range : b.ranges) {
      if (!range.point) theirs.push_back(&range);
    }
    if (ours.size() != theirs.size()) differ(at, fmt::format("a region has {} dimensions", theirs.size()));
    for (size_t d = 0; d < ours.size(); ++d) index(ours[d]->extent, theirs[d]->extent, at);
    accesses(a.buffer, a.ranges, b.buffer, b.ranges, true, at);
  }
  void operand(const Expr& a, const Expr& b, const Stmt& at) { expressions(a, b, at); }
  void operand(const std::vector<Expr>& a, const std::vector<Expr>& b, const Stmt& at) {
    if (a.size() != b.size()) differ(at, "an operand has other parts");
    for (size_t i = 0; i < a.size(); ++i) expressions(a[i], b[i], at);
  }
  void operand(const IndexMap& a, const IndexMap& b, const Stmt& at) {
    pair(a.var, Expr(b.var), b.var, Expr(a.var));
    expressions(a.value, b.value, at);
  }
  template <class T>
  void operand(const T& a, const T& b, const Stmt& at) {
    if (!(a == b)) differ(at, "an operand is another one");
  }

  /// The variable of the function and the one of the program, each in terms of the other.
  void pair(const VarRef& ours, const Expr& theirs, const VarRef& var, const Expr& value) {
    in_program_.insert_or_assign(ours.get(), theirs);
    in_leaf_.insert_or_assign(var.get(), value);
    out_.values.emplace_back(var, value);
    inside_.push_back(var.get());
  }

  // Expressions.

  /// An expression of the function as one of the program.
  Expr tidy(const Expr& e) const { return simplify(substitute(substitute(e, in_program_), out_.scalars)); }
  Expr in_leaf(const Expr& e) const { return substitute(e, in_leaf_); }

  /// Has it one value for all of the statements?
  bool is_fixed(const Expr& e) const {
    bool fixed = !has_load(e);
    walk(e, [&](const Expr& node) {
      const Var* var = as<Var>(node);
      fixed &= !var || std::find(inside_.begin(), inside_.end(), var) == inside_.end();
    });
    return fixed;
  }
  bool is_open(const Expr& e) const {
    bool open = false;
    walk(e, [&](const Expr& node) {
      const Var* var = as<Var>(node);
      open |= var && open_.contains(var);
    });
    return open;
  }

  void bind(const Var* var, const Expr& value, const Stmt& at) {
    if (!is_fixed(value)) {
      differ(at,
             fmt::format("'{}' stands for '{}', which is not one value for all of it", var->name, brief_text(value)));
    }
    open_.erase(var);
    out_.scalars.emplace(var, value);
  }

  void index(const Expr& a, const Expr& b, const Stmt& at) {
    if (const Var* var = as<Var>(a); var && open_.contains(var)) return bind(var, b, at);
    if (has_load(a) || has_load(b)) return structures(a, b, at);
    const Cast *ours = as<Cast>(a), *theirs = as<Cast>(b);
    if (ours && theirs && ours->value->dtype == theirs->value->dtype)
      return expressions(ours->value, theirs->value, at);
    equal_.push_back({a, b, at});
  }

  void expressions(const Expr& a, const Expr& b, const Stmt& at) {
    if (a->dtype != b->dtype) differ(at, fmt::format("'{}' is of {}", brief_text(b), to_string(b->dtype)));
    if (a->dtype.is_index()) return index(a, b, at);
    structures(a, b, at);
  }

  void structures(const Expr& a, const Expr& b, const Stmt& at) {
    if (const Var* var = as<Var>(a)) {
      if (open_.contains(var)) return bind(var, b, at);
      if (!same_expr(tidy(a), simplify(b))) differ(at, fmt::format("there is '{}' for '{}'", brief_text(b), var->name));
      return;
    }
    const auto other = [&]() { differ(at, fmt::format("there is '{}' for '{}'", brief_text(b), brief_text(a))); };
    if (a->kind != b->kind || a->dtype != b->dtype) other();
    if (const Load* ours = as<Load>(a)) {
      const Load* theirs = as<Load>(b);
      return elements(buffer_ref(ours->buffer), ours->indices, buffer_ref(theirs->buffer), theirs->indices, at);
    }
    std::vector<Expr> olds, nows;
    for_each_child(a, [&](const Expr& child) { olds.push_back(child); });
    for_each_child(b, [&](const Expr& child) { nows.push_back(child); });
    if (olds.size() != nows.size()) other();
    for (size_t i = 0; i < olds.size(); ++i) {
      if (olds[i]->dtype != nows[i]->dtype) other();
    }
    size_t next = 0;
    if (!same_expr(map_children(a, [&](const Expr&) { return nows[next++]; }), b)) other();
    for (size_t i = 0; i < olds.size(); ++i) expressions(olds[i], nows[i], at);
  }

  void elements(const BufferRef& a, const std::vector<Expr>& ours, const BufferRef& b, const std::vector<Expr>& theirs,
                const Stmt& at) {
    const auto points = [](const std::vector<Expr>& indices) {
      std::vector<Range> out;
      for (const Expr& e : indices) out.push_back({e, int_imm(1), true});
      return out;
    };
    accesses(a, points(ours), b, points(theirs), false, at);
  }

  void accesses(const BufferRef& a, std::vector<Range> ours, const BufferRef& b, std::vector<Range> theirs, bool region,
                const Stmt& at) {
    if (const auto own = own_.find(a.get()); own != own_.end()) {
      if (own->second != b) differ(at, fmt::format("it uses '{}' in the place of '{}'", b->name, a->name));
      for (size_t d = 0; d < ours.size(); ++d) {
        if (ours[d].point != theirs[d].point) differ(at, "a region has other dimensions");
        index(ours[d].begin, theirs[d].begin, at);
      }
      return;
    }
    if (a->dtype != b->dtype) {
      differ(at, fmt::format("'{}' holds {}, '{}' {}", b->name, to_string(b->dtype), a->name, to_string(a->dtype)));
    }
    for (const Range& range : ours) {
      if (has_load(range.begin)) differ(at, fmt::format("a subscript of '{}' reads memory", a->name));
    }
    pairs_[a.get()].push_back({std::move(ours), std::move(theirs), b, region, at});
  }

  // Parameters.

  void solve_views() {
    std::vector<const Buffer*> left;
    for (const Param& param : leaf_.params) {
      const BufferRef* buffer = std::get_if<BufferRef>(&param);
      if (buffer && pairs_.contains(buffer->get())) left.push_back(buffer->get());
    }
    // Extents that the statements leave open reach to the end, and may be what subscripts of others count from.
    for (bool known = true; known && !left.empty();) {
      known = false;
      std::erase_if(left, [&](const Buffer* parameter) {
        const std::vector<AccessPair>& pairs = pairs_.at(parameter);
        const bool open = std::any_of(pairs.begin(), pairs.end(), [&](const AccessPair& pair) {
          return std::any_of(pair.leaf.begin(), pair.leaf.end(), [&](const Range& r) { return is_open(r.begin); });
        });
        if (open) return false;
        solve(*parameter, pairs);
        return known = true;
      });
    }
    if (!left.empty()) {
      const AccessPair& pair = pairs_.at(left[0])[0];
      differ(pair.at, fmt::format("which elements '{}' has is not told by its subscripts", left[0]->name));
    }
  }

  void solve(const Buffer& parameter, const std::vector<AccessPair>& pairs) {
    for (const AccessPair& pair : pairs) {
      if (pair.buffer == pairs[0].buffer) continue;
      differ(pair.at, fmt::format("it uses '{}' and '{}' in the place of '{}'", pairs[0].buffer->name,
                                  pair.buffer->name, parameter.name));
    }
    View view{pairs[0].buffer, std::vector<ViewDim>(pairs[0].buffer->rank())};
    if (!assign(parameter, pairs, view, 0)) {
      differ(pairs[0].at, fmt::format("no part of '{}' has all the elements that stand for those of '{}'",
                                      pairs[0].buffer->name, parameter.name));
    }
    for (size_t k = 0; k < view.dims.size(); ++k) {
      const ViewDim& dim = view.dims[k];
      const Var* extent = dim.of ? as<Var>(parameter.shape[*dim.of]) : nullptr;
      if (extent && open_.contains(extent) && dim.step == 1) {
        bind(extent, simplify(view.buffer->shape[k] - dim.begin), pairs[0].at);
      }
    }
    out_.views.emplace(&parameter, std::move(view));
  }

  /// Finds dimensions of the buffer for those of the parameter from `d` on; behind the last one first.
  bool assign(const Buffer& parameter, const std::vector<AccessPair>& pairs, View& view, size_t d) const {
    const bool boxes = std::any_of(pairs.begin(), pairs.end(), [](const AccessPair& pair) { return pair.region; });
    if (d == parameter.rank()) {
      for (size_t k = 0; k < view.dims.size(); ++k) {
        if (view.dims[k].of) continue;
        const Expr begin = simplify(pairs[0].program[k].begin);
        for (const AccessPair& pair : pairs) {
          if (!pair.program[k].point || !same_expr(simplify(pair.program[k].begin), begin)) return false;
        }
        if (!is_fixed(begin)) return false;
        view.dims[k].begin = begin;
      }
      return true;
    }
    const size_t rank = view.dims.size();
    size_t behind = 0;
    for (size_t k = 0; k < rank; ++k) {
      if (view.dims[k].of) behind = k + 1;
    }
    for (size_t n = 0; n < rank; ++n) {
      const size_t k = (behind + n) % rank;
      if (view.dims[k].of || (boxes && k < behind)) continue;
      std::optional<ViewDim> dim = dimension(pairs, d, k);
      if (!dim || (boxes && dim->step != 1)) continue;
      view.dims[k] = *dim;
      if (assign(parameter, pairs, view, d + 1)) return true;
      view.dims[k] = {};
    }
    return false;
  }

  /// Dimension `k` of the buffer as dimension `d` of the parameter.
  std::optional<ViewDim> dimension(const std::vector<AccessPair>& pairs, size_t d, size_t k) const {
    ViewDim out{d, {}, step_of(pairs, d, k)};
    if (out.step == 0) return std::nullopt;
    for (const AccessPair& pair : pairs) {
      const Range &ours = pair.leaf[d], &theirs = pair.program[k];
      if (ours.point != theirs.point) return std::nullopt;
      const Expr begin = simplify(theirs.begin - tidy(ours.begin) * int_imm(out.step));
      if (!is_fixed(begin) || (out.begin && !same_expr(out.begin, begin))) return std::nullopt;
      out.begin = begin;
    }
    return out;
  }

  /// What the program's subscript grows by where the function's grows by 1; 0 if that is no constant.
  int64_t step_of(const std::vector<AccessPair>& pairs, size_t d, size_t k) const {
    for (const AccessPair& pair : pairs) {
      const Sum ours = sum_of(tidy(pair.leaf[d].begin)), theirs = sum_of(simplify(pair.program[k].begin));
      for (const Var* var : inside_) {
        const std::optional<int64_t> by = coefficient_of(ours, var), grows = coefficient_of(theirs, var);
        if (!by || *by == 0) continue;
        return grows && *grows % *by == 0 ? *grows / *by : 0;
      }
    }
    return 1;
  }

  const Function& leaf_;
  const Arguments& arguments_;
  Unification out_;
  Substitution in_program_, in_leaf_;
  std::unordered_set<const Var*> open_;  ///< extents and scalar parameters of which nothing is known yet
  std::vector<const Var*> inside_;  ///< variables that the program's statements define
  BufferMap own_;  ///< buffers that both allocate
  std::unordered_map<const Buffer*, std::vector<AccessPair>> pairs_;  ///< of parameters
  std::vector<IndexPair> equal_;
};

}  // namespace

Unification unify(const Function& leaf, const std::vector<Stmt>& pattern, const std::vector<Stmt>& program,
                  const Arguments& arguments) {
  return Unifier(leaf, arguments).run(pattern, program);
}

}  // namespace helve
