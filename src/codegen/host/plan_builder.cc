// The traversal of a lowered host body.
// Slots hold dynamic extents, scalar parameters and loop variables; other scalars are programs over them.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <unordered_set>

#include "collectives.h"

#include "helve/analysis/core_groups.h"
#include "helve/analysis/effects.h"
#include "helve/analysis/kernel_interface.h"
#include "helve/arith/simplify.h"
#include "helve/codegen/host/host_module.h"
#include "helve/ir/expr/multiprocessors.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/group_operands.h"
#include "helve/ir/tensor/report.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "host_scalars.h"

namespace helve {

using runtime::ScalarProgram;
using runtime::Step;

namespace {

static_assert(kLargestExtent == runtime::kLargestExtent, "the call checks the extents that bounds are proved for");

class PlanBuilder {
 public:
  PlanBuilder(const Function& signature, const Function& lowered, const std::vector<CallCondition>& conditions)
      : signature_(signature), lowered_(lowered), conditions_(conditions), written_(written_memory(lowered)) {}

  HostModule build() {
    add_signature();
    count_globals();
    add_checks();
    add_index_checks();
    for (const VarRef& dim : lowered_.dims) facts_.bind(dim, {0, std::nullopt});
    add_steps(lowered_.body, out_.plan.steps);
    out_.plan.slots = scalars_.slots();
    return std::move(out_);
  }

  runtime::Plan build_signature() {
    add_signature();
    add_checks();
    out_.plan.slots = scalars_.slots();
    return std::move(out_.plan);
  }

 private:
  void add_signature() {
    HELVE_CHECK(signature_.params.size() == lowered_.params.size() && signature_.dims.size() == lowered_.dims.size(),
                "lowering changed the parameters of '" + lowered_.name + "'");
    out_.plan.name = signature_.name;
    if (lowered_.mesh) {
      out_.plan.mesh = lowered_.mesh->extents;
      out_.plan.mesh_axes = lowered_.mesh->names;
    }
    add_dims_and_scalars();
    add_tensors();
  }

  void add_dims_and_scalars() {
    for (size_t d = 0; d < signature_.dims.size(); ++d) {
      const int64_t slot = same_slot(signature_.dims[d].get(), lowered_.dims[d].get());
      if (counts_pairs(d)) {
        scalars_.define(lowered_.dims[d].get(), ScalarProgram::binary(runtime::ScalarOp::FloorDiv,
                                                                      ScalarProgram::slot(slot), ScalarProgram(2)));
      }
      if (is_multiprocessors(*signature_.dims[d])) out_.plan.multiprocessors = slot;
    }
    for (size_t i = 0; i < signature_.params.size(); ++i) {
      const VarRef* var = std::get_if<VarRef>(&signature_.params[i]);
      if (!var) continue;
      const Var* lowered = std::get<VarRef>(lowered_.params[i]).get();
      const int64_t slot = same_slot(var->get(), lowered);
      const bool converted = (*var)->dtype == DType{TypeCode::UInt, 64} &&
                             (becomes_index(signature_, **var) || becomes_index(lowered_, *lowered));
      const bool is_index = converted || (*var)->dtype.is_index();
      out_.plan.scalar_params.push_back({(*var)->name, to_dlpack((*var)->dtype), slot, is_index});
      if (!converted) continue;
      scalars_.set_index(var->get());
      scalars_.set_index(lowered);
    }
  }

  /// Is the value of a parameter converted to an index, under this or another name, anywhere in the function?
  /// Declarations of buffers count too.
  static bool becomes_index(const Function& f, const Var& param) {
    std::unordered_set<const Var*> names{&param};
    bool found = false;
    const auto look = [&](const Expr& part) {
      walk(part, [&](const Expr& e) {
        const Cast* cast = as<Cast>(e);
        const Var* of = cast && cast->dtype.is_index() ? as<Var>(cast->value) : nullptr;
        found |= of && names.contains(of);
      });
    };
    const auto look_at_declaration = [&](const Buffer& buffer) {
      for (const Expr& extent : buffer.shape) look(extent);
      for (const Expr& stride : buffer.strides) look(stride);
    };
    for (const Param& each : f.params) {
      if (const BufferRef* buffer = std::get_if<BufferRef>(&each)) look_at_declaration(**buffer);
    }
    for (const Assumption& each : f.assumptions) look(each.condition);
    walk(f.body, [&](const Stmt& s) {
      const Bind* bind = as<Bind>(s);
      const Var* value = bind ? as<Var>(bind->value) : nullptr;
      if (value && names.contains(value)) names.insert(bind->var.get());
      if (const Alloc* alloc = as<Alloc>(s)) look_at_declaration(*alloc->buffer);
      for_each_part(s, look, [](const Stmt&) {});
    });
    return found;
  }

