extern "C" __global__ void __launch_bounds__(64)
collatz_0(const long long* __restrict__ A, int* B) {
    const int tx = threadIdx.x;
    const int b = blockIdx.x;
    {
        long long x[2];
        x[0] = A[b * 64 + tx];
        x[1] = 0ll;
        while (x[0] > 1ll) {
            x[0] = (x[0] & 1ll) == 0ll ? x[0] >> 1 : (long long)((unsigned long long)x[0] * 3ull + 1ull);
            x[1] = (long long)((unsigned long long)x[1] + 1ull);
        }
        B[b * 64 + tx] = (int)x[1];
    }
}
