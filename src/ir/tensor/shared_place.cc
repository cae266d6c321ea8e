// Places of buffers in the shared memory of a block.
// What is required of an offset is checked where it is given, so that no later room asks.
#include "helve/ir/tensor/shared_place.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

int64_t shared_alignment(const Buffer& buffer) {
  return buffer.layout ? std::max(kSharedUnit, buffer.layout->swizzle().period() * buffer.dtype.bytes()) : kSharedUnit;
}

int64_t shared_size(const Buffer& buffer) {
  if (buffer.slots > 0) return slot_bytes(buffer) * buffer.slots;
  return memory_elements(buffer) * buffer.dtype.bytes();
}

int64_t slot_bytes(const Buffer& buffer) {
  const int64_t bytes = memory_elements(buffer) * buffer.dtype.bytes(), unit = shared_alignment(buffer);
  return (bytes + unit - 1) / unit * unit;
}

BufferRef with_slots(const BufferRef& buffer, int64_t slots, const Span& span) {
  constexpr int64_t kMaxSlots = 1024;
  if (buffer->scope != MemoryScope::Shared || slots < 1 || slots > kMaxSlots) {
    const bool shared = buffer->scope == MemoryScope::Shared;
    throw UserError(
        Code::BadArgument, span,
        {{"function", fmt::format("T.alloc_{}", to_string(buffer->scope))},
         {"value", slots},
         {"parameter", "slots"},
         {"reason", shared ? fmt::format("a ring has 1 to {}", kMaxSlots) : "only shared memory has slots"},
         {"remedy", shared ? "give as many as fit the block's memory" : "allocate it with T.alloc_shared"}});
  }
  Ref<Buffer> out = make_ref<Buffer>(*buffer);
  out->slots = slots;
  return BufferRef(out);
}

BufferRef at_offset(const BufferRef& buffer, int64_t offset, const Span& span) {
  HELVE_CHECK(buffer->scope == MemoryScope::Shared, "only shared memory has an offset");
  const auto refuse = [&](const std::string& reason, const std::string& remedy) {
    throw UserError(Code::BufferOffset, span,
                    {{"buffer", buffer->name}, {"offset", offset}, {"reason", reason}, {"remedy", remedy}});
  };
  const int64_t alignment = shared_alignment(*buffer);
  constexpr int64_t kEnd = int64_t{1} << 31;
  if (offset < 0) refuse("it is negative", "bytes count from 0");
  if (offset >= kEnd) refuse("no block has so much shared memory", fmt::format("offsets are below {}", kEnd));
  if (offset % alignment != 0) {
    refuse(fmt::format("it is not a multiple of {} bytes", alignment),
           fmt::format("write offset={}", (offset / alignment + 1) * alignment));
  }
  Ref<Buffer> out = make_ref<Buffer>(*buffer);
  out->offset = offset;
  return BufferRef(out);
}

std::optional<SharedPlace> place_of(const Buffer& buffer) {
  if (!buffer.offset) return std::nullopt;
  return SharedPlace{*buffer.offset, *buffer.offset + shared_size(buffer)};
}

bool share_memory(const Buffer& a, const Buffer& b) {
  if (&a == &b) return true;
  const std::optional<SharedPlace> one = place_of(a), other = place_of(b);
  return one && other && one->meets(*other);
}

int64_t shared_end(const Stmt& s) {
  int64_t end = 0;
  walk(s, [&](const Stmt& each) {
    const Alloc* n = as<Alloc>(each);
    if (n && n->buffer->offset) end = std::max(end, place_of(*n->buffer)->end);
  });
  return end;
}

int64_t shared_bytes(const Stmt& s) { return (shared_end(s) + kSharedUnit - 1) / kSharedUnit * kSharedUnit; }

FunctionRef without_offsets(const FunctionRef& f) {
  BufferMap own;
  walk(f->body, [&](const Stmt& s) {
    const Alloc* n = as<Alloc>(s);
    if (!n || !n->buffer->offset) return;
    Ref<Buffer> buffer = make_ref<Buffer>(*n->buffer);
    buffer->offset.reset();
    own.emplace(n->buffer.get(), BufferRef(buffer));
  });
  return own.empty() ? f : with_body(f, redeclare_buffers(f->body, own));
}

}  // namespace helve
