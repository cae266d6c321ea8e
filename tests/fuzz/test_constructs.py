"""Tests of the fuzzer's own view of long conditions, 64-bit scalars and private memory of a block.

Each construct is generated, has the meaning of the language in the evaluator, and a compile that gets it wrong is seen:
the text of another program stands for what a wrong compile makes of the right one.
"""

import functools
import random

import campaign
import engines
import program as p
import pytest
import scalars
import tree
import twins
import wide
from generate import generate
from meaning import Machine, Refused, meaning

CONSTRUCTS = [
    *(f"long condition {form} in {place}" for form in ("flat", "nested", "with loads")
      for place in ("if", "if_then_else", "while")),
    *("use of a scalar of 2**63 or more", "scalar of 64 bits as an index", "scalar of 64 bits in the host body"),
    *("a variable twice, for a dimension of one", "a loop that changes its extent"),
    *(f"update {op}" for op in p.UPDATES),
    *(f"update of {kind}" for kind in ("param", "shared", "tiles", "fragment", "local")),
    *(f"update in a loop {kind}" for kind in ("serial", "Parallel", "vectorized")),
    *("assertion", "print"),
    *("private memory that some iterations write", "private memory in nested loops", "private memory of lanes"),
]


def test_the_generator_makes_them():
    """Each in a program that is defined, within so many seeds."""
    missing = set(CONSTRUCTS)
    for seed in range(2000):
        program = generate(seed)
        found = missing & set(tree.constructs(program))
        try:
            missing -= found if found and meaning(program) else set()
        except scalars.Undefined:
            continue
        if not missing:
            return
    assert not missing


def check(program, text=None):
    return engines.check(engines.call_of(program, text or p.text(program), meaning(program)))


def compare(op, a, b):
    return p.Apply(op, "index", [a, p.index(b)])


def conditions_program(form):
    """C[i] is 1 where a condition of 40 operands holds: all but A[i] > 0, which i < 5 guards, are of i alone."""
    a, c, i = p.Buffer("A", [5], "int32", "param", rows=True), p.Buffer("C", [48], "int32", "param"), p.Var("i")
    operands = [compare("<", i, 5), *(compare("!=", i, 5 + n) for n in range(37)), compare("!=", i, 3),
                p.Apply(">", "int32", [p.Load(a, [i]), p.Const("int32", 0)])]
    one = p.Const("int32", 1)
    match form:
        case "flat":
            condition = p.Apply("and", "bool", operands)
        case "or":
            condition = p.Apply("not", "bool", [p.Apply("or", "bool", [p.Apply("not", "bool", [e]) for e in operands])])
        case "groups":
            never = compare("<", i, 0)
            groups = [p.Apply("or", "bool", [never, e]) for e in operands]
            halves = [p.Apply("and", "bool", half) for half in (groups[:20], groups[20:])]
            condition = p.Apply("and", "bool", halves)
    store = p.If(condition, [p.Store(c, [i], one)], [])
    return p.Program(1, [a, c], [p.Kernel([p.Var("b")], [1], [p.For("Parallel", [i], [0], [48], [store])])]), operands


@pytest.mark.parametrize("form", ["flat", "or", "groups"])
def test_a_long_condition(form):
    program, operands = conditions_program(form)
    memories = meaning(program)
    before = engines.first_data(program, program.params[1], memories["C"])
    data = memories["A"].data
    assert memories["C"].data == [1 if i < 5 and i != 3 and data[i] > 0 else before[i] for i in range(48)]
    assert check(program) is None
    assert tree.constructs(program)["long condition with loads in if"] == 1
    text = p.text(program)
    lost, guard = p.expr_text(operands[-2]), p.expr_text(operands[0])
    assert check(program, text.replace(lost, "(i != 40)")).layer == "interp"  # an operand is lost
    assert check(program, text.replace(guard, "(i < 48)")) is not None  # a guard is


def updates_program(op, kind="Parallel", at=None):
    """C[i], or C[at], combined with A[k] for each k, in a loop over i of some kind."""
    a, c, i, k = (p.Buffer("A", [5], "int32", "param", rows=True), p.Buffer("C", [3], "int32", "param"), p.Var("i"),
                  p.Var("k"))
    update = p.Store(c, [i if at is None else p.index(at)], p.Load(a, [k]), op)
    body = [p.For(kind, [i], [0], [3], [p.For("serial", [k], [0], [5], [update])])]
    return p.Program(1, [a, c], [p.Kernel([p.Var("b")], [1], body)])


