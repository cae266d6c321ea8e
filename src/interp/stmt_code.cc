// Sequences, definitions, stores and branches.
// The dispatch over all kinds of statements stands here; loops, kernels and tile operations have files of their own.
#include "stmt_code.h"

#include <bit>
#include <functional>
#include <utility>

#include "fibers.h"
#include "region.h"
#include "rings.h"

#include "helve/ir/tensor/report.h"
#include "helve/ir/tensor/update.h"
#include "helve/support/diagnostic.h"
#include "vector_access.h"

namespace helve::interp {

namespace {

class SeqCode final : public StmtCode {
 public:
  SeqCode(const Seq& node, Scope& scope) {
    for (size_t i = 0; i < node.stmts.size(); ++i) {
      std::vector<const Role*> roles;  // that stand side by side
      for (; i < node.stmts.size() && as<Role>(node.stmts[i]); ++i) roles.push_back(as<Role>(node.stmts[i]));
      if (!roles.empty()) parts_.push_back(prepare_roles(roles, scope));
      if (i < node.stmts.size()) parts_.push_back(prepare(node.stmts[i], scope));
    }
    for (const StmtCodeRef& part : parts_) include(*part);
  }
  void run(Frame& frame) const override {
    for (const StmtCodeRef& part : parts_) part->run(frame);
  }

 protected:
  void run_lockstep(const CoreSet& cores) const override {
    for (const StmtCodeRef& part : parts_) part->run_all(cores);
  }

 private:
  std::vector<StmtCodeRef> parts_;
};

class AllocCode final : public PlainCode {
 public:
  AllocCode(const Alloc& node, Scope& scope)
      : buffer_(node.buffer),
        shape_(prepare(node.buffer->shape, scope)),
        slot_(scope.define(node.buffer)),
        span_(node.span) {
    // What a slot of a ring holds is its fills' and takes', whichever iteration these are in.
    if (node.buffer->scope != MemoryScope::Global && node.buffer->slots == 0) scope.kernel_buffers.push_back(slot_);
  }
  void run(Frame& frame) const override {
    if (buffer_->slots > 0) return allocate_slots(frame, slot_, buffer_, eval_all(shape_, frame), span_);
    frame.buffers[slot_]->allocate(eval_all(shape_, frame), span_);
  }

 private:
  BufferRef buffer_;
  std::vector<ExprCodeRef> shape_;
  size_t slot_;
  Span span_;
};

class BindCode final : public PlainCode {
 public:
  BindCode(const Bind& node, Scope& scope) : value_(prepare(node.value, scope)), slot_(scope.define(node.var)) {
    scope.bound.insert(slot_);
  }
  void run(Frame& frame) const override {
    if (frame.trace) return run_checked(frame);
    frame.vars[slot_] = value_->eval(frame);
  }

 private:
  void run_checked(Frame& frame) const {
    Origin origin;
    frame.vars[slot_] = value_->eval_copy(frame, origin);
    frame.trace->bind(slot_, origin);
  }

  ExprCodeRef value_;
  size_t slot_;
};

/// The statement whose accesses are being prepared.
class StatementScope {
 public:
  StatementScope(Scope& scope, const StmtNode* statement) : scope_(scope) { scope_.statement = statement; }
  ~StatementScope() { scope_.statement = nullptr; }
  StatementScope(const StatementScope&) = delete;
  StatementScope& operator=(const StatementScope&) = delete;

 private:
  Scope& scope_;
};

class StoreCode : public PlainCode {
 public:
  StoreCode(const Store& node, Scope& scope)
      : element_(*node.buffer, node.indices, scope, node.span), value_(prepare(node.value, scope)) {
    HELVE_CHECK(node.value->dtype == node.buffer->dtype, "a store of another dtype");
  }
  void run(Frame& frame) const override {
    const int64_t offset = element_.offset(frame);
    const Scalar value = value_->eval(frame);
    element_.instance(frame).write(offset, value);
  }

