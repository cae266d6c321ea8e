"""Stores of T.Parallel to elements that its loop variables do not all select, with what NumPy makes of them.

Only one iteration stores to such an element when the program runs, or it is scratch of each. `CASES` gives a program,
a function that makes its arguments, and one that makes what its last argument becomes.
"""

import numpy as np

from helve import T

CASES = {}


def case(arguments):
    """Registers what makes (program, wanted) under its name."""

    def register(make):
        CASES[make.__name__] = (*make(), arguments)
        return make

    return register


def needle(at=148, count=256):
    def arguments():
        a = np.arange(1000, 1000 + count, dtype="int32")
        a[at] = 7
        return [a, np.full(1, -3, "int32")]

    return arguments


def table(*shape, out, seed=0):
    """A permutation, so that each value occurs once, and an output."""

    def arguments():
        values = np.random.default_rng(seed).permutation(int(np.prod(shape))).reshape(shape).astype("int32")
        return [values, np.full(out, -3, "int32")]

    return arguments


def place_of_needle(allocate):
    @T.prim_func
    def main(A: T.Tensor((256,), "int32"), OUT: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=128) as bx:
            found = allocate((1,), "int32")
            for b in T.Parallel(256):
                if A[b] == 7:
                    found[0] = T.cast(b, "int32")
            OUT[0] = found[0]

    return main, lambda a: np.flatnonzero(a == 7).astype("int32")


@case(needle())
def shared_by_data():
    return place_of_needle(T.alloc_shared)


@case(needle(3))
def fragment_by_data():
    return place_of_needle(T.alloc_fragment)


@case(needle(255))
def local_by_data():
    return place_of_needle(T.alloc_local)


@case(needle(200))
def annotated_by_data():
    @T.prim_func
    def main(A: T.Tensor((256,), "int32"), OUT: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=128) as bx:
            found = T.alloc_fragment((1,), "int32", layout="S[1 : 1@reg] + R[128 : 1@tx]")
            for b in T.Parallel(256):
                if A[b] == 7:
                    found[0] = T.cast(b, "int32")
            OUT[0] = found[0]

    return main, lambda a: np.flatnonzero(a == 7).astype("int32")


@case(needle())
def by_number():
    @T.prim_func
    def main(A: T.Tensor((256,), "int32"), OUT: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=64) as bx:
            found = T.alloc_fragment((1,), "int32")
            found[0] = 5
            for b in T.Parallel(256):
                if b == 201:
                    found[0] = A[b] + found[0]
            OUT[0] = found[0] * 2

    return main, lambda a: (a[201:202] + 5) * 2


@case(table(8, 96, out=8))
def argmax():
    @T.prim_func
    def main(A: T.Tensor((8, 96), "int32"), OUT: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=128) as bx:
            x = T.alloc_fragment((8, 96), "int32")
            m = T.alloc_fragment((8,), "int32")
            k = T.alloc_fragment((8,), "int32")
            T.copy(A, x)
            T.reduce_max(x, m, dim=1)
            for i, j in T.Parallel(8, 96):
                if x[i, j] == m[i]:
                    k[i] = T.cast(j, "int32")
            T.copy(k, OUT)

    return main, lambda a: a.argmax(1).astype("int32")


@case(table(5, 7, out=7))
def argmax_of_columns():
    @T.prim_func
    def main(A: T.Tensor((5, 7), "int32"), OUT: T.Tensor((7,), "int32")):
        with T.Kernel(1, threads=96) as bx:
            x = T.alloc_shared((5, 7), "int32")
            m = T.alloc_shared((7,), "int32")
            k = T.alloc_shared((7,), "int32")
            T.copy(A, x)
            T.reduce_max(x, m, dim=0)
            for i in T.Parallel(5):
                for j in T.Parallel(7):
                    if x[i, j] == m[j]:
                        k[j] = T.cast(i, "int32")
            for j in T.Parallel(7):
                OUT[j] = k[j]

    return main, lambda a: a.argmax(0).astype("int32")


def diagonal_of(threads, layout=None):
    @T.prim_func
    def main(A: T.Tensor((32, 32), "int32"), OUT: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=threads) as bx:
            a = T.alloc_fragment((32, 32), "int32")
            d = T.alloc_fragment((32,), "int32", layout=layout)
            T.copy(A, a)
            for i, j in T.Parallel(32, 32):
                if i == j:
                    d[i] = a[i, j]
            for i in T.Parallel(32):
                d[i] = d[i] + 1
            T.copy(d, OUT)

    return main, lambda a: np.diagonal(a) + 1


