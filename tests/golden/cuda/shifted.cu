extern "C" __global__ void __launch_bounds__(128)
shifted_0(float* B, const float* __restrict__ A, float* C) {
    const int tx = threadIdx.x;
    {
        {
            float A_v[8];
            helve_load<8>(A_v, A + (tx * 8 + 2));
            float B_v[8];
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                B_v[v] = A_v[v];
            }
            helve_store<16>(B + tx * 8, B_v);
        }
        {
            float C_v[8];
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                C_v[v] = A[tx * 8 + v + 1];
            }
            helve_store<16>(C + tx * 8, C_v);
        }
    }
}
