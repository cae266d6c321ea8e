// Values that wait in block memory only to be read again at the same place of an equal loop go without it.
// Input and output: lowered loops, fused. A copy of what nobody writes is read where it lies; a value that is used in
// the iteration that makes it is kept for that iteration alone; what nobody reads is not stored.
// Before:  x = T.alloc_shared((64,))                     After:  for v in T.serial(8):
//          for v in T.serial(8):                                     for l in T.vectorized(8):
//              for l in T.vectorized(8): x[v * 8 + l] = A[v * 8 + l]     part[l] = part[l] + A[v * 8 + l]
//              for l in T.vectorized(8):                         for v in T.serial(8):
//                  part[l] = part[l] + x[v * 8 + l]                  x = T.alloc_local((8,))
//          for v in T.serial(8):                                 for l in T.vectorized(8): x[l] = A[v * 8 + l] * s[0]
//              for l in T.vectorized(8):                             for l in T.vectorized(8): B[v * 8 + l] = x[l]
//                  x[v * 8 + l] = x[v * 8 + l] * s[0]
//              for l in T.vectorized(8): B[v * 8 + l] = x[v * 8 + l]
// Nests of equal shape with equal subscripts touch one element each iteration (analysis/element_access.h), so that an
// element's history is the list of the accesses in program order, and a read sees the last write before it in that
// list. (Other subscripts are other memory: analysis/parameter_strides.h.)
#include <algorithm>
#include <unordered_set>

#include "helve/analysis/effects.h"
#include "helve/analysis/element_access.h"
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"
#include "scope_facts.h"

namespace helve {

namespace {

/// What becomes of one access.
struct Change {
  bool remove = false;           ///< of a store
  Expr instead;                  ///< of a load: the value that was stored
  BufferRef local;               ///< the buffer to use instead, of one vector
  std::vector<Expr> place;       ///< and the element of it
};

/// A buffer for the values of one iteration, and the loop whose body it lives in.
struct LocalBuffer {
  BufferRef buffer;
  int visit;
};

struct Plan {
  std::vector<Change> changes;  ///< one an access
  std::vector<LocalBuffer> locals;
  bool any = false;
};

class Application final : public ElementWalk {
 public:
  Application(const Buffer& buffer, const Plan& plan) : ElementWalk(buffer), plan_(plan) {}

 private:
  Expr on_load(const Load& node, const Expr& self) override {
    const Change& change = plan_.changes[next_++];
    if (change.instead) return change.instead;
    return change.local ? load(change.local, change.place, node.span) : self;
  }
  Stmt on_store(const Store&, const Stmt& self) override {
    const Change& change = plan_.changes[next_++];
    if (change.remove) return {};
    return change.local ? store(change.local, change.place, as<Store>(self)->value, self->span) : self;
  }
  Stmt leave_loop(const Stmt& s, int visit) override {
    std::vector<Stmt> body;
    for (const LocalBuffer& local : plan_.locals) {
      if (local.visit == visit) body.push_back(alloc(local.buffer));
    }
    if (body.empty()) return s;
    const For& loop = *as<For>(s);
    body.push_back(loop.body);
    return Stmt(copy_with(loop, [&](For& copy) { copy.body = seq(std::move(body)); }));
  }

  const Plan& plan_;
  size_t next_ = 0;
};

class Contraction final : public ScopedRewriter {
 public:
  explicit Contraction(const Function& f) : ScopedRewriter(f), written_(written_memory(f)) {}

 protected:
  Stmt leave(const Stmt& s, const Facts& facts) override {
    const Seq* n = as<Seq>(s);
    if (!n || !enclosing_kernel()) return s;
    Stmt out = s;
    for (const Stmt& part : n->stmts) {
      const Alloc* a = as<Alloc>(part);
      if (a && !is_tiled(*a->buffer)) out = contract(out, *a->buffer, facts);
    }
    return out;
  }

 private:
  /// `s` with the histories of the elements of `buffer` as short as they are known to be.
  Stmt contract(const Stmt& s, const Buffer& buffer, const Facts& facts) {
    const std::optional<std::vector<ElementAccess>> accesses = element_accesses(s, buffer);
    if (!accesses) return s;
    if (accesses->empty()) return without_alloc(s, buffer);
    const size_t outer = common_loops(*accesses);
    Facts inside = facts;
    for (size_t k = 0; k < outer; ++k) {
      const NestLoop& loop = (*accesses)[0].loops[k];
      enter_loop(inside, loop.var, loop.begin, loop.extent);
    }
    const std::optional<std::vector<ElementClass>> classes = element_classes(*accesses, outer, inside);
    if (!classes) return s;
    Plan plan{std::vector<Change>(accesses->size()), {}, false};
    for (const ElementClass& c : *classes) {
      if (!(*accesses)[c.members[0]].write) return s;  // what was there before is read
      for (size_t k = 0; k < c.members.size();) {
        size_t end = k + 1;
        while (end < c.members.size() && !(*accesses)[c.members[end]].write) ++end;
        const std::vector<size_t> reads(c.members.begin() + static_cast<std::ptrdiff_t>(k) + 1,
                                        c.members.begin() + static_cast<std::ptrdiff_t>(end));
        shorten(*accesses, c.members[k], reads, outer, buffer, &plan);
        k = end;
      }
    }
    if (!plan.any) return s;
    return without_unused(Application(buffer, plan).walk(s), buffer);
  }