@case(table(32, 32, out=32))
def diagonal():
    return diagonal_of(128)


@case(table(32, 32, out=32))
def diagonal_of_placed_fragments():
    return diagonal_of(64, "S[32 : 1@tx] + R[2 : 32@tx]")


@case(table(4, 9, out=4))
def kept_where_no_iteration_stores():
    @T.prim_func
    def main(A: T.Tensor((4, 9), "int32"), OUT: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32) as bx:
            k = T.alloc_fragment((4,), "int32")
            for i in T.Parallel(4):
                k[i] = T.cast(i, "int32") - 100
            for i, j in T.Parallel(4, 9):
                if A[i, j] == 20:
                    k[i] = k[i] + T.cast(j, "int32")
            T.copy(k, OUT)

    def wanted(a):
        k = np.arange(4, dtype="int32") - 100
        rows, columns = np.nonzero(a == 20)
        k[rows] += columns.astype("int32")
        return k

    return main, wanted


def shuffled_rows():
    rows = np.arange(60).reshape(6, 10)
    return [np.random.default_rng(1).permuted(rows, axis=1).astype("int32"), np.zeros(3, "int32")]


@case(shuffled_rows)
def through_tile_operations():
    @T.prim_func
    def main(A: T.Tensor((6, 10), "int32"), OUT: T.Tensor((3,), "int32")):
        with T.Kernel(1, threads=64) as bx:
            rows = T.alloc_fragment((6, 1), "int32")
            sums = T.alloc_fragment((1,), "int32")
            whole = T.alloc_shared((6, 1), "int32")
            T.fill(rows, 1)
            for i, j in T.Parallel(6, 10):
                if A[i, j] == i * 10 + 3 and i > 1:
                    rows[i, 0] = A[i, j] * 100 + T.cast(j, "int32")
            T.reduce_sum(rows, sums, dim=0)
            T.copy(rows, whole)
            OUT[0] = sums[0]
            OUT[1] = whole[2, 0]
            OUT[2] = rows[5, 0]

    def wanted(a):
        rows = np.ones(6, "int32")
        for i in range(2, 6):
            rows[i] = (i * 10 + 3) * 100 + np.flatnonzero(a[i] == i * 10 + 3)[0]
        return np.array([rows.sum(), rows[2], rows[5]], "int32")

    return main, wanted


@case(table(3, 8, out=3))
def beside_an_atomic_update():
    @T.prim_func
    def main(A: T.Tensor((3, 8), "int32"), OUT: T.Tensor((3,), "int32")):
        with T.Kernel(1, threads=32) as bx:
            last = T.alloc_fragment((1,), "int32")
            sums = T.alloc_shared((3,), "int32")
            T.fill(sums, 0)
            for i, j in T.Parallel(3, 8):
                T.atomic_add(sums[i], A[i, j])
                if A[i, j] == 11:
                    last[0] = T.cast(i * 8 + j, "int32")
            for i in T.Parallel(3):
                OUT[i] = sums[i] + last[0]

    return main, lambda a: a.sum(1, dtype="int32") + np.int32(np.flatnonzero(a.ravel() == 11)[0])


@case(table(4, 6, out=4))
def in_a_serial_loop():
    @T.prim_func
    def main(A: T.Tensor((4, 6), "int32"), OUT: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=64) as bx:
            found = T.alloc_fragment((1,), "int32")
            for r in T.serial(4):
                found[0] = -1
                for j in T.Parallel(6):
                    if A[r, j] % 7 == 0 and A[r, j] > 0:
                        if A[r, j] == 7:
                            found[0] = T.cast(j, "int32")
                OUT[r] = found[0]

    def wanted(a):
        out = np.full(4, -1, "int32")
        rows, columns = np.nonzero(a == 7)
        out[rows] = columns
        return out

    return main, wanted


