// Nested tuples: text, products, profiles, and conversion between coordinates and indices.
// All of it follows the structure by a cursor, so that no tuple is ever rebuilt to be looked at.
#include "helve/layout/cute/int_tuple.h"

#include <fmt/format.h>

#include "checked.h"
#include "structure.h"

namespace helve::cute {

void check_entries(size_t entries) {
  if (entries == 0) throw_layout_error(Code::CuteNothingLeft, {{"operation", "an empty tuple"}});
  if (entries >= kLeaf) {
    throw_layout_error(Code::CuteLimit,
                       {{"given", static_cast<int64_t>(entries)}, {"what", "entries"}, {"limit", int64_t{kLeaf} - 1}});
  }
}

void refuse_depth() {
  throw_layout_error(
      Code::CuteLimit,
      {{"given", static_cast<int64_t>(kMaxDepth + 1)}, {"what", "levels"}, {"limit", static_cast<int64_t>(kMaxDepth)}});
}

void refuse_profile(const char* operation, IntCursor operand, IntCursor target) {
  throw_layout_error(Code::CuteProfile,
                     {{"operation", operation}, {"operand", to_string(operand)}, {"target", to_string(target)}});
}

void check_extents(IntCursor shape) {
  for (const int64_t *extent = shape.leaves, *end = shape.next().leaves; extent != end; ++extent) {
    if (*extent < 1) throw_layout_error(Code::CuteExtent, {{"shape", to_string(shape)}, {"extent", *extent}});
  }
}

namespace {

size_t depth_at(const uint16_t*& tokens) {
  uint16_t token = *tokens++;
  if (token == kLeaf) return 0;
  size_t deepest = 0;
  for (uint16_t i = 0; i < token; ++i) deepest = std::max(deepest, depth_at(tokens));
  return deepest + 1;
}

void append_text(std::string& text, IntCursor at) {
  if (at.is_leaf()) {
    text += *at.leaves == kAll ? std::string("_") : fmt::format("{}", *at.leaves);
    return;
  }
  text += '(';
  IntCursor entry = at.front();
  for (size_t i = 0; i < at.rank(); ++i, entry = entry.next()) {
    if (i > 0) text += ',';
    append_text(text, entry);
  }
  text += at.rank() == 1 ? ",)" : ")";
}

/// Whether `a` divides `b`; 0 divides nothing. In 128 bits, where -1 divides the least integer as well.
bool divides(int64_t a, int64_t b) { return a != 0 && Wide{b} % a == 0; }

/// Whether `at_leaf(value, subtree of b)` holds at every leaf of `a`; false where b's structure is coarser or another.
template <class AtLeaf>
bool all_below(IntCursor a, IntCursor b, AtLeaf&& at_leaf) {
  if (a.is_leaf()) return at_leaf(*a.leaves, b);
  if (b.is_leaf() || a.rank() != b.rank()) return false;
  IntCursor x = a.front();
  IntCursor y = b.front();
  for (size_t i = 0; i < a.rank(); ++i, x = x.next(), y = y.next()) {
    if (!all_below(x, y, at_leaf)) return false;
  }
  return true;
}

}  // namespace

size_t depth(const Profile& profile) {
  const uint16_t* tokens = profile.data();
  return depth_at(tokens);
}

std::string to_string(IntCursor tuple) {
  std::string text;
  append_text(text, tuple);
  return text;
}

int64_t product(IntCursor tuple) {
  int64_t result = 1;
  for (const int64_t *leaf = tuple.leaves, *end = tuple.next().leaves; leaf != end; ++leaf) {
    result = checked_multiply(result, *leaf, "the product of a tuple");
  }
  return result;
}

IntTuple product_each(const IntTuple& tuple) {
  if (tuple.is_leaf()) return tuple;
  IntTuple result = IntTuple::tuple_of(tuple.rank());
  IntCursor entry = tuple.root().front();
  for (size_t i = 0; i < tuple.rank(); ++i, entry = entry.next()) result.append_leaf(product(entry));
  return result;
}

IntTuple prefix_product(const IntTuple& shape) {
  IntTuple result;
  result.profile = shape.profile;
  Wide current = 1;
  for (int64_t extent : shape.leaves) {
    result.leaves.push_back(narrow(current, "a stride"));
    current *= extent;
  }
  return result;
}

IntTuple flatten(const IntTuple& tuple) {
  return tuple.is_leaf() ? tuple : IntTuple::flat(tuple.leaves.begin(), tuple.leaves.end());
}

bool congruent(const IntTuple& a, const IntTuple& b) { return a.profile == b.profile; }

bool weakly_congruent(const IntTuple& a, const IntTuple& b) {
  return all_below(a.root(), b.root(), [](int64_t, IntCursor) { return true; });
}

bool compatible(const IntTuple& a, const IntTuple& b) {
  return all_below(a.root(), b.root(), [](int64_t extent, IntCursor below) { return extent == product(below); });
}

bool weakly_compatible(const IntTuple& a, const IntTuple& b) {
  return all_below(a.root(), b.root(), [](int64_t extent, IntCursor below) { return divides(extent, product(below)); });
}

namespace {

int64_t divide_extents(int64_t a, int64_t b) {
  if (divides(b, a)) return narrow(Wide{a} / b, "a quotient");
  if (b != 0 && divides(a, b)) return 1;
  throw_layout_error(Code::CuteDivisibility, {{"operation", "shape_div"}, {"left", a}, {"right", b}});
}

void shape_div_into(IntTuple& result, IntCursor a, IntCursor b) {
  if (a.is_leaf()) {
    result.append_leaf(divide_extents(*a.leaves, product(b)));
    return;
  }
  result.profile.push_back(static_cast<uint16_t>(a.rank()));
  IntCursor x = a.front();
  if (!b.is_leaf()) {
    if (a.rank() != b.rank()) refuse_profile("shape_div", b, a);
    IntCursor y = b.front();
    for (size_t i = 0; i < a.rank(); ++i, x = x.next(), y = y.next()) shape_div_into(result, x, y);
    return;
  }
  int64_t rest = *b.leaves;
  for (size_t i = 0; i < a.rank(); ++i, x = x.next()) {
    IntTuple divisor(rest);
    shape_div_into(result, x, divisor.root());
    rest = divide_extents(rest, product(x));
  }
}

}  // namespace

IntTuple shape_div(const IntTuple& a, const IntTuple& b) {
  IntTuple result;
  shape_div_into(result, a.root(), b.root());
  return result;
}

namespace {

void ceil_div_into(IntTuple& result, IntCursor a, IntCursor b) {
  if (a.is_leaf()) {
    int64_t divisor = product(b);
    if (divisor < 1) throw_layout_error(Code::BelowOne, {{"operation", "ceil_div"}, {"value", divisor}});
    result.append_leaf(floor_divide(*a.leaves, divisor) + (*a.leaves % divisor != 0 ? 1 : 0));
    return;
  }
  if (b.is_leaf() || a.rank() != b.rank()) refuse_profile("ceil_div", b, a);
  result.profile.push_back(static_cast<uint16_t>(a.rank()));
  IntCursor x = a.front();
  IntCursor y = b.front();
  for (size_t i = 0; i < a.rank(); ++i, x = x.next(), y = y.next()) ceil_div_into(result, x, y);
}

}  // namespace

IntTuple ceil_div(const IntTuple& a, const IntTuple& b) {
  IntTuple result;
  ceil_div_into(result, a.root(), b.root());
  return result;
}

int64_t inner_product(const IntTuple& a, const IntTuple& b) {
  if (!congruent(a, b)) refuse_profile("inner_product", b.root(), a.root());
  Wide sum = 0;
  for (size_t k = 0; k < a.leaves.size(); ++k) {
    sum += checked_multiply(a.leaves[k], b.leaves[k], "an inner product");
  }
  return narrow(sum, "an inner product");
}

namespace {

[[noreturn]] void refuse_bounds(const IntTuple& coordinate, IntCursor shape) {
  throw_layout_error(Code::CoordinateBounds, {{"coordinate", to_string(coordinate)}, {"shape", to_string(shape)}});
}

/// A coordinate on its way into a shape.
struct Conversion {
  const char* operation;
  const IntTuple& coordinate;
  const IntTuple& shape;

