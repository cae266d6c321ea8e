"""Kernels in versions: for rows that begin at multiples of vectors, and for any."""

import helve
import helve.testing
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned, blocks_and_extents, version, versions

TRANSPOSE = """
M = T.dyn("M")
N = T.dyn("N")

@T.prim_func
def main(A: T.Tensor((M, N), "{dtype}"), B: T.Tensor((N, M), "{dtype}")):
    with T.Kernel(T.ceildiv(N, 16), T.ceildiv(M, 16), threads=32) as (bx, by):
        X = T.alloc_shared((16, 16), "{dtype}")
        Y = T.alloc_fragment((16, 16), "{dtype}")
        T.copy(A[by * 16:by * 16 + 16, bx * 16:bx * 16 + 16], X)
        for i, j in T.Parallel(16, 16):
            Y[i, j] = X[j, i]
        T.copy(Y, B[bx * 16:bx * 16 + 16, by * 16:by * 16 + 16])
"""


def stage(text, name="version_kernels"):
    return dict(helve.testing.lowering_stages(helve.parse(text), target="cuda"))[name]


def condition(text):
    """The condition by which the host chooses a version, as text; None where there is one version."""
    body = stage(text).body
    return str(body.condition) if len(versions(stage(text))) == 2 else None


def kernel(params, body, head=""):
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return f"{head}@T.prim_func\ndef main({params}):\n    with T.Kernel(4, threads=32) as b:\n{lines}"


N = 'N = T.dyn("N")\n'
COPY = 'x = T.alloc_shared(({n},), "float32")\nT.copy(A[b, {begin}:{begin} + {n}], x)\nT.copy(x, B)'


@pytest.mark.parametrize(("dtype", "lanes"), [("float64", 2), ("float32", 4), ("bfloat16", 8), ("int8", 16)])
def test_both_sides_of_a_transpose_ask_for_whole_vectors(dtype, lanes):
    assert condition(TRANSPOSE.format(dtype=dtype)) == f"N % {lanes} == 0 and M % {lanes} == 0"


@pytest.mark.parametrize(("n", "begin", "wanted"), [
    (64, "0", "N % 4 == 0"),
    (6, "0", "N % 2 == 0"),  # the run has no whole vectors of four
    (64, "b * 2", "N % 2 == 0"),
    (64, "b * 64 + 4", "N % 4 == 0"),
    (64, "b", None),
    (7, "0", None),
])
def test_what_a_row_could_move_at_once(n, begin, wanted):
    params = f'A: T.Tensor((4, N), "float32"), B: T.Tensor(({n},), "float32")'
    assert condition(kernel(params, COPY.format(n=n, begin=begin), N)) == wanted


@pytest.mark.parametrize(("loop", "value", "wanted"), [
    ("i, j in T.Parallel(4, 64)", "A[i, j]", "N % 4 == 0"),
    ("i, j in T.Parallel(4, 64)", "A[i, j + 2]", "N % 2 == 0"),
    ("i, j in T.Parallel(4, 64)", "A[i, 63 - j]", None),
    ("i, j in T.Parallel(4, 64)", "A[i, j * 2]", None),
    ("j, i in T.Parallel(64, 4)", "A[i, j]", None),
])
def test_loops_over_elements(loop, value, wanted):
    params = 'A: T.Tensor((4, N), "float32"), B: T.Tensor((4, 64), "float32")'
    assert condition(kernel(params, f"for {loop}:\n    B[i, j] = {value}", N)) == wanted


def test_an_atomic_store_moves_one_element():
    params = 'A: T.Tensor((4, N), "float32"), B: T.Tensor((4, 64), "float32")'
    body = "for i, j in T.Parallel(4, 64):\n    T.atomic_add(A[i, j], B[i, j])"
    assert condition(kernel(params, body, N)) is None


@pytest.mark.parametrize(("shape", "at", "wanted"), [
    ("(4, 64)", "0, ", None),  # constant rows
    ("(4, 63)", "0, ", None),
    ("(N, 64)", "0, ", None),
    ("(N,)", "", None),
    ("(4, N * 8)", "0, ", None),  # always whole vectors
    ("(N, 4, N)", "0, 0, ", "N % 4 == 0"),
    ("(4, N + 2)", "0, ", "(N + 2) % 4 == 0"),
])
def test_shapes(shape, at, wanted):
    params = f'A: T.Tensor({shape}, "float32"), B: T.Tensor((8,), "float32"), C: T.Tensor((N,), "int8")'
    body = f'x = T.alloc_shared((8,), "float32")\nT.copy(A[{at}0:8], x)\nT.copy(x, B)'
    assert condition(kernel(params, body, N)) == wanted


@pytest.mark.parametrize(("strides", "wanted"), [
    ("(p, 1)", "p % 4 == 0"),
    ("(1, p)", None),
    ("(p, p)", None),
    ("(p * 4, 1)", None),
])
def test_strides_of_the_call(strides, wanted):
    params = f'p: T.index, A: T.Tensor((4, 8), "float32", strides={strides}), B: T.Tensor((8,), "float32")'
    body = 'x = T.alloc_shared((8,), "float32")\nT.copy(A[b, 0:8], x)\nT.copy(x, B)'
    assert condition(kernel(params, body)) == wanted


def test_under_a_condition_of_the_host_that_says_as_much():
    text = TRANSPOSE.format(dtype="float32")
    head, launch = text.split("    with T.Kernel", 1)
    launch = "    with T.Kernel" + launch
    inside = "".join(f"    {line}\n" for line in launch.splitlines())
    given = stage(f"{head}    if N % 8 == 0 and M % 4 == 0:\n{inside}")
    assert given.body.then_body.fields == stage(text).body.then_body.fields  # a kernel, not a choice
    assert given.body.else_body is None


def test_a_mesh_function_has_one_version():
    params = 'A: T.Tensor((4, N), "float32"), B: T.Tensor((64,), "float32")'
    function = helve.parse(kernel(params, COPY.format(n=64, begin="0"), N))
    stages = dict(helve.testing.lowering_stages(function, helve.Mesh((4,), ("x",)), target="cuda"))
    assert len(versions(stages["version_kernels"])) == 1


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_each_version_on_every_stage_and_in_text(tmp_path, dtype):
    function = helve.parse(TRANSPOSE.format(dtype=dtype))
    kind = helve.testing.numpy_dtype(dtype)
    forms = {arch: helve.testing.lowering_stages(function, None, 1, "cuda", arch)[-1][1]
             for arch in ("sm_80", "sm_90a")}
    kernels = HostKernels(forms.values(), tmp_path, names=list(forms))
    launched = set()
    for m, n in [(16, 32), (40, 24), (24, 40), (7, 16), (16, 7), (8, 0), (1, 1), (33, 50)]:
        a = np.arange(m * n, dtype="float32").reshape(m, n).astype(kind)
        helve.testing.check_stages(function, lambda: [a.copy(), np.zeros((n, m), kind)], target="cuda")
        for arch, form in forms.items():
            given = [aligned(a), aligned(np.zeros((n, m), kind))]
            blocks, extents = blocks_and_extents(form, given)
            if blocks:
                launched.add(version(form, extents))
                kernels.run(arch, blocks, dict(zip("AB", given)), extents)
            np.testing.assert_array_equal(given[1], a.T)
    assert launched == {0, 1}


def test_a_version_moves_vectors():
    form = stage(TRANSPOSE.format(dtype="bfloat16"), "insert_barriers")
    wide, single = (helve._core.print(form).split("    else:\n        with T.Kernel"))
    assert "T.vectorized(8)" in wide and "T.vectorized" not in single
