extern "C" __global__ void __launch_bounds__(64)
integers_0(const int* A, unsigned long long* C, signed char* B, int* D) {
    const int tx = threadIdx.x;
    {
        const int a = A[tx];
        C[(tx * 5 - 70) & 63] = ((unsigned long long)a * 3ull) >> 2ull;
        B[tx] = (signed char)(-(unsigned int)B[tx] + 1u);
        D[63 - tx] = (int)((unsigned int)max((int)((unsigned int)a * (unsigned int)a + 7u), helve_floor_div<int>(a, 3)) << 1u);
        if (helve_floor_div<int>(tx - 40, 7) == -2) {
            D[63 - tx] = ~a;
        }
    }
}
