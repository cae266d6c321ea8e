// The writer of a call's text.
// It walks the steps as the executor of GPUs does (runtime/cuda/executor.cc); names are chosen first, and the prelude
// follows from what the steps have called.
#include "helve/codegen/host/call_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "call_collectives.h"
#include "call_names.h"
#include "call_prelude.h"
#include "helve/runtime/communicator.h"
#include "helve/runtime/cuda/executor.h"
#include "helve/support/diagnostic.h"
#include "helve/support/text.h"
#include "scalar_text.h"

namespace helve {

using runtime::Plan;
using runtime::ScalarProgram;

namespace {

constexpr int64_t kReportWords = 64;  ///< of a launch that can end with a fault, as runtime/cuda/fault_memory.cc

/// The C++ type of a scalar parameter.
std::string type_of(runtime::DLDataType t) {
  if (t.code == runtime::kDLBool) return "bool";
  if (t.code == runtime::kDLFloat && t.bits == 32) return "float";
  if (t.code == runtime::kDLFloat && t.bits == 64) return "double";
  return fmt::format("{}int{}_t", t.code == runtime::kDLInt ? "" : "u", t.bits);
}

class CallWriter {
 public:
  CallWriter(const Plan& plan, const CallTextOptions& options) : plan_(plan), options_(options), names_(plan) {
    runtime::for_each_step(plan.steps, [&](const runtime::Step& step) {
      if (const auto* launch = std::get_if<runtime::Launch>(&step.node)) note(*launch);
      const auto* collective = std::get_if<runtime::Collective>(&step.node);
      if (collective != nullptr && options.cores_are_processes && has_communicator(plan, collective->axes))
        axes_[collective->axes] = true;
    });
  }

  std::string write() {
    const std::string name = "run_" + identifier(plan_.name);
    {
      auto body = out_.indent();
      begin();
      steps(plan_.steps);
      out_.line("return 0;");
    }
    std::string device;
    if (!reductions_.empty()) {
      device =
          fmt::format("\nextern \"C\" const char {}_kernels[] = R\"cuda(\nnamespace reductions {{\n{}}}\n{})cuda\";\n",
                      name, reduction_prelude(), reductions_);
    }
    const std::string head = fmt::format("extern \"C\" int {}(", name);
    std::string function = head;
    const std::string separator = ",\n" + std::string(head.size(), ' ');
    function += join(parameters_, separator, [](const Parameter& p) { return p.type + " " + p.name; }) + ") {\n";
    function += out_.text() + "}\n";
    return comment(name) + call_prelude(function) + device + "\n" + function;
  }

 private:
  struct Parameter {
    std::string type, name, meaning;
  };

  std::string text(const ScalarProgram& program) const { return scalar_text(program, names_.slots); }
  const std::string& slot(int64_t index) const { return names_.slots.at(static_cast<size_t>(index)); }
  bool is_mesh() const { return !plan_.mesh.empty(); }

  /// Gathers what the head of the function depends on.
  void note(const runtime::Launch& s) {
    for (size_t i = 0; i < s.alignments.size(); ++i) {
      int64_t& most = alignments_[s.buffers[i]];
      most = std::max(most, s.alignments[i]);
    }
    for (const runtime::TensorMap& map : s.maps) {
      int64_t& most = alignments_[s.buffers[static_cast<size_t>(map.buffer)]];
      most = std::max<int64_t>(most, 16);
    }
    if (has_faults(s.reports)) reporting_.emplace(&s, static_cast<int64_t>(reporting_.size()));
  }

