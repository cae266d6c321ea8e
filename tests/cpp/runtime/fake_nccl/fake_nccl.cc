// NCCL over files in memory: a message is a file, a communicator a folder.
// It proves in several processes what helve asks of NCCL, on machines without a GPU, whose memory the fake libcuda has
// on the host; counts that differ are errors, as NCCL itself does not promise.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "helve/runtime/nccl/nccl_library.h"
#include "runtime/reduce_row.h"

using namespace helve::runtime;
using namespace helve::runtime::nccl;

struct helve::runtime::nccl::ncclComm {
  std::string folder;
  int rank = 0, size = 1;
  int splits = 0;
  std::map<std::pair<int, int>, long> count = {};  ///< of messages, by sender and receiver
  std::atomic<bool> aborted = false;
};

namespace {

constexpr int kInternal = 3, kInvalidArgument = 4;

thread_local int depth = 0;
thread_local std::vector<std::function<int()>> sends, receives;
thread_local std::string last_error;

int fail(int result, const std::string& text) {
  last_error = text;
  return result;
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

void store(const std::string& path, const void* data, size_t bytes) {
  const std::string unready = path + ".unready";
  {
    std::ofstream file(unready, std::ios::binary);
    file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  }
  std::rename(unready.c_str(), path.c_str());
}

int wait_for(const ncclComm& comm, const std::string& path) {
  while (!exists(path)) {
    if (comm.aborted) return fail(kInternal, "aborted");
    usleep(20);
  }
  return 0;
}

std::string message(ncclComm& comm, int from, int to) {
  return comm.folder + "/" + std::to_string(from) + "-" + std::to_string(to) + "-" +
         std::to_string(comm.count[{from, to}]++);
}

void put(ncclComm& comm, int to, const void* data, size_t bytes) { store(message(comm, comm.rank, to), data, bytes); }

int take(ncclComm& comm, int from, void* data, size_t bytes) {
  const std::string path = message(comm, from, comm.rank);
  if (const int result = wait_for(comm, path)) return result;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto size = static_cast<size_t>(file.tellg());
  if (size != bytes)
    return fail(kInvalidArgument, "came " + std::to_string(size) + " bytes for " + std::to_string(bytes));
  file.seekg(0);
  file.read(static_cast<char*>(data), static_cast<std::streamsize>(bytes));
  unlink(path.c_str());
  return 0;
}

size_t bytes_of(int type) {
  constexpr size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return kBytes[type];
}

DLDataType dtype_of(int type) {
  constexpr DLDataType kTypes[] = {{kDLInt, 8, 1},    {kDLUInt, 8, 1},   {kDLInt, 32, 1},
                                   {kDLUInt, 32, 1},  {kDLInt, 64, 1},   {kDLUInt, 64, 1},
                                   {kDLFloat, 16, 1}, {kDLFloat, 32, 1}, {kDLFloat, 64, 1}};
  return kTypes[type];
}

void combine(int type, int op, const std::vector<std::vector<char>>& terms, void* to, size_t count) {
  std::vector<const std::byte*> sources;
  for (const auto& each : terms) sources.push_back(reinterpret_cast<const std::byte*>(each.data()));
  auto* const target = static_cast<std::byte*>(to);
  const auto bytes = static_cast<int64_t>(bytes_of(type));
  find_reduce_row(dtype_of(type), static_cast<ReduceOp>(op))({sources, 0, bytes}, {{&target, 1}, 0, bytes},
                                                             static_cast<int64_t>(count));
}

/// Runs the operation now, or at the end of the group: sends before what waits.
int run(std::vector<std::function<int()>>& list, std::function<int()> code) {
  list.push_back(std::move(code));
  if (depth > 0) return 0;
  int result = 0;
  for (auto* each : {&sends, &receives}) {
    for (const auto& call : *each) result = result != 0 ? result : call();
    each->clear();
  }
  return result;
}

/// What every member has, by rank.
int gather(ncclComm& comm, const void* mine, size_t bytes, std::vector<std::vector<char>>& all) {
  all.assign(static_cast<size_t>(comm.size), std::vector<char>(bytes));
  for (int k = 0; k < comm.size; ++k) {
    if (k != comm.rank) put(comm, k, mine, bytes);
  }
  for (int k = 0; k < comm.size; ++k) {
    if (k == comm.rank) {
      if (bytes > 0) std::memcpy(all[static_cast<size_t>(k)].data(), mine, bytes);
    } else if (const int result = take(comm, k, all[static_cast<size_t>(k)].data(), bytes)) {
      return result;
    }
  }
  return 0;
}

int join(ncclComm* comm) {
  mkdir(comm->folder.c_str(), 0700);
  store(comm->folder + "/here-" + std::to_string(comm->rank), "", 0);
  for (int k = 0; k < comm->size; ++k) {
    if (const int result = wait_for(*comm, comm->folder + "/here-" + std::to_string(k))) return result;
  }
  return 0;
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE int ncclGetVersion(int* version) {
  const char* given = std::getenv("HELVE_FAKE_NCCL_VERSION");
  *version = given != nullptr ? std::atoi(given) : 22809;
  return 0;
}

FAKE int ncclGetUniqueId(NcclUniqueId* id) {
  std::memset(id, 0, sizeof *id);
  const char* folder = std::getenv("HELVE_FAKE_NCCL_FOLDER");
  std::snprintf(id->internal, sizeof id->internal, "%s/nccl-XXXXXX", folder != nullptr ? folder : "/tmp");
  return mkdtemp(id->internal) != nullptr ? 0 : fail(2, "no folder");
}

FAKE int ncclCommInitRankConfig(NcclComm* comm, int size, NcclUniqueId id, int rank, NcclConfig* config) {
  if (config->magic != 0xcafebeef || config->size < 40) return fail(kInvalidArgument, "no configuration");
  *comm = new ncclComm{id.internal, rank, size};
  return join(*comm);
}

FAKE int ncclCommInitRank(NcclComm* comm, int size, NcclUniqueId id, int rank) {
  *comm = new ncclComm{id.internal, rank, size};
  return join(*comm);
}

FAKE int ncclCommSplit(NcclComm parent, int color, int key, NcclComm* made, NcclConfig*) {
  const int mine[2] = {color, key};
  std::vector<std::vector<char>> all;
  if (const int result = gather(*parent, mine, sizeof mine, all)) return result;
  std::vector<std::pair<int, int>> members;
  for (int k = 0; k < parent->size; ++k) {
    int its[2];
    std::memcpy(its, all[static_cast<size_t>(k)].data(), sizeof its);
    if (its[0] == color) members.push_back({its[1], k});
  }
  std::ranges::sort(members);
  const auto place = std::ranges::find(members, parent->rank, &std::pair<int, int>::second) - members.begin();
  const std::string folder =
      parent->folder + "/split-" + std::to_string(parent->splits++) + "-" + std::to_string(color);
  *made = new ncclComm{folder, static_cast<int>(place), static_cast<int>(members.size())};
  return join(*made);
}

FAKE int ncclCommGetAsyncError(NcclComm, int* error) {
  *error = 0;
  return 0;
}

FAKE int ncclCommAbort(NcclComm comm) {
  comm->aborted = true;
  // A call of another thread may still look at it, so it stays, where a search for leaks finds it.
  static std::mutex mutex;
  static std::vector<NcclComm>& aborted = *new std::vector<NcclComm>;
  const std::lock_guard<std::mutex> lock(mutex);
  aborted.push_back(comm);
  return 0;
}

FAKE int ncclCommDestroy(NcclComm comm) {
  delete comm;
  return 0;
}

FAKE const char* ncclGetErrorString(int result) {
  return result == kInvalidArgument ? "invalid argument" : result == 0 ? "no error" : "internal error";
}

FAKE const char* ncclGetLastError(NcclComm) { return last_error.c_str(); }

FAKE int ncclGroupStart() {
  ++depth;
  return 0;
}

FAKE int ncclGroupEnd() {
  if (--depth > 0) return 0;
  return run(sends, [] { return 0; });
}

FAKE int ncclSend(const void* data, size_t count, int type, int peer, NcclComm comm, NcclStream) {
  if (peer < 0 || peer >= comm->size || peer == comm->rank) return fail(kInvalidArgument, "no such peer");
  return run(sends, [=] {
    put(*comm, peer, data, count * bytes_of(type));
    return 0;
  });
}

FAKE int ncclRecv(void* data, size_t count, int type, int peer, NcclComm comm, NcclStream) {
  if (peer < 0 || peer >= comm->size || peer == comm->rank) return fail(kInvalidArgument, "no such peer");
  return run(receives, [=] { return take(*comm, peer, data, count * bytes_of(type)); });
}

FAKE int ncclAllGather(const void* sent, void* received, size_t count, int type, NcclComm comm, NcclStream) {
  return run(receives, [=] {
    std::vector<std::vector<char>> all;
    const size_t bytes = count * bytes_of(type);
    if (const int result = gather(*comm, sent, bytes, all)) return result;
    for (size_t k = 0; k < all.size(); ++k) std::memcpy(static_cast<char*>(received) + k * bytes, all[k].data(), bytes);
    return 0;
  });
}

FAKE int ncclReduceScatter(const void* sent, void* received, size_t count, int type, int op, NcclComm comm,
                           NcclStream) {
  return run(receives, [=] {
    std::vector<std::vector<char>> all;
    const size_t bytes = count * bytes_of(type);
    if (const int result = gather(*comm, sent, bytes * static_cast<size_t>(comm->size), all)) return result;
    for (auto& each : all) each.erase(each.begin(), each.begin() + static_cast<long>(bytes) * comm->rank);
    combine(type, op, all, received, count);
    return 0;
  });
}

FAKE int ncclAllReduce(const void* sent, void* received, size_t count, int type, int op, NcclComm comm, NcclStream) {
  return run(receives, [=] {
    std::vector<std::vector<char>> all;
    if (const int result = gather(*comm, sent, count * bytes_of(type), all)) return result;
    combine(type, op, all, received, count);
    return 0;
  });
}

FAKE int ncclBroadcast(const void* sent, void* received, size_t count, int type, int root, NcclComm comm, NcclStream) {
  return run(receives, [=] {
    const size_t bytes = count * bytes_of(type);
    if (comm->rank != root) return take(*comm, root, received, bytes);
    for (int k = 0; k < comm->size; ++k) {
      if (k != root) put(*comm, k, sent, bytes);
    }
    std::memmove(received, sent, bytes);
    return 0;
  });
}

FAKE int ncclReduce(const void* sent, void* received, size_t count, int type, int op, int root, NcclComm comm,
                    NcclStream) {
  return run(receives, [=] {
    const size_t bytes = count * bytes_of(type);
    if (comm->rank != root) {
      put(*comm, root, sent, bytes);
      return 0;
    }
    std::vector<std::vector<char>> all(static_cast<size_t>(comm->size), std::vector<char>(bytes));
    for (int k = 0; k < comm->size; ++k) {
      if (k == root) std::memcpy(all[static_cast<size_t>(k)].data(), sent, bytes);
      if (k == root) continue;
      if (const int result = take(*comm, k, all[static_cast<size_t>(k)].data(), bytes)) return result;
    }
    combine(type, op, all, received, count);
    return 0;
  });
}
