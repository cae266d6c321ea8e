// Code of a thread with barriers inside, as loops over the threads without.
// Two walks: the first cuts the body into steps and control flow around them, the second writes each step as a loop,
// with registers in the places of what another step has defined.
#include "helve/ir/tensor/thread_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

bool is_meeting(const Stmt& s) {
  const TileOp* op = as<TileOp>(s);
  return op && op->op == TileOpcode::SyncThreads;
}

bool has_meeting(const Stmt& s) {
  bool found = false;
  walk(s, [&](const Stmt& each) { found |= is_meeting(each); });
  return found;
}

std::vector<Stmt> statements_of(const Stmt& s) {
  if (!s) return {};
  if (const Seq* n = as<Seq>(s)) return n->stmts;
  return {s};
}

/// A part of the body: statements that each thread runs, one of the block, or control flow around further parts.
struct Item {
  enum class Kind { Step, Block, Control };
  Kind kind = Kind::Step;
  size_t step = 0;          ///< its number, of a Step
  std::vector<Stmt> stmts;  ///< of a Step
  Stmt stmt;                ///< of the block, or the control flow
  std::vector<Item> body, otherwise;
};

class Cutter {
 public:
  Cutter(const For& loop, const MeetingNames& names) : thread_(loop.vars[0].get()), names_(names) {
    collect_heads(loop.body);
  }

  std::vector<Item> cut(const Stmt& body) {
    std::vector<Item> out;
    Item step;
    const auto close = [&] {
      if (step.stmts.empty()) return;
      step.step = ++steps_;
      out.push_back(std::move(step));
      step = Item();
    };
    for (const Stmt& s : statements_of(body)) {
      if (is_meeting(s)) {
        close();
      } else if (has_meeting(s)) {
        close();
        out.push_back(control(s));
      } else if (is_of_block(s)) {
        if (const Bind* bind = as<Bind>(s); bind && has_load(bind->value)) close();
        out.push_back({Item::Kind::Block, 0, {}, s, {}, {}});
      } else {
        step.stmts.push_back(s);
        walk(s, [&](const Stmt& each) {
          if (const VarRef var = named_by(each)) own_.insert(var.get());
        });
      }
    }
    close();
    return out;
  }

 private:
  /// Names that bounds and conditions around barriers use, and those that their values use.
  void collect_heads(const Stmt& body) {
    std::unordered_map<const Var*, Expr> values;
    std::vector<Expr> open;
    walk(body, [&](const Stmt& s) {
      if (const Bind* bind = as<Bind>(s)) values.emplace(bind->var.get(), bind->value);
      if (as<Seq>(s) || !has_meeting(s)) return;
      for_each_part(s, [&](const Expr& e) { open.push_back(e); }, [](const Stmt&) {});
    });
    while (!open.empty()) {
      const Expr e = open.back();
      open.pop_back();
      walk(e, [&](const Expr& node) {
        const Var* var = as<Var>(node);
        const auto value = var ? values.find(var) : values.end();
        if (value != values.end() && heads_.insert(var).second) open.push_back(value->second);
      });
    }
  }

  /// Memory that threads share, rows of registers, and values that decide for all threads.
  bool is_of_block(const Stmt& s) const {
    if (const Alloc* n = as<Alloc>(s)) return n->buffer->scope != MemoryScope::Local;
    const Bind* n = as<Bind>(s);
    return n && heads_.contains(n->var.get()) && !varying(n->value);
  }

  /// What in the value may differ between threads; nothing if it does not.
  std::optional<std::string> varying(const Expr& e) const {
    std::optional<std::string> out;
    walk(e, [&](const Expr& node) {
      if (out) return;
      const Var* var = as<Var>(node);
      if (var && var == thread_) out = "the thread's number";
      if (var && own_.contains(var)) out = fmt::format("'{}', which each thread computes", var->name);
      const Load* load = as<Load>(node);
      if (!load) return;
      const Buffer& buffer = buffer_of(load->buffer);
      if (buffer.scope == MemoryScope::Local || buffer.scope == MemoryScope::Fragment) {
        out = fmt::format("'{}', which each thread has for itself", buffer.name);
      }
    });
    return out;
  }

