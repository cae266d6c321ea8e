// The text of CUDA kernels, for tests and for looking at a function that is in thread form already.
// Compiling for a target goes through the driver; this is its code generator alone.
#include <pybind11/stl.h>

#include "bindings.h"
#include "casters.h"
#include "helve/analysis/kernel_interface.h"
#include "helve/analysis/registers.h"
#include "helve/codegen/cuda/cuda_module.h"
#include "helve/codegen/host/host_module.h"
#include "helve/support/diagnostic.h"
#include "helve/transform/passes.h"

namespace helve::python {

namespace py = pybind11;

namespace {

py::dict kernel_facts(const CudaKernel& kernel, const KernelSource& source) {
  const KernelInterface interface = kernel_interface(*source.stmt);
  std::vector<std::string> buffers, scalars;
  for (const BufferRef& buffer : interface.buffers) buffers.push_back(buffer->name);
  py::dict instances;
  for (const BufferRef& buffer : interface.buffers) {
    const std::optional<std::vector<int64_t>> shape = constant_shape(buffer->shape);
    if (!source.mesh || buffer->scope != MemoryScope::Global || !shape) continue;
    int64_t bytes = buffer->dtype.bytes();
    for (int64_t extent : *shape) bytes *= extent;
    instances[py::str(buffer->name)] = bytes;
  }
  for (const VarRef& var : interface.scalars) scalars.push_back(var->name);
  py::dict out;
  out["name"] = kernel.name;
  out["threads"] = kernel.threads;
  out["shared_bytes"] = kernel.shared_bytes;
  out["mesh"] = source.mesh.has_value();
  out["instances"] = instances;
  out["cluster"] = kernel.cluster;
  out["cooperative"] = kernel.cooperative;
  out["barrier_words"] = kernel.barrier_words;
  out["faults"] = kernel.faults;
  out["alignments"] = kernel.alignments;
  out["buffers"] = buffers;
  py::list maps;
  for (const runtime::TensorMap& map : kernel.maps) {
    maps.append(py::make_tuple(buffers[static_cast<size_t>(map.buffer)], map.box, map.swizzle));
  }
  out["maps"] = maps;
  out["scalars"] = scalars;
  return out;
}

}  // namespace

void bind_cuda(py::module_& module) {
  module.def(
      "cuda_source",
      [](const FunctionRef& f, bool line_directives, bool prelude, int64_t cluster_blocks) {
        const std::optional<RegisterFault> fault = register_fault(*f);
        HELVE_CHECK(!fault, fault->reason);
        const HostModule host = build_host(f, f);
        Machine machine = any_gpu();
        machine.cluster_blocks = cluster_blocks;
        const CudaSource source = emit_cuda(host.kernels, {line_directives, prelude, machine});
        py::list kernels;
        for (size_t i = 0; i < host.kernels.size(); ++i) {
          kernels.append(kernel_facts(source.kernels[i], host.kernels[i]));
        }
        return py::make_tuple(source.text, kernels);
      },
      py::arg("function"), py::arg("line_directives") = false, py::arg("prelude") = true,
      py::arg("cluster_blocks") = 8,
      "The CUDA C of a function in thread form, and for each kernel its name, threads, shared bytes, parameters, the "
      "bytes of a core's instance of each global buffer, how its blocks meet, and its tensor maps: buffer, box, "
      "swizzle.");
  module.def(
      "widen_accesses",
      [](const FunctionRef& f) {
        PassOptions options;
        options.machine = any_gpu();
        return widen_accesses(place_arrays(f, options), options);
      },
      py::arg("function"),
      "A function in thread form whose lanes access memory together, as vectors, and whose threads keep arrays at "
      "their places: what code generation prints.");
  module.def(
      "narrow_accesses", [](const FunctionRef& f) { return narrow_accesses(f, {}); }, py::arg("function"),
      "A function in thread form without vectors and asynchronous copies of global memory: the variant for tensors "
      "that are aligned as an element is.");
}

}  // namespace helve::python
