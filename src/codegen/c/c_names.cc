// Choice of names that C, C++ and CUDA do not reserve.
// Names are unique among the visible ones, not in the whole text: two consecutive loops may both run over i.
#include "helve/codegen/c/c_names.h"

#include <algorithm>

#include "helve/support/diagnostic.h"
#include "helve/support/sha256.h"

namespace helve::c {

namespace {

const std::unordered_set<std::string>& taken_names() {
  static const std::unordered_set<std::string> names = {
      // C and C++
      "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
      "char8_t", "char16_t", "char32_t", "class", "compl", "concept", "const", "consteval", "constexpr", "constinit",
      "const_cast", "continue", "co_await", "co_return", "co_yield", "decltype", "default", "delete", "do", "double",
      "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if",
      "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or",
      "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "requires", "restrict", "return",
      "short", "signed", "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template", "this",
      "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "typeof", "union", "unsigned", "using",
      "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq", "main", "std", "linux", "unix", "NULL",
      // predefined in every CUDA text
      "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "dim3", "uint2", "uint3", "uint4", "int2", "int4",
      "float2", "float4", "double2", "asin", "acos", "atan", "atan2", "sinh", "cosh", "asinh", "acosh", "atanh",
      "exp10", "log10", "log1p", "expm1", "cbrt", "hypot", "fdim", "fmax", "fmin", "fmod", "tgamma", "lgamma", "erfc",
      "erfinv", "j0", "j1", "jn", "y0", "y1", "yn", "trunc", "lround", "printf", "malloc", "free", "memcpy", "memset",
      "assert", "clock", "clock64", "min", "max", "abs", "fabs", "floor", "ceil", "rint", "round", "exp", "exp2", "log",
      "log2", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "erf", "pow", "fma", "fabsf", "floorf", "ceilf", "rintf",
      "expf", "exp2f", "logf", "log2f", "sqrtf", "rsqrtf", "sinf", "cosf", "tanhf", "erff", "powf", "fmaf", "signbit",
      "isnan", "isinf", "isfinite", "norm", "tx"};
  return names;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// ASCII letters, digits and single underscores, starting with a letter: C++ reserves names with two underscores, and
/// the prelude those that begin with helve_.
std::string identifier(const std::string& hint) {
  std::string out;
  for (char c : hint) {
    if (!is_letter(c) && !is_digit(c)) c = '_';
    if (c != '_' || (!out.empty() && out.back() != '_')) out += c;
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  if (out.empty() || is_digit(out[0]) || out.starts_with("helve_")) out = "v" + out;
  return out;
}

}  // namespace

std::string symbol_of(const std::string& name) {
  const bool plain =
      std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
  return plain ? name : identifier(name) + "_" + to_hex(sha256(name)).substr(0, 16);
}

CNames::Scope::~Scope() {
  Level& level = names_.scopes_.back();
  for (const std::string& name : level.names) names_.visible_.erase(name);
  for (auto it = level.hidden.rbegin(); it != level.hidden.rend(); ++it) {
    if (it->second.empty()) {
      names_.names_.erase(it->first);
    } else {
      names_.names_[it->first] = it->second;
    }
  }
  names_.scopes_.pop_back();
}

std::string CNames::fresh(const std::string& hint) {
  const std::string base = identifier(hint);
  std::string name = base;
  for (int next = 1; taken_names().contains(name) || !visible_.insert(name).second; ++next) {
    name = base + "_" + std::to_string(next);
  }
  scopes_.back().names.push_back(name);
  return name;
}

std::string CNames::define(const Object* object, const std::string& hint) {
  std::string name = fresh(hint);
  alias(object, name);
  return name;
}

void CNames::alias(const Object* object, const std::string& name) {
  std::string& entry = names_[object];
  scopes_.back().hidden.emplace_back(object, entry);
  entry = name;
}

const std::string& CNames::of(const Object* object, const std::string& what) const {
  auto found = names_.find(object);
  HELVE_CHECK(found != names_.end(), "'" + what + "' is not defined in the kernel");
  return found->second;
}

}  // namespace helve::c