  /// Decides about one stored value and the loads that see it.
  void shorten(const std::vector<ElementAccess>& accesses, size_t write, const std::vector<size_t>& reads, size_t outer,
               const Buffer& buffer, Plan* plan) const {
    const ElementAccess& from = accesses[write];
    if (reads.empty() || lies_elsewhere(from, outer)) {
      plan->changes[write].remove = true;
      for (size_t r : reads) plan->changes[r].instead = moved(from.value, from, accesses[r], outer);
      plan->any = true;
      return;
    }
    // The loops that one iteration of all of them share: all but a vector's.
    size_t shared = from.loops.size();
    const bool vector = shared > 0 && from.loops.back().kind == LoopKind::Vectorized;
    shared -= vector;
    if (shared == 0) return;
    for (size_t r : reads) {
      if (accesses[r].loops[shared - 1].visit != from.loops[shared - 1].visit) return;
    }
    const NestLoop& home = from.loops[shared - 1];
    // A loop of several variables has one body, for the last of them.
    if (home.loop->vars.back() != home.var) return;
    const Expr lanes = vector ? from.loops.back().extent : int_imm(1);
    if (!int_value(lanes)) return;
    const BufferRef local = make_buffer(buffer.name, buffer.dtype, MemoryScope::Local, {lanes});
    auto use_local = [&](size_t access) {
      const NestLoop& lane = accesses[access].loops.back();
      plan->changes[access].local = local;
      plan->changes[access].place = {vector ? simplify(Expr(lane.var) - lane.begin) : int_imm(0)};
    };
    use_local(write);
    for (size_t r : reads) use_local(r);
    plan->locals.push_back({local, home.visit});
    plan->any = true;
  }

  /// Is the stored value an element that nobody writes, read along the rows of its buffer?
  bool lies_elsewhere(const ElementAccess& from, size_t outer) const {
    if (from.opaque) return false;
    const Cast* cast = as<Cast>(from.value);
    const Load* source = as<Load>(cast ? cast->value : from.value);
    if (!source || written_.contains(&buffer_of(source->buffer)) || !is_global(buffer_of(source->buffer))) return false;
    if (std::any_of(source->indices.begin(), source->indices.end(), has_load)) return false;
    if (from.loops.size() == outer) return true;
    const Var* lane = from.loops.back().var.get();
    for (size_t d = 0; d < source->indices.size(); ++d) {
      const Expr next = substitute(source->indices[d], {{lane, Expr(from.loops.back().var) + int_imm(1)}});
      const std::optional<int64_t> step = constant_value(simplify(next - source->indices[d]));
      const bool last = d + 1 == source->indices.size();
      if (!step || *step < 0 || *step > (last ? 1 : 0)) return false;
    }
    const std::vector<Expr>& strides = buffer_of(source->buffer).strides;
    return strides.empty() || (int_value(strides.back()) && *int_value(strides.back()) == 1);
  }

  /// A value of the nest of one access in the nest of another.
  static Expr moved(const Expr& value, const ElementAccess& from, const ElementAccess& to, size_t outer) {
    Substitution names;
    for (size_t k = outer; k < from.loops.size(); ++k) names.emplace(from.loops[k].var.get(), Expr(to.loops[k].var));
    return substitute(value, names);
  }

  static Stmt without_unused(const Stmt& s, const Buffer& buffer) {
    const std::optional<std::vector<ElementAccess>> left = element_accesses(s, buffer);
    return left && left->empty() ? without_alloc(s, buffer) : s;
  }

  static Stmt without_alloc(const Stmt& s, const Buffer& buffer) {
    std::vector<Stmt> out;
    const Seq* n = as<Seq>(s);
    for (const Stmt& part : n ? n->stmts : std::vector<Stmt>{s}) {
      const Alloc* a = as<Alloc>(part);
      if (!a || a->buffer.get() != &buffer) out.push_back(part);
    }
    return seq(std::move(out), s->span);
  }

  std::unordered_set<const Buffer*> written_;
};

}  // namespace

FunctionRef contract_buffers(const FunctionRef& f, const PassOptions&) {
  return with_body(f, Contraction(*f).rewrite(f->body));
}

}  // namespace helve
