"""Mesh functions as whole programs.

Every collective on meshes that are not square, inside and outside of loops, and what is kept across them; every way to
shard.
"""

import helve
import numpy as np
import pytest
from differential import check, dtype_of, sample
from helve import T

MESHES = [(1, 1), (2, 3), (3, 2), (1, 4)]
AXES = ["x", "y", "all"]


def ident(value):
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


def groups(shape, axis):
    """Lists of core coordinates, each list in order of the index in the group."""
    rows, cols = shape
    if axis == "x":
        return [[(r, c) for r in range(rows)] for c in range(cols)]
    if axis == "y":
        return [[(r, c) for c in range(cols)] for r in range(rows)]
    return [[(r, c) for r in range(rows) for c in range(cols)]]


def group_of(shape, axis):
    return len(groups(shape, axis)[0])


def on_cores(shape, axis, blocks, collective):
    """`collective(list of blocks) -> list of blocks` in each group; blocks are indexed [row, column]."""
    out = {}
    for group in groups(shape, axis):
        for core, value in zip(group, collective([blocks[c] for c in group])):
            out[core] = value
    return np.asarray([[out[r, c] for c in range(shape[1])] for r in range(shape[0])])


def program_of(shape, src, dst, body, dtype="float32", head="", turns=1):
    """One core's part of A (rows, columns, turns, *src) goes through `body` from S to D and to B (rows, columns, turns,
    *dst).
    """
    rows, cols = shape
    a, b = (rows, cols, turns, *src), (rows, cols, turns, *dst)
    ones = lambda t: ", ".join(["1"] * 3 + [str(n) for n in t])  # noqa: E731
    lines = "".join(f"            {line}\n" for line in body)
    all_of = lambda t: ", ".join([":"] * len(t))  # noqa: E731
    return helve.parse(
        f'@T.prim_func\ndef main(A: T.Tensor({a}, "{dtype}"), B: T.Tensor({b}, "{dtype}")):\n'
        f'    T.annotate_mesh_tensor({{A: {{"sharding": {{"x": 0, "y": 1}}, "tiling": [{ones(src)}]}}, '
        f'B: {{"sharding": {{"x": 0, "y": 1}}, "tiling": [{ones(dst)}]}}}}, nrows={rows}, ncols={cols})\n'
        f"    with T.Kernel({rows}, {cols}) as (r, c):\n"
        f'        S = T.alloc_shared({tuple(src)}, "{dtype}")\n        D = T.alloc_shared({tuple(dst)}, "{dtype}")\n'
        f"        {head}\n        for t in T.Persistent([{turns}]):\n            T.copy(A[r, c, t, {all_of(src)}], S)\n"
        f"{lines}"
        f"            T.copy(D, B[r, c, t, {all_of(dst)}])\n"
    )


def run(shape, axis, src, dst, statement, collective, dtype="float32", turns=5, chunk=1, **options):
    body = [f"T.comm.{statement}"]
    program = program_of(shape, src, dst, body, dtype, "pass", turns)
    a = sample((*shape, turns, *src), dtype)
    b = np.zeros((*shape, turns, *dst), dtype_of(dtype))
    wanted = b.copy()
    for t in range(turns):
        wanted[:, :, t] = on_cores(shape, axis, a[:, :, t], collective)
    check(program, [a, b], {1: wanted}, mesh=helve.Mesh(shape), chunk=chunk, **options)


@pytest.fixture(params=MESHES, ids=ident)
def mesh(request):
    return request.param


@pytest.mark.parametrize("axis", AXES)
def test_all_gather(mesh, axis):
    k = group_of(mesh, axis)
    chunk = 1 + k % 3
    run(mesh, axis, (3, 2), (3, 2, k), f'all_gather(S, D, axis="{axis}")', lambda xs: [np.stack(xs, -1)] * k,
        chunk=chunk)
    run(mesh, axis, (3, 2), (k, 3, 2), f'all_gather(S, D, axis="{axis}", dim=0)', lambda xs: [np.stack(xs)] * k,
        chunk=chunk)
    run(mesh, axis, (3, 2), (3, 2 * k), f'all_gather(S, D, axis="{axis}", dim=1)',
        lambda xs: [np.concatenate(xs, 1)] * k, chunk=chunk)


