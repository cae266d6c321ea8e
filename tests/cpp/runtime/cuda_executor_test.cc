// Plans on a device: what is handed to the driver, in which order, and what is refused. The device is the fake's.
#include "helve/runtime/cuda/executor.h"

#include <atomic>
#include <cstring>
#include <functional>
#include <numeric>
#include <thread>

#include "fake_driver.h"
#include "helve/support/diagnostic.h"
#include "host_tensor.h"

namespace helve::runtime::cuda {
namespace {

using P = ScalarProgram;

template <class T>
T argument(void** parameters, int index) {
  return *static_cast<T*>(parameters[index]);
}

/// y[i] = x[i] + k, one block an element: buffers x, y, scalars k.
void add_kernel(const LaunchConfig& config, void** parameters) {
  const auto* x = argument<const float*>(parameters, 0);
  auto* y = argument<float*>(parameters, 1);
  for (unsigned i = 0; i < config.grid[0]; ++i) y[i] = x[i] + static_cast<float>(argument<int64_t>(parameters, 2));
}

/// y[i] = -x[i] - k: the unaligned variant in a test, so that its results differ.
void unaligned_add_kernel(const LaunchConfig& config, void** parameters) {
  add_kernel(config, parameters);
  for (unsigned i = 0; i < config.grid[0]; ++i) argument<float*>(parameters, 1)[i] *= -1;
}

/// Per core c: part[c][i] = c + 1 for i < w: buffers part, scalars w, stride of part.
void seed_kernel(const LaunchConfig& config, void** parameters) {
  for (unsigned core = 0; core < config.grid[0]; ++core) {
    auto* mine =
        reinterpret_cast<float*>(argument<std::byte*>(parameters, 0) + core * argument<int64_t>(parameters, 2));
    for (int64_t i = 0; i < argument<int64_t>(parameters, 1); ++i) mine[i] = static_cast<float>(core + 1);
  }
}

/// out[c * w + i] = part[c][i]: buffers out, part, scalars w, stride of part.
void collect_kernel(const LaunchConfig& config, void** parameters) {
  const int64_t w = argument<int64_t>(parameters, 2);
  for (unsigned core = 0; core < config.grid[0]; ++core) {
    const auto* mine =
        reinterpret_cast<const float*>(argument<std::byte*>(parameters, 1) + core * argument<int64_t>(parameters, 3));
    for (int64_t i = 0; i < w; ++i) argument<float*>(parameters, 0)[core * w + i] = mine[i];
  }
}

constexpr int64_t kWorkspaceWords = 4096;

/// out[0] = the sum of the workspace's words, then spoils the workspace: buffers out, no scalars.
void workspace_kernel(const LaunchConfig&, void** parameters) {
  auto* words = argument<uint32_t*>(parameters, 1);
  *argument<float*>(parameters, 0) = static_cast<float>(std::accumulate(words, words + kWorkspaceWords, uint64_t{0}));
  std::fill(words, words + kWorkspaceWords, 7u);
}

Cubin cubin(const std::string& arch = "sm_90a") {
  Cubin out;
  out.arch = arch;
  out.bytes = "image";
  return out;
}

/// y = x + k over n elements, 128 threads a block.
Plan add_plan() {
  Plan plan;
  plan.name = "add";
  plan.slots = {"n", "k"};
  plan.params = {{"x", kFloat32, {BindSlot{0}}, {}, true, false, {}},
                 {"y", kFloat32, {BindSlot{0}}, {}, false, true, {}}};
  plan.scalar_params = {{"k", {kDLInt, 64, 1}, 1}};
  Launch launch{0, "add_0", P::slot(0), {0, 1}, {P::slot(1)}};
  launch.threads = 128;
  plan.steps = {{launch}};
  return plan;
}

/// Through memory of the call: part per core, then out.
Plan mesh_plan(int64_t rows, int64_t columns) {
  Plan plan;
  plan.name = "cores";
  plan.mesh = {rows, columns};
  plan.mesh_axes = {"x", "y"};
  const int64_t cores = rows * columns;
  plan.slots = {"w"};
  plan.params = {{"out", kFloat32, {P(cores), BindSlot{0}}, {}, false, true, {}}};
  plan.buffers = {{"part", kFloat32, P::slot(0), true, 64}};
  Launch seed{0, "seed", cores, {1}, {P::slot(0)}}, collect{1, "collect", cores, {0, 1}, {P::slot(0)}};
  seed.threads = collect.threads = 32;
  plan.steps = {{Allocate{1}}, {seed}, {collect}};
  return plan;
}

/// A tensor whose memory counts as that of a CUDA device.
class DeviceTensor : public HostTensor {
 public:
  explicit DeviceTensor(std::vector<int64_t> shape, int device = 0) : HostTensor(kFloat32, std::move(shape)) {
    view().device = {kDLCUDA, device};
  }
};

CudaStream stream(uintptr_t number) { return reinterpret_cast<CudaStream>(number); }

class CudaExecutor : public FakeDriverTest {
 protected:
  CudaExecutor() {
    fake_state().kernel_names = {"add", "seed", "collect", "workspace"};
    fake_state().kernels = {add_kernel, seed_kernel, collect_kernel, workspace_kernel};
    device(0);
    fake_state().calls.clear();
  }

