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
// TMA copies from shared memory. The first thread of a warpgroup issues them; those between two commits are a group.
__device__ __forceinline__ void helve_commit_stores() {
    if (threadIdx.x % 128 == 0) asm volatile("cp.async.bulk.commit_group;" : : : "memory");
}
// Wait until all groups but the N youngest are complete, or have read their sources.
template <int N>
__device__ __forceinline__ void helve_wait_stores() {
    if (threadIdx.x % 128 == 0) asm volatile("cp.async.bulk.wait_group %0;" : : "n"(N) : "memory");
}
template <int N>
__device__ __forceinline__ void helve_wait_sources() {
    if (threadIdx.x % 128 == 0) asm volatile("cp.async.bulk.wait_group.read %0;" : : "n"(N) : "memory");
}
// CUtensorMap: a tensor's address, extents and strides, and the extents of a box.
struct __align__(64) helve_tensor_map { unsigned char bytes[128]; };
// Issues a copy of the box at `at` to shared memory, row-major; elements outside of the tensor become zero.
template <int R>
__device__ __forceinline__ void helve_load_box(void* to, const helve_tensor_map& from, const int (&at)[R],
                                               unsigned bytes, unsigned long long* arrivals) {
    const unsigned box = (unsigned)__cvta_generic_to_shared(to), barrier = (unsigned)__cvta_generic_to_shared(arrivals);
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" : : "r"(barrier), "r"(bytes) : "memory");
    if constexpr (R == 1) {
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%3}], [%2];"
                     : : "r"(box), "l"(&from), "r"(barrier), "r"(at[0]) : "memory");
    } else if constexpr (R == 2) {
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%3, %4}], [%2];"
                     : : "r"(box), "l"(&from), "r"(barrier), "r"(at[1]), "r"(at[0]) : "memory");
    } else if constexpr (R == 3) {
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%3, %4, %5}], [%2];"
                     : : "r"(box), "l"(&from), "r"(barrier), "r"(at[2]), "r"(at[1]), "r"(at[0]) : "memory");
    } else if constexpr (R == 4) {
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%3, %4, %5, %6}], [%2];"
                     : : "r"(box), "l"(&from), "r"(barrier), "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0])
                     : "memory");
    } else {
        asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%3, %4, %5, %6, %7}], [%2];"
                     : : "r"(box), "l"(&from), "r"(barrier), "r"(at[4]), "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0])
                     : "memory");
    }
}
// Issues a copy of a box from shared memory, row-major, to `at`; elements outside of the tensor are not written.
template <int R>
__device__ __forceinline__ void helve_store_box(const helve_tensor_map& to, const int (&at)[R], const void* from) {
    const unsigned box = (unsigned)__cvta_generic_to_shared(const_cast<void*>(from));
    if constexpr (R == 1) {
        asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%0, {%2}], [%1];"
                     : : "l"(&to), "r"(box), "r"(at[0]) : "memory");
    } else if constexpr (R == 2) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];"
                     : : "l"(&to), "r"(box), "r"(at[1]), "r"(at[0]) : "memory");
    } else if constexpr (R == 3) {
        asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];"
                     : : "l"(&to), "r"(box), "r"(at[2]), "r"(at[1]), "r"(at[0]) : "memory");
    } else if constexpr (R == 4) {
        asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];"
                     : : "l"(&to), "r"(box), "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0]) : "memory");
    } else {
        asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];"
                     : : "l"(&to), "r"(box), "r"(at[4]), "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0]) : "memory");
    }
}
// Makes the thread's writes visible to TMA copies that are issued after the next barrier.
__device__ __forceinline__ void helve_fence_async() { asm volatile("fence.proxy.async;" : : : "memory"); }

extern "C" __global__ void __launch_bounds__(64)
main_0(
    const float* __restrict__ A,
    float* B,
    const __grid_constant__ helve_tensor_map A_boxes,
    const __grid_constant__ helve_tensor_map B_boxes) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    unsigned long long* const arrivals = (unsigned long long*)(helve_shared + 4096);
    unsigned begun = 0, ended = 0;
    helve_open(arrivals, 16);
    float* const x = (float*)(helve_shared + 0);
    float* const y = (float*)(helve_shared + 3072);
    for (int k = 0; k < 2; ++k) {
        if (tx == 0) {
            helve_load_box(x + k * 256, A_boxes, {k * 8, 0}, 1024, arrivals + begun % 16);
        }
        helve_commit_bulk<16>(arrivals, begun, ended);
    }
    __syncthreads();
    for (int k = 0; k < 4; ++k) {
        if (tx == 0) {
            helve_load_box(x + (k + 2) % 3 * 256, A_boxes, {k * 8 + 16, 0}, 1024, arrivals + begun % 16);
        }
        helve_commit_bulk<16>(arrivals, begun, ended);
        helve_wait_bulk<16>(arrivals, begun, ended, 2);
        __syncthreads();
        for (int pass = 0; pass < 4; ++pass) {
            y[pass * 64 + tx / 32 * 32 + tx % 32] = x[k % 3 * 256 + pass * 64 + tx / 32 * 32 - tx % 32 + 31];
        }
        helve_fence_async();
        __syncthreads();
        if (tx == 0) {
            helve_store_box(B_boxes, {k * 8, 0}, y + 0);
        }
        helve_commit_stores();
        helve_wait_sources<0>();
    }
    helve_wait_bulk<16>(arrivals, begun, ended, 0);
}
