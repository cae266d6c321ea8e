// Elementary functions of float32 as straight-line code.
// Calls of the C library cannot be vectorised; polynomials can, and give the same bits in scalar and vector code.
#pragma once

#include "llvm_headers.h"

namespace helve::cpu {

/// All functions take and return float or vectors of it, are right for infinities, NaN and subnormals, and are tested
/// to 2 ulp.
class MathFunctions {
 public:
  MathFunctions(llvm::IRBuilder<>& builder, bool has_fma, bool has_scale)
      : b_(builder), has_fma_(has_fma), has_scale_(has_scale) {}

  llvm::Value* exp(llvm::Value* x);
  llvm::Value* exp2(llvm::Value* x);
  llvm::Value* log(llvm::Value* x);
  llvm::Value* log2(llvm::Value* x);
  llvm::Value* tanh(llvm::Value* x);
  llvm::Value* erf(llvm::Value* x);

 private:
  /// x = 2^exponent * (1 + f) and log(1 + f) = f - square / 2 + cubic.
  struct LogParts {
    llvm::Value* exponent;
    llvm::Value* f;
    llvm::Value* square;
    llvm::Value* cubic;
  };
  LogParts reduce_log(llvm::Value* x);
  /// `y`, or the logarithm of an `x` that has no exponent: infinity, 0, what is negative, NaN.
  llvm::Value* finish_log(llvm::Value* x, llvm::Value* y);
  llvm::Value* constant(const llvm::Value* like, double c);
  llvm::Value* integer(const llvm::Value* like, int64_t c);
  llvm::Value* multiply_add(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  llvm::Value* polynomial(llvm::Value* x, llvm::ArrayRef<double> highest_first);
  /// 2^n * exp(r) for |r| <= ln(2) / 2, given 1.5 * 2^23 + n and n.
  llvm::Value* scaled_exp(llvm::Value* shifted, llvm::Value* n_float, llvm::Value* r);
  /// y * 2^exponent, rounded once, in one instruction; null where the processor has none for these lanes.
  llvm::Value* scale(llvm::Value* y, llvm::Value* exponent);
  llvm::Value* clamp(llvm::Value* x, double low, double high);

  llvm::IRBuilder<>& b_;
  bool has_fma_;
  bool has_scale_;
};

}  // namespace helve::cpu
