// The loop of a batch compiled for several kinds of vectors, and the choice among them.
// Each kind names its instructions for half products and for shifts lane by lane: from the plain operators compilers
// make three and two.
#include "batch_loops.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace helve::layout_detail {

namespace {

constexpr size_t kLine = kCacheLine / sizeof(int64_t);
/// How far reads and writes of memory run ahead, in elements.
constexpr size_t kAhead = 256;

namespace plain {
#define HELVE_TARGET
using Vector = uint64_t __attribute__((vector_size(16)));
constexpr size_t kVectors = 4;
inline Vector shift_up(Vector a, Vector count) { return a << count; }
inline Vector shift_down(Vector a, Vector count) { return a >> count; }
inline Vector unsigned_product(Vector a, Vector b) { return a * b; }
inline Vector signed_product(Vector a, Vector b) { return a * b; }
#include "batch_loops.inc"
#undef HELVE_TARGET
}  // namespace plain

#if defined(__x86_64__)
#define HELVE_LANES(name, call)                                                       \
  HELVE_TARGET inline Vector name(Vector left, Vector right) {                        \
    const auto a = reinterpret_cast<Lanes>(left), b = reinterpret_cast<Lanes>(right); \
    return reinterpret_cast<Vector>(call);                                            \
  }

namespace avx2 {
#define HELVE_TARGET [[gnu::target("avx2")]]
using Vector = uint64_t __attribute__((vector_size(32)));
using Lanes = __m256i;
constexpr size_t kVectors = 4;
HELVE_LANES(shift_up, _mm256_sllv_epi64(a, b))
HELVE_LANES(shift_down, _mm256_srlv_epi64(a, b))
HELVE_LANES(unsigned_product, _mm256_mul_epu32(a, b))
HELVE_LANES(signed_product, _mm256_mul_epi32(a, b))
#include "batch_loops.inc"
#undef HELVE_TARGET
}  // namespace avx2

namespace avx512 {
#define HELVE_TARGET [[gnu::target("avx512f,prefer-vector-width=512")]]
using Vector = uint64_t __attribute__((vector_size(64)));
using Lanes = __m512i;
constexpr size_t kVectors = 8;
constexpr __mmask8 kAll = 0xff;  // the forms without a mask read a variable that GCC calls uninitialized
HELVE_LANES(shift_up, _mm512_maskz_sllv_epi64(kAll, a, b))
HELVE_LANES(shift_down, _mm512_maskz_srlv_epi64(kAll, a, b))
HELVE_LANES(unsigned_product, _mm512_maskz_mul_epu32(kAll, a, b))
HELVE_LANES(signed_product, _mm512_maskz_mul_epi32(kAll, a, b))
#include "batch_loops.inc"
#undef HELVE_TARGET
}  // namespace avx512
#undef HELVE_LANES
#endif

}  // namespace

const std::vector<BatchSum>& batch_sums() {
  static const std::vector<BatchSum> sums = [] {
    std::vector<BatchSum> all;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) all.push_back(avx512::sum);
    if (__builtin_cpu_supports("avx2")) all.push_back(avx2::sum);
#endif
    all.push_back(plain::sum);
    return all;
  }();
  return sums;
}

}  // namespace helve::layout_detail