  Item control(const Stmt& s) {
    Item out{Item::Kind::Control, 0, {}, s, {}, {}};
    if (const For* n = as<For>(s)) {
      if (n->loop != LoopKind::Serial && n->loop != LoopKind::Unroll) {
        refuse(s, fmt::format("iterations of T.{} have no order", to_string(n->loop)));
      }
      require(s, n->begins[0], "the bounds of the loop depend");
      require(s, n->extents[0], "the bounds of the loop depend");
      out.body = cut(n->body);
    } else if (const While* n = as<While>(s)) {
      require(s, n->condition, "the condition of the loop depends");
      out.body = cut(n->body);
    } else if (const If* n = as<If>(s)) {
      require(s, n->condition, "the condition depends");
      out.body = cut(n->then_body);
      out.otherwise = cut(n->else_body);
    } else {
      refuse(s, "the statement around it is no loop or branch of a thread");
    }
    return out;
  }

  void require(const Stmt& s, const Expr& e, const char* what) const {
    if (const std::optional<std::string> on = varying(e)) refuse(s, fmt::format("{} on {}", what, *on));
  }

  [[noreturn]] void refuse(const Stmt& s, const std::string& reason) const {
    Span place = s->span;
    walk(s, [&, found = false](const Stmt& each) mutable {
      if (!std::exchange(found, found || is_meeting(each)) && is_meeting(each)) place = each->span;
    });
    std::string operation = "T.sync_threads";
    for (const auto& [span, name] : names_) {
      if (span == place) operation = name;
    }
    throw UserError(Code::OperationScope, place,
                    {{"operation", operation},
                     {"scope", std::string("divergent")},
                     {"remedy", std::string("let all threads reach it: choose by T.if_then_else what they give, and "
                                            "loop over bounds that are the same for all")}},
                    {{s->span, reason}});
  }

  const Var* thread_;
  const MeetingNames& names_;
  std::unordered_set<const Var*> heads_;  ///< what decides about barriers uses them
  std::unordered_set<const Var*> own_;    ///< bound in steps
  size_t steps_ = 0;
};

/// What steps define and other steps use.
class Crossings {
 public:
  explicit Crossings(const std::vector<Item>& items) {
    define(items);
    use(items);
  }

  struct Name {
    size_t step;
    VarRef var;
    Expr value;         ///< that can be computed again; null: kept in registers
    BufferRef registers;
  };
  std::unordered_map<const Var*, Name> names;
  std::unordered_map<const Buffer*, size_t> buffers;  ///< private ones, with the step that allocates each
  std::unordered_set<const Object*> crossing;
  std::vector<const Var*> order;  ///< of the names, as they are defined

 private:
  void define(const std::vector<Item>& items) {
    for (const Item& item : items) {
      for (const Stmt& s : item.stmts) {
        if (const VarRef var = named_by(s)) {
          const Bind* bind = as<Bind>(s);
          const bool again = bind && var->dtype.is_index() && !has_load(bind->value);
          names.emplace(var.get(), Name{item.step, var, again ? bind->value : Expr(), {}});
          order.push_back(var.get());
        }
        if (const Alloc* n = as<Alloc>(s)) buffers.emplace(n->buffer.get(), item.step);
      }
      define(item.body);
      define(item.otherwise);
    }
  }

