// Values of the language as LLVM values: types, conversions and the operators of the table.
// Everything works on scalars and on explicit vectors alike, so that a vectorised loop computes what the scalar loop
// does.
#pragma once

#include "helve/ir/expr/expr.h"
#include "llvm_headers.h"

namespace helve::cpu {

/// What the processor can do, where it decides between two correct forms.
struct Features {
  bool fma = false;
  bool half = false;  ///< conversion between float16 and float32
  bool scale = false;  ///< AVX-512: y * 2^n for vectors, rounded once
};

class Arithmetic {
 public:
  Arithmetic(llvm::IRBuilder<>& builder, Features features) : b_(builder), features_(features) {}

  const Features& features() const { return features_; }
  /// The type of a value: small floats are held as float32, bool as i1, index as i64.
  llvm::Type* value_type(DType t) const;
  /// The type of an element in memory: small floats as their bits, bool as i8.
  llvm::Type* memory_type(DType t) const;

  /// `op` on values of dtype `t`; a scalar beside a vector counts for every lane. `exact`: no result of + - * leaves
  /// the type.
  llvm::Value* apply(Op op, DType t, llvm::SmallVector<llvm::Value*, 3> args, bool exact = false);
  /// The Cast node.
  llvm::Value* convert(llvm::Value* v, DType from, DType to);
  /// The Bitcast node.
  llvm::Value* reinterpret(llvm::Value* v, DType from, DType to);
  llvm::Value* from_memory(llvm::Value* raw, DType t);
  /// The element to store for a value of dtype `from` cast to `t`: one rounding.
  llvm::Value* to_memory(llvm::Value* v, DType from, DType t);

  llvm::Value* fma(llvm::Value* a, llvm::Value* b, llvm::Value* c);

  /// The type `scalar`, with as many lanes as `v` has.
  static llvm::Type* shaped(llvm::Type* scalar, const llvm::Value* v);
  /// All values with the lanes of the widest.
  void unify(llvm::MutableArrayRef<llvm::Value*> values);

 private:
  llvm::Value* apply_integer(Op op, DType t, llvm::ArrayRef<llvm::Value*> a, bool exact);
  llvm::Value* apply_float(Op op, DType t, llvm::ArrayRef<llvm::Value*> a);
  llvm::Value* compare(Op op, DType t, llvm::Value* x, llvm::Value* y);
  llvm::Value* floor_divide(DType t, llvm::Value* x, llvm::Value* y, bool remainder);
  llvm::Value* shift(Op op, DType t, llvm::Value* x, llvm::Value* amount);
  llvm::Value* call_library(const char* name, llvm::ArrayRef<llvm::Value*> args);
  llvm::Value* narrow(llvm::Value* v, DType t);
  llvm::Value* rounding_as(llvm::Value* v, DType from);
  llvm::Value* widen(llvm::Value* raw, DType t);

  llvm::IRBuilder<>& b_;
  Features features_;
};

}  // namespace helve::cpu
