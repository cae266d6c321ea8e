// What a primitive makes of a function: the new function, where cursors go, and which instance of the old program each
// statement of the new one runs.
// The last is all that the checker (legality.h) needs, so no primitive decides by itself whether it is legal.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "helve/schedule/edit.h"
#include "helve/schedule/legality.h"

namespace helve {

/// Variables of old loops in terms of new ones; one that is not named keeps its value, or is that of the last
/// iteration where its loop is gone.
using LoopValues = std::vector<std::pair<VarRef, Expr>>;

/// A statement of the new function, with all below it, runs what one of the old function ran.
struct Piece {
  Cursor before;  ///< in the old function
  Cursor after;  ///< in the new function; of the same form
  LoopValues values;
};

/// A new function with what its change means: the loops of an operation (analysis/operation_loops.h) or of a program of
/// cores (analysis/core_phases.h), or the statements of another function before the steps of a schedule of that.
struct Meaning {
  Edited edited;
  Block place;  ///< of the loops or statements
  RegionForm form = RegionForm::Operation;
  bool carries = false;  ///< do cursors carried along say where instances go, besides the pieces?
};

/// Stores of single elements that the new program runs besides those of the old one, written into it.
struct Unseen {
  FunctionRef function;
  std::vector<Cursor> stores;
};

/// The value of a store stands in the place of a load. The load and the store are in the old function, or, in a rewrite
/// that is judged backwards, in the new one.
struct Inlined {
  Cursor at;  ///< the statement that loads, in the old function
  const ExprNode* load;
  Cursor writer;  ///< the store
  LoopValues values;  ///< of its loops, in terms of those around the statement without the load
};

struct Rewrite {
  Edited edited;
  Block before;  ///< what it changed, in the old function
  Block after;  ///< the same in the new function
  LoopValues values;  ///< of statements that cursors carried along
  std::vector<Piece> pieces;  ///< of others, and where the values are others; a later one counts before an earlier one
  std::vector<Cursor> results;  ///< statements that the user goes on with, in the new function
  std::vector<BufferRef> by_value = {};  ///< buffers that statements write more often, or less, or read elsewhere
  std::vector<Inlined> inlined = {};
  /// Judged as the rewrite of the new function to the old one: stores that are new give values that stood in the place
  /// of loads. Without pieces; `by_value` and `inlined` are of that rewrite.
  bool backwards = false;
  /// Judged in the place of the new function; pieces are of statements here.
  std::optional<Meaning> meaning = {};
  /// What the meaning leaves out, for nobody sees it (unseen.h).
  std::optional<Unseen> unseen = {};
  /// What is known of the steps from the meaning to the new function: do some change the order of reductions, and why
  /// is one not proved, if one is not?
  bool reassociates = false;
  std::string unproved = {};
};

}  // namespace helve