  static std::string error_of(const std::function<void()>& f) {
    try {
      f();
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  }
  /// The error of the first call of the add plan, changed, on `n` elements.
  static std::string error_of_add(const std::function<void(Launch&)>& change, const std::string& arch = "sm_90a") {
    Plan plan = add_plan();
    change(std::get<Launch>(plan.steps[0].node));
    const Executor executor(std::move(plan), cubin(arch), {"add"});
    DeviceTensor x({8}), y({8});
    return error_of([&] { executor.call(std::vector{x.arg(), y.arg()}, std::vector<ScalarArgument>{int64_t{1}}); });
  }
  /// What the driver does when the graph of a capture and all made of it are destroyed.
  static void end_graph(unsigned long long capture) {
    for (const auto& end : std::exchange(fake_state().graph_ends[capture], {})) end();
  }
  static std::vector<ScalarArgument> seven() { return {int64_t{7}}; }
};

TEST_F(CudaExecutor, ALaunchOffItsAlignmentTakesTheNarrowKernels) {
  fake_state().kernel_names.push_back("unaligned/add");
  fake_state().kernels.push_back(unaligned_add_kernel);
  Plan plan = add_plan();
  std::get<Launch>(plan.steps[0].node).alignments = {16, 4};
  int compiled = 0;
  const auto unaligned = [&] {
    ++compiled;
    Cubin out = cubin();
    out.bytes = "unaligned";
    return out;
  };
  const Executor executor(std::move(plan), cubin(), {"add"}, {}, unaligned);
  const auto sign_of = [&](uint64_t x_offset, uint64_t y_offset) {
    DeviceTensor x({16}), y({16});
    x.view().shape[0] = y.view().shape[0] = 8;
    x.view().byte_offset = x_offset;
    y.view().byte_offset = y_offset;
    executor.call(std::vector{x.arg(), y.arg()}, seven());
    return y.floats()[y_offset / 4];
  };
  EXPECT_EQ(sign_of(0, 0), 7);
  EXPECT_EQ(sign_of(16, 4), 7);
  EXPECT_EQ(compiled, 0);
  EXPECT_EQ(sign_of(4, 0), -7);
  EXPECT_EQ(sign_of(8, 4), -7);
  EXPECT_EQ(sign_of(32, 0), 7);
  EXPECT_EQ(compiled, 1);
}

/// As add_kernel, and leaves the fault 1 with the value of x[0] where that is negative: buffers x, y, scalar k, fault.
void failing_kernel(const LaunchConfig& config, void** parameters) {
  add_kernel(config, parameters);
  auto* fault = argument<int64_t*>(parameters, 3);
  const float first = argument<const float*>(parameters, 0)[0];
  if (first >= 0 || fault[0] != 0) return;
  fault[1] = 1;
  fault[2] = static_cast<int64_t>(first);
  fault[0] = 2;
}

Plan failing_plan() {
  Plan plan = add_plan();
  const KernelReport line{false, "a line", {}, 0, {}};
  const KernelReport fault{true, "positive", {{"x", ReportedType::Signed}}, 0, {}};
  std::get<Launch>(plan.steps[0].node).reports = {line, fault};
  return plan;
}

TEST_F(CudaExecutor, AFaultOfADeviceEndsTheNextCall) {
  fake_state().kernels[0] = failing_kernel;
  const Executor executor(failing_plan(), cubin(), {"add"});
  DeviceTensor x({8}), y({8});
  const auto call = [&] { executor.call(std::vector{x.arg(), y.arg()}, seven()); };
  EXPECT_EQ(error_of(call), "no error");
  x.floats()[0] = -3;
  EXPECT_EQ(error_of(call), "no error") << "the call does not wait";
  x.floats()[0] = 0;
  y.floats()[0] = 1;
  const std::string fault = error_of(call);
  EXPECT_TRUE(fault.starts_with("error[HV0724]: assertion failed: positive\nnote: where x=-3")) << fault;
  EXPECT_EQ(y.floats()[0], 1) << "it launches nothing";
  EXPECT_EQ(error_of(call), "no error") << "it is reported once";
  EXPECT_EQ(calls("cuMemHostAlloc").size(), 1u);
}

TEST_F(CudaExecutor, AFaultEndsACallWithHostArrays) {
  fake_state().kernels[0] = failing_kernel;
  const Executor executor(failing_plan(), cubin(), {"add"});
  HostTensor x(kFloat32, {8}), y(kFloat32, {8});
  x.floats()[0] = -3;
  const auto call = [&] { executor.call(std::vector{x.arg(), y.arg()}, seven()); };
  EXPECT_NE(error_of(call).find("positive"), std::string::npos);
  x.floats()[0] = 3;
  EXPECT_EQ(error_of(call), "no error");
  EXPECT_EQ(y.floats()[0], 10);
}

TEST_F(CudaExecutor, AFaultExplainsABrokenContext) {
  fake_state().kernels[0] = failing_kernel;
  const Executor executor(failing_plan(), cubin(), {"add"});
  HostTensor x(kFloat32, {8}), y(kFloat32, {8});
  x.floats()[0] = -3;
  fake_state().fail_function = "cuStreamQuery";
  fake_state().fail_countdown = 1;
  fake_state().fail_result = 700;
  const std::string fault = error_of([&] { executor.call(std::vector{x.arg(), y.arg()}, seven()); });
  EXPECT_NE(fault.find("positive"), std::string::npos) << fault;
}

TEST_F(CudaExecutor, FaultMemoryOutlivesTheExecutorInAGraph) {
  fake_state().kernels[0] = failing_kernel;
  auto executor = std::make_unique<Executor>(failing_plan(), cubin(), std::vector<std::string>{"add"});
  DeviceTensor x({8}), y({8});
  const auto call = [&] { executor->call(std::vector{x.arg(), y.arg()}, seven()); };
  call();
  fake_state().capture_status = 1;
  fake_state().capture_id = 5;
  EXPECT_EQ(error_of(call), "no error");
  fake_state().capture_status = 0;
  EXPECT_EQ(calls("cuMemFreeHost").size(), 0u);
  executor.reset();
}

/// y[i] = the first element of the tensor that the map is of: buffers x, y, scalar k, the map.
void map_kernel(const LaunchConfig& config, void** parameters) {
  const auto& map = *static_cast<const TensorMapBytes*>(parameters[3]);
  const float* base = nullptr;
  std::memcpy(&base, &map, sizeof base);
  for (unsigned i = 0; i < config.grid[0]; ++i) argument<float*>(parameters, 1)[i] = *base;
}

/// With a map of x, which has two dimensions.
Plan map_plan() {
  Plan plan = add_plan();
  plan.slots.push_back("m");
  plan.params[0].dims = {BindSlot{2}, BindSlot{0}};
  std::get<Launch>(plan.steps[0].node).maps = {{0, {64, 32}, 128}};
  return plan;
}

TEST_F(CudaExecutor, TensorMapsAreMadeOnceForATensor) {
  fake_state().kernels[0] = map_kernel;
  const Executor executor(map_plan(), cubin(), {"add"});
  DeviceTensor x({6, 8}), other({6, 8}), y({8});
  x.floats()[0] = 3;
  other.floats()[0] = 5;
  for (DeviceTensor* each : {&x, &x, &other, &x}) {
    executor.call(std::vector{each->arg(), y.arg()}, seven());
    EXPECT_EQ(y.floats()[0], each->floats()[0]);
  }
  const std::string made = "cuTensorMapEncodeTiled type 2 extents 8x6 strides 32 box 32x64 steps 1x1 modes 0 3 3 0";
  EXPECT_EQ(calls("cuTensorMapEncodeTiled"), (std::vector<std::string>{made, made, made}));
}

TEST_F(CudaExecutor, ATensorThatNoMapDescribesTakesTheNarrowKernels) {
  fake_state().kernels[0] = map_kernel;
  fake_state().kernel_names.push_back("unaligned/add");
  fake_state().kernels.push_back([](const LaunchConfig&, void** parameters) { *argument<float*>(parameters, 1) = -1; });
  const auto unaligned = [] {
    Cubin out = cubin();
    out.bytes = "unaligned";
    return out;
  };
  const Executor executor(map_plan(), cubin(), {"add"}, {}, unaligned);
  const auto first_of = [&](std::vector<int64_t> shape) {
    DeviceTensor x(shape), y({shape[1]});
    if (shape[0] > 0) x.floats()[0] = 3;
    executor.call(std::vector{x.arg(), y.arg()}, seven());
    return y.floats()[0];
  };
  EXPECT_EQ(first_of({6, 8}), 3);
  EXPECT_EQ(first_of({6, 7}), -1);  // rows of 28 bytes
  EXPECT_EQ(first_of({0, 8}), -1);
  EXPECT_EQ(first_of({1, 4}), 3);
  EXPECT_EQ(calls("cuTensorMapEncodeTiled").size(), 2u);
  fake_state().fail_function = "cuTensorMapEncodeTiled";
  fake_state().fail_countdown = 1;
  fake_state().fail_result = 1;  // CUDA_ERROR_INVALID_VALUE: a map that the driver does not make
  EXPECT_EQ(first_of({2, 8}), -1);
  fake_state().fail_countdown = 1;
  fake_state().fail_result = 700;
  EXPECT_NE(error_of([&] { first_of({3, 8}); }).find("cuTensorMapEncodeTiled"), std::string::npos);
}

TEST_F(CudaExecutor, ACaptureLoadsNoNarrowKernels) {
  Plan plan = add_plan();
  std::get<Launch>(plan.steps[0].node).alignments = {16, 16};
  const Executor executor(std::move(plan), cubin(), {"add"}, {}, [] { return cubin(); });
  DeviceTensor x({16}), y({16});
  executor.call(std::vector{x.arg(), y.arg()}, seven(), stream(5));
  fake_state().capture_status = 1;
  x.view().shape[0] = y.view().shape[0] = 8;
  x.view().byte_offset = 4;
  EXPECT_EQ(error_of([&] { executor.call(std::vector{x.arg(), y.arg()}, seven(), stream(5)); }),
            "error[HV0926]: 'add' loads its code, which a CUDA graph cannot record\nhelp: call the kernel once with "
            "arguments of these shapes before capturing");
  fake_state().capture_status = 0;
}

TEST_F(CudaExecutor, AWarmCallIsOneLaunchOnTheCallersStream) {
  const Executor executor(add_plan(), cubin(), {"add"});
  EXPECT_TRUE(fake_state().calls.empty());  // making it needs no driver
  for (int64_t n : {1, 5, 1000}) {
    DeviceTensor x({n}), y({n});
    std::iota(x.floats().begin(), x.floats().end(), 0.0f);
    executor.call(std::vector{x.arg(), y.arg()}, seven(), stream(5));
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y.floats()[i], static_cast<float>(i + 7));
    if (n > 1) {
      const std::string launch = "cuLaunchKernelEx grid " + std::to_string(n) + " block 128 shared 0 stream 5";
      EXPECT_EQ(fake_state().calls, std::vector<std::string>{launch});
    }
    fake_state().calls.clear();
  }
  CudaContext current = nullptr;
  driver().context_get_current(&current);
  EXPECT_EQ(current, nullptr);  // the caller's context is as it was
}

TEST_F(CudaExecutor, NoBlocksLaunchNothing) {
  const Executor executor(add_plan(), cubin(), {"add"});
  DeviceTensor x({0}), y({0});
  executor.call(std::vector{x.arg(), y.arg()}, seven());
  EXPECT_TRUE(calls("cuLaunchKernelEx").empty());
}

TEST_F(CudaExecutor, PerCoreBuffersComeWithTheirStrides) {
  for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {2, 3}, {3, 2}}) {
    const Executor executor(mesh_plan(rows, columns), cubin(), {"seed", "collect"});
    for (int64_t w : {1, 17}) {
      DeviceTensor out({rows * columns, w});
      executor.call(std::vector{out.arg()});
      for (int64_t i = 0; i < rows * columns * w; ++i) ASSERT_EQ(out.floats()[i], static_cast<float>(i / w + 1));
    }
  }
}

