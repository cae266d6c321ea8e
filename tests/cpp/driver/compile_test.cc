// Compiling, calling and looking at kernels on every target.
#include <algorithm>
#include <cmath>
#include <thread>

#include "call_kernel.h"
#include "helve/ir/tensor/equal.h"
#include "helve/print/printer.h"
#include "helve/transform/pipeline.h"
#include "ir/tensor/programs/random_programs.h"
#include "ir/tensor/programs/rms_norm.h"

namespace helve::testing {
namespace {

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Targets, AreKnownByName) {
  for (Target t : {Target::Interp, Target::Llvm, Target::Cuda}) EXPECT_EQ(parse_target(std::string(to_string(t))), t);
  EXPECT_EQ(error_of([] { parse_target("fpga"); }),
            "error[HV0802]: 'fpga' is not a target\nhelp: targets are: interp, llvm, cuda");
}

/// Breaks an invariant after one pass, as a wrong pass would.
class Saboteur final : public PassInstrument {
 public:
  void ran(const Pass& pass, const FunctionRef&, const FunctionRef&, double) override {
    if (pass.name == "lower_tile_ops") throw InternalError("a pass was broken on purpose", "saboteur.cc", 7);
  }
};

std::string report_of(const CompileOptions& options, const FunctionRef& f) {
  try {
    compile(f, options);
  } catch (const InternalError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Reports, AnInternalErrorBringsTheProgramAndTheOptions) {
  Saboteur saboteur;
  CompileOptions options;
  options.instruments = {&saboteur};
  options.verify_passes = true;
  const BufferRef a = param("A", kFloat32, {4});
  const FunctionRef f = function("main", {a}, one_block({tile_op(TileOpcode::Clear, {whole_region(a)})}));
  const std::string program =
      "@T.prim_func\ndef main(A: T.Tensor((4,), \"float32\")):\n    with T.Kernel(1) as bx:\n        T.clear(A)\n";
  EXPECT_EQ(print(f), program);
  EXPECT_EQ(report_of(options, f),
            "internal error: a pass was broken on purpose (saboteur.cc:7)\n"
            "This is a fault of helve, not of your program. Please report it together with this text:\n\n"
            "# helve " HELVE_VERSION "\nimport helve\n\nmain = helve.parse(r'''\n" +
                program + "''')\nkernel = helve.compile(main, target=\"llvm\", verify=True)\n");
}

TEST(Reports, PassesOfEveryTargetAreWatched) {
  Saboteur saboteur;
  const BufferRef a = param("A", kFloat32, {4});
  const FunctionRef f = function("main", {a}, one_block({tile_op(TileOpcode::Clear, {whole_region(a)})}));
  for (Target target : {Target::Llvm, Target::Cuda}) {
    CompileOptions options;
    options.target = target;
    options.arch = target == Target::Cuda ? "sm_90a" : "";
    options.instruments = {&saboteur};
    EXPECT_NE(report_of(options, f).find("a pass was broken on purpose"), std::string::npos);
  }
}

TEST(Reports, AMeshAndAChunkArePartOfTheReport) {
  CompileOptions options;
  options.target = Target::Interp;
  options.mesh = MeshShape{{2, 3}, {"x", "y"}};
  options.persistent_chunk = 4;
  options.check = interp::Checks::all();
  const FunctionRef f = function("main", {}, seq({}));
  EXPECT_NE(reproducer(*f, options)
                .find("helve.compile(main, target=\"interp\", mesh=helve.Mesh((2, 3), (\"x\", \"y\")), "
                      "persistent_chunk=4, check=\"all\")"),
            std::string::npos)
      << reproducer(*f, options);
}

class OnTarget : public ::testing::TestWithParam<Target> {};
INSTANTIATE_TEST_SUITE_P(Driver, OnTarget, ::testing::ValuesIn(all_targets()),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST_P(OnTarget, AddsVectorsOfAnyLength) {
  const auto kernel = compile_for(GetParam(), vector_add());
  EXPECT_EQ(kernel->target(), GetParam());
  for (int64_t n : {0, 1, 15, 16, 17, 100}) {
    const auto memory = call(*kernel, 3, {{n}, {n}, {n}});
    const std::vector<float> a = as_floats(memory[0]), b = as_floats(memory[1]), c = as_floats(memory[2]);
    ASSERT_EQ(c.size(), static_cast<size_t>(n));
    for (size_t i = 0; i < c.size(); ++i) ASSERT_EQ(c[i], a[i] + b[i]) << i << " of " << n;
  }
}

TEST_P(OnTarget, RmsNormIsTheDefinitionForEveryChunk) {
  const int64_t m = 37, n = 101;
  for (int64_t chunk : {1, 2, 5}) {
    const auto memory = call(*compile_for(GetParam(), rms_norm_splitk(m, n, 8, 16, 2, 3), chunk));
    const std::vector<float> a = as_floats(memory[0]), b = as_floats(memory[1]);
    for (int64_t row = 0; row < m; ++row) {
      double sum = 0;
      for (int64_t k = 0; k < n; ++k) sum += std::pow(static_cast<double>(a[static_cast<size_t>(row * n + k)]), 2);
      const double scale = 1 / std::sqrt(sum / static_cast<double>(n) + 1e-6);
      for (int64_t k = 0; k < n; ++k) {
        const size_t at = static_cast<size_t>(row * n + k);
        ASSERT_NEAR(b[at], static_cast<double>(a[at]) * scale, 1e-5) << "row " << row << ", chunk " << chunk;
      }
    }
  }
}

TEST_P(OnTarget, ChunksGiveEqualBits) {
  const FunctionRef f = rms_norm_splitk(37, 101, 8, 16, 2, 3);
  const auto expected = call(*compile_for(GetParam(), f, 1));
  for (int64_t chunk : {2, 5}) EXPECT_EQ(call(*compile_for(GetParam(), f, chunk)), expected) << chunk;
}

TEST_P(OnTarget, ShowsEveryStage) {
  for (const FunctionRef& f : {vector_add(), rms_norm_splitk(37, 101, 8, 16, 2, 3)}) {
    const auto kernel = compile_for(GetParam(), f);
    std::vector<std::string> stages = kernel->stages();
    EXPECT_EQ(stages.front(), "script");
    for (const std::string& stage : stages) EXPECT_FALSE(kernel->source(stage).empty()) << stage;
    EXPECT_EQ(kernel->source("script"), print(f));
    std::sort(stages.begin(), stages.end());
    EXPECT_EQ(std::adjacent_find(stages.begin(), stages.end()), stages.end()) << "a stage is named twice";
  }
}

TEST_P(OnTarget, RefusesUnknownStages) {
  const auto kernel = compile_for(GetParam(), vector_add());
  std::string known = "script";
  if (GetParam() == Target::Llvm) {
    known += ", lowered, plan, llvm, asm";
    for (const Pass& pass : cpu_pipeline()) {
      const std::string next = ", " + std::string(pass.name);
      if (known.find(next) == std::string::npos) known += next;
    }
  }
  EXPECT_EQ(error_of([&] { kernel->source("cuda"); }),
            "error[HV0804]: 'cuda' is not a stage of this kernel\nhelp: stages are: " + known);
}

TEST_P(OnTarget, ReportsTheTimeOfEachPart) {
  const auto kernel = compile_for(GetParam(), vector_add());
  std::vector<std::string> names;
  for (const StageTime& t : kernel->times()) {
    EXPECT_GE(t.seconds, 0) << t.stage;
    names.push_back(t.stage);
  }
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names.front(), "verify");
  const bool lowers = GetParam() == Target::Llvm;
  for (const char* part : {"split_mesh_kernels", "vectorize_loops", "host plan", "llvm: optimize"}) {
    EXPECT_EQ(std::find(names.begin(), names.end(), part) != names.end(), lowers) << part;
  }
}

#ifdef HELVE_WITH_LLVM
TEST(RandomPrograms, MachineCodeComputesWhatTheInterpreterComputes) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    for (const FunctionRef& f : {RandomMeshProgram(seed).make(), RandomTileProgram(seed).make()}) {
      const auto expected = call(*compile_for(Target::Interp, f), seed);
      ASSERT_EQ(call(*compile_for(Target::Llvm, f, 1 + seed % 3), seed), expected) << "seed " << seed << "\n"
                                                                                   << print(f);
    }
  }
}

