// TMA copies of the block, the mbarriers and the bulk groups that count them.
// Thread 0 issues them, or the first thread of a warpgroup. An array of mbarriers is a ring: a group of copies has the
// next one, at which the thread and the bytes arrive; variables count the groups that were committed and those that
// were waited for. If all mbarriers are in use, a commit waits for the oldest group, which is legal because a copy may
// complete at any time before its wait.
#include <fmt/format.h>

#include <algorithm>

#include "helve/analysis/bulk_copy.h"
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/copy_queue.h"
#include "helve/ir/tensor/ring.h"
#include "helve/ir/tensor/visit.h"
#include "helve/layout/warp.h"
#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cuda {

void KernelEmitter::copy_bulk(const TileOp& s) {
  const bool counted = s.barriers() || s.flag(s.row().index_of("bulk_group"));
  HELVE_CHECK(counted, "a copy by TMA that no group counts");
  const bool boxes = s.op == TileOpcode::CpAsyncBulkTensor;
  const auto copies = [&] { boxes ? begin_boxes(s) : begin_pieces(s); };
  if (role_ && role_->elect) {
    copies();
  } else {
    const int64_t starts = (role_ ? role_->first : 0) + s.warpgroup() * kWarpgroup;
    block(fmt::format("if (tx == {})", starts), s.span, copies);
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
      line(call("copy_bulk", "", fmt::format("{}{}, {}", operands, text(bytes, c::kConditional), arrival(s))) + ";",
           s.span);
    }
  });
}

/// The mbarrier of the group that is open.
std::string KernelEmitter::arrival(const TileOp& s) const {
  if (is_ring(*s.barriers()->buffer)) return fmt::format("{0} + {1}.at", places(s).name, places(s).next);
  const Ring& ring = rings_.at(s.barriers()->buffer.get());
  return fmt::format("{} + {} % {}", ring.name, ring.begun, ring.length);
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

void KernelEmitter::commit(const TileOp& s) { line(call("commit_async", "", "") + ";", s.span); }

void KernelEmitter::wait(const TileOp& s) { line(call("wait_async", std::to_string(s.pending()), "") + ";", s.span); }

void KernelEmitter::commit_bulk(const TileOp& s) {
  need("bulk_stores");
  line("helve_commit_stores();", s.span);
}

void KernelEmitter::wait_bulk(const TileOp& s) {
  need("bulk_stores");
  line(fmt::format("helve_wait_{}<{}>();", s.waits_for_sources() ? "sources" : "stores", s.pending()), s.span);
}

void KernelEmitter::mbarrier_init(const TileOp& s) {
  const Buffer& array = *s.barriers()->buffer;
  if (is_ring(array)) return open_ring(s);
  if (counts_bytes(source_.stmt->body, array)) return init_phases(s);
  need("bulk_groups");
  const Ring ring{names_.of(&array, array.name), names_.fresh("begun"), names_.fresh("ended"),
                  *int_value(array.shape[0])};
  line(fmt::format("unsigned {} = 0, {} = 0;", ring.begun, ring.ended));
  line(fmt::format("helve_open({}, {});", ring.name, ring.length), s.span);
  rings_.emplace(&array, ring);
}

void KernelEmitter::mbarrier_commit(const TileOp& s) {
  const Ring& ring = rings_.at(s.barriers()->buffer.get());
  line(fmt::format("helve_commit_bulk<{}>({}, {}, {});", ring.length, ring.name, ring.begun, ring.ended), s.span);
}

void KernelEmitter::mbarrier_wait(const TileOp& s) {
  const Ring& ring = rings_.at(s.barriers()->buffer.get());
  line(fmt::format("helve_wait_bulk<{}>({}, {}, {}, {});", ring.length, ring.name, ring.begun, ring.ended, s.pending()),
       s.span);
}

}  // namespace helve::cuda
