// Every tile operation of block scope against loops over its definition.
#include <cmath>
#include <limits>

#include "arrays.h"
#include "helve/ir/expr/rounding.h"

namespace helve::testing {
namespace {

constexpr DType kInt8{TypeCode::Int, 8};
constexpr DType kHalf{TypeCode::Float, 16};
constexpr DType kBFloat16{TypeCode::BFloat, 16};
const float kInfinity = std::numeric_limits<float>::infinity();

Expr zero_of(DType t) { return t.is_float() ? float_imm(0, t) : int_imm(0, t); }

Stmt copy(Region src, Region dst) {
  const DType t = dst.buffer->dtype;
  return tile_op(TileOpcode::Copy, {std::move(src), std::move(dst), zero_of(t)});
}

TEST(Copy, ConvertsElementwise) {
  const BufferRef a = param("A", kFloat32, {2, 3}), b = param("B", kInt8, {2, 3});
  std::vector<float> in = {-1.5, 2.5, 300, -300, NAN, 0.99f};
  std::vector<int8_t> out(6, 9);
  interp::run(function("main", {a, b}, one_block({copy(whole_region(a), whole_region(b))})),
              {tensor(in, {2, 3}), tensor(out, {2, 3})});
  EXPECT_EQ(out, (std::vector<int8_t>{-1, 2, 127, -128, 0, 0}));
}

TEST(Copy, PadsPastTheEndOfAParameterAndDropsWritesThere) {
  const int64_t m = 5, n = 7, tm = 4, tn = 3;
  const BufferRef a = param("A", kFloat32, {m, n}), b = param("B", kFloat32, {m, n}),
                  seen = param("seen", kFloat32, {tm, tn});
  const BufferRef t = shared("t", kFloat32, {tm, tn});
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      const Expr row = idx(i * tm), column = idx(j * tn);
      const FunctionRef f = function(
          "main", {a, b, seen},
          one_block({alloc(t), tile_op(TileOpcode::Copy, {box(a, {{row, tm}, {column, tn}}), whole_region(t), f32(-3)}),
                     copy(whole_region(t), box(b, {{row, tm}, {column, tn}})),
                     copy(whole_region(t), whole_region(seen))}));
      std::vector<float> in = small_numbers<float>(35, 3), out(35, 50), tile(12);
      interp::run(f, {tensor(in, {m, n}), tensor(out, {m, n}), tensor(tile, {tm, tn})});
      for (int64_t p = 0; p < tm; ++p) {
        for (int64_t q = 0; q < tn; ++q) {
          const int64_t r = i * tm + p, c = j * tn + q;
          const bool inside = r < m && c < n;
          const float expected = inside ? in[static_cast<size_t>(r * n + c)] : -3;
          EXPECT_EQ(tile[static_cast<size_t>(p * tn + q)], expected);
        }
      }
      for (int64_t r = 0; r < m; ++r) {
        for (int64_t c = 0; c < n; ++c) {
          const bool copied = r / tm == i && c / tn == j;
          const size_t at = static_cast<size_t>(r * n + c);
          EXPECT_EQ(out[at], copied ? in[at] : 50);
        }
      }
    }
  }
}

TEST(Copy, PointsDropDimensionsAndOnesAreSetAside) {
  const BufferRef a = param("A", kInt32, {3, 4, 5}), b = param("B", kInt32, {1, 5, 1});
  const FunctionRef f =
      function("main", {a, b}, one_block({copy(box(a, {{idx(2), -1}, {idx(1), 1}, {idx(0), 5}}), whole_region(b))}));
  std::vector<int32_t> in(60), out(5);
  for (size_t i = 0; i < 60; ++i) in[i] = static_cast<int32_t>(i);
  interp::run(f, {tensor(in, {3, 4, 5}), tensor(out, {1, 5, 1})});
  EXPECT_EQ(out, (std::vector<int32_t>{45, 46, 47, 48, 49}));
}

TEST(Copy, APointPastTheEndIsAllPad) {
  const BufferRef a = param("A", kInt32, {3, 4}), b = param("B", kInt32, {4});
  const FunctionRef f =
      function("main", {a, b}, one_block({copy(box(a, {{idx(3), -1}, {idx(0), 4}}), whole_region(b))}));
  std::vector<int32_t> in(12, 1), out(4, 7);
  interp::run(f, {tensor(in, {3, 4}), tensor(out, {4})});
  EXPECT_EQ(out, (std::vector<int32_t>{0, 0, 0, 0}));
}

