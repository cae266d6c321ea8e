// Scalar expressions of a host body as programs of the plan.
// The host has 64-bit integers only; what it cannot compute exactly is moved into the kernels or refused.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "helve/ir/tensor/stmt.h"
#include "helve/runtime/scalar_program.h"

namespace helve {

class HostScalars {
 public:
  /// A new slot that holds the value of `var`.
  int64_t add_slot(const Var* var);
  /// The same for a variable that nothing else keeps.
  int64_t add_slot(VarRef var);
  /// `var` is another name for a slot's or program's value.
  void define(const Var* var, runtime::ScalarProgram program) { programs_.insert_or_assign(var, std::move(program)); }
  /// An argument for `param`, whose type is wider, is refused unless it fits an index.
  void set_index(const Var* param) { index_params_.insert(param); }
  /// `var` is computed from `value` where it is used.
  void defer(const VarRef& var, const Expr& value) { deferred_.push_back({var, value}); }

  /// The program of an expression, or nothing if the host cannot compute it.
  std::optional<runtime::ScalarProgram> program(const Expr& e) const;
  /// The program, or a UserError HostExpression that names `what`.
  runtime::ScalarProgram required(const Expr& e, const std::string& what) const;

  /// The kernel, with the deferred values that it uses computed at its begin.
  Ref<const Kernel> with_deferred(const Kernel& kernel) const;

  const std::vector<std::string>& slots() const { return slots_; }

 private:
  std::optional<runtime::ScalarProgram> apply(const Apply& a) const;

  std::vector<std::string> slots_;
  std::unordered_map<const Var*, runtime::ScalarProgram> programs_;
  std::unordered_set<const Var*> index_params_;
  std::vector<std::pair<VarRef, Expr>> deferred_;
  std::vector<VarRef> kept_;
};

}  // namespace helve
