// Einstein's notation as NumPy writes it: a contraction in one line of text.
// The text becomes one assignment of index notation, so that it means what the same statement written out means.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "helve/notation/index_notation.h"

namespace helve::notation {

namespace {

/// A dimension's name: a letter, or a number for one of "...", counted from the last.
using Label = int;
constexpr Label kEllipsis = 1000;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class Parser {
 public:
  Parser(std::string spec, Span span) : spec_(std::move(spec)), span_(span) {
    for (char c : spec_) {
      if (c != ' ') text_ += c;
    }
  }

  [[noreturn]] void refuse(std::string reason) const {
    throw UserError(Code::EinsumSpec, span_, {{"spec", spec_}, {"reason", std::move(reason)}});
  }

  /// The subscripts of each operand; "..." is kEllipsis.
  std::vector<std::vector<Label>> operands() const {
    std::vector<std::vector<Label>> out;
    const std::string inputs = text_.substr(0, text_.find("->"));
    for (size_t begin = 0; begin <= inputs.size();) {
      const size_t end = std::min(inputs.find(',', begin), inputs.size());
      out.push_back(labels(inputs.substr(begin, end - begin)));
      begin = end + 1;
    }
    return out;
  }

  /// Those of the result; nothing without "->".
  std::optional<std::vector<Label>> result() const {
    const size_t arrow = text_.find("->");
    if (arrow == std::string::npos) return std::nullopt;
    return labels(text_.substr(arrow + 2));
  }

 private:
  std::vector<Label> labels(const std::string& part) const {
    std::vector<Label> out;
    for (size_t i = 0; i < part.size(); ++i) {
      if (is_letter(part[i])) {
        out.push_back(part[i]);
      } else if (part.compare(i, 3, "...") == 0) {
        if (std::find(out.begin(), out.end(), kEllipsis) != out.end()) refuse("'...' occurs twice in one operand");
        out.push_back(kEllipsis);
        i += 2;
      } else {
        const std::string shown = part[i] > ' ' && part[i] <= '~' ? fmt::format("'{}'", part[i]) : "a character";
        refuse(fmt::format("{} in '{}' is no letter", shown, part));
      }
    }
    return out;
  }

  std::string spec_, text_;
  Span span_;
};

class Contraction {
 public:
  Contraction(const std::string& spec, const std::vector<DType>& dtypes,
              const std::vector<std::vector<int64_t>>& shapes, const std::vector<std::vector<int64_t>>& strides,
              Span span)
      : spec_(spec), parser_(spec, span), span_(span), operands_(parser_.operands()) {
    if (operands_.size() != dtypes.size()) {
      parser_.refuse(fmt::format("it has subscripts for {} operand{}, {} {} given", operands_.size(),
                                 operands_.size() == 1 ? "" : "s", dtypes.size(), dtypes.size() == 1 ? "is" : "are"));
    }
    for (size_t n = 0; n < operands_.size(); ++n) {
      open_ellipsis(n, shapes[n]);
      std::vector<Expr> shape;
      for (int64_t extent : shapes[n]) shape.push_back(int_imm(extent));
      std::vector<Expr> steps;
      for (int64_t stride : strides.empty() ? std::vector<int64_t>{} : strides[n]) steps.push_back(int_imm(stride));
      buffers_.push_back(
          make_buffer(fmt::format("x{}", n), dtypes[n], MemoryScope::Param, std::move(shape), {}, std::move(steps)));
    }
    find_result();
    find_extents(shapes);
  }

  Einsum build(Form form) {
    std::vector<Index> indices;
    for (const auto& [label, extent] : extents_) indices.push_back({vars_.at(label), int_imm(extent)});
    std::optional<Expr> product;
    for (size_t n = 0; n < operands_.size(); ++n) {
      const Expr factor = helve::load(buffers_[n], subscripts(n), span_);
      product = product ? helve::apply(Op::Mul, {*product, factor}, span_) : factor;
    }
    Einsum out;
    out.dtype = (*product)->dtype;
    std::vector<Expr> shape;
    std::vector<IndexOperand> left;
    for (Label label : result_) {
      out.shape.push_back(extents_.at(label));
      shape.push_back(int_imm(extents_.at(label)));
      left.push_back(IndexExpr{vars_.at(label)});
    }
    BufferRef result = make_buffer("out", out.dtype, MemoryScope::Param, std::move(shape));
    const Assignment a = assign(result, left, {*product}, std::move(indices), std::nullopt, span_);
    std::vector<Param> listed(buffers_.begin(), buffers_.end());
    listed.push_back(result);
    out.function = function("einsum", listed, {a}, span_, form);
    return out;
  }