@case(table(64, 4, out=64))
def scratch_outside_the_loop():
    @T.prim_func
    def main(A: T.Tensor((64, 4), "int32"), OUT: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=128) as bx:
            found = T.alloc_local((1,), "int32")
            for r in T.Parallel(64):
                found[0] = -5
                for v in T.serial(4):
                    if A[r, v] % 5 == 0:
                        found[0] = T.cast(v, "int32")
                OUT[r] = found[0]

    def wanted(a):
        hit = a % 5 == 0
        return np.where(hit.any(1), 3 - hit[:, ::-1].argmax(1), -5).astype("int32")

    return main, wanted


@case(table(10, 3, out=10))
def scratch_of_several_elements():
    @T.prim_func
    def main(A: T.Tensor((10, 3), "int32"), OUT: T.Tensor((10,), "int32")):
        with T.Kernel(1, threads=32) as bx:
            x = T.alloc_local((3,), "int32")
            total = T.alloc_local((1,), "int32")
            for turn in T.serial(2):
                for r in T.Parallel(10):
                    total[0] = T.cast(turn, "int32")
                    for v in T.serial(3):
                        x[v] = A[r, v] * 3
                    for v in T.serial(3):
                        total[0] = total[0] * 2 + x[2 - v]
                    OUT[r] = total[0]

    return main, lambda a: (8 + 3 * (a[:, 2] * 4 + a[:, 1] * 2 + a[:, 0])).astype("int32")


@case(table(12, 2, out=12))
def scratch_that_begins_outside():
    @T.prim_func
    def main(A: T.Tensor((12, 2), "int32"), OUT: T.Tensor((12,), "int32")):
        with T.Kernel(1, threads=32) as bx:
            state = T.alloc_local((1,), "int32")
            bias = T.alloc_local((2,), "int32")
            state[0] = 40
            bias[0] = 3
            bias[1] = 4
            for r in T.Parallel(12):
                if r == 11:
                    state[0] = state[0] + A[r, 0]
                    OUT[r] = state[0] + bias[1]
                else:
                    OUT[r] = bias[0]

    def wanted(a):
        out = np.full(12, 3, "int32")
        out[11] = 44 + a[11, 0]
        return out

    return main, wanted


@case(table(16, 1, out=16))
def one_iteration_leaves_a_value():
    @T.prim_func
    def main(A: T.Tensor((16, 1), "int32"), OUT: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=64) as bx:
            best = T.alloc_local((1,), "int32")
            best[0] = 0
            for r in T.Parallel(16):
                if A[r, 0] == 15:
                    best[0] = T.cast(r, "int32") + 100
            for r in T.Parallel(16):
                OUT[r] = best[0]

    return main, lambda a: np.full(16, 100 + a[:, 0].argmax(), "int32")


@case(table(16, 1, out=16))
def one_iteration_changes_a_value():
    @T.prim_func
    def main(A: T.Tensor((16, 1), "int32"), OUT: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=64) as bx:
            best = T.alloc_local((2,), "int32")
            best[0] = 50
            best[1] = 60
            for r in T.Parallel(16):
                if A[r, 0] == 15:
                    best[1] = best[1] + T.cast(r, "int32")
                OUT[r] = best[0]
            for r in T.Parallel(16):
                OUT[r] = OUT[r] + best[1]

    return main, lambda a: np.full(16, 110 + a[:, 0].argmax(), "int32")


@case(table(256, 1, out=256))
def what_another_iteration_wrote():
    """No iteration sees it: each finds what stood there before the loop."""

    @T.prim_func
    def main(A: T.Tensor((256, 1), "int32"), OUT: T.Tensor((256,), "int32")):
        with T.Kernel(1, threads=64) as bx:
            place = T.alloc_local((1,), "int32")
            place[0] = -1
            for r in T.Parallel(256):
                if A[r, 0] % 5 == 2:
                    place[0] = T.int32(r)
                OUT[r] = place[0]

    def wanted(a):
        return np.where(a[:, 0] % 5 == 2, np.arange(256), -1).astype("int32")

    return main, wanted


@case(table(40, 1, out=40))
def what_another_lane_wrote():
    @T.prim_func
    def main(A: T.Tensor((40, 1), "int32"), OUT: T.Tensor((40,), "int32")):
        with T.Kernel(1, threads=32) as bx:
            last = T.alloc_local((4,), "int32")
            for e in T.serial(4):
                last[e] = -e
            for r in T.vectorized(40):
                last[r % 4] = A[r, 0]
                OUT[r] = last[0] + 2 * last[3]

    def wanted(a):
        at, a = np.arange(40) % 4, a[:, 0]
        return (np.where(at == 0, a, 0) + 2 * np.where(at == 3, a, -3)).astype("int32")

    return main, wanted


