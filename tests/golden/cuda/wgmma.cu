struct helve_bfloat16 { unsigned short bits; };
__device__ __forceinline__ float helve_to_float(helve_bfloat16 x) {
    return __uint_as_float((unsigned int)x.bits << 16);
}
__device__ __forceinline__ helve_bfloat16 helve_to_bfloat16(float x) {
    helve_bfloat16 r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
    return r;
}
// Two floats, rounded, in a word.
__device__ __forceinline__ unsigned int helve_rounded_pair(helve_bfloat16, float low, float high) {
    unsigned int pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
// Keeps floats, rounded in pairs, in registers that are aligned to W bytes: from 4 on a pair stays a word.
template <int W, int N, class T>
__device__ __forceinline__ void helve_keep_rounded(T* to, const float (&from)[N]) {
#pragma unroll
    for (int i = 0; i < N; i += 2) {
        const unsigned int pair = helve_rounded_pair(T(), from[i], from[i + 1]);
        if constexpr (W >= 4) {
            *(unsigned int*)(to + i) = pair;
        } else {
            to[i].bits = (unsigned short)pair;
            to[i + 1].bits = (unsigned short)(pair >> 16);
        }
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
// A barrier of some warps of the block.
template <int ID, int THREADS>
__device__ __forceinline__ void helve_sync_role() {
    asm volatile("bar.sync %0, %1;" : : "n"(ID), "n"(THREADS) : "memory");
}
// The other direction of helve_load_matrices; sm_90 and later.
template <int COUNT, bool TRANSPOSED, class T>
__device__ __forceinline__ void helve_store_matrices(const T* from, T* row) {
    const unsigned int at = (unsigned int)__cvta_generic_to_shared(row);
    unsigned int r[4];
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        union { unsigned int whole; T parts[2]; } u;
        u.parts[0] = from[2 * i];
        u.parts[1] = from[2 * i + 1];
        r[i] = u.whole;
    }
    if constexpr (COUNT == 4 && TRANSPOSED) {
        asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
                     : : "r"(at), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
    } else if constexpr (COUNT == 4) {
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                     : : "r"(at), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
    } else if constexpr (COUNT == 2 && TRANSPOSED) {
        asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};"
                     : : "r"(at), "r"(r[0]), "r"(r[1]) : "memory");
    } else if constexpr (COUNT == 2) {
        asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};"
                     : : "r"(at), "r"(r[0]), "r"(r[1]) : "memory");
    } else if constexpr (TRANSPOSED) {
        asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};"
                     : : "r"(at), "r"(r[0]) : "memory");
    } else {
        asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};"
                     : : "r"(at), "r"(r[0]) : "memory");
    }
}
template <>
__device__ __forceinline__ void helve_group_product<128, helve_bfloat16, false, false>(float* c, unsigned long long a, unsigned long long b, int adds) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %66, 0; "
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, p, 1, 1, 0, 0; }"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]), "+f"(c[32]), "+f"(c[33]), "+f"(c[34]), "+f"(c[35]), "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]), "+f"(c[40]), "+f"(c[41]), "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]), "+f"(c[48]), "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55]), "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59]), "+f"(c[60]), "+f"(c[61]), "+f"(c[62]), "+f"(c[63])
        : "l"(a), "l"(b), "r"(adds));
}

