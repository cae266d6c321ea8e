extern "C" __global__ void __launch_bounds__(256)
transpose_0(const helve_bfloat16* __restrict__ X, helve_bfloat16* Y, long long M, long long N) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    const int c = blockIdx.x % ((N + 63) / 64);
    const int r = blockIdx.x / ((N + 63) / 64);
    helve_bfloat16* const x = (helve_bfloat16*)(helve_shared + 0);
    for (int pass = 0; pass < 2; ++pass) {
        if ((long long)r * 64 + pass * 32 + tx / 8 < M && (long long)c * 64 + tx % 8 * 8 < N) {
            {
                helve_bfloat16 X_v[8];
                helve_load<16>(X_v, X + (N * r * 64 + N * pass * 32 + N * (tx / 8) + (long long)c * 64 + tx % 8 * 8));
                helve_bfloat16 x_v[8];
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    x_v[v] = X_v[v];
                }
                helve_store<16>(x + (pass * 2048 + tx / 8 * 64 + ((tx % 8) ^ (pass * 4 + tx / 64)) * 8), x_v);
            }
        } else {
            {
                float x_v[8];
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    x_v[v] = 0.0f;
                }
                helve_store_rounded<16>(x + (pass * 2048 + tx / 8 * 64 + ((tx % 8) ^ (pass * 4 + tx / 64)) * 8), x_v);
            }
        }
    }
    __syncthreads();
    for (int pass = 0; pass < 2; ++pass) {
        if ((long long)c * 64 + pass * 32 + tx / 8 < N && (long long)r * 64 + tx % 8 * 8 < M) {
            {
                helve_bfloat16 Y_v[8];
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    Y_v[v] = x[tx % 8 * 512 + v * 64 + ((pass * 4 + tx / 64) ^ (tx % 8)) * 8 + tx / 8 % 8];
                }
                helve_store<16>(Y + (M * c * 64 + M * pass * 32 + M * (tx / 8) + (long long)r * 64 + tx % 8 * 8), Y_v);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(256)
transpose_1(const helve_bfloat16* __restrict__ X, helve_bfloat16* Y, long long M, long long N) {
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
            Y[((long long)c * 64 + pass * 4 + tx / 64) * M + ((long long)r * 64 + tx % 64)] = x[tx % 64 * 64 + ((pass * 2 + tx / 128) ^ (tx % 32)) * 2 + tx / 64 % 2];
        }
    }
}
