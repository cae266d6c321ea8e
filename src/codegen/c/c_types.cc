// Spelling of types and constants.
// Constants have the suffix of their type, so that no arithmetic is done in another one.
#include "helve/codegen/c/c_types.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "helve/support/diagnostic.h"

namespace helve::c {

namespace {

std::string integer_type(DType t) {
  const bool is_signed = t.is_signed();
  switch (t.bits) {
    case 8: return is_signed ? "signed char" : "unsigned char";
    case 16: return is_signed ? "short" : "unsigned short";
    case 32: return is_signed ? "int" : "unsigned int";
    case 64: return is_signed ? "long long" : "unsigned long long";
    default: throw UserError(Code::DTypeOnTarget, {}, {{"dtype", to_string(t)}, {"target", "cuda"}});
  }
}

}  // namespace

std::string value_type(DType t) {
  if (t.is_bool()) return "bool";
  if (t.is_float()) return t.bits == 64 ? "double" : "float";
  HELVE_CHECK(!t.is_index(), "the width of an index follows from its bounds");
  return integer_type(t);
}

std::string memory_type(DType t) {
  if (t.is_small_float()) return "helve_" + small_float_name(t);
  return t.is_bool() ? "unsigned char" : value_type(t);
}

std::string wrapping_type(DType t) { return t.bits == 64 ? "unsigned long long" : "unsigned int"; }

std::string small_float_name(DType t) {
  HELVE_CHECK(t.is_small_float(), "a small float");
  return to_string(t);
}

std::string integer_text(int64_t value, DType t, bool wide) {
  if (t.is_bool()) return value != 0 ? "true" : "false";
  if (t.code == TypeCode::UInt) {
    if (t.bits == 64) return fmt::format("{}ull", static_cast<uint64_t>(value));
    return fmt::format("{}{}", value, t.bits == 32 ? "u" : "");
  }
  const std::string suffix = wide || (!t.is_index() && t.bits == 64) ? "ll" : "";
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  if (value == std::numeric_limits<int64_t>::min()) return fmt::format("(-{}ll - 1)", most);
  if (value == std::numeric_limits<int32_t>::min() && suffix.empty()) return "(-2147483647 - 1)";
  return fmt::format("{}{}", value, suffix);
}

std::string float_text(double value, DType t) {
  const bool wide = t.bits == 64;
  std::string text;
  if (std::isnan(value)) {
    text = "helve_nan()";
  } else if (std::isinf(value)) {
    text = value < 0 ? "-helve_infinity()" : "helve_infinity()";
  } else {
    text = wide ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    if (!wide) text += "f";
  }
  return text;
}

}  // namespace helve::c
