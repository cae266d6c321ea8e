"""Printed functions read back as equal functions.

The printer and the parser are written apart; this holds them together. Each text below is normal: it prints as itself.
"""

import pytest
from helve import _core, parse

HEAD = ('@T.prim_func\n'
        'def main(A: T.Tensor((40, 50), "float32"), B: T.Tensor((40, 50), "float32"), s: T.float32, n: T.index):\n')
IN_KERNEL = "    with T.Kernel(4, 3) as (bx, by):\n"

HOST = {
    "an empty body": "    pass\n",
    "a global buffer and a loop": (
        '    G = T.alloc_global((64,), "float32")\n    for b in T.serial(8):\n'
        '        with T.Kernel(b, threads=64) as bx:\n'
        "            G[bx] = 1.0\n"
    ),
    "two kernels": "    with T.Kernel(2) as bx:\n        pass\n    with T.Kernel(n) as bx_1:\n        A[bx_1, 0] = s\n",
}

KERNEL = {
    "allocations": (
        'S = T.alloc_shared((32, 1), "float16")\nX = T.alloc_shared_tiles((40,), "float32")\n'
        'Y = T.alloc_shared_tiles((2, 40, 50), "float32", tile_size=(1, 16, 32))\n'
        'Z = T.alloc_shared_tiles((40, 50), "float32")\nF = T.alloc_fragment((32,), "bfloat16")\n'
        'L = T.alloc_local((1,), "int32")\n'
    ),
    "loops": (
        "for i in T.serial(3, n):\n    for j in T.unroll(i, i + 4):\n        A[i, j] = 0.0\n"
        "for k, l in T.Parallel((1, 5), n):\n    A[k, l] = B[k, l]\n"
        "for m in T.Pipelined(n, num_stages=2):\n    A[m, 0] = 1.0\n"
        "for o, p in T.Persistent([4, (n, n + 2)]):\n    A[o, p] = 2.0\n"
        "for q in T.vectorized(n, 2 * n):\n    A[0, q] = 3.0\n"
    ),
    "branches": (
        "if bx < 3 and not by == n:\n    A[bx, 0] = 1.0\nelif A[0, 0] > 2.0 or bx != by:\n    A[bx, 0] = 2.0\nelse:\n"
        "    pass\n"
        "while A[0, 0] < s:\n    A[0, 0] = A[0, 0] + 1.0\nif T.bool(True):\n    A[0, 1] = 0.0\n"
    ),
    "binds": (
        "v = bx + 1\nw = T.index(3)\nx = T.float32(2.0)\nf = T.bool(False)\ny = T.cast(v, \"float32\") * x\n"
        "if f:\n    A[w, v] = y\nz = T.infinity(\"float32\")\nA[0, 0] = z\n"
    ),
    "precedence": (
        "A[bx, by] = (s + 1.0) * (s - (s - 2.0)) / -s\n"
        "A[0, 0] = T.if_then_else((bx < 3) == (by < 2), T.exp(-s), -1.5)\n"
        "A[bx - (by - n), (bx + by) // 2 % 3] = T.max(s, T.min(s * -2.0, T.fma(s, s, 0.0)))\n"
        "A[T.index(1) + 2, 0] = T.float32(1.0) + 2.0\n"
    ),
    "regions": (
        'S = T.alloc_shared((32,), "float32")\nR = T.alloc_shared((32, 50), "float32")\nT.copy(A[0:32, bx], S)\n'
        "T.copy(A[bx * 32:bx * 32 + 32, :], R)\nT.copy(R, B[8:40, :], pad=-1.0)\n"
        "T.copy(A[n:n + 32, :], R, pad=-T.infinity(\"float32\"))\n"
        "T.copy(A[0:n, 0:0], B[by:n, 0:0])\n"
    ),
    "operations": (
        'P = T.alloc_shared((8, 4), "float16")\nQ = T.alloc_shared((6, 4), "float16")\n'
        'C = T.alloc_fragment((8, 6), "float32")\n'
        'D = T.alloc_fragment((8,), "float32")\nT.fill(C, 1.5)\nT.clear(D)\nT.gemm(P, Q, C, transpose_B=True)\n'
        "T.reduce_sum(C, D)\nT.reduce_absmax(C, D, dim=1, clear=False)\n"
    ),
    "tile loops": (
        'X = T.alloc_shared_tiles((40, 50), "float32")\npart = T.alloc_shared_tiles((40,), "float32")\n'
        "for i, j in T.foreach_tiles(X, parallel=True):\n    X[i, j] = X[i, j] * part[i]\n"
        "for k in T.foreach_tiles(part):\n    part[k] = T.rsqrt(part[k] / 50.0 + 1e-06)\n"
    ),
}

