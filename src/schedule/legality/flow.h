// Which value each read of a region sees: that of the last write before it, followed through copies.
// Both sides of a rewrite answer in terms of the old region, so that answers can be compared: an instance of an old
// statement, or an element as it was before the region.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "helve/analysis/region_statements.h"
#include "helve/arith/relation.h"
#include "times.h"

namespace helve::legality {

/// A source is a tuple: the number of an old statement and its variables, or a negative number for a buffer and
/// subscripts; zeros follow.
struct Sources {
  size_t arity = 0;
  std::vector<const Buffer*> buffers;  ///< number n stands for buffers[-1 - n]

  int64_t number(const Buffer& buffer) const;
};

/// What a statement of the region writes: what an old statement writes at the values, or, without one, what it reads.
struct Writer {
  std::optional<size_t> was;
  std::vector<Expr> values;
};

class Flow {
 public:
  /// One writer for each statement; all must outlive the flow.
  Flow(const ExactEngine& engine, const AccessModel& model, const std::vector<RegionStatement>& statements,
       std::vector<Writer> writers, const Sources& sources);

  /// { variables of the statement -> source of what the access, a read of it, sees }. No source: memory that holds
  /// nothing yet.
  IntegerRelation seen(size_t statement, const Access& read);
  /// The instances of the statement that make the access.
  IntegerSet instances_with(size_t statement, const Access& access) const;
  /// What a buffer that is allocated outside holds in the end.
  struct Left {
    IntegerRelation sources;  ///< { element -> source of its last write }; none of memory that held nothing
    IntegerSet written;  ///< the elements that are written
  };
  Left left(const Buffer& buffer, const std::vector<VarRef>& element);
  /// { element -> itself, before the region }.
  IntegerRelation initial(const Buffer& buffer, const std::vector<VarRef>& element) const;

  /// The elements that the region accesses, or only those that it writes.
  IntegerSet touched(const Buffer& buffer, const std::vector<VarRef>& element, bool reads) {
    return times_.touched(buffer, element, reads);
  }

  /// Is the buffer allocated in the region?
  bool allocates(const Buffer& buffer) const { return times_.allocates(buffer); }
  bool writes(const Buffer& buffer) const;
  /// Why answers are not those of the program; empty if they are.
  const std::string& doubt() const { return times_.doubts(); }

 private:
  IntegerRelation nothing(std::vector<VarRef> tuple) const;
  template <class Each>
  void for_each_write(const Buffer& buffer, Each&& each);
  IntegerRelation with_sources(const IntegerRelation& last, const std::set<size_t>& writers);
  IntegerRelation source_of(size_t statement);

  const ExactEngine& engine_;
  const AccessModel& model_;
  const std::vector<RegionStatement>& statements_;
  std::vector<Writer> writers_;
  const Sources& sources_;
  Times times_;
  std::vector<std::optional<IntegerRelation>> of_copies_;
  std::vector<bool> open_;  ///< copies that are followed now
};

}  // namespace helve::legality