@pytest.mark.parametrize("op", p.UPDATES)
def test_updates(op):
    program = updates_program(op)
    memories = meaning(program)
    before = engines.first_data(program, program.params[1], memories["C"])
    fold = {"add": lambda x, y: x + y, "mul": lambda x, y: x * y, "max": max, "min": min}[op]
    assert memories["C"].data == [functools.reduce(fold, memories["A"].data, x) for x in before]
    assert check(program) is None
    other = p.UPDATES[p.UPDATES.index(op) - 1]
    assert check(program, p.text(program).replace(f'"{op}"', f'"{other}"')).layer == "interp"
    assert tree.constructs(program)["update of param"] == 1


def test_updates_of_one_element_by_several_iterations_are_a_race():
    assert meaning(updates_program("add", "serial", 1))
    with pytest.raises(scalars.Undefined):
        meaning(updates_program("add", "Parallel", 1))


def test_operands_behind_the_one_that_decides_are_not_evaluated():
    program, operands = conditions_program("flat")
    program.body[0].body[0].body[0].condition.args = [*operands[-1:], *operands[:-1]]
    with pytest.raises(scalars.Undefined, match="out of bounds"):
        meaning(program)
    assert engines.check(engines.call_of(program, p.text(program), meaning(conditions_program("flat")[0]))) is not None


def halves_program(value, index=False):
    """C[0] = u // 2 for a parameter u, which is the subscript too where it is to be an index."""
    c, u = p.Buffer("C", [4], "uint64", "param"), p.Var("u", "uint64")
    half = p.Apply("//", "uint64", [u, p.Const("uint64", 2)])
    at = p.Apply("min", "index", [p.Cast("index", u, True), p.index(3)]) if index else p.index(0)
    store = p.Store(c, [at], half)
    return p.Program(1, [u, c], [p.Kernel([p.Var("b")], [1], [store])], scalars={"u": value})


@pytest.mark.parametrize("value", [0, 2**63 - 1, 2**63, 2**64 - 1])
def test_a_uint64_is_a_number(value):
    program = halves_program(value)
    assert meaning(program)["C"].data[0] == value // 2
    assert check(program) is None
    signed = p.text(program).replace("(u // T.uint64(2))", 'T.uint64(T.int64(u) // T.int64(2))')
    failure = check(program, signed)
    assert (failure is None) == (value < 2**63)


def test_a_uint64_that_is_no_index_is_refused(monkeypatch):
    program = halves_program(3, index=True)
    assert meaning(program)["C"].data[3] == 1
    other = halves_program(2**63 + 3, index=True)
    with pytest.raises(Refused, match="HV0615"):
        meaning(other)
    monkeypatch.setattr(campaign, "generate", lambda seed: program)
    seed = next(seed for seed in range(9) if campaign.refused(program, seed))
    assert campaign.refused(halves_program(3), seed) == []
    _, constructs, _, failure, _ = campaign.examine(seed)
    assert (constructs["refused calls"], failure) == (1, None)
    # A call that is taken in its place is seen, and one that is refused otherwise.
    wrong = [("HV0615", other, Machine(other).enter_call())]
    unused = p.text(program).replace("T.index(u)", "3")
    failure = engines.check(engines.call_of(program, unused, meaning(program), (), wrong))
    assert failure.layer == "interp refusal" and "is taken" in failure.detail
    wrong = [("HV0616", *wrong[0][1:])]
    failure = engines.check(engines.call_of(program, p.text(program), meaning(program), (), wrong))
    assert failure.layer == "interp refusal" and "HV0615 in place of HV0616" in failure.detail


@pytest.mark.parametrize(("condition", "known"), [
    (p.Apply("<", "index", [p.index(5), p.index(3)]), True),
    (p.Apply("<", "index", [p.Var("b"), p.index(3)]), False),
    (p.Apply("and", "bool", [p.Apply("<", "index", [x, p.index(3)]) for x in (p.Var("b"), p.index(5))]), True),
])  # fmt: skip
def test_code_that_is_left_out_when_a_function_is_read_makes_no_index(condition, known):
    program = halves_program(2**63, index=True)
    kernel = program.body[0]
    kernel.body = [p.If(condition, kernel.body, [])]
    assert wide.wide_indices(program) == {"u"}
    assert wide.wide_indices(program, surely=True) == (set() if known else {"u"})
    with pytest.raises(scalars.Undefined) as reason:
        meaning(program)
    assert isinstance(reason.value, Refused) is not known
    at = kernel.body[0].then[0].indices
    kernel.body = kernel.body[0].then
    at[0] = p.Apply("if_then_else", "index", [p.Apply("or", "bool", [condition, condition]), at[0], p.index(1)])
    assert wide.wide_indices(program, surely=True) == (set() if known else {"u"})


def test_a_computed_uint64_that_is_no_index_is_undefined():
    program = halves_program(2**63, index=True)
    index = program.body[0].body[0].indices[0].args[0]
    index.arg = p.Apply("+", "uint64", [index.arg, p.Const("uint64", 1)])
    assert wide.wide_indices(program) == set()
    with pytest.raises(scalars.Undefined, match="no index"):
        meaning(program)


