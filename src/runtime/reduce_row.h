// Reduction and copy of one row of elements.
// The communicator determines the rows; this file defines how elements of a dtype are combined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "helve/runtime/plan.h"

namespace helve::runtime {

/// Rows of equal stride at several addresses: element i of row p is at p + offset + i * stride (bytes).
struct SourceRows {
  std::span<const std::byte* const> rows;
  int64_t offset;
  int64_t stride;
};

struct TargetRows {
  std::span<std::byte* const> rows;
  int64_t offset;
  int64_t stride;
};

/// Element i of every target = op over all sources of element i, for i in [0, count). In pieces, all sources are read
/// before a target is written, so targets may be the same rows as the sources.
using ReduceRow = void (*)(const SourceRows& sources, const TargetRows& targets, int64_t count);

/// Null if the dtype has no such reduction.
ReduceRow find_reduce_row(DLDataType dtype, ReduceOp op);

/// Copies the only source to every target that is not the source itself.
void copy_row(const SourceRows& source, const TargetRows& targets, int64_t count, int64_t element_bytes);

}  // namespace helve::runtime