  /// Is the extent the last one of a packed parameter, and in the lowered function the number of its bytes?
  bool counts_pairs(size_t dim) const {
    for (size_t i = 0; i < signature_.params.size(); ++i) {
      const BufferRef* user = std::get_if<BufferRef>(&signature_.params[i]);
      if (!user || !(*user)->dtype.is_packed()) continue;
      if ((*user)->shape.back().get() != signature_.dims[dim].get()) continue;
      return !std::get<BufferRef>(lowered_.params[i])->dtype.is_packed();
    }
    return false;
  }

  int64_t same_slot(const Var* user, const Var* lowered) {
    const int64_t slot = scalars_.add_slot(user);
    dim_slots_[user] = slot;
    scalars_.define(lowered, ScalarProgram::slot(slot));
    return slot;
  }

  void add_tensors() {
    const std::vector<BufferEffect> effects = param_effects(lowered_);
    size_t tensor = 0;
    for (size_t i = 0; i < signature_.params.size(); ++i) {
      const BufferRef* user = std::get_if<BufferRef>(&signature_.params[i]);
      if (!user) continue;
      const Buffer& buffer = **user;
      runtime::TensorParam param;
      param.name = buffer.name;
      param.dtype = to_dlpack(buffer.dtype.is_packed() ? DType{TypeCode::UInt, 8} : buffer.dtype);
      for (const Expr& extent : buffer.shape) param.dims.push_back(extent_of(buffer, extent));
      if (buffer.dtype.is_packed()) param.dims.back() = in_pairs(param.dims.back());
      for (const Expr& stride : buffer.strides) {
        param.strides.push_back(scalars_.required(stride, "a stride of '" + buffer.name + "'"));
      }
      param.read = effects[tensor].read;
      param.written = effects[tensor].written;
      param.sorted = buffer.sorted;
      ids_[std::get<BufferRef>(lowered_.params[i]).get()] = static_cast<int64_t>(tensor++);
      out_.plan.params.push_back(std::move(param));
    }
    add_aliases();
  }

  void add_aliases() {
    for (const MayAlias& each : lowered_.may_alias) {
      for (const BufferRef& a : each.buffers) {
        std::vector<int64_t>& list = out_.plan.params[static_cast<size_t>(id_of(*a))].may_alias;
        for (const BufferRef& b : each.buffers) {
          const int64_t id = id_of(*b);
          if (a != b && std::find(list.begin(), list.end(), id) == list.end()) list.push_back(id);
        }
      }
    }
  }

  runtime::Extent extent_of(const Buffer& buffer, const Expr& extent) const {
    if (const Var* var = as<Var>(extent); var && !is_multiprocessors(*var)) {
      if (auto slot = dim_slots_.find(var); slot != dim_slots_.end()) return runtime::BindSlot{slot->second};
    }
    return scalars_.required(extent, "an extent of '" + buffer.name + "'");
  }

  /// The extent of an argument's bytes, each with two elements.
  static runtime::Extent in_pairs(runtime::Extent elements) {
    if (auto* bind = std::get_if<runtime::BindSlot>(&elements)) return runtime::BindSlot{bind->slot, 2};
    return ScalarProgram::binary(runtime::ScalarOp::FloorDiv, std::get<ScalarProgram>(elements), ScalarProgram(2));
  }

