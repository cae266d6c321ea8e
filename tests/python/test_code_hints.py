"""What a lowered program tells the compiler of machine code: rolled loops, functions, the stack."""

import helve
import helve.testing
import numpy as np
from helve import T, _core

ROWS, COLUMNS, STATEMENTS = 8, 64, 600


@T.prim_func
def hinted(A: T.Tensor((ROWS, COLUMNS), "float32"), B: T.Tensor((ROWS, COLUMNS), "float32")):
    with T.Kernel(1) as b:
        x = T.alloc_shared((ROWS, COLUMNS), "float32", place="stack")
        y = T.alloc_local((COLUMNS,), "float32", place="stack")
        with T.outline():
            for i in T.serial(ROWS, rolled=True):
                for j in T.Parallel(COLUMNS, rolled=True):
                    x[i, j] = A[i, j] + 1.0
        for i in T.range(ROWS, rolled=True):
            for j in T.Parallel(COLUMNS):
                y[j] = x[i, j] * 2.0
            for j in T.Parallel(COLUMNS):
                B[i, j] = y[j]


def long_program(count):
    """A kernel of so many statements, with a buffer that all of them use."""
    lines = [f"        B[{k}] = A[{k}] * 2.0 + own[{k % 4}]" for k in range(count)]
    return helve.parse("\n".join([
        "@T.prim_func",
        f'def main(A: T.Tensor(({count},), "float32"), B: T.Tensor(({count},), "float32")):',
        "    with T.Kernel(1) as b:",
        '        own = T.alloc_local((4,), "float32")',
        "        for k in T.serial(4):",
        "            own[k] = A[k]",
        *lines,
    ]) + "\n")


def rows():
    return np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)


def test_the_text_is_read_back():
    text = hinted.script()
    for part in ('"float32", place="stack")', "with T.outline():", "T.serial(8, rolled=True)",
                 "T.Parallel(64, rolled=True)"):
        assert part in text
    assert helve.parse(text).script() == text


def test_hints_have_no_effect_on_results():
    for target in ("interp", "llvm"):
        out = np.zeros((ROWS, COLUMNS), np.float32)
        helve.compile(hinted, target=target)(rows(), out)
        np.testing.assert_array_equal(out, (rows() + 1) * 2)


def test_passes_decide_anew():
    stages = dict(helve.testing.lowering_stages(hinted))
    first, last = (_core.print(stages[name]) for name in ("join_roles", "place_buffers"))
    assert not any(hint in first for hint in ("outline", "rolled", "stack"))
    assert "outline" not in last and "rolled=True" in last and 'place="stack"' in last


def test_a_lowered_program_compiles_to_the_same_code():
    kernel = helve.compile(long_program(STATEMENTS), target="llvm")
    text = kernel.source("lowered")
    assert text.count("with T.outline():") >= 3 and 'place="stack"' in text
    again = helve.compile(helve.parse(text), target="llvm")
    assert again.source("lowered") == text
    assert again.source("llvm") == kernel.source("llvm")


def test_parts_compute_what_the_program_does():
    values = np.arange(STATEMENTS, dtype=np.float32)
    for name, stage in helve.testing.lowering_stages(long_program(STATEMENTS))[-3:]:
        out = np.zeros_like(values)
        helve.testing.interpret(stage, values, out, check="all")
        np.testing.assert_array_equal(out, values * 2 + values[np.arange(STATEMENTS) % 4], err_msg=name)
    kernel = helve.compile(long_program(STATEMENTS), target="llvm")
    out = np.zeros_like(values)
    kernel(values, out)
    np.testing.assert_array_equal(out, values * 2 + values[np.arange(STATEMENTS) % 4])
    assert ".part" in kernel.source("llvm")
