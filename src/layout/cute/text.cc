// Layouts as text: the notation both ways, and the tables.
// The notation is CuTe's, so that output can be compared with that of other tools.
#include <fmt/format.h>

#include "checked.h"
#include "helve/layout/cute/layout.h"
#include "helve/support/text.h"
#include "table.h"
#include "unsupported.h"

namespace helve::cute {

namespace {

void append_part(std::string& text, ModeCursor at, int64_t Mode::* part) {
  if (at.is_leaf()) {
    fmt::format_to(std::back_inserter(text), "{}", at.leaves->*part);
    return;
  }
  size_t rank = at.rank();
  at = at.front();
  for (size_t i = 0; i < rank; ++i, at = at.next()) {
    text += i == 0 ? '(' : ',';
    append_part(text, at, part);
  }
  text += rank == 1 ? ",)" : ")";
}

/// Recursive descent: layout = tuple [":" tuple], tuple = integer | "(" tuple {"," tuple} [","] ")".
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Layout parse() {
    IntTuple shape = tuple();
    if (accept(':')) {
      IntTuple stride = tuple();
      end();
      return Layout(shape, stride);
    }
    end();
    return Layout(shape);
  }

 private:
  [[noreturn]] void fail(const char* reason) const {
    throw_layout_error(
        Code::CuteSyntax,
        {{"text", std::string(text_)}, {"column", static_cast<int64_t>(position_ + 1)}, {"reason", reason}});
  }

  void skip_blanks() {
    constexpr std::string_view kBlanks = " \t\n";
    while (position_ < text_.size() && kBlanks.find(text_[position_]) != std::string_view::npos) ++position_;
  }

  bool accept(char c) {
    skip_blanks();
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  void end() {
    skip_blanks();
    if (position_ != text_.size()) fail("expected the end");
  }

  IntTuple tuple() {
    IntTuple result;
    append_tuple(result, 0);
    return result;
  }

  void append_tuple(IntTuple& result, size_t level) {
    if (!accept('(')) {
      result.append_leaf(integer());
      return;
    }
    if (level == kMaxDepth) refuse_depth();
    size_t at = result.profile.size();
    result.profile.push_back(0);
    size_t count = 0;
    while (!accept(')')) {
      append_tuple(result, level + 1);
      ++count;
      if (accept(',')) continue;
      if (!accept(')')) fail("expected ',' or ')'");
      break;
    }
    check_entries(count);
    result.profile[at] = static_cast<uint16_t>(count);
  }

  int64_t integer() {
    bool negative = accept('-');
    size_t begin = position_;
    Wide value = 0;
    for (; position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9'; ++position_) {
      value = value * 10 + (text_[position_] - '0');
      if (value > std::numeric_limits<int64_t>::max()) fail("the number does not fit in 64 bits");
    }
    if (position_ == begin) fail("expected an integer");
    return static_cast<int64_t>(negative ? -value : value);
  }

  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace

std::string to_string(const Layout& layout) {
  std::string text;
  append_part(text, layout.root(), &Mode::extent);
  text += ':';
  append_part(text, layout.root(), &Mode::stride);
  return text;
}

Layout parse(std::string_view text) { return Parser(text).parse(); }

std::string table_text(const std::string& title, const IntTuple& shape, int64_t cosize,
                       const std::function<int64_t(int64_t, int64_t)>& value) {
  if (shape.rank() != 2 || shape.is_leaf()) {
    throw_layout_error(Code::CuteRank, {{"operation", "print_layout"},
                                        {"operand", title},
                                        {"given", static_cast<int64_t>(shape.rank())},
                                        {"needed", "a table has 2"}});
  }
  IntTuple extents = product_each(shape);
  int64_t rows = extents.leaves[0];
  int64_t columns = extents.leaves[1];
  if (rows * columns > kMaxTableCells) {  // the size of a layout fits in 64 bits
    refuse_unsupported("print_layout", title, fmt::format("a table has at most {} cells", kMaxTableCells),
                       "slice the layout first");
  }
  std::vector<std::string> cells;
  size_t width = std::max(std::to_string(cosize).size(), std::to_string(columns - 1).size());
  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t n = 0; n < columns; ++n) {
      cells.push_back(std::to_string(value(m, n)));
      width = std::max(width, cells.back().size());
    }
  }
  std::string rule = "    ";
  std::string head = "    ";
  for (int64_t n = 0; n < columns; ++n) {
    rule += '+' + std::string(width + 2, '-');
    head += fmt::format("  {:>{}} ", n, width);
  }
  rule += "+\n";
  head.pop_back();  // no blank at the end of the line
  std::string text = title + "\n" + head + "\n" + rule;
  for (int64_t m = 0; m < rows; ++m) {
    text += fmt::format("{:>2}  ", m);
    for (int64_t n = 0; n < columns; ++n) text += fmt::format("| {:>{}} ", cells[m * columns + n], width);
    text += "|\n" + rule;
  }
  return text;
}

std::string print_layout(const Layout& layout) {
  IntTuple coordinate = IntTuple::tuple_of(2);
  coordinate.append_leaf(0);
  coordinate.append_leaf(0);
  return table_text(to_string(layout), layout.shape(), layout.cosize(), [&](int64_t m, int64_t n) {
    coordinate.leaves[0] = m;
    coordinate.leaves[1] = n;
    return layout(coordinate);
  });
}

}  // namespace helve::cute
