// Loops over elements as the program of one thread.
// The layout of a loop says which iterations a thread runs; that of a fragment, in which of its registers an element
// is.
#pragma once

#include <functional>
#include <unordered_map>

#include "helve/threads/layout_inference.h"

namespace helve {

/// The buffers of a divided kernel: a fragment is `buffer[thread, register]`, anything else stands for itself.
struct PlacedBuffer {
  BufferRef buffer;
  bool registers = false;
};

/// What the division of a kernel has decided.
struct DividedKernel {
  int64_t threads;
  BlockLayouts layouts;
  std::unordered_map<const Buffer*, PlacedBuffer> buffers;  ///< Shared and Fragment buffers of the block

  const ThreadLayout& layout_of(const StmtNode& s) const { return layouts.loops.at(&s); }
  /// The layout of a buffer that lives in registers, else null.
  const ThreadLayout* registers_of(const Buffer& buffer) const;
  /// The expression with block buffers in their places; elements of registers do not occur in it.
  Expr place(const Expr& e) const;
};

/// A loop over all threads of the block.
Stmt thread_loop(int64_t threads, const std::function<Stmt(const Expr& tx)>& body, Span span = {});

/// A nest of Parallel loops, divided.
Stmt divide_loop(const For& loop, const DividedKernel& kernel, const Facts& facts);

/// A scalar store of the block: once in memory, in every copy where the buffer is in registers.
Stmt divide_store(const Stmt& store, const DividedKernel& kernel, const Facts& facts);

}  // namespace helve