  /// Global buffers are numbered after the parameters, in the order of their allocations.
  void count_globals() {
    walk(lowered_.body, [&](const Stmt& s) {
      const Alloc* alloc = as<Alloc>(s);
      if (!alloc || alloc->buffer->scope != MemoryScope::Global) return;
      const auto id = static_cast<int64_t>(out_.plan.params.size() + out_.plan.buffers.size());
      if (!ids_.emplace(alloc->buffer.get(), id).second) return;
      out_.plan.buffers.push_back(
          {alloc->buffer->name, to_dlpack(alloc->buffer->dtype), {}, lowered_.mesh.has_value(), 64});
    });
  }

  int64_t id_of(const Buffer& buffer) const {
    auto found = ids_.find(&buffer);
    HELVE_CHECK(found != ids_.end(), "buffer '" + buffer.name + "' is not known on the host");
    return found->second;
  }

  void add_checks() {
    for (const CallCondition& each : conditions_) {
      add_check(scalars_.required(each.condition, "a condition"), each.fault, each.condition);
    }
  }

  /// A check whose error lists the variables of `over`.
  void add_check(ScalarProgram condition, Diagnostic fault, const Expr& over) {
    runtime::Check check{std::move(condition), std::move(fault), {}};
    std::unordered_set<const Var*> seen;
    walk(over, [&](const Expr& e) {
      const Var* var = as<Var>(e);
      if (!var || !seen.insert(var).second) return;
      ScalarProgram value = scalars_.required(e, "a condition");
      std::string name = runtime::to_text(value, &scalars_.slots());  // the user's name
      check.values.push_back({std::move(name), std::move(value)});
    });
    out_.plan.steps.push_back({std::move(check)});
  }

  /// What the program has where a requirement comes from: passes have split loops, and named parts of it. Where it has
  /// nothing there, or several things, the expression itself.
  Expr as_written(const IndexRequirement& each) const {
    if (!each.span.known()) return each.expression;
    std::vector<Expr> found;
    const auto look = [&](const Expr& e) {
      if (e->span != each.span || e->kind != each.expression->kind) return;
      if (found.empty() || to_text(found[0]) != to_text(e)) found.push_back(e);
    };
    walk(signature_.body, [&](const Stmt& s) {
      const Store* n = as<Store>(s);
      if (n && as<Load>(each.expression)) look(load(n->buffer, n->indices, s->span));
    });
    walk_exprs(signature_.body, look);
    return found.size() == 1 ? found[0] : each.expression;
  }

  /// Index values in kernels are assumed to fit 64 bits; if that depends on extents and parameters, the call checks it.
  void add_index_checks() {
    bounds_ = std::make_shared<const IndexBounds>(FunctionRef(&lowered_));
    for (const IndexRequirement& each : bounds_->requirements()) {
      const std::string what = as<Load>(each.expression) ? "the address of " : "";
      const std::string text = fmt::format("{}'{}'", what, to_text(as_written(each)));
      if (!each.reach)
        throw UserError(Code::IndexRange, each.span, {{"expression", text}, {"values", "constant extents"}});
      const Expr reach = expr_of(*each.reach);
      // It contains no negative terms, so the condition is only that it can be computed.
      ScalarProgram computed = scalars_.required(reach, "the reach of an index");
      add_check(ScalarProgram::binary(runtime::ScalarOp::Le, ScalarProgram(0), computed),
                {Code::IndexRange, {}, {{"expression", text}}, {}, {}}, reach);
    }
  }

  std::vector<Step> steps(const Stmt& s) {
    std::vector<Step> out;
    add_steps(s, out);
    return out;
  }

  /// A condition on memory may no longer hold when a kernel starts.
  std::vector<Step> steps_under(const Expr& condition, const Stmt& s) {
    if (has_load(condition)) return steps(s);
    guards_.push_back(condition);
    std::vector<Step> out = steps(s);
    guards_.pop_back();
    return out;
  }

