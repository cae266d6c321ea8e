// Is an expression, or a statement, of the new region that of the old one at the instance that a copy runs?
// Subscripts may be written in any way that has the same value; what reads memory must read at the same place of the
// program.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "rewrite.h"

namespace helve::legality {

class Matcher {
 public:
  Matcher(const Rewrite& rewrite, const Copy& copy) : rewrite_(rewrite), copy_(copy) {}

  /// Does `now`, at the copy's instance, mean what `old` means at the old instance, where names and loads have the same
  /// values?
  bool same(const Expr& old, const Expr& now);
  /// The same of the copy's statement.
  bool same_statement();
  /// Is what the step's condition reads the same, since the step's statement runs the same old instance?
  bool same_place(const Step& old, const Step& now) const;

  /// The loads that `same_statement` left to the check of values: of the old statement and in their place.
  const std::vector<std::pair<const ExprNode*, const ExprNode*>>& moved() const { return moved_; }

  /// An instance at which an index expression differs, if `same` found one.
  const Answer& difference() const { return difference_; }

 private:
  bool same_index(const Expr& here, const Expr& now);
  bool is_staged(const Storage* buffer) const;
  bool reads_staged(const Expr& e) const;
  bool same_name(const Var* old, const Var* now);
  bool same_statement_at(size_t old_visit, size_t now_visit) const;

  const Rewrite& rewrite_;
  const Copy& copy_;
  Answer difference_;
  bool moves_ = false;  ///< is the statement compared, in which values of staged memory may be read elsewhere?
  std::vector<std::pair<const ExprNode*, const ExprNode*>> moved_;
  std::set<std::pair<const ExprNode*, const ExprNode*>> known_;  ///< large expressions that are the same
};

}  // namespace helve::legality
