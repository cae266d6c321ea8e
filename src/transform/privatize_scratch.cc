// Each iteration gets scratch memory of its own.
// Input: kernels of loops over elements, of blocks or of their threads. Output: the same, where the allocations of an
// iteration are private memory, and private memory that is allocated outside of a loop is not written by its
// iterations, except elements that belong to one iteration each and values that are live after the loop.
// Before:  found = T.alloc_local((1,), "int32")
//          for r in T.Parallel(64):
//              found[0] = A[r, 0]
//              B[r] = found[0] + found[0]
// After:   found = T.alloc_local((1,), "int32")
//          for r in T.Parallel(64):
//              found_1 = T.alloc_local((1,), "int32")
//              found_1[0] = A[r, 0]
//              B[r] = found_1[0] + found_1[0]
// An iteration that may read previous contents before it writes starts with a copy of them; one whose values may be
// read after the loop writes them to both. If it accesses only one element, the private memory is that element; if that
// is the same for the whole loop, only it is copied. An atomic update of an iteration's own allocation becomes a load
// and a store, since no other thread can access it.
// After this pass one memory may serve the iterations one after the other, as in machine code. Inner loops come first.
#include <algorithm>
#include <utility>
#include <vector>

#include "helve/analysis/effects.h"
#include "helve/analysis/iteration_scratch.h"
#include "helve/arith/sum.h"
#include "helve/ir/tensor/update.h"
#include "helve/ir/tensor/visit.h"
#include "helve/threads/element_loop.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

/// The loops of a perfect nest over elements, with bounds that do not depend on each other's variables.
std::vector<const For*> nest_of(const For& loop) {
  std::vector<const For*> nest = {&loop};
  const auto is_bound = [&](const Expr& e) {
    return std::any_of(nest.begin(), nest.end(), [&](const For* level) {
      return std::any_of(level->vars.begin(), level->vars.end(), [&](const VarRef& v) { return mentions(e, v.get()); });
    });
  };
  for (;;) {
    const For* inner = as<For>(nest.back()->body);
    if (!inner || !is_element_loop(*inner)) return nest;
    if (std::any_of(inner->begins.begin(), inner->begins.end(), is_bound)) return nest;
    if (std::any_of(inner->extents.begin(), inner->extents.end(), is_bound)) return nest;
    nest.push_back(inner);
  }
}

const Stmt& body_of(const For& loop) { return nest_of(loop).back()->body; }

Stmt with_body_of(const For& loop, Stmt body) {
  const std::vector<const For*> nest = nest_of(loop);
  for (size_t i = nest.size(); i-- > 0;) {
    body = Stmt(copy_with(*nest[i], [&](For& out) { out.body = std::move(body); }));
  }
  return body;
}

/// The variables of a loop that may have several values, those that certainly have several, and those that its body
/// binds.
struct Variables {
  std::vector<const Var*> iteration;
  std::vector<const Var*> several;
  std::vector<const Var*> inside;
};

Variables variables_of(const For& loop) {
  Variables out;
  for (const For* level : nest_of(loop)) {
    for (size_t d = 0; d < level->vars.size(); ++d) {
      const int64_t* extent = int_value(level->extents[d]);
      if (!extent || *extent > 1) out.iteration.push_back(level->vars[d].get());
      if (extent && *extent > 1) out.several.push_back(level->vars[d].get());
    }
  }
  walk(body_of(loop), [&](const Stmt& s) {
    if (const VarRef var = named_by(s)) out.inside.push_back(var.get());
    if (const For* n = as<For>(s)) {
      for (const VarRef& var : n->vars) out.inside.push_back(var.get());
    }
  });
  return out;
}

bool same_element(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_expr);
}

