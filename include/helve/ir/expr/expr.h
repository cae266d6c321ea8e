// Scalar expressions.
// Immutable nodes with a dtype and a span; variables and storages are objects, compared by identity, never by name.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "helve/ir/expr/dtype.h"
#include "helve/ir/expr/fields.h"
#include "helve/ir/expr/operators.h"
#include "helve/support/object.h"
#include "helve/support/span.h"

namespace helve {

enum class ExprKind {
#define HELVE_EXPR(name) name,
#include "helve/ir/expr/expr_nodes.inc"
#undef HELVE_EXPR
};

/// The common part of all nodes of the IR. The span never takes part in equality.
struct Node : Object {
  Span span;
};

/// The depth limit of expressions. Walks recurse, so it bounds the stack that they need; text has a lower limit
/// (helve.parse), and passes add a few levels.
inline constexpr int kExprDepthLimit = 800;

/// A node knows its depth and its number of nodes as a tree, so that a walk can decide in advance whether to remember
/// visited nodes.
struct ExprNode : Node {
  using Part = Ref<const ExprNode>;
  const ExprKind kind;
  DType dtype;

  int depth() const { return depth_; }
  /// The number of nodes as a tree (shared nodes count repeatedly); at most kMaxOccurrences.
  uint32_t occurrences() const { return occurrences_; }
  static constexpr uint32_t kMaxOccurrences = UINT32_MAX;

 protected:
  ExprNode(ExprKind k, DType t) : kind(k), dtype(t) {}

