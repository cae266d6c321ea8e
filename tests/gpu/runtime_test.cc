// The executor on a real device: launches, streams, graphs, clusters, grid barriers, collectives, limits, faults.
// What the fake driver of tests/cpp/runtime proves about calls, this proves about results. Skips itself without a
// device.
#include "helve/runtime/cuda/executor.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>

#include "cpp/runtime/host_tensor.h"
#include "cpp/runtime/temporary_folder.h"
#include "helve/support/diagnostic.h"

namespace helve::runtime::cuda {
namespace {

using P = ScalarProgram;

/// Functions of the driver that only the tests call.
template <class Signature>
Signature* symbol(const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Signature*>(dlsym(library, name));
}

void must(int result) { ASSERT_EQ(result, 0); }

class DeviceMemory {
 public:
  explicit DeviceMemory(size_t bytes) : bytes_(bytes) {
    driver().memory_allocate(&address_, std::max<size_t>(bytes, 1));
    driver().fill_bytes(address_, 0, bytes, nullptr);
  }
  ~DeviceMemory() { (void)driver().memory_free.result(address_); }
  DeviceMemory(const DeviceMemory&) = delete;
  void* data() const { return reinterpret_cast<void*>(address_); }
  DeviceAddress address() const { return address_; }
  template <class T>
  void write(const std::vector<T>& values) const {
    driver().copy_to_device(address_, values.data(), values.size() * sizeof(T), nullptr);
  }
  template <class T>
  std::vector<T> read(size_t count, size_t skip = 0) const {
    std::vector<T> out(count);
    driver().copy_to_host(out.data(), address_ + skip * sizeof(T), count * sizeof(T), nullptr);
    driver().stream_synchronize(nullptr);
    return out;
  }

 private:
  DeviceAddress address_ = 0;
  size_t bytes_;
};

/// A tensor of the device.
struct Tensor {
  Tensor(DLDataType dtype, std::vector<int64_t> extents)
      : shape(std::move(extents)),
        memory(static_cast<size_t>(
            std::accumulate(shape.begin(), shape.end(), element_bytes(dtype), std::multiplies<>()))) {
    view = {memory.data(), {kDLCUDA, 0}, static_cast<int32_t>(shape.size()), dtype, shape.data(), nullptr, 0};
  }
  TensorArgument arg() { return {&view, false}; }
  std::vector<int64_t> shape;
  DeviceMemory memory;
  DLTensor view{};
};

constexpr const char* kSource = R"(
typedef long long Int;
extern "C" __global__ void add(const float* x, float* y, Int n, Int k) {
  const Int i = (Int)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + (float)k;
}
extern "C" __global__ void fill(signed char* y, Int n) {
  for (Int i = (Int)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (Int)gridDim.x * blockDim.x) y[i] = (signed char)(i % 101);
}
extern "C" __global__ void scatter(const float* in, char* part, Int w, Int stride) {
  float* mine = (float*)(part + blockIdx.x * stride);
  for (Int i = threadIdx.x; i < w; i += blockDim.x) mine[i] = in[blockIdx.x * w + i];
}
extern "C" __global__ void gather(float* out, const char* part, Int w, Int stride) {
  const float* mine = (const float*)(part + blockIdx.x * stride);
  for (Int i = threadIdx.x; i < w; i += blockDim.x) out[blockIdx.x * w + i] = mine[i];
}
// Every block adds its number, all wait for all, every block writes the sum.
extern "C" __global__ void grid_sum(unsigned* out, unsigned* workspace) {
  if (threadIdx.x == 0) {
    atomicAdd(workspace + 1, blockIdx.x);
    __threadfence();
    atomicAdd(workspace, 1u);
    while (*(volatile unsigned*)workspace < gridDim.x) {}
    __threadfence();
    out[blockIdx.x] = *(volatile unsigned*)(workspace + 1);
  }
}
// Blocks of a cluster read the next one's dynamic shared memory, whose last word holds the block's number.
extern "C" __global__ void cluster_next(unsigned* out, Int words) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ unsigned shared[];
  shared[words - 1] = blockIdx.x;
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  unsigned rank, size, address, value;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  address = (unsigned)__cvta_generic_to_shared(shared + words - 1);
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(address), "r"((rank + 1) % size));
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(address));
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  out[blockIdx.x] = value;
#endif
}
extern "C" __global__ void wild(float* x) { x[1ull << 40] = 1.0f; }
)";

