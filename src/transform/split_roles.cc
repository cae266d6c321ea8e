// What fills rings and what takes from them become two roles.
// Input: the program of the threads of a block, whose rings are filled and taken in one sequence. Output: kernels with
// rings have two roles: the kernel's own threads keep all but the copies that fill rings, further warps have these
// alone, under the same loops and branches. One thread of it works; registers that the others do not need go to the
// first role, unless T.Kernel says how many threads and registers each has. The result is checked: put together again
// the roles are the sequence that they were cut from, and its rings are in order (analysis/rings.h).
// Before:  for k in T.serial(n):                       After:  with T.role(0, 256, registers=232):
//              T.ring_acquire(ring)                                for k in T.serial(n):
//              T.cp_async_bulk_tensor(A[k, :], x,                      T.ring_wait(ring)
//                                     barriers=ring)                   ... x ...
//              T.ring_commit(ring)                                     T.ring_release(ring)
//              T.ring_wait(ring)                               with T.role(256, 128, registers=40, elect=True):
//              ... x ...                                           for k_1 in T.serial(n):
//              T.ring_release(ring)                                    T.ring_acquire(ring)
//                                                                      T.cp_async_bulk_tensor(A[k_1, :], x,
//                                                                      barriers=ring) T.ring_commit(ring)
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "helve/analysis/early_copies.h"
#include "helve/analysis/rings.h"
#include "helve/ir/tensor/group_product.h"
#include "helve/ir/tensor/renewed.h"
#include "helve/ir/tensor/ring.h"
#include "helve/ir/tensor/visit.h"
#include "helve/layout/warp.h"
#include "helve/support/diagnostic.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

constexpr int64_t kMostRegisters = 240;  // of a thread, in a budget
constexpr int64_t kUnit = 8;  // in which budgets are counted

/// The threads that fill, and the registers of each role's threads; 0: as many as the kernel begins with.
struct Budget {
  int64_t threads = 0;
  int64_t takes = 0;
  int64_t fills = 0;
};

/// The registers with which threads have to begin for the largest product by warpgroups.
int64_t launch_registers(const Stmt& s) {
  int64_t out = 0;
  walk(s, [&](const Stmt& each) {
    const TileOp* op = as<TileOp>(each);
    if (op && op->op == TileOpcode::Wgmma) out = std::max(out, group_operands(*op).product().launch_registers());
  });
  return out;
}

/// The budget that the program gives. The threads begin with equal parts of all registers, which is what there is.
Budget given_budget(const Kernel& kernel, const Machine& machine, int64_t needed) {
  const int64_t launched = kernel.threads + kernel.producers, each = machine.launch_registers(launched);
  const auto refuse = [&](const char* parameter, const std::string& value, const std::string& reason,
                          const std::string& remedy) {
    throw UserError(
        Code::BadArgument, kernel.span,
        {{"function", "T.Kernel"}, {"parameter", parameter}, {"value", value}, {"reason", reason}, {"remedy", remedy}});
  };
  if (each < needed) {
    refuse("producers", std::to_string(kernel.producers),
           fmt::format("a product needs {} registers of each thread, and {} threads begin with {}", needed, launched,
                       each),
           "use fewer threads, or smaller tiles");
  }
  if (kernel.registers.empty()) return {kernel.producers, 0, 0};
  const int64_t takes = kernel.registers[0], fills = kernel.registers[1];
  const auto own = [&](int64_t given) { return given ? given : each; };  // those that threads begin with
  const int64_t held = own(takes) * kernel.threads + own(fills) * kernel.producers;
  const std::string budgets = fmt::format("[{}, {}]", takes, fills);
  if (held > each * launched) {
    refuse("registers", budgets,
           fmt::format("{} threads with {} and {} with {} have {}, and a block of {} threads has {}", kernel.threads,
                       own(takes), kernel.producers, own(fills), held, launched, each * launched),
           "give one role fewer");
  }
  if (own(takes) < needed) {
    refuse("registers", budgets, fmt::format("a product needs {} registers of each thread", needed),
           fmt::format("give the first role {} or more", (needed + kUnit - 1) / kUnit * kUnit));
  }
  return {kernel.producers, takes, fills};
}

/// Budgets are those of whole warpgroups, and of a block that has its multiprocessor for itself. One warpgroup has
/// enough registers without: a warp beside it leaves room for a second block.
Budget budget_of(int64_t threads, const Machine& machine) {
  const int64_t groups = threads / kWarpgroup, launched = threads + kWarpgroup;
  if (groups < 2) return {kWarp, 0, 0};
  const int64_t fills = groups == 2 ? 40 : groups == 3 ? 32 : 24;
  const int64_t all = machine.launch_registers(launched) * launched;
  const int64_t takes = (all - fills * kWarpgroup) / threads / kUnit * kUnit;
  return {kWarpgroup, std::min(takes, kMostRegisters), fills};
}

/// Does it fill a ring?
bool fills(const TileOp& op) {
  const std::optional<RingEvent> event = ring_event(op);
  return event == RingEvent::Acquire || event == RingEvent::Commit ||
         (op.is_by_tma() && op.barriers() && is_ring(*op.barriers()->buffer));
}

bool has_fills(const Stmt& s) { return s && has_operation(s, fills); }

