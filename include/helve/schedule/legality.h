// Is a rewrite of a region legal? The one checker of all schedules, as translation validation.
// A rewrite says of each statement which instances of the old program it runs; isl then decides that each of these runs
// exactly once and that no dependence is turned. Statements that only copy elements may be new; then what is read from
// the memory that they copy must be what was read before. The same question decides about statements that run again.
// So a primitive needs no conditions of its own.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "helve/analysis/dependence.h"

namespace helve {

/// A load of an old statement in whose place the value of a store stands, and the instance of the store: variables of
/// the loops around it in terms of those around the new statement.
struct InlinedValue {
  const ExprNode* load = nullptr;
  size_t before_visit = 0;  ///< of the store
  std::vector<std::pair<VarRef, Expr>> values;  ///< one that is not named keeps its value
};

/// Which instances of the old region a statement of the new one runs. Every RegionStatement of the new region needs
/// one, but stores that copy an element to another place, `W[i] = A[i]`, may do without, and so may stores that fill
/// new memory with the identity of an operator, updates by it that merge this memory into another one, and what is
/// proved never to run; origins of other statements are ignored.
struct Origin {
  const StmtNode* after = nullptr;
  size_t after_visit = 0;  ///< of the new region, which is visit 0 (`walk`'s order)
  size_t before_visit = 0;  ///< of the old region
  /// Variables of the old loops in terms of the new ones. One that is not named keeps its value, if a loop around the
  /// new statement has the same variable, and has the value of its loop's last iteration, if none has.
  std::vector<std::pair<VarRef, Expr>> values;
  std::vector<InlinedValue> inlined = {};
};

enum class RewriteFault {
  None,
  Turned,  ///< `second` would run before `first`, on which it depends
  AtOnce,  ///< the two would run in different iterations of a loop whose iterations have no order
  Lost,  ///< an instance does not run any more
  Twice,  ///< an instance runs twice
  Added,  ///< an instance runs that did not
  Changed,  ///< a statement is not the one that it comes from, or what it reads is another value
  Value,  ///< `first` reads what `second` wrote, and would read what `instead` wrote
  Left,  ///< `element` is left as `second` wrote it, and would be as `instead` did
  Shared,  ///< the two would touch one element in different iterations of a loop whose iterations have no order
  Filled,  ///< `first` adds to a partial result that is not the identity before its first update
  Merged,  ///< what `first` adds to is not merged next, once and into the element that it updates now
  Outside,  ///< `element` would be updated where it may be nobody's, or another iteration's
  Seen,  ///< `first` reads an element that `second`, which does not run now, would write
  Memory  ///< the two touch one element, but would do so in two different executions of its allocation
};

/// An instance of a statement of the old region.
struct Instance {
  const StmtNode* stmt = nullptr;
  std::optional<Access> access;  ///< that is at fault, if one is
  Witness at;  ///< values of the loops around it inside the region
};

struct Legality {
  Verdict verdict = Verdict::Unknown;
  /// Proved only because the updates of a reduction may run in any order: some do run in another one.
  bool reassociates = false;
  RewriteFault fault = RewriteFault::None;  ///< if refuted
  std::optional<Instance> first, second;  ///< of the fault; `second` of those that name it
  /// Of Value and Left, where no instance means what stood there before the region.
  std::optional<Instance> instead;
  bool nothing = false;  ///< of Value and Left: what would be read holds nothing yet
  std::string element;  ///< of Left and Outside: "A[3, 4]"
  Witness given;  ///< values of what is fixed outside of the region
  std::string reason;  ///< if unknown
  std::string remedy;  ///< of a reason that has one of its own
};

/// "iteration i = 1 of B[i - 1] would run before i = 0, on which it depends": a sentence about what is wrong or
/// unknown; empty if proved.
std::string text_of(const Legality& legality);

/// What the new region is: a part of a program; or the loops that one tile operation means
/// (analysis/operation_loops.h), which combines the updates of an element itself, in any order; or what a program was
/// before values got stores of their own, which then must compute no other ones: each is one that a load stood for.
enum class RegionForm { Program, Operation, WithoutStores };

/// Does a program with `after` in the place of `before_region` (a statement of `before`; the first, where the node
/// stands at several places) do the same? `after` must have passed the verifier there.
///
/// Of the buffers `by_value` the order of accesses is no question, but what each read sees. A store to such a buffer
/// may run again, or not at all, as long as each of its runs reads what it read, and so does everything else.
Legality check_rewrite(const Function& before, const Stmt& before_region, const Stmt& after_region,
                       const std::vector<Origin>& origins, const ExactEngine& engine,
                       const std::vector<BufferRef>& by_value = {}, RegionForm form = RegionForm::Program);

/// The same for one region and several rewrites of it: dependences are computed once.
Legality check_rewrite(const Dependences& before, const Stmt& after_region, const std::vector<Origin>& origins,
                       const std::vector<BufferRef>& by_value = {}, RegionForm form = RegionForm::Program);

}  // namespace helve
