// Index notation: tensors defined by what each of their elements is.
// The scalar expressions are those of ir/expr, with loads for the accesses and variables for the indices; only
// reductions are new, and stand beside the expression that uses them, so that every rule and walk of expressions
// applies here too.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "helve/ir/tensor/combine.h"
#include "helve/ir/tensor/function.h"

namespace helve::notation {

/// An index: a variable of dtype `index`, and how many values it has from 0 on. Without an extent these are as many as
/// the dimensions that it subscripts alone have.
struct Index {
  VarRef var;
  Expr extent = {};
};

/// The values of `body` for all values of some indices, combined. Expressions name the result by the variable `result`,
/// whose dtype is that of the accumulator: sums of floats below 32 bits are float32.
struct Reduction {
  ReduceKind kind;
  std::vector<Index> indices;
  Expr body;
  VarRef result;
  Span span = {};
};

/// An expression of index notation: `value`, in which variables may be results of `reductions`, whose bodies may name
/// those before them.
struct IndexExpr {
  Expr value;
  std::vector<Reduction> reductions = {};
};

/// `target[subscripts] = value`, for all values of the indices that are the subscripts. With `update`, the value is
/// combined with what the element held.
struct Assignment {
  BufferRef target;
  std::vector<Expr> subscripts;
  IndexExpr value;
  std::vector<Index> indices;  ///< those of the statement; indices of reductions are not among them
  std::optional<ReduceKind> update = {};
  Span span = {};  ///< of the left side
};

/// An operand of a front end: an expression, or a plain number, whose type is weak.
using IndexOperand = std::variant<IndexExpr, bool, int64_t, double>;

/// An operator of the table, by the type rules of the language (apply_operands).
IndexExpr apply(Op op, const std::vector<IndexOperand>& args, Span span = {});

/// An explicit conversion.
IndexExpr cast(const IndexExpr& value, DType dtype, Span span = {});

/// An element of a tensor (IndexCount, IndexType, NegativeIndex).
IndexExpr load(const BufferRef& buffer, const std::vector<IndexOperand>& subscripts, Span span = {});

/// The reduction of `body` over `indices` as an expression. The reduction gets indices of its own, so that the same
/// names outside of it mean something else. WrongType for values that `kind` does not combine.
IndexExpr reduce(ReduceKind kind, const std::vector<Index>& indices, const IndexExpr& body, Span span = {});

/// Two lists of reductions as one, each reduction once.
std::vector<Reduction> merge(std::vector<Reduction> a, const std::vector<Reduction>& b);

/// Validates the left side: each subscript an index of its own (LeftSubscript), as many as dimensions (IndexCount); the
/// value can be stored there (WrongType).
Assignment assign(BufferRef target, const std::vector<IndexOperand>& subscripts, IndexExpr value,
                  std::vector<Index> indices, std::optional<ReduceKind> update, Span span = {});

/// The assignment in which every index of the right side that the left side lacks is the index of a reduction.
///
/// Such an index is summed over the terms that use it: over a whole sum if all its terms do, else over each of those
/// terms; in a product over the whole product, or inside of its only factor that uses the index, if that is a sum with
/// terms that do not. Everything else (quotients' divisors, functions, conditions) is a term as it is.
///
///   y[i] = b[i] + A[i, j] * x[j]    ->    y[i] = b[i] + s,  s = sum over j of A[i, j] * x[j]
Assignment place_sums(const Assignment& assignment);

/// Indices and their extents.
using Extents = std::vector<std::pair<VarRef, Expr>>;

/// The extent of each index of a statement whose sums are placed, those of its reductions included, in terms of extents
/// of tensors. IndexExtents if two dimensions that an index subscripts alone are not known to be equal,
/// IndexWithoutRange if it subscripts none alone and has no extent.
Extents index_extents(const Assignment& assignment);

/// The statements that compute an assignment whose sums are placed, in order; the last is the assignment itself. The
/// others define tensors, new ones in global memory, for reductions that would be computed several times.
///
///   P[i, j] = exp(X[i, j]) / s,  s = sum over k of exp(X[i, k])
///   ->
///   acc[i] = sum over k of exp(X[i, k]);   P[i, j] = exp(X[i, j]) / acc[i]
std::vector<Assignment> hoist(const Assignment& placed);

/// Who computes the elements of a left side.
enum class Form {
  Blocks,  ///< a grid over blocks of elements, and a parallel loop over the elements of a block
  Nest  ///< one block, by a serial loop for each index: what a schedule that decides the rest begins with
};

/// The kernels that compute one assignment: one for each statement that `hoist` makes of it, after the allocation of
/// the tensor that it defines. Inside the loops over elements are those of reductions, with their initial values in
/// front.
Stmt lower(const Assignment& assignment, Form form);

/// The function of assignments in program order. Its parameters are what they read and no assignment defines, and
/// tensors that they only update, in order of first use, then `listed` in the order given; a parameter that is listed
/// stands there only. Other tensors are temporaries.
///
/// TensorRedefined, ReadBeforeDefinition and SelfReference for statements in an order that no reader expects,
/// TensorsShareName for two of one name, UnboundExtent for a dynamic extent that no parameter has.
FunctionRef function(std::string name, const std::vector<Param>& listed, const std::vector<Assignment>& assignments,
                     Span span = {}, Form form = Form::Blocks);

/// The buffers that an expression reads, in order, each once.
std::vector<BufferRef> buffers_read(const IndexExpr& expr);

/// A tensor contraction in Einstein's notation, as NumPy writes it.
struct Einsum {
  FunctionRef function;  ///< parameters: the operands in order, then the result
  std::vector<int64_t> shape;  ///< of the result
  DType dtype;  ///< of the result: the widest of the operands
};

/// "ij,jk->ik" for operands of these dtypes, shapes and strides (in elements; empty: compact row-major). Spaces do not
/// count; "..." stands for dimensions that are aligned from the last; without "->" the result has the letters that
/// occur once, sorted. A dimension of extent 1 is repeated where another operand has more. EinsumSpec, EinsumOperand,
/// IndexExtents, MixedTypes.
Einsum einsum(const std::string& spec, const std::vector<DType>& dtypes,
              const std::vector<std::vector<int64_t>>& shapes, const std::vector<std::vector<int64_t>>& strides = {},
              Span span = {}, Form form = Form::Blocks);

}  // namespace helve::notation
