// NCCL, loaded at run time: 2.18 or later, of pip's wheels or of the system.
// helve starts on machines without it; its own declarations make nccl.h unnecessary. A test compares them with nccl.h.
#pragma once

#include <climits>
#include <cstddef>
#include <span>
#include <string>

#include "helve/runtime/cuda/driver.h"

namespace helve::runtime::nccl {

using NcclComm = struct ncclComm*;
using NcclStream = cuda::CudaStream;
using NcclResult = int;
using NcclDataType = int;
using NcclRedOp = int;

struct NcclUniqueId {
  char internal[128];
};

/// ncclConfig_t as version 2.18 has it. Later versions have more behind it, of which they take their defaults.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = 1;
  int cga_cluster_size = INT_MIN;  ///< INT_MIN: NCCL decides
  int min_ctas = INT_MIN;
  int max_ctas = INT_MIN;
  const char* net_name = nullptr;
  int split_share = INT_MIN;
  int undefined = INT_MIN;  ///< here padding of 2.18, and a field of later versions
};
static_assert(sizeof(NcclConfig) == 48);

constexpr int kNcclSuccess = 0;
constexpr int kNcclInProgress = 7;
constexpr int kNcclLeastVersion = 21800;

constexpr NcclDataType kNcclInt8 = 0, kNcclUint8 = 1, kNcclInt32 = 2, kNcclUint32 = 3, kNcclInt64 = 4, kNcclUint64 = 5,
                       kNcclFloat32 = 7, kNcclFloat64 = 8;
constexpr NcclRedOp kNcclSum = 0, kNcclProd = 1, kNcclMax = 2, kNcclMin = 3;

struct NcclLibrary {
  std::string path;
  int version = 0;  ///< 22809: 2.28.9
#define HELVE_NCCL_FUNCTION(member, symbol, parameters) int(*member) parameters = nullptr;
#include "helve/runtime/nccl/nccl_table.inc"
#undef HELVE_NCCL_FUNCTION
  const char* (*get_error_string)(NcclResult result) = nullptr;
  const char* (*get_last_error)(NcclComm comm) = nullptr;
};

/// "2.28.9"
std::string version_text(int version);

/// HELVE_NCCL if set and not empty, else the library that the process has loaded already, the first of the paths that
/// exists, or the system's. Loaded once. UserError NcclMissing; the next call tries again.
const NcclLibrary& nccl_library(std::span<const std::string> paths);

}  // namespace helve::runtime::nccl
