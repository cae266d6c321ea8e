"""Random programs of index notation against their definition: on targets, and in every stage of each pipeline."""

import helve
import helve.testing
import notation
import numpy as np
import pytest

STAGED = range(0, 120, 6)  # seeds whose stages are checked too


def case_of(seed):
    """(function, arguments before, arguments after) of the first program from the seed on that stays small."""
    for attempt in range(100):
        program = notation.generate(seed + 1000 * attempt)
        before = notation.arrays_of(program, seed)
        meaning = notation.Meaning({name: x.astype(object) for name, x in before.items()})
        meaning.run(program)
        if meaning.largest >= notation.LIMIT:
            continue
        order = list(program.shapes)
        tensors = notation.built(program)
        function = helve.function(*(tensors[name] for name in order))
        initial = [before[name].astype(program.dtype) for name in order]
        wanted = [meaning.arrays[name].astype(program.dtype) for name in order]
        return function, initial, wanted
    raise AssertionError("every program of this seed grows")


@pytest.mark.parametrize("seed", range(120))
def test_programs(seed):
    function, initial, wanted = case_of(seed)
    for target in ("interp", "llvm"):
        args = [x.copy() for x in initial]
        helve.compile(function, target)(*args)
        for name, x, y in zip(function.function.params, args, wanted):
            np.testing.assert_array_equal(x, y, err_msg=f"{name} of\n{function.script()}")
    if seed in STAGED:
        helve.testing.check_stages(function, lambda: [x.copy() for x in initial])


@pytest.mark.parametrize("seed", range(120))
def test_programs_in_a_default_order(seed, monkeypatch):
    monkeypatch.setattr("helve.schedule.auto._SMALL", 0)  # programs of this size stay as they are otherwise
    function, initial, wanted = case_of(seed)
    s = helve.Schedule(function.nest)
    s.auto()
    assert not s.proofs()
    for target in ("interp", "llvm"):
        args = [x.copy() for x in initial]
        helve.compile(s, target)(*args)
        for name, x, y in zip(function.function.params, args, wanted):
            np.testing.assert_array_equal(x, y, err_msg=f"{name} of\n{s.trace()}\n{s.script()}")


def test_the_generator_makes_all_of_the_grammar():
    seen = set()

    def visit(node):
        seen.add(type(node).__name__)
        seen.add(getattr(node, "kind", getattr(node, "name", "")))
        for part in notation.parts(node):
            visit(part)

    for seed in range(200):
        for statement in notation.generate(seed).statements:
            seen.add(statement.update)
            visit(statement.value)
    assert {"Sum", "Product", "Call", "Reduce", "Number", "Access", "abs", "max", "min", "prod", "+=", "*="} <= seen


def test_a_wrong_sum_is_seen():
    """The definition tells a sum over its own term from one over the whole right side."""
    term = notation.Product([notation.Access("A", ("i", "k")), notation.Access("x", ("k",))])
    value = notation.Sum([(1, notation.Access("b", ("i",))), (1, term)])
    program = notation.Program(
        "int32",
        {"A": ("i", "k"), "x": ("k",), "b": ("i",), "y": ("i",)},
        ["A", "x", "b"],
        [notation.Statement("y", ("i",), "", value)],
    )
    arrays = notation.arrays_of(program, 1)
    meaning = notation.Meaning(dict(arrays))
    meaning.run(program)
    right = arrays["A"] @ arrays["x"] + arrays["b"]
    assert (meaning.arrays["y"] == right).all()
    assert (right != arrays["A"] @ arrays["x"] + 4 * arrays["b"]).any()
