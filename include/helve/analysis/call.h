// Calls between kernel functions: the rules for arguments, and the meaning of a call.
// The rules are those of a call from Python, as far as declarations decide; what they leave open is refused, since
// arguments are not checked inside of a program.
#pragma once

#include <variant>
#include <vector>

#include "helve/ir/tensor/function.h"

namespace helve {

/// The calling function as far as it is known at the call: its body is still being built.
struct Caller {
  std::optional<MeshShape> mesh;
  std::vector<MeshTensor> mesh_tensors;
  std::vector<MayAlias> may_alias;
  std::vector<Assumption> assumptions;
};

/// One argument: a whole global buffer of the caller without tiles for a tensor parameter, else a scalar.
struct CallArgument {
  std::variant<BufferRef, Expr> value;
  Span place;
};

/// The statements of a call of `f` at `place`, with one argument for each parameter: its scalars are computed once, at
/// the call. Throws UserError if an argument does not fit its parameter (ArgumentDType, ArgumentRank, ArgumentShape,
/// InconsistentExtent, ArgumentStrides, CallPlacement, WrongType), if arguments share memory that `f` assumes to be
/// separate (OverlappingArguments), if they need not meet what `f` assumes (OpenAssumption), or if the two functions
/// are not of one mesh (CallMesh).
Stmt call(const FunctionRef& f, const std::vector<CallArgument>& arguments, const Caller& caller, const Span& place);

}  // namespace helve
