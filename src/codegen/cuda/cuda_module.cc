// The text of a module: a prelude of what its kernels use, then the kernels.
// Kernels come first, since they decide what the prelude holds.
#include "helve/codegen/cuda/cuda_module.h"

#include <unordered_map>

#include "kernel_emitter.h"

namespace helve {

std::optional<int64_t> shared_memory_limit(const std::string& arch) {
  constexpr int64_t kKiB = 1024;
  static const std::unordered_map<std::string, int64_t> limits = {
      {"80", 163 * kKiB}, {"86", 99 * kKiB},  {"87", 163 * kKiB}, {"89", 99 * kKiB},  {"90", 227 * kKiB},
      {"100", 227 * kKiB}, {"103", 227 * kKiB}, {"110", 227 * kKiB}, {"120", 99 * kKiB}, {"121", 99 * kKiB},
  };
  const size_t begin = arch.find_first_of("0123456789");
  if (begin == std::string::npos) return std::nullopt;
  const size_t end = arch.find_first_not_of("0123456789", begin);
  const auto found = limits.find(arch.substr(begin, end == std::string::npos ? end : end - begin));
  return found == limits.end() ? std::nullopt : std::optional(found->second);
}

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
