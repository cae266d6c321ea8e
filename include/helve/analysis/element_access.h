// Accesses of one buffer in lowered loops, element by element.
// Passes that remove values or fetch them early ask the same question of the access model: which accesses touch the
// same element, in which order. Loops of equal shape whose accesses have equal subscripts answer it without a
// solver.
#pragma once

#include <optional>
#include <vector>

#include "helve/analysis/access.h"

namespace helve {

/// One dimension of a loop around an access. Two visits of one shared node are two loops: `visit` tells them apart.
struct NestLoop {
  VarRef var;
  Expr begin;
  Expr extent;
  LoopKind kind = LoopKind::Serial;
  size_t visit = 0;
  const For* loop = nullptr;
};

/// One place where an element is read or written.
struct ElementAccess {
  const Access* access;
  std::vector<Expr> indices;
  std::vector<NestLoop> loops;  ///< of the model, outermost first
  bool opaque = false;  ///< the subscripts or the value use a name whose value is not known
};

/// Every access of `buffer` in order of execution; nothing when some are not element accesses on a straight path: under
/// a statement's condition, in a loop's bounds, in a program with tile operations.
std::optional<std::vector<ElementAccess>> element_accesses(const AccessModel& model, const Buffer& buffer);

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
std::optional<std::vector<ElementClass>> element_classes(const AccessModel& model,
                                                         const std::vector<ElementAccess>& accesses, size_t outer,
                                                         const Facts& facts);

}  // namespace helve
