// Two instances at one element: the one place where that question is put together.
// Races, barriers, dependences and what a rewrite keeps differ in the variables that two instances share, in their
// order and in what is done with the answer; renaming, the conditions under which both run, and equality of boxes are
// the same for all.
#pragma once

#include <utility>
#include <vector>

#include "helve/analysis/path_conditions.h"

namespace helve {

/// Where two accesses touch one element.
struct SameElement {
  std::vector<Expr> element;  ///< subscripts that both touch
  Expr condition;  ///< under which they do
};

/// Two instances of statements, or of one: the first has the program's variables, the second its own in place of those
/// that it does not share with the first.
class InstancePair {
 public:
  /// `query`, which outlives the pair, holds for both and gets all further conditions.
  explicit InstancePair(PathConditions& query) : query_(query) {}
  /// The second instance has variables of its own already.
  InstancePair(PathConditions& query, Substitution renamed) : query_(query), renamed_(std::move(renamed)) {}

  /// The second instance has variables of its own for those of the path's steps from `from` on, or for one.
  void separate(const Path& path, size_t from);
  void separate(const VarRef& var);
  /// Of the second instance, by variables of the first.
  const Substitution& renamed() const { return renamed_; }
  Expr second(const Expr& e) const { return renamed_.empty() ? e : substitute(e, renamed_); }

  /// What a name with an unknown value on a path makes of the answer: a doubt, or one only where it is used, which the
  /// caller finds out.
  enum class Names { Doubted, Open };
  /// An instance runs: what the steps of its path from `from` on say.
  void first_runs(const Path& path, size_t from, Names names = Names::Doubted) { runs(path, from, names, {}); }
  void second_runs(const Path& path, size_t from, Names names = Names::Doubted) { runs(path, from, names, renamed_); }
  /// The open names, of both instances.
  const std::vector<VarRef>& open_names() const { return open_names_; }

  /// The values of a variable are equal, differ, or the first instance's is less or greater.
  Expr agree(const VarRef& var) const { return apply(Op::Eq, {Expr(var), second(Expr(var))}); }
  Expr differ(const VarRef& var) const { return apply(Op::Ne, {Expr(var), second(Expr(var))}); }
  Expr before(const VarRef& var) const { return less(Expr(var), second(Expr(var))); }
  Expr after(const VarRef& var) const { return less(second(Expr(var)), Expr(var)); }

  /// When do the access `a` of the first instance and `b` of the second, to one buffer, touch the same element?
  /// `absolute`: boxes in blocks of cores count from the tensor's begin, not from their block's. Adds the variables
  /// that it needs, and its doubts.
  SameElement touch(const Access& a, const Access& b, bool absolute);
  /// They touch the same element if these subscripts are those of single elements; null is any.
  void touch(const std::vector<Expr>& a, const std::vector<Expr>& b);

 private:
  void runs(const Path& path, size_t from, Names names, const Substitution& renamed);

  PathConditions& query_;
  Substitution renamed_;
  std::vector<VarRef> open_names_;
};

}  // namespace helve
