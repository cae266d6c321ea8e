// The reads of a statement that are judged by what they see, with those in whose place they stand.
// Which loads stand for each other is what the comparison of statements found out.
#pragma once

#include "inlined.h"

namespace helve::legality {

/// A read of an instance of an old statement, and what is read in its place: an element by an access, or the value that
/// a store would have put there.
struct Read {
  const Copy* copy;
  const Access* was;
  const Access* now;
  const InlinedLoad* inlined = nullptr;
  bool certain = true;  ///< must the new load see the same wherever both are read?
};

/// The reads that a load makes in a statement: one for each place of its value.
std::vector<const Access*> reads_by(const std::vector<Access>& all, const RegionStatement& s, const ExprNode* load);

/// Reads by loads that stand for each other, and those of the elements that updates change. False if the statement has
/// others of staged memory.
bool reads_of(const Rewrite& rewrite, const Copy& copy, std::vector<Read>& out);

}  // namespace helve::legality
