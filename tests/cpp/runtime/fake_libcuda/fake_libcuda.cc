// libcuda over the memory of the host: device memory is malloc, a launch is a call, a stream is a number.
// It proves on any machine what is handed to the driver; what a GPU does with it, tests/gpu proves.
#include "fake_libcuda.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "fake_box_kernels.h"
#include "fake_host_kernels.h"

using namespace helve::runtime::cuda;

namespace {

FakeState& state() {
  static FakeState it;
  return it;
}

/// Guards the notes and the blocks; kernels run outside it.
std::recursive_mutex& mutex() {
  static std::recursive_mutex it;
  return it;
}

std::map<DeviceAddress, size_t>& blocks() {
  static std::map<DeviceAddress, size_t> it;
  return it;
}

/// Every thread has its own stack of contexts.
std::vector<CudaContext>& contexts() {
  static thread_local std::vector<CudaContext> it;
  return it;
}

/// Notes the call; the result to return at once, 0 to go on.
int enter(const char* function, const std::string& detail = {}) {
  const std::lock_guard<std::recursive_mutex> lock(mutex());
  state().calls.push_back(detail.empty() ? function : std::string(function) + " " + detail);
  const bool counts =
      state().fail_countdown > 0 && (state().fail_function.empty() || state().fail_function == function);
  return counts && --state().fail_countdown == 0 ? state().fail_result : 0;
}

/// Kernels that are known by name, whatever a test has told; they stay where tests begin anew.
std::map<std::string, FakeBoxKernel>& box_kernels() {
  static std::map<std::string, FakeBoxKernel> it;
  return it;
}

std::string number(unsigned long long value) { return std::to_string(value); }
std::string of_stream(CudaStream stream) { return "stream " + number(reinterpret_cast<uintptr_t>(stream)); }

/// In the mode that every thread starts in, a capture forbids what may wait.
thread_local int capture_mode = 0;
bool forbidden() { return state().capture_status != 0 && capture_mode != kCaptureModeRelaxed; }

}  // namespace

#define FAKE(name, ...) extern "C" __attribute__((visibility("default"))) int name(__VA_ARGS__)
#define ENTER(...)                                                     \
  if (const int result = enter(__func__ __VA_OPT__(, ) __VA_ARGS__)) { \
    return result;                                                     \
  }

extern "C" __attribute__((visibility("default"))) FakeState* helve_fake_state() { return &state(); }

FAKE(cuInit, unsigned) {
  ENTER();
  return 0;
}

FAKE(cuGetErrorName, int result, const char** name) {
  *name = result == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : result == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : nullptr;
  return *name != nullptr ? 0 : 1;
}

FAKE(cuGetErrorString, int result, const char** text) {
  *text = result == 2 ? "out of memory" : result == 700 ? "an illegal memory access was encountered" : nullptr;
  return *text != nullptr ? 0 : 1;
}

FAKE(cuDriverGetVersion, int* version) {
  *version = 13000;
  return 0;
}

FAKE(cuDeviceGetCount, int* count) {
  ENTER();
  *count = state().device_count;
  return 0;
}

FAKE(cuDeviceGet, int* device, int ordinal) {
  *device = ordinal;
  return 0;
}

FAKE(cuDeviceGetName, char* name, int length, int device) {
  std::strncpy(name, ("Fake GPU " + number(device)).c_str(), static_cast<size_t>(length));
  return 0;
}

FAKE(cuDeviceGetAttribute, int* value, int attribute, int) {
  switch (attribute) {
    case kDeviceCapabilityMajor: *value = state().capability / 10; return 0;
    case kDeviceCapabilityMinor: *value = state().capability % 10; return 0;
    case kDeviceMultiprocessors: *value = state().multiprocessors; return 0;
    case kDeviceSharedOptin: *value = 232448; return 0;
    default: return 1;
  }
}

/// Another one in every process, unless HELVE_FAKE_GPU numbers it.
FAKE(cuDeviceGetUuid_v2, DeviceUuid* uuid, int device) {
  const char* numbered = std::getenv("HELVE_FAKE_GPU");
  const std::string text = numbered != nullptr ? numbered : number(static_cast<unsigned long long>(getpid()));
  const std::string own = text + ":" + std::to_string(device);
  std::memset(uuid->bytes, 0, sizeof uuid->bytes);
  std::memcpy(uuid->bytes, own.data(), std::min(own.size(), sizeof uuid->bytes));
  return 0;
}

