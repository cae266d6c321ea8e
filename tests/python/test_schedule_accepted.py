"""Random primitives on random nests of loops: what is accepted keeps results, what is refused has a code.

Accepted programs are judged by the interpreter and by machine code, bit for bit unless a step says that it
re-associates.
"""

import random

import helve
import helve.testing
import numpy as np
import pytest
from helve import _core
from schedule_nests import NOT_ON_DEVICE, REFUSALS, Nest, for_device, places, some_step, tensor


def run(function, **options):
    args = helve.testing.make_arguments(function)
    helve.testing.interpret(function, *args, **options)
    return args


def checks_of(function):
    """All checks of the interpreter where the program passes them; then what steps make of it must pass them too."""
    try:
        run(function, check="all")
    except helve.Error:
        return {}
    return {"check": "all"}


def variables(cursor):
    return [variable.name for variable in cursor.stmt.vars]


@pytest.mark.parametrize("target", ["llvm", "cuda"])
@pytest.mark.parametrize("seed", range(60))
def test_a_default_order_keeps_results(seed, target, monkeypatch):
    monkeypatch.setattr("helve.schedule.auto._SMALL", 0)
    s = Nest(seed).schedule()
    wanted = run(s)
    s.auto(target)
    for a, b in zip(run(s), wanted):
        np.testing.assert_array_equal(a, b, err_msg=f"{s.trace()}\n{s.script()}")
    assert not s.proofs()


@pytest.mark.parametrize("seed", range(60))
def test_accepted_steps_keep_results(seed):
    s = Nest(seed).schedule()
    rng = random.Random(seed + 1000)
    wanted, checks = run(s), checks_of(s)
    marked = [each for each in places(s) if tensor(each)]
    loops = [each for each in places(s) if isinstance(each.stmt, _core.For)]
    for _ in range(12):
        if len(s.script()) > 6000:
            break
        steps, step = len(s), some_step(s, rng)
        try:
            step()
        except helve.Error as error:
            assert error.code in REFUSALS, f"{error}\n{s.script()}"
            assert len(s) == steps
            continue
        got = run(s, **checks)
        for a, b in zip(got, wanted):
            np.testing.assert_array_equal(a, b, err_msg=f"{s.version(0).script()}\n{s.trace()}\n{s.script()}")
    for cursor in marked:  # a marked statement still stores to the same tensor, or is gone
        try:
            assert tensor(s.now(cursor))[1] == tensor(cursor)[1], f"{s.version(0).script()}\n{s.trace()}\n{s.script()}"
        except helve.Error as error:
            assert error.code == "HV1004"
    for cursor in loops:  # a cursor to a loop is one to a loop over the same variables, or is gone
        try:
            assert variables(s.now(cursor)) == variables(cursor), f"{s.version(0).script()}\n{s.trace()}\n{s.script()}"
        except helve.Error as error:
            assert error.code == "HV1004"
    again = s.version(0)
    again.replay(helve.Trace.from_json(s.trace().json()))
    assert again.script() == s.script()
    if seed % 4 == 0:
        args = helve.testing.make_arguments(s)
        try:
            kernel = helve.compile(s)
        except helve.Error as error:
            assert error.code == "HV1011" and "vectorized" in s.script(), f"{error}\n{s.script()}"
            return
        kernel(*args)
        for a, b in zip(args, wanted):
            np.testing.assert_array_equal(a, b, err_msg=f"{s.trace()}\n{s.script()}")


@pytest.mark.parametrize("part", range(4))
def test_steps_keep_what_blocks_are_dealt(part):
    taken = 0
    for seed in range(part * 25, part * 25 + 25):
        s, rng = Nest(seed).dealt(), random.Random(seed)
        wanted, checks = run(s), checks_of(s)
        for _ in range(25 if checks else 0):  # two loops may race

            try:
                some_step(s, rng)()
            except helve.Error as error:
                assert error.code in REFUSALS, f"{error}\n{s.script()}"
                continue
            for a, b in zip(run(s, **checks), wanted):
                np.testing.assert_array_equal(a, b, err_msg=f"{s.version(0).script()}\n{s.trace()}\n{s.script()}")
            taken += 1
            if len(s) > 4:
                break
    assert taken > 25


@pytest.mark.parametrize("seed", range(12))
def test_what_threads_and_blocks_share_out_keeps_results(seed):
    """At every stage towards a GPU; tests/gpu runs such programs there."""
    s = for_device(seed)
    wanted = run(s.version(0))
    for a, b in zip(run(s, **checks_of(s.version(0))), wanted):
        np.testing.assert_array_equal(a, b, err_msg=f"{s.trace()}\n{s.script()}")
    try:
        helve.testing.check_stages(s.function, lambda: helve.testing.make_arguments(s), target="cuda", arch="sm_80")
    except helve.Error as error:
        assert error.code in NOT_ON_DEVICE, f"{error}\n{s.script()}"
