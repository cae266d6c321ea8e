"""C = A * B^T by hand: the product of matrices that helve is to generate, as one text.

A is (M, K), B (N, K), C (M, N), bfloat16, row-major. Blocks are resident and take tiles in turn. A warpgroup whose only
thread copies, by tensor maps, fills a ring of `stages` slots; two consumer warpgroups multiply, each half of the rows.
The two blocks of a cluster have neighbouring tiles of rows and the same columns, so each copies half of B for both.
"""

from __future__ import annotations

from dataclasses import dataclass

from prelude import PRELUDE, product

BYTES = 2  # of an element


@dataclass(frozen=True)
class GemmShape:
    """Sizes of a GEMM kernel.

    Attributes:
        rows, columns, depth: of the tile of a block; rows 128, columns a multiple of 64 up to 256, depth 64.
        stages: slots of the ring.
        cluster: blocks that share the columns of B, 1 or 2.
        group: clusters of rows whose tiles follow each other, so that the operands of tiles that run at one time stay
            in the level 2 cache.
    """

    rows: int = 128
    columns: int = 256
    depth: int = 64
    stages: int = 4
    cluster: int = 2
    group: int = 8

    @property
    def slot_bytes(self) -> int:
        return (self.rows + self.columns) * self.depth * BYTES

    @property
    def staged_columns(self) -> int:
        """Columns of the result that wait in shared memory for their store, at a time."""
        return min(self.columns, 128)

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory; 1024 more, since its begin is aligned to the swizzle's period by hand."""
        return 1024 + self.stages * self.slot_bytes + self.rows * self.staged_columns * BYTES + 16 * self.stages


