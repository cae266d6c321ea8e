"""Private memory of a block that each iteration of a parallel loop has for itself.

On the CPU one memory serves the iterations in turn, which machine code has to keep.
"""

import helve
import helve.testing
import numpy as np
import pytest
from differential import check
from helve import T


@pytest.mark.parametrize("dtype", ["float32", "int8", "float16", "int32"])
def test_iterations_overwrite_what_they_stored(dtype):
    """The second store replaces the first in some iterations; the others keep it."""

    @T.prim_func
    def main(A: T.Tensor((64,), dtype), X: T.Tensor((8, 64), dtype)):
        with T.Kernel(1):
            kept = T.alloc_local((4,), dtype)
            for r in T.serial(8):
                for i in T.Parallel(64):
                    kept[0] = A[i] + T.cast(1, dtype)
                    kept[T.min(T.max(i - 8 * r, 0), 3)] = kept[0] * T.cast(-4, dtype)
                    X[r, i] = kept[0]

    a = (np.arange(64) * 3 % 17 - 7).astype(dtype)
    first = a + np.array(1, dtype)
    at, r = np.arange(64), np.arange(8)[:, None]
    wanted = np.where(at <= 8 * r, first * np.array(-4, dtype), first)
    check(main, [a, np.zeros_like(wanted)], {1: wanted})


