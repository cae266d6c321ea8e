// The module helve._core.
// One place that lists what Python may reach; each `bind_` function stands in the file of its subject.
#include "bindings.h"
#include "waiting.h"

PYBIND11_MODULE(_core, module) {
  module.doc() = "The C++ core of helve.";
  module.attr("__version__") = HELVE_VERSION;
  helve::python::remember_main_thread();
  helve::python::bind_diagnostics(module);
  helve::python::bind_tables(module);
  helve::python::bind_expr(module);
  helve::python::bind_stmt(module);
  helve::python::bind_function(module);
  helve::python::bind_notation(module);
  helve::python::bind_schedule(module);
  helve::python::bind_processes(module);
  helve::python::bind_nccl(module);
  helve::python::bind_driver(module);
  helve::python::bind_cuda(module);
  helve::python::bind_machine(module);
  helve::python::bind_cute(module);
  helve::python::bind_axe(module);
  helve::python::bind_plan(module);
}