def private_program(kind="Parallel", after=None):
    """Iterations (i, j) that find 7 in private memory, and of which those with j == i leave i there first."""
    c, own = p.Buffer("C", [4, 4], "int32", "param"), p.Buffer("L", [1], "int32", "local")
    i, j, zero = p.Var("i"), p.Var("j"), [p.index(0)]
    some = p.If(p.Apply("==", "index", [i, j]), [p.Store(own, zero, p.Cast("int32", i))], [])
    lanes = p.For(kind, [j], [0], [4], [some, p.Store(c, [i, j], p.Load(own, zero))])
    body = [lanes, p.Store(c, [i, p.index(after)], p.Load(own, zero))] if after is not None else [lanes]
    first = [p.Alloc(own), p.Store(own, zero, p.Const("int32", 7))]
    nest = p.For("Parallel", [i], [0], [4], body)
    return p.Program(1, [c], [p.Kernel([p.Var("b")], [1], [*first, nest])])


@pytest.mark.parametrize("kind", ["Parallel", "vectorized"])
def test_private_memory_that_some_iterations_write(kind):
    program = private_program(kind)
    assert meaning(program)["C"].data == [i if i == j else 7 for i in range(4) for j in range(4)]
    assert check(program) is None
    count = tree.constructs(program)
    assert count["private memory that some iterations write"] == 2 and count["private memory in nested loops"] == 1
    kept = p.text(program).replace(f"T.{kind}(4)", "T.serial(4)")  # iterations find what those before left
    assert check(program, kept).layer == "interp"


def test_behind_the_lanes_stands_what_the_only_one_left():
    program = private_program("vectorized", after=3)
    assert meaning(program)["C"].data == [i if j in (i, 3) else 7 for i in range(4) for j in range(4)]
    assert check(program) is None
    lost = p.text(program).replace("C[i, 3] = L[0]", "C[i, 3] = T.int32(7)")
    assert check(program, lost).layer == "interp"


def lanes_program():
    """Threads whose lanes find the number of the thread, and of which one leaves -1 there first."""
    c, own = p.Buffer("C", [32, 4], "int32", "param"), p.Buffer("L", [1], "int32", "local")
    t, j, zero = p.Var("t"), p.Var("j"), [p.index(0)]
    some = p.If(compare("==", j, 1), [p.Store(own, zero, p.Const("int32", -1))], [])
    lanes = p.For("vectorized", [j], [0], [4], [some, p.Store(c, [t, j], p.Load(own, zero))])
    body = [p.Alloc(own), p.Store(own, zero, p.Cast("int32", t)), lanes]
    return p.Program(1, [c], [p.Kernel([p.Var("b")], [1], [p.For("threads", [t], [0], [32], body)], 32)])


def test_private_memory_of_lanes():
    program = lanes_program()
    assert meaning(program)["C"].data == [-1 if j == 1 else t for t in range(32) for j in range(4)]
    assert check(program) is None
    assert tree.constructs(program)["private memory of lanes"] == 1
    kept = p.text(program).replace("T.vectorized(4)", "T.serial(4)")
    assert check(program, kept).layer == "interp"


def test_long_conditions_shrink():
    import shrink

    program, operands = conditions_program("flat")
    guard, load = p.expr_text(operands[0]), p.expr_text(operands[-1])
    small = shrink.shrink(program, lambda candidate, memories: guard in p.text(candidate) and load in p.text(candidate),
                          20)
    assert len(small.body[0].body[0].body[0].condition.args) == 2


def test_a_loop_over_private_memory_is_not_split():
    """Iterations of the second loop would find what the only one that stored in the first left there."""
    program = private_program()
    for seed in range(20):
        assert twins.split(program, random.Random(seed)) is None
    some = program.body[0].body[2].body[0].body[0]
    some.then = []
    assert twins.split(program, random.Random(1)) is not None


def test_a_loop_that_reads_another_element_than_it_stores_is_not_split():
    """The first iteration stores to an element of its own, which all of them read."""
    c, own = p.Buffer("C", [4], "int32", "param"), p.Buffer("L", [4], "int32", "local")
    i = p.Var("i")
    some = p.If(compare("==", i, 0), [p.Store(own, [i], p.Const("int32", 5))], [])
    loop = p.For("vectorized", [i], [0], [4], [some, p.Store(c, [i], p.Load(own, [p.index(0)]))])
    program = p.Program(1, [c], [p.Kernel([p.Var("b")], [1], [loop])])
    for seed in range(20):
        assert twins.split(program, random.Random(seed)) is None
    loop.body[1].value = p.Load(own, [i])
    assert twins.split(program, random.Random(1)) is not None
