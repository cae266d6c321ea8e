// Loading the driver, its devices, and the meaning of its failures to a user.
// A failure is reported with the name of the call and a remedy, instead of a number.
#include "helve/runtime/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#include "helve/support/diagnostic.h"

namespace helve::runtime::cuda {

namespace {

/// What to do about a result; numbers are those of CUresult in cuda.h.
const char* remedy_of(int result) {
  switch (result) {
    case 2: return "free memory of the device, or use smaller tensors";
    case 3: return "a forked process cannot use the parent's CUDA: start processes by 'spawn'";
    case 34: return "this is the toolkit's stub of libcuda.so: take its folder out of the library path";
    case 46: return "the device is in exclusive use by another process";
    case 100:
      return "the driver sees no device: check nvidia-smi, CUDA_VISIBLE_DEVICES and the container's GPU options";
    case 209: return "compile for the architecture of the device";
    case 222:
    case 36:
    case 803:
    case 804: return "the driver is older than the compiler: update the driver";
    case 700:
    case 714:
    case 715:
    case 716:
    case 717:
    case 718:
    case 719:
      return "a kernel that ran before this call did what it must not, and the process has lost its device: run the "
             "program with target=\"interp\" and check=\"all\", or under compute-sanitizer";
    case 701: return "use fewer threads or smaller tiles";
    case 702: return "the kernel ran longer than the device allows while it drives a display";
    case 900:
    case 901:
    case 905:
    case 906: return "call the kernel once before capturing, and capture on a stream of its own";
    default: return "see the driver's documentation of this result";
  }
}

void* open_driver(std::string& library) {
  const char* named = std::getenv("HELVE_LIBCUDA");
  library = named != nullptr && *named != '\0' ? named : "libcuda.so.1";
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    throw UserError(Code::CudaDriverMissing, {}, {{"reason", std::string(reason != nullptr ? reason : library)}});
  }
  return handle;
}

Driver load() {
  std::string library;
  void* handle = open_driver(library);
  Driver out;
  auto bind = [&](auto& function) {
    void* symbol = dlsym(handle, function.name());
    if (symbol == nullptr) {
      throw UserError(Code::CudaDriverOutdated, {}, {{"library", library}, {"function", std::string(function.name())}});
    }
    function.bind(symbol);
  };
#define HELVE_CUDA_FUNCTION(member, symbol, parameters) bind(out.member);
#include "helve/runtime/cuda/driver_table.inc"
#undef HELVE_CUDA_FUNCTION
  return out;
}

/// The table without cuInit, so that a failure of cuInit can be named.
const Driver& bound_driver() {
  static const Driver table = load();
  return table;
}

int attribute(int id, int handle) {
  int value = 0;
  driver().device_get_attribute(&value, id, handle);
  return value;
}

std::unique_ptr<Device> describe(int ordinal) {
  const Driver& cuda = driver();
  const int count = device_count();
  if (ordinal < 0 || ordinal >= count) {
    throw UserError(Code::CudaDeviceMissing, {}, {{"device", int64_t{ordinal}}, {"count", int64_t{count}}});
  }
  int handle = 0;
  cuda.device_get(&handle, ordinal);
  auto out = std::make_unique<Device>();
  char name[256] = {};
  cuda.device_get_name(name, sizeof name - 1, handle);
  out->ordinal = ordinal;
  out->name = name;
  out->major = attribute(kDeviceCapabilityMajor, handle);
  out->minor = attribute(kDeviceCapabilityMinor, handle);
  out->multiprocessors = attribute(kDeviceMultiprocessors, handle);
  out->shared_limit = attribute(kDeviceSharedOptin, handle);
  cuda.primary_context_retain(&out->context, handle);
  return out;
}

}  // namespace

void fail_call(const char* function, int result) {
  const char* name = nullptr;
  const char* text = nullptr;
  const Driver& cuda = bound_driver();
  const bool known = cuda.get_error_name.result(result, &name) == kCudaSuccess && name != nullptr;
  const bool described = cuda.get_error_string.result(result, &text) == kCudaSuccess && text != nullptr;
  throw UserError(Code::CudaCallFailed, {},
                  {{"call", std::string(function)},
                   {"result", known ? std::string(name) : fmt::format("result {}", result)},
                   {"text", std::string(described ? text : "unknown to the driver itself")},
                   {"remedy", std::string(remedy_of(result))}});
}

const Driver& driver() {
  static const Driver& ready = []() -> const Driver& {
    bound_driver().init(0);
    return bound_driver();
  }();
  return ready;
}

int device_count() {
  int count = 0;
  driver().device_get_count(&count);
  return count;
}

const Device& device(int ordinal) {
  static std::mutex mutex;
  static std::map<int, std::unique_ptr<Device>> known;
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Device>& slot = known[ordinal];
  if (slot == nullptr) slot = describe(ordinal);
  return *slot;
}

std::string Device::arch() const { return fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : ""); }

std::string Device::text() const { return fmt::format("cuda:{} ({})", ordinal, name); }

ContextScope::ContextScope(const Device& device) : pushed_(false) {
  CudaContext current = nullptr;
  driver().context_get_current(&current);
  if (current == device.context) return;
  driver().context_push(device.context);
  pushed_ = true;
}

ContextScope::~ContextScope() {
  CudaContext popped = nullptr;
  if (pushed_) driver().context_pop.result(&popped);
}

RelaxedCapture::RelaxedCapture() { (void)driver().exchange_capture_mode.result(&mode_); }

RelaxedCapture::~RelaxedCapture() { (void)driver().exchange_capture_mode.result(&mode_); }

}  // namespace helve::runtime::cuda