  void add_steps(const Stmt& s, std::vector<Step>& out) {
    if (!s) return;
    switch (s->kind) {
      case StmtKind::Seq:
        for (const Stmt& each : as<Seq>(s)->stmts) add_steps(each, out);
        return;
      case StmtKind::Alloc: return allocate(*as<Alloc>(s), out);
      case StmtKind::Bind: return bind(*as<Bind>(s));
      case StmtKind::For: return loop(*as<For>(s), out);
      case StmtKind::If: {
        const If& branch = *as<If>(s);
        Steps at{&out};
        ScalarProgram condition =
            value_of(branch.condition, {ControlUse::Condition, "a condition", "condition", s}, at);
        std::vector<Step> then_body = steps_under(branch.condition, branch.then_body);
        std::vector<Step> else_body = steps_under(apply(Op::Not, {branch.condition}), branch.else_body);
        at->push_back({runtime::Branch{std::move(condition), std::move(then_body), std::move(else_body)}});
        return;
      }
      case StmtKind::While: {
        const While& loop = *as<While>(s);
        const Asked asked{ControlUse::Condition, "the condition of a while loop", "condition", s};
        runtime::ControlValue control = decide(loop.condition, asked);
        out.push_back({runtime::Repeat{std::move(control), steps(loop.body)}});
        return;
      }
      case StmtKind::Kernel: return launch(*as<Kernel>(s), out);
      case StmtKind::TileOp:
        HELVE_CHECK(lowered_.mesh && as<TileOp>(s)->row().is_collective(), "a tile operation in a lowered host body");
        return communicate(*as<TileOp>(s), out);
      case StmtKind::Store:
      case StmtKind::Peer:
      case StmtKind::Role:
      case StmtKind::Outline:
      case StmtKind::Prefetch:
      case StmtKind::Report:
      case StmtKind::Breakpoint:
      case StmtKind::TileStore:
      case StmtKind::ForTiles: break;
    }
    HELVE_FAIL("a statement that is not of a lowered host body");
  }

  /// Cores of different groups may have different roots, shifts, sources; what they read from memory parts them.
  void communicate(const TileOp& op, std::vector<Step>& out) {
    Steps at{&out};
    const Stmt self(&op);
    const Ref<const TileOp> known = map_of_group(op, [&](size_t i, const Expr& e) {
      const std::string name(op.row().params[i].name);
      if (!has_load(e)) return e;
      return Expr(
          named_value(e, {ControlUse::Operand, fmt::format("'{}' of {}", name, operation_text(op)), name, self}, at));
    });
    check_members(*known, *at.list);
    at->push_back({build_collective(*known, *lowered_.mesh, scalars_, [this](const Buffer& b) { return id_of(b); })});
  }

  /// Ends the call where a root is no member of its group, or a core is none of the mesh.
  void check_members(const TileOp& op, std::vector<Step>& out) const {
    for (const MemberOperand& each : members_of(op, *lowered_.mesh)) {
      const Expr& e = each.value;
      const Expr inside = logical_and(apply(Op::Le, {int_imm(0), e}), less(e, int_imm(each.count)));
      if (e->dtype.is_index() && can_prove(inside, facts_)) continue;
      const std::string name(op.row().params[each.operand].name);
      const ScalarProgram value = scalars_.required(e, fmt::format("'{}' of {}", name, operation_text(op)));
      using runtime::ScalarOp;
      runtime::Check step{
          ScalarProgram::binary(ScalarOp::And, ScalarProgram::binary(ScalarOp::Le, 0, value),
                                ScalarProgram::binary(ScalarOp::Lt, value, each.count)),
          {Code::BadArgument,
           op.place(each.operand),
           {{"function", operation_text(op)}, {"parameter", name}, {"reason", each.reason}, {"remedy", each.remedy}},
           {},
           {}},
          {{"value", value}}};
      out.push_back({std::move(step)});
    }
  }

  void allocate(const Alloc& s, std::vector<Step>& out) {
    HELVE_CHECK(s.buffer->scope == MemoryScope::Global, "the host allocates Global buffers");
    const int64_t id = id_of(*s.buffer);
    const std::string what = "an extent of '" + s.buffer->name + "'";
    ScalarProgram elements(1);
    for (const Expr& extent : s.buffer->shape) elements = times(elements, scalars_.required(extent, what));
    out_.plan.buffers[static_cast<size_t>(id) - out_.plan.params.size()].elements = std::move(elements);
    out.push_back({runtime::Allocate{id}});
  }

  static ScalarProgram times(const ScalarProgram& a, const ScalarProgram& b) {
    if (a.is_constant() && a.code[0].value == 1) return b;
    int64_t product;
    const bool known = a.is_constant() && b.is_constant();
    if (known && !__builtin_mul_overflow(a.code[0].value, b.code[0].value, &product)) return product;
    return ScalarProgram::binary(runtime::ScalarOp::Mul, a, b);
  }

