// Calls between functions of kernels: the rules that arguments obey, and what a call means.
// They are those of a call from Python, as far as declarations decide; what they leave open is refused, since nothing
// looks at arguments inside a program.
#pragma once

#include <variant>
#include <vector>

#include "helve/ir/tensor/function.h"

namespace helve {

/// The calling function as far as a call sees it: its body is still being written.
struct Caller {
  std::optional<MeshShape> mesh;
  std::vector<MeshTensor> mesh_tensors;
  std::vector<MayAlias> may_alias;
};

/// One argument: a whole global buffer of the caller without tiles for a tensor parameter, else a scalar.
struct CallArgument {
  std::variant<BufferRef, Expr> value;
  Span place;
};

/// The statements that a call of `f` at `place` means, one argument for each parameter: its scalars are computed once,
/// at the call. Throws UserError where an argument does not fit its parameter (ArgumentDType, ArgumentRank,
/// ArgumentShape, InconsistentExtent, ArgumentStrides, CallPlacement, WrongType), arguments share memory that `f`
/// counts on being apart (OverlappingArguments), or the two functions are not of one mesh (CallMesh).
Stmt call(const FunctionRef& f, const std::vector<CallArgument>& arguments, const Caller& caller, const Span& place);

}  // namespace helve