/// Does the loop access the buffer as scratch: other than to one element per iteration, which belongs to it and is the
/// only one that it reads?
bool is_scratch(const For& loop, const Stmt& body, const Buffer& buffer) {
  const Variables variables = variables_of(loop);
  const std::vector<Expr>* element = nullptr;
  bool scratch = false, written = false;
  for (const ElementUse& use : element_uses(body)) {
    if (use.buffer != &buffer) continue;
    if (!element) element = use.indices;
    scratch |= !same_element(*use.indices, *element);
    written |= use.write;
  }
  if (!written) return false;
  std::vector<const Var*> differ = variables.iteration;
  differ.insert(differ.end(), variables.inside.begin(), variables.inside.end());
  return scratch || !std::all_of(variables.iteration.begin(), variables.iteration.end(), [&](const Var* var) {
           return std::any_of(element->begin(), element->end(),
                              [&](const Expr& index) { return tells_apart(index, var, differ); });
         });
}

Stmt atomics_as_stores(const Stmt& s, const Buffer& buffer) {
  return rewrite(s, [&](const Stmt& part) -> Stmt {
    const Store* n = as<Store>(part);
    if (!n || !n->is_atomic() || n->buffer.get() != &buffer) return part;
    const Stmt plain = store(n->buffer, n->indices, stored_value(*n), part->span);
    if (!n->previous) return plain;
    return seq({bind(n->previous, load(n->buffer, n->indices, part->span), part->span), plain}, part->span);
  });
}

/// `s` with `one` in place of `buffer`, of which it accesses a single element.
Stmt in_one_element(const Stmt& s, const Buffer& buffer, const BufferRef& one) {
  const std::vector<Expr> at = {int_imm(0)};
  const auto expression = [&](const Expr& e) {
    return rewrite(e, [&](const Expr& node) -> Expr {
      const Load* n = as<Load>(node);
      return n && &buffer_of(n->buffer) == &buffer ? load(one, at, node->span) : node;
    });
  };
  const auto statement = [&](const Stmt& part) -> Stmt {
    const Store* n = as<Store>(part);
    if (!n || n->buffer.get() != &buffer) return part;
    return copy_with(*n, [&](Store& out) {
      out.buffer = one;
      out.indices = at;
    });
  };
  return rewrite(s, statement, expression);
}

/// Can the only element of an iteration be named before the loop too, and does it certainly exist there?
bool is_of_all_iterations(const For& loop, const Stmt& body, const Buffer& buffer, const std::vector<Expr>& element) {
  std::vector<const Var*> bound = variables_of(loop).inside;
  for (const For* level : nest_of(loop)) {
    for (const VarRef& var : level->vars) bound.push_back(var.get());
  }
  const auto changes = [&](const Expr& index) {
    return has_load(index) ||
           std::any_of(bound.begin(), bound.end(), [&](const Var* var) { return mentions(index, var); });
  };
  return std::none_of(element.begin(), element.end(), changes) && surely_accesses(with_body_of(loop, body), buffer);
}

/// `s` with `first` before its accesses to the buffer, if those are certainly made; null if they may not be, since then
/// the element may not exist.
Stmt in_front_of_accesses(const Stmt& s, const Buffer& buffer, const Stmt& first) {
  const auto accesses = [&](const Stmt& part) { return uses_elements(part, buffer); };
  if (const Seq* n = as<Seq>(s)) {
    std::vector<Stmt> out = n->stmts;
    const auto at = std::find_if(out.begin(), out.end(), accesses);
    if (std::none_of(at + 1, out.end(), accesses)) {
      *at = in_front_of_accesses(*at, buffer, first);
      return *at ? seq(std::move(out), s->span) : Stmt();
    }
    if (!surely_accesses(s, buffer)) return Stmt();
    out.insert(at, first);
    return seq(std::move(out), s->span);
  }
  if (surely_accesses(s, buffer)) return seq({first, s}, s->span);
  const If* n = as<If>(s);
  if (!n || (accesses(n->then_body) && accesses(n->else_body))) return Stmt();
  bool in_condition = false;  // after an operand that may decide the condition alone
  walk(n->condition, [&](const Expr& e) {
    const Load* part = as<Load>(e);
    in_condition |= part && &buffer_of(part->buffer) == &buffer;
  });
  if (in_condition) return Stmt();
  Stmt then_body = n->then_body, else_body = n->else_body;
  Stmt& branch = accesses(then_body) ? then_body : else_body;
  if (!accesses(branch)) return Stmt();
  branch = in_front_of_accesses(branch, buffer, first);
  return branch ? if_then(n->condition, then_body, else_body, s->span) : Stmt();
}