  void bind(const Bind& s) {
    if (std::optional<ScalarProgram> program = scalars_.program(s.value))
      return scalars_.define(s.var.get(), std::move(*program));
    walk(s.value, [&](const Expr& e) {
      const Load* load = as<Load>(e);
      // A value that is moved into kernels must not read memory that is written before them.
      if (load && written_.contains(&buffer_of(load->buffer))) scalars_.required(s.value, "'" + s.var->name + "'");
    });
    scalars_.defer(s.var, s.value);
  }

  /// Bounds are evaluated once, before the first iteration.
  void loop(const For& s, std::vector<Step>& out) {
    const Stmt self(&s);
    Steps at{&out};
    std::vector<runtime::Loop> nest(s.vars.size());
    for (size_t d = 0; d < nest.size(); ++d) {
      nest[d].begin = value_of(s.begins[d], {ControlUse::Value, "the begin of a loop", "begin", self}, at);
      nest[d].extent = value_of(s.extents[d], {ControlUse::Count, "the extent of a loop", "extent", self}, at);
    }
    const Facts around = facts_;
    for (size_t d = 0; d < nest.size(); ++d) {
      nest[d].slot = scalars_.add_slot(s.vars[d].get());
      if (!has_load(s.begins[d]) && !has_load(s.extents[d])) facts_.bind_loop(s.vars[d], s.begins[d], s.extents[d]);
    }
    std::vector<Step> body = steps(s.body);
    facts_ = around;
    for (size_t d = nest.size(); d-- > 0;) {
      nest[d].body = std::move(body);
      body.clear();
      body.push_back({std::move(nest[d])});
    }
    for (Step& step : body) at->push_back(std::move(step));
  }

  // Values from memory.

  using ControlUse = runtime::ControlUse;

  /// A value that the host needs: its use, its names in messages and in the plan, and the statement that needs it.
  struct Asked {
    ControlUse use;
    std::string what;
    std::string name;
    const Stmt& statement;
  };

  /// Where the following steps of a statement are added: inside of the Diverge steps that it has needed so far.
  struct Steps {
    std::vector<Step>* list;
    std::vector<Step>* operator->() const { return list; }
  };

  /// The program of `e`. If `e` reads memory, cores may differ in its value: then it is the slot of a Diverge, and the
  /// following steps are added to its body.
  ScalarProgram value_of(const Expr& e, const Asked& asked, Steps& at) {
    return scalars_.required(has_load(e) ? Expr(named_value(e, asked, at)) : e, asked.what);
  }

  /// The variable of that slot.
  VarRef named_value(const Expr& e, const Asked& asked, Steps& at) {
    runtime::Diverge diverge{decide(e, asked), 0, {}};
    const VarRef value = kept(make_var(asked.name, e->dtype.is_bool() ? kBool : kIndex, e->span));
    diverge.slot = scalars_.add_slot(value.get());
    at->push_back({std::move(diverge)});
    at.list = &std::get<runtime::Diverge>(at->back().node).body;
    return value;
  }

  /// A value that reads integers and bools. The host cannot evaluate loads lazily, so an expression with such a load is
  /// refused.
  runtime::ControlValue decide(const Expr& e, const Asked& asked) {
    runtime::ControlValue out{asked.use, {}, {}, {}, {}};
    const Expr plain = has_lazy_load(e) ? e : rewrite(e, [&](const Expr& node) -> Expr {
      const Load* load = as<Load>(node);
      const DType t = node->dtype;
      if (!load || !(t.is_bool() || t.is_integer()) || t.bits < 8) return node;
      return read(*load, out);
    });
    out.value = scalars_.required(plain, asked.what);
    out.checks = checks(asked);
    if (asked.use == ControlUse::Operand) return out;  // the fault has the place
    out.span = asked.use == ControlUse::Condition && e->span.known() ? e->span : asked.statement->span;
    return out;
  }

