// A folder of compiled things, named by the digest of what they were made from.
// Many processes share it without locks: entries appear whole or not at all, and one that was damaged is made again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "helve/support/diagnostic.h"
#include "helve/support/sha256.h"

namespace helve::runtime {

class Descriptor;

/// The cache folder of this user: HELVE_CACHE_DIR, else XDG_CACHE_HOME/helve, else ~/.cache/helve, without a HOME
/// helve-<uid> in the folder of temporary files; variables that are empty count as unset.
std::string default_cache_folder();

/// Bytes that HELVE_CACHE_LIMIT (in MiB) allows, 1 GiB when it is unset or empty; 0 turns the cache off.
/// UserError CacheLimit.
int64_t default_cache_limit();

/// An entry is a file: a magic number with the version of this format, the length and the digest of the payload, the
/// payload. Entries of other versions stand in other subfolders and are left alone, as is every file that is no entry.
///
/// Entries are loaded as code, so the folder is used only if nobody but this user and root can write into it or
/// exchange it on the way from the root; else nothing is loaded, and storing gives the warning CacheUnusable.
class DiskCache {
 public:
  /// The cache of this user. UserError CacheLimit.
  DiskCache() : DiskCache(default_cache_folder(), default_cache_limit()) {}
  /// A limit of 0 bytes: nothing is read or written.
  DiskCache(std::string folder, int64_t limit_bytes);

  /// The payload, and the entry counts as used now; nothing where there is no sound entry. A damaged one is removed.
  std::optional<std::string> load(const Digest& key) const;

  /// Publishes an entry: written aside, flushed, renamed. Entries least recently used go while the whole is larger than
  /// the limit. Returns the warning CacheUnusable where the folder cannot be written or trusted; a cache never stops a
  /// compile.
  std::optional<Diagnostic> store(const Digest& key, std::string_view payload) const;

  const std::string& folder() const { return folder_; }
  int64_t limit() const { return limit_; }

 private:
  void keep_to_limit(const Descriptor& folder) const;

  std::string folder_;  ///< with the version
  int64_t limit_;
};

/// Names this build of helve: the linker's build id of the module that holds the runtime, or the digest of its file.
const std::string& build_id();

}  // namespace helve::runtime
