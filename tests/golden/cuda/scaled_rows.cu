extern "C" __global__ void __launch_bounds__(96)
scaled_rows_0(helve_float16* B, const float* __restrict__ A, long long s_slot) {
    const int tx = threadIdx.x;
    const float s = __int_as_float((int)s_slot);
    const int bx = blockIdx.x % 3;
    const int by = blockIdx.x / 3;
    for (int r = 0; r < 4; ++r) {
        {
            float A_v[8];
            helve_load<16>(A_v, A + (by * 1248 + r * 312 + tx / 32 * 104 + bx * 32 + tx % 4 * 8));
            float B_v[8];
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                B_v[v] = A_v[v] * s;
            }
            helve_store_rounded<16>(B + (by * 1152 + r * 288 + tx / 32 * 96 + bx * 32 + tx % 4 * 8), B_v);
        }
    }
}
