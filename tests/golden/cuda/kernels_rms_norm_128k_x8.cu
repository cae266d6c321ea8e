extern "C" __global__ void __launch_bounds__(512)
rms_norm_0(
    const helve_bfloat16* __restrict__ W,
    const helve_bfloat16* __restrict__ X,
    helve_bfloat16* Y,
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
    helve_bfloat16* const ring = (helve_bfloat16*)(helve_shared + 256);
    helve_bfloat16 x[32];
    float term[32];
    float some[4];
    float total[1];
    float scale[1];
    float* const mine = (float*)(helve_shared + 131328);
    if (tx == 0) {
        mine[0] = 0.0f;
    }
    float* const ours = (float*)(helve_shared + 131456);
    __align__(16) helve_bfloat16 w[32];
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        helve_move<16, 8>(w + r * 8, W + (s * 16384 + r * 4096 + tx * 8));
    }
    for (int k = 0; k < 3; ++k) {
        if (k * 15 + b < M) {
            for (int pass = 0; pass < 4; ++pass) {
                const int first = s * 16384 + pass * 4096 + tx * 8;
                helve_copy_async<16>(ring + (k * 16384 + pass * 4096 + tx * 8), X + (k * 1966080 + b * 131072 + first));
            }
        }
        helve_commit_async();
    }
    for (long long step = 0; step < (M + 14) / 15 + 1; ++step) {
        const long long i = step * 15 + b;
        helve_wait_async<2>();
        if (i < M) {
            total[0] = 0.0f;
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                {
                    helve_bfloat16 ring_v[8];
                    helve_load<16>(ring_v, ring + (step % 4 * 16384 + r * 4096 + tx * 8));
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        x[r * 8 + v] = ring_v[v];
                    }
                }
            }
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    term[r * 8 + v] = helve_to_float(x[r * 8 + v]) * helve_to_float(x[r * 8 + v]);
                }
            }
            float partial[4];
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                partial[r] = 0.0f;
            }
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    partial[r] = partial[r] + term[r * 8 + v];
                }
            }
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                some[r] = partial[r];
            }
            float partial_1[1];
            partial_1[0] = 0.0f;
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                partial_1[0] = partial_1[0] + some[r];
            }
            total[0] = total[0] + partial_1[0];
            float partial_2[1];
            partial_2[0] = 0.0f;
            partial_2[0] = partial_2[0] + total[0];
            float other[1];
            other[0] = helve_shuffle_xor(partial_2[0], 1);
            partial_2[0] = partial_2[0] + other[0];
            other[0] = helve_shuffle_xor(partial_2[0], 2);
            partial_2[0] = partial_2[0] + other[0];
            other[0] = helve_shuffle_xor(partial_2[0], 4);
            partial_2[0] = partial_2[0] + other[0];
            other[0] = helve_shuffle_xor(partial_2[0], 8);
            partial_2[0] = partial_2[0] + other[0];
            other[0] = helve_shuffle_xor(partial_2[0], 16);
            partial_2[0] = partial_2[0] + other[0];
            float* const warps = (float*)(helve_shared + 131584);
            if (tx % 32 == 0) {
                warps[tx / 32] = partial_2[0];
            }
            partial_2[0] = 0.0f;
            __syncthreads();
            #pragma unroll
            for (int w_1 = 0; w_1 < 16; ++w_1) {
                partial_2[0] = partial_2[0] + warps[w_1];
            }
            if (tx == 0) {
                mine[0] = partial_2[0];
            }
        }
        __syncthreads();
        if (tx < 8) {
            helve_post((float*)(slots_y + ((turn_y & 1) * 8 + s) * 8) + 0, mine[0], tx, arrivals_y + (turn_y & 1));
        }
        if (0 < step && i < M + 15) {
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                {
                    helve_bfloat16 ring_v[8];
                    helve_load<16>(ring_v, ring + ((step + 3) % 4 * 16384 + r * 4096 + tx * 8));
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        x[r * 8 + v] = ring_v[v];
                    }
                }
            }
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                {
                    float Y_v[8];
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        Y_v[v] = helve_to_float(x[r * 8 + v]) * scale[0] * helve_to_float(w[r * 8 + v]);
                    }
                    helve_store_rounded<16>(Y + (i * 131072 + s * 16384 + r * 4096 + tx * 8 - 1966080), Y_v);
                }
            }
        }
        if (i < M - 45) {
            for (int pass = 0; pass < 4; ++pass) {
                const int first = s * 16384 + pass * 4096 + tx * 8;
                helve_copy_async<16>(ring + ((step + 3) % 4 * 16384 + pass * 4096 + tx * 8), X + (i * 131072 + first + 5898240));
            }
        }
        helve_commit_async();
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
        }
    }
    helve_wait_async<0>();
}
