// Evaluation, reading and writing of regions.
// The rule of padding stands here once: only the end of a parameter, or of a core's block, may be passed.
#include "region.h"

#include <algorithm>
#include <iterator>

namespace helve::interp {

std::vector<int64_t> View::shape() const {
  std::vector<int64_t> out;
  for (const ViewDim& d : dims) out.push_back(d.extent);
  return out;
}

int64_t View::size() const { return product(shape()); }

int64_t product(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t extent : shape) n *= std::max<int64_t>(extent, 0);
  return n;
}

std::vector<int64_t> squeezed(const std::vector<int64_t>& shape) {
  std::vector<int64_t> out;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(out), [](int64_t e) { return e != 1; });
  return out;
}

RegionCode::RegionCode(const Region& region, Scope& scope, const Span& span)
    : buffer_(region.buffer), slot_(scope.slot(*region.buffer)), span_(span), check_(scope.options().check_bounds) {
  for (const Range& r : region.ranges) {
    ranges_.push_back({prepare(r.begin, scope), prepare(r.extent, scope), r.point});
  }
}

View RegionCode::view(Frame& frame, PastEnd past_end) const {
  View view{&instance(frame), 0, {}, false};
  std::vector<int64_t> begins;
  std::vector<int64_t> extents;
  for (const RangeCode& r : ranges_) {
    begins.push_back(r.begin->eval(frame).i);
    extents.push_back(std::max<int64_t>(r.extent->eval(frame).i, 0));
  }
  const bool touches = product(extents) > 0;
  const bool padded = past_end == PastEnd::Padded && is_global(*buffer_);
  for (size_t d = 0; d < ranges_.size(); ++d) {
    const int64_t limit = view.instance->extent(d);
    if (touches && (check_ || padded)) {
      if (begins[d] < 0) out_of_bounds(*buffer_, d, begins[d], limit, span_);
      if (!padded && begins[d] + extents[d] > limit) {
        out_of_bounds(*buffer_, d, std::max(begins[d], limit), limit, span_);
      }
    }
    const int64_t stride = view.instance->stride(d);
    const int64_t valid = padded ? std::clamp<int64_t>(limit - begins[d], 0, extents[d]) : extents[d];
    view.base += begins[d] * stride;
    if (!ranges_[d].point) view.dims.push_back({extents[d], stride, valid});
    if (valid == 0) view.nothing_valid = true;
  }
  return view;
}

namespace {

/// Calls `on_valid(linear, offset)` for each valid element and `on_pad(linear)` for every other, row-major.
template <class Valid, class Pad>
void for_each_element(const View& view, Valid&& on_valid, Pad&& on_pad) {
  const int64_t size = view.size();
  const size_t rank = view.dims.size();
  if (rank == 0) {
    view.nothing_valid ? on_pad(0) : on_valid(0, view.base);
    return;
  }
  const ViewDim last = view.dims.back();
  std::vector<int64_t> at(rank, 0);
  for (int64_t linear = 0; linear < size; linear += last.extent) {
    int64_t offset = view.base;
    bool valid = !view.nothing_valid;
    for (size_t d = 0; d + 1 < rank; ++d) {
      offset += at[d] * view.dims[d].stride;
      valid &= at[d] < view.dims[d].valid;
    }
    const int64_t reach = valid ? last.valid : 0;
    for (int64_t i = 0; i < reach; ++i) on_valid(linear + i, offset + i * last.stride);
    for (int64_t i = reach; i < last.extent; ++i) on_pad(linear + i);
    for (size_t d = rank - 1; d-- > 0;) {
      if (++at[d] < view.dims[d].extent) break;
      at[d] = 0;
    }
  }
}

}  // namespace

std::vector<Scalar> gather(const View& view, DType to, const Span& span, Scalar pad) {
  std::vector<Scalar> out(static_cast<size_t>(view.size()), pad);
  const Instance& instance = *view.instance;
  const auto skip = [](int64_t) {};
  if (view.dtype() == to) {
    for_each_element(view, [&](int64_t i, int64_t offset) { out[static_cast<size_t>(i)] = instance.read(offset); }, skip);
    return out;
  }
  const Converter converter = converter_of(view.dtype(), to);
  for_each_element(
      view,
      [&](int64_t i, int64_t offset) { out[static_cast<size_t>(i)] = converter(instance.read(offset), to, span); }, skip);
  return out;
}

void scatter(const View& view, const std::vector<Scalar>& values, DType from, const Span& span) {
  const DType to = view.dtype();
  const Converter converter = converter_of(from, to);
  for_each_element(
      view,
      [&](int64_t linear, int64_t offset) {
        view.instance->write(offset, converter(values[static_cast<size_t>(linear)], to, span));
      },
      [](int64_t) {});
}

}  // namespace helve::interp
