// exp, exp2, log, log2, tanh and erf of float32.
// Argument reduction to a small interval, a polynomial there (coefficients as published with the Cephes library by S.
// Moshier), and exact scaling; no table, no branch, no conversion that is undefined for NaN.
#include "math_functions.h"

#include <limits>

namespace helve::cpu {

using llvm::Value;

namespace {
constexpr double kShifter = 12582912.0;  // 1.5 * 2^23: adding it rounds to an integer that stands in the low bits
constexpr int64_t kShifterBits = 0x4B400000;
constexpr uint32_t kCurrentRounding = 4;  // _MM_FROUND_CUR_DIRECTION
constexpr double kInfinity = std::numeric_limits<double>::infinity();
}  // namespace

Value* MathFunctions::constant(const Value* like, double c) { return llvm::ConstantFP::get(like->getType(), c); }

Value* MathFunctions::integer(const Value* like, int64_t c) {
  llvm::Type* word = b_.getInt32Ty();
  if (const auto* v = llvm::dyn_cast<llvm::VectorType>(like->getType()))
    word = llvm::VectorType::get(word, v->getElementCount());
  return llvm::ConstantInt::getSigned(word, c);
}

Value* MathFunctions::multiply_add(Value* a, Value* b, Value* c) {
  if (has_fma_) return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
  return b_.CreateFAdd(b_.CreateFMul(a, b), c);
}

Value* MathFunctions::polynomial(Value* x, llvm::ArrayRef<double> highest_first) {
  Value* p = constant(x, highest_first[0]);
  for (double c : highest_first.drop_front()) p = multiply_add(p, x, constant(x, c));
  return p;
}

Value* MathFunctions::clamp(Value* x, double low, double high) {  // NaN passes: both comparisons are false
  x = b_.CreateSelect(b_.CreateFCmpOLT(x, constant(x, low)), constant(x, low), x);
  return b_.CreateSelect(b_.CreateFCmpOGT(x, constant(x, high)), constant(x, high), x);
}

Value* MathFunctions::scale(Value* y, Value* exponent) {
  constexpr unsigned kLanes = 16;
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(y->getType());
  if (!has_scale_ || !type || type->getNumElements() % kLanes != 0) return nullptr;
  llvm::Type* part_type = llvm::FixedVectorType::get(b_.getFloatTy(), kLanes);
  Value* nothing = llvm::Constant::getNullValue(part_type);
  llvm::SmallVector<Value*, 4> parts;
  for (unsigned first = 0; first < type->getNumElements(); first += kLanes) {
    llvm::SmallVector<int, kLanes> lanes;
    for (unsigned i = 0; i < kLanes; ++i) lanes.push_back(static_cast<int>(first + i));
    parts.push_back(b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                                       {b_.CreateShuffleVector(y, lanes), b_.CreateShuffleVector(exponent, lanes),
                                        nothing, b_.getInt16(0xFFFF), b_.getInt32(kCurrentRounding)}));
  }
  return llvm::concatenateVectors(b_, parts);
}

Value* MathFunctions::scaled_exp(Value* shifted, Value* n_float, Value* r) {
  Value* p = polynomial(
      r, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1});
  Value* y = b_.CreateFAdd(multiply_add(p, b_.CreateFMul(r, r), r), constant(r, 1.0));
  if (Value* scaled = scale(y, n_float)) return scaled;
  llvm::Type* word = integer(r, 0)->getType();
  Value* n = b_.CreateSub(b_.CreateBitCast(shifted, word), integer(r, kShifterBits));
  // In two steps: 2^n itself may be no float. The first product is exact, the second rounds once.
  Value* first = b_.CreateAShr(n, 1);
  Value* second = b_.CreateSub(n, first);
  auto power = [&](Value* e) {
    return b_.CreateBitCast(b_.CreateShl(b_.CreateAdd(e, integer(r, 127)), 23), r->getType());
  };
  return b_.CreateFMul(b_.CreateFMul(y, power(first)), power(second));
}

Value* MathFunctions::exp(Value* x) {
  x = clamp(x, -104.0, 89.0);  // beyond, the result is 0 or infinity anyway
  Value* shifted = multiply_add(x, constant(x, 1.44269504088896341), constant(x, kShifter));
  Value* n = b_.CreateFSub(shifted, constant(x, kShifter));
  // ln 2 = 0.693359375 - 2.12194440e-4; the first part has few bits, so that n times it is exact.
  Value* r = multiply_add(n, constant(x, -0.693359375), x);
  r = multiply_add(n, constant(x, 2.12194440e-4), r);
  return scaled_exp(shifted, n, r);
}

Value* MathFunctions::exp2(Value* x) {
  x = clamp(x, -151.0, 129.0);
  Value* shifted = b_.CreateFAdd(x, constant(x, kShifter));
  Value* n = b_.CreateFSub(shifted, constant(x, kShifter));
  Value* r = b_.CreateFMul(b_.CreateFSub(x, n), constant(x, 0.693147180559945309));
  return scaled_exp(shifted, n, r);
}

