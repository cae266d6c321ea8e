// Each iteration gets scratch of its own.
// Input: kernels of loops over elements. Output: the same, where private memory that a block allocates is not written
// by the iterations of a loop, save elements that are each one iteration's and values that one leaves behind the loop.
// Before:  found = T.alloc_local((1,), "int32")
//          for r in T.Parallel(64):
//              found[0] = A[r, 0]
//              B[r] = found[0] + found[0]
// After:   found = T.alloc_local((1,), "int32")
//          for r in T.Parallel(64):
//              found_1 = T.alloc_local((1,), "int32")
//              found_1[0] = A[r, 0]
//              B[r] = found_1[0] + found_1[0]
// An iteration that may read before it writes begins with a copy of what stands there; one whose values may be read
// behind the loop writes them to both. What an iteration allocates itself, in whatever memory, is its own: private.
// From here on one memory may serve the iterations in turn, as in machine code. Loops inside of others come first.
#include <algorithm>
#include <utility>

#include "helve/analysis/iteration_scratch.h"
#include "helve/arith/sum.h"
#include "helve/threads/element_loop.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

/// The innermost body of a nest of loops over elements.
const Stmt& body_of(const For& loop) {
  const For* inner = as<For>(loop.body);
  return inner && is_element_loop(*inner) ? body_of(*inner) : loop.body;
}

Stmt with_body_of(const For& loop, const Stmt& body) {
  const For* inner = as<For>(loop.body);
  return Stmt(copy_with(
      loop, [&](For& out) { out.body = inner && is_element_loop(*inner) ? with_body_of(*inner, body) : body; }));
}

/// The variables of a loop that are not known to have one value, those known to have several, and those that its body
/// binds.
struct Variables {
  std::vector<const Var*> iteration;
  std::vector<const Var*> several;
  std::vector<const Var*> inside;
};

Variables variables_of(const For& loop) {
  Variables out;
  for (const For* level = &loop; level; level = as<For>(level->body)) {
    if (!is_element_loop(*level)) break;
    for (size_t d = 0; d < level->vars.size(); ++d) {
      const int64_t* extent = int_value(level->extents[d]);
      if (!extent || *extent > 1) out.iteration.push_back(level->vars[d].get());
      if (extent && *extent > 1) out.several.push_back(level->vars[d].get());
    }
  }
  walk(body_of(loop), [&](const Stmt& s) {
    if (const Bind* n = as<Bind>(s)) out.inside.push_back(n->var.get());
    if (const For* n = as<For>(s)) {
      for (const VarRef& var : n->vars) out.inside.push_back(var.get());
    }
  });
  return out;
}

bool same_element(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_expr);
}

/// Does the loop store to the buffer otherwise than to one element in each iteration, which is its own and the only one
/// that it reads?
bool is_scratch(const For& loop, const Buffer& buffer) {
  const Variables variables = variables_of(loop);
  const Stmt& body = body_of(loop);
  const std::vector<Expr>* element = nullptr;
  bool scratch = false;
  walk(body, [&](const Stmt& s) {
    const Store* store = as<Store>(s);
    if (!store || store->buffer.get() != &buffer) return;
    if (!element) element = &store->indices;
    scratch |= !same_element(store->indices, *element);
  });
  if (!element) return false;
  walk_exprs(body, [&](const Expr& e) {
    const Load* load = as<Load>(e);
    scratch |= load && &buffer_of(load->buffer) == &buffer && !same_element(load->indices, *element);
  });
  std::vector<const Var*> differ = variables.iteration;
  differ.insert(differ.end(), variables.inside.begin(), variables.inside.end());
  return scratch || !std::all_of(variables.iteration.begin(), variables.iteration.end(), [&](const Var* var) {
    return std::any_of(element->begin(), element->end(),
                       [&](const Expr& index) { return tells_apart(index, var, differ); });
  });
}

class Privatization {
 public:
  explicit Privatization(const Kernel& kernel) : kernel_(kernel) {}

  Stmt run() { return statement(kernel_.body); }

