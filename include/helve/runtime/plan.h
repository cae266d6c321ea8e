// The host plan: the steps of a call of a compiled function, as plain data.
// The runtime executes it without a compiler in the process; code that builds plans needs only this header of the
// runtime.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "helve/runtime/dlpack.h"
#include "helve/runtime/scalar_program.h"
#include "helve/support/diagnostic.h"
#include "helve/support/report.h"

namespace helve::runtime {

/// A dynamic extent: the argument's extent becomes the value of the slot. If several dimensions bind one slot (or a
/// slot is set by a scalar argument), all must agree.
struct BindSlot {
  int64_t slot;
  int64_t elements = 1;  ///< that one element of the argument holds: 2 where it is a byte of a packed dtype
};

using Extent = std::variant<ScalarProgram, BindSlot>;

struct TensorParam {
  std::string name;
  DLDataType dtype;
  std::vector<Extent> dims;            ///< one per dimension
  std::vector<ScalarProgram> strides;  ///< in elements, one per dimension; empty: compact row-major
  bool read = true;
  bool written = false;
  bool sorted = false;  ///< its elements do not decrease: checked in the memory of the CPU
  std::vector<int64_t> may_alias = {};  ///< parameters whose memory may overlap this one's; symmetric
};

/// The slot gets an integer as its value, a bool as 0 or 1, a float as the bits of its dtype, zero-extended.
struct ScalarParam {
  std::string name;
  DLDataType dtype;
  int64_t slot;
  bool is_index = false;  ///< used as an index, possibly after a conversion: a uint64 of 2^63 or more is refused
};

/// Memory that the plan allocates. A buffer id names tensor parameter `id` when id < params.size(), otherwise
/// buffers[id - params.size()]. A per-core buffer has one instance for each core of the mesh, contiguous in row-major
/// core order, each rounded up to kInstanceAlignment bytes; all other buffers and all parameters are shared by the
/// cores.
struct BufferDecl {
  std::string name;
  DLDataType dtype;
  ScalarProgram elements;  ///< of one instance
  bool per_core = false;
  int64_t alignment = 64;  ///< bytes of the first instance, a power of two
};

constexpr int64_t kInstanceAlignment = 64;

/// The limit of an argument's extents: no machine addresses as many bytes.
constexpr int64_t kLargestExtent = int64_t{1} << 48;

/// An argument of a check's fault.
struct CheckValue {
  std::string name;
  ScalarProgram value;
};

/// Ends the call with `fault` unless the condition holds; a condition that cannot be computed does not hold. The fault
/// gets each value as an argument of its name, and all of them as the argument "values": "n=9, m=8".
struct Check {
  ScalarProgram condition;
  Diagnostic fault;
  std::vector<CheckValue> values;
};

/// Makes a buffer usable until the end of the call; its contents are undefined. A second Allocate may move it.
struct Allocate {
  int64_t buffer;  ///< a buffer id, not of a parameter
};

/// A tensor map for CUDA's TMA: boxes of a tensor parameter, whose rows of `swizzle` bytes are swizzled in shared
/// memory.
struct TensorMap {
  int64_t buffer;  ///< a position among the launch's buffers
  std::vector<int64_t> box;  ///< elements along each dimension
  int64_t swizzle = 0;  ///< 0, 32, 64, 128
};

/// Runs blocks [0, blocks) of a kernel in any order; KernelEntry describes the kernel's arguments. On a mesh block c is
/// core c, and only the blocks of the cores that execute the launch run.
struct Launch {
  int64_t kernel;  ///< index of the entry point
  std::string name;
  ScalarProgram blocks;
  std::vector<int64_t> buffers;
  std::vector<ScalarProgram> scalars = {};
  int64_t scratch_bytes = 0;  ///< private memory of each worker, 4096-aligned, contents undefined
  int64_t grain = 1;  ///< minimum number of blocks of a task
  int64_t threads = 0;  ///< CUDA: threads per block
  int64_t unaligned_threads = 0;  ///< CUDA: those of the unaligned variant, which has no roles
  int64_t shared_bytes = 0;  ///< CUDA: dynamic shared memory of a block
  int64_t cluster = 1;  ///< CUDA: blocks per cluster
  /// CUDA: all blocks are resident together; the kernel gets a zeroed uint32_t* workspace as its last parameter.
  bool cooperative = false;
  int64_t barrier_words = 0;  ///< CUDA: of that workspace
  /// CUDA: the alignment in bytes that the kernel requires of the base of each buffer; empty: that of an element.
  std::vector<int64_t> alignments = {};
  std::vector<KernelReport> reports = {};  ///< what the kernel may report, by number
  std::vector<TensorMap> maps = {};  ///< CUDA: the kernel's last parameters, by value
};

enum class CollectiveKind : uint8_t {
  AllGather,
  Gather,
  Broadcast,
  Scatter,
  AllReduce,
  Reduce,
  ReduceScatter,
  AllToAll,
  Permute,
  Barrier
};
enum class ReduceOp : uint8_t { Sum, Prod, Max, Min };

/// A collective over groups of cores: cores that differ only on `axes` (bit a: mesh axis a) form a group, members in
/// row-major order. `box` is a strided box of elements at src_offset in src and at dst_offset in dst. With `me` and `k`
/// members:
///   AllGather      dst_me[k * member_stride_dst + box] = src_k[box]
///   Gather         the same, where me is root
///   Broadcast      dst_me[box] = src_root[box]
///   Scatter        dst_me[box] = src_root[me * member_stride_src + box]
///   AllReduce      dst_me[box] = op over k of src_k[box]
///   Reduce         the same, where me is root
///   ReduceScatter  dst_me[box] = op over k of src_k[me * member_stride_src + box]
///   AllToAll       dst_me[k * member_stride_dst + box] = src_k[me * member_stride_src + box]
///   Permute        dst_me[box] = src_s[box] for s = source, a program of the slot `member` = me, where s is a member
///   Barrier        nothing moves
/// src and dst may be the same buffer: all is read before anything is written. Reductions run in member order; float
/// types below 32 bits accumulate in float32 and round once; max and min propagate NaN; integers wrap; for bool, sum
/// and max are `or`, prod and min are `and`.
struct Collective {
  CollectiveKind kind;
  uint64_t axes = 0;
  int64_t src = 0;  ///< buffer id
  int64_t dst = 0;  ///< buffer id
  ScalarProgram src_offset;
  ScalarProgram dst_offset;
  std::vector<ScalarProgram> extents;
  std::vector<ScalarProgram> src_strides;  ///< elements, one per extent
  std::vector<ScalarProgram> dst_strides;
  ScalarProgram member_stride_src;  ///< elements
  ScalarProgram member_stride_dst;
  ReduceOp op = ReduceOp::Sum;
  DLDataType dtype{kDLFloat, 32, 1};
  ScalarProgram root;  ///< a member of each group, for a kind that has a root
  ScalarProgram source;  ///< Permute
  int64_t member = 0;  ///< Permute: the slot
};

struct Step;

// Every core runs the steps. The cores that run a step run it together, each with its own instances of buffers; they
// diverge at control values only.

/// Runs `body` with the slot = begin, begin + 1, ..., begin + extent - 1; not at all for an extent of 0 or less.
struct Loop {
  int64_t slot;
  ScalarProgram begin;
  ScalarProgram extent;
  std::vector<Step> body;
};

struct Branch {
  ScalarProgram condition;
  std::vector<Step> then_steps;
  std::vector<Step> else_steps;
};

/// Reads one element, an integer or a bool, into a slot; from a per-core buffer each core reads its own instance.
struct Read {
  int64_t buffer;  ///< buffer id
  ScalarProgram offset;  ///< elements
  int64_t slot;
  DLDataType dtype;
};

/// Control flow around a collective over `axes` must be uniform within each group of cores: where two cores of a group
/// have different control values, `fault` ends the call. It gets a note with the two values.
struct UniformityCheck {
  uint64_t axes = 0;
  Diagnostic fault;
};

/// How control flow uses a value: as a truth value, as it is, or as a number of iterations (none if negative); or a
/// collective as an operand. Notes say "the condition is true", "the loop begins at 3", "the loop runs 2 iterations",
/// "it is 3".
enum class ControlUse : uint8_t { Condition, Value, Count, Operand };

/// A value that control flow depends on and that each core computes from what it reads, so that cores may differ. The
/// slots that `head` reads into belong to it.
struct ControlValue {
  ControlUse use;
  std::vector<std::variant<Check, Read>> head;
  ScalarProgram value;
  std::vector<UniformityCheck> checks = {};
  Span span = {};  ///< of the control flow
};

/// Divergence by a value: `body` runs once for each distinct value, by the cores that have it, with the value in the
/// slot. So slots hold the same for all cores that run a step.
struct Diverge {
  ControlValue control;
  int64_t slot;
  std::vector<Step> body;
};

/// Runs `body` on the cores whose condition holds, as long as there are any; a core that leaves does not return.
struct Repeat {
  ControlValue control;
  std::vector<Step> body;
};

struct Step {
  std::variant<Check, Allocate, Launch, Collective, Loop, Branch, Diverge, Repeat> node;
};

/// Calls `f` with every step of the list and its bodies, outer steps first.
template <class Steps, class F>
void for_each_step(Steps& steps, const F& f) {
  for (auto& step : steps) {
    f(step);
    if (auto* loop = std::get_if<Loop>(&step.node)) {
      for_each_step(loop->body, f);
    } else if (auto* branch = std::get_if<Branch>(&step.node)) {
      for_each_step(branch->then_steps, f);
      for_each_step(branch->else_steps, f);
    } else if (auto* diverge = std::get_if<Diverge>(&step.node)) {
      for_each_step(diverge->body, f);
    } else if (auto* repeat = std::get_if<Repeat>(&step.node)) {
      for_each_step(repeat->body, f);
    }
  }
}

struct Plan {
  std::string name;
  std::vector<int64_t> mesh;  ///< extents of the mesh; empty: one core
  std::vector<std::string> mesh_axes;  ///< one name per extent
  std::vector<TensorParam> params;
  std::vector<ScalarParam> scalar_params;
  std::vector<std::string> slots;  ///< one name per slot, for messages and text
  std::optional<int64_t> multiprocessors;  ///< the slot that gets how many blocks the machine runs side by side
  std::vector<BufferDecl> buffers;
  std::vector<Step> steps;
};

/// Number of cores of the plan's mesh, 1 without one.
int64_t core_count(const Plan& plan);

/// InternalError unless every id, slot, axis and program of the plan is valid and kernels are in [0, kernel_count).
void verify(const Plan& plan, int64_t kernel_count);

/// The plan as readable text, one step per line.
std::string to_text(const Plan& plan);

std::string_view name_of(CollectiveKind kind);  ///< "all_gather"
bool reduces(CollectiveKind kind);
bool has_root(CollectiveKind kind);
bool only_root_receives(CollectiveKind kind);
bool parts_source(CollectiveKind kind);  ///< by member_stride_src
bool parts_target(CollectiveKind kind);  ///< by member_stride_dst
std::string_view name_of(ReduceOp op);  ///< "sum"

}  // namespace helve::runtime
