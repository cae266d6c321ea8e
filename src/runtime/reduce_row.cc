// The element loops of collectives.
// One loop per dtype and operation; the accumulator is wide for narrow floats, so that a sum is rounded once.
#include "reduce_row.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "helve/runtime/minifloat.h"

namespace helve::runtime {

namespace {

constexpr int64_t kPiece = 512;    ///< elements that are accumulated at a time
constexpr int64_t kStream = 4096;  ///< elements after which further targets are written

template <class T>
struct Plain {
  using Value = T;
  using Stored = T;
  static T load(T stored) { return stored; }
  static T store(T value) { return value; }
};

template <class Format, class Bits>
struct Narrow {
  using Value = float;
  using Stored = Bits;
  static float load(Bits stored) { return Format::decode(stored); }
  static Bits store(float value) { return static_cast<Bits>(Format::encode(value)); }
};

struct Truth {
  using Value = bool;
  using Stored = uint8_t;
  static bool load(uint8_t stored) { return stored != 0; }
  static uint8_t store(bool value) { return value; }
};

template <ReduceOp Op, class T>
T apply(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return Op == ReduceOp::Sum || Op == ReduceOp::Max ? (a || b) : (a && b);
  } else if constexpr (Op == ReduceOp::Sum || Op == ReduceOp::Prod) {
    if constexpr (std::is_integral_v<T>) {  // modulo 2^n, without signed overflow
      const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
      return static_cast<T>(Op == ReduceOp::Sum ? x + y : x * y);
    } else {
      return Op == ReduceOp::Sum ? a + b : a * b;
    }
  } else {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a)) return a;
      if (std::isnan(b)) return b;
    }
    return (Op == ReduceOp::Max ? b > a : b < a) ? b : a;
  }
}

/// Calls `body(stride)`, with a constant stride if elements are adjacent, so that the loops are vectorized.
template <int64_t Size, class Body>
void with_stride(int64_t stride, Body&& body) {
  if (stride == Size) {
    body(std::integral_constant<int64_t, Size>());
  } else {
    body(stride);
  }
}

/// to[i] = a[i] op b[i], all adjacent. What is written may be what is read, element by element.
template <ReduceOp Op, class T>
void combine_rows(const std::byte* a, const std::byte* b, std::byte* to, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    T x, y;
    std::memcpy(&x, a + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    std::memcpy(&y, b + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    const T value = apply<Op, T>(x, y);
    std::memcpy(to + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
  }
}

/// Two adjacent rows of a type that needs no accumulator of another one: memory is read and written in one stream each.
template <ReduceOp Op, class T>
void reduce_two_rows(const SourceRows& sources, const TargetRows& targets, int64_t count) {
  for (int64_t begin = 0; begin < count; begin += kStream) {
    const int64_t n = std::min(kStream, count - begin), offset = begin * static_cast<int64_t>(sizeof(T));
    std::byte* first = targets.rows[0] + targets.offset + offset;
    combine_rows<Op, T>(sources.rows[0] + sources.offset + offset, sources.rows[1] + sources.offset + offset, first, n);
    for (std::byte* row : targets.rows.subspan(1))
      std::memcpy(row + targets.offset + offset, first, static_cast<size_t>(n) * sizeof(T));
  }
}

template <class Codec, ReduceOp Op>
void reduce_row(const SourceRows& sources, const TargetRows& targets, int64_t count) {
  using Value = typename Codec::Value;
  using Stored = typename Codec::Stored;
  if constexpr (std::is_same_v<Codec, Plain<Value>>) {
    constexpr auto kSize = static_cast<int64_t>(sizeof(Value));
    if (sources.rows.size() == 2 && sources.stride == kSize && targets.stride == kSize && !targets.rows.empty())
      return reduce_two_rows<Op, Value>(sources, targets, count);
  }
  std::array<Value, kPiece> sum;
  auto load = [](const std::byte* at) {
    Stored stored;
    std::memcpy(&stored, at, sizeof(Stored));
    return Codec::load(stored);
  };
  for (int64_t begin = 0; begin < count; begin += kPiece) {
    const int64_t n = std::min(kPiece, count - begin);
    with_stride<sizeof(Stored)>(sources.stride, [&](auto stride) {
      const int64_t offset = sources.offset + begin * stride;
      const std::byte* first = sources.rows[0] + offset;
      for (int64_t i = 0; i < n; ++i) sum[i] = load(first + i * stride);
      for (const std::byte* row : sources.rows.subspan(1)) {
        const std::byte* at = row + offset;
        for (int64_t i = 0; i < n; ++i) sum[i] = apply<Op, Value>(sum[i], load(at + i * stride));
      }
    });
    with_stride<sizeof(Stored)>(targets.stride, [&](auto stride) {
      for (std::byte* row : targets.rows) {
        std::byte* at = row + targets.offset + begin * stride;
        for (int64_t i = 0; i < n; ++i) {
          const Stored stored = Codec::store(sum[i]);
          std::memcpy(at + i * stride, &stored, sizeof(Stored));
        }
      }
    });
  }
}

template <class Codec>
ReduceRow select_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum: return reduce_row<Codec, ReduceOp::Sum>;
    case ReduceOp::Prod: return reduce_row<Codec, ReduceOp::Prod>;
    case ReduceOp::Max: return reduce_row<Codec, ReduceOp::Max>;
    case ReduceOp::Min: return reduce_row<Codec, ReduceOp::Min>;
  }
  return nullptr;
}

