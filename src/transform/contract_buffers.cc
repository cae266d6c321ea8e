// Removes a block's buffers, or parts of them, whose values are used only by the iteration that computes them.
// Input and output: lowered loops, fused. A copy of memory that is not written is replaced by its source; a value that
// is used in the iteration that computes it is kept in a local buffer of that iteration; dead stores are deleted.
// Before:  x = T.alloc_shared((64,))                     After:  for v in T.serial(8):
//          for v in T.serial(8):                                     for l in T.vectorized(8):
//              for l in T.vectorized(8): x[v * 8 + l] = A[v * 8 + l]     part[l] = part[l] + A[v * 8 + l]
//              for l in T.vectorized(8):                         for v in T.serial(8):
//                  part[l] = part[l] + x[v * 8 + l]                  x = T.alloc_local((8,))
//          for v in T.serial(8):                                 for l in T.vectorized(8): x[l] = A[v * 8 + l] * s[0]
//              for l in T.vectorized(8):                             for l in T.vectorized(8): B[v * 8 + l] = x[l]
//                  x[v * 8 + l] = x[v * 8 + l] * s[0]
//              for l in T.vectorized(8): B[v * 8 + l] = x[v * 8 + l]
// Nests of equal shape with equal subscripts access the same element in each iteration (analysis/element_access.h), so
// an element's accesses are a list in program order, and a read sees the last write before it in that list. (Different
// subscripts are different memory: analysis/parameter_strides.h.)
#include <algorithm>
#include <map>
#include <unordered_set>

#include "helve/analysis/effects.h"
#include "helve/analysis/element_access.h"
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"
#include "scope_facts.h"

namespace helve {

namespace {

/// The replacement of one access.
struct Change {
  bool remove = false;           ///< of a store
  Expr instead;                  ///< of a load: the value that was stored
  BufferRef local;               ///< the buffer to use instead, of one vector
  std::vector<Expr> place;       ///< and its element
};

/// What becomes of the program; visits are those of the access model.
struct Plan {
  std::map<std::pair<size_t, const ExprNode*>, Change> changes;  ///< by visit and load, null of a store
  std::map<size_t, std::vector<BufferRef>> locals;  ///< for the values of one iteration, by the visit of the loop
  Change& of(const Access& access) { return changes[{access.visit, access.load}]; }
};

/// Counts visits as the access model does.
class Application {
 public:
  explicit Application(const Plan& plan) : plan_(plan) {}

  /// Null where nothing remains.
  Stmt run(const Stmt& s) {
    const size_t visit = visits_++;
    if (const Store* n = as<Store>(s)) return changed(*n, s, visit);
    if (const Seq* n = as<Seq>(s)) {
      std::vector<Stmt> out;
      for (const Stmt& part : n->stmts) {
        if (Stmt own = run(part)) out.push_back(std::move(own));
      }
      return out == n->stmts ? s : seq(std::move(out), s->span);
    }
    if (const For* n = as<For>(s)) return changed(*n, s, visit);
    const auto known = [&](const Expr& e) { return s->kind == StmtKind::Bind ? changed(e, visit) : e; };
    return map_parts(s, known, [&](const Stmt& part) { return part ? run(part) : part; });
  }

 private:
  Expr changed(const Expr& e, size_t visit) const {
    const auto first = plan_.changes.lower_bound({visit, nullptr});
    if (first == plan_.changes.end() || first->first.first != visit) return e;
    return rewrite(e, [&](const Expr& node) -> Expr {
      const Load* n = as<Load>(node);
      const auto at = n ? plan_.changes.find({visit, n}) : plan_.changes.end();
      if (at == plan_.changes.end()) return node;
      if (at->second.instead) return at->second.instead;
      return load(at->second.local, at->second.place, n->span);
    });
  }

  Stmt changed(const Store& n, const Stmt& self, size_t visit) const {
    const auto at = plan_.changes.find({visit, nullptr});
    const bool moves = at != plan_.changes.end();
    if (moves && at->second.remove) return {};
    if (moves) return store(at->second.local, at->second.place, changed(n.value, visit), self->span);
    return map_parts(self, [&](const Expr& e) { return changed(e, visit); }, [](const Stmt& part) { return part; });
  }

  Stmt changed(const For& n, const Stmt& self, size_t visit) {
    Stmt body = run(n.body);
    const Seq* rest = as<Seq>(body);
    if (body != n.body && (!body || (rest && rest->stmts.empty()))) return {};
    if (const auto own = plan_.locals.find(visit); own != plan_.locals.end()) {
      std::vector<Stmt> parts;
      for (const BufferRef& buffer : own->second) parts.push_back(alloc(buffer));
      parts.push_back(body);
      body = seq(std::move(parts));
    }
    return body == n.body ? self : Stmt(copy_with(n, [&](For& copy) { copy.body = std::move(body); }));
  }