def gemm_text(s: GemmShape) -> str:
    """CUDA C of the kernel `gemm(maps of A, B and C, M, N, K)` for 384 threads a block."""
    half = s.columns // s.cluster  # rows of B that a block copies for all blocks of its cluster
    b_at = s.rows * s.depth * BYTES
    load_b = (f"load_2d_multicast(slot + {b_at} + rank * {half * s.depth * BYTES}, &B, full + 8 * at, k * {s.depth}, "
              f"column * {s.columns} + rank * {half}, {(1 << s.cluster) - 1});" if s.cluster > 1 else
              f"load_2d(slot + {b_at}, &B, full + 8 * at, k * {s.depth}, column * {s.columns});")
    release = (f"if (lane < {s.cluster}) arrive_at(empty + 8 * last, lane);" if s.cluster > 1 else
               "if (lane == 0) arrive(empty + 8 * last);")
    passes = s.columns // s.staged_columns
    boxes = s.staged_columns // 64
    store = "\n".join(
        f"          store_2d(&C, staging + {box * 64 * 128}, first_column + {box * 64}, row * {s.rows} + group * 64);"
        for box in range(boxes))
    return PRELUDE + product("multiply", s.columns) + f"""
struct Tiles {{
  int rows, columns;
  // Tiles of `group` clusters of rows follow each other, then those of the next columns.
  __device__ __forceinline__ void at(int tile, int& row, int& column) const {{
    const int of_group = {s.group} * columns;
    const int first = tile / of_group * {s.group};
    const int height = min({s.group}, rows - first), inside = tile % of_group;
    row = first + inside % height;
    column = inside / height;
  }}
}};

extern "C" __global__ void __cluster_dims__({s.cluster}, 1, 1) __launch_bounds__(384, 1)
gemm(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, const __grid_constant__ TensorMap C,
     int M, int N, int K) {{
  extern __shared__ char dynamic[];
  const u32 memory = (shared_address(dynamic) + 1023) & ~1023u;
  const u32 results = memory + {s.stages * s.slot_bytes};
  const u32 full = results + {s.rows * s.staged_columns * BYTES}, empty = full + {8 * s.stages};
  const u32 rank = {"block_in_cluster()" if s.cluster > 1 else "0"};
  const int group = threadIdx.x / 128, lane = threadIdx.x % 32;
  const int steps = (K + {s.depth - 1}) / {s.depth};
  const Tiles tiles{{(M + {s.rows * s.cluster - 1}) / {s.rows * s.cluster}, (N + {s.columns - 1}) / {s.columns}}};
  const int count = tiles.rows * tiles.columns, clusters = gridDim.x / {s.cluster};
  if (threadIdx.x == 0) {{
    for (int i = 0; i < {s.stages}; ++i) {{
      init_barrier(full + 8 * i, 1);
      init_barrier(empty + 8 * i, {8 * s.cluster});  // a lane of each consumer warp of the cluster
    }}
    publish_barriers();
  }}
  {"sync_cluster();" if s.cluster > 1 else "__syncthreads();"}
  if (group == 2) {{
    give_registers<40>();
    if (threadIdx.x == 256) {{
      int at = 0, phase = 1;
      for (int tile = blockIdx.x / {s.cluster}; tile < count; tile += clusters) {{
        int row, column;
        tiles.at(tile, row, column);
        row = row * {s.cluster} + rank;
        for (int k = 0; k < steps; ++k) {{
          wait(empty + 8 * at, phase);
          const u32 slot = memory + at * {s.slot_bytes};
          expect_bytes(full + 8 * at, {s.slot_bytes});
          load_2d(slot, &A, full + 8 * at, k * {s.depth}, row * {s.rows});
          {load_b}
          if (++at == {s.stages}) at = 0, phase ^= 1;
        }}
      }}
    }}
  }} else {{
    take_registers<232>();
    int at = 0, phase = 0;
    for (int tile = blockIdx.x / {s.cluster}; tile < count; tile += clusters) {{
      int row, column;
      tiles.at(tile, row, column);
      row = row * {s.cluster} + rank;
      float sums[{s.columns // 2}];
      int last = at;
      for (int k = 0; k < steps; ++k) {{
        wait(full + 8 * at, phase);
        const u32 slot = memory + at * {s.slot_bytes};
        products_begin();
        for (int part = 0; part < {s.depth // 16}; ++part) {{
          multiply(sums, descriptor(slot + group * {64 * s.depth * BYTES} + part * 32, 16, 1024),
                   descriptor(slot + {b_at} + part * 32, 16, 1024), k + part != 0);
        }}
        products_commit();
        if (k > 0) {{
          products_wait<1>();
          {release}
        }}
        last = at;
        if (++at == {s.stages}) at = 0, phase ^= 1;
      }}
      products_wait<0>();
      {release}
      const u32 staging = results + group * {64 * s.staged_columns * BYTES};
      const bool first_thread = threadIdx.x % 128 == 0;
      #pragma unroll
      for (int part = 0; part < {passes}; ++part) {{
        if (first_thread) wait_stores_read();
        if (group == 0) sync_named<1, 128>(); else sync_named<2, 128>();
        const int r = threadIdx.x % 128 / 32 * 16 + lane % 16;
        #pragma unroll
        for (int j = 0; j < {s.staged_columns // 16}; ++j) {{
          const int chunk = 2 * j + lane / 16;
          const float* x = sums + part * {s.staged_columns // 2} + 8 * j;
          store_matrices(staging + chunk / 8 * 8192 + r * 128 + ((chunk % 8) ^ (r % 8)) * 16, packed(x[0], x[1]),
                         packed(x[2], x[3]), packed(x[4], x[5]), packed(x[6], x[7]));
        }}
        fence_async_proxy();
        if (group == 0) sync_named<1, 128>(); else sync_named<2, 128>();
        if (first_thread) {{
          const int first_column = column * {s.columns} + part * {s.staged_columns};
{store}
          commit_stores();
        }}
      }}
    }}
    if (threadIdx.x % 128 == 0) wait_stores();
  }}
  {"sync_cluster();" if s.cluster > 1 else ""}
}}
"""