const std::vector<std::string> kKernels = {"add", "fill", "scatter", "gather", "grid_sum", "cluster_next", "wild"};
enum Kernel { kAdd, kFill, kScatter, kGather, kGridSum, kClusterNext, kWild };

Launch launch(Kernel kernel, P blocks, std::vector<int64_t> buffers, std::vector<P> scalars, int64_t threads) {
  Launch out{kernel, kKernels[static_cast<size_t>(kernel)], std::move(blocks), std::move(buffers), std::move(scalars)};
  out.threads = threads;
  return out;
}

Plan add_plan() {
  Plan plan;
  plan.name = "add";
  plan.slots = {"n", "k"};
  plan.params = {{"x", kFloat32, {BindSlot{0}}, {}, true, false, {}},
                 {"y", kFloat32, {BindSlot{0}}, {}, false, true, {}}};
  plan.scalar_params = {{"k", {kDLInt, 64, 1}, 1}};
  const P blocks = P::binary(ScalarOp::FloorDiv, P::binary(ScalarOp::Add, P::slot(0), 255), 256);
  plan.steps = {{launch(kAdd, blocks, {0, 1}, {P::slot(0), P::slot(1)}, 256)}};
  return plan;
}

/// out = in of every core, by way of a buffer a core, on which `between` works.
Plan core_plan(std::vector<int64_t> mesh, std::vector<Step> between) {
  Plan plan;
  plan.name = "cores";
  plan.mesh = std::move(mesh);
  plan.mesh_axes = {"x", "y"};
  const int64_t cores = core_count(plan);
  plan.slots = {"w"};
  plan.params = {{"in", kFloat32, {P(cores), BindSlot{0}}, {}, true, false, {}},
                 {"out", kFloat32, {P(cores), P::slot(0)}, {}, false, true, {}}};
  plan.buffers = {{"part", kFloat32, P::slot(0), true, 64}};
  plan.steps = {{Allocate{2}}, {launch(kScatter, cores, {0, 2}, {P::slot(0)}, 64)}};
  for (Step& step : between) plan.steps.push_back(std::move(step));
  plan.steps.push_back({launch(kGather, cores, {1, 2}, {P::slot(0)}, 64)});
  return plan;
}

class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    try {
      context_.emplace(device(0));
      compiler_text(options());
    } catch (const UserError& error) {
      const Code code = error.diagnostic().code;
      const bool none = code == Code::CudaDriverMissing || code == Code::NvrtcMissing ||
                        std::string(error.what()).find("CUDA_ERROR_NO_DEVICE") != std::string::npos;
      if (!none) throw;
      GTEST_SKIP() << error.what();
    }
  }
  CompileOptions options() const {
    CompileOptions out;
    out.cache = DiskCache(folder_.path(), int64_t{1} << 28);
    if (const char* site = std::getenv("HELVE_TEST_SITE_PACKAGES")) out.site_packages = {site};
    return out;
  }
  Executor executor(Plan plan, const std::string& arch = device(0).arch()) const {
    return {std::move(plan), compile_cubin(kSource, "runtime_test.cu", arch, options()), kKernels, options()};
  }
  static std::string error_of(const std::function<void()>& f) {
    try {
      f();
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  }

  TemporaryFolder folder_;
  std::optional<ContextScope> context_;
};

std::vector<float> ramp(size_t count) {
  std::vector<float> out(count);
  std::iota(out.begin(), out.end(), 0.0f);
  return out;
}

TEST_F(Gpu, AddsOnTensorsOfAnySize) {
  const Executor add = executor(add_plan());
  for (int64_t n : {0, 1, 255, 256, 257, 100001}) {
    Tensor x(kFloat32, {n}), y(kFloat32, {n});
    x.memory.write(ramp(static_cast<size_t>(n)));
    add.call(std::vector{x.arg(), y.arg()}, std::vector<ScalarArgument>{int64_t{7}});
    const std::vector<float> result = y.memory.read<float>(static_cast<size_t>(n));
    for (size_t i = 0; i < result.size(); ++i) ASSERT_EQ(result[i], static_cast<float>(i + 7));
  }
}