bool is_empty(const Stmt& s) { return !s || (s->kind == StmtKind::Seq && as<Seq>(s)->stmts.empty()); }

/// The slice that fills: its operations, the loops and branches around them, and the names that these use.
class Fills {
 public:
  explicit Fills(const Stmt& body) {
    walk(body, [&](const Stmt& s) {
      if (const Bind* bind = as<Bind>(s)) values_.emplace(bind->var.get(), bind->value);
    });
    need(body);
  }

  Stmt slice(const Stmt& s) const {
    if (!s) return s;
    if (const Seq* several = as<Seq>(s)) {
      std::vector<Stmt> out;
      for (const Stmt& each : several->stmts) {
        const Bind* bind = as<Bind>(each);
        if (bind ? needed_.contains(bind->var.get()) : has_fills(each)) out.push_back(slice(each));
      }
      return seq(std::move(out), s->span);
    }
    if (const If* branch = as<If>(s)) {
      const Stmt no = slice(branch->else_body);
      return if_then(branch->condition, slice(branch->then_body), is_empty(no) ? Stmt() : no, s->span);
    }
    const Bind* bind = as<Bind>(s);
    if (bind ? !needed_.contains(bind->var.get()) : !has_fills(s)) return seq({});
    return map_parts(s, [](const Expr& e) { return e; }, [&](const Stmt& part) { return slice(part); });
  }

 private:
  void need(const Expr& e) {
    walk(e, [&](const Expr& node) {
      const Var* var = as<Var>(node);
      const auto value = var ? values_.find(var) : values_.end();
      if (value != values_.end() && needed_.insert(var).second) need(value->second);
    });
  }
  void need(const Stmt& s) {
    if (!has_fills(s)) return;
    for_each_part(s, [&](const Expr& e) { need(e); }, [&](const Stmt& part) { need(part); });
  }

  std::unordered_map<const Var*, Expr> values_;
  std::unordered_set<const Var*> needed_;
};

/// The slice that takes: all but what fills.
Stmt without_fills(const Stmt& s) {
  return rewrite(s, [](const Stmt& each) -> Stmt {
    const TileOp* op = as<TileOp>(each);
    if (op && fills(*op)) return seq({});
    const If* branch = as<If>(each);
    if (branch && is_empty(branch->then_body) && is_empty(branch->else_body)) return seq({});
    const For* loop = as<For>(each);
    return loop && is_empty(loop->body) ? seq({}) : each;
  });
}

bool is_operation(const Stmt& s, TileOpcode what) {
  const TileOp* op = as<TileOp>(s);
  return op && op->op == what;
}

Ref<const Kernel> parted(const Ref<const Kernel>& kernel, const Machine& machine) {
  std::vector<Stmt> common, own;
  const std::vector<Stmt> body = statements_of(kernel->body);
  const size_t count = common_statements(body);
  common.assign(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(count));
  for (size_t i = count; i < body.size(); ++i) {
    const Alloc* memory = as<Alloc>(body[i]);
    const bool shared = memory && memory->buffer->scope == MemoryScope::Shared;
    (shared ? common : own).push_back(body[i]);
  }
  std::vector<Stmt> end;  // behind which no block of a cluster uses the memory of another one
  while (!own.empty() && is_operation(own.back(), TileOpcode::SyncCluster)) {
    end.push_back(own.back());
    own.pop_back();
  }
  // All threads find the mbarriers of the rings ready.
  const bool ready = !common.empty() && (is_operation(common.back(), TileOpcode::SyncThreads) ||
                                         is_operation(common.back(), TileOpcode::SyncCluster));
  if (!ready) {
    common.push_back(tile_op(TileOpcode::SyncThreads, {}, kernel->span));
  }
  const Stmt all = seq(std::move(own), kernel->body->span);
  const Budget budget = kernel->producers ? given_budget(*kernel, machine, launch_registers(kernel->body))
                                          : budget_of(kernel->threads, machine);
  common.push_back(role(0, kernel->threads, budget.takes, false, without_fills(all), kernel->span));
  common.push_back(
      role(kernel->threads, budget.threads, budget.fills, true, renewed(Fills(all).slice(all)), kernel->span));
  common.insert(common.end(), end.begin(), end.end());
  const Stmt out = seq(std::move(common), kernel->body->span);
  return copy_with(*kernel, [&](Kernel& copy) {
    copy.body = out;
    copy.producers = 0;
    copy.registers.clear();
  });
}

}  // namespace

FunctionRef split_roles(const FunctionRef& f, const PassOptions& options) {
  return with_body(f, rewrite(f->body, [&](const Stmt& s) -> Stmt {
                     const Kernel* kernel = as<Kernel>(s);
                     if (!kernel || has_roles(*kernel) || rings_of(s).empty()) return s;
                     const Ref<const Kernel> given(kernel);
                     const auto refuse = [&](const RingFault& fault) {
                       throw UserError(Code::RolesOutOfStep, fault.span, {{"reason", fault.reason}},
                                       {{kernel->span, "the kernel"}});
                     };
                     if (const std::optional<RingFault> fault = ring_fault(*f, given)) refuse(*fault);
                     const Ref<const Kernel> roles = parted(given, options.machine);
                     if (const std::optional<RingFault> fault = ring_fault(*f, roles)) refuse(*fault);
                     return Stmt(roles);
                   }));
}

}  // namespace helve
