// Expressions in normal form; loops and branches with a known outcome are removed, and so is code that certainly
// faults.
// Input and output: any stage. Effects and their order are unchanged. A Persistent loop of one iteration stays: it
// determines which block runs it.
// Before:  for t in T.serial(1): if t < 4: X[(t * 32 + i) // 32] = 0.0
// After:   X[0] = 0.0                                     (0 <= i < 32)
#include "certain_faults.h"
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"
#include "scope_facts.h"

namespace helve {

namespace {

class Simplification final : public ScopedRewriter {
 public:
  explicit Simplification(const Function& f) : ScopedRewriter(f) {}

 protected:
  Expr expression(const Expr& e, const Facts& facts) override {
    const Expr normal = simplify(e, facts);
    const Expr sound = without_faults(normal);
    return sound == normal ? normal : simplify(sound, facts);
  }

  Stmt leave(const Stmt& s, const Facts& facts) override {
    if (const For* loop = as<For>(s)) return decided_loop(*loop, s, facts);
    if (const If* branch = as<If>(s)) return decided_branch(*branch, s);
    return without_fault(s, mesh());
  }

 private:
  static bool is_empty(const Stmt& s) {
    const Seq* n = as<Seq>(s);
    return !s || (n && n->stmts.empty());
  }

  /// Dimensions of one iteration are substituted; an empty dimension removes the loop. A begin that reads memory stays:
  /// its uses may come after a write.
  Stmt decided_loop(const For& loop, const Stmt& self, const Facts& facts) {
    Substitution values;
    std::vector<VarRef> vars;
    std::vector<Expr> begins, extents;
    for (size_t d = 0; d < loop.vars.size(); ++d) {
      const int64_t* extent = int_value(loop.extents[d]);
      if (extent && *extent <= 0) return seq({}, self->span);
      if (extent && *extent == 1 && loop.loop != LoopKind::Persistent && !has_load(loop.begins[d])) {
        values.emplace(loop.vars[d].get(), loop.begins[d]);
        continue;
      }
      vars.push_back(loop.vars[d]);
      begins.push_back(loop.begins[d]);
      extents.push_back(loop.extents[d]);
    }
    if (is_empty(loop.body)) return seq({}, self->span);
    if (values.empty()) return self;
    Stmt body = substitute(loop.body, values);
    if (vars.empty()) return rewrite_under(body, facts);
    const Ref<For> rest = copy_with(loop, [&](For& copy) {
      copy.vars = std::move(vars);
      copy.begins = std::move(begins);
      copy.extents = std::move(extents);
      copy.body = body;
    });
    return rewrite_under(Stmt(rest), facts);
  }

  Stmt decided_branch(const If& branch, const Stmt& self) {
    if (const int64_t* v = int_value(branch.condition)) {
      if (*v) return branch.then_body;
      return branch.else_body ? branch.else_body : seq({}, self->span);
    }
    if (is_empty(branch.then_body) && is_empty(branch.else_body)) return seq({}, self->span);
    return self;
  }
};

}  // namespace

FunctionRef simplify_function(const FunctionRef& f, const PassOptions&) {
  return with_body(f, Simplification(*f).rewrite(f->body));
}

}  // namespace helve
