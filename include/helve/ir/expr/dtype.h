// Element types.
// One small value describes every scalar of the language; `index` is the unbounded integer of loops and subscripts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace helve {

enum class TypeCode : uint8_t { Index, Bool, Int, UInt, Float, BFloat, Float8E4M3, Float8E5M2, Float4E2M1 };

struct DType {
  TypeCode code = TypeCode::Index;
  uint8_t bits = 64;

  bool is_index() const { return code == TypeCode::Index; }
  bool is_bool() const { return code == TypeCode::Bool; }
  bool is_data_int() const { return code == TypeCode::Int || code == TypeCode::UInt; }
  bool is_integer() const { return is_index() || is_data_int(); }
  bool is_float() const { return code >= TypeCode::Float; }
  bool is_signed() const { return code != TypeCode::UInt && code != TypeCode::Bool; }
  /// Floats below 32 bits live in float32 while an expression is evaluated; loads widen, stores and casts round.
  bool is_small_float() const { return is_float() && bits < 32; }
  /// Do two elements share a byte, the first one in its low half?
  bool is_packed() const { return bits < 8; }
  /// Bytes of one element in memory (packed types are not addressed singly).
  int64_t bytes() const { return (bits + 7) / 8; }

  bool operator==(const DType&) const = default;
};

inline constexpr DType kIndex{TypeCode::Index, 64};
inline constexpr DType kBool{TypeCode::Bool, 8};
inline constexpr DType kInt32{TypeCode::Int, 32};
inline constexpr DType kInt64{TypeCode::Int, 64};
inline constexpr DType kFloat32{TypeCode::Float, 32};
inline constexpr DType kFloat64{TypeCode::Float, 64};

/// The name in the language: "float32", "bfloat16", "float8_e4m3", "index", ...
std::string to_string(DType dtype);

/// The inverse of to_string; also accepts "float" and "int" for their 32-bit types. Empty when there is none.
std::optional<DType> parse_dtype(std::string_view name);

/// All names that parse_dtype knows, in the order of the documentation.
const std::vector<std::string>& dtype_names();

/// Other names of some types, with the names that are meant.
const std::vector<std::pair<std::string, std::string>>& dtype_aliases();

}  // namespace helve
