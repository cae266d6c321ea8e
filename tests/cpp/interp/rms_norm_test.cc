// The RMSNorm of a mesh against double precision.
#include "ir/tensor/programs/rms_norm.h"

#include <cmath>

#include "arrays.h"

namespace helve::testing {
namespace {

struct Case {
  int64_t M, N, blk_m, blk_k, rows, cols;
};

class RmsNorm : public ::testing::TestWithParam<Case> {};

TEST_P(RmsNorm, EqualsTheDefinition) {
  const auto [M, N, blk_m, blk_k, rows, cols] = GetParam();
  const size_t size = static_cast<size_t>(M * N);
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0.5f, 2.0f);
  std::vector<float> a(size), b(size, -77.0f);
  for (float& v : a) v = normal(random);
  interp::run(rms_norm_splitk(M, N, blk_m, blk_k, rows, cols), {tensor(a, {M, N}), tensor(b, {M, N})});
  for (int64_t m = 0; m < M; ++m) {
    double sum = 0;
    for (int64_t n = 0; n < N; ++n) sum += std::pow(static_cast<double>(a[static_cast<size_t>(m * N + n)]), 2);
    const double scale = 1 / std::sqrt(sum / static_cast<double>(N) + 1e-6);
    for (int64_t n = 0; n < N; ++n) {
      const size_t at = static_cast<size_t>(m * N + n);
      const double expected = static_cast<double>(a[at]) * scale;
      ASSERT_NEAR(b[at], expected, 2e-6 * std::fabs(expected) + 1e-7) << "row " << m << " column " << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, RmsNorm,
                         ::testing::Values(Case{256, 512, 32, 128, 2, 3}, Case{64, 64, 32, 32, 1, 1},
                                           Case{37, 101, 8, 16, 2, 3}, Case{37, 101, 8, 16, 3, 2},
                                           Case{70, 130, 40, 50, 2, 2}, Case{5, 7, 32, 32, 3, 4},
                                           Case{1, 1, 32, 32, 2, 2}, Case{9, 3, 4, 1, 1, 5}, Case{0, 8, 4, 4, 2, 2}));

}  // namespace
}  // namespace helve::testing