  void begin() {
    parameters_.push_back({"CUlibrary", "kernels", library_meaning()});
    parameters_.push_back({"CUstream", "stream", "of the current context; everything is enqueued on it"});
    if (options_.cores_are_processes) {
      const auto extent = [](int64_t n) { return fmt::format("{}", n); };
      parameters_.push_back(
          {"int64_t", "core",
           fmt::format("the number of this process in the mesh of {}, row-major", join(plan_.mesh, " x ", extent))});
    }
    for (const auto& [axes, used] : axes_) {
      std::vector<std::string> of;
      for (size_t a = 0; a < plan_.mesh.size(); ++a) {
        if (axes >> a & 1) of.push_back(plan_.mesh_axes[a]);
      }
      const std::string list = join(of, ", ", [](const std::string& axis) { return axis; });
      parameters_.push_back({"ncclComm_t", communicator_name(plan_, axes),
                             fmt::format("of the cores that differ in {} only, in their order", list)});
    }
    if (!reporting_.empty()) {
      parameters_.push_back({"int64_t*", "reports",
                             fmt::format("page-locked memory of the host: {} words of 0; a kernel that asserts leaves "
                                         "there {{2, number of the assertion, values}} in its {} words",
                                         kReportWords * static_cast<int64_t>(reporting_.size()), kReportWords)});
    }
    tensors();
    scalars();
    if (is_mesh() && !options_.cores_are_processes) out_.line("int64_t core = 0;  // the first one of each launch");
    if (plan_.multiprocessors) {
      out_.line("CUdevice device = 0;");
      out_.line("int processors = 0;");
      out_.line("TRY(cuCtxGetDevice(&device));");
      out_.line("TRY(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));");
      out_.line(fmt::format("const int64_t {} = processors;", slot(*plan_.multiprocessors)));
    }
    for (const auto& [id, bytes] : alignments_) {
      if (static_cast<size_t>(id) < plan_.params.size() && bytes > 1)
        out_.line(fmt::format("TRY(aligned({}, {}));", names_.address(id), bytes));
    }
    for (size_t b = 0; b < plan_.buffers.size(); ++b)
      out_.line(fmt::format("Scratch {}(stream);", names_.tensors[plan_.params.size() + b]));
    bool communicates = false, cooperates = false;
    runtime::for_each_step(plan_.steps, [&](const runtime::Step& step) {
      communicates = communicates || std::holds_alternative<runtime::Collective>(step.node);
      const auto* launch = std::get_if<runtime::Launch>(&step.node);
      cooperates = cooperates || (launch != nullptr && launch->cooperative);
    });
    if (communicates && options_.cores_are_processes) out_.line("Scratch room(stream);");
    if (cooperates) out_.line("Scratch workspace(stream);");
  }

  /// An extent of the argument, in its own elements.
  std::string extent_text(const runtime::Extent& dim) const {
    const auto* bind = std::get_if<runtime::BindSlot>(&dim);
    if (bind == nullptr) return text(std::get<ScalarProgram>(dim));
    return bind->elements > 1 ? fmt::format("{} / {}", slot(bind->slot), bind->elements) : slot(bind->slot);
  }

  void tensors() {
    std::vector<bool> bound(plan_.slots.size(), false);
    for (const runtime::ScalarParam& each : plan_.scalar_params) bound[static_cast<size_t>(each.slot)] = true;
    std::vector<Parameter> extents;
    for (size_t p = 0; p < plan_.params.size(); ++p) {
      const runtime::TensorParam& param = plan_.params[p];
      const std::string dims = join(param.dims, ", ", [&](const runtime::Extent& dim) { return extent_text(dim); });
      std::string meaning = fmt::format("{}[{}]", runtime::to_text(param.dtype), dims);
      if (!param.strides.empty()) {
        const auto of = [&](const ScalarProgram& stride) { return text(stride); };
        meaning += fmt::format(" of strides [{}]", join(param.strides, ", ", of));
      }
      meaning += param.read && param.written ? ", read and written" : param.written ? ", written" : ", read";
      const auto alignment = alignments_.find(static_cast<int64_t>(p));
      if (alignment != alignments_.end() && alignment->second > 1)
        meaning += fmt::format(", at a multiple of {} bytes", alignment->second);
      parameters_.push_back({"CUdeviceptr", names_.tensors[p], meaning});
      for (size_t d = 0; d < param.dims.size(); ++d) {
        const auto* bind = std::get_if<runtime::BindSlot>(&param.dims[d]);
        if (bind == nullptr || bound[static_cast<size_t>(bind->slot)]) continue;
        bound[static_cast<size_t>(bind->slot)] = true;
        const std::string times = bind->elements > 1 ? fmt::format("{} times ", bind->elements) : "";
        extents.push_back({"int64_t", slot(bind->slot), fmt::format("{}extent {} of {}", times, d, names_.tensors[p])});
      }
    }
    parameters_.insert(parameters_.end(), extents.begin(), extents.end());
  }

