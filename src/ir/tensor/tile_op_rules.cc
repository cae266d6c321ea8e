// The shape and dtype rules of tile operations of block scope.
// One function for each rule of the table; a new rule does not compile until it is here.
#include <fmt/format.h>

#include <algorithm>

#include "helve/ir/expr/equal.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/verify.h"
#include "helve/support/text.h"
#include "verify_rules.h"

namespace helve {

namespace verify_rules {

bool may_equal(const Expr& a, const Expr& b) {
  const int64_t* x = int_value(a);
  const int64_t* y = int_value(b);
  return !x || !y || *x == *y;
}

bool may_equal(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Expr& x, const Expr& y) { return may_equal(x, y); });
}

namespace {

/// Can a[i..] and b[j..] be equal shapes, where dimensions that may be 1 can be left out on either side?
bool may_match(const std::vector<Expr>& a, size_t i, const std::vector<Expr>& b, size_t j) {
  const Expr one = int_imm(1);
  if (i == a.size() && j == b.size()) return true;
  if (i < a.size() && may_equal(a[i], one) && may_match(a, i + 1, b, j)) return true;
  if (j < b.size() && may_equal(b[j], one) && may_match(a, i, b, j + 1)) return true;
  return i < a.size() && j < b.size() && may_equal(a[i], b[j]) && may_match(a, i + 1, b, j + 1);
}

}  // namespace

bool may_equal_squeezed(const std::vector<Expr>& a, const std::vector<Expr>& b) { return may_match(a, 0, b, 0); }

void check_atomic_target(const std::string& operation, const Buffer& buffer, const Span& span) {
  if (buffer.scope == MemoryScope::Fragment || buffer.scope == MemoryScope::Local) {
    refuse_argument(operation, "dst", fmt::format("'{}'", buffer.name), "no other thread can reach it",
                    "update a tensor or a shared buffer; for this one, store the combined value", span,
                    {declaration_note(buffer)});
  }
  if (admits_atomics(buffer)) return;
  throw UserError(Code::WrongType, span,
                  {{"what", fmt::format("'{}' in {}", buffer.name, operation)},
                   {"given", to_string(buffer.dtype)},
                   {"expected", "a number of 32 or 64 bits, float16 or bfloat16"}},
                  {declaration_note(buffer)}, {"declare it with one of those types"});
}

void refuse_argument(const std::string& function, const std::string& parameter, const std::string& value,
                     const std::string& reason, const std::string& remedy, const Span& span, std::vector<Note> notes) {
  throw UserError(
      Code::BadArgument, span,
      {{"function", function}, {"parameter", parameter}, {"value", value}, {"reason", reason}, {"remedy", remedy}},
      std::move(notes));
}

void wrong_type(const TileOp& op, size_t i, std::string what, std::string expected) {
  const Buffer& buffer = *op.region(i).buffer;
  throw UserError(Code::WrongType, op.place(i),
                  {{"what", std::move(what)}, {"given", to_string(buffer.dtype)}, {"expected", std::move(expected)}},
                  {declaration_note(buffer)},
                  {"declare it with that type, or T.copy it to a buffer that has it: a copy converts"});
}

}  // namespace verify_rules

