// Vector loads and stores of the lanes of a loop.
// The frame keeps the elements on their way: those that were read, until each lane takes its own, and those that lanes
// stored, until all have run. Where they stand in memory must be what the width promises (MisalignedVector).
#include "vector_access.h"

#include <fmt/format.h>

#include "block_memory.h"
#include "helve/support/diagnostic.h"

namespace helve::interp {

namespace {

/// Where the lanes' elements stand.
class VectorPlace {
 public:
  VectorPlace(const Storage& buffer, const std::vector<Expr>& indices, int64_t width, const Span& span, Scope& scope)
      : element_(buffer, indices, scope, span), slot_(scope.vector_slots++), width_(width), span_(span) {
    const Buffer& declared = static_cast<const Buffer&>(buffer);
    if (declared.scope == MemoryScope::Shared) addresses_ = addresses_of(declared);
  }

  const Element& element() const { return element_; }
  std::vector<LaneValue>& lanes(Frame& frame) const {
    if (frame.vectors.size() <= slot_) frame.vectors.resize(slot_ + 1);
    return frame.vectors[slot_];
  }
  LaneValue& own(Frame& frame) const { return frame.vectors[slot_][static_cast<size_t>(frame.lane)]; }

  /// The element of `lane`; refused unless it follows that of lane 0, which begins an access.
  int64_t offset(Frame& frame, int64_t lane) const {
    const int64_t offset = element_.offset(frame);
    const Instance& instance = element_.instance(frame);
    const Buffer& buffer = instance.declaration();
    int64_t address = addresses_ ? (*addresses_)[static_cast<size_t>(offset)] : offset;
    if (buffer.scope == MemoryScope::Fragment) address %= std::max<int64_t>(instance.stride(0), 1);
    std::vector<LaneValue>& values = lanes(frame);
    values[static_cast<size_t>(lane)].address = address;
    const int64_t begin = values[0].address;
    const int64_t behind = begin * buffer.dtype.bytes() % width_;
    if (behind != 0) refuse(buffer, fmt::format("lane 0 is {} bytes behind a multiple of it", behind));
    if (address != begin + lane) {
      refuse(buffer, fmt::format("the element of lane {} does not follow those of the lanes before it", lane));
    }
    return offset;
  }

 private:
  [[noreturn]] void refuse(const Buffer& buffer, std::string reason) const {
    throw UserError(Code::MisalignedVector, span_,
                    {{"buffer", buffer.name}, {"width", width_}, {"reason", std::move(reason)}});
  }

  Element element_;
  size_t slot_;
  int64_t width_;
  std::shared_ptr<const std::vector<int64_t>> addresses_;
  Span span_;
};

/// An element without a value is read again where a lane uses it, which reports it or hands it on.
class VectorLoadCode final : public ExprCode, public VectorAccess {
 public:
  VectorLoadCode(const Load& node, Scope& scope, ExprCodeRef load)
      : load_(std::move(load)), place_(*node.buffer, node.indices, node.width, node.span, scope) {}

  void before_lanes(Frame& frame, int64_t lane, int64_t lanes) const override {
    std::vector<LaneValue>& values = place_.lanes(frame);
    values.resize(static_cast<size_t>(lanes));
    place_.offset(frame, lane);
    Origin origin;
    LaneValue& own = values[static_cast<size_t>(lane)];
    own.value = frame.trace ? load_->eval_copy(frame, origin) : load_->eval(frame);
    own.undefined = origin.instance != nullptr;
  }
  void after_lanes(Frame&, int64_t) const override {}

  Scalar eval(Frame& frame) const override {
    const LaneValue& own = place_.own(frame);
    return own.undefined ? load_->eval(frame) : own.value;
  }
  Scalar eval_copy(Frame& frame, Origin& origin) const override {
    const LaneValue& own = place_.own(frame);
    return own.undefined ? load_->eval_copy(frame, origin) : own.value;
  }

 private:
  ExprCodeRef load_;
  VectorPlace place_;
};

class VectorStoreCode final : public PlainCode, public VectorAccess {
 public:
  VectorStoreCode(const Store& node, Scope& scope)
      : place_(*node.buffer, node.indices, node.width, node.span, scope), value_(prepare(node.value, scope)) {}

  void before_lanes(Frame& frame, int64_t lane, int64_t lanes) const override {
    place_.lanes(frame).resize(static_cast<size_t>(lanes));
    place_.lanes(frame)[static_cast<size_t>(lane)].offset = place_.offset(frame, lane);
  }

  void run(Frame& frame) const override {
    LaneValue& own = place_.own(frame);
    Origin origin;
    const bool uses = place_.element().instance(frame).declaration().scope == MemoryScope::Param;
    own.value = frame.trace && !uses ? value_->eval_copy(frame, origin) : value_->eval(frame);
    own.undefined = origin.instance != nullptr;
  }

  void after_lanes(Frame& frame, int64_t lane) const override {
    const LaneValue& own = place_.lanes(frame)[static_cast<size_t>(lane)];
    Instance& instance = place_.element().instance(frame);
    if (!frame.trace) return instance.write(own.offset, own.value);
    frame.trace->write(instance, own.offset, own.value, place_.element().site(), own.undefined);
  }

 private:
  VectorPlace place_;
  ExprCodeRef value_;
};

}  // namespace

ExprCodeRef prepare_vector_load(const Load& load, Scope& scope) {
  HELVE_CHECK(scope.vectors, "a vector load outside of a vectorized loop");
  const Ref<const Load> plain = copy_with(load, [](Load& out) { out.width = 0; });
  auto code = std::make_unique<VectorLoadCode>(load, scope, prepare(Expr(plain), scope));
  scope.vectors->push_back(code.get());
  return code;
}

StmtCodeRef prepare_vector_store(const Store& store, Scope& scope) {
  HELVE_CHECK(scope.vectors, "a vector store outside of a vectorized loop");
  auto code = std::make_unique<VectorStoreCode>(store, scope);
  scope.vectors->push_back(code.get());
  return code;
}

}  // namespace helve::interp
