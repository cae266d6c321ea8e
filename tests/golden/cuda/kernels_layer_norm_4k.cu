extern "C" __global__ void __launch_bounds__(128)
layer_norm_0(
    const float* __restrict__ X,
    const float* __restrict__ W,
    const float* __restrict__ B,
    float* Y,
    long long M) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    const int b = blockIdx.x;
    float x[32];
    float square[32];
    float mean[1];
    float scale[1];
    float w[32];
    float bias[32];
    #pragma unroll
    for (int r = 0; r < 8; ++r) {
        {
            float X_v[4];
            helve_load<16>(X_v, X + ((long long)b * 4096 + r * 512 + tx * 4));
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                x[r * 4 + v] = X_v[v];
            }
        }
    }
    #pragma unroll
    for (int r = 0; r < 8; ++r) {
        {
            float W_v[4];
            helve_load<16>(W_v, W + (r * 512 + tx * 4));
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                w[r * 4 + v] = W_v[v];
            }
        }
    }
    #pragma unroll
    for (int r = 0; r < 8; ++r) {
        {
            float B_v[4];
            helve_load<16>(B_v, B + (r * 512 + tx * 4));
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                bias[r * 4 + v] = B_v[v];
            }
        }
    }
    float partial[1];
    partial[0] = 0.0f;
    #pragma unroll
    for (int r = 0; r < 8; ++r) {
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
            partial[0] = partial[0] + x[r * 4 + v];
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
    float* const warps = (float*)(helve_shared + 0);
    if (tx % 32 == 0) {
        warps[tx / 32] = partial[0];
    }
    partial[0] = 0.0f;
    __syncthreads();
    #pragma unroll
    for (int w_1 = 0; w_1 < 4; ++w_1) {
        partial[0] = partial[0] + warps[w_1];
    }
    mean[0] = partial[0];
    mean[0] = mean[0] * 0.00024414062f;
    #pragma unroll
    for (int r = 0; r < 8; ++r) {
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
            x[r * 4 + v] = x[r * 4 + v] - mean[0];
        }
    }
    #pragma unroll
    for (int r = 0; r < 8; ++r) {
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
            square[r * 4 + v] = x[r * 4 + v] * x[r * 4 + v];
        }
    }
    float partial_1[1];
    partial_1[0] = 0.0f;
    #pragma unroll
    for (int r = 0; r < 8; ++r) {
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
            partial_1[0] = partial_1[0] + square[r * 4 + v];
        }
    }
    float other_1[1];
    other_1[0] = helve_shuffle_xor(partial_1[0], 1);
    partial_1[0] = partial_1[0] + other_1[0];
    other_1[0] = helve_shuffle_xor(partial_1[0], 2);
    partial_1[0] = partial_1[0] + other_1[0];
    other_1[0] = helve_shuffle_xor(partial_1[0], 4);
    partial_1[0] = partial_1[0] + other_1[0];
    other_1[0] = helve_shuffle_xor(partial_1[0], 8);
    partial_1[0] = partial_1[0] + other_1[0];
    other_1[0] = helve_shuffle_xor(partial_1[0], 16);
    partial_1[0] = partial_1[0] + other_1[0];
    float* const warps_1 = (float*)(helve_shared + 128);
    if (tx % 32 == 0) {
        warps_1[tx / 32] = partial_1[0];
    }
    partial_1[0] = 0.0f;
    __syncthreads();
    #pragma unroll
    for (int w_1 = 0; w_1 < 4; ++w_1) {
        partial_1[0] = partial_1[0] + warps_1[w_1];
    }
    scale[0] = partial_1[0];
    scale[0] = rsqrtf(scale[0] * 0.00024414062f + 1e-05f);
    #pragma unroll
    for (int r = 0; r < 8; ++r) {
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
            x[r * 4 + v] = x[r * 4 + v] * scale[0] * w[r * 4 + v] + bias[r * 4 + v];
        }
    }
    #pragma unroll
    for (int r = 0; r < 8; ++r) {
        {
            float Y_v[4];
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                Y_v[v] = x[r * 4 + v];
            }
            helve_store<16>(Y + ((long long)b * 4096 + r * 512 + tx * 4), Y_v);
        }
    }
}