TEST(Copy, OverlappingRegionsReadBeforeTheyStore) {
  const BufferRef a = param("A", kInt32, {6});
  const FunctionRef f = function("main", {a}, one_block({copy(box(a, {{idx(0), 5}}), box(a, {{idx(1), 5}}))}));
  std::vector<int32_t> v = {1, 2, 3, 4, 5, 6};
  interp::run(f, {tensor(v, {6})});
  EXPECT_EQ(v, (std::vector<int32_t>{1, 1, 2, 3, 4, 5}));
}

TEST(Fill, AndClearTouchTheirRegionOnly) {
  const BufferRef a = param("A", kInt32, {3, 3});
  const FunctionRef f =
      function("main", {a},
               one_block({tile_op(TileOpcode::Fill, {box(a, {{idx(1), 2}, {idx(0), 2}}), int_imm(7, kInt32)}),
                          tile_op(TileOpcode::Clear, {box(a, {{idx(2), -1}, {idx(0), 3}})})}));
  std::vector<int32_t> v(9, 5);
  interp::run(f, {tensor(v, {3, 3})});
  EXPECT_EQ(v, (std::vector<int32_t>{5, 5, 5, 7, 7, 5, 0, 0, 0}));
}

/// Runs a gemm of these extents with small integers in all operands and compares with the triple loop.
template <class In, class Out>
void check_gemm(DType in, DType out, int64_t m, int64_t n, int64_t k, bool ta, bool tb, bool clear) {
  const std::vector<int64_t> sa = ta ? std::vector<int64_t>{k, m} : std::vector<int64_t>{m, k};
  const std::vector<int64_t> sb = tb ? std::vector<int64_t>{n, k} : std::vector<int64_t>{k, n};
  const BufferRef a = param("A", in, sa), b = param("B", in, sb), c = param("C", out, {m, n});
  const FunctionRef f = function(
      "main", {a, b, c},
      one_block({tile_op(TileOpcode::Gemm, {whole_region(a), whole_region(b), whole_region(c), ta, tb, clear})}));
  std::vector<In> x = small_numbers<In>(static_cast<size_t>(m * k), 4),
                  y = small_numbers<In>(static_cast<size_t>(k * n), 5);
  std::vector<Out> z = small_numbers<Out>(static_cast<size_t>(m * n), 6);
  const std::vector<Out> before = z;
  interp::run(f, {tensor(x, sa), tensor(y, sb), tensor(z, {m, n})});
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = clear ? 0 : static_cast<double>(before[static_cast<size_t>(i * n + j)]);
      for (int64_t p = 0; p < k; ++p) {
        sum += static_cast<double>(x[static_cast<size_t>(ta ? p * m + i : i * k + p)]) *
               static_cast<double>(y[static_cast<size_t>(tb ? j * k + p : p * n + j)]);
      }
      ASSERT_EQ(static_cast<double>(z[static_cast<size_t>(i * n + j)]), sum);
    }
  }
}

TEST(Gemm, EqualsTheTripleLoop) {
  for (bool ta : {false, true}) {
    for (bool tb : {false, true}) {
      for (bool clear : {false, true}) {
        check_gemm<float, float>(kFloat32, kFloat32, 5, 7, 3, ta, tb, clear);
        check_gemm<double, double>(kFloat64, kFloat64, 1, 4, 9, ta, tb, clear);
        check_gemm<int8_t, int32_t>(kInt8, kInt32, 6, 2, 11, ta, tb, clear);
        check_gemm<float, float>(kFloat32, kFloat32, 2, 3, 0, ta, tb, clear);
      }
    }
  }
}

TEST(Gemm, SmallFloatsAccumulateInFloat32AndRoundOnce) {
  // 512 products of 1 in bfloat16: a sum rounded at every step would stop at 256
  const BufferRef a = param("A", kBFloat16, {1, 512}), b = param("B", kBFloat16, {512, 1}),
                  c = param("C", kBFloat16, {1, 1});
  const FunctionRef f = function(
      "main", {a, b, c},
      one_block({tile_op(TileOpcode::Gemm, {whole_region(a), whole_region(b), whole_region(c), false, false, true})}));
  std::vector<uint16_t> ones(512, 0x3f80), out(1);
  interp::run(f, {tensor(ones, {1, 512}), tensor(ones, {512, 1}), tensor(out, {1, 1})});
  EXPECT_EQ(float_value(out[0], kBFloat16), 512.0);
}

struct Reduction {
  TileOpcode op;
  double identity;
  double (*step)(double, double);
};

const Reduction kReductions[] = {
    {TileOpcode::ReduceSum, 0, [](double a, double b) { return a + b; }},
    {TileOpcode::ReduceProd, 1, [](double a, double b) { return a * b; }},
    {TileOpcode::ReduceMax, -kInfinity, [](double a, double b) { return std::max(a, b); }},
    {TileOpcode::ReduceMin, kInfinity, [](double a, double b) { return std::min(a, b); }},
    {TileOpcode::ReduceAbsMax, 0, [](double a, double b) { return std::max(a, std::fabs(b)); }},
};

