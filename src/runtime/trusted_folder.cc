// The walk from the root to the folder.
// If nobody else can change a folder on the path, none can be replaced between check and use.
#include "trusted_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

namespace helve::runtime {

namespace fs = std::filesystem;

namespace {

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

/// Why `path` is not trusted; empty if it is. The last folder of a path must not be shared.
std::string fault_of(const std::string& path, const struct stat& info, bool last) {
  if (!S_ISDIR(info.st_mode)) return path + " is no folder";
  if (info.st_uid != 0 && info.st_uid != geteuid()) return path + " belongs to another user";
  const bool shared = (info.st_mode & kOthersWrite) != 0;
  if (shared && (last || (info.st_mode & S_ISVTX) == 0)) return "others can write into " + path;
  return {};
}

/// The path without links; empty, with errno, if there is none.
std::string resolved(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> text(realpath(path.c_str(), nullptr), &std::free);
  return text ? text.get() : "";
}

bool make_folders(const fs::path& path) {
  fs::path made;
  for (const fs::path& part : path) {
    made /= part;
    if (mkdir(made.c_str(), 0700) != 0 && errno != EEXIST && errno != EISDIR) return false;
  }
  return true;
}

OpenFolder failure(int fault) {
  return {Descriptor(), fault == ENOENT ? std::string() : std::string(std::strerror(fault))};
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

OpenFolder open_trusted_folder(const std::string& path, bool create) {
  std::string whole = resolved(path);
  if (whole.empty() && create && errno == ENOENT) {
    std::error_code fault;
    if (!make_folders(fs::absolute(path, fault))) return {Descriptor(), std::strerror(errno)};
    whole = resolved(path);
  }
  if (whole.empty()) return failure(errno);
  fs::path above;
  const fs::path folder = whole;
  for (auto part = folder.begin(); std::next(part) != folder.end(); ++part) {
    above /= *part;
    struct stat info{};
    if (lstat(above.c_str(), &info) != 0) return failure(errno);
    if (std::string fault = fault_of(above.string(), info, false); !fault.empty()) return {Descriptor(), fault};
  }
  Descriptor opened(open(whole.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info{};
  if (!opened || fstat(*opened, &info) != 0) return failure(errno);
  if (std::string fault = fault_of(whole, info, true); !fault.empty()) return {Descriptor(), fault};
  return {std::move(opened), {}};
}

}  // namespace helve::runtime
