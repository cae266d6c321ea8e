__device__ __forceinline__ float helve_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
__device__ __forceinline__ double helve_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
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

extern "C" __global__ void __launch_bounds__(256)
swiglu_0(
    const helve_bfloat16* __restrict__ A,
    const helve_bfloat16* __restrict__ B,
    helve_bfloat16* __restrict__ Y,
    long long M) {
    const int tx = threadIdx.x;
    const int c = blockIdx.x % 3;
    const int r = blockIdx.x / 3;
    float a[16];
    float b[16];
    #pragma unroll
    for (int r_1 = 0; r_1 < 2; ++r_1) {
        if (c * 512 + r_1 * 256 + tx < 1376) {
            {
                helve_bfloat16 A_v[8];
                helve_load<16>(A_v, A + ((long long)r * 11008 + c * 4096 + r_1 * 2048 + tx * 8));
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    a[r_1 * 8 + v] = helve_to_float(A_v[v]);
                }
            }
        } else {
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                a[v + 8] = 0.0f;
            }
        }
    }
    #pragma unroll
    for (int r_1 = 0; r_1 < 2; ++r_1) {
        if (c * 512 + r_1 * 256 + tx < 1376) {
            {
                helve_bfloat16 B_v[8];
                helve_load<16>(B_v, B + ((long long)r * 11008 + c * 4096 + r_1 * 2048 + tx * 8));
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    b[r_1 * 8 + v] = helve_to_float(B_v[v]);
                }
            }
        } else {
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                b[v + 8] = 0.0f;
            }
        }
    }
    #pragma unroll
    for (int r_1 = 0; r_1 < 2; ++r_1) {
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
            a[r_1 * 8 + v] = a[r_1 * 8 + v] * helve_sigmoid(a[r_1 * 8 + v]) * b[r_1 * 8 + v];
        }
    }
    #pragma unroll
    for (int r_1 = 0; r_1 < 2; ++r_1) {
        if (c * 512 + r_1 * 256 + tx < 1376) {
            {
                float Y_v[8];
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    Y_v[v] = a[r_1 * 8 + v];
                }
                helve_store_rounded<16>(Y + ((long long)r * 11008 + c * 4096 + r_1 * 2048 + tx * 8), Y_v);
            }
        }
    }
}
