// A document of indented lines, and how small things are spelled.
// Printers build text by statement; indentation is a property of the document, never of the strings put into it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace helve {

class TextDocument {
 public:
  explicit TextDocument(int indent_width = 4) : width_(indent_width) {}

  /// Appends one line at the current indentation. An empty line carries no blanks.
  void line(std::string_view text);

  /// Indents all lines appended while it lives.
  class Indent {
   public:
    explicit Indent(TextDocument& document) : document_(document) { ++document_.depth_; }
    ~Indent() { --document_.depth_; }
    Indent(const Indent&) = delete;
    Indent& operator=(const Indent&) = delete;

   private:
    TextDocument& document_;
  };
  [[nodiscard]] Indent indent() { return Indent(*this); }

  const std::string& text() const { return text_; }

 private:
  int width_;
  int depth_ = 0;
  std::string text_;
};

/// `text` in double quotes with the escapes that Python and C share.
std::string quoted(std::string_view text);

/// A float as Python writes it: "1.0", "2.5", "inf".
std::string float_text(double value);

/// "(4, 8)", "(4,)", "()".
std::string shape_text(std::span<const int64_t> extents);

/// The names joined by `separator`.
template <class Range, class Format>
std::string join(const Range& range, std::string_view separator, Format&& format) {
  std::string out;
  bool first = true;
  for (const auto& item : range) {
    if (!first) out += separator;
    first = false;
    out += format(item);
  }
  return out;
}

}  // namespace helve
