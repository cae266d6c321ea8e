// The text of CUDA kernels, for tests and for looking at a function that is in thread form already.
// Compiling for a target goes through the driver; this is its code generator alone.
#include <pybind11/stl.h>

#include "bindings.h"
#include "casters.h"
#include "helve/analysis/kernel_interface.h"
#include "helve/codegen/cuda/cuda_module.h"
#include "helve/codegen/host/host_module.h"

namespace helve::python {

namespace py = pybind11;

namespace {

py::dict kernel_facts(const CudaKernel& kernel, const KernelSource& source) {
  const KernelInterface interface = kernel_interface(*source.stmt);
  std::vector<std::string> buffers, scalars;
  for (const BufferRef& buffer : interface.buffers) buffers.push_back(buffer->name);
  for (const VarRef& var : interface.scalars) scalars.push_back(var->name);
  py::dict out;
  out["name"] = kernel.name;
  out["threads"] = kernel.threads;
  out["shared_bytes"] = kernel.shared_bytes;
  out["alignments"] = kernel.alignments;
  out["buffers"] = buffers;
  out["scalars"] = scalars;
  return out;
}

}  // namespace

void bind_cuda(py::module_& module) {
  module.def(
      "cuda_source",
      [](const FunctionRef& f, bool line_directives, bool prelude) {
        const HostModule host = build_host(f, f);
        const CudaSource source = emit_cuda(host.kernels, {line_directives, prelude});
        py::list kernels;
        for (size_t i = 0; i < host.kernels.size(); ++i) {
          kernels.append(kernel_facts(source.kernels[i], host.kernels[i]));
        }
        return py::make_tuple(source.text, kernels);
      },
      py::arg("function"), py::arg("line_directives") = false, py::arg("prelude") = true,
      "The CUDA C of a function in thread form, and for each kernel its name, threads, shared bytes and parameters.");
}

}  // namespace helve::python
