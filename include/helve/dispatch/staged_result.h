// Results of tensor cores that leave through shared memory: stmatrix, then TMA.
// A thread holds pairs of neighbours, of which a store to global memory is 4 bytes wide; TMA writes whole rows of a
// box, and knows where the tensor ends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "helve/dispatch/schedule_table.h"

namespace helve {

/// The name of this implementation of T.copy.
inline constexpr std::string_view kStaged = "staged";

/// A T.copy of a whole fragment to a tensor of the call, in parts of one shape.
struct StagedResult {
  int64_t slots = 0;    ///< parts that shared memory has room for, one or two
  BufferRef slot;       ///< the declaration of one, with the layout that the tensor's map swizzles alike
  Region tensor;        ///< what is written, with a dimension that is no point for each of the fragment's
  struct Part {
    int64_t row, column;  ///< where it begins in the fragment
    Layout layout;        ///< of the part, from its first register on
  };
  std::vector<Part> parts;

  /// The part of the fragment, and of the tensor.
  Region of_fragment(const BufferRef& fragment, const Part& part) const;
  Region of_tensor(const Part& part, const Facts& facts) const;

  /// What one copy by TMA moves.
  struct Box {
    Region memory, tensor;
  };
  /// The boxes of a part that stands in `memory`: where each warpgroup stores rows of its own to it, those of each, in
  /// their order; else one.
  std::vector<Box> boxes_of(const Part& part, const BufferRef& memory, const Facts& facts) const;
};

/// How the copy leaves a kernel of `context` that multiplies by warpgroups and in which `taken` more bytes of shared
/// memory are taken than it allocates; nothing, with the reason, if it cannot. The parts are the largest of which two
/// fit, or else one; a multiprocessor that has room for two blocks still has.
std::optional<StagedResult> staged_result(const TileOp& copy, const LoweringContext& context, int64_t taken,
                                          std::string* reason);

}  // namespace helve