namespace {

using namespace verify_rules;

[[noreturn]] void shapes_differ(const TileOp& op, const std::string& what, const std::string& left,
                                const std::string& right, std::vector<Note> notes,
                                std::vector<std::string> fixes = {}) {
  throw UserError(Code::ShapeMismatch, op.span,
                  {{"what", fmt::format("{} of {}", what, operation_text(op))}, {"left", left}, {"right", right}},
                  std::move(notes), std::move(fixes));
}

void check_copy(const TileOp& op) {
  const Region &src = op.region(0), &dst = op.region(1);
  if (may_equal_squeezed(src.shape(), dst.shape())) return;
  shapes_differ(op, "src and dst", shape_text(src.shape()), shape_text(dst.shape()),
                {declaration_note(*src.buffer), declaration_note(*dst.buffer)});
}

void check_wait(const TileOp& op) {
  const size_t pending = op.row().index_of("pending");
  if (op.pending() >= 0) return;
  refuse_argument(operation_text(op), "pending", std::to_string(op.pending()), "it counts unfinished copies",
                  "give 0 to wait for all of them", op.place(pending));
}

/// The dtypes of a product: operands of one type (or both float8), an accumulator of the same kind that is no narrower;
/// integers accumulate in 32 bits or more.
void check_gemm_types(const TileOp& op) {
  const Buffer &a = *op.region(0).buffer, &b = *op.region(1).buffer, &c = *op.region(2).buffer;
  const bool both_float8 = a.dtype.is_float() && b.dtype.is_float() && a.dtype.bits == 8 && b.dtype.bits == 8;
  if (a.dtype.is_bool()) wrong_type(op, 0, "A of T.gemm", "a number");
  if (a.dtype != b.dtype && !both_float8) wrong_type(op, 1, "B of T.gemm", to_string(a.dtype) + ", as A");
  if (a.dtype.is_float()) {
    const bool wide = c.dtype == a.dtype || (c.dtype.is_float() && c.dtype.bits > a.dtype.bits);
    if (!wide) wrong_type(op, 2, "the accumulator of T.gemm", to_string(a.dtype) + " or a wider float");
  } else {
    const bool wide = c.dtype.is_data_int() && c.dtype.bits >= std::max<int>(32, a.dtype.bits);
    const std::string expected = a.dtype.bits <= 32 ? "int32" : to_string(a.dtype);
    if (!wide) wrong_type(op, 2, "the accumulator of T.gemm", expected);
  }
}

/// Can the two regions share an element? Refuted by one dimension with disjoint constant bounds.
bool may_overlap(const Region& a, const Region& b) {
  if (a.buffer != b.buffer) return false;
  for (size_t d = 0; d < a.ranges.size(); ++d) {
    const int64_t *x = int_value(a.ranges[d].begin), *y = int_value(b.ranges[d].begin);
    const int64_t *n = int_value(a.ranges[d].extent), *m = int_value(b.ranges[d].extent);
    if (x && y && n && m && (*x + *n <= *y || *y + *m <= *x)) return false;
  }
  return true;
}

/// The flags with which the shapes of A, B and C, as they are stored, are those of a product; nothing if there are
/// none.
std::vector<std::string> transposed(const TileOp& op, const std::vector<std::vector<Expr>>& stored) {
  for (const auto& [left, right] : {std::pair(false, false), {false, true}, {true, false}, {true, true}}) {
    const Expr &m = stored[0][left ? 1 : 0], &k = stored[0][left ? 0 : 1];
    const Expr &rows = stored[1][right ? 1 : 0], &n = stored[1][right ? 0 : 1];
    if (!may_equal(k, rows) || !may_equal(m, stored[2][0]) || !may_equal(n, stored[2][1])) continue;
    std::string flags;
    for (const auto& [name, wanted, given] :
         {std::tuple("transpose_A", left, op.transposes(0)), {"transpose_B", right, op.transposes(1)}}) {
      if (wanted != given) flags += fmt::format("{}{}={}", flags.empty() ? "" : ", ", name, wanted ? "True" : "False");
    }
    return {fmt::format("the shapes are those of a product with {}", flags)};
  }
  return {};
}

void check_gemm(const TileOp& op) {
  std::vector<std::vector<Expr>> shapes;
  for (size_t i = 0; i < 3; ++i) {
    const Region& region = op.region(i);
    shapes.push_back(region.shape());
    if (shapes[i].size() != 2) {
      refuse_argument("T.gemm", std::string(op.row().params[i].name), shape_text(shapes[i]), "an operand is a matrix",
                      "give a region of two dimensions", op.place(i), {declaration_note(*region.buffer)});
    }
  }
  const std::vector<std::vector<Expr>> stored = shapes;
  if (op.transposes(0)) std::swap(shapes[0][0], shapes[0][1]);
  if (op.transposes(1)) std::swap(shapes[1][0], shapes[1][1]);
  auto same = [&](const char* what, const Expr& left, const Expr& right, size_t i, size_t k) {
    if (may_equal(left, right)) return;
    shapes_differ(op, what, to_text(left), to_text(right),
                  {declaration_note(*op.region(i).buffer), declaration_note(*op.region(k).buffer)},
                  transposed(op, stored));
  };
  same("K in A and B", shapes[0][1], shapes[1][0], 0, 1);
  same("M in A and C", shapes[0][0], shapes[2][0], 0, 2);
  same("N in B and C", shapes[1][1], shapes[2][1], 1, 2);
  for (size_t i : {0, 1}) {
    if (!may_overlap(op.region(i), op.region(2))) continue;
    refuse_argument("T.gemm", "C", fmt::format("'{}'", op.region(2).buffer->name),
                    fmt::format("it overlaps {}", op.row().params[i].name), "multiply into another buffer",
                    op.place(2));
  }
  check_gemm_types(op);
}

[[noreturn]] void wrong_operand(const TileOp& op, size_t i, std::string expected) {
  wrong_type(op, i, fmt::format("'{}' in {}", op.region(i).buffer->name, operation_text(op)), std::move(expected));
}

/// Numbers that are combined into `dst`: floats of any width, or integers that fit.
void check_combined_types(const TileOp& op, size_t src, size_t dst) {
  const DType from = op.region(src).buffer->dtype, to = op.region(dst).buffer->dtype;
  if (from.is_bool()) wrong_operand(op, src, "a number");
  const bool widens = from.code == to.code && from.bits <= to.bits;
  if ((from.is_float() && to.is_float()) || widens) return;
  wrong_operand(op, dst, to_string(from) + ", as the source");
}

void check_reduce_types(const TileOp& op) {
  const ReduceKind kind = reduce_kind(op.op);
  if (kind != ReduceKind::Any && kind != ReduceKind::All) return check_combined_types(op, 0, 1);
  for (size_t i : {0, 1}) {
    if (!op.region(i).buffer->dtype.is_bool()) wrong_operand(op, i, "bool");
  }
}

/// The dimension of the source that the operation names.
size_t checked_dimension(const TileOp& op) {
  const Region& src = op.region(0);
  const std::vector<Expr> shape = src.shape();
  const size_t rank = shape.size();
  if (const std::optional<size_t> dim = op.dimension(rank)) return *dim;
  refuse_argument(operation_text(op), "dim", std::to_string(op.dim()),
                  fmt::format("the source has shape {}", shape_text(shape)),
                  rank ? fmt::format("dim is 0 to {}, or counted from the end -{} to -1", rank - 1, rank)
                  : op.row().rule == TileRule::Reduce ? "reduce a region with a dimension"
                                                      : "give a region with a dimension",
                  op.place(*op.dim_position()), {declaration_note(*src.buffer)});
}

void check_reduce(const TileOp& op) {
  const Region &src = op.region(0), &dst = op.region(1);
  std::vector<Expr> shape = src.shape();
  const size_t dim = checked_dimension(op);
  if (may_overlap(src, dst)) {
    refuse_argument(operation_text(op), "dst", fmt::format("'{}'", dst.buffer->name), "it overlaps the source",
                    "reduce into another buffer", op.place(1));
  }
  std::vector<Expr> kept = shape;
  kept[dim] = int_imm(1);
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim));
  if (!may_equal(dst.shape(), shape) && !may_equal(dst.shape(), kept)) {
    shapes_differ(op, fmt::format("src without dimension {} and dst", dim), shape_text(shape), shape_text(dst.shape()),
                  {declaration_note(*src.buffer), declaration_note(*dst.buffer)});
  }
  check_reduce_types(op);
}

