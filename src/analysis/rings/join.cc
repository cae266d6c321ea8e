// Two slices of a program become the program.
// Both are read in step: a loop or branch with events meets its twin, whose variables take the names of the first
// role's, and a take is preceded by all that the second role does up to the fill.
#include <fmt/format.h>

#include "helve/analysis/early_copies.h"
#include "helve/analysis/rings.h"
#include "helve/arith/sum.h"
#include "helve/ir/tensor/equal.h"
#include "helve/ir/tensor/ring.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

bool is_control(const Stmt& s) {
  return s->kind == StmtKind::For || s->kind == StmtKind::If || s->kind == StmtKind::While;
}

std::optional<RingEvent> event_of(const Stmt& s, const Buffer** ring) {
  const TileOp* op = as<TileOp>(s);
  const std::optional<RingEvent> event = op ? ring_event(*op) : std::nullopt;
  if (event) *ring = op->barriers()->buffer.get();
  return event;
}

/// Thrown inside of this file alone.
struct Apart {
  RingFault fault;
};

class RoleJoiner {
 public:
  std::vector<Stmt> join(const std::vector<Stmt>& takes, const std::vector<Stmt>& fills) {
    const size_t known = binds_.size();
    std::vector<Stmt> out;
    size_t next = 0;
    const auto pass = [&] { fill(fills[next++], out); };
    for (const Stmt& s : takes) {
      const Buffer* ring = nullptr;
      if (is_control(s) && has_ring_events(s)) {
        while (next < fills.size() && !(is_control(fills[next]) && has_ring_events(fills[next]))) pass();
        if (next == fills.size()) part(s, "the role that fills the rings has no such loop or branch here");
        out.push_back(control(s, fills[next++]));
      } else if (event_of(s, &ring) == RingEvent::Wait) {
        bool filled = false;
        while (next < fills.size() && !filled) {
          const Buffer* other = nullptr;
          filled = event_of(fills[next], &other) == RingEvent::Commit && other == ring;
          if (is_control(fills[next]) && has_ring_events(fills[next])) break;
          pass();
        }
        if (!filled) part(s, fmt::format("no role fills the slot of '{}' that is taken here", ring->name));
        out.push_back(s);
      } else {
        if (const Bind* bind = as<Bind>(s)) enter(*bind);
        out.push_back(s);
      }
    }
    while (next < fills.size()) {
      const Buffer* ring = nullptr;
      const std::optional<RingEvent> event = event_of(fills[next], &ring);
      if (event == RingEvent::Commit)
        part(fills[next], fmt::format("no role takes the slot of '{}' that is filled here", ring->name));
      if (is_control(fills[next]) && has_ring_events(fills[next])) {
        part(fills[next], "the role that takes the slots of rings has no such loop or branch here");
      }
      pass();
    }
    binds_.resize(known);
    return out;
  }

 private:
  [[noreturn]] static void part(const Stmt& s, std::string reason) { throw Apart{{s->span, std::move(reason)}}; }

  Expr same(const Expr& e) const { return substitute(e, names_); }

  void require(const Expr& take, const Expr& fill, const Stmt& s, const char* what) const {
    if (!same_expr(substitute(take, alike_), same(fill)))
      part(s, fmt::format("{} is another one in the role that fills the rings", what));
  }

  /// The first name of the first role for the value.
  const Bind* named(const Expr& value, const DType& dtype) const {
    for (const Bind* each : binds_) {
      if (each->var->dtype == dtype && same_expr(substitute(each->value, alike_), value)) return each;
    }
    return nullptr;
  }

  void enter(const Bind& bind) {
    if (const Bind* first = named(substitute(bind.value, alike_), bind.var->dtype)) {
      alike_[bind.var.get()] = Expr(first->var);
    }
    binds_.push_back(&bind);
  }

  /// A statement of the second role that stands for itself. A name of a value that the first has, too, is that one.
  void fill(const Stmt& s, std::vector<Stmt>& out) {
    if (const Bind* bind = as<Bind>(s)) {
      if (const Bind* first = named(same(bind->value), bind->var->dtype)) {
        names_[bind->var.get()] = Expr(first->var);
        return;
      }
    }
    out.push_back(substitute(s, names_));
  }