FAKE(cuDevicePrimaryCtxRetain, CudaContext* context, int device) {
  ENTER();
  *context = reinterpret_cast<CudaContext>(static_cast<uintptr_t>(device) + 1);
  return 0;
}

FAKE(cuCtxGetCurrent, CudaContext* context) {
  *context = contexts().empty() ? nullptr : contexts().back();
  return 0;
}

FAKE(cuCtxGetDevice, int* device) {
  if (contexts().empty()) return 201;
  *device = static_cast<int>(reinterpret_cast<uintptr_t>(contexts().back())) - 1;
  return 0;
}

FAKE(cuCtxPushCurrent_v2, CudaContext context) {
  contexts().push_back(context);
  return 0;
}

FAKE(cuCtxPopCurrent_v2, CudaContext* context) {
  if (contexts().empty()) return 201;
  *context = contexts().back();
  contexts().pop_back();
  return 0;
}

FAKE(cuLibraryLoadData, CudaLibrary* library, const void* image, int*, void**, unsigned, int*, void**, unsigned) {
  if (forbidden()) return 900;
  ENTER();
  *library = reinterpret_cast<CudaLibrary>(const_cast<void*>(image));
  return 0;
}

FAKE(cuLibraryGetKernel, CudaKernel* kernel, CudaLibrary library, const char* name) {
  ENTER(name);
  const std::string own = std::string(reinterpret_cast<const char*>(library)) + "/" + name;
  for (size_t i = state().kernel_names.size(); i-- > 0;) {
    if (state().kernel_names[i] != own && state().kernel_names[i] != name) continue;
    *kernel = reinterpret_cast<CudaKernel>(i + 1);
    return 0;
  }
  FakeBoxKernel found = find_box_kernel(name);
  const bool is_of_boxes = found != nullptr;
  if (!is_of_boxes) found = find_host_kernel(library, name);
  if (found) {
    const std::lock_guard<std::recursive_mutex> lock(mutex());
    const std::string known = is_of_boxes ? name : own + " " + number(reinterpret_cast<uintptr_t>(library));
    // A kernel of boxes is the same one each time, and may run now; another library may stand where one was unloaded.
    const auto place = is_of_boxes ? box_kernels().try_emplace(known, std::move(found))
                                   : box_kernels().insert_or_assign(known, std::move(found));
    *kernel = reinterpret_cast<CudaKernel>(&place.first->second);
    return 0;
  }
  return 500;
}

FAKE(cuKernelGetFunction, CudaFunction* function, CudaKernel kernel) {
  *function = reinterpret_cast<CudaFunction>(kernel);
  return 0;
}

FAKE(cuFuncGetAttribute, int* value, int attribute, CudaFunction) {
  *value = attribute == kFunctionMaxThreads ? state().max_threads : attribute == kFunctionSharedBytes ? 1024 : 0;
  return 0;
}

FAKE(cuFuncSetAttribute, CudaFunction function, int attribute, int value) {
  ENTER(number(reinterpret_cast<uintptr_t>(function)) + ": " + std::to_string(attribute) + " = " +
        std::to_string(value));
  return 0;
}

FAKE(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, int* count, CudaFunction, int threads, size_t shared,
     unsigned) {
  ENTER(std::to_string(threads) + " threads, " + number(shared) + " bytes");
  *count = state().resident_blocks;
  return 0;
}

FAKE(cuOccupancyMaxActiveClusters, int* count, CudaFunction, const LaunchConfig* config) {
  ENTER("of " + number(config->attributes[0].cluster[0]));
  *count = state().resident_clusters;
  return 0;
}

