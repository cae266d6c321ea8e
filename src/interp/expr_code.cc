// One evaluator for each kind of expression.
// `and`, `or` and `if_then_else` evaluate only the operands that decide the value, so a guard protects the access
// beside it.
#include "expr_code.h"

#include <algorithm>

#include "helve/ir/expr/rounding.h"
#include "helve/support/diagnostic.h"
#include "helve/support/hash.h"
#include "vector_access.h"

namespace helve::interp {

namespace {

class ConstantCode final : public ExprCode {
 public:
  explicit ConstantCode(Scalar value) : value_(value) {}
  Scalar eval(Frame&) const override { return value_; }

 private:
  Scalar value_;
};

class VarCode final : public ExprCode {
 public:
  explicit VarCode(size_t slot) : slot_(slot) {}
  Scalar eval(Frame& frame) const override { return frame.vars[slot_]; }

 private:
  size_t slot_;
};

/// A variable that a Bind names: it may stand for an element without a value.
class CheckedVarCode final : public ExprCode {
 public:
  explicit CheckedVarCode(size_t slot) : slot_(slot) {}
  Scalar eval(Frame& frame) const override {
    frame.trace->use(slot_, nullptr);
    return frame.vars[slot_];
  }
  Scalar eval_copy(Frame& frame, Origin& origin) const override {
    frame.trace->use(slot_, &origin);
    return frame.vars[slot_];
  }

 private:
  size_t slot_;
};

template <int arity>
class ApplyCode final : public ExprCode {
 public:
  ApplyCode(const Apply& node, Scope& scope)
      : context_{node.op, node.args[0]->dtype, node.span}, function_(operator_on(node.op, context_.dtype)) {
    for (int i = 0; i < arity; ++i) args_[i] = prepare(node.args[static_cast<size_t>(i)], scope);
  }
  Scalar eval(Frame& frame) const override {
    Scalar values[arity];
    for (int i = 0; i < arity; ++i) values[i] = args_[i]->eval(frame);
    return function_(values, context_);
  }

 private:
  OpContext context_;
  Operator function_;
  ExprCodeRef args_[arity];
};

/// `a and b` (decides on false) and `a or b` (decides on true).
class ShortcutCode final : public ExprCode {
 public:
  ShortcutCode(const Apply& node, Scope& scope)
      : deciding_(node.op == Op::Or), left_(prepare(node.args[0], scope)), right_(prepare(node.args[1], scope)) {}
  Scalar eval(Frame& frame) const override {
    const Scalar left = left_->eval(frame);
    return (left.i != 0) == deciding_ ? left : right_->eval(frame);
  }

 private:
  bool deciding_;
  ExprCodeRef left_;
  ExprCodeRef right_;
};

class SelectCode final : public ExprCode {
 public:
  SelectCode(const Apply& node, Scope& scope)
      : condition_(prepare(node.args[0], scope)),
        yes_(prepare(node.args[1], scope)),
        no_(prepare(node.args[2], scope)) {}
  Scalar eval(Frame& frame) const override { return chosen(frame).eval(frame); }
  Scalar eval_copy(Frame& frame, Origin& origin) const override { return chosen(frame).eval_copy(frame, origin); }

 private:
  const ExprCode& chosen(Frame& frame) const { return condition_->eval(frame).i != 0 ? *yes_ : *no_; }

  ExprCodeRef condition_;
  ExprCodeRef yes_;
  ExprCodeRef no_;
};

class CastCode final : public ExprCode {
 public:
  CastCode(const Cast& node, Scope& scope)
      : value_(prepare(node.value, scope)),
        convert_(converter_of(node.value->dtype, node.dtype)),
        to_(node.dtype),
        span_(node.span) {}
  Scalar eval(Frame& frame) const override { return convert_(value_->eval(frame), to_, span_); }
  Scalar eval_copy(Frame& frame, Origin& origin) const override {
    if (to_.is_index()) return eval(frame);
    return convert_(value_->eval_copy(frame, origin), to_, span_);
  }

