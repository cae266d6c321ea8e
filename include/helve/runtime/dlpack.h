// The DLPack ABI, declared here with its standard names inside our namespace.
// Tensors of all array libraries are exchanged through it; declarations of our own fix the layout without another
// header.
#pragma once

#include <cstdint>
#include <string>

namespace helve::runtime {

constexpr uint32_t DLPACK_MAJOR_VERSION = 1;
constexpr uint32_t DLPACK_MINOR_VERSION = 1;

struct DLPackVersion {
  uint32_t major;
  uint32_t minor;
};

enum DLDeviceType : int32_t {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,  ///< pinned host memory: the CPU may use it
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLVPI = 9,
  kDLROCM = 10,
  kDLROCMHost = 11,
  kDLExtDev = 12,
  kDLCUDAManaged = 13,
  kDLOneAPI = 14,
  kDLWebGPU = 15,
  kDLHexagon = 16,
  kDLMAIA = 17,
};

struct DLDevice {
  DLDeviceType device_type;
  int32_t device_id;
};

enum DLDataTypeCode : uint8_t {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLOpaqueHandle = 3,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6,
  kDLFloat8_e3m4 = 7,
  kDLFloat8_e4m3 = 8,
  kDLFloat8_e4m3b11fnuz = 9,
  kDLFloat8_e4m3fn = 10,
  kDLFloat8_e4m3fnuz = 11,
  kDLFloat8_e5m2 = 12,
  kDLFloat8_e5m2fnuz = 13,
  kDLFloat8_e8m0fnu = 14,
  kDLFloat6_e2m3fn = 15,
  kDLFloat6_e3m2fn = 16,
  kDLFloat4_e2m1fn = 17,
};

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;

  bool operator==(const DLDataType&) const = default;
};

/// A view of memory. `strides` are in elements; null means compact row-major. The first element is at `data +
/// byte_offset`.
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

constexpr uint64_t DLPACK_FLAG_BITMASK_READ_ONLY = 1;
constexpr uint64_t DLPACK_FLAG_BITMASK_IS_COPIED = 2;
constexpr uint64_t DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED = 4;

struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
};

static_assert(sizeof(DLDataType) == 4 && sizeof(DLDevice) == 8);
static_assert(sizeof(void*) != 8 || (sizeof(DLTensor) == 48 && sizeof(DLManagedTensorVersioned) == 80));

/// Bytes of one element, rounded up to whole bytes.
constexpr int64_t element_bytes(DLDataType dtype) { return (int64_t{dtype.bits} * dtype.lanes + 7) / 8; }

/// "float32", "bfloat16", "float8_e4m3fn", "bool", "int8x4".
std::string to_text(DLDataType dtype);

/// "cpu", "cuda:0".
std::string to_text(DLDevice device);

/// May code on the CPU use memory of this device?
constexpr bool is_host_memory(DLDevice device) {
  return device.device_type == kDLCPU || device.device_type == kDLCUDAHost || device.device_type == kDLROCMHost;
}

}  // namespace helve::runtime
