"""Which buffers are said to be used before they are written: certainly so, and then the interpreter finds it, too."""

import re
import warnings

import helve
import helve.testing
import pytest
from helve import _core, kernels
from helve.testing import make_arguments, recipes

HEAD = ('A: T.Tensor((64, 32), "float32"), B: T.Tensor((32, 16), "float32"), C: T.Tensor((64, 16), "float32"), '
        'OUT: T.Tensor((64,), "float32"), n: T.index')
pytestmark = pytest.mark.wrong_programs


def function(body):
    lines = "".join(f"        {line}\n" for line in body.strip("\n").splitlines())
    return helve.parse(f"@T.prim_func\ndef main({HEAD}):\n    with T.Kernel(2) as b:\n{lines}")


def warned(function):
    """The warnings of undefined values in a function."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        helve.compile(function, target="interp")
    return [entry.message for entry in caught if getattr(entry.message, "code", None) == "HV0315"]


def found(function):
    """The code of what the checking interpreter objects to; None where it accepts a call."""
    fault = None
    for recipe in recipes(function.function):
        try:
            helve.testing.interpret(function, *make_arguments(function.function, recipe), check="all")
            return None
        except helve.Error as error:
            fault = fault or error.code
    return fault


TILES = ('a = T.alloc_shared((32, 32), "float32")\nw = T.alloc_shared((32, 16), "float32")\n'
         'acc = T.alloc_fragment((32, 16), "float32")\ns = T.alloc_fragment((32,), "float32")\n')
LOAD = "T.copy(A[b * 32 : b * 32 + 32, :], a)\n"
LOUD = {
    "a product that adds to nothing": (
        TILES + "for k in T.serial(1):\n    " + LOAD + "    T.copy(B, w)\n    T.gemm(a, w, acc)\n"
        "T.copy(acc, C[b * 32 : b * 32 + 32, :])", "acc"),
    "a factor that was not loaded": (TILES + LOAD + "T.gemm(a, w, acc, clear=True)", "w"),
    "a sum that goes on from nothing": (TILES + LOAD + "T.reduce_sum(a, s, dim=1, clear=False)", "s"),
    "a sum of nothing": (TILES + "T.reduce_sum(a, s, dim=1)", "a"),
    "an element that is added to": (
        TILES + LOAD + "for j in T.serial(32):\n    for i in T.Parallel(32):\n        s[i] = s[i] + a[i, j]", "s"),
    "an update": (TILES + LOAD + 'for i in T.Parallel(32):\n    T.update(s[i], a[i, 0], "add")', "s"),
    "stored to a tensor": (TILES + "T.copy(s, OUT[b * 32 : b * 32 + 32])", "s"),
    "an element that is stored to a tensor": (TILES + "for i in T.Parallel(32):\n    OUT[b * 32 + i] = s[i]", "s"),
    "written behind its use": (
        TILES + "for i in T.Parallel(32):\n    OUT[b * 32 + i] = s[i] * 2.0\nT.clear(s)", "s"),
    "a loop that the call decides": (
        TILES + LOAD + "for j in T.serial(T.min(T.max(n, 1), 32)):\n    for i in T.Parallel(32):\n"
        "        s[i] = s[i] + a[i, j]", "s"),
}
QUIET = {
    "cleared": TILES + LOAD + "T.copy(B, w)\nT.clear(acc)\nT.gemm(a, w, acc)",
    "cleared by the product": TILES + LOAD + "T.copy(B, w)\nT.gemm(a, w, acc, clear=True)",
    "cleared in the first turn": (
        TILES + LOAD + "for j in T.serial(32):\n    if j == 0:\n        T.clear(s)\n    for i in T.Parallel(32):\n"
        "        s[i] = s[i] + a[i, j]"),
    "used from the second turn on": (
        TILES + LOAD + "for j in T.serial(32):\n    if j > 0:\n        T.copy(s, OUT[b * 32 : b * 32 + 32])\n"
        "    for i in T.Parallel(32):\n        s[i] = a[i, j]"),
    "chosen from the second turn on": (
        TILES + LOAD + "for j in T.serial(32):\n    for i in T.Parallel(32):\n"
        "        s[i] = a[i, j] + (s[i] if j > 0 else 0.0)"),
    "copied and then written": TILES + "p = T.alloc_fragment((32,), \"float32\")\nT.copy(s, p)\nT.clear(s)",
    "under a condition of the call": TILES + "if n > 100:\n    T.copy(s, OUT[b * 32 : b * 32 + 32])",
    "in a loop without a turn": TILES + "for j in T.serial(0):\n    T.copy(s, OUT[b * 32 : b * 32 + 32])",
    "under a condition of the data": (
        TILES + LOAD + "if A[0, 0] > 3.0:\n    T.copy(s, OUT[b * 32 : b * 32 + 32])"),
    "in a loop of the data": (
        TILES + LOAD + "for i in T.serial(T.index(T.cast(A[0, 0], \"int32\"))):\n"
        "    T.copy(s, OUT[b * 32 : b * 32 + 32])"),
}


PARTLY = {
    "a row that is not filled": (
        TILES + "for i, j in T.Parallel(31, 32):\n    a[i, j] = A[i, j]\nT.reduce_sum(a, s, dim=1)\n"
        "T.copy(s, OUT[b * 32 : b * 32 + 32])", "a", "31, 31"),
    "a column in the middle": (
        TILES + "T.copy(A[0:32, 0:16], a[:, 0:16])\nT.copy(A[0:32, 17:32], a[:, 17:32])\n"
        "T.reduce_sum(a, s, dim=1)\nT.copy(s, OUT[b * 32 : b * 32 + 32])", "a", "0, 16"),
    "a loop that begins late": (
        TILES + "for i in T.serial(1, 32):\n    s[i] = 1.0\nfor i in T.Parallel(32):\n"
        "    OUT[b * 32 + i] = s[i] * 2.0", "s", "0"),
    "a part of a tile that is stored": (
        TILES + "T.copy(B[:, 0:8], w[:, 0:8])\n"
        "for i, j in T.Parallel(32, 16):\n    C[b * 32 + i, j] = w[i, j]", "w", "31, 15"),
}
ALL_WRITTEN = {
    "by two loops": (
        TILES + "for i in T.serial(16):\n    s[i] = 1.0\nfor i in T.serial(16, 32):\n    s[i] = 2.0\n"
        "T.copy(s, OUT[b * 32 : b * 32 + 32])"),
    "by a copy past the end": TILES + "T.copy(A[b * 33 : b * 33 + 32, :], a)\nT.reduce_sum(a, s, dim=1)",
    "as far as it is read": (
        TILES + "for i in T.serial(20):\n    s[i] = 1.0\nfor i in T.Parallel(20):\n    OUT[b * 20 + i] = s[i]"),
    "where the data say": (
        TILES + "for i in T.serial(32):\n    s[T.index(T.cast(A[i, 0], \"int32\"))] = 1.0\n"
        "T.copy(s, OUT[b * 32 : b * 32 + 32])"),
    "as far as the call says": (
        TILES + "for i in T.serial(T.min(n, 32)):\n    s[i] = 1.0\nT.copy(s, OUT[b * 32 : b * 32 + 32])"),
    "in another order": (
        TILES + "for k in T.serial(2):\n    for i in T.Parallel(16):\n        s[k * 16 + i] = 1.0\n"
        "T.copy(s, OUT[b * 32 : b * 32 + 32])"),
}


@pytest.mark.parametrize("title", PARTLY)
def test_a_use_of_elements_that_nothing_writes(title):
    body, name, element = PARTLY[title]
    made = function(body)
    (message,) = warned(made)
    assert message.message == f"'{name}' is used before anything is written to it: it holds undefined values"
    assert message.notes == [f"no statement writes '{name}[{element}]'", f"'{name}' is allocated here"]
    assert message.help == f"write all of it first, for example with T.clear({name})"
    assert found(made) == "HV0704"


@pytest.mark.parametrize("title", ALL_WRITTEN)
def test_what_is_written_in_parts(title):
    assert warned(function(ALL_WRITTEN[title])) == []


@pytest.mark.parametrize("title", LOUD)
def test_a_use_that_comes_first(title):
    body, name = LOUD[title]
    made = function(body)
    (message,) = warned(made)
    assert message.message == f"'{name}' is used before anything is written to it: it holds undefined values"
    assert message.notes == [f"'{name}' is allocated here"] and f"T.clear({name})" in message.help
    assert found(made) == "HV0704"


@pytest.mark.parametrize("title", QUIET)
def test_what_may_be_written_before(title):
    assert warned(function(QUIET[title])) == []


WRITES = re.compile(r"^ *T\.(?:clear|fill|copy|reduce_\w+)\(.*\n", re.M)
SHIPPED = {
    "softmax": lambda: kernels.softmax(40),
    "rms_norm": lambda: kernels.rms_norm(40),
    "layer_norm": lambda: kernels.layer_norm(40),
    "column_sums": lambda: kernels.column_sums(40, blocks=4),
    "gemm": lambda: kernels.gemm("float16", M=16, N=16, K=16),
    "swiglu": lambda: kernels.swiglu(40),
}


@pytest.mark.parametrize("name", SHIPPED)
def test_what_a_shipped_kernel_is_warned_of_without_a_line_is_found(name):
    """Each line that writes is left out in turn: the interpreter finds what is warned of, or no call reaches it."""
    text = _core.print(SHIPPED[name]().function)
    assert warned(helve.parse(text)) == []
    loud = 0
    for line in WRITES.finditer(text):
        try:
            made = helve.parse(text[: line.start()] + text[line.end() :])
            messages = warned(made)
        except helve.Error:
            continue  # a body without a statement
        if messages:
            loud += 1
            assert found(made) == "HV0704", line[0]
    assert loud or name == "swiglu"