class Privatization {
 public:
  Privatization(const Function& function, const Kernel& kernel) : function_(function), kernel_(kernel) {}

  Stmt run() { return statement(kernel_.body); }

 private:
  Stmt statement(const Stmt& s) {
    if (!s) return s;
    const Alloc* alloc = as<Alloc>(s);
    if (alloc && alloc->buffer->scope == MemoryScope::Local) outside_.push_back(alloc->buffer);
    const For* loop = as<For>(s);
    if (!loop || !is_element_loop(*loop)) {
      const bool threads = loop && loop->loop == LoopKind::Thread;
      const LoopKind around = std::exchange(whole_, threads ? LoopKind::Serial : whole_);
      const Stmt out = map_parts(s, [](const Expr& e) { return e; }, [&](const Stmt& part) { return statement(part); });
      whole_ = around;
      return out;
    }
    const std::vector<BufferRef> outside = outside_;
    Stmt body = statement(body_of(*loop));  // inner loops first
    outside_ = outside;
    if (!is_divided_inside(*loop)) body = made_private(body);
    std::vector<Stmt> before;
    for (const BufferRef& buffer : outside) {
      if (is_scratch(*loop, body, *buffer)) body = own(*loop, body, buffer, &before);
    }
    if (body == body_of(*loop)) return s;
    before.push_back(with_body_of(*loop, body));
    return seq(std::move(before), s->span);
  }

  /// The body with its allocations in private memory.
  static Stmt made_private(const Stmt& body) {
    BufferMap moved;
    Stmt out = body;
    walk(body, [&](const Stmt& s) {
      const Alloc* n = as<Alloc>(s);
      if (!n || n->buffer->scope == MemoryScope::Local) return;
      moved.emplace(n->buffer.get(), another(n->buffer, n->buffer->shape));
      out = atomics_as_stores(out, *n->buffer);
    });
    return redeclare_buffers(out, moved);
  }

  /// The body with its own memory in place of `buffer`; `before` runs before the loop.
  Stmt own(const For& loop, const Stmt& body, const BufferRef& buffer, std::vector<Stmt>* before) const {
    const bool leaves = read_after_loop(kernel_.body, loop, *buffer) != ReadFirst::Never;
    const std::vector<Expr>* element = only_element(body, *buffer, function_.may_alias);
    if (element) {
      if (const Stmt out = own_element(loop, body, buffer, *element, leaves, before)) return out;
    }
    const bool finds = reads_before_writing(body, *buffer) != ReadFirst::Never;
    const BufferRef mine = another(buffer, buffer->shape);
    Stmt inside = replace_buffers(body, {{buffer.get(), mine}});
    if (leaves) inside = leaving(inside, mine, buffer, variables_of(loop));
    std::vector<Stmt> out = {alloc(mine, buffer->span)};
    const BufferRef found = finds && leaves ? another(buffer, buffer->shape) : buffer;
    if (finds && leaves) keep(buffer, found, before);
    if (finds) out.push_back(copy_of(found, mine, LoopKind::Serial));
    out.push_back(inside);
    return seq(std::move(out), body->span);
  }

  /// The same if the body accesses a single element; null if it is not certain that the element exists.
  Stmt own_element(const For& loop, const Stmt& body, const BufferRef& buffer, const std::vector<Expr>& element,
                   bool leaves, std::vector<Stmt>* before) const {
    const BufferRef mine = another(buffer, {int_imm(1)});
    std::vector<const Store*> several;
    find_stores_of_several(body, *buffer, variables_of(loop), several);
    Stmt inside = in_one_element(body, *buffer, mine);
    const bool finds = reads_before_writing(inside, *mine) != ReadFirst::Never;
    if (leaves && several.empty()) {
      inside = rewrite(inside, [&](const Stmt& part) -> Stmt {
        const Store* n = as<Store>(part);
        if (!n || n->buffer != mine) return part;
        return seq({store(buffer, element, n->value, part->span), part}, part->span);
      });
    }
    if (finds) {
      const bool alone = leaves && is_of_all_iterations(loop, body, *buffer, element);
      const BufferRef found = !leaves ? buffer : alone ? another(buffer, {int_imm(1)}) : another(buffer, buffer->shape);
      const Expr value = load(found, alone ? std::vector<Expr>{int_imm(0)} : element);
      inside = in_front_of_accesses(inside, *mine, store(mine, {int_imm(0)}, value));
      if (!inside) return inside;
      if (alone) {
        before->push_back(alloc(found, buffer->span));
        before->push_back(store(found, {int_imm(0)}, load(buffer, element)));
      } else if (leaves) {
        keep(buffer, found, before);
      }
    }
    return seq({alloc(mine, buffer->span), inside}, body->span);
  }

