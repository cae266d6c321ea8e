// Entries of the cache as files: written aside and renamed, checked when they are read.
// rename(2) is the one operation that all file systems make atomic, so that no reader ever sees half an entry.
#include "helve/runtime/disk_cache.h"

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
#include <vector>

namespace helve::runtime {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kMagic = "HELVEC01";
constexpr size_t kHeader = kMagic.size() + 8 + sizeof(Digest);
constexpr std::string_view kAside = ".new-";  ///< files that are being written
constexpr auto kAbandoned = std::chrono::hours(1);

/// A file descriptor that closes itself.
class File {
 public:
  File(const std::string& path, int flags) : descriptor_(open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

  bool write_all(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return true;
  }

  std::optional<std::string> read_all() const {
    struct stat info {};
    if (fstat(descriptor_, &info) != 0) return std::nullopt;
    std::string out(static_cast<size_t>(info.st_size), '\0');
    size_t filled = 0;
    while (filled < out.size()) {
      const ssize_t got = read(descriptor_, out.data() + filled, out.size() - filled);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return std::nullopt;
      filled += static_cast<size_t>(got);
    }
    return out;
  }

 private:
  int descriptor_;
};

std::string header_of(std::string_view payload) {
  std::string out(kMagic);
  for (int i = 0; i < 8; ++i) out += static_cast<char>(static_cast<uint64_t>(payload.size()) >> (8 * i) & 0xff);
  for (uint8_t byte : sha256(payload)) out += static_cast<char>(byte);
  return out;
}

/// A name beside the entry that no other writer uses: process, count and time.
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

std::string DiskCache::path_of(const Digest& key) const { return (fs::path(folder_) / to_hex(key)).string(); }

std::optional<std::string> DiskCache::load(const Digest& key) const {
  if (limit_ == 0) return std::nullopt;
  const std::string path = path_of(key);
  std::optional<std::string> text;
  {
    const File file(path, O_RDONLY);
    if (!file.is_open()) return std::nullopt;
    text = file.read_all();
    // The time of last use orders removal. It fails on a cache that this user may only read, which is no fault.
    if (text) (void)futimens(file.descriptor(), nullptr);
  }
  const bool sound = text && text->size() >= kHeader &&
                     std::string_view(*text).substr(0, kHeader) == header_of(std::string_view(*text).substr(kHeader));
  if (!sound) {
    (void)unlink(path.c_str());
    return std::nullopt;
  }
  text->erase(0, kHeader);
  return text;
}

std::optional<Diagnostic> DiskCache::store(const Digest& key, std::string_view payload) const {
  if (limit_ == 0 || static_cast<int64_t>(payload.size() + kHeader) > limit_) return std::nullopt;
  const auto unusable = [this](int fault) {
    return Diagnostic{
        Code::CacheUnusable, {}, {{"folder", folder_}, {"reason", std::string(std::strerror(fault))}}, {}, {}};
  };
  std::error_code fault;
  fs::create_directories(folder_, fault);
  if (fault) return unusable(fault.value());
  const std::string aside = (fs::path(folder_) / aside_name()).string();
  {
    const File file(aside, O_WRONLY | O_CREAT | O_EXCL);
    if (!file.is_open()) return unusable(errno);
    if (!file.write_all(header_of(payload)) || !file.write_all(payload) || fsync(file.descriptor()) != 0) {
      const int reason = errno;
      (void)unlink(aside.c_str());
      return unusable(reason);
    }
  }
  if (rename(aside.c_str(), path_of(key).c_str()) != 0) {
    const int reason = errno;
    (void)unlink(aside.c_str());
    return unusable(reason);
  }
  keep_to_limit();
  return std::nullopt;
}

void DiskCache::keep_to_limit() const {
  struct Entry {
    fs::path path;
    int64_t bytes;
    fs::file_time_type used;
  };
  std::vector<Entry> entries;
  int64_t total = 0;
  std::error_code fault;
  const auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator it(folder_, fault), end; !fault && it != end; it.increment(fault)) {
    // Other processes remove files while this one looks: whatever cannot be asked is gone.
    std::error_code gone;
    const auto bytes = static_cast<int64_t>(it->file_size(gone));
    if (gone) continue;
    const auto used = it->last_write_time(gone);
    if (gone) continue;
    if (it->path().filename().string().starts_with(kAside)) {
      if (now - used > kAbandoned) fs::remove(it->path(), gone);
      continue;
    }
    entries.push_back({it->path(), bytes, used});
    total += bytes;
  }
  std::ranges::sort(entries, {}, &Entry::used);
  for (const Entry& entry : entries) {
    if (total <= limit_) break;
    std::error_code gone;
    fs::remove(entry.path, gone);
    total -= entry.bytes;
  }
}

}  // namespace helve::runtime
