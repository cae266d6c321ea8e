"""Divergent control flow around collectives and launches: conditions and bounds that are read from memory.

The host reads the value of each core; within the group of a collective it must be uniform, and groups may differ.
"""

import numpy as np
import pytest

import helve
import helve.testing
from helve import T, _core
from helve.testing import changed_stages, lowering_stages

MESHES = [(1, 1), (2, 3), (3, 2)]


def everywhere(function, arguments, mesh=None):
    """Machine code, the interpreter and every stage leave the same arguments; gives them."""
    results = []
    for target in ("interp", "llvm"):
        given = arguments()
        helve.compile(function, mesh=mesh, target=target)(*given)
        results.append(given)
    for a, b in zip(*results):
        assert np.array_equal(a, b)
    helve.testing.check_stages(function, arguments, mesh=mesh)
    return results[0]


def halve_until_small(m, n, mesh, limit):
    """Every core halves its block until the sum over all cores is at most `limit`."""
    rows, cols = mesh

    @T.prim_func
    def main(A: T.Tensor((m, n), "int32"), STEPS: T.Tensor((1,), "int32")):
        T.annotate_mesh_tensor({A: {"sharding": {"x": 0, "y": 1}, "tiling": [T.ceildiv(m, rows), T.ceildiv(n, cols)]}},
                               nrows=rows, ncols=cols)
        p, q = T.get_sharded_shape(A)
        with T.Kernel(rows, cols) as (r, c):
            tile = T.alloc_shared((p, q), "int32")
            line = T.alloc_shared((p,), "int32")
            part = T.alloc_shared((1,), "int32")
            total = T.alloc_shared((1,), "int32")
            steps = T.alloc_shared((1,), "int32")
            steps[0] = 0
            T.mesh_tensor_copy(A, tile, coord=[0, 0])
            T.reduce_sum(tile, line, dim=1)
            T.reduce_sum(line, part, dim=0)
            T.comm.all_reduce(part, total)
            while total[0] > limit:
                for i, j in T.Parallel(p, q):
                    tile[i, j] = tile[i, j] // 2
                T.reduce_sum(tile, line, dim=1)
                T.reduce_sum(line, part, dim=0)
                T.comm.all_reduce(part, total)
                steps[0] += 1
            T.mesh_tensor_copy(tile, A, coord=[0, 0])
            if r == 0 and c == 0:
                STEPS[0] = steps[0]

    return main


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("limit", [3, 500, 10**6])
def test_a_while_loop_until_all_cores_agree(mesh, limit):
    def arguments():
        return [np.arange(35, dtype="int32").reshape(5, 7) * 3, np.zeros(1, "int32")]

    function = halve_until_small(5, 7, mesh, limit)
    a, steps = everywhere(function, arguments, helve.Mesh(mesh))
    expected, count = arguments()[0], 0
    while expected.sum() > limit:
        expected, count = expected // 2, count + 1
    assert np.array_equal(a, expected) and steps[0] == count
    plan = helve.compile(function, mesh=helve.Mesh(mesh)).source("plan")
    assert "read control from control: bool at 0\n" in plan


def rounds_of(mesh, loop):
    rows, cols = mesh

    @T.prim_func(mesh=helve.Mesh(mesh))
    def main(N: T.Tensor((2,), "int64"), OUT: T.Tensor((rows, cols), "int32")):
        with T.Kernel(rows, cols) as (r, c):
            mine = T.alloc_shared((1,), "int32")
            theirs = T.alloc_shared((1,), "int32")
            mine[0] = r * 10 + c
            if loop == "for":
                for k in T.serial(T.index(N[0]), T.index(N[1])):
                    T.comm.permute(mine, theirs, axis="y")
                    mine[0] = theirs[0] + T.cast(k, "int32")
            elif loop == "if":
                if N[0] < N[1] and N[1] > 0:
                    T.comm.permute(mine, theirs, axis="y")
                    mine[0] = theirs[0] + 1
                elif N[0] == 7:
                    T.comm.permute(mine, theirs, axis="x")
                    mine[0] = theirs[0] + 100
                else:
                    mine[0] = mine[0] - 1
            else:
                wanted = T.index(N[1]) - T.index(N[0])
                if wanted > 1:
                    for k in T.serial(2):
                        T.comm.permute(mine, theirs, axis="y")
                        mine[0] = theirs[0] * 2
            OUT[r, c] = mine[0]

    return main


