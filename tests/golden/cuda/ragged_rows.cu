extern "C" __global__ void __launch_bounds__(128)
ragged_rows_0(float* C, const float* __restrict__ A, long long M, long long N, long long s_slot, long long n_slot) {
    const int tx = threadIdx.x;
    const float s = helve_to_float(helve_bfloat16{(unsigned short)s_slot});
    const int n = (int)n_slot;
    const int c = blockIdx.x % ((N + 512 - 1) / 512);
    const int b = blockIdx.x / ((N + 512 - 1) / 512);
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        if ((long long)c * 512 + tx * 4 + v < N) {
            C[b * N + ((long long)c * 512 + tx * 4 + v)] = A[b * N + ((long long)c * 512 + tx * 4 + v)] * s + (float)n;
        }
    }
}