extern "C" __global__ void __launch_bounds__(160)
main_0(
    helve_bfloat16* C,
    const helve_bfloat16* __restrict__ A,
    const helve_bfloat16* __restrict__ B,
    const __grid_constant__ helve_tensor_map C_boxes,
    const __grid_constant__ helve_tensor_map A_boxes,
    const __grid_constant__ helve_tensor_map B_boxes) {
    extern __shared__ __align__(1024) unsigned char helve_shared[];
    const int tx = threadIdx.x;
    const int j = blockIdx.x % 3;
    const int i = blockIdx.x / 3;
    helve_bfloat16* const staged = (helve_bfloat16*)(helve_shared + 0);
    helve_bfloat16* const staged_1 = (helve_bfloat16*)(helve_shared + 8192);
    helve_bfloat16* const a_slots = (helve_bfloat16*)(helve_shared + 16384);
    helve_bfloat16* const b_slots = (helve_bfloat16*)(helve_shared + 81920);
    unsigned long long* const ring = (unsigned long long*)(helve_shared + 147456);
    helve_open_ring(ring, 4, 4);
    __syncthreads();
    if (tx < 128) {
        helve_place next = {0, 0};
        helve_place freed = {0, 0};
        unsigned open = 0;
        helve_bfloat16* a = a_slots;
        helve_bfloat16* b = b_slots;
        float c[128];
        #pragma unroll
        for (int r = 0; r < 2; ++r) {
            #pragma unroll
            for (int r_1 = 0; r_1 < 2; ++r_1) {
                #pragma unroll
                for (int r_2 = 0; r_2 < 16; ++r_2) {
                    #pragma unroll
                    for (int v = 0; v < 2; ++v) {
                        c[r * 64 + r_2 * 4 + r_1 * 2 + v] = 0.0f;
                    }
                }
            }
        }
        helve_hold_registers<128>(c);
        for (int k = 0; k < 4; ++k) {
            const unsigned slot = helve_ring_wait<4>(ring, next, open);
            a = a_slots + slot * 8192;
            b = b_slots + slot * 8192;
            {
                const unsigned long long left = helve_descriptor<16, 1024, 128>(a + 0);
                const unsigned long long right = helve_descriptor<16, 1024, 128>(b + 0);
                helve_fence_products();
                helve_group_product<128, helve_bfloat16, false, false>(c, left, right, 1);
                helve_group_product<128, helve_bfloat16, false, false>(c + 64, left + 512, right, 1);
                helve_group_product<128, helve_bfloat16, false, false>(c, left + 2, right + 2, 1);
                helve_group_product<128, helve_bfloat16, false, false>(c + 64, left + 514, right + 2, 1);
                helve_group_product<128, helve_bfloat16, false, false>(c, left + 4, right + 4, 1);
                helve_group_product<128, helve_bfloat16, false, false>(c + 64, left + 516, right + 4, 1);
                helve_group_product<128, helve_bfloat16, false, false>(c, left + 6, right + 6, 1);
                helve_group_product<128, helve_bfloat16, false, false>(c + 64, left + 518, right + 6, 1);
            }
            helve_commit_products();
            helve_wait_for_products<1>();
            helve_hold_registers<128>(c);
            helve_ring_release<4>(ring, freed, open, 1);
        }
        helve_wait_for_products<0>();
        helve_hold_registers<128>(c);
        helve_ring_release<4>(ring, freed, open, 0);
        __align__(16) helve_bfloat16 rounded[128];
        #pragma unroll
        for (int r = 0; r < 2; ++r) {
            #pragma unroll
            for (int r_1 = 0; r_1 < 2; ++r_1) {
                #pragma unroll
                for (int r_2 = 0; r_2 < 16; ++r_2) {
                    {
                        float rounded_v[2];
                        #pragma unroll
                        for (int v = 0; v < 2; ++v) {
                            rounded_v[v] = c[r * 64 + r_2 * 4 + r_1 * 2 + v];
                        }
                        helve_keep_rounded<4>(rounded + (r * 64 + r_2 * 4 + r_1 * 2), rounded_v);
                    }
                }
            }
        }
        helve_wait_sources<0>();
        helve_store_matrices<4, false>(rounded, staged + (tx / 32 * 1024 + tx % 16 * 64 + ((tx / 16 % 2) ^ (tx % 8)) * 8));
        helve_store_matrices<4, false>(rounded + 8, staged + (tx / 32 * 1024 + tx % 16 * 64 + ((tx / 16 % 2 + 2) ^ (tx % 8)) * 8));
        helve_store_matrices<4, false>(rounded + 16, staged + (tx / 32 * 1024 + tx % 16 * 64 + ((tx / 16 % 2 + 4) ^ (tx % 8)) * 8));
        helve_store_matrices<4, false>(rounded + 24, staged + (tx / 32 * 1024 + tx % 16 * 64 + ((tx / 16 % 2 + 6) ^ (tx % 8)) * 8));
        helve_fence_async();
        helve_sync_role<1, 128>();
        if (tx == 0) {
            helve_store_box(C_boxes, {i * 128, j * 128}, staged + 0);
        }
        helve_commit_stores();
        helve_store_matrices<4, false>(rounded + 32, staged_1 + (tx / 32 * 1024 + tx % 16 * 64 + ((tx / 16 % 2) ^ (tx % 8)) * 8));
        helve_store_matrices<4, false>(rounded + 40, staged_1 + (tx / 32 * 1024 + tx % 16 * 64 + ((tx / 16 % 2 + 2) ^ (tx % 8)) * 8));
        helve_store_matrices<4, false>(rounded + 48, staged_1 + (tx / 32 * 1024 + tx % 16 * 64 + ((tx / 16 % 2 + 4) ^ (tx % 8)) * 8));
        helve_store_matrices<4, false>(rounded + 56, staged_1 + (tx / 32 * 1024 + tx % 16 * 64 + ((tx / 16 % 2 + 6) ^ (tx % 8)) * 8));
        helve_fence_async();
        helve_sync_role<1, 128>();
        if (tx == 0) {
            helve_store_box(C_boxes, {i * 128, j * 128 + 64}, staged_1 + 0);
        }
        helve_commit_stores();
        helve_wait_sources<1>();
        helve_sync_role<1, 128>();
        helve_store_matrices<4, false>(rounded + 64, staged + (tx / 32 * 1024 + tx % 16 * 64 + ((tx / 16 % 2) ^ (tx % 8)) * 8));
        helve_store_matrices<4, false>(rounded + 72, staged + (tx / 32 * 1024 + tx % 16 * 64 + ((tx / 16 % 2 + 2) ^ (tx % 8)) * 8));
        helve_store_matrices<4, false>(rounded + 80, staged + (tx / 32 * 1024 + tx % 16 * 64 + ((tx / 16 % 2 + 4) ^ (tx % 8)) * 8));
        helve_store_matrices<4, false>(rounded + 88, staged + (tx / 32 * 1024 + tx % 16 * 64 + ((tx / 16 % 2 + 6) ^ (tx % 8)) * 8));
        helve_fence_async();
        helve_sync_role<1, 128>();
        if (tx == 0) {
            helve_store_box(C_boxes, {i * 128 + 64, j * 128}, staged + 0);
        }
        helve_commit_stores();
        helve_wait_sources<1>();
        helve_sync_role<1, 128>();
        helve_store_matrices<4, false>(rounded + 96, staged_1 + (tx / 32 * 1024 + tx % 16 * 64 + ((tx / 16 % 2) ^ (tx % 8)) * 8));
        helve_store_matrices<4, false>(rounded + 104, staged_1 + (tx / 32 * 1024 + tx % 16 * 64 + ((tx / 16 % 2 + 2) ^ (tx % 8)) * 8));
        helve_store_matrices<4, false>(rounded + 112, staged_1 + (tx / 32 * 1024 + tx % 16 * 64 + ((tx / 16 % 2 + 4) ^ (tx % 8)) * 8));
        helve_store_matrices<4, false>(rounded + 120, staged_1 + (tx / 32 * 1024 + tx % 16 * 64 + ((tx / 16 % 2 + 6) ^ (tx % 8)) * 8));
        helve_fence_async();
        helve_sync_role<1, 128>();
        if (tx == 0) {
            helve_store_box(C_boxes, {i * 128 + 64, j * 128 + 64}, staged_1 + 0);
        }
        helve_commit_stores();
        helve_wait_sources<0>();
    }
    if (tx >= 128) {
        if (tx == 128) {
            helve_place next = {0, 0};
            helve_bfloat16* a = a_slots;
            helve_bfloat16* b = b_slots;
            for (int k = 0; k < 4; ++k) {
                helve_ring_acquire<4>(ring, next);
                a = a_slots + next.at * 8192;
                b = b_slots + next.at * 8192;
                helve_load_box(a + 0, A_boxes, {i * 128, k * 64}, 16384, ring + next.at);
                helve_load_box(b + 0, B_boxes, {j * 128, k * 64}, 16384, ring + next.at);
                helve_ring_commit<4>(ring, next);
            }
        }
    }
}
