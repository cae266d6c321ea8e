// Is an expression, or a statement, of the new region that of the old one at the instance that a copy runs?
// Subscripts may be written in any way that has the same value; what reads memory must read at the same place of the
// program.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "rewrite.h"

namespace helve::legality {

/// A load of the old region and the one that stands for it.
using LoadPair = std::pair<const ExprNode*, const ExprNode*>;

/// A load in whose place a value stands, and the loads of that value.
struct MatchedValue {
  const InlinedLoad* inlined;
  std::vector<LoadPair> loads;
};

class Matcher {
 public:
  Matcher(const Rewrite& rewrite, const Copy& copy) : rewrite_(rewrite), copy_(copy) {}

  /// Does `now`, at the copy's instance, mean what `old` means at the old instance, where names and loads have the same
  /// values?
  bool same(const Expr& old, const Expr& now);
  /// The same of the copy's statement.
  bool same_statement();
  /// The same of a part of the old statement at another place of the program: what its loads see is left open.
  bool same_elsewhere(const Expr& old, const Expr& now);
  /// Is what the step's condition reads the same, since the step's statement runs the same old instance?
  bool same_place(const Step& old, const Step& now) const;

  /// What was left to the check of values.
  const std::vector<LoadPair>& moved() const { return moved_; }
  const std::vector<MatchedValue>& inlined() const { return inlined_; }

  /// An instance at which an index expression differs, if `same` found one.
  const Answer& difference() const { return difference_; }

 private:
  bool same_index(const Expr& here, const Expr& now);
  bool same_load(const Load& old, const Expr& now);
  const InlinedLoad* inlined_at(const Load& old) const;
  bool is_staged(const Storage* buffer) const;
  bool is_judged(const Load& load) const;
  bool reads_staged(const Expr& e) const;
  bool same_name(const Var* old, const Var* now);
  bool same_statement_at(size_t old_visit, size_t now_visit) const;

  const Rewrite& rewrite_;
  const Copy& copy_;
  Answer difference_;
  bool moves_ = false;  ///< is the statement compared, in which values of staged memory may be read elsewhere?
  bool elsewhere_ = false;  ///< may all loads see other writes here?
  std::vector<LoadPair> moved_;
  std::vector<MatchedValue> inlined_;
  std::set<LoadPair> known_;  ///< large expressions that are the same
};

}  // namespace helve::legality
