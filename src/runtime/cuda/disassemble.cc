// The machine code of a cubin as text, by nvdisasm.
// It is a small program of the toolkit, which pip has in a wheel of its own.
#include <fmt/format.h>

#include <cstdlib>

#include "helve/runtime/cuda/compile.h"
#include "run_program.h"
#include "toolkit_folders.h"

namespace helve::runtime::cuda {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void missing(std::string reason) {
  throw UserError(Code::NvdisasmMissing, {}, {{"reason", std::move(reason)}});
}

std::string program_of(const std::vector<std::string>& site_packages) {
  const char* named = std::getenv("HELVE_NVDISASM");
  if (named != nullptr && *named != '\0') return named;
  for (const fs::path& folder : toolkit_folders(site_packages, {"nvidia/cu13/bin"}, "bin")) {
    std::error_code fault;
    if (fs::exists(folder / "nvdisasm", fault)) return (folder / "nvdisasm").string();
  }
  return "nvdisasm";  // of PATH
}

}  // namespace

std::string machine_code_text(const Cubin& cubin, const CompileOptions& options) {
  const TemporaryFolder folder;
  if (!folder.fault().empty()) missing(folder.fault());
  const fs::path file = folder.path() / "kernels.cubin";
  if (!write_file(file, cubin.bytes)) missing(fmt::format("{} cannot be written", file.string()));
  const std::string program = program_of(options.site_packages);
  Outcome outcome = run_program({program, "--print-code", file.string()}, folder.path());
  if (!outcome.fault.empty()) missing(outcome.fault);
  if (!outcome.good) missing(fmt::format("{} failed: {}", program, outcome.output));
  return std::move(outcome.output);
}

}  // namespace helve::runtime::cuda
