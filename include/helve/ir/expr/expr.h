// Scalar expressions.
// Immutable nodes with a dtype and a span; variables and storages are objects, compared by identity, never by name.
#pragma once

#include <cstdint>
#include <string>
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

/// What is common to all nodes of the IR. The span never takes part in equality.
struct Node : Object {
  Span span;
};

struct ExprNode : Node {
  const ExprKind kind;
  DType dtype;

 protected:
  ExprNode(ExprKind k, DType t) : kind(k), dtype(t) {}
};

using Expr = Ref<const ExprNode>;

/// What a load or store names. The expression room knows only its name, element type and rank; ir/tensor's Buffer is
/// the one implementation.
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
  Apply(DType t, Op o, std::vector<Expr> a) : ExprNode(kKind, t), op(o), args(std::move(a)) {}
  static constexpr auto fields() { return std::tuple{field("op", &Apply::op), field("args", &Apply::args)}; }
};

/// Conversion of `value` to the node's dtype: float to float rounds to nearest even, float to int truncates, int to int
/// wraps.
struct Cast final : ExprNode {
  static constexpr ExprKind kKind = ExprKind::Cast;
  Expr value;
  Cast(DType t, Expr v) : ExprNode(kKind, t), value(std::move(v)) {}
  static constexpr auto fields() { return std::tuple{field("value", &Cast::value)}; }
};

/// One element of a storage; one index expression for each dimension.
struct Load final : ExprNode {
  static constexpr ExprKind kKind = ExprKind::Load;
  StorageRef buffer;
  std::vector<Expr> indices;
  Load(StorageRef b, std::vector<Expr> i) : ExprNode(kKind, b->dtype), buffer(std::move(b)), indices(std::move(i)) {}
  static constexpr auto fields() {
    return std::tuple{field("buffer", &Load::buffer), field("indices", &Load::indices)};
  }
};

/// A whole tile of a tiled storage; the indices are tile numbers. Legal only in a tile loop.
struct TileLoad final : ExprNode {
  static constexpr ExprKind kKind = ExprKind::TileLoad;
  StorageRef buffer;
  std::vector<Expr> indices;
  TileLoad(StorageRef b, std::vector<Expr> i)
      : ExprNode(kKind, b->dtype), buffer(std::move(b)), indices(std::move(i)) {}
  static constexpr auto fields() {
    return std::tuple{field("buffer", &TileLoad::buffer), field("indices", &TileLoad::indices)};
  }
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

/// Calls `f` with the node as its own type. One switch over all kinds: a new node does not compile until it is handled.
template <class F>
decltype(auto) dispatch(const Expr& e, F&& f) {
  switch (e->kind) {
#define HELVE_EXPR(name) \
  case ExprKind::name:   \
    return f(static_cast<const name&>(*e));
#include "helve/ir/expr/expr_nodes.inc"
#undef HELVE_EXPR
  }
  __builtin_unreachable();
}

}  // namespace helve
