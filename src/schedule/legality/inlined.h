// The value of a store in the place of a load.
// The law: the only write that the load sees is an instance of the store, and what stands in its place is what that
// instance stored, from the same sources. Where it stands, the value is rounded as the store rounds it.
#pragma once

#include "flow.h"
#include "matcher.h"

namespace helve::legality {

/// The loads of the store's value and those in their place, if `now` is that value at the inlined instance as long as
/// these see the same. Their buffers are judged by values, or never written.
std::optional<std::vector<LoadPair>> loads_of_value(const Rewrite& rewrite, const InlinedLoad& inlined,
                                                    const Expr& now);

/// { instance of the copy's statement, of that model -> what it writes, as a source }.
IntegerRelation source_of_copy(const Rewrite& rewrite, const Copy& copy, const AccessModel& model,
                               const Sources& sources);

/// { instance of the new statement -> the write that the load must see, as a source }.
IntegerRelation wanted_source(const Rewrite& rewrite, const InlinedLoad& inlined, const Sources& sources);

}  // namespace helve::legality
