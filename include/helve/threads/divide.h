// Loops over elements as the program of one thread.
// The layout of a loop gives the iterations of a thread; that of a fragment gives the register of an element.
#pragma once

#include <functional>
#include <unordered_map>

#include "helve/threads/layout_inference.h"

namespace helve {

/// The buffers of a divided kernel: a fragment becomes `buffer[thread, register]`, anything else is unchanged.
struct PlacedBuffer {
  BufferRef buffer;
  bool registers = false;
};

/// The layouts and buffers of a kernel that is divided among threads.
struct DividedKernel {
  int64_t threads;
  BlockLayouts layouts;
  std::unordered_map<const Buffer*, PlacedBuffer> buffers;  ///< Shared and Fragment buffers of the block

  const ThreadLayout& layout_of(const StmtNode& s) const { return layouts.loops.at(&s); }
  /// The layout of a buffer that lives in registers, else null.
  const ThreadLayout* registers_of(const Buffer& buffer) const;
  /// The expression with block buffers replaced; it contains no elements of registers.
  Expr place(const Expr& e) const;
};

/// A loop over all threads of the block.
Stmt thread_loop(int64_t threads, const std::function<Stmt(const Expr& tx)>& body, Span span = {});

/// A nest of Parallel loops, divided.
Stmt divide_loop(const For& loop, const DividedKernel& kernel, const Facts& facts);

/// A scalar store of the block: once to memory, or to every copy of a buffer in registers.
Stmt divide_store(const Stmt& store, const DividedKernel& kernel, const Facts& facts);
/// `body`, which makes an atomic store in the place of `store`, executed once.
Stmt divide_store(const Stmt& store, const Stmt& body, const DividedKernel& kernel, const Facts& facts);

}  // namespace helve