/// The column of every core, on a mesh of columns of 3: buffer of the cores, its stride, the first core.
void column_kernel(const LaunchConfig& config, void** parameters) {
  for (int64_t core = 0; core < config.grid[0]; ++core) {
    *reinterpret_cast<int32_t*>(argument<std::byte*>(parameters, 0) + core * argument<int64_t>(parameters, 1)) =
        static_cast<int32_t>(core % 3);
  }
}

/// Adds 100 and a scalar to the core's element: out, the scalar, the first core.
void count_kernel(const LaunchConfig& config, void** parameters) {
  for (int64_t block = 0; block < config.grid[0]; ++block) {
    argument<float*>(parameters, 0)[argument<int64_t>(parameters, 2) + block] +=
        static_cast<float>(100 + argument<int64_t>(parameters, 1));
  }
}

TEST_F(CudaExecutor, CoresThatDecideDifferentlyAreLaunchedApart) {
  fake_state().kernel_names = {"column", "count"};
  fake_state().kernels = {column_kernel, count_kernel};
  Plan plan;
  plan.name = "apart";
  plan.mesh = {2, 3};
  plan.mesh_axes = {"x", "y"};
  plan.slots = {"column", "answer"};
  plan.params = {{"out", kFloat32, {6}, {}, true, true, {}}};
  plan.buffers = {{"part", {kDLInt, 32, 1}, 1, true, 64}};
  Launch column{0, "column", 6, {1}, {}}, count{1, "count", 6, {0}, {P::slot(1)}};
  column.threads = count.threads = 32;
  const Read read{1, 0, 0, {kDLInt, 32, 1}};
  const P known = P::binary(ScalarOp::Min, P::slot(0), 1);
  plan.steps = {{Allocate{1}}, {column}, {Diverge{{ControlUse::Value, {read}, known}, 1, {{count}}}}, {count}};
  const Executor executor(plan, cubin(), {"column", "count"});
  DeviceTensor out({6});
  executor.call(std::vector{out.arg()});
  // Cores 0 and 3; 1, 2 and 4, 5; then all, whose answer is the last one that was found.
  EXPECT_EQ(std::vector<float>(out.floats().begin(), out.floats().end()),
            (std::vector<float>{201, 202, 202, 201, 202, 202}));
  std::vector<std::string> grids;
  for (const std::string& call : calls("cuLaunchKernelEx")) grids.push_back(call.substr(17, 6));
  EXPECT_EQ(grids, (std::vector<std::string>{"grid 6", "grid 1", "grid 1", "grid 2", "grid 2", "grid 6"}));
  EXPECT_EQ(calls("cuMemcpyDtoH").size(), 6u);
  EXPECT_EQ(calls("cuStreamSynchronize").size() + calls("cuStreamQuery").size(), 1u);
}

