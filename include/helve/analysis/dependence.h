// Which instances of statements of a region touch one element, in which order: what a schedule must keep.
// The region is any statement of a function; the answer is exact integer relations over the accesses of
// analysis/access.h, so that one check (schedule/legality.h) decides about every rewrite. Most questions of a check are
// decided by which loops carry a dependence, so that relations are made when they are asked for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "helve/analysis/region_statements.h"
#include "helve/arith/contradictions.h"
#include "helve/arith/relation.h"

namespace helve {

/// Two statements that may have instances that touch one element, one of them writing, or whose order counts for
/// another reason (barriers, waits, collectives). Whether there are such instances, `Dependences::pairs` tells.
struct Dependence {
  size_t first, second;  ///< positions in Dependences::statements
  std::optional<size_t> first_access, second_access;  ///< of the model: two that meet; nothing where none is the reason
  /// Both are updates by one operator: any order will do, but not at once.
  bool reduction = false;
  /// The first instance runs before the second: all conditions of one of the `orders` hold. The second instance has the
  /// variables `second_vars`.
  std::vector<VarRef> second_vars;
  std::vector<std::vector<Expr>> orders;

  struct Question;
  std::shared_ptr<Question> question;  ///< what has been asked of it
};

/// The dependences of a region. Iterations of a loop that promises independence (`is_independent`) depend on none of
/// its others, and each execution of an allocation is new memory. Used by one thread at a time.
struct Dependences {
  const Function* function = nullptr;
  Stmt region;
  ExactEngine engine;
  AccessModel model;  ///< of the region
  std::vector<RegionStatement> statements;  ///< in program order
  std::vector<Dependence> list;
  std::shared_ptr<Contradictions> contradictions;

  /// { instance of first -> another instance, of second : they touch one element, and first runs before second };
  /// nothing if it is proved that there are none. Variables of loops around the region and the function's own are
  /// parameters. A superset that says why where subscripts are not affine, or buffers may share memory.
  const std::optional<IntegerRelation>& pairs(const Dependence& each) const;
  /// The condition under which two instances touch one element, each of which is one; further variables than theirs
  /// take any values. For a proof, where no relation is needed.
  const std::vector<Expr>& touching(const Dependence& each) const;
  /// Is it proved at a glance that no two instances touch one element, in any order?
  bool never(const Dependence& each) const;
  /// The same of instances of which a condition holds besides.
  bool never(const Dependence& each, const Expr& condition) const;
  /// Is it proved, without a relation, that no two instances touch one element in that one of the `orders`?
  bool never(const Dependence& each, size_t order) const;
};

/// The dependences of `region`, a statement of the function, which must outlive the result. Of what stands around it,
/// ranges of loops and conditions that read no memory are used; where one node stands at several places, that of the
/// first.
Dependences dependences(const Function& f, const Stmt& region, const ExactEngine& engine);

/// Memory in which an iteration of the loop finds nothing, whatever was written before: of T.Persistent, all that the
/// block allocates outside.
bool is_forgotten(const StmtNode& loop, const Buffer& buffer);

/// Memory of which the iterations of a loop without order have copies, although it is allocated outside of the loop.
/// Dependences are those of one memory and iterations in order, which is more than there are: no iteration sees what
/// another one wrote.
bool is_private(const StmtNode& loop, const Buffer& buffer);

/// The dependences through a buffer that the region allocates, as if it were allocated around the region: those between
/// different executions of its allocation are among them.
std::vector<Dependence> dependences_through(const Dependences& all, const Buffer& buffer);

}  // namespace helve
