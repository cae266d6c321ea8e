// Execution of a plan, as far as all executors share it.
// Checks, loops, branches and the evaluation of scalars are implemented here; executors implement launches, memory and
// collectives.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cores.h"
#include "frame.h"
#include "helve/runtime/communicator.h"
#include "helve/runtime/interrupt.h"
#include "helve/runtime/plan.h"
#include "helve/support/diagnostic.h"
#include "helve/support/text.h"

namespace helve::runtime {

/// One call: the steps of a plan on a frame. `Self` derives from it and has
///   std::byte* reserve(size_t index, int64_t bytes, int64_t alignment)   memory of plan.buffers[index], null for none
///   void launch(const Launch&)                                           with what it is given in the frame
///   void communicate(const Collective&, const CollectiveRequest&)        every scalar evaluated, the boxes checked
///   void fetch(std::byte* to, std::span<const std::byte* const> places, int64_t bytes)
///       pieces of its memory, as the steps so far leave them, side by side at `to`
template <class Self>
class PlanWalker {
 public:
  /// `own`: the cores of this process, ascending; empty: all.
  PlanWalker(const Plan& plan, Frame& frame, InterruptPoll& poll, std::span<const int64_t> own = {})
      : plan_(plan), frame_(frame), poll_(poll) {
    if (own.empty()) {
      frame_.cores.resize(static_cast<size_t>(core_count(plan)));
      std::iota(frame_.cores.begin(), frame_.cores.end(), int64_t{0});
    } else {
      frame_.cores.assign(own.begin(), own.end());
    }
    first_core_ = frame_.cores.front();
    held_cores_ = frame_.cores.back() + 1 - first_core_;
  }

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
  int64_t first_core_, held_cores_;  ///< memory of buffers of cores begins and ends with those of this process

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
    // Sizes are computed in 128 bits, so that sizes beyond memory are reported correctly.
    const __int128 bytes = static_cast<__int128>(elements) * element_bytes(decl.dtype);
    const __int128 stride = (bytes + kInstanceAlignment - 1) / kInstanceAlignment * kInstanceAlignment;
    const __int128 total = decl.per_core ? stride * held_cores_ : bytes;
    constexpr __int128 kLimit = int64_t{1} << 62;
    const int64_t size = static_cast<int64_t>(std::min(std::max<__int128>(total, 1), kLimit));
    std::byte* base =
        total > kLimit ? nullptr : self().reserve(index, size, std::max(decl.alignment, kInstanceAlignment));
    if (base == nullptr) {
      const std::string text =
          total > kLimit ? fmt::format("more than {}", static_cast<int64_t>(kLimit)) : fmt::format("{}", size);
      throw UserError(Code::OutOfMemory, {}, {{"buffer", decl.name}, {"bytes", text}});
    }
    const int64_t apart = decl.per_core ? static_cast<int64_t>(stride) : 0;
    frame_.buffers[static_cast<size_t>(s.buffer)] = {base - first_core_ * apart, apart, 0, static_cast<int64_t>(bytes),
                                                     true};
  }

  void step(const Launch& s) {
    const int64_t blocks = value(s.blocks);
    if (blocks <= 0) return;
    if (frame_.may_have_written) *frame_.may_have_written = true;
    frame_.pointers.clear();
    values(s.scalars, frame_.scalars);
    for (int64_t id : s.buffers) {
      const BufferState& state = buffer(id);
      frame_.pointers.push_back(state.base);
      if (is_per_core(id)) frame_.scalars.push_back(state.stride);
    }
    const int64_t cores = core_count(plan_);
    HELVE_CHECK(blocks % cores == 0, fmt::format("{} blocks for the cores of a mesh", blocks));
    frame_.core_blocks = blocks / cores;
    frame_.ranges.clear();
    if (frame_.cores.size() == static_cast<size_t>(cores)) {
      frame_.ranges.push_back({0, blocks});
    } else {
      find_ranges(frame_.cores, frame_.ranges);
      for (BlockRange& range : frame_.ranges)
        range = {range.begin * frame_.core_blocks, range.end * frame_.core_blocks};
    }
    self().launch(s);
  }

  void step(const Collective& s) {
    CollectiveRequest request;
    request.poll = &poll_;
    request.mesh = plan_.mesh;
    request.axes = s.axes;
    request.cores = frame_.cores;
    if (s.kind == CollectiveKind::Barrier) return self().communicate(s, request);
    if (frame_.may_have_written) *frame_.may_have_written = true;
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
    const int64_t members = group_size(plan_.mesh, s.axes);
    HELVE_CHECK(!has_root(s.kind) || (request.root >= 0 && request.root < members),
                fmt::format("root {} is no member", request.root));
    if (s.kind == CollectiveKind::Permute) request.sources = sources(s, members);
    check_box(src, request.src_offset, frame_.extents, frame_.src_strides, parts_source(s.kind) ? members : 1,
              request.member_stride_src, s);
    check_box(dst, request.dst_offset, frame_.extents, frame_.dst_strides, parts_target(s.kind) ? members : 1,
              request.member_stride_dst, s);
    self().communicate(s, request);
  }