TEST_F(Gpu, TensorsBeyondTwoToThe31Elements) {
  const int64_t n = (int64_t{1} << 32) + 17;
  Plan plan;
  plan.name = "fill";
  plan.slots = {"n"};
  plan.params = {{"y", {kDLInt, 8, 1}, {BindSlot{0}}, {}, false, true, {}}};
  plan.steps = {{launch(kFill, 4096, {0}, {P::slot(0)}, 256)}};
  Tensor y({kDLInt, 8, 1}, {n});
  executor(std::move(plan)).call(std::vector{y.arg()});
  for (int64_t at : {int64_t{0}, int64_t{1} << 31, (int64_t{1} << 32) - 1, n - 100}) {
    const std::vector<int8_t> some =
        y.memory.read<int8_t>(100 - (at == (int64_t{1} << 32) - 1 ? 90 : 0), static_cast<size_t>(at));
    for (size_t i = 0; i < some.size(); ++i) ASSERT_EQ(some[i], (at + static_cast<int64_t>(i)) % 101) << at;
  }
}

TEST_F(Gpu, HostArrays) {
  const Executor add = executor(add_plan());
  for (int64_t n : {0, 1, 1000, 300000}) {
    HostTensor x(kFloat32, {n}), y(kFloat32, {n});
    std::iota(x.floats().begin(), x.floats().end(), 0.0f);
    add.call(std::vector{x.arg(true), y.arg()}, std::vector<ScalarArgument>{int64_t{-3}});
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y.floats()[static_cast<size_t>(i)], static_cast<float>(i - 3));
  }
}

TEST_F(Gpu, WorkIsOrderedOnTheCallersStream) {
  CudaStream stream = nullptr;
  must(symbol<int(CudaStream*, unsigned)>("cuStreamCreate")(&stream, 1));
  const Executor add = executor(add_plan()), cores = executor(core_plan({2, 3}, {}));
  Tensor x(kFloat32, {6, 5000}), y(kFloat32, {6, 5000}), flat(kFloat32, {30000}), sum(kFloat32, {30000});
  x.memory.write(ramp(30000));
  driver().stream_synchronize(nullptr);
  flat.view.data = y.view.data;
  for (int round = 0; round < 50; ++round) {
    cores.call(std::vector{x.arg(), y.arg()}, {}, stream);
    add.call(std::vector{flat.arg(), sum.arg()}, std::vector<ScalarArgument>{int64_t{round}}, stream);
  }
  driver().stream_synchronize(stream);
  const std::vector<float> result = sum.memory.read<float>(30000);
  for (size_t i = 0; i < result.size(); ++i) ASSERT_EQ(result[i], static_cast<float>(i + 49));
  must(symbol<int(CudaStream)>("cuStreamDestroy_v2")(stream));
}

TEST_F(Gpu, CallsAreCapturedInGraphs) {
  CudaStream stream = nullptr;
  must(symbol<int(CudaStream*, unsigned)>("cuStreamCreate")(&stream, 1));
  Collective sum;
  sum.kind = CollectiveKind::AllReduce;
  sum.axes = 3;
  sum.src = sum.dst = 2;
  sum.extents = {P::slot(0)};
  sum.src_strides = sum.dst_strides = {P(1)};
  auto owner = std::make_unique<Executor>(
      core_plan({2, 3}, {{sum}}), compile_cubin(kSource, "k.cu", device(0).arch(), options()), kKernels, options());
  const Executor& cores = *owner;
  Tensor in(kFloat32, {6, 100}), out(kFloat32, {6, 100});
  const std::vector<TensorArgument> arguments = {in.arg(), out.arg()};
  void *graph = nullptr, *ready = nullptr;
  const auto begin = [&] { must(symbol<int(CudaStream, int)>("cuStreamBeginCapture_v2")(stream, 0)); };
  const auto end = [&] { must(symbol<int(CudaStream, void**)>("cuStreamEndCapture")(stream, &graph)); };
  begin();
  EXPECT_EQ(error_of([&] { cores.call(arguments, {}, stream); }).substr(0, 15), "error[HV0926]: ");
  end();
  cores.call(arguments);  // on another stream
  begin();
  cores.call(arguments, {}, stream);
  end();
  must(symbol<int(void**, void*, unsigned long long)>("cuGraphInstantiateWithFlags")(&ready, graph, 0));
  for (int round = 0; round < 3; ++round) {
    in.memory.write(std::vector<float>(600, static_cast<float>(round)));
    driver().stream_synchronize(nullptr);
    must(symbol<int(void*, CudaStream)>("cuGraphLaunch")(ready, stream));
    driver().stream_synchronize(stream);
    EXPECT_EQ(out.memory.read<float>(600), std::vector<float>(600, static_cast<float>(6 * round)));
    if (round == 1) owner.reset();  // the graph keeps code and memory
    if (round == 0) cores.call(arguments);  // an ordinary call in between has memory of its own
  }
  must(symbol<int(void*)>("cuGraphExecDestroy")(ready));
  must(symbol<int(void*)>("cuGraphDestroy")(graph));
  must(symbol<int(CudaStream)>("cuStreamDestroy_v2")(stream));
  const Executor next = executor(core_plan({2, 3}, {}));  // frees what the graph gave back
  next.call(arguments);
  driver().stream_synchronize(nullptr);
  EXPECT_EQ(out.memory.read<float>(600), std::vector<float>(600, 2.0f));
}