TEST_F(CudaExecutor, MemoryIsKeptForTheStreamAndFreedWithTheExecutor) {
  {
    const Executor executor(mesh_plan(2, 2), cubin(), {"seed", "collect"});
    DeviceTensor out({4, 8}), larger({4, 100});
    executor.call(std::vector{out.arg()}, {}, stream(1));
    EXPECT_EQ(calls("cuMemAlloc"), std::vector<std::string>{"cuMemAlloc_v2 256"});
    executor.call(std::vector{out.arg()}, {}, stream(1));
    EXPECT_EQ(calls("cuMemAlloc").size(), 1u);
    executor.call(std::vector{out.arg()}, {}, stream(2));  // another stream may run at the same time
    EXPECT_EQ(calls("cuMemAlloc").size(), 2u);
    executor.call(std::vector{larger.arg()}, {}, stream(1));
    EXPECT_EQ(calls("cuMemFree").size(), 1u);
    EXPECT_EQ(fake_state().allocations, 2);
    EXPECT_TRUE(calls("cuStreamSynchronize").empty());
    executor.release_memory();
    EXPECT_EQ(fake_state().allocations, 0);
    executor.call(std::vector{out.arg()}, {}, stream(1));
    EXPECT_EQ(fake_state().allocations, 1);
  }
  EXPECT_EQ(fake_state().allocations, 0);
}

