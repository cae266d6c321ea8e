// Every stage of random programs computes what the program computes.
#include "ir/tensor/programs/random_programs.h"
#include "ir/tensor/programs/rms_norm.h"
#include "run_pass.h"

namespace helve::testing {
namespace {

TEST(RandomLaws, MeshKernelsSplit) {
  for (unsigned seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    const FunctionRef f = RandomMeshProgram(seed).make();
    for (int64_t chunk : {1, 2, 5}) {
      PassOptions options;
      options.persistent_chunk = chunk;
      expect_same_results(split_mesh_kernels, f, options);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(RandomLaws, MeshKernelsOnAllStages) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    PassOptions options;
    options.persistent_chunk = 1 + seed % 3;
    expect_same_on_all_stages(RandomMeshProgram(seed).make(), options);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(RandomLaws, TileProgramsOnAllStages) {
  for (unsigned seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    PassOptions options;
    options.machine.vector_bytes = seed % 2 ? 16 : 32;
    expect_same_on_all_stages(RandomTileProgram(seed).make(), options);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(RandomLaws, RmsNormIsExactBeforeReductionsAreReassociated) {
  for (int64_t chunk : {1, 2, 5}) {
    PassOptions options;
    options.persistent_chunk = chunk;
    expect_same_results(split_mesh_kernels, rms_norm_splitk(37, 101, 8, 16, 2, 3), options);
  }
}

}  // namespace
}  // namespace helve::testing
