// The text of a module: the prelude that its kernels use, then the kernels.
// Kernels are generated first, since they determine the prelude.
#include "helve/codegen/cuda/cuda_module.h"

#include "kernel_emitter.h"

namespace helve {

CudaSource emit_cuda(const std::vector<KernelSource>& kernels, const CudaOptions& options) {
  CudaSource out;
  cuda::Prelude prelude;
  std::string text;
  for (const KernelSource& source : kernels) {
    cuda::KernelEmitter emitter(source, options, prelude);
    out.kernels.push_back(emitter.emit());
    text += (text.empty() ? "" : "\n") + emitter.function_text();
  }
  if (options.prelude) out.text = prelude.text();
  if (!out.text.empty()) out.text += "\n";
  out.text += text;
  return out;
}

}  // namespace helve
