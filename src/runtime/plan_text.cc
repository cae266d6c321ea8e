// The text of a plan.
// A plan is the last stage that people read when a call does something unexpected.
#include <fmt/format.h>

#include "helve/runtime/plan.h"
#include "helve/support/diagnostic.h"
#include "helve/support/text.h"

namespace helve::runtime {

std::string_view name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::AllGather: return "all_gather";
    case CollectiveKind::Gather: return "gather";
    case CollectiveKind::Broadcast: return "broadcast";
    case CollectiveKind::Scatter: return "scatter";
    case CollectiveKind::AllReduce: return "all_reduce";
    case CollectiveKind::Reduce: return "reduce";
    case CollectiveKind::ReduceScatter: return "reduce_scatter";
    case CollectiveKind::AllToAll: return "all_to_all";
    case CollectiveKind::Permute: return "permute";
    case CollectiveKind::Barrier: return "barrier";
  }
  HELVE_FAIL("a collective without a name");
}

std::string_view name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum: return "sum";
    case ReduceOp::Prod: return "prod";
    case ReduceOp::Max: return "max";
    case ReduceOp::Min: return "min";
  }
  HELVE_FAIL("a reduction without a name");
}

namespace {

class PlanPrinter {
 public:
  explicit PlanPrinter(const Plan& plan) : plan_(plan) {}

  std::string print() {
    std::string mesh;
    if (!plan_.mesh.empty()) {
      std::vector<std::string> axes;
      for (size_t a = 0; a < plan_.mesh.size(); ++a)
        axes.push_back(fmt::format("{}: {}", plan_.mesh_axes[a], plan_.mesh[a]));
      mesh = fmt::format(" on mesh({})", join(axes, ", ", [](const std::string& s) { return s; }));
    }
    document_.line(fmt::format("plan {}{}", plan_.name, mesh));
    auto indent = document_.indent();
    for (const TensorParam& param : plan_.params) tensor(param);
    for (const ScalarParam& param : plan_.scalar_params) {
      document_.line(fmt::format("scalar {}: {}{} -> {}", param.name, to_text(param.dtype),
                                 param.is_index && param.dtype.code == kDLUInt ? " below 2^63" : "", slot(param.slot)));
    }
    if (plan_.multiprocessors) document_.line("multiprocessors -> " + slot(*plan_.multiprocessors));
    for (const BufferDecl& buffer : plan_.buffers) {
      document_.line(fmt::format("buffer {}: {}[{}]{} align {}", buffer.name, to_text(buffer.dtype),
                                 text(buffer.elements), buffer.per_core ? " per core" : "", buffer.alignment));
    }
    steps(plan_.steps);
    return document_.text();
  }

 private:
  std::string text(const ScalarProgram& program) const { return to_text(program, &plan_.slots); }
  std::string slot(int64_t index) const { return text(ScalarProgram::slot(index)); }
  std::string list(const std::vector<ScalarProgram>& programs) const {
    return fmt::format("[{}]", join(programs, ", ", [this](const ScalarProgram& p) { return text(p); }));
  }
  const std::string& buffer(int64_t id) const {
    const auto index = static_cast<size_t>(id);
    return index < plan_.params.size() ? plan_.params[index].name : plan_.buffers[index - plan_.params.size()].name;
  }

  void tensor(const TensorParam& param) {
    std::string dims = join(param.dims, ", ", [this](const Extent& dim) {
      const auto* bind = std::get_if<BindSlot>(&dim);
      const char* each = bind && bind->elements == 2 ? " / 2" : "";
      return bind ? fmt::format("?{}{}", slot(bind->slot), each) : text(std::get<ScalarProgram>(dim));
    });
    std::string line = fmt::format("tensor {}: {}[{}]", param.name, to_text(param.dtype), dims);
    if (!param.strides.empty()) line += " strides " + list(param.strides);
    if (param.read) line += " read";
    if (param.written) line += " written";
    if (param.sorted) line += " sorted";
    if (!param.may_alias.empty()) {
      line += fmt::format(" may_alias({})", join(param.may_alias, ", ", [this](int64_t id) { return buffer(id); }));
    }
    document_.line(line);
  }

  void step(const Check& s) { document_.line(fmt::format("check {} else {}", text(s.condition), s.fault.code_text())); }

  void step(const Allocate& s) { document_.line("allocate " + buffer(s.buffer)); }

