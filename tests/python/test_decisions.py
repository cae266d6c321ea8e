"""Control flow around collectives and launches that memory decides.

What cores have agreed on by a collective is one value; the host reads it and goes on with it.
"""

import numpy as np
import pytest

import helve
import helve.testing
from helve import T

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
    plan = helve.compile(function, mesh=helve.Mesh(mesh)).source("host")
    assert "read decision from decision: bool at 0 else HV0410\n" in plan


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


def test_cores_that_do_not_agree_end_the_call():
    """Rows may decide for themselves under the interpreter; machine code says that they do."""
    mesh = helve.Mesh((2, 3))

    @T.prim_func(mesh=mesh)
    def main(A: T.Tensor((2, 3), "int32")):
        with T.Kernel(2, 3) as (r, c):
            x = T.alloc_shared((1,), "int32")
            total = T.alloc_shared((1,), "int32")
            x[0] = A[r, c]
            T.comm.all_reduce(x, total, axis="y")
            if total[0] > 5:
                T.comm.permute(x, x, axis="y")
            A[r, c] = x[0]

    a = np.arange(6, dtype="int32").reshape(2, 3)
    helve.compile(main, mesh=mesh, target="interp")(a)
    assert a.tolist() == [[0, 1, 2], [5, 3, 4]]
    with pytest.raises(helve.Error) as caught:
        helve.compile(main, mesh=mesh)(np.arange(6, dtype="int32").reshape(2, 3))
    assert caught.value.code == "HV0410"
    helve.compile(main, mesh=mesh)(agreed := np.arange(6, 12, dtype="int32").reshape(2, 3))
    assert agreed.tolist() == [[8, 6, 7], [11, 9, 10]]


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