TEST_F(Gpu, CooperativeLaunchesWaitForAllBlocks) {
  Plan plan;
  plan.name = "sum";
  plan.slots = {"n"};
  plan.params = {{"out", {kDLUInt, 32, 1}, {BindSlot{0}}, {}, false, true, {}}};
  Launch step = launch(kGridSum, P::slot(0), {0}, {}, 128);
  step.cooperative = true;
  plan.steps = {{step}};
  const Executor sum = executor(std::move(plan));
  for (int64_t blocks : {1, 7, device(0).multiprocessors}) {
    for (int round = 0; round < 3; ++round) {
      Tensor out({kDLUInt, 32, 1}, {blocks});
      sum.call(std::vector{out.arg()});
      const auto expected = static_cast<uint32_t>(blocks * (blocks - 1) / 2);
      EXPECT_EQ(out.memory.read<uint32_t>(static_cast<size_t>(blocks)),
                std::vector<uint32_t>(static_cast<size_t>(blocks), expected));
    }
  }
  Tensor many({kDLUInt, 32, 1}, {1 << 20});
  const std::string error = error_of([&] { sum.call(std::vector{many.arg()}); });
  EXPECT_EQ(error.substr(0, 15), "error[HV0925]: ") << error;
}

TEST_F(Gpu, ClustersShareMemory) {
  if (device(0).major < 9) GTEST_SKIP() << "clusters come with Hopper";
  for (int64_t cluster : {2, 4, 8, 16}) {
    const int64_t bytes = cluster == 16 ? 60000 : 100000;
    Plan plan;
    plan.name = "next";
    plan.params = {{"out", {kDLUInt, 32, 1}, {P(64)}, {}, false, true, {}}};
    Launch step = launch(kClusterNext, 64, {0}, {P(bytes / 4)}, 32);
    step.cluster = cluster;
    step.shared_bytes = bytes;
    plan.steps = {{step}};
    Tensor out({kDLUInt, 32, 1}, {64});
    executor(std::move(plan)).call(std::vector{out.arg()});
    const std::vector<uint32_t> result = out.memory.read<uint32_t>(64);
    for (int64_t b = 0; b < 64; ++b)
      ASSERT_EQ(result[static_cast<size_t>(b)], b / cluster * cluster + (b + 1) % cluster);
  }
}

/// Every kind of collective between 2x3 and 3x2 cores, against the CPU's executor on the same plan.
TEST_F(Gpu, CollectivesAgreeWithTheHost) {
  const auto scatter_host = [](void* const* buffers, const int64_t* scalars, int64_t begin, int64_t end, std::byte*) {
    for (int64_t c = begin; c < end; ++c)
      std::memcpy(static_cast<std::byte*>(buffers[1]) + c * scalars[1],
                  static_cast<const float*>(buffers[0]) + c * scalars[0], static_cast<size_t>(scalars[0]) * 4);
  };
  const auto gather_host = [](void* const* buffers, const int64_t* scalars, int64_t begin, int64_t end, std::byte*) {
    for (int64_t c = begin; c < end; ++c)
      std::memcpy(static_cast<float*>(buffers[0]) + c * scalars[0],
                  static_cast<const std::byte*>(buffers[1]) + c * scalars[1], static_cast<size_t>(scalars[0]) * 4);
  };
  std::mt19937 random(3);
  constexpr int64_t kWidth = 6000, kBox = 900;
  for (const std::vector<int64_t>& mesh : {std::vector<int64_t>{2, 3}, {3, 2}}) {
    for (uint64_t axes : {1u, 2u, 3u}) {
      for (CollectiveKind kind : {CollectiveKind::AllGather, CollectiveKind::Gather, CollectiveKind::Broadcast,
                                  CollectiveKind::Scatter, CollectiveKind::AllReduce, CollectiveKind::Reduce,
                                  CollectiveKind::ReduceScatter, CollectiveKind::AllToAll, CollectiveKind::Permute}) {
        Collective step;
        step.kind = kind;
        step.axes = axes;
        step.src = step.dst = 2;
        step.dst_offset = 13;
        step.extents = {P(kBox)};
        step.src_strides = step.dst_strides = {P(1)};
        step.member_stride_src = step.member_stride_dst = kBox;
        step.root = 1;
        step.member = 1;
        step.source = P::binary(ScalarOp::Sub, P::slot(1), P(1));
        Tensor in(kFloat32, {6, kWidth}), out(kFloat32, {6, kWidth});
        HostTensor host_in(kFloat32, {6, kWidth}), host_out(kFloat32, {6, kWidth});
        std::vector<float> values(6 * kWidth);
        for (float& value : values) value = std::uniform_real_distribution<float>(-1, 1)(random);
        std::copy(values.begin(), values.end(), host_in.floats().begin());
        in.memory.write(values);
        Plan plan = core_plan(mesh, {{step}});
        plan.slots.push_back("k");
        executor(plan).call(std::vector{in.arg(), out.arg()});
        runtime::Executor(plan, {nullptr, nullptr, scatter_host, gather_host, nullptr, nullptr, nullptr})
            .call(std::vector{host_in.arg(), host_out.arg()});
        const std::vector<float> result = out.memory.read<float>(6 * kWidth);
        ASSERT_EQ(std::memcmp(result.data(), host_out.floats().data(), result.size() * 4), 0)
            << name_of(kind) << " over " << axes << " of " << mesh[0] << "x" << mesh[1];
      }
    }
  }
}

