"""Copies, fills and clears as whole programs.

Regions that begin and end anywhere, reach past parameters, convert and drop dimensions, against slices of NumPy.
"""

import helve
import numpy as np
import pytest
from differential import check, dtype_of, sample
from helve import T

LOCALS = {
    "plain": 'T.alloc_shared({shape}, "{dtype}")',
    "fragment": 'T.alloc_fragment({shape}, "{dtype}")',
    "tiles": 'T.alloc_shared_tiles({shape}, "{dtype}", tile_size={tile})',
}


def alloc(kind, shape, dtype="float32", tile=None):
    tile = tile or (4,) * len(shape)
    return LOCALS[kind].format(shape=tuple(shape), dtype=dtype, tile=tuple(tile))


def text(head, *body):
    lines = "".join(f"        {line}\n" for line in body)
    return helve.parse(f"@T.prim_func\ndef main({head}):\n    with T.Kernel(1) as bx:\n{lines}")


@pytest.mark.parametrize("kind", LOCALS)
@pytest.mark.parametrize(
    ("shape", "window", "begin"),
    [
        ((10, 13), (10, 13), (0, 0)),
        ((10, 13), (5, 7), (3, 2)),
        ((10, 13), (8, 8), (4, 8)),  # past the end of one dimension
        ((10, 13), (8, 8), (8, 8)),  # past the end of both
        ((10, 13), (4, 4), (12, 16)),  # nothing left
        ((1, 1), (4, 5), (0, 0)),
        ((10, 13), (1, 13), (9, 0)),
        ((10, 0), (3, 2), (0, 0)),
    ],
)
def test_windows_in_and_out(kind, shape, window, begin):
    (m, n), (h, w), (r, c) = shape, window, begin
    program = text(
        f'A: T.Tensor({shape}, "float32"), W: T.Tensor({window}, "float32"), B: T.Tensor({shape}, "float32")',
        f"S = {alloc(kind, window)}",
        f"T.copy(A[{r}:{r + h}, {c}:{c + w}], S, pad=-2.5)",
        "T.copy(S, W)",
        f"T.copy(S, B[{r}:{r + h}, {c}:{c + w}])",
    )
    a = sample(shape)
    seen = np.full(window, -2.5, np.float32)
    part = a[r : r + h, c : c + w]
    seen[: part.shape[0], : part.shape[1]] = part
    b = np.full(shape, 7.0, np.float32)
    wanted = b.copy()
    wanted[r : r + h, c : c + w] = part
    check(program, [a, np.zeros(window, np.float32), b], {1: seen, 2: wanted})


@pytest.mark.parametrize("kind", LOCALS)
@pytest.mark.parametrize("other", LOCALS)
def test_parts_of_local_buffers(kind, other):
    program = text(
        'A: T.Tensor((10, 13), "float32"), B: T.Tensor((9, 11), "float32")',
        f"S = {alloc(kind, (10, 13))}",
        f"D = {alloc(other, (9, 11), tile=(2, 8))}",
        "T.copy(A, S)",
        "T.fill(D, 1.0)",
        "T.copy(S[3:8, 5:12], D[1:6, 2:9])",
        "T.fill(D[7:9, 3:10], -1.0)",
        "T.clear(D[8, 10])",
        "T.copy(D, B)",
    )
    a = sample((10, 13))
    b = np.ones((9, 11), np.float32)
    b[1:6, 2:9] = a[3:8, 5:12]
    b[7:9, 3:10] = -1
    b[8, 10] = 0
    check(program, [a, np.zeros_like(b)], {1: b})


