// A transfer as a set, for proofs about all devices at once.
// Its size does not grow with the mesh, nor does the time that isl takes.
#pragma once

#include <vector>

#include "helve/ir/expr/expr.h"
#include "helve/plan/transfer.h"

namespace helve {

/// Variables for a receiver, a sender and an element.
struct TransferSpace {
  explicit TransferSpace(const Distribution& distribution);

  std::vector<VarRef> receiver, sender;  ///< by axis of the mesh
  std::vector<VarRef> element;           ///< by dimension

  std::vector<VarRef> tuple() const;
  /// Receiver and sender differ.
  Expr apart() const;
  /// They have the same coordinate on the axis.
  Expr agree(size_t axis) const;
};

/// The device at `coordinates` holds the element, or a term of it.
Expr holds(const Distribution& distribution, const std::vector<VarRef>& coordinates,
           const std::vector<VarRef>& element);

/// The receiver is given the value of the element, by whomever: it is to hold it, and not the identity alone.
Expr is_given(const TransferSpace& space, const Transfer& transfer);

/// The receiver gets the element from this sender, which may be the receiver itself. A conjunction: of what isl is
/// asked, this is cheap, and `apart` is not.
Expr is_received(const TransferSpace& space, const Transfer& transfer);

/// The receiver needs the element from this sender, which is another device.
Expr is_needed(const TransferSpace& space, const Transfer& transfer);

}  // namespace helve