  void step(const Launch& s) {
    std::string line =
        fmt::format("launch {} (kernel {}) blocks {} buffers [{}] scalars {}", s.name, s.kernel, text(s.blocks),
                    join(s.buffers, ", ", [this](int64_t id) { return buffer(id); }), list(s.scalars));
    if (s.scratch_bytes != 0) line += fmt::format(" scratch {}", s.scratch_bytes);
    if (s.grain != 1) line += fmt::format(" grain {}", s.grain);
    if (s.threads != 0) line += fmt::format(" threads {}", s.threads);
    if (s.shared_bytes != 0) line += fmt::format(" shared {}", s.shared_bytes);
    if (!s.alignments.empty()) {
      line += fmt::format(" aligned [{}]", join(s.alignments, ", ", [](int64_t n) { return std::to_string(n); }));
    }
    for (const TensorMap& map : s.maps) {
      line += fmt::format(" boxes [{}] of {}", join(map.box, ", ", [](int64_t n) { return std::to_string(n); }),
                          buffer(s.buffers[static_cast<size_t>(map.buffer)]));
      if (map.swizzle != 0) line += fmt::format(" swizzled {}", map.swizzle);
    }
    if (s.cluster != 1) line += fmt::format(" cluster {}", s.cluster);
    if (s.cooperative) line += " cooperative";
    if (!s.reports.empty()) line += fmt::format(" reports {}", s.reports.size());
    document_.line(line);
  }

  void step(const Collective& s) {
    std::string line(name_of(s.kind));
    if (reduces(s.kind)) line += fmt::format(" {}", name_of(s.op));
    std::vector<std::string> axes;
    for (size_t a = 0; a < plan_.mesh.size(); ++a) {
      if (s.axes >> a & 1) axes.push_back(plan_.mesh_axes[a]);
    }
    line += fmt::format(" over ({})", join(axes, ", ", [](const std::string& a) { return a; }));
    if (has_root(s.kind)) line += " root " + text(s.root);
    if (s.kind == CollectiveKind::Permute) line += fmt::format(" from {} -> {}", slot(s.member), text(s.source));
    if (s.kind != CollectiveKind::Barrier) {
      line += fmt::format(" {} {}: {} + {} {} by {} -> {} + {} {} by {}", to_text(s.dtype), list(s.extents),
                          buffer(s.src), text(s.src_offset), list(s.src_strides), text(s.member_stride_src),
                          buffer(s.dst), text(s.dst_offset), list(s.dst_strides), text(s.member_stride_dst));
    }
    document_.line(line);
  }

  void step(const Loop& s) {
    document_.line(fmt::format("for {} from {} for {}:", slot(s.slot), text(s.begin), text(s.extent)));
    auto indent = document_.indent();
    steps(s.body);
  }

  void step(const Branch& s) {
    document_.line(fmt::format("if {}:", text(s.condition)));
    {
      auto indent = document_.indent();
      steps(s.then_steps);
    }
    if (s.else_steps.empty()) return;
    document_.line("else:");
    auto indent = document_.indent();
    steps(s.else_steps);
  }

  void step(const Diverge& s) {
    control(s.control);
    document_.line(fmt::format("diverge by {} = {}:", slot(s.slot), text(s.control.value)));
    auto indent = document_.indent();
    steps(s.body);
  }

  /// The head of a loop is evaluated before each iteration.
  void step(const Repeat& s) {
    const ControlValue& d = s.control;
    document_.line(d.head.empty() ? fmt::format("while {}:", text(d.value)) : "repeat:");
    auto indent = document_.indent();
    control(d);
    if (!d.head.empty()) document_.line(fmt::format("leave unless {}", text(d.value)));
    steps(s.body);
  }

  void control(const ControlValue& d) {
    for (const auto& each : d.head) {
      std::visit([this](const auto& node) { step(node); }, each);
    }
  }

  void step(const Read& s) {
    document_.line(
        fmt::format("read {} from {}: {} at {}", slot(s.slot), buffer(s.buffer), to_text(s.dtype), text(s.offset)));
  }

  void steps(const std::vector<Step>& list) {
    for (const Step& s : list) std::visit([this](const auto& node) { step(node); }, s.node);
  }

  const Plan& plan_;
  TextDocument document_;
};

}  // namespace

std::string to_text(const Plan& plan) { return PlanPrinter(plan).print(); }

}  // namespace helve::runtime
