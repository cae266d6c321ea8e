// nvcc as a separate process.
// It starts hundreds of milliseconds slower than NVRTC, but comes with every toolkit.
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "helve/support/diagnostic.h"
#include "run_program.h"
#include "toolchain.h"

namespace helve::runtime::cuda {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void missing(std::string reason) {
  throw UserError(Code::NvccMissing, {}, {{"reason", std::move(reason)}});
}

/// Runs a program and waits. UserError NvccMissing if it cannot be started.
Outcome run(const std::vector<std::string>& words, const fs::path& folder) {
  Outcome out = run_program(words, folder);
  if (!out.fault.empty()) missing(out.fault);
  return out;
}

const TemporaryFolder& usable(const TemporaryFolder& folder) {
  if (!folder.fault().empty()) missing(folder.fault());
  return folder;
}

class Nvcc final : public Toolchain {
 public:
  explicit Nvcc(std::string program) : program_(std::move(program)) {
    const TemporaryFolder folder;
    const std::string version = answer("--version", usable(folder).path());
    const size_t at = version.rfind("V");
    const size_t end = version.find_first_not_of("0123456789.", at == std::string::npos ? at : at + 1);
    if (at == std::string::npos || end == at + 1) missing(fmt::format("{} does not tell its version", program_));
    text_ = "nvcc " + version.substr(at + 1, end - at - 1);
    const std::string listed = answer("--list-gpu-code", folder.path());
    for (size_t from = listed.find("sm_"); from != std::string::npos; from = listed.find("sm_", from + 3)) {
      int number = 0;
      const auto [stop, fault] = std::from_chars(listed.data() + from + 3, listed.data() + listed.size(), number);
      if (fault == std::errc()) architectures_.push_back(number);
    }
  }

  const std::string& text() const override { return text_; }
  const std::vector<int>& architectures() const override { return architectures_; }

  Result compile(std::string_view source, const std::string& name, const std::string& arch,
                 const std::vector<std::string>& flags) const override {
    const TemporaryFolder folder;
    const fs::path input = usable(folder).path() / (fs::path(name).stem().string() + ".cu"),
                   output = folder.path() / "out";
    if (!write_file(input, source)) missing(fmt::format("{} cannot be written", input.string()));
    std::vector<std::string> words = {program_,
                                      makes_ptx(arch) ? "-ptx" : "-cubin",
                                      "--gpu-architecture=" + arch,
                                      "--std=c++17",
                                      "--ptxas-options=-v",
                                      "-o",
                                      output.string(),
                                      input.string()};
    words.insert(words.end(), flags.begin(), flags.end());
    const Outcome outcome = run(words, folder.path());
    return {outcome.good, outcome.good ? file_text(output) : std::string(), outcome.output};
  }

 private:
  std::string answer(const char* question, const fs::path& folder) const {
    const Outcome outcome = run({program_, question}, folder);
    if (!outcome.good) missing(fmt::format("{} {} failed: {}", program_, question, outcome.output));
    return outcome.output;
  }

  std::string program_;
  std::string text_;
  std::vector<int> architectures_;
};

}  // namespace

std::shared_ptr<const Toolchain> nvcc() {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const Toolchain>> found;
  const char* named = std::getenv("HELVE_NVCC");
  const std::string program = named != nullptr && *named != '\0' ? named : "nvcc";
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<const Toolchain>& slot = found[program];
  if (slot == nullptr) slot = std::make_shared<Nvcc>(program);
  return slot;
}

}  // namespace helve::runtime::cuda
