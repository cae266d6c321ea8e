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
    : buffer_(region.buffer),
      slot_(scope.slot(*region.buffer)),
      site_{span, scope.statement},
      check_(scope.options().check_bounds) {
  for (const Range& r : region.ranges) {
    ranges_.push_back({prepare(r.begin, scope), prepare(r.extent, scope), r.point});
  }
}

std::vector<int64_t> RegionCode::begin(Frame& frame) const {
  std::vector<int64_t> out;
  for (const RangeCode& range : ranges_) out.push_back(range.begin->eval(frame).i);
  return out;
}

View RegionCode::view(Frame& frame, PastEnd past_end) const {
  View view{&instance(frame), 0, {}, false, frame.trace, &site_};
  if (frame.trace) frame.trace->make_current();
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
      if (begins[d] < 0) out_of_bounds(*buffer_, d, begins[d], limit, site_.span);
      if (!padded && begins[d] + extents[d] > limit) {
        out_of_bounds(*buffer_, d, std::max(begins[d], limit), limit, site_.span);
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

/// The elements through the trace of the view; those without a value are reported, or marked when there is an `origin`
/// to tell by.
Elements gather_checked(const View& view, DType to, const Span& span, Scalar pad, Origin* origin) {
  Elements out{std::vector<Scalar>(static_cast<size_t>(view.size()), pad), {}};
  const Converter converter = view.dtype() == to ? nullptr : converter_of(view.dtype(), to);
  const auto read = [&](int64_t i, int64_t offset) {
    if (origin) *origin = {};
    const Scalar value = view.trace->read(*view.instance, offset, *view.site, origin);
    out.values[static_cast<size_t>(i)] = converter ? converter(value, to, span) : value;
    if (!origin || !origin->instance) return;
    if (out.undefined.empty()) out.undefined.resize(out.values.size());
    out.undefined[static_cast<size_t>(i)] = true;
  };
  for_each_element(view, read, [](int64_t) {});
  return out;
}

}  // namespace

std::vector<Scalar> gather(const View& view, DType to, const Span& span, Scalar pad) {
  if (view.trace) return gather_checked(view, to, span, pad, nullptr).values;
  std::vector<Scalar> out(static_cast<size_t>(view.size()), pad);
  const Instance& instance = *view.instance;
  const auto skip = [](int64_t) {};
  if (view.dtype() == to) {
    for_each_element(
        view, [&](int64_t i, int64_t offset) { out[static_cast<size_t>(i)] = instance.read(offset); }, skip);
    return out;
  }
  const Converter converter = converter_of(view.dtype(), to);
  for_each_element(
      view,
      [&](int64_t i, int64_t offset) { out[static_cast<size_t>(i)] = converter(instance.read(offset), to, span); },
      skip);
  return out;
}

Elements gather_for(const Buffer& target, const View& view, DType to, const Span& span, Scalar pad) {
  Origin origin;
  if (view.trace && target.scope != MemoryScope::Param) return gather_checked(view, to, span, pad, &origin);
  return {gather(view, to, span, pad), {}};
}

void copy_block(const Elements& from, int64_t from_at, int64_t count, Elements& to, int64_t to_at) {
  std::copy_n(from.values.begin() + from_at, count, to.values.begin() + to_at);
  if (from.undefined.empty()) return;
  to.undefined.resize(to.values.size());
  std::copy_n(from.undefined.begin() + from_at, count, to.undefined.begin() + to_at);
}

void scatter(const View& view, const Elements& elements, DType from, const Span& span) {
  if (!view.trace) return scatter(view, elements.values, from, span);
  const DType to = view.dtype();
  const Converter converter = converter_of(from, to);
  const auto write = [&](int64_t linear, int64_t offset) {
    const size_t i = static_cast<size_t>(linear);
    view.trace->write(*view.instance, offset, converter(elements.values[i], to, span), *view.site,
                      !elements.undefined.empty() && elements.undefined[i]);
  };
  for_each_element(view, write, [](int64_t) {});
}

void update(const View& view, const std::vector<Scalar>& values, StoreMode mode, const Span& span) {
  const Fold combine(combining_operator(mode), evaluation_dtype(view.dtype()), span);
  for_each_element(
      view,
      [&](int64_t linear, int64_t offset) {
        const Scalar value = values[static_cast<size_t>(linear)];
        if (view.trace) {
          view.trace->update(*view.instance, offset, value, combine, mode, *view.site);
        } else {
          view.instance->write(offset, combine(view.instance->read(offset), value));
        }
      },
      [](int64_t) {});
}

void scatter(const View& view, const std::vector<Scalar>& values, DType from, const Span& span) {
  if (view.trace) return scatter(view, Elements{values, {}}, from, span);
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
