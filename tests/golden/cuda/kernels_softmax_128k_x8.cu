extern "C" __global__ void __launch_bounds__(256)
softmax_0(const helve_bfloat16* __restrict__ X, helve_bfloat16* Y, long long M, long long first_core) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    const unsigned core = (unsigned)first_core + blockIdx.x;
    const int s = core % 8;
    const int b = core / 8;
    unsigned long long* const arrivals_y = (unsigned long long*)(helve_shared + 33280);
    float* const slots_y = (float*)(helve_shared + 33408);
    int half_y[1];
    unsigned phase = 0;
    helve_open(arrivals_y, 2);
    half_y[0] = 0;
    helve_cluster_sync();
    helve_bfloat16* const row = (helve_bfloat16*)(helve_shared + 0);
    float x[32];
    float some[4];
    float peak[1];
    float before[1];
    float total[1];
    float top[1];
    float scale[1];
    float* const mine = (float*)(helve_shared + 32768);
    float* const ours = (float*)(helve_shared + 32896);
    float each[8];
    if (tx / 2 == 0) {
        mine[tx % 2] = 0.0f;
    }
    for (long long step = 0; step < (M + 511) / 512; ++step) {
        const long long i = step * 512 + b;
        if (i < M) {
            peak[0] = -3e+38f;
            total[0] = 0.0f;
            for (int c = 0; c < 2; ++c) {
                #pragma unroll
                for (int r = 0; r < 4; ++r) {
                    {
                        helve_bfloat16 X_v[8];
                        helve_load<16>(X_v, X + (i * 131072 + s * 16384 + c * 8192 + r * 2048 + tx * 8));
                        #pragma unroll
                        for (int v = 0; v < 8; ++v) {
                            x[r * 8 + v] = helve_to_float(X_v[v]);
                        }
                    }
                }
                #pragma unroll
                for (int r = 0; r < 4; ++r) {
                    {
                        float row_v[8];
                        #pragma unroll
                        for (int v = 0; v < 8; ++v) {
                            row_v[v] = x[r * 8 + v];
                        }
                        helve_store_rounded<16>(row + (c * 8192 + r * 2048 + tx * 8), row_v);
                    }
                }
                before[0] = peak[0];
                float partial[4];
                #pragma unroll
                for (int r = 0; r < 4; ++r) {
                    partial[r] = -helve_infinity();
                }
                #pragma unroll
                for (int r = 0; r < 4; ++r) {
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        partial[r] = helve_max(partial[r], x[r * 8 + v]);
                    }
                }
                #pragma unroll
                for (int r = 0; r < 4; ++r) {
                    some[r] = partial[r];
                }
                float partial_1[1];
                partial_1[0] = -helve_infinity();
                #pragma unroll
                for (int r = 0; r < 4; ++r) {
                    partial_1[0] = helve_max(partial_1[0], some[r]);
                }
                peak[0] = helve_max(peak[0], partial_1[0]);
                #pragma unroll
                for (int r = 0; r < 4; ++r) {
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        x[r * 8 + v] = exp2f((x[r * 8 + v] - peak[0]) * 1.442695f);
                    }
                }
                float partial_2[4];
                #pragma unroll
                for (int r = 0; r < 4; ++r) {
                    partial_2[r] = 0.0f;
                }
                #pragma unroll
                for (int r = 0; r < 4; ++r) {
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        partial_2[r] = partial_2[r] + x[r * 8 + v];
                    }
                }
                #pragma unroll
                for (int r = 0; r < 4; ++r) {
                    some[r] = partial_2[r];
                }
                total[0] = total[0] * exp2f((before[0] - peak[0]) * 1.442695f);
                float partial_3[1];
                partial_3[0] = 0.0f;
                #pragma unroll
                for (int r = 0; r < 4; ++r) {
                    partial_3[0] = partial_3[0] + some[r];
                }
                total[0] = total[0] + partial_3[0];
            }
            float partial[1];
            partial[0] = -helve_infinity();
            partial[0] = helve_max(partial[0], peak[0]);
            float other[1];
            other[0] = helve_shuffle_xor(partial[0], 1);
            partial[0] = helve_max(partial[0], other[0]);
            other[0] = helve_shuffle_xor(partial[0], 2);
            partial[0] = helve_max(partial[0], other[0]);
            other[0] = helve_shuffle_xor(partial[0], 4);
            partial[0] = helve_max(partial[0], other[0]);
            other[0] = helve_shuffle_xor(partial[0], 8);
            partial[0] = helve_max(partial[0], other[0]);
            other[0] = helve_shuffle_xor(partial[0], 16);
            partial[0] = helve_max(partial[0], other[0]);
            float* const warps = (float*)(helve_shared + 33024);
            if (tx % 32 == 0) {
                warps[tx / 32] = partial[0];
            }
            partial[0] = -helve_infinity();
            __syncthreads();
            #pragma unroll
            for (int w = 0; w < 8; ++w) {
                partial[0] = helve_max(partial[0], warps[w]);
            }
            top[0] = partial[0];
            total[0] = total[0] * exp2f((peak[0] - top[0]) * 1.442695f);
            float partial_1[1];
            partial_1[0] = 0.0f;
            partial_1[0] = partial_1[0] + total[0];
            float other_1[1];
            other_1[0] = helve_shuffle_xor(partial_1[0], 1);
            partial_1[0] = partial_1[0] + other_1[0];
            other_1[0] = helve_shuffle_xor(partial_1[0], 2);
            partial_1[0] = partial_1[0] + other_1[0];
            other_1[0] = helve_shuffle_xor(partial_1[0], 4);
            partial_1[0] = partial_1[0] + other_1[0];
            other_1[0] = helve_shuffle_xor(partial_1[0], 8);
            partial_1[0] = partial_1[0] + other_1[0];
            other_1[0] = helve_shuffle_xor(partial_1[0], 16);
            partial_1[0] = partial_1[0] + other_1[0];
            float* const warps_1 = (float*)(helve_shared + 33152);
            if (tx % 32 == 0) {
                warps_1[tx / 32] = partial_1[0];
            }
            partial_1[0] = 0.0f;
            __syncthreads();
            #pragma unroll
            for (int w = 0; w < 8; ++w) {
                partial_1[0] = partial_1[0] + warps_1[w];
            }
            scale[0] = partial_1[0];
            if (tx == 0) {
                mine[0] = top[0];
            }
            if (tx == 0) {
                mine[1] = scale[0];
            }
        }
        __syncthreads();
        if (tx < 16) {
            helve_push(slots_y + (((int)half_y[0] & 1) * 16 + s * 2 + tx % 2), mine[tx % 2], tx / 2, arrivals_y + (phase & 1));
        }
        helve_wait_pushed(arrivals_y, phase++, 64);
        if (tx < 16) {
            ours[tx / 2 * 2 + tx % 2] = slots_y[((int)half_y[0] & 1) * 16 + tx / 2 * 2 + tx % 2];
        }
        half_y[0] = (int)(1u - (unsigned int)half_y[0]);
        __syncthreads();
        if (i < M) {
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                each[v] = ours[v * 2];
            }
            float partial[1];
            partial[0] = -helve_infinity();
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                partial[0] = helve_max(partial[0], each[v]);
            }
            top[0] = partial[0];
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                each[v] = ours[v * 2 + 1] * exp2f((ours[v * 2] - top[0]) * 1.442695f);
            }
            float partial_1[1];
            partial_1[0] = 0.0f;
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                partial_1[0] = partial_1[0] + each[v];
            }
            scale[0] = partial_1[0];
            scale[0] = 1.0f / scale[0];
            for (int c = 0; c < 2; ++c) {
                #pragma unroll
                for (int r = 0; r < 4; ++r) {
                    {
                        helve_bfloat16 row_v[8];
                        helve_load<16>(row_v, row + (c * 8192 + r * 2048 + tx * 8));
                        #pragma unroll
                        for (int v = 0; v < 8; ++v) {
                            x[r * 8 + v] = helve_to_float(row_v[v]);
                        }
                    }
                }
                #pragma unroll
                for (int r = 0; r < 4; ++r) {
                    {
                        float Y_v[8];
                        #pragma unroll
                        for (int v = 0; v < 8; ++v) {
                            Y_v[v] = exp2f((x[r * 8 + v] - top[0]) * 1.442695f) * scale[0];
                        }
                        helve_store_rounded<16>(Y + (i * 131072 + s * 16384 + c * 8192 + r * 2048 + tx * 8), Y_v);
                    }
                }
            }
        }
    }
}
