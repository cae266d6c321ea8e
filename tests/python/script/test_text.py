"""helve.parse: nothing of a text is executed, its size and depth are limited, and every fault is a coded error."""

import random
import string
import sys

import helve
import pytest
from helve import _core
from hypothesis import given, settings
from hypothesis import strategies as st

SOUND = '''M = T.dyn("M")

@T.prim_func
def main(A: T.Tensor((M, 64), "float32"), B: T.Tensor((M, 64), "float32"), n: T.int32):
    """Scales."""
    with T.Kernel(T.ceildiv(M, 32), threads=64) as bx:
        S = T.alloc_shared((32, 64), "float32")
        T.copy(A[bx * 32:bx * 32 + 32, :], S)
        for i, j in T.Parallel(32, 64):
            if 0 <= i < 16 and not n > 3:
                S[i, j] = S[i, j] * 2.0 + T.exp(-S[i, j])
            elif j == 4:
                S[i, j] += T.max(S[i, j], 1)
        T.copy(S, B[bx * 32:bx * 32 + 32, :])
'''


def test_a_sound_text_reads_back():
    parsed = helve.parse(SOUND)
    assert _core.structural_equal(helve.parse(parsed.script()).function, parsed.function) == (True, "")
    assert repr(parsed).startswith("<helve kernel function main(A: float32[") and parsed.name == "main"


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('true')",
        "open('x')",
        "exec('x = 1')",
        "().__class__",
        "T.__class__",
        "T.NAMES",
        "T._core",
        "A.__class__",
        "print('x')",
        "[].append(1)",
        "'a' * 1000000000",
        "[0] * 1000000000",
        "max(range(1000000000000))",
        "9 ** 9 ** 9 ** 9",
        "1 << 10 ** 12",
        "getattr(T, 'copy')",
        "globals()",
        "helve",
        "len(range(10))",
        "f'{n}'",
        "(lambda: open(\"x\"))()",
        "T.prim_func(5)",
        "sorted((1, 2))",
    ],
)
def test_nothing_is_executed(expression):
    with pytest.raises(helve.Error) as caught:
        helve.parse(f'@T.prim_func\ndef main(A: T.Tensor((4,), "float32"), n: T.int32):\n    x = {expression}\n')
    assert caught.value.name in ("UnknownName", "UnsupportedPython", "UnknownOperation", "TextLimit", "OutsideKernel")


def test_names_of_the_module_lines_end_there():
    with pytest.raises(helve.Error, match="this statement before the function"):
        helve.parse('M = 4\n' + SOUND)
    with pytest.raises(helve.Error, match="this statement before the function"):
        helve.parse('import os\n' + SOUND)


@pytest.mark.parametrize("size", [1_000_001, 3_000_000])
def test_size_is_limited(size):
    with pytest.raises(helve.Error, match="1000000 bytes"):
        helve.parse("#" * size)


def test_size_counts_bytes():
    with pytest.raises(helve.Error, match="1000000 bytes"):
        helve.parse("#" + "ä" * 500_000)
    assert helve.parse(SOUND + "#" + "a" * 900_000).name == "main"


@pytest.mark.parametrize("depth", [150, 199, 250, 1_000, 20_000, 90_000])
@pytest.mark.parametrize(
    "shape",
    [
        lambda n: "x = " + "-" * n + "n",
        lambda n: "x = " + "not " * n + "b",
        lambda n: "x = " + "(" * n + "n" + ")" * n,
        lambda n: "x = " + "n + " * n + "n",
        lambda n: "x = " + "n ** " * n + "n",
        lambda n: "x = " + "[" * n + "]" * n,
        lambda n: "x = A" + "[0]" * n,
        lambda n: "x = T" + ".a" * n,
        lambda n: "x = " + "f(" * n + ")" * n,
        lambda n: "x = " + "1 if b else " * n + "1",
        lambda n: "if b:\n        pass\n    el" * n + "if b:\n        pass",
    ],
)
def test_depth_never_exhausts_the_stack(shape, depth):
    """A nest of any depth is parsed or refused with a code, also near the end of Python's stack."""
    text = f'@T.prim_func\ndef main(A: T.Tensor((4,), "float32"), n: T.index, b: T.bool):\n    {shape(depth)}\n'

    def parse_below(frames):
        if frames:
            return parse_below(frames - 1)
        try:
            helve.parse(text)
        except helve.Error as error:
            assert 100 <= int(error.code[2:]) < 200 or depth < 200
        else:
            assert depth < 200

    parse_below(0)
    parse_below(min(500, sys.getrecursionlimit() // 2))


@pytest.mark.parametrize(
    "text",
    ["", "\n", "#", "\0", "\ud800", "def f():", "@T.prim_func", "async def f(): pass", "\tx", "'", "\\", "x = 1\n"],
)
def test_a_text_without_a_function(text):
    with pytest.raises(helve.Error) as caught:
        helve.parse(text)
    assert caught.value.name in ("InvalidSyntax", "UnsupportedPython")
    assert caught.value.lineno >= 1 and caught.value.filename.startswith("<text ")


def mutations(seed):
    """The sound text with random changes: characters, words and lines removed, doubled, swapped."""
    rng = random.Random(seed)
    words = SOUND.split() + "T. ( ) [ ] : -1 0 1e400 None True '' * ** = lambda A S".split()
    text = SOUND
    for _ in range(rng.randint(1, 4)):
        at, end = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        end = min(end, at + rng.randint(0, 12))
        piece = rng.choice(["", rng.choice(words), rng.choice(string.printable), text[at:end] * 2])
        text = text[:at] + piece + text[end:]
    return text


@pytest.mark.parametrize("block", range(8))
def test_broken_texts_get_coded_errors(block):
    """Whatever is done to a text, it is parsed or refused with a code: no other exception, and the text renders."""
    parsed = 0
    for seed in range(block * 150, block * 150 + 150):
        try:
            helve.parse(mutations(seed))
            parsed += 1
        except helve.Error as error:
            assert str(error).startswith(f"error[{error.code}]: "), mutations(seed)
    assert parsed < 150


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60))
def test_any_text_gets_a_coded_error(text):
    with pytest.raises(helve.Error):
        helve.parse(text)