TEST_F(Gpu, LimitsAreNamed) {
  Tensor x(kFloat32, {8}), y(kFloat32, {8});
  const auto change = [&](const std::function<void(Launch&)>& f) {
    Plan plan = add_plan();
    f(std::get<Launch>(plan.steps[0].node));
    return error_of([&] {
      executor(std::move(plan)).call(std::vector{x.arg(), y.arg()}, std::vector<ScalarArgument>{int64_t{1}});
    });
  };
  EXPECT_EQ(change([](Launch& l) { l.shared_bytes = 300000; }).substr(0, 15), "error[HV0924]: ");
  EXPECT_EQ(change([](Launch& l) { l.threads = 1056; }).substr(0, 15), "error[HV0923]: ");
  EXPECT_EQ(change([](Launch& l) { l.shared_bytes = 200000; }), "no error");
  const std::string other = device(0).major == 8 ? "sm_90a" : "sm_80";
  EXPECT_EQ(error_of([&] {
              executor(add_plan(), other).call(std::vector{x.arg(), y.arg()}, std::vector<ScalarArgument>{int64_t{1}});
            }).substr(0, 15),
            "error[HV0912]: ");
}

/// Prints what a warm call costs the caller; no test asserts a time.
TEST_F(Gpu, TimeOfAWarmCall) {
  const Executor add = executor(add_plan()), cores = executor(core_plan({2, 3}, {}));
  Tensor x(kFloat32, {6, 100}), y(kFloat32, {6, 100}), a(kFloat32, {600}), b(kFloat32, {600});
  const auto time = [](const char* what, const std::function<void()>& call) {
    double best = 1;
    for (int repeat = 0; repeat < 20; ++repeat) {
      driver().stream_synchronize(nullptr);
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < 200; ++i) call();
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 200);
    }
    std::printf("%s: %.2f us a call\n", what, best * 1e6);
  };
  const std::vector<TensorArgument> two = {a.arg(), b.arg()}, meshed = {x.arg(), y.arg()};
  const std::vector<ScalarArgument> scalar = {int64_t{1}};
  time("one launch, two tensors", [&] { add.call(two, scalar); });
  time("two launches and memory of the call", [&] { cores.call(meshed); });
  driver().stream_synchronize(nullptr);
}

/// Last: afterwards the process has no device.
TEST_F(Gpu, ZFaultsOfKernelsAreReported) {
  Plan plan;
  plan.name = "wild";
  plan.params = {{"x", kFloat32, {P(8)}, {}, false, true, {}}};
  plan.steps = {{launch(kWild, 1, {0}, {}, 1)}};
  const Executor wild = executor(std::move(plan));
  HostTensor x(kFloat32, {8});
  const std::string error = error_of([&] { wild.call(std::vector{x.arg()}); });
  EXPECT_EQ(error.substr(0, 15), "error[HV0903]: ") << error;
  EXPECT_NE(error.find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos) << error;
}

}  // namespace
}  // namespace helve::runtime::cuda
