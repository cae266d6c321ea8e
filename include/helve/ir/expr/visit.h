// Traversal and rewriting of expressions, derived from the field declarations.
// Mutators return the same node if nothing changed, so unchanged IR is shared, not copied. Expressions may share parts,
// so no walk may cost as much as for a tree: walks visit a part that occurs often only once.
#pragma once

#include <functional>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "helve/ir/expr/expr.h"

namespace helve {

/// Calls `f` on each direct operand of `e`.
void for_each_child(const Expr& e, const std::function<void(const Expr&)>& f);

/// Expressions with at most this many occurrences are cheaper to walk again than to remember.
inline constexpr uint32_t kFewOccurrences = 64;
/// Might a walk of `e` as a tree cost more than its number of nodes?
inline bool is_large(const Expr& e) { return e->occurrences() > kFewOccurrences; }

/// Results of a walk for the parts of large expressions; for small parts they are computed again. Keeps the parts
/// alive.
template <class T>
class Memo {
 public:
  /// The value of `e`: the known one, or f().
  template <class F>
  T of(const Expr& e, F&& f) {
    if (!is_large(e)) return f();
    if (auto known = values_.find(e); known != values_.end()) return known->second;
    T value = f();
    values_.emplace(e, value);
    return value;
  }
  /// Is this the first call for `e`? Always true for small parts.
  bool is_new(const Expr& e)
    requires std::is_same_v<T, bool>
  {
    return !is_large(e) || values_.emplace(e, true).second;
  }

 private:
  std::unordered_map<Expr, T> values_;
};
using Seen = Memo<bool>;

/// Calls `f` on `e` and every expression below it, parents first; at least once on each part of a large expression, in
/// small expressions for each occurrence.
void walk(const Expr& e, const std::function<void(const Expr&)>& f);

/// `e` with each direct operand replaced by `f(operand)`; `e` itself when nothing changed. Types must not change.
Expr map_children(const Expr& e, const std::function<Expr(const Expr&)>& f);

/// `e` rewritten from the leaves up: `f` sees each node after its operands and may return it unchanged. What `f` makes
/// of a node is made once for all places where it occurs, in small expressions for each.
Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& f);

/// The operands of a tree of the operator (`and`, `or`, min, max), from left to right; of a shared large part once,
/// since repeating an operand changes none of these.
std::vector<Expr> operands_of_chain(const Expr& e, Op op);

using Substitution = std::unordered_map<const Var*, Expr>;
Expr substitute(const Expr& e, const Substitution& values);

/// Adds to `values` what `var` stands for, itself in terms of them. False, and nothing added, where that would be an
/// expression of more than kLargestValue occurrences: values named in terms of each other grow without bound as trees,
/// so the client leaves the name and knows less of it.
inline constexpr uint32_t kLargestValue = 512;
[[nodiscard]] bool add_value(Substitution& values, const VarRef& var, const Expr& value);

/// Does `var` occur in `e`?
bool mentions(const Expr& e, const Var* var);

/// Does `e` read a buffer? Then its value may differ between two places of a program.
bool has_load(const Expr& e);

}  // namespace helve
