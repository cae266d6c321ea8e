// NVIDIA's driver, loaded at run time.
// helve starts and compiles on machines without it; its own declarations make the toolkit's headers unnecessary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace helve::runtime::cuda {

// The driver's handles and structures, by their ABI (cuda.h of CUDA 12 and 13).
using CudaContext = struct CudaContextHandle*;
using CudaLibrary = struct CudaLibraryHandle*;
using CudaKernel = struct CudaKernelHandle*;
using CudaFunction = struct CudaFunctionHandle*;
using CudaStream = struct CudaStreamHandle*;  ///< null: the legacy default stream
using CudaEvent = struct CudaEventHandle*;
using CudaGraph = struct CudaGraphHandle*;
using CudaUserObject = struct CudaUserObjectHandle*;
using DeviceAddress = unsigned long long;

struct LaunchAttribute {
  int id;
  int padding;
  union {
    char bytes[64];
    int cooperative;
    unsigned cluster[3];
  };
};
static_assert(sizeof(LaunchAttribute) == 72);
constexpr int kLaunchCooperative = 2;
constexpr int kLaunchClusterDimension = 4;

struct LaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  CudaStream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(LaunchConfig) == 56);

/// CUtensorMap: the driver's description of a tensor for TMA.
struct alignas(64) TensorMapBytes {
  std::byte bytes[128];
};

/// CUuuid: what no other device of any machine has.
struct DeviceUuid {
  char bytes[16];
};

// Results, attributes and flags, by their names and values in cuda.h.
constexpr int kCudaSuccess = 0;
constexpr int kCudaInvalidValue = 1;
constexpr int kCudaOutOfMemory = 2;
constexpr int kCudaNotReady = 600;
constexpr int kFunctionMaxThreads = 0;
constexpr int kFunctionSharedBytes = 1;
constexpr int kFunctionMaxDynamicShared = 8;
constexpr int kFunctionNonPortableCluster = 14;
constexpr int kDeviceMultiprocessors = 16;
constexpr int kDeviceCapabilityMajor = 75;
constexpr int kDeviceCapabilityMinor = 76;
constexpr int kDeviceSharedOptin = 97;
constexpr unsigned kHostAllocPortable = 1;
constexpr unsigned kHostAllocMapped = 2;  ///< the device sees it at the same address
constexpr unsigned kEventDisableTiming = 2;
constexpr unsigned kEventWaitExternal = 1;
constexpr unsigned kUserObjectNoDestructorSync = 1;
constexpr unsigned kGraphUserObjectMove = 1;
constexpr int kCaptureModeRelaxed = 2;

/// Throws the error of a failed call: CudaCallFailed with the result's name and a remedy.
[[noreturn]] void fail_call(const char* function, int result);

/// A function of the driver. Calling it checks the result: UserError CudaCallFailed.
template <class Signature>
class DriverFunction;
template <class... Args>
class DriverFunction<int(Args...)> {
 public:
  explicit DriverFunction(const char* name) : name_(name) {}
  void operator()(Args... args) const {
    if (const int result = pointer_(args...); result != kCudaSuccess) fail_call(name_, result);
  }
  /// The unchecked result, for calls some of whose results are answers.
  int result(Args... args) const { return pointer_(args...); }
  const char* name() const { return name_; }
  void bind(void* symbol) { pointer_ = reinterpret_cast<int (*)(Args...)>(symbol); }

 private:
  const char* name_;
  int (*pointer_)(Args...) = nullptr;
};

/// The driver's functions, all bound.
struct Driver {
#define HELVE_CUDA_FUNCTION(member, symbol, parameters) DriverFunction<int parameters> member{#symbol};
#include "helve/runtime/cuda/driver_table.inc"
#undef HELVE_CUDA_FUNCTION
};

/// The loaded and initialised driver: HELVE_LIBCUDA if set and not empty, else the system's libcuda.so.1. Nothing is
/// loaded before the first call. UserError CudaDriverMissing, CudaDriverOutdated, CudaCallFailed; the next call retries
/// a failed load.
const Driver& driver();

/// A device and its primary context, which stays alive until the process ends.
struct Device {
  int ordinal = 0;
  std::string name;  ///< "NVIDIA H200"
  int major = 0;  ///< compute capability
  int minor = 0;
  int multiprocessors = 0;
  int64_t shared_limit = 0;  ///< most bytes of shared memory a block can ask for
  CudaContext context = nullptr;

  /// The architecture to compile for to use all of the device: "sm_80"; from Hopper on with architecture-specific
  /// instructions, "sm_90a".
  std::string arch() const;
  /// "cuda:0 (NVIDIA H200)"
  std::string text() const;
};

int device_count();

/// UserError CudaDeviceMissing, and those of `driver()`. The reference stays valid.
const Device& device(int ordinal);

/// Makes a device's primary context current on this thread for as long as it lives.
class ContextScope {
 public:
  explicit ContextScope(const Device& device);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  bool pushed_;
};

/// While it lives, this thread may allocate, free and load although some stream is being captured in a mode that
/// forbids it: a kernel may be garbage-collected or first used during another thread's capture, which must not be
/// invalidated by that.
class RelaxedCapture {
 public:
  RelaxedCapture();
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  int mode_ = kCaptureModeRelaxed;
};

}  // namespace helve::runtime::cuda