TEST(CompileOptions, PrintTheFunctionAfterEachPassThatChangedIt) {
  CompileOptions options;
  options.print_changed = true;
  ::testing::internal::CaptureStderr();
  compile(vector_add(), options);
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.find("# after split_mesh_kernels"), std::string::npos) << "nothing to split";
  const size_t vectors = text.find("# after vectorize_loops (");
  ASSERT_NE(vectors, std::string::npos) << text;
  EXPECT_NE(text.find("T.vectorized(", vectors), std::string::npos) << text;
}
#endif

TEST_P(OnTarget, CompilesFromSeveralThreads) {
  const FunctionRef add = vector_add(), norm = rms_norm_splitk(37, 101, 8, 16, 2, 3);
  const auto expected = call(*compile_for(GetParam(), norm));
  std::vector<std::thread> threads;
  std::vector<int> good(4);
  for (size_t t = 0; t < good.size(); ++t) {
    threads.emplace_back([&, t] {
      const auto sum = call(*compile_for(GetParam(), add), 1, {{33}, {33}, {33}});
      const std::vector<float> a = as_floats(sum[0]), b = as_floats(sum[1]), c = as_floats(sum[2]);
      bool right = call(*compile_for(GetParam(), norm)) == expected;
      for (size_t i = 0; i < c.size(); ++i) right &= c[i] == a[i] + b[i];
      good[t] = right;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, std::vector<int>(4, 1));
}

TEST_P(OnTarget, OneKernelServesSeveralThreads) {
  const auto kernel = compile_for(GetParam(), rms_norm_splitk(37, 101, 8, 16, 2, 3), 2);
  std::vector<std::vector<std::vector<std::byte>>> expected;
  for (unsigned seed = 0; seed < 4; ++seed) expected.push_back(call(*kernel, seed));
  std::vector<std::thread> threads;
  std::vector<int> good(4);
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      bool right = true;
      for (int repeat = 0; repeat < 5; ++repeat) right &= call(*kernel, t) == expected[t];
      good[t] = right;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, std::vector<int>(4, 1));
}

TEST(LoweringStages, BeginWithTheFunctionAndFollowThePipeline) {
  const FunctionRef f = rms_norm_splitk(37, 101, 8, 16, 2, 3);
  const auto stages = lowering_stages(f);
  ASSERT_GE(stages.size(), 2u);
  EXPECT_EQ(stages.front().first, "script");
  EXPECT_EQ(stages.front().second, f);
  EXPECT_EQ(stages[1].first, cpu_pipeline().front().name);
}

TEST(PlaceOnMesh, AddsTheMeshThatIsMissing) {
  const BufferRef a = param("A", kFloat32, {4});
  const FunctionRef f =
      function("main", {a}, kernel({make_var("r"), make_var("c")}, {idx(2), idx(3)}, 128, store(a, {idx(0)}, f32(1))));
  EXPECT_EQ(place_on_mesh(f, std::nullopt), f);
  const FunctionRef placed = place_on_mesh(f, mesh_xy(2, 3));
  ASSERT_TRUE(placed->mesh.has_value());
  EXPECT_EQ(*placed->mesh, mesh_xy(2, 3));
  EXPECT_FALSE(f->mesh.has_value());
  EXPECT_EQ(place_on_mesh(placed, mesh_xy(2, 3)), placed);
  EXPECT_EQ(error_of([&] { place_on_mesh(f, mesh_xy(3, 2)); }),
            "error[HV0401]: the grid (2, 3) is not the mesh (3, 2)\nhelp: write T.Kernel(3, 2), one block for each "
            "core of the mesh");
}

TEST(PlaceOnMesh, RefusesAnotherMesh) {
  const FunctionRef f = rms_norm_splitk(37, 101, 8, 16, 2, 3);
  EXPECT_EQ(error_of([&] { place_on_mesh(f, mesh_xy(3, 2)); }),
            "error[HV0401]: the grid (2, 3) is not the mesh (3, 2)\n"
            "note: 'main' is written for the mesh (2, 3), and compiled for (3, 2)\n"
            "help: compile it with mesh=helve.Mesh((2, 3)), or write it for (3, 2): its own mesh, or the nrows and "
            "ncols of its annotations, and the grid of each T.Kernel");
}

}  // namespace
}  // namespace helve::testing
