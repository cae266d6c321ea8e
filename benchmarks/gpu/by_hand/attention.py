"""Attention forward by hand: softmax(Q K^T / sqrt(D)) V, as one text.

Q, K, V and the result are (batch, S, heads, D), bfloat16, D contiguous; K and V may have fewer heads. Blocks are
resident and take tiles of queries in turn, the longest first. One thread copies by tensor maps into rings of two slots
for K and V. Each consumer warpgroup has 64 queries. It begins the scores of the next keys before the values of the last
ones are summed, so that tensor cores work during its softmax; a token goes round the warpgroups, so that one multiplies
while another computes exponentials.
"""

from __future__ import annotations

from dataclasses import dataclass

from prelude import PRELUDE, product

BYTES = 2  # of an element


@dataclass(frozen=True)
class AttentionShape:
    """Sizes of an attention kernel.

    Attributes:
        depth: D, 64, 128 or 256.
        keys: of a tile, a multiple of 16.
        consumers: warpgroups with 64 queries each.
        causal: whether query i sees the keys up to i only.
        query_slots: tiles of queries in shared memory; with two the next one is copied early.
    """

    depth: int
    keys: int
    consumers: int = 2
    causal: bool = False
    query_slots: int = 1

    @property
    def queries(self) -> int:
        return 64 * self.consumers

    @property
    def query_bytes(self) -> int:
        return self.queries * self.depth * BYTES

    @property
    def key_bytes(self) -> int:
        return self.keys * self.depth * BYTES

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory; 1024 more, since its begin is aligned to the swizzle's period by hand."""
        return 1024 + self.query_slots * self.query_bytes + 4 * self.key_bytes + 128

    @property
    def threads(self) -> int:
        return 128 * (self.consumers + 1)

    @property
    def registers(self) -> tuple[int, int]:
        """Of a thread that copies, and of one that computes."""
        return (32, 160) if self.consumers == 3 else (24, 240)