@pytest.mark.parametrize("kind", LOCALS)
def test_points_and_extents_of_one(kind):
    program = text(
        'A: T.Tensor((3, 10, 1, 7), "float32"), B: T.Tensor((10, 7), "float32"), C: T.Tensor((2, 1, 7), "float32"), '
        'D: T.Tensor((7,), "float32"), E: T.Tensor((3, 10, 1, 7), "float32")',
        f"S = {alloc(kind, (10, 7))}",
        f"R = {alloc(kind, (1, 7), tile=(1, 4))}",
        f"V = {alloc(kind, (7,))}",
        "T.copy(A[1, :, :, :], S)",
        "T.copy(S, B)",
        "T.copy(A[2, 9, 0, 0:7], R)",
        "T.copy(R, C[1, 0, :])",
        "T.copy(R[0, :], C[0:1, :, :])",
        "T.copy(S[4:5, :], V)",
        "T.copy(V, D)",
        "T.copy(S[:, :], E[0:1, :, 0, :])",
        "T.copy(V, E[2, 9, 0, :])",
        "T.copy(V[3:4], E[1, 5, 0, 6])",
    )
    a = sample((3, 10, 1, 7))
    e = sample((3, 10, 1, 7), seed=2)
    wanted = e.copy()
    wanted[0] = a[1]
    wanted[2, 9, 0] = a[1, 4, 0]
    wanted[1, 5, 0, 6] = a[1, 4, 0, 3]
    c = np.stack([a[2, 9], a[2, 9]])
    zero = np.zeros
    check(
        program,
        [a, zero((10, 7), np.float32), zero((2, 1, 7), np.float32), zero(7, np.float32), e],
        {1: a[1, :, 0], 2: c, 3: a[1, 4, 0], 4: wanted},
    )


CASTS = [
    ("float32", "float16"), ("float32", "bfloat16"), ("float16", "float32"), ("bfloat16", "float64"),
    ("float64", "float32"),
    ("int32", "float32"), ("int8", "int32"), ("uint8", "int16"), ("int32", "int8"), ("int64", "uint16"),
    ("bool", "int32"),
    ("float32", "int32"), ("int32", "bool"), ("float32", "bool"), ("bool", "float32"), ("bool", "bool"),
    ("float16", "bfloat16"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target"), CASTS)
def test_casts(source, target):
    program = text(
        f'A: T.Tensor((5, 19), "{source}"), B: T.Tensor((5, 19), "{target}"), C: T.Tensor((5, 19), "{target}")',
        f"S = {alloc('tiles', (5, 19), source)}",
        f"D = {alloc('plain', (5, 19), target)}",
        "T.copy(A, S)",
        "T.copy(S, D)",
        "T.copy(D, B)",
        "T.copy(A, C)",
    )
    a = sample((5, 19), source)
    b = a.astype(dtype_of(target))
    check(program, [a, np.zeros_like(b), np.zeros_like(b)], {1: b, 2: b})


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "bfloat16", "uint64"])
@pytest.mark.parametrize("kind", LOCALS)
def test_fill_and_clear(kind, dtype):
    value = {"bool": "True", "float32": "-T.infinity()", "uint64": str(2**64 - 1)}.get(dtype, "-3")
    program = text(
        f'A: T.Tensor((6, 37), "{dtype}"), B: T.Tensor((6, 37), "{dtype}"), C: T.Tensor((6, 37), "{dtype}")',
        f"S = {alloc(kind, (6, 37), dtype)}",
        f"T.fill(S, {value})",
        "T.copy(S, A)",
        "T.clear(S)",
        "T.copy(S, B)",
        f"T.fill(C[1:5, 3:36], {value})",
        "T.clear(C[2, :])",
    )
    number = {"bool": True, "float32": -np.inf, "uint64": 2**64 - 1}.get(dtype, -3)
    a = np.full((6, 37), number, dtype_of(dtype))
    c = sample((6, 37), dtype)
    wanted = c.copy()
    wanted[1:5, 3:36] = a[0, 0]
    wanted[2] = 0
    check(program, [np.zeros_like(a), np.ones_like(a), c], {0: a, 1: np.zeros_like(a), 2: wanted})


def test_a_copy_between_parameters_that_end_early():
    program = text(
        'A: T.Tensor((5, 6), "float32"), B: T.Tensor((7, 9), "float64")', "T.copy(A[2:8, 1:9], B[3:9, 4:12], pad=3.0)"
    )
    a = sample((5, 6))
    whole = np.full((20, 20), 3.0)
    whole[:3, :5] = a[2:, 1:]
    b = sample((7, 9), "float64")
    wanted = b.copy()
    wanted[3:, 4:] = whole[:4, :5]
    check(program, [a, b], {1: wanted})


