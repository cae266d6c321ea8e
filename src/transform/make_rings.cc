// Copies of pipelined loops fill rings, from which products take.
// Input: kernels with tile operations, whose shared memory has no tiles. Output: T.Pipelined loops whose copies can
// fill a ring become serial ones, in which each group of copies is preceded by the acquisition of a slot and followed
// by its commit; what uses them stands between a wait and a release. The program stays one sequence, and the buffers
// keep their shapes: they have slots instead of stages, which no subscript names. Later one role fills and another one
// takes (split_roles), so that nothing of a loop or of the loops around it keeps copies from running ahead.
//
// A product whose sums the loop leaves alone, but for other products that add to them, may run while the next turn
// begins, so its slot is released one turn later.
//
// Around such loops, the copies of a tile of T.Persistent that begins with some fill rings of one slot: those of the
// next tile begin when the loop has used the last ones, while threads store the result.
//
// The rule: a machine with products of warpgroups; a kernel of whole warpgroups that multiplies by them, without
// collectives; a loop of two or more stages, all of whose copies that can begin early are boxes of tensors that the
// kernel leaves alone; loops and conditions around it that do not depend on memory that the kernel writes. Where only
// the last fails, a warning names the value. Other loops are left to pipeline_loops. A ring has as many slots as the
// loop has stages, or the most for which the block has the memory.
// Before:  for k in T.Pipelined(n, num_stages=4):   After:  for k in T.serial(n):
//              T.copy(A[k, :], x)                               T.ring_acquire(ring)
//              T.gemm(x, y, c, dispatch="wgmma")                T.cp_async_bulk_tensor(A[k, :], x, barriers=ring)
//                                                               T.ring_commit(ring)
//                                                               T.ring_wait(ring)
//                                                               T.gemm(x, y, c, dispatch="wgmma")
//                                                               T.ring_release(ring, pending=1)
//                                                           T.ring_release(ring)
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "helve/analysis/early_copies.h"
#include "helve/analysis/effects.h"
#include "helve/analysis/rings.h"
#include "helve/analysis/thread_form.h"
#include "helve/arith/simplify.h"
#include "helve/dispatch/group_products.h"
#include "helve/ir/tensor/ring.h"
#include "helve/ir/tensor/shared_place.h"
#include "helve/ir/tensor/visit.h"
#include "helve/layout/warp.h"
#include "helve/transform/passes.h"
#include "scope_facts.h"
#include "stage_memory.h"

namespace helve {

namespace {

/// Copies that are used by the same statements of a loop's body share a ring.
struct Group {
  std::vector<Stmt> fills;     ///< the copies
  std::vector<size_t> copies;  ///< their positions in the body
  size_t first = 0, last = 0;  ///< the statements between which their buffers are used
  bool overlaps = false;       ///< the last of them is a product that the next turn may find unfinished
  BufferRef ring;
};

/// Does the statement access the buffer?
bool uses(const Stmt& s, const Buffer& buffer) {
  const std::vector<RegionAccess> all = accesses(s);
  return std::any_of(all.begin(), all.end(), [&](const RegionAccess& a) { return a.region.buffer.get() == &buffer; });
}

class Rings final : public ScopedRewriter {
 public:
  Rings(const Function& f, const PassOptions& options) : ScopedRewriter(f), function_(f), options_(options) {}

  Stmt run() {
    Stmt out = rewrite(function_.body);
    for (const Diagnostic& each : idle_) {
      const bool fills = std::find(producing_.begin(), producing_.end(), each.span) != producing_.end();
      if (options_.warnings && options_.machine.is_gpu() && !fills) options_.warnings->push_back(each);
    }
    return out;
  }

