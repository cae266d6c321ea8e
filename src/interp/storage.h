// Memory of buffers while a program runs.
// Every access to memory goes through an Instance, so that what watches accesses has one place to stand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "helve/ir/tensor/buffer.h"
#include "scalar.h"
#include "shadow.h"

namespace helve::interp {

/// How elements of a dtype stand in memory. Values are those of the evaluation dtype; a write rounds or wraps. Offsets
/// count elements; int4 packs two in a byte, the even element in the low half.
struct ElementFormat {
  Scalar (*read)(const std::byte* data, int64_t offset);
  void (*write)(std::byte* data, int64_t offset, Scalar value);
};
ElementFormat element_format(DType dtype);

/// What memory holds before it is written: NaN, the least signed or greatest unsigned integer, true.
Scalar undefined_value(DType dtype);

/// Is told of each write to an instance, before it is made.
class WriteListener {
 public:
  virtual ~WriteListener() = default;
  virtual void before_write(int64_t offset) = 0;
};

/// One buffer in memory: an argument, or storage of its own. Logical elements only; the padding of a tile does not
/// exist here.
class Instance {
 public:
  explicit Instance(BufferRef declaration);

  /// Refers to memory of the caller, with contents or `fresh`. Strides count elements.
  void refer(void* data, std::vector<int64_t> shape, std::vector<int64_t> strides, bool fresh = false);
  /// Is it memory of the caller without contents?
  bool is_fresh() const { return fresh_; }

  /// Fresh undefined storage of this shape, row-major (NegativeExtent, OutOfMemory).
  void allocate(std::vector<int64_t> shape, const Span& span);

  /// Makes all contents undefined; `loop` is the loop that says so, when one does.
  void forget(const Span* loop = nullptr);

  /// Keeps a shadow from here on. Contents of an argument that is not fresh count as written.
  void watch(Clock& clock);
  /// Keeps its accesses in a shadow that covers other instances too: an element has `cells` of it, that of offset 0
  /// begin at `position`.
  void watch(std::shared_ptr<Shadow> shadow, int64_t position, int64_t cells);
  /// Keeps its accesses in the shadow of memory in which it has a place beside other buffers: its element at `offset`
  /// is number `(*addresses)[offset]` of that place, or number `offset` without addresses.
  void place(std::shared_ptr<Shadow> shadow, int64_t position, int64_t cells,
             std::shared_ptr<const std::vector<int64_t>> addresses);
  bool placed() const { return placed_; }
  /// Null unless the instance is watched.
  Shadow* shadow() const { return shadow_.get(); }
  /// May an access to this memory have been made under another name?
  bool has_other_names() const { return shadow_.use_count() > 1; }
  /// What is remembered of the element at `offset`: one cell, or as many as its memory is shared in.
  std::span<Cell> cells(int64_t offset) const {
    const int64_t address = addresses_ ? (*addresses_)[static_cast<size_t>(offset)] : offset;
    return {&shadow_->cell(position_ + address * cells_), static_cast<size_t>(cells_)};
  }
  /// Was the element at `offset` never written, or is it a copy of one that was not, or have its bytes been written as
  /// those of another buffer since?
  bool undefined(int64_t offset) const;
  /// Where it was allocated, and the loop that made its contents undefined.
  const Span& allocated() const { return placed_ ? allocated_ : shadow_->allocated(); }
  const Span& forgotten() const { return placed_ ? forgotten_ : shadow_->forgotten(); }
  /// The offsets of the first and the last element; nothing where there is none.
  std::optional<std::pair<int64_t, int64_t>> reach() const;
  const std::byte* data() const { return data_; }
  /// The offset of an element that was never written, the first in row-major order, and how many there are; nothing if
  /// all of them were. For memory without gaps.
  std::optional<std::pair<int64_t, int64_t>> unwritten() const;
  /// The subscripts of the element at `offset`.
  std::vector<int64_t> element_at(int64_t offset) const;

  Scalar read(int64_t offset) const { return format_.read(data_, offset); }
  void write(int64_t offset, Scalar value) {
    if (listener_) listener_->before_write(offset);
    format_.write(data_, offset, value);
  }
  /// Tells `listener` of writes from here on, or nobody; who was told before.
  WriteListener* tell(WriteListener* listener) { return std::exchange(listener_, listener); }

  const Buffer& declaration() const { return *declaration_; }
  DType dtype() const { return declaration_->dtype; }
  size_t rank() const { return shape_.size(); }
  int64_t extent(size_t dim) const { return shape_[dim]; }
  int64_t stride(size_t dim) const { return strides_[dim]; }

 private:
  BufferRef declaration_;
  ElementFormat format_;
  std::byte* data_ = nullptr;
  std::vector<int64_t> shape_;
  std::vector<int64_t> strides_;
  std::vector<std::byte> owned_;
  int64_t elements_ = 0;
  std::shared_ptr<Shadow> shadow_;
  int64_t position_ = 0;
  int64_t cells_ = 1;
  bool placed_ = false;
  bool fresh_ = false;
  std::shared_ptr<const std::vector<int64_t>> addresses_;
  int64_t born_ = 0;  ///< of a placed instance, whose contents are younger than its memory
  Span allocated_;
  Span forgotten_;
  WriteListener* listener_ = nullptr;
};

/// Strides of a compact row-major tensor.
std::vector<int64_t> compact_strides(const std::vector<int64_t>& shape);

/// Throws OutOfBounds for an access to `buffer`.
[[noreturn]] void out_of_bounds(const Buffer& buffer, size_t dim, int64_t index, int64_t extent, const Span& span);

}  // namespace helve::interp
