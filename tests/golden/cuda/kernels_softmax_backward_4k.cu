extern "C" __global__ void __launch_bounds__(128)
softmax_backward_0(
    const helve_bfloat16* __restrict__ Y,
    const helve_bfloat16* __restrict__ DY,
    helve_bfloat16* DX,
    long long M) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    const int b = blockIdx.x;
    float y[32];
    float dy[32];
    float product[32];
    float dot[1];
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        {
            helve_bfloat16 Y_v[8];
            helve_load<16>(Y_v, Y + ((long long)b * 4096 + r * 1024 + tx * 8));
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                y[r * 8 + v] = helve_to_float(Y_v[v]);
            }
        }
    }
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        {
            helve_bfloat16 DY_v[8];
            helve_load<16>(DY_v, DY + ((long long)b * 4096 + r * 1024 + tx * 8));
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                dy[r * 8 + v] = helve_to_float(DY_v[v]);
            }
        }
    }
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
            product[r * 8 + v] = dy[r * 8 + v] * y[r * 8 + v];
        }
    }
    float partial[1];
    partial[0] = 0.0f;
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
            partial[0] = partial[0] + product[r * 8 + v];
        }
    }
    float other[1];
    other[0] = helve_shuffle_xor(partial[0], 1);
    partial[0] = partial[0] + other[0];
    other[0] = helve_shuffle_xor(partial[0], 2);
    partial[0] = partial[0] + other[0];
    other[0] = helve_shuffle_xor(partial[0], 4);
    partial[0] = partial[0] + other[0];
    other[0] = helve_shuffle_xor(partial[0], 8);
    partial[0] = partial[0] + other[0];
    other[0] = helve_shuffle_xor(partial[0], 16);
    partial[0] = partial[0] + other[0];
    float* const warps = (float*)(helve_shared + 0);
    if (tx % 32 == 0) {
        warps[tx / 32] = partial[0];
    }
    partial[0] = 0.0f;
    __syncthreads();
    #pragma unroll
    for (int w = 0; w < 4; ++w) {
        partial[0] = partial[0] + warps[w];
    }
    dot[0] = partial[0];
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
            y[r * 8 + v] = y[r * 8 + v] * (dy[r * 8 + v] - dot[0]);
        }
    }
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        {
            float DX_v[8];
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                DX_v[v] = y[r * 8 + v];
            }
            helve_store_rounded<16>(DX + ((long long)b * 4096 + r * 1024 + tx * 8), DX_v);
        }
    }
}
