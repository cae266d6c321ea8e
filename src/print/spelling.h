// Spelling of the parts of statements: bounds, shapes, regions, operands.
// Kept apart from the statements' lines, so that each part is spelled in one way wherever it stands.
#pragma once

#include <string>
#include <vector>

#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/function.h"

namespace helve {

class Spelling {
 public:
  explicit Spelling(Namer& namer) : namer_(namer) {}

  std::string expr(const Expr& e) { return to_text(e, namer_); }
  std::string name(const Storage& s) { return namer_.name_of(s); }
  std::string name(const Var& v) { return namer_.name_of(v); }

  /// "(8, M)", "(8,)", "()".
  std::string tuple(const std::vector<Expr>& items);
  /// "i", "(i, j)" in a with, "i, j" in a for.
  std::string targets(const std::vector<VarRef>& vars);

  /// "8" where the bound begins at 0, else "lo, hi".
  std::string bounds(const Expr& begin, const Expr& extent);
  /// The same as one argument: "8" or "(lo, hi)".
  std::string bound_item(const Expr& begin, const Expr& extent);

  /// A value stored to a buffer of `dtype`: constants of that dtype stand bare.
  std::string value_for(const Expr& value, DType dtype);
  std::string typed(const Expr& value) { return to_typed_text(value, namer_); }

  std::string subscript(const Buffer& buffer, const std::vector<Expr>& indices);
  std::string region(const Region& region);
  /// Axes of the mesh: a name, or a tuple of them.
  static std::string axes(const std::string& names);
  /// A function of one index: "lambda k: k - 1".
  std::string map(const IndexMap& map);

  /// The annotation of a parameter.
  std::string tensor_type(const Buffer& buffer);
  /// The call that allocates the buffer.
  std::string allocation(const Buffer& buffer);
  /// The call of a tile operation.
  std::string call(const TileOp& op);

  /// `T.Mesh((2, 4), ("x", "y"))`.
  static std::string mesh(const MeshShape& mesh);
  /// `{A: {"sharding": {"x": 0}, "tiling": [32, 256]}}`.
  std::string placement(const std::vector<MeshTensor>& tensors);

 private:
  std::string end(const Expr& begin, const Expr& extent);
  std::string operand(const TileOp& op, size_t i);
  bool is_default(const TileOp& op, size_t i);

  Namer& namer_;
};

}  // namespace helve