TEST_F(CudaExecutor, LaunchAttributes) {
  Plan plan = add_plan();
  auto& launch = std::get<Launch>(plan.steps[0].node);
  launch.cluster = 16;
  launch.shared_bytes = 100000;
  const Executor executor(std::move(plan), cubin(), {"add"});
  DeviceTensor x({32}), y({32});
  executor.call(std::vector{x.arg(), y.arg()}, seven(), stream(9));
  const std::vector<std::string> attributes = {"cuFuncSetAttribute 1: 8 = 100000", "cuFuncSetAttribute 1: 14 = 1"};
  EXPECT_EQ(calls("cuFuncSetAttribute"), attributes);
  EXPECT_EQ(calls("cuOccupancyMaxActiveClusters"), std::vector<std::string>{"cuOccupancyMaxActiveClusters of 16"});
  EXPECT_EQ(calls("cuLaunch"),
            std::vector<std::string>{"cuLaunchKernelEx grid 32 block 128 shared 100000 stream 9 cluster 16x1"});
  executor.call(std::vector{x.arg(), y.arg()}, seven(), stream(9));
  EXPECT_EQ(calls("cuFuncSetAttribute").size(), 2u);  // once, when the code was loaded
}

TEST_F(CudaExecutor, CooperativeLaunchesGetAZeroedWorkspace) {
  Plan plan;
  plan.name = "grid";
  plan.params = {{"out", kFloat32, {P(1)}, {}, false, true, {}}};
  Launch launch{0, "grid_0", 8, {0}, {}};
  launch.threads = 64;
  launch.cooperative = true;
  launch.barrier_words = kWorkspaceWords;
  plan.steps = {{launch}};
  EXPECT_NE(to_text(plan).find("launch grid_0 (kernel 0) blocks 8 buffers [out] scalars [] threads 64 cooperative\n"),
            std::string::npos)
      << to_text(plan);
  const Executor executor(plan, cubin(), {"workspace"});
  DeviceTensor out({1});
  for (int round = 0; round < 2; ++round) {
    out.floats()[0] = -1;
    executor.call(std::vector{out.arg()}, {}, stream(3));
    EXPECT_EQ(out.floats()[0], 0);
  }
  EXPECT_EQ(calls("cuOccupancyMaxActiveBlocks").size(), 1u);
  EXPECT_EQ(calls("cuMemAlloc").size(), 1u);
  EXPECT_EQ(calls("cuLaunch").back(), "cuLaunchKernelEx grid 8 block 64 shared 0 stream 3 cooperative 1");
  std::get<Launch>(plan.steps[0].node).blocks = 9;  // 4 multiprocessors of 2 blocks
  const Executor wide(plan, cubin(), {"workspace"});
  EXPECT_EQ(error_of([&] { wide.call(std::vector{out.arg()}); }),
            "error[HV0925]: 'grid_0' needs 9 blocks at the same time, cuda:0 (Fake GPU 0) holds at most 8\n"
            "help: use a mesh of fewer cores, or smaller tiles");
}

TEST_F(CudaExecutor, LimitsOfTheDevice) {
  EXPECT_EQ(error_of_add([](Launch& l) { l.threads = 2048; }),
            "error[HV0923]: 'add_0' has 2048 threads a block, its registers allow 1024 on cuda:0 (Fake GPU 0)\n"
            "help: use fewer threads");
  EXPECT_EQ(error_of_add([](Launch& l) { l.shared_bytes = 232448; }),
            "error[HV0924]: 'add_0' needs 233472 bytes of shared memory a block, cuda:0 (Fake GPU 0) has 232448\n"
            "help: use smaller tiles, or fewer stages of a pipeline");
  EXPECT_EQ(error_of_add([](Launch& l) { l.blocks = int64_t{1} << 31; }),
            "error[HV0922]: 'add_0' launches 2147483648 blocks, a CUDA grid has at most 2147483647\n"
            "help: give each block more work");
  fake_state().resident_clusters = 0;
  EXPECT_EQ(error_of_add([](Launch& l) { l.cluster = 4; }),
            "error[HV0927]: 'add_0' has clusters of 4 blocks, cuda:0 (Fake GPU 0) has no room for one\n"
            "help: use smaller clusters, or smaller tiles");
  fake_state().resident_clusters = 1;
  EXPECT_THROW(error_of_add([](Launch& l) { l.threads = 0; }), InternalError);
  EXPECT_THROW(error_of_add([](Launch& l) { l.blocks = 6, l.cluster = 4; }), InternalError);
}