  void scalars() {
    for (size_t i = 0; i < plan_.scalar_params.size(); ++i) {
      const runtime::ScalarParam& each = plan_.scalar_params[i];
      const std::string type = type_of(each.dtype), &given = names_.scalars[i], &own = slot(each.slot);
      const bool is_float = each.dtype.code != runtime::kDLInt && each.dtype.code != runtime::kDLUInt &&
                            each.dtype.code != runtime::kDLBool;
      std::string meaning = runtime::to_text(each.dtype);
      if (is_float && type.starts_with("uint")) meaning += ", its bits";
      parameters_.push_back({type, given, meaning});
      if (own == given) continue;
      const char* form = is_float ? "const int64_t {} = bits_of({});" : "const int64_t {} = static_cast<int64_t>({});";
      out_.line(fmt::format(fmt::runtime(form), own, given));
    }
  }

  std::string library_meaning() const {
    std::string out = "of kernel.source(\"cuda\")";
    if (has_reductions()) out += fmt::format(" and, behind it, run_{}_kernels", identifier(plan_.name));
    return out + fmt::format(", compiled with {}", options_.flags);
  }

  bool has_reductions() const {
    bool found = false;
    runtime::for_each_step(plan_.steps, [&](const runtime::Step& step) {
      const auto* s = std::get_if<runtime::Collective>(&step.node);
      if (s != nullptr && options_.cores_are_processes)
        found = found || !collective_text(plan_, *s, names_, "of").kernel.empty();
    });
    return found;
  }

  // Steps.

  void steps(const std::vector<runtime::Step>& list) {
    for (const runtime::Step& each : list) std::visit([this](const auto& node) { step(node); }, each.node);
  }

  void step(const runtime::Check& s) {
    checks_.push_back(s.fault.code_text() + ": " + runtime::to_text(s.condition, &names_.slots));
    out_.line(fmt::format("if (!holds({})) return -{};", exact_text(s.condition, names_.slots), checks_.size()));
  }

  void step(const runtime::Allocate& s) {
    const runtime::BufferDecl& decl = plan_.buffers[static_cast<size_t>(s.buffer) - plan_.params.size()];
    const int64_t bytes = runtime::element_bytes(decl.dtype);
    const std::optional<int64_t> known = constant_of(decl.elements);
    std::string size = known ? fmt::format("{}", *known * bytes) : fmt::format("{} * {}", text(decl.elements), bytes);
    if (decl.per_core && !options_.cores_are_processes)
      size = fmt::format("{} * {}", apart(decl), runtime::core_count(plan_));
    out_.line(fmt::format("TRY({}.reserve({}, {}));", names_.tensors[static_cast<size_t>(s.buffer)], size,
                          std::max(decl.alignment, runtime::kInstanceAlignment)));
  }

