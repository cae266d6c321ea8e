// Traversal and rewriting of statements by the declared fields of each node.
// One set of overloads covers every field type that occurs; a node with a new field type does not compile until it has
// one.
#include "helve/ir/tensor/visit.h"

#include <type_traits>

#include "helve/support/cancel.h"

namespace helve {

namespace {

template <class T>
constexpr bool is_plain =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> || std::is_same_v<T, Layout>;

struct Reader {
  const std::function<void(const Expr&)>& on_expr;
  const std::function<void(const Stmt&)>& on_stmt;

  void read(const Expr& e) const {
    if (e) on_expr(e);
  }
  void read(const Stmt& s) const {
    if (s) on_stmt(s);
  }
  void read(const VarRef&) const {}
  void read(const BufferRef&) const {}
  void read(const Region& r) const {
    for (const Range& range : r.ranges) {
      on_expr(range.begin);
      on_expr(range.extent);
    }
  }
  void read(const IndexMap& map) const { on_expr(map.value); }
  void read(const TileOperand& operand) const {
    std::visit([&](const auto& value) { read(value); }, operand);
  }
  template <class T>
    requires is_plain<T>
  void read(const T&) const {}
  template <class T>
  void read(const std::vector<T>& items) const {
    for (const T& item : items) read(item);
  }
};

/// Maps fields in place and reports whether anything changed.
struct Mapper {
  const std::function<Expr(const Expr&)>& on_expr;
  const std::function<Stmt(const Stmt&)>& on_stmt;

