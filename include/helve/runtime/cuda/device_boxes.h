// Boxes of elements that are copied or reduced from some addresses to others, in the memory of a GPU.
// The moves of BoxMoves as launches: what a redistribution packs, unpacks and adds up on a GPU is a few kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "helve/runtime/cuda/driver.h"
#include "helve/runtime/dlpack.h"
#include "helve/runtime/plan.h"

namespace helve::runtime::cuda {

struct CopyBoxes;
struct ReduceBox;

/// A list of moves, each of a box: element i of every target = op over element i of all sources, in their order, bit
/// for bit as BoxMoves does it. No move may read or write what another one writes.
class DeviceBoxes {
 public:
  /// Copies without an operator. UserError ReductionDType for a dtype that has no such reduction.
  DeviceBoxes(DLDataType dtype, std::optional<ReduceOp> op);
  DeviceBoxes(DeviceBoxes&&) noexcept;
  ~DeviceBoxes();

  /// A form of moves: extents, and strides in elements of all sources and of all targets. Its number: 0, 1, ...
  size_t add_box(std::span<const int64_t> extents, std::span<const int64_t> source_strides,
                 std::span<const int64_t> target_strides);
  void add_source(const std::byte* source) { sources_.push_back(source); }
  void add_target(std::byte* target) { targets_.push_back(target); }
  /// The sources and targets added since the last move form one move; without an operator it has one source.
  void end_move(size_t box);

  /// Compiles and loads the kernels for the GPU, once in a process. `site_packages`: where pip's NVRTC may be. Errors
  /// as of compile_cubin, and of the driver.
  void load(const Device& device, const std::vector<std::string>& site_packages);
  /// Puts them all on the stream, as often as it is called; after `load`, with the GPU's context current.
  void launch(const Device& device, CudaStream stream) const;

 private:
  struct Dim {
    int64_t extent, source, target;  ///< strides in elements
  };
  struct Move {
    size_t box, first_source, first_target, sources, targets;
  };

  void add_copies(std::vector<Dim> dims, const std::byte* source, std::byte* target);
  void add_reduction(const Move& move, const std::vector<Dim>& dims);

  DLDataType dtype_;
  std::optional<ReduceOp> op_;
  std::vector<std::vector<Dim>> boxes_;
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> targets_;
  size_t next_source_ = 0, next_target_ = 0;
  std::vector<Move> moves_;
  bool is_planned_ = false;
  std::vector<std::pair<int, CopyBoxes>> copies_;  ///< by the bytes of what is copied as one
  std::vector<ReduceBox> reductions_;
  std::vector<CudaFunction> functions_;  ///< of copies of 1, 2, 4, 8 and 16 bytes; then of the reduction
};

}  // namespace helve::runtime::cuda
