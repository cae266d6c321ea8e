struct helve_bfloat16 { unsigned short bits; };
__device__ __forceinline__ float helve_to_float(helve_bfloat16 x) {
    return __uint_as_float((unsigned int)x.bits << 16);
}
__device__ __forceinline__ helve_bfloat16 helve_to_bfloat16(float x) {
    helve_bfloat16 r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
    return r;
}
// N bytes that move at once.
template <int N> struct helve_word;
template <> struct helve_word<2> { typedef unsigned short type; };
template <> struct helve_word<4> { typedef unsigned int type; };
template <> struct helve_word<8> { typedef uint2 type; };
template <> struct helve_word<16> { typedef uint4 type; };
// N elements from memory that is aligned to W bytes, W bytes at a time.
template <int W, int N, class T>
__device__ __forceinline__ void helve_load(T (&to)[N], const T* from) {
    typedef typename helve_word<W>::type word;
    constexpr int count = W / sizeof(T);
#pragma unroll
    for (int i = 0; i < N; i += count) {
        union { word whole; T parts[count]; } u;
        u.whole = *(const word*)(from + i);
#pragma unroll
        for (int j = 0; j < count; ++j) to[i + j] = u.parts[j];
    }
}

extern "C" __global__ void __launch_bounds__(128)
rope_0(
    const helve_bfloat16* __restrict__ X,
    helve_bfloat16* __restrict__ Y,
    const float* __restrict__ COS,
    const float* __restrict__ SIN,
    long long B,
    long long S) {
    const int tx = threadIdx.x;
    const int s = blockIdx.x % S;
    const int b = blockIdx.x / S;
    for (int pass = 0; pass < 2; ++pass) {
        {
            helve_bfloat16 X_v[8];
            helve_load<16>(X_v, X + (S * b * 4096 + (long long)s * 4096 + pass * 2048 + tx / 8 * 128 + tx % 8 * 8));
            helve_bfloat16 X_v_1[8];
            helve_load<16>(X_v_1, X + (S * b * 4096 + (long long)s * 4096 + pass * 2048 + tx / 8 * 128 + tx % 8 * 8 + 64));
            float COS_v[8];
            helve_load<16>(COS_v, COS + ((long long)s * 64 + tx % 8 * 8));
            float SIN_v[8];
            helve_load<16>(SIN_v, SIN + ((long long)s * 64 + tx % 8 * 8));
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                const float x1 = helve_to_float(X_v[v]);
                const float x2 = helve_to_float(X_v_1[v]);
                Y[b * (S * 4096) + ((long long)s * 4096 + ((pass * 16 + tx / 8) * 128 + (tx % 8 * 8 + v)))] = helve_to_bfloat16(x1 * COS_v[v] - x2 * (1.0f * SIN_v[v]));
                Y[b * (S * 4096) + ((long long)s * 4096 + ((pass * 16 + tx / 8) * 128 + (tx % 8 * 8 + v + 64)))] = helve_to_bfloat16(x2 * COS_v[v] + x1 * (1.0f * SIN_v[v]));
            }
        }
    }
}
