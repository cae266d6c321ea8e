// Free buffers and variables of a kernel, collected over the declared fields of every node.
// Derived from the field lists, so that a new node or field cannot be left out of a kernel's arguments.
#include "helve/analysis/kernel_interface.h"

#include <algorithm>
#include <type_traits>
#include <unordered_set>

namespace helve {

namespace {

/// Walks in program order. Definitions precede their uses, so a use of what is not yet defined is free.
class InterfaceCollector {
 public:
  KernelInterface take() { return std::move(found_); }

  void visit(const Kernel& kernel) { visit_fields(kernel); }

 private:
  template <class N>
  void visit_fields(const N& node) {
    for_each_field<N>([&](const auto& each) {
      if (each.defines) {
        define(node.*each.member);
      } else {
        visit(node.*each.member);
      }
    });
  }

  void visit(const Stmt& s) {
    if (s) dispatch(s, [&](const auto& node) { visit_fields(node); });
  }

  void visit(const Expr& e) {
    if (const Var* var = as<Var>(e)) return use(VarRef(var));
    if (e && !seen_.insert(e.get()).second) return;  // what it uses is known by now
    dispatch(e, [&](const auto& node) { visit_fields(node); });
  }

  void visit(const VarRef& var) { use(var); }
  void visit(const StorageRef& s) { use(buffer_ref(s)); }
  void visit(const BufferRef& b) { use(b); }

  void visit(const Region& region) {
    use(region.buffer);
    for (const Range& range : region.ranges) {
      visit(range.begin);
      visit(range.extent);
    }
  }

  void visit(const IndexMap& map) {
    define(map.var);
    visit(map.value);
  }

  void visit(const TileOperand& operand) {
    std::visit([&](const auto& value) { visit(value); }, operand);
  }

  template <class T>
  void visit(const std::vector<T>& items) {
    for (const T& item : items) visit(item);
  }

  /// Plain data.
  template <class T>
    requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
  void visit(const T&) {}
  void visit(const std::string&) {}
  void visit(const Layout&) {}

  void define(const VarRef& var) { known_.insert(var.get()); }
  void define(const BufferRef& buffer) {
    known_.insert(buffer.get());
    visit_declaration(*buffer);
  }
  template <class T>
  void define(const std::vector<T>& items) {
    for (const T& item : items) define(item);
  }
  /// Fields that define nothing.
  template <class T>
    requires(!requires(const T& t) { t.get(); })
  void define(const T&) {}
  void define(const Expr&) {}
  void define(const Stmt&) {}
  void define(const StorageRef&) {}

  void use(const VarRef& var) {
    if (known_.insert(var.get()).second) found_.scalars.push_back(var);
  }
  void use(const BufferRef& buffer) {
    if (!known_.insert(buffer.get()).second) return;
    found_.buffers.push_back(buffer);
    visit_declaration(*buffer);
  }
  void visit_declaration(const Buffer& buffer) {
    visit(buffer.shape);
    visit(buffer.strides);
  }

  std::unordered_set<const Object*> known_;
  std::unordered_set<const ExprNode*> seen_;
  KernelInterface found_;
};

}  // namespace

KernelInterface kernel_interface(const Kernel& kernel) {
  InterfaceCollector collector;
  collector.visit(kernel);
  return collector.take();
}

bool is_apart(const KernelInterface& interface, const std::vector<MayAlias>& may_alias, const Buffer* buffer) {
  return std::none_of(interface.buffers.begin(), interface.buffers.end(), [&](const BufferRef& other) {
    return other.get() != buffer && may_overlap(may_alias, other.get(), buffer);
  });
}

}  // namespace helve
