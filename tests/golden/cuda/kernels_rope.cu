extern "C" __global__ void __launch_bounds__(128)
rope_0(
    const helve_bfloat16* __restrict__ X,
    const float* __restrict__ COS,
    const float* __restrict__ SIN,
    helve_bfloat16* Y,
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
