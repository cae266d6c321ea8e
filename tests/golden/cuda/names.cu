extern "C" __global__ void __launch_bounds__(32)
names_0(const float* __restrict__ double_1, float* vhelve_load, long long blockIdx_1) {
    const int tx = threadIdx.x;
    const long long tx_1 = blockIdx_1 + 1;
    float a_b[1];
    {
        const float while_1 = double_1[tx] * 2.0f;
        a_b[0] = while_1 + (float)tx_1;
    }
    {
        const float while_1 = a_b[0] + 1.0f;
        vhelve_load[tx] = while_1;
    }
}
