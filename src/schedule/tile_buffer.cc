// The primitive that says how a block's memory is stored: tile_buffer.
// A tile (Buffer::tile) says where elements lie, not what they hold, so all statements stay as they are.
#include <fmt/format.h>

#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/visit.h"
#include "loop_form.h"

namespace helve {

/// tile_buffer("X", 8, 16): `X = alloc_shared((64, 32))` becomes `X = alloc_shared_tiles((64, 32), tile_size=(8, 16))`:
/// the elements of each tile of 8 x 16 lie side by side.
Rewrite tile_buffer(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = allocation_named(f, arguments, 0);
  const Stmt s = required_at(f, at);
  const BufferRef buffer = as<Alloc>(s)->buffer;
  if (buffer->scope != MemoryScope::Shared) {
    arguments.refuse(fmt::format("'{}' is {} memory", buffer->name, to_string(buffer->scope)), s,
                     "only memory of scope \"shared\" is stored in tiles");
  }
  if (buffer->rank() < 2) {
    arguments.refuse(fmt::format("'{}' has {} dimensions", buffer->name, buffer->rank()), s,
                     "a tile has rows and columns");
  }
  if (buffer->layout) {
    arguments.refuse(fmt::format("'{}' has a layout", buffer->name), s, "allocate it without a layout");
  }
  std::vector<int64_t> tile(buffer->rank(), 1);
  tile[buffer->rank() - 2] = arguments.integer(1);
  tile[buffer->rank() - 1] = arguments.integer(2);
  Ref<Buffer> tiled = make_ref<Buffer>(*buffer);
  tiled->tile = std::move(tile);
  const Cursor around = at.parent();
  return {revise(f, around, redeclare_buffers(required_at(f, around), {{buffer.get(), BufferRef(tiled)}})),
          {around, 1},
          {around, 1},
          {},
          {},
          {at}};
}

}  // namespace helve