TEST_F(CudaExecutor, Architectures) {
  const std::string text = "error[HV0912]: 'add' was compiled for ";
  for (const char* runs : {"sm_90", "sm_90a"}) EXPECT_EQ(error_of_add([](Launch&) {}, runs), "no error") << runs;
  for (const char* not_here : {"sm_80", "sm_100a", "sm_91", "sm_91a"}) {
    EXPECT_EQ(error_of_add([](Launch&) {}, not_here),
              text + not_here + ", cuda:0 (Fake GPU 0) is sm_90a\nhelp: compile it for sm_90a");
  }
}

TEST_F(CudaExecutor, ArgumentsAreCheckedBeforeAnythingIsLaunched) {
  const Executor executor(add_plan(), cubin(), {"add"});
  DeviceTensor x({4}), y({5}), far({4}, 1);
  HostTensor host(kFloat32, {4});
  EXPECT_EQ(error_of([&] { executor.call(std::vector{x.arg(), y.arg()}, seven()); }),
            "error[HV0606]: dimension 0 of 'y' is 'n', which 'x' set to 4; the argument's is 5\n"
            "help: pass arguments that agree on 'n'");
  const std::string help = "\nhelp: copy all arguments to one device";
  EXPECT_EQ(error_of([&] { executor.call(std::vector{x.arg(), far.arg()}, seven()); }),
            "error[HV0921]: the arguments of 'x' and 'y' are on different devices, cuda:0 and cuda:1" + help);
  EXPECT_EQ(error_of([&] { executor.call(std::vector{host.arg(), x.arg()}, seven()); }),
            "error[HV0921]: the arguments of 'x' and 'y' are on different devices, cpu and cuda:0" + help);
  host.view().device = {kDLROCM, 0};
  EXPECT_EQ(error_of([&] { executor.call(std::vector{host.arg(), host.arg()}, seven()); }),
            "error[HV0920]: 'add' runs on CUDA devices, the argument of 'x' is on rocm:0\n"
            "help: pass tensors of one CUDA device, or host arrays only");
  EXPECT_EQ(error_of([&] { executor.call(std::vector{x.arg()}, seven()); }).substr(0, 15), "error[HV0601]: ");
  EXPECT_EQ(error_of([&] { executor.call(std::vector{far.arg(), far.arg()}, seven()); }).substr(0, 15),
            "error[HV0904]: ");
  CallOptions located;
  located.span = {intern_file("caller.py"), 3, 1, 3, 9};
  EXPECT_NE(
      error_of([&] { executor.call(std::vector{x.arg(), y.arg()}, seven(), nullptr, located); }).find("caller.py:3:1"),
      std::string::npos);
  EXPECT_TRUE(calls("cuLaunch").empty());
}

TEST_F(CudaExecutor, DevicesHaveTheirOwnCode) {
  fake_state().device_count = 2;
  const Executor executor(add_plan(), cubin(), {"add"});
  for (int ordinal : {0, 1, 0, 1}) {
    DeviceTensor x({3}, ordinal), y({3}, ordinal);
    executor.call(std::vector{x.arg(), y.arg()}, seven());
    EXPECT_EQ(y.floats()[2], 7);
  }
  EXPECT_EQ(calls("cuLibraryLoadData").size(), 2u);
}

TEST_F(CudaExecutor, HostArraysTravelThereAndBack) {
  const Executor executor(add_plan(), cubin(), {"add"});
  fake_state().not_ready = 3;
  for (int64_t n : {1, 65, 1000}) {
    HostTensor x(kFloat32, {n}), y(kFloat32, {n});
    std::iota(x.floats().begin(), x.floats().end(), 0.0f);
    fake_state().calls.clear();
    executor.call(std::vector{x.arg(true), y.arg()}, seven(), stream(2));
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y.floats()[i], static_cast<float>(i + 7));
    EXPECT_EQ(calls("cuMemcpyHtoD").size(), 2u);
    // Only what is written comes back, after the kernel and before the call returns.
    EXPECT_EQ(calls("cuMemcpyDtoH"),
              std::vector<std::string>{"cuMemcpyDtoHAsync_v2 " + std::to_string(4 * n) + " stream 2"});
    EXPECT_EQ(calls("cuStreamSynchronize").size(), 1u);
  }
  HostTensor empty(kFloat32, {0});
  executor.call(std::vector{empty.arg(), empty.arg()}, seven());
}

