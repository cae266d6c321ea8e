// The CUDA target: a host plan and CUDA C, compiled for the device's own architecture.
#include "driver_targets.h"
#include "helve/support/diagnostic.h"

namespace helve {

std::shared_ptr<const CompiledKernel> compile_cuda(Checked, const CompileOptions&) {
  throw UserError(Code::TargetMissing, {}, {{"target", "cuda"}, {"remedy", "compile for target=\"llvm\""}});
}

}  // namespace helve
