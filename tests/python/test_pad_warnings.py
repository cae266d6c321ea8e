"""Which reductions are warned of the pad of a copy, and which are not."""

import warnings

import helve
import pytest


HEAD = ('A: T.Tensor((100,), "float32"), B: T.Tensor((32,), "float32"), C: T.Tensor((100, 5), "float32"), '
        'D: T.Tensor((100, 1), "float32"), n: T.index')


def warned(body, head=HEAD, grid="4", before=""):
    """The warnings of a kernel with this body, as (operation, note)."""
    lines = "".join(f"        {line}\n" for line in body.strip("\n").splitlines())
    text = f"{before}@T.prim_func\ndef main({head}):\n    with T.Kernel({grid}) as b:\n{lines}"
    function = helve.parse(text, filename="pads.py")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        helve.compile(function, target="interp")
    assert all(isinstance(entry.message, helve.Warning) and entry.message.code == "HV0310" for entry in caught)
    return [entry.message for entry in caught]


SHARED = 'S = T.alloc_shared((32,), "float32")\nR = T.alloc_shared((1,), "float32")\n'
COPY = "T.copy(A[b * 32 : b * 32 + 32], S)\n"
MAX = "T.reduce_max(S, R, dim=0)\n"


@pytest.mark.parametrize("operation, pad", [("max", "-T.infinity()"), ("min", "T.infinity()"), ("prod", "1")])
def test_a_reduction_that_feels_zeros_is_warned_of(operation, pad):
    (found,) = warned(SHARED + COPY + f"T.reduce_{operation}(S, R, dim=0)")
    assert found.message.startswith(f"T.reduce_{operation} over 'S' ") and found.help.endswith(f"pad={pad}")
    assert found.notes == ["this copy reads past the end of 'A' when b=3, and fills up with pad=0"]


@pytest.mark.parametrize("operation", ["sum", "absmax"])
def test_a_reduction_that_zeros_do_not_change_is_not(operation):
    assert not warned(SHARED + COPY + f"T.reduce_{operation}(S, R, dim=0)")


QUIET = {
    "the copy ends in time": SHARED + "T.fill(S, 1.0)\nT.copy(A[b * 25 : b * 25 + 25], S[0:25])\n" + MAX,
    "a guard keeps the last block away": SHARED + "if b < 3:\n    " + COPY + "    " + MAX,
    "another pad": SHARED + "T.copy(A[b * 32 : b * 32 + 32], S, pad=-T.infinity())\n" + MAX,
    "another pad afterwards": SHARED + COPY + "T.copy(A[b * 32 : b * 32 + 32], S, pad=-1.0)\n" + MAX,
    "filled afterwards": SHARED + COPY + "T.fill(S, 1.0)\n" + MAX,
    "masked afterwards": SHARED + COPY + (
        "for i in T.Parallel(32):\n    S[i] = S[i] if b * 32 + i < 100 else -T.infinity()\n") + MAX,
    "the pad lies outside what is reduced": SHARED + "T.copy(A[90:122], S)\nT.reduce_max(S[0:10], R, dim=0)\n",
    "reduced before it is filled": SHARED + "T.fill(S, 1.0)\n" + MAX + COPY,
    "another buffer": SHARED + COPY + 'Q = T.alloc_shared((32,), "float32")\nT.fill(Q, 1.0)\n'
                                      'T.reduce_max(Q, R, dim=0)\n',
    "the pad is a row of its own": (
        'X = T.alloc_shared((32, 5), "float32")\nP = T.alloc_shared((32,), "float32")\n'
        "T.copy(C[b * 32 : b * 32 + 32, :], X)\nT.reduce_max(X, P, dim=1)\n"
    ),
    "rows of one element": (
        'X = T.alloc_shared((32, 1), "float32")\nP = T.alloc_shared((32,), "float32")\n'
        "T.copy(D[b * 32 : b * 32 + 32, :], X)\nT.reduce_max(X, P, dim=1)\n"
    ),
    "rows of one element, combined with what is there": (
        'X = T.alloc_shared((32, 1), "float32")\nP = T.alloc_shared((32,), "float32")\nT.fill(P, 1.0)\n'
        "T.copy(D[b * 32 : b * 32 + 32, :], X)\nT.reduce_max(X, P, dim=1, clear=False)\n"
    ),
    "rows of one element, copied further": (
        'X = T.alloc_shared((32, 1), "float32")\nF = T.alloc_fragment((32, 1), "float32")\n'
        'P = T.alloc_shared((32,), "float32")\n'
        "T.copy(D[b * 32 : b * 32 + 32, :], X)\nT.copy(X, F)\nT.reduce_max(F, P, dim=1)\n"
    ),
    "rows that are filled by columns": (
        'X = T.alloc_shared((32, 5), "float32")\nP = T.alloc_shared((32,), "float32")\n'
        "for k in T.serial(5):\n    T.copy(C[b * 32 : b * 32 + 32, k], X[:, k])\nT.reduce_max(X, P, dim=1)\n"
    ),
    "an empty copy": SHARED + "T.fill(S, 1.0)\nT.copy(A[100:100], S[0:0])\n" + MAX,
}


