extern "C" __global__ void __launch_bounds__(64)
row_maxima_0(const helve_float16* __restrict__ A, unsigned char* C, double* B) {
    const int tx = threadIdx.x;
    const int b = blockIdx.x;
    helve_float16 m[1];
    helve_float16 t[1];
    unsigned char f[2];
    {
        m[0] = helve_to_float16(-helve_infinity());
        for (int r = 0; r < 4; ++r) {
            m[0] = helve_to_float16(helve_max(helve_to_float(m[0]), helve_to_float(A[b * 256 + tx / 32 * 128 + r * 32 + tx % 32])));
        }
    }
    #pragma unroll
    for (int k = 0; k < 5; ++k) {
        t[0] = helve_shuffle_bits_xor(m[0], 16 >> k);
        m[0] = helve_to_float16(helve_max(helve_to_float(m[0]), helve_to_float(t[0])));
    }
    f[0] = helve_to_float(m[0]) > 1.0f;
    f[1] = helve_shuffle_xor(f[0], 1);
    {
        C[b * 64 + tx / 32 * 32 + tx % 32] = f[0] != 0 && !(f[1] != 0);
        if (tx % 32 == 0) {
            B[b * 2 + tx / 32] = (double)helve_to_float(m[0]) / 3.0;
        }
    }
}
