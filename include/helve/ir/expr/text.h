// Expressions as Python text.
// The one expression-to-text function: printer, diagnostics and logs differ only in how they name things.
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
};

/// Python text that parses back to an equal expression under the same names. A constant prints bare where its neighbour gives it
/// its type (`bare` says so for the whole expression), otherwise as T.float32(1.0).
std::string to_text(const Expr& e, Namer& namer, bool bare = false);
std::string to_text(const Expr& e);

}  // namespace helve