 private:
  /// Replaces "..." of an operand by a label for each dimension that it stands for.
  void open_ellipsis(size_t n, const std::vector<int64_t>& shape) {
    std::vector<Label>& labels = operands_[n];
    const auto dots = std::find(labels.begin(), labels.end(), kEllipsis);
    const size_t letters = labels.size() - (dots != labels.end());
    if (letters > shape.size() || (dots == labels.end() && letters != shape.size())) {
      throw UserError(Code::EinsumOperand, span_,
                      {{"spec", spec_},
                       {"operand", static_cast<int64_t>(n)},
                       {"rank", static_cast<int64_t>(shape.size())},
                       {"given", static_cast<int64_t>(letters)}});
    }
    if (dots == labels.end()) return;
    const int hidden = static_cast<int>(shape.size() - letters);
    ellipsis_ = std::max(ellipsis_, hidden);
    std::vector<Label> opened(labels.begin(), dots);
    for (int d = hidden; d-- > 0;) opened.push_back(kEllipsis + 1 + d);
    opened.insert(opened.end(), dots + 1, labels.end());
    labels = std::move(opened);
  }

  void find_result() {
    std::map<Label, int> counts;
    for (const auto& labels : operands_) {
      for (Label label : labels) ++counts[label];
    }
    const auto open = [&](std::vector<Label>& out) {
      for (int d = ellipsis_; d-- > 0;) out.push_back(kEllipsis + 1 + d);
    };
    const std::optional<std::vector<Label>> given = parser_.result();
    if (!given) {
      open(result_);
      for (const auto& [label, count] : counts) {
        if (label < kEllipsis && count == 1) result_.push_back(label);
      }
      return;
    }
    for (Label label : *given) {
      if (label == kEllipsis) {
        open(result_);
        continue;
      }
      const char letter = static_cast<char>(label);
      if (std::find(result_.begin(), result_.end(), label) != result_.end())
        parser_.refuse(fmt::format("'{}' occurs twice in the result", letter));
      if (!counts.contains(label)) parser_.refuse(fmt::format("'{}' of the result is in no operand", letter));
      result_.push_back(label);
    }
    if (ellipsis_ > 0 && std::find(given->begin(), given->end(), kEllipsis) == given->end())
      parser_.refuse("the result has no '...', which an operand has");
  }

  void find_extents(const std::vector<std::vector<int64_t>>& shapes) {
    std::map<Label, std::pair<size_t, size_t>> origin;  // of the extent: operand and dimension
    for (size_t n = 0; n < operands_.size(); ++n) {
      for (size_t d = 0; d < operands_[n].size(); ++d) {
        const Label label = operands_[n][d];
        const int64_t extent = shapes[n][d];
        const auto [known, is_new] = extents_.emplace(label, extent);
        if (is_new || (known->second == 1 && extent != 1 && origin.at(label).first != n)) {
          known->second = extent;
          origin[label] = {n, d};
        } else if (known->second != extent && (extent != 1 || origin.at(label).first == n)) {
          refuse_extents(label, origin.at(label), {n, d}, shapes);
        }
      }
    }
    for (const auto& [label, extent] : extents_) {
      const std::string name =
          label < kEllipsis ? std::string(1, static_cast<char>(label)) : fmt::format("batch{}", label - kEllipsis - 1);
      vars_.emplace(label, make_var(name));
    }
  }

  [[noreturn]] void refuse_extents(Label label, std::pair<size_t, size_t> first, std::pair<size_t, size_t> second,
                                   const std::vector<std::vector<int64_t>>& shapes) const {
    const auto extent = [&](std::pair<size_t, size_t> place) {
      return fmt::format("{}", shapes[place.first][place.second]);
    };
    throw UserError(Code::IndexExtents, span_,
                    {{"index", label < kEllipsis ? std::string(1, static_cast<char>(label)) : "..."},
                     {"left", extent(first)},
                     {"first", fmt::format("operand {}", first.first)},
                     {"first_dim", static_cast<int64_t>(first.second)},
                     {"right", extent(second)},
                     {"second", fmt::format("operand {}", second.first)},
                     {"second_dim", static_cast<int64_t>(second.second)}});
  }

  /// A dimension of extent 1 where others have more is read at 0 always.
  std::vector<Expr> subscripts(size_t n) const {
    std::vector<Expr> out;
    for (size_t d = 0; d < operands_[n].size(); ++d) {
      const Label label = operands_[n][d];
      const bool repeated = *int_value(buffers_[n]->shape[d]) == 1 && extents_.at(label) != 1;
      out.push_back(repeated ? int_imm(0) : Expr(vars_.at(label)));
    }
    return out;
  }

  std::string spec_;
  Parser parser_;
  Span span_;
  std::vector<std::vector<Label>> operands_;
  std::vector<Label> result_;
  int ellipsis_ = 0;  ///< dimensions that "..." stands for, at most
  std::map<Label, int64_t> extents_;
  std::map<Label, VarRef> vars_;
  std::vector<BufferRef> buffers_;
};

}  // namespace

Einsum einsum(const std::string& spec, const std::vector<DType>& dtypes,
              const std::vector<std::vector<int64_t>>& shapes, const std::vector<std::vector<int64_t>>& strides,
              Span span, Form form) {
  return Contraction(spec, dtypes, shapes, strides, span).build(form);
}

}  // namespace helve::notation
