// Casts, and the small floats between memory and float32.
// Narrowing rounds once to nearest even in integer arithmetic, whatever the source width: the law of
// ir/expr/rounding.h, which the conversion instructions of some processors break for subnormals.
#include <cmath>

#include "arithmetic.h"
#include "helve/support/diagnostic.h"

namespace helve::cpu {

using llvm::ConstantInt;
using llvm::Value;

namespace {

struct SmallFloat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  bool has_infinity;

  uint64_t top() const { return ((uint64_t{1} << exponent_bits) - 1) << mantissa_bits; }
  uint64_t nan() const {
    return has_infinity ? top() | uint64_t{1} << (mantissa_bits - 1)
                        : (uint64_t{1} << (exponent_bits + mantissa_bits)) - 1;
  }
  uint64_t overflow() const { return has_infinity ? top() : nan(); }
};

SmallFloat small_float(DType t) {
  switch (t.code) {
    case TypeCode::BFloat: return {8, 7, 127, true};
    case TypeCode::Float8E4M3: return {4, 3, 7, false};
    case TypeCode::Float8E5M2: return {5, 2, 15, true};
    default: HELVE_CHECK(t.bits == 16, "not a small float"); return {5, 10, 15, true};
  }
}

bool is_half(DType t) { return t.code == TypeCode::Float && t.bits == 16; }

}  // namespace

Value* Arithmetic::narrow(Value* v, DType t) {
  llvm::Type* out = shaped(b_.getIntNTy(t.bits), v);
  const bool wide = v->getType()->getScalarType()->isDoubleTy();
  if (is_half(t) && features_.half && !wide) {
    return b_.CreateBitCast(b_.CreateFPTrunc(v, shaped(b_.getHalfTy(), v)), out);
  }
  const SmallFloat f = small_float(t);
  const int mantissa = wide ? 52 : 23;
  const int bias = wide ? 1023 : 127;
  const int width = wide ? 64 : 32;
  llvm::Type* word = shaped(b_.getIntNTy(width), v);
  auto constant = [&](uint64_t c) { return ConstantInt::get(word, c); };
  Value* bits = b_.CreateBitCast(v, word);
  Value* sign = b_.CreateShl(b_.CreateLShr(bits, width - 1), f.exponent_bits + f.mantissa_bits);
  Value* magnitude = b_.CreateAnd(bits, constant((uint64_t{1} << (width - 1)) - 1));
  const int drop = mantissa - f.mantissa_bits;
  Value* odd = b_.CreateAnd(b_.CreateLShr(magnitude, drop), constant(1));
  Value* half = b_.CreateAdd(b_.CreateAdd(magnitude, constant((uint64_t{1} << (drop - 1)) - 1)), odd);
  Value* code =
      b_.CreateSub(b_.CreateLShr(half, drop), constant(static_cast<uint64_t>(bias - f.bias) << f.mantissa_bits));
  if (bias != f.bias) {
    // Adding a number whose last place is the format's subnormal unit rounds to that unit; its low bits then are the
    // code.
    Value* anchor = llvm::ConstantFP::get(v->getType(), std::ldexp(1.0, 1 - f.bias - f.mantissa_bits + mantissa));
    Value* sum = b_.CreateFAdd(b_.CreateBitCast(magnitude, v->getType()), anchor);
    Value* subnormal = b_.CreateSub(b_.CreateBitCast(sum, word), b_.CreateBitCast(anchor, word));
    Value* small = b_.CreateICmpULT(magnitude, constant(static_cast<uint64_t>(1 - f.bias + bias) << mantissa));
    code = b_.CreateSelect(small, subnormal, code);
  }
  code = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, code, constant(f.overflow()));
  const uint64_t infinity = ((uint64_t{1} << (width - 1 - mantissa)) - 1) << mantissa;
  code = b_.CreateSelect(b_.CreateICmpUGT(magnitude, constant(infinity)), constant(f.nan()), code);
  return b_.CreateTrunc(b_.CreateOr(code, sign), out);
}