 private:
  template <class N>
  friend void measure(N& node);
  int depth_ = 1;
  uint32_t occurrences_ = 1;
};

using Expr = Ref<const ExprNode>;

/// Refuses an expression that contains `operand` at too great a depth (NestingDepth).
[[noreturn]] void refuse_depth(const Expr& operand);

/// Computes depth and occurrences from the fields. NestingDepth beyond the limit.
template <class N>
void measure(N& node) {
  int depth = 0;
  uint64_t occurrences = 1;
  const auto operand = [&](const Expr& e) {
    if (e->depth_ >= kExprDepthLimit) refuse_depth(e);
    depth = std::max(depth, e->depth_);
    occurrences += e->occurrences_;
  };
  for_each_field<N>([&](const auto& each) {
    using M = std::decay_t<decltype(node.*each.member)>;
    if constexpr (std::is_same_v<M, Expr>) {
      operand(node.*each.member);
    } else if constexpr (std::is_same_v<M, std::vector<Expr>>) {
      for (const Expr& e : node.*each.member) operand(e);
    }
  });
  node.depth_ = depth + 1;
  node.occurrences_ = static_cast<uint32_t>(std::min<uint64_t>(occurrences, ExprNode::kMaxOccurrences));
}

/// Do nodes of a type cache properties of their parts? A plain copy with other parts would keep those of the old ones.
template <class N>
concept MeasuresParts =
    requires { typename N::Part; } && std::apply(
                                          [](const auto&... each) {
                                            const auto is_part = []<class M>(M N::*) {
                                              return std::is_same_v<M, typename N::Part> ||
                                                     std::is_same_v<M, std::vector<typename N::Part>>;
                                            };
                                            return (false || ... || is_part(each.member));
                                          },
                                          N::fields());

/// A copy of a node with the fields that `change` changes; null if `change` returns that it changed nothing.
template <class N, class Change>
Ref<N> copy_with(const N& node, Change&& change) {
  Ref<N> copy(new N(node));
  if constexpr (std::is_same_v<std::invoke_result_t<Change, N&>, bool>) {
    if (!change(*copy)) return {};
  } else {
    change(*copy);
  }
  measure(*copy);
  return copy;
}

/// Such nodes are copied by copy_with, which computes the cached properties again.
template <class N, class Other>
  requires std::is_same_v<std::remove_cvref_t<Other>, N> && MeasuresParts<N>
Ref<N> make_ref(Other&& node) = delete;

/// The operand of a load or store. The expression room knows only its name, element type and rank; ir/tensor's Buffer
/// is the only implementation.
struct Storage : Node {
  std::string name;
  DType dtype;
  virtual size_t rank() const = 0;
};
using StorageRef = Ref<const Storage>;

/// An integer (or bool, as 0 and 1) constant. The value fits the dtype; index constants are int64.
struct IntImm final : ExprNode {
  static constexpr ExprKind kKind = ExprKind::IntImm;
  int64_t value;
  IntImm(DType t, int64_t v) : ExprNode(kKind, t), value(v) {}
  static constexpr auto fields() { return std::tuple{field("value", &IntImm::value)}; }
};

/// A float constant, held as double and already rounded to its dtype.
struct FloatImm final : ExprNode {
  static constexpr ExprKind kKind = ExprKind::FloatImm;
  double value;
  FloatImm(DType t, double v) : ExprNode(kKind, t), value(v) {}
  static constexpr auto fields() { return std::tuple{field("value", &FloatImm::value)}; }
};

/// A scalar variable. `name` is a hint for printing; identity is the object.
struct Var final : ExprNode {
  static constexpr ExprKind kKind = ExprKind::Var;
  std::string name;
  Var(DType t, std::string n) : ExprNode(kKind, t), name(std::move(n)) {}
  static constexpr auto fields() { return std::tuple{}; }
};
using VarRef = Ref<const Var>;

/// An operator of the table applied to its operands.
struct Apply final : ExprNode {
  static constexpr ExprKind kKind = ExprKind::Apply;
  Op op;
  std::vector<Expr> args;
  static constexpr auto fields() { return std::tuple{field("op", &Apply::op), field("args", &Apply::args)}; }
  Apply(DType t, Op o, std::vector<Expr> a) : ExprNode(kKind, t), op(o), args(std::move(a)) { measure(*this); }
};

/// Conversion of `value` to the node's dtype: float to float rounds to nearest even, float to int truncates, int to int
/// wraps.
struct Cast final : ExprNode {
  static constexpr ExprKind kKind = ExprKind::Cast;
  Expr value;
  static constexpr auto fields() { return std::tuple{field("value", &Cast::value)}; }
  Cast(DType t, Expr v) : ExprNode(kKind, t), value(std::move(v)) { measure(*this); }
};

/// The bits of `value` as the node's dtype, of the same width: of the two, one is a float and one a data integer. A
/// value of a small float is rounded to its dtype first; which of its bit patterns a NaN has is unspecified.
struct Bitcast final : ExprNode {
  static constexpr ExprKind kKind = ExprKind::Bitcast;
  Expr value;
  static constexpr auto fields() { return std::tuple{field("value", &Bitcast::value)}; }
  Bitcast(DType t, Expr v) : ExprNode(kKind, t), value(std::move(v)) { measure(*this); }
};

/// One element of a storage; one index expression for each dimension.
struct Load final : ExprNode {
  static constexpr ExprKind kKind = ExprKind::Load;
  StorageRef buffer;
  std::vector<Expr> indices;
  /// The lanes of the vectorized loop around it read their elements, which follow one another, before the first of them
  /// runs, in accesses of so many bytes that begin at multiples of it; 0: each lane its own. Subscripts name nothing
  /// that the loop's body binds.
  int64_t width = 0;
  static constexpr auto fields() {
    return std::tuple{field("buffer", &Load::buffer), field("indices", &Load::indices), field("width", &Load::width)};
  }
  Load(StorageRef b, std::vector<Expr> i) : ExprNode(kKind, b->dtype), buffer(std::move(b)), indices(std::move(i)) {
    measure(*this);
  }
};

/// A whole tile of a tiled storage; the indices are tile numbers. Legal only in a tile loop.
struct TileLoad final : ExprNode {
  static constexpr ExprKind kKind = ExprKind::TileLoad;
  StorageRef buffer;
  std::vector<Expr> indices;
  static constexpr auto fields() {
    return std::tuple{field("buffer", &TileLoad::buffer), field("indices", &TileLoad::indices)};
  }
  TileLoad(StorageRef b, std::vector<Expr> i) : ExprNode(kKind, b->dtype), buffer(std::move(b)), indices(std::move(i)) {
    measure(*this);
  }
};

/// Bytes by which the first element of a storage in global memory lies behind a multiple of `unit`, a power of two. Any
/// multiple of the element's size below `unit`, the same in a whole call.
struct Misalignment final : ExprNode {
  static constexpr ExprKind kKind = ExprKind::Misalignment;
  StorageRef buffer;
  int64_t unit;
  static constexpr auto fields() {
    return std::tuple{field("buffer", &Misalignment::buffer), field("unit", &Misalignment::unit)};
  }
  Misalignment(StorageRef b, int64_t u) : ExprNode(kKind, kIndex), buffer(std::move(b)), unit(u) {}
};

/// The node as `T`, or null when it is of another kind.
template <class T>
const T* as(const Expr& e) {
  return e && e->kind == T::kKind ? static_cast<const T*>(e.get()) : nullptr;
}

/// The node as an application of `op`, or null.
inline const Apply* as_op(const Expr& e, Op op) {
  const Apply* a = as<Apply>(e);
  return a && a->op == op ? a : nullptr;
}

/// Calls `f` with the node as its own type. The switch over all kinds has no default, so a new node must be handled.
template <class F>
decltype(auto) dispatch(const Expr& e, F&& f) {
  switch (e->kind) {
#define HELVE_EXPR(name) \
  case ExprKind::name: return f(static_cast<const name&>(*e));
#include "helve/ir/expr/expr_nodes.inc"
#undef HELVE_EXPR
  }
  __builtin_unreachable();
}

}  // namespace helve