FAKE(cuLaunchKernelEx, const LaunchConfig* config, CudaFunction function, void** parameters, void**) {
  std::string detail = "grid " + number(config->grid[0]) + " block " + number(config->block[0]) + " shared " +
                       number(config->shared_bytes) + " " + of_stream(config->stream);
  for (unsigned a = 0; a < config->attribute_count; ++a) {
    const LaunchAttribute& each = config->attributes[a];
    if (each.id == kLaunchCooperative) detail += " cooperative " + std::to_string(each.cooperative);
    if (each.id == kLaunchClusterDimension)
      detail += " cluster " + number(each.cluster[0]) + "x" + number(each.cluster[1]);
  }
  ENTER(detail);
  if (contexts().empty()) return 201;
  for (auto& [name, kernel] : box_kernels()) {
    if (reinterpret_cast<CudaFunction>(&kernel) != function) continue;
    kernel(*config, parameters);
    return 0;
  }
  state().kernels.at(reinterpret_cast<uintptr_t>(function) - 1)(*config, parameters);
  return 0;
}

FAKE(cuMemAlloc_v2, DeviceAddress* address, size_t bytes) {
  if (forbidden()) return 900;
  ENTER(number(bytes));
  const std::lock_guard<std::recursive_mutex> lock(mutex());
  if (state().memory_used + static_cast<int64_t>(bytes) > state().memory_limit) return 2;
  void* block = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (block == nullptr) return 2;
  std::memset(block, 0xcd, bytes);
  *address = reinterpret_cast<DeviceAddress>(block);
  blocks()[*address] = bytes;
  state().memory_used += static_cast<int64_t>(bytes);
  ++state().allocations;
  return 0;
}

FAKE(cuMemFree_v2, DeviceAddress address) {
  if (forbidden()) return 900;
  ENTER();
  const std::lock_guard<std::recursive_mutex> lock(mutex());
  const auto it = blocks().find(address);
  if (it == blocks().end()) return 1;
  state().memory_used -= static_cast<int64_t>(it->second);
  --state().allocations;
  blocks().erase(it);
  std::free(reinterpret_cast<void*>(address));
  return 0;
}

FAKE(cuMemAllocAsync, DeviceAddress* address, size_t bytes, CudaStream) { return cuMemAlloc_v2(address, bytes); }

FAKE(cuMemFreeAsync, DeviceAddress address, CudaStream) { return cuMemFree_v2(address); }

FAKE(cuMemHostAlloc, void** address, size_t bytes, unsigned flags) {
  if (forbidden()) return 900;
  ENTER(number(bytes) + " flags " + number(flags));
  *address = std::malloc(bytes);
  return *address != nullptr ? 0 : 2;
}

FAKE(cuMemFreeHost, void* address) {
  if (forbidden()) return 900;
  ENTER();
  std::free(address);
  return 0;
}

FAKE(cuMemcpyHtoDAsync_v2, DeviceAddress to, const void* from, size_t bytes, CudaStream stream) {
  ENTER(number(bytes) + " " + of_stream(stream));
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return 0;
}

FAKE(cuMemcpyDtoHAsync_v2, void* to, DeviceAddress from, size_t bytes, CudaStream stream) {
  ENTER(number(bytes) + " " + of_stream(stream));
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return 0;
}

FAKE(cuMemcpyDtoDAsync_v2, DeviceAddress to, DeviceAddress from, size_t bytes, CudaStream stream) {
  ENTER(number(bytes) + " " + of_stream(stream));
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return 0;
}

/// CUDA_MEMCPY2D of cuda.h.
struct PlaneCopy {
  struct Side {
    size_t x, y;
    int kind;
    const void* host;
    DeviceAddress device;
    void* array;
    size_t pitch;
  } from, to;
  size_t width, height;
};
static_assert(sizeof(PlaneCopy) == 128);

FAKE(cuMemcpy2DAsync_v2, const PlaneCopy* copy, CudaStream stream) {
  ENTER(number(copy->width) + " x " + number(copy->height) + " " + of_stream(stream));
  constexpr int kDevice = 2;
  if (copy->from.kind != kDevice || copy->to.kind != kDevice) return 1;
  if (copy->from.pitch < copy->width || copy->to.pitch < copy->width) return 1;
  for (size_t row = 0; row < copy->height; ++row) {
    std::memcpy(reinterpret_cast<void*>(copy->to.device + row * copy->to.pitch),
                reinterpret_cast<const void*>(copy->from.device + row * copy->from.pitch), copy->width);
  }
  return 0;
}