  void step(const runtime::Launch& s) {
    out_.line("{");
    {
      auto indent = out_.indent();
      std::vector<std::string> arguments, numbers;
      for (int64_t id : s.buffers) arguments.push_back("&" + names_.address(id));
      const auto number = [&](const std::string& value) {
        const std::string name = fmt::format("value{}", numbers.size());
        numbers.push_back(fmt::format("{} = {}", name, value));
        arguments.push_back("&" + name);
      };
      for (const ScalarProgram& scalar : s.scalars) number(text(scalar));
      for (int64_t id : s.buffers) {
        const auto index = static_cast<size_t>(id);
        if (index < plan_.params.size()) continue;
        const runtime::BufferDecl& decl = plan_.buffers[index - plan_.params.size()];
        if (decl.per_core) number(apart(decl));
      }
      if (is_mesh()) arguments.push_back("&core");
      if (!numbers.empty()) {
        out_.line(fmt::format("int64_t {};", join(numbers, ", ", [](const std::string& each) { return each; })));
      }
      if (s.cooperative) {
        const int64_t bytes = s.barrier_words * 4;
        out_.line(fmt::format("TRY(workspace.reserve({}, 256));", bytes));
        out_.line(fmt::format("TRY(cuMemsetD8Async(workspace.at, 0, {}, stream));", bytes));
        arguments.push_back("&workspace.at");
      }
      if (const auto reporting = reporting_.find(&s); reporting != reporting_.end()) {
        out_.line(fmt::format("int64_t* report = reports + {};", reporting->second * kReportWords));
        arguments.push_back("&report");
      }
      for (size_t i = 0; i < s.maps.size(); ++i) arguments.push_back(tensor_map(s, s.maps[i], i));
      if (arguments.empty()) arguments.push_back("nullptr");
      out_.line(fmt::format("void* arguments[] = {{{}}};",
                            join(arguments, ", ", [](const std::string& each) { return each; })));
      std::string shape = fmt::format(".blocks = {}, .threads = {}", blocks(s), s.threads);
      if (s.shared_bytes > 0) shape += fmt::format(", .shared = {}", s.shared_bytes);
      if (s.cluster > 1) shape += fmt::format(", .cluster = {}", s.cluster);
      if (s.cooperative) shape += ", .cooperative = true";
      out_.line(fmt::format("TRY(launch(kernels, \"{}\", Shape{{{}}}, arguments, stream));",
                            options_.kernels.at(static_cast<size_t>(s.kernel)), shape));
    }
    out_.line("}");
  }

  /// The bytes between the instances of cores. A process has its own one only, so that they are nothing apart.
  std::string apart(const runtime::BufferDecl& decl) const {
    if (options_.cores_are_processes) return "0";
    constexpr int64_t kStep = runtime::kInstanceAlignment;
    const int64_t bytes = runtime::element_bytes(decl.dtype);
    if (const std::optional<int64_t> known = constant_of(decl.elements))
      return fmt::format("{}", (*known * bytes + kStep - 1) / kStep * kStep);
    return fmt::format("({} * {} + {}) / {} * {}", text(decl.elements), bytes, kStep - 1, kStep, kStep);
  }

  /// Of the cores of this process.
  std::string blocks(const runtime::Launch& s) const {
    const int64_t cores = options_.cores_are_processes ? runtime::core_count(plan_) : 1;
    if (const std::optional<int64_t> known = constant_of(s.blocks)) return fmt::format("{}", *known / cores);
    return cores == 1 ? text(s.blocks) : fmt::format("{} / {}", text(s.blocks), cores);
  }

