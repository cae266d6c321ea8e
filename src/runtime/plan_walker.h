// Walking a plan: what every executor does alike.
// Checks, loops, branches and the evaluation of scalars stand here once; what a launch, memory or a collective is, the
// executor says.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "frame.h"
#include "helve/runtime/communicator.h"
#include "helve/runtime/interrupt.h"
#include "helve/runtime/plan.h"
#include "helve/support/diagnostic.h"
#include "helve/support/text.h"

namespace helve::runtime {

/// One call: the steps of a plan on a frame. `Self` derives from it and has
///   std::byte* reserve(size_t index, int64_t bytes, int64_t alignment)   memory of plan.buffers[index], null for none
///   void launch(const Launch&, int64_t blocks)                           with frame.pointers and frame.scalars filled
///   void communicate(const Collective&, const CollectiveRequest&)        every scalar evaluated, the boxes checked
///   void fetch(std::byte* to, const std::byte* from, int64_t bytes, int64_t count, int64_t stride)
///       count pieces of its memory, stride bytes apart, as the steps so far leave them, side by side at `to`
template <class Self>
class PlanWalker {
 public:
  PlanWalker(const Plan& plan, Frame& frame, InterruptPoll& poll) : plan_(plan), frame_(frame), poll_(poll) {}

  void steps(const std::vector<Step>& list) {
    for (const Step& s : list) {
      if (poll_.active()) poll_.throw_if_requested();
      std::visit([this](const auto& node) { step(node); }, s.node);
    }
  }

 protected:
  const Plan& plan_;
  Frame& frame_;
  InterruptPoll& poll_;

 private:
  Self& self() { return static_cast<Self&>(*this); }
  int64_t value(const ScalarProgram& program) const { return evaluate(program, frame_.slots, &plan_.slots); }
  void values(const std::vector<ScalarProgram>& programs, std::vector<int64_t>& out) const {
    out.clear();
    for (const ScalarProgram& program : programs) out.push_back(value(program));
  }
  const BufferState& buffer(int64_t id) const {
    const BufferState& state = frame_.buffers[static_cast<size_t>(id)];
    HELVE_CHECK(state.ready, fmt::format("buffer {} is used before its Allocate", id));
    return state;
  }
  bool is_per_core(int64_t id) const {
    const auto index = static_cast<size_t>(id);
    return index >= plan_.params.size() && plan_.buffers[index - plan_.params.size()].per_core;
  }

  void step(const Check& s) {
    if (evaluate_defined(s.condition, frame_.slots).value_or(0) == 0) fail(s);
  }

  [[noreturn]] void fail(const Check& s) const {
    Diagnostic fault = s.fault;
    std::string all;
    for (const CheckValue& each : s.values) {
      const int64_t known = value(each.value);
      fault.args.emplace_back(each.name, known);
      all += fmt::format("{}{}={}", all.empty() ? "" : ", ", each.name, known);
    }
    fault.args.emplace_back("values", all);
    throw UserError(std::move(fault));
  }

  void step(const Allocate& s) {
    const size_t index = static_cast<size_t>(s.buffer) - plan_.params.size();
    const BufferDecl& decl = plan_.buffers[index];
    const int64_t elements = value(decl.elements);
    if (elements < 0) {
      throw UserError(
          Code::BufferSize, {},
          {{"buffer", decl.name}, {"elements", elements}, {"expression", to_text(decl.elements, &plan_.slots)}});
    }
    // Sizes are computed in 128 bits: what does not fit memory is reported with its true size.
    const __int128 bytes = static_cast<__int128>(elements) * element_bytes(decl.dtype);
    const __int128 stride = (bytes + kInstanceAlignment - 1) / kInstanceAlignment * kInstanceAlignment;
    const __int128 total = decl.per_core ? stride * core_count(plan_) : bytes;
    constexpr __int128 kLimit = int64_t{1} << 62;
    const int64_t size = static_cast<int64_t>(std::min(std::max<__int128>(total, 1), kLimit));
    std::byte* base =
        total > kLimit ? nullptr : self().reserve(index, size, std::max(decl.alignment, kInstanceAlignment));
    if (base == nullptr) {
      const std::string text =
          total > kLimit ? fmt::format("more than {}", static_cast<int64_t>(kLimit)) : fmt::format("{}", size);
      throw UserError(Code::OutOfMemory, {}, {{"buffer", decl.name}, {"bytes", text}});
    }
    frame_.buffers[static_cast<size_t>(s.buffer)] = {base, decl.per_core ? static_cast<int64_t>(stride) : 0, 0,
                                                     static_cast<int64_t>(bytes), true};
  }

  void step(const Launch& s) {
    const int64_t blocks = value(s.blocks);
    if (blocks <= 0) return;
    frame_.pointers.clear();
    values(s.scalars, frame_.scalars);
    for (int64_t id : s.buffers) {
      const BufferState& state = buffer(id);
      frame_.pointers.push_back(state.base);
      if (is_per_core(id)) frame_.scalars.push_back(state.stride);
    }
    self().launch(s, blocks);
  }

