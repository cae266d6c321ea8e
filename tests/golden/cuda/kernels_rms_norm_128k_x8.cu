extern "C" __global__ void __launch_bounds__(512)
rms_norm_0(
    const helve_bfloat16* __restrict__ X,
    helve_bfloat16* __restrict__ Y,
    const helve_bfloat16* __restrict__ W,
    long long M,
    long long first_core) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    const unsigned core = (unsigned)first_core + blockIdx.x;
    const int s = core % 8;
    const int b = core / 8;
    unsigned long long* const arrivals_y = (unsigned long long*)(helve_shared + 0);
    unsigned char* const slots_y = helve_shared + 16;
    unsigned turn_y = 0;
    helve_open(arrivals_y, 2);
    helve_cluster_sync();
    helve_bfloat16* const row = (helve_bfloat16*)(helve_shared + 256);
    helve_bfloat16 x[16];
    float square[16];
    float some[2];
    float total[1];
    float* const mine = (float*)(helve_shared + 33024);
    float* const ours = (float*)(helve_shared + 33152);
    float scale[1];
    if (tx == 0) {
        mine[0] = 0.0f;
    }
    for (long long step = 0; step < (M + 511) / 512; ++step) {
        const long long i = step * 512 + b;
        if (i < M) {
            total[0] = 0.0f;
            for (int c = 0; c < 2; ++c) {
                #pragma unroll
                for (int r = 0; r < 2; ++r) {
                    {
                        helve_bfloat16 X_v[8];
                        helve_load<16>(X_v, X + (i * 131072 + s * 16384 + c * 8192 + r * 4096 + tx * 8));
                        #pragma unroll
                        for (int v = 0; v < 8; ++v) {
                            x[r * 8 + v] = X_v[v];
                        }
                    }
                }
                #pragma unroll
                for (int r = 0; r < 2; ++r) {
                    {
                        helve_bfloat16 row_v[8];
                        #pragma unroll
                        for (int v = 0; v < 8; ++v) {
                            row_v[v] = x[r * 8 + v];
                        }
                        helve_store<16>(row + (c * 8192 + r * 4096 + tx * 8), row_v);
                    }
                }
                #pragma unroll
                for (int r = 0; r < 2; ++r) {
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        square[r * 8 + v] = helve_to_float(x[r * 8 + v]) * helve_to_float(x[r * 8 + v]);
                    }
                }
                float partial[2];
                #pragma unroll
                for (int r = 0; r < 2; ++r) {
                    partial[r] = 0.0f;
                }
                #pragma unroll
                for (int r = 0; r < 2; ++r) {
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        partial[r] = partial[r] + square[r * 8 + v];
                    }
                }
                #pragma unroll
                for (int r = 0; r < 2; ++r) {
                    some[r] = partial[r];
                }
                float partial_1[1];
                partial_1[0] = 0.0f;
                #pragma unroll
                for (int r = 0; r < 2; ++r) {
                    partial_1[0] = partial_1[0] + some[r];
                }
                total[0] = total[0] + partial_1[0];
            }
            float partial[1];
            partial[0] = 0.0f;
            partial[0] = partial[0] + total[0];
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
            float* const warps = (float*)(helve_shared + 33280);
            if (tx % 32 == 0) {
                warps[tx / 32] = partial[0];
            }
            partial[0] = 0.0f;
            __syncthreads();
            #pragma unroll
            for (int w = 0; w < 16; ++w) {
                partial[0] = partial[0] + warps[w];
            }
            if (tx == 0) {
                mine[0] = partial[0];
            }
        }
        __syncthreads();
        if (tx < 8) {
            helve_post((float*)(slots_y + ((turn_y & 1) * 8 + s) * 8) + 0, mine[0], tx, arrivals_y + (turn_y & 1));
        }
        helve_collect(arrivals_y, turn_y, 32);
        if (tx < 1) {
            float sum[1];
            const float* const mine_peer = (const float*)(slots_y + ((turn_y & 1) * 8 + 0) * 8);
            sum[0] = mine_peer[0];
            #pragma unroll
            for (int member = 1; member < 1 + 7; ++member) {
                const float* const mine_peer_1 = (const float*)(slots_y + ((turn_y & 1) * 8 + member) * 8);
                sum[0] = sum[0] + mine_peer_1[0];
            }
            ours[0] = sum[0];
        }
        ++turn_y;
        __syncthreads();
        if (i < M) {
            scale[0] = rsqrtf(ours[0] * 7.6293945e-06f + 1e-06f);
            for (int c = 0; c < 2; ++c) {
                #pragma unroll
                for (int r = 0; r < 2; ++r) {
                    {
                        helve_bfloat16 row_v[8];
                        helve_load<16>(row_v, row + (c * 8192 + r * 4096 + tx * 8));
                        #pragma unroll
                        for (int v = 0; v < 8; ++v) {
                            x[r * 8 + v] = row_v[v];
                        }
                    }
                }
                #pragma unroll
                for (int r = 0; r < 2; ++r) {
                    {
                        helve_bfloat16 W_v[8];
                        helve_load<16>(W_v, W + (s * 16384 + c * 8192 + r * 4096 + tx * 8));
                        float Y_v[8];
                        #pragma unroll
                        for (int v = 0; v < 8; ++v) {
                            Y_v[v] = helve_to_float(x[r * 8 + v]) * scale[0] * helve_to_float(W_v[v]);
                        }
                        helve_store_rounded<16>(Y + (i * 131072 + s * 16384 + c * 8192 + r * 4096 + tx * 8), Y_v);
                    }
                }
            }
        }
    }
}
