// Who sends what to whom when a tensor is to be distributed otherwise.
// A transfer is a relation between receivers, senders and elements. Here it is the function that gives one device its
// own part of it, so that no list over devices exists; need.h has the same as a set, for proofs about all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "helve/layout/distribution.h"

namespace helve {

/// A box of elements that a device sends or receives.
struct TransferBox {
  std::vector<int64_t> peer;  ///< the other device
  std::vector<int64_t> begin;
  std::vector<int64_t> extents;

  bool operator==(const TransferBox&) const = default;
};

/// The direct exchange from one distribution of a tensor to another: every device receives each element that it is to
/// hold from one device that holds it. That is itself where it can be; else the one with the receiver's coordinates on
/// all axes that hold copies, so that no device receives an element twice.
///
/// Over an axis of terms that becomes anything else, the devices of all coordinates send their terms and the receiver
/// reduces them. Over an axis that becomes one of terms, coordinate 0 receives the value, the others hold the identity.
class Transfer {
 public:
  /// Throws Redistribution where shapes or meshes differ, or terms of different operators would have to be reduced.
  Transfer(const Distribution& from, const Distribution& to);

  const Distribution& from() const { return from_; }
  const Distribution& to() const { return to_; }

  /// What the axis of the mesh, by its place there, does in the transfer.
  struct AxisRole {
    bool kept = false;  ///< sender and receiver have one coordinate, unless the sender's cuts a dimension
    bool reduced = false;  ///< the senders of all coordinates contribute
    bool begun = false;  ///< coordinate 0 alone receives
  };
  const std::vector<AxisRole>& roles() const { return roles_; }
  /// The operator of the reduction, if an axis is reduced.
  PartialOp op() const { return op_; }
  /// The number of terms of each element: the product of the extents of the reduced axes.
  int64_t terms() const { return terms_; }

  /// What a device receives, itself a sender too, in the order of elements, then of terms.
  std::vector<TransferBox> received(const std::vector<int64_t>& device) const;
  /// What it sends, to itself too, in the order of elements. `received` of all peers, seen from the other end.
  std::vector<TransferBox> sent(const std::vector<int64_t>& device) const;
  /// Is the device given values? Not where it holds nothing, or the identity alone.
  bool receives(const std::vector<int64_t>& device) const;
  /// Does the sender, another device or the receiver itself, send the receiver what both hold?
  bool pairs(const std::vector<int64_t>& receiver, const std::vector<int64_t>& sender) const;
  /// How many others a device exchanges boxes with, at most; without a list of them.
  int64_t partners(const std::vector<int64_t>& device) const;
  /// The number of elements, or terms, that a device receives from others.
  int64_t elements_received(const std::vector<int64_t>& device) const;

 private:
  /// How a side deals coordinates: what axis a cuts, with which weight in the number of the block.
  struct Side {
    struct Cut {
      int64_t dim = -1;  ///< -1: cuts nothing
      int64_t weight = 0;
    };
    std::vector<Cut> cuts;  ///< by axis
    std::vector<int64_t> numbers;  ///< by axis: the coordinate that holds the data, -1 for none
  };
  static Side side_of(const Distribution& distribution);

  bool sends(const std::vector<int64_t>& device) const;
  /// The devices that a side gives block `numbers` of the tensor, as far as it says.
  std::vector<int64_t> coordinates(const Side& side, const std::vector<int64_t>& numbers) const;

  Distribution from_;
  Distribution to_;
  Side from_side_;
  Side to_side_;
  std::vector<AxisRole> roles_;
  PartialOp op_ = PartialOp::Sum;
  int64_t terms_ = 1;
};

}  // namespace helve
