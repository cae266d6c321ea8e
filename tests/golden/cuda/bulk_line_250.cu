extern "C" __global__ void __launch_bounds__(64)
main_0(const float* __restrict__ A, float* B) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    unsigned long long* const arrivals = (unsigned long long*)(helve_shared + 768);
    unsigned begun = 0, ended = 0;
    helve_open(arrivals, 16);
    float* const x = (float*)(helve_shared + 0);
    float* const y = (float*)(helve_shared + 384);
    float s[4];
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        s[v] = 0.0f;
    }
    for (int ahead = 0; ahead < 2; ++ahead) {
        if (tx == 0) {
            helve_copy_bulk(x + ahead * 32, A + ahead * 64, 128, arrivals + begun % 16);
        }
        helve_commit_bulk<16>(arrivals, begun, ended);
        if (tx == 0) {
            helve_copy_bulk(y + ahead * 32, A + (ahead * 64 + 32), 128, arrivals + begun % 16);
        }
        helve_commit_bulk<16>(arrivals, begun, ended);
    }
    for (int k = 0; k < 4; ++k) {
        if (k < 3) {
            helve_wait_bulk<16>(arrivals, begun, ended, 2);
        } else {
            helve_wait_bulk<16>(arrivals, begun, ended, 0);
        }
        __syncthreads();
        if (k < 2) {
            if (tx == 0) {
                helve_copy_bulk(x + (k + 2) % 3 * 32, A + (k * 64 + 128), 128, arrivals + begun % 16);
            }
            helve_commit_bulk<16>(arrivals, begun, ended);
            if (tx == 0) {
                helve_copy_bulk(y + (k + 2) % 3 * 32, A + (k * 64 + 160), min(88 - k * 64, 32) * 4, arrivals + begun % 16);
            }
            helve_commit_bulk<16>(arrivals, begun, ended);
            if (0 < k) {
                if (tx / 8 == 0) {
                    #pragma unroll
                    for (int v = 0; v < 4; ++v) {
                        if (23 < tx % 8 * 4 + v) {
                            if (tx % 8 * 4 + v < 26) {
                                y[tx % 8 * 4 + v] = A[tx % 8 * 4 + v + 224];
                            } else {
                                y[tx % 8 * 4 + v] = 0.0f;
                            }
                        }
                    }
                }
            }
        }
        {
            float y_v[4];
            helve_load<16>(y_v, y + (k % 3 * 32 + tx % 8 * 4));
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                s[v] = s[v] + x[k % 3 * 32 - tx % 8 * 4 - v + 31] - y_v[v];
            }
        }
    }
    if (tx / 8 == 0) {
        {
            float B_v[4];
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                B_v[v] = s[v];
            }
            helve_store<16>(B + tx % 8 * 4, B_v);
        }
    }
}