/// The same elements, whatever the variables are.
bool same_region(const Region& a, const Region& b) {
  return a.buffer == b.buffer && std::equal(a.ranges.begin(), a.ranges.end(), b.ranges.begin(), b.ranges.end(),
                                            [](const Range& x, const Range& y) {
                                              return structural_equal(x.begin, y.begin) &&
                                                     structural_equal(x.extent, y.extent);
                                            });
}

/// A scan may overwrite its source element by element; any other overlap would read what it has written.
void check_scan(const TileOp& op) {
  const Region &src = op.region(0), &dst = op.region(1);
  checked_dimension(op);
  if (!may_equal(src.shape(), dst.shape())) {
    shapes_differ(op, "src and dst", shape_text(src.shape()), shape_text(dst.shape()),
                  {declaration_note(*src.buffer), declaration_note(*dst.buffer)});
  }
  if (may_overlap(src, dst) && !same_region(src, dst)) {
    refuse_argument(operation_text(op), "dst", fmt::format("'{}'", dst.buffer->name), "it overlaps the source",
                    "write to the source itself, or to another buffer", op.place(1));
  }
  check_combined_types(op, 0, 1);
}

void check_atomic(const TileOp& op) {
  const Region& dst = op.region(0);
  check_atomic_target(operation_text(op), *dst.buffer, op.place(0));
  if (!op.is_region(1)) return;
  const Region& src = op.region(1);
  if (!may_equal_squeezed(src.shape(), dst.shape())) {
    shapes_differ(op, "dst and value", shape_text(dst.shape()), shape_text(src.shape()),
                  {declaration_note(*dst.buffer), declaration_note(*src.buffer)});
  }
  if (may_overlap(src, dst)) {
    refuse_argument(operation_text(op), "value", fmt::format("'{}'", src.buffer->name), "it overlaps dst",
                    "copy it to another buffer first", op.place(1));
  }
  check_combined_types(op, 1, 0);
}

