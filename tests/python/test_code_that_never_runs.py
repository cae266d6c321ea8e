"""Operations that constants would refute, where nothing runs them: every target compiles them and runs around them.

Passes fold their operands under what holds there; what comes out is no fault of the program.
"""

import numpy as np
import pytest

import helve
import helve.testing
from helve.testing import changed_stages, lowering_stages

PIPELINES = ({"target": "llvm"}, {"target": "cuda", "arch": "sm_80"}, {"target": "cuda", "arch": "sm_90a"})
PROGRAM = """@T.prim_func
def main(A: T.Tensor((4,), "int32"), C: T.Tensor((4,), "int32")):
    with T.Kernel(3, threads=32) as b:
        row = T.alloc_shared((4,), "int32")
        square = T.alloc_shared((4, 4), "int32")
        other = T.alloc_shared((4, 4), "int32")
        for k in T.Persistent([1]):
            T.fill(row, 5)
            T.fill(square, 2)
            T.fill(other, 3)
{body}
            T.copy(row, C)
"""
NEVER = {  # a loop of no iterations, a branch that is never taken, and a branch that memory decides against
    "loop": "for n in T.unroll(k):",
    "loop from 2": "for n in T.serial(2, 2 + k):",
    "branch": "if b > 2:",
    "memory": "if A[k] > 3:",
}
# Operations that no constants refute as they are written.
OPERATIONS = {
    "operand": "T.fill(row, value=square[0, k // (-3) - 1])",
    "region": "T.fill(row[k - 1:k + 1], 7)",
    "far region": "T.fill(row[k + 3:k + 5], 7)",
    "negative extent": "T.fill(row[k:k - 2], 7)",
    "reduction of nothing": "T.reduce_max(square[0:4, k:k - 2], row, dim=1)",
    "store": "row[k - 1] = 9",
    "reduction": "T.reduce_sum(square[k - 1:k + 3, 0:4], row, dim=1)",
    "scan": "T.cumsum(square[k - 4:k, 0:4], other, dim=0)",
}
REFUTED = {  # shapes: where no proof sees that nothing runs, the program is refused
    "reduction's shape": "T.reduce_sum(square[0:4, 0:4], row[k * 2:k * 3], dim=1)",
    "copy's shape": "T.copy(square[0, 0:4], row[k * 2:k * 3 + 2])",
    "product's shape": "T.gemm(square[0:4, k * 2:k * 3 + 2], square[0:k + 3, 0:4], other)",
}


def check_every_stage(body):
    check_calls(helve.parse(PROGRAM.format(body=body)), lambda: [np.zeros(4, np.int32), np.zeros(4, np.int32)], [5] * 4)


def check_calls(function, arguments, wanted):
    """Each way of running the function leaves `wanted` in its last argument."""

    def run(call):
        given = arguments()
        call(*given)
        np.testing.assert_array_equal(given[-1], wanted)

    run(helve.compile(function, target="interp"))
    run(helve.compile(function, target="llvm", verify=True))
    for options in PIPELINES:
        for _, stage in changed_stages(lowering_stages(function, **options)):
            run(lambda *given: helve.testing.interpret(stage, *given))  # noqa: B023


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("never", NEVER)
def test_an_operation_that_never_runs(never, operation):
    check_every_stage(f"            {NEVER[never]}\n                {OPERATIONS[operation]}")


@pytest.mark.parametrize("operation", REFUTED)
@pytest.mark.parametrize("never", [each for each in NEVER if each != "memory"])
def test_shapes_that_never_meet(never, operation):
    check_every_stage(f"            {NEVER[never]}\n                {REFUTED[operation]}")


@pytest.mark.parametrize("operation", REFUTED)
def test_shapes_that_differ_lower_where_nothing_proved_them(operation):
    """Stages are made without the proofs that refuse the program."""
    function = helve.parse(PROGRAM.format(body=f"            if A[k] > 3:\n                {REFUTED[operation]}"))
    with pytest.raises(helve.Error) as caught:
        helve.compile(function, target="llvm")
    assert caught.value.code == "HV0814"
    for options in ({"target": "llvm"}, {"target": "cuda", "arch": "sm_80"}):
        *_, (_, stage) = helve.testing.lowering_stages(function, **options)
        c = np.zeros(4, np.int32)
        helve.testing.interpret(stage, np.zeros(4, np.int32), c)
        np.testing.assert_array_equal(c, [5] * 4)


