extern "C" __global__ void __launch_bounds__(128)
rms_norm_backward_0(
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
    float term[32];
    float some[4];
    float square[1];
    float product[1];
    float* const sums = (float*)(helve_shared + 49152);
    float scale[1];
    float dot[1];
    float* const mine = (float*)(helve_shared + 50176);
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
    for (long long step = 0; step < (M + 263) / 264 + 1; ++step) {
        const long long i = step * 264 + b;
        helve_wait_async<1>();
        if (i < M) {
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
                sums[tx + 128] = product[0];
            }
            float partial_4[2];
            #pragma unroll
            for (int v = 0; v < 2; ++v) {
                partial_4[v] = 0.0f;
            }
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                partial_4[r] = partial_4[r] + sums[r * 128 + tx];
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
            float* const warps = (float*)(helve_shared + 50304);
            __syncthreads();
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
                for (int w_1 = 0; w_1 < 4; ++w_1) {
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
            scale[0] = rsqrtf(mine[0] * 0.00024414062f + 1e-06f);
            dot[0] = mine[1] * 0.00024414062f * scale[0] * scale[0];
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
}

extern "C" __global__ void __launch_bounds__(512)
rms_norm_backward_1(const float* __restrict__ part, float* DW) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    const int c = blockIdx.x;
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
                    helve_load<16>(part_v, part + (step * 1048576 + r * 524288 + tx / 4 * 4096 + c * 16 + tx % 4 * 4));
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
}