  std::span<const int64_t> sources(const Collective& s, int64_t members) {
    frame_.sources.clear();
    for (int64_t member = 0; member < members; ++member) {
      frame_.slots[static_cast<size_t>(s.member)] = member;
      frame_.sources.push_back(value(s.source));
    }
    return frame_.sources;
  }

  /// A box outside of its buffer is a bug in the code that built the plan, and would overwrite other memory.
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

  void step(const Diverge& s) {
    decide(s.control);
    int64_t& slot = frame_.slots[static_cast<size_t>(s.slot)];
    if (all_equal(frame_.found)) {
      slot = frame_.found.front();
      return steps(s.body);
    }
    for (CoresOfValue& each : by_value(frame_.cores, frame_.found)) {
      slot = each.value;
      std::swap(frame_.cores, each.cores);
      steps(s.body);
      std::swap(frame_.cores, each.cores);
    }
  }

  void step(const Repeat& s) {
    std::vector<int64_t> all;
    for (;;) {
      decide(s.control);
      if (!all_equal(frame_.found)) {
        if (all.empty()) all = frame_.cores;
        keep_true(frame_.cores, frame_.found);
      } else if (frame_.found.front() == 0) {
        break;
      }
      if (poll_.active()) poll_.throw_if_requested();
      steps(s.body);
    }
    if (!all.empty()) std::swap(frame_.cores, all);
  }

  /// Computes the control value of each core, in frame_.found.
  void decide(const ControlValue& d) {
    frame_.known.clear();
    for (const auto& each : d.head) {
      if (const Check* check = std::get_if<Check>(&each)) {
        for (size_t lane = 0; lane < frame_.cores.size(); ++lane) step_of(lane, *check);
      } else {
        read(std::get<Read>(each));
      }
    }
    frame_.found.clear();
    for (size_t lane = 0; lane < frame_.cores.size(); ++lane) {
      enter(lane);
      const int64_t found = value(d.value);
      frame_.found.push_back(d.use == ControlUse::Condition ? found != 0
                             : d.use == ControlUse::Count   ? std::max<int64_t>(found, 0)
                                                            : found);
    }
    require_uniform(d, plan_.mesh, frame_.cores, frame_.found);
  }

  /// Loads the slots with what the core at this position of frame_.cores has read.
  void enter(size_t lane) {
    for (size_t k = lane; k < frame_.known.size(); k += frame_.cores.size()) {
      frame_.slots[static_cast<size_t>(frame_.known[k].first)] = frame_.known[k].second;
    }
  }

  void step_of(size_t lane, const Check& check) {
    enter(lane);
    step(check);
  }

  void read(const Read& s) {
    const BufferState& state = buffer(s.buffer);
    const int64_t bytes = element_bytes(s.dtype);
    frame_.places.clear();
    for (size_t lane = 0; lane < frame_.cores.size(); ++lane) {
      enter(lane);
      const __int128 begin = static_cast<__int128>(value(s.offset)) * bytes;
      HELVE_CHECK(begin >= state.low && begin + bytes <= state.high, fmt::format("a read leaves buffer {}", s.buffer));
      frame_.places.push_back(state.base + frame_.cores[lane] * state.stride + static_cast<int64_t>(begin));
    }
    const size_t apart = all_equal(frame_.places) ? 1 : frame_.places.size();
    frame_.fetched.resize(apart * static_cast<size_t>(bytes));
    self().fetch(frame_.fetched.data(), std::span(frame_.places).first(apart), bytes);
    for (size_t lane = 0; lane < frame_.cores.size(); ++lane) {
      const std::byte* place = frame_.fetched.data() + (apart == 1 ? 0 : lane) * static_cast<size_t>(bytes);
      frame_.known.emplace_back(s.slot, integer_at(place, s.dtype));
    }
  }

  /// The value of an integer or bool in memory.
  static int64_t integer_at(const std::byte* place, DLDataType dtype) {
    uint64_t bits = 0;
    std::memcpy(&bits, place, static_cast<size_t>(element_bytes(dtype)));
    if (dtype.code == kDLBool) return bits != 0;
    const int unused = 64 - dtype.bits;
    if (dtype.code == kDLInt) return static_cast<int64_t>(bits << unused) >> unused;
    return static_cast<int64_t>(bits);
  }
};

}  // namespace helve::runtime