@pytest.mark.parametrize("title", QUIET)
def test_no_warning_where_no_pad_arrives(title):
    assert not warned(QUIET[title])


LOUD = {
    "part of the pad": SHARED + "T.copy(A[90:122], S)\nT.reduce_max(S[0:11], R, dim=0)\n",
    "behind a guard that lets it through": SHARED + "if b > 1:\n    " + COPY + "    " + MAX,
    "an extent of the call": SHARED + "T.copy(A[n : n + 32], S)\n" + MAX,
    "passed on": SHARED + 'F = T.alloc_fragment((32,), "float32")\n' + COPY + "T.copy(S, F)\n"
                                                                              "T.reduce_max(F, R, dim=0)\n",
    "from the iteration before": SHARED + "T.fill(S, 1.0)\nfor k in T.serial(2):\n    " + MAX + "    " + COPY,
    "on one side of a branch": SHARED + "if b > 1:\n    " + COPY + "else:\n    T.fill(S, 1.0)\n" + MAX,
    "filled element by element": SHARED + (
        "for i in T.serial(32):\n    T.copy(A[b * 32 + i : b * 32 + i + 1], S[i : i + 1])\n") + MAX,
    "element by element into one result": SHARED + (
        "T.fill(R, 1.0)\nfor i in T.serial(32):\n    T.copy(A[b * 32 + i : b * 32 + i + 1], S[0:1])\n"
        "    T.reduce_max(S[0:1], R, dim=0, clear=False)\n"),
    "a part is filled up": SHARED + "T.fill(S, 1.0)\nT.copy(A[90:106], S[16:32])\n" + MAX,
}


@pytest.mark.parametrize("title", LOUD)
def test_a_warning_where_a_pad_may_arrive(title):
    (found,) = warned(LOUD[title])
    reduced = "F" if title == "passed on" else "S"
    text = f"T.reduce_max over '{reduced}' may include the 0 that replaces elements past the end of 'A'"
    assert found.message == text


def test_dynamic_extents():
    body = 'S = T.alloc_shared((32,), "float32")\nR = T.alloc_shared((1,), "float32")\n' + COPY + MAX
    head = 'A: T.Tensor(({}), "float32")'
    before = 'M = T.dyn("M")\n'
    assert warned(body, head.format("M,"), "T.ceildiv(M, 32)", before)
    assert not warned(body, head.format("M,"), "M // 32", before)
    assert not warned(body, 'A: T.Tensor((M * 32,), "float32"), B: T.Tensor((M,), "float32")', "M", before)


def test_tiles_of_a_block():
    """Blocks are rounded up, tiles too: both ends give pads."""
    body = """
X = T.alloc_shared_tiles((16, 32), "int8")
V = T.alloc_shared_tiles((32,), "int8")
T.mesh_tensor_copy(A, X, coord=[0, 0])
T.reduce_max(X, V, dim=0)
"""
    for rows, expected in ((32, 0), (31, 1), (20, 1), (64, 0)):
        text = f'''
@T.prim_func
def main(A: T.Tensor(({rows}, 64), "int8")):
    T.annotate_mesh_tensor({{A: {{"sharding": {{"x": 0, "y": 1}}, "tiling": [16, 32]}}}}, nrows=2, ncols=2)
    with T.Kernel(2, 2) as (r, c):
''' + "".join(f"        {line}\n" for line in body.strip().splitlines())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            helve.compile(helve.parse(text), target="interp")
        assert len(caught) == expected, rows


def test_a_warning_stops_no_compile():
    text = ("@T.prim_func\ndef main(A: T.Tensor((5,), 'float32'), B: T.Tensor((1,), 'float32')):\n"
            "    with T.Kernel(1) as b:\n")
    text += ("        S = T.alloc_shared((8,), 'float32')\n        T.copy(A[0:8], S)\n"
             "        T.reduce_max(S, B, dim=0)\n")
    import numpy as np

    out = np.empty(1, "float32")
    with pytest.warns(helve.Warning) as caught:
        kernel = helve.compile(helve.parse(text))
    kernel(np.full(5, -2, "float32"), out)
    assert out[0] == 0.0 and caught[0].filename == __file__
    assert str(caught[0].message).startswith("warning[HV0310]: ")
