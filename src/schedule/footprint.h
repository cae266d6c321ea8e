// The elements of a buffer that a statement accesses, as a box.
// What a copy of a part of a tensor must hold, in terms of the loops around the statement.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "helve/analysis/path_conditions.h"
#include "helve/schedule/cursor.h"

namespace helve {

/// The largest expression of a bound that goes into a program.
inline constexpr int kBoxBoundLimit = 12;

/// Adds what holds inside of the region on a path.
void add_inside(PathConditions& query, const AccessModel& model, const Path& path);

/// Is the condition false wherever the statement at the place is reached?
bool never_at(const FunctionRef& f, const Cursor& at, const Expr& condition);

struct Footprint {
  std::vector<Expr> begin, extent;  ///< the least box, in variables of the loops around the statement
  std::vector<std::optional<int64_t>> most;  ///< the largest value of each extent, where it is a constant
  bool reads = false;  ///< does the statement read the buffer, or update it?
};

/// The footprint in `buffer` of the statement at the place; a sentence about why there is none.
struct FootprintResult {
  std::optional<Footprint> box;
  std::string reason;
};
/// Only of accesses below the statements `within`, if there are any; these are below the place.
FootprintResult footprint(const FunctionRef& f, const Cursor& at, const Buffer& buffer,
                          const std::vector<Stmt>& within = {});

/// Does the box hold elements that the statement may not write before it reads them, or not at all?
bool needs_old(const FunctionRef& f, const Cursor& at, const Buffer& buffer, const Footprint& box);

}  // namespace helve