 protected:
  Stmt leave(const Stmt& s, const Facts& facts) override {
    if (const Kernel* kernel = as<Kernel>(s)) {
      // A program for several machines asks for producers where a machine has none, too.
      if (kernel->producers > 0 && options_.machine.group_products) look_at_producers(*kernel);
      why_none_.clear();
      return with_memory(*kernel, s);
    }
    const For* loop = as<For>(s);
    if (!loop || !enclosing_kernel() || !why_unfit(*enclosing_kernel()).empty()) return s;
    const bool pipelined = loop->loop == LoopKind::Pipelined && loop->num_stages >= 2;
    const bool tiles = loop->loop == LoopKind::Persistent && has_ring_events(loop->body);
    if (!pipelined && !tiles) return s;
    Facts inside = facts;
    for (size_t d = 0; d < loop->vars.size(); ++d) {
      enter_loop(inside, loop->vars[d], loop->begins[d], loop->extents[d]);
    }
    std::optional<std::vector<Group>> groups = groups_of(*loop, inside);
    if (!groups) return s;
    if (const std::string value = crossing(*loop); !value.empty()) {
      why_none_ = fmt::format("what copies would need {}, which the kernel computes", value);
      if (options_.warnings && pipelined) {
        options_.warnings->push_back({Code::ValueCrossesRoles, s->span, {{"value", value}}, {}, {}});
      }
      return s;
    }
    if (tiles) {
      take_memory(*loop, 1, *groups);
      if (options_.choices) options_.choices->push_back({"T.Persistent", s->span, "rings", {}});
      return ringed(*loop, *groups);
    }
    std::string refused;
    const int stages = stages_with_room(*loop, *groups, &refused);
    if (stages < 2) {
      why_none_ = refused;
      return s;
    }
    take_memory(*loop, stages, *groups);
    if (options_.choices) {
      ScheduleChoice choice{"T.Pipelined", s->span, "rings", {}};
      if (stages < loop->num_stages) choice.declined.push_back({fmt::format("rings of {}", loop->num_stages), refused});
      options_.choices->push_back(std::move(choice));
    }
    return ringed(*loop, *groups);
  }

 private:
  /// Why it is no kernel that may have roles; empty if it is one.
  std::string why_unfit(const Kernel& kernel) const {
    const int64_t most = options_.machine.block_threads - kWarpgroup;
    if (!options_.machine.is_gpu() || !options_.machine.group_products) {
      return "the machine has no products of warpgroups, which take from rings";
    }
    if (function_.mesh) return "the function has a mesh";
    if (kernel.threads % kWarpgroup != 0) return "its threads are no multiple of 128";
    if (kernel.threads > most) return fmt::format("it has more than {} threads of its own", most);
    if (has_roles(kernel) || is_written_for_threads(kernel)) return "it is written for threads";
    if (has_collective(kernel.body)) return "it has collectives";
    return multiplies(kernel.body, kernel) ? "" : "none of its products is one of warpgroups (\"wgmma\")";
  }

  /// Keeps the warning of a kernel that asks for producers, if it has no ring for them.
  void look_at_producers(const Kernel& kernel) {
    const auto same = [&](const Diagnostic& each) { return each.span == kernel.span; };
    if (!memory_.empty() || has_ring_events(kernel.body)) {  // one of a kernel's versions is enough
      producing_.push_back(kernel.span);
    } else if (std::none_of(idle_.begin(), idle_.end(), same)) {
      std::string why = why_unfit(kernel);
      const bool can_change = !function_.mesh;
      if (why.empty()) why = why_none_;
      if (why.empty()) why = "it has no T.Pipelined loop of two or more stages";
      idle_.push_back({Code::HintWithoutEffect,
                       kernel.span,
                       {{"hint", "producers="}, {"reason", fmt::format("the kernel fills no ring, since {}", why)}},
                       {},
                       {can_change ? "change that, or leave producers out" : "leave producers out"}});
    }
  }

  /// Does the statement multiply by warpgroups?
  bool multiplies(const Stmt& s, const Kernel& kernel) const {
    const Facts none;
    return multiplies_by_groups(s, context_with(none, kernel));
  }

  LoweringContext context_with(const Facts& facts, const Kernel& kernel) const {
    LoweringContext out;
    out.function = &function_;
    out.kernel = &kernel;
    out.facts = &facts;
    out.machine = &options_.machine;
    return out;
  }