def attention_text(s: AttentionShape) -> str:
    """CUDA C of the kernel `attention(maps of Q, K, V and the result, S, heads, queries a head of K, batch, scale)`.

    `scale` is that of the exponents, log2(e) / sqrt(D). The box of a map is 64 elements of one head, by the queries of
    a tile for Q, its keys for K and V, and 64 for the result.
    """
    slabs = s.depth // 64
    copying, computing = s.registers
    loads = {
        name: "\n".join(
            f"load_4d({to} + {slab * rows * 128}, &{tensor}, {bar}, {slab * 64}, {head}, {row}, batch);"
            for slab in range(slabs))
        for name, tensor, rows, to, bar, head, row in (
            ("q", "Q", s.queries, f"queries + q_at * {s.query_bytes}", "q_full + 8 * q_at", "head", "first"),
            ("k", "K", s.keys, f"keys + at * {s.key_bytes}", "k_full + 8 * at", "head / shared_by", f"j * {s.keys}"),
            ("v", "V", s.keys, f"values + v_at * {s.key_bytes}", "v_full + 8 * v_at", "head / shared_by",
             f"(j_v) * {s.keys}"))
    }
    take = "\n".join(f"{'else ' if g else ''}if (group == {g}) sync_named<{4 + g}, 256>();" for g in range(s.consumers))
    give = "\n".join(f"{'else ' if g else ''}if (group == {g}) arrive_named<{4 + (g + 1) % s.consumers}, 256>();"
                     for g in range(s.consumers))
    together = "\n".join(f"{'else ' if g else ''}if (group == {g}) sync_named<{1 + g}, 128>();"
                         for g in range(s.consumers))
    last = f"(min(S, first + {s.queries}) + {s.keys - 1}) / {s.keys}" if s.causal else f"(S + {s.keys - 1}) / {s.keys}"
    beyond = f"j * {s.keys} + {s.keys} > S" + (f" || j * {s.keys} + {s.keys} > first + group * 64" if s.causal else "")
    limit = "min(S, row + 1)" if s.causal else "S"
    limit_8 = "min(S, row + 9)" if s.causal else "S"
    section = f"max(1, min(heads * batches, (24 << 20) / (S * {4 * s.depth})))" if s.causal else "1"
    # Heads whose keys and values stay in the level 2 cache together; of these the longest tiles come first.
    place = f"""
  const int tiles = (S + {s.queries - 1}) / {s.queries};
  const int count = tiles * heads * batches;
  const int section = {section};
  const auto place = [&](int tile, int& first, int& head, int& batch) {{
    const int of_section = section * tiles, begin = tile / of_section * section;
    const int width = min(section, heads * batches - begin), inside = tile % of_section;
    {"first = (tiles - 1 - inside / width) * " + str(s.queries) + ";" if s.causal else
     "first = inside / width * " + str(s.queries) + ";"}
    const int which = begin + inside % width;
    head = which % heads, batch = which / heads;
  }};
  // Every other turn goes backwards, so that no block has the longest tile each time.
  const auto dealt = [&](int turn) {{
    return turn * gridDim.x + (turn % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
  }};"""
    return PRELUDE + product("score", s.keys) + product("add_values", s.depth, b_transposed=True,
                                                        a_in_registers=True) + f"""
struct Rows {{ float most[2], sum[2]; }};

// Exponentials of scores, in place; what earlier sums are multiplied by.
__device__ __forceinline__ void softmax_step(float (&x)[{s.keys // 2}], Rows& rows, float scale, float (&before)[2]) {{
  #pragma unroll
  for (int r = 0; r < 2; ++r) {{
    float most = rows.most[r];
    #pragma unroll
    for (int i = 2 * r; i < {s.keys // 2}; i += 4) most = fmaxf(most, fmaxf(x[i], x[i + 1]));
    most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
    most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
    const float shown = most == -__int_as_float(0x7f800000) ? 0.f : most * scale;
    before[r] = exp2_fast(rows.most[r] * scale - shown);
    rows.most[r] = most;
    float sum = rows.sum[r] * before[r];
    #pragma unroll
    for (int i = 2 * r; i < {s.keys // 2}; i += 4) {{
      x[i] = exp2_fast(x[i] * scale - shown);
      x[i + 1] = exp2_fast(x[i + 1] * scale - shown);
      sum += x[i] + x[i + 1];
    }}
    rows.sum[r] = sum;
  }}
}}

extern "C" __global__ void __launch_bounds__({s.threads}, 1)
attention(const __grid_constant__ TensorMap Q, const __grid_constant__ TensorMap K, const __grid_constant__ TensorMap V,
          const __grid_constant__ TensorMap O, int S, int heads, int shared_by, int batches, float scale) {{
  extern __shared__ char dynamic[];
  const u32 queries = (shared_address(dynamic) + 1023) & ~1023u;
  const u32 keys = queries + {s.query_slots * s.query_bytes}, values = keys + {2 * s.key_bytes};
  const u32 q_full = values + {2 * s.key_bytes}, q_empty = q_full + 16, k_full = q_full + 32, k_empty = q_full + 48;
  const u32 v_full = q_full + 64, v_empty = q_full + 80;
  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0), lane = threadIdx.x % 32;
  {place}
  if (threadIdx.x == 0) {{
    for (int i = 0; i < 2; ++i) {{
      init_barrier(q_full + 8 * i, 1), init_barrier(q_empty + 8 * i, {s.consumers});
      init_barrier(k_full + 8 * i, 1), init_barrier(k_empty + 8 * i, {4 * s.consumers});
      init_barrier(v_full + 8 * i, 1), init_barrier(v_empty + 8 * i, {4 * s.consumers});
    }}
    publish_barriers();
  }}
  __syncthreads();
  if (group == {s.consumers}) {{
    give_registers<{copying}>();
    if (threadIdx.x == {128 * s.consumers}) {{
      int at = 0, phase = 1, v_at = 0, v_phase = 1, q_at = 0, q_phase = 1;
      for (int turn = 0, tile; (tile = dealt(turn)) < count; ++turn) {{
        int first, head, batch;
        place(tile, first, head, batch);
        wait(q_empty + 8 * q_at, q_phase);
        expect_bytes(q_full + 8 * q_at, {s.query_bytes});
        {loads["q"]}
        if (++q_at == {s.query_slots}) q_at = 0, q_phase ^= 1;
        for (int j = {last} - 1; j >= -1; --j) {{
          if (j >= 0) {{
            wait(k_empty + 8 * at, phase);
            expect_bytes(k_full + 8 * at, {s.key_bytes});
            {loads["k"]}
            if (++at == 2) at = 0, phase ^= 1;
          }}
          const int j_v = j + 1;
          if (j_v < {last}) {{
            wait(v_empty + 8 * v_at, v_phase);
            expect_bytes(v_full + 8 * v_at, {s.key_bytes});
            {loads["v"]}
            if (++v_at == 2) v_at = 0, v_phase ^= 1;
          }}
        }}
      }}
    }}
  }} else {{
    take_registers<{computing}>();
    int at = 0, phase = 0, v_at = 0, v_phase = 0, q_at = 0, q_phase = 0;
    if (group == {s.consumers - 1}) arrive_named<4, 256>();
    for (int turn = 0, tile; (tile = dealt(turn)) < count; ++turn) {{
      int first, head, batch;
      place(tile, first, head, batch);
      const u32 mine = queries + q_at * {s.query_bytes} + group * 8192;
      const int row = first + group * 64 + threadIdx.x % 128 / 32 * 16 + lane / 4;
      const float nothing = -__int_as_float(0x7f800000);
      Rows rows = {{{{nothing, nothing}}, {{0.f, 0.f}}}};
      float sums[{s.depth // 2}], x[{s.keys // 2}], before[2];
      u32 weights[{s.keys // 16}][4];
      int j = {last} - 1;
      const auto begin_scores = [&] {{
        #pragma unroll
        for (int part = 0; part < {s.depth // 16}; ++part) {{
          score(x, descriptor(mine + part / 4 * {s.queries * 128} + part % 4 * 32, 16, 1024),
                descriptor(keys + at * {s.key_bytes} + part / 4 * {s.keys * 128} + part % 4 * 32, 16, 1024), part != 0);
        }}
        products_commit();
      }};
      const auto begin_sums = [&](u32 adds) {{
        #pragma unroll
        for (int part = 0; part < {s.keys // 16}; ++part) {{
          add_values(sums, weights[part], descriptor(values + v_at * {s.key_bytes} + part * 2048, {s.keys * 128}, 1024),
                     adds | (part != 0));
        }}
        products_commit();
      }};
      const auto release_keys = [&] {{
        if (lane == 0) arrive(k_empty + 8 * at);
        if (++at == 2) at = 0, phase ^= 1;
      }};
      const auto release_values = [&] {{
        if (lane == 0) arrive(v_empty + 8 * v_at);
        if (++v_at == 2) v_at = 0, v_phase ^= 1;
      }};
      const auto hide = [&] {{
        if ({beyond}) {{
          const int most = {limit} - j * {s.keys} - lane % 4 * 2, most_8 = {limit_8} - j * {s.keys} - lane % 4 * 2;
          #pragma unroll
          for (int i = 0; i < {s.keys // 8}; ++i) {{
            if (8 * i >= most) x[4 * i] = nothing;
            if (8 * i + 1 >= most) x[4 * i + 1] = nothing;
            if (8 * i >= most_8) x[4 * i + 2] = nothing;
            if (8 * i + 1 >= most_8) x[4 * i + 3] = nothing;
          }}
        }}
      }};
      const auto pack = [&] {{
        #pragma unroll
        for (int i = 0; i < {s.keys // 16}; ++i) {{
          #pragma unroll
          for (int w = 0; w < 4; ++w) weights[i][w] = packed(x[8 * i + 2 * w], x[8 * i + 2 * w + 1]);
        }}
      }};
      wait(q_full + 8 * q_at, q_phase);
      wait(k_full + 8 * at, phase);
      {take}
      products_begin();
      begin_scores();
      {give}
      products_wait<0>();
      release_keys();
      hide();
      softmax_step(x, rows, scale, before);
      pack();
      u32 adds = 0;
      for (--j; j >= 0; --j) {{
        wait(k_full + 8 * at, phase);
        {take}
        products_begin();
        begin_scores();
        wait(v_full + 8 * v_at, v_phase);
        products_begin();
        begin_sums(adds);
        {give}
        adds = 1;
        products_wait<1>();
        release_keys();
        hide();
        softmax_step(x, rows, scale, before);
        products_wait<0>();
        release_values();
        pack();
        #pragma unroll
        for (int i = 0; i < {s.depth // 2}; ++i) sums[i] *= before[i / 2 % 2];
      }}
      wait(v_full + 8 * v_at, v_phase);
      products_begin();
      begin_sums(adds);
      #pragma unroll
      for (int r = 0; r < 2; ++r) {{
        rows.sum[r] += __shfl_xor_sync(~0u, rows.sum[r], 1);
        rows.sum[r] += __shfl_xor_sync(~0u, rows.sum[r], 2);
        before[r] = 1.f / rows.sum[r];
      }}
      products_wait<0>();
      release_values();
      const int r = threadIdx.x % 128 / 32 * 16 + lane % 16;
      #pragma unroll
      for (int i = 0; i < {s.depth // 16}; ++i) {{
        const int chunk = 2 * i + lane / 16;
        const float* y = sums + 8 * i;
        store_matrices(mine + chunk / 8 * {s.queries * 128} + r * 128 + ((chunk % 8) ^ (r % 8)) * 16,
                       packed(y[0] * before[0], y[1] * before[0]), packed(y[2] * before[1], y[3] * before[1]),
                       packed(y[4] * before[0], y[5] * before[0]), packed(y[6] * before[1], y[7] * before[1]));
      }}
      fence_async_proxy();
      {together}
      if (threadIdx.x % 128 == 0) {{
        for (int slab = 0; slab < {slabs}; ++slab) {{
          store_4d(&O, mine + slab * {s.queries * 128}, slab * 64, head, first + group * 64, batch);
        }}
        commit_stores();
        wait_stores_read();
        arrive(q_empty + 8 * q_at);
      }}
      if (++q_at == {s.query_slots}) q_at = 0, q_phase ^= 1;
    }}
    if (group == 0) sync_named<4, 256>();
    if (threadIdx.x % 128 == 0) wait_stores();
  }}
}}
"""
