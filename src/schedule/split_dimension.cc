// The primitive that gives a buffer more dimensions: split_dimension.
// Each element gets another place and keeps its values; that reads see what they saw is for the checker, which judges
// both buffers by values.
#include <fmt/format.h>

#include <algorithm>

#include "helve/arith/simplify.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/visit.h"
#include "helve/schedule/find.h"
#include "loop_form.h"

namespace helve {

namespace {

/// Accesses of single elements become those of the buffer with a dimension of blocks and one of what is in them.
class Redimension {
 public:
  Redimension(const FunctionRef& f, BufferRef from, BufferRef to, size_t dim, int64_t factor)
      : f_(f), from_(std::move(from)), to_(std::move(to)), dim_(dim), factor_(int_imm(factor)) {}

  /// The statement at the place, with what it holds left as it is.
  Stmt operator()(const Cursor& at, const Stmt& s) const {
    std::optional<Facts> facts;
    const auto known = [&]() -> const Facts& {
      if (!facts) facts = facts_at(f_, at);
      return *facts;
    };
    Memo<Expr> memo;
    const auto expr = [&](auto&& self, const Expr& e) -> Expr {
      return memo.of(e, [&] {
        const Expr below = map_children(e, [&](const Expr& child) { return self(self, child); });
        const Load* load = as<Load>(below);
        if (!load || load->buffer.get() != from_.get()) return below;
        return helve::load(to_, split(load->indices, known()), e->span);
      });
    };
    if (const Alloc* n = as<Alloc>(s); n && n->buffer == from_) return alloc(to_, s->span);
    const Stmt below =
        map_parts(s, [&](const Expr& e) { return expr(expr, e); }, [](const Stmt& part) { return part; });
    const Store* store = as<Store>(below);
    if (!store || store->buffer != from_) return below;
    return Stmt(copy_with(*store, [&](Store& out) {
      out.buffer = to_;
      out.indices = split(store->indices, known());
    }));
  }

 private:
  std::vector<Expr> split(std::vector<Expr> indices, const Facts& facts) const {
    const Expr index = indices[dim_];
    indices[dim_] = simplify(floor_div(index, factor_), facts);
    indices.insert(indices.begin() + static_cast<std::ptrdiff_t>(dim_) + 1, simplify(floor_mod(index, factor_), facts));
    return indices;
  }

  const FunctionRef f_;
  const BufferRef from_, to_;
  const size_t dim_;
  const Expr factor_;
};

BufferRef with_split_dimension(const BufferRef& buffer, const Arguments& arguments, const Stmt& s) {
  const int64_t dim = arguments.integer(1), factor = arguments.integer(2);
  if (dim < 0 || dim >= static_cast<int64_t>(buffer->rank())) {
    arguments.refuse(fmt::format("'{}' has no dimension {}", buffer->name, dim), s, "count dimensions from 0");
  }
  if (!buffer->tile.empty() || buffer->layout || buffer->offset) {
    arguments.refuse(fmt::format("'{}' has tiles or a layout, which say where elements lie", buffer->name), s,
                     "allocate it without tiles and layout");
  }
  std::vector<Expr> shape = buffer->shape;
  Expr& extent = shape[static_cast<size_t>(dim)];
  const int64_t* number = int_value(extent);
  if (!number) {
    arguments.refuse(fmt::format("the extent {} is no constant", brief_text(extent)), s, "name another dimension");
  }
  extent = int_imm((*number + factor - 1) / factor);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dim) + 1, int_imm(factor));
  return make_buffer(buffer->name, buffer->dtype, buffer->scope, shape, {}, {}, buffer->span);
}

}  // namespace

/// split_dimension("W", 0, 4): `W = alloc_local(8)` and `S(W[i])` become `W = alloc_local((2, 4))` and
/// `S(W[i // 4, i % 4])`.
Rewrite split_dimension(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = allocation_named(f, arguments, 0);
  const Stmt s = required_at(f, at);
  const BufferRef buffer = as<Alloc>(s)->buffer;
  const BufferRef split = with_split_dimension(buffer, arguments, s);
  const Redimension change(f, buffer, split, static_cast<size_t>(arguments.integer(1)), arguments.integer(2));
  const Block behind{at, block_of(body_around(*f, at)).size() - at.position()};
  Edited edited{f, Forwarding()};
  walk_cursors(*f, [&](const Cursor& place, const Stmt& old) {
    if (!behind.holds(place)) return;
    const Stmt own = required_at(edited.function, place), now = change(place, own);
    if (now != own) edited = edited.then(revise(edited.function, place, now));
    bool used = false;
    for_each_block(old, [&](const std::string&, const Stmt&) { used = true; });
    if (used || replace_buffers(now, {{buffer.get(), declare_again(*buffer)}}) == now) return;
    arguments.refuse(fmt::format("'{}' does not use single elements of '{}'", head_text(old), buffer->name), old,
                     "split the dimension before tensorize()");
  });
  Rewrite out{edited, behind, behind, {}, {}, {at}};
  out.by_value = {buffer, split};
  return out;
}

}  // namespace helve
