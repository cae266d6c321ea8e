// The checks of a call.
// The common path only compares numbers; texts are built after a check has failed.
#include "arguments.h"

#include <fmt/format.h>

#include <bit>
#include <limits>
#include <optional>
#include <type_traits>

#include "helve/runtime/minifloat.h"
#include "helve/support/diagnostic.h"
#include "helve/support/inline_vector.h"
#include "helve/support/round_to_odd.h"
#include "helve/support/sorted.h"
#include "helve/support/strided_box.h"
#include "helve/support/text.h"

namespace helve::runtime {

namespace {

std::string names_text(const auto& params) {
  return params.empty() ? "none" : join(params, ", ", [](const auto& p) { return p.name; });
}

/// The product of non-negative numbers, or the largest int64: no memory has as many elements.
int64_t saturating_product(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

class Binder {
 public:
  Binder(const Plan& plan, std::span<const TensorArgument> tensors, std::span<const ScalarArgument> scalars,
         Frame& frame, ArgumentMemory memory)
      : plan_(plan), tensors_(tensors), scalars_(scalars), frame_(frame), memory_(memory) {}

  void run() {
    check_counts();
    std::fill(frame_.setters.begin(), frame_.setters.end(), 0);
    for (size_t s = 0; s < scalars_.size(); ++s) bind_scalar(s);
    for (size_t p = 0; p < tensors_.size(); ++p) bind_extents(p);
    for (size_t p = 0; p < tensors_.size(); ++p) check_tensor(p);
    check_overlap();
  }

 private:
  const TensorParam& param(size_t p) const { return plan_.params[p]; }
  const DLTensor& tensor(size_t p) const { return *tensors_[p].tensor; }
  std::span<const int64_t> shape(size_t p) const { return {tensor(p).shape, static_cast<size_t>(tensor(p).ndim)}; }
  int64_t value(const ScalarProgram& program) const { return evaluate(program, frame_.slots, &plan_.slots); }

  void check_counts() const {
    if (tensors_.size() != plan_.params.size()) {
      throw UserError(Code::ArgumentCount, {},
                      {{"kernel", plan_.name},
                       {"expected", static_cast<int64_t>(plan_.params.size())},
                       {"given", static_cast<int64_t>(tensors_.size())},
                       {"parameters", names_text(plan_.params)}});
    }
    if (scalars_.size() != plan_.scalar_params.size()) {
      throw UserError(Code::ScalarArgumentCount, {},
                      {{"kernel", plan_.name},
                       {"expected", static_cast<int64_t>(plan_.scalar_params.size())},
                       {"given", static_cast<int64_t>(scalars_.size())},
                       {"parameters", names_text(plan_.scalar_params)}});
    }
  }

  void bind_scalar(size_t s);

  /// dtype, rank, device, signs, and the slots that the extents set.
  void bind_extents(size_t p) {
    const TensorParam& expected = param(p);
    HELVE_CHECK(tensors_[p].tensor != nullptr, "a call with a null tensor");
    const DLTensor& given = tensor(p);
    if (given.dtype != expected.dtype) {
      throw UserError(
          Code::ArgumentDType, {},
          {{"parameter", expected.name}, {"expected", to_text(expected.dtype)}, {"given", to_text(given.dtype)}});
    }
    if (given.ndim != static_cast<int64_t>(expected.dims.size())) {
      throw UserError(Code::ArgumentRank, {},
                      {{"parameter", expected.name},
                       {"expected", static_cast<int64_t>(expected.dims.size())},
                       {"given", int64_t{given.ndim}}});
    }
    if (memory_ == ArgumentMemory::HostOnly && !is_host_memory(given.device)) {
      throw UserError(Code::ArgumentDevice, {},
                      {{"kernel", plan_.name}, {"parameter", expected.name}, {"given", to_text(given.device)}});
    }
    for (size_t d = 0; d < expected.dims.size(); ++d) {
      const int64_t extent = given.shape[d];
      if (extent < 0) {
        throw UserError(Code::NegativeArgumentExtent, {},
                        {{"dim", static_cast<int64_t>(d)}, {"parameter", expected.name}, {"given", extent}});
      }
      if (extent > kLargestExtent) {
        throw UserError(Code::ArgumentExtent, {},
                        {{"dim", static_cast<int64_t>(d)},
                         {"parameter", expected.name},
                         {"given", extent},
                         {"limit", kLargestExtent}});
      }
      if (const auto* bind = std::get_if<BindSlot>(&expected.dims[d]))
        bind_slot(p, d, bind->slot, extent * bind->elements);
    }
  }

  void bind_slot(size_t p, size_t d, int64_t slot, int64_t extent) {
    int32_t& setter = frame_.setters[static_cast<size_t>(slot)];
    int64_t& bound = frame_.slots[static_cast<size_t>(slot)];
    if (setter == 0) {
      setter = static_cast<int32_t>(p) + 1;
      bound = extent;
    } else if (bound != extent) {
      const std::string& origin = setter > 0 ? param(static_cast<size_t>(setter - 1)).name
                                             : plan_.scalar_params[static_cast<size_t>(-setter - 1)].name;
      throw UserError(Code::InconsistentExtent, {},
                      {{"dim", static_cast<int64_t>(d)},
                       {"parameter", param(p).name},
                       {"variable", to_text(ScalarProgram::slot(slot), &plan_.slots)},
                       {"origin", fmt::format("'{}'", origin)},
                       {"expected", bound},
                       {"given", extent}});
    }
  }

  /// Shape, strides, writability, data and alignment; fills the buffer's state.
  void check_tensor(size_t p) {
    const TensorParam& expected = param(p);
    const DLTensor& given = tensor(p);
    int64_t elements = 1;
    for (size_t d = 0; d < expected.dims.size(); ++d) {
      const auto* program = std::get_if<ScalarProgram>(&expected.dims[d]);
      if (program != nullptr && value(*program) != given.shape[d]) shape_error(p, d, value(*program));
      elements = saturating_product(elements, given.shape[d]);
    }
    BufferState& state = frame_.buffers[p];
    const int64_t bytes = element_bytes(expected.dtype);
    state = {static_cast<std::byte*>(given.data) + given.byte_offset, 0, 0, 0, true};
    if (tensors_[p].read_only && expected.written)
      throw UserError(Code::ReadOnlyArgument, {}, {{"parameter", expected.name}});
    if (elements == 0) return;
    if (given.data == nullptr) {
      throw UserError(Code::MissingData, {}, {{"parameter", expected.name}, {"elements", elements}});
    }
    check_strides(p);
    bool fits = !__builtin_add_overflow(state.high, bytes, &state.high);
    for (size_t d = 0; d < expected.dims.size() && fits; ++d) {
      int64_t reach = 0;
      fits = !__builtin_mul_overflow(given.shape[d] - 1, stride(p, d), &reach) &&
             !__builtin_mul_overflow(reach, bytes, &reach);
      int64_t& end = reach < 0 ? state.low : state.high;
      fits = fits && !__builtin_add_overflow(end, reach, &end);
    }
    if (!fits) throw UserError(Code::ArgumentSpan, {}, {{"parameter", expected.name}});
    if (expected.written && !expected.strides.empty()) check_separate(p);
    const int64_t alignment = std::has_single_bit(static_cast<uint64_t>(bytes)) ? bytes : 1;
    if (reinterpret_cast<uintptr_t>(state.base) % static_cast<uintptr_t>(alignment) != 0) {
      throw UserError(Code::MisalignedArgument, {}, {{"parameter", expected.name}, {"alignment", alignment}});
    }
    if (expected.sorted && is_host_memory(given.device)) check_order(p);
  }

  /// The argument's stride of dimension d, 0 where the dimension has one element.
  int64_t stride(size_t p, size_t d) const {
    const DLTensor& given = tensor(p);
    if (given.shape[d] == 1) return 0;
    if (given.strides != nullptr) return given.strides[d];
    return compact_stride(p, d);
  }

  int64_t compact_stride(size_t p, size_t d) const {
    int64_t stride = 1;
    for (size_t e = shape(p).size(); --e > d;) stride = saturating_product(stride, shape(p)[e]);
    return stride;
  }

  int64_t expected_stride(size_t p, size_t d) const {
    return param(p).strides.empty() ? compact_stride(p, d) : value(param(p).strides[d]);
  }

  void check_strides(size_t p) const {
    if (param(p).strides.empty() && tensor(p).strides == nullptr) return;
    int64_t compact = 1;
    for (size_t d = shape(p).size(); d-- > 0; compact = saturating_product(compact, shape(p)[d])) {
      if (shape(p)[d] == 1) continue;
      const int64_t expected = param(p).strides.empty() ? compact : value(param(p).strides[d]);
      const int64_t given = tensor(p).strides != nullptr ? tensor(p).strides[d] : compact;
      if (expected != given) strides_error(p);
    }
  }

  /// The argument's strides, also for dimensions of one element.
  std::vector<int64_t> given_strides(size_t p) const {
    std::vector<int64_t> out;
    for (size_t d = 0; d < shape(p).size(); ++d) {
      out.push_back(tensor(p).strides != nullptr ? tensor(p).strides[d] : compact_stride(p, d));
    }
    return out;
  }

  [[noreturn]] void strides_error(size_t p) const {
    std::vector<int64_t> expected;
    for (size_t d = 0; d < shape(p).size(); ++d) expected.push_back(expected_stride(p, d));
    const std::vector<int64_t> given = given_strides(p);
    std::vector<std::string> fixes;
    if (!param(p).strides.empty()) fixes.push_back(strides_remedy(expected, given));
    throw UserError(Code::ArgumentStrides, {},
                    {{"parameter", param(p).name}, {"expected", shape_text(expected)}, {"given", shape_text(given)}},
                    {}, std::move(fixes));
  }

  /// Elements of a written tensor have different addresses; without declared strides it is compact.
  void check_separate(size_t p) const {
    InlineVector<int64_t, 8> strides;
    for (size_t d = 0; d < shape(p).size(); ++d) strides.push_back(stride(p, d));
    const std::span<const int64_t> given(strides.data(), strides.size());
    if (strides_nest(shape(p), given)) return;
    const Separation found = separation(shape(p), given);
    if (found.kind == Separation::Apart) return;
    throw UserError(
        Code::ArgumentStridesOverlap, {},
        {{"parameter", param(p).name}, {"strides", shape_text(given_strides(p))}, {"fault", fault_text(found)}});
  }

  void check_order(size_t p) const {
    const DLDataType dtype = param(p).dtype;
    const std::optional<int64_t> less =
        first_decrease(frame_.buffers[p].base, shape(p)[0], stride(p, 0), element_bytes(dtype), dtype.code == kDLInt);
    if (less) throw UserError(Code::UnsortedArgument, {}, {{"parameter", param(p).name}, {"index", *less}});
  }

  [[noreturn]] void shape_error(size_t p, size_t dim, int64_t expected) const {
    std::vector<int64_t> wanted;
    for (size_t d = 0; d < shape(p).size(); ++d) {
      const auto* program = std::get_if<ScalarProgram>(&param(p).dims[d]);
      wanted.push_back(program != nullptr ? value(*program) : shape(p)[d]);
    }
    throw UserError(Code::ArgumentShape, {},
                    {{"dim", static_cast<int64_t>(dim)},
                     {"parameter", param(p).name},
                     {"expected", expected},
                     {"given", shape(p)[dim]},
                     {"shape", shape_text(wanted)}});
  }

  bool may_alias(size_t a, size_t b) const {
    auto names = [&](size_t from, size_t to) {
      const auto& list = param(from).may_alias;
      return std::find(list.begin(), list.end(), static_cast<int64_t>(to)) != list.end();
    };
    return names(a, b) || names(b, a);
  }

  void check_overlap() const {
    for (size_t b = 1; b < tensors_.size(); ++b) {
      for (size_t a = 0; a < b; ++a) {
        if (!param(a).written && !param(b).written) continue;
        const BufferState &x = frame_.buffers[a], &y = frame_.buffers[b];
        if (x.high == x.low || y.high == y.low || x.base + x.high <= y.base + y.low ||
            y.base + y.high <= x.base + x.low)
          continue;
        if (may_alias(a, b) || !meet(a, b)) continue;
        throw UserError(
            Code::OverlappingArguments, {},
            {{"first", param(a).name}, {"second", param(b).name}, {"written", param(param(b).written ? b : a).name}});
      }
    }
  }

  bool meet(size_t a, size_t b) const {
    std::vector<int64_t> strides[2];
    for (size_t side = 0; side < 2; ++side) {
      const size_t p = side == 0 ? a : b;
      for (size_t d = 0; d < shape(p).size(); ++d)
        strides[side].push_back(stride(p, d) * element_bytes(param(p).dtype));
    }
    return share_memory({frame_.buffers[a].base, shape(a), strides[0], element_bytes(param(a).dtype)},
                        {frame_.buffers[b].base, shape(b), strides[1], element_bytes(param(b).dtype)});
  }

  const Plan& plan_;
  std::span<const TensorArgument> tensors_;
  std::span<const ScalarArgument> scalars_;
  Frame& frame_;
  ArgumentMemory memory_;
};

struct IntegerRange {
  int64_t low, high;
};

IntegerRange integer_range(DLDataType dtype) {
  if (dtype.code == kDLBool) return {0, 1};
  const int bits = dtype.bits;
  if (dtype.code == kDLUInt) return {0, bits >= 63 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << bits) - 1};
  if (bits >= 64) return {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  return {-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1};
}

/// The bits of a float parameter, zero-extended; nullopt if the dtype is not that of a float scalar.
std::optional<int64_t> float_bits(DLDataType dtype, double value) {
  const float narrow = round_to_odd(value);
  switch (dtype.code << 8 | dtype.bits) {
    case kDLFloat << 8 | 64: return std::bit_cast<int64_t>(value);
    case kDLFloat << 8 | 32: return std::bit_cast<uint32_t>(static_cast<float>(value));
    case kDLFloat << 8 | 16: return Float16::encode(narrow);
    case kDLBfloat << 8 | 16: return BFloat16::encode(narrow);
    case kDLFloat8_e4m3fn << 8 | 8: return Float8E4M3Fn::encode(narrow);
    case kDLFloat8_e5m2 << 8 | 8: return Float8E5M2::encode(narrow);
    default: return std::nullopt;
  }
}

void Binder::bind_scalar(size_t s) {
  const ScalarParam& expected = plan_.scalar_params[s];
  const bool integer =
      expected.dtype.code == kDLInt || expected.dtype.code == kDLUInt || expected.dtype.code == kDLBool;
  int64_t& slot = frame_.slots[static_cast<size_t>(expected.slot)];
  frame_.setters[static_cast<size_t>(expected.slot)] = -static_cast<int32_t>(s) - 1;
  const auto* whole = std::get_if<int64_t>(&scalars_[s]);
  if (!integer) {
    const bool narrows = expected.dtype.bits < 64;
    const double real = std::visit(
        [&](auto number) {
          if constexpr (std::is_integral_v<decltype(number)>) {
            if (narrows) return round_to_odd(number);
          }
          return static_cast<double>(number);
        },
        scalars_[s]);
    const auto bits = float_bits(expected.dtype, real);
    HELVE_CHECK(bits.has_value(), fmt::format("a scalar parameter of {}", to_text(expected.dtype)));
    slot = *bits;
    return;
  }
  const auto* large = std::get_if<uint64_t>(&scalars_[s]);
  const bool is_uint64 = expected.dtype.code == kDLUInt && expected.dtype.bits == 64;
  if (large != nullptr && is_uint64 && !expected.is_index) {
    slot = std::bit_cast<int64_t>(*large);
    return;
  }
  const auto kind = [&] { return expected.is_index && !is_uint64 ? "index" : to_text(expected.dtype); };
  if (whole == nullptr && large == nullptr) {
    throw UserError(
        Code::ScalarArgumentType, {},
        {{"parameter", expected.name}, {"expected", kind()}, {"given", float_text(std::get<double>(scalars_[s]))}});
  }
  const IntegerRange range = integer_range(expected.dtype);
  if (large != nullptr || *whole < range.low || *whole > range.high) {
    throw UserError(
        Code::ScalarArgumentRange, {},
        {{"parameter", expected.name},
         {"expected", kind() + (large != nullptr && is_uint64 ? " used as an index" : "")},
         {"given", large != nullptr ? fmt::format("{}", *large) : fmt::format("{}", *whole)},
         {"low", range.low},
         {"high", is_uint64 && !expected.is_index ? fmt::format("{}", ~uint64_t{0}) : fmt::format("{}", range.high)}});
  }
  slot = *whole;
}

}  // namespace

void bind_arguments(const Plan& plan, std::span<const TensorArgument> tensors, std::span<const ScalarArgument> scalars,
                    int64_t multiprocessors, Frame& frame, ArgumentMemory memory) {
  if (plan.multiprocessors) frame.slots[static_cast<size_t>(*plan.multiprocessors)] = multiprocessors;
  Binder(plan, tensors, scalars, frame, memory).run();
}

}  // namespace helve::runtime
