// Starting a program and waiting for it.
// Standard output and error go to one file of the folder, so that nothing waits for a full pipe.
#include "run_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

extern char** environ;

namespace helve::runtime::cuda {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "helve-cuda-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    fault_ = fmt::format("{}: {}", pattern, std::strerror(errno));
  } else {
    path_ = pattern;
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code fault;
  if (!path_.empty()) fs::remove_all(path_, fault);
}

std::string file_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool write_file(const fs::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  return static_cast<bool>(file.flush());
}

Outcome run_program(const std::vector<std::string>& words, const fs::path& folder) {
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
  if (fault != 0) return {false, {}, fmt::format("{}: {}", words[0], std::strerror(fault))};
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return {false, {}, fmt::format("waiting for it failed: {}", std::strerror(errno))};
  }
  return {WIFEXITED(status) && WEXITSTATUS(status) == 0, file_text(output), {}};
}

}  // namespace helve::runtime::cuda
