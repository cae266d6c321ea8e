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
// N elements to memory that is aligned to W bytes, W bytes at a time.
template <int W, int N, class T>
__device__ __forceinline__ void helve_store(T* to, const T (&from)[N]) {
    typedef typename helve_word<W>::type word;
    constexpr int count = W / sizeof(T);
#pragma unroll
    for (int i = 0; i < N; i += count) {
        union { word whole; T parts[count]; } u;
#pragma unroll
        for (int j = 0; j < count; ++j) u.parts[j] = from[i + j];
        *(word*)(to + i) = u.whole;
    }
}
// Floats to memory that is aligned to W bytes, rounded in pairs.
template <int W, int N>
__device__ __forceinline__ void helve_store_rounded(helve_bfloat16* to, const float (&from)[N]) {
    helve_bfloat16 rounded[N];
#pragma unroll
    for (int i = 0; i < N; i += 2) {
        unsigned int pair;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(from[i + 1]), "f"(from[i]));
        rounded[i].bits = (unsigned short)pair;
        rounded[i + 1].bits = (unsigned short)(pair >> 16);
    }
    helve_store<W>(to, rounded);
}

extern "C" __global__ void __launch_bounds__(128)
rope_0(
    const helve_bfloat16* __restrict__ X,
    const float* __restrict__ COS,
    const float* __restrict__ SIN,
    helve_bfloat16* __restrict__ Y,
    long long B,
    long long S) {
    const int tx = threadIdx.x;
    const int s = blockIdx.x / 1 % S;
    const int b = blockIdx.x / 1 / S;
    float x1[16];
    float x2[16];
    float y[16];
    float cos_1[8];
    float sin_1[8];
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
        {
            helve_bfloat16 X_v[8];
            helve_load<16>(X_v, X + (S * b * 4096 + (long long)s * 4096 + r * 2048 + tx / 8 * 128 + tx % 8 * 8));
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                x1[r * 8 + v] = helve_to_float(X_v[v]);
            }
        }
    }
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
        {
            helve_bfloat16 X_v[8];
            helve_load<16>(X_v, X + (S * b * 4096 + (long long)s * 4096 + r * 2048 + tx / 8 * 128 + tx % 8 * 8 + 64));
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                x2[r * 8 + v] = helve_to_float(X_v[v]);
            }
        }
    }
    {
        float COS_v[8];
        helve_load<16>(COS_v, COS + ((long long)s * 64 + tx % 8 * 8));
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
            cos_1[v] = COS_v[v];
        }
    }
    {
        float SIN_v[8];
        helve_load<16>(SIN_v, SIN + ((long long)s * 64 + tx % 8 * 8));
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
            sin_1[v] = SIN_v[v];
        }
    }
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
            y[r * 8 + v] = x1[r * 8 + v] * cos_1[v] - x2[r * 8 + v] * (1.0f * sin_1[v]);
        }
    }
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
        {
            float Y_v[8];
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                Y_v[v] = y[r * 8 + v];
            }
            helve_store_rounded<16>(Y + (S * b * 4096 + (long long)s * 4096 + r * 2048 + tx / 8 * 128 + tx % 8 * 8), Y_v);
        }
    }
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
            y[r * 8 + v] = x2[r * 8 + v] * cos_1[v] + x1[r * 8 + v] * (1.0f * sin_1[v]);
        }
    }
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
        {
            float Y_v[8];
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                Y_v[v] = y[r * 8 + v];
            }
            helve_store_rounded<16>(Y + (S * b * 4096 + (long long)s * 4096 + r * 2048 + tx / 8 * 128 + tx % 8 * 8 + 64), Y_v);
        }
    }
}
