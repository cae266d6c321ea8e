// The table of source file names.
// Names live as long as the process, so that a span is a plain value that may outlive the compile that made it.
#include "helve/support/span.h"

#include <mutex>
#include <unordered_set>

namespace helve {

const std::string* intern_file(std::string_view name) {
  static std::mutex mutex;
  static auto* names = new std::unordered_set<std::string>();
  std::lock_guard<std::mutex> lock(mutex);
  return &*names->emplace(name).first;
}

}  // namespace helve