  /// The statements that make a map; gives the argument.
  std::string tensor_map(const runtime::Launch& s, const runtime::TensorMap& map, size_t number) {
    const int64_t id = s.buffers[static_cast<size_t>(map.buffer)];
    const runtime::TensorParam& param = plan_.params[static_cast<size_t>(id)];
    const size_t rank = param.dims.size();
    const int64_t element = runtime::element_bytes(param.dtype);
    std::vector<std::string> extents, strides, box, steps;
    std::string compact = fmt::format("{}", element);
    for (size_t k = 0; k < rank; ++k) {
      const runtime::Extent& dim = param.dims[rank - 1 - k];
      const std::string extent = extent_text(dim);
      extents.push_back(wide(extent));
      if (k > 0) {
        strides.push_back(
            wide(param.strides.empty() ? compact : fmt::format("{} * {}", text(param.strides[rank - 1 - k]), element)));
      }
      compact += " * " + extent;
      box.push_back(fmt::format("{}", map.box[rank - 1 - k]));
      steps.push_back("1");
    }
    if (strides.empty()) strides.push_back("0");
    const auto all = [](const std::vector<std::string>& list) {
      return join(list, ", ", [](const std::string& each) { return each; });
    };
    out_.line(fmt::format("const cuuint64_t extents{0}[] = {{{1}}}, strides{0}[] = {{{2}}};", number, all(extents),
                          all(strides)));
    out_.line(fmt::format("const cuuint32_t box{0}[] = {{{1}}}, steps{0}[] = {{{2}}};", number, all(box), all(steps)));
    out_.line(fmt::format("CUtensorMap map{};", number));
    out_.line(fmt::format("TRY(cuTensorMapEncodeTiled(&map{0}, CU_TENSOR_MAP_DATA_TYPE_UINT{1}, {2}, pointer({3}),",
                          number, element * 8, rank, names_.address(id)));
    const std::string swizzle = map.swizzle == 0 ? "NONE" : fmt::format("{}B", map.swizzle);
    out_.line(fmt::format("                           extents{0}, strides{0}, box{0}, steps{0}, "
                          "CU_TENSOR_MAP_INTERLEAVE_NONE,",
                          number));
    out_.line(fmt::format("                           CU_TENSOR_MAP_SWIZZLE_{}, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,",
                          swizzle));
    out_.line("                           CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));");
    return fmt::format("&map{}", number);
  }

  static std::string wide(const std::string& value) {
    const bool is_number = std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; });
    return is_number ? value : fmt::format("static_cast<cuuint64_t>({})", value);
  }

  void step(const runtime::Collective& s) {
    if (!options_.cores_are_processes) return;  // a barrier: the stream orders the steps
    const std::string name = fmt::format("{}_reduce_{}", identifier(plan_.name), reduction_count_);
    const CollectiveText made = collective_text(plan_, s, names_, name);
    for (const std::string& line : made.lines) out_.line(line);
    if (made.kernel.empty()) return;
    reductions_ += made.kernel;
    ++reduction_count_;
  }

  void step(const runtime::Loop& s) {
    const std::string& i = slot(s.slot);
    const std::optional<int64_t> begin = constant_of(s.begin), extent = constant_of(s.extent);
    const std::string end = begin && extent ? fmt::format("{}", *begin + *extent) : i + "_end";
    const std::string also = begin && extent ? "" : fmt::format(", {} = {} + {}", end, i, text(s.extent));
    out_.line(fmt::format("for (int64_t {0} = {1}{2}; {0} < {3}; ++{0}) {{", i, text(s.begin), also, end));
    inside(s.body);
    out_.line("}");
  }

  void inside(const std::vector<runtime::Step>& body) {
    auto indent = out_.indent();
    steps(body);
  }

  void step(const runtime::Branch& s) {
    out_.line(fmt::format("if ({}) {{", text(s.condition)));
    inside(s.then_steps);
    if (!s.else_steps.empty()) {
      out_.line("} else {");
      inside(s.else_steps);
    }
    out_.line("}");
  }

  void head(const runtime::ControlValue& d) {
    for (const auto& each : d.head) std::visit([this](const auto& node) { step(node); }, each);
  }

  void step(const runtime::Read& s) {
    out_.line(fmt::format("int64_t {} = 0;", slot(s.slot)));
    const std::optional<int64_t> known = constant_of(s.offset);
    const int64_t bytes = runtime::element_bytes(s.dtype);
    std::string at = names_.address(s.buffer);
    if (!known) at += fmt::format(" + {} * {}", text(s.offset), bytes);
    if (known && *known != 0) at += fmt::format(" + {}", *known * bytes);
    const bool is_bool = s.dtype.code == runtime::kDLBool;
    out_.line(
        fmt::format("TRY(read_value<{}>({}, stream, &{}));", is_bool ? "uint8_t" : type_of(s.dtype), at, slot(s.slot)));
    if (is_bool) out_.line(fmt::format("{0} = {0} != 0;", slot(s.slot)));
  }

  std::string decided(const runtime::ControlValue& d) const {
    const std::string value = text(d.value);
    return d.use == runtime::ControlUse::Condition ? value + " != 0"
           : d.use == runtime::ControlUse::Count   ? fmt::format("greatest({}, 0)", value)
                                                   : value;
  }

