// A folder of compiled code, named by the digest of its inputs.
// Many processes share it without locks: entries appear as a whole or not at all, and a damaged one is compiled again.
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
/// payload. Entries of other versions are in other subfolders; they and all files that are not entries are left alone.
///
/// Entries are loaded as code, so the folder is used only if nobody but this user and root can write to it or replace
/// it on its path from the root; else nothing is loaded, and storing gives the warning CacheUnusable.
class DiskCache {
 public:
  /// The cache of this user. UserError CacheLimit.
  DiskCache() : DiskCache(default_cache_folder(), default_cache_limit()) {}
  /// A limit of 0 bytes: nothing is read or written.
  DiskCache(std::string folder, int64_t limit_bytes);

  /// The payload of an entry, which is marked as used now; nothing if there is no valid entry. A damaged one is
  /// removed.
  std::optional<std::string> load(const Digest& key) const;

  /// Publishes an entry: written to a temporary name, flushed, renamed. Least recently used entries are removed while
  /// the total exceeds the limit. Returns the warning CacheUnusable if the folder cannot be written or trusted; the
  /// cache never stops a compile.
  std::optional<Diagnostic> store(const Digest& key, std::string_view payload) const;

  const std::string& folder() const { return folder_; }
  int64_t limit() const { return limit_; }

 private:
  void keep_to_limit(const Descriptor& folder) const;

  std::string folder_;  ///< with the version
  int64_t limit_;
};

/// The identity of this build of helve: the linker's build id of the module that contains the runtime, or the digest of
/// its file.
const std::string& build_id();

}  // namespace helve::runtime
