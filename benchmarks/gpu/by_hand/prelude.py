"""CUDA text that kernels for Hopper share: barriers in shared memory, bulk copies by tensor maps, warpgroup products.

Each function is one PTX instruction, as in the PTX ISA, chapter 9; the kernels stand in `gemm.py` and `attention.py`.
Addresses are those of the shared window, 32 bits.
"""

PRELUDE = r"""
typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short u16;
struct alignas(64) TensorMap { char bytes[128]; };

__device__ __forceinline__ u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void init_barrier(u32 bar, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void expect_bytes(u32 bar, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ __forceinline__ void arrive(u32 bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
__device__ __forceinline__ void arrive_at(u32 bar, u32 block) {
  asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
               "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(bar), "r"(block) : "memory");
}
__device__ __forceinline__ void wait(u32 bar, u32 parity) {
  asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@!done bra again;\n}" ::"r"(bar), "r"(parity) : "memory");
}
__device__ __forceinline__ void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ __forceinline__ u32 block_in_cluster() {
  u32 rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

template <int id, int threads>
__device__ __forceinline__ void sync_named() {
  asm volatile("bar.sync %0, %1;" ::"n"(id), "n"(threads) : "memory");
}
template <int id, int threads>
__device__ __forceinline__ void arrive_named() {
  asm volatile("bar.arrive %0, %1;" ::"n"(id), "n"(threads) : "memory");
}

__device__ __forceinline__ void load_2d(u32 to, const TensorMap* map, u32 bar, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4}], [%2];"
               ::"r"(to), "l"(map), "r"(bar), "r"(x), "r"(y) : "memory");
}
__device__ __forceinline__ void load_2d_multicast(u32 to, const TensorMap* map, u32 bar, int x, int y, u16 blocks) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
               "[%0], [%1, {%3, %4}], [%2], %5;"
               ::"r"(to), "l"(map), "r"(bar), "r"(x), "r"(y), "h"(blocks) : "memory");
}
__device__ __forceinline__ void load_4d(u32 to, const TensorMap* map, u32 bar, int x, int y, int z, int w) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4, %5, %6}], [%2];"
               ::"r"(to), "l"(map), "r"(bar), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}
__device__ __forceinline__ void store_2d(const TensorMap* map, u32 from, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];"
               ::"l"(map), "r"(from), "r"(x), "r"(y) : "memory");
}
__device__ __forceinline__ void store_4d(const TensorMap* map, u32 from, int x, int y, int z, int w) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];"
               ::"l"(map), "r"(from), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}
__device__ __forceinline__ void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ __forceinline__ void wait_stores_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
__device__ __forceinline__ void wait_stores() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
__device__ __forceinline__ void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

template <int registers>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

__device__ __forceinline__ void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void products_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int pending>
__device__ __forceinline__ void products_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// The descriptor of an operand in shared memory with the swizzle over 128 bytes: where it begins, the distance of its
// slabs along the other dimension (leading), and of groups of eight rows (stride), in bytes.
__device__ __forceinline__ u64 descriptor(u32 begin, u32 leading, u32 stride) {
  return (u64)((begin & 0x3ffff) >> 4) | (u64)(leading >> 4) << 16 | (u64)(stride >> 4) << 32 | (u64)1 << 62;
}

__device__ __forceinline__ u32 packed(float low, float high) {
  u32 both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
__device__ __forceinline__ void store_matrices(u32 to, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
               ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
"""


def product(name: str, n: int, b_transposed: bool = False, a_in_registers: bool = False) -> str:
    """The function `name(d, a, b, adds)`: d (64, n) += a (64, 16) * b (16, n), bfloat16 with float32 sums.

    `d` is an array of n / 2 floats, `a` and `b` are descriptors; `a` is four registers of two elements each where it is
    in registers. Without `adds` d is overwritten. `b_transposed`: the n of B are contiguous, not its k.
    """
    count = n // 2
    results = ", ".join(f"%{i}" for i in range(count))
    a = ", ".join(f"%{count + i}" for i in range(4)) if a_in_registers else f"%{count}"
    a = f"{{{a}}}" if a_in_registers else a
    b = count + (4 if a_in_registers else 1)
    transposed = "0, 1" if b_transposed else "0, 0"
    flags = f"p, 1, 1, {transposed.split(', ')[1]}" if a_in_registers else f"p, 1, 1, {transposed}"
    outputs = ", ".join(f'"+f"(d[{i}])' for i in range(count))
    inputs = ", ".join(f'"r"(a[{i}])' for i in range(4)) if a_in_registers else '"l"(a)'
    kind = "const u32 (&a)[4]" if a_in_registers else "u64 a"
    return f"""
__device__ __forceinline__ void {name}(float (&d)[{count}], {kind}, u64 b, u32 adds) {{
  asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{b + 1}, 0;\\n"
               "wgmma.mma_async.sync.aligned.m64n{n}k16.f32.bf16.bf16 {{{results}}}, {a}, %{b}, {flags};\\n}}"
               : {outputs} : {inputs}, "l"(b), "r"(adds));
}}
"""
