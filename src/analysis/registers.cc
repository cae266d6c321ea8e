// Uses of fragments, one by one.
// Whether the lanes of a warp agree is asked of the statements on the way from the loop over threads to the use, and of
// the lazy operators around it.
#include "helve/analysis/registers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "helve/analysis/effects.h"
#include "helve/analysis/path_facts.h"
#include "helve/arith/evaluator.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/region.h"
#include "helve/ir/tensor/visit.h"
#include "helve/layout/warp.h"

namespace helve {

namespace {

constexpr const char* kThroughShared = "exchange the values through shared memory";

const For* thread_loop(const Stmt& s) {
  const For* loop = as<For>(s);
  return loop && loop->loop == LoopKind::Thread ? loop : nullptr;
}

bool is_var(const Expr& e, const Var* var) { return var && as<Var>(e) == var; }

bool is_lazy(const Apply& a) { return a.op == Op::Select || a.op == Op::And || a.op == Op::Or; }

/// Does every access of a thread to a fragment name its own row? Most kernels need no further question.
bool names_own_rows(const Stmt& s, const Var* thread) {
  if (const For* loop = thread_loop(s)) thread = loop->vars[0].get();
  const auto is_own = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
    return buffer.scope != MemoryScope::Fragment || is_var(indices[0], thread);
  };
  const Store* store = as<Store>(s);
  bool own = !store || is_own(*store->buffer, store->indices);
  const auto expr = [&](const Expr& e) {
    walk(e, [&](const Expr& each) {
      const Load* load = as<Load>(each);
      if (load) own = own && is_own(buffer_of(load->buffer), load->indices);
    });
  };
  const TileOp* op = thread ? as<TileOp>(s) : nullptr;  // others are of all threads
  for (size_t i = 0; op && i < op->operands.size(); ++i) {
    if (op->is_region(i)) own = own && is_own(*op->region(i).buffer, region_begin(op->region(i)));
  }
  for_each_part(s, expr, [&](const Stmt& part) { own = own && names_own_rows(part, thread); });
  return own;
}

/// Which values are the same in all threads of a warp.
class WarpValues {
 public:
  explicit WarpValues(const Stmt& body) { visit(body, false); }

  /// It may depend on the thread's number by whole warps.
  bool agree(const Expr& e) {
    const auto known = agree_.find(e.get());
    if (known != agree_.end()) return known->second;
    const bool result = decide(e);
    return agree_[e.get()] = result;
  }

 private:
  /// Names that are bound in each thread, and loops that begin at a place of the thread's own.
  void visit(const Stmt& s, bool inside) {
    if (const VarRef var = named_by(s); inside && var) own_.insert(var.get());
    if (const For* loop = as<For>(s)) {
      const bool threads = loop->loop == LoopKind::Thread;
      for (size_t d = 0; d < loop->vars.size(); ++d) {
        if (threads || !agree(loop->begins[d])) own_.insert(loop->vars[d].get());
      }
      if (threads) threads_.insert(loop->vars[0].get());
      inside |= threads;
    }
    for_each_part(s, [](const Expr&) {}, [&](const Stmt& part) { visit(part, inside); });
  }

  bool decide(const Expr& e) {
    if (const Var* var = as<Var>(e)) return !own_.contains(var);
    if (const Load* load = as<Load>(e)) {
      const MemoryScope scope = buffer_of(load->buffer).scope;
      if (scope == MemoryScope::Fragment || scope == MemoryScope::Local) return false;
    }
    const Apply* apply = as<Apply>(e);
    if (apply && apply->args.size() == 2 && threads_.contains(as<Var>(apply->args[0]))) {
      const int64_t* by = int_value(apply->args[1]);
      const bool whole = by && *by > 0 && *by % kWarp == 0;
      if (whole && (apply->op == Op::FloorDiv || apply->op == Op::Lt || apply->op == Op::Ge)) return true;
    }
    bool all = true;
    for_each_child(e, [&](const Expr& child) { all = all && agree(child); });
    return all;
  }