 private:
  Stmt statement(const Stmt& s) {
    if (!s) return s;
    const Alloc* alloc = as<Alloc>(s);
    if (alloc && (in_iteration_ || alloc->buffer->scope == MemoryScope::Local)) outside_.push_back(alloc->buffer);
    const For* loop = as<For>(s);
    if (!loop || !is_element_loop(*loop)) {
      return map_parts(s, [](const Expr& e) { return e; }, [&](const Stmt& part) { return statement(part); });
    }
    const std::vector<BufferRef> outside = outside_;
    const bool divided = !is_divided_inside(*loop), around = std::exchange(in_iteration_, divided || in_iteration_);
    Stmt body = statement(body_of(*loop));  // the loops inside first
    in_iteration_ = around;
    outside_ = outside;
    if (divided) body = made_private(body);
    std::vector<Stmt> before;
    for (const BufferRef& buffer : outside) {
      if (is_scratch(*loop, *buffer)) body = own(*loop, body, buffer, &before);
    }
    if (body == body_of(*loop)) return s;
    before.push_back(with_body_of(*loop, body));
    return seq(std::move(before), s->span);
  }

  /// The body with what it allocates in private memory.
  static Stmt made_private(const Stmt& body) {
    BufferMap moved;
    walk(body, [&](const Stmt& s) {
      const Alloc* n = as<Alloc>(s);
      if (n && n->buffer->scope != MemoryScope::Local) moved.emplace(n->buffer.get(), another(n->buffer));
    });
    return redeclare_buffers(body, moved);
  }

  /// The body with memory of its own in the place of `buffer`; `before` is done in front of the loop.
  Stmt own(const For& loop, const Stmt& body, const BufferRef& buffer, std::vector<Stmt>* before) const {
    const bool finds = reads_before_writing(body, *buffer) != ReadFirst::Never;
    const bool leaves = read_behind(kernel_.body, loop, *buffer) != ReadFirst::Never;
    const BufferRef mine = another(buffer);
    Stmt inside = replace_buffers(body, {{buffer.get(), mine}});
    if (leaves) inside = leaving(inside, mine, buffer, variables_of(loop));
    std::vector<Stmt> out = {alloc(mine, buffer->span)};
    BufferRef found = buffer;
    if (finds && leaves) {  // what one iteration leaves, no other one finds
      found = another(buffer);
      before->push_back(alloc(found, buffer->span));
      before->push_back(copy_of(buffer, found, LoopKind::Parallel));
    }
    if (finds) out.push_back(copy_of(found, mine, LoopKind::Serial));
    out.push_back(inside);
    return seq(std::move(out), body->span);
  }

  /// Stores to `mine` store to `buffer` too, save where several iterations store wherever the loop runs: what they
  /// leave is no value.
  static Stmt leaving(const Stmt& s, const BufferRef& mine, const BufferRef& buffer, const Variables& variables) {
    std::vector<const Store*> several;
    find_stores_of_several(s, *mine, variables, several);
    return rewrite(s, [&](const Stmt& part) -> Stmt {
      const Store* n = as<Store>(part);
      if (!n || n->buffer != mine) return part;
      const bool no_value = std::any_of(several.begin(), several.end(), [&](const Store* each) {
        return same_element(each->indices, n->indices);
      });
      return no_value ? part : seq({store(buffer, n->indices, n->value, part->span), part}, part->span);
    });
  }

  /// The stores that every iteration makes, to elements that do not differ between some of them.
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
    const bool several = std::any_of(variables.several.begin(), variables.several.end(),
                                     [&](const Var* var) { return !names(var); });
    if (several && !inside) out.push_back(n);
  }

  static BufferRef another(const BufferRef& buffer) {
    return make_buffer(buffer->name, buffer->dtype, MemoryScope::Local, buffer->shape, {}, {}, buffer->span);
  }

  static Stmt copy_of(const BufferRef& from, const BufferRef& to, LoopKind kind) {
    std::vector<VarRef> vars;
    for (size_t d = 0; d < from->rank(); ++d) vars.push_back(make_var("e"));
    const std::vector<Expr> at(vars.begin(), vars.end());
    Stmt out = store(to, at, load(from, at));
    for (size_t d = vars.size(); d-- > 0;) out = for_loop(kind, vars[d], from->shape[d], out);
    return out;
  }

  const Kernel& kernel_;
  std::vector<BufferRef> outside_;  ///< private memory that stands around the statement
  bool in_iteration_ = false;       ///< where all memory is private
};

}  // namespace

FunctionRef privatize_scratch(const FunctionRef& f, const PassOptions&) {
  return with_body(f, rewrite(f->body, [](const Stmt& s) -> Stmt {
                     const Kernel* kernel = as<Kernel>(s);
                     if (!kernel) return s;
                     const Stmt body = Privatization(*kernel).run();
                     if (body == kernel->body) return s;
                     return Stmt(copy_with(*kernel, [&](Kernel& out) { out.body = body; }));
                   }));
}

}  // namespace helve