 protected:
  Element element_;
  ExprCodeRef value_;
};

/// A store of a copy hands on that the value is undefined; a store to a parameter uses it.
class CheckedStoreCode final : public StoreCode {
 public:
  using StoreCode::StoreCode;
  void run(Frame& frame) const override {
    const int64_t offset = element_.offset(frame);
    Instance& instance = element_.instance(frame);
    const bool uses = instance.declaration().scope == MemoryScope::Param;
    Origin origin;
    const Scalar value = uses ? value_->eval(frame) : value_->eval_copy(frame, origin);
    frame.trace->write(instance, offset, value, element_.site(), origin.instance != nullptr);
  }
};

/// An ordinary store, of which lane 0 must stand at the begin of a piece.
class NontemporalStoreCode final : public PlainCode {
 public:
  NontemporalStoreCode(const Store& node, Scope& scope, StmtCodeRef store)
      : store_(std::move(store)),
        element_(*node.buffer, node.indices, scope, node.span),
        first_byte_(first_byte(*node.buffer, scope)),
        bytes_(node.buffer->dtype.bytes()),
        piece_(node.piece),
        span_(node.span) {
    HELVE_CHECK(scope.lane, "a store around the caches outside of a vectorized loop");
    lane_ = *scope.lane;
  }
  void run(Frame& frame) const override {
    const int64_t first = element_.offset(frame) - frame.vars[lane_].i;
    const int64_t behind = (first_byte_ + first % piece_ * bytes_) % piece_;
    if (behind != 0) {
      throw UserError(Code::MisalignedStore, span_,
                      {{"buffer", element_.instance(frame).declaration().name},
                       {"piece", piece_},
                       {"behind", (behind + piece_) % piece_}});
    }
    store_->run(frame);
  }

 private:
  StmtCodeRef store_;
  Element element_;
  int64_t first_byte_;
  int64_t bytes_;
  int64_t piece_;
  size_t lane_ = 0;
  Span span_;
};

/// Has no effect; its subscripts have values.
class PrefetchCode final : public PlainCode {
 public:
  PrefetchCode(const Prefetch& node, Scope& scope) : indices_(prepare(node.indices, scope)) {}
  void run(Frame& frame) const override { eval_all(indices_, frame); }

 private:
  std::vector<ExprCodeRef> indices_;
};

/// Says what the values are: in a line, or in the error that ends the run.
class ReportCode final : public PlainCode {
 public:
  ReportCode(const Report& node, Scope& scope) : scope_(scope), report_(described(node)) {
    for (const Expr& value : reported_values(node)) {
      values_.push_back(prepare(value, scope));
      floats_.push_back(value->dtype.is_float());
    }
  }
  void run(Frame& frame) const override {
    std::vector<int64_t> words;
    for (size_t i = 0; i < values_.size(); ++i) {
      const Scalar value = values_[i]->eval(frame);
      words.push_back(floats_[i] ? std::bit_cast<int64_t>(value.f) : value.i);
    }
    if (report_.fault) throw fault_of(report_, words);
    const std::string line = line_of(report_, words);
    scope_.options().print ? scope_.options().print(line) : write_line(line);
  }

 private:
  const Scope& scope_;
  KernelReport report_;
  std::vector<ExprCodeRef> values_;
  std::vector<bool> floats_;
};

/// Shows what is in scope to who debugs; in a run that nobody watches it does nothing.
class BreakpointCode final : public PlainCode {
 public:
  BreakpointCode(const Breakpoint& node, Scope& scope) : node_(&node), scope_(scope) {
    for (const Expr& value : node.values) values_.push_back(prepare(value, scope));
    for (const Region& region : node.buffers) slots_.push_back(scope.slot(*region.buffer));
  }
  void run(Frame& frame) const override {
    if (!scope_.options().stop) return;
    Stop stop{node_->span, scope_.function().name, {}, {}};
    for (size_t i = 0; i < values_.size(); ++i) {
      Origin origin;
      const DType dtype = node_->values[i]->dtype;
      stop.values.push_back({node_->names[i], shown(values_[i]->eval_copy(frame, origin), dtype)});
    }
    for (size_t i = 0; i < slots_.size(); ++i) {
      stop.arrays.push_back(array(node_->names[values_.size() + i], *frame.buffers[slots_[i]]));
    }
    scope_.options().stop(stop);
  }

