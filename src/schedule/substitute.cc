// The primitive substitute: statements become another function's, in the order that a schedule of its own gave them.
// The function's text with buffers of the program for its parameters is judged by the checker like any rewrite. What
// its own steps proved for every call then holds here, if this is a call as the language has them: what the function
// assumes holds, parameters that are written are memory of their own, and their ends are where it takes them to be.
#include <fmt/format.h>

#include <algorithm>

#include "check_step.h"
#include "footprint.h"
#include "helve/analysis/access.h"
#include "helve/analysis/effects.h"
#include "helve/arith/relation_algebra.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/call_facts.h"
#include "helve/ir/tensor/renamed.h"
#include "helve/ir/tensor/visit.h"
#include "helve/schedule/version.h"
#include "legality/times.h"
#include "loop_form.h"
#include "unify.h"

namespace helve {

namespace {

/// The launch around the place, if there is one.
const Kernel* kernel_around(const FunctionRef& f, Cursor at) {
  while (at.has_parent()) {
    at = at.parent();
    if (const Kernel* launch = as<Kernel>(required_at(f, at))) return launch;
  }
  return nullptr;
}

/// Does the function deal iterations to its blocks?
bool deals(const Function& f) {
  bool found = false;
  walk(f.body, [&](const Stmt& s) {
    const For* loop = as<For>(s);
    found |= loop && loop->loop == LoopKind::Persistent;
  });
  return found;
}

class Substitute {
 public:
  Substitute(const FunctionRef& f, const Arguments& arguments)
      : f_(f), arguments_(arguments), at_(arguments.cursor(0)), launch_(kernel_around(f, at_)) {
    const ScheduleVersion* last = arguments.version(1).get();
    leaf_ = last->function;
    for (meaning_ = last->function; last; last = last->before.get()) {
      meaning_ = last->function;
      if (!last->before) break;
      ++steps_;
      reassociates_ |= last->step.effect == StepEffect::Reassociated;
      if (last->step.effect != StepEffect::Unproved) continue;
      unproved_ = fmt::format("'{}' of '{}' is not proved: {}", last->step.primitive, leaf_->name, last->step.reason);
    }
  }

  Rewrite run() {
    const std::vector<Stmt> pattern = body_of(meaning_), all = block_of(body_around(*f_, at_));
    if (pattern.empty() || at_.position() + pattern.size() > all.size()) {
      refuse(fmt::format("'{}' has {} statements, and from here on there are {}", leaf_->name, pattern.size(),
                         all.size() - at_.position()));
    }
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(at_.position());
    const std::vector<Stmt> program(first, first + static_cast<std::ptrdiff_t>(pattern.size()));
    for (auto later = first + static_cast<std::ptrdiff_t>(pattern.size()); later != all.end(); ++later) {
      for (const Stmt& each : program) {
        const std::string name = used_behind(each, *later);
        if (!name.empty()) refuse(fmt::format("'{}' is defined by the statements and used behind them", name));
      }
    }
    found_ = unify(*meaning_, pattern, program, arguments_);
    const Block block{at_, pattern.size()};
    const FunctionRef without = erase(f_, block).function;

    const Renewal meaning = placed(pattern, without);
    Substitution renewed;
    for (const auto& [var, now] : meaning.vars) renewed.emplace(var.get(), Expr(now));
    LoopValues values;
    for (const auto& [var, value] : found_.values) {
      values.emplace_back(var, simplify(substitute(substitute(value, renewed), found_.scalars)));
    }
    Rewrite out{replace(f_, block, block_of(meaning.stmt)), block, block, {}, {}, {}};
    for (size_t i = 0; i < pattern.size(); ++i) {
      const Cursor each = at_.at(at_.position() + i);
      out.pieces.push_back({each, each, values});
    }
    if (steps_ > 0) {
      require_a_call(program);
      out.meaning = Meaning{out.edited, block, RegionForm::Program, true};
      const std::vector<Stmt> scheduled = block_of(placed(body_of(leaf_), without).stmt);
      out.edited = replace(f_, block, scheduled);
      out.after.size = scheduled.size();
      out.reassociates = reassociates_;
      out.unproved = unproved_;
    }
    for (size_t i = 0; i < out.after.size; ++i) out.results.push_back(at_.at(at_.position() + i));
    return out;
  }

