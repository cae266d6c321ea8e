// The primitive that stores a part of a value before it is used: precompute.
// The value gets the loops and branches that its statement has, as far as they matter to it. What comes out is a
// program of which `inline` would make the old one, so the way back is what is judged: each read sees the value that
// stands there now, and no other values are computed.
#include <fmt/format.h>

#include <algorithm>

#include "helve/arith/simplify.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/update.h"
#include "helve/ir/tensor/visit.h"
#include "helve/schedule/find.h"
#include "loop_form.h"
#include "operands.h"

namespace helve {

namespace {

std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

/// The part of a value that a text names, and under which conditions it is computed.
class NamedPart {
 public:
  NamedPart(const Expr& value, const std::string& text) : text_(without_spaces(text)) { find(value); }

  const Expr& found() const { return found_; }
  const std::vector<Expr>& conditions() const { return conditions_; }
  /// Texts of all parts.
  const std::vector<std::string>& known() const { return known_; }

 private:
  void find(const Expr& e) {
    if (found_ || is_large(e)) return;
    if (e->kind == ExprKind::Apply || e->kind == ExprKind::Load || e->kind == ExprKind::Cast) {
      const std::string text = to_text(e);
      if (std::find(known_.begin(), known_.end(), text) == known_.end()) known_.push_back(text);
      if (without_spaces(text) == text_) {
        found_ = e;
        conditions_ = around_;
        return;
      }
    }
    const Apply* node = as<Apply>(e);
    if (e->kind == ExprKind::Load) return;  // subscripts are places, not values
    if (node && (node->op == Op::And || node->op == Op::Or)) return find_in_chain(e, node->op);
    if (node && node->op == Op::Select) return find_in_selection(*node);
    for_each_child(e, [&](const Expr& child) { find(child); });
  }

  /// Each operand is computed where all before it do not decide.
  void find_in_chain(const Expr& e, Op op) {
    const size_t outside = around_.size();
    for (const Expr& operand : operands_of_chain(e, op)) {
      find(operand);
      around_.push_back(op == Op::And ? operand : apply(Op::Not, {operand}));
    }
    around_.resize(outside);
  }

  void find_in_selection(const Apply& node) {
    find(node.args[0]);
    for (const size_t branch : {1, 2}) {
      around_.push_back(branch == 1 ? node.args[0] : apply(Op::Not, {node.args[0]}));
      find(node.args[branch]);
      around_.pop_back();
    }
  }

  const std::string text_;
  Expr found_;
  std::vector<Expr> conditions_, around_;
  std::vector<std::string> known_;
};

bool uses(const Stmt& s, const Var* var) {
  bool found = false;
  walk(s, [&](const Stmt& each) {
    for_each_part(each, [&](const Expr& e) { found |= mentions(e, var); }, [](const Stmt&) {});
  });
  return found;
}

/// The loops and branches around the statement, from `at` inwards, around the store of the value.
class ValueNest {
 public:
  ValueNest(const FunctionRef& f, const Arguments& arguments, const Expr& value)
      : f_(f), arguments_(arguments), value_(value), reader_(arguments.cursor(0)), at_(arguments.cursor(2)) {}

  void build(const std::vector<Expr>& conditions) {
    const Stmt reader = required_at(f_, reader_);
    // The loops are chosen with a store that has the value only; its subscripts are their variables.
    Stmt body = store(make_buffer("value", value_->dtype, MemoryScope::Local, {int_imm(1)}), {int_imm(0)}, value_,
                      reader->span);
    for (size_t c = conditions.size(); c-- > 0;) body = around(if_then(conditions[c], body, {}, reader->span));
    for (Cursor inner = reader_; inner != at_;) {
      const Cursor outer = inner.parent();
      body = enclosed(required_at(f_, outer), inner, body);
      inner = outer;
    }
    const std::string& scope = arguments_.text(3);
    std::vector<Expr> shape;
    for (size_t v = extents_.size(); v-- > 0;) shape.push_back(int_imm(extents_[v]));
    if (shape.empty()) shape.push_back(int_imm(1));
    memory_ =
        make_buffer(fresh_var(f_, name_hint())->name, value_->dtype, memory_named(scope), shape, {}, {}, reader->span);
    nest_ = rewrite(body, [&](const Stmt& s) -> Stmt {
      return s->kind == StmtKind::Store ? store(memory_, subscripts(), value_, s->span) : s;
    });
    Substitution renamed;
    for (const auto& [own, var] : vars_) renamed[var.get()] = Expr(own);
    nest_ = substitute(nest_, renamed);
  }

  const BufferRef& memory() const { return memory_; }
  const Stmt& nest() const { return nest_; }
  /// The element that the statement reads: the distances from the first iterations of the loops.
  std::vector<Expr> subscripts() const {
    std::vector<Expr> out;
    for (size_t v = vars_.size(); v-- > 0;) out.push_back(simplify(Expr(vars_[v].second) - begins_[v]));
    if (out.empty()) out.push_back(int_imm(0));
    return out;
  }
  /// The store's variables in terms of the statement's.
  LoopValues values() const {
    LoopValues out;
    for (const auto& [own, var] : vars_) out.emplace_back(own, Expr(var));
    return out;
  }
  /// The place of the store, if the nest stands at `first`.
  Cursor store_at(Cursor first) const {
    for (auto field = fields_.rbegin(); field != fields_.rend(); ++field) first = first.child(*field, 0);
    return first;
  }

 private:
  Stmt around(Stmt made) {
    fields_.push_back(body_field(made));
    return made;
  }