  /// The loop's copies in groups; nothing if one of them cannot fill a ring.
  std::optional<std::vector<Group>> groups_of(const For& loop, const Facts& facts) {
    const std::vector<Stmt> body = statements_of(loop.body);
    const AccessModel model = access_model(enclosing_kernel()->body, function_.may_alias);
    const std::unordered_set<const Buffer*> written = written_memory(enclosing_kernel()->body, function_.may_alias);
    std::vector<Group> out;
    for (const EarlyCopy& copy : early_copies(loop, model, function_.may_alias)) {
      if (!copy.reason.empty()) continue;  // it stays what it is
      const Region &src = copy.op->region(0), &dst = copy.op->region(1);
      const Stmt box = box_of(*copy.op, facts);
      const std::string what = fmt::format("the copy to '{}'", dst.buffer->name);
      if (!box || written.contains(src.buffer.get()) || !dst.whole()) {
        why_none_ = what + (!box          ? " is none that TMA makes of a tensor map (\"tma_tensor\")"
                            : dst.whole() ? " reads what the kernel writes"
                                          : " fills a part of it");
        return std::nullopt;
      }
      Group own{{box}, {copy.position}, body.size(), 0, false, nullptr};
      for (size_t i = copy.position + 1; i < body.size(); ++i) {
        if (!uses(body[i], *dst.buffer)) continue;
        own.first = std::min(own.first, i);
        own.last = i;
      }
      if (own.first == body.size()) {
        why_none_ = what + " has no use behind it";
        return std::nullopt;
      }
      const auto same = [&](const Group& g) { return g.first == own.first && g.last == own.last; };
      const auto at = std::find_if(out.begin(), out.end(), same);
      if (at == out.end()) {
        out.push_back(std::move(own));
      } else {
        at->fills.push_back(box);
        at->copies.push_back(copy.position);
      }
    }
    if (out.empty()) {
      why_none_ = "no copy of its pipelined loop can begin early";
      return std::nullopt;
    }
    for (Group& group : out) group.overlaps = runs_on(body, group.last);
    return out;
  }

  /// Is the statement a product by warpgroups whose sums nothing else in the loop's body accesses but products that add
  /// to them?
  bool runs_on(const std::vector<Stmt>& body, size_t at) const {
    const Buffer* sums = sums_of(body[at]);
    if (!sums) return false;
    return std::all_of(body.begin(), body.end(), [&](const Stmt& s) { return sums_of(s) == sums || !uses(s, *sums); });
  }

  /// The sums of a product by warpgroups; null for other statements.
  const Buffer* sums_of(const Stmt& s) const {
    const TileOp* op = as<TileOp>(s);
    return op && multiplies(s, *enclosing_kernel()) ? op->region(2).buffer.get() : nullptr;
  }

  /// The copy as one of boxes of a tensor, which waits for its commit; null if it is none.
  Stmt box_of(const TileOp& op, const Facts& facts) const {
    LoweringContext context = context_with(facts, *enclosing_kernel());
    context.fills_ring = true;
    const Stmt copy = map_parts(
        tile_op(TileOpcode::CopyAsync, op.operands, op.span, op.places),
        [&](const Expr& e) { return simplify(e, facts); }, [](const Stmt& part) { return part; });
    // What its operands read is named in front of it; it stands for the names, since no one writes that memory.
    Substitution values;
    const std::vector<Stmt> lowered = statements_of(lower_tile_op(*as<TileOp>(copy), *options_.schedules, context));
    for (size_t i = 0; i + 1 < lowered.size(); ++i) {
      const Bind* name = as<Bind>(lowered[i]);
      if (!name || !add_value(values, name->var, name->value)) return {};
    }
    const TileOp* box = as<TileOp>(lowered.back());
    const bool fills = box && box->op == TileOpcode::CpAsyncBulkTensor && box->begins_copy();
    return fills ? substitute(lowered.back(), values) : Stmt();
  }

