// Names of DLPack's dtypes and devices.
// Error messages and plan texts speak of tensors in the words that array libraries use.
#include "helve/runtime/dlpack.h"

#include <fmt/format.h>

namespace helve::runtime {

namespace {

std::string scalar_text(DLDataType dtype) {
  switch (dtype.code) {
    case kDLInt: return fmt::format("int{}", dtype.bits);
    case kDLUInt: return fmt::format("uint{}", dtype.bits);
    case kDLFloat: return fmt::format("float{}", dtype.bits);
    case kDLOpaqueHandle: return "handle";
    case kDLBfloat: return fmt::format("bfloat{}", dtype.bits);
    case kDLComplex: return fmt::format("complex{}", dtype.bits);
    case kDLBool: return dtype.bits == 8 ? "bool" : fmt::format("bool{}", dtype.bits);
    case kDLFloat8_e3m4: return "float8_e3m4";
    case kDLFloat8_e4m3: return "float8_e4m3";
    case kDLFloat8_e4m3b11fnuz: return "float8_e4m3b11fnuz";
    case kDLFloat8_e4m3fn: return "float8_e4m3fn";
    case kDLFloat8_e4m3fnuz: return "float8_e4m3fnuz";
    case kDLFloat8_e5m2: return "float8_e5m2";
    case kDLFloat8_e5m2fnuz: return "float8_e5m2fnuz";
    case kDLFloat8_e8m0fnu: return "float8_e8m0fnu";
    case kDLFloat6_e2m3fn: return "float6_e2m3fn";
    case kDLFloat6_e3m2fn: return "float6_e3m2fn";
    case kDLFloat4_e2m1fn: return "float4_e2m1fn";
    default: return fmt::format("dtype(code={}, bits={})", dtype.code, dtype.bits);
  }
}

}  // namespace

std::string to_text(DLDataType dtype) {
  std::string text = scalar_text(dtype);
  return dtype.lanes == 1 ? text : fmt::format("{}x{}", text, dtype.lanes);
}

std::string to_text(DLDevice device) {
  const int id = device.device_id;
  switch (device.device_type) {
    case kDLCPU: return "cpu";
    case kDLCUDA: return fmt::format("cuda:{}", id);
    case kDLCUDAHost: return "cuda_host";
    case kDLOpenCL: return fmt::format("opencl:{}", id);
    case kDLVulkan: return fmt::format("vulkan:{}", id);
    case kDLMetal: return fmt::format("metal:{}", id);
    case kDLROCM: return fmt::format("rocm:{}", id);
    case kDLROCMHost: return "rocm_host";
    case kDLCUDAManaged: return fmt::format("cuda_managed:{}", id);
    default: return fmt::format("device(type={}, id={})", static_cast<int>(device.device_type), id);
  }
}

}  // namespace helve::runtime
