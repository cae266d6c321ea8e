// What kinds of collectives mean, and verification of a plan.
// The executor trusts every index of a plan, so a plan is verified once, when its executor is created.
#include "helve/runtime/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "helve/support/diagnostic.h"

namespace helve::runtime {

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::AllReduce || kind == CollectiveKind::Reduce || kind == CollectiveKind::ReduceScatter;
}
bool has_root(CollectiveKind kind) {
  return only_root_receives(kind) || kind == CollectiveKind::Broadcast || kind == CollectiveKind::Scatter;
}
bool only_root_receives(CollectiveKind kind) {
  return kind == CollectiveKind::Gather || kind == CollectiveKind::Reduce;
}
bool parts_source(CollectiveKind kind) {
  return kind == CollectiveKind::Scatter || kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllToAll;
}
bool parts_target(CollectiveKind kind) {
  return kind == CollectiveKind::AllGather || kind == CollectiveKind::Gather || kind == CollectiveKind::AllToAll;
}

namespace {

class Verifier {
 public:
  Verifier(const Plan& plan, int64_t kernel_count) : plan_(plan), kernel_count_(kernel_count) {}

  void run() const {
    HELVE_CHECK(plan_.mesh.size() == plan_.mesh_axes.size(), "a mesh extent without a name");
    for (int64_t extent : plan_.mesh) HELVE_CHECK(extent >= 1, "a mesh extent below 1");
    for (const TensorParam& param : plan_.params) tensor(param);
    for (const ScalarParam& param : plan_.scalar_params) slot(param.slot);
    for (const BufferDecl& buffer : plan_.buffers) {
      program(buffer.elements);
      alignment(buffer.alignment);
      HELVE_CHECK(element_bytes(buffer.dtype) > 0, "a buffer whose elements have no size");
    }
    if (plan_.multiprocessors) slot(*plan_.multiprocessors);
    steps(plan_.steps);
  }

 private:
  void program(const ScalarProgram& p) const { verify(p, static_cast<int64_t>(plan_.slots.size())); }
  void programs(const std::vector<ScalarProgram>& list) const {
    for (const ScalarProgram& p : list) program(p);
  }
  void slot(int64_t index) const {
    HELVE_CHECK(index >= 0 && index < static_cast<int64_t>(plan_.slots.size()),
                fmt::format("slot {} does not exist", index));
  }
  void buffer(int64_t id) const {
    HELVE_CHECK(id >= 0 && id < static_cast<int64_t>(plan_.params.size() + plan_.buffers.size()),
                fmt::format("buffer {} does not exist", id));
  }
  static void alignment(int64_t bytes) {
    HELVE_CHECK(bytes >= 0 && (bytes == 0 || std::has_single_bit(static_cast<uint64_t>(bytes))),
                fmt::format("alignment {} is no power of two", bytes));
  }

  void tensor(const TensorParam& param) const {
    for (const Extent& dim : param.dims) {
      if (const auto* bind = std::get_if<BindSlot>(&dim)) {
        slot(bind->slot);
      } else {
        program(std::get<ScalarProgram>(dim));
      }
    }
    HELVE_CHECK(param.strides.empty() || param.strides.size() == param.dims.size(),
                "strides and dimensions differ in number");
    programs(param.strides);
    HELVE_CHECK(element_bytes(param.dtype) > 0, "a parameter whose elements have no size");
    for (int64_t other : param.may_alias) {
      HELVE_CHECK(other >= 0 && other < static_cast<int64_t>(plan_.params.size()), "an alias that is no parameter");
    }
  }

  void step(const Check& s) const {
    program(s.condition);
    for (const CheckValue& each : s.values) program(each.value);
  }

  void step(const Allocate& s) const {
    buffer(s.buffer);
    HELVE_CHECK(s.buffer >= static_cast<int64_t>(plan_.params.size()), "a parameter is allocated");
  }

  void step(const Launch& s) const {
    HELVE_CHECK(s.kernel >= 0 && s.kernel < kernel_count_, fmt::format("kernel {} does not exist", s.kernel));
    program(s.blocks);
    programs(s.scalars);
    for (int64_t id : s.buffers) buffer(id);
    HELVE_CHECK(s.scratch_bytes >= 0 && s.grain >= 1, "a launch with a negative scratch size or a grain below 1");
    HELVE_CHECK(s.alignments.empty() || s.alignments.size() == s.buffers.size(), "not one alignment a buffer");
    for (int64_t bytes : s.alignments) alignment(bytes);
    for (const TensorMap& map : s.maps) tensor_map(s, map);
    HELVE_CHECK(s.threads >= 0 && s.shared_bytes >= 0 && s.cluster >= 1, "a launch with a negative size or no cluster");
  }

