// N bytes that are moved at once.
template <int N> struct helve_word;
template <> struct helve_word<2> { typedef unsigned short type; };
template <> struct helve_word<4> { typedef unsigned int type; };
template <> struct helve_word<8> { typedef uint2 type; };
template <> struct helve_word<16> { typedef uint4 type; };
// Stores N elements to memory that is aligned to W bytes, W bytes at a time.
template <int W, int N, class T>
__device__ __forceinline__ void helve_store(T* to, const T (&from)[N]) {
    typedef typename helve_word<W>::type word;
    constexpr int count = W / sizeof(T);
#pragma unroll
    for (int i = 0; i < N; i += count) {
        union { word whole; T parts[count]; } u;
#pragma unroll
        for (int j = 0; j < count; ++j) u.parts[j] = from[i + j];
        *(word*)(to + i) = u.whole;
    }
}
// Initializes mbarriers at which one thread and a number of bytes arrive.
__device__ __forceinline__ void helve_open(unsigned long long* arrivals, int count) {
    if (threadIdx.x == 0) {
        for (int i = 0; i < count; ++i) {
            const unsigned at = (unsigned)__cvta_generic_to_shared(arrivals + i);
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" : : "r"(at) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
    }
}
// Waits until the mbarrier's phase of this parity is complete.
__device__ __forceinline__ void helve_arrived(unsigned long long* arrivals, unsigned parity) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(arrivals);
    unsigned done;
    do {
        asm volatile("{\n\t.reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t}"
                     : "=r"(done) : "r"(at), "r"(parity) : "memory");
    } while (!done);
}
// TMA copies to shared memory. Thread 0 issues them; those between two commits are a group. Group g uses mbarrier g % S
// in its phase g / S, which completes when the thread has committed and all bytes have arrived. S is a power of two; a
// phase completes before the next group uses the mbarrier.
template <int S>
__device__ __forceinline__ void helve_end_group(unsigned long long* arrivals, unsigned& ended) {
    if (threadIdx.x == 0) helve_arrived(arrivals + ended % S, ended / S & 1);
    ++ended;
}
template <int S>
__device__ __forceinline__ void helve_commit_bulk(unsigned long long* arrivals, unsigned& begun, unsigned& ended) {
    if (threadIdx.x == 0) {
        const unsigned at = (unsigned)__cvta_generic_to_shared(arrivals + begun % S);
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(at) : "memory");
    }
    if (++begun - ended == S) helve_end_group<S>(arrivals, ended);
}
// Waits until all groups but the `pending` youngest are complete; a barrier makes that visible to the other threads.
template <int S>
__device__ __forceinline__ void helve_wait_bulk(unsigned long long* arrivals, unsigned begun, unsigned& ended,
                                                unsigned pending) {
    while (begun - ended > pending) helve_end_group<S>(arrivals, ended);
}
// Issues a copy of bytes to shared memory: a multiple of 16, both sides aligned to 16.
__device__ __forceinline__ void helve_copy_bulk(void* to, const void* from, unsigned bytes,
                                                unsigned long long* arrivals) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(to), barrier = (unsigned)__cvta_generic_to_shared(arrivals);
    if (bytes == 0) return;
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" : : "r"(barrier), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 : : "r"(at), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

extern "C" __global__ void __launch_bounds__(64)
main_0(const float* __restrict__ A, float* B) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    unsigned long long* const arrivals = (unsigned long long*)(helve_shared + 8192);
    unsigned begun = 0, ended = 0;
    helve_open(arrivals, 16);
    float* const x = (float*)(helve_shared + 0);
    if (tx == 0) {
        helve_copy_bulk(x + 0, A + 0, 4096, arrivals + begun % 16);
    }
    helve_commit_bulk<16>(arrivals, begun, ended);
    for (int k = 0; k < 5; ++k) {
        if (k < 4) {
            __syncthreads();
            if (tx == 0) {
                helve_copy_bulk(x + (k + 1) % 2 * 1024, A + (k * 1024 + 1024), 4096, arrivals + begun % 16);
            }
            helve_commit_bulk<16>(arrivals, begun, ended);
            helve_wait_bulk<16>(arrivals, begun, ended, 1);
        } else {
            helve_wait_bulk<16>(arrivals, begun, ended, 0);
        }
        __syncthreads();
        for (int pass = 0; pass < 4; ++pass) {
            {
                float B_v[4];
                #pragma unroll
                for (int v = 0; v < 4; ++v) {
                    B_v[v] = x[k % 2 * 1024 - pass * 256 - tx * 4 - v + 1023];
                }
                helve_store<16>(B + (k * 1024 + pass * 256 + tx * 4), B_v);
            }
        }
    }
}
