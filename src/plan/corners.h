// What some devices show of a transfer, without a proof.
// It is exact for them, so that it refutes what is said of all devices, in microseconds instead of milliseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "boxes.h"
#include "helve/plan/collective.h"

namespace helve {

/// Devices at the ends of the axes of the mesh and beside them, a few dozen at most.
class Corners {
 public:
  explicit Corners(const Transfer& transfer);

  /// Does a device receive from another one?
  bool moves() const { return moves_; }
  /// By axis: are there two of which one receives from the other and that differ on it?
  const std::vector<bool>& apart() const { return apart_; }

  /// Does one of them receive something else than it would by a collective of this form over at least the axes on which
  /// devices were seen to differ? Never of an exchange; of one without moves if there is one.
  bool refute(CollectiveForm form) const;

 private:
  const Transfer& transfer_;
  std::vector<std::vector<int64_t>> devices_;
  std::vector<Box> held_, wanted_;  ///< before and after, by device
  std::vector<bool> apart_;
  bool moves_ = false;
};

}  // namespace helve
