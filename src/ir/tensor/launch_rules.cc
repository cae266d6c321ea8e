// The rules of a launch: threads, clusters, roles and their registers.
// Budgets that are right by themselves may still be more than a machine has, which split_roles knows.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>

#include "helve/layout/warp.h"
#include "verify_rules.h"

namespace helve::verify_rules {

namespace {

constexpr const char* kBudget = "a budget is a multiple of 8 from 24 to 256, of whole warpgroups";
constexpr const char* kWarps = "threads come in warps of 32";
constexpr int64_t kMostThreads = 1024;
constexpr const char* kThreads = "a block has at most 1024 threads";

/// Registers that a thread may be given.
bool is_budget(int64_t registers) { return registers % 8 == 0 && registers >= 24 && registers <= 256; }

using Refuse = std::function<void(const char* parameter, const std::string& value, const std::string& reason,
                                  const std::string& remedy)>;

/// Clusters divide the last dimension of the grid.
void check_cluster(const Kernel& n, bool in_mesh, const Refuse& refuse) {
  if (n.cluster == 1) return;
  constexpr int64_t kMostBlocks = 16;
  const std::string given = std::to_string(n.cluster);
  if (n.cluster < 1 || n.cluster > kMostBlocks) {
    refuse("cluster", given, fmt::format("a cluster has 1 to {} blocks", kMostBlocks), "write for example cluster=2");
  }
  if (in_mesh) refuse("cluster", given, "the cores of a mesh row are a cluster already", "leave it out");
  const int64_t* last = n.extents.empty() ? nullptr : int_value(n.extents.back());
  if (!last || *last % n.cluster != 0) {
    refuse("cluster", given, "the last extent of the grid is not a constant multiple of it",
           fmt::format("give the grid a last extent such as {}", 32 * n.cluster));
  }
}

/// What is said of roles before there are roles.
void check_producers(const Kernel& n, const Refuse& refuse) {
  if (n.producers < 0 || n.producers % kWarp != 0) {
    refuse("producers", std::to_string(n.producers), kWarps, "use a multiple of 32");
  }
  if (n.producers > 0 && (n.producers > kMostThreads || n.threads + n.producers > kMostThreads)) {
    refuse("producers", std::to_string(n.producers), kThreads, "use fewer, such as 32 or 128");
  }
  if (n.registers.empty()) return;
  const std::string given = fmt::format("[{}]", fmt::join(n.registers, ", "));
  if (n.registers.size() != 2) {
    refuse("registers", given, "there are two roles: one takes from rings, the other one fills them",
           "write for example registers=[232, 40]");
  }
  if (n.producers == 0) {
    refuse("registers", given, "no producers are asked for", "give producers=128 as well");
  }
  for (size_t i = 0; i < 2; ++i) {
    const bool whole = n.threads % kWarpgroup == 0 && (i == 0 || n.producers % kWarpgroup == 0);
    if (n.registers[i] == 0 || (whole && is_budget(n.registers[i]))) continue;
    refuse("registers", given, kBudget,
           whole ? "write for example registers=[232, 40]" : "make threads and producers multiples of 128");
  }
}

}  // namespace

void verify_launch(const Kernel& kernel, bool in_mesh) {
  const Refuse refuse = [&](const char* parameter, const std::string& value, const std::string& reason,
                            const std::string& remedy) {
    refuse_argument("T.Kernel", parameter, value, reason, remedy, kernel.span);
  };
  if (kernel.threads < kWarp || kernel.threads % kWarp != 0) {
    refuse("threads", std::to_string(kernel.threads), kWarps, "use a multiple of 32");
  }
  check_cluster(kernel, in_mesh, refuse);
  check_producers(kernel, refuse);
}

void verify_role(const Role& role, const Kernel& kernel, int64_t end) {
  const auto refuse = [&](const char* parameter, int64_t value, const std::string& reason, const std::string& remedy) {
    refuse_argument("T.role", parameter, std::to_string(value), reason, remedy, role.span);
  };
  if (role.threads < kWarp || role.threads % kWarp != 0) {
    refuse("threads", role.threads, kWarps, "use a multiple of 32");
  }
  if (role.first != end) {
    refuse("first", role.first, "roles have the threads behind those of the role before, the first from 0 on",
           fmt::format("give {}", end));
  }
  if (role.first == 0 && role.threads != kernel.threads) {
    refuse("threads", role.threads,
           fmt::format("the block has {} threads, and the first role all of them", kernel.threads),
           fmt::format("give {}", kernel.threads));
  }
  if (role.threads > kMostThreads || role.first + role.threads > kMostThreads) {
    refuse("threads", role.threads, kThreads, "use fewer, such as 32 or 128");
  }
  if (role.first == 0 && role.elect) {
    refuse_argument("T.role", "elect", "True", "all threads of the first role execute it", "leave it out", role.span);
  }
  if (kernel.producers != 0) {
    refuse_argument("T.Kernel", "producers", std::to_string(kernel.producers), "the kernel has roles, which say it",
                    "leave it out", kernel.span, {{role.span, "a role"}});
  }
  const bool whole = role.threads % kWarpgroup == 0 && role.first % kWarpgroup == 0;
  if (role.registers != 0 && (!is_budget(role.registers) || !whole)) {
    refuse("registers", role.registers, kBudget, "leave it out, or give whole warpgroups such a number");
  }
}

}  // namespace helve::verify_rules
