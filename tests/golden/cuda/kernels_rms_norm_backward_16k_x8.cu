extern "C" __global__ void __launch_bounds__(128)
rms_norm_backward_0(
    const helve_bfloat16* __restrict__ X,
    const helve_bfloat16* __restrict__ DY,
    const helve_bfloat16* __restrict__ W,
    helve_bfloat16* __restrict__ DX,
    float* __restrict__ part_cores,
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
    float dw[16];
    helve_bfloat16 x[16];
    helve_bfloat16 dy[16];
    float product[16];
    float scale[1];
    float dot[1];
    float* const mine = (float*)(helve_shared + 256);
    float* const ours = (float*)(helve_shared + 384);
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
            dw[r * 8 + v] = 0.0f;
        }
    }
    if (tx / 2 == 0) {
        mine[tx % 2] = 0.0f;
    }
    for (long long step = 0; step < (M + 74) / 75; ++step) {
        const long long i = step * 75 + b;
        if (i < M) {
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                {
                    helve_bfloat16 X_v[8];
                    helve_load<16>(X_v, X + (i * 16384 + s * 2048 + r * 1024 + tx * 8));
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        x[r * 8 + v] = X_v[v];
                    }
                }
            }
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                {
                    helve_bfloat16 DY_v[8];
                    helve_load<16>(DY_v, DY + (i * 16384 + s * 2048 + r * 1024 + tx * 8));
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        dy[r * 8 + v] = DY_v[v];
                    }
                }
            }
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    product[r * 8 + v] = helve_to_float(x[r * 8 + v]) * helve_to_float(x[r * 8 + v]);
                }
            }
            float partial[1];
            partial[0] = 0.0f;
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
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
            float* const warps = (float*)(helve_shared + 512);
            if (tx % 32 == 0) {
                warps[tx / 32] = partial[0];
            }
            partial[0] = 0.0f;
            __syncthreads();
            #pragma unroll
            for (int w = 0; w < 4; ++w) {
                partial[0] = partial[0] + warps[w];
            }
            scale[0] = partial[0];
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                {
                    helve_bfloat16 W_v[8];
                    helve_load<16>(W_v, W + (s * 2048 + r * 1024 + tx * 8));
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        product[r * 8 + v] = helve_to_float(dy[r * 8 + v]) * helve_to_float(W_v[v]) * helve_to_float(x[r * 8 + v]);
                    }
                }
            }
            float partial_1[1];
            partial_1[0] = 0.0f;
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    partial_1[0] = partial_1[0] + product[r * 8 + v];
                }
            }
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
            float* const warps_1 = (float*)(helve_shared + 640);
            if (tx % 32 == 0) {
                warps_1[tx / 32] = partial_1[0];
            }
            partial_1[0] = 0.0f;
            __syncthreads();
            #pragma unroll
            for (int w = 0; w < 4; ++w) {
                partial_1[0] = partial_1[0] + warps_1[w];
            }
            dot[0] = partial_1[0];
            if (tx == 0) {
                mine[0] = scale[0];
            }
            if (tx == 0) {
                mine[1] = dot[0];
            }
        }
        __syncthreads();
        if (tx < 16) {
            const int member = tx / 2;
            helve_post((float*)(slots_y + ((turn_y & 1) * 8 + s) * 8) + tx % 2, mine[tx % 2], member, arrivals_y + (turn_y & 1));
        }
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
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    dw[r * 8 + v] = dw[r * 8 + v] + helve_to_float(dy[r * 8 + v]) * helve_to_float(x[r * 8 + v]) * scale[0];
                }
            }
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                {
                    helve_bfloat16 W_v[8];
                    helve_load<16>(W_v, W + (s * 2048 + r * 1024 + tx * 8));
                    float DX_v[8];
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        DX_v[v] = (helve_to_float(dy[r * 8 + v]) * helve_to_float(W_v[v]) - helve_to_float(x[r * 8 + v]) * dot[0]) * scale[0];
                    }
                    helve_store_rounded<16>(DX + (i * 16384 + s * 2048 + r * 1024 + tx * 8), DX_v);
                }
            }
        }
    }
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
        {
            float part_v[8];
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                part_v[v] = dw[r * 8 + v];
            }
            helve_store<16>(part + (r * 1024 + tx * 8), part_v);
        }
    }
    if (tx / 16 == 0) {
        if (tx % 16 < 13) {
            {
                float part_v[4];
                #pragma unroll
                for (int v = 0; v < 4; ++v) {
                    part_v[v] = 0.0f;
                }
                helve_store<16>(part + (tx % 16 * 4 + 2048), part_v);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(128)
rms_norm_backward_1(
    const float* __restrict__ parts_cores,
    float* __restrict__ DW,
    long long parts_stride,
    long long first_core) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    const unsigned core = (unsigned)first_core + blockIdx.x;
    const int s = core % 8;
    const int b = core / 8;
    float* const parts = (float*)((unsigned char*)parts_cores + core * parts_stride);
    float terms[20];
    float total[4];
    #pragma unroll
    for (int r = 0; r < 5; ++r) {
        if (r * 16 + tx / 8 < 75 && tx % 8 < 7) {
            {
                float parts_v[4];
                helve_load<16>(parts_v, parts + (r * 448 + tx / 8 * 28 + tx % 8 * 4));
                #pragma unroll
                for (int v = 0; v < 4; ++v) {
                    terms[r * 4 + v] = parts_v[v];
                }
            }
        }
    }
    float partial[4];
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        partial[v] = 0.0f;
    }
    #pragma unroll
    for (int r = 0; r < 5; ++r) {
        if (r * 16 + tx / 8 < 75 && tx % 8 < 7) {
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                partial[v] = partial[v] + terms[r * 4 + v];
            }
        }
    }
    float other[4];
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        other[v] = helve_shuffle_xor(partial[v], 8);
    }
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        partial[v] = partial[v] + other[v];
    }
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        other[v] = helve_shuffle_xor(partial[v], 16);
    }
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        partial[v] = partial[v] + other[v];
    }
    float* const warps = (float*)(helve_shared + 0);
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        if (tx / 8 % 4 == 0) {
            warps[tx / 32 * 32 + tx % 8 * 4 + v] = partial[v];
        }
    }
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        partial[v] = 0.0f;
    }
    __syncthreads();
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        #pragma unroll
        for (int w = 0; w < 4; ++w) {
            partial[v] = partial[v] + warps[w * 32 + tx % 8 * 4 + v];
        }
    }
    if (tx % 8 < 7) {
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
            total[v] = partial[v];
        }
    }
    if (tx % 8 < 7) {
        if (b * 7 + tx % 8 < 512) {
            if (tx / 8 == 0) {
                {
                    float DW_v[4];
                    #pragma unroll
                    for (int v = 0; v < 4; ++v) {
                        DW_v[v] = total[v];
                    }
                    helve_store<16>(DW + (s * 2048 + b * 28 + tx % 8 * 4), DW_v);
                }
            }
        }
    }
}