 private:
  ExprCodeRef value_;
  Converter convert_;
  DType to_;
  Span span_;
};

class BitcastCode final : public ExprCode {
 public:
  BitcastCode(const Bitcast& node, Scope& scope)
      : value_(prepare(node.value, scope)), from_(node.value->dtype), to_(node.dtype) {}
  Scalar eval(Frame& frame) const override {
    const Scalar value = value_->eval(frame);
    if (to_.is_float()) return of_float(float_value(static_cast<uint64_t>(value.i), to_));
    return of_int(wrap_to(static_cast<int64_t>(float_bits(round_to(value.f, from_), from_)), to_));
  }

 private:
  ExprCodeRef value_;
  DType from_;
  DType to_;
};

class LoadCode final : public ExprCode {
 public:
  LoadCode(const Load& node, Scope& scope) : element_(*node.buffer, node.indices, scope, node.span) {}
  Scalar eval(Frame& frame) const override {
    const int64_t offset = element_.offset(frame);
    return element_.instance(frame).read(offset);
  }

 private:
  Element element_;
};

class CheckedLoadCode final : public ExprCode {
 public:
  CheckedLoadCode(const Load& node, Scope& scope) : element_(*node.buffer, node.indices, scope, node.span) {}
  Scalar eval(Frame& frame) const override {
    const int64_t offset = element_.offset(frame);
    return frame.trace->read(element_.instance(frame), offset, element_.site());
  }
  Scalar eval_copy(Frame& frame, Origin& origin) const override {
    const int64_t offset = element_.offset(frame);
    return frame.trace->read(element_.instance(frame), offset, element_.site(), &origin);
  }

 private:
  Element element_;
};

/// The element of a tile that stands where the store's element stands. Dimension d of the tile follows dimension d of
/// the store; a tile extent of 1 and missing trailing dimensions broadcast.
class TileLoadCode : public ExprCode {
 public:
  TileLoadCode(const TileLoad& node, Scope& scope)
      : slot_(scope.slot(*node.buffer)),
        indices_(prepare(node.indices, scope)),
        tile_(buffer_of(node.buffer).tile),
        site_{node.span, scope.statement},
        check_(scope.options().check_bounds) {
    HELVE_CHECK(scope.tile, "a tile load is outside a tile store");
    HELVE_CHECK(tile_.size() == indices_.size() && tile_.size() <= scope.tile->size(), "a tile load of another rank");
    for (size_t d = 0; d < tile_.size(); ++d) {
      HELVE_CHECK(tile_[d] == 1 || tile_[d] == (*scope.tile)[d], "a tile load of another tile");
    }
  }
  Scalar eval(Frame& frame) const override {
    const Instance& instance = *frame.buffers[slot_];
    return instance.read(offset_in(instance, frame));
  }

 protected:
  int64_t offset_in(const Instance& instance, Frame& frame) const {
    int64_t offset = 0;
    for (size_t d = 0; d < tile_.size(); ++d) {
      const int64_t tile = tile_[d];
      const int64_t index = indices_[d]->eval(frame).i * tile + (tile == 1 ? 0 : frame.element[d]);
      if (check_ && (index < 0 || index >= instance.extent(d))) {
        out_of_bounds(instance.declaration(), d, index, instance.extent(d), site_.span);
      }
      offset += index * instance.stride(d);
    }
    return offset;
  }

  size_t slot_;
  std::vector<ExprCodeRef> indices_;
  std::vector<int64_t> tile_;
  Site site_;
  bool check_;
};

class CheckedTileLoadCode final : public TileLoadCode {
 public:
  using TileLoadCode::TileLoadCode;
  Scalar eval(Frame& frame) const override {
    Instance& instance = *frame.buffers[slot_];
    return frame.trace->read(instance, offset_in(instance, frame), site_);
  }
  Scalar eval_copy(Frame& frame, Origin& origin) const override {
    Instance& instance = *frame.buffers[slot_];
    return frame.trace->read(instance, offset_in(instance, frame), site_, &origin);
  }
};

}  // namespace

/// Of some tensors a multiple of a line of the cache, of some one of 16 bytes, of others of their element only.
int64_t first_byte(const Storage& buffer, const Scope& scope) {
  constexpr uint64_t kPage = 4096;
  const auto placement = static_cast<uint64_t>(scope.options().placement);
  if (placement == 0) return 0;
  const uint64_t chosen = hash_mix(hash_mix(0, placement), scope.slot(buffer));
  const uint64_t element = static_cast<uint64_t>(std::max<int64_t>(buffer.dtype.bytes(), 1));
  const uint64_t units[] = {64, 16, element, element};
  const uint64_t unit = std::max(units[chosen % 4], element);
  return static_cast<int64_t>((chosen / 4) % (kPage / unit) * unit);
}

namespace {

struct Preparer {
  Scope& scope;

