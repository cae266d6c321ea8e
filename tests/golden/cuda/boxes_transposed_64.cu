extern "C" __global__ void __launch_bounds__(64)
main_0(const helve_float16* __restrict__ A, helve_float16* B, const __grid_constant__ helve_tensor_map A_boxes) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    const int c = blockIdx.x % 3;
    const int b = blockIdx.x / 3;
    unsigned long long* const arrivals = (unsigned long long*)(helve_shared + 0);
    unsigned begun = 0, ended = 0;
    helve_open(arrivals, 16);
    helve_float16* const x = (helve_float16*)(helve_shared + 1024);
    if (tx == 0) {
        helve_load_box(x + 0, A_boxes, {b * 64, c * 64}, 8192, arrivals + begun % 16);
    }
    helve_commit_bulk<16>(arrivals, begun, ended);
    helve_wait_bulk<16>(arrivals, begun, ended, 0);
    __syncthreads();
    for (int pass = 0; pass < 32; ++pass) {
        if (b * 32 + tx % 32 < 35 && c * 64 + pass * 2 + tx / 32 < 136) {
            {
                helve_float16 B_v[2];
                #pragma unroll
                for (int v = 0; v < 2; ++v) {
                    B_v[v] = x[(tx % 32 * 128 + v * 64 + pass * 2 + tx / 32) ^ ((tx % 32 * 128 + v * 64 + pass * 2 + tx / 32) / 64 % 8 * 8)];
                }
                helve_store<4>(B + (c * 4480 + pass * 140 + tx / 32 * 70 + b * 64 + tx % 32 * 2), B_v);
            }
        }
    }
}
