// Programs of the CUDA toolkit as other processes.
// Each runs with a private folder for its files and its output.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace helve::runtime::cuda {

/// A private folder that is removed with its contents.
class TemporaryFolder {
 public:
  /// `fault` says why there is none, and is empty otherwise.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  const std::string& fault() const { return fault_; }

 private:
  std::filesystem::path path_;
  std::string fault_;
};

std::string file_text(const std::filesystem::path& path);
/// False if it cannot be written.
bool write_file(const std::filesystem::path& path, std::string_view text);

struct Outcome {
  bool good;
  std::string output;  ///< standard output and error together
  std::string fault;   ///< why it could not be started; empty if it could
};

/// Runs a program and waits.
Outcome run_program(const std::vector<std::string>& words, const std::filesystem::path& folder);

}  // namespace helve::runtime::cuda
