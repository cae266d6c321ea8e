// The table of machines, for plans that are made in Python.
// Read only: a plan asks it, and says nothing of a machine itself.
#include <pybind11/stl.h>

#include "bindings.h"
#include "casters.h"
#include "helve/runtime/cuda/driver.h"
#include "helve/support/diagnostic.h"
#include "helve/target/machine.h"

namespace helve::python {

namespace py = pybind11;

void bind_machine(py::module_& module) {
  py::class_<Machine>(module, "Machine", "What a machine is: limits of its processors, and figures of the whole.")
      .def_readonly("name", &Machine::name)
      .def_readonly("arch", &Machine::arch)
      .def_readonly("processors", &Machine::processors)
      .def_readonly("block_threads", &Machine::block_threads)
      .def_readonly("registers", &Machine::registers)
      .def_readonly("thread_registers", &Machine::thread_registers)
      .def_readonly("shared_bytes", &Machine::shared_bytes)
      .def_readonly("block_shared_bytes", &Machine::block_shared_bytes)
      .def_readonly("cluster_blocks", &Machine::cluster_blocks)
      .def_readonly("group_products", &Machine::group_products)
      .def_readonly("vector_bytes", &Machine::vector_bytes)
      .def_readonly("first_cache", &Machine::first_cache)
      .def_readonly("second_cache", &Machine::second_cache)
      .def_readonly("last_cache", &Machine::last_cache)
      .def_readonly("store_line", &Machine::store_line)
      .def_readonly("bandwidth", &Machine::bandwidth)
      .def_property_readonly("peaks",
                             [](const Machine& m) {
                               py::dict out;
                               for (const Peak& peak : m.peaks) out[py::str(to_string(peak.type))] = peak.operations;
                               return out;
                             })
      .def_property_readonly("is_gpu", &Machine::is_gpu)
      .def("value_registers", &Machine::value_registers, py::arg("threads"),
           "Registers per thread, in a block of `threads`, that may hold long-lived values.")
      .def("__repr__", [](const Machine& m) { return "<helve machine " + m.name + ">"; });
  module.def("gpu_machine", &gpu_machine, py::arg("arch"),
             "The machine of an architecture (\"sm_90a\"), the nearest older one between two that are known, "
             "else None.");
  module.def(
      "device_arch",
      []() -> std::optional<std::string> {
        try {
          return runtime::cuda::device(0).arch();
        } catch (const UserError&) {
          return std::nullopt;
        }
      },
      "The architecture of the first GPU (\"sm_90a\"), or None where there is none.");
  module.def("host_machine", &host_machine, "The CPU of this process.");
}

}  // namespace helve::python
