struct helve_bfloat16 { unsigned short bits; };
__device__ __forceinline__ float helve_to_float(helve_bfloat16 x) {
    return __uint_as_float((unsigned int)x.bits << 16);
}
__device__ __forceinline__ helve_bfloat16 helve_to_bfloat16(float x) {
    helve_bfloat16 r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
    return r;
}
// The value of the lane whose number differs in the bits of c.
template <class T>
__device__ __forceinline__ T helve_shuffle_xor(T x, int c) { return (T)__shfl_xor_sync(0xffffffffu, x, c); }
// N bytes that are moved at once.
template <int N> struct helve_word;
template <> struct helve_word<2> { typedef unsigned short type; };
template <> struct helve_word<4> { typedef unsigned int type; };
template <> struct helve_word<8> { typedef uint2 type; };
template <> struct helve_word<16> { typedef uint4 type; };
// Loads N elements from memory that is aligned to W bytes, W bytes at a time.
template <int W, int N, class T>
__device__ __forceinline__ void helve_load(T (&to)[N], const T* from) {
    typedef typename helve_word<W>::type word;
    constexpr int count = W / sizeof(T);
#pragma unroll
    for (int i = 0; i < N; i += count) {
        if constexpr (sizeof(T) < 4 && W >= 4) {
            // Shifts of words are folded into a conversion to float, which then takes one instruction per element.
            union { word whole; unsigned int words[W / 4]; } u;
            u.whole = *(const word*)(from + i);
#pragma unroll
            for (int j = 0; j < count; ++j) {
                union { unsigned int word; T part; } low;
                low.word = u.words[j * sizeof(T) / 4] >> (j * sizeof(T) % 4 * 8);
                to[i + j] = low.part;
            }
        } else {
            union { word whole; T parts[count]; } u;
            u.whole = *(const word*)(from + i);
#pragma unroll
            for (int j = 0; j < count; ++j) to[i + j] = u.parts[j];
        }
    }
}

extern "C" __global__ void __launch_bounds__(64)
row_sums_0(const helve_bfloat16* __restrict__ A, float* B) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    const int b = blockIdx.x;
    float x[8];
    float s[1];
    float t[1];
    float* const w = (float*)(helve_shared + 0);
    {
        {
            helve_bfloat16 A_v[8];
            helve_load<16>(A_v, A + (b * 512 + tx * 8));
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                x[v] = helve_to_float(A_v[v]);
            }
        }
        s[0] = 0.0f;
        #pragma unroll
        for (int r = 0; r < 8; ++r) {
            s[0] = s[0] + x[r];
        }
    }
    #pragma unroll
    for (int k = 0; k < 5; ++k) {
        t[0] = helve_shuffle_xor(s[0], 1 << k);
        s[0] = s[0] + t[0];
    }
    if (tx % 32 == 0) {
        w[tx / 32] = s[0];
    }
    __syncthreads();
    if (tx == 0) {
        B[b] = w[0] + w[1];
    }
}
