// Boxes of buffers as lists of values.
// Every tile operation gathers its operands, computes, and scatters its result, so it reads all before it stores
// anything.
#pragma once

#include <vector>

#include "expr_code.h"

namespace helve::interp {

/// One kept dimension of a view: elements from `valid` on lie past the end of what may be touched.
struct ViewDim {
  int64_t extent;
  int64_t stride;
  int64_t valid;
};

/// A box of an instance. Elements that are not valid read as a pad and are not written.
struct View {
  Instance* instance;
  int64_t base = 0;
  std::vector<ViewDim> dims;
  bool nothing_valid = false;
  Trace* trace = nullptr;      ///< who accesses it, in a checked run
  const Site* site = nullptr;  ///< where

  std::vector<int64_t> shape() const;
  int64_t size() const;
  DType dtype() const { return instance->dtype(); }
};

/// Is what lies past the end of a parameter padding, or a fault?
enum class PastEnd { Refused, Padded };

/// A region prepared for running.
class RegionCode {
 public:
  RegionCode(const Region& region, Scope& scope, const Span& span);

  /// The box on this executor; OutOfBounds where it leaves the buffer and may not.
  View view(Frame& frame, PastEnd past_end = PastEnd::Refused) const;
  /// Where it begins on this executor.
  std::vector<int64_t> begin(Frame& frame) const;
  const Buffer& buffer() const { return *buffer_; }
  Instance& instance(Frame& frame) const { return *frame.buffers[slot_]; }
  const Site& site() const { return site_; }
  size_t slot() const { return slot_; }

 private:
  struct RangeCode {
    ExprCodeRef begin;
    ExprCodeRef extent;
    bool point;
  };
  BufferRef buffer_;
  size_t slot_;
  std::vector<RangeCode> ranges_;
  Site site_;
  bool check_;
};

/// The elements row-major, converted to `to`; what is not valid is `pad`, a value of `to`.
std::vector<Scalar> gather(const View& view, DType to, const Span& span, Scalar pad = of_int(0));

/// Stores `values`, of dtype `from`, converted to the dtype of the view.
void scatter(const View& view, const std::vector<Scalar>& values, DType from, const Span& span);

/// Elements on their way from one buffer to another. `undefined` marks those without a value; it is empty when all have
/// one.
struct Elements {
  std::vector<Scalar> values;
  std::vector<bool> undefined;
};

/// As gather, for a copy to `target`: elements without a value may be copied, but not to a parameter.
Elements gather_for(const Buffer& target, const View& view, DType to, const Span& span, Scalar pad = of_int(0));
void scatter(const View& view, const Elements& elements, DType from, const Span& span);

/// Combines each element with a value as an atomic store does; `values` are of the dtype of the view.
void update(const View& view, const std::vector<Scalar>& values, StoreMode mode, const Span& span);

/// Copies `count` elements from position `from_at` to position `to_at`.
void copy_block(const Elements& from, int64_t from_at, int64_t count, Elements& to, int64_t to_at);

/// `shape` without its extents of 1.
std::vector<int64_t> squeezed(const std::vector<int64_t>& shape);

/// The product of the extents.
int64_t product(const std::vector<int64_t>& shape);

}  // namespace helve::interp