  ExprCodeRef operator()(const Misalignment& e) const {
    return std::make_unique<ConstantCode>(of_int(first_byte(*e.buffer, scope) % e.unit));
  }
  ExprCodeRef operator()(const IntImm& e) const { return std::make_unique<ConstantCode>(of_int(e.value)); }
  ExprCodeRef operator()(const FloatImm& e) const { return std::make_unique<ConstantCode>(of_float(e.value)); }
  ExprCodeRef operator()(const Var& e) const {
    if (scope.checked() && scope.bound.contains(scope.slot(e))) return std::make_unique<CheckedVarCode>(scope.slot(e));
    return std::make_unique<VarCode>(scope.slot(e));
  }
  ExprCodeRef operator()(const Cast& e) const { return std::make_unique<CastCode>(e, scope); }
  ExprCodeRef operator()(const Bitcast& e) const { return std::make_unique<BitcastCode>(e, scope); }
  ExprCodeRef operator()(const Load& e) const {
    if (e.width) return prepare_vector_load(e, scope);
    if (scope.checked()) return std::make_unique<CheckedLoadCode>(e, scope);
    return std::make_unique<LoadCode>(e, scope);
  }
  ExprCodeRef operator()(const TileLoad& e) const {
    if (scope.checked()) return std::make_unique<CheckedTileLoadCode>(e, scope);
    return std::make_unique<TileLoadCode>(e, scope);
  }
  ExprCodeRef operator()(const Apply& e) const {
    if (e.op == Op::And || e.op == Op::Or) return std::make_unique<ShortcutCode>(e, scope);
    if (e.op == Op::Select) return std::make_unique<SelectCode>(e, scope);
    switch (e.args.size()) {
      case 1: return std::make_unique<ApplyCode<1>>(e, scope);
      case 2: return std::make_unique<ApplyCode<2>>(e, scope);
      case 3: return std::make_unique<ApplyCode<3>>(e, scope);
      default: HELVE_FAIL("an operator of another arity");
    }
  }
};

}  // namespace

ExprCodeRef prepare(const Expr& e, Scope& scope) { return dispatch(e, Preparer{scope}); }

std::vector<ExprCodeRef> prepare(const std::vector<Expr>& exprs, Scope& scope) {
  std::vector<ExprCodeRef> out;
  for (const Expr& e : exprs) out.push_back(prepare(e, scope));
  return out;
}

std::vector<int64_t> eval_all(const std::vector<ExprCodeRef>& exprs, Frame& frame) {
  std::vector<int64_t> out;
  out.reserve(exprs.size());
  for (const ExprCodeRef& e : exprs) out.push_back(e->eval(frame).i);
  return out;
}

Element::Element(const Storage& buffer, const std::vector<Expr>& indices, Scope& scope, const Span& span)
    : slot_(scope.slot(buffer)),
      indices_(prepare(indices, scope)),
      site_{span, scope.statement},
      check_(scope.options().check_bounds) {}

int64_t Element::offset(Frame& frame) const {
  const Instance& instance = *frame.buffers[slot_];
  int64_t offset = 0;
  for (size_t d = 0; d < indices_.size(); ++d) {
    const int64_t index = indices_[d]->eval(frame).i;
    if (check_ && (index < 0 || index >= instance.extent(d))) {
      out_of_bounds(instance.declaration(), d, index, instance.extent(d), site_.span);
    }
    offset += index * instance.stride(d);
  }
  return offset;
}

}  // namespace helve::interp