  Stmt control(const Stmt& take, const Stmt& fill) {
    if (take->kind != fill->kind) part(take, "the role that fills the rings has another statement here");
    if (const For* loop = as<For>(take)) {
      const For& twin = *as<For>(fill);
      if (loop->loop != twin.loop || loop->vars.size() != twin.vars.size()) {
        part(take, "the role that fills the rings has another loop here");
      }
      for (size_t d = 0; d < loop->vars.size(); ++d) {
        require(loop->begins[d], twin.begins[d], take, "the begin of the loop");
        require(loop->extents[d], twin.extents[d], take, "the number of iterations of the loop");
        names_[twin.vars[d].get()] = Expr(loop->vars[d]);
      }
      const Stmt body = both(loop->body, twin.body);
      return Stmt(copy_with(*loop, [&](For& out) { out.body = body; }));
    }
    if (const While* loop = as<While>(take)) {
      require(loop->condition, as<While>(fill)->condition, take, "the condition of the loop");
      return while_loop(loop->condition, both(loop->body, as<While>(fill)->body), take->span);
    }
    const If &branch = *as<If>(take), &twin = *as<If>(fill);
    require(branch.condition, twin.condition, take, "the condition");
    const Stmt yes = both(branch.then_body, twin.then_body), no = both(branch.else_body, twin.else_body);
    return if_then(branch.condition, yes, no, take->span);
  }

  Stmt both(const Stmt& take, const Stmt& fill) {
    if (!take && !fill) return {};
    const std::vector<Stmt> none;
    return seq(join(take ? statements_of(take) : none, fill ? statements_of(fill) : none));
  }

  Substitution names_;  ///< of the second role, by those of the first
  Substitution alike_;  ///< of the first role, whose value has had another name before
  std::vector<const Bind*> binds_;  ///< of the first role around the current place
};

}  // namespace

bool has_ring_events(const Stmt& s) {
  return s && has_operation(s, [](const TileOp& op) { return ring_event(op).has_value(); });
}

size_t common_statements(const std::vector<Stmt>& body) {
  size_t count = 0;
  for (const Stmt& s : body) {
    const Alloc* memory = as<Alloc>(s);
    const TileOp* op = as<TileOp>(s);
    const bool common = (memory && memory->buffer->scope == MemoryScope::Shared) ||
                        (op && (op->op == TileOpcode::MbarrierInit || op->op == TileOpcode::SyncThreads ||
                                op->op == TileOpcode::SyncCluster));
    if (!common) break;
    ++count;
  }
  return count;
}

std::optional<Ref<const Kernel>> joined_roles(const Ref<const Kernel>& kernel, RingFault* fault) {
  if (!has_roles(*kernel)) return kernel;
  std::vector<Stmt> out, end;
  std::vector<const Role*> roles;
  for (const Stmt& s : statements_of(kernel->body)) {
    const TileOp* op = as<TileOp>(s);
    if (const Role* role = as<Role>(s); role && end.empty()) {
      roles.push_back(role);
    } else if (!roles.empty() && op && op->op == TileOpcode::SyncCluster) {
      end.push_back(s);
    } else if (roles.empty()) {
      out.push_back(s);
    } else {
      *fault = {end.empty() ? s->span : end.front()->span, "it stands behind roles, which end the kernel"};
      return std::nullopt;
    }
  }
  if (common_statements(out) != out.size()) {
    *fault = {out[common_statements(out)]->span, "it stands before the roles, and belongs to one of them"};
    return std::nullopt;
  }
  if (roles.size() > 2) {
    *fault = {roles[2]->span, "a kernel has two roles: one takes what the other one fills"};
    return std::nullopt;
  }
  if (roles.size() == 1 && roles[0]->registers != 0) {
    *fault = {roles[0]->span, "a role alone has the registers of the launch"};
    return std::nullopt;
  }
  const std::vector<Stmt> none;
  try {
    const std::vector<Stmt> takes = statements_of(roles[0]->body);
    const std::vector<Stmt> fills = roles.size() > 1 ? statements_of(roles[1]->body) : none;
    for (const Stmt& s : RoleJoiner().join(takes, fills)) out.push_back(s);
  } catch (const Apart& apart) {
    *fault = apart.fault;
    return std::nullopt;
  }
  out.insert(out.end(), end.begin(), end.end());
  const Stmt body = seq(std::move(out), kernel->body->span);
  return copy_with(*kernel, [&](Kernel& copy) {
    copy.body = body;
    if (roles.size() < 2) return;
    copy.producers = roles[1]->threads;
    copy.registers.clear();
    if (roles[0]->registers || roles[1]->registers) copy.registers = {roles[0]->registers, roles[1]->registers};
  });
}

}  // namespace helve
