struct helve_float16 { unsigned short bits; };
__device__ __forceinline__ float helve_to_float(helve_float16 x) {
    float r;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x.bits));
    return r;
}
__device__ __forceinline__ helve_float16 helve_to_float16(float x) {
    helve_float16 r;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
    return r;
}
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
// A barrier of all threads of the cluster.
__device__ __forceinline__ void helve_cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
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
// CUtensorMap: a tensor's address, extents and strides, and the extents of a box.
struct __align__(64) helve_tensor_map { unsigned char bytes[128]; };
// A coordinate that fits an int: those beyond are outside of every tensor.
__device__ __forceinline__ int helve_coordinate(long long i) {
    return (int)max(min(i, 0x7ffffe00ll), -0x80000000ll);
}
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
// The same to the shared memory of `blocks` of the cluster, a bit for each. As many boxes arrive here, `bytes` in all.
template <int R>
__device__ __forceinline__ void helve_share_box(void* to, const helve_tensor_map& from, const int (&at)[R],
                                                unsigned bytes, unsigned long long* arrivals, unsigned short blocks) {
    const unsigned box = (unsigned)__cvta_generic_to_shared(to), barrier = (unsigned)__cvta_generic_to_shared(arrivals);
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" : : "r"(barrier), "r"(bytes) : "memory");
    if constexpr (R == 1) {
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1, {%4}], [%2], %3;"
                     : : "r"(box), "l"(&from), "r"(barrier), "h"(blocks),
                     "r"(at[0]) : "memory");
    } else if constexpr (R == 2) {
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1, {%4, %5}], [%2], %3;"
                     : : "r"(box), "l"(&from), "r"(barrier), "h"(blocks),
                     "r"(at[1]), "r"(at[0]) : "memory");
    } else if constexpr (R == 3) {
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1, {%4, %5, %6}], [%2], %3;"
                     : : "r"(box), "l"(&from), "r"(barrier), "h"(blocks),
                     "r"(at[2]), "r"(at[1]), "r"(at[0]) : "memory");
    } else if constexpr (R == 4) {
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1, {%4, %5, %6, %7}], [%2], %3;"
                     : : "r"(box), "l"(&from), "r"(barrier), "h"(blocks),
                     "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0]) : "memory");
    } else {
        asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1, {%4, %5, %6, %7, %8}], [%2], %3;"
                     : : "r"(box), "l"(&from), "r"(barrier), "h"(blocks),
                     "r"(at[4]), "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0]) : "memory");
    }
}
// The descriptor of a matrix in shared memory that begins at `tile`: the distance of its slabs, of its groups of eight
// rows, and the bytes of a row in which units of 16 are permuted.
template <int LEADING, int STRIDE, int SWIZZLE>
__device__ __forceinline__ unsigned long long helve_descriptor(const void* tile) {
    const unsigned int at = (unsigned int)__cvta_generic_to_shared(tile);
    constexpr unsigned long long mode = SWIZZLE == 128 ? 1 : SWIZZLE == 64 ? 2 : SWIZZLE == 32 ? 3 : 0;
    return (unsigned long long)((at & 0x3ffff) >> 4) | (unsigned long long)(LEADING >> 4) << 16 |
           (unsigned long long)(STRIDE >> 4) << 32 | mode << 62;
}
// The number of the thread's warpgroup.
__device__ __forceinline__ int helve_warpgroup() { return __shfl_sync(0xffffffffu, (int)(threadIdx.x / 128), 0); }
// Registers whose uses the compiler moves neither behind the fence that follows nor in front of the wait before it.
__device__ __forceinline__ void helve_hold(float& x) { asm volatile("" : "+f"(x) : : "memory"); }
__device__ __forceinline__ void helve_hold(int& x) { asm volatile("" : "+r"(x) : : "memory"); }
__device__ __forceinline__ void helve_hold(unsigned int& x) { asm volatile("" : "+r"(x) : : "memory"); }
template <int COUNT, class T>
__device__ __forceinline__ void helve_hold_registers(T* registers) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) helve_hold(registers[i]);
}
__device__ __forceinline__ void helve_fence_products() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }
__device__ __forceinline__ void helve_commit_products() {
    asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
}
// Wait until all groups but the N youngest are complete.
template <int N>
__device__ __forceinline__ void helve_wait_for_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(N) : "memory");
}
// C (64, N) += A (64, K) @ B (K, N) by a warpgroup, N / 2 sums of each thread; `adds` 0: C = A @ B. A is a descriptor,
// or four words of each thread. A_LINES, B_LINES: rows in memory are along M and N, not along K.
template <int N, class T, bool A_LINES, bool B_LINES, class SUM, class A>
__device__ void helve_group_product(SUM* c, A a, unsigned long long b, int adds);
// A ring of S slots: an mbarrier for the data of each, at which one thread and a number of bytes arrive, then one for
// its room, at which each warp that takes the slot arrives.
__device__ __forceinline__ void helve_open_ring(unsigned long long* ring, int slots, int takers) {
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2 * slots; ++i) {
            const unsigned at = (unsigned)__cvta_generic_to_shared(ring + i);
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(at), "r"(i < slots ? 1 : takers) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
    }
}
// The slot that a side of the ring comes to next, and the parity of its phase.
struct helve_place { unsigned at, phase; };
template <int S>
__device__ __forceinline__ void helve_advance(helve_place& place) {
    if (++place.at == S) {
        place.at = 0;
        place.phase ^= 1;
    }
}
// Waits until the slot has been released, each for the first time at once.
template <int S>
__device__ __forceinline__ void helve_ring_acquire(unsigned long long* ring, const helve_place& place) {
    helve_arrived(ring + S + place.at, place.phase ^ 1);
}
// The bytes that copies wait for arrive later.
template <int S>
__device__ __forceinline__ void helve_ring_commit(unsigned long long* ring, helve_place& place) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(ring + place.at);
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(at) : "memory");
    helve_advance<S>(place);
}
// Waits until the slot is filled, and returns it.
template <int S>
__device__ __forceinline__ unsigned helve_ring_wait(unsigned long long* ring, helve_place& place, unsigned& open) {
    const unsigned slot = place.at;
    helve_arrived(ring + slot, place.phase);
    helve_advance<S>(place);
    ++open;
    return slot;
}
// Releases all slots that the warp has taken, the `pending` youngest aside.
template <int S>
__device__ __forceinline__ void helve_ring_release(unsigned long long* ring, helve_place& freed, unsigned& open,
                                                   unsigned pending) {
    __syncwarp();
    while (open > pending) {
        if (threadIdx.x % 32 == 0) {
            const unsigned at = (unsigned)__cvta_generic_to_shared(ring + S + freed.at);
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(at) : "memory");
        }
        helve_advance<S>(freed);
        --open;
    }
}
// As helve_ring_release, of a ring that `BLOCKS` blocks fill together: all of them are told.
template <int S, int BLOCKS>
__device__ __forceinline__ void helve_ring_release_all(unsigned long long* ring, helve_place& freed, unsigned& open,
                                                       unsigned pending) {
    __syncwarp();
    while (open > pending) {
        const unsigned block = threadIdx.x % 32;
        if (block < BLOCKS) {
            const unsigned at = (unsigned)__cvta_generic_to_shared(ring + S + freed.at);
            unsigned there;
            asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(block));
            asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" : : "r"(there) : "memory");
        }
        helve_advance<S>(freed);
        --open;
    }
}
template <>
__device__ __forceinline__ void helve_group_product<32, helve_float16, false, false>(float* c, unsigned long long a, unsigned long long b, int adds) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %18, 0; "
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
        "%16, %17, p, 1, 1, 0, 0; }"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15])
        : "l"(a), "l"(b), "r"(adds));
}

