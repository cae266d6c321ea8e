// Which words the threads of a phase touch, and the picture of it.
// The depth is what a profiler counts as conflicts plus one, so that a layout can be judged before it runs.
#include "helve/layout/banks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "helve/layout/notation.h"
#include "helve/support/text.h"
#include "integers.h"

namespace helve {

int64_t BankReport::depth() const {
  int64_t worst = 0;
  for (const BankPhase& phase : phases) worst = std::max(worst, phase.depth);
  return worst;
}

int64_t BankReport::extra_steps() const {
  int64_t sum = 0;
  for (const BankPhase& phase : phases) sum += std::max<int64_t>(phase.depth - 1, 0);
  return sum;
}

namespace {

[[noreturn]] void refuse_access(const std::string& reason) {
  throw_layout_error(Code::BankAccess, {{"operation", "bank_conflicts"}, {"reason", reason}});
}

/// The bytes that a thread moves.
int64_t access_bytes(int64_t element_bytes, int64_t width) {
  for (int64_t bytes : {1, 2, 4, 8, 16}) {
    if (width >= 1 && element_bytes >= 1 && bytes % width == 0 && bytes / width == element_bytes) return bytes;
  }
  refuse_access(fill_template("{width:element} of {bytes:byte} are no access of one thread",
                              {{"width", width}, {"bytes", element_bytes}}));
}

/// The address on `m` of the elements of thread t, in bytes: one run, aligned.
int64_t vector_byte(const Layout& layout, const BankAccess& access, size_t t, int64_t element_bytes) {
  std::vector<int64_t> addresses;
  for (int64_t j = 0; j < access.width; ++j) {
    const int64_t index = layout_detail::checked_add(access.first[t], j, "an index");
    addresses.push_back(layout.apply(index).front().at(axes::m()));
  }
  for (size_t j = 1; j < addresses.size(); ++j) {
    if (addresses[j] == addresses[j - 1] + 1) continue;
    refuse_access(fmt::format("elements {} and {} of thread {} have the addresses {} and {}, they are not contiguous",
                              j - 1, j, t, addresses[j - 1], addresses[j]));
  }
  const int64_t byte = layout_detail::checked_multiply(addresses[0], element_bytes, "an address in bytes");
  if (addresses[0] % access.width != 0) {
    refuse_access(
        fmt::format("thread {} begins at element {}, which is no multiple of {}: byte {} is not aligned to {}", t,
                    addresses[0], access.width, byte, access.width * element_bytes));
  }
  return byte;
}

int64_t phase_depth(const BankPhase& phase) {
  std::map<int64_t, std::set<int64_t>> banks;
  for (const std::vector<int64_t>& words : phase.words) {
    for (int64_t word : words) banks[word & (kBanks - 1)].insert(word);
  }
  size_t depth = 0;
  for (const auto& [bank, words] : banks) depth = std::max(depth, words.size());
  return static_cast<int64_t>(depth);
}

}  // namespace

BankReport bank_conflicts(const Layout& layout, const BankAccess& access, int64_t element_bytes) {
  int64_t bytes = access_bytes(element_bytes, access.width);
  for (const Iter& iter : layout.replica()) {
    if (iter.axis != axes::m() || iter.extent == 1 || iter.stride == 0) continue;
    refuse_access(fmt::format("{} has replicas on m, an access has one address", to_string(layout)));
  }
  const Layout single(layout.shard(), {}, layout.offset(), layout.swizzle());
  int64_t served = std::min(kWarp, kBanks * kBankBytes / bytes);
  BankReport report;
  for (size_t t = 0; t < access.first.size(); ++t) {
    if (static_cast<int64_t>(t) % served == 0) {
      report.phases.push_back({static_cast<int64_t>(t), {}, 0});
    }
    std::vector<int64_t>& words = report.phases.back().words.emplace_back();
    if (access.first[t] == BankAccess::kInactive) continue;
    const int64_t byte = vector_byte(single, access, t, element_bytes);
    int64_t last = layout_detail::floor_divide(byte + bytes - 1, kBankBytes);
    for (int64_t word = layout_detail::floor_divide(byte, kBankBytes); word <= last; ++word) words.push_back(word);
  }
  for (BankPhase& phase : report.phases) phase.depth = phase_depth(phase);
  return report;
}

std::string bank_table(const BankPhase& phase) {
  std::map<int64_t, std::map<int64_t, std::string>> rows;
  for (size_t t = 0; t < phase.words.size(); ++t) {
    for (int64_t word : phase.words[t]) {
      std::string& cell = rows[layout_detail::floor_divide(word, kBanks)][word & (kBanks - 1)];
      cell += fmt::format("{}{:02}", cell.empty() ? "" : "/", phase.first_thread + static_cast<int64_t>(t));
    }
  }
  std::string text = "     ";
  for (int64_t bank = 0; bank < kBanks; ++bank) text += fmt::format(" {:02}", bank);
  text += "\n      " + std::string(static_cast<size_t>(kBanks * 3), '-') + "\n";
  bool all = rows.empty() || rows.rbegin()->first - rows.begin()->first < 256;
  int64_t next = rows.empty() ? 0 : rows.begin()->first;
  for (const auto& [row, cells] : rows) {
    for (; all && next < row; ++next) text += fmt::format("R{:02} |\n", next);
    next = row + 1;
    std::string line = fmt::format("R{:02} |", row);
    for (int64_t bank = 0; bank < kBanks; ++bank) {
      auto it = cells.find(bank);
      line += " " + (it == cells.end() ? std::string("  ") : it->second);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text + fmt::format("depth {}\n", phase.depth);
}

}  // namespace helve
