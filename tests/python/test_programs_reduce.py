"""Reductions and matrix products as whole programs.

Every reduction over every dimension, with and without it in the result; products of every transposition and dtype.
"""

import helve
import numpy as np
import pytest
from differential import FLOATS, INTS, check, dtype_of, sample

ALLOC = {
    "plain": "T.alloc_shared({shape}, {dtype!r})",
    "tiles": "T.alloc_shared_tiles({shape}, {dtype!r}, tile_size={tile})",
}
NUMPY = {
    "sum": np.add.reduce, "prod": np.multiply.reduce, "max": np.maximum.reduce, "min": np.minimum.reduce,
    "any": np.logical_or.reduce, "all": np.logical_and.reduce,
}  # fmt: skip


def alloc(kind, shape, dtype, tile=8):
    return ALLOC[kind].format(shape=tuple(shape), dtype=dtype,
                              tile=(1,) * max(0, len(shape) - 2) + (tile,) * min(2, len(shape)))


def text(head, *body):
    lines = "".join(f"        {line}\n" for line in body)
    return helve.parse(f"@T.prim_func\ndef main({head}):\n    with T.Kernel(1) as bx:\n{lines}")


def reduced(op, a, dim, start=None):
    """The reduction in a wide type, wrapped to the dtype of `a` for integers; joined with `start` when given."""
    wide = a.astype(np.float64) if a.dtype.kind not in "iub" else a
    if op == "absmax":
        wide, op = np.abs(wide), "max"
        initial = {"initial": 0}
    else:
        initial = {}
        if op in ("max", "min") and a.shape[dim] == 0:
            least = op == "max"
            initial = {"initial": (-np.inf if least else np.inf)}
            if a.dtype.kind in "iu":
                initial = {"initial": np.iinfo(a.dtype).min if least else np.iinfo(a.dtype).max}
    if op in ("sum", "prod") and a.dtype.kind in "iu":
        initial["dtype"] = a.dtype
    out = NUMPY[op](wide, axis=dim, **initial)
    if start is not None:
        out = NUMPY[op](np.stack([out.astype(wide.dtype), start.astype(wide.dtype)]), axis=0,
                        **({"dtype": a.dtype} if "dtype" in initial else {}))
    return out.astype(a.dtype)


def run(op, shape, dim, dtype="float32", kind="plain", keep=False, clear=True, tile=8):
    out = list(shape)
    out[dim] = 1
    if not keep:
        del out[dim]
    program = text(
        f'A: T.Tensor({tuple(shape)}, "{dtype}"), B: T.Tensor({tuple(out)}, "{dtype}")',
        f"S = {alloc(kind, shape, dtype, tile)}",
        f"D = {alloc(kind if out else 'plain', out, dtype, tile)}",
        "T.copy(A, S)",
        "T.copy(B, D)",
        f"T.reduce_{op}(S, D, dim={dim}, clear={clear})",
        "T.copy(D, B)",
    )
    a = sample(shape, dtype, 5)
    b = sample(out, dtype, 6)
    wanted = reduced(op, a, dim, None if clear else b.reshape(reduced(op, a, dim).shape)).reshape(b.shape)
    check(program, [a, b], {1: wanted}, atol=1e-4 if dtype == "float32" else None)


NUMBER_OPS = ["sum", "prod", "max", "min", "absmax"]


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS])
@pytest.mark.parametrize(("shape", "dim"), [((5, 19), 0), ((5, 19), -1), ((3, 0), 1), ((0, 3), 0)])
def test_dtypes(dtype, shape, dim):
    """All reductions of one source in one program; over nothing they give their identities."""
    out = [n for d, n in enumerate(shape) if d != dim % 2]
    names = [f"R{op}" for op in NUMBER_OPS]
    program = text(
        ", ".join([f'A: T.Tensor({shape}, "{dtype}")', *[f'{n}: T.Tensor(({out[0]},), "{dtype}")' for n in names]]),
        f"S = {alloc('tiles', shape, dtype)}",
        "T.copy(A, S)",
        *[f"T.reduce_{op}(S, {n}, dim={dim})" for op, n in zip(NUMBER_OPS, names)],
    )
    a = sample(shape, dtype, 5)
    if dtype in FLOATS:
        a = (1 + 0.1 * a.astype(np.float64)).astype(a.dtype)
    check(program, [a, *[np.zeros(out, a.dtype)] * 5], {1 + i: reduced(op, a, dim) for i, op in enumerate(NUMBER_OPS)},
          atol=1e-4)