def expected_rounds(mesh, loop, n):
    rows, cols = mesh
    at = np.arange(rows)[:, None] * 10 + np.arange(cols)[None, :]
    if loop == "for":
        for k in range(n[0], n[1]):
            at = np.roll(at, 1, axis=1) + k
    elif loop == "if":
        if n[0] < n[1] and n[1] > 0:
            at = np.roll(at, 1, axis=1) + 1
        elif n[0] == 7:
            at = np.roll(at, 1, axis=0) + 100
        else:
            at = at - 1
    elif n[1] - n[0] > 1:
        for _ in range(2):
            at = np.roll(at, 1, axis=1) * 2
    return at


@pytest.mark.parametrize("n", [(0, 0), (0, 1), (2, 5), (7, 3), (-3, -1)])
@pytest.mark.parametrize("loop", ["for", "if", "name"])
@pytest.mark.parametrize("mesh", MESHES)
def test_bounds_and_conditions_from_memory(mesh, loop, n):
    if loop == "for" and n[1] < n[0]:
        pytest.skip("a negative extent")
    function = rounds_of(mesh, loop)
    _, out = everywhere(function, lambda: [np.array(n), np.zeros(mesh, "int32")], helve.Mesh(mesh))
    assert np.array_equal(out, expected_rounds(mesh, loop, n))


def nested(mesh, work):
    """In each work item: a while loop in a while loop, each until a reduction says so."""
    rows, cols = mesh

    @T.prim_func(mesh=helve.Mesh(mesh))
    def main(START: T.Tensor((work,), "int32"), OUT: T.Tensor((work, rows, cols), "int32")):
        with T.Kernel(rows, cols) as (r, c):
            x = T.alloc_shared((1,), "int32")
            outer = T.alloc_shared((1,), "int32")
            inner = T.alloc_shared((1,), "int32")
            for w in T.Persistent([work]):
                x[0] = START[w] + T.cast(r + c, "int32")
                T.comm.all_reduce(x, outer, op="max")
                while outer[0] < 50:
                    T.comm.all_reduce(x, inner, op="min")
                    while inner[0] % 4 != 0:
                        x[0] = x[0] + 1
                        T.comm.all_reduce(x, inner, op="min")
                    x[0] = x[0] * 2 + 1
                    T.comm.all_reduce(x, outer, op="max")
                OUT[w, r, c] = x[0]

    return main


@pytest.mark.parametrize("chunk", [1, 2])
@pytest.mark.parametrize("mesh", MESHES)
def test_nested_while_loops_in_work_items(mesh, chunk):
    work = 3
    start = np.array([1, 60, 9], "int32")

    def run(target, **options):
        out = np.zeros((work, *mesh), "int32")
        helve.compile(nested(mesh, work), mesh=helve.Mesh(mesh), target=target, **options)(start, out)
        return out

    x = start[:, None, None] + np.add.outer(np.arange(mesh[0]), np.arange(mesh[1]))[None].astype("int32")
    for w in range(work):
        while x[w].max() < 50:
            while x[w].min() % 4 != 0:
                x[w] += 1
            x[w] = x[w] * 2 + 1
    assert np.array_equal(run("interp"), x)
    assert np.array_equal(run("llvm", persistent_chunk=chunk), x)


def coordinates(mesh):
    """Row and column of every core."""
    return np.meshgrid(np.arange(mesh[0]), np.arange(mesh[1]), indexing="ij")