/// Copies may reach past the end of a global tensor; all other regions lie inside their buffers. A region that never
/// `runs` may be wherever its guard keeps it from; numbers below 0 mean nothing anywhere.
void check_region(const TileOp& op, size_t i, bool runs) {
  const Region& region = op.region(i);
  const Buffer& buffer = *region.buffer;
  HELVE_CHECK(region.ranges.size() == buffer.rank(), "a region of another rank than its buffer");
  const bool may_reach_past = op.may_pass_end(i);
  for (size_t d = 0; d < region.ranges.size(); ++d) {
    const int64_t* begin = int_value(region.ranges[d].begin);
    const int64_t* extent = int_value(region.ranges[d].extent);
    const int64_t* limit = int_value(buffer.shape[d]);
    const Span span = span_of(region.ranges[d].begin, op.place(i));
    if (begin && *begin < 0) {
      throw UserError(Code::NegativeIndex, span, {{"buffer", buffer.name}, {"index", *begin}},
                      {declaration_note(buffer)});
    }
    if (extent && *extent < 0) {
      throw UserError(Code::NegativeExtent, span, {{"extent", *extent}}, {declaration_note(buffer)},
                      {"a slice ends where it begins, or later"});
    }
    if (!runs || may_reach_past || !begin || !extent || !limit || *extent == 0 || *begin + *extent <= *limit) continue;
    throw UserError(Code::OutOfBounds, span,
                    {{"index", *begin + *extent - 1},
                     {"dim", static_cast<int64_t>(d)},
                     {"buffer", buffer.name},
                     {"extent", *limit}},
                    {declaration_note(buffer)}, {range_remedy(static_cast<int64_t>(d), *limit)});
  }
}

}  // namespace

void verify_tile_op(const TileOp& op, const MeshShape* mesh, bool runs) {
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (std::holds_alternative<Region>(op.operands[i])) check_region(op, i, runs);
  }
  if (!mesh && (op.row().is_collective() || op.row().rule == TileRule::MeshTensorCopy)) {
    throw UserError(Code::CollectiveWithoutMesh, op.span, {{"operation", operation_text(op)}});
  }
  verify_barriers(op);
  switch (op.row().rule) {
    case TileRule::Copy: return check_copy(op);
    case TileRule::CopyInstruction: return check_copy(op), verify_copy_instruction(op);
    case TileRule::StAsync: return verify_st_async(op);
    case TileRule::Wait: return check_wait(op);
    case TileRule::Fill:
    case TileRule::Clear:
    case TileRule::Sync: return;
    case TileRule::Instruction: return verify_instruction(op);
    case TileRule::Gemm: return check_gemm(op);
    case TileRule::Reduce: return check_reduce(op);
    case TileRule::Scan: return check_scan(op);
    case TileRule::Atomic: return check_atomic(op);
    case TileRule::MeshTensorCopy: return;  // judged with the function's placement
    case TileRule::CommSame:
    case TileRule::CommPut:
    case TileRule::CommGather:
    case TileRule::CommScatter:
    case TileRule::CommAllToAll:
    case TileRule::CommBarrier: return verify_collective(op, *mesh);
  }
  __builtin_unreachable();
}

}  // namespace helve
