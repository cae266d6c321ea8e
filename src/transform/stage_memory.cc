// The memory of a kernel against that of a block.
// Buffers count as they are allocated at this place of the pipeline: which of them share bytes is decided later.
#include "stage_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/shared_place.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

int64_t bytes_of(const Buffer& buffer) {
  if (buffer.slots > 0) return shared_size(buffer);
  return memory_elements(buffer) * std::max<int64_t>(1, buffer.dtype.bytes());
}

std::string why_no_room(const Kernel& kernel, int64_t stages, int64_t extra, int64_t more, const PassOptions& options) {
  int64_t allocated = 0;
  walk(kernel.body, [&](const Stmt& s) {
    const Alloc* n = as<Alloc>(s);
    if (n && n->buffer->scope == MemoryScope::Shared) allocated += bytes_of(*n->buffer);
  });
  const int64_t needed = allocated + extra + more;
  const int64_t room = options.machine.block_shared_bytes - options.kept_shared_bytes;
  if (needed <= room) return "";
  return fmt::format(
      "with {} stages of it the kernel's buffers need {} bytes of shared memory, and {} are there for them", stages,
      needed, room);
}

}  // namespace helve