  void step(const runtime::Diverge& s) {
    out_.line("{");
    {
      auto indent = out_.indent();
      head(s.control);
      out_.line(fmt::format("const int64_t {} = {};", slot(s.slot), decided(s.control)));
      steps(s.body);
    }
    out_.line("}");
  }

  /// The head of a loop is evaluated before each iteration.
  void step(const runtime::Repeat& s) {
    out_.line("for (;;) {");
    {
      auto indent = out_.indent();
      head(s.control);
      out_.line(fmt::format("if (!({})) break;", decided(s.control)));
      steps(s.body);
    }
    out_.line("}");
  }

  std::string comment(const std::string& name) const;

  const Plan& plan_;
  const CallTextOptions& options_;
  const CallNames names_;
  std::map<uint64_t, bool> axes_;
  std::map<int64_t, int64_t> alignments_;  ///< by buffer id, in bytes
  std::map<const runtime::Launch*, int64_t> reporting_;
  std::vector<Parameter> parameters_;
  std::vector<std::string> checks_;
  std::string reductions_;
  int reduction_count_ = 0;
  TextDocument out_{2};
};

std::string CallWriter::comment(const std::string& name) const {
  std::vector<std::string> lines;
  const auto say = [&](const std::string& line) { lines.push_back(line); };
  say(fmt::format("A call of '{}' by CUDA's driver{}, printed by helve from the plan that its executor follows.",
                  plan_.name, options_.cores_are_processes ? " and NCCL, on one process" : ""));
  say("");
  say(name + " takes");
  size_t width = 0;
  for (const Parameter& each : parameters_) width = std::max(width, each.name.size());
  for (const Parameter& each : parameters_) say(fmt::format("  {:<{}}  {}", each.name, width, each.meaning));
  say("Tensors are of this process and on the current device; strides are in elements, none for row-major.");
  say("");
  say("It returns 0, a CUresult above 0, 10000 + an ncclResult_t, or, where a condition of the call does not hold,");
  for (size_t c = 0; c < checks_.size(); ++c) say(fmt::format("  -{}  {}", c + 1, checks_[c]));
  if (checks_.empty()) lines.back() = "It returns 0, a CUresult above 0 or 10000 + an ncclResult_t.";
  say("");
  say("A call by helve also checks that the arguments have these dtypes, extents and strides, are on one device and");
  say("share no memory, and that sizes fit 64 bits; it takes tensors of less alignment, keeps its memory for the");
  say(options_.cores_are_processes
          ? "next call, compares what processes do where asked to, and ends a wait for one that does not come."
          : "next call, and raises what a kernel asserts.");
  std::string out;
  for (const std::string& line : lines) out += line.empty() ? "//\n" : "// " + line + "\n";
  return out;
}

/// Cores of one process that a launch begins together must stay together up to the next one.
void check_cores(const Plan& plan) {
  runtime::for_each_step(plan.steps, [&](const runtime::Step& step) {
    const auto* collective = std::get_if<runtime::Collective>(&step.node);
    const bool exchanges = collective != nullptr && collective->kind != runtime::CollectiveKind::Barrier;
    const bool parts =
        std::holds_alternative<runtime::Diverge>(step.node) || std::holds_alternative<runtime::Repeat>(step.node);
    if (!exchanges && !parts) return;
    throw UserError(
        Code::CallText, {},
        {{"kernel", plan.name},
         {"reason", std::string(exchanges ? "cores of one process exchange values between its launches"
                                          : "each core of this process decides by its memory what comes next")},
         {"remedy", std::string("show \"plan\", which has its steps, or compile it for a mesh of device=\"cuda\", "
                                "which has a process for each core")}});
  });
}

}  // namespace

std::string call_text(const Plan& plan, const CallTextOptions& options) {
  if (!plan.mesh.empty() && !options.cores_are_processes) check_cores(plan);
  return CallWriter(plan, options).write();
}

}  // namespace helve
