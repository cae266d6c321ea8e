// When accesses of a region run, and which of them meet in one element.
// A time is the visits and the variables of the loops around an instance, outermost first, then its own visit: program
// order is the lexicographic order of times, so that what all statements do to an element is one relation.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "helve/analysis/path_conditions.h"
#include "helve/analysis/region_statements.h"
#include "helve/arith/relation.h"

namespace helve::legality {

Expr equal(const Expr& a, const Expr& b);

/// Conditions of what stands around the region, then of paths inside it; what the paths define is a local.
class PathQuery {
 public:
  explicit PathQuery(const AccessModel& model);

  void add(const Path& path, const Substitution& renamed = {});
  void require(const Expr& condition) { path_.require(condition); }
  PathConditions& conditions() { return path_; }
  /// Variables of the tuple are none of the locals.
  IntegerRelation relation(const ExactEngine& engine, const std::vector<VarRef>& tuple,
                           const std::vector<Expr>& image) const;
  const std::string& doubts() const { return path_.doubts(); }

 private:
  const AccessModel& model_;
  PathConditions path_;
  size_t outside_;
};

/// The innermost step around the region, a loop without order inside the buffer's allocation, that has iterations.
std::optional<size_t> unordered_around(const AccessModel& model, const Buffer& buffer);

enum class When { Before, After };

class Times {
 public:
  /// All must outlive it.
  Times(const ExactEngine& engine, const AccessModel& model, const std::vector<RegionStatement>& statements);

  size_t entries() const { return names_.size(); }
  /// A name for each entry.
  const std::vector<VarRef>& names() const { return names_; }
  std::vector<Expr> of(const RegionStatement& s) const;

  /// { tuple -> a time } without pairs.
  IntegerRelation nothing(std::vector<VarRef> tuple) const;
  /// { variables of `s` -> times of `t` : what they access is one element of one execution of its allocation, the
  /// second one before, or after, the first, with nothing forgotten between them, and pairs of expressions over the two
  /// are equal }. Nothing if no instance has that order. Both accesses are simple.
  std::optional<IntegerRelation> meetings(const RegionStatement& s, const Access& access, const RegionStatement& t,
                                          const Access& other, When when,
                                          const std::vector<std::pair<Expr, Expr>>& also = {});
  /// { variables of `s` -> image : it makes the access }.
  IntegerRelation instances(const RegionStatement& s, const Access& access, const std::vector<Expr>& image);
  /// The elements that simple accesses touch, or only those that they write.
  IntegerSet touched(const Buffer& buffer, const std::vector<VarRef>& element, bool reads);

  /// Is it the access of one element by one iteration? Only such are followed: others are doubted.
  bool is_simple(const RegionStatement& s, const Access& access);
  /// Is the buffer allocated in the region?
  bool allocates(const Buffer& buffer) const;
  /// Does a loop of the region around the statement forget what the buffer held?
  bool is_forgotten_at(const RegionStatement& s, const Buffer& buffer) const;

  void doubt(const std::string& reason);
  /// Why answers are not those of the program; empty if they are.
  const std::string& doubts() const { return doubt_; }

 private:
  const ExactEngine& engine_;
  const AccessModel& model_;
  const std::vector<RegionStatement>& statements_;
  std::vector<VarRef> names_;
  std::string doubt_;
};

}  // namespace helve::legality