extern "C" __global__ void __launch_bounds__(160)
main_0(
    float* C,
    const helve_float16* __restrict__ A,
    const helve_float16* __restrict__ B,
    long long M,
    const __grid_constant__ helve_tensor_map A_boxes,
    const __grid_constant__ helve_tensor_map B_boxes) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    const int block = blockIdx.x;
    const int place = blockIdx.x % 2;
    helve_float16* const a_slots = (helve_float16*)(helve_shared + 0);
    helve_float16* const b_slots = (helve_float16*)(helve_shared + 12288);
    unsigned long long* const ring = (unsigned long long*)(helve_shared + 18432);
    helve_open_ring(ring, 3, 8);
    helve_cluster_sync();
    if (tx < 128) {
        helve_place next = {0, 0};
        helve_place freed = {0, 0};
        unsigned open = 0;
        helve_float16* a = a_slots;
        helve_float16* b = b_slots;
        float c[16];
        for (long long turn = 0; turn < (max((M + 127) / 128 * 2 - block / 2, (long long)0) + 1) / 2; ++turn) {
            const long long group = turn;
            const int j = block / 2;
            const int place_1 = block % 2;
            const long long i = group * 2 + place_1;
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                #pragma unroll
                for (int r_1 = 0; r_1 < 4; ++r_1) {
                    #pragma unroll
                    for (int v = 0; v < 2; ++v) {
                        c[r_1 * 4 + r * 2 + v] = 0.0f;
                    }
                }
            }
            helve_hold_registers<16>(c);
            for (int k = 0; k < 3; ++k) {
                const unsigned slot = helve_ring_wait<3>(ring, next, open);
                a = a_slots + slot * 2048;
                b = b_slots + slot * 1024;
                {
                    const unsigned long long left = helve_descriptor<16, 512, 64>(a + 0);
                    const unsigned long long right = helve_descriptor<16, 512, 64>(b + 0);
                    helve_fence_products();
                    helve_group_product<32, helve_float16, false, false>(c, left, right, 1);
                    helve_group_product<32, helve_float16, false, false>(c, left + 2, right + 2, 1);
                }
                helve_commit_products();
                helve_wait_for_products<1>();
                helve_hold_registers<16>(c);
                helve_ring_release_all<3, 2>(ring, freed, open, 1);
            }
            helve_wait_for_products<0>();
            helve_hold_registers<16>(c);
            helve_ring_release_all<3, 2>(ring, freed, open, 0);
            if (i < (M + 63) / 64) {
                #pragma unroll
                for (int r = 0; r < 2; ++r) {
                    #pragma unroll
                    for (int r_1 = 0; r_1 < 4; ++r_1) {
                        if (i * 64 + tx / 32 * 16 + r * 8 + tx / 4 % 8 < M) {
                            {
                                float C_v[2];
                                #pragma unroll
                                for (int v = 0; v < 2; ++v) {
                                    C_v[v] = c[r_1 * 4 + r * 2 + v];
                                }
                                helve_store<8>(C + (i * 4096 + tx / 32 * 1024 + r * 512 + tx / 4 % 8 * 64 + j * 32 + r_1 * 8 + tx % 4 * 2), C_v);
                            }
                        }
                    }
                }
            }
        }
    }
    if (tx >= 128) {
        if (tx == 128) {
            helve_place next = {0, 0};
            helve_float16* a = a_slots;
            helve_float16* b = b_slots;
            for (long long turn = 0; turn < (max((M + 127) / 128 * 2 - block / 2, (long long)0) + 1) / 2; ++turn) {
                const long long group = turn;
                const int j = block / 2;
                const int place_1 = block % 2;
                const long long i = group * 2 + place_1;
                for (int k = 0; k < 3; ++k) {
                    helve_ring_acquire<3>(ring, next);
                    a = a_slots + next.at * 2048;
                    b = b_slots + next.at * 1024;
                    helve_load_box(a + 0, A_boxes, {helve_coordinate(i * 64), k * 32}, 4096, ring + next.at);
                    for (int i_1 = 0; i_1 < 1; ++i_1) {
                        helve_share_box(b + place * 512, B_boxes, {i_1 * 32 + j * 32 + place * 16, k * 32}, 2048, ring + next.at, 3);
                    }
                    helve_ring_commit<3>(ring, next);
                }
            }
        }
    }
    helve_cluster_sync();
}
