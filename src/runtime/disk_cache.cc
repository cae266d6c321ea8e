// Cache entries as files: written to a temporary name and renamed, checked when they are read. rename(2) is the only
// operation that all file systems make atomic, so that no reader sees a partial entry. A file is touched only if its
// name, its kind and its first bytes show that this cache made it: folders are sometimes shared by mistake.
#include "helve/runtime/disk_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "trusted_folder.h"

namespace helve::runtime {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kMagic = "HELVEC01";
constexpr size_t kHeader = kMagic.size() + 8 + sizeof(Digest);
constexpr std::string_view kAside = ".new-";  ///< files that are being written
constexpr int64_t kAbandoned = 3600;          ///< seconds

bool write_all(const Descriptor& file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(*file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

/// The next `bytes` bytes, fewer at the end of the file.
std::string read_up_to(const Descriptor& file, size_t bytes) {
  std::string out(bytes, '\0');
  size_t filled = 0;
  while (filled < bytes) {
    const ssize_t got = read(*file, out.data() + filled, bytes - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    filled += static_cast<size_t>(got);
  }
  out.resize(filled);
  return out;
}

/// A regular file of the folder that begins with the magic number. The rest may be missing after an incomplete write.
struct Found {
  Descriptor file;
  int64_t bytes = 0;
  std::string header;

  explicit operator bool() const { return static_cast<bool>(file); }
};

/// Nothing for other objects: links, pipes, devices, files of others and with other contents.
Found find_entry(const Descriptor& folder, const std::string& name) {
  Descriptor file(openat(*folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info{};
  if (!file || fstat(*file, &info) != 0 || !S_ISREG(info.st_mode)) return {};
  if (info.st_uid != 0 && info.st_uid != geteuid()) return {};
  std::string header = read_up_to(file, kHeader);
  if (!header.starts_with(kMagic)) return {};
  return {std::move(file), info.st_size, std::move(header)};
}

/// Does the folder contain something of this name that is not an entry?
bool is_foreign(const Descriptor& folder, const std::string& name) {
  struct stat info{};
  return fstatat(*folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && !find_entry(folder, name);
}

struct CloseList {
  void operator()(DIR* list) const { closedir(list); }
};

bool is_entry_name(std::string_view name) {
  return name.size() == 2 * sizeof(Digest) && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_aside_name(std::string_view name) {
  return name.starts_with(kAside) &&
         name.substr(kAside.size()).find_first_not_of("0123456789-") == std::string_view::npos;
}

std::string length_of(size_t bytes) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(static_cast<uint64_t>(bytes) >> (8 * i) & 0xff);
  return out;
}

std::string header_of(std::string_view payload) {
  std::string out = std::string(kMagic) + length_of(payload.size());
  for (uint8_t byte : sha256(payload)) out += static_cast<char>(byte);
  return out;
}

/// A temporary name that no other writer uses: process, count and time.
std::string aside_name() {
  static std::atomic<uint64_t> count{0};
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return fmt::format("{}{}-{}-{}", kAside, getpid(), count.fetch_add(1), now);
}

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

}  // namespace

std::string default_cache_folder() {
  if (const char* named = variable("HELVE_CACHE_DIR")) return named;
  if (const char* caches = variable("XDG_CACHE_HOME")) return (fs::path(caches) / "helve").string();
  if (const char* home = variable("HOME")) return (fs::path(home) / ".cache" / "helve").string();
  return (fs::temp_directory_path() / fmt::format("helve-{}", getuid())).string();
}

int64_t default_cache_limit() {
  const char* value = variable("HELVE_CACHE_LIMIT");
  if (value == nullptr) return int64_t{1} << 30;
  const char* end = value + std::strlen(value);
  int64_t mebibytes = 0;
  const auto [stop, fault] = std::from_chars(value, end, mebibytes);
  if (fault != std::errc() || stop != end || mebibytes < 0 || mebibytes > (int64_t{1} << 40)) {
    throw UserError(Code::CacheLimit, {}, {{"value", std::string(value)}});
  }
  return mebibytes << 20;
}

DiskCache::DiskCache(std::string folder, int64_t limit_bytes)
    : folder_((fs::path(std::move(folder)) / "v1").string()), limit_(limit_bytes) {}

std::optional<std::string> DiskCache::load(const Digest& key) const {
  if (limit_ == 0) return std::nullopt;
  const OpenFolder opened = open_trusted_folder(folder_, false);
  if (!opened.folder) return std::nullopt;
  const std::string name = to_hex(key);
  const Found entry = find_entry(opened.folder, name);
  if (!entry) return std::nullopt;
  // An entry larger than the limit cannot have been stored, so it is damaged; its contents are not read.
  if (entry.header.size() == kHeader && entry.bytes <= limit_) {
    const auto size = static_cast<size_t>(entry.bytes) - kHeader;
    if (entry.header.compare(kMagic.size(), 8, length_of(size)) == 0) {
      std::string payload = read_up_to(entry.file, size);
      if (entry.header == header_of(payload)) {
        // The time of last use orders removal. Setting it fails in a cache that this user may only read, which is fine.
        (void)futimens(*entry.file, nullptr);
        return payload;
      }
    }
  }
  (void)unlinkat(*opened.folder, name.c_str(), 0);
  return std::nullopt;
}

std::optional<Diagnostic> DiskCache::store(const Digest& key, std::string_view payload) const {
  if (limit_ == 0 || static_cast<int64_t>(payload.size() + kHeader) > limit_) return std::nullopt;
  const auto unusable = [this](const std::string& reason) {
    return Diagnostic{Code::CacheUnusable, {}, {{"folder", folder_}, {"reason", reason}}, {}, {}};
  };
  const OpenFolder opened = open_trusted_folder(folder_, true);
  if (!opened.folder) return unusable(opened.reason);
  const int folder = *opened.folder;
  const std::string name = to_hex(key), aside = aside_name();
  if (is_foreign(opened.folder, name)) return unusable(name + " is no entry of the cache");
  const auto failed = [&] {
    const std::string reason = std::strerror(errno);
    (void)unlinkat(folder, aside.c_str(), 0);
    return unusable(reason);
  };
  const Descriptor file(openat(folder, aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return unusable(std::strerror(errno));
  if (!write_all(file, header_of(payload)) || !write_all(file, payload) || fsync(*file) != 0) return failed();
  if (renameat(folder, aside.c_str(), folder, name.c_str()) != 0) return failed();
  keep_to_limit(opened.folder);
  return std::nullopt;
}

void DiskCache::keep_to_limit(const Descriptor& folder) const {
  struct Entry {
    std::string name;
    int64_t bytes;
    timespec used;
  };
  std::vector<Entry> entries;
  int64_t total = 0;
  const auto remove = [&](const std::string& name) {
    if (find_entry(folder, name)) (void)unlinkat(*folder, name.c_str(), 0);
  };
  const int listed = openat(*folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, CloseList> list(listed < 0 ? nullptr : fdopendir(listed));
  const time_t now = time(nullptr);
  while (const dirent* each = list ? readdir(list.get()) : nullptr) {
    const std::string name = each->d_name;
    const bool aside = is_aside_name(name);
    if (!aside && !is_entry_name(name)) continue;
    // Other processes may remove files concurrently: those that cannot be examined are gone.
    struct stat info{};
    if (fstatat(*folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) continue;
    if (aside) {
      if (now - info.st_mtim.tv_sec > kAbandoned) remove(name);
      continue;
    }
    entries.push_back({name, info.st_size, info.st_mtim});
    total += info.st_size;
  }
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  for (const Entry& entry : entries) {
    if (total <= limit_) break;
    remove(entry.name);
    total -= entry.bytes;
  }
}

}  // namespace helve::runtime