Value* Arithmetic::widen(Value* raw, DType t) {
  llvm::Type* result = shaped(b_.getFloatTy(), raw);
  if (is_half(t) && features_.half) {
    return b_.CreateFPExt(b_.CreateBitCast(raw, shaped(b_.getHalfTy(), raw)), result);
  }
  const SmallFloat f = small_float(t);
  llvm::Type* word = shaped(b_.getInt32Ty(), raw);
  Value* bits = b_.CreateZExt(raw, word);
  if (t.code == TypeCode::BFloat) return b_.CreateBitCast(b_.CreateShl(bits, 16), result);
  auto constant = [&](uint64_t c) { return ConstantInt::get(word, c); };
  Value* magnitude = b_.CreateAnd(bits, constant((uint64_t{1} << (t.bits - 1)) - 1));
  Value* sign = b_.CreateShl(b_.CreateLShr(bits, t.bits - 1), 31);
  // The code read as a float32 of the same fields is the value but for the bias: a power of two, exact, subnormals
  // included.
  Value* shifted = b_.CreateShl(magnitude, 23 - f.mantissa_bits);
  Value* scale = llvm::ConstantFP::get(result, std::ldexp(1.0, 127 - f.bias));
  Value* finite = b_.CreateBitCast(b_.CreateFMul(b_.CreateBitCast(shifted, result), scale), word);
  Value* special = f.has_infinity ? b_.CreateOr(shifted, constant(0x7f800000)) : constant(0x7fc00000);
  Value* is_special = b_.CreateICmpUGE(magnitude, constant(f.overflow()));
  return b_.CreateBitCast(b_.CreateOr(b_.CreateSelect(is_special, special, finite), sign), result);
}

Value* Arithmetic::from_memory(Value* raw, DType t) {
  if (t.is_bool()) return b_.CreateICmpNE(raw, llvm::Constant::getNullValue(raw->getType()));
  return t.is_small_float() ? widen(raw, t) : raw;
}

/// An integer that float64 holds and that rounds to each small float as `v` does: beyond 52 bits, the lowest bits leave
/// one after it, which says whether any of them was set.
Value* Arithmetic::rounding_as(Value* v, DType from) {
  if (from.bits < 64) return v;
  auto constant = [&](int64_t c) { return ConstantInt::getSigned(v->getType(), c); };
  constexpr int64_t kExact = int64_t{1} << 52;
  constexpr int64_t kLow = (int64_t{1} << 11) - 1;
  Value* magnitude = from.is_signed() ? b_.CreateAdd(v, constant(kExact)) : v;
  Value* exact = b_.CreateICmpULT(magnitude, constant(from.is_signed() ? 2 * kExact : kExact));
  Value* dropped = b_.CreateICmpNE(b_.CreateAnd(v, constant(kLow)), constant(0));
  Value* sticky = b_.CreateSelect(dropped, constant(kLow + 1), constant(0));
  return b_.CreateSelect(exact, v, b_.CreateOr(b_.CreateAnd(v, constant(~kLow)), sticky));
}

Value* Arithmetic::to_memory(Value* v, DType from, DType t) {
  if (t.is_small_float()) return narrow(from.is_float() ? v : convert(rounding_as(v, from), from, kFloat64), t);
  v = convert(v, from, t);
  return t.is_bool() ? b_.CreateZExt(v, shaped(b_.getInt8Ty(), v)) : v;
}

Value* Arithmetic::reinterpret(Value* v, DType from, DType to) {
  if (from.is_small_float()) return narrow(v, from);
  if (to.is_small_float()) return widen(v, to);
  return b_.CreateBitCast(v, shaped(value_type(to), v));
}

Value* Arithmetic::convert(Value* v, DType from, DType to) {
  llvm::Type* type = shaped(value_type(to), v);
  if (from == to) return v;
  if (to.is_bool()) {
    Value* zero = llvm::Constant::getNullValue(v->getType());
    return from.is_float() ? b_.CreateFCmpUNE(v, zero) : b_.CreateICmpNE(v, zero);
  }
  if (to.is_small_float()) return widen(to_memory(v, from, to), to);
  if (to.is_float()) {
    if (from.is_float()) return b_.CreateFPCast(v, type);
    return from.is_signed() ? b_.CreateSIToFP(v, type) : b_.CreateUIToFP(v, type);
  }
  if (from.is_float()) {  // out of range saturates, NaN gives 0
    const auto id = to.is_signed() ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return b_.CreateIntrinsic(id, {type, v->getType()}, {v});
  }
  return b_.CreateIntCast(v, type, from.is_signed());
}

}  // namespace helve::cpu
