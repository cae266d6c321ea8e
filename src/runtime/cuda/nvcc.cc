// nvcc as a separate process.
// It starts hundreds of milliseconds slower than NVRTC, but comes with every toolkit.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>

#include "helve/support/diagnostic.h"
#include "toolchain.h"

extern char** environ;

namespace helve::runtime::cuda {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void missing(std::string reason) {
  throw UserError(Code::NvccMissing, {}, {{"reason", std::move(reason)}});
}

/// A private folder that is removed with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "helve-nvcc-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) missing(fmt::format("{}: {}", pattern, std::strerror(errno)));
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code fault;
    fs::remove_all(path_, fault);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Outcome {
  bool good;
  std::string output;  ///< standard output and error together
};

/// Runs a program and waits. UserError NvccMissing if it cannot be started.
Outcome run(const std::vector<std::string>& words, const fs::path& folder) {
  const std::string output = (folder / "output").string();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int fault = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (fault != 0) missing(fmt::format("{}: {}", words[0], std::strerror(fault)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) missing(fmt::format("waiting for it failed: {}", std::strerror(errno)));
  }
  return {WIFEXITED(status) && WEXITSTATUS(status) == 0, text_of(output)};
}

class Nvcc final : public Toolchain {
 public:
  explicit Nvcc(std::string program) : program_(std::move(program)) {
    const TemporaryFolder folder;
    const std::string version = answer("--version", folder.path());
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
    const fs::path input = folder.path() / (fs::path(name).stem().string() + ".cu"),
                   cubin = folder.path() / "out.cubin";
    {
      std::ofstream file(input, std::ios::binary);
      file << source;
      if (!file.flush()) missing(fmt::format("{} cannot be written", input.string()));
    }
    std::vector<std::string> words = {
        program_,       "-cubin",      "--gpu-architecture=" + arch, "--std=c++17", "--ptxas-options=-v", "-o",
        cubin.string(), input.string()};
    words.insert(words.end(), flags.begin(), flags.end());
    const Outcome outcome = run(words, folder.path());
    return {outcome.good, outcome.good ? text_of(cubin) : std::string(), outcome.output};
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