GUARDED = """@T.prim_func
def main(n: T.index, A: T.Tensor((4,), "int32"), C: T.Tensor((4,), "int32")):
    with T.Kernel(1, threads=32) as b:
        row = T.alloc_fragment((4,), "int32")
        one = T.alloc_fragment((1, 1), "int32")
        tiles = T.alloc_shared_tiles((4, 4), "int32", tile_size=(2, 2))
        T.fill(row, 5)
        T.fill(one, 2)
        T.fill(tiles, 3)
        for k in T.serial(n):
            if {guard}:
                {body}
        T.copy(row, C)
"""
# What constants refute, behind a condition that always holds: a pass that takes it away takes the fault out as well.
UNCOVERED = {
    "store": "row[4] = 1",
    "load": "row[0] = one[0, 2]",
    "load under operators": "row[0] = T.cast(T.cast(one[0, 2], \"float64\") * 2.0, \"int32\")",
    "load in a loop": "for i, j in T.Parallel(1, 1):\n                    row[0] = one[i, 2] + one[i, j]",
    "region": "T.fill(row[3:7], 1)",
    "tile": "for i, j in T.foreach_tiles(tiles):\n                    tiles[i, j] = tiles[7, j] + 1",
}


@pytest.mark.parametrize("body", UNCOVERED)
@pytest.mark.parametrize("guard", ["b < 1", "k >= 0", "b == 0 and k >= 0"])
def test_a_fault_behind_a_condition_that_always_holds(guard, body):
    """The proofs refuse it; stages are made without them, and a call runs none of the loop's iterations."""
    function = helve.parse(GUARDED.format(guard=guard, body=UNCOVERED[body]))
    with pytest.raises(helve.Error) as caught:
        helve.compile(function, target="llvm")
    assert caught.value.code == "HV0210"
    for options in PIPELINES:
        for _, stage in changed_stages(lowering_stages(function, **options)):
            c = np.zeros(4, np.int32)
            helve.testing.interpret(stage, 0, np.zeros(4, np.int32), c)
            np.testing.assert_array_equal(c, [5] * 4)
            helve.testing.assert_round_trip(stage)


UNFINISHED = """@T.prim_func
def main(n: T.index, A: T.Tensor((4,), "int32"), C: T.Tensor((4,), "int32")):
    with T.Kernel(n, threads=32) as b:
        row = T.alloc_shared((4,), "int32")
        T.fill(row, 5)
        if b < n:
            T.copy_async(A, row)
        else:
            T.fill(row, 6)
        T.fill(row, 7)
"""


def test_a_copy_that_no_block_begins_need_not_end():
    check_calls(helve.parse(UNFINISHED), lambda: [0, np.ones(4, np.int32), np.zeros(4, np.int32)], [0] * 4)


def test_a_copy_that_each_block_leaves_unfinished_is_found_where_it_runs():
    """No constants say so, hence no call is refused for it beforehand."""
    kernel = helve.compile(helve.parse(UNFINISHED.replace("        T.fill(row, 7)\n", "")), "interp")
    with pytest.raises(helve.Error) as caught:
        kernel(2, np.ones(4, np.int32), np.zeros(4, np.int32))
    assert caught.value.code == "HV0311"


@pytest.mark.parametrize("statement", ["row[i] = square[(i - 5) % 4, i] + 3", "row[(i - 5) % 4] = 5",
                                       "T.fill(row[(i - 5) % 4:(i - 5) % 4 + 1], 5)"])
def test_an_iteration_of_an_unrolled_loop_that_skips_a_statement(statement):
    """Where i > 0, (i - 5) % 4 is i - 1: the copy of iteration 0 has -1 behind a condition that does not hold."""
    body = ["for i in T.unroll(4):", "    if i % 5 > i % 1:", f"        {statement}"]
    check_every_stage("\n".join(" " * 12 + line for line in body))
