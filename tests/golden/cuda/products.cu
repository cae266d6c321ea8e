struct helve_bfloat16 { unsigned short bits; };
__device__ __forceinline__ float helve_to_float(helve_bfloat16 x) {
    return __uint_as_float((unsigned int)x.bits << 16);
}
__device__ __forceinline__ helve_bfloat16 helve_to_bfloat16(float x) {
    helve_bfloat16 r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
    return r;
}
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
// Stores N elements to memory that is aligned to W bytes, W bytes at a time.
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
// Words of 32 bits of elements one after the other.
template <int COUNT, class T>
__device__ __forceinline__ void helve_pack_registers(unsigned int* words, const T* from) {
    union Word { unsigned int whole; T parts[4 / sizeof(T)]; };
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        Word word;
#pragma unroll
        for (int k = 0; k < (int)(4 / sizeof(T)); ++k) word.parts[k] = from[i * (int)(4 / sizeof(T)) + k];
        words[i] = word.whole;
    }
}
// COUNT matrices of 8 x 8 elements of 16 bits to registers, two elements of each a thread: lane l names row l % 8 of
// matrix l / 8.
template <int COUNT, bool TRANSPOSED, class T>
__device__ __forceinline__ void helve_load_matrices(T* to, const T* row) {
    const unsigned int at = (unsigned int)__cvta_generic_to_shared(row);
    unsigned int r[4];
    if constexpr (COUNT == 4 && TRANSPOSED) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
    } else if constexpr (COUNT == 4) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
    } else if constexpr (COUNT == 2 && TRANSPOSED) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                     : "=r"(r[0]), "=r"(r[1]) : "r"(at) : "memory");
    } else if constexpr (COUNT == 2) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                     : "=r"(r[0]), "=r"(r[1]) : "r"(at) : "memory");
    } else if constexpr (TRANSPOSED) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(at) : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(at) : "memory");
    }
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        union { unsigned int whole; T parts[2]; } u;
        u.whole = r[i];
        to[2 * i] = u.parts[0];
        to[2 * i + 1] = u.parts[1];
    }
}
// C (16, 8) += A (16, 16) @ B (16, 8) by a warp: 4 sums of each thread, 4 and 2 words of the factors.
__device__ __forceinline__ void helve_matrix_product(float* c, const helve_bfloat16* a, const helve_bfloat16* b) {
    unsigned int r[6];
    helve_pack_registers<4>(r, a);
    helve_pack_registers<2>(r + 4, b);
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]));
}

extern "C" __global__ void __launch_bounds__(64)
main_0(float* C, const helve_bfloat16* A, const helve_bfloat16* B) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    helve_bfloat16* const a = (helve_bfloat16*)(helve_shared + 0);
    helve_bfloat16* const b = (helve_bfloat16*)(helve_shared + 2048);
    float c[8];
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
        #pragma unroll
        for (int r_1 = 0; r_1 < 2; ++r_1) {
            {
                float C_v[2];
                helve_load<8>(C_v, C + (tx / 32 * 256 + r * 128 + tx / 4 % 8 * 16 + r_1 * 8 + tx % 4 * 2));
                #pragma unroll
                for (int v = 0; v < 2; ++v) {
                    c[r_1 * 4 + r * 2 + v] = C_v[v];
                }
            }
        }
    }
    for (int pass = 0; pass < 2; ++pass) {
        {
            helve_bfloat16 A_v[8];
            helve_load<16>(A_v, A + (pass * 512 + tx / 4 * 32 + tx % 4 * 8));
            helve_bfloat16 a_v[8];
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                a_v[v] = A_v[v];
            }
            helve_store<16>(a + (pass * 512 + tx / 4 * 32 + ((tx % 4) ^ (tx / 8 % 4)) * 8), a_v);
        }
    }
    {
        helve_bfloat16 B_v[8];
        helve_load<16>(B_v, B + (tx / 4 * 32 + tx % 4 * 8));
        helve_bfloat16 b_v[8];
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
            b_v[v] = B_v[v];
        }
        helve_store<16>(b + (tx / 4 * 32 + ((tx % 4) ^ (tx / 8 % 4)) * 8), b_v);
    }
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < 2; ++k) {
        helve_bfloat16 a_part[8];
        helve_bfloat16 b_part[8];
        helve_load_matrices<4, false>(a_part, a + (tx / 32 * 512 + tx % 16 * 32 + ((k * 2 + tx / 16 % 2) ^ (tx / 2 % 4)) * 8));
        helve_load_matrices<4, false>(b_part, b + (tx / 16 % 2 * 256 + tx % 8 * 32 + ((k * 2 + tx / 8 % 2) ^ (tx / 2 % 4)) * 8));
        helve_matrix_product(c, a_part, b_part);
        helve_matrix_product(c + 4, a_part, b_part + 4);
    }
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
        #pragma unroll
        for (int r_1 = 0; r_1 < 2; ++r_1) {
            {
                float C_v[2];
                #pragma unroll
                for (int v = 0; v < 2; ++v) {
                    C_v[v] = c[r_1 * 4 + r * 2 + v] * 2.0f;
                }
                helve_store<8>(C + (tx / 32 * 256 + r * 128 + tx / 4 % 8 * 16 + r_1 * 8 + tx % 4 * 2), C_v);
            }
        }
    }
}
