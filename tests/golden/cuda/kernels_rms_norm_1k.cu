extern "C" __global__ void __launch_bounds__(32)
rms_norm_0(const helve_bfloat16* __restrict__ X, const helve_bfloat16* __restrict__ W, helve_bfloat16* Y, long long M) {
    const int tx = threadIdx.x;
    const int b = blockIdx.x;
    float x[32];
    float square[32];
    float scale[1];
    __align__(16) helve_bfloat16 w[32];
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        {
            helve_bfloat16 X_v[8];
            helve_load<16>(X_v, X + ((long long)b * 1024 + r * 256 + tx * 8));
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                x[r * 8 + v] = helve_to_float(X_v[v]);
            }
        }
    }
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        helve_move<16, 8>(w + r * 8, W + (r * 256 + tx * 8));
    }
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
            square[r * 8 + v] = x[r * 8 + v] * x[r * 8 + v];
        }
    }
    float partial[1];
    partial[0] = 0.0f;
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
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
    scale[0] = partial[0];
    scale[0] = rsqrtf(scale[0] * 0.0009765625f + 1e-06f);
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
            x[r * 8 + v] = x[r * 8 + v] * scale[0] * helve_to_float(w[r * 8 + v]);
        }
    }
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        {
            float Y_v[8];
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                Y_v[v] = x[r * 8 + v];
            }
            helve_store_rounded<16>(Y + ((long long)b * 1024 + r * 256 + tx * 8), Y_v);
        }
    }
}