 private:
  [[noreturn]] void refuse(const std::string& reason, const std::string& help = "") const {
    arguments_.refuse(reason, required_at(f_, at_),
                      help.empty() ? fmt::format("name the first of the statements that '{}' has", leaf_->name) : help);
  }

  /// The statements of the function that stand in the program: those of its only block, inside of a launch.
  std::vector<Stmt> body_of(const FunctionRef& f) const {
    if (f->mesh) refuse(fmt::format("'{}' is a function of a mesh", f->name), "give a function without a mesh");
    const std::vector<Stmt> body = block_of(f->body);
    if (!launch_) return body;
    const Stmt* only = only_statement(body);
    const Kernel* launch = only ? as<Kernel>(*only) : nullptr;
    if (!launch) {
      refuse(fmt::format("'{}' is not one launch, and the statement stands in one", f->name),
             "name a whole launch, or give a function of one");
    }
    Substitution block;
    for (size_t d = 0; d < launch->vars.size(); ++d) {
      const int64_t* extent = int_value(launch->extents[d]);
      if (!extent || *extent != 1) {
        refuse(fmt::format("'{}' has several blocks, and the statement stands in one", f->name),
               "name a whole launch, or give a function of one block");
      }
      block.emplace(launch->vars[d].get(), int_imm(0));
    }
    return block_of(with_values(launch->body, block));
  }

  /// Statements of the function with what its parameters stand for, and with names that the program does not have.
  Renewal placed(const std::vector<Stmt>& statements, const FunctionRef& program) const {
    const Stmt s = with_values(seq(statements), found_.scalars);
    BufferMap own;
    for (const BufferRef& buffer : Definitions(s).buffers) {
      Ref<Buffer> out = make_ref<Buffer>(*buffer);
      for (Expr& extent : out->shape) extent = simplify(substitute(extent, found_.scalars));
      own.emplace(buffer.get(), BufferRef(out));
    }
    for (const BufferRef& parameter : tensors()) {
      const auto view = found_.views.find(parameter.get());
      if (view == found_.views.end()) {
        require_unused(s, *parameter);
      } else if (!view->second.is_box() && has_region_of(s, *parameter)) {
        refuse(fmt::format("'{}' has regions of '{}', which here is no box of '{}'", leaf_->name, parameter->name,
                           view->second.buffer->name),
               "schedule the function without regions of it, or give the buffer the order of the parameter");
      }
    }
    require_known(s);
    return renew(with_views(redeclare_buffers(s, own), found_.views), {}, fresh_names(program));
  }

  std::vector<BufferRef> tensors() const {
    std::vector<BufferRef> out;
    for (const Param& param : leaf_->params) {
      if (const BufferRef* buffer = std::get_if<BufferRef>(&param)) out.push_back(*buffer);
    }
    return out;
  }

  void require_unused(const Stmt& s, const Buffer& buffer) const {
    const std::vector<BufferEffect> effects = buffer_effects(s);
    if (std::any_of(effects.begin(), effects.end(), [&](const auto& e) { return e.buffer.get() == &buffer; })) {
      refuse(fmt::format("what '{}' of '{}' stands for is not told by the statements", buffer.name, leaf_->name));
    }
  }

  /// Every extent and scalar that the statements use has a value.
  void require_known(const Stmt& s) const {
    std::vector<VarRef> vars = leaf_->dims;
    for (const Param& param : leaf_->params) {
      if (const VarRef* scalar = std::get_if<VarRef>(&param)) vars.push_back(*scalar);
    }
    for (const VarRef& var : vars) {
      bool used = false;
      walk_exprs(s, [&](const Expr& e) { used |= e.get() == var.get(); });
      if (used)
        refuse(fmt::format("what '{}' of '{}' stands for is not told by the statements", var->name, leaf_->name));
    }
  }

  Expr here(const Expr& e) const { return simplify(substitute(e, found_.scalars)); }

  /// Is the condition true wherever the statement is reached?
  bool holds(const Expr& condition) const { return never_at(f_, at_, apply(Op::Not, {condition})); }

  // What makes the statements a call, of which the function's steps are proved.