def combined(op, xs):
    table = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
    wide = [x.astype(np.float64) if x.dtype.kind not in "iu" else x for x in xs]
    return table[op].reduce(np.stack(wide), axis=0,
                            **({"dtype": xs[0].dtype} if xs[0].dtype.kind in "iu" and op in ("sum", "prod") else {}))


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize(("op", "dtype", "chunk"),
                         [("sum", "float32", 2), ("prod", "int8", 1), ("max", "bfloat16", 1), ("min", "float16", 3)])
def test_all_reduce(mesh, axis, op, dtype, chunk):
    k = group_of(mesh, axis)
    run(mesh, axis, (7,), (7,), f'all_reduce(S, D, op="{op}", axis="{axis}")', lambda xs: [combined(op, xs)] * k, dtype,
        chunk=chunk)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize(("op", "dtype"), [("sum", "float64"), ("max", "int32"), ("sum", "bfloat16")])
def test_reduce_scatter(mesh, axis, op, dtype):
    k = group_of(mesh, axis)
    chunk = 1 + k % 3
    run(mesh, axis, (2 * k, 3), (2, 3), f'reduce_scatter(S, D, op="{op}", axis="{axis}", dim=0)',
        lambda xs: np.split(combined(op, xs), k), dtype, chunk=chunk)
    whole = lambda xs: list(np.moveaxis(combined(op, xs), -1, 0))  # noqa: E731
    run(mesh, axis, (2, 3, k), (2, 3), f'reduce_scatter(S, D, op="{op}", axis="{axis}")', whole, dtype, chunk=chunk)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("dim", [0, -1])
def test_all_to_all(mesh, axis, dim):
    k = group_of(mesh, axis)
    shape = [3, 2]
    shape[dim] *= k

    def exchange(xs):
        parts = [np.split(x, k, dim) for x in xs]
        return [np.concatenate([parts[source][me] for source in range(k)], dim) for me in range(k)]

    run(mesh, axis, tuple(shape), tuple(shape), f'all_to_all(S, D, axis="{axis}", dim={dim})', exchange,
        chunk=1 + k % 3)


@pytest.mark.parametrize("axis", AXES)
def test_broadcast_and_permute(mesh, axis):
    k = group_of(mesh, axis)
    run(mesh, axis, (3, 5), (3, 5), f'broadcast(S, D, {k - 1}, axis="{axis}")', lambda xs: [xs[k - 1]] * k, "int64",
        chunk=2)
    for shift in (-1, 2 * k + 1):
        statement = f'permute(S, D, shift={shift}, axis="{axis}")'
        run(mesh, axis, (3, 5), (3, 5), statement, lambda xs: [xs[(i - shift) % k] for i in range(k)], "float16",
            chunk=1 + k % 3)


@pytest.mark.parametrize("chunk", [1, 2])
def test_put_and_barrier(mesh, chunk):
    rows, cols = mesh
    source, target = (rows - 1, 0), (0, cols - 1)
    body = [f"T.comm.barrier({axis})" for axis in ("", 'axis="x"', 'axis="y"')]
    body += ["T.fill(D, 0.5)", f"T.comm.put(S, D, {list(source)}, {list(target)})"]
    program = program_of(mesh, (4,), (4,), body, turns=3)
    a = sample((*mesh, 3, 4))
    b = np.zeros_like(a)
    wanted = np.full_like(a, 0.5)
    wanted[target] = a[source]
    check(program, [a, b], {1: wanted}, mesh=helve.Mesh(mesh), chunk=chunk)


