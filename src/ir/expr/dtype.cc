// Names of element types.
// One table serves parsing, printing and the text of diagnostics.
#include "helve/ir/expr/dtype.h"

#include <array>
#include <utility>

#include "helve/support/diagnostic.h"

namespace helve {

namespace {

constexpr std::array<std::pair<std::string_view, DType>, 18> kNames = {{
    {"index", kIndex},
    {"bool", kBool},
    {"int4", {TypeCode::Int, 4}},
    {"int8", {TypeCode::Int, 8}},
    {"int16", {TypeCode::Int, 16}},
    {"int32", kInt32},
    {"int64", kInt64},
    {"uint8", {TypeCode::UInt, 8}},
    {"uint16", {TypeCode::UInt, 16}},
    {"uint32", {TypeCode::UInt, 32}},
    {"uint64", {TypeCode::UInt, 64}},
    {"float16", {TypeCode::Float, 16}},
    {"float32", kFloat32},
    {"float64", kFloat64},
    {"bfloat16", {TypeCode::BFloat, 16}},
    {"float8_e4m3", {TypeCode::Float8E4M3, 8}},
    {"float8_e5m2", {TypeCode::Float8E5M2, 8}},
    {"float4_e2m1", {TypeCode::Float4E2M1, 4}},
}};

// What C, PyTorch and ml_dtypes call some of them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kAliases = {{
    {"float", "float32"},
    {"double", "float64"},
    {"half", "float16"},
    {"float8_e4m3fn", "float8_e4m3"},
    {"float4_e2m1fn", "float4_e2m1"},
    {"int", "int32"},
    {"uint", "uint32"},
    {"long", "int64"},
    {"short", "int16"},
}};

}  // namespace

std::string to_string(DType dtype) {
  for (const auto& [name, known] : kNames) {
    if (known == dtype) return std::string(name);
  }
  HELVE_FAIL("a dtype without a name");
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const auto& [alias, full] : kAliases) {
    if (alias == name) name = full;
  }
  for (const auto& [known, dtype] : kNames) {
    if (known == name) return dtype;
  }
  return std::nullopt;
}

const std::vector<std::pair<std::string, std::string>>& dtype_aliases() {
  static const std::vector<std::pair<std::string, std::string>> aliases(kAliases.begin(), kAliases.end());
  return aliases;
}

const std::vector<std::string>& dtype_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const auto& row : kNames) out.emplace_back(row.first);
    return out;
  }();
  return names;
}

}  // namespace helve
