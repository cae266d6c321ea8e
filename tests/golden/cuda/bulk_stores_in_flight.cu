extern "C" __global__ void __launch_bounds__(64)
main_0(const float* __restrict__ A, float* B) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    float* const x = (float*)(helve_shared + 0);
    for (int k = 0; k < 5; ++k) {
        helve_wait_sources<1>();
        helve_fence_async();
        __syncthreads();
        for (int pass = 0; pass < 2; ++pass) {
            if (pass * 64 + tx < 96) {
                x[k % 2 * 96 + pass * 64 + tx] = A[k * 96 - pass * 64 - tx + 95];
            }
        }
        helve_fence_async();
        __syncthreads();
        if (tx == 0) {
            helve_store_bulk(B + k * 96, x + k % 2 * 96, 384);
        }
        helve_commit_stores();
    }
    helve_wait_sources<0>();
}