  void step(const Collective& s) {
    CollectiveRequest request;
    request.poll = &poll_;
    request.mesh = plan_.mesh;
    request.axes = s.axes;
    if (s.kind == CollectiveKind::Barrier) return self().communicate(s, request);
    values(s.extents, frame_.extents);
    values(s.src_strides, frame_.src_strides);
    values(s.dst_strides, frame_.dst_strides);
    const BufferState &src = buffer(s.src), &dst = buffer(s.dst);
    request.dtype = s.dtype;
    request.op = s.op;
    request.src = {src.base, src.stride};
    request.dst = {dst.base, dst.stride};
    request.src_offset = value(s.src_offset);
    request.dst_offset = value(s.dst_offset);
    request.extents = frame_.extents;
    request.src_strides = frame_.src_strides;
    request.dst_strides = frame_.dst_strides;
    request.member_stride_src = value(s.member_stride_src);
    request.member_stride_dst = value(s.member_stride_dst);
    request.root = value(s.root);
    request.peers = s.peers;
    const int64_t members = group_size(plan_.mesh, s.axes);
    const bool strided_src = s.kind == CollectiveKind::ReduceScatter || s.kind == CollectiveKind::AllToAll;
    const bool strided_dst = s.kind == CollectiveKind::AllGather || s.kind == CollectiveKind::AllToAll;
    check_box(src, request.src_offset, frame_.extents, frame_.src_strides, strided_src ? members : 1,
              request.member_stride_src, s);
    check_box(dst, request.dst_offset, frame_.extents, frame_.dst_strides, strided_dst ? members : 1,
              request.member_stride_dst, s);
    self().communicate(s, request);
  }

  /// A box outside its buffer is a fault of whoever built the plan, and would overwrite foreign memory.
  static void check_box(const BufferState& state, int64_t offset, const std::vector<int64_t>& extents,
                        const std::vector<int64_t>& strides, int64_t members, int64_t member_stride,
                        const Collective& s) {
    __int128 low = offset, high = offset;
    for (size_t d = 0; d < extents.size(); ++d) {
      if (extents[d] <= 0) return;
      const __int128 reach = static_cast<__int128>(extents[d] - 1) * strides[d];
      (reach < 0 ? low : high) += reach;
    }
    const __int128 reach = static_cast<__int128>(members - 1) * member_stride;
    (reach < 0 ? low : high) += reach;
    const int64_t bytes = element_bytes(s.dtype);
    HELVE_CHECK(low * bytes >= state.low && (high + 1) * bytes <= state.high,
                fmt::format("the box of {} leaves its buffer", name_of(s.kind)));
  }

  void step(const Loop& s) {
    const int64_t begin = value(s.begin), extent = value(s.extent);
    for (int64_t i = 0; i < extent; ++i) {
      frame_.slots[static_cast<size_t>(s.slot)] = begin + i;
      steps(s.body);
    }
  }

  void step(const Branch& s) { steps(value(s.condition) != 0 ? s.then_steps : s.else_steps); }

  void step(const Repeat& s) {
    for (steps(s.head); value(s.condition) != 0; steps(s.head)) {
      if (poll_.active()) poll_.throw_if_requested();
      steps(s.body);
    }
  }

  void step(const Read& s) {
    const BufferState& state = buffer(s.buffer);
    const int64_t bytes = element_bytes(s.dtype);
    const __int128 begin = static_cast<__int128>(value(s.offset)) * bytes;
    HELVE_CHECK(begin >= state.low && begin + bytes <= state.high, fmt::format("a read leaves buffer {}", s.buffer));
    const int64_t cores = is_per_core(s.buffer) ? core_count(plan_) : 1;
    frame_.fetched.resize(static_cast<size_t>(cores * bytes));
    self().fetch(frame_.fetched.data(), state.base + static_cast<int64_t>(begin), bytes, cores, state.stride);
    const int64_t known = integer_at(frame_.fetched.data(), s.dtype);
    for (int64_t core = 1; core < cores; ++core) {
      const int64_t other = integer_at(frame_.fetched.data() + core * bytes, s.dtype);
      if (other == known) continue;
      Diagnostic fault = s.fault;
      fault.args.emplace_back("first", known);
      fault.args.emplace_back("second", other);
      fault.args.emplace_back("core", core_text(0));
      fault.args.emplace_back("other", core_text(core));
      throw UserError(std::move(fault));
    }
    frame_.slots[static_cast<size_t>(s.slot)] = known;
  }

  /// The value of an integer or bool that lies in memory.
  static int64_t integer_at(const std::byte* place, DLDataType dtype) {
    uint64_t bits = 0;
    std::memcpy(&bits, place, static_cast<size_t>(element_bytes(dtype)));
    if (dtype.code == kDLBool) return bits != 0;
    const int unused = 64 - dtype.bits;
    if (dtype.code == kDLInt) return static_cast<int64_t>(bits << unused) >> unused;
    return static_cast<int64_t>(bits);
  }

  /// "(1, 2)": the coordinates of a core.
  std::string core_text(int64_t core) const {
    std::vector<int64_t> at(plan_.mesh.size());
    for (size_t a = at.size(); a-- > 0; core /= plan_.mesh[a]) at[a] = core % plan_.mesh[a];
    const std::string all = join(at, ", ", [](int64_t coordinate) { return std::to_string(coordinate); });
    return fmt::format("({}{})", all, at.size() == 1 ? "," : "");
  }
};

}  // namespace helve::runtime
