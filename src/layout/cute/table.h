// The text table of a function of two coordinates.
// Layouts and composed layouts are printed alike.
#pragma once

#include <functional>
#include <string>

#include "helve/layout/cute/int_tuple.h"

namespace helve::cute {

inline constexpr int64_t kMaxTableCells = 1 << 20;

/// `title` and the values of a shape of rank 2. Throws ShapeError for another rank, UnsupportedError for a huge table.
std::string table_text(const std::string& title, const IntTuple& shape, int64_t cosize,
                       const std::function<int64_t(int64_t, int64_t)>& value);

}  // namespace helve::cute
