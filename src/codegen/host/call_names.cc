// The choice of names.
// What Python allows and C++ does not is spelled by its bytes, so that different names stay different.
#include "call_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>

namespace helve {

namespace {

/// Words of C++, of the headers and of the text.
constexpr const char* kReserved[] = {
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
    "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return", "co_yield", "compl", "concept", "const",
    "const_cast", "consteval", "constexpr", "constinit", "continue", "decltype", "default", "delete", "do", "double",
    "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if",
    "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or",
    "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "requires", "return", "short", "signed",
    "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local", "throw",
    "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile",
    "wchar_t", "while", "xor", "xor_eq", "linux", "unix", "std", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t",
    "uint16_t", "uint32_t", "uint64_t", "size_t", "errno", "NULL", "assert", "INT32_MAX", "INT64_MIN",
    // of the text
    "TRY", "failed", "fault", "kernels", "stream", "core", "reports", "room", "workspace", "apart", "arguments",
    "report", "Exact", "Scratch", "Shape", "Group", "launch", "aligned", "bits_of", "read_value", "copy_box", "padded",
    "pointer", "holds", "floor_div", "floor_mod", "shift_left", "shift_right", "least", "greatest", "device",
    "processors", "extents", "from_steps", "to_steps", "compact", "bytes", "count", "me", "group", "member", "source",
    "destination", "members", "stays", "comes", "sends", "receives"};

/// Is it one of the numbered variables of a launch?
bool is_numbered(const std::string& name) {
  for (const char* word : {"value", "map", "extents", "strides", "box", "steps"}) {
    const std::string_view rest = name.starts_with(word) ? std::string_view(name).substr(std::strlen(word)) : "";
    if (!rest.empty() && std::all_of(rest.begin(), rest.end(), [](unsigned char c) { return std::isdigit(c); }))
      return true;
  }
  return false;
}

}  // namespace

std::string identifier(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool fits = byte < 128 && (std::isalnum(byte) || c == '_');
    out += fits ? std::string(1, c) : fmt::format("_{:02x}", byte);
  }
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out.insert(0, "n");
  return out;
}

CallNames::CallNames(const runtime::Plan& plan) : params_(plan.params.size()) {
  for (const char* word : kReserved) taken_.insert(word);
  for (size_t a = 0; a < plan.mesh_axes.size(); ++a) taken_.insert("comm_" + identifier(plan.mesh_axes[a]));
  for (const auto& each : plan.params) tensors.push_back(unique(each.name));
  std::vector<std::string> kept(plan.slots.size());
  for (const auto& each : plan.scalar_params) {
    scalars.push_back(unique(each.name));
    const bool is_itself = each.dtype.code == runtime::kDLInt || each.dtype.code == runtime::kDLUInt;
    if (is_itself && each.dtype.bits == 64) kept[static_cast<size_t>(each.slot)] = scalars.back();
  }
  for (size_t s = 0; s < plan.slots.size(); ++s) {
    slots.push_back(kept[s].empty() ? unique(plan.slots[s], "_end") : kept[s]);
  }
  for (const auto& each : plan.buffers) tensors.push_back(unique(each.name));
}

std::string CallNames::address(int64_t id) const {
  const std::string& name = tensors.at(static_cast<size_t>(id));
  return static_cast<size_t>(id) < params_ ? name : name + ".at";
}

std::string CallNames::unique(const std::string& wanted, const std::string& beside) {
  const std::string name = identifier(wanted);
  std::string out = name;
  // Words of the compiler and of the headers begin with two underscores, or with CU and nccl.
  const bool is_theirs = name.starts_with("__") || name.starts_with("CU") || name.starts_with("cu") ||
                         name.starts_with("nccl") || name.starts_with("comm_") || is_numbered(name);
  for (int n = 1; (n == 1 && is_theirs) || !take(out, beside); ++n) out = fmt::format("{}_{}", name, n);
  return out;
}

bool CallNames::take(const std::string& name, const std::string& beside) {
  if (taken_.contains(name) || taken_.contains(name + beside)) return false;
  taken_.insert(name);
  taken_.insert(name + beside);
  return true;
}

std::string communicator_name(const runtime::Plan& plan, uint64_t axes) {
  std::string out = "comm";
  for (size_t a = 0; a < plan.mesh.size(); ++a) {
    if (axes >> a & 1) out += "_" + identifier(plan.mesh_axes[a]);
  }
  return out;
}

}  // namespace helve