  /// Copies the contents of the buffer before the loop: an iteration must not find what another one left.
  void keep(const BufferRef& buffer, const BufferRef& found, std::vector<Stmt>* before) const {
    before->push_back(alloc(found, buffer->span));
    before->push_back(copy_of(buffer, found, whole_));
  }

  /// Stores to `mine` also store to `buffer`, except where several iterations store the same element in any run of the
  /// loop: then its value is undefined.
  static Stmt leaving(const Stmt& s, const BufferRef& mine, const BufferRef& buffer, const Variables& variables) {
    std::vector<const Store*> several;
    find_stores_of_several(s, *mine, variables, several);
    return rewrite(s, [&](const Stmt& part) -> Stmt {
      const Store* n = as<Store>(part);
      if (!n || n->buffer != mine) return part;
      const bool no_value = std::any_of(several.begin(), several.end(),
                                        [&](const Store* each) { return same_element(each->indices, n->indices); });
      return no_value ? part : seq({store(buffer, n->indices, n->value, part->span), part}, part->span);
    });
  }

  /// The stores that every iteration makes to elements that are the same for several iterations.
  static void find_stores_of_several(const Stmt& s, const Buffer& mine, const Variables& variables,
                                     std::vector<const Store*>& out) {
    if (const Seq* n = as<Seq>(s)) {
      for (const Stmt& part : n->stmts) find_stores_of_several(part, mine, variables, out);
    }
    const Store* n = as<Store>(s);
    if (!n || n->buffer.get() != &mine) return;
    const auto names = [&](const Var* var) {
      return std::any_of(n->indices.begin(), n->indices.end(),
                         [&](const Expr& index) { return has_load(index) || mentions(index, var); });
    };
    const bool inside = std::any_of(variables.inside.begin(), variables.inside.end(), names);
    const bool several =
        std::any_of(variables.several.begin(), variables.several.end(), [&](const Var* var) { return !names(var); });
    if (several && !inside) out.push_back(n);
  }

  static BufferRef another(const BufferRef& buffer, const std::vector<Expr>& shape) {
    return make_buffer(buffer->name, buffer->dtype, MemoryScope::Local, shape, {}, {}, buffer->span);
  }

  static Stmt copy_of(const BufferRef& from, const BufferRef& to, LoopKind kind) {
    std::vector<VarRef> vars;
    for (size_t d = 0; d < from->rank(); ++d) vars.push_back(make_var("e"));
    const std::vector<Expr> at(vars.begin(), vars.end());
    Stmt out = store(to, at, load(from, at));
    for (size_t d = vars.size(); d-- > 0;) out = for_loop(kind, vars[d], from->shape[d], out);
    return out;
  }

  const Function& function_;
  const Kernel& kernel_;
  std::vector<BufferRef> outside_;  ///< private memory that is allocated outside of the statement
  LoopKind whole_ = LoopKind::Parallel;  ///< of a loop over a whole buffer: a thread does not share it
};

}  // namespace

FunctionRef privatize_scratch(const FunctionRef& f, const PassOptions&) {
  return with_body(f, rewrite(f->body, [&](const Stmt& s) -> Stmt {
                     const Kernel* kernel = as<Kernel>(s);
                     if (!kernel) return s;
                     const Stmt body = Privatization(*f, *kernel).run();
                     if (body == kernel->body) return s;
                     return Stmt(copy_with(*kernel, [&](Kernel& out) { out.body = body; }));
                   }));
}

}  // namespace helve
