// Element formats and instances of buffers.
// Reading and writing are functions chosen once for a buffer, so an access does not ask for its type.
#include "storage.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <numeric>

#include "helve/ir/expr/rounding.h"
#include "helve/support/diagnostic.h"

namespace helve::interp {

namespace {

template <class T>
T get(const std::byte* data, int64_t offset) {
  T v;
  std::memcpy(&v, data + offset * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return v;
}

template <class T>
void put(std::byte* data, int64_t offset, T v) {
  std::memcpy(data + offset * static_cast<int64_t>(sizeof(T)), &v, sizeof(T));
}

template <class T>
constexpr ElementFormat kInteger = {
    [](const std::byte* data, int64_t offset) { return of_int(static_cast<int64_t>(get<T>(data, offset))); },
    [](std::byte* data, int64_t offset, Scalar v) { put(data, offset, static_cast<T>(v.i)); }};

template <class T>
constexpr ElementFormat kFloat = {
    [](const std::byte* data, int64_t offset) { return of_float(get<T>(data, offset)); },
    [](std::byte* data, int64_t offset, Scalar v) { put(data, offset, static_cast<T>(v.f)); }};

constexpr ElementFormat kTruth = {
    [](const std::byte* data, int64_t offset) { return of_int(get<uint8_t>(data, offset) != 0); },
    [](std::byte* data, int64_t offset, Scalar v) { put(data, offset, static_cast<uint8_t>(v.i != 0)); }};

int64_t get_half(const std::byte* data, int64_t offset) {
  return get<uint8_t>(data, offset / 2) >> (offset % 2 * 4) & 0xf;
}

void put_half(std::byte* data, int64_t offset, uint64_t v) {
  const int shift = static_cast<int>(offset % 2) * 4;
  const uint8_t kept = get<uint8_t>(data, offset / 2) & static_cast<uint8_t>(0xf0 >> shift);
  put(data, offset / 2, static_cast<uint8_t>(kept | (v & 0xf) << shift));
}

constexpr ElementFormat kInteger4 = {
    [](const std::byte* data, int64_t offset) { return of_int(wrap_to(get_half(data, offset), {TypeCode::Int, 4})); },
    [](std::byte* data, int64_t offset, Scalar v) { put_half(data, offset, static_cast<uint64_t>(v.i)); }};

constexpr DType kFloat4{TypeCode::Float4E2M1, 4};
constexpr ElementFormat kFloatingPoint4 = {
    [](const std::byte* data, int64_t offset) {
      return of_float(float_value(static_cast<uint64_t>(get_half(data, offset)), kFloat4));
    },
    [](std::byte* data, int64_t offset, Scalar v) {
      put_half(data, offset, float_bits(round_to(v.f, kFloat4), kFloat4));
    }};

/// Float formats below 32 bits: U holds the bits, all values are tabulated.
template <TypeCode code, class U>
struct SmallFloat {
  static constexpr DType kType{code, 8 * sizeof(U)};

  static const std::vector<float>& values() {
    static const std::vector<float> table = [] {
      std::vector<float> out;
      for (uint64_t bits = 0; bits <= std::numeric_limits<U>::max(); ++bits) {
        out.push_back(static_cast<float>(float_value(bits, kType)));
      }
      return out;
    }();
    return table;
  }
  static Scalar read(const std::byte* data, int64_t offset) {
    static const float* table = values().data();
    return of_float(table[get<U>(data, offset)]);
  }
  static void write(std::byte* data, int64_t offset, Scalar v) {
    put(data, offset, static_cast<U>(float_bits(round_to(v.f, kType), kType)));
  }
  static constexpr ElementFormat kFormat = {read, write};
};

/// Beyond the memory of any machine; an allocator with checks ends the process when asked for more.
constexpr int64_t kMaxBytes = int64_t{1} << 39;

ElementFormat integer_format(int bits, bool is_signed) {
  switch (bits) {
    case 4: return kInteger4;
    case 8: return is_signed ? kInteger<int8_t> : kInteger<uint8_t>;
    case 16: return is_signed ? kInteger<int16_t> : kInteger<uint16_t>;
    case 32: return is_signed ? kInteger<int32_t> : kInteger<uint32_t>;
    default: return is_signed ? kInteger<int64_t> : kInteger<uint64_t>;
  }
}

}  // namespace

ElementFormat element_format(DType dtype) {
  switch (dtype.code) {
    case TypeCode::Bool: return kTruth;
    case TypeCode::Index:
    case TypeCode::Int: return integer_format(dtype.bits, true);
    case TypeCode::UInt: return integer_format(dtype.bits, false);
    case TypeCode::BFloat: return SmallFloat<TypeCode::BFloat, uint16_t>::kFormat;
    case TypeCode::Float8E4M3: return SmallFloat<TypeCode::Float8E4M3, uint8_t>::kFormat;
    case TypeCode::Float8E5M2: return SmallFloat<TypeCode::Float8E5M2, uint8_t>::kFormat;
    case TypeCode::Float4E2M1: return kFloatingPoint4;
    case TypeCode::Float:
      if (dtype.bits == 16) return SmallFloat<TypeCode::Float, uint16_t>::kFormat;
      return dtype.bits == 32 ? kFloat<float> : kFloat<double>;
  }
  __builtin_unreachable();
}

Scalar undefined_value(DType dtype) {
  if (dtype.is_float()) return of_float(std::numeric_limits<double>::quiet_NaN());
  if (dtype.is_bool()) return of_int(1);
  return of_int(extreme_int(dtype, dtype.is_signed()));
}

std::vector<int64_t> compact_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

void out_of_bounds(const Buffer& buffer, size_t dim, int64_t index, int64_t extent, const Span& span) {
  throw UserError(Code::OutOfBounds, span,
                  {{"index", index}, {"dim", static_cast<int64_t>(dim)}, {"buffer", buffer.name}, {"extent", extent}},
                  {declaration_note(buffer)});
}

Instance::Instance(BufferRef declaration)
    : declaration_(std::move(declaration)), format_(element_format(declaration_->dtype)) {}

void Instance::refer(void* data, std::vector<int64_t> shape, std::vector<int64_t> strides, bool fresh) {
  fresh_ = fresh;
  data_ = static_cast<std::byte*>(data);
  shape_ = std::move(shape);
  strides_ = std::move(strides);
}

void Instance::allocate(std::vector<int64_t> shape, const Span& span) {
  __int128 elements = 1;
  for (int64_t extent : shape) {
    if (extent < 0) throw UserError(Code::NegativeExtent, span, {{"extent", extent}});
    elements = std::min<__int128>(elements * extent, std::numeric_limits<int64_t>::max() / 8);
  }
  elements_ = static_cast<int64_t>(elements);
  const int64_t bytes = elements_ * dtype().bytes();
  const auto refuse = [&] {
    throw UserError(Code::OutOfMemory, span, {{"buffer", declaration_->name}, {"bytes", bytes}});
  };
  if (bytes > kMaxBytes) refuse();
  try {
    owned_.resize(static_cast<size_t>(bytes));
  } catch (const std::bad_alloc&) {
    refuse();
  }
  data_ = owned_.data();
  strides_ = compact_strides(shape);
  shape_ = std::move(shape);
  if (placed_) {
    allocated_ = span;
  } else if (shadow_) {
    shadow_->begin(0, elements_, span);
  }
  forget();
}

std::optional<std::pair<int64_t, int64_t>> Instance::reach() const {
  int64_t low = 0;
  int64_t high = 0;
  for (size_t d = 0; d < shape_.size(); ++d) {
    if (shape_[d] == 0) return {};
    (strides_[d] < 0 ? low : high) += (shape_[d] - 1) * strides_[d];
  }
  return data_ ? std::optional(std::pair(low, high)) : std::nullopt;
}

void Instance::watch(Clock& clock) {
  shadow_ = std::make_shared<Shadow>(clock);
  const auto ends = reach();
  if (!ends) return;
  const int64_t count = ends->second - ends->first + 1;
  fresh_ ? shadow_->begin(ends->first, count, {}) : shadow_->adopt(ends->first, count);
}

void Instance::watch(std::shared_ptr<Shadow> shadow, int64_t position, int64_t cells) {
  shadow_ = std::move(shadow);
  position_ = position;
  cells_ = cells;
}

void Instance::place(std::shared_ptr<Shadow> shadow, int64_t position, int64_t cells,
                     std::shared_ptr<const std::vector<int64_t>> addresses) {
  watch(std::move(shadow), position, cells);
  addresses_ = std::move(addresses);
  placed_ = true;
}

bool Instance::undefined(int64_t offset) const {
  const auto is_undefined = [&](const Cell& cell) {
    if (!placed_) return shadow_->undefined(cell);
    return cell.undefined || !shadow_->counts(cell.write) || cell.write.time < born_ || cell.write.name != this;
  };
  const std::span<Cell> all = cells(offset);
  return std::any_of(all.begin(), all.end(), is_undefined);
}

std::optional<std::pair<int64_t, int64_t>> Instance::unwritten() const {
  const auto ends = reach();
  if (!ends) return {};
  std::optional<std::pair<int64_t, int64_t>> out;
  for (int64_t offset = ends->first; offset <= ends->second; ++offset) {
    if (!undefined(offset)) continue;
    if (!out) out.emplace(offset, 0);
    ++out->second;
  }
  return out;
}

/// Digits of the offset in the strides, largest first. A negative stride counts from the dimension's end.
std::vector<int64_t> Instance::element_at(int64_t offset) const {
  std::vector<size_t> order(shape_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return std::abs(strides_[a]) > std::abs(strides_[b]); });
  std::vector<int64_t> at(shape_.size(), 0);
  for (size_t d : order) {
    if (strides_[d] < 0) offset -= (shape_[d] - 1) * strides_[d];
  }
  for (size_t d : order) {
    const int64_t stride = std::abs(strides_[d]);
    if (stride == 0) continue;
    const int64_t digit = std::min(offset / stride, shape_[d] - 1);
    offset -= digit * stride;
    at[d] = strides_[d] < 0 ? shape_[d] - 1 - digit : digit;
  }
  return at;
}

void Instance::forget(const Span* loop) {
  if (elements_ == 0) return;
  if (placed_) {
    if (loop) shadow_->forget(loop);  // which forgets all that was allocated around it
    born_ = shadow_->tick();
    forgotten_ = loop ? *loop : Span{};
  } else if (shadow_) {
    shadow_->forget(loop);
  }
  const Scalar value = undefined_value(dtype());
  if (dtype().bits < 8) {
    for (int64_t i = 0; i < elements_; ++i) write(i, value);
    return;
  }
  const size_t bytes = static_cast<size_t>(dtype().bytes());
  const size_t total = static_cast<size_t>(elements_) * bytes;
  write(0, value);
  for (size_t done = bytes; done < total; done *= 2) std::memcpy(data_ + done, data_, std::min(done, total - done));
}

}  // namespace helve::interp