  std::unordered_set<const Var*> own_, threads_;
  std::unordered_map<const ExprNode*, bool> agree_;
};

class Uses {
 public:
  explicit Uses(const Function& f) : f_(f), model_(access_model(f)), facts_(model_), values_(f.body) {}

  std::optional<RegisterFault> first_fault() {
    for (const Access& access : model_.accesses) {
      const bool by_thread = std::any_of(access.path.begin(), access.path.end(),
                                         [](const StepRef& step) { return thread_of(*step) != nullptr; });
      const bool element =
          access.load || access.stmt->kind == StmtKind::Store || (access.stmt->kind == StmtKind::TileOp && by_thread);
      if (!element || access.buffer->scope != MemoryScope::Fragment) continue;
      if (std::optional<RegisterFault> fault = fault_of(access)) return fault;
    }
    return fault_of_operands(f_.body);
  }

 private:
  std::optional<RegisterFault> fault_of(const Access& access) {
    const Span span = access.written[0].begin->span;
    const std::string name = fmt::format("the first subscript of fragment '{}'", access.buffer->name);
    size_t inside = access.path.size();
    while (inside > 0 && !thread_of(*access.path[inside - 1])) --inside;
    if (inside == 0) return {{span, name + " is no thread here", "access fragments in T.threads loops"}};
    const VarRef& thread = thread_of(*access.path[inside - 1])->vars[0];
    const Expr& owner = access.ranges[0].begin;
    const Facts& facts = facts_.after(access.path);
    if (is_var(owner, thread.get()) || can_prove(apply(Op::Eq, {owner, Expr(thread)}), facts)) return std::nullopt;
    Expr bits;
    const Apply* flip = as_op(owner, Op::BitXor);
    for (size_t i : {0, 1}) {
      if (flip && is_var(flip->args[i], thread.get())) bits = flip->args[1 - i];
    }
    const bool of_warp = !bits && can_prove(apply(Op::Eq, {warp_of(owner), warp_of(Expr(thread))}), facts);
    if (!bits && !of_warp) {
      return {{span, name + " is neither the thread, nor known to be one of its warp",
               std::string("read x[tx ^ bits, i] or x[tx // 32 * 32 + lane % 32, i], or ") + kThroughShared}};
    }
    if (access.write) {
      return {{access.span, "a thread stores to the registers of another",
               "store to shared memory, which all threads read"}};
    }
    for (size_t i = inside; i < access.path.size(); ++i) {
      if (!warps_agree(*access.path[i])) return divergent(span);
    }
    if (access.load) exchanges_.insert(access.load);
    if (of_warp || stays_in_warp(bits, facts)) return std::nullopt;
    return {{span,
             fmt::format("the bits that are flipped are not known to be below {}, so that both threads are of one warp",
                         kWarp),
             kThroughShared}};
  }

  static Expr warp_of(const Expr& thread) { return apply(Op::FloorDiv, {thread, int_imm(kWarp)}); }

  static const For* thread_of(const Step& step) {
    const bool loop = step.stmt && step.stmt->kind == StmtKind::For;
    const For* found = loop ? static_cast<const For*>(step.stmt) : nullptr;
    return found && found->loop == LoopKind::Thread ? found : nullptr;
  }

  static RegisterFault divergent(const Span& span) {
    return {span, "the threads of a warp may take different ways before they read each other's registers",
            "read them before the condition or the loop, into memory of the thread"};
  }

  /// Do all lanes take the step, and as often? Operators are asked apart: one operand may stand at several places.
  bool warps_agree(const Step& step) {
    if (!step.stmt) return true;
    if (step.stmt->kind == StmtKind::If) return values_.agree(static_cast<const If*>(step.stmt)->condition);
    if (step.stmt->kind == StmtKind::While) return values_.agree(static_cast<const While*>(step.stmt)->condition);
    if (step.stmt->kind != StmtKind::For) return true;
    const std::vector<Expr>& extents = static_cast<const For*>(step.stmt)->extents;
    return std::all_of(extents.begin(), extents.end(), [&](const Expr& e) { return values_.agree(e); });
  }