@case(table(32, 8, out=(32, 8)))
def what_another_lane_of_a_thread_wrote():
    @T.prim_func
    def main(A: T.Tensor((32, 8), "int32"), OUT: T.Tensor((32, 8), "int32")):
        with T.Kernel(1, threads=32) as bx:
            for t in T.threads(32):
                last = T.alloc_local((1,), "int32")
                last[0] = -1
                for r in T.vectorized(8):
                    if A[t, r] % 3 == 0:
                        last[0] = A[t, r]
                    OUT[t, r] = last[0]

    return main, lambda a: np.where(a % 3 == 0, a, -1).astype("int32")


@case(table(6, 5, out=(6, 5)))
def what_an_inner_loop_left():
    """One inner iteration leaves a value, which the rest of the outer one reads and no other one."""

    @T.prim_func
    def main(A: T.Tensor((6, 5), "int32"), OUT: T.Tensor((6, 5), "int32")):
        with T.Kernel(1, threads=32) as bx:
            most = T.alloc_local((1,), "int32")
            most[0] = 100
            for r in T.Parallel(6):
                for k in T.vectorized(5):
                    if A[r, k] == 7:
                        most[0] += A[r, k]
                for k in T.serial(5):
                    OUT[r, k] = most[0]

    return main, lambda a: np.broadcast_to(100 + 7 * (a == 7).any(1)[:, None], (6, 5)).astype("int32")


@case(table(40, 1, out=1))
def lanes_of_a_vector():
    @T.prim_func
    def main(A: T.Tensor((40, 1), "int32"), OUT: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=32) as bx:
            found = T.alloc_shared((1, 1), "int32")
            for r in T.vectorized(40):
                if A[r, 0] == 39:
                    found[0, 0] = T.cast(r, "int32")
            OUT[0] = found[0, 0]

    return main, lambda a: np.flatnonzero(a[:, 0] == 39).astype("int32")


def one_element(threads):
    @T.prim_func
    def main(A: T.Tensor((33, 1), "int32"), OUT: T.Tensor((33,), "int32")):
        with T.Kernel(1, threads=threads) as bx:
            x = T.alloc_fragment((1,), "int32")
            T.fill(x, 9)
            for i in T.Parallel(33):
                OUT[i] = x[32 - i] if 32 - i < 1 else A[i, 0]

    def wanted(a):
        out = a[:, 0].copy()
        out[32] = 9
        return out

    return main, wanted


@case(table(33, 1, out=33))
def one_element_under_its_test():
    return one_element(64)


@case(table(33, 1, out=33))
def one_element_under_its_test_in_the_second_turn():
    return one_element(32)


@case(table(33, 1, out=33))
def one_element_of_several_threads():
    return one_element(128)


@case(table(33, 1, out=1))
def a_store_to_one_element_under_its_test():
    @T.prim_func
    def main(A: T.Tensor((33, 1), "int32"), OUT: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=128) as bx:
            x = T.alloc_fragment((1,), "int32")
            for i in T.Parallel(33):
                if 32 - i < 1:
                    x[32 - i] = A[i, 0]
            OUT[0] = x[0]

    return main, lambda a: a[32]


def memory_of_an_iteration(allocate):
    @T.prim_func
    def main(A: T.Tensor((10, 3), "int32"), OUT: T.Tensor((10,), "int32")):
        with T.Kernel(1, threads=32) as bx:
            for i in T.Parallel(10):
                own = allocate((2, 2), "int32")
                own[0, 1] = A[i, 0]
                for v in T.serial(2):
                    own[0, 1] = own[0, 1] + A[i, 1 + v]
                OUT[i] = own[0, 1]

    return main, lambda a: a.sum(axis=1)


@case(table(10, 3, out=10))
def a_fragment_of_an_iteration():
    return memory_of_an_iteration(T.alloc_fragment)


@case(table(10, 3, out=10))
def shared_memory_of_an_iteration():
    return memory_of_an_iteration(T.alloc_shared)


