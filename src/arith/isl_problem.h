// What sets and relations are made of.
// Expressions go through the affine abstraction once, so that equal parts have one unknown.
#pragma once

#include <isl/cpp.h>

#include <optional>
#include <string>
#include <vector>

#include "isl_translator.h"

namespace helve {

/// What sets and relations share: expressions abstracted over a space of tuple, image, locals, unknowns and parameters.
struct Problem {
  Problem(const ExactEngine& engine, std::vector<VarRef> tuple_vars, const Expr& condition_of,
          const std::vector<Expr>& image_of, const std::vector<VarRef>& locals, const Translation& translation);

  std::vector<VarRef> tuple;
  std::vector<VarRef> image;  ///< a variable for each entry, the dimensions after the tuple
  std::vector<VarRef> dims;
  std::vector<VarRef> params;
  Expr condition;
  std::string inexact;
  std::optional<Translator> translator;
  std::optional<isl::set> domain;  ///< nothing when the budget was exceeded

 private:
  /// A condition about which nothing is known, and which nothing else mentions, can always be met: without it and its
  /// unknown the set has the same points, and isl has less to carry.
  void drop_free_conditions(std::vector<VarRef>& unknowns);
  /// Variables of data types hold values of their types.
  isl::set ranges() const;
};

}  // namespace helve
