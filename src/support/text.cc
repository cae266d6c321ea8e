// Text documents, quoting and shapes.
// Shared by every printer, so that indentation and escapes are decided once.
#include "helve/support/text.h"

#include <fmt/format.h>

namespace helve {

void TextDocument::line(std::string_view text) {
  if (!text.empty()) text_.append(static_cast<size_t>(depth_ * width_), ' ');
  text_.append(text);
  text_.push_back('\n');
}

std::string float_text(double value) {
  const std::string digits = fmt::format("{}", value);
  return digits.find_first_of(".en") == std::string::npos ? digits + ".0" : digits;  // inf and nan have an n
}

std::string shape_text(std::span<const int64_t> extents) {
  return fmt::format("({}{})", join(extents, ", ", [](int64_t e) { return fmt::format("{}", e); }),
                     extents.size() == 1 ? "," : "");
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        } else {
          out.push_back(c);
        }
    }
  }
  out.push_back('"');
  return out;
}

}  // namespace helve
