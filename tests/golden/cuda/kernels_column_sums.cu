extern "C" __global__ void __launch_bounds__(256)
column_sums_0(const helve_bfloat16* __restrict__ X, float* part, long long M) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    const int c = blockIdx.x % 16;
    const int p = blockIdx.x / 16;
    float x[32];
    float total[32];
    float s[8];
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
            total[r * 8 + v] = 0.0f;
        }
    }
    for (long long step = 0; step < (M + 767) / 768; ++step) {
        const long long first = step * 768 + p * 32;
        #pragma unroll
        for (int r = 0; r < 4; ++r) {
            if (r * 8 + first + tx / 32 < M) {
                {
                    helve_bfloat16 X_v[8];
                    helve_load<16>(X_v, X + (r * 32768 + first * 4096 + tx / 32 * 4096 + c * 256 + tx % 32 * 8));
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        x[r * 8 + v] = helve_to_float(X_v[v]);
                    }
                }
            } else {
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    x[r * 8 + v] = 0.0f;
                }
            }
        }
        #pragma unroll
        for (int r = 0; r < 4; ++r) {
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                total[r * 8 + v] = total[r * 8 + v] + x[r * 8 + v];
            }
        }
    }
    float partial[8];
    #pragma unroll
    for (int v = 0; v < 8; ++v) {
        partial[v] = 0.0f;
    }
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
            partial[v] = partial[v] + total[r * 8 + v];
        }
    }
    float* const warps = (float*)(helve_shared + 0);
    #pragma unroll
    for (int v = 0; v < 8; ++v) {
        warps[(tx * 8 + v) ^ ((tx * 8 + v) / 32 % 8)] = partial[v];
    }
    #pragma unroll
    for (int v = 0; v < 8; ++v) {
        partial[v] = 0.0f;
    }
    __syncthreads();
    #pragma unroll
    for (int v = 0; v < 8; ++v) {
        #pragma unroll
        for (int w = 0; w < 8; ++w) {
            partial[v] = partial[v] + warps[(w * 256 + tx % 32 * 8 + v) ^ ((w * 256 + tx % 32 * 8 + v) / 32 % 8)];
        }
    }
    #pragma unroll
    for (int v = 0; v < 8; ++v) {
        s[v] = partial[v];
    }
    if (tx / 32 == 0) {
        {
            float part_v[8];
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                part_v[v] = s[v];
            }
            helve_store<16>(part + (p * 4096 + c * 256 + tx % 32 * 8), part_v);
        }
    }
}

extern "C" __global__ void __launch_bounds__(512)
column_sums_1(const float* __restrict__ part, float* S) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    const int c = blockIdx.x;
    float x[8];
    float total[8];
    float s[4];
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
            total[r * 4 + v] = 0.0f;
        }
    }
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
        if (r * 128 + tx / 4 < 24) {
            {
                float part_v[4];
                helve_load<16>(part_v, part + (tx / 4 * 4096 + c * 16 + tx % 4 * 4));
                #pragma unroll
                for (int v = 0; v < 4; ++v) {
                    x[v] = part_v[v];
                }
            }
        } else {
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                x[r * 4 + v] = 0.0f;
            }
        }
    }
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
            total[r * 4 + v] = total[r * 4 + v] + x[r * 4 + v];
        }
    }
    float partial[4];
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        partial[v] = 0.0f;
    }
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
            partial[v] = partial[v] + total[r * 4 + v];
        }
    }
    float other[4];
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        other[v] = helve_shuffle_xor(partial[v], 4);
    }
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        partial[v] = partial[v] + other[v];
    }
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        other[v] = helve_shuffle_xor(partial[v], 8);
    }
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        partial[v] = partial[v] + other[v];
    }
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        other[v] = helve_shuffle_xor(partial[v], 16);
    }
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        partial[v] = partial[v] + other[v];
    }
    float* const warps = (float*)(helve_shared + 0);
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        if (tx / 4 % 8 == 0) {
            warps[tx / 32 * 16 + tx % 4 * 4 + v] = partial[v];
        }
    }
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        partial[v] = 0.0f;
    }
    __syncthreads();
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        #pragma unroll
        for (int w = 0; w < 16; ++w) {
            partial[v] = partial[v] + warps[w * 16 + tx % 4 * 4 + v];
        }
    }
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        s[v] = partial[v];
    }
    if (tx / 4 == 0) {
        {
            float S_v[4];
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                S_v[v] = s[v];
            }
            helve_store<16>(S + (c * 16 + tx % 4 * 4), S_v);
        }
    }
}