  void use(const std::vector<Item>& items) {
    for (const Item& item : items) {
      for (const Stmt& s : item.stmts) use(s, item.step);
      use(item.body);
      use(item.otherwise);
    }
  }
  void use(const Stmt& s, size_t step) {
    walk_exprs(s, [&](const Expr& e) {
      if (const Var* var = as<Var>(e)) use(var, step);
      if (const Load* load = as<Load>(e)) use(&buffer_of(load->buffer), step);
    });
    walk(s, [&](const Stmt& each) {
      if (const Store* n = as<Store>(each)) use(n->buffer.get(), step);
      const TileOp* op = as<TileOp>(each);
      for (size_t i = 0; op && i < op->operands.size(); ++i) {
        if (op->is_region(i)) use(op->region(i).buffer.get(), step);
      }
      if (const Breakpoint* n = as<Breakpoint>(each)) {
        for (const Region& region : n->buffers) use(region.buffer.get(), step);
      }
    });
  }
  void use(const Var* var, size_t step) {
    const auto at = names.find(var);
    if (at == names.end() || at->second.step == step || !crossing.insert(var).second) return;
    if (!at->second.value) return;
    // Computed again in this step, and so in any step where this one's user is.
    walk(at->second.value, [&](const Expr& e) {
      if (const Var* inner = as<Var>(e)) use(inner, step);
    });
  }
  void use(const Buffer* buffer, size_t step) {
    const auto at = buffers.find(buffer);
    if (at != buffers.end() && at->second != step) crossing.insert(buffer);
  }
};

class Writer {
 public:
  Writer(const For& loop, Crossings& crossings) : loop_(loop), crossings_(crossings) {
    for (const Var* var : crossings_.order) {
      Crossings::Name& name = crossings_.names.at(var);
      if (!crossings_.crossing.contains(var) || name.value) continue;
      const DType kept = var->dtype.is_index() ? kInt64 : var->dtype;
      name.registers =
          make_buffer(var->name, kept, MemoryScope::Fragment, {loop_.extents[0], int_imm(1)}, {}, {}, name.var->span);
    }
  }

  Stmt write(const std::vector<Item>& items) {
    std::vector<Stmt> out;
    for (const Item& item : items) {
      switch (item.kind) {
        case Item::Kind::Block: out.push_back(item.stmt); break;
        case Item::Kind::Step: step(item, out); break;
        case Item::Kind::Control: out.push_back(control(item)); break;
      }
    }
    return seq(std::move(out), loop_.span);
  }

 private:
  Stmt control(const Item& item) {
    const Stmt body = write(item.body);
    if (const For* n = as<For>(item.stmt)) return copy_with(*n, [&](For& out) { out.body = body; });
    if (const While* n = as<While>(item.stmt)) return copy_with(*n, [&](While& out) { out.body = body; });
    const If& n = *as<If>(item.stmt);
    return if_then(n.condition, body, n.else_body ? write(item.otherwise) : Stmt(), n.span);
  }

  /// Allocations of registers, then the loop of the step.
  void step(const Item& item, std::vector<Stmt>& out) {
    const VarRef tx = make_var(loop_.vars[0]->name, kIndex, loop_.vars[0]->span);
    std::vector<Stmt> own, body;
    for (const Stmt& s : item.stmts) {
      const Alloc* memory = as<Alloc>(s);
      if (memory && crossings_.crossing.contains(memory->buffer.get())) {
        out.push_back(alloc(registers_of(memory->buffer), s->span));
        continue;
      }
      own.push_back(s);
      const VarRef var = named_by(s);
      const auto name = var ? crossings_.names.find(var.get()) : crossings_.names.end();
      if (name == crossings_.names.end() || !name->second.registers) continue;
      const BufferRef& kept = name->second.registers;
      out.push_back(alloc(kept, s->span));
      own.push_back(store(kept, {Expr(loop_.vars[0]), int_imm(0)}, cast(Expr(var), kept->dtype), s->span));
    }
    if (own.empty()) return;
    Substitution values;
    names_from_elsewhere(item, seq(own), values, body);
    values.insert_or_assign(loop_.vars[0].get(), Expr(tx));
    for (const Stmt& s : own) body.push_back(in_registers(s));
    const Stmt whole = substitute(seq(std::move(body)), values);
    out.push_back(for_loop(LoopKind::Thread, tx, loop_.extents[0], whole, loop_.span));
  }

