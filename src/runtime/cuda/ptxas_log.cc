// Reading what ptxas reports with -v.
// The log is the one place where spills are told apart from local arrays; NVRTC and nvcc write it alike.
#include <algorithm>
#include <charconv>
#include <optional>

#include "helve/runtime/cuda/compile.h"

namespace helve::runtime::cuda {

namespace {

/// The number right before `unit` in `line`, if there is one: 568 for "568 bytes spill stores".
std::optional<int64_t> number_before(std::string_view line, std::string_view unit) {
  const size_t at = line.find(unit);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  size_t begin = at;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int64_t value = 0;
  const auto [stop, fault] = std::from_chars(line.data() + begin, line.data() + at, value);
  if (fault != std::errc() || stop != line.data() + at) return std::nullopt;
  return value;
}

/// The text between the first pair of single quotes after `lead`.
std::optional<std::string> quoted_after(std::string_view line, std::string_view lead) {
  const size_t at = line.find(lead);
  if (at == std::string_view::npos) return std::nullopt;
  const size_t begin = line.find('\'', at);
  if (begin == std::string_view::npos) return std::nullopt;
  const size_t end = line.find('\'', begin + 1);
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(line.substr(begin + 1, end - begin - 1));
}

}  // namespace

std::vector<KernelResources> read_ptxas_log(std::string_view log) {
  std::vector<KernelResources> out;
  bool of_kernel = false;  // the properties belong to the last kernel, not to a device function
  while (!log.empty()) {
    const size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    if (auto name = quoted_after(line, "Compiling entry function")) {
      out.push_back({std::move(*name)});
      continue;
    }
    constexpr std::string_view kProperties = "Function properties for ";
    if (const size_t at = line.find(kProperties); at != std::string_view::npos) {
      of_kernel = !out.empty() && line.substr(at + kProperties.size()) == out.back().name;
      continue;
    }
    if (out.empty()) continue;
    KernelResources& kernel = out.back();
    if (of_kernel) {
      if (auto bytes = number_before(line, " bytes stack frame")) kernel.local_bytes = *bytes;
      if (auto bytes = number_before(line, " bytes spill stores")) kernel.spill_store_bytes = *bytes;
      if (auto bytes = number_before(line, " bytes spill loads")) kernel.spill_load_bytes = *bytes;
    }
    if (auto count = number_before(line, " registers")) {
      kernel.registers = *count;
      kernel.shared_bytes = number_before(line, " bytes smem").value_or(0);
    }
  }
  return out;
}

std::vector<Diagnostic> warnings_of(const std::vector<KernelResources>& kernels) {
  std::vector<Diagnostic> out;
  for (const KernelResources& kernel : kernels) {
    if (kernel.spill_store_bytes > 0 || kernel.spill_load_bytes > 0) {
      out.push_back(
          {Code::RegisterSpills,
           {},
           {{"kernel", kernel.name}, {"stores", kernel.spill_store_bytes}, {"loads", kernel.spill_load_bytes}},
           {},
           {}});
    } else if (kernel.local_bytes > 0) {
      out.push_back({Code::LocalArrays, {}, {{"kernel", kernel.name}, {"bytes", kernel.local_bytes}}, {}, {}});
    }
  }
  return out;
}

const KernelResources* Cubin::find(std::string_view kernel) const {
  const auto it = std::ranges::find(kernels, kernel, &KernelResources::name);
  return it == kernels.end() ? nullptr : &*it;
}

}  // namespace helve::runtime::cuda
