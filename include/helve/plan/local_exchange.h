// A transfer between devices that are all parts of this process.
// Who sends what to whom does not depend on where the parts are stored, so it is listed once and run often.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "helve/plan/transfer.h"
#include "helve/runtime/box_moves.h"

namespace helve {

/// What a device holds, in memory: the address of its first element, extents, and strides in elements. Null for a
/// device that holds nothing.
struct LocalPart {
  std::byte* data = nullptr;
  std::span<const int64_t> extents;
  std::span<const int64_t> strides;
};

/// The device of a target that shares memory with a source or another target, or whose elements share it; nothing
/// where none does. Exact up to a limit of the search, beyond which they count as sharing.
std::optional<int64_t> overlapping_part(std::span<const LocalPart> sources, std::span<const LocalPart> targets,
                                        int64_t element_bytes);

/// Moves between parts at given addresses, to be run as often as wanted.
class LocalMoves {
 public:
  LocalMoves(runtime::DLDataType dtype, std::optional<runtime::ReduceOp> op) : pack_(dtype, {}), moves_(dtype, op) {}

  void run(runtime::InterruptPoll* poll);
  int64_t bytes_moved() const { return moves_.bytes_moved(); }

 private:
  friend class LocalExchange;

  /// A copy of a box, compact and row-major, which is made anew in each run.
  const std::byte* packed(std::span<const int64_t> extents, std::span<const int64_t> strides,
                          std::span<const int64_t> compact, const std::byte* source, int64_t bytes);

  runtime::BoxMoves pack_, moves_;
  std::vector<std::vector<std::byte>> memory_;
};

/// The moves of a transfer. A box that several devices receive from the same senders is one move, so that it is read,
/// and its terms are reduced, once.
class LocalExchange {
 public:
  /// Lists the boxes of all devices of the mesh.
  explicit LocalExchange(const Transfer& transfer);

  /// A box within the part of a device.
  struct End {
    int64_t device;  ///< row-major in the mesh
    std::vector<int64_t> begin;
  };
  /// Every receiver gets the box of the sender, or the reduction of those of several, in their order.
  struct Move {
    std::vector<int64_t> extents;
    std::vector<End> senders;
    std::vector<End> receivers;
  };
  const std::vector<Move>& moves() const { return moves_; }
  int64_t devices() const { return devices_; }
  /// The number of parts that a box is reduced from.
  int64_t terms() const { return terms_; }

  /// The moves in memory. `sources` and `targets` are by device, as many as there are; those of devices that take no
  /// part are not looked at. No target shares memory with a source or another target. UserError ReductionDType.
  LocalMoves prepare(std::span<const LocalPart> sources, std::span<const LocalPart> targets,
                     runtime::DLDataType dtype) const;

 private:
  std::vector<Move> moves_;
  int64_t devices_ = 1;
  int64_t terms_ = 1;
  PartialOp op_ = PartialOp::Sum;
};

}  // namespace helve