@pytest.mark.parametrize("op", ["any", "all"])
@pytest.mark.parametrize(("shape", "dim"), [((5, 19), 0), ((5, 19), 1), ((1, 3), 1), ((0, 3), 0), ((3, 0), 1)])
@pytest.mark.parametrize("clear", [True, False])
def test_bools(op, shape, dim, clear):
    run(op, shape, dim, "bool", clear=clear, kind="tiles" if clear else "plain")


@pytest.mark.parametrize("kind", ALLOC)
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize(
    ("shape", "dim"),
    [((23,), 0), ((1,), 0), ((9, 33), 0), ((9, 33), 1), ((1, 8), 0), ((8, 1), 1), ((3, 5, 18), 0), ((3, 5, 18), 1),
     ((3, 5, 18), -1)],
)
def test_dimensions(shape, dim, keep, kind):
    run("sum", shape, dim, kind=kind, keep=keep, clear=keep == (kind == "plain"))


@pytest.mark.parametrize("op", ["max", "min", "absmax"])
@pytest.mark.parametrize("dim", [0, 1])
def test_not_a_number_is_kept(op, dim):
    program = text(
        f'A: T.Tensor((9, 17), "float32"), B: T.Tensor(({(17, 9)[dim]},), "float32")',
        f"S = {alloc('plain', (9, 17), 'float32')}", "T.copy(A, S)", f"T.reduce_{op}(S, B, dim={dim})",
    )  # fmt: skip
    a = sample((9, 17))
    a[3, 11] = np.nan
    check(program, [a, np.zeros((17, 9)[dim], np.float32)], {1: reduced(op, a, dim)})


@pytest.mark.parametrize("kind", ALLOC)
def test_regions_of_sources_and_results(kind):
    program = text(
        'A: T.Tensor((12, 30), "float32"), B: T.Tensor((14,), "float32"), C: T.Tensor((3, 30), "float32")',
        f"S = {alloc(kind, (12, 30), 'float32', 4)}",
        f"D = {alloc(kind, (14,), 'float32', 4)}",
        f"E = {alloc(kind, (3, 30), 'float32', 4)}",
        "T.copy(A, S)",
        "T.fill(D, 0.5)",
        "T.fill(E, 0.5)",
        "T.reduce_max(S[2:9, 5:22], D[3:10], dim=1)",
        "T.reduce_sum(S[3, 5:22], D[12], dim=0)",
        "T.reduce_sum(S[4:12, 6], D[13:14], dim=0)",
        "T.reduce_sum(S[1:8, 3:27], E[1, 2:26], dim=0)",
        "T.reduce_min(S[1:8, 3:27], E[2:3, 2:26], dim=0, clear=False)",
        "T.copy(D, B)",
        "T.copy(E, C)",
    )
    a = sample((12, 30))
    b = np.full(14, 0.5, np.float32)
    b[3:10] = a[2:9, 5:22].max(1)
    b[12] = a[3, 5:22].sum()
    b[13] = a[4:12, 6].sum()
    c = np.full((3, 30), 0.5, np.float32)
    c[1, 2:26] = a[1:8, 3:27].sum(0)
    c[2, 2:26] = np.minimum(0.5, a[1:8, 3:27].min(0))
    check(program, [a, np.zeros_like(b), np.zeros_like(c)], {1: b, 2: c})