  void require_a_call(const std::vector<Stmt>& program) const {
    for (const FunctionRef& f : {meaning_, leaf_}) {
      for (const Expr& condition : conditions_of_calls(*f)) {
        const Expr needed = substitute(condition, found_.scalars);
        if (holds(simplify(needed))) continue;
        refuse(fmt::format("'{}' assumes {}, which need not hold here", leaf_->name, brief_text(condition)),
               "assume it, or schedule the function without the condition");
      }
    }
    require_dealt_alike();
    require_inside();
    require_apart();
    for (const FunctionRef& f : {meaning_, leaf_}) require_ends(f);
    const AccessModel around = access_model(*f_, program[0]);
    for (const BufferRef& parameter : tensors()) {
      const auto view = found_.views.find(parameter.get());
      if (view == found_.views.end()) continue;
      if (legality::unordered_around(around, *view->second.buffer)) require_no_more(*parameter);
    }
  }

  /// The function's one block runs all of a T.Persistent loop, and so does the block that it stands in.
  void require_dealt_alike() const {
    if (!launch_ || f_->mesh || (!deals(*meaning_) && !deals(*leaf_))) return;
    const bool one_block = std::all_of(launch_->extents.begin(), launch_->extents.end(), [](const Expr& extent) {
      const int64_t* count = int_value(extent);
      return count && *count == 1;
    });
    if (one_block) return;
    refuse(fmt::format("'{}' has one block for its T.Persistent loop, and here are several", leaf_->name),
           "schedule the function with a serial loop, or without its own steps");
  }

  /// Every element of a parameter is one of the buffer.
  void require_inside() const {
    for (const BufferRef& parameter : tensors()) {
      const auto view = found_.views.find(parameter.get());
      if (view == found_.views.end()) continue;
      for (size_t k = 0; k < view->second.dims.size(); ++k) {
        const auto [first, last] = ends(*view, k);
        const Expr& extent = view->second.buffer->shape[k];
        if (holds(simplify(apply(Op::Le, {int_imm(0), first}))) && holds(less(simplify(last), extent))) continue;
        refuse(fmt::format("'{}' of '{}' would reach past the end of '{}'", parameter->name, leaf_->name,
                           view->second.buffer->name),
               "give the loops the extents of what is there");
      }
    }
  }

  /// No two parameters, of which one is written, share an element, unless the function allows for it.
  void require_apart() const {
    const std::vector<BufferEffect> effects = param_effects(*meaning_);
    for (size_t b = 1; b < effects.size(); ++b) {
      for (size_t a = 0; a < b; ++a) {
        const auto one = found_.views.find(effects[a].buffer.get()), other = found_.views.find(effects[b].buffer.get());
        if (one == found_.views.end() || other == found_.views.end()) continue;
        if (!effects[a].written && !effects[b].written) continue;
        if (may_overlap(leaf_->may_alias, one->first, other->first)) continue;
        const Buffer &x = *one->second.buffer, &y = *other->second.buffer;
        if (&x == &y ? are_apart(*one, *other) : !may_overlap(f_->may_alias, &x, &y)) continue;
        refuse(fmt::format("'{}' and '{}' of '{}' may be the same elements of '{}'", one->first->name,
                           other->first->name, leaf_->name, x.name),
               "declare T.may_alias in the function before it is scheduled");
      }
    }
  }

  using Placed = Views::value_type;

  /// The first and the last element of dimension `k`.
  std::pair<Expr, Expr> ends(const Placed& view, size_t k) const {
    const ViewDim& dim = view.second.dims[k];
    if (!dim.of) return {dim.begin, dim.begin};
    const Expr last = dim.begin + int_imm(dim.step) * (here(view.first->shape[*dim.of]) - int_imm(1));
    return dim.step > 0 ? std::pair{dim.begin, last} : std::pair{last, dim.begin};
  }

  bool are_apart(const Placed& a, const Placed& b) const {
    for (size_t k = 0; k < a.second.dims.size(); ++k) {
      const auto [a_first, a_last] = ends(a, k);
      const auto [b_first, b_last] = ends(b, k);
      if (holds(less(simplify(a_last), simplify(b_first))) || holds(less(simplify(b_last), simplify(a_first))))
        return true;
    }
    return false;
  }

