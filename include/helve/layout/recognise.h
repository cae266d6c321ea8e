// Inverse questions to the Kronecker product and the direct sum.
// Whether a layout is tiled by an atom, and by which blocks, decides which instruction or transfer fits it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "helve/layout/layout.h"

namespace helve {

// Each takes a whole on the products of the shapes of its two operands, dimension by dimension, and one operand; each
// answers an operand X such that the law holds as maps, or none when there is no such layout. Exact. They throw
// ShapeError for shapes that are not admitted or differ in rank, and UnsupportedError where swizzles of whole and
// operand would have to be compared or the search for replicas is too long.

/// X with tile(X, whole_shape / inner_shape, inner, inner_shape) equal to `whole`.
std::optional<Layout> outer_of(const Layout& whole, const std::vector<int64_t>& whole_shape, const Layout& inner,
                               const std::vector<int64_t>& inner_shape);

/// X with tile(outer, outer_shape, X, whole_shape / outer_shape) equal to `whole`.
std::optional<Layout> inner_of(const Layout& whole, const std::vector<int64_t>& whole_shape, const Layout& outer,
                               const std::vector<int64_t>& outer_shape);

/// X with direct_sum(X, whole_shape / right_shape, right, right_shape) equal to `whole`.
std::optional<Layout> left_of(const Layout& whole, const std::vector<int64_t>& whole_shape, const Layout& right,
                              const std::vector<int64_t>& right_shape);

/// X with direct_sum(left, left_shape, X, whole_shape / left_shape) equal to `whole`.
std::optional<Layout> right_of(const Layout& whole, const std::vector<int64_t>& whole_shape, const Layout& left,
                               const std::vector<int64_t>& left_shape);

}  // namespace helve
