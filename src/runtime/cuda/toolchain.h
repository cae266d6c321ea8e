// The two compilers of CUDA C behind one interface.
// compile.cc chooses one and caches; differences between them are in their files.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace helve::runtime::cuda {

/// Does a compile for the architecture give PTX, not a cubin? It does for virtual ones, "compute_90a".
inline bool makes_ptx(std::string_view arch) { return arch.starts_with("compute_"); }

/// A compiler that is available.
class Toolchain {
 public:
  virtual ~Toolchain() = default;

  /// "NVRTC 13.0"
  virtual const std::string& text() const = 0;
  /// The architectures that it supports, without letters: 80, 90.
  virtual const std::vector<int>& architectures() const = 0;

  struct Result {
    bool compiled;
    std::string bytes;
    std::string log;
  };
  /// Compiles with the resources of each kernel in the log.
  virtual Result compile(std::string_view source, const std::string& name, const std::string& arch,
                         const std::vector<std::string>& flags) const = 0;
};

/// The library that the environment and the folders name now; each is loaded once per process. UserError NvrtcMissing.
std::shared_ptr<const Toolchain> nvrtc(const std::vector<std::string>& site_packages);

/// The program that HELVE_NVCC or PATH names now. UserError NvccMissing.
std::shared_ptr<const Toolchain> nvcc();

}  // namespace helve::runtime::cuda
