// Structural equality of statements and functions.
// The comparison of expressions, extended by the field types that statements add.
#include "helve/ir/tensor/equal.h"

#include <algorithm>

#include "helve/ir/expr/equal.h"
#include "helve/ir/expr/multiprocessors.h"

namespace helve {

namespace {

class TensorEquality final : public Equality {
 public:
  using Equality::equal;

  bool equal(const Stmt& a, const Stmt& b) {
    if (!a || !b) return !a && !b;
    if (a->kind != b->kind) return false;
    return dispatch(a, [&](const auto& node) {
      using N = std::decay_t<decltype(node)>;
      return equal_fields(*this, node, static_cast<const N&>(*b));
    });
  }
  bool equal(const Layout& a, const Layout& b) { return a == b; }
  bool equal(const std::optional<Layout>& a, const std::optional<Layout>& b) { return a == b; }
  bool equal(const std::optional<int64_t>& a, const std::optional<int64_t>& b) { return a == b; }
  bool equal(const BufferRef& a, const BufferRef& b) { return Equality::equal(StorageRef(a), StorageRef(b)); }
  bool equal(const Region& a, const Region& b) { return equal(a.buffer, b.buffer) && equal(a.ranges, b.ranges); }
  bool equal(const Range& a, const Range& b) {
    return a.point == b.point && equal(a.begin, b.begin) && equal(a.extent, b.extent);
  }
  bool equal(const IndexMap& a, const IndexMap& b) {
    define_all(a.var, b.var);
    return equal(a.value, b.value);
  }
  bool equal(const TileOperand& a, const TileOperand& b) {
    if (a.index() != b.index()) return false;
    return std::visit([&](const auto& value) { return equal(value, std::get<std::decay_t<decltype(value)>>(b)); }, a);
  }
  template <class T>
  bool equal(const std::vector<T>& a, const std::vector<T>& b) {
    return equal_vectors(*this, a, b);
  }

  bool equal_functions(const Function& a, const Function& b) {
    define_all(a.dims, b.dims);
    if (!part("dims", equal_dims(a.dims, b.dims)) || !part("params", equal_params(a.params, b.params))) return false;
    if (!part("mesh", a.mesh == b.mesh) || !part("mesh_tensors", equal_placement(a.mesh_tensors, b.mesh_tensors))) {
      return false;
    }
    return part("may_alias", equal_aliases(a.may_alias, b.may_alias)) &&
           part("assumptions", equal_assumptions(a.assumptions, b.assumptions)) && part("body", equal(a.body, b.body));
  }

 protected:
  bool equal_declaration(const Storage& a, const Storage& b) override {
    return equal_fields(*this, static_cast<const Buffer&>(a), static_cast<const Buffer&>(b));
  }

 private:
  bool part(const char* name, bool same) {
    if (!same) prepend(name);
    return same;
  }

  /// Shapes bind extents in their order, and the machine binds one.
  static bool equal_dims(const std::vector<VarRef>& a, const std::vector<VarRef>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const VarRef& x, const VarRef& y) {
      return is_multiprocessors(*x) == is_multiprocessors(*y);
    });
  }

  bool equal_params(const std::vector<Param>& a, const std::vector<Param>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i].index() != b[i].index()) return false;
      const bool same = std::visit(
          [&](const auto& p) {
            const auto& q = std::get<std::decay_t<decltype(p)>>(b[i]);
            define_all(p, q);
            return equal(p, q);
          },
          a[i]);
      if (!same) return false;
    }
    return true;
  }

  bool equal_placement(const std::vector<MeshTensor>& a, const std::vector<MeshTensor>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!equal(a[i].buffer, b[i].buffer) || a[i].sharding != b[i].sharding || a[i].tiling != b[i].tiling)
        return false;
    }
    return true;
  }

  bool equal_aliases(const std::vector<MayAlias>& a, const std::vector<MayAlias>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!equal(a[i].buffers, b[i].buffers)) return false;
    }
    return true;
  }

  bool equal_assumptions(const std::vector<Assumption>& a, const std::vector<Assumption>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!equal(a[i].condition, b[i].condition)) return false;
    }
    return true;
  }
};

}  // namespace

bool structural_equal(const FunctionRef& a, const FunctionRef& b, std::string* path) {
  if (a == b) return true;
  TensorEquality equality;
  const bool same = equality.equal_functions(*a, *b);
  if (!same && path) *path = equality.path();
  return same;
}

bool structural_equal(const Stmt& a, const Stmt& b, std::string* path) {
  if (a == b) return true;
  TensorEquality equality;
  const bool same = equality.equal(a, b);
  if (!same && path) *path = equality.path();
  return same;
}

}  // namespace helve
