"""Primitives of schedules that say where elements lie in memory: set_layout, pad, swizzle.

A layout changes no result on any target; each step is compared with the program before it by the interpreter
(`check=True`), each stage of both targets with the program. Random programs are in test_schedule_accepted.py.
"""

import helve
import helve.testing
import numpy as np
import pytest
from helve import T
from helve.layout import S, Swizzle, choose_swizzle
from test_schedule import body_of, refused, schedule

SUM = "for i in T.serial(10):\n    for k in T.serial(7):\n        A[i, 0] = A[i, 0] + B[9 - i, k]"


def allocated(s, name):
    """The layout that the text of the program gives the buffer."""
    (line,) = [line for line in s.script().splitlines() if f" {name} = T.alloc" in line]
    return line.partition("layout=\"")[2].partition("\"")[0]


def check(s):
    """All steps are proved, both targets and the text of the program mean what the program does."""
    assert {step.effect for step in s.report()} == {"equal"}
    for target in ("llvm", "cuda"):
        helve.testing.check_stages(s.function, lambda: helve.testing.make_arguments(s.function), target=target)
    helve.testing.assert_round_trip(s.function.function)
    again = s.version(0)
    again.replay(helve.Trace.from_json(s.trace().json()))
    assert again.script() == s.script()
    calls = {}
    exec(f"def steps(s):\n    {str(s.trace()).strip().replace(chr(10), chr(10) + '    ')}", calls)
    again = s.version(0)
    calls["steps"](again)
    assert again.script() == s.script()


def summed(scope):
    s = schedule(SUM)
    s.cache_read("i", "B", scope)
    return s


LAYOUTS = {
    "S[(10, 7) : (1, 10)]": (7, 10),
    "S[(10, 7) : (8, 1)]": (10, 8),
    "S[(10, 2, 4) : (4, 40, 1)]": (2, 10, 4),
    "S[(2, 5, 8) : (45, 1, 5)]": (2, 9, 5),
    "S[(12, 8) : (8, 1)]": (12, 8),
    "S[(10, 7) : (15, 2)]": (148,),
    "S[(10, 8) : (8, 1)] ^ Swizzle(2, 0, 2)": (10, 8),
}


@pytest.mark.parametrize("scope", ["local", "shared"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_memory_is_in_the_order_of_its_layout(layout, scope):
    s = summed(scope)
    s.set_layout(f"B_{scope}", layout)
    assert allocated(s, f"B_{scope}") == layout
    check(s)
    shape = ", ".join(map(str, LAYOUTS[layout])) + ("," if len(LAYOUTS[layout]) == 1 else "")
    lowered = helve.compile(s).source("materialize_layouts")
    assert f"B_{scope} = T.alloc_{scope}(({shape}), " in lowered
    a, b = np.zeros((10, 7), "int32"), np.arange(70, dtype="int32").reshape(10, 7)
    helve.compile(s)(a, b)
    np.testing.assert_array_equal(a[:, 0], b[::-1].sum(1))


@pytest.mark.parametrize(("text", "layout"), [
    ("order(1, 0)", S[(10, 7) : (1, 10)]),
    ("order( 0,1 )", S[(10, 7) : (7, 1)]),
    ("tile(10, 4)", S[(10, 2, 4) : (4, 40, 1)]),
    ("tile(4)", S[(10, 2, 4) : (8, 4, 1)]),
    ("tile(64, 64)", S[(64, 64) : (64, 1)]),
])
def test_texts_that_fit_every_shape(text, layout):
    s = summed("shared")
    assert s.set_layout("B_shared", text) == s.now(s.text("B_shared = *"))
    assert allocated(s, "B_shared") == str(layout)
    check(s)
    same = summed("shared")
    same.set_layout("B_shared", layout)
    assert same.script() == s.script()


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (1, 5), (5, 1), (7, 11)])
@pytest.mark.parametrize("text", ["order(1, 0)", "tile(4, 4)", "tile(1, 3)", "tile(16)"])
def test_any_extents(shape, text):
    m, n = shape
    program = helve.parse(
        f"@T.prim_func\ndef f(A: T.Tensor(({m}, {n}), 'int32'), B: T.Tensor(({m}, {n}), 'int32')):\n"
        f"    with T.Kernel(1) as b:\n        X = T.alloc_shared(({m}, {n}), 'int32')\n"
        f"        for i in T.serial({m}):\n            for j in T.serial({n}):\n                X[i, j] = A[i, j] * 2\n"
        f"        for i in T.serial({m}):\n            for j in T.serial({n}):\n"
        f"                B[i, j] = X[i, j] + X[{m - 1} - i, j]\n")
    s = helve.Schedule(program)
    s.set_layout("X", text)
    check(s)


def test_statements_on_tiles_do_not_see_a_layout():
    s = schedule("X = T.alloc_shared_tiles((10, 7), 'int32', tile_size=(2, 7))\nT.copy(A, X)\n"
                 "for i, j in T.foreach_tiles(X, parallel=True):\n    X[i, j] = X[i, j] + 1\nT.copy(X, B)")
    s.set_layout("X", "tile(5, 7)")
    check(s)