def test_in_place(mesh):
    body = ['T.comm.all_reduce(S, S, axis="x")', 'T.comm.permute(S, S, axis="y")',
            "T.comm.broadcast(S[1:3], S[2:4], 0)", "T.copy(S, D)"]
    program = program_of(mesh, (4,), (4,), body, "int32", turns=2)
    a = sample((*mesh, 2, 4), "int32")
    wanted = np.zeros_like(a)
    for t in range(2):
        s = on_cores(mesh, "x", a[:, :, t], lambda xs: [sum(xs)] * len(xs))
        s = on_cores(mesh, "y", s, lambda xs: [xs[i - 1] for i in range(len(xs))])
        part = s[0, 0, 1:3].copy()
        s[:, :, 2:4] = part
        wanted[:, :, t] = s
    check(program, [a, np.zeros_like(a)], {1: wanted}, mesh=helve.Mesh(mesh), chunk=2)


@pytest.mark.parametrize("chunk", [1, 3])
def test_values_kept_across_collectives_and_iterations(mesh, chunk):
    """A running total that a serial loop carries, with a collective in each iteration and work between."""
    rows, cols = mesh
    turns = 5

    @T.prim_func
    def main(A: T.Tensor((rows * 3, cols * 4), "float32"), B: T.Tensor((rows * 3, cols * 4), "float32"),
             steps: T.index):
        T.annotate_mesh_tensor(
            {A: {"sharding": {"x": 0, "y": 1}, "tiling": [3, 4]}, B: {"sharding": {"x": 0, "y": 1}, "tiling": [3, 4]}},
            nrows=rows, ncols=cols,
        )  # fmt: skip
        with T.Kernel(rows, cols) as (r, c):
            X = T.alloc_shared((3, 4), "float32")
            total = T.alloc_shared((3, 4), "float32")
            other = T.alloc_shared((3, 4), "float32")
            T.mesh_tensor_copy(A, X, coord=[0, 0])
            T.copy(X, total)
            for t in T.serial(steps):
                T.comm.permute(X, other, axis="y")
                for i, j in T.Parallel(3, 4):
                    X[i, j] = other[i, j] * 0.5
                T.comm.all_reduce(X, other, axis="x")
                for i, j in T.Parallel(3, 4):
                    total[i, j] = total[i, j] + other[i, j] + T.cast(t, "float32")
            T.mesh_tensor_copy(total, B, coord=[0, 0])

    a = sample((rows * 3, cols * 4))
    for steps in (0, 1, turns):
        x = a.reshape(rows, 3, cols, 4).swapaxes(1, 2).astype(np.float64)
        total = x.copy()
        for t in range(steps):
            x = on_cores(mesh, "y", x, lambda xs: [xs[i - 1] for i in range(len(xs))]) * 0.5
            total += on_cores(mesh, "x", x, lambda xs: [sum(xs)] * len(xs)) + t
        wanted = total.swapaxes(1, 2).reshape(a.shape)
        check(main, [a, np.zeros_like(a), steps], {1: wanted}, mesh=helve.Mesh(mesh), chunk=chunk, atol=1e-4)