def by_rows(mesh, form):
    """Collectives along mesh rows under control flow that differs between rows."""
    rows, cols = mesh

    @T.prim_func(mesh=helve.Mesh(mesh))
    def main(N: T.Tensor((rows,), "int64"), OUT: T.Tensor((rows, cols), "int64")):
        with T.Kernel(rows, cols) as (r, c):
            x = T.alloc_shared((1,), "int64")
            y = T.alloc_shared((1,), "int64")
            x[0] = r * 10 + c
            y[0] = 1000
            if form == "if":
                if r % 2 == 0:
                    T.comm.permute(x, y, axis="y")
                else:
                    x[0] = x[0] + 100
                    T.comm.all_reduce(x, x, axis="y")
                x[0] = x[0] + y[0]
            elif form == "only":
                if r == 1:
                    T.comm.all_reduce(x, y, axis="y")
                    x[0] = 5
            elif form == "loaded if":
                if N[r] > 2:
                    if N[r] > 4:
                        T.comm.all_reduce(x, y, axis="y")
                    T.comm.permute(x, x, axis="y")
            elif form == "extent":
                for k in T.serial(r + 1):
                    T.comm.permute(x, y, axis="y")
                    x[0] = y[0] * 2 + k
            elif form == "bounds":
                for k in T.serial(T.index(N[r]), T.index(N[r]) * 2 - r):
                    T.comm.permute(x, y, axis="y")
                    x[0] = y[0] + k
            elif form == "while":
                T.comm.all_reduce(x, y, axis="y")
                while y[0] < 50 * (r + 1):
                    x[0] = x[0] * 2 + 1
                    T.comm.all_reduce(x, y, axis="y")
            elif form == "nested":
                for k in T.serial(r + 1):
                    y[0] = k
                    while y[0] < N[r]:
                        T.comm.permute(x, x, axis="y")
                        if (r + k) % 2 == 0:
                            T.comm.all_reduce(y, y, op="max", axis="y")
                            x[0] = x[0] + y[0]
                        y[0] = y[0] + 1
                T.comm.all_reduce(x, x)
            OUT[r, c] = x[0] + y[0] * 1000

    return main


def expected_by_rows(mesh, form, n):
    row, col = coordinates(mesh)
    x, y = row * 10 + col, np.full(mesh, 1000)
    for r in range(mesh[0]):
        if form == "if":
            if r % 2 == 0:
                y[r] = np.roll(x[r], 1)
            else:
                x[r] = (x[r] + 100).sum()
            x[r] += y[r]
        elif form == "only" and r == 1:
            y[r], x[r] = x[r].sum(), 5
        elif form == "loaded if" and n[r] > 2:
            y[r] = x[r].sum() if n[r] > 4 else y[r]
            x[r] = np.roll(x[r], 1)
        elif form == "extent":
            for k in range(r + 1):
                y[r] = np.roll(x[r], 1)
                x[r] = y[r] * 2 + k
        elif form == "bounds":
            for k in range(n[r], 2 * n[r] - r):
                y[r] = np.roll(x[r], 1)
                x[r] = y[r] + k
        elif form == "while":
            y[r] = x[r].sum()
            while y[r, 0] < 50 * (r + 1):
                x[r] = x[r] * 2 + 1
                y[r] = x[r].sum()
        elif form == "nested":
            for k in range(r + 1):
                y[r] = k
                while y[r, 0] < n[r]:
                    x[r] = np.roll(x[r], 1)
                    if (r + k) % 2 == 0:
                        x[r] += y[r]
                    y[r] += 1
    return (np.full(mesh, x.sum()) if form == "nested" else x) + y * 1000


