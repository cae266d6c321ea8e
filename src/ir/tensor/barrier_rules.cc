// The rules of mbarriers: which memory they are, which copies they count, and that nothing else touches them.
// They are initialized at one place that every run passes first, so that the threads can count their phases.
#include <fmt/format.h>

#include <bit>
#include <unordered_map>
#include <unordered_set>

#include "helve/ir/tensor/copy_queue.h"
#include "helve/ir/tensor/ring.h"
#include "helve/ir/tensor/visit.h"
#include "verify_rules.h"

namespace helve::verify_rules {

namespace {

constexpr int64_t kMaxBarriers = 1024;  // of an array
constexpr int64_t kMaxBytes = (1 << 20) - 1;  // that an mbarrier counts in a phase

[[noreturn]] void refuse_barriers(const TileOp& op, const std::string& reason, const std::string& remedy) {
  const size_t at = op.row().index_of("barriers");
  const Buffer& buffer = *op.barriers()->buffer;
  refuse_argument(operation_text(op), "barriers", fmt::format("'{}'", buffer.name), reason, remedy, op.place(at),
                  {declaration_note(buffer)});
}

/// A row for the data of the slots, one for their room.
void check_ring(const TileOp& op, const std::optional<std::vector<int64_t>>& shape) {
  constexpr int64_t kMaxSlots = kMaxBarriers / 2;
  const bool fits =
      shape && shape->size() == 2 && shape->front() == 2 && shape->back() > 0 && shape->back() <= kMaxSlots;
  if (fits) return;
  refuse_barriers(op, fmt::format("its shape is not (2, number of slots from 1 to {})", kMaxSlots),
                  "allocate T.alloc_shared((2, 4), \"uint64\") for a ring of 4 slots");
}

void check_array(const TileOp& op) {
  const Region& region = *op.barriers();
  const Buffer& buffer = *region.buffer;
  const char* remedy = "allocate them with T.alloc_shared((16,), \"uint64\"), and name the whole array";
  if (buffer.scope != MemoryScope::Shared) refuse_barriers(op, "it is not shared memory", remedy);
  if (buffer.dtype != DType{TypeCode::UInt, 64}) refuse_barriers(op, "an mbarrier is a uint64", remedy);
  if (is_tiled(buffer) || buffer.layout || !region.whole()) {
    refuse_barriers(op, "it is not a whole array in the order of its elements", remedy);
  }
  const std::optional<std::vector<int64_t>> shape = constant_shape(buffer.shape);
  const bool of_ring = ring_event(op) || (buffer.rank() == 2 && (op.op == TileOpcode::MbarrierInit || op.is_by_tma()));
  if (of_ring) return check_ring(op, shape);
  const bool counts = shape && shape->size() == 1 && shape->front() > 0 && shape->front() <= kMaxBarriers &&
                      std::has_single_bit(static_cast<uint64_t>(shape->front()));
  if (!counts) {
    refuse_barriers(op, fmt::format("its shape is not one power of two up to {}", kMaxBarriers), remedy);
  }
  if (copy_queue(op).kind == CopyQueue::Kind::Bytes && shape->front() != 2) {
    refuse_barriers(op, fmt::format("there are {} of them", shape->front()),
                    "two count the bytes of other cores in turn: allocate T.alloc_shared((2,), \"uint64\")");
  }
}

/// What counts a copy must suit its direction, and then no T.wait_async does.
void check_copy(const TileOp& op) {
  const auto refuse = [&](const char* parameter, const char* reason, const char* remedy) {
    const size_t at = op.row().index_of(parameter);
    const std::string value = op.is_region(at) ? fmt::format("'{}'", op.region(at).buffer->name) : "True";
    refuse_argument(operation_text(op), parameter, value, reason, remedy, op.place(at));
  };
  const int64_t together = op.multicast();
  if (together != 1 && (together < 2 || !op.barriers() || !is_ring(*op.barriers()->buffer))) {
    refuse_argument(operation_text(op), "multicast", std::to_string(together),
                    together < 2 ? "it is a number of blocks" : "only the slots of a ring are filled by several blocks",
                    "leave it out, or fill a ring by 2 blocks or more", op.place(op.row().index_of("multicast")));
  }
  const bool loads = is_global(*op.region(0).buffer), bulk = op.flag(op.row().index_of("bulk_group"));
  if (op.barriers() && !loads) {
    refuse("barriers", "mbarriers count copies to shared memory",
           "write bulk_group=True for a copy from shared memory");
  }
  if (bulk && loads) {
    refuse("bulk_group", "bulk groups count copies from shared memory", "give a copy to shared memory `barriers`");
  }
  if (op.warpgroup() < 0 || (op.warpgroup() > 0 && !bulk)) {
    refuse_argument(operation_text(op), "warpgroup", std::to_string(op.warpgroup()),
                    bulk ? "warpgroups have numbers from 0 on" : "the first thread waits for other copies",
                    "leave it out, or write bulk_group=True for a copy from shared memory",
                    op.place(op.row().index_of("warpgroup")));
  }
  if ((op.barriers() || bulk) && (!op.begins_copy() || op.waits_for_sources())) {
    refuse(op.begins_copy() ? "sources" : "wait", "a copy in a group is waited for with its group",
           loads ? "wait with T.mbarrier_wait" : "wait with T.wait_bulk");
  }
}

void check_bytes(const TileOp& op) {
  const size_t at = op.row().index_of("bytes");
  const int64_t bytes = op.integer(at);
  if (bytes > 0 && bytes <= kMaxBytes) return;
  refuse_argument(operation_text(op), "bytes", std::to_string(bytes),
                  fmt::format("an mbarrier counts 1 to {} bytes", kMaxBytes), "wait for as many as the cores store",
                  op.place(at));
}

}  // namespace

void verify_barriers(const TileOp& op) {
  if (op.barriers()) check_array(op);
  if (op.op == TileOpcode::CommWaitBytes) check_bytes(op);
  if (op.is_by_tma()) check_copy(op);
}

void verify_barrier_uses(const Kernel& kernel) {
  std::unordered_map<const Buffer*, Span> arrays;  // and their first use
  walk(kernel.body, [&](const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    if (op && op->barriers()) arrays.emplace(op->barriers()->buffer.get(), op->span);
  });
  if (arrays.empty()) return;
  std::unordered_set<const StmtNode*> first_level = {kernel.body.get()};
  if (const Seq* all = as<Seq>(kernel.body)) {
    for (const Stmt& s : all->stmts) first_level.insert(s.get());
  }
  const auto check_other = [&](const Storage* buffer, const Span& span) {
    const auto found = arrays.find(static_cast<const Buffer*>(buffer));
    if (found == arrays.end()) return;
    refuse_argument("T.mbarrier_init", "barriers", fmt::format("'{}'", buffer->name), "it is accessed as memory here",
                    "access mbarriers by operations with `barriers` alone", span,
                    {{found->second, "its first use as mbarriers"}});
  };
  std::unordered_map<const Buffer*, const TileOp*> ready, first;
  walk(kernel.body, [&](const Stmt& s) {
    if (const Store* n = as<Store>(s)) check_other(n->buffer.get(), n->span);
    const TileOp* op = as<TileOp>(s);
    for (size_t i = 0; op && i < op->operands.size(); ++i) {
      const bool other = op->is_region(i) && op->row().params[i].kind != ParamKind::Barriers;
      if (other) check_other(op->region(i).buffer.get(), op->place(i));
    }
    if (!op || !op->barriers()) return;
    const Buffer* buffer = op->barriers()->buffer.get();
    if (op->op != TileOpcode::MbarrierInit) {
      if (!ready.contains(buffer)) {
        refuse_barriers(*op, "they are not initialized before", "write T.mbarrier_init at the start of the kernel");
      }
      const TileOp* other = first.emplace(buffer, op).first->second;
      if (copy_queue(*other).kind != copy_queue(*op).kind) {
        refuse_argument(operation_text(*op), "barriers", fmt::format("'{}'", buffer->name),
                        "they count other copies elsewhere", "give each kind of copies mbarriers of its own",
                        op->place(op->row().index_of("barriers")), {{other->span, "another use"}});
      }
    } else if (!first_level.contains(s.get()) || !ready.emplace(buffer, op).second) {
      refuse_barriers(*op, "mbarriers are initialized once, in no loop and under no condition",
                      "write one T.mbarrier_init for them at the start of the kernel");
    }
  });
  walk_exprs(kernel.body, [&](const Expr& e) {
    if (const Load* load = as<Load>(e)) check_other(load->buffer.get(), load->span);
  });
}

}  // namespace helve::verify_rules