  /// The first collective over each axis below a statement.
  std::vector<runtime::UniformityCheck> checks(const Asked& asked) const {
    std::vector<runtime::UniformityCheck> out;
    walk(asked.statement, [&](const Stmt& inner) {
      const TileOp* op = as<TileOp>(inner);
      if (!op || !op->row().is_collective()) return;
      const std::string axis = op->axis() ? *op->axis() : "all";
      const uint64_t axes = axes_of(*op, *lowered_.mesh);
      if (std::any_of(out.begin(), out.end(), [&](const runtime::UniformityCheck& m) { return m.axes == axes; }))
        return;
      DiagnosticArgs args{{"operation", operation_text(*op)}, {"axis", axis}};
      const bool is_operand = asked.use == ControlUse::Operand;
      if (is_operand) args.emplace_back("parameter", asked.name);
      out.push_back({axes,
                     {is_operand ? Code::DivergentOperand : Code::DivergentCollective,
                      is_operand ? op->place(op->row().index_of(asked.name)) : op->span,
                      std::move(args),
                      {},
                      {}}});
    });
    return out;
  }

  const VarRef& kept(VarRef var) { return kept_.emplace_back(std::move(var)); }

  /// Is there a load that evaluation may skip? A Read step is always executed.
  static bool has_lazy_load(const Expr& e) {
    bool found = false;
    walk(e, [&](const Expr& node) {
      const Apply* n = as<Apply>(node);
      if (!n || (n->op != Op::And && n->op != Op::Or && n->op != Op::Select)) return;
      for (size_t i = 1; i < n->args.size(); ++i) found |= has_load(n->args[i]);
    });
    return found;
  }

  /// A variable for the element. Subscripts may use the elements that the control value has read before.
  Expr read(const Load& load, runtime::ControlValue& control) {
    const Buffer& buffer = buffer_of(load.buffer);
    const VarRef value = kept(make_var(buffer.name, load.dtype, load.span));
    runtime::Read step;
    step.buffer = id_of(buffer);
    step.dtype = to_dlpack(load.dtype);
    ScalarProgram stride(1);
    for (size_t d = load.indices.size(); d-- > 0;) {
      const ScalarProgram index = scalars_.required(load.indices[d], "an index of '" + buffer.name + "'");
      const ScalarProgram extent = scalars_.required(buffer.shape[d], "an extent of '" + buffer.name + "'");
      check_inside(buffer, d, index, extent, load.span, control);
      if (!buffer.strides.empty()) stride = scalars_.required(buffer.strides[d], "a stride of '" + buffer.name + "'");
      const ScalarProgram term = times(stride, index);
      step.offset = step.offset == ScalarProgram(0) ? term : plus(term, step.offset);
      stride = times(stride, extent);
    }
    step.slot = scalars_.add_slot(value.get());
    control.head.push_back(std::move(step));
    return Expr(value);
  }

  /// The host checks the bounds of its reads, unlike kernels.
  static void check_inside(const Buffer& buffer, size_t dim, const ScalarProgram& index, const ScalarProgram& extent,
                           const Span& span, runtime::ControlValue& control) {
    using runtime::ScalarOp;
    if (index.is_constant() && extent.is_constant()) {
      const int64_t at = index.code[0].value;
      if (0 <= at && at < extent.code[0].value) return;
    }
    runtime::Check check{ScalarProgram::binary(ScalarOp::And, ScalarProgram::binary(ScalarOp::Le, 0, index),
                                               ScalarProgram::binary(ScalarOp::Lt, index, extent)),
                         {Code::OutOfBounds,
                          span,
                          {{"dim", static_cast<int64_t>(dim)}, {"buffer", buffer.name}},
                          {declaration_note(buffer)},
                          {}},
                         {{"index", index}, {"extent", extent}}};
    control.head.push_back(std::move(check));
  }

  static ScalarProgram plus(const ScalarProgram& a, const ScalarProgram& b) {
    if (a.is_constant() && a.code[0].value == 0) return b;
    return ScalarProgram::binary(runtime::ScalarOp::Add, a, b);
  }

