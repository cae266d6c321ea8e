// The primitive that says how a block's memory is stored: tile_buffer.
// A tile (Buffer::tile) says where elements lie, not what they hold, so all statements stay as they are.
#include <fmt/format.h>

#include "helve/analysis/access.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/visit.h"
#include "helve/schedule/find.h"
#include "loop_form.h"

namespace helve {

namespace {

/// The allocation of the buffer of that name.
Cursor allocation_of(const FunctionRef& f, const Arguments& arguments) {
  std::vector<Cursor> found;
  std::vector<std::string> known;
  walk_cursors(*f, [&](const Cursor& at, const Stmt& s) {
    const Alloc* alloc = as<Alloc>(s);
    if (!alloc) return;
    known.push_back(alloc->buffer->name);
    if (alloc->buffer->name == arguments.text(0)) found.push_back(at);
  });
  if (found.size() == 1) return found[0];
  if (!found.empty()) {
    arguments.refuse(fmt::format("{} buffers have the name '{}'", found.size(), arguments.text(0)),
                     required_at(f, found[0]), "give each buffer a name of its own");
  }
  throw UserError(Code::ScheduleNothingFound, arguments.place,
                  {{"function", f->name},
                   {"what", fmt::format("allocation of '{}'", arguments.text(0))},
                   {"known", fmt::format("{}", fmt::join(known, ", "))}});
}

}  // namespace

/// tile_buffer("X", 8, 16): `X = alloc_shared((64, 32))` becomes `X = alloc_shared_tiles((64, 32), tile_size=(8, 16))`:
/// the elements of each tile of 8 x 16 lie side by side.
Rewrite tile_buffer(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = allocation_of(f, arguments);
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
