// Layouts that a program gives to buffers of a kernel.
// A layout on a buffer never changes what the program means; what it may be is decided once, where it is given.
#pragma once

#include "helve/ir/tensor/buffer.h"

namespace helve {

/// The buffer with this layout. Memory of a block or a thread: addresses on `m` from 0 on, swizzled or not, no
/// replicas. A fragment: threads on `tx` (or axes that fuse to it) and registers on `reg`; the threads are all those
/// from 0 to some number, which the block must have (verify), the registers too, and each pair of the two holds one
/// element at most. Either covers the shape, row-major, one place an element, replicas aside; memory may have more
/// elements, which nobody sees (`layout_domain`). `span`: where the layout is given. Refusals: BufferLayoutOf,
/// BufferLayoutSize, BufferLayoutAxis, BufferLayoutOverlap, BufferLayoutForm.
BufferRef with_layout(const BufferRef& buffer, const Layout& layout, const Span& span);

/// A fragment's layout on `tx` and `reg` alone.
Layout thread_layout_of(const Buffer& fragment);

/// The extents that the layout of a buffer has places for: the shape; or, if it has more elements than the shape, what
/// its iters make, taken from the last dimension on, each time the fewest that reach the dimension's extent.
std::vector<int64_t> layout_domain(const Buffer& buffer);

/// Memory of a shape stored tile by tile: the elements of a tile side by side, row-major, and so the tiles. Tiles at
/// the end are whole, except along dimensions of one element.
Layout layout_of_tiles(const std::vector<int64_t>& shape, const std::vector<int64_t>& tile);

/// The elements of memory that a buffer of the block takes: to the end of the layout's addresses, or of the shape's.
int64_t memory_elements(const Buffer& buffer);

/// Do `length` elements along the last dimension, from a multiple of `length` on, lie side by side at an address that
/// is a multiple of `length`, whatever the other subscripts? `length` is a power of two.
bool keeps_runs(const Buffer& buffer, int64_t length);

/// `count` instances of the buffer, one after the other: a new first dimension numbers them. A layout is that of each
/// of them, which begin at multiples of its swizzle's period.
BufferRef in_stages(const Buffer& buffer, int64_t count);

}  // namespace helve
