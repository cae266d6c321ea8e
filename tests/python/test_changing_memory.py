"""Memory that changes between the reading of a value and its use.

A loop bound, a condition or a scalar operand is read once, where it stands; what is written later changes neither. Each
program here writes what it has just read.
"""

import numpy as np
import pytest
from differential import check, sample
from helve import T


def ints(*values):
    return np.array(values, np.int32)


def test_loops_whose_bound_the_first_one_writes():
    @T.prim_func
    def main(c: T.Tensor((1,), "int32"), X: T.Tensor((8,), "int32")):
        with T.Kernel(1):
            for _ in T.serial(T.index(c[0])):
                c[0] = 2
            for j in T.serial(T.index(c[0])):
                X[j] = 1

    check(main, [ints(6), np.zeros(8, np.int32)], {0: ints(2), 1: ints(1, 1, 0, 0, 0, 0, 0, 0)})


def test_a_condition_that_its_own_branch_makes_false():
    @T.prim_func
    def main(A: T.Tensor((1,), "int32"), X: T.Tensor((2,), "int32")):
        with T.Kernel(1):
            if A[0] < 3:
                A[0] = 5
                if A[0] < 3:
                    X[0] = 1
                else:
                    X[0] = 2
            else:
                A[0] = 1
                if A[0] < 3:
                    X[1] = 3

    check(main, [ints(0), ints(0, 0)], {0: ints(5), 1: ints(2, 0)})
    check(main, [ints(4), ints(0, 0)], {0: ints(1), 1: ints(0, 3)})


def test_a_condition_of_which_one_part_is_no_memory():
    @T.prim_func
    def main(A: T.Tensor((1,), "int32"), X: T.Tensor((8,), "int32")):
        with T.Kernel(1):
            for i in T.serial(8):
                if i < 5 and A[0] < 3:
                    A[0] = A[0] + T.cast(i, "int32")
                    if i < 5 and A[0] < 3:
                        X[i] = 1
                    else:
                        X[i] = 2

    check(main, [ints(0), np.zeros(8, np.int32)], {0: ints(3), 1: ints(1, 1, 2, 0, 0, 0, 0, 0)})


def test_a_loop_that_writes_its_own_bound():
    @T.prim_func
    def main(A: T.Tensor((1,), "int32"), X: T.Tensor((8,), "int32")):
        with T.Kernel(1):
            for i in T.serial(T.index(A[0])):
                A[0] = 0
                if i < T.index(A[0]):
                    X[i] = 1
                else:
                    X[i] = 2

    check(main, [ints(5), np.zeros(8, np.int32)], {0: ints(0), 1: ints(2, 2, 2, 2, 2, 0, 0, 0)})


def test_a_loop_of_one_iteration_that_begins_where_memory_says():
    @T.prim_func
    def main(A: T.Tensor((1,), "int32"), X: T.Tensor((8,), "int32")):
        with T.Kernel(1):
            for i in T.serial(T.index(A[0]), T.index(A[0]) + 1):
                A[0] = 7
                X[i] = 1

    check(main, [ints(2), np.zeros(8, np.int32)], {0: ints(7), 1: ints(0, 0, 1, 0, 0, 0, 0, 0)})


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_a_fill_by_an_element_of_its_target(dtype):
    @T.prim_func
    def main(X: T.Tensor((37,), dtype)):
        with T.Kernel(1):
            T.fill(X, X[5] * 2)

    x = sample((37,), dtype, seed=3)
    check(main, [x], {0: np.full_like(x, x[5] * 2)})


def test_a_copy_onto_the_numbers_that_place_it():
    @T.prim_func
    def main(B: T.Tensor((16,), "int32"), I: T.Tensor((8,), "int32")):
        with T.Kernel(1):
            T.copy(B[T.index(I[0]) : T.index(I[0]) + 4], I[0:4])

    b = np.arange(16, dtype=np.int32) + 3
    check(main, [b, ints(2, 1, 1, 1, 1, 1, 1, 1)], {1: ints(5, 6, 7, 8, 1, 1, 1, 1)})


@pytest.mark.parametrize(("dtype", "most"), [("float32", 7), ("float32", 14), ("int8", 30), ("float64", 4)])
def test_sums_of_fewer_elements_than_a_vector_holds(dtype, most):
    """The extent is a loop's variable: bounded, but no constant."""

    @T.prim_func
    def main(A: T.Tensor((3, 32), dtype), O: T.Tensor((most + 1, 3), dtype)):
        with T.Kernel(1):
            s = T.alloc_shared((3,), dtype)
            for k in T.serial(most + 1):
                T.reduce_sum(A[0:3, 0:k], s, dim=1)
                T.copy(s, O[k, 0:3])

    a = np.arange(96).reshape(3, 32).astype(dtype) % 5
    sums = np.stack([a[:, :k].sum(axis=1, dtype=a.dtype) for k in range(most + 1)])
    check(main, [a, np.zeros_like(sums)], {1: sums})


@pytest.mark.parametrize(("n", "m", "turns"), [(3, 2, 0), (3, 7, 0), (7, 3, 0), (5, 9, 0), (7, 8, 6)])
def test_a_persistent_domain_of_negative_extents_is_empty(n, m, turns):
    N, M = T.dyn("N"), T.dyn("M")

    @T.prim_func
    def main(X: T.Tensor((N, M), "int32"), C: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            for _, _ in T.Persistent([N - 5, M - 5]):
                C[0] = C[0] + 1

    check(main, [np.zeros((n, m), np.int32), ints(0)], {1: ints(turns)})
