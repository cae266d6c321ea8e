extern "C" __global__ void __launch_bounds__(128)
guarded_rows_0(
    helve_bfloat16* C,
    const helve_bfloat16* __restrict__ A,
    const helve_bfloat16* __restrict__ B,
    long long M) {
    const int tx = threadIdx.x;
    const int b = blockIdx.x;
    if ((long long)b * 4 + tx / 32 < M) {
        {
            helve_bfloat16 A_v[8];
            helve_load<16>(A_v, A + ((long long)b * 1024 + tx / 32 * 256 + tx % 32 * 8));
            helve_bfloat16 B_v[8];
            helve_load<16>(B_v, B + ((long long)b * 2048 + tx / 32 * 512 + tx % 32 * 8));
            float C_v[8];
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                C_v[v] = helve_to_float(A_v[v]) + helve_to_float(B_v[v]);
            }
            helve_store_rounded<16>(C + ((long long)b * 1024 + tx / 32 * 256 + tx % 32 * 8), C_v);
        }
    }
}
