// Kernels of libraries that a test has made.
// A fault of a kernel is one of the machine: it ends the process, so that no test takes its results.
#include "fake_host_kernels.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace helve::runtime::cuda {

namespace {

constexpr unsigned kMostRank = 5;

struct Place {
  std::string library;
  std::string scope;  ///< of the symbols
};

/// Where kernels of an image are: the first image of a value of the variable has variant 0, another one 1.
Place place_of(const void* image) {
  const char* given = std::getenv("HELVE_FAKE_KERNELS");
  const std::string all = given != nullptr ? given : "";
  const auto colon = all.rfind(':');
  if (colon == std::string::npos) return {};
  static std::map<std::string, const void*> first;
  const bool is_first = first.try_emplace(all, image).first->second == image;
  return {all.substr(0, colon), all.substr(colon + 1) + (is_first ? "_0_" : "_1_")};
}

}  // namespace

FakeBoxKernel find_host_kernel(const void* image, const std::string& name) {
  const Place place = place_of(image);
  if (place.library.empty()) return {};
  void* const library = dlopen(place.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "kernels of HELVE_FAKE_KERNELS: %s\n", dlerror());
    return {};
  }
  using Run = int (*)(void**, const unsigned*);
  const auto run = reinterpret_cast<Run>(dlsym(library, ("helve_fake_" + place.scope + name).c_str()));
  if (run == nullptr) {
    std::fprintf(stderr, "kernels of HELVE_FAKE_KERNELS: %s\n", dlerror());
    return {};
  }
  return [run, name](const LaunchConfig& config, void** parameters) {
    unsigned together = 1;
    for (unsigned a = 0; a < config.attribute_count; ++a) {
      const LaunchAttribute& each = config.attributes[a];
      if (each.id == kLaunchCooperative && each.cooperative != 0) together = config.grid[0];
      if (each.id == kLaunchClusterDimension) together = std::max(together, each.cluster[0]);
    }
    const unsigned of[] = {config.grid[0], config.block[0], config.shared_bytes, together};
    const int fault = run(parameters, of);
    if (fault == 0) return;
    std::fprintf(stderr, "kernel %s ended with fault %d of cuda_on_host.h\n", name.c_str(), fault);
    std::abort();
  };
}

void describe_tensor_map(TensorMapBytes* map, int type, unsigned rank, const void* base, const uint64_t* extents,
                         const uint64_t* strides, const uint32_t* box, int swizzle) {
  constexpr int64_t kElementBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
  struct {
    const void* base;
    int64_t extents[kMostRank], strides[kMostRank];
    int16_t box[kMostRank], rank, bytes, swizzle;
  } out = {};
  out.base = base;
  out.rank = static_cast<int16_t>(rank);
  out.bytes = static_cast<int16_t>(kElementBytes[type]);
  out.swizzle = static_cast<int16_t>(swizzle == 0 ? 0 : 16 << swizzle);
  for (unsigned d = 0; d < rank; ++d) {
    const unsigned k = rank - 1 - d;
    out.extents[d] = static_cast<int64_t>(extents[k]);
    out.strides[d] = k == 0 ? out.bytes : static_cast<int64_t>(strides[k - 1]);
    out.box[d] = static_cast<int16_t>(box[k]);
  }
  static_assert(sizeof out <= sizeof *map);
  std::memcpy(map, &out, sizeof out);
}

}  // namespace helve::runtime::cuda
