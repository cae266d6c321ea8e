"""What is proved of random programs of extents, guards, minima and quotients holds for each value.

Most questions of such programs go to isl, first in a coarse form, and a wrong translation proves what is false.
"""

import itertools
import random

import helve
import pytest

EXTENTS = range(12)


class Grammar:
    """Index expressions and conditions of `i`, `k` and the extents N and M, as Python and helve both read them."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def value(self, depth, names):
        rng = self.rng
        if depth == 0 or rng.random() < 0.2:
            return rng.choice([*names, *names, str(rng.randint(-3, 9))])
        a, b = self.value(depth - 1, names), self.value(depth - 1, names)
        return rng.choice([f"({a} + {b})", f"({a} - {b})", f"{rng.randint(-3, 4)} * ({a})", f"T.min({a}, {b})",
                           f"T.max({a}, {b})", f"({a}) // {rng.choice([2, 3, 4, -3])}", f"({a}) % {rng.randint(2, 5)}"])

    def condition(self, depth, names):
        rng = self.rng
        if depth == 0 or rng.random() < 0.4:
            order = rng.choice(["<", "<=", ">", ">=", "==", "!="])
            return f"{self.value(2, names)} {order} {self.value(2, names)}"
        a, b = self.condition(depth - 1, names), self.condition(depth - 1, names)
        return rng.choice([f"({a}) and ({b})", f"({a}) or ({b})", f"not ({a})"])


class Same:
    min, max = staticmethod(min), staticmethod(max)


def points(extents, guard, values):
    """(i, k, N, M, values there) wherever the guard holds."""
    compiled = compile(guard, "guard", "eval"), compile(f"({', '.join(values)},)", "values", "eval")
    for n, m in itertools.product(EXTENTS, EXTENTS[::3]):
        sizes = [eval(extent, {"N": n, "M": m}) for extent in extents]
        for i, k in itertools.product(range(sizes[0]), range(sizes[1])):
            names = {"T": Same, "i": i, "k": k, "N": n, "M": m}
            if eval(compiled[0], names):
                yield i, k, n, m, eval(compiled[1], names)


def proofs_of(body, extents, loop):
    text = f"""
N = T.dyn("N")
M = T.dyn("M")

@T.prim_func
def main(A: T.Tensor((N,), "float32"), B: T.Tensor((M,), "float32")):
    with T.Kernel(1) as b:
        for i in {loop}({extents[0]}):
            for k in T.serial({extents[1]}):
{body}
"""
    try:
        return helve.compile(helve.parse(text), target="interp").proofs(), text
    except helve.Error as refused:
        assert refused.code in ("HV0210", "HV0306", "HV0203"), refused  # which is for test_proofs
        return [], text


@pytest.mark.parametrize("part", range(4))
def test_bounds(part):
    proved = 0
    for seed in range(part * 60, part * 60 + 60):
        g = Grammar(seed)
        extents = [g.rng.choice(["N", "M", "N + 1", "5", "9"]) for _ in range(2)]
        guard, at = g.condition(2, ["i", "k", "N", "M"]), g.value(2, ["i", "k", "N"])
        limit = f"0 <= {at} and {at} < N" if g.rng.random() < 0.3 else f"{at} < N"
        guard = f"({guard}) and ({limit})" if g.rng.random() < 0.7 else guard
        if g.rng.random() < 0.4:
            side = g.rng.choice(["T.max({}, {})", "T.min({}, {})", "T.max({}, 3) + 0 * {}", "T.min({}, {}) - i"])
            extreme = side.format(*(g.value(1, ["i", "k", "N"]) for _ in "ab"))
            guard = f"({guard}) and {g.value(1, ['i', 'k'])} == {extreme}"
        found, text = proofs_of(f"                if {guard}:\n                    A[{at}] = 1.0", extents, "T.serial")
        if any(p.kind == "bounds" for p in found) and all(p.verdict == "proved" for p in found if p.kind == "bounds"):
            proved += 1
            for i, k, n, m, (index,) in points(extents, guard, [at]):
                assert 0 <= index < n, f"{text}\ni={i} k={k} N={n} M={m}"
    assert proved > 3


@pytest.mark.parametrize("part", range(4))
def test_races(part):
    proved = 0
    for seed in range(1000 + part * 60, 1060 + part * 60):
        g = Grammar(seed)
        extents = [g.rng.choice(["N", "M", "5"]), g.rng.choice(["1", "3", "M"])]
        guard = g.condition(1, ["i", "k", "N", "M"])
        step = g.rng.choice([1, 2, 3, 3])
        at = g.rng.choice([f"i * {step} + k", f"i + {step} * k", g.value(2, ["i", "k", "N"]), f"i // {step}", "N - i"])
        found, text = proofs_of(f"                if {guard}:\n                    if 0 <= {at} and {at} < N:\n"
                                f"                        A[{at}] = 1.0", extents, "T.Parallel")
        if any(p.verdict == "proved" for p in found if p.kind == "race" and p.question.startswith("iterations i ")):
            proved += 1
            owners = {}
            for i, k, n, m, (index,) in points(extents, f"({guard}) and 0 <= {at} and {at} < N", [at]):
                assert owners.setdefault((n, m, index), i) == i, f"{text}\nk={k} N={n} M={m} element {index}"
    assert proved > 3
