// How much shared memory stages of pipelined loops may take.
// Two passes give copies several stages; both leave the same room to what later passes place.
#pragma once

#include <string>

#include "helve/transform/passes.h"

namespace helve {

/// Bytes that a buffer of the block takes.
int64_t bytes_of(const Buffer& buffer);

/// Why the kernel's buffers have no room for `more` bytes beside `extra` that stages took before; empty if they have.
std::string why_no_room(const Kernel& kernel, int64_t stages, int64_t extra, int64_t more, const PassOptions& options);

}  // namespace helve