  /// The sum of digit * stride below `at`; `last` is whether the right end of the whole shape stands there.
  Wide offset(IntCursor crd, IntCursor at, const int64_t* stride, bool last) const {
    if (!crd.is_leaf()) {
      if (at.is_leaf() || at.rank() != crd.rank()) refuse_profile(operation, coordinate.root(), shape.root());
      Wide sum = 0;
      size_t rank = at.rank();
      crd = crd.front();
      at = at.front();
      for (size_t i = 0; i < rank; ++i) {
        IntCursor next = at.next();
        sum += offset(crd, at, stride, last && i + 1 == rank);
        stride += next.leaves - at.leaves;
        crd = crd.next();
        at = next;
      }
      return sum;
    }
    return split(*crd.leaves == kAll ? 0 : *crd.leaves, at, stride, last);
  }

  Wide split(int64_t index, IntCursor at, const int64_t* stride, bool last) const {
    const int64_t* extent = at.leaves;
    const int64_t* end = at.next().leaves;
    if (index < 0) refuse_bounds(coordinate, shape.root());
    Wide sum = 0;
    for (; extent + 1 != end; ++extent, ++stride) {
      sum += Wide{index % *extent} * *stride;
      index /= *extent;
    }
    if (!last && index >= *extent) refuse_bounds(coordinate, shape.root());
    return sum + Wide{index} * *stride;
  }
};

}  // namespace

int64_t crd2idx(const IntTuple& coordinate, const IntTuple& shape, const IntTuple& stride) {
  if (!congruent(shape, stride)) refuse_profile("crd2idx", stride.root(), shape.root());
  check_extents(shape.root());
  Conversion conversion{"crd2idx", coordinate, shape};
  return narrow(conversion.offset(coordinate.root(), shape.root(), stride.leaves.begin(), true), "an offset");
}

int64_t crd2idx(const IntTuple& coordinate, const IntTuple& shape) {
  check_extents(shape.root());
  return crd2idx(coordinate, shape, prefix_product(shape));
}

namespace {

void digits_into(IntTuple& result, int64_t index, IntCursor at) {
  IntCursor end = at.next();
  result.profile.append(at.tokens, end.tokens);
  for (const int64_t* extent = at.leaves; extent != end.leaves; ++extent) {
    result.leaves.push_back(index % *extent);
    index /= *extent;
  }
}

void natural_into(IntTuple& result, IntCursor index, IntCursor at, const IntTuple& whole, const IntTuple& shape) {
  if (index.is_leaf()) {
    if (*index.leaves < 0 || *index.leaves >= product(at)) refuse_bounds(whole, shape.root());
    digits_into(result, *index.leaves, at);
    return;
  }
  if (at.is_leaf() || at.rank() != index.rank()) refuse_profile("idx2crd", whole.root(), shape.root());
  size_t rank = at.rank();
  result.profile.push_back(static_cast<uint16_t>(rank));
  index = index.front();
  at = at.front();
  for (size_t i = 0; i < rank; ++i, index = index.next(), at = at.next()) natural_into(result, index, at, whole, shape);
}

}  // namespace

IntTuple idx2crd(const IntTuple& index, const IntTuple& shape) {
  check_extents(shape.root());
  IntTuple result;
  natural_into(result, index.root(), shape.root(), index, shape);
  return result;
}

IntTuple crd2crd(const IntTuple& coordinate, const IntTuple& target, const IntTuple& source) {
  IntTuple natural = idx2crd(coordinate, source);
  return idx2crd(IntTuple(crd2idx(natural, source)), target);
}

bool has_all(const IntTuple& coordinate) {
  return std::find(coordinate.leaves.begin(), coordinate.leaves.end(), kAll) != coordinate.leaves.end();
}

IntTuple slice(const IntTuple& coordinate, const IntTuple& target) {
  return sliced<int64_t>("slice", coordinate, target, target, true);
}

IntTuple dice(const IntTuple& coordinate, const IntTuple& target) {
  return sliced<int64_t>("dice", coordinate, target, target, false);
}

}  // namespace helve::cute
