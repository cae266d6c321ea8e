// A nest of loops and branches around stores of elements, and boxes of the elements that these touch.
// What an operation on tiles needs of the loops in whose place it is put; whether it does what they did is asked
// elsewhere (legality.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "helve/ir/tensor/stmt.h"
#include "helve/schedule/primitive.h"

namespace helve {

/// The values of a loop variable: from `begin` on, as expressions over the loops around the nest.
struct VarValues {
  Expr begin, extent;
};

/// A store of a nest.
struct ElementStore {
  const Store* store;
  Cursor at;
  std::vector<VarRef> vars;  ///< of the loops of the nest around it, outermost first
};

/// A region of a buffer, and the variable that runs over each of its dimensions that are not points.
struct Box {
  Region region;
  std::vector<VarRef> vars;
};

class NestBoxes {
 public:
  /// The nest at the place; refused if it holds other statements.
  NestBoxes(const FunctionRef& f, const Cursor& at, const Arguments& arguments);

  const Stmt& stmt() const { return stmt_; }
  const std::vector<ElementStore>& stores() const { return stores_; }

  /// The values that the variable has where the store runs: the least box around them.
  const VarValues& values(const ElementStore& store, const VarRef& var);
  /// From the same value on, as many as the variable's loop has at most, whatever branches inside of it say. Refused if
  /// that is no constant.
  VarValues whole_values(const ElementStore& store, const VarRef& var);
  /// The elements that an access of the store touches; refused unless each subscript is one variable of the nest, or
  /// none, and what is fixed. Each variable has the values that it has at `ranges`, those of `whole` all of its loop.
  Box box(const ElementStore& ranges, const BufferRef& buffer, const std::vector<Expr>& indices,
          const std::vector<VarRef>& whole = {});

 private:
  void collect(const Cursor& at, const Stmt& s, std::vector<VarRef> vars);
  std::optional<VarRef> variable_of(const Expr& index) const;

  const FunctionRef f_;
  const Arguments& arguments_;
  const Stmt stmt_;
  std::vector<VarRef> all_;
  std::map<const Var*, VarValues> loops_;  ///< what the loops say of their variables
  std::vector<ElementStore> stores_;
  std::map<std::pair<const Store*, const Var*>, VarValues> known_;
};

}  // namespace helve
