extern "C" __global__ void __launch_bounds__(64)
cores_0(int* G_cores, const int* __restrict__ A, long long G_stride, long long first_core) {
    const int tx = threadIdx.x;
    const unsigned core = (unsigned)first_core + blockIdx.x;
    const int y = core % 3;
    const int x = core / 3;
    int* const G = (int*)((unsigned char*)G_cores + core * G_stride);
    G[tx] = (int)((unsigned int)A[x * 192 + y * 64 + tx] + (unsigned int)(int)(x * 10 + y));
}

extern "C" __global__ void __launch_bounds__(64)
cores_1(int* A, const int* __restrict__ G_cores, long long G_stride, long long first_core) {
    const int tx = threadIdx.x;
    const unsigned core = (unsigned)first_core + blockIdx.x;
    const int y = core % 3;
    const int x = core / 3;
    int* const G = (int*)((unsigned char*)G_cores + core * G_stride);
    A[x * 192 + y * 64 + tx] = G[63 - tx];
}
