// The memory of other cores: T.peer, T.st_async and T.comm.wait_bytes.
// A store to another core is an asynchronous copy of that core, which its wait completes.
#include <fmt/format.h>

#include <algorithm>

#include "helve/support/diagnostic.h"
#include "helve/support/text.h"
#include "tile_op_code.h"

namespace helve::interp {

namespace {

/// Lets the name stand for the other core's instance.
class PeerCode final : public PlainCode {
 public:
  PeerCode(const Peer& node, Scope& scope)
      : scope_(scope),
        core_(prepare(node.core, scope)),
        source_(scope.slot(*node.source)),
        slot_(scope.define(node.buffer)),
        span_(node.span) {}
  void run(Frame& frame) const override {
    const std::vector<int64_t> at = eval_all(core_, frame);
    const std::optional<int64_t> rank = rank_of(at, scope_.mesh().extents);
    if (!rank) {
      refuse(at, fmt::format("the mesh is {}", to_string(scope_.mesh())),
             "give one coordinate for each mesh axis, counted from 0");
    }
    Instance* const other = (*frame.cores)[static_cast<size_t>(*rank)].buffers[source_];
    if (other->rank() != other->declaration().rank()) {
      refuse(at, fmt::format("that core has not allocated '{}' yet", other->declaration().name),
             "write T.comm.barrier after the allocation");
    }
    frame.buffers[slot_] = other;
    frame.home[slot_] = *rank;
  }

 private:
  [[noreturn]] void refuse(const std::vector<int64_t>& core, std::string reason, std::string remedy) const {
    throw UserError(Code::BadArgument, span_,
                    {{"function", "T.peer"},
                     {"value", shape_text(core)},
                     {"parameter", "core"},
                     {"reason", std::move(reason)},
                     {"remedy", std::move(remedy)}});
  }

  const Scope& scope_;
  std::vector<ExprCodeRef> core_;
  size_t source_;
  size_t slot_;
  Span span_;
};

class StAsyncCode final : public PlainCode {
 public:
  StAsyncCode(const TileOp& node, Scope& scope)
      : operands_(node, scope),
        target_(scope.slot(*node.region(1).buffer)),
        barriers_(scope.slot(*node.barriers()->buffer)) {}
  void run(Frame& frame) const override {
    const View src = operands_.region("src").view(frame), dst = operands_.region("dst").view(frame);
    const Elements moved = gather_for(dst.instance->declaration(), src, dst.dtype(), operands_.span);
    const Scalar value = moved.values.front();
    Frame& other = (*frame.cores)[static_cast<size_t>(frame.home.at(target_))];
    Arrivals& arrivals = other.arrivals[barriers_];
    arrivals.bytes += dst.dtype().bytes();
    const Flight arrival{other.copies.begin(operands_.queue, operands_.span), other.rank, dst.site};
    if (!frame.trace) return dst.instance->write(dst.base, value);
    frame.trace->read(*other.buffers[barriers_], 0, *dst.site);  // they are initialized
    const bool undefined = !moved.undefined.empty() && moved.undefined.front();
    frame.trace->send(*dst.instance, dst.base, value, arrival, *dst.site, undefined);
    arrivals.senders.push_back({frame.rank, frame.trace->before_barrier()});
  }

 private:
  Operands operands_;
  size_t target_;
  size_t barriers_;
};

}  // namespace

/// The cores of a group wait together; each sees what was stored to it.
void run_wait_bytes(const Operands& op, const Group& group, const Scope& scope) {
  const size_t barriers = scope.slot(op.region("barriers").buffer());
  const int64_t bytes = op.integer("bytes");
  for (Frame* core : group) {
    Arrivals& arrivals = core->arrivals[barriers];
    if (arrivals.bytes != bytes) {
      throw UserError(Code::AwaitedBytes, op.span,
                      {{"core", shape_text(coordinates_of(core->rank, scope.mesh().extents))},
                       {"bytes", bytes},
                       {"barriers", op.region("barriers").buffer().name},
                       {"given", arrivals.bytes}});
    }
    core->copies.commit(op.queue, op.span);
    core->copies.wait(op.queue, 0);
    for (const Arrivals::Sender& sender : arrivals.senders) {  // only a checked run has them
      if (sender.core != core->rank) core->trace->learn(sender.core, sender.visible);
    }
    arrivals = {};
  }
}

StmtCodeRef prepare_peer(const Peer& s, Scope& scope) { return std::make_unique<PeerCode>(s, scope); }

StmtCodeRef prepare_st_async(const TileOp& s, Scope& scope) { return std::make_unique<StAsyncCode>(s, scope); }

}  // namespace helve::interp