  bool map(Expr& e) const {
    if (!e) return false;
    Expr mapped = on_expr(e);
    const bool changed = mapped != e;
    e = std::move(mapped);
    return changed;
  }
  bool map(Stmt& s) const {
    if (!s) return false;
    Stmt mapped = on_stmt(s);
    const bool changed = mapped != s;
    s = std::move(mapped);
    return changed;
  }
  bool map(VarRef&) const { return false; }
  bool map(BufferRef&) const { return false; }
  bool map(Region& r) const {
    bool changed = false;
    for (Range& range : r.ranges) {
      changed |= map(range.begin);
      changed |= map(range.extent);
    }
    return changed;
  }
  bool map(IndexMap& each) const { return map(each.value); }
  bool map(TileOperand& operand) const {
    return std::visit([&](auto& value) { return map(value); }, operand);
  }
  template <class T>
    requires is_plain<T>
  bool map(T&) const {
    return false;
  }
  template <class T>
  bool map(std::vector<T>& items) const {
    bool changed = false;
    for (T& item : items) changed |= map(item);
    return changed;
  }
};

}  // namespace

void for_each_part(const Stmt& s, const std::function<void(const Expr&)>& on_expr,
                   const std::function<void(const Stmt&)>& on_stmt) {
  throw_if_cancelled();
  Reader reader{on_expr, on_stmt};
  dispatch(s, [&](const auto& node) {
    using N = std::decay_t<decltype(node)>;
    for_each_field<N>([&](const auto& each) { reader.read(node.*each.member); });
  });
}

void walk(const Stmt& s, const std::function<void(const Stmt&)>& f) {
  if (!s) return;
  f(s);
  for_each_part(s, [](const Expr&) {}, [&](const Stmt& inner) { walk(inner, f); });
}

void walk_exprs(const Stmt& s, const std::function<void(const Expr&)>& f) {
  if (!s) return;
  for_each_part(s, [&](const Expr& e) { walk(e, f); }, [&](const Stmt& inner) { walk_exprs(inner, f); });
}

Stmt map_parts(const Stmt& s, const std::function<Expr(const Expr&)>& on_expr,
               const std::function<Stmt(const Stmt&)>& on_stmt) {
  throw_if_cancelled();
  Mapper mapper{on_expr, on_stmt};
  return dispatch(s, [&](const auto& node) -> Stmt {
    using N = std::decay_t<decltype(node)>;
    const Ref<N> copy = copy_with(node, [&](N& out) {
      bool changed = false;
      for_each_field<N>([&](const auto& each) { changed |= mapper.map(out.*each.member); });
      return changed;
    });
    if (!copy) return s;
    if constexpr (std::is_same_v<N, Seq>) return seq(std::move(copy->stmts), s->span);
    return Stmt(copy);
  });
}

Stmt rewrite(const Stmt& s, const std::function<Stmt(const Stmt&)>& on_stmt,
             const std::function<Expr(const Expr&)>& on_expr) {
  if (!s) return s;
  return on_stmt(map_parts(s, on_expr, [&](const Stmt& inner) { return rewrite(inner, on_stmt, on_expr); }));
}

Stmt substitute(const Stmt& s, const Substitution& values) {
  if (values.empty()) return s;
  return rewrite(s, [](const Stmt& inner) { return inner; }, [&](const Expr& e) { return substitute(e, values); });
}

namespace {

Expr replace_loads(const Expr& e, const BufferMap& buffers) {
  return rewrite(e, [&](const Expr& node) -> Expr {
    auto renamed = [&](const auto& load, auto make) -> Expr {
      auto it = buffers.find(&buffer_of(load.buffer));
      return it == buffers.end() ? node : make(it->second, load.indices, load.span);
    };
    if (const Load* load_node = as<Load>(node)) {
      return renamed(*load_node, [&](const BufferRef& buffer, const std::vector<Expr>& indices, const Span& span) {
        return load_vector(buffer, indices, load_node->width, span);
      });
    }
    if (const TileLoad* load_node = as<TileLoad>(node)) return renamed(*load_node, tile_load);
    const Misalignment* place = as<Misalignment>(node);
    const auto it = place ? buffers.find(&buffer_of(place->buffer)) : buffers.end();
    return it == buffers.end() ? node : misalignment(it->second, place->unit, place->span);
  });
}

bool replace_in(BufferRef& buffer, const BufferMap& buffers) {
  auto it = buffers.find(buffer.get());
  if (it == buffers.end()) return false;
  buffer = it->second;
  return true;
}

template <class N>
Stmt with_buffer(const Stmt& s, const N& node, const BufferMap& buffers) {
  const Ref<N> copy = copy_with(node, [&](N& out) { return replace_in(out.buffer, buffers); });
  return copy ? Stmt(copy) : s;
}

Stmt replace_named(const Stmt& s, const BufferMap& buffers) {
  if (const Store* n = as<Store>(s)) return with_buffer(s, *n, buffers);
  if (const Prefetch* n = as<Prefetch>(s)) return with_buffer(s, *n, buffers);
  if (const Peer* n = as<Peer>(s)) {
    const Ref<Peer> copy = copy_with(*n, [&](Peer& out) { return replace_in(out.source, buffers); });
    return copy ? Stmt(copy) : s;
  }
  if (const TileStore* n = as<TileStore>(s)) return with_buffer(s, *n, buffers);
  if (const ForTiles* n = as<ForTiles>(s)) return with_buffer(s, *n, buffers);
  if (const Breakpoint* n = as<Breakpoint>(s)) {
    const Ref<Breakpoint> copy = copy_with(*n, [&](Breakpoint& out) {
      bool changed = false;
      for (Region& region : out.buffers) changed |= replace_in(region.buffer, buffers);
      return changed;
    });
    return copy ? Stmt(copy) : s;
  }
  if (const TileOp* n = as<TileOp>(s)) {
    Ref<TileOp> copy = make_ref<TileOp>(*n);
    bool changed = false;
    for (TileOperand& operand : copy->operands) {
      if (Region* region = std::get_if<Region>(&operand)) changed |= replace_in(region->buffer, buffers);
    }
    return changed ? Stmt(copy) : s;
  }
  return s;
}

}  // namespace

Stmt replace_buffers(const Stmt& s, const BufferMap& buffers) {
  if (buffers.empty()) return s;
  return rewrite(
      s, [&](const Stmt& inner) { return replace_named(inner, buffers); },
      [&](const Expr& e) { return replace_loads(e, buffers); });
}

Stmt redeclare_buffers(const Stmt& s, const BufferMap& buffers) {
  return rewrite(replace_buffers(s, buffers), [&](const Stmt& inner) -> Stmt {
    const Alloc* a = as<Alloc>(inner);
    auto it = a ? buffers.find(a->buffer.get()) : buffers.end();
    return it == buffers.end() ? inner : alloc(it->second, inner->span);
  });
}

FunctionRef with_body(const FunctionRef& f, Stmt body) {
  if (f->body == body) return f;
  Ref<Function> copy = make_ref<Function>(*f);
  copy->body = std::move(body);
  return FunctionRef(copy);
}

bool has_scheduled_loop(const Stmt& s) {
  bool found = false;
  walk(s, [&](const Stmt& each) {
    const For* loop = as<For>(each);
    found |= loop && loop->scheduled;
  });
  return found;
}

bool has_operation(const Stmt& s, const std::function<bool(const TileOp&)>& holds) {
  bool found = false;
  walk(s, [&](const Stmt& each) {
    const TileOp* op = as<TileOp>(each);
    found |= op && holds(*op);
  });
  return found;
}

bool has_collective(const Stmt& s) {
  return has_operation(s, [](const TileOp& op) { return op.row().is_collective(); });
}

}  // namespace helve