@case(table(10, 3, out=(10, 2)))
def shared_memory_of_an_iteration_with_bounds_of_another():
    @T.prim_func
    def main(A: T.Tensor((10, 3), "int32"), OUT: T.Tensor((10, 2), "int32")):
        with T.Kernel(1, threads=32) as bx:
            for i in T.Parallel(10):
                for j in T.Parallel(T.min(i, 2)):
                    own = T.alloc_shared((2,), "int32")
                    own[0] = A[i, j]
                    own[1] = own[0] * 2
                    OUT[i, j] = own[1] + own[0]

    def wanted(a):
        out = np.full((10, 2), -3, "int32")
        for i in range(10):
            out[i, :min(i, 2)] = 3 * a[i, :min(i, 2)]
        return out

    return main, wanted


@case(table(64, 4, out=64))
def atomic_updates_of_what_an_iteration_allocates():
    @T.prim_func
    def main(A: T.Tensor((64, 4), "int32"), OUT: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64) as bx:
            for r in T.Parallel(64):
                count = T.alloc_shared((4,), "int32")
                most = T.alloc_shared((1,), "int64")
                least = T.alloc_shared((1,), "float32")
                for i in T.serial(4):
                    count[i] = 0
                most[0] = -5
                least[0] = 1000.0
                for i in T.serial(4):
                    T.atomic_add(count[T.index(A[r, i]) % 4], 1)
                    T.atomic_max(most[0], A[r, i])
                    if A[r, i] % 3 == 1:
                        T.atomic_min(least[0], T.float32(A[r, i]))
                OUT[r] = count[T.index(A[r, 0]) % 4] * 100000 + T.int32(most[0]) * 7 + T.int32(least[0])

    def wanted(a):
        count = (a % 4 == a[:, :1] % 4).sum(1)
        least = np.where(a % 3 == 1, a, 1000).min(1)
        return (count * 100000 + a.max(1) * 7 + least).astype("int32")

    return main, wanted


def rounded(x, digits):
    """Floats of so many binary digits; the even one of two as near."""
    unit = 2.0 ** (np.floor(np.log2(x)) - digits + 1)
    return np.rint(x / unit) * unit


def rounded_sums(dtype, digits):
    """Sums of small floats: what is added is rounded, and then each sum once."""

    @T.prim_func
    def main(A: T.Tensor((40, 6), "int32"), OUT: T.Tensor((40,), "int32")):
        with T.Kernel(1, threads=32) as bx:
            for r in T.vectorized(40):
                total = T.alloc_shared((1, 2), dtype)
                total[0, 1] = 0
                for i in T.serial(6):
                    T.atomic_add(total[0, 1], T.float32(A[r, i]) * 16.0 + 1.0)
                OUT[r] = T.int32(total[0, 1])

    def wanted(a):
        total = np.zeros(40)
        for i in range(6):
            total = rounded(total + rounded(a[:, i] * 16.0 + 1.0, digits), digits)
        return total.astype("int32")

    return main, wanted


@case(table(40, 6, out=40))
def atomic_sums_of_float16_in_an_iteration():
    return rounded_sums("float16", 11)


@case(table(40, 6, out=40))
def atomic_sums_of_bfloat16_in_an_iteration():
    return rounded_sums("bfloat16", 8)


@case(table(16, 8, out=(16, 8)))
def atomic_updates_by_lanes_of_what_an_iteration_allocates():
    @T.prim_func
    def main(A: T.Tensor((16, 8), "int32"), OUT: T.Tensor((16, 8), "int32")):
        with T.Kernel(1, threads=32) as bx:
            for r in T.Parallel(16):
                count = T.alloc_shared((3,), "int32")
                for i in T.serial(3):
                    count[i] = r
                for i in T.vectorized(8):
                    T.atomic_add(count[T.index(A[r, i]) % 3], A[r, i])
                for i in T.serial(8):
                    OUT[r, i] = count[i % 3]

    def wanted(a):
        sums = np.stack([np.where(a % 3 == k, a, 0).sum(1) for k in range(3)], 1) + np.arange(16)[:, None]
        return sums[:, np.arange(8) % 3].astype("int32")

    return main, wanted


@case(table(64, 1, out=64))
def one_element_of_each_iteration_is_rotated():
    @T.prim_func
    def main(A: T.Tensor((64, 1), "int32"), OUT: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=32) as bx:
            x = T.alloc_local((64,), "int32")
            for e in T.serial(64):
                x[e] = A[e, 0]
            for e in T.vectorized(64):
                x[(e + 40) % 64] = x[(e + 40) % 64] * 2 + e
            for e in T.serial(64):
                OUT[e] = x[e]

    return main, lambda a: 2 * a[:, 0] + (np.arange(64, dtype="int32") + 24) % 64