 private:
  static decltype(Stop::Value::value) shown(Scalar value, DType dtype) {
    if (dtype.is_float()) return value.f;
    if (dtype.is_bool()) return value.i != 0;
    if (is_uint64(dtype)) return static_cast<uint64_t>(value.i);
    return value.i;
  }

  /// The elements in row-major order, whatever the strides of the buffer are. A trace is told nothing.
  static Stop::Array array(const std::string& name, const Instance& from) {
    const bool is_packed = from.dtype().is_packed();
    const DType plain = from.dtype().is_float() ? kFloat32 : DType{TypeCode::Int, 8};
    Stop::Array out{name, is_packed ? plain : from.dtype(), {}, {}};
    int64_t count = 1;
    for (size_t d = 0; d < from.rank(); ++d) {
      out.shape.push_back(from.extent(d));
      count *= from.extent(d);
    }
    out.elements.resize(static_cast<size_t>(count * out.dtype.bytes()));
    const ElementFormat format = element_format(out.dtype);
    std::vector<int64_t> at(from.rank(), 0);
    for (int64_t i = 0; i < count; ++i) {
      int64_t offset = 0;
      for (size_t d = 0; d < at.size(); ++d) offset += at[d] * from.stride(d);
      format.write(out.elements.data(), i, from.read(offset));
      for (size_t d = at.size(); d-- > 0;) {
        if (++at[d] < from.extent(d)) break;
        at[d] = 0;
      }
    }
    return out;
  }

  const Breakpoint* node_;
  const Scope& scope_;
  std::vector<ExprCodeRef> values_;
  std::vector<size_t> slots_;
};

/// Combines what stands in the element with the value.
class AtomicStoreCode final : public StoreCode {
 public:
  AtomicStoreCode(const Store& node, Scope& scope)
      : StoreCode(node, scope),
        mode_(node.mode),
        combine_(combining_operator(node.mode), evaluation_dtype(node.buffer->dtype), node.span) {
    if (!node.previous) return;
    previous_ = scope.define(node.previous);
    scope.bound.insert(*previous_);
  }
  void run(Frame& frame) const override {
    const int64_t offset = element_.offset(frame);
    const Scalar value = value_->eval(frame);
    Instance& instance = element_.instance(frame);
    if (frame.trace) {
      const Scalar previous = frame.trace->update(instance, offset, value, combine_, mode_, element_.site());
      if (!previous_) return;
      frame.vars[*previous_] = previous;
      return frame.trace->bind(*previous_, {});
    }
    const Scalar previous = instance.read(offset);
    instance.write(offset, combine_(previous, value));
    if (previous_) frame.vars[*previous_] = previous;
  }

 private:
  StoreMode mode_;
  Fold combine_;
  std::optional<size_t> previous_;  ///< the variable that names what stood in the element
};

std::string truth_text(int64_t choice) { return choice ? "true" : "false"; }

/// The condition on each core, refused where it parts a group that has to stay together.
std::vector<int64_t> uniform_condition(const StmtCode& code, const ExprCode& condition, const Scope& scope,
                                       const CoreSet& cores, const Span& span) {
  std::vector<int64_t> choices;
  for (Frame* core : cores) {
    if (core->trace) core->trace->make_current();
    choices.push_back(condition.eval(*core).i != 0);
  }
  require_uniform(code, scope.mesh(), cores, choices, span, "the condition is", truth_text);
  return choices;
}

CoreSet cores_with(const CoreSet& cores, const std::vector<int64_t>& choices, int64_t choice) {
  CoreSet out;
  for (size_t i = 0; i < cores.size(); ++i) {
    if (choices[i] == choice) out.push_back(cores[i]);
  }
  return out;
}

class IfCode final : public StmtCode {
 public:
  IfCode(const If& node, Scope& scope)
      : scope_(scope),
        condition_(prepare(node.condition, scope)),
        then_(prepare(node.then_body, scope)),
        else_(node.else_body ? prepare(node.else_body, scope) : nullptr),
        span_(node.condition->span.known() ? node.condition->span : node.span) {
    include(*then_);
    if (else_) include(*else_);
  }
  void run(Frame& frame) const override {
    if (condition_->eval(frame).i != 0) {
      then_->run(frame);
    } else if (else_) {
      else_->run(frame);
    }
  }

