// Structural equality and hash, derived from the field declarations.
// Bound variables are compared by the place that defines them, free ones by identity; spans and names never count.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "helve/ir/expr/expr.h"
#include "helve/support/hash.h"

namespace helve {

/// One comparison of two trees. `path` names the first difference after a failure, for example "body.args[1].value".
class Equality {
 public:
  virtual ~Equality() = default;

  bool equal(const Expr& a, const Expr& b);
  bool equal(const StorageRef& a, const StorageRef& b);
  bool equal(const VarRef& a, const VarRef& b) { return equal(Expr(a), Expr(b)); }
  bool equal(double a, double b);
  template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
  bool equal(T a, T b) {
    return a == b;
  }
  bool equal(const std::string& a, const std::string& b) { return a == b; }
  bool equal(const DType& a, const DType& b) { return a == b; }
  template <class T>
  bool equal(const std::vector<T>& a, const std::vector<T>& b) {
    return equal_vectors(*this, a, b);
  }

  /// Both objects are defined here: from now on they are the same.
  void define(const Object* a, const Object* b);
  const std::string& path() const { return path_; }

 protected:
  /// Compares all fields of two nodes of one type. `self` is the most derived comparison, so that it sees its own
  /// overloads.
  template <class Self, class N>
  static bool equal_fields(Self& self, const N& a, const N& b) {
    bool same = true;
    for_each_field<N>([&](const auto& each) {
      if (!same) return;
      if (each.defines) self.define_all(a.*each.member, b.*each.member);
      same = self.equal(a.*each.member, b.*each.member);
      if (!same) self.prepend(each.name);
    });
    return same;
  }
  template <class Self, class T>
  static bool equal_vectors(Self& self, const std::vector<T>& a, const std::vector<T>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!self.equal(a[i], b[i])) {
        self.prepend("[" + std::to_string(i) + "]");
        return false;
      }
    }
    return true;
  }
  template <class T>
  void define_all(const Ref<T>& a, const Ref<T>& b) {
    if (a || b) define(a.get(), b.get());
  }
  template <class T>
  void define_all(const std::vector<T>& a, const std::vector<T>& b) {
    for (size_t i = 0; i < a.size() && i < b.size(); ++i) define_all(a[i], b[i]);
  }
  template <class T>
    requires(!requires(const T& t) { t.get(); })
  void define_all(const T&, const T&) {}

  void prepend(const std::string& step);
  /// The declaration of two storages that one node defines.
  virtual bool equal_declaration(const Storage& a, const Storage& b);

 private:
  std::unordered_map<const Object*, const Object*> forward_;
  std::unordered_map<const Object*, const Object*> backward_;
  std::unordered_map<const Object*, bool> compared_;
  std::set<std::pair<const ExprNode*, const ExprNode*>> same_;  ///< large expressions that were found equal
  std::string path_;
};

/// Equal trees; free variables by identity.
bool structural_equal(const Expr& a, const Expr& b);

/// Equal expressions have equal hashes.
uint64_t structural_hash(const Expr& e);

}  // namespace helve