void check_reduction(const Reduction& r, const std::vector<int64_t>& shape, int64_t dim, bool clear, bool keep) {
  const size_t d = static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(shape.size()) : dim);
  std::vector<int64_t> result = shape;
  result[d] = 1;
  if (!keep) result.erase(result.begin() + static_cast<std::ptrdiff_t>(d));
  const BufferRef a = param("A", kFloat32, shape), b = param("B", kFloat32, result);
  const FunctionRef f =
      function("main", {a, b}, one_block({tile_op(r.op, {whole_region(a), whole_region(b), dim, clear})}));
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < d; ++i) outer *= shape[i];
  for (size_t i = d + 1; i < shape.size(); ++i) inner *= shape[i];
  std::vector<float> in = small_numbers<float>(static_cast<size_t>(outer * inner * shape[d]), 8, -3, 3);
  std::vector<float> out = small_numbers<float>(static_cast<size_t>(outer * inner), 9);
  const std::vector<float> before = out;
  interp::run(f, {tensor(in, shape), tensor(out, result)});
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const size_t at = static_cast<size_t>(o * inner + i);
      double expected = clear ? r.identity : before[at];
      for (int64_t k = 0; k < shape[d]; ++k)
        expected = r.step(expected, in[static_cast<size_t>((o * shape[d] + k) * inner + i)]);
      ASSERT_EQ(out[at], expected) << row_of(r.op).name;
    }
  }
}

TEST(Reduce, FoldsOneDimension) {
  for (const Reduction& r : kReductions) {
    for (bool clear : {true, false}) {
      for (bool keep : {true, false}) {
        for (int64_t dim : {0, 1, 2, -1, -3}) check_reduction(r, {3, 5, 2}, dim, clear, keep);
        check_reduction(r, {7}, 0, clear, keep);
        check_reduction(r, {4, 0}, 1, clear, keep);
        check_reduction(r, {0, 4}, 1, clear, keep);
        check_reduction(r, {2, 1}, -1, clear, keep);
      }
    }
  }
}

