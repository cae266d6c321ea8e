// The host plan: what a call of a compiled function does, as plain data.
// The runtime executes it without a compiler in the process; whatever builds it needs nothing of the runtime but this
// page.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "helve/runtime/dlpack.h"
#include "helve/runtime/scalar_program.h"
#include "helve/support/diagnostic.h"

namespace helve::runtime {

/// A dynamic extent: the argument's extent becomes the value of the slot. Where several dimensions bind one slot
/// (or a slot holds a scalar argument), all must agree.
struct BindSlot {
  int64_t slot;
};

using Extent = std::variant<ScalarProgram, BindSlot>;

struct TensorParam {
  std::string name;
  DLDataType dtype;
  std::vector<Extent> dims;            ///< as many as the rank
  std::vector<ScalarProgram> strides;  ///< in elements, one a dimension; empty: compact row-major
  bool read = true;
  bool written = false;
  std::vector<int64_t> may_alias = {};  ///< parameters whose memory may overlap this one's; holds both ways
};

/// The slot gets an integer as its value, a bool as 0 or 1, a float as the bits of its dtype, zero-extended.
struct ScalarParam {
  std::string name;
  DLDataType dtype;
  int64_t slot;
  bool is_index = false;  ///< it is an index, or made one: a uint64 from 2^63 on is refused
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

/// No extent of an argument is larger: no machine addresses as many bytes.
constexpr int64_t kLargestExtent = int64_t{1} << 48;

/// An argument of a fault that the call knows.
struct CheckValue {
  std::string name;
  ScalarProgram value;
};

/// Ends the call with `fault` unless the condition holds; one that cannot be computed does not. The fault gets each
/// value as an argument of its name, and all of them as the argument "values": "n=9, m=8".
struct Check {
  ScalarProgram condition;
  Diagnostic fault;
  std::vector<CheckValue> values;
};

/// Makes a buffer usable until the end of the call; its contents are undefined. A second Allocate may move it.
struct Allocate {
  int64_t buffer;  ///< a buffer id, not of a parameter
};

/// A tensor map of CUDA's copy engine: boxes of a tensor parameter, whose rows of `swizzle` bytes are swizzled in block
/// memory.
struct TensorMap {
  int64_t buffer;  ///< a position among the launch's buffers
  std::vector<int64_t> box;  ///< elements along each dimension
  int64_t swizzle = 0;  ///< 0, 32, 64, 128
};

/// Runs blocks [0, blocks) of a kernel in any order; see KernelEntry for what the kernel is given. On a mesh block c is
/// core c, and of a launch to which not all cores come, only theirs run.
struct Launch {
  int64_t kernel;  ///< index of the entry point
  std::string name;
  ScalarProgram blocks;
  std::vector<int64_t> buffers;
  std::vector<ScalarProgram> scalars = {};
  int64_t scratch_bytes = 0;  ///< private memory of each worker, 4096-aligned, contents undefined
  int64_t grain = 1;  ///< fewest blocks worth a task of their own
  int64_t threads = 0;  ///< CUDA: threads a block
  int64_t shared_bytes = 0;  ///< CUDA: dynamic shared memory of a block
  int64_t cluster = 1;  ///< CUDA: blocks a cluster
  /// CUDA: all blocks are resident together; the kernel gets a zeroed uint32_t* workspace as its last parameter.
  bool cooperative = false;
  /// CUDA: bytes, of the base of each buffer, on which the kernel's widest accesses rely; empty: those of an element.
  std::vector<int64_t> alignments = {};
  std::vector<TensorMap> maps = {};  ///< CUDA: the kernel's last parameters, by value
};

enum class CollectiveKind : uint8_t { AllGather, Broadcast, AllReduce, ReduceScatter, AllToAll, Permute, Barrier };
enum class ReduceOp : uint8_t { Sum, Prod, Max, Min };

/// One transfer of a Permute, in row-major core numbers.
struct Peer {
  int64_t source;
  int64_t destination;
};

/// A collective over groups of cores: cores that differ only on `axes` (bit a: mesh axis a) form a group, members in
/// row-major order. `box` is a strided box of elements at src_offset in src and at dst_offset in dst. With `me` and `k`
/// members:
///   AllGather      dst_me[k * member_stride_dst + box] = src_k[box]
///   Broadcast      dst_me[box] = src_root[box]
///   AllReduce      dst_me[box] = op over k of src_k[box]
///   ReduceScatter  dst_me[box] = op over k of src_k[me * member_stride_src + box]
///   AllToAll       dst_me[k * member_stride_dst + box] = src_k[me * member_stride_src + box]
///   Permute        dst_d[box] = src_s[box] for each peer (s, d), of one group; a destination stands once
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
  std::vector<ScalarProgram> src_strides;  ///< elements, one an extent
  std::vector<ScalarProgram> dst_strides;
  ScalarProgram member_stride_src;  ///< elements
  ScalarProgram member_stride_dst;
  ReduceOp op = ReduceOp::Sum;
  DLDataType dtype{kDLFloat, 32, 1};
  ScalarProgram root;  ///< Broadcast: member of each group
  std::vector<Peer> peers;  ///< Permute
};

struct Step;

// Every core runs the steps. Those of one step go through it together, each with its own instances of buffers; cores
// part at decisions only.

/// Runs `body` with the slot = begin, begin + 1, ..., begin + extent - 1; an extent of 0 or less runs nothing.
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

/// Reads one element, an integer or a bool, into a slot: of a per-core buffer each core that of its own instance.
struct Read {
  int64_t buffer;  ///< buffer id
  ScalarProgram offset;  ///< elements
  int64_t slot;
  DLDataType dtype;
};

/// The cores of a group over `axes` meet in something that a decision is about, so they have to agree: where two do
/// not, `fault` ends the call. It gets a note that says what each of them decides.
struct Meeting {
  uint64_t axes = 0;
  Diagnostic fault;
};

/// How a value is taken: as true or false, as it is, or as a number of iterations, none where it is negative. Notes say
/// "the condition is true", "the loop begins at 3", "the loop runs 2 iterations".
enum class Question : uint8_t { Condition, Value, Count };

/// A value that each core finds for itself, by what it reads. The slots that `head` reads into belong to the decision.
struct Decision {
  Question question;
  std::vector<std::variant<Check, Read>> head;
  ScalarProgram value;
  std::vector<Meeting> meetings = {};
  Span span = {};  ///< of the control flow
};

/// Cores that agree go on together: `body` runs once for each value that is found, by the cores that find it, with the
/// value in the slot. So the cores of a step have in common whatever is in slots.
struct Part {
  Decision decision;
  int64_t slot;
  std::vector<Step> body;
};

/// Runs `body` by the cores whose condition holds, as long as there are any; a core that leaves does not come back.
struct Repeat {
  Decision decision;
  std::vector<Step> body;
};

struct Step {
  std::variant<Check, Allocate, Launch, Collective, Loop, Branch, Part, Repeat> node;
};

/// Calls `f` with every step of the list and below, outer steps first.
template <class Steps, class F>
void for_each_step(Steps& steps, const F& f) {
  for (auto& step : steps) {
    f(step);
    if (auto* loop = std::get_if<Loop>(&step.node)) {
      for_each_step(loop->body, f);
    } else if (auto* branch = std::get_if<Branch>(&step.node)) {
      for_each_step(branch->then_steps, f);
      for_each_step(branch->else_steps, f);
    } else if (auto* part = std::get_if<Part>(&step.node)) {
      for_each_step(part->body, f);
    } else if (auto* repeat = std::get_if<Repeat>(&step.node)) {
      for_each_step(repeat->body, f);
    }
  }
}

struct Plan {
  std::string name;
  std::vector<int64_t> mesh;  ///< extents of the mesh; empty: one core
  std::vector<std::string> mesh_axes;  ///< one name an extent
  std::vector<TensorParam> params;
  std::vector<ScalarParam> scalar_params;
  std::vector<std::string> slots;  ///< one name a slot, for messages and text
  std::vector<BufferDecl> buffers;
  std::vector<Step> steps;
};

/// Number of cores of the plan's mesh, 1 without one.
int64_t core_count(const Plan& plan);

/// InternalError unless every id, slot, axis and program of the plan is sound and kernels are in [0, kernel_count).
void verify(const Plan& plan, int64_t kernel_count);

/// The plan for people, one step a line.
std::string to_text(const Plan& plan);

std::string_view name_of(CollectiveKind kind);  ///< "all_gather"
std::string_view name_of(ReduceOp op);  ///< "sum"

}  // namespace helve::runtime
