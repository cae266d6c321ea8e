// A copy of a body in which every node is new, by the declared fields of each.
// One set of overloads covers every field type that occurs; a node with a new field type does not compile until it has
// one.
#include "helve/ir/tensor/inline.h"

#include <type_traits>

#include "helve/support/diagnostic.h"

namespace helve {

namespace {

template <class T>
constexpr bool is_plain =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> || std::is_same_v<T, Layout>;

/// The expression without places, variables aside: what stands for a parameter has the place of the parameter's use.
Expr without_places(const Expr& e) {
  return rewrite(e, [](const Expr& node) {
    return dispatch(node, [&](const auto& n) -> Expr {
      using N = std::decay_t<decltype(n)>;
      if constexpr (std::is_same_v<N, Var>) {
        return node;
      } else {
        return Expr(copy_with(n, [](N& copy) { copy.span = {}; }));
      }
    });
  });
}

class Inliner {
 public:
  Inliner(ParameterValues values, const Span& call) : buffers_(std::move(values.buffers)), call_(call) {
    for (const auto& [var, value] : values.scalars) scalars_.emplace(var, without_places(value));
  }

  Stmt copy(const Stmt& s) {
    return dispatch(s, [&](const auto& node) -> Stmt {
      using N = std::decay_t<decltype(node)>;
      const Ref<N> inlined = copy_with(node, [&](N& out) {
        out.span = called_from(node.span, call_);
        for_each_field<N>([&](const auto& each) {
          if (each.defines) define(out.*each.member);
        });
        for_each_field<N>([&](const auto& each) {
          if (!each.defines) map(out.*each.member);
        });
        if constexpr (std::is_same_v<N, TileOp>) {
          for (Span& place : out.places) place = called_from(place, call_);
        }
      });
      if constexpr (std::is_same_v<N, Seq>) return seq(std::move(inlined->stmts), inlined->span);
      return Stmt(inlined);
    });
  }

 private:
  Expr copy(const Expr& e) {
    if (const Var* var = as<Var>(e)) {
      auto it = scalars_.find(var);
      return it == scalars_.end() ? e : it->second;
    }
    return copies_.of(e, [&] { return copy_of_node(e); });
  }

  Expr copy_of_node(const Expr& e) {
    return dispatch(e, [&](const auto& node) -> Expr {
      using N = std::decay_t<decltype(node)>;
      if constexpr (std::is_same_v<N, Var>) {
        return e;
      } else {
        return folded(*copy_with(node, [&](N& out) {
          out.span = called_from(node.span, call_);
          for_each_field<N>([&](const auto& each) { map(out.*each.member); });
        }));
      }
    });
  }

  /// What the construction functions make of a constant operand at once, so that the text reads back.
  static Expr folded(const Cast& cast) { return helve::cast(cast.value, cast.dtype, cast.span); }
  static Expr folded(const Apply& node) {
    return node.op == Op::Neg ? apply(node.op, node.args, node.span) : Expr(&node);
  }
  template <class N>
  static Expr folded(const N& node) {
    return Expr(&node);
  }

  // Definitions: known from here on.

  void define(VarRef& var) {
    if (!var) return;
    const VarRef own = make_var(var->name, var->dtype, called_from(var->span, call_));
    scalars_.emplace(var.get(), Expr(own));
    copies_ = {};
    var = own;
  }
  void define(std::vector<VarRef>& vars) {
    for (VarRef& var : vars) define(var);
  }
  void define(BufferRef& buffer) {
    Ref<Buffer> own = make_ref<Buffer>(*buffer);
    own->span = called_from(buffer->span, call_);
    map(own->shape);
    map(own->strides);
    buffers_.emplace(buffer.get(), BufferRef(own));
    copies_ = {};
    buffer = BufferRef(own);
  }
  template <class T>
  void define(T&) {
    HELVE_FAIL("a definition of a field type that defines nothing");
  }

  // Uses.

  void map(Expr& e) {
    if (e) e = copy(e);
  }
  void map(Stmt& s) {
    if (s) s = copy(s);
  }
  void map(BufferRef& buffer) { buffer = known(buffer.get()); }
  void map(StorageRef& storage) { storage = known(&buffer_of(storage)); }
  /// An extent that is the buffer's own stays the buffer's own.
  void map(Region& region) {
    const BufferRef from = region.buffer;
    map(region.buffer);
    for (size_t d = 0; d < region.ranges.size(); ++d) {
      Range& range = region.ranges[d];
      map(range.begin);
      if (range.extent == from->shape[d]) {
        range.extent = region.buffer->shape[d];
      } else {
        map(range.extent);
      }
    }
  }
  void map(IndexMap& each) {
    define(each.var);
    map(each.value);
  }
  void map(TileOperand& operand) {
    std::visit([&](auto& value) { map(value); }, operand);
  }
  void map(VarRef&) { HELVE_FAIL("a variable that a statement neither defines nor computes with"); }
  template <class T>
    requires is_plain<T>
  void map(T&) {}
  template <class T>
  void map(std::vector<T>& items) {
    for (T& item : items) map(item);
  }

  const BufferRef& known(const Buffer* buffer) const {
    auto it = buffers_.find(buffer);
    HELVE_CHECK(it != buffers_.end(), "'" + buffer->name + "' stands for nothing at a call");
    return it->second;
  }

  Substitution scalars_;
  BufferMap buffers_;
  Memo<Expr> copies_;  ///< under these definitions
  const Span call_;
};

}  // namespace

Stmt inline_body(const Function& f, ParameterValues values, const Span& call) {
  return Inliner(std::move(values), call).copy(f.body);
}

}  // namespace helve
