// TMA copies of the block, and the groups in which copies are counted.
// Thread 0 issues them. Each group of loads has an mbarrier of a ring, at which the thread and the bytes arrive. The
// ring is large enough for a loop that keeps as many groups in flight as its waits allow; if all mbarriers are in use,
// the commit waits for the oldest group, which is legal because a copy may complete at any time before its wait.
// Barriers and fences order TMA's accesses with those of the threads (transform/insert_fences.cc).
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "helve/analysis/bulk_copy.h"
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/shared_place.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cuda {

namespace {

constexpr int64_t kMinBarriers = 16, kMaxBarriers = 64;

}  // namespace

void KernelEmitter::find_bulk() {
  const Stmt& body = source_.stmt->body;
  BulkCopies found;
  found.threads = false;
  int64_t most = 0, commits = 0;  // groups that a wait leaves unfinished, and places that commit one
  walk(body, [&](const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    if (!op) return;
    const bool of_thread = op->op == TileOpcode::CpAsync;
    found.threads |= of_thread;
    commits += op->op == TileOpcode::CommitAsync || (op->begins_copy() && !of_thread);
    if (op->op == TileOpcode::WaitAsync) most = std::max(most, op->integer(0));
    if (op->row().rule != TileRule::CopyInstruction || of_thread) return;
    const BufferRef& dst = op->region(1).buffer;
    (!is_global(*dst) ? found.loads : op->begins_copy() ? found.stores : found.returns) = true;
  });
  if (!found.any()) return;
  bulk_ = found;
  bulk_.ring = std::clamp(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(most + commits))), kMinBarriers,
                          kMaxBarriers);
}

void KernelEmitter::begin_tma() {
  if (bulk_.stores || bulk_.returns) need("bulk_stores");
  if (!bulk_.loads) return;
  need("bulk_groups");
  bulk_.arrivals = names_.fresh("arrivals");
  bulk_.begun = names_.fresh("begun");
  bulk_.ended = names_.fresh("ended");
  line(fmt::format("unsigned long long* const {} = (unsigned long long*)(helve_shared + {});", bulk_.arrivals,
                   more_shared(bulk_.ring * 8)));
  line(fmt::format("unsigned {} = 0, {} = 0;", bulk_.begun, bulk_.ended));
  line(fmt::format("helve_open({}, {});", bulk_.arrivals, bulk_.ring));
}

void KernelEmitter::copy_bulk(const TileOp& s) {
  const bool boxes = s.op == TileOpcode::CpAsyncBulkTensor;
  block("if (tx == 0)", s.span, [&] { boxes ? begin_boxes(s) : begin_pieces(s); });
  if (s.begins_copy()) {
    commit(s);
  } else {
    line("helve_commit_stores();", s.span);
    wait_for_stores(0, s);
  }
  for (const size_t i : {0, 1}) {
    const auto found = position_.find(s.region(i).buffer.get());
    if (found == position_.end()) continue;
    int64_t& alignment = kernel_.alignments[found->second];
    alignment = std::max(alignment, kBulkUnit);
  }
}

void KernelEmitter::begin_pieces(const TileOp& s) {
  const Region &src = s.region(0), &dst = s.region(1);
  std::string reason;
  const std::optional<BulkPieces> pieces = bulk_pieces(src, dst, &reason);
  HELVE_CHECK(pieces, "a bulk copy that TMA cannot make: " + reason);
  const Expr bytes = simplify(pieces->length * int_imm(src.buffer->dtype.bytes()), facts_);
  std::vector<Expr> extents;
  for (const BulkPieces::Loop& loop : pieces->loops) extents.push_back(loop.extent);
  loop_nest(extents, s.span, [&](const std::vector<Expr>& at) {
    const auto address = [&](const Region& region, size_t i) {
      const Element e = element(*region.buffer, pieces->begin(region, i, at));
      return fmt::format("{} + {}", e.name, text(e.offset, c::precedence_of("+") + 1));
    };
    const std::string operands = address(dst, 1) + ", " + address(src, 0) + ", ";
    if (is_global(*dst.buffer)) {
      line(call("store_bulk", "", operands + text(bytes, c::kConditional)) + ";", s.span);
    } else {
      line(call("copy_bulk", "", fmt::format("{}{}, {}", operands, text(bytes, c::kConditional), arrival())) + ";",
           s.span);
    }
  });
}

std::string KernelEmitter::arrival() const {
  return fmt::format("{} + {} % {}", bulk_.arrivals, bulk_.begun, bulk_.ring);
}

void KernelEmitter::loop_nest(const std::vector<Expr>& extents, const Span& span,
                              const std::function<void(const std::vector<Expr>& at)>& body) {
  std::vector<Expr> at;
  const std::function<void()> from_next_loop = [&] {
    if (at.size() == extents.size()) return body(at);
    const VarRef var = make_var("i");
    const Stmt loop = helve::for_loop(LoopKind::Serial, var, extents[at.size()], helve::seq({}), span);
    at.push_back(Expr(var));
    serial_loop(*as<For>(loop), "", from_next_loop);
  };
  from_next_loop();
}

void KernelEmitter::commit(const TileOp& s) {
  if (bulk_.threads) line(call("commit_async", "", "") + ";", s.span);
  if (bulk_.loads) {
    line(fmt::format("helve_commit_bulk<{}>({}, {}, {});", bulk_.ring, bulk_.arrivals, bulk_.begun, bulk_.ended),
         s.span);
  }
  if (bulk_.stores) line("helve_commit_stores();", s.span);
}

void KernelEmitter::wait(const TileOp& s) {
  const int64_t pending = s.integer(0);
  if (bulk_.threads) line(call("wait_async", std::to_string(pending), "") + ";", s.span);
  if (bulk_.loads) {
    line(fmt::format("helve_wait_bulk<{}>({}, {}, {}, {});", bulk_.ring, bulk_.arrivals, bulk_.begun, bulk_.ended,
                     pending),
         s.span);
  }
  if (bulk_.stores) wait_for_stores(pending, s);
}

void KernelEmitter::wait_for_stores(int64_t pending, const TileOp& s) {
  const bool sources = s.flag(s.row().index_of("sources"));
  line(fmt::format("helve_wait_{}<{}>();", sources ? "sources" : "stores", pending), s.span);
}

}  // namespace helve::cuda
