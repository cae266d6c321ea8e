extern "C" __global__ void __launch_bounds__(256)
rms_norm_backward_0(
    const helve_bfloat16* __restrict__ X,
    const helve_bfloat16* __restrict__ DY,
    const helve_bfloat16* __restrict__ W,
    helve_bfloat16* __restrict__ DX,
    float* __restrict__ part,
    long long M) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    const int b = blockIdx.x;
    float dw[16];
    helve_bfloat16 x[16];
    helve_bfloat16 dy[16];
    float product[16];
    float scale[1];
    float dot[1];
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
            dw[r * 8 + v] = 0.0f;
        }
    }
    __align__(16) helve_bfloat16 next_x[16];
    __align__(16) helve_bfloat16 next_dy[16];
    if (b < M) {
        #pragma unroll
        for (int r = 0; r < 2; ++r) {
            helve_move<16, 8>(next_x + r * 8, X + (b * 4096 + r * 2048 + tx * 8));
        }
        #pragma unroll
        for (int r = 0; r < 2; ++r) {
            helve_move<16, 8>(next_dy + r * 8, DY + (b * 4096 + r * 2048 + tx * 8));
        }
    }
    for (long long step = 0; step < (M + 395) / 396; ++step) {
        const long long first = step * 396 + b;
        if (first < M) {
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    x[r * 8 + v] = next_x[r * 8 + v];
                }
            }
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    dy[r * 8 + v] = next_dy[r * 8 + v];
                }
            }
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                helve_move<16, 8>(next_x + r * 8, X + (min(first + 396, M - 1) * 4096 + r * 2048 + tx * 8));
            }
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                helve_move<16, 8>(next_dy + r * 8, DY + (min(first + 396, M - 1) * 4096 + r * 2048 + tx * 8));
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
            float* const warps = (float*)(helve_shared + 0);
            if (tx % 32 == 0) {
                warps[tx / 32] = partial[0];
            }
            partial[0] = 0.0f;
            __syncthreads();
            #pragma unroll
            for (int w = 0; w < 8; ++w) {
                partial[0] = partial[0] + warps[w];
            }
            scale[0] = partial[0];
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                {
                    helve_bfloat16 W_v[8];
                    helve_load<16>(W_v, W + (r * 2048 + tx * 8));
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
            float* const warps_1 = (float*)(helve_shared + 128);
            if (tx % 32 == 0) {
                warps_1[tx / 32] = partial_1[0];
            }
            partial_1[0] = 0.0f;
            __syncthreads();
            #pragma unroll
            for (int w = 0; w < 8; ++w) {
                partial_1[0] = partial_1[0] + warps_1[w];
            }
            dot[0] = partial_1[0];
            scale[0] = rsqrtf(scale[0] * 0.00024414062f + 1e-06f);
            dot[0] = dot[0] * 0.00024414062f * scale[0] * scale[0];
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    product[r * 8 + v] = helve_to_float(dy[r * 8 + v]) * helve_to_float(x[r * 8 + v]) * scale[0];
                }
            }
            float partial_2[16];
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    partial_2[r * 8 + v] = 0.0f;
                }
            }
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    partial_2[r * 8 + v] = partial_2[r * 8 + v] + product[r * 8 + v];
                }
            }
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    dw[r * 8 + v] = dw[r * 8 + v] + partial_2[r * 8 + v];
                }
            }
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                {
                    helve_bfloat16 W_v[8];
                    helve_load<16>(W_v, W + (r * 2048 + tx * 8));
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        x[r * 8 + v] = helve_to_bfloat16((helve_to_float(dy[r * 8 + v]) * helve_to_float(W_v[v]) - helve_to_float(x[r * 8 + v]) * dot[0]) * scale[0]);
                    }
                }
            }
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                {
                    helve_bfloat16 DX_v[8];
                    #pragma unroll
                    for (int v = 0; v < 8; ++v) {
                        DX_v[v] = x[r * 8 + v];
                    }
                    helve_store<16>(DX + (first * 4096 + r * 2048 + tx * 8), DX_v);
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
            helve_store<16>(part + (b * 4096 + r * 2048 + tx * 8), part_v);
        }
    }
}

extern "C" __global__ void __launch_bounds__(512)
rms_norm_backward_1(const float* __restrict__ part, float* __restrict__ DW) {
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
            if (step * 256 + r * 128 + tx / 4 < 396) {
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
                    more[v + 4] = 0.0f;
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
