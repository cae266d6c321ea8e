extern "C" __global__ void __launch_bounds__(128)
transpose_0(const unsigned short* __restrict__ A, unsigned short* B) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    const int bx = blockIdx.x % 3;
    const int by = blockIdx.x / 3;
    unsigned short* const S = (unsigned short*)(helve_shared + 0);
    {
        unsigned short A_v[8];
        helve_load<16>(A_v, A + (by * 3072 + tx / 4 * 96 + bx * 32 + tx % 4 * 8));
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
            S[tx / 4 * 33 + tx % 4 * 8 + v] = A_v[v];
        }
    }
    __syncthreads();
    {
        unsigned short B_v[8];
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
            B_v[v] = S[tx % 4 * 264 + v * 33 + tx / 4];
        }
        helve_store<16>(B + (bx * 2048 + tx / 4 * 64 + by * 32 + tx % 4 * 8), B_v);
    }
}