/// The columns of a matrix as two arguments: their memory interleaves, and both are written back.
TEST_F(CudaExecutor, InterleavedHostArraysKeepEachOther) {
  Plan plan;
  plan.name = "columns";
  plan.params = {{"a", kFloat32, {P(5)}, {P(2)}, true, true, {}}, {"b", kFloat32, {P(5)}, {P(2)}, true, true, {}}};
  Launch launch{0, "columns_0", 5, {0, 1}, {}};
  launch.threads = 32;
  plan.steps = {{launch}};
  fake_state().kernel_names = {"columns"};
  fake_state().kernels = {[](const LaunchConfig& config, void** parameters) {
    for (unsigned i = 0; i < config.grid[0]; ++i) {
      argument<float*>(parameters, 0)[2 * i] += 100;
      argument<float*>(parameters, 1)[2 * i] += 200;
    }
  }};
  const Executor executor(plan, cubin(), {"columns"});
  HostTensor matrix(kFloat32, {5, 2});
  std::iota(matrix.floats().begin(), matrix.floats().end(), 0.0f);
  int64_t shape[] = {5}, strides[] = {2};
  DLTensor a = matrix.view(), b = matrix.view();
  for (DLTensor* column : {&a, &b}) column->ndim = 1, column->shape = shape, column->strides = strides;
  b.byte_offset = 4;
  executor.call(std::vector<TensorArgument>{{&a}, {&b}});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(matrix.floats()[i], static_cast<float>(i + (i % 2 == 0 ? 100 : 200)));
  EXPECT_EQ(calls("cuMemcpyHtoD").size(), 1u);
}

TEST_F(CudaExecutor, CaptureUsesWhatAnEarlierCallLeft) {
  const Executor executor(mesh_plan(2, 2), cubin(), {"seed", "collect"});
  DeviceTensor out({4, 8}), larger({4, 100});
  const std::string remedy = "\nhelp: call the kernel once with arguments of these shapes before capturing";
  fake_state().capture_status = 1;
  fake_state().capture_id = 40;
  EXPECT_EQ(error_of([&] { executor.call(std::vector{out.arg()}, {}, stream(1)); }),
            "error[HV0926]: 'cores' loads its code, which a CUDA graph cannot record" + remedy);
  fake_state().capture_status = 0;
  executor.call(std::vector{out.arg()}, {}, stream(1));
  EXPECT_EQ(calls("cuEventRecord"), std::vector<std::string>{"cuEventRecord stream 1"});
  fake_state().calls.clear();

  fake_state().capture_status = 1;
  fake_state().capture_id = 41;
  executor.call(std::vector{out.arg()}, {}, stream(6));  // PyTorch captures on a stream of its own
  executor.call(std::vector{out.arg()}, {}, stream(6));  // the same graph, after the first: the same memory
  const std::vector<std::string> captured = {"cuUserObjectCreate",
                                             "cuGraphRetainUserObject 41",
                                             "cuStreamWaitEvent stream 6 flags 1",
                                             "cuLaunchKernelEx grid 4 block 32 shared 0 stream 6",
                                             "cuLaunchKernelEx grid 4 block 32 shared 0 stream 6",
                                             "cuLaunchKernelEx grid 4 block 32 shared 0 stream 6",
                                             "cuLaunchKernelEx grid 4 block 32 shared 0 stream 6"};
  EXPECT_EQ(fake_state().calls, captured);
  EXPECT_EQ(error_of([&] { executor.call(std::vector{larger.arg()}, {}, stream(6)); }),
            "error[HV0926]: 'cores' allocates 1792 bytes, which a CUDA graph cannot record" + remedy);
  fake_state().capture_id = 42;  // another graph may run at the same time as the first
  EXPECT_EQ(error_of([&] { executor.call(std::vector{out.arg()}, {}, stream(6)); }),
            "error[HV0926]: 'cores' allocates 256 bytes, which a CUDA graph cannot record" + remedy);
  HostTensor host(kFloat32, {4, 8});
  EXPECT_EQ(
      error_of([&] { executor.call(std::vector{host.arg()}, {}, stream(6)); }),
      "error[HV0926]: 'cores' copies host arrays, which a CUDA graph cannot record\nhelp: pass tensors of the device");

  fake_state().capture_status = 0;
  executor.release_memory();
  EXPECT_EQ(fake_state().allocations, 1);  // the graph's
  executor.call(std::vector{out.arg()}, {}, stream(1));
  EXPECT_EQ(fake_state().allocations, 2);  // an ordinary call does not write what a graph may be reading
  end_graph(41);
  executor.call(std::vector{out.arg()}, {}, stream(2));  // takes what the graph gave back
  EXPECT_EQ(fake_state().allocations, 2);
}

TEST_F(CudaExecutor, GraphsKeepTheirMemoryWhenTheExecutorGoes) {
  DeviceTensor out({4, 8});
  {
    const Executor executor(mesh_plan(2, 2), cubin(), {"seed", "collect"});
    executor.call(std::vector{out.arg()}, {}, stream(1));
    fake_state().capture_status = 1;
    fake_state().capture_id = 50;
    executor.call(std::vector{out.arg()}, {}, stream(1));
  }
  EXPECT_EQ(fake_state().allocations, 1);
  end_graph(50);
  EXPECT_EQ(fake_state().allocations, 1);  // where a graph's end is told, the driver may not be called
  fake_state().capture_status = 0;
  const Executor next(add_plan(), cubin(), {"add"});
  DeviceTensor x({4}), y({4});
  next.call(std::vector{x.arg(), y.arg()}, seven());
  EXPECT_EQ(fake_state().allocations, 0);
}