  /// Where the function may access a parameter past its end, this is the end of the buffer.
  void require_ends(const FunctionRef& f) const {
    const AccessModel model = access_model(*f);
    for (const Access& access : model.accesses) {
      const auto found = found_.views.find(access.buffer.get());
      if (!access.may_pass_end || found == found_.views.end() || stays_inside(model, access)) continue;
      const View& view = found->second;
      bool same = is_global(*view.buffer);
      for (size_t k = 0; k < view.dims.size() && same; ++k) {
        if (!view.dims[k].of) continue;
        const Expr end = view.dims[k].begin + here(found->first->shape[*view.dims[k].of]);
        same = holds(apply(Op::Eq, {simplify(end), view.buffer->shape[k]}));
      }
      if (same) continue;
      refuse(fmt::format("'{}' of '{}' may reach past the end of '{}', which is not that of '{}'", text_of(access),
                         leaf_->name, found->first->name, view.buffer->name),
             "choose extents that tiles divide, or the part up to the buffer's end");
    }
  }

  static bool stays_inside(const AccessModel& model, const Access& access) {
    legality::PathQuery query(model);
    query.add(access.path);
    std::vector<Expr> inside;
    for (size_t d = 0; d < access.ranges.size(); ++d) {
      inside.push_back(apply(Op::Le, {int_imm(0), access.ranges[d].begin}));
      inside.push_back(apply(Op::Le, {access.ranges[d].begin + access.ranges[d].extent, access.limits[d]}));
    }
    query.require(apply(Op::Not, {conjunction(inside)}));
    const ExactEngine engine;
    return domain_of(query.relation(engine, {}, {})).is_empty().verdict == Verdict::Proved;
  }

  /// Where others run at the same time: only elements that the statements touch now are touched, and only those are
  /// written that they write.
  void require_no_more(const Buffer& parameter) const {
    std::vector<VarRef> element;
    for (size_t d = 0; d < parameter.rank(); ++d) element.push_back(make_var(fmt::format("x{}", d)));
    const ExactEngine engine;
    for (const bool reads : {false, true}) {
      const IntegerSet was = touched(engine, *meaning_, parameter, element, reads, true);
      const IntegerSet is = touched(engine, *leaf_, parameter, element, reads, false);
      if (is.is_subset_of(was).verdict == Verdict::Proved) continue;
      refuse(
          fmt::format("the steps of '{}' may touch more of '{}' than the statements, and iterations of a loop around "
                      "them have no order",
                      leaf_->name, parameter.name),
          "schedule the function without copies of what it does not use");
    }
  }

  /// The elements that the function writes, or also those that it reads: all that it may, or only what it certainly
  /// does.
  static IntegerSet touched(const ExactEngine& engine, const Function& f, const Buffer& parameter,
                            const std::vector<VarRef>& element, bool reads, bool certainly) {
    const AccessModel model = access_model(f);
    IntegerSet out(engine, element, bool_imm(false));
    for (const Access& access : model.accesses) {
      if (access.buffer.get() != &parameter || (!access.write && !reads)) continue;
      legality::PathQuery query(model);
      query.add(access.path);
      for (size_t d = 0; d < element.size(); ++d) {
        const Expr x(element[d]);
        query.require(apply(Op::Le, {access.ranges[d].begin, x}));
        query.require(less(x, access.ranges[d].begin + access.ranges[d].extent));
        if (access.may_pass_end) query.require(less(x, access.limits[d]));
      }
      const IntegerSet set = domain_of(query.relation(engine, element, {}));
      if (!certainly || (query.doubts().empty() && set.inexact().empty())) out = union_of(out, set);
    }
    return out;
  }

  const FunctionRef f_;
  const Arguments& arguments_;
  const Cursor at_;
  const Kernel* const launch_;
  FunctionRef leaf_, meaning_;
  size_t steps_ = 0;
  bool reassociates_ = false;
  std::string unproved_;
  Unification found_;
};

}  // namespace

/// substitute(i, g): `for i in serial(4): S` becomes the statements of `g`, of which it is a call: with elements of
/// buffers for those of the tensors of `g`, and values for its scalars and extents. Of a schedule these are the
/// statements after its steps.
Rewrite substitute_statements(const FunctionRef& f, const Arguments& arguments) {
  return Substitute(f, arguments).run();
}

}  // namespace helve