  /// Binds, in front of a step, what it uses of others, under names of its own.
  void names_from_elsewhere(const Item& item, const Stmt& own, Substitution& values, std::vector<Stmt>& body) {
    std::unordered_set<const Var*> used;
    const auto use = [&](const Expr& e) {
      if (const Var* var = as<Var>(e)) used.insert(var);
    };
    walk_exprs(own, use);
    for (auto at = crossings_.order.rbegin(); at != crossings_.order.rend(); ++at) {
      const Crossings::Name& name = crossings_.names.at(*at);
      if (used.contains(*at) && name.step != item.step && name.value) walk(name.value, use);
    }
    for (const Var* var : crossings_.order) {
      const Crossings::Name& name = crossings_.names.at(var);
      if (!used.contains(var) || name.step == item.step) continue;
      const VarRef here = make_var(var->name, var->dtype, name.var->span);
      const Expr kept = name.value ? name.value : load(name.registers, {Expr(loop_.vars[0]), int_imm(0)}, loop_.span);
      body.push_back(bind(here, cast(in_registers(kept), var->dtype), loop_.span));
      values.insert_or_assign(var, Expr(here));
    }
  }

  /// The registers that hold a private buffer, row-major.
  BufferRef registers_of(const BufferRef& buffer) {
    BufferRef& out = registers_[buffer.get()];
    if (out) return out;
    Expr size = int_imm(1);
    for (const Expr& extent : buffer->shape) size = product(size, extent);
    out =
        make_buffer(buffer->name, buffer->dtype, MemoryScope::Fragment, {loop_.extents[0], size}, {}, {}, buffer->span);
    return out;
  }

  std::vector<Expr> register_at(const Buffer& buffer, const std::vector<Expr>& indices) const {
    Expr flat = indices.empty() ? int_imm(0) : indices[0];
    for (size_t d = 1; d < indices.size(); ++d) flat = product(flat, buffer.shape[d]) + indices[d];
    return {Expr(loop_.vars[0]), flat};
  }
  static Expr product(const Expr& a, const Expr& b) {
    const int64_t *x = int_value(a), *y = int_value(b);
    if (x && *x == 1) return b;
    return x && y ? int_imm(*x * *y) : a * b;
  }

  Expr in_registers(const Expr& e) {
    return rewrite(e, [&](const Expr& node) -> Expr {
      const Load* n = as<Load>(node);
      const auto at = n ? registers_.find(&buffer_of(n->buffer)) : registers_.end();
      if (at == registers_.end()) return node;
      return load(at->second, register_at(buffer_of(n->buffer), n->indices), node->span);
    });
  }

  Stmt in_registers(const Stmt& s) {
    return rewrite(
        s,
        [&](const Stmt& each) -> Stmt {
          refuse_region(each);
          const Store* n = as<Store>(each);
          const auto at = n ? registers_.find(n->buffer.get()) : registers_.end();
          if (at == registers_.end()) return each;
          return copy_with(*n, [&](Store& out) {
            out.indices = register_at(*n->buffer, n->indices);
            out.buffer = at->second;
          });
        },
        [&](const Expr& e) { return in_registers(e); });
  }

  void refuse_region(const Stmt& s) const {
    const TileOp* op = as<TileOp>(s);
    for (size_t i = 0; op && i < op->operands.size(); ++i) {
      if (!op->is_region(i) || !registers_.contains(op->region(i).buffer.get())) continue;
      throw UserError(Code::BadArgument, op->place(i),
                      {{"function", operation_text(*op)},
                       {"value", fmt::format("'{}'", op->region(i).buffer->name)},
                       {"parameter", std::string(op->row().params[i].name)},
                       {"reason", std::string("threads keep it over a barrier")},
                       {"remedy", std::string("access its elements in a loop")}});
    }
  }

  const For& loop_;
  Crossings& crossings_;
  std::unordered_map<const Buffer*, BufferRef> registers_;
};

}  // namespace

Stmt thread_steps(const Stmt& loop, const MeetingNames& names) {
  const For* n = as<For>(loop);
  HELVE_CHECK(n && n->loop == LoopKind::Thread, "steps of a loop that is not over threads");
  if (!has_meeting(n->body)) return loop;
  const std::vector<Item> items = Cutter(*n, names).cut(n->body);
  Crossings crossings(items);
  return Writer(*n, crossings).write(items);
}

}  // namespace helve
