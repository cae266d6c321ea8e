extern "C" __global__ void __launch_bounds__(128)
layer_norm_backward_0(
    const helve_bfloat16* __restrict__ W,
    const helve_bfloat16* __restrict__ X,
    const helve_bfloat16* __restrict__ DY,
    helve_bfloat16* DX,
    float* part,
    long long M) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    const int b = blockIdx.x / 1;
    helve_bfloat16* const ring_x = (helve_bfloat16*)(helve_shared + 0);
    helve_bfloat16* const ring_dy = (helve_bfloat16*)(helve_shared + 24576);
    helve_bfloat16 x[32];
    helve_bfloat16 dy[32];
    helve_bfloat16 w[32];
    float dw[32];
    float db[32];
    float term[32];
    float some[4];
    float sum_x[1];
    float square[1];
    float sum_g[1];
    float product[1];
    float* const sums = (float*)(helve_shared + 49152);
    float first[1];
    helve_bfloat16 next_first[1];
    float mean[1];
    float mean_g[1];
    float scale[1];
    float dot[1];
    float* const mine = (float*)(helve_shared + 51200);
    if (tx / 4 == 0) {
        mine[tx % 4] = 0.0f;
    }
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
            dw[r * 8 + v] = 0.0f;
        }
    }
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
            db[r * 8 + v] = 0.0f;
        }
    }
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        {
            helve_bfloat16 W_v[8];
            helve_load<16>(W_v, W + (r * 1024 + tx * 8));
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                w[r * 8 + v] = W_v[v];
            }
        }
    }
    for (int k = 0; k < 2; ++k) {
        if (k * 264 + b < M) {
            for (int pass = 0; pass < 4; ++pass) {
                const int at = pass * 1024 + tx * 8;
                helve_copy_async<16>(ring_x + (k * 4096 + pass * 1024 + tx * 8), X + (k * 1081344 + b * 4096 + at));
            }
            for (int pass = 0; pass < 4; ++pass) {
                const int at = pass * 1024 + tx * 8;
                helve_copy_async<16>(ring_dy + (k * 4096 + pass * 1024 + tx * 8), DY + (k * 1081344 + b * 4096 + at));
            }
        }
        helve_commit_async();
    }
    if (b < M) {
        next_first[0] = X[b * 4096];
    }
    for (long long step = 0; step < (M + 263) / 264 + 1; ++step) {
        const long long i = step * 264 + b;
        helve_wait_async<1>();
        if (i < M) {
            first[0] = helve_to_float(next_first[0]);
            next_first[0] = X[min(i + 264, M - 1) * 4096];
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                {
                    helve_bfloat16 ring_x_v[8];
                    helve_load<16>(ring_x_v, ring_x + (step % 3 * 4096 + r * 1024 + tx * 8));
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
                    helve_load<16>(ring_dy_v, ring_dy + (step % 3 * 4096 + r * 1024 + tx * 8));
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
                    term[r * 8 + v] = helve_to_float(x[r * 8 + v]) - first[0];
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
            sum_x[0] = partial_1[0];
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    term[r * 8 + v] = (helve_to_float(x[r * 8 + v]) - first[0]) * (helve_to_float(x[r * 8 + v]) - first[0]);
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
            square[0] = partial_3[0];
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    term[r * 8 + v] = helve_to_float(dy[r * 8 + v]) * helve_to_float(w[r * 8 + v]);
                }
            }
            float partial_4[4];
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                partial_4[r] = 0.0f;
            }
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    partial_4[r] = partial_4[r] + term[r * 8 + v];
                }
            }
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                some[r] = partial_4[r];
            }
            float partial_5[1];
            partial_5[0] = 0.0f;
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                partial_5[0] = partial_5[0] + some[r];
            }
            sum_g[0] = partial_5[0];
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    term[r * 8 + v] = helve_to_float(dy[r * 8 + v]) * helve_to_float(w[r * 8 + v]) * (helve_to_float(x[r * 8 + v]) - first[0]);
                }
            }
            float partial_6[4];
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                partial_6[r] = 0.0f;
            }
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    partial_6[r] = partial_6[r] + term[r * 8 + v];
                }
            }
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                some[r] = partial_6[r];
            }
            float partial_7[1];
            partial_7[0] = 0.0f;
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                partial_7[0] = partial_7[0] + some[r];
            }
            product[0] = partial_7[0];
            {
                sums[tx] = sum_x[0];
                sums[tx + 128] = square[0];
                sums[tx + 256] = sum_g[0];
                sums[tx + 384] = product[0];
            }
            float partial_8[4];
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                partial_8[v] = 0.0f;
            }
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                partial_8[r] = partial_8[r] + sums[r * 128 + tx];
            }
            float other[4];
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                other[v] = helve_shuffle_xor(partial_8[v], 1);
            }
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                partial_8[v] = partial_8[v] + other[v];
            }
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                other[v] = helve_shuffle_xor(partial_8[v], 2);
            }
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                partial_8[v] = partial_8[v] + other[v];
            }
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                other[v] = helve_shuffle_xor(partial_8[v], 4);
            }
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                partial_8[v] = partial_8[v] + other[v];
            }
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                other[v] = helve_shuffle_xor(partial_8[v], 8);
            }
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                partial_8[v] = partial_8[v] + other[v];
            }
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                other[v] = helve_shuffle_xor(partial_8[v], 16);
            }
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                partial_8[v] = partial_8[v] + other[v];
            }
            float* const warps = (float*)(helve_shared + 51328);
            __syncthreads();
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                if (tx % 32 == 0) {
                    warps[tx / 32 * 4 + v] = partial_8[v];
                }
            }
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                partial_8[v] = 0.0f;
            }
            __syncthreads();
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                #pragma unroll
                for (int w_1 = 0; w_1 < 4; ++w_1) {
                    partial_8[v] = partial_8[v] + warps[w_1 * 4 + v];
                }
            }
            if (tx == 0) {
                {
                    float mine_v[4];
                    #pragma unroll
                    for (int v = 0; v < 4; ++v) {
                        mine_v[v] = partial_8[v];
                    }
                    helve_store<16>(mine + 0, mine_v);
                }
            }
        }
        if (0 < step && i < M + 264) {
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                {
                    helve_bfloat16 ring_x_v[8];
                    helve_load<16>(ring_x_v, ring_x + ((step + 2) % 3 * 4096 + r * 1024 + tx * 8));
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
                    helve_load<16>(ring_dy_v, ring_dy + ((step + 2) % 3 * 4096 + r * 1024 + tx * 8));
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
                    dw[r * 8 + v] = dw[r * 8 + v] + helve_to_float(dy[r * 8 + v]) * ((helve_to_float(x[r * 8 + v]) - mean[0]) * scale[0]);
                }
            }
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    db[r * 8 + v] = db[r * 8 + v] + helve_to_float(dy[r * 8 + v]);
                }
            }
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                {
                    float DX_v[8];
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        DX_v[v] = (helve_to_float(dy[r * 8 + v]) * helve_to_float(w[r * 8 + v]) - mean_g[0] - (helve_to_float(x[r * 8 + v]) - mean[0]) * dot[0]) * scale[0];
                    }
                    helve_store_rounded<16>(DX + (i * 4096 + r * 1024 + tx * 8 - 1081344), DX_v);
                }
            }
        }
        if (i < M - 528) {
            for (int pass = 0; pass < 4; ++pass) {
                const int at = pass * 1024 + tx * 8;
                helve_copy_async<16>(ring_x + ((step + 2) % 3 * 4096 + pass * 1024 + tx * 8), X + (i * 4096 + at + 2162688));
            }
            for (int pass = 0; pass < 4; ++pass) {
                const int at = pass * 1024 + tx * 8;
                helve_copy_async<16>(ring_dy + ((step + 2) % 3 * 4096 + pass * 1024 + tx * 8), DY + (i * 4096 + at + 2162688));
            }
        }
        helve_commit_async();
        if (i < M) {
            __syncthreads();
            mean[0] = mine[0] * 0.00024414062f;
            scale[0] = mine[1] * 0.00024414062f - mean[0] * mean[0];
            scale[0] = rsqrtf(helve_max(scale[0], 0.0f) + 1e-05f);
            mean_g[0] = mine[2] * 0.00024414062f;
            dot[0] = mine[3] * 0.00024414062f - mean_g[0] * mean[0];
            dot[0] = dot[0] * scale[0] * scale[0];
            mean[0] = mean[0] + first[0];
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
            helve_store<16>(part + (b * 4096 + r * 1024 + tx * 8), part_v);
        }
    }
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        {
            float part_v[8];
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                part_v[v] = db[r * 8 + v];
            }
            helve_store<16>(part + (b * 4096 + r * 1024 + tx * 8 + 1081344), part_v);
        }
    }
}