FAKE(cuMemsetD8Async, DeviceAddress address, unsigned char value, size_t bytes, CudaStream stream) {
  ENTER(number(bytes) + " " + of_stream(stream));
  std::memset(reinterpret_cast<void*>(address), value, bytes);
  return 0;
}

FAKE(cuStreamGetId, CudaStream stream, unsigned long long* id) {
  if (state().capture_status != 0) return 900;  // as the driver, which then drops the capture
  *id = 1000 + reinterpret_cast<uintptr_t>(stream);
  return 0;
}

FAKE(cuStreamQuery, CudaStream) {
  if (forbidden()) return 900;
  ENTER();
  return state().not_ready > 0 && state().not_ready-- > 0 ? kCudaNotReady : 0;
}

FAKE(cuStreamSynchronize, CudaStream stream) {
  if (forbidden()) return 900;
  ENTER(of_stream(stream));
  return 0;
}

FAKE(cuStreamGetCaptureInfo_v2, CudaStream, int* status, unsigned long long* id, CudaGraph* graph, const void***,
     size_t*) {
  *status = state().capture_status;
  if (state().capture_status == 0) return 0;
  *id = state().capture_id;
  *graph = reinterpret_cast<CudaGraph>(static_cast<uintptr_t>(state().capture_id));
  return 0;
}

FAKE(cuEventCreate, CudaEvent* event, unsigned) {
  ENTER();
  const std::lock_guard<std::recursive_mutex> lock(mutex());
  *event = reinterpret_cast<CudaEvent>(++state().events);
  return 0;
}

FAKE(cuEventDestroy_v2, CudaEvent) {
  ENTER();
  return 0;
}

FAKE(cuEventQuery, CudaEvent event) {
  if (forbidden()) return 900;
  ENTER();
  const std::lock_guard<std::recursive_mutex> lock(mutex());
  return state().stuck_event == reinterpret_cast<uintptr_t>(event) ? kCudaNotReady : 0;
}

FAKE(cuEventRecord, CudaEvent event, CudaStream stream) {
  ENTER(of_stream(stream));
  const std::lock_guard<std::recursive_mutex> lock(mutex());
  state().recorded_event = reinterpret_cast<uintptr_t>(event);
  return 0;
}

FAKE(cuStreamWaitEvent, CudaStream stream, CudaEvent, unsigned flags) {
  ENTER(of_stream(stream) + " flags " + number(flags));
  return 0;
}

FAKE(cuUserObjectCreate, CudaUserObject* object, void* data, void (*destroy)(void*), unsigned, unsigned) {
  ENTER();
  *object = reinterpret_cast<CudaUserObject>(new std::pair(destroy, data));
  return 0;
}

FAKE(cuGraphRetainUserObject, CudaGraph graph, CudaUserObject object, unsigned, unsigned) {
  ENTER(number(reinterpret_cast<uintptr_t>(graph)));
  const auto* call = reinterpret_cast<std::pair<void (*)(void*), void*>*>(object);
  const auto [destroy, data] = *call;
  delete call;
  state().graph_ends[reinterpret_cast<uintptr_t>(graph)].push_back([destroy, data] { destroy(data); });
  return 0;
}

FAKE(cuTensorMapEncodeTiled, TensorMapBytes* map, int type, unsigned rank, void* base, const uint64_t* extents,
     const uint64_t* strides, const uint32_t* box, const uint32_t* steps, int interleave, int swizzle, int promotion,
     int fill) {
  const auto list = [](const auto* numbers, unsigned count) {
    std::string out;
    for (unsigned i = 0; i < count; ++i) out += (i == 0 ? "" : "x") + number(numbers[i]);
    return out;
  };
  ENTER("type " + std::to_string(type) + " extents " + list(extents, rank) + " strides " + list(strides, rank - 1) +
        " box " + list(box, rank) + " steps " + list(steps, rank) + " modes " + std::to_string(interleave) + " " +
        std::to_string(swizzle) + " " + std::to_string(promotion) + " " + std::to_string(fill));
  std::memset(map, 0, sizeof *map);
  describe_tensor_map(map, type, rank, base, extents, strides, box, swizzle);
  return 0;
}

FAKE(cuThreadExchangeStreamCaptureMode, int* mode) {
  std::swap(*mode, capture_mode);
  return 0;
}