 protected:
  void run_lockstep(const CoreSet& cores) const override {
    const std::vector<int64_t> choices = uniform_condition(*this, *condition_, scope_, cores, span_);
    const CoreSet yes = cores_with(cores, choices, 1);
    const CoreSet no = cores_with(cores, choices, 0);
    if (!yes.empty()) then_->run_all(yes);
    if (!no.empty() && else_) else_->run_all(no);
  }

 private:
  const Scope& scope_;
  ExprCodeRef condition_;
  StmtCodeRef then_;
  StmtCodeRef else_;
  Span span_;
};

class WhileCode final : public StmtCode {
 public:
  WhileCode(const While& node, Scope& scope)
      : scope_(scope),
        condition_(prepare(node.condition, scope)),
        body_(prepare(node.body, scope)),
        span_(node.condition->span.known() ? node.condition->span : node.span) {
    include(*body_);
  }
  void run(Frame& frame) const override {
    while (condition_->eval(frame).i != 0) {
      scope_.step();
      body_->run(frame);
    }
  }

 protected:
  void run_lockstep(const CoreSet& cores) const override {
    CoreSet going = cores;
    for (;;) {
      going = cores_with(going, uniform_condition(*this, *condition_, scope_, going, span_), 1);
      if (going.empty()) return;
      scope_.step();
      body_->run_all(going);
    }
  }

 private:
  const Scope& scope_;
  ExprCodeRef condition_;
  StmtCodeRef body_;
  Span span_;
};

/// Computes all elements of the tile that lie in the logical shape, then stores them.
class TileStoreCode final : public PlainCode {
 public:
  TileStoreCode(const TileStore& node, Scope& scope)
      : slot_(scope.slot(*node.buffer)),
        indices_(prepare(node.indices, scope)),
        tile_(node.buffer->tile),
        site_{node.span, &node} {
    HELVE_CHECK(tile_.size() == indices_.size(), "a tile store to a buffer without tile");
    HELVE_CHECK(node.value->dtype == node.buffer->dtype, "a store of another dtype");
    scope.tile = &tile_;
    scope.statement = &node;
    value_ = prepare(node.value, scope);
    scope.statement = nullptr;
    scope.tile = nullptr;
  }
  void run(Frame& frame) const override {
    Instance& instance = *frame.buffers[slot_];
    View target{&instance, 0, {}, false, frame.trace, &site_};
    for (size_t d = 0; d < tile_.size(); ++d) {
      const int64_t begin = indices_[d]->eval(frame).i * tile_[d];
      const int64_t limit = instance.extent(d);
      if (begin < 0 || begin >= limit) out_of_bounds(instance.declaration(), d, begin, limit, site_.span);
      const int64_t extent = std::min(tile_[d], limit - begin);
      target.dims.push_back({extent, instance.stride(d), extent});
      target.base += begin * instance.stride(d);
    }
    if (frame.trace) {
      Elements elements{std::vector<Scalar>(static_cast<size_t>(target.size())), {}};
      elements.undefined.resize(elements.values.size());
      for_each(frame, target.shape(), elements.values, [&](Scalar& value) {
        Origin origin;
        value = value_->eval_copy(frame, origin);
        elements.undefined[static_cast<size_t>(&value - elements.values.data())] = origin.instance != nullptr;
      });
      return scatter(target, elements, instance.dtype(), site_.span);
    }
    std::vector<Scalar> values(static_cast<size_t>(target.size()));
    for_each(frame, target.shape(), values, [&](Scalar& value) { value = value_->eval(frame); });
    scatter(target, values, instance.dtype(), site_.span);
  }

 private:
  /// Calls `compute` on each value with the frame's element at its place.
  template <class Compute>
  static void for_each(Frame& frame, const std::vector<int64_t>& extents, std::vector<Scalar>& values,
                       Compute&& compute) {
    frame.element.assign(extents.size(), 0);
    for (Scalar& value : values) {
      compute(value);
      for (size_t d = extents.size(); d-- > 0;) {
        if (++frame.element[d] < extents[d]) break;
        frame.element[d] = 0;
      }
    }
  }