  /// The value around the loop, or in its bounds, that a role without the rest of the kernel does not have.
  std::string crossing(const For& loop) const {
    const std::unordered_set<const Buffer*> written = written_memory(enclosing_kernel()->body, function_.may_alias);
    std::string out;
    std::unordered_map<const Var*, Expr> values;
    std::unordered_set<const Var*> fetched;  // from memory, by what updates it
    const std::function<void(const Expr&)> check = [&](const Expr& e) {
      walk(e, [&](const Expr& node) {
        const Load* load = as<Load>(node);
        if (load && out.empty() && written.contains(&buffer_of(load->buffer))) {
          out = fmt::format("'{}'", load->buffer->name);
        }
        const Var* var = as<Var>(node);
        if (var && out.empty() && fetched.contains(var)) out = fmt::format("'{}'", var->name);
        const auto value = var ? values.find(var) : values.end();
        if (value != values.end()) check(value->second);
      });
    };
    const std::function<bool(const Stmt&)> on_way = [&](const Stmt& s) -> bool {
      if (s.get() == &loop || (as<For>(s) && as<For>(s)->vars[0] == loop.vars[0])) {
        for (const Expr& e : loop.begins) check(e);
        for (const Expr& e : loop.extents) check(e);
        return true;
      }
      if (const Bind* bind = as<Bind>(s)) {
        values.emplace(bind->var.get(), bind->value);
      } else if (const VarRef name = named_by(s)) {
        fetched.insert(name.get());
      }
      bool found = false;
      for_each_part(s, [](const Expr&) {}, [&](const Stmt& part) { found |= on_way(part); });
      if (!found) return false;
      if (s->kind == StmtKind::While && out.empty()) out = "the condition of a while loop";
      if (s->kind == StmtKind::For || s->kind == StmtKind::If) {
        for_each_part(s, check, [](const Stmt&) {});
      }
      return true;
    };
    on_way(enclosing_kernel()->body);
    for (const EarlyCopy& copy :
         early_copies(loop, access_model(enclosing_kernel()->body, function_.may_alias), function_.may_alias)) {
      if (!copy.reason.empty()) continue;
      for_each_part(Stmt(copy.op), check, [](const Stmt&) {});
    }
    return out;
  }

  static BufferRef slots_of(const Stmt& fill, int stages) {
    const BufferRef& buffer = as<TileOp>(fill)->region(1).buffer;
    return with_slots(declare_again(*buffer), stages, buffer->span);
  }

  /// The bytes that rings of so many stages take beside what the buffers have.
  static int64_t bytes_of_rings(const std::vector<Group>& groups, int stages) {
    int64_t out = 0;
    for (const Group& group : groups) {
      for (const Stmt& fill : group.fills) {
        out += bytes_of(*slots_of(fill, stages)) - bytes_of(*as<TileOp>(fill)->region(1).buffer);
      }
    }
    return out;
  }

  /// The stages of the loop, or the most below for which the block has the memory; 1 if it has none for two. `refused`
  /// receives why it has none for more.
  int stages_with_room(const For& loop, const std::vector<Group>& groups, std::string* refused) const {
    for (int stages = loop.num_stages; stages > 1; --stages) {
      const int64_t more = bytes_of_rings(groups, stages);
      const std::string reason = why_no_room(*enclosing_kernel(), stages, extra_, more, options_);
      if (reason.empty()) return stages;
      if (refused->empty()) *refused = reason;
    }
    return 1;
  }

  /// Gives the buffers their slots.
  void take_memory(const For& loop, int stages, std::vector<Group>& groups) {
    extra_ += bytes_of_rings(groups, stages);
    for (Group& group : groups) {
      group.overlaps = group.overlaps && stages > 2;
      for (const Stmt& fill : group.fills) {
        const BufferRef slots = slots_of(fill, stages);
        slotted_.emplace(as<TileOp>(fill)->region(1).buffer.get(), slots);
        memory_.push_back(alloc(slots, slots->span));
      }
    }
    for (Group& group : groups) {
      group.ring = make_buffer("ring", {TypeCode::UInt, 64}, MemoryScope::Shared, {int_imm(2), int_imm(stages)}, {}, {},
                               loop.span);
      memory_.push_back(alloc(group.ring, loop.span));
      begins_.push_back(event(TileOpcode::MbarrierInit, group, loop.span));
    }
  }

