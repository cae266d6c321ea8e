// The text of element types.
// Floats of 16 bits and less are converted by their fields, since a header of the toolkit may not be there.
#include "helve/runtime/cuda/element_text.h"

#include <fmt/format.h>

namespace helve::runtime::cuda {

namespace {

/// Conversions of the small floats, by their fields: exponent bits, fraction bits, whether only NaN is special.
constexpr const char* kPrelude = R"(typedef long long Int;
typedef unsigned int Word;
template <int E, int M, bool OnlyNan> struct Small {
  static __device__ float decode(Word code) {
    const int bias = (1 << (E - 1)) - 1;
    const Word sign = (code >> (E + M) & 1) << 31;
    const Word exponent = code >> M & ((1u << E) - 1), fraction = code & ((1u << M) - 1);
    if (OnlyNan ? (code & ((1u << (E + M)) - 1)) == (1u << (E + M)) - 1 : exponent == (1u << E) - 1)
      return __uint_as_float(sign | (!OnlyNan && fraction == 0 ? 0x7f800000u : 0x7fc00000u));
    if (exponent == 0) {
      const float value = (float)fraction * __uint_as_float((Word)(1 - bias - M + 127) << 23);
      return sign ? -value : value;
    }
    return __uint_as_float(sign | (exponent + 127 - bias) << 23 | fraction << (23 - M));
  }
  static __device__ Word encode(float value) {
    const int bias = (1 << (E - 1)) - 1;
    const Word top = OnlyNan ? (1u << (E + M)) - 1 : ((1u << E) - 1) << M;
    const Word largest = top - 1, overflow = top, nan = OnlyNan ? top : top | 1u << (M - 1);
    const Word bits = __float_as_uint(value), sign = (bits >> 31) << (E + M), fraction = bits & 0x7fffff;
    const int exponent = bits >> 23 & 0xff;
    if (exponent == 0xff) return sign | (fraction != 0 ? nan : overflow);
    if (exponent == 0) return sign;
    const int target = exponent - 127 + bias, drop = 23 - M + (target < 1 ? 1 - target : 0);
    if (drop > 24) return sign;
    const unsigned long long significand = 1ull << 23 | fraction, half = 1ull << (drop - 1);
    const unsigned long long rounded = (significand + half - 1 + (significand >> drop & 1)) >> drop;
    const unsigned long long code = target < 1 ? rounded : ((unsigned long long)(target - 1) << M) + rounded;
    return sign | (code > largest ? overflow : (Word)code);
  }
};
struct Brain {
  static __device__ float decode(Word code) { return __uint_as_float(code << 16); }
  static __device__ Word encode(float value) {
    const Word bits = __float_as_uint(value);
    return (bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  }
};
template <int N> struct Bytes { unsigned char byte[N]; };
)";

ElementType small(const char* stored, const char* format) {
  return {stored, "float", fmt::format("{}::decode($)", format), fmt::format("({}){}::encode($)", stored, format)};
}

}  // namespace

const char* element_prelude() { return kPrelude; }

ElementType reduced_type(DLDataType dtype) {
  if (dtype.lanes != 1) return {};
  switch (dtype.code << 8 | dtype.bits) {
    // Integers wrap: sums and products are computed with unsigned numbers.
    case kDLInt << 8 | 8: return {"signed char", "signed char"};
    case kDLInt << 8 | 16: return {"short", "short"};
    case kDLInt << 8 | 32: return {"int", "int"};
    case kDLInt << 8 | 64: return {"long long", "long long"};
    case kDLUInt << 8 | 8: return {"unsigned char", "unsigned char"};
    case kDLUInt << 8 | 16: return {"unsigned short", "unsigned short"};
    case kDLUInt << 8 | 32: return {"unsigned", "unsigned"};
    case kDLUInt << 8 | 64: return {"unsigned long long", "unsigned long long"};
    case kDLBool << 8 | 8: return {"unsigned char", "bool", "($ != 0)"};
    case kDLFloat << 8 | 64: return {"double", "double"};
    case kDLFloat << 8 | 32: return {"float", "float"};
    case kDLFloat << 8 | 16: return small("unsigned short", "Small<5, 10, false>");
    case kDLBfloat << 8 | 16: return small("unsigned short", "Brain");
    case kDLFloat8_e4m3fn << 8 | 8: return small("unsigned char", "Small<4, 3, true>");
    case kDLFloat8_e5m2 << 8 | 8: return small("unsigned char", "Small<5, 2, false>");
    default: return {};
  }
}

ElementType moved_type(DLDataType dtype) {
  switch (const int64_t bytes = element_bytes(dtype)) {
    case 1: return {"unsigned char", "unsigned char"};
    case 2: return {"unsigned short", "unsigned short"};
    case 4: return {"unsigned", "unsigned"};
    case 8: return {"unsigned long long", "unsigned long long"};
    default: return {fmt::format("Bytes<{}>", bytes), fmt::format("Bytes<{}>", bytes)};
  }
}

std::string around(const std::string& form, const std::string& inside) {
  std::string out = form;
  if (const size_t at = out.find('$'); at != std::string::npos) out.replace(at, 1, inside);
  return out;
}

std::string combined_text(const ElementType& type, ReduceOp op) {
  const bool sums = op == ReduceOp::Sum || op == ReduceOp::Prod;
  const bool grows = op == ReduceOp::Sum || op == ReduceOp::Max;
  if (type.value == "bool") return grows ? "a || b" : "a && b";
  const bool floating = type.value == "float" || type.value == "double";
  if (sums) {
    const char* sign = op == ReduceOp::Sum ? "+" : "*";
    if (type.value == "float") return fmt::format("__f{}_rn(a, b)", op == ReduceOp::Sum ? "add" : "mul");
    if (type.value == "double") return fmt::format("__d{}_rn(a, b)", op == ReduceOp::Sum ? "add" : "mul");
    return fmt::format("({})((unsigned long long)a {} (unsigned long long)b)", type.value, sign);
  }
  const std::string chosen = grows ? "b > a ? b : a" : "b < a ? b : a";
  return floating ? fmt::format("a != a ? a : b != b ? b : {}", chosen) : chosen;
}

}  // namespace helve::runtime::cuda
