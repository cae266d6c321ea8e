// Accesses of one buffer in lowered loops, element by element.
// Passes that move or remove values and code generation ask the same question: which accesses touch the same element,
// in which order. Loops of equal shape whose accesses have equal subscripts answer it without a solver.
#pragma once

#include <functional>
#include <optional>
#include <unordered_set>
#include <vector>

#include "helve/arith/facts.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/stmt.h"

namespace helve {

/// One dimension of a loop around an access. Two visits of one shared node are two loops: `visit` tells them apart.
struct NestLoop {
  VarRef var;
  Expr begin;
  Expr extent;
  LoopKind kind = LoopKind::Serial;
  int visit = 0;
  const For* loop = nullptr;
};

/// One place where an element is read or written. Names bound between the root and the place are replaced by what they
/// stand for.
struct ElementAccess {
  bool write = false;
  std::vector<Expr> indices;
  Expr value;                   ///< of a write
  std::vector<NestLoop> loops;  ///< below the root, outermost first
  bool opaque = false;          ///< uses a name that stands for what was read from memory
};

/// Visits a statement in the order of execution: operands of a store before the store, loops once. Numbers of accesses
/// and of visits of loops are the same in every walk of the same statement.
class ElementWalk {
 public:
  explicit ElementWalk(const Buffer& buffer) : buffer_(buffer) {}
  virtual ~ElementWalk() = default;

  Stmt walk(const Stmt& s);
  /// Does something touch the buffer that is not an element access on a straight path: under a condition, in a loop's
  /// bounds?
  bool unclear() const { return unclear_; }

 protected:
  virtual Expr on_load(const Load&, const Expr& self) { return self; }
  /// The store after its operands; null removes it.
  virtual Stmt on_store(const Store&, const Stmt& self) { return self; }
  virtual Stmt leave_loop(const Stmt& loop, int) { return loop; }

  ElementAccess access(const std::vector<Expr>& indices, const Expr& value) const;

 private:
  Expr expression(const Expr& e, bool straight);
  Stmt loop(const For& loop, const Stmt& self);
  Stmt bind(const Bind& bind, const Stmt& self);
  bool touches(const Stmt& s) const;
  bool opaque(const Expr& e) const;

  const Buffer& buffer_;
  std::vector<NestLoop> loops_;
  Substitution names_;
  std::unordered_set<const Var*> read_names_;  ///< bound to values from memory
  int visits_ = 0;
  int conditions_ = 0;
  bool unclear_ = false;
};

/// Every access of `buffer` below `s` in order of execution; nothing when they are not all plain.
std::optional<std::vector<ElementAccess>> element_accesses(const Stmt& s, const Buffer& buffer);

/// Accesses that touch element `indices` of a buffer at the iteration `loops` of nests of one shape, and no other
/// element.
struct ElementClass {
  std::vector<NestLoop> loops;  ///< with variables of the class's own
  std::vector<Expr> indices;
  std::vector<size_t> members;  ///< places in the list of accesses, in order
  Facts facts;  ///< what holds inside the nest
};

/// The number of loops around all accesses that are the same for all of them.
size_t common_loops(const std::vector<ElementAccess>& accesses);

/// The class that `access` founds, below its `outer` first loops; `facts` hold around the others.
ElementClass class_of(const ElementAccess& access, size_t outer, const Facts& facts);

/// Does `access` belong to the class? Its nest has as many loops, of equal kinds and bounds, and the subscripts are
/// equal.
bool same_class(const ElementClass& known, const ElementAccess& access, size_t outer, const Facts& facts);

/// The accesses by class. Nothing unless every class is known to touch an element in one iteration only, and two
/// classes never the same.
std::optional<std::vector<ElementClass>> element_classes(const std::vector<ElementAccess>& accesses, size_t outer,
                                                         const Facts& facts);

}  // namespace helve