  Stmt enclosed(const Stmt& outer, const Cursor& inner, const Stmt& body) {
    if (const If* branch = as<If>(outer)) {
      const bool holds = inner.steps.back().field == "then_body";
      return around(if_then(holds ? branch->condition : apply(Op::Not, {branch->condition}), body, {}, outer->span));
    }
    const For* loop = as<For>(outer);
    if (!loop || loop->loop == LoopKind::Thread) {
      arguments_.refuse(fmt::format("'{}' stands between the loop and the statement", head_text(outer)), outer,
                        "name a loop inside of it");
    }
    Stmt out = body;
    for (size_t d = loop->vars.size(); d-- > 0;) {
      const Expr count = simplify(loop->extents[d]);
      const int64_t* extent = int_value(count);
      if (!uses(out, loop->vars[d].get())) {
        if (extent && *extent > 0) continue;
        out = around(if_then(less(int_imm(0), loop->extents[d]), out, {}, outer->span));
        continue;
      }
      if (!extent) {
        arguments_.refuse(
            fmt::format("the extent {} of '{}' is no constant", brief_text(loop->extents[d]), loop->vars[d]->name),
            outer, "split() the loop by a constant first, and name the inner one");
      }
      const VarRef own = fresh_var(f_, fmt::format("w{}", vars_.size()));
      vars_.emplace_back(own, loop->vars[d]);
      begins_.push_back(loop->begins[d]);
      extents_.push_back(std::max<int64_t>(*extent, 0));
      out = around(for_loop(LoopKind::Serial, std::vector<VarRef>{own}, {loop->begins[d]}, {loop->extents[d]}, out, 1,
                            outer->span));
    }
    return out;
  }

  std::string name_hint() const {
    std::string out = "value";
    walk(value_, [&](const Expr& e) {
      if (const Load* load = as<Load>(e); load && out == "value") out = load->buffer->name + "_value";
    });
    return out;
  }

  const FunctionRef& f_;
  const Arguments& arguments_;
  const Expr value_;
  const Cursor reader_, at_;
  std::vector<std::pair<VarRef, VarRef>> vars_;  ///< of the new loops, and of those they come from; innermost first
  std::vector<Expr> begins_;
  std::vector<int64_t> extents_;
  std::vector<std::string> fields_;  ///< of the loops and branches, innermost first
  BufferRef memory_;
  Stmt nest_;
};

/// `value` with `load` in the place of the part; subscripts stay.
Expr with_load(const Expr& value, const Expr& part, const Expr& load) {
  if (same_expr(value, part)) return load;
  if (value->kind == ExprKind::Load) return value;
  return map_children(value, [&](const Expr& child) { return with_load(child, part, load); });
}

}  // namespace

/// precompute(s, "B[i, k] * 2", k): `for k in serial(7): A[i] = A[i] + B[i, k] * 2` becomes `W = alloc_local((7,))`,
/// `for w0 in serial(7): W[w0] = B[i, w0] * 2` and `for k in serial(7): A[i] = A[i] + W[k]`.
Rewrite precompute_value(const FunctionRef& f, const Arguments& arguments) {
  const Cursor &reader = arguments.cursor(0), &at = arguments.cursor(2);
  const Stmt s = required_at(f, reader);
  const Store* from = as<Store>(s);
  if (!from) arguments.refuse(fmt::format("'{}' is no store to one element", head_text(s)), s, "name a store");
  if (!reader.within(at)) {
    arguments.refuse("the statement is not in the loop", s, "name a loop around the statement, or the statement");
  }
  const NamedPart part(from->value, arguments.text(1));
  if (!part.found()) {
    throw UserError(Code::ScheduleNothingFound, arguments.place,
                    {{"function", f->name},
                     {"what", fmt::format("value '{}' in '{}'", arguments.text(1), head_text(s))},
                     {"known", fmt::format("{}", fmt::join(part.known(), ", "))}});
  }
  const Expr value = part.found();
  if (value->dtype.is_index()) {
    arguments.refuse(fmt::format("'{}' is an index", arguments.text(1)), s, "name a value with its T.cast");
  }
  if (!same_expr(as_stored(value), value)) {
    arguments.refuse(fmt::format("memory would round '{}'", arguments.text(1)), s,
                     "name a value of a type that is computed as it is stored");
  }
  ValueNest made(f, arguments, value);
  made.build(part.conditions());
  for (Cursor inner = reader; inner != at; inner = inner.parent()) {
    for (size_t position = 0; position < inner.position(); ++position) {
      const Stmt defining = required_at(f, inner.at(position));
      const std::string name = used_behind(defining, made.nest());
      if (name.empty()) continue;
      arguments.refuse(fmt::format("the value uses '{}', which is not defined in front of the loop", name), defining,
                       "precompute what that holds first, or name a loop inside");
    }
  }
  const Expr read = load(made.memory(), made.subscripts(), s->span);
  const Stmt now(copy_with(*from, [&](Store& out) { out.value = with_load(from->value, value, read); }));
  Edited edited = revise(f, reader, now);
  edited = edited.then(insert(edited.function, at, {alloc(made.memory(), s->span), made.nest()}));
  const Cursor first = at.at(0), nest = at.at(at.position() + 1), writer = made.store_at(nest);
  const Stmt before = body_around(*f, first), after = body_around(*edited.function, first);
  Rewrite out{edited, {first, block_of(before).size()}, {first, block_of(after).size()}, {}, {}, {}};
  out.results = {nest, at.at(at.position() + 2)};
  out.by_value = changing_operands(required_at(edited.function, writer), after);
  out.by_value.push_back(made.memory());
  out.inlined = {{reader, as<Load>(read), writer, made.values()}};
  out.backwards = true;
  return out;
}

}  // namespace helve
