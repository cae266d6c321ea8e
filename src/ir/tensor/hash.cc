// The structural hash of functions.
// It identifies a program across processes, so nothing in it depends on addresses: objects are numbered where they are
// defined.
#include <bit>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/equal.h"
#include "helve/support/hash.h"

namespace helve {

namespace {

class FunctionHasher {
 public:
  uint64_t hash = 0;

  void add(const Function& f) {
    define(f.dims);
    add(f.dims);
    for (const Param& param : f.params) {
      std::visit([&](const auto& p) { define(p); }, param);
    }
    add(f.params);
    add(f.mesh.has_value());
    if (f.mesh) {
      add(f.mesh->extents);
      add(f.mesh->names);
    }
    add(f.mesh_tensors);
    add(f.may_alias);
    add(f.assumptions);
    add(f.body);
  }

 private:
  std::unordered_map<const Object*, uint64_t> numbers_;
  std::unordered_set<const Object*> declared_;
  Memo<uint64_t> large_;
  uint64_t defined_ = 0;

  void mix(uint64_t value) { hash = hash_mix(hash, value); }

  template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
  void add(T value) {
    mix(static_cast<uint64_t>(value));
  }
  void add(double value) { mix(std::bit_cast<uint64_t>(value)); }
  void add(const std::string& text) {
    mix(text.size());
    for (const char c : text) mix(static_cast<unsigned char>(c));
  }
  template <class T>
  void add(const std::optional<T>& value) {
    add(value.has_value());
    if (value) add(*value);
  }
  void add(const Layout& layout) { mix(layout.hash()); }
  void add(const DType& dtype) {
    add(dtype.code);
    add(dtype.bits);
  }
  template <class T>
  void add(const std::vector<T>& items) {
    mix(items.size());
    for (const T& item : items) add(item);
  }
  template <class... T>
  void add(const std::variant<T...>& alternative) {
    mix(alternative.index());
    std::visit([&](const auto& value) { add(value); }, alternative);
  }
  template <class A, class B>
  void add(const std::pair<A, B>& both) {
    add(both.first);
    add(both.second);
  }
  void add(const Range& range) {
    add(range.begin);
    add(range.extent);
    add(range.point);
  }
  void add(const Region& region) {
    add(region.buffer);
    add(region.ranges);
  }
  void add(const IndexMap& map) {
    define(map.var);
    add(map.value);
  }
  void add(const MeshTensor& tensor) {
    add(tensor.buffer);
    add(tensor.sharding);
    add(tensor.tiling);
  }
  void add(const MayAlias& declared) { add(declared.buffers); }
  void add(const Assumption& assumed) { add(assumed.condition); }

  /// The object is defined here. One object may be defined in several scopes; each definition is a thing of its own.
  template <class T>
  void define(const Ref<T>& object) {
    if (!object) return;
    numbers_[object.get()] = ++defined_;
    declared_.erase(object.get());
    large_ = {};  // what was known may hold the object under another number
  }
  template <class T>
  void define(const std::vector<T>& objects) {
    for (const T& object : objects) define(object);
  }
  template <class T>
    requires(!requires(const T& t) { t.get(); })
  void define(const T&) {}
  void add(const VarRef& var) { add(Expr(var)); }
  void add(const BufferRef& buffer) { add(StorageRef(buffer)); }
  void add(const StorageRef& storage) {
    mix(storage != nullptr);
    if (!storage) return;
    mix(numbers_.at(storage.get()));
    if (declared_.insert(storage.get()).second) add_fields(buffer_of(storage));
  }
  void add(const Expr& e) {
    mix(e != nullptr);
    if (!e) return;
    add(e->kind);
    add(e->dtype);
    if (e->kind == ExprKind::Var) {
      mix(numbers_.at(e.get()));
    } else if (is_large(e)) {
      mix(large_.of(e, [&] { return separately([&] { add_operands(e); }); }));
    } else {
      add_operands(e);
    }
  }
  void add_operands(const Expr& e) {
    dispatch(e, [&](const auto& node) { add_fields(node); });
  }
  /// The hash of what `f` adds, beside the hash so far.
  template <class F>
  uint64_t separately(F&& f) {
    const uint64_t before = std::exchange(hash, 0);
    f();
    return std::exchange(hash, before);
  }
  void add(const Stmt& s) {
    mix(s != nullptr);
    if (!s) return;
    add(s->kind);
    dispatch(s, [&](const auto& node) { add_fields(node); });
  }
  template <class N>
  void add_fields(const N& node) {
    for_each_field<N>([&](const auto& each) {
      if (each.defines) define(node.*each.member);
      add(node.*each.member);
    });
  }
};

}  // namespace

uint64_t structural_hash(const FunctionRef& f) {
  FunctionHasher hasher;
  hasher.add(*f);
  return hasher.hash;
}

}  // namespace helve
