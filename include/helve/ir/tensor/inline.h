// The body of a function in place of a call of it.
// A call means the statements of the function with the arguments for its parameters, so no node and no room knows of
// calls.
#pragma once

#include "helve/ir/tensor/visit.h"

namespace helve {

/// What the parameters of a function stand for: extents and scalars by values of the caller, tensors by its buffers.
struct ParameterValues {
  Substitution scalars;
  BufferMap buffers;
};

/// The body of `f` with `values` for its parameters. Variables and buffers that it defines are new, and its text has
/// its place in the call at `call`. Nothing of the body is checked anew: the verifier sees it in the caller.
Stmt inline_body(const Function& f, ParameterValues values, const Span& call);

}  // namespace helve