  static Stmt event(TileOpcode op, const Group& group, const Span& span) {
    return tile_op(op, {whole_region(group.ring)}, span);
  }

  Stmt ringed(const For& loop, const std::vector<Group>& groups) const {
    const std::vector<Stmt> before = statements_of(loop.body);
    std::vector<Stmt> body;
    for (size_t i = 0; i < before.size(); ++i) {
      for (const Group& group : groups) {
        if (group.first != i) continue;
        body.push_back(event(TileOpcode::RingAcquire, group, loop.span));
        for (const Stmt& fill : group.fills) body.push_back(filling(*as<TileOp>(fill), group.ring));
        body.push_back(event(TileOpcode::RingCommit, group, loop.span));
        body.push_back(event(TileOpcode::RingWait, group, loop.span));
      }
      const auto copies = [&](const Group& g) { return std::count(g.copies.begin(), g.copies.end(), i) > 0; };
      if (std::none_of(groups.begin(), groups.end(), copies)) body.push_back(before[i]);
      for (const Group& group : groups) {
        if (group.last == i) body.push_back(release(group, group.overlaps ? 1 : 0, loop.span));
      }
    }
    const LoopKind kind = loop.loop == LoopKind::Pipelined ? LoopKind::Serial : loop.loop;
    std::vector<Stmt> out = {
        for_loop(kind, loop.vars, loop.begins, loop.extents, seq(std::move(body)), 1, loop.span, loop.scheduled)};
    for (const Group& group : groups) {
      if (group.overlaps) out.push_back(release(group, 0, loop.span));
    }
    return seq(std::move(out), loop.span);
  }

  static Stmt release(const Group& group, int64_t pending, const Span& span) {
    return tile_op(TileOpcode::RingRelease, {whole_region(group.ring), pending}, span);
  }

  static Stmt filling(const TileOp& box, const BufferRef& ring) {
    return Stmt(
        copy_with(box, [&](TileOp& out) { out.operands[out.row().index_of("barriers")] = whole_region(ring); }));
  }

  /// The kernel with the memory of its rings, which lives as long as it does.
  Stmt with_memory(const Kernel& kernel, const Stmt& self) {
    std::vector<Stmt> body = std::exchange(memory_, {});
    const std::vector<Stmt> begins = std::exchange(begins_, {});
    const BufferMap slotted = std::exchange(slotted_, {});
    extra_ = 0;
    if (body.empty()) return self;
    body.insert(body.end(), begins.begin(), begins.end());
    body.push_back(helve::rewrite(replace_buffers(kernel.body, slotted), [&](const Stmt& s) {
      const Alloc* memory = as<Alloc>(s);
      return memory && slotted.contains(memory->buffer.get()) ? seq({}, s->span) : s;
    }));
    return Stmt(copy_with(kernel, [&](Kernel& out) { out.body = seq(std::move(body), kernel.body->span); }));
  }

  const Function& function_;
  const PassOptions& options_;
  // Of the kernel that is being read:
  BufferMap slotted_;  ///< buffers that get slots
  std::vector<Stmt> memory_;  ///< allocations of these, and of the rings
  std::vector<Stmt> begins_;  ///< initializations of the rings
  int64_t extra_ = 0;  ///< bytes of the slots
  std::string why_none_;  ///< why a loop of it has no ring
  // Of the function, kernels that ask for producers:
  std::vector<Span> producing_;  ///< they have rings
  std::vector<Diagnostic> idle_;  ///< the warnings of those that have none
};

}  // namespace

FunctionRef make_rings(const FunctionRef& f, const PassOptions& options) {
  return with_body(f, Rings(*f, options).run());
}

}  // namespace helve
