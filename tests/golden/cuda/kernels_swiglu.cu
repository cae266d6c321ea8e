extern "C" __global__ void __launch_bounds__(256)
swiglu_0(const helve_bfloat16* __restrict__ A, const helve_bfloat16* __restrict__ B, helve_bfloat16* Y, long long M) {
    const int tx = threadIdx.x;
    const int c = blockIdx.x % 3;
    const int r = blockIdx.x / 3;
    float a[16];
    float b[16];
    #pragma unroll
    for (int r_1 = 0; r_1 < 2; ++r_1) {
        if (c * 512 + r_1 * 256 + tx < 1376) {
            {
                helve_bfloat16 A_v[8];
                helve_load<16>(A_v, A + ((long long)r * 11008 + c * 4096 + r_1 * 2048 + tx * 8));
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    a[r_1 * 8 + v] = helve_to_float(A_v[v]);
                }
            }
        } else {
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                a[v + 8] = 0.0f;
            }
        }
    }
    #pragma unroll
    for (int r_1 = 0; r_1 < 2; ++r_1) {
        if (c * 512 + r_1 * 256 + tx < 1376) {
            {
                helve_bfloat16 B_v[8];
                helve_load<16>(B_v, B + ((long long)r * 11008 + c * 4096 + r_1 * 2048 + tx * 8));
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    b[r_1 * 8 + v] = helve_to_float(B_v[v]);
                }
            }
        } else {
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                b[v + 8] = 0.0f;
            }
        }
    }
    #pragma unroll
    for (int r_1 = 0; r_1 < 2; ++r_1) {
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
            a[r_1 * 8 + v] = a[r_1 * 8 + v] * helve_sigmoid(a[r_1 * 8 + v]) * b[r_1 * 8 + v];
        }
    }
    #pragma unroll
    for (int r_1 = 0; r_1 < 2; ++r_1) {
        if (c * 512 + r_1 * 256 + tx < 1376) {
            {
                float Y_v[8];
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    Y_v[v] = a[r_1 * 8 + v];
                }
                helve_store_rounded<16>(Y + ((long long)r * 11008 + c * 4096 + r_1 * 2048 + tx * 8), Y_v);
            }
        }
    }
}
