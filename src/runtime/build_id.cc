// The identity of this build, for the names of cache entries.
// A version number stays the same between two builds of a changed tree; what the linker wrote does not.
#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "helve/runtime/disk_cache.h"

namespace helve::runtime {

namespace {

struct Search {
  ElfW(Addr) address;  ///< of something in the module that is looked for
  std::string file;
  std::string id;
};

/// The build id among the notes in `bytes`, empty if there is none.
std::string id_in(const char* notes, size_t bytes) {
  for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= bytes;) {
    ElfW(Nhdr) head;
    std::memcpy(&head, notes + at, sizeof head);
    const size_t name = at + sizeof head, body = name + (head.n_namesz + 3) / 4 * 4;
    if (body + head.n_descsz > bytes) return {};
    if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && std::memcmp(notes + name, "GNU", 4) == 0) {
      std::string out;
      for (size_t i = 0; i < head.n_descsz; ++i) out += fmt::format("{:02x}", static_cast<uint8_t>(notes[body + i]));
      return out;
    }
    at = body + (head.n_descsz + 3) / 4 * 4;
  }
  return {};
}

int visit(dl_phdr_info* info, size_t, void* context) {
  auto& search = *static_cast<Search*>(context);
  bool holds = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const ElfW(Addr) begin = info->dlpi_addr + part.p_vaddr;
    holds = holds || (part.p_type == PT_LOAD && search.address >= begin && search.address < begin + part.p_memsz);
  }
  if (!holds) return 0;
  search.file = info->dlpi_name;
  for (int i = 0; i < info->dlpi_phnum && search.id.empty(); ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    search.id = id_in(reinterpret_cast<const char*>(info->dlpi_addr + part.p_vaddr), part.p_memsz);
  }
  return 1;
}

std::string find_id() {
  static const char inside = 0;
  Search search{reinterpret_cast<ElfW(Addr)>(&inside), {}, {}};
  dl_iterate_phdr(visit, &search);
  if (!search.id.empty()) return search.id;
  std::ifstream file(search.file.empty() ? "/proc/self/exe" : search.file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  HELVE_CHECK(!bytes.empty(), "the file of the running module cannot be read");
  return to_hex(sha256(bytes));
}

}  // namespace

const std::string& build_id() {
  static const std::string id = find_id();
  return id;
}

}  // namespace helve::runtime