extern "C" __global__ void __launch_bounds__(512)
layer_norm_backward_1(const float* __restrict__ part, float* DW, float* DB) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    const int c = blockIdx.x % 256;
    const int which = blockIdx.x / 256;
    float sums[8];
    float more[8];
    float total[4];
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
            sums[r * 4 + v] = 0.0f;
        }
    }
    for (int step = 0; step < 2; ++step) {
        #pragma unroll
        for (int r = 0; r < 2; ++r) {
            if (step * 256 + r * 128 + tx / 4 < 264) {
                {
                    float part_v[4];
                    helve_load<16>(part_v, part + (which * 1081344 + step * 1048576 + r * 524288 + tx / 4 * 4096 + c * 16 + tx % 4 * 4));
                    #pragma unroll
                    for (int v = 0; v < 4; ++v) {
                        more[r * 4 + v] = part_v[v];
                    }
                }
            } else {
                #pragma unroll
                for (int v = 0; v < 4; ++v) {
                    more[r * 4 + v] = 0.0f;
                }
            }
        }
        #pragma unroll
        for (int r = 0; r < 2; ++r) {
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                sums[r * 4 + v] = sums[r * 4 + v] + more[r * 4 + v];
            }
        }
    }
    float partial[4];
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        partial[v] = 0.0f;
    }
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
            partial[v] = partial[v] + sums[r * 4 + v];
        }
    }
    float other[4];
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        other[v] = helve_shuffle_xor(partial[v], 4);
    }
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        partial[v] = partial[v] + other[v];
    }
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
        if (tx / 4 % 8 == 0) {
            warps[tx / 32 * 16 + tx % 4 * 4 + v] = partial[v];
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
        for (int w = 0; w < 16; ++w) {
            partial[v] = partial[v] + warps[w * 16 + tx % 4 * 4 + v];
        }
    }
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        total[v] = partial[v];
    }
    if (which == 0) {
        if (tx / 4 == 0) {
            {
                float DW_v[4];
                #pragma unroll
                for (int v = 0; v < 4; ++v) {
                    DW_v[v] = total[v];
                }
                helve_store<16>(DW + (c * 16 + tx % 4 * 4), DW_v);
            }
        }
    } else {
        if (tx / 4 == 0) {
            {
                float DB_v[4];
                #pragma unroll
                for (int v = 0; v < 4; ++v) {
                    DB_v[v] = total[v];
                }
                helve_store<16>(DB + (c * 16 + tx % 4 * 4), DB_v);
            }
        }
    }
}