@pytest.mark.parametrize("chunk", [1, 2])
def test_persistent_around_serial_around_collectives(mesh, chunk):
    rows, cols = mesh

    @T.prim_func
    def main(A: T.Tensor((rows, cols, 4, 3, 5), "int32"), B: T.Tensor((rows, cols, 4, 5), "int32"), flag: T.bool,
             n: T.index):
        T.annotate_mesh_tensor(
            {
                A: {"sharding": {"x": 0, "y": 1}, "tiling": [1, 1, 1, 1, 5]},
                B: {"sharding": {"x": 0, "y": 1}, "tiling": [1, 1, 1, 5]},
            },
            nrows=rows, ncols=cols,
        )  # fmt: skip
        with T.Kernel(rows, cols) as (r, c):
            X = T.alloc_shared((5,), "int32")
            acc = T.alloc_shared((5,), "int32")
            mark = T.alloc_shared((5,), "int32")
            for p in T.Persistent([n]):
                T.clear(acc)
                T.fill(mark, T.cast(r * 10 + c, "int32"))
                for t in T.serial(3):
                    T.mesh_tensor_copy(A, X, coord=[0, 0, p, t, 0])
                    if flag:
                        T.comm.all_reduce(X, X, op="max")
                    else:
                        T.comm.all_reduce(X, X, op="sum", axis="y")
                        X[0] = X[0] + 1
                    if t % 2 == 0:
                        T.comm.permute(X, X, axis="x")
                    for i in T.Parallel(5):
                        acc[i] = acc[i] * 3 + X[i]
                for i in T.Parallel(5):
                    acc[i] = acc[i] + mark[i] * 1000
                T.mesh_tensor_copy(acc, B, coord=[0, 0, p, 0])

    a = sample((rows, cols, 4, 3, 5), "int32")
    for flag, n in ((True, 4), (False, 3), (False, 0)):
        wanted = np.zeros((rows, cols, 4, 5), np.int32)
        for p in range(n):
            acc = np.zeros((rows, cols, 5), np.int32)
            for t in range(3):
                x = a[:, :, p, t]
                if flag:
                    x = on_cores(mesh, "all", x, lambda xs: [np.max(xs, 0)] * len(xs))
                else:
                    x = on_cores(mesh, "y", x, lambda xs: [sum(xs)] * len(xs))
                    x[:, :, 0] += 1
                if t % 2 == 0:
                    x = on_cores(mesh, "x", x, lambda xs: [xs[i - 1] for i in range(len(xs))])
                acc = acc * 3 + x
            wanted[:, :, p] = acc + 1000 * (np.arange(rows)[:, None, None] * 10 + np.arange(cols)[None, :, None])
        check(main, [a, np.zeros_like(wanted), flag, n], {1: wanted}, mesh=helve.Mesh(mesh), chunk=chunk)


SHARDINGS = [{"x": 0, "y": 1}, {"x": 1, "y": 0}, {"x": 0}, {"y": 0}, {"y": 1}, {"x": 0, "y": 0}, {"x": 1, "y": 1}, {}]