  size_t slot_;
  std::vector<ExprCodeRef> indices_;
  std::vector<int64_t> tile_;
  ExprCodeRef value_;
  Site site_;
};

/// Roles of a block, which run by turns.
class RolesCode final : public PlainCode {
 public:
  RolesCode(const std::vector<const Role*>& roles, Scope& scope) : order_(scope.options().roles) {
    const std::vector<size_t> around = scope.kernel_buffers;
    for (const Role* role : roles) {
      // What the block has allocated is the first role's, rings aside.
      scope.kernel_buffers = role->first == 0 ? around : std::vector<size_t>();
      bodies_.push_back(prepare(role->body, scope));
    }
    scope.kernel_buffers = around;
  }
  void run(Frame& frame) const override {
    Fibers fibers(frame, order_);
    std::vector<std::function<void()>> bodies;
    for (const StmtCodeRef& body : bodies_) bodies.emplace_back([&frame, &body] { body->run(frame); });
    Fibers* const around = std::exchange(frame.fibers, &fibers);
    const auto leave = [&] { frame.fibers = around; };
    try {
      fibers.run(bodies);
    } catch (...) {
      leave();
      throw;
    }
    leave();
  }

 private:
  std::vector<StmtCodeRef> bodies_;
  int64_t order_;
};

struct Preparer {
  Scope& scope;

  StmtCodeRef operator()(const Seq& s) const { return std::make_unique<SeqCode>(s, scope); }
  StmtCodeRef operator()(const Alloc& s) const { return std::make_unique<AllocCode>(s, scope); }
  StmtCodeRef operator()(const Peer& s) const { return prepare_peer(s, scope); }
  StmtCodeRef operator()(const Bind& s) const { return std::make_unique<BindCode>(s, scope); }
  StmtCodeRef operator()(const Store& s) const {
    const StatementScope statement(scope, &s);
    if (s.is_atomic()) return std::make_unique<AtomicStoreCode>(s, scope);
    if (s.is_update()) return prepare_store(*as<Store>(store(s.buffer, s.indices, stored_value(s), s.span)));
    return prepare_store(s);
  }
  StmtCodeRef prepare_store(const Store& s) const {
    if (s.width) return prepare_vector_store(s, scope);
    StmtCodeRef plain;
    if (scope.checked()) {
      plain = std::make_unique<CheckedStoreCode>(s, scope);
    } else {
      plain = std::make_unique<StoreCode>(s, scope);
    }
    if (s.piece == 0) return plain;
    return std::make_unique<NontemporalStoreCode>(s, scope, std::move(plain));
  }
  StmtCodeRef operator()(const Prefetch& s) const { return std::make_unique<PrefetchCode>(s, scope); }
  StmtCodeRef operator()(const Report& s) const { return std::make_unique<ReportCode>(s, scope); }
  StmtCodeRef operator()(const Breakpoint& s) const { return std::make_unique<BreakpointCode>(s, scope); }
  StmtCodeRef operator()(const TileStore& s) const { return std::make_unique<TileStoreCode>(s, scope); }
  StmtCodeRef operator()(const For& s) const { return prepare_loop(s, scope); }
  StmtCodeRef operator()(const ForTiles& s) const { return prepare_tile_loop(s, scope); }
  StmtCodeRef operator()(const While& s) const { return std::make_unique<WhileCode>(s, scope); }
  StmtCodeRef operator()(const If& s) const { return std::make_unique<IfCode>(s, scope); }
  StmtCodeRef operator()(const Kernel& s) const { return prepare_kernel(s, scope); }
  StmtCodeRef operator()(const Role& s) const { return prepare_roles({&s}, scope); }
  StmtCodeRef operator()(const Outline& s) const { return prepare(s.body, scope); }
  StmtCodeRef operator()(const TileOp& s) const { return prepare_tile_op(s, scope); }
};

}  // namespace

StmtCodeRef prepare(const Stmt& s, Scope& scope) { return dispatch(s, Preparer{scope}); }

StmtCodeRef prepare_roles(const std::vector<const Role*>& roles, Scope& scope) {
  return std::make_unique<RolesCode>(roles, scope);
}

}  // namespace helve::interp