TEST(Reduce, AnyAndAll) {
  const BufferRef a = param("A", kBool, {4, 3}), any = param("any", kBool, {4}), all = param("all", kBool, {4});
  const FunctionRef f =
      function("main", {a, any, all},
               one_block({tile_op(TileOpcode::ReduceAny, {whole_region(a), whole_region(any), int64_t{1}, true}),
                          tile_op(TileOpcode::ReduceAll, {whole_region(a), whole_region(all), int64_t{1}, true})}));
  std::vector<uint8_t> in = {0, 0, 0, 1, 0, 0, 1, 1, 1, 0, 1, 1}, x(4, 9), y(4, 9);
  interp::run(f, {tensor(in, {4, 3}), tensor(x, {4}), tensor(y, {4})});
  EXPECT_EQ(x, (std::vector<uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(y, (std::vector<uint8_t>{0, 0, 1, 0}));
}

TEST(Reduce, NaNStays) {
  for (TileOpcode op :
       {TileOpcode::ReduceMax, TileOpcode::ReduceMin, TileOpcode::ReduceAbsMax, TileOpcode::ReduceSum}) {
    const BufferRef a = param("A", kFloat32, {3}), b = param("B", kFloat32, {1});
    const FunctionRef f =
        function("main", {a, b}, one_block({tile_op(op, {whole_region(a), whole_region(b), int64_t{0}, true})}));
    std::vector<float> in = {1, NAN, 2}, out(1);
    interp::run(f, {tensor(in, {3}), tensor(out, {1})});
    EXPECT_TRUE(std::isnan(out[0])) << row_of(op).name;
  }
}

TEST(Reduce, IntegersWrapAndIdentitiesAreExtremes) {
  const BufferRef a = param("A", kInt8, {3}), b = param("B", kInt8, {1}), none = param("none", kInt8, {1, 0});
  const auto reduce_to = [&](TileOpcode op, const BufferRef& src) {
    const int64_t dim = src == none ? 1 : 0;
    const FunctionRef f =
        function("main", {a, b, none}, one_block({tile_op(op, {whole_region(src), whole_region(b), dim, true})}));
    std::vector<int8_t> in = {100, 100, -7}, out(1), nothing(1);
    interp::run(f, {tensor(in, {3}), tensor(out, {1}), tensor(nothing, {1, 0})});
    return static_cast<int>(out[0]);
  };
  EXPECT_EQ(reduce_to(TileOpcode::ReduceSum, a), 193 - 256);
  EXPECT_EQ(reduce_to(TileOpcode::ReduceProd, a), static_cast<int8_t>(-70000));
  EXPECT_EQ(reduce_to(TileOpcode::ReduceMax, none), -128);
  EXPECT_EQ(reduce_to(TileOpcode::ReduceMin, none), 127);
  EXPECT_EQ(reduce_to(TileOpcode::ReduceAbsMax, a), 100);
}

TEST(Reduce, SmallFloatsAccumulateInFloat32AndRoundOnce) {
  const BufferRef a = param("A", kHalf, {4096}), b = param("B", kHalf, {1});
  const FunctionRef f =
      function("main", {a, b},
               one_block({tile_op(TileOpcode::ReduceSum, {whole_region(a), whole_region(b), int64_t{0}, true})}));
  std::vector<uint16_t> ones(4096, 0x3c00), out(1);
  interp::run(f, {tensor(ones, {4096}), tensor(out, {1})});
  EXPECT_EQ(float_value(out[0], kHalf), 4096.0);  // rounded at every step it would stop at 2048
}

void check_scan(const std::vector<int64_t>& shape, int64_t dim, bool reverse) {
  const size_t d = static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(shape.size()) : dim);
  const BufferRef a = param("A", kFloat32, shape), b = param("B", kFloat32, shape);
  const auto scan = [&](const BufferRef& from, const BufferRef& to) {
    return tile_op(TileOpcode::Cumsum, {whole_region(from), whole_region(to), dim, reverse});
  };
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < d; ++i) outer *= shape[i];
  for (size_t i = d + 1; i < shape.size(); ++i) inner *= shape[i];
  std::vector<float> in = small_numbers<float>(static_cast<size_t>(outer * inner * shape[d]), 8, -3, 3);
  const std::vector<float> before = in;
  std::vector<float> out(in.size());
  // B from A, then A over itself.
  interp::run(function("main", {a, b}, one_block({scan(a, b), scan(a, a)})), {tensor(in, shape), tensor(out, shape)});
  EXPECT_EQ(in, out);
  for (int64_t at = 0; at < outer * inner * shape[d]; ++at) {
    const int64_t k = at / inner % shape[d];
    float expected = 0;
    for (int64_t j = reverse ? k : 0; j < (reverse ? shape[d] : k + 1); ++j) {
      expected += before[static_cast<size_t>(at + (j - k) * inner)];
    }
    ASSERT_EQ(out[static_cast<size_t>(at)], expected) << "element " << at;
  }
}

TEST(Scan, SumsUpToEachElement) {
  for (bool reverse : {false, true}) {
    for (int64_t dim : {0, 1, 2, -1, -3}) check_scan({3, 5, 2}, dim, reverse);
    check_scan({7}, 0, reverse);
    check_scan({4, 0}, 1, reverse);
    check_scan({0, 4}, 1, reverse);
  }
}

TEST(Scan, SmallFloatsAccumulateInFloat32AndRoundOnce) {
  const BufferRef a = param("A", kBFloat16, {600});
  std::vector<uint16_t> ones(600, 0x3f80);
  interp::run(function("main", {a},
                       one_block({tile_op(TileOpcode::Cumsum, {whole_region(a), whole_region(a), int64_t{0}, false})})),
              {tensor(ones, {600})});
  EXPECT_EQ(ones[255], 0x4380);  // 256
  EXPECT_EQ(ones[511], 0x4400);  // 512, which sums of bfloat16 never reach
}

TEST(Atomic, EachElementIsCombinedOnce) {
  const BufferRef a = param("A", kInt32, {2, 3}), b = param("B", kInt32, {3});
  const Stmt rows = tile_op(TileOpcode::AtomicAdd, {box(a, {{idx(1), -1}, {idx(0), 3}}), whole_region(b)});
  const Stmt most = tile_op(TileOpcode::AtomicMax, {whole_region(a), int_imm(4, kInt32)});
  const Stmt least = tile_op(TileOpcode::AtomicMin, {box(a, {{idx(0), 2}, {idx(1), 1}}), int_imm(5, kInt32)});
  const Stmt one = store(a, {idx(0), idx(2)}, int_imm(3, kInt32), {}, StoreMode::AtomicAdd);
  std::vector<int32_t> x = {1, 9, 3, 4, 5, 6}, y = {10, 20, 30};
  interp::run(function("main", {a, b}, one_block({rows, most, least, one})), {tensor(x, {2, 3}), tensor(y, {3})});
  EXPECT_EQ(x, (std::vector<int32_t>{4, 5, 7, 14, 5, 36}));
}

}  // namespace
}  // namespace helve::testing
