// Loading a cubin and querying the limits of its launches on the device.
// A launch that can never run is refused when the code is loaded, with a message that names the limit.
#include "program.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>

#include "collectives.h"
#include "helve/support/diagnostic.h"

namespace helve::runtime::cuda {

namespace {

constexpr int64_t kStaticSharedLimit = 48 << 10;  ///< above it, an attribute of the function must be set
constexpr int64_t kPortableCluster = 8;           ///< likewise
constexpr int kNotFound = 500;

/// Does a device run code of an architecture? "sm_80" runs on 8.0 and later of generation 8, "sm_90a" on 9.0 only.
bool runs_on(const std::string& arch, const Device& device) {
  int number = 0;
  const auto [stop, fault] =
      std::from_chars(arch.data() + std::min<size_t>(3, arch.size()), arch.data() + arch.size(), number);
  HELVE_CHECK(arch.starts_with("sm_") && fault == std::errc(), fmt::format("a cubin for '{}'", arch));
  const bool exact = stop != arch.data() + arch.size() && *stop == 'a';
  const int minor = number % 10;
  return number / 10 == device.major && (exact ? minor == device.minor : minor <= device.minor);
}

}  // namespace

PlanParts parts_of(const Plan& plan) {
  PlanParts out;
  for_each_step(plan.steps, [&](const Step& step) {
    if (const auto* launch = std::get_if<Launch>(&step.node)) {
      out.launches.push_back(launch);
      out.allocates = out.allocates || launch->cooperative;
    } else if (const auto* collective = std::get_if<Collective>(&step.node)) {
      if (collective->kind == CollectiveKind::Barrier) return;  // the stream orders steps
      out.collectives.push_back(collective);
      out.allocates = true;
    } else if (std::holds_alternative<Allocate>(step.node)) {
      out.allocates = true;
    }
  });
  return out;
}

Program::Program(const Binary& code, const PlanParts& parts, const Device& device) : device_(device) {
  for (const Cubin* cubin : {&code.kernels, &code.collectives}) {
    if (cubin->bytes.empty() || runs_on(cubin->arch, device)) continue;
    throw UserError(Code::CudaArchitectureMismatch, {},
                    {{"kernel", code.names.empty() ? std::string("a collective") : code.names[0]},
                     {"arch", cubin->arch},
                     {"device", device.text()},
                     {"given", device.arch()}});
  }
  load(code, parts);
}

void Program::load(const Binary& code, const PlanParts& parts) {
  const RelaxedCapture relaxed;
  const auto load_cubin = [](const Cubin& cubin) {
    CudaLibrary library = nullptr;
    driver().library_load_data(&library, cubin.bytes.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    return library;
  };
  if (!parts.launches.empty()) {
    const CudaLibrary library = load_cubin(code.kernels);
    std::vector<CudaFunction> functions;
    for (const std::string& name : code.names) functions.push_back(find(library, name));
    admit(parts, functions);
  }
  if (!parts.collectives.empty()) {
    const CudaLibrary library = load_cubin(code.collectives);
    for (size_t c = 0; c < parts.collectives.size(); ++c) {
      collectives_[parts.collectives[c]] = find(library, collective_name(c));
    }
  }
}

CudaFunction Program::find(CudaLibrary library, const std::string& name) const {
  const Driver& cuda = driver();
  CudaKernel kernel = nullptr;
  const int result = cuda.library_get_kernel.result(&kernel, library, name.c_str());
  HELVE_CHECK(result != kNotFound, fmt::format("the cubin has no kernel '{}'", name));
  if (result != kCudaSuccess) fail_call(cuda.library_get_kernel.name(), result);
  CudaFunction function = nullptr;
  cuda.kernel_get_function(&function, kernel);
  return function;
}

void Program::admit(const PlanParts& parts, const std::vector<CudaFunction>& functions) {
  const Driver& cuda = driver();
  std::map<CudaFunction, std::pair<int64_t, int64_t>> most;  // maxima of dynamic shared memory and cluster size
  for (const Launch* launch : parts.launches) {
    const CudaFunction function = functions[static_cast<size_t>(launch->kernel)];
    const int64_t wanted = parts.unaligned ? launch->unaligned_threads : launch->threads;
    int threads = 0, shared = 0;
    cuda.function_get_attribute(&threads, kFunctionMaxThreads, function);
    cuda.function_get_attribute(&shared, kFunctionSharedBytes, function);
    if (wanted > threads) {
      throw UserError(Code::BlockThreads, {},
                      {{"kernel", launch->name},
                       {"threads", wanted},
                       {"limit", int64_t{threads}},
                       {"device", device_.text()}});
    }
    if (launch->shared_bytes > device_.shared_limit - shared) {
      throw UserError(Code::BlockSharedMemory, {},
                      {{"kernel", launch->name},
                       {"bytes", launch->shared_bytes + shared},
                       {"limit", device_.shared_limit},
                       {"device", device_.text()}});
    }
    auto& [bytes, cluster] = most[function];
    bytes = std::max(bytes, launch->shared_bytes);
    cluster = std::max(cluster, launch->cluster);
  }
  for (const auto& [function, needs] : most) {
    const auto [bytes, cluster] = needs;
    int shared = 0;
    cuda.function_get_attribute(&shared, kFunctionSharedBytes, function);
    if (bytes + shared > kStaticSharedLimit) {
      cuda.function_set_attribute(function, kFunctionMaxDynamicShared, static_cast<int>(bytes));
    }
    if (cluster > kPortableCluster) cuda.function_set_attribute(function, kFunctionNonPortableCluster, 1);
  }
  for (const Launch* launch : parts.launches) {
    const CudaFunction function = functions[static_cast<size_t>(launch->kernel)];
    const bool asks = launch->cooperative || launch->cluster > 1;
    Site site{function, parts.unaligned ? launch->unaligned_threads : launch->threads, 0};
    if (asks) site.resident = resident_blocks(*launch, site);
    sites_[launch] = site;
  }
}

int64_t Program::resident_blocks(const Launch& launch, const Site& site) const {
  const Driver& cuda = driver();
  int count = 0;
  if (launch.cluster == 1) {
    cuda.resident_blocks(&count, site.function, static_cast<int>(site.threads),
                         static_cast<size_t>(launch.shared_bytes), 0);
    return int64_t{count} * device_.multiprocessors;
  }
  LaunchAttribute cluster{kLaunchClusterDimension, 0, {}};
  cluster.cluster[0] = static_cast<unsigned>(launch.cluster);
  cluster.cluster[1] = cluster.cluster[2] = 1;
  const LaunchConfig config{{static_cast<unsigned>(launch.cluster), 1, 1},
                            {static_cast<unsigned>(site.threads), 1, 1},
                            static_cast<unsigned>(launch.shared_bytes),
                            nullptr,
                            &cluster,
                            1};
  cuda.resident_clusters(&count, site.function, &config);
  if (count == 0) {
    throw UserError(Code::ClusterSize, {},
                    {{"kernel", launch.name}, {"cluster", launch.cluster}, {"device", device_.text()}});
  }
  return int64_t{count} * launch.cluster;
}

}  // namespace helve::runtime::cuda