WHOLE = {
    "types": (
        '@T.prim_func\n'
        'def f(A: T.Tensor((4,), "bfloat16"), B: T.Tensor((), "uint8"), '
        'C: T.Tensor((4, 4), "float64", strides=(9, 1)), '
        "flag: T.bool, m: T.int32):\n    with T.Kernel(1) as bx:\n"
        '        A[0] = T.cast(C[0, 1] + 0.1, "bfloat16")\n        A[1] = 0.100097656\n        B[()] = B[()] + 255\n'
        "        if flag:\n            C[bx, 0] = 0.1\n        if m & 3 == 2:\n            C[0, 0] = -0.0\n"
    ),
    "dynamic extents": (
        'M = T.dyn("M")\nN = T.dyn("N")\n\n@T.prim_func\n'
        'def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((N,), "float32", strides=(2,))):\n'
        "    with T.Kernel((M + 32 - 1) // 32) as bx:\n        for i in T.Parallel(N):\n            A[bx, i] = B[i]\n"
    ),
    "a mesh": (
        '@T.prim_func\ndef main(A: T.Tensor((40, 50), "float32")):\n'
        '    T.annotate_mesh_tensor({A: {"sharding": {"x": 0, "y": 1}, "tiling": [8, 16]}}, nrows=2, ncols=3)\n'
        '    with T.Kernel(2, 3) as (rid, cid):\n        X = T.alloc_shared((8, 16), "float32")\n'
        '        Y = T.alloc_shared((8, 16, 3), "float32")\n        T.mesh_tensor_copy(A, X, coord=[0, 1], pad=1.0)\n'
        '        T.comm.all_gather(X, Y, axis="y")\n        T.comm.broadcast(X, X, 1, axis="x")\n'
        '        T.comm.all_reduce(X, X, op="max")\n'
        "        T.comm.put(X, X, src_core=[0, 1], dst_core=[1, 2])\n        T.comm.barrier()\n"
    ),
    "a mesh of other axes": (
        '@T.prim_func(mesh=T.Mesh((6,), ("ring",)))\ndef main(A: T.Tensor((40, 50), "float32")):\n'
        '    T.annotate_mesh_tensor({A: {"sharding": {"ring": 1}, "tiling": [8, 16]}})\n'
        '    with T.Kernel(6) as bx:\n        X = T.alloc_shared((8,), "float32")\n'
        '        T.comm.permute(X, X, shift=-1, axis="ring")\n'
    ),
    "a mesh without sharded tensors": (
        '@T.prim_func(mesh=T.Mesh((2, 4), ("x", "y")))\ndef main():\n    with T.Kernel(2, 4) as (rid, cid):\n'
        '        T.comm.barrier(axis="y")\n'
    ),
}


def indented(text):
    return "".join(f"        {line}\n" for line in text.splitlines())


TEXTS = {
    **{title: HEAD + text for title, text in HOST.items()},
    **{title: HEAD + IN_KERNEL + indented(text) for title, text in KERNEL.items()},
    **WHOLE,
}


def function_of(prim_func):
    return prim_func.function


def assert_equal(a, b):
    same, path = _core.structural_equal(a, b)
    assert same, f"differs at {path}"


@pytest.mark.parametrize("title", TEXTS)
def test_a_normal_text_prints_as_itself(title):
    function = function_of(parse(TEXTS[title]))
    text = _core.print(function)
    assert text == TEXTS[title]
    again = function_of(parse(text))
    assert_equal(function, again)


def test_a_changed_text_is_not_equal():
    text = TEXTS["regions"]
    same, path = _core.structural_equal(function_of(parse(text)), function_of(parse(text.replace("8:40", "7:39"))))
    assert not same
    assert path == "body.body.stmts[4].operands[1][0].value"


@pytest.mark.parametrize(
    "written, printed",
    [
        ("for i in range(0, n, 3):\n    A[i, 0] = 1", None),
        ("A[0, 0] += s", "A[0, 0] = A[0, 0] + s\n"),
        ("T.copy(A[0:40, 0:50], B)", "T.copy(A, B)\n"),
        ("for i in T.serial(0, 8):\n    A[i, 0] = 1", "for i in T.serial(8):\n    A[i, 0] = 1.0\n"),
        ("for _, _ in T.Parallel(2, 3):\n    A[0, 0] = 1", "for v, v_1 in T.Parallel(2, 3):\n    A[0, 0] = 1.0\n"),
        ("for i, j in T.Parallel(2, 3):\n    A[i, j] = 0\nfor i, j in T.Parallel(2, 3):\n    A[i, j] = 0", None),
    ],
)
def test_sugar_prints_as_what_it_means(written, printed):
    function = function_of(parse(HEAD + IN_KERNEL + indented(written)))
    text = _core.print(function)
    if printed is not None:
        assert text == HEAD + IN_KERNEL + indented(printed)
    assert_equal(function, function_of(parse(text)))
    assert _core.print(function_of(parse(text))) == text
