// How many CPUs this process may use.
// In a container the machine's number of CPUs is wrong: threads beyond the quota are throttled in the middle of a loop.
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "cpu_count.h"
#include "helve/runtime/thread_pool.h"
#include "helve/support/diagnostic.h"

namespace helve::runtime {

namespace {

/// ceil(quota / period), 0 when there is no quota.
int quota_cpus(const std::string& quota, const std::string& period) {
  int64_t q = 0, p = 0;
  auto number = [](const std::string& text, int64_t& out) {
    return std::from_chars(text.data(), text.data() + text.size(), out).ec == std::errc();
  };
  if (!number(quota, q) || !number(period, p) || q <= 0 || p <= 0) return 0;
  return static_cast<int>(std::min<int64_t>((q + p - 1) / p, kThreadLimit));
}

std::string first_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

int limit_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  std::string quota, period;
  file >> quota >> period;
  return quota_cpus(quota, period);
}

int limit_v1(const std::string& folder) {
  return quota_cpus(first_word(folder + "/cpu.cfs_quota_us"), first_word(folder + "/cpu.cfs_period_us"));
}

/// The tightest limit of the group and all groups around it. Inside a container the group's path may not exist below
/// the root, which then is the group itself.
int tightest(const std::string& root, std::string path, int (*limit)(const std::string&)) {
  int result = 0;
  while (true) {
    if (path == "/") path.clear();
    if (int cpus = limit(root + path); cpus > 0) result = result == 0 ? cpus : std::min(result, cpus);
    if (path.empty()) return result;
    path.erase(path.rfind('/'));
  }
}

}  // namespace

int cgroup_cpu_limit(const std::string& membership, const std::string& root) {
  std::ifstream file(membership);
  int result = 0;
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos || second + 1 >= line.size() || line[second + 1] != '/') continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    int cpus = 0;
    if (controllers.empty()) {
      cpus = tightest(root, path, limit_v2);
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      cpus = tightest(root + "/cpu", path, limit_v1);
    }
    if (cpus > 0) result = result == 0 ? cpus : std::min(result, cpus);
  }
  return result;
}

int available_cpus() {
  int cpus = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) cpus = std::max(1, CPU_COUNT(&mask));
  if (int limit = cgroup_cpu_limit(); limit > 0) cpus = std::min(cpus, limit);
  return std::min(cpus, kThreadLimit);
}

int default_thread_count() {
  const char* text = std::getenv("HELVE_NUM_THREADS");
  if (text == nullptr || *text == '\0') return available_cpus();
  const std::string value(text);
  int count = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
  if (error != std::errc() || end != value.data() + value.size() || count < 1 || count > kThreadLimit) {
    throw UserError(Code::ThreadCount, {},
                    {{"origin", "HELVE_NUM_THREADS"}, {"value", value}, {"limit", int64_t{kThreadLimit}}});
  }
  return count;
}

}  // namespace helve::runtime
