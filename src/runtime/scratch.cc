// Scratch memory of threads: a stack of blocks, one for each nesting depth of leases.
// Kernels need private memory for every task; keeping it with the thread avoids an allocation after the first lease.
#include <algorithm>
#include <new>
#include <vector>

#include "helve/runtime/thread_pool.h"
#include "helve/support/diagnostic.h"

namespace helve::runtime {

namespace {

constexpr std::align_val_t kPage{4096};

struct Block {
  std::byte* data = nullptr;
  int64_t bytes = 0;
};

struct ScratchStack {
  std::vector<Block> blocks;
  size_t depth = 0;

  ~ScratchStack() {
    for (Block& block : blocks) ::operator delete(block.data, kPage);
  }
};

thread_local ScratchStack scratch;

}  // namespace

ScratchLease::ScratchLease(int64_t bytes) : data_(nullptr) {
  if (bytes <= 0) return;
  if (scratch.depth == scratch.blocks.size()) scratch.blocks.emplace_back();
  Block& block = scratch.blocks[scratch.depth];
  if (block.bytes < bytes) {
    const int64_t size = (std::max(bytes, 2 * block.bytes) + 4095) / 4096 * 4096;
    ::operator delete(block.data, kPage);
    block = {};
    block.data = static_cast<std::byte*>(::operator new(static_cast<size_t>(size), kPage, std::nothrow));
    if (block.data == nullptr)
      throw UserError(Code::OutOfMemory, {}, {{"buffer", "memory of a block"}, {"bytes", bytes}});
    block.bytes = size;
  }
  ++scratch.depth;
  data_ = block.data;
}

ScratchLease::~ScratchLease() {
  if (data_ != nullptr) --scratch.depth;
}

}  // namespace helve::runtime
