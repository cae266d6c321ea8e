extern "C" __global__ void __launch_bounds__(128)
softmax_0(const float* __restrict__ X, float* Y, long long M) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    const int b = blockIdx.x;
    float x[32];
    float peak[1];
    float total[1];
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
    float partial[1];
    partial[0] = -helve_infinity();
    #pragma unroll
    for (int r = 0; r < 8; ++r) {
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
            partial[0] = helve_max(partial[0], x[r * 4 + v]);
        }
    }
    float other[1];
    other[0] = helve_shuffle_xor(partial[0], 1);
    partial[0] = helve_max(partial[0], other[0]);
    other[0] = helve_shuffle_xor(partial[0], 2);
    partial[0] = helve_max(partial[0], other[0]);
    other[0] = helve_shuffle_xor(partial[0], 4);
    partial[0] = helve_max(partial[0], other[0]);
    other[0] = helve_shuffle_xor(partial[0], 8);
    partial[0] = helve_max(partial[0], other[0]);
    other[0] = helve_shuffle_xor(partial[0], 16);
    partial[0] = helve_max(partial[0], other[0]);
    float* const warps = (float*)(helve_shared + 0);
    if (tx % 32 == 0) {
        warps[tx / 32] = partial[0];
    }
    partial[0] = -helve_infinity();
    __syncthreads();
    #pragma unroll
    for (int w = 0; w < 4; ++w) {
        partial[0] = helve_max(partial[0], warps[w]);
    }
    peak[0] = partial[0];
    #pragma unroll
    for (int r = 0; r < 8; ++r) {
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
            x[r * 4 + v] = exp2f((x[r * 4 + v] - peak[0]) * 1.442695f);
        }
    }
    float partial_1[1];
    partial_1[0] = 0.0f;
    #pragma unroll
    for (int r = 0; r < 8; ++r) {
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
            partial_1[0] = partial_1[0] + x[r * 4 + v];
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
    for (int w = 0; w < 4; ++w) {
        partial_1[0] = partial_1[0] + warps_1[w];
    }
    total[0] = partial_1[0];
    total[0] = 1.0f / total[0];
    #pragma unroll
    for (int r = 0; r < 8; ++r) {
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
            x[r * 4 + v] = x[r * 4 + v] * total[0];
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