@pytest.mark.parametrize("dtype", ["float32", "int8", "float16", "int32"])
def test_iterations_fill_before_they_read(dtype):
    @T.prim_func
    def main(A: T.Tensor((64,), dtype), X: T.Tensor((64,), dtype)):
        with T.Kernel(1):
            kept = T.alloc_local((4,), dtype)
            for i in T.Parallel(64):
                for k in T.unroll(4):
                    kept[k] = A[i]
                kept[i * -2 // 3 % 4] = kept[2] * T.cast(3, dtype)
                X[i] = kept[0]

    a = (np.arange(64) % 11 - 5).astype(dtype)
    wanted = np.where(np.arange(64) * -2 // 3 % 4 == 0, a * np.array(3, dtype), a)
    check(main, [a, np.zeros_like(a)], {1: wanted})


def test_rows_of_iterations_stay_apart():
    """What two dimensions of parallel loops tell apart, with a loop over the elements of each."""

    @T.prim_func
    def main(A: T.Tensor((6, 5), "int32"), X: T.Tensor((6, 5), "int32")):
        with T.Kernel(1):
            rows = T.alloc_local((6, 5, 3), "int32")
            for i, j in T.Parallel(6, 5):
                for k in T.serial(3):
                    rows[i, j, k] = A[i, j] + k
                rows[i, j, T.index(A[i, j] % 3)] = 100
                X[i, j] = rows[i, j, 0] + rows[i, j, 1] * rows[i, j, 2]

    a = np.arange(30, dtype="int32").reshape(6, 5) * 7 - 50
    rows = a[..., None] + np.arange(3)
    np.put_along_axis(rows, (a % 3)[..., None], 100, -1)
    wanted = (rows[..., 0] + rows[..., 1] * rows[..., 2]).astype("int32")
    check(main, [a, np.zeros_like(a)], {1: wanted})


@pytest.mark.parametrize("allocate", [T.alloc_shared, T.alloc_local])
def test_subscripts_from_memory_of_an_iteration(allocate):
    """Each iteration has a subscript of its own, though none of its variables stands in it."""

    @T.prim_func
    def main(A: T.Tensor((8, 1), "int32"), X: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            x = allocate((8,), "int32")
            for e in T.Parallel(8):
                k = T.alloc_local((1,), "int32")
                k[0] = A[e, 0]
                x[T.index(k[0])] = T.int32(e)
            for e in T.Parallel(8):
                X[e] = x[e]

    a = np.random.default_rng(0).permutation(8).astype("int32").reshape(8, 1)
    check(main, [a, np.zeros(8, "int32")], {1: np.argsort(a[:, 0]).astype("int32")})


def test_lanes_leave_an_element_to_their_iteration():
    """An iteration has one element to itself; its lanes find that in it, and one of them leaves another value."""

    @T.prim_func
    def main(A: T.Tensor((6,), "int32"), X: T.Tensor((6, 4), "int32"), Y: T.Tensor((6,), "int32")):
        with T.Kernel(1, threads=32):
            kept = T.alloc_local((6,), "int32")
            for e in T.serial(6):
                kept[e] = A[e]
            for i in T.Parallel(6):
                for lane in T.vectorized(4):
                    X[i, lane] = kept[i] + lane
                    if lane == 2:
                        kept[i] = X[i, lane] * 3
                Y[i] = kept[i]

    a = np.arange(6, dtype="int32") * 5 - 9
    wanted = a[:, None] + np.arange(4, dtype="int32")
    check(main, [a, np.zeros((6, 4), "int32"), np.zeros(6, "int32")], {1: wanted, 2: (a + 2) * 3})


def test_lanes_leave_elements_that_they_name():
    """The same where a lane decides which element of its iteration it accesses."""

    @T.prim_func
    def main(A: T.Tensor((12,), "int32"), X: T.Tensor((6, 4), "int32"), Y: T.Tensor((6, 2), "int32")):
        with T.Kernel(1, threads=32):
            kept = T.alloc_local((12,), "int32")
            for e in T.serial(12):
                kept[e] = A[e]
            for i in T.Parallel(6):
                for lane in T.vectorized(4):
                    X[i, lane] = kept[i * 2 + lane // 2]
                    if lane % 2 == 1:
                        kept[i * 2 + lane // 2] = X[i, lane] * 3
                for e in T.serial(2):
                    Y[i, e] = kept[i * 2 + e]

    a = np.arange(12, dtype="int32") * 5 - 9
    wanted = np.repeat(a.reshape(6, 2), 2, axis=1)
    zeros = [np.zeros((6, 4), "int32"), np.zeros((6, 2), "int32")]
    check(main, [a, *zeros], {1: wanted, 2: a.reshape(6, 2) * 3})


def behind_a_condition():
    """Half of the iterations have an element at all; in the others nothing may be copied."""

    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), X: T.Tensor((16,), "int32"), Y: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            kept = T.alloc_local((8,), "int32")
            for e in T.serial(8):
                kept[e] = A[e]
            for k in T.serial(2):
                for i, j in T.Parallel(16, 1 + k * 0):
                    X[i] = -1
                    if i < 8 and kept[i + j] > 0:
                        kept[i + j] = kept[i + j] * 3 - 4
                        X[i] = kept[i + j]
            for e in T.serial(8):
                Y[e] = kept[e]

    a = np.array([1, 2, 0, 5, -7, 1, 3, -1], "int32")
    kept, x = a.copy(), np.full(16, -1, "int32")
    for _ in range(2):
        x[:8] = np.where(kept > 0, kept * 3 - 4, -1)
        kept = np.where(kept > 0, kept * 3 - 4, kept)
    return main, [a, np.zeros(16, "int32"), np.zeros(8, "int32")], {1: x, 2: kept}


def left_by_several(inner, limit):
    """Threads store to what has become shared memory, and one of the values is left there; nothing reads it."""

    @T.prim_func
    def main(A: T.Tensor((16, 16), "int32"), n: T.int32, X: T.Tensor((16, 16), "int32")):
        with T.Kernel(1, threads=32):
            kept = T.alloc_local((1,), "int32")
            kept[0] = A[0, 0]
            for i in T.Parallel(16):
                for j in inner(16):
                    if A[i, j] > limit:
                        kept[0] = A[i, j] * 2
                    X[i, j] = kept[0]
            if A[0, 1] == n:
                for i in T.Parallel(16):
                    for j in inner(16):
                        if A[i, j] > 100:
                            kept[0] = -1
                        X[i, j] = kept[0]

    a = np.random.default_rng(3).integers(-20, 21, (16, 16)).astype("int32")
    wanted = np.where(a > limit, a * 2, a[0, 0]).astype("int32")
    return main, [a, 99, np.zeros((16, 16), "int32")], {2: wanted}


# Name -> a function, arguments, and what they hold afterwards.
CASES = {
    "a condition may not come to the element": behind_a_condition(),
    "several leave values": left_by_several(T.Parallel, 0),
    "few leave values": left_by_several(T.Parallel, 18),
    "lanes leave values": left_by_several(T.vectorized, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_every_target_keeps_iterations_apart(name):
    function, arguments, expected = CASES[name]
    check(function, arguments, expected)

    def copies():
        return [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]

    for arch in ("sm_80", "sm_90a"):
        helve.testing.check_stages(function, copies, target="cuda", arch=arch)


THREADS = """
@T.prim_func
def main(X: T.Tensor((32,), "int32")):
    with T.Kernel(1, threads=32):
        kept = T.alloc_shared((2,), "int32")
        for tx in T.threads(32):
            if tx == 0:
                kept[0] = 5
                kept[1] = 7
        T.sync_threads()
{body}
"""
SEVERAL = "for tx in T.threads(32):\n    if tx >= 8:\n        kept[0] = T.int32(tx)\nT.sync_threads()\n"
READ = "for tx in T.threads(32):\n    X[tx] = kept[0]\n"
ONE = "for tx in T.threads(32):\n    if tx == 3:\n        kept[0] = 4\nT.sync_threads()\n"
LEFT = {
    "is not read": (SEVERAL + READ.replace("[0]", "[1]"), None),
    "is read": (SEVERAL + READ, "HV0312"),
    "is read by one of them": (SEVERAL.replace("T.int32(tx)", "T.int32(tx)\n        X[tx] = kept[0]"), "HV0705"),
    "is overwritten by one": (SEVERAL + ONE + READ, None),
    "is overwritten by the last again": (
        SEVERAL.replace("T.int32(tx)", "T.int32(tx)\n        kept[0] = T.int32(tx) + 1") + READ, "HV0312"),
    "was read before by one of them": (
        SEVERAL.replace("        kept[0] =", "        X[tx] = kept[0]\n        kept[0] =") + READ.replace("[0]", "[1]"),
        "HV0705"),
    "was read by an iteration before": (
        "for tx in T.threads(32):\n    if tx < 2:\n        if tx == 0:\n            X[0] = kept[0]\n"
        "        kept[0] = 3\n", "HV0705"),
}


@pytest.mark.parametrize("check", ["in_turn", "barriers", "all"])
@pytest.mark.parametrize("title", LEFT)
def test_what_several_threads_leave_is_no_value(title, check):
    """In a stage, where private memory may have become shared; in a program that is written so it is a race."""
    body, code = LEFT[title]
    body = "".join(f"        {line}\n" for line in body.splitlines())
    if check == "all":
        code = "HV0705"
    function = helve.parse(THREADS.format(body=body)).function
    if code is None:
        return helve.testing.interpret(function, np.zeros(32, "int32"), check=check)
    with pytest.raises(helve.Error) as refused:
        helve.testing.interpret(function, np.zeros(32, "int32"), check=check)
    assert refused.value.code == code
    return None
