// The IR as Python text.
// The text can be read, compared by tests and parsed to an equal function, so every stage of a compile can be shown and
// run again.
#pragma once

#include <string>
#include <unordered_map>

#include "helve/ir/tensor/function.h"

namespace helve {

struct PrintOptions {
  /// Notes on statements and expressions. The text of a noted node is underlined by a comment line that carries the
  /// note: below the line of the expression, or below the first line of the statement.
  std::unordered_map<const Node*, std::string> notes;
};

/// The function as Python text: the dynamic extents, then the decorated function. Names are unique in the text: hints
/// are made identifiers and numbered (`i`, `i_1`, ...), never keywords, `T` or names that the language knows; equal
/// functions with equal hints give equal text.
///
/// The text relies on these rules of reading bounds (slices, serial(lo, hi), Parallel((lo, hi))): the extent of `lo:hi`
/// is the difference where both are constants; `hi` where lo is 0; `e` where hi reads `lo + e`; else `hi - lo`.
std::string print(const FunctionRef& f, const PrintOptions& options = {});

/// The lines of one statement. Free variables and buffers take their hints.
std::string print(const Stmt& s, const PrintOptions& options = {});

/// One expression, with unique names.
std::string print_expr(const Expr& e);

}  // namespace helve