def test_products_of_tiles_in_memory_with_a_layout():
    """Vectors of a tile operation do not leave a run of neighbours."""
    for text in ("order(1, 0)", "tile(8, 16)", "tile(3, 5)", "tile(64, 64)"):
        s = helve.Schedule(helve.parse(
            "@T.prim_func\ndef f(A: T.Tensor((37, 23), 'float32'), B: T.Tensor((23, 41), 'float32'), "
            "C: T.Tensor((37, 41), 'float32')):\n    with T.Kernel(1) as b:\n"
            "        X = T.alloc_shared((37, 23), 'float32')\n        Y = T.alloc_shared((23, 41), 'float32')\n"
            "        Z = T.alloc_fragment((37, 41), 'float32')\n        W = T.alloc_shared((37, 41), 'float32')\n"
            "        T.copy(A, X)\n        T.copy(B, Y)\n        T.gemm(X, Y, Z, clear=True)\n        T.copy(Z, W)\n"
            "        T.gemm(X, Y, W)\n        T.copy(W, C)\n"))
        for name in "XYW":
            s.set_layout(name, text)
        a, b = (np.random.default_rng(0).integers(-3, 4, n).astype("float32") for n in ((37, 23), (23, 41)))
        c = np.zeros((37, 41), "float32")
        helve.compile(s, verify=True)(a, b, c)
        np.testing.assert_array_equal(c, 2 * (a @ b))


def test_pad_makes_rows_longer():
    s = summed("shared")
    s.pad("B_shared", 1, 2)
    assert allocated(s, "B_shared") == "S[(10, 7) : (9, 1)]"
    s.pad("B_shared", 1, 1)
    assert allocated(s, "B_shared") == "S[(10, 7) : (10, 1)]"
    check(s)
    s.set_layout("B_shared", "order(1, 0)")
    s.pad("B_shared", 0, 3)
    assert allocated(s, "B_shared") == "S[(10, 7) : (1, 13)]"
    check(s)
    refused("HV1006", lambda: s.pad("B_shared", 1, 1))  # the last dimension in memory


def test_pad_moves_all_that_lies_behind():
    s = schedule("X = T.alloc_local((3, 4, 5), 'int32')\nfor i in T.serial(3):\n    for j in T.serial(4):\n"
                 "        for k in T.serial(5):\n            X[i, j, k] = i + j * k\n"
                 "for j in T.serial(4):\n    A[j, 0] = X[2, j, 4]")
    s.pad("X", 2, 3)
    assert allocated(s, "X") == "S[(3, 4, 5) : (32, 8, 1)]"
    s.pad("X", 1, 1)
    assert allocated(s, "X") == "S[(3, 4, 5) : (40, 8, 1)]"
    check(s)


@pytest.mark.parametrize("numbers", [(3, 2, 3), (1, 0, 1), (2, 1, -2), (2, 3, 3)])
def test_swizzles_are_the_layout_with_one(numbers):
    s = schedule("X = T.alloc_shared((16, 32), 'int32')\nfor i in T.serial(10):\n    for j in T.serial(7):\n"
                 "        X[i, j] = B[i, j] + 1\nfor i in T.serial(10):\n    for j in T.serial(7):\n"
                 "        A[i, j] = X[9 - i, j]")
    s.swizzle("X", *numbers)
    assert allocated(s, "X") == str(S[(16, 32) : (32, 1)] ^ Swizzle(*numbers))
    check(s)
    s.set_layout("X", "order(1, 0)")
    s.swizzle("X", *numbers)
    assert allocated(s, "X") == str(S[(16, 32) : (1, 16)] ^ Swizzle(*numbers))
    check(s)


def test_a_swizzle_that_helve_chooses():
    chosen = choose_swizzle(rows=32, row_stride=32, element_bytes=4).swizzle
    s = schedule("X = T.alloc_shared((32, 32), 'int32')\nT.fill(X, 1)\nfor i in T.serial(10):\n    A[i, 0] = X[i, 3]")
    s.swizzle("X", chosen.bits, chosen.base, chosen.shift)
    check(s)


def test_layouts_that_a_buffer_cannot_have():
    s = schedule("X = T.alloc_shared((8, 4), 'int32')\nfor i in T.serial(8):\n    X[i, 0] = i\n"
                 "for i in T.serial(8):\n    A[i, 0] = X[i, 0]")
    for layout in ("S[(8, 4) : (1, 1)]", "S[(4, 4) : (4, 1)]", "S[(8, 4) : (1@tx, 1@reg)]", "S[(2, 8, 4) : (32, 4, 1)]",
                   "S[(8, 4) : (4, 1)] + R[2 : 32]", "S[(8, 4) : (4, 1)] + 1"):
        refused("HV1006", lambda layout=layout: s.set_layout("X", layout))
    refused("HV1006", lambda: s.set_layout("X", "order(0)"))
    refused("HV1006", lambda: s.set_layout("X", "tile(2, 2, 2)"))
    for text in ("order", "order()", "tile(a)", "tile(2", "order(0, 0, )", "tile(99999999999)", "tile(0, 1)",
                 "tile(2147483648, 2147483648)", "", "S[", 3):
        refused("HV1005", lambda text=text: s.set_layout("X", text))
    refused("HV1001", lambda: s.set_layout("A", "order(1, 0)"))
    refused("HV1005", lambda: s.pad("X", 2, 1))
    refused("HV1005", lambda: s.pad("X", 1, 0))
    refused("HV1006", lambda: s.pad("X", 0, 1))
    refused("HV1006", lambda: s.pad("X", 1, 2**31))  # more than 4 GiB
    assert len(s) == 0


def test_body_keeps_its_statements():
    s = summed("local")
    before = body_of(s).replace("T.alloc_local((10, 7), \"int32\")", "")
    s.set_layout("B_local", "order(1, 0)")
    assert body_of(s).replace("T.alloc_local((10, 7), \"int32\", layout=\"S[(10, 7) : (1, 10)]\")", "") == before