  void tensor_map(const Launch& s, const TensorMap& map) const {
    const bool known = map.buffer >= 0 && map.buffer < static_cast<int64_t>(s.buffers.size());
    const int64_t id = known ? s.buffers[static_cast<size_t>(map.buffer)] : -1;
    HELVE_CHECK(known && id < static_cast<int64_t>(plan_.params.size()), "a tensor map of what is no parameter");
    HELVE_CHECK(map.box.size() == plan_.params[static_cast<size_t>(id)].dims.size(), "a box of another rank");
    HELVE_CHECK(!map.box.empty() && map.box.size() <= 5, "a tensor map of no rank that there is");
    for (int64_t extent : map.box) HELVE_CHECK(extent > 0 && extent <= 256, "a box of an extent that no map has");
    const bool swizzles = map.swizzle == 32 || map.swizzle == 64 || map.swizzle == 128;
    HELVE_CHECK(map.swizzle == 0 || swizzles, "a swizzle that no map has");
  }

  void step(const Collective& s) const {
    if (s.kind != CollectiveKind::Barrier) {
      buffer(s.src);
      buffer(s.dst);
    }
    for (const ScalarProgram* p : {&s.src_offset, &s.dst_offset, &s.member_stride_src, &s.member_stride_dst, &s.root})
      program(*p);
    programs(s.extents);
    programs(s.src_strides);
    programs(s.dst_strides);
    HELVE_CHECK(s.extents.size() == s.src_strides.size() && s.extents.size() == s.dst_strides.size(),
                "extents and strides of a collective differ in number");
    HELVE_CHECK(plan_.mesh.size() >= 64 || (s.axes >> plan_.mesh.size()) == 0,
                "a collective over an axis that the mesh lacks");
    if (s.kind != CollectiveKind::Permute) return;
    program(s.source);
    slot(s.member);
  }

  void step(const Loop& s) const {
    slot(s.slot);
    program(s.begin);
    program(s.extent);
    steps(s.body);
  }

  void step(const Branch& s) const {
    program(s.condition);
    steps(s.then_steps);
    steps(s.else_steps);
  }

  void step(const Diverge& s) const {
    control(s.control, s.body);
    slot(s.slot);
    steps(s.body);
  }

  void step(const Repeat& s) const {
    control(s.control, s.body);
    steps(s.body);
  }

  void control(const ControlValue& d, const std::vector<Step>& body) const {
    for (const auto& each : d.head) {
      std::visit([this](const auto& node) { step(node); }, each);
    }
    program(d.value);
    require_checks(body, d.checks);
  }

  /// Cores diverge at a control value; a collective below it needs a uniformity check over its axes.
  void require_checks(const std::vector<Step>& list, const std::vector<UniformityCheck>& checks) const {
    for_each_step(list, [&](const Step& s) {
      const Collective* c = std::get_if<Collective>(&s.node);
      const bool known =
          !c || std::any_of(checks.begin(), checks.end(), [&](const UniformityCheck& m) { return m.axes == c->axes; });
      HELVE_CHECK(known, "a collective under control flow without a uniformity check over its axes");
    });
  }

  void step(const Read& s) const {
    buffer(s.buffer);
    program(s.offset);
    slot(s.slot);
    const bool whole = s.dtype.code == kDLInt || s.dtype.code == kDLUInt || s.dtype.code == kDLBool;
    HELVE_CHECK(whole && s.dtype.lanes == 1 && s.dtype.bits % 8 == 0 && s.dtype.bits <= 64, "a read of no integer");
  }

  void steps(const std::vector<Step>& list) const {
    for (const Step& s : list) std::visit([this](const auto& node) { step(node); }, s.node);
  }

  const Plan& plan_;
  int64_t kernel_count_;
};

}  // namespace

int64_t core_count(const Plan& plan) {
  int64_t count = 1;
  for (int64_t extent : plan.mesh) count *= extent;
  return count;
}

void verify(const Plan& plan, int64_t kernel_count) { Verifier(plan, kernel_count).run(); }

}  // namespace helve::runtime