FORMS = ["if", "only", "loaded if", "extent", "bounds", "while", "nested"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mesh", MESHES)
def test_mesh_rows_decide_for_themselves(mesh, form):
    for n in ([5, 3, 1], [2, 4, 6]):
        n = np.array(n[: mesh[0]])
        _, out = everywhere(by_rows(mesh, form), lambda: [n, np.zeros(mesh, "int64")], helve.Mesh(mesh))
        assert np.array_equal(out, expected_by_rows(mesh, form, n)), n


@pytest.mark.parametrize("form", ["if", "nested", "bounds"])
def test_the_stages_for_a_gpu_part_by_rows_as_well(form):
    mesh = (2, 3)
    helve.testing.check_stages(
        by_rows(mesh, form), lambda: [np.array([3, 5]), np.zeros(mesh, "int64")], mesh=helve.Mesh(mesh), target="cuda"
    )


@pytest.mark.parametrize("chunk", [1, 2])
@pytest.mark.parametrize("mesh", [*MESHES, (2, 2)])
def test_work_items_of_each_mesh_column(mesh, chunk):
    """Persistent loops whose extent and body depend on the column, with collectives along it."""
    rows, cols = mesh
    most = 5

    @T.prim_func(mesh=helve.Mesh(mesh))
    def main(N: T.Tensor((cols,), "int64"), OUT: T.Tensor((most, rows, cols), "int64")):
        with T.Kernel(rows, cols) as (r, c):
            x = T.alloc_shared((1,), "int64")
            all = T.alloc_shared((rows,), "int64")
            for w in T.Persistent([T.min(T.index(N[c]) + c, most)]):
                x[0] = w * 100 + r * 10 + c
                T.comm.all_gather(x, all, axis="x", dim=0)
                x[0] = x[0] + all[rows - 1]
                if c == 1:
                    T.comm.all_reduce(x, x, axis="x")
                OUT[w, r, c] = x[0]

    n = np.array([1, 3, 5])[:cols]
    expected = np.zeros((most, rows, cols), "int64")
    row, col = coordinates(mesh)
    for c in range(cols):
        for w in range(min(n[c] + c, most)):
            x = (w * 100 + row * 10 + col)[:, c]
            x = x + x[-1]
            expected[w, :, c] = x.sum() if c == 1 else x
    for target in ("interp", "llvm"):
        out = np.zeros((most, rows, cols), "int64")
        helve.compile(main, mesh=helve.Mesh(mesh), target=target, persistent_chunk=chunk)(n, out)
        assert np.array_equal(out, expected), target
    helve.testing.check_stages(main, lambda: [n, np.zeros((most, rows, cols), "int64")], mesh=helve.Mesh(mesh),
                               persistent_chunk=chunk)


@pytest.mark.parametrize("mesh", MESHES)
def test_every_core_runs_the_host_body(mesh):
    """Launches and collectives of a host body under conditions that cores read each from their own memory."""
    rows, cols = mesh

    @T.prim_func(mesh=helve.Mesh(mesh))
    def main(N: T.Tensor((rows, cols), "int64"), OUT: T.Tensor((rows, cols), "int64")):
        flag = T.alloc_global((1,), "int64")
        value = T.alloc_global((1,), "int64")
        with T.Kernel(rows, cols) as (r, c):
            flag[0] = N[r, c]
            value[0] = r * 10 + c
        while flag[0] > 0:
            with T.Kernel(rows, cols) as (r, c):
                value[0] = value[0] * 2 + flag[0]
                flag[0] = flag[0] - 1
        with T.Kernel(rows, cols) as (r, c):
            flag[0] = N[r, 0]
        for k in T.serial(T.index(flag[0])):
            T.comm.permute(value, value, axis="y")
        with T.Kernel(rows, cols) as (r, c):
            OUT[r, c] = value[0]

    n = np.arange(rows * cols).reshape(mesh) % 4
    value = np.add.outer(np.arange(rows) * 10, np.arange(cols))
    for r in range(rows):
        for c in range(cols):
            for k in range(n[r, c], 0, -1):
                value[r, c] = value[r, c] * 2 + k
        value[r] = np.roll(value[r], n[r, 0])
    _, out = everywhere(main, lambda: [n, np.zeros(mesh, "int64")], helve.Mesh(mesh))
    assert np.array_equal(out, value)


def test_cores_that_come_in_parts_do_not_meet_inside_a_kernel():
    """On a GPU cores may meet inside a kernel; not where the host body launches it for some of them."""
    mesh = helve.Mesh((2, 3))

    @T.prim_func(mesh=mesh)
    def main(N: T.Tensor((3,), "int64"), OUT: T.Tensor((2, 3), "int64")):
        flag = T.alloc_global((1,), "int64")
        with T.Kernel(2, 3) as (r, c):
            flag[0] = N[c]
        if flag[0] > 0:
            with T.Kernel(2, 3) as (r, c):
                x = T.alloc_shared((1,), "int64")
                x[0] = r * 10 + c
                T.comm.all_reduce(x, x, axis="x")
                OUT[r, c] = x[0]

    def arguments():
        return [np.array([1, 0, 2]), np.zeros((2, 3), "int64")]

    _, out = everywhere(main, arguments, mesh)
    assert out.tolist() == [[10, 0, 14], [10, 0, 14]]
    stages = dict(helve.testing.lowering_stages(main, mesh, target="cuda"))
    assert "T.comm.all_reduce(x_home, x_home" in _core.print(stages["split_mesh_kernels"])
    helve.testing.check_stages(main, arguments, mesh=mesh, target="cuda")


def test_cores_of_a_group_that_differ_end_the_call_alike_everywhere():
    mesh = helve.Mesh((2, 3))

    @T.prim_func(mesh=mesh)
    def main(A: T.Tensor((2, 3), "int32")):
        with T.Kernel(2, 3) as (r, c):
            x = T.alloc_shared((1,), "int32")
            x[0] = A[r, c]
            if r == 1:
                if x[0] > 5:
                    T.comm.permute(x, x, axis="y")
            A[r, c] = x[0]

    texts = []
    for target in ("interp", "llvm"):
        kernel = helve.compile(main, mesh=mesh, target=target)
        kernel(agreed := np.arange(3, 9, dtype="int32").reshape(2, 3))
        assert agreed.tolist() == [[3, 4, 5], [8, 6, 7]]
        with pytest.raises(helve.Error) as caught:
            kernel(np.arange(1, 7, dtype="int32").reshape(2, 3))
        assert caught.value.code == "HV0405"
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    assert "the condition is false on core (1, 0) and true on core (1, 2)" in texts[0]


DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_host_body_decides_by_an_element(dtype):
    """Conditions, bounds and grids of a host body read integers and bools, of tensors with strides too."""

    if dtype == "bool":

        @T.prim_func
        def main(A: T.Tensor((3, 2), "bool", strides=(4, 2)), B: T.Tensor((10,), "int32")):
            for k in T.serial(3):
                if A[k, 1]:
                    with T.Kernel(k + 1) as b:
                        B[b] = B[b] + T.cast(k, "int32") + 1

    else:

        @T.prim_func
        def main(A: T.Tensor((3, 2), dtype, strides=(4, 2)), B: T.Tensor((10,), "int32")):
            for k in T.serial(3):
                if A[k, 1] > 0:
                    with T.Kernel(k + 1) as b:
                        B[b] = B[b] + T.cast(k, "int32") + 1

    def arguments():
        memory = np.zeros(12, dtype)
        view = memory[: 3 * 4].reshape(3, 4)[:, ::2]
        low = 1 if dtype == "bool" else np.iinfo(dtype).min or np.iinfo(dtype).max
        view[...] = np.array([[0, 1], [1, 0], [0, low]]).astype(dtype)
        return [view, np.zeros(10, "int32")]

    _, b = everywhere(main, arguments)
    last = 3 if arguments()[0][2, 1] > 0 else 0
    assert b[:4].tolist() == [1 + last, last, last, 0]


def test_a_grid_stays_when_its_blocks_write_what_it_was_read_from():
    @T.prim_func
    def main(N: T.Tensor((2,), "int64"), B: T.Tensor((3, 5), "int64")):
        with T.Kernel(T.index(N[0]), T.index(N[1])) as (i, j):
            B[i, j] = i * 10 + j
            if i == 0 and j == 0:
                N[0] = 1
                N[1] = 1

    n, b = everywhere(main, lambda: [np.array([3, 5]), np.zeros((3, 5), "int64")])
    assert n.tolist() == [1, 1]
    assert np.array_equal(b, np.add.outer(np.arange(3) * 10, np.arange(5)))


def test_a_host_loop_counts_down_in_memory():
    @T.prim_func
    def main(N: T.Tensor((1,), "int64"), B: T.Tensor((8,), "int64")):
        while N[0] > 0:
            with T.Kernel(T.index(N[0])) as b:
                B[b] = B[b] + N[0]
            with T.Kernel(1):
                N[0] = N[0] - 2

    _, b = everywhere(main, lambda: [np.array([7]), np.zeros(8, "int64")])
    assert b.tolist() == [16, 15, 15, 12, 12, 7, 7, 0]


def test_a_read_outside_of_its_tensor_is_an_error():
    @T.prim_func
    def main(AT: T.Tensor((1,), "int64"), N: T.Tensor((4,), "int32"), B: T.Tensor((1,), "int32")):
        if N[T.index(AT[0])] > 0:
            with T.Kernel(1):
                B[0] = 1

    for target in ("interp", "llvm"):
        kernel = helve.compile(main, target=target)
        b = np.zeros(1, "int32")
        kernel(np.array([3]), np.array([0, 0, 0, 5], "int32"), b)
        assert b[0] == 1
        for bad in (4, -1):
            with pytest.raises(helve.Error) as caught:
                kernel(np.array([bad]), np.zeros(4, "int32"), b)
            assert caught.value.code == "HV0210"
            assert caught.value.message == f"index {bad} of dimension 0 of 'N' is outside [0, 4)"


def test_a_read_that_may_not_happen_is_refused():
    @T.prim_func
    def main(n: T.index, N: T.Tensor((4,), "int32"), B: T.Tensor((1,), "int32")):
        if n < 4 and N[n] > 0:
            with T.Kernel(1):
                B[0] = 1

    with pytest.raises(helve.Error) as caught:
        helve.compile(main)
    assert caught.value.code == "HV0811"


N, K = T.dyn("N"), T.dyn("K")


def sum_where_on(mesh):
    """A sum over all cores in each work item, if a tensor that nobody writes says so; the core's own value if not."""
    rows, cols = mesh

    @T.prim_func(mesh=helve.Mesh(mesh))
    def main(ON: T.Tensor((K,), "int32"), OUT: T.Tensor((N, rows, cols), "int32")):
        with T.Kernel(rows, cols) as (r, c):
            part = T.alloc_shared((1,), "int32")
            total = T.alloc_shared((1,), "int32")
            for i in T.Persistent([N]):
                part[0] = r * 10 + c + i
                total[0] = part[0]
                if ON[0] > 0:
                    T.comm.all_reduce(part, total)
                OUT[i, r, c] = total[0]

    return main


@pytest.mark.parametrize("on", [0, 1])
@pytest.mark.parametrize("items", [0, 1, 7])
@pytest.mark.parametrize("mesh", MESHES)
def test_work_items_that_decide_equally_share_collectives(mesh, items, on):
    """One collective for three work items; without a work item nothing is read, as the tensor may be empty."""
    main = sum_where_on(mesh)
    own = np.add.outer(np.arange(items), np.add.outer(10 * np.arange(mesh[0]), np.arange(mesh[1])))
    expected = np.broadcast_to(own.sum(axis=(1, 2), keepdims=True), own.shape) if on else own
    flags = np.full(min(items, 1), on, "int32")
    for chunk in (1, 3):
        for target in ("interp", "llvm"):
            out = np.full(own.shape, -1, "int32")
            kernel = helve.compile(main, mesh=helve.Mesh(mesh), target=target, persistent_chunk=chunk)
            kernel(flags, out)
            assert np.array_equal(out, expected)
        assert ("i_round" in kernel.source("split_mesh_kernels")) == (chunk > 1)
        for _, stage in changed_stages(lowering_stages(main, mesh=helve.Mesh(mesh), persistent_chunk=chunk)):
            out = np.full(own.shape, -1, "int32")
            helve.testing.interpret(stage, flags, out, check="all")
            assert np.array_equal(out, expected)


def test_what_only_some_work_items_come_to_is_not_decided_before_them():
    """An element that none of them reads may not exist."""
    mesh = (2, 3)

    @T.prim_func(mesh=helve.Mesh(mesh))
    def main(ON: T.Tensor((K,), "int32"), OUT: T.Tensor((N, 2, 3), "int32"), some: T.int32):
        with T.Kernel(2, 3) as (r, c):
            part = T.alloc_shared((1,), "int32")
            total = T.alloc_shared((1,), "int32")
            for i in T.Persistent([N]):
                part[0] = 1
                total[0] = 1
                if some > 0:
                    if ON[0] > 0:
                        T.comm.all_reduce(part, total)
                OUT[i, r, c] = total[0]

    for target in ("interp", "llvm"):
        out = np.zeros((4, 2, 3), "int32")
        helve.compile(main, mesh=helve.Mesh(mesh), target=target, persistent_chunk=2)(np.zeros(0, "int32"), out, 0)
        assert (out == 1).all()


def test_what_each_work_item_decides_for_itself_is_decided_in_each():
    @T.prim_func(mesh=helve.Mesh((1, 2)))
    def main(ON: T.Tensor((4,), "int32"), OUT: T.Tensor((4, 2), "int32")):
        with T.Kernel(1, 2) as (r, c):
            part = T.alloc_shared((1,), "int32")
            total = T.alloc_shared((1,), "int32")
            for i in T.Persistent([4]):
                part[0] = 1
                total[0] = 1
                if ON[i] > 0:
                    T.comm.all_reduce(part, total)
                OUT[i, c] = total[0]

    out = np.zeros((4, 2), "int32")
    kernel = helve.compile(main, mesh=helve.Mesh((1, 2)), persistent_chunk=2)
    kernel(np.int32([0, 1, 1, 0]), out)
    assert out.tolist() == [[1, 1], [2, 2], [2, 2], [1, 1]]
    assert "i_round" not in kernel.source("split_mesh_kernels")


@pytest.mark.parametrize("chunk", [1, 2, 3])
@pytest.mark.parametrize("items", [0, 1, 2, 5])
def test_a_shared_collective_moves_what_its_round_wrote(items, chunk):
    """A round may have fewer work items than one collective could serve; after them its homes hold nothing."""
    mesh = (2, 2)

    @T.prim_func(mesh=helve.Mesh(mesh))
    def by_extent(OUT: T.Tensor((N, 2, 2), "int32")):
        with T.Kernel(2, 2) as (r, c):
            part = T.alloc_shared((2,), "int32")
            one = T.alloc_shared((1,), "int32")
            for i in T.Persistent([N]):
                part[0] = i * 100 + r * 10 + c
                part[1] = r * 10 + c
                T.comm.reduce_scatter(part, one, axis="y", op="sum", dim=-1)
                OUT[i, r, c] = one[0]

    @T.prim_func(mesh=helve.Mesh(mesh))
    def by_row(OUT: T.Tensor((N, 2, 2), "int32")):
        with T.Kernel(2, 2) as (r, c):
            part = T.alloc_shared((2,), "int32")
            one = T.alloc_shared((1,), "int32")
            for i in T.Persistent([T.min(r, N)]):
                part[0] = i * 100 + r * 10 + c
                part[1] = r * 10 + c
                T.comm.reduce_scatter(part, one, axis="y", op="sum", dim=-1)
                OUT[i, r, c] = one[0]

    item, row = np.ogrid[:items, :2]
    sums = np.stack([item * 200 + row * 20 + 1, row * 20 + 1 + 0 * item], axis=-1).astype("int32")
    rows = np.where((np.arange(items)[:, None] < np.arange(2))[..., None], sums, -1)
    for function, expected in ((by_extent, sums), (by_row, rows)):
        arguments = lambda: [np.full((items, 2, 2), -1, "int32")]  # noqa: E731
        for target in ("interp", "llvm"):
            (out,) = arguments()
            helve.compile(function, mesh=helve.Mesh(mesh), target=target, persistent_chunk=chunk)(out)
            assert np.array_equal(out, expected)
        for target in ("llvm", "cuda"):
            arch = "sm_80" if target == "cuda" else ""
            for _, stage in changed_stages(lowering_stages(function, helve.Mesh(mesh), chunk, target, arch)):
                (out,) = arguments()
                helve.testing.interpret(stage, out, check="all")
                assert np.array_equal(out, expected)


@pytest.mark.parametrize("inside", [True, False])
def test_scratch_in_a_loop_around_a_collective_stays_with_its_iterations(inside):
    """Nothing after the loop reads it, so no thread stores what it leaves where another one does."""
    mesh = (2, 1)

    def text(alloc):
        outer, inner = (alloc, "") if not inside else ("", alloc)
        return f"""
@T.prim_func(mesh=T.Mesh((2, 1), ("x", "y")))
def main(OUT: T.Tensor((3, 2, 6), "int32")):
    with T.Kernel(2, 1) as (r, c):
        part = T.alloc_shared((6,), "int32")
        total = T.alloc_shared((6,), "int32")
        {outer or "pass"}
        for w in T.serial(T.min(c + 3, 3)):
            {inner or "pass"}
            for i in T.Parallel(6):
                for u in T.serial(2):
                    for v in T.serial(3):
                        scratch[u, v] = u * 3 + v + w
                for k in T.serial(4):
                    if i % 2 == 0:
                        scratch[i % 2, w] = k * 10
                part[i] = scratch[0, i % 3] + r
            T.comm.all_reduce(part, total, axis="x")
            for i in T.Parallel(6):
                OUT[w, r, i] = total[i]
"""

    source = text('scratch = T.alloc_local((2, 3), "int32")')
    function = helve.parse("\n".join(line for line in source.split("\n") if line.strip() != "pass"))
    expected = np.zeros((3, 2, 6), "int32")
    for w in range(3):
        for i in range(6):
            value = 30 if i % 2 == 0 and i % 3 == w else i % 3 + w
            expected[w, :, i] = 2 * value + 1
    for target in ("llvm", "cuda"):
        arch = "sm_80" if target == "cuda" else ""
        stages = helve.testing.lowering_stages(function, helve.Mesh(mesh), 1, target, arch)
        for name, stage in changed_stages(stages):
            out = np.zeros_like(expected)
            helve.testing.interpret(stage, out, check="all")
            assert np.array_equal(out, expected), name
        assert all("scratch_home" not in _core.print(stage) for _, stage in stages)
    out = np.zeros_like(expected)
    helve.compile(function, mesh=helve.Mesh(mesh), target="llvm")(out)
    assert np.array_equal(out, expected)