  /// For all values of the loop's variable on which the bits depend.
  static bool stays_in_warp(const Expr& bits, const Facts& facts) {
    if (interval_of(bits, facts).within(0, kWarp - 1)) return true;
    std::unordered_set<const Var*> vars;
    walk(bits, [&](const Expr& e) {
      if (const Var* var = as<Var>(e)) vars.insert(var);
    });
    if (vars.size() != 1) return false;
    const Interval range = facts.range_of(*vars.begin());
    if (!range.low || !range.high || *range.high - *range.low >= 64) return false;
    const Evaluator value(bits, {VarRef(*vars.begin())});
    for (int64_t v = *range.low; v <= *range.high; ++v) {
      const std::optional<int64_t> one = value.at(std::array{v});
      if (!one || *one < 0 || *one >= kWarp) return false;
    }
    return true;
  }

  std::optional<RegisterFault> fault_of_operands(const Stmt& body) {
    std::optional<RegisterFault> fault;
    walk_exprs(body, [&](const Expr& e) {
      const Apply* operation = as<Apply>(e);
      if (fault || exchanges_.empty() || !operation || !is_lazy(*operation)) return;
      if (values_.agree(operation->args[0])) return;
      for (size_t i = 1; i < operation->args.size(); ++i) {
        walk(operation->args[i], [&](const Expr& each) {
          const Load* load = as<Load>(each);
          if (!fault && load && exchanges_.contains(load)) fault = divergent(load->indices[0]->span);
        });
      }
    });
    return fault;
  }

  const Function& f_;
  const AccessModel model_;
  PathFacts facts_;
  WarpValues values_;
  std::unordered_set<const ExprNode*> exchanges_;  ///< loads of another lane's registers
};

/// A fragment has a row for each thread of its block, and is the block's. One that nothing uses takes no registers.
class Allocations {
 public:
  explicit Allocations(const Stmt& body) {
    for (const BufferEffect& effect : buffer_effects(body)) used_.insert(effect.buffer.get());
  }

  std::optional<RegisterFault> fault_of(const Stmt& s, int64_t threads = 0, bool inside = false) const {
    if (const Kernel* kernel = as<Kernel>(s)) threads = kernel->threads;
    inside |= thread_loop(s) != nullptr;
    const Alloc* alloc = as<Alloc>(s);
    const bool fragment = alloc && alloc->buffer->scope == MemoryScope::Fragment;
    if (fragment && used_.contains(alloc->buffer.get())) return fault_of(*alloc->buffer, s->span, threads, inside);
    std::optional<RegisterFault> fault;
    for_each_part(
        s, [](const Expr&) {},
        [&](const Stmt& part) {
          if (!fault) fault = fault_of(part, threads, inside);
        });
    return fault;
  }

 private:
  static std::optional<RegisterFault> fault_of(const Buffer& buffer, const Span& span, int64_t threads, bool inside) {
    if (inside) {
      return {{span, fmt::format("fragment '{}' is allocated by one thread", buffer.name),
               "allocate it before the T.threads loop, or memory of the thread by T.alloc_local"}};
    }
    const int64_t* rows = buffer.shape.empty() ? nullptr : int_value(buffer.shape[0]);
    if (rows && *rows == threads) return std::nullopt;
    return {
        {span,
         fmt::format("the first dimension of fragment '{}' is not the {} threads of the block", buffer.name, threads),
         fmt::format("write T.alloc_fragment(({}, n), ..): n registers of each thread", threads)}};
  }

  std::unordered_set<const Buffer*> used_;
};

}  // namespace

std::optional<RegisterFault> register_fault(const Function& f) {
  if (std::optional<RegisterFault> fault = Allocations(f.body).fault_of(f.body)) return fault;
  if (names_own_rows(f.body, nullptr)) return std::nullopt;
  return Uses(f).first_fault();
}

}  // namespace helve
