// The instances of a statement as a product: variables that no condition connects are apart.
// A rewrite mostly divides or moves one loop, so that all but one dimension are what they were, and small questions.
#pragma once

#include "rewrite.h"

namespace helve::legality {

/// Old and new variables that conditions or values connect are one dimension; where each dimension by itself has all of
/// its instances once, so have all together. For a proof only: the other answers take all dimensions.
struct Dimension {
  std::vector<VarRef> old_vars, new_vars;
  std::vector<Expr> image;  ///< the values of the old variables
  std::vector<Expr> old_conditions, new_conditions;

  bool operator==(const Dimension& other) const;
  /// What reads memory or converts numbers depends on more than its own conditions.
  bool is_plain() const;
};

bool all_same(const std::vector<Expr>& a, const std::vector<Expr>& b);

/// The dimensions of the old statement's instances under the conditions and of the copy's; some are empty.
std::vector<Dimension> dimensions_of(const RegionStatement& was, const std::vector<Expr>& old_conditions,
                                     const Copy& copy);

/// Takes the dimensions that all lists have, the plain ones of several, out of them.
std::vector<Dimension> take_common(std::vector<std::vector<Dimension>>& lists);

/// All in one, the old variables in their order.
Dimension joined(const RegionStatement& was, const std::vector<Dimension>& all);

/// Dimensions that are kept wherever they stand: statements of one nest have many in common.
class KeptDimensions {
 public:
  bool contains(const Dimension& d) const;
  /// What is not plain is left out.
  void add(const Dimension& d);

 private:
  std::vector<Dimension> all_;
};

}  // namespace helve::legality
