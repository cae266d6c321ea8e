// Which instances of statements of a region touch one element, in which order: what a schedule must keep.
// The region is any statement of a function; the answer is exact integer relations over the accesses of
// analysis/access.h, so that one check (schedule/legality.h) decides about every rewrite.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "helve/analysis/region_statements.h"
#include "helve/arith/relation.h"

namespace helve {

/// Two statements with instances that touch one element, one of them writing, or whose order counts for another reason
/// (barriers, waits, collectives).
struct Dependence {
  size_t first, second;  ///< positions in Dependences::statements
  std::optional<size_t> first_access, second_access;  ///< of the model: two that meet; nothing where none is the reason
  /// { instance of first -> another instance, of second : they touch one element, and first runs before second }.
  /// Variables of loops around the region and the function's own are parameters. A superset that says why where
  /// subscripts are not affine, or buffers may share memory.
  IntegerRelation pairs;
  /// Both are updates by one operator: any order will do, but not at once.
  bool reduction = false;
  /// What makes two instances a pair, where each is one: all of `touching` and all conditions of one of the `orders`
  /// hold. The second instance has the variables `second_vars`; further ones take any values. For a proof, where no
  /// relation is needed.
  std::vector<VarRef> second_vars;
  std::vector<Expr> touching;
  std::vector<std::vector<Expr>> orders;
};

/// All dependences of a region. Iterations of a loop that promises independence (`is_independent`) depend on none of
/// its others, and each execution of an allocation is new memory.
struct Dependences {
  const Function* function = nullptr;
  Stmt region;
  ExactEngine engine;
  AccessModel model;  ///< of the region
  std::vector<RegionStatement> statements;  ///< in program order
  std::vector<Dependence> list;
};

/// The dependences of `region`, a statement of the function, which must outlive the result. Of what stands around it,
/// ranges of loops and conditions that read no memory are used; where one node stands at several places, that of the
/// first.
Dependences dependences(const Function& f, const Stmt& region, const ExactEngine& engine);

/// The dependences through a buffer that the region allocates, as if it were allocated around the region: those between
/// different executions of its allocation are among them.
std::vector<Dependence> dependences_through(const Dependences& all, const Buffer& buffer);

}  // namespace helve
