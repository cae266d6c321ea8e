extern "C" __global__ void __launch_bounds__(512)
rms_norm_0(
    const helve_bfloat16* __restrict__ X,
    const helve_bfloat16* __restrict__ W,
    helve_bfloat16* __restrict__ Y,
    long long M) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    const int b = blockIdx.x;
    helve_bfloat16* const row = (helve_bfloat16*)(helve_shared + 0);
    helve_bfloat16 x[16];
    helve_bfloat16 w[16];
    float square[16];
    float scale[1];
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
            square[r * 8 + v] = 0.0f;
        }
    }
    for (int c = 0; c < 8; ++c) {
        #pragma unroll
        for (int r = 0; r < 2; ++r) {
            {
                helve_bfloat16 X_v[8];
                helve_load<16>(X_v, X + ((long long)b * 65536 + c * 8192 + r * 4096 + tx * 8));
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    x[r * 8 + v] = X_v[v];
                }
            }
        }
        #pragma unroll
        for (int r = 0; r < 2; ++r) {
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                square[r * 8 + v] = square[r * 8 + v] + helve_to_float(x[r * 8 + v]) * helve_to_float(x[r * 8 + v]);
            }
        }
        if (c < 7) {
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                {
                    helve_bfloat16 row_v[8];
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        row_v[v] = x[r * 8 + v];
                    }
                    helve_store<16>(row + (c * 8192 + r * 4096 + tx * 8), row_v);
                }
            }
        }
    }
    float partial[1];
    partial[0] = 0.0f;
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
            partial[0] = partial[0] + square[r * 8 + v];
        }
    }
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
    float* const warps = (float*)(helve_shared + 114688);
    if (tx % 32 == 0) {
        warps[tx / 32] = partial[0];
    }
    partial[0] = 0.0f;
    __syncthreads();
    #pragma unroll
    for (int w_1 = 0; w_1 < 16; ++w_1) {
        partial[0] = partial[0] + warps[w_1];
    }
    scale[0] = partial[0];
    scale[0] = rsqrtf(scale[0] * 1.5258789e-05f + 1e-06f);
    for (int back = 0; back < 8; ++back) {
        const int c = 7 - back;
        if (c < 7) {
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                {
                    helve_bfloat16 row_v[8];
                    helve_load<16>(row_v, row + (c * 8192 + r * 4096 + tx * 8));
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        x[r * 8 + v] = row_v[v];
                    }
                }
            }
        } else {
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                {
                    helve_bfloat16 X_v[8];
                    helve_load<16>(X_v, X + ((long long)b * 65536 + r * 4096 + tx * 8 + 57344));
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        x[r * 8 + v] = X_v[v];
                    }
                }
            }
        }
        #pragma unroll
        for (int r = 0; r < 2; ++r) {
            {
                helve_bfloat16 W_v[8];
                helve_load<16>(W_v, W + (c * 8192 + r * 4096 + tx * 8));
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    w[r * 8 + v] = W_v[v];
                }
            }
        }
        #pragma unroll
        for (int r = 0; r < 2; ++r) {
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                x[r * 8 + v] = helve_to_bfloat16(helve_to_float(x[r * 8 + v]) * scale[0] * helve_to_float(w[r * 8 + v]));
            }
        }
        #pragma unroll
        for (int r = 0; r < 2; ++r) {
            {
                helve_bfloat16 Y_v[8];
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    Y_v[v] = x[r * 8 + v];
                }
                helve_store<16>(Y + ((long long)b * 65536 + c * 8192 + r * 4096 + tx * 8), Y_v);
            }
        }
    }
}