  /// A negative grid extent ends the call.
  void check_extent(const Expr& extent, const ScalarProgram& count, const Span& span, std::vector<Step>& out) const {
    if (can_prove(apply(Op::Le, {int_imm(0), extent}), facts_)) return;
    runtime::Check check{ScalarProgram::binary(runtime::ScalarOp::Le, ScalarProgram(0), count),
                         {Code::NegativeExtent, span, {}, {}, {}},
                         {}};
    check.values.push_back({"extent", count});
    out.push_back({std::move(check)});
  }

  void launch(const Kernel& kernel, std::vector<Step>& out) {
    // All blocks must see the same grid, whatever they write.
    const Stmt self(&kernel);
    Steps at{&out};
    const Ref<Kernel> named = copy_with(kernel, [&](Kernel& copy) {
      bool reads = false;
      for (Expr& extent : copy.extents) {
        if (!has_load(extent)) continue;
        const ScalarProgram known = value_of(extent, {ControlUse::Value, "a grid extent", "extent", self}, at);
        const VarRef value = kept(make_var("extent", kIndex, extent->span));
        scalars_.define(value.get(), known);
        extent = Expr(value);
        reads = true;
      }
      return reads;
    });
    const Kernel& own = named ? *named : kernel;
    Ref<const Kernel> source = scalars_.with_deferred(own);
    runtime::Launch step;
    step.kernel = static_cast<int64_t>(out_.kernels.size());
    step.name = signature_.name + "_" + std::to_string(step.kernel);
    step.blocks = ScalarProgram(1);
    for (const Expr& extent : own.extents) {
      ScalarProgram count = scalars_.required(extent, "a grid extent");
      check_extent(extent, count, kernel.span, *at.list);
      step.blocks = times(step.blocks, count);
    }
    const KernelInterface interface = kernel_interface(*source);
    for (const BufferRef& buffer : interface.buffers) step.buffers.push_back(id_of(*buffer));
    for (const VarRef& var : interface.scalars)
      step.scalars.push_back(scalars_.required(Expr(var), "'" + var->name + "'"));
    step.reports = reports_of(source->body);
    out_.kernels.push_back(
        {step.name, std::move(source), lowered_.mesh, bounds_, guards_, lowered_.may_alias, {}, step.reports});
    at->push_back({std::move(step)});
  }

  const Function& signature_;
  const Function& lowered_;
  const std::vector<CallCondition>& conditions_;
  const std::unordered_set<const Buffer*> written_;
  HostModule out_;
  HostScalars scalars_;
  std::deque<VarRef> kept_;  ///< variables of reads and control values: slots are found by their addresses
  std::shared_ptr<const IndexBounds> bounds_;
  Facts facts_;  ///< of extents, and of loops around the current place
  std::vector<Expr> guards_;  ///< conditions around the current place
  std::unordered_map<const Var*, int64_t> dim_slots_;
  std::unordered_map<const Buffer*, int64_t> ids_;
};

}  // namespace

HostModule build_host(const FunctionRef& signature, const FunctionRef& lowered,
                      const std::vector<CallCondition>& conditions) {
  return PlanBuilder(*signature, *lowered, conditions).build();
}

runtime::Plan signature_plan(const FunctionRef& f, const std::vector<CallCondition>& conditions) {
  return PlanBuilder(*f, *f, conditions).build_signature();
}

runtime::DLDataType to_dlpack(DType t) {
  auto of = [&](runtime::DLDataTypeCode code) { return runtime::DLDataType{static_cast<uint8_t>(code), t.bits, 1}; };
  if (t.bits < 8) throw UserError(Code::DTypeOnTarget, {}, {{"dtype", to_string(t)}, {"target", "host"}});
  switch (t.code) {
    case TypeCode::Index:
    case TypeCode::Int: return of(runtime::kDLInt);
    case TypeCode::UInt: return of(runtime::kDLUInt);
    case TypeCode::Bool: return of(runtime::kDLBool);
    case TypeCode::Float: return of(runtime::kDLFloat);
    case TypeCode::BFloat: return of(runtime::kDLBfloat);
    case TypeCode::Float8E4M3: return of(runtime::kDLFloat8_e4m3fn);
    case TypeCode::Float8E5M2: return of(runtime::kDLFloat8_e5m2);
    case TypeCode::Float4E2M1: break;
  }
  __builtin_unreachable();
}

}  // namespace helve