/// The driver forbids a thread to allocate and to free while it captures some stream, and drops the capture.
TEST_F(CudaExecutor, WhatIsCollectedDuringACaptureDoesNotSpoilIt) {
  DeviceTensor out({4, 8});
  auto executor = std::make_unique<Executor>(mesh_plan(2, 2), cubin(), std::vector<std::string>{"seed", "collect"});
  executor->call(std::vector{out.arg()}, {}, stream(1));
  fake_state().capture_status = 1;
  executor.reset();
  EXPECT_EQ(fake_state().allocations, 0);
}

TEST_F(CudaExecutor, PlansWithoutMemoryAreCapturedOnceTheyAreLoaded) {
  const Executor executor(add_plan(), cubin(), {"add"});
  DeviceTensor x({4}), y({4});
  executor.call(std::vector{x.arg(), y.arg()}, seven());
  fake_state().capture_status = 1;
  fake_state().calls.clear();
  executor.call(std::vector{x.arg(), y.arg()}, seven(), stream(4));
  EXPECT_EQ(fake_state().calls, std::vector<std::string>{"cuLaunchKernelEx grid 4 block 128 shared 0 stream 4"});
}

/// Whichever call of the driver fails, the error is coded, nothing leaks, and the next call succeeds.
TEST_F(CudaExecutor, EveryDriverCallMayFail) {
  for (bool on_host : {false, true}) {
    for (int n = 1;; ++n) {
      fake_state().calls.clear();
      bool failed = false;
      {
        const Executor executor(mesh_plan(2, 2), cubin(), {"seed", "collect"});
        HostTensor host(kFloat32, {4, 8});
        DeviceTensor out({4, 8});
        const std::vector<TensorArgument> arguments = {on_host ? host.arg() : out.arg()};
        fake_state().fail_countdown = n;
        fake_state().fail_result = 700;
        const std::string error = error_of([&] { executor.call(arguments, {}, stream(1)); });
        failed = fake_state().fail_countdown == 0;
        fake_state().fail_countdown = 0;
        const std::string last = fake_state().calls.empty() ? "" : fake_state().calls.back();
        const bool ignored = calls("cuEventRecord").size() + calls("cuEventCreate").size() > 0;
        EXPECT_TRUE(error == "no error" ? !failed || ignored : error.starts_with("error[HV0903]: cu"))
            << n << " " << error << last;
        EXPECT_EQ(error_of([&] { executor.call(arguments, {}, stream(1)); }), "no error") << n;
        EXPECT_EQ((on_host ? host : out).floats()[31], 4.0f) << n;
      }
      EXPECT_EQ(fake_state().allocations, 0) << n;
      if (!failed) break;
      ASSERT_LT(n, 100);
    }
  }
}

TEST_F(CudaExecutor, DevicesRunOutOfMemory) {
  const Executor executor(mesh_plan(2, 2), cubin(), {"seed", "collect"});
  fake_state().memory_limit = 1000;
  DeviceTensor out({4, 100});
  EXPECT_EQ(
      error_of([&] { executor.call(std::vector{out.arg()}); }),
      "error[HV0623]: buffer 'part' of 1792 bytes cannot be allocated\nhelp: pass smaller tensors, or free memory");
  HostTensor host(kFloat32, {4, 100});
  EXPECT_EQ(error_of([&] { executor.call(std::vector{host.arg()}); }),
            "error[HV0623]: buffer 'copies of the host arrays' of 1792 bytes cannot be allocated\n"
            "help: pass smaller tensors, or free memory");
}

TEST_F(CudaExecutor, AWaitEndsWhenTheUserAsks) {
  const Executor executor(add_plan(), cubin(), {"add"});
  HostTensor x(kFloat32, {4}), y(kFloat32, {4});
  fake_state().not_ready = 1 << 30;
  int asked = 0;
  const InterruptHook hook = [&] { return ++asked > 3; };
  CallOptions options;
  options.interrupt = &hook;
  EXPECT_THROW(executor.call(std::vector{x.arg(), y.arg()}, seven(), nullptr, options), Interrupted);
  EXPECT_TRUE(calls("cuMemcpyDtoH").empty());
}

TEST_F(CudaExecutor, ThreadsCallAtTheSameTime) {
  const Executor executor(mesh_plan(2, 2), cubin(), {"seed", "collect"});
  std::vector<std::thread> threads;
  std::atomic<int> faults = 0;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&executor, &faults, t] {
      for (int64_t w = 1; w <= 50; ++w) {
        DeviceTensor out({4, w});
        executor.call(std::vector{out.arg()}, {}, stream(static_cast<uintptr_t>(t % 3)));
        for (int64_t i = 0; i < 4 * w; ++i) faults += out.floats()[i] != static_cast<float>(i / w + 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(faults, 0);
  EXPECT_LE(fake_state().allocations, 8);
  EXPECT_EQ(calls("cuLibraryLoadData").size(), 1u);
}

TEST_F(CudaExecutor, AMissingKernelIsAFaultOfHelve) {
  const Executor executor(add_plan(), cubin(), {"subtract"});
  DeviceTensor x({4}), y({4});
  EXPECT_THROW(executor.call(std::vector{x.arg(), y.arg()}, seven()), InternalError);
}

}  // namespace
}  // namespace helve::runtime::cuda