MathFunctions::LogParts MathFunctions::reduce_log(Value* x) {
  llvm::Type* word = integer(x, 0)->getType();
  Value* tiny = b_.CreateFCmpOLT(x, constant(x, std::numeric_limits<float>::min()));
  Value* normal = b_.CreateSelect(tiny, b_.CreateFMul(x, constant(x, 8388608.0)), x);
  // x = 2^e * m with sqrt(1/2) <= m < sqrt(2): the exponent field counted from that of sqrt(1/2).
  constexpr int64_t kRoot = 0x3F3504F3;
  Value* bits = b_.CreateBitCast(normal, word);
  Value* e = b_.CreateAShr(b_.CreateSub(bits, integer(x, kRoot)), 23);
  Value* m = b_.CreateBitCast(b_.CreateSub(bits, b_.CreateShl(e, 23)), x->getType());
  e = b_.CreateSub(e, b_.CreateSelect(tiny, integer(x, 23), integer(x, 0)));
  Value* f = b_.CreateFSub(m, constant(x, 1.0));
  Value* square = b_.CreateFMul(f, f);
  Value* p = polynomial(f, {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
                            -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
  return {b_.CreateSIToFP(e, x->getType()), f, square, b_.CreateFMul(b_.CreateFMul(p, f), square)};
}

Value* MathFunctions::finish_log(Value* x, Value* y) {
  y = b_.CreateSelect(b_.CreateFCmpOEQ(x, constant(x, kInfinity)), x, y);
  y = b_.CreateSelect(b_.CreateFCmpOEQ(x, constant(x, 0.0)), constant(x, -kInfinity), y);
  Value* invalid = b_.CreateFCmpULT(x, constant(x, 0.0));  // negative or NaN
  return b_.CreateSelect(invalid, constant(x, std::numeric_limits<double>::quiet_NaN()), y);
}

Value* MathFunctions::log(Value* x) {
  const LogParts parts = reduce_log(x);
  Value* y = multiply_add(parts.exponent, constant(x, -2.12194440e-4), parts.cubic);
  y = multiply_add(parts.square, constant(x, -0.5), y);
  return finish_log(x, multiply_add(parts.exponent, constant(x, 0.693359375), b_.CreateFAdd(parts.f, y)));
}

Value* MathFunctions::log2(Value* x) {
  const LogParts parts = reduce_log(x);
  // log2(e) = 1.44269502 + 1.92596303e-8, so that log2 of the fraction keeps the bits below its leading product.
  Value* tail = multiply_add(parts.square, constant(x, -0.5), parts.cubic);
  Value* low =
      multiply_add(tail, constant(x, 1.44269502162933349609375), b_.CreateFMul(parts.f, constant(x, 1.92596303e-8)));
  Value* fraction = multiply_add(parts.f, constant(x, 1.44269502162933349609375), low);
  return finish_log(x, b_.CreateFAdd(parts.exponent, fraction));
}

Value* MathFunctions::tanh(Value* x) {
  Value* a = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  Value* square = b_.CreateFMul(x, x);
  Value* p =
      polynomial(square, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1});
  Value* near = multiply_add(b_.CreateFMul(p, square), x, x);
  Value* e = exp(b_.CreateFAdd(a, a));
  Value* far = b_.CreateFSub(constant(x, 1.0), b_.CreateFDiv(constant(x, 2.0), b_.CreateFAdd(e, constant(x, 1.0))));
  Value* y = b_.CreateSelect(b_.CreateFCmpOLT(a, constant(x, 0.625)), near, far);
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, y, x);  // of zero too
}

Value* MathFunctions::erf(Value* x) {
  // Near 0, x + x P(x^2); beyond, 1 - exp(-Q(|x|)). Both polynomials are minimax fits of this project to the relative
  // error of erf.
  Value* a = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  Value* p = polynomial(b_.CreateFMul(x, x),
                        {8.698966121301055e-05, -0.0008216546848416328, 0.005207219161093235, -0.026861773803830147,
                         0.11283736675977707, -0.37612634897232056, 0.12837916612625122});
  Value* near = multiply_add(p, x, x);
  Value* q = polynomial(clamp(a, 0.0, 4.0),
                        {2.0451461750781164e-05, -0.0004270841018296778, 0.0041356501169502735, -0.02502715401351452,
                         0.1081390455365181, 0.6334734559059143, 1.129453182220459, -0.00016202595725189894});
  Value* far = b_.CreateFSub(constant(x, 1.0), exp(b_.CreateFNeg(q)));
  far = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, far, x);
  return b_.CreateSelect(b_.CreateFCmpOLT(a, constant(x, 0.875)), near, far);
}

}  // namespace helve::cpu