@pytest.mark.parametrize("kind", LOCALS)
def test_extents_that_agree_at_the_call(kind):
    """Rows of A may be missing, and how long the part of S is only the call says."""
    main = text(
        'A: T.Tensor((T.dyn("M"), T.dyn("N")), "float64"), B: T.Tensor((3, 16), "float32"), n: T.index',
        f"S = {alloc(kind, (3, 16))}",
        "T.clear(S)",
        "T.copy(A[0:3, 0:5], S[0:3, 6:n], pad=2.0)",
        "T.copy(S, B)",
    )
    for rows, columns in ((3, 5), (2, 7), (4, 1), (0, 0)):
        a, b = sample((rows, columns), "float64"), np.ones((3, 16), "float32")
        wanted = np.zeros_like(b)
        wanted[:, 6:11] = 2.0
        wanted[:rows, 6 : 6 + min(columns, 5)] = a[:3, :5]
        check(main, [a, b, 11], {1: wanted})
    with pytest.raises(helve.Error) as caught:
        helve.compile(main)(a, b, 12)
    assert caught.value.code == "HV0616"


def test_a_copy_inside_one_buffer_reads_before_it_writes():
    program = text(
        'A: T.Tensor((40,), "float32"), B: T.Tensor((40,), "float32"), C: T.Tensor((40,), "float32")',
        'S = T.alloc_shared((40,), "float32")',
        "T.copy(A, S)",
        "T.copy(S[0:33], S[5:38])",
        "T.copy(S, B)",
        "T.copy(S[7:40], S[0:33])",
        "T.copy(S, C)",
    )
    a = sample((40,))
    b = a.copy()
    b[5:38] = a[0:33]
    c = b.copy()
    c[0:33] = b[7:40]
    check(program, [a, np.zeros_like(a), np.zeros_like(a)], {1: b, 2: c})


def test_windows_at_run_time_places():
    @T.prim_func
    def main(A: T.Tensor((21, 34), "float32"), B: T.Tensor((21, 34), "float32"), row: T.index):
        with T.Kernel(T.ceildiv(21, 8), T.ceildiv(34, 16)) as (bx, by):
            S = T.alloc_shared_tiles((9, 16), "float32", tile_size=(4, 8))
            T.copy(A[bx * 8 : bx * 8 + 8, by * 16 : by * 16 + 16], S[row : row + 8, :])
            T.copy(S[row : row + 8, :], B[bx * 8 : bx * 8 + 8, by * 16 : by * 16 + 16])

    a = sample((21, 34))
    for row in (0, 1):
        check(main, [a, np.zeros_like(a), row], {1: a})


def test_a_global_buffer_pads_and_drops_like_a_parameter():
    @T.prim_func
    def main(A: T.Tensor((11,), "float32"), B: T.Tensor((16,), "float32"), C: T.Tensor((11,), "float32")):
        G = T.alloc_global((11,), "float32")
        with T.Kernel(3) as bx:
            S = T.alloc_shared((4,), "float32")
            T.copy(A[bx * 4 : bx * 4 + 4], S, pad=9.0)
            T.copy(S, G[bx * 4 : bx * 4 + 4])
        with T.Kernel(4) as bx:
            S = T.alloc_shared((4,), "float32")
            T.copy(G[bx * 4 : bx * 4 + 4], S, pad=5.0)
            T.copy(S, B[bx * 4 : bx * 4 + 4])
        with T.Kernel(1) as bx:
            T.copy(G[3:14], C[3:14])

    a = sample((11,))
    b = np.full(16, 5, np.float32)
    b[:11] = a
    c = np.zeros(11, np.float32)
    wanted = c.copy()
    wanted[3:] = a[3:]
    check(main, [a, np.zeros(16, np.float32), c], {1: b, 2: wanted})