  const Plan& plan_;
  size_t visits_ = 0;
};

class Contraction final : public ScopedRewriter {
 public:
  explicit Contraction(const Function& f) : ScopedRewriter(f), written_(written_memory(f)) {}

 protected:
  Stmt leave(const Stmt& s, const Facts& facts) override {
    const Seq* n = as<Seq>(s);
    if (!n || !enclosing_kernel()) return s;
    Stmt out = s;
    std::optional<AccessModel> model;  // of `out`
    for (const Stmt& part : n->stmts) {
      const Alloc* a = as<Alloc>(part);
      if (!a || is_tiled(*a->buffer)) continue;
      if (!model) model = access_model(out);
      const Stmt shorter = contract(out, *model, *a->buffer, facts);
      if (shorter == out) continue;
      model.reset();
      out = shorter;
    }
    return out;
  }

 private:
  /// `s` with the histories of the elements of `buffer` as short as they are known to be.
  Stmt contract(const Stmt& s, const AccessModel& model, const Buffer& buffer, const Facts& facts) {
    const std::optional<std::vector<ElementAccess>> accesses = element_accesses(model, buffer);
    if (!accesses) return s;
    if (accesses->empty()) return without_alloc(s, buffer);
    const size_t outer = common_loops(*accesses);
    Facts inside = facts;
    for (size_t k = 0; k < outer; ++k) {
      const NestLoop& loop = (*accesses)[0].loops[k];
      enter_loop(inside, loop.var, loop.begin, loop.extent);
    }
    const std::optional<std::vector<ElementClass>> classes = element_classes(model, *accesses, outer, inside);
    if (!classes) return s;
    const auto is_write = [&](size_t i) { return (*accesses)[i].access->write; };
    Plan plan;
    for (const ElementClass& c : *classes) {
      if (!is_write(c.members[0])) return s;  // reads previous contents
      for (size_t k = 0; k < c.members.size();) {
        size_t end = k + 1;
        while (end < c.members.size() && !is_write(c.members[end])) ++end;
        const std::vector<size_t> reads(c.members.begin() + static_cast<std::ptrdiff_t>(k) + 1,
                                        c.members.begin() + static_cast<std::ptrdiff_t>(end));
        shorten(*accesses, c.members[k], reads, outer, buffer, &plan);
        k = end;
      }
    }
    if (plan.changes.empty()) return s;
    const bool unused = std::all_of(accesses->begin(), accesses->end(), [&](const ElementAccess& each) {
      return plan.changes.contains({each.access->visit, each.access->load});
    });
    const Stmt out = Application(plan).run(s);
    return unused ? without_alloc(out, buffer) : out;
  }

  /// Contracts one stored value and the loads that see it.
  void shorten(const std::vector<ElementAccess>& accesses, size_t write, const std::vector<size_t>& reads, size_t outer,
               const Buffer& buffer, Plan* plan) const {
    const ElementAccess& from = accesses[write];
    if (reads.empty() || lies_elsewhere(from, outer)) {
      plan->of(*from.access).remove = true;
      for (size_t r : reads) plan->of(*accesses[r].access).instead = moved(from, accesses[r], outer);
      return;
    }
    // The common loops of all these accesses, except a vector's.
    size_t shared = from.loops.size();
    const bool vector = shared > 0 && from.loops.back().kind == LoopKind::Vectorized;
    shared -= vector;
    if (shared == 0) return;
    for (size_t r : reads) {
      if (accesses[r].loops[shared - 1].visit != from.loops[shared - 1].visit) return;
    }
    const NestLoop& home = from.loops[shared - 1];
    // The body of a loop with several variables belongs to the last of them.
    if (home.loop->vars.back() != home.var) return;
    const Expr lanes = vector ? from.loops.back().extent : int_imm(1);
    if (!int_value(lanes)) return;
    const BufferRef local = make_buffer(buffer.name, buffer.dtype, MemoryScope::Local, {lanes});
    auto use_local = [&](size_t access) {
      const NestLoop& lane = accesses[access].loops.back();
      Change& change = plan->of(*accesses[access].access);
      change.local = local;
      change.place = {vector ? simplify(Expr(lane.var) - lane.begin) : int_imm(0)};
    };
    use_local(write);
    for (size_t r : reads) use_local(r);
    plan->locals[home.visit].push_back(local);
  }

  /// Is the stored value an element of memory that is not written, read along the rows of its buffer?
  bool lies_elsewhere(const ElementAccess& from, size_t outer) const {
    if (from.opaque) return false;
    const Expr& value = from.access->value;
    const Cast* cast = as<Cast>(value);
    const Load* source = as<Load>(cast ? cast->value : value);
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

  /// The value of a store in terms of another access's nest.
  static Expr moved(const ElementAccess& from, const ElementAccess& to, size_t outer) {
    Substitution names;
    for (size_t k = outer; k < from.loops.size(); ++k) names.emplace(from.loops[k].var.get(), Expr(to.loops[k].var));
    return substitute(from.access->value, names);
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
