"""`break` and `continue`, against the same loops run by Python.

What cannot be left so is in tests/errors/python.cases.
"""

import random

import numpy as np
import pytest

import helve
import helve.testing
from helve import T

N = T.dyn("N")
TARGETS = ("interp", "llvm")


def python_of(body, indent):
    """A random body of jumps and additions as lines; conditions are of the element and the loop."""
    return [" " * indent + line for line in body]


def random_body(rng, depth, loop="i"):
    """Lines of a loop's body: additions, conditions, jumps, loops inside."""
    lines = []
    for _ in range(rng.randint(1, 3)):
        kind = rng.choice(["add", "add", "if", "if", "jump", "loop"] if depth else ["add", "jump"])
        condition = rng.choice([f"A[{loop}] % {rng.randint(2, 4)} == {rng.randint(0, 2)}",
                                f"{loop} > {rng.randint(1, 5)}", f"S[0] > {rng.randint(5, 60)}"])
        if kind == "add":
            lines.append(f"S[0] = S[0] * 3 % 1009 + A[{loop}] + {rng.randint(0, 9)}")
        elif kind == "jump":
            lines += [f"if {condition}:", f"    {rng.choice(['break', 'continue'])}"]
        elif kind == "if":
            lines += [f"if {condition}:", *(f"    {line}" for line in random_body(rng, depth - 1, loop))]
            if rng.random() < 0.5:
                lines += ["else:", *(f"    {line}" for line in random_body(rng, depth - 1, loop))]
        else:
            inner = "jk"[depth - 1]
            lines += [f"for {inner} in range({rng.randint(2, 5)}):",
                      *(f"    {line}" for line in random_body(rng, depth - 1, inner))]
    if rng.random() < 0.3:
        lines.append(rng.choice(["break", "continue"]))
        lines.append("S[0] = S[0] + 1000000")
    return lines


@pytest.mark.parametrize("seed", range(40))
def test_random_loops(seed):
    rng = random.Random(seed)
    body = random_body(rng, 2)
    text = ('N = T.dyn("N")\n@T.prim_func\ndef main(A: T.Tensor((N,), "int32"), S: T.Tensor((1,), "int32")):\n'
            "    with T.Kernel(1):\n        for i in range(N):\n" + "\n".join(python_of(body, 12)))
    plain = "def main(A, S, N):\n    for i in range(N):\n" + "\n".join(python_of(body, 8))
    names = {}
    exec(plain, names)
    function = helve.parse(text)
    a = np.random.default_rng(seed).integers(0, 20, 9).astype("int32")
    expected = [7]
    names["main"]([int(x) for x in a], expected, len(a))

    def make():
        return [a, np.int32([7])]

    for target in TARGETS:
        arguments = make()
        helve.compile(function, target=target)(*arguments)
        assert arguments[1][0] == expected[0], text
    if seed % 8 == 0:
        helve.testing.check_stages(function, make)


def test_loops_without_an_end_of_their_own():
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            n = T.alloc_var("int32", 0)
            while True:
                n += 1
                if n % 2 == 0:
                    continue
                if n * n > A[0]:
                    break
            B[0] = n

    for target in TARGETS:
        b = np.zeros(1, "int32")
        helve.compile(main, target=target)(np.int32([30]), b)
        assert b[0] == 7
    helve.testing.check_stages(main, lambda: [np.int32([30]), np.zeros(1, "int32")])


def test_the_condition_is_not_evaluated_after_a_break():
    @T.prim_func
    def main(A: T.Tensor((3,), "int32"), B: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            n = T.alloc_var("int32", 0)
            while A[n] > 0:
                n += 1
                if n == 3:
                    break
            B[0] = n

    for target in TARGETS:
        b = np.zeros(1, "int32")
        helve.compile(main, target=target)(np.int32([1, 1, 1]), b)
        assert b[0] == 3


def test_iterations_without_order_may_end_early():
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, 8)) as b:
            for i in T.Parallel(8):
                if b * 8 + i >= N:
                    continue
                if A[b * 8 + i] < 0.0:
                    if A[b * 8 + i] < -2.0:
                        continue
                    B[b * 8 + i] = -1.0
                B[b * 8 + i] = B[b * 8 + i] + A[b * 8 + i]

    a = np.arange(11, dtype="float32") - 5
    expected = np.where(a < -2, 0, np.where(a < 0, a - 1, a))
    for target in TARGETS:
        out = np.zeros(11, "float32")
        helve.compile(main, target=target)(a, out)
        assert (out == expected).all()
    helve.testing.check_stages(main, lambda: [a, np.zeros(11, "float32")])


def test_whole_blocks_leave_loops():
    """What follows the jump are operations of the block: copies, with the barriers that they need."""
    @T.prim_func
    def main(A: T.Tensor((6, 64), "float32"), L: T.Tensor((2,), "int32"), B: T.Tensor((6, 64), "float32")):
        with T.Kernel(2, threads=64) as b:
            x = T.alloc_shared((64,), "float32")
            for k in T.serial(3):
                if k >= L[b]:
                    break
                T.copy(A[b * 3 + k, :], x)
                for i in T.Parallel(64):
                    B[b * 3 + k, i] = x[63 - i]

    a = np.arange(6 * 64, dtype="float32").reshape(6, 64)
    expected = a[:, ::-1].copy()
    expected[1:3] = 0
    for target in TARGETS:
        out = np.zeros_like(a)
        helve.compile(main, target=target)(a, np.int32([1, 3]), out)
        assert (out == expected).all()
    helve.testing.check_stages(main, lambda: [a, np.int32([1, 3]), np.zeros_like(a)])
