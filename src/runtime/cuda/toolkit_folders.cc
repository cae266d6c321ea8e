// The search order of the toolkit's parts.
// Toolkits have their version in the name of their folder.
#include "toolkit_folders.h"

#include <algorithm>
#include <functional>

namespace helve::runtime::cuda {

namespace fs = std::filesystem;

std::vector<fs::path> toolkit_folders(const std::vector<std::string>& site_packages,
                                      const std::vector<std::string>& of_wheels, const std::string& of_toolkit) {
  std::vector<fs::path> out;
  for (const std::string& site : site_packages) {
    for (const std::string& inside : of_wheels) out.push_back(fs::path(site) / inside);
  }
  std::vector<fs::path> toolkits;
  std::error_code fault;
  for (fs::directory_iterator it("/usr/local", fault), end; !fault && it != end; it.increment(fault)) {
    if (it->path().filename().string().starts_with("cuda")) toolkits.push_back(it->path() / of_toolkit);
  }
  std::ranges::sort(toolkits, std::greater<>());
  out.insert(out.end(), toolkits.begin(), toolkits.end());
  return out;
}

}  // namespace helve::runtime::cuda
