"""Assertions that hold wherever a program means anything, lines that are never printed, and breakpoints.

All stand in front of stores, in all kinds of loops: a pass that loses, moves or repeats what they guard changes
results, and one that evaluates them elsewhere ends the call with a fault. Nothing stops at a breakpoint here
(`engines.py`), but what is in scope is gathered for it.
"""

import program as p
import scalars
import tree

LAZY = ("and", "or", "if_then_else")


def _loads(e):
    """The elements that a value reads however it is evaluated."""
    if isinstance(e, p.Load):
        yield e
    elif isinstance(e, p.Cast):
        yield from _loads(e.arg)
    elif isinstance(e, p.Apply):
        for each in e.args[:1] if e.op in LAZY else e.args:
            yield from _loads(each)


def _tests(store):
    """Conditions that hold where the store is made: its subscripts are inside, what it reads is on one of two sides."""
    for index, extent in zip(store.indices, store.buffer.shape):
        if not isinstance(index, (int, p.Const)):
            yield p.Apply("and", "bool", [p.Apply(">=", "index", [index, p.index(0)]),
                                          p.Apply("<", "index", [index, p.index(extent)])])
    for load in _loads(store.value):
        dtype = load.buffer.dtype
        if dtype == "bool":
            yield p.Apply("or", "bool", [load, p.Apply("not", "bool", [load])])
        elif scalars.is_float(dtype):
            sides = [p.Apply(op, dtype, [load, p.Const(dtype, 0.5)]) for op in ("<=", ">=")]
            yield p.Apply("or", "bool", sides)
        else:
            sides = [p.Apply(op, dtype, [load, p.Const(dtype, 3)]) for op in ("<=", ">")]
            yield p.Apply("or", "bool", sides)


def _guarded(tests, rng):
    """One of them, or some behind others: a fault then has values that only some of its runs have read."""
    test = tests[0]
    for other in tests[1:]:
        if rng.random() < 0.3:
            test = p.Apply(rng.choice(["and", "or"]), "bool", [tree.clone(test), other])
    return test


def _report(test, rng):
    if rng.random() < 0.7:
        return p.Assert(test)
    never = p.Apply("not", "bool", [test])
    return p.If(never, [p.Print(tree.clone(test))], [])


def assert_some(program, rng):
    """Puts reports in front of some stores of every fourth program, those of tiles and of lanes of threads aside."""
    if rng.randrange(4):
        return
    bodies = [(path, value) for path, value in tree.places(program) if isinstance(value, list)
              and any(isinstance(s, p.Store) for s in value)]
    inside = [value for _, loop in tree.places(program) if isinstance(loop, p.ForTiles)
              or isinstance(loop, p.For) and loop.kind == "threads" for _, value in tree.places(loop)]
    for _, body in bodies:
        if any(body is each for each in inside):
            continue
        for at in reversed([n for n, s in enumerate(body) if isinstance(s, p.Store)]):
            tests = list(_tests(body[at])) if rng.random() < 0.4 else []
            if tests:
                body.insert(at, _report(_guarded([tree.clone(rng.choice(tests)) for _ in range(3)], rng), rng))
            if rng.random() < 0.1:
                body.insert(at, p.Breakpoint())
