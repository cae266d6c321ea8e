extern "C" __global__ void __launch_bounds__(256)
transpose_0(const helve_bfloat16* __restrict__ X, helve_bfloat16* Y, long long M, long long N) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    const int c = blockIdx.x % ((N + 63) / 64);
    const int r = blockIdx.x / ((N + 63) / 64);
    helve_bfloat16* const x = (helve_bfloat16*)(helve_shared + 0);
    for (int pass = 0; pass < 16; ++pass) {
        if ((long long)r * 64 + pass * 4 + tx / 64 < M && (long long)c * 64 + tx % 64 < N) {
            x[(pass * 256 + tx) ^ ((pass * 256 + tx) / 64 % 32 * 2)] = X[((long long)r * 64 + pass * 4 + tx / 64) * N + ((long long)c * 64 + tx % 64)];
        } else {
            x[(pass * 256 + tx) ^ ((pass * 256 + tx) / 64 % 32 * 2)] = helve_to_bfloat16(0.0f);
        }
    }
    __syncthreads();
    for (int pass = 0; pass < 16; ++pass) {
        if ((long long)c * 64 + pass * 4 + tx / 64 < N && (long long)r * 64 + tx % 64 < M) {
            Y[((long long)c * 64 + pass * 4 + tx / 64) * M + ((long long)r * 64 + tx % 64)] = x[(tx % 64 * 64 + pass * 4 + tx / 64) ^ ((tx % 64 * 64 + pass * 4 + tx / 64) / 64 % 32 * 2)];
        }
    }
}