@case(table(64, 1, out=(64,)))
def a_sum_that_is_not_read():
    """Several iterations go on with the element, which leaves no value; whether it is read is for the call to say."""

    @T.prim_func
    def main(A: T.Tensor((64, 1), "int32"), OUT: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=32) as bx:
            x = T.alloc_local((1,), "int32")
            x[0] = 0
            for i in T.Parallel(64):
                OUT[i] = A[i, 0]
                if i % 2 == 0:
                    if A[i, 0] > -1000:
                        x[0] += A[i, 0]
            if A[0, 0] < -1000:
                OUT[0] = x[0]

    return main, lambda a: a[:, 0]


@case(table(64, 1, out=(2, 64)))
def one_element_that_data_pick():
    @T.prim_func
    def main(A: T.Tensor((64, 1), "int32"), OUT: T.Tensor((2, 64), "int32")):
        with T.Kernel(1, threads=32) as bx:
            x = T.alloc_local((64,), "int32")
            for e in T.serial(64):
                x[e] = e * 3
                OUT[0, e] = 0
            for e in T.Parallel(64):
                x[T.index(A[e, 0])] += e + 1
            for e in T.serial(64):
                OUT[1, e] = x[e]

    def wanted(a):
        a, e, old = a[:, 0], np.arange(64), 3 * np.arange(64)
        old[a] += e + 1
        return np.stack([0 * e, old])

    return main, wanted


@case(table(64, 1, out=(2, 64)))
def one_element_that_data_pick_is_read_for_others():
    @T.prim_func
    def main(A: T.Tensor((64, 1), "int32"), OUT: T.Tensor((2, 64), "int32")):
        with T.Kernel(1, threads=32) as bx:
            x = T.alloc_local((64,), "int32")
            for e in T.serial(64):
                x[e] = e * 3
                OUT[0, e] = 0
            for e in T.Parallel(64):
                k = T.index(A[e, 0])
                before = x[k]
                x[k] = before + e
                OUT[0, e] = before
            for e in T.serial(64):
                OUT[1, e] = x[e]

    def wanted(a):
        a, e, old = a[:, 0], np.arange(64), 3 * np.arange(64)
        found = old[a]
        old[a] += e
        return np.stack([found, old])

    return main, wanted


