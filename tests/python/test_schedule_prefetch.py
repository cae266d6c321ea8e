"""`prefetch`: later reads are asked for, results stay, and code for the CPU has the instruction."""

import helve
import helve.testing
import numpy as np
import pytest
from helve import T
from test_schedule import body_of, refused, schedule

NEST = "for i in T.serial(10):\n    for k in T.serial(7):\n        A[i, k] = B[i, k] + B[i, 0] * 2"


def check(s):
    assert {step.effect for step in s.report()} == {"equal"}
    for target in ("llvm", "cuda"):
        helve.testing.check_stages(s.function, lambda: helve.testing.make_arguments(s.function), target=target)
    again = s.version(0)
    again.replay(helve.Trace.from_json(s.trace().json()))
    assert again.script() == s.script()
    wanted, got = (helve.testing.make_arguments(s.function) for _ in range(2))
    helve.testing.interpret(s.version(0).function, *wanted)
    helve.compile(s, verify=True)(*got)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


def test_each_element_stands_where_its_loop_is():
    s = schedule(NEST)
    assert s.prefetch("i", "B", 2) == s.loop("i")
    assert body_of(s) == """\
for i in T.serial(10):
    T.prefetch(B[i + 2, 0])
    for k in T.serial(7):
        T.prefetch(B[i + 2, k])
        A[i, k] = B[i, k] + B[i, 0] * 2"""
    check(s)
    assert "llvm.prefetch" in helve.compile(s).source("llvm")


@pytest.mark.parametrize("steps", [
    lambda s: s.parallel("k"), lambda s: s.split("i", 4), lambda s: s.split("k", 4),
    lambda s: s.unroll("k"), lambda s: s.bind("i"), lambda s: s.cut("i", 3), lambda s: s.cache_read("k", "B"),
])
@pytest.mark.parametrize("first", [True, False])
def test_other_steps_go_with_it(steps, first):
    s = schedule(NEST)
    if first:
        steps(s)
    loop = next((name for name in ("i", "io") if f"for {name} in" in s.script()), None)
    if loop is None:
        pytest.skip("the loop is a grid")
    s.prefetch(loop, "B", 1)
    if not first:
        steps(s)
    check(s)


def test_a_loop_of_lanes_cannot_be_one_with_a_prefetch():
    s = schedule(NEST)
    s.vectorize("k")
    s.prefetch("i", "B", 1)
    refused("HV1011", lambda: helve.compile(s))


def test_a_gpu_has_none_and_unscheduled_loops_are_decided_anew():
    s = schedule(NEST)
    s.prefetch("i", "B", 2)
    stages = dict(helve.testing.lowering_stages(s.function, target="cuda"))
    assert all("T.prefetch" not in helve._core.print(stage) for stage in list(stages.values())[1:])
    plain = helve.parse(s.script().replace(", scheduled=True", ""))
    assert "T.prefetch(B[i + 2" not in helve.compile(plain).source("lowered")


def test_what_it_does_not_apply_to():
    s = schedule(NEST.replace("B[i, k] +", "B[T.index(B[i, k] % 7), k] +"))
    refused("HV1001", lambda: s.prefetch("i", "A", 1))
    refused("HV1005", lambda: s.prefetch("i", "B", 0))
    refused("HV1006", lambda: s.prefetch("i", "B", 1))  # subscripts read memory
