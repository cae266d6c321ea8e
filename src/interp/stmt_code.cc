// Sequences, definitions, stores and branches.
// The dispatch over all kinds of statements stands here; loops, kernels and tile operations have files of their own.
#include "region.h"
#include "stmt_code.h"

#include "helve/support/diagnostic.h"

namespace helve::interp {

namespace {

class SeqCode final : public StmtCode {
 public:
  SeqCode(const Seq& node, Scope& scope) {
    for (const Stmt& s : node.stmts) {
      parts_.push_back(prepare(s, scope));
      include(*parts_.back());
    }
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
      : shape_(prepare(node.buffer->shape, scope)), slot_(scope.define(node.buffer)), span_(node.span) {
    if (node.buffer->scope != MemoryScope::Global) scope.kernel_buffers.push_back(slot_);
  }
  void run(Frame& frame) const override { frame.buffers[slot_]->allocate(eval_all(shape_, frame), span_); }

 private:
  std::vector<ExprCodeRef> shape_;
  size_t slot_;
  Span span_;
};

class BindCode final : public PlainCode {
 public:
  BindCode(const Bind& node, Scope& scope) : value_(prepare(node.value, scope)), slot_(scope.define(node.var)) {}
  void run(Frame& frame) const override { frame.vars[slot_] = value_->eval(frame); }

 private:
  ExprCodeRef value_;
  size_t slot_;
};

class StoreCode final : public PlainCode {
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

 private:
  Element element_;
  ExprCodeRef value_;
};

std::string truth_text(int64_t choice) { return choice ? "true" : "false"; }

/// The condition on each core, refused where it parts a group that has to stay together.
std::vector<int64_t> uniform_condition(const StmtCode& code, const ExprCode& condition, const Scope& scope,
                                       const CoreSet& cores, const Span& span) {
  std::vector<int64_t> choices;
  for (Frame* core : cores) choices.push_back(condition.eval(*core).i != 0);
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
      : scope_(scope), condition_(prepare(node.condition, scope)), then_(prepare(node.then_body, scope)),
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
      : scope_(scope), condition_(prepare(node.condition, scope)), body_(prepare(node.body, scope)),
        span_(node.condition->span.known() ? node.condition->span : node.span) {
    include(*body_);
  }
  void run(Frame& frame) const override {
    while (condition_->eval(frame).i != 0) body_->run(frame);
  }

 protected:
  void run_lockstep(const CoreSet& cores) const override {
    CoreSet going = cores;
    for (;;) {
      going = cores_with(going, uniform_condition(*this, *condition_, scope_, going, span_), 1);
      if (going.empty()) return;
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
      : slot_(scope.slot(*node.buffer)), indices_(prepare(node.indices, scope)), tile_(node.buffer->tile),
        span_(node.span) {
    HELVE_CHECK(tile_.size() == indices_.size(), "a tile store to a buffer without tile");
    HELVE_CHECK(node.value->dtype == node.buffer->dtype, "a store of another dtype");
    scope.tile = &tile_;
    value_ = prepare(node.value, scope);
    scope.tile = nullptr;
  }
  void run(Frame& frame) const override {
    Instance& instance = *frame.buffers[slot_];
    View target{&instance, 0, {}, false};
    for (size_t d = 0; d < tile_.size(); ++d) {
      const int64_t begin = indices_[d]->eval(frame).i * tile_[d];
      const int64_t limit = instance.extent(d);
      if (begin < 0 || begin >= limit) out_of_bounds(instance.declaration(), d, begin, limit, span_);
      const int64_t extent = std::min(tile_[d], limit - begin);
      target.dims.push_back({extent, instance.stride(d), extent});
      target.base += begin * instance.stride(d);
    }
    const std::vector<Scalar> values = compute(frame, target.shape());
    scatter(target, values, instance.dtype(), span_);
  }

 private:
  std::vector<Scalar> compute(Frame& frame, const std::vector<int64_t>& extents) const {
    std::vector<Scalar> values(static_cast<size_t>(product(extents)));
    frame.element.assign(extents.size(), 0);
    for (Scalar& value : values) {
      value = value_->eval(frame);
      for (size_t d = extents.size(); d-- > 0;) {
        if (++frame.element[d] < extents[d]) break;
        frame.element[d] = 0;
      }
    }
    return values;
  }

  size_t slot_;
  std::vector<ExprCodeRef> indices_;
  std::vector<int64_t> tile_;
  ExprCodeRef value_;
  Span span_;
};

struct Preparer {
  Scope& scope;

  StmtCodeRef operator()(const Seq& s) const { return std::make_unique<SeqCode>(s, scope); }
  StmtCodeRef operator()(const Alloc& s) const { return std::make_unique<AllocCode>(s, scope); }
  StmtCodeRef operator()(const Bind& s) const { return std::make_unique<BindCode>(s, scope); }
  StmtCodeRef operator()(const Store& s) const { return std::make_unique<StoreCode>(s, scope); }
  StmtCodeRef operator()(const TileStore& s) const { return std::make_unique<TileStoreCode>(s, scope); }
  StmtCodeRef operator()(const For& s) const { return prepare_loop(s, scope); }
  StmtCodeRef operator()(const ForTiles& s) const { return prepare_tile_loop(s, scope); }
  StmtCodeRef operator()(const While& s) const { return std::make_unique<WhileCode>(s, scope); }
  StmtCodeRef operator()(const If& s) const { return std::make_unique<IfCode>(s, scope); }
  StmtCodeRef operator()(const Kernel& s) const { return prepare_kernel(s, scope); }
  StmtCodeRef operator()(const TileOp& s) const { return prepare_tile_op(s, scope); }
};

}  // namespace

StmtCodeRef prepare(const Stmt& s, Scope& scope) { return dispatch(s, Preparer{scope}); }

}  // namespace helve::interp
