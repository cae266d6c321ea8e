"""Steps that are refused because they would change results do change them, on random nests of loops.

Each refutation (HV1007) is forced: the interpreter, with all its checks, then has to see other results, a race, or an
access of what is not there. Another statement may hide a difference, which is counted and has a bound; so that it is
rare, elements are distinct primes of both signs, and memory of the program is an argument's in the end.
"""

import os
import random
from collections import Counter

import helve
import helve.testing
import numpy as np
import pytest
from helve import _core
from schedule_nests import Nest, some_step

PARTS, SEEDS = (16, 100) if os.environ.get("HELVE_TEST_LONG") else (3, 16)
TRIES = 40  # steps of a seed, taken or not
TAKEN = 5  # that a program has at a time
# An element that is not there, or holds nothing yet, or a race: of iterations, blocks or cores, or on private memory.
FAULTS = ("HV0210", "HV0704", "HV0705", "HV0706", "HV0707", "HV0312")
HIDDEN = 0.2  # of the refutations


def primes(count):
    """The first primes behind 1000."""
    sieve = np.ones(1 << 14, bool)
    for divisor in range(2, 1 << 7):
        sieve[divisor * divisor :: divisor] = False
    return np.flatnonzero(sieve[1000:])[:count] + 1000


def arguments(function, seed):
    """Distinct primes of both signs, in any order."""
    rng = np.random.default_rng(seed)
    values = rng.permutation(primes(64 * len(function.params)) * rng.choice([-1, 1], 64 * len(function.params)))
    return list(values.astype("int32").reshape(-1, 8, 8))


class Forced:
    """In the place of the core, which it is but for one thing: the last step that was asked for can be forced."""

    def __init__(self):
        self.asked = None

    def __getattr__(self, name):
        return getattr(_core, name)

    def with_step(self, version, primitive, values, unsafe, place):
        self.asked = version, primitive, values, place
        return _core.with_step(version, primitive, values, unsafe, place)

    def step(self):
        """(primitive, the program, what the step makes of it, legal or not)."""
        version, primitive, values, place = self.asked
        return primitive, version.function, _core.unchecked_step(version, primitive, values, place)


def differs(before, after, seed):
    """Does a run show that the two do not do the same?"""
    wanted, got = arguments(before, seed), arguments(before, seed)
    helve.testing.interpret(before, *wanted, check="all")
    try:
        helve.testing.interpret(after, *got, check="all")
    except helve.Error as fault:
        assert fault.code in FAULTS, fault
        return True
    return not all(np.array_equal(a, b) for a, b in zip(got, wanted))


@pytest.mark.parametrize("part", range(PARTS))
def test_forced_steps_change_results(part, monkeypatch):
    forced, count, hidden = Forced(), Counter(), []
    monkeypatch.setattr("helve.schedule.schedule._core", forced)
    for seed in range(part * SEEDS, (part + 1) * SEEDS):
        s, rng = Nest(seed, observed=True).schedule(), random.Random(seed + 1000)
        for _ in range(TRIES):
            if len(s) > TAKEN or len(s.script()) > 4000:
                s.undo()
            step = some_step(s, rng)
            try:
                step()
            except helve.Error as error:
                if error.code != "HV1007":
                    continue
                primitive, before, after = forced.step()
                count[primitive] += 1
                if not differs(before, after, seed):
                    hidden.append(f"{primitive}, seed {seed}: {error.message}\n{_core.print(before)}\n"
                                  f"becomes\n{_core.print(after)}")
    print(dict(count))
    print("\n".join(hidden))
    assert sum(count.values()) >= SEEDS / 2 and len(count) >= 4, count
    assert len(hidden) <= HIDDEN * sum(count.values()), f"{len(hidden)} of {sum(count.values())}"