@pytest.mark.parametrize("sharding", SHARDINGS, ids=lambda s: "".join(f"{k}{v}" for k, v in s.items()) or "none")
@pytest.mark.parametrize("extents", [(13, 11), (1, 2)])
@pytest.mark.parametrize("cores", [(2, 3), (1, 4)], ids=ident)
def test_shardings(cores, sharding, extents):
    """Each core adds 1 to its own block, counted tile by tile; replicas write equal values."""
    rows, cols = cores

    @T.prim_func
    def main(A: T.Tensor(extents, "float32"), B: T.Tensor(extents, "float32"), C: T.Tensor((rows, cols, 4), "int64")):
        T.annotate_mesh_tensor(
            {
                A: {"sharding": sharding, "tiling": [4, 3]},
                B: {"sharding": sharding, "tiling": [4, 3]},
                C: {"sharding": {"x": 0, "y": 1}, "tiling": [1, 1, 4]},
            },
            nrows=rows, ncols=cols,
        )  # fmt: skip
        m, n = T.get_sharded_shape(A)
        with T.Kernel(rows, cols) as (r, c):
            X = T.alloc_shared_tiles((4, 3), "float32", tile_size=(2, 3))
            lm, ln = T.local_shape(A)
            C[r, c, 0] = T.cast(m, "int64")
            C[r, c, 1] = T.cast(n, "int64")
            C[r, c, 2] = T.cast(lm, "int64")
            C[r, c, 3] = T.cast(ln, "int64")
            for i, j in T.Persistent([T.ceildiv(m, 4), T.ceildiv(n, 3)]):
                T.mesh_tensor_copy(A, X, coord=[i, j], pad=5.0)
                for p, q in T.foreach_tiles(X, parallel=True):
                    X[p, q] = X[p, q] + 1.0
                T.mesh_tensor_copy(X, B, coord=[i, j])

    a = sample(extents)
    shards = [1, 1]
    for axis, dim in sharding.items():
        shards[dim] *= {"x": rows, "y": cols}[axis]
    block = [-(-e // s) for e, s in zip(extents, shards)]
    seen = np.zeros((rows, cols, 4), np.int64)
    for r in range(rows):
        for c in range(cols):
            at = [0, 0]
            for axis in ("x", "y"):
                if axis in sharding:
                    dim = sharding[axis]
                    at[dim] = at[dim] * {"x": rows, "y": cols}[axis] + {"x": r, "y": c}[axis]
            true = [max(0, min(block[d], extents[d] - at[d] * block[d])) for d in range(2)]
            seen[r, c] = [*block, *true]
    check(main, [a, np.zeros_like(a), np.zeros_like(seen)], {1: a + 1, 2: seen}, mesh=helve.Mesh(cores))


def test_global_buffers_have_one_instance_a_core(mesh):
    rows, cols = mesh

    @T.prim_func(mesh=T.Mesh(mesh))
    def main(A: T.Tensor((rows, cols, 6), "float32"), B: T.Tensor((rows, cols, 6), "float32"),
             C: T.Tensor((rows, cols, 6, cols), "float32"), n: T.index):
        G = T.alloc_global((6,), "float32")
        H = T.alloc_global((6, cols), "float32")
        with T.Kernel(rows, cols) as (r, c):
            T.copy(A[r, c, :], G)
        for i in T.serial(n):
            T.comm.all_reduce(G, G, axis="x")
            T.comm.permute(G, G, axis="y")
        T.comm.all_gather(G, H, axis="y")
        with T.Kernel(rows, cols) as (r, c):
            T.copy(G, B[r, c, :])
            T.copy(H, C[r, c, :, :])

    a = sample((rows, cols, 6))
    for n in (0, 2):
        g = a.astype(np.float64)
        for _ in range(n):
            g = on_cores(mesh, "x", g, lambda xs: [sum(xs)] * len(xs))
            g = on_cores(mesh, "y", g, lambda xs: [xs[i - 1] for i in range(len(xs))])
        h = on_cores(mesh, "y", g, lambda xs: [np.stack(xs, -1)] * len(xs))
        check(main, [a, np.zeros_like(a), np.zeros(h.shape, np.float32), n], {1: g, 2: h}, mesh=helve.Mesh(mesh),
              atol=1e-4)


KEPT = {
    "elements": (["X[0] = 5.0", "T.comm.barrier()", "T.fill(X[2:4], 7.0)"], {0: 5, 2: 7, 3: 7}, None),
    "an element under a condition": (["X[0] = 5.0", "if r == 0:", "    X[1] = 9.0"], {0: 5}, (0, 1, 9)),
    "all under a condition": (["if r == 0:", "    T.fill(X, 9.0)"], {}, (0, slice(None), 9)),
    "a loop of run-time extent": (["for i in T.serial(r * 0 + 2):", "    X[i] = 3.0"], {0: 3, 1: 3}, None),
    "a part by a collective": (["T.copy(A[r, c, 0, :], S)", "T.comm.broadcast(S[0:2], X[1:3], 0)"], None, None),
}


@pytest.mark.parametrize("case", KEPT)
@pytest.mark.parametrize("chunk", [1, 2])
def test_what_a_part_does_not_write_stays(case, chunk):
    """Between two collectives a buffer is written in part; the rest keeps what it held before the first."""
    shape = (2, 3)
    lines, stores, guarded = KEPT[case]
    body = ["T.copy(S, X)", "T.comm.barrier()", *lines, "T.comm.barrier()", "T.copy(X, D)"]
    program = program_of(shape, (4,), (4,), body, head='X = T.alloc_shared((4,), "float32")')
    a = sample((2, 3, 1, 4))
    wanted = a.copy()
    for at, value in (stores or {}).items():
        wanted[..., at] = value
    if stores is None:
        wanted[..., 1:3] = a[0, 0, 0, 0:2]
    if guarded:
        wanted[guarded[0], :, :, guarded[1]] = guarded[2]
    check(program, [a, np.zeros_like(a)], {1: wanted}, mesh=helve.Mesh(shape), chunk=chunk)