def test_results_in_a_wider_type():
    program = text(
        'A: T.Tensor((7, 40), "int8"), B: T.Tensor((7,), "int32"), C: T.Tensor((7, 40), "bfloat16"), '
        'D: T.Tensor((7,), "float32"), '
        'E: T.Tensor((7, 40), "float32"), F: T.Tensor((40,), "bfloat16")',
        'S = T.alloc_shared((7, 40), "int8")', 'R = T.alloc_shared((7, 40), "bfloat16")',
        'Q = T.alloc_shared((7, 40), "float32")',
        "T.copy(A, S)", "T.copy(C, R)", "T.copy(E, Q)",
        "T.reduce_sum(S, B, dim=1)", "T.reduce_sum(R, D, dim=1)", "T.reduce_sum(Q, F, dim=0)",
    )  # fmt: skip
    a = np.full((7, 40), 100, np.int8)
    c, e = sample((7, 40), "bfloat16"), sample((7, 40))
    f = np.zeros(40, dtype_of("bfloat16"))
    check(
        program,
        [a, np.zeros(7, np.int32), c, np.zeros(7, np.float32), e, f],
        {1: np.full(7, 4000, np.int32), 3: c.astype(np.float32).sum(1), 5: e.sum(0).astype(f.dtype)},
    )


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_reductions_straight_from_parameters_of_any_extent(dim):
    names = ["M", "N", "K"]
    kept = ", ".join(n for d, n in enumerate(names) if d != dim)
    part = ", ".join("begin:" + n if d == dim else ":" for d, n in enumerate(names))
    program = helve.parse(
        "".join(f'{n} = T.dyn("{n}")\n' for n in names)
        + f'@T.prim_func\n'
          f'def main(A: T.Tensor((M, N, K), "float32"), B: T.Tensor(({kept}), "float32"), begin: T.index):\n'
        + f"    with T.Kernel(1) as bx:\n        T.reduce_sum(A, B, dim={dim})\n"
        + f"        T.reduce_max(A[{part}], B, dim={dim}, clear=False)\n"
    )
    for shape in ((5, 3, 33), (1, 1, 1), (3, 0, 2), (0, 4, 1), (2, 5, 64)):
        a = sample(shape)
        begin = min(1, shape[dim])
        wanted = a.astype(np.float64).sum(dim)
        wanted = np.maximum(wanted, np.take(a, range(begin, shape[dim]), dim).max(dim, initial=-np.inf))
        check(program, [a, np.zeros(wanted.shape, np.float32), begin], {1: wanted})


def test_products_of_any_extent():
    program = helve.parse(
        'M = T.dyn("M")\nN = T.dyn("N")\nK = T.dyn("K")\n@T.prim_func\n'
        'def main(A: T.Tensor((M, K), "float32"), B: T.Tensor((N, K), "float32"), C: T.Tensor((M, N), "float32")):\n'
        "    with T.Kernel(1) as bx:\n        T.gemm(A, B, C, transpose_B=True)\n"
    )
    for m, n, k in ((3, 5, 7), (1, 1, 1), (2, 64, 3), (4, 130, 2), (2, 0, 3), (0, 2, 1), (3, 2, 0)):
        a, b, c = sample((m, k), seed=1), sample((n, k), seed=2), sample((m, n), seed=3)
        check(program, [a, b, c], {2: c + a.astype(np.float64) @ b.T}, atol=1e-4)


GEMM_DTYPES = [
    ("float32", "float32"), ("float64", "float64"), ("float16", "float32"), ("bfloat16", "float32"),
    ("float16", "float16"),
    ("bfloat16", "bfloat16"), ("int8", "int32"), ("uint8", "int32"), ("int32", "int64"), ("int8", "int64"),
    ("float32", "float64"),
]  # fmt: skip