@case(table(64, 1, out=(2, 64)))
def several_iterations_at_one_element():
    """Each finds what stood there before the loop; nobody reads what they leave."""

    @T.prim_func
    def main(A: T.Tensor((64, 1), "int32"), OUT: T.Tensor((2, 64), "int32")):
        with T.Kernel(1, threads=32) as bx:
            x = T.alloc_local((64,), "int32")
            for e in T.serial(64):
                x[e] = e * 3
                OUT[0, e] = 0
            for e in T.Parallel(64):
                OUT[0, e] = x[T.index(A[e, 0]) // 8]
                x[T.index(A[e, 0]) // 8] = e
                OUT[0, e] = OUT[0, e] * 100 + x[T.index(A[e, 0]) // 8]
            for e in T.serial(64):
                OUT[1, e] = e

    def wanted(a):
        a, e, old = a[:, 0], np.arange(64), 3 * np.arange(64)
        return np.stack([old[a // 8] * 100 + e, e])

    return main, wanted


@case(table(64, 1, out=(2, 64)))
def several_iterations_divide_by_one_element():
    """Each divides by what stood there before the loop, never by what another one left, which is zero."""

    @T.prim_func
    def main(A: T.Tensor((64, 1), "int32"), OUT: T.Tensor((2, 64), "int32")):
        with T.Kernel(1, threads=32) as bx:
            x = T.alloc_local((64,), "int32")
            for e in T.serial(64):
                x[e] = 7
                OUT[0, e] = 0
            for e in T.Parallel(64):
                x[T.index(A[e, 0]) // 8] = 5 // x[T.index(A[e, 0]) // 8]
            for e in T.serial(64):
                OUT[1, e] = e

    def wanted(a):
        a, e, old = a[:, 0], np.arange(64), 3 * np.arange(64)
        return np.stack([0 * e, e])

    return main, wanted


@case(table(64, 1, out=(2, 64)))
def an_element_that_need_not_exist():
    @T.prim_func
    def main(A: T.Tensor((64, 1), "int32"), OUT: T.Tensor((2, 64), "int32")):
        with T.Kernel(1, threads=32) as bx:
            x = T.alloc_local((64,), "int32")
            for e in T.serial(64):
                x[e] = e * 3
                OUT[0, e] = 0
            for e in T.Parallel(64):
                if A[e, 0] >= 32:
                    place = x[T.index(A[e, 0]) * 2 - 64]
                    if A[e, 0] % 2 == 1:
                        x[T.index(A[e, 0]) * 2 - 64] = place + 1
                    OUT[0, e] = place
            for e in T.serial(64):
                OUT[1, e] = x[e]

    def wanted(a):
        a, e, old = a[:, 0], np.arange(64), 3 * np.arange(64)
        found = np.where(a >= 32, old[(2 * a - 64).clip(0)], 0)
        old[2 * a[(a >= 32) & (a % 2 == 1)] - 64] += 1
        return np.stack([found, old])

    return main, wanted


@case(table(64, 1, out=(2, 64)))
def an_element_that_a_loop_may_not_reach():
    @T.prim_func
    def main(A: T.Tensor((64, 1), "int32"), OUT: T.Tensor((2, 64), "int32")):
        with T.Kernel(1, threads=32) as bx:
            x = T.alloc_local((64,), "int32")
            for e in T.serial(64):
                x[e] = e * 3
                OUT[0, e] = 0
            for e in T.Parallel(64):
                for v in T.serial(T.index(A[e, 0]) // 32):
                    OUT[0, e] = x[T.index(A[e, 0]) * 2 - 64]
                    x[T.index(A[e, 0]) * 2 - 64] = A[e, 0]
            for e in T.serial(64):
                OUT[1, e] = x[e]

    def wanted(a):
        a, e, old = a[:, 0], np.arange(64), 3 * np.arange(64)
        found = np.where(a >= 32, old[(2 * a - 64).clip(0)], 0)
        old[2 * a[a >= 32] - 64] = a[a >= 32]
        return np.stack([found, old])

    return main, wanted


@case(table(64, 1, out=(2, 64)))
def an_element_whose_subscript_changes():
    """One subscript names two elements of an iteration."""

    @T.prim_func
    def main(A: T.Tensor((64, 1), "int32"), OUT: T.Tensor((2, 64), "int32")):
        with T.Kernel(1, threads=32) as bx:
            x = T.alloc_local((64,), "int32")
            for e in T.serial(64):
                x[e] = e * 3
                OUT[0, e] = 0
            for e in T.Parallel(64):
                k = T.alloc_local((1,), "int32")
                k[0] = A[e, 0]
                one = x[(T.index(k[0]) + e * 64) % 64]
                k[0] = 63 - k[0]
                other = x[(T.index(k[0]) + e * 64) % 64]
                x[(T.index(k[0]) + e * 64) % 64] = one + 1
                OUT[0, e] = other
            for e in T.serial(64):
                OUT[1, e] = x[e]

    def wanted(a):
        a, e, old = a[:, 0], np.arange(64), 3 * np.arange(64)
        found, left = old[63 - a], np.zeros(64, "int64")
        left[63 - a] = old[a] + 1
        return np.stack([found, left])

    return main, wanted


@case(table(32, 8, out=(32, 8)))
def what_a_lane_of_a_thread_leaves():
    """One lane stores, the others read what stood there before."""

    @T.prim_func
    def main(A: T.Tensor((32, 8), "int32"), OUT: T.Tensor((32, 8), "int32")):
        with T.Kernel(1, threads=32) as bx:
            for t in T.threads(32):
                kept = T.alloc_local((2,), "int32")
                for e in T.serial(2):
                    kept[e] = A[t, e]
                for r in T.vectorized(8):
                    if r == 2:
                        kept[t % 2] = A[t, r] * 3
                    OUT[t, r] = kept[t // 5 % 2]
                OUT[t, 0] = kept[t % 2]

    def wanted(a):
        t = np.arange(32)
        out = np.repeat(a[t, t // 5 % 2][:, None], 8, 1)
        same = t % 2 == t // 5 % 2
        out[same, 2] = 3 * a[same, 2]
        out[:, 0] = 3 * a[:, 2]
        return out

    return main, wanted
