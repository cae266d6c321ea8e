extern "C" __global__ void __launch_bounds__(64)
rms_norm_backward_0(
    const helve_bfloat16* __restrict__ W,
    const helve_bfloat16* __restrict__ X,
    const helve_bfloat16* __restrict__ DY,
    helve_bfloat16* DX,
    float* part_cores,
    long long M,
    long long part_stride,
    long long first_core) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    const unsigned core = (unsigned)first_core + blockIdx.x;
    const int s = core % 8;
    const int b = core / 8;
    float* const part = (float*)((unsigned char*)part_cores + core * part_stride);
    unsigned long long* const arrivals_y = (unsigned long long*)(helve_shared + 0);
    unsigned char* const slots_y = helve_shared + 16;
    unsigned turn_y = 0;
    helve_open(arrivals_y, 2);
    helve_cluster_sync();
    helve_bfloat16* const ring_x = (helve_bfloat16*)(helve_shared + 256);
    helve_bfloat16* const ring_dy = (helve_bfloat16*)(helve_shared + 12544);
    helve_bfloat16 x[32];
    helve_bfloat16 dy[32];
    helve_bfloat16 w[32];
    float dw[32];
    float term[32];
    float some[4];
    float square[1];
    float product[1];
    float* const sums = (float*)(helve_shared + 24832);
    float scale[1];
    float dot[1];
    float* const mine = (float*)(helve_shared + 25344);
    if (tx / 2 == 0) {
        mine[tx % 2] = 0.0f;
    }
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
            dw[r * 8 + v] = 0.0f;
        }
    }
    float* const ours = (float*)(helve_shared + 25472);
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        {
            helve_bfloat16 W_v[8];
            helve_load<16>(W_v, W + (s * 2048 + r * 512 + tx * 8));
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                w[r * 8 + v] = W_v[v];
            }
        }
    }
    for (int k = 0; k < 2; ++k) {
        if (k * 90 + b < M) {
            for (int pass = 0; pass < 4; ++pass) {
                const int at = s * 2048 + pass * 512 + tx * 8;
                helve_copy_async<16>(ring_x + (k * 2048 + pass * 512 + tx * 8), X + (k * 1474560 + b * 16384 + at));
            }
            for (int pass = 0; pass < 4; ++pass) {
                const int at = s * 2048 + pass * 512 + tx * 8;
                helve_copy_async<16>(ring_dy + (k * 2048 + pass * 512 + tx * 8), DY + (k * 1474560 + b * 16384 + at));
            }
        }
        helve_commit_async();
    }
    for (long long step = 0; step < (M + 89) / 90 + 1; ++step) {
        const long long i = step * 90 + b;
        helve_wait_async<1>();
        if (i < M) {
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                {
                    helve_bfloat16 ring_x_v[8];
                    helve_load<16>(ring_x_v, ring_x + (step % 3 * 2048 + r * 512 + tx * 8));
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        x[r * 8 + v] = ring_x_v[v];
                    }
                }
            }
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                {
                    helve_bfloat16 ring_dy_v[8];
                    helve_load<16>(ring_dy_v, ring_dy + (step % 3 * 2048 + r * 512 + tx * 8));
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        dy[r * 8 + v] = ring_dy_v[v];
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
            square[0] = partial_1[0];
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    term[r * 8 + v] = helve_to_float(dy[r * 8 + v]) * helve_to_float(w[r * 8 + v]) * helve_to_float(x[r * 8 + v]);
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
                    partial_2[r] = partial_2[r] + term[r * 8 + v];
                }
            }
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                some[r] = partial_2[r];
            }
            float partial_3[1];
            partial_3[0] = 0.0f;
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                partial_3[0] = partial_3[0] + some[r];
            }
            product[0] = partial_3[0];
            {
                sums[tx] = square[0];
                sums[tx + 64] = product[0];
            }
            float partial_4[2];
            #pragma unroll
            for (int v = 0; v < 2; ++v) {
                partial_4[v] = 0.0f;
            }
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                partial_4[r] = partial_4[r] + sums[r * 64 + tx];
            }
            float other[2];
            #pragma unroll
            for (int v = 0; v < 2; ++v) {
                other[v] = helve_shuffle_xor(partial_4[v], 1);
            }
            #pragma unroll
            for (int v = 0; v < 2; ++v) {
                partial_4[v] = partial_4[v] + other[v];
            }
            #pragma unroll
            for (int v = 0; v < 2; ++v) {
                other[v] = helve_shuffle_xor(partial_4[v], 2);
            }
            #pragma unroll
            for (int v = 0; v < 2; ++v) {
                partial_4[v] = partial_4[v] + other[v];
            }
            #pragma unroll
            for (int v = 0; v < 2; ++v) {
                other[v] = helve_shuffle_xor(partial_4[v], 4);
            }
            #pragma unroll
            for (int v = 0; v < 2; ++v) {
                partial_4[v] = partial_4[v] + other[v];
            }
            #pragma unroll
            for (int v = 0; v < 2; ++v) {
                other[v] = helve_shuffle_xor(partial_4[v], 8);
            }
            #pragma unroll
            for (int v = 0; v < 2; ++v) {
                partial_4[v] = partial_4[v] + other[v];
            }
            #pragma unroll
            for (int v = 0; v < 2; ++v) {
                other[v] = helve_shuffle_xor(partial_4[v], 16);
            }
            #pragma unroll
            for (int v = 0; v < 2; ++v) {
                partial_4[v] = partial_4[v] + other[v];
            }
            float* const warps = (float*)(helve_shared + 25600);
            #pragma unroll
            for (int v = 0; v < 2; ++v) {
                if (tx % 32 == 0) {
                    warps[tx / 32 * 2 + v] = partial_4[v];
                }
            }
            #pragma unroll
            for (int v = 0; v < 2; ++v) {
                partial_4[v] = 0.0f;
            }
            __syncthreads();
            #pragma unroll
            for (int v = 0; v < 2; ++v) {
                #pragma unroll
                for (int w_1 = 0; w_1 < 2; ++w_1) {
                    partial_4[v] = partial_4[v] + warps[w_1 * 2 + v];
                }
            }
            if (tx == 0) {
                {
                    float mine_v[2];
                    #pragma unroll
                    for (int v = 0; v < 2; ++v) {
                        mine_v[v] = partial_4[v];
                    }
                    helve_store<8>(mine + 0, mine_v);
                }
            }
        }
        __syncthreads();
        if (tx < 16) {
            const int member = tx / 2;
            helve_post((float*)(slots_y + ((turn_y & 1) * 8 + s) * 8) + tx % 2, mine[tx % 2], member, arrivals_y + (turn_y & 1));
        }
        if (0 < step && i < M + 90) {
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                {
                    helve_bfloat16 ring_x_v[8];
                    helve_load<16>(ring_x_v, ring_x + ((step + 2) % 3 * 2048 + r * 512 + tx * 8));
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        x[r * 8 + v] = ring_x_v[v];
                    }
                }
            }
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                {
                    helve_bfloat16 ring_dy_v[8];
                    helve_load<16>(ring_dy_v, ring_dy + ((step + 2) % 3 * 2048 + r * 512 + tx * 8));
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        dy[r * 8 + v] = ring_dy_v[v];
                    }
                }
            }
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    dw[r * 8 + v] = dw[r * 8 + v] + helve_to_float(dy[r * 8 + v]) * helve_to_float(x[r * 8 + v]) * scale[0];
                }
            }
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                {
                    float DX_v[8];
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        DX_v[v] = (helve_to_float(dy[r * 8 + v]) * helve_to_float(w[r * 8 + v]) - helve_to_float(x[r * 8 + v]) * dot[0]) * scale[0];
                    }
                    helve_store_rounded<16>(DX + (i * 16384 + s * 2048 + r * 512 + tx * 8 - 1474560), DX_v);
                }
            }
        }
        if (i < M - 180) {
            for (int pass = 0; pass < 4; ++pass) {
                const int at = s * 2048 + pass * 512 + tx * 8;
                helve_copy_async<16>(ring_x + ((step + 2) % 3 * 2048 + pass * 512 + tx * 8), X + (i * 16384 + at + 2949120));
            }
            for (int pass = 0; pass < 4; ++pass) {
                const int at = s * 2048 + pass * 512 + tx * 8;
                helve_copy_async<16>(ring_dy + ((step + 2) % 3 * 2048 + pass * 512 + tx * 8), DY + (i * 16384 + at + 2949120));
            }
        }
        helve_commit_async();
        helve_collect(arrivals_y, turn_y, 64);
        if (tx < 2) {
            float sum[1];
            const float* const mine_peer = (const float*)(slots_y + ((turn_y & 1) * 8 + 0) * 8);
            sum[0] = mine_peer[tx];
            #pragma unroll
            for (int member = 1; member < 1 + 7; ++member) {
                const float* const mine_peer_1 = (const float*)(slots_y + ((turn_y & 1) * 8 + member) * 8);
                sum[0] = sum[0] + mine_peer_1[tx];
            }
            ours[tx] = sum[0];
        }
        ++turn_y;
        __syncthreads();
        if (i < M) {
            scale[0] = rsqrtf(ours[0] * 6.1035156e-05f + 1e-06f);
            dot[0] = ours[1] * 6.1035156e-05f * scale[0] * scale[0];
        }
    }
    helve_wait_async<0>();
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        {
            float part_v[8];
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                part_v[v] = dw[r * 8 + v];
            }
            helve_store<16>(part + (r * 512 + tx * 8), part_v);
        }
    }
    if (tx / 16 == 0) {
        if (tx % 16 < 11) {
            {
                float part_v[2];
                #pragma unroll
                for (int v = 0; v < 2; ++v) {
                    part_v[v] = 0.0f;
                }
                helve_store<8>(part + (tx % 16 * 2 + 2048), part_v);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(64)
rms_norm_backward_1(float* DW, const float* __restrict__ total_cores, long long total_stride, long long first_core) {
    const int tx = threadIdx.x;
    const unsigned core = (unsigned)first_core + blockIdx.x;
    const int s = core % 8;
    const int b = core / 8;
    float* const total = (float*)((unsigned char*)total_cores + core * total_stride);
    if (tx / 32 == 0) {
        if (tx % 32 < 23) {
            if (b * 23 + tx % 32 < 2048) {
                DW[s * 2048 + b * 23 + tx % 32] = total[tx % 32];
            }
        }
    }
}
