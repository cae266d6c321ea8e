// Compiling and calling from Python.
// A call reads its arguments, leaves the interpreter lock and runs; signals are looked at while it waits.
#include <pybind11/stl.h>

#include <fmt/format.h>

#include "arguments.h"
#include "bindings.h"
#include "casters.h"
#include "waiting.h"
#include "helve/analysis/barriers.h"
#include "helve/analysis/products_in_flight.h"
#include "helve/driver/compile.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/visit.h"
#include "helve/runtime/disk_cache.h"
#include "helve/runtime/thread_pool.h"
#include "helve/support/diagnostic.h"
#include "helve/transform/passes.h"

namespace helve::python {

namespace py = pybind11;

namespace {

/// The call with arrays of the same types and shapes, below a reproducer.
std::string call_text(const CallArguments& arguments) {
  std::string out = "import numpy as np\nkernel(";
  for (const runtime::TensorArgument& t : arguments.tensors()) {
    std::string extents;
    for (int32_t d = 0; d < t.tensor->ndim; ++d) extents += fmt::format("{}, ", t.tensor->shape[d]);
    out += fmt::format("np.zeros(({}), \"{}\"), ", extents, to_text(t.tensor->dtype));
  }
  for (const runtime::ScalarArgument& s : arguments.scalars())
    out += std::visit([](auto v) { return fmt::format("{}, ", v); }, s);
  return out + ")\n";
}

void call_on(const CompiledKernel& kernel, std::span<const size_t> new_arrays, const py::args& args) {
  const CallArguments arguments(kernel, args);
  runtime::CallOptions options;
  options.new_arrays = new_arrays;
  options.interrupt = interrupt_hook();
  options.stream = arguments.stream();
  bool may_have_written = false;
  options.may_have_written = &may_have_written;
  if (kernel.prints()) {  // what Python has printed comes first
    const py::object stdout_of_python = py::module_::import("sys").attr("stdout");
    if (!stdout_of_python.is_none()) stdout_of_python.attr("flush")();
  }
  try {
    run_with_room([&] { kernel.call(arguments.tensors(), arguments.scalars(), options); });
  } catch (const InternalError& fault) {
    throw InternalError(fault, report_text(*kernel.function(), kernel.options()) + call_text(arguments));
  } catch (...) {
    if (may_have_written) arguments.count_writes();  // what ends midway has written as well
    throw;
  }
  arguments.count_writes();
}

void call_kernel(const CompiledKernel& kernel, const py::args& args) { call_on(kernel, {}, args); }

void call_with_new(const CompiledKernel& kernel, const std::vector<size_t>& new_arrays, const py::args& args) {
  call_on(kernel, new_arrays, args);
}

/// Calls `print` with each line; none for None. Copies are made by threads without the lock.
std::function<void(const std::string&)> receiver(const py::object& print) {
  if (print.is_none()) return {};
  const std::shared_ptr<py::object> kept(new py::object(print), [](py::object* held) {
    const Locked lock;
    delete held;
  });
  return [kept](const std::string& line) {
    const Locked lock;
    (*kept)(line);
  };
}

/// Hands what is in scope at a breakpoint to helve.breakpoints, which lets Python's debugger look at it.
void stop_in_python(const interp::Stop& stop) {
  const Locked lock;
  py::dict scope;
  for (const interp::Stop::Value& each : stop.values) {
    scope[py::str(each.name)] = std::visit([](auto value) { return py::cast(value); }, each.value);
  }
  py::dict arrays;
  for (const interp::Stop::Array& each : stop.arrays) {
    const py::bytes elements(reinterpret_cast<const char*>(each.elements.data()), each.elements.size());
    arrays[py::str(each.name)] = py::make_tuple(std::string(to_string(each.dtype)), each.shape, elements);
  }
  py::module_::import("helve.breakpoints").attr("stop")(stop.span, stop.function, scope, arrays);
}

std::shared_ptr<const CompiledKernel> compile_for(const FunctionRef& f, const std::string& target,
                                                  const std::optional<MeshShape>& mesh, bool verify, bool print_changed,
                                                  std::optional<int64_t> persistent_chunk,
                                                  const std::optional<std::string>& check, const std::string& arch,
                                                  std::vector<std::string> site_packages, bool fast_math, bool strict,
                                                  std::optional<int64_t> stream_bytes, int64_t steps,
                                                  std::shared_ptr<runtime::ProcessGroup> processes,
                                                  std::shared_ptr<runtime::nccl::NcclWorld> gpus, bool compares) {
  CompileOptions options;
  options.processes = std::move(processes);
  options.gpus = std::move(gpus);
  options.compares_collectives = compares;
  options.target = parse_target(target);
  options.mesh = mesh;
  options.verify_passes = verify;
  options.print_changed = print_changed;
  options.persistent_chunk = persistent_chunk;
  if (check) options.check = parse_checks(*check);
  options.arch = arch;
  options.fast_math = fast_math;
  options.strict = strict;
  options.stream_bytes = stream_bytes.value_or(0);
  options.steps = steps;
  options.site_packages = std::move(site_packages);
  options.stop = stop_in_python;
  return wait_for([f, options] { return compile(f, options); });
}

std::vector<std::pair<std::string, double>> times_of(const std::vector<StageTime>& times) {
  std::vector<std::pair<std::string, double>> out;
  for (const StageTime& t : times) out.emplace_back(t.stage, t.seconds);
  return out;
}

}  // namespace

void bind_driver(py::module_& module) {
  py::register_exception<interp::OutOfSteps>(module, "OutOfSteps", PyExc_RuntimeError).doc() =
      "A call of an interpreted kernel used up its steps.";
  py::class_<CompiledKernel, std::shared_ptr<CompiledKernel>>(module, "CompiledKernel", "A compiled function.")
      .def("__call__", call_kernel)
      .def("call_with_new", call_with_new, py::arg("new_arrays"),
           "The call, on arguments of which those at the positions `new_arrays` have no contents yet.")
      .def("source",
           [](const CompiledKernel& k, const std::string& stage) {
             return wait_for([kernel = k.shared_from_this(), stage] { return kernel->source(stage); });
           },
           py::arg("stage"))
      .def("stages", method(&CompiledKernel::stages))
      .def_property_readonly("function", method(&CompiledKernel::function))
      .def_property_readonly("target", [](const CompiledKernel& k) { return std::string(to_string(k.target())); })
      .def("proofs",
           [](const CompiledKernel& k) {
             py::list out;
             for (const Proof& p : k.proofs()) {
               std::string needed;
               for (const CallCondition& each : p.conditions)
                 needed += (needed.empty() ? "" : " and ") + to_text(each.condition);
               out.append(py::make_tuple(std::string(to_string(p.kind)), p.question, std::string(to_string(p.verdict)),
                                         p.span, p.reason, needed));
             }
             return out;
           })
      .def("layouts",
           [](const CompiledKernel& k) {
             py::list out;
             const auto infer = [kernel = k.shared_from_this()] { return kernel->layouts(); };
             for (const BufferLayout& row : wait_for(infer)) {
               out.append(py::make_tuple(row.kernel, row.buffer, row.layout, row.domain, row.reason));
             }
             return out;
           })
      .def("resources",
           [](const CompiledKernel& k) {
             py::list out;
             for (const KernelUse& use : k.resources()) {
               out.append(py::make_tuple(use.kernel, use.threads, use.registers, use.shared_bytes, use.local_bytes,
                                         use.spilled_bytes, use.blocks));
             }
             return out;
           })
      .def("schedules",
           [](const CompiledKernel& k) {
             py::list out;
             const auto choose = [kernel = k.shared_from_this()] { return kernel->schedules(); };
             for (const ScheduleChoice& row : wait_for(choose)) {
               py::list declined;
               for (const auto& each : row.declined) declined.append(py::make_tuple(each.schedule, each.reason));
               out.append(py::make_tuple(row.operation, row.span, row.schedule, declined));
             }
             return out;
           })
      .def("warnings", method(&CompiledKernel::warnings))
      .def("times", [](const CompiledKernel& k) { return times_of(k.times()); });
  module.def(
      "compile",
      [](const FunctionRef& f, const std::string& target, const std::optional<MeshShape>& mesh, bool verify,
         bool print_changed, std::optional<int64_t> persistent_chunk, const std::optional<std::string>& check,
         const std::string& arch, std::vector<std::string> site_packages, bool fast_math, bool strict,
         std::optional<int64_t> stream_bytes, int64_t steps, std::shared_ptr<runtime::ProcessGroup> processes,
         std::shared_ptr<runtime::nccl::NcclWorld> gpus, bool compares) {
        return std::const_pointer_cast<CompiledKernel>(compile_for(
            f, target, mesh, verify, print_changed, persistent_chunk, check, arch, std::move(site_packages),
            fast_math, strict, stream_bytes, steps, std::move(processes), std::move(gpus), compares));
      },
      py::arg("function"), py::arg("target"), py::arg("mesh"), py::arg("verify"), py::arg("print_changed"),
      py::arg("persistent_chunk"), py::arg("check"), py::arg("arch") = "", py::arg("site_packages") = py::tuple(),
      py::arg("fast_math") = false, py::arg("strict") = false, py::arg("stream_bytes") = py::none(),
      py::arg("steps") = 0, py::arg("processes") = nullptr, py::arg("gpus") = nullptr, py::arg("compares") = false,
      "`processes`: those that the cores of the mesh are, for machine code of this CPU; `gpus`: the GPUs of those, and "
      "whether they compare collectives before they do them.");
  module.def(
      "interpreted",
      [](const FunctionRef& f, const std::optional<std::string>& check, int64_t steps, int64_t placement,
         int64_t roles, const py::object& print) {
        return std::const_pointer_cast<CompiledKernel>(interpreted(f, check ? parse_checks(*check) : interp::Checks{},
                                                                   steps, placement, roles, receiver(print)));
      },
      py::arg("function"), py::arg("check"), py::arg("steps") = 0, py::arg("placement") = 0, py::arg("roles") = 0,
      py::arg("print") = py::none(),
      "A function at any stage under the interpreter, without a question asked before its calls.");
  module.def(
      "reproducer",
      [](const FunctionRef& f, const std::string& target, const std::optional<MeshShape>& mesh, bool verify,
         std::optional<int64_t> persistent_chunk, const std::optional<std::string>& check) {
        CompileOptions options;
        options.target = parse_target(target);
        options.mesh = mesh;
        options.verify_passes = verify;
        options.persistent_chunk = persistent_chunk;
        if (check) options.check = parse_checks(*check);
        return reproducer(*f, options);
      },
      py::arg("function"), py::arg("target"), py::arg("mesh") = py::none(), py::arg("verify") = false,
      py::arg("persistent_chunk") = py::none(), py::arg("check") = py::none(),
      "Python text that compiles the function again with the same options.");
  module.def(
      "lowering_stages",
      [](const FunctionRef& f, const std::optional<MeshShape>& mesh, std::optional<int64_t> persistent_chunk,
         const std::string& target, const std::string& arch, int64_t stream_bytes, bool cores_are_devices) {
        CompileOptions options;
        options.target = parse_target(target);
        options.arch = arch;
        options.stream_bytes = stream_bytes;
        options.mesh = mesh;
        options.verify_passes = true;
        options.persistent_chunk = persistent_chunk;
        options.cores_are_devices = cores_are_devices;
        return wait_for([f, options] { return lowering_stages(f, options); });
      },
      py::arg("function"), py::arg("mesh"), py::arg("persistent_chunk"), py::arg("target") = "llvm",
      py::arg("arch") = "", py::arg("stream_bytes") = 0, py::arg("cores_are_devices") = false);
  module.def("allocate_shared", [](const FunctionRef& f) { return allocate_shared(f, {}); }, py::arg("function"),
             "A function in thread form with places for its shared memory, as CUDA C needs them.");
  module.def("sample_conditions", &sample_conditions, py::arg("on"),
             "Whether each condition that a call is to meet is compared with its set at some points, as it is made.");
  module.def(
      "check_and_lower",
      [](const FunctionRef& f, const std::optional<MeshShape>& mesh, const std::string& target,
         const std::string& arch) {
        CompileOptions options;
        options.target = parse_target(target);
        options.arch = arch;
        options.mesh = mesh;
        Lowering lowering = wait_for([f, options] { return check_and_lower(f, options); });
        return std::make_pair(lowering.function, times_of(lowering.times));
      },
      py::arg("function"), py::arg("mesh"), py::arg("target"), py::arg("arch") = "",
      "The function in the form that the target's code generator takes, and the seconds of verifier, proofs and each "
      "pass.");
  module.def(
      "lowering_warnings",
      [](const FunctionRef& f, const std::string& target, const std::string& arch) {
        CompileOptions options;
        options.target = parse_target(target);
        options.arch = arch;
        return wait_for([f, options] { return lowering_warnings(f, options); });
      },
      py::arg("function"), py::arg("target"), py::arg("arch") = "");
  module.def(
      "unordered_accesses",
      [](const FunctionRef& f) {
        return wait_for([f] {
          std::vector<std::tuple<std::string, bool>> out;
          BarrierAnalysis analysis(f);
          walk(f->body, [&](const Stmt& s) {
            const helve::Kernel* kernel = as<helve::Kernel>(s);
            if (!kernel) return;
            for (const UnorderedAccesses& each : analysis.unordered(*kernel))
              out.emplace_back(each.buffer->name, each.certain);
          });
          return out;
        });
      },
      py::arg("function"),
      "Of a function in thread form: the buffers, and whether it is certain, where threads touch one element with no "
      "barrier between.");
  module.def(
      "early_uses",
      [](const FunctionRef& f) {
        return wait_for([f] {
          std::vector<std::string> out;
          walk(f->body, [&](const Stmt& s) {
            const helve::Kernel* kernel = as<helve::Kernel>(s);
            if (!kernel) return;
            for (const EarlyUse& each : early_uses(*kernel)) out.push_back(each.buffer->name);
          });
          return out;
        });
      },
      py::arg("function"),
      "Of a function in thread form: the buffers that a statement touches while a product by T.wgmma uses them, or "
      "that are registers of a product without a fence.");
  module.def("cache_folder", &runtime::default_cache_folder, "The folder of compiled kernels of this user.");
  module.def("cache_limit", &runtime::default_cache_limit,
             "Bytes that it may have; 0 if it is turned off. Raises HV0911.");
  module.def("set_num_threads", &runtime::set_num_threads, py::arg("count"));
  module.def("thread_limit", [] { return int64_t{runtime::kThreadLimit}; });
  module.def("num_threads", &runtime::num_threads);
  module.def("default_num_threads", &runtime::default_thread_count);
}

}  // namespace helve::python
