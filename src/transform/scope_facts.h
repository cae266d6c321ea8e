// Rewriting with the facts that hold at each place.
// Loop bounds, grid extents and guards hold inside the statements that they enclose, as far as they do not read memory;
// passes that simplify or prove share this walk. Code under contradictory facts never runs, so it is removed.
#pragma once

#include "helve/arith/facts.h"
#include "helve/ir/tensor/function.h"

namespace helve {

/// `facts` for the body of a loop. Bounds that read memory limit the variable by their ranges alone: the body may
/// change the memory.
void enter_loop(Facts& facts, const VarRef& var, const Expr& begin, const Expr& extent);

/// Rewrites statements bottom up, while collecting facts about variables on the way down. Loops and branches under
/// contradictory facts are removed.
class ScopedRewriter {
 public:
  /// Dynamic extents of the function are known to be at least 0.
  explicit ScopedRewriter(const Function& f);
  virtual ~ScopedRewriter() = default;

  /// When a condition that always holds is removed, so is the code under it that certainly faults.
  Stmt rewrite(const Stmt& s);

 protected:
  /// Expressions of a statement, under the facts that hold there.
  virtual Expr expression(const Expr& e, const Facts&) { return e; }
  /// A statement after its parts, under the facts that hold there.
  virtual Stmt leave(const Stmt& s, const Facts&) { return s; }

  const Kernel* enclosing_kernel() const { return kernel_; }
  const MeshShape* mesh() const { return mesh_; }
  Stmt rewrite_under(const Stmt& s, const Facts& facts);

 private:
  Stmt rewrite_seq(const Seq& s, const Stmt& self, const Facts& facts);
  Stmt rewrite_if(const If& s, const Stmt& self, const Facts& facts);

  Facts top_;
  const MeshShape* mesh_;
  const Kernel* kernel_ = nullptr;
};

}  // namespace helve
