"""Kernel functions that call kernel functions: a call means the callee's statements with the arguments in place.

What arguments cannot be is in tests/errors/function_calls.cases.
"""

import itertools

import numpy as np
import pytest

import helve
import helve.testing
from helve import T, _core

M, N, K = T.dyn("M"), T.dyn("N"), T.dyn("K")
TARGETS = ("interp", "llvm")


@T.prim_func
def scale(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"), s: T.float32):
    with T.Kernel(T.ceildiv(N, 8)) as b:
        x = T.alloc_shared((8,), "float32")
        T.copy(A[b * 8 : b * 8 + 8], x)
        for i in T.Parallel(8):
            x[i] = x[i] * s
        T.copy(x, B[b * 8 : b * 8 + 8])


@T.prim_func
def add(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(T.ceildiv(N, 8)) as b:
        for i in T.Parallel(8):
            if b * 8 + i < N:
                C[b * 8 + i] = A[b * 8 + i] + B[b * 8 + i]


def agree(function, make, expected, mesh=None):
    """Every target and every stage of the compile leaves `expected` in the last argument; the text reads back."""
    for target in TARGETS:
        arguments = make()
        helve.compile(function, target=target, mesh=mesh, verify=True)(*arguments)
        np.testing.assert_array_equal(arguments[-1], expected)
    helve.testing.check_stages(function, make, mesh=mesh)
    for _, stage in helve.testing.lowering_stages(function, mesh=mesh):
        helve.testing.assert_round_trip(stage)


def numbers(*shape):
    return np.arange(1, 1 + int(np.prod(shape)), dtype="float32").reshape(shape)


@pytest.mark.parametrize("n", [0, 1, 8, 21])
def test_extents_of_the_callee_are_those_of_the_arguments(n):
    @T.prim_func
    def main(X: T.Tensor((M,), "float32"), Y: T.Tensor((M,), "float32")):
        t = T.alloc_global((M,), "float32")
        scale(X, t, 2.0)
        add(t, X, Y)
        scale(A=Y, s=0.5, B=t)
        add(C=Y, A=t, B=t)

    agree(main, lambda: [numbers(n), np.zeros(n, "float32")], 3 * numbers(n))


def test_constant_extents_and_arithmetic_on_them():
    @T.prim_func
    def twice(A: T.Tensor((N,), "float32"), B: T.Tensor((2 * N,), "float32")):
        with T.Kernel(N) as b:
            B[2 * b] = A[b]
            B[2 * b + 1] = A[b]

    @T.prim_func
    def main(X: T.Tensor((5,), "float32"), Y: T.Tensor((M,), "float32"), Z: T.Tensor((M * 2,), "float32")):
        t = T.alloc_global((10,), "float32")
        twice(X, t)
        twice(Y, Z)
        with T.Kernel(1):
            Z[0] = t[9]

    agree(main, lambda: [numbers(5), numbers(3), np.zeros(6, "float32")], np.float32([5, 1, 2, 2, 3, 3]))


def test_what_one_call_defines_is_not_what_another_one_does():
    """Buffers, variables and names of the callee are new in each call, at any depth."""

    @T.prim_func
    def quarter(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        t = T.alloc_global((N,), "float32")
        half = T.cast(N, "float32") / T.cast(2 * N, "float32")
        scale(A, t, half)
        scale(t, B, half)

    @T.prim_func
    def main(t: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32"), half: T.Tensor((8,), "float32")):
        quarter(t, B)
        quarter(B, half)

    agree(main, lambda: [16 * numbers(8), numbers(8), np.zeros(8, "float32")], numbers(8))
    text = main.script()
    assert text.count("alloc_global") == 2 and text.count("T.Kernel") == 4


def test_calls_stand_in_loops_and_branches():
    @T.prim_func
    def main(steps: T.index, A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        for step in T.serial(steps):
            if step % 2 == 0:
                scale(A, B, 3.0)
            else:
                scale(B, A, T.cast(step, "float32"))
        scale(B, A, -1.0)

    agree(main, lambda: [4, numbers(9), np.zeros(9, "float32")], 9 * numbers(9))


def test_a_scalar_is_computed_once_at_the_call():
    @T.prim_func
    def count(I: T.Tensor((1,), "int32"), n: T.int32, O: T.Tensor((2,), "int32")):
        with T.Kernel(1):
            I[0] = I[0] + n
        with T.Kernel(1):
            O[0] = n
            O[1] = I[0]

    @T.prim_func
    def main(k: T.int32, I: T.Tensor((1,), "int32"), O: T.Tensor((2,), "int32")):
        count(I, k + k, O)
        count(I, k, O)
        count(n=7, O=O, I=I)

    agree(main, lambda: [3, np.int32([1]), np.zeros(2, "int32")], [7, 17])


def test_an_element_is_read_when_the_call_is_made():
    """Machine code refuses a value of the host that is written later; the interpreter says what it means."""

    @T.prim_func
    def store_sum(A: T.Tensor((2,), "int32"), x: T.int32):
        with T.Kernel(1):
            A[0] = 100
        with T.Kernel(1):
            A[1] = x + A[0]

    @T.prim_func
    def main(A: T.Tensor((2,), "int32")):
        store_sum(A, A[0])

    a = np.int32([5, 0])
    helve.compile(main, target="interp")(a)
    assert a.tolist() == [100, 105]
    with pytest.raises(helve.Error) as caught:
        helve.compile(main)
    assert caught.value.name == "HostExpression"


@pytest.mark.parametrize("strides", [(6, 1), (1, 3)])
def test_strides_belong_to_the_type(strides):
    @T.prim_func
    def rows(A: T.Tensor((K, 2), "float32", strides=strides), B: T.Tensor((K,), "float32")):
        with T.Kernel(K) as b:
            B[b] = A[b, 0] + A[b, 1]

    @T.prim_func
    def main(X: T.Tensor((3, 2), "float32", strides=strides), Y: T.Tensor((3,), "float32")):
        rows(X, Y)

    def make():
        memory = numbers(18)
        view = np.ndarray((3, 2), "float32", memory, strides=tuple(4 * s for s in strides))
        return [view, np.zeros(3, "float32")]

    x, _ = make()
    agree(main, make, x.sum(axis=1))


def test_arguments_may_share_memory_where_the_callee_says_so():
    @T.prim_func
    def shift(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        T.may_alias(A, B)
        with T.Kernel(1):
            for i in T.serial(N - 1):
                B[i + 1] = A[i] + 1

    @T.prim_func
    def main(X: T.Tensor((5,), "int32")):
        shift(X, X)

    agree(main, lambda: [np.zeros(5, "int32")], np.arange(5))


def test_two_arguments_that_are_only_read_may_be_one():
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32")):
        add(X, X, Y)

    agree(main, lambda: [numbers(11), np.zeros(11, "float32")], 2 * numbers(11))


@pytest.mark.parametrize("shifted", [False, True])
def test_a_call_leaves_out_what_caller_and_callee_leave_out(shifted):
    @T.prim_func
    def moved(A: T.Tensor((N,), "float32"), BY: T.Tensor((1,), "float32") if shifted else None,
              B: T.Tensor((N,), "float32")):
        with T.Kernel(1):
            for i in T.serial(N):
                B[i] = A[i] + BY[0] if shifted else A[i]

    @T.prim_func
    def main(A: T.Tensor((M,), "float32"), BY: T.Tensor((1,), "float32") if shifted else None,
             B: T.Tensor((M,), "float32")):
        moved(A, BY=BY, B=B)

    make = lambda: [numbers(5), *([np.full(1, 3, "float32")] if shifted else []), np.zeros(5, "float32")]  # noqa: E731
    agree(main, make, numbers(5) + 3 * shifted)


def test_functions_are_found_as_python_finds_them():
    class library:  # noqa: N801 - stands for a module
        double = scale

    def times(factor):
        @T.prim_func
        def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
            scale(A, B, factor)

        return main

    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32")):
        triple = times(3.0)
        t = T.alloc_global((N,), "float32")
        triple(X, t)
        library.double(t, Y, 2.0)

    agree(main, lambda: [numbers(4), np.zeros(4, "float32")], 6 * numbers(4))


def test_a_parsed_function_can_be_called():
    fill = helve.parse('''
@T.prim_func
def fill(A: T.Tensor((4,), "int32"), x: T.int32):
    with T.Kernel(1):
        T.fill(A, x)
''')

    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        fill(A, 3)

    agree(main, lambda: [np.zeros(4, "int32")], [3, 3, 3, 3])


def test_a_call_is_the_text_of_the_callee():
    """No node and no pass knows of calls."""

    @T.prim_func
    def main(X: T.Tensor((16,), "float32"), Y: T.Tensor((16,), "float32")):
        scale(X, Y, 2.0)

    @T.prim_func
    def written_out(X: T.Tensor((16,), "float32"), Y: T.Tensor((16,), "float32")):
        with T.Kernel((T.index(16) + 8 - 1) // 8) as b:
            x = T.alloc_shared((8,), "float32")
            T.copy(X[b * 8 : b * 8 + 8], x)
            for i in T.Parallel(8):
                x[i] = x[i] * 2.0
            T.copy(x, Y[b * 8 : b * 8 + 8])

    same, path = _core.structural_equal(main.function, written_out.function)
    assert same, path


def test_whole_tensors_stay_whole():
    @T.prim_func
    def clear(A: T.Tensor((N, 3), "int32")):
        with T.Kernel(1):
            T.clear(A)

    @T.prim_func
    def main(X: T.Tensor((4, 3), "int32"), Y: T.Tensor((M + 1, 3), "int32"), Z: T.Tensor((M,), "int32")):
        clear(X)
        clear(Y)

    assert "T.clear(X)" in main.script() and "T.clear(Y)" in main.script()


def row_sums(mesh):
    """Sums of rows, cut over the mesh, by a collective along its rows."""
    rows, columns = mesh.shape

    @T.prim_func
    def sums(A: T.Tensor((M, N), "int32"), S: T.Tensor((M,), "int32")):
        T.annotate_mesh_tensor({A: {"sharding": {"x": 0, "y": 1}, "tiling": [4, 8]},
                                S: {"sharding": {"x": 0}, "tiling": [4]}}, nrows=rows, ncols=columns)
        m, n = T.get_sharded_shape(A)
        with T.Kernel(rows, columns) as (r, c):
            tile = T.alloc_shared((4, 8), "int32")
            part = T.alloc_shared((4,), "int32")
            total = T.alloc_shared((4,), "int32")
            for i in T.Persistent([T.ceildiv(m, 4)]):
                T.clear(part)
                for j in T.serial(T.ceildiv(n, 8)):
                    T.mesh_tensor_copy(A, tile, coord=[i, j])
                    T.reduce_sum(tile, part, dim=1, clear=False)
                T.comm.all_reduce(part, total, axis="y")
                T.mesh_tensor_copy(total, S, coord=[i])

    return sums


def difference_of_row_sums(mesh):
    """Two calls of one function, and a kernel that reads what both left."""
    rows, columns = mesh.shape
    sums = row_sums(mesh)

    @T.prim_func
    def main(X: T.Tensor((M, N), "int32"), Y: T.Tensor((M, K), "int32"), S: T.Tensor((M,), "int32"),
             R: T.Tensor((M,), "int32"), D: T.Tensor((M,), "int32")):
        T.annotate_mesh_tensor({X: {"sharding": {"x": 0, "y": 1}, "tiling": [4, 8]},
                                Y: {"sharding": {"x": 0, "y": 1}, "tiling": [4, 8]},
                                S: {"sharding": {"x": 0}, "tiling": [4]},
                                R: {"sharding": {"x": 0}, "tiling": [4]},
                                D: {"sharding": {"x": 0}, "tiling": [4]}}, nrows=rows, ncols=columns)
        sums(X, S)
        sums(Y, R)
        with T.Kernel(rows, columns) as (r, c):
            s = T.alloc_shared((4,), "int32")
            t = T.alloc_shared((4,), "int32")
            for i in T.serial(T.ceildiv(T.get_sharded_shape(S)[0], 4)):
                T.mesh_tensor_copy(S, s, coord=[i])
                T.mesh_tensor_copy(R, t, coord=[i])
                for j in T.Parallel(4):
                    t[j] = t[j] - s[j]
                T.mesh_tensor_copy(t, D, coord=[i])

    return main


def row_sum_arguments(m, n):
    """Arguments of difference_of_row_sums, and what its last one holds afterwards."""
    x = np.arange(m * n, dtype="int32").reshape(m, n)
    y = np.arange(m * 9, dtype="int32").reshape(m, 9) % 7
    return [x, y, *np.zeros((3, m), "int32")], y.sum(axis=1) - x.sum(axis=1)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (3, 2)])
def test_calls_on_meshes(shape):
    mesh = helve.Mesh(shape)
    main = difference_of_row_sums(mesh)
    kernels = [helve.compile(main, mesh=mesh, target=target) for target in TARGETS]
    for extents in itertools.product([0, 1, 50], [0, 1, 77]):
        for kernel in kernels:
            arguments, expected = row_sum_arguments(*extents)
            kernel(*arguments)
            np.testing.assert_array_equal(arguments[-1], expected)
    helve.testing.assert_round_trip(main.function)


def test_every_stage_of_calls_on_a_mesh():
    mesh = helve.Mesh((2, 3))
    helve.testing.check_stages(difference_of_row_sums(mesh), lambda: row_sum_arguments(5, 3)[0], mesh=mesh)


def test_calls_of_a_function_with_collectives_of_its_host_body():
    mesh = helve.Mesh((2, 3))

    @T.prim_func(mesh=mesh)
    def shift(OUT: T.Tensor((2, 3), "int32"), by: T.int32):
        mine = T.alloc_global((1,), "int32")
        theirs = T.alloc_global((1,), "int32")
        with T.Kernel(2, 3) as (r, c):
            mine[0] = OUT[r, c] + by
        T.comm.permute(mine, theirs, shift=1, axis="y")
        with T.Kernel(2, 3) as (r, c):
            OUT[r, c] = theirs[0]

    @T.prim_func(mesh=mesh)
    def main(OUT: T.Tensor((2, 3), "int32")):
        shift(OUT, 10)
        shift(OUT, 100)

    agree(main, lambda: [np.arange(6, dtype="int32").reshape(2, 3)], [[111, 112, 110], [114, 115, 113]], mesh)


def test_cuda_text_and_thread_form():
    @T.prim_func
    def main(X: T.Tensor((M,), "float32"), Y: T.Tensor((M,), "float32")):
        t = T.alloc_global((M,), "float32")
        scale(X, t, 2.0)
        add(t, X, Y)

    helve.testing.check_stages(main, lambda: [numbers(21), np.zeros(21, "float32")], target="cuda")


def test_faults_inside_a_callee_name_every_call():
    @T.prim_func
    def inner(A: T.Tensor((N,), "int32"), at: T.index):
        with T.Kernel(1):
            A[at] = 1

    @T.prim_func
    def outer(A: T.Tensor((N,), "int32"), k: T.index):
        inner(A, k + 1)

    @T.prim_func
    def main(A: T.Tensor((4,), "int32"), k: T.index):
        outer(A, k)

    kernel = helve.compile(main, target="interp")
    a = np.zeros(4, "int32")
    kernel(a, 2)
    assert a.tolist() == [0, 0, 0, 1]
    with pytest.raises(helve.Error) as caught:
        kernel(a, 3)
    text = str(caught.value)
    assert caught.value.notes[-2:] == ["the function is called here"] * 2
    assert text.index("A[at] = 1") < text.index("inner(A, k + 1)") < text.index("outer(A, k)")


def test_two_calls_on_one_line_have_places_of_their_own():
    @T.prim_func
    def fill(A: T.Tensor((N,), "int32")):
        with T.Kernel(1):
            A[3] = 1

    with pytest.raises(helve.Error) as caught:
        @T.prim_func
        def main(A: T.Tensor((4,), "int32"), B: T.Tensor((2,), "int32")):
            fill(A); fill(B)  # noqa: E702

    assert caught.value.name == "OutOfBounds"
    assert str(caught.value).splitlines()[-3:-1][-1].strip().startswith("|") and "fill(B)" in str(caught.value)


def test_readers_of_proofs_see_the_line_of_the_callee():
    @T.prim_func
    def main(X: T.Tensor((M,), "float32"), Y: T.Tensor((M,), "float32")):
        scale(X, Y, 2.0)
        scale(Y, X, 2.0)

    proofs = helve.compile(main).proofs()
    assert all(proof.verdict == "proved" for proof in proofs)
    assert {proof.filename for proof in proofs} == {__file__}


def test_scalars_stand_in_the_types_of_tensors():
    @T.prim_func
    def fill(n: T.index, A: 'T.Tensor((n, 2), "int32")'):
        with T.Kernel(n) as b:
            A[b, 0] = T.cast(n, "int32")
            A[b, 1] = 1

    @T.prim_func
    def main(k: T.index, X: T.Tensor((3, 2), "int32"), Y: 'T.Tensor((k, 2), "int32")'):
        fill(3, X)
        fill(k, Y)

    agree(main, lambda: [4, np.zeros((3, 2), "int32"), np.zeros((4, 2), "int32")], [[4, 1]] * 4)
    with pytest.raises(helve.Error) as caught:
        @T.prim_func
        def wrong(k: T.index, X: T.Tensor((3, 2), "int32")):
            fill(k, X)

    assert caught.value.message == "dimension 0 of 'A' is k, the argument's is 3"


@pytest.mark.parametrize("twice, limit", [(False, "200 nested levels"), (True, "3000 bytes")])
def test_calls_of_calls_keep_the_limits_of_a_text(twice, limit, monkeypatch):
    """Functions nest and double until one is more than could be written."""
    monkeypatch.setattr("helve.script.function.SIZE_LIMIT", 10**6 if not twice else 3000)

    def around(inner):
        @T.prim_func
        def main(A: T.Tensor((1,), "int32")):
            for i in T.serial(1):
                for j in T.serial(1):
                    for k in T.serial(1):
                        for n in T.serial(1):
                            inner(A)
            if twice:
                inner(A)

        return main

    @T.prim_func
    def main(A: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            A[0] = A[0] * 3 - (A[0] + 7) * (A[0] - 4) * (A[0] + 11)

    with pytest.raises(helve.Error) as caught:
        for _ in range(60):
            main = around(main)
    assert caught.value.message == f"the text is beyond the limit of {limit}"