def product(shape, a_dtype, c_dtype, ta=False, tb=False, clear=False, kind="plain"):
    m, n, k = shape
    sa, sb = ((k, m) if ta else (m, k)), ((n, k) if tb else (k, n))
    program = text(
        f'A: T.Tensor({sa}, "{a_dtype}"), B: T.Tensor({sb}, "{a_dtype}"), C: T.Tensor({(m, n)}, "{c_dtype}")',
        f"P = {alloc(kind, sa, a_dtype)}",
        f"Q = {alloc(kind, sb, a_dtype)}",
        f"R = {alloc(kind, (m, n), c_dtype)}",
        "T.copy(A, P)", "T.copy(B, Q)", "T.copy(C, R)",
        f"T.gemm(P, Q, R, transpose_A={ta}, transpose_B={tb}, clear={clear})",
        "T.copy(R, C)",
    )  # fmt: skip
    a, b, c = sample(sa, a_dtype, 1), sample(sb, a_dtype, 2), sample((m, n), c_dtype, 3)
    wide = np.int64 if c.dtype.kind in "iu" else np.float64
    left, right = a.astype(wide), b.astype(wide)
    wanted = (left.T if ta else left) @ (right.T if tb else right) + (0 if clear else c.astype(wide))
    check(program, [a, b, c], {2: wanted.astype(c.dtype)}, atol=3e-2 if "16" in c_dtype else 1e-4)


@pytest.mark.parametrize(("a_dtype", "c_dtype"), GEMM_DTYPES)
def test_gemm_dtypes(a_dtype, c_dtype):
    product((7, 19, 11), a_dtype, c_dtype)


@pytest.mark.parametrize("shape", [(7, 19, 11), (1, 1, 1), (3, 5, 0), (0, 4, 3)])
@pytest.mark.parametrize("kind", ALLOC)
@pytest.mark.parametrize(("ta", "tb", "clear"), [(False, True, True), (True, False, False), (True, True, True)])
def test_gemm_shapes(shape, kind, ta, tb, clear):
    product(shape, "float32", "float32", ta, tb, clear, kind)


@pytest.mark.parametrize("kind", ALLOC)
def test_gemm_of_regions(kind):
    program = text(
        'A: T.Tensor((3, 10, 12), "float32"), B: T.Tensor((12, 20), "float32"), C: T.Tensor((9, 21), "float32")',
        f"P = {alloc(kind, (3, 10, 12), 'float32', 4)}",
        f"Q = {alloc(kind, (12, 20), 'float32', 4)}",
        f"R = {alloc(kind, (9, 21), 'float32', 4)}",
        "T.copy(A, P)", "T.copy(B, Q)", "T.copy(C, R)",
        "T.gemm(P[1, 2:9, 3:12], Q[1:10, 4:19], R[1:8, 5:20])",
        "T.copy(R, C)",
    )  # fmt: skip
    a, b, c = sample((3, 10, 12), seed=1), sample((12, 20), seed=2), sample((9, 21), seed=3)
    wanted = c.copy()
    wanted[1:8, 5:20] += a[1, 2:9, 3:12] @ b[1:10, 4:19]
    check(program, [a, b, c], {2: wanted}, atol=1e-4)


def test_gemm_in_a_kernel_with_tiles_and_tails():
    from helve import T

    m, n, k, bm, bn, bk = 45, 37, 50, 16, 16, 16

    @T.prim_func
    def main(A: T.Tensor((m, k), "float32"), B: T.Tensor((k, n), "float32"), C: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(m, bm), T.ceildiv(n, bn)) as (bx, by):
            P = T.alloc_shared((bm, bk), "float32")
            Q = T.alloc_shared((bk, bn), "float32")
            R = T.alloc_fragment((bm, bn), "float32")
            T.clear(R)
            for step in T.Pipelined(T.ceildiv(k, bk), num_stages=2):
                T.copy(A[bx * bm : bx * bm + bm, step * bk : step * bk + bk], P)
                T.copy(B[step * bk : step * bk + bk, by * bn : by * bn + bn], Q)
                T.gemm(P, Q, R)
            T.copy(R, C[bx * bm : bx * bm + bm, by * bn : by * bn + bn])

    a, b = sample((m, k), seed=1), sample((k, n), seed=2)
    check(main, [a, b, np.zeros((m, n), np.float32)], {2: a.astype(np.float64) @ b}, atol=1e-4)
