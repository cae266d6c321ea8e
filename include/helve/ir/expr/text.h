// Expressions as Python text.
// This is the only conversion to text: printer, diagnostics and logs differ only in names.
#pragma once

#include <string>

#include "helve/ir/expr/expr.h"

namespace helve {

/// Names for variables and storages. The default uses the name hints, which need not be unique.
class Namer {
 public:
  virtual ~Namer() = default;
  virtual std::string name_of(const Var& var) { return var.name; }
  virtual std::string name_of(const Storage& storage) { return storage.name; }
  /// A number for nodes whose place in the text is wanted, -1 for all others. The text of such a node is enclosed in
  /// kMarkBegin ... kMarkEnd number kMarkEnd.
  virtual int mark_of(const ExprNode&) { return -1; }
};

inline constexpr char kMarkBegin = '\x01';
inline constexpr char kMarkEnd = '\x02';

/// Python text that reads back as an equal expression under the same names. A constant prints bare where its neighbour
/// gives it its type (`bare` says so for the whole expression), otherwise as T.float32(1.0); an index constant that is
/// the whole expression or a whole subscript prints bare. Where all operands of an operator are constants the first one
/// carries its type, and so do constant operands of and, or, not and constant conditions: nothing is left for Python's
/// own arithmetic. One form does not read back: a minus or T.cast directly on a constant, which the construction
/// functions fold.
std::string to_text(const Expr& e, Namer& namer, bool bare = false);
std::string to_text(const Expr& e);

/// The maximum of occurrences in an expression that is written as text or code, neither of which has names for shared
/// parts. Values that are used often are bound to names (ir/tensor's Bind).
inline constexpr uint32_t kLargestExpr = 1 << 16;
/// Refuses a larger one (TextLimit).
void require_writable(const Expr& e);

/// For use in a sentence: "..." if the expression is large.
std::string brief_text(const Expr& e);

/// As to_text, but every constant has an explicit type: T.index(3), T.bool(True).
std::string to_typed_text(const Expr& e, Namer& namer);

}  // namespace helve
