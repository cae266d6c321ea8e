// The last instance of a store that writes an element, as expressions.
// What stands in the place of a load is what the store computes there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "helve/analysis/access.h"
#include "helve/schedule/rewrite.h"

namespace helve {

class LastWriter {
 public:
  /// Of a store of the function, which must outlive it.
  LastWriter(const FunctionRef& f, const Cursor& store);

  /// The variables of the loops around the store and not around `reader`, in terms of the subscripts of an element and
  /// of what stands around the reader. Nothing if they are no short expressions: reason() says why.
  std::optional<LoopValues> at(const Cursor& reader, const std::vector<Expr>& subscripts);
  const std::string& reason() const { return reason_; }

 private:
  struct Solution {
    size_t shared;  ///< loops around both
    std::vector<VarRef> element;
    LoopValues values;  ///< over the element, each with those before it
  };
  const Solution* solution(size_t shared);

  const FunctionRef f_;
  const AccessModel model_;
  std::vector<Cursor> loops_;  ///< around the store, outermost first
  std::vector<Solution> known_;
  std::string reason_;
};

}  // namespace helve
