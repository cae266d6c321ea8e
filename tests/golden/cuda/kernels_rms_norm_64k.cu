extern "C" __global__ void __launch_bounds__(512)
rms_norm_0(const helve_bfloat16* __restrict__ X, helve_bfloat16* Y, const helve_bfloat16* __restrict__ W, long long M) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    const int b = blockIdx.x;
    helve_bfloat16* const row = (helve_bfloat16*)(helve_shared + 0);
    helve_bfloat16 x[32];
    float square[32];
    float some[4];
    float total[1];
    float scale[1];
    total[0] = 0.0f;
    for (int c = 0; c < 4; ++c) {
        #pragma unroll
        for (int r = 0; r < 4; ++r) {
            {
                helve_bfloat16 X_v[8];
                helve_load<16>(X_v, X + ((long long)b * 65536 + c * 16384 + r * 4096 + tx * 8));
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    x[r * 8 + v] = X_v[v];
                }
            }
        }
        if (c < 3) {
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                {
                    helve_bfloat16 row_v[8];
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        row_v[v] = x[r * 8 + v];
                    }
                    helve_store<16>(row + (c * 16384 + r * 4096 + tx * 8), row_v);
                }
            }
        }
        #pragma unroll
        for (int r = 0; r < 4; ++r) {
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                square[r * 8 + v] = helve_to_float(x[r * 8 + v]) * helve_to_float(x[r * 8 + v]);
            }
        }
        float partial[4];
        #pragma unroll
        for (int r = 0; r < 4; ++r) {
            partial[r] = 0.0f;
        }
        #pragma unroll
        for (int r = 0; r < 4; ++r) {
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                partial[r] = partial[r] + square[r * 8 + v];
            }
        }
        #pragma unroll
        for (int r = 0; r < 4; ++r) {
            some[r] = partial[r];
        }
        float partial_1[1];
        partial_1[0] = 0.0f;
        #pragma unroll
        for (int r = 0; r < 4; ++r) {
            partial_1[0] = partial_1[0] + some[r];
        }
        total[0] = total[0] + partial_1[0];
    }
    float partial[1];
    partial[0] = 0.0f;
    partial[0] = partial[0] + total[0];
    float other[1];
    other[0] = helve_shuffle_xor(partial[0], 1);
    partial[0] = partial[0] + other[0];
    other[0] = helve_shuffle_xor(partial[0], 2);
    partial[0] = partial[0] + other[0];
    other[0] = helve_shuffle_xor(partial[0], 4);
    partial[0] = partial[0] + other[0];
    other[0] = helve_shuffle_xor(partial[0], 8);
    partial[0] = partial[0] + other[0];
    other[0] = helve_shuffle_xor(partial[0], 16);
    partial[0] = partial[0] + other[0];
    float* const warps = (float*)(helve_shared + 98304);
    if (tx % 32 == 0) {
        warps[tx / 32] = partial[0];
    }
    partial[0] = 0.0f;
    __syncthreads();
    #pragma unroll
    for (int w = 0; w < 16; ++w) {
        partial[0] = partial[0] + warps[w];
    }
    scale[0] = partial[0];
    scale[0] = rsqrtf(scale[0] * 1.5258789e-05f + 1e-06f);
    for (int back = 0; back < 4; ++back) {
        const int c = 3 - back;
        if (c < 3) {
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                {
                    helve_bfloat16 row_v[8];
                    helve_load<16>(row_v, row + (c * 16384 + r * 4096 + tx * 8));
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        x[r * 8 + v] = row_v[v];
                    }
                }
            }
        } else {
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                {
                    helve_bfloat16 X_v[8];
                    helve_load<16>(X_v, X + ((long long)b * 65536 + r * 4096 + tx * 8 + 49152));
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        x[r * 8 + v] = X_v[v];
                    }
                }
            }
        }
        #pragma unroll
        for (int r = 0; r < 4; ++r) {
            {
                helve_bfloat16 W_v[8];
                helve_load<16>(W_v, W + (c * 16384 + r * 4096 + tx * 8));
                float Y_v[8];
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    Y_v[v] = helve_to_float(x[r * 8 + v]) * scale[0] * helve_to_float(W_v[v]);
                }
                helve_store_rounded<16>(Y + ((long long)b * 65536 + c * 16384 + r * 4096 + tx * 8), Y_v);
            }
        }
    }
}