template <class T>
void copy_strided(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    T element;
    std::memcpy(&element, from + i * from_stride, sizeof(T));
    std::memcpy(to + i * to_stride, &element, sizeof(T));
  }
}

}  // namespace

ReduceRow find_reduce_row(DLDataType dtype, ReduceOp op) {
  if (dtype.lanes != 1) return nullptr;
  switch (dtype.code << 8 | dtype.bits) {
    case kDLInt << 8 | 8: return select_op<Plain<int8_t>>(op);
    case kDLInt << 8 | 16: return select_op<Plain<int16_t>>(op);
    case kDLInt << 8 | 32: return select_op<Plain<int32_t>>(op);
    case kDLInt << 8 | 64: return select_op<Plain<int64_t>>(op);
    case kDLUInt << 8 | 8: return select_op<Plain<uint8_t>>(op);
    case kDLUInt << 8 | 16: return select_op<Plain<uint16_t>>(op);
    case kDLUInt << 8 | 32: return select_op<Plain<uint32_t>>(op);
    case kDLUInt << 8 | 64: return select_op<Plain<uint64_t>>(op);
    case kDLBool << 8 | 8: return select_op<Truth>(op);
    case kDLFloat << 8 | 64: return select_op<Plain<double>>(op);
    case kDLFloat << 8 | 32: return select_op<Plain<float>>(op);
    case kDLFloat << 8 | 16: return select_op<Narrow<Float16, uint16_t>>(op);
    case kDLBfloat << 8 | 16: return select_op<Narrow<BFloat16, uint16_t>>(op);
    case kDLFloat8_e4m3fn << 8 | 8: return select_op<Narrow<Float8E4M3Fn, uint8_t>>(op);
    case kDLFloat8_e5m2 << 8 | 8: return select_op<Narrow<Float8E5M2, uint8_t>>(op);
    default: return nullptr;
  }
}

void copy_row(const SourceRows& source, const TargetRows& targets, int64_t count, int64_t element_bytes) {
  const std::byte* from = source.rows[0] + source.offset;
  for (std::byte* row : targets.rows) {
    std::byte* to = row + targets.offset;
    if (to == from && source.stride == targets.stride) continue;
    if (source.stride == element_bytes && targets.stride == element_bytes) {
      std::memcpy(to, from, static_cast<size_t>(count * element_bytes));
      continue;
    }
    switch (element_bytes) {
      case 1: copy_strided<uint8_t>(from, source.stride, to, targets.stride, count); break;
      case 2: copy_strided<uint16_t>(from, source.stride, to, targets.stride, count); break;
      case 4: copy_strided<uint32_t>(from, source.stride, to, targets.stride, count); break;
      case 8: copy_strided<uint64_t>(from, source.stride, to, targets.stride, count); break;
      case 16: copy_strided<std::array<uint64_t, 2>>(from, source.stride, to, targets.stride, count); break;
      default:
        for (int64_t i = 0; i < count; ++i) {
          std::memcpy(to + i * targets.stride, from + i * source.stride, static_cast<size_t>(element_bytes));
        }
    }
  }
}

}  // namespace helve::runtime
