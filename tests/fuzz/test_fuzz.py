"""Random programs, and tests of the fuzzer itself: it must see planted faults.

The usual run examines the same seeds everywhere, for 40 seconds at most, so that no machine judges a commit by chance.
With HELVE_TEST_LONG the seeds go on for 600 seconds; HELVE_FUZZ_SECONDS sets another time, HELVE_FUZZ_SEED the first
seed (1). `python tests/fuzz/run.py` looks further.
"""

import dataclasses
import os
import random

import arguments
import campaign
import corpus
import engines
import helve
import helve.testing
import layouts
import mutants
import program as p
import pytest
import scalars
import tree
import twins
from generate import generate
from helve import _core
from meaning import meaning

LONG = os.environ.get("HELVE_FUZZ_SECONDS") or ("600" if os.environ.get("HELVE_TEST_LONG") else None)
SECONDS, COUNT = (float(LONG), None) if LONG else (40.0, 200)
SEED = int(os.environ.get("HELVE_FUZZ_SEED", "1"))
# What every run of some length must have met.
NEEDED = [
    *(f"loop {kind}" for kind in ("serial", "unroll", "vectorized", "Parallel", "Pipelined", "Persistent")),
    *("loop of extent 0", "loop of extent 1", "loop of variable extent", "foreach_tiles", "if", "if else", "while",
      "bind"),
    *("copy", "copy pad", "copy_async", "fill", "clear", "gemm", "gemm dispatch",
      "copy dispatch", "copy_async dispatch", "reduce_sum", "reduce_max", "cumsum",
      "atomic_add", "atomic store", "dynamic extent", "strides", "scalar parameter"),
    *("comm.all_gather", "comm.all_reduce", "comm.broadcast", "comm.permute", "comm.put", "mesh_tensor_copy"),
    *("comm.gather", "comm.scatter", "comm.reduce", "comm.permute source", "root that is no constant"),
    *(f"dtype {name}" for name in engines.NUMPY),
    *("buffer shared", "buffer tiles", "buffer fragment", "buffer local", "buffer global", "persistent_chunk 3"),
    *("may_alias", "assume", "overlapping arguments", "If by memory", "For by memory", "While by memory"),
    *("pick", "scratch in a parallel loop", "allocation in a loop", "dtype int4",
      "breakpoint", "name of what stood before an update", "load behind a condition",
      "rows of distinct numbers", "sorted parameter", "bind index", "strides of dynamic extents",
      "stride 0", "negative stride", "strides not of rows", "unaligned base", "large extent",
      "layout shared", "layout fragment", "threads", "loop step", "loop range", "scheduled loop", "index <<",
      "spelled as Python",
      "other calls"),
    *("long condition in if", "long condition in while", "long condition in if_then_else",
      "use of a scalar of 2**63 or more", "scalar of 64 bits as an index", "refused calls",
      "private memory that some iterations write", "private memory in nested loops", "private memory of lanes"),
]


def offsets_of(statement):
    """The offsets of shared buffers below a statement."""
    found = [] if not isinstance(statement, _core.Alloc) else [statement.buffer.offset]
    for name in statement.fields:
        value = getattr(statement, name)
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, _core.Stmt):
                found += offsets_of(part)
    return [offset for offset in found if offset is not None]


def test_buffers_of_random_programs_share_bytes():
    """Else no campaign would say anything of them."""
    for seed in range(100, 200):
        if seed % 4 == 3:  # for a mesh
            continue
        stages = helve.testing.lowering_stages(helve.parse(p.text(generate(seed))), target="cuda", arch="sm_80")
        offsets = offsets_of(stages[-1][1].body)
        if len(set(offsets)) < len(offsets):
            return
    pytest.fail("no two buffers of a program share bytes")


@pytest.mark.timeout(SECONDS + 280)
def test_fresh_programs_agree(tmp_path):
    report = campaign.run(SEED, SECONDS, COUNT, jobs=os.cpu_count())
    print(report.text())
    messages = []
    for seed, failure, _ in report.failures[:3]:
        path = campaign.keep(seed, failure, tmp_path, seconds=30)
        messages.append(f"seed {seed}: {failure.layer}: {failure.detail}\n{path.read_text()}")
    assert not messages, f"{len(report.failures)} of {report.programs} programs failed\n" + "\n".join(messages)
    assert sum(report.undefined.values()) < report.programs
    if report.programs > 300:
        assert [name for name in NEEDED if not report.coverage[name]] == []


def test_a_seed_is_a_program():
    assert p.text(generate(5)) == p.text(generate(5))
    assert p.text(generate(5)) != p.text(generate(9))


def sum_program(combine="+"):
    """C[i] = A[i] + B[i] over three blocks of two, in a guarded tail of five elements."""
    a, b, c = (p.Buffer(name, [5], "float32", "param") for name in "ABC")
    block, i = p.Var("b"), p.Var("i")
    at = p.Apply("+", "index", [p.Apply("*", "index", [block, p.index(2)]), i])
    value = p.Apply(combine, "float32", [p.Load(a, [at]), p.Load(b, [at])])
    guard = p.If(p.Apply("<", "index", [at, p.index(5)]), [p.Store(c, [at], value)], [])
    loop = p.For("Parallel", [i], [0], [2], [guard])
    return p.Program(1, [a, b, c], [p.Kernel([block], [3], [loop])])


def call_of(program, text=None):
    return engines.call_of(program, text or p.text(program), meaning(program))


def test_a_right_program_passes():
    assert engines.check(call_of(sum_program())) is None


def test_a_wrong_result_is_seen():
    wrong = p.text(sum_program("-"))
    failure = engines.check(call_of(sum_program(), wrong))
    assert failure.layer == "interp"
    assert failure.detail.startswith("C[0] is ")


def test_a_refused_program_is_seen():
    assert engines.check(call_of(sum_program(),
                                 p.text(sum_program()).replace("float32", "float31"))).layer.startswith("refused HV")


@pytest.mark.parametrize(
    "change",
    [
        lambda loop: loop.extents.__setitem__(0, 3),  # two blocks meet
        lambda loop: loop.body.__setitem__(0, loop.body[0].then[0]),  # no guard
    ],
)
def test_undefined_programs_are_refused_by_the_evaluator(change):
    program = sum_program()
    change(program.body[0].body[0])
    with pytest.raises(scalars.Undefined):
        meaning(program)


def test_a_read_of_nothing_is_undefined():
    program = sum_program()
    kernel = program.body[0]
    local = p.Buffer("L", [1], "float32", "local")
    kernel.body[:0] = [p.Alloc(local), p.Op("copy", [p.Region(local), p.Region(program.params[2], [p.Span(0, 1)])])]
    with pytest.raises(scalars.Undefined, match="nothing"):
        meaning(program)


def racing_program(extent, reached, count):
    """Iterations of a loop of dynamic extent, all but `reached` of them guarded away, that store to one element."""
    a, n = p.Buffer("A", [p.Var("M")], "float32", "param"), p.Var("M")
    i = p.Var("i")
    stores = [p.Store(a, [p.index(0)], p.Const("float32", float(k + 1))) for k in range(count)]
    guarded = [p.If(p.Apply("<", "index", [i, n]), [store], []) for store in stores]
    loop = p.For("Parallel", [i], [0], [n if extent is None else extent], stores if extent is None else guarded)
    return p.Program(1, [a], [p.Kernel([p.Var("b")], [1], [loop])], dims={"M": reached})


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("extent", [None, 8])
def test_a_race_counts_only_where_two_iterations_come_to_it(extent, count, monkeypatch):
    """One is told that any two iterations race; whether this call runs two is counted, guards included."""
    program = racing_program(extent, 1, count)
    refused = engines.check(call_of(program))
    assert "error[HV0306]" in refused.detail
    monkeypatch.setattr(campaign, "generate", lambda seed: program)
    assert campaign.examine(1)[:1] == ("undefined",)
    at = p.statements(program)
    loop, store = at[5], at[6 if extent is None else 7]
    assert isinstance(loop, p.For) and isinstance(store, p.Store)
    assert not campaign.two_iterations_meet(program, loop, store, store)
    # The same refusal of a program whose iterations keep apart is a failure.
    apart = racing_program(extent, 5, count)
    for s in p.statements(apart).values():
        if isinstance(s, p.Store):
            s.indices[0] = p.statements(apart)[5].vars[0]
    store = p.statements(apart)[6 if extent is None else 7]
    assert campaign.two_iterations_meet(apart, p.statements(apart)[5], store, store)
    monkeypatch.setattr(campaign, "generate", lambda seed: apart)
    monkeypatch.setattr(engines, "examine", lambda call, effort: (refused, None))
    assert campaign.examine(1)[3] is refused


def test_a_race_of_blocks_that_a_stage_shows_is_one_of_the_function():
    """Blocks are the same on every stage, so there too it counts only where this call runs two of them."""
    a, b = p.Buffer("A", [p.Var("M")], "float32", "param"), p.Var("b")
    stores = [p.Store(a, [p.index(0)], p.Const("float32", value)) for value in (1.0, 2.0)]
    program = p.Program(1, [a], [p.Kernel([b], [p.Var("M")], stores)], dims={"M": 1})
    with pytest.raises(helve.Error) as refused:
        helve.compile(helve.parse(p.text(program)), target="interp")
    failure = engines.Failure("sm_80 after insert_barriers (13)", str(refused.value))
    assert "at most" in campaign.excuse(program, failure)
    for store in stores:
        store.indices[0] = b
    assert campaign.excuse(dataclasses.replace(program, dims={"M": 2}), failure) is None


@pytest.mark.parametrize("dtype", ["uint64", "int32"])
def test_a_race_that_the_function_leaves_to_a_parameter_is_none_of_a_stage(dtype):
    a, u = p.Buffer("A", [16], "int32", "param"), p.Var("u", dtype)
    b, i = p.Var("b"), p.Var("i")
    value = p.Apply("if_then_else", "int32", [
        p.Apply("<", "index", [p.index(0), i]), p.Load(a, [p.index(0)]), p.Const("int32", 1)])
    at = p.Apply("+", "index", [i, p.Cast("index", u)])
    loop = p.For("Parallel", [i], [0], [8], [p.Store(a, [at], value)])
    program = p.Program(1, [a, u], [p.Kernel([b], [1], [loop])], scalars={"u": 1})
    told = "error[HV0306]: iterations of this parallel loop read and write the same element of 'A'\n" \
           "note: iteration tx=0 writes A[0], iteration tx=1 reads it, when u=0, b=0\n"
    failure = engines.Failure("sm_80 after insert_barriers (14)", told)
    assert engines.check(call_of(program)) is None
    assert "leaves open" in campaign.excuse(program, failure)
    assert campaign.excuse(program, dataclasses.replace(failure, detail=told.replace("u=0, ", ""))) is None
    at.args[1] = p.index(1)  # what the function proves, a stage proves
    assert campaign.excuse(program, failure) is None


def scratch_program(reads_before, extent=3):
    """Iterations that compute in one element of private memory, and a store of what it holds after the loop."""
    out = p.Buffer("A", [extent], "int32", "param")
    own = p.Buffer("L", [1], "int32", "local")
    zero, i = [p.index(0)], p.Var("i")
    write, read = p.Store(own, zero, p.Cast("int32", i)), p.Store(out, [i], p.Load(own, zero))
    loop = p.For("Parallel", [i], [0], [extent], [read, write] if reads_before else [write, read])
    first = p.Store(own, zero, p.Const("int32", 7))
    return p.Program(1, [out], [p.Kernel([p.Var("b")], [1], [p.Alloc(own), first, loop])])


def test_private_memory_is_each_iterations_own():
    assert meaning(scratch_program(False))["A"].data == [0, 1, 2]
    program = scratch_program(True)
    assert meaning(program)["A"].data == [7, 7, 7]
    # Which is refused all the same, since one element that all iterations read first is meant as a sum.
    refused = engines.check(call_of(program))
    assert "error[HV0306]" in refused.detail
    assert "a sum" in campaign.excuse(program, refused)
    # The same refusal where one iteration finds nothing of another's is a failure.
    loop = program.body[0].body[2]
    some = p.Apply("<", "index", [loop.vars[0], p.index(2)])
    loop.body[0].value = p.Apply("if_then_else", "int32", [some, loop.body[0].value, p.Const("int32", 0)])
    assert campaign.excuse(program, refused) is None


@pytest.mark.parametrize(("extent", "known"), [(1, True), (2, False)])
def test_private_memory_after_a_loop_is_known_if_one_iteration_wrote_it(extent, known):
    program = scratch_program(False, extent)
    own = program.body[0].body[0].buffer
    program.body[0].body.append(p.Store(program.params[0], [p.index(0)], p.Load(own, [p.index(0)])))
    if known:
        assert meaning(program)["A"].data == [0]
    else:
        with pytest.raises(scalars.Undefined, match="nothing"):
            meaning(program)


def pick_program(hits):
    """One of 40 iterations stores where its element is a number that the data has `hits` times."""
    a, out = p.Buffer("A", [40], "int32", "param", rows=True), p.Buffer("B", [1], "int32", "param")
    j = p.Var("j")
    found = p.Load(a, [j])
    if hits == 2:
        found = p.Apply("//", "int32", [found, p.Const("int32", 2)])
    guard = p.Apply("==", "int32", [found, p.Const("int32", 7)])
    store = p.If(guard, [p.Store(out, [p.index(0)], p.Cast("int32", j))], [])
    return p.Program(1, [a, out], [p.Kernel([p.Var("b")], [1], [p.For("Parallel", [j], [0], [40], [store])])])


def test_one_iteration_may_pick_and_two_may_not():
    program = pick_program(1)
    memories = meaning(program)
    assert memories["A"].data[memories["B"].data[0]] == 7
    assert engines.check(call_of(program)) is None
    assert tree.constructs(program)["pick"] == 1
    with pytest.raises(scalars.Undefined, match="meet"):
        meaning(pick_program(2))


@pytest.mark.parametrize("fetches", [False, True])
def test_what_an_update_finds_is_known_if_no_other_iteration_updates(fetches):
    out, i, old = p.Buffer("A", [1], "int32", "param"), p.Var("i"), p.Var("old", "int32")
    store = p.Store(out, [p.index(0)], p.Const("int32", 2), "atomic_add", old if fetches else None)
    program = p.Program(1, [out], [p.Kernel([i], [2], [store])])
    if fetches:
        with pytest.raises(scalars.Undefined, match="order of iterations"):
            meaning(program)
        program.body[0].extents[0] = 1
    meaning(program)


def strided_program(strides, begin=0):
    a = p.Buffer("A", [3, 4], "int16", "param", strides=strides, begin=begin)
    c = p.Buffer("C", [3, 4], "int16", "param")
    i, j = p.Var("i"), p.Var("j")
    loop = p.For("Parallel", [i, j], [0, 0], [3, 4], [p.Store(c, [i, j], p.Load(a, [i, j]))])
    return p.Program(1, [a, c], [p.Kernel([p.Var("b")], [1], [loop])])


@pytest.mark.parametrize("strides", [None, [4, 1], [6, 1], [1, 3], [0, 1], [1, 0]])
def test_strides_and_addresses(strides):
    for begin in (0, 1, 3):
        program = strided_program(strides, begin)
        call = call_of(program)
        given = arguments.Arguments(call.scalars, call.tensors).fresh()
        a = given.values[0]
        assert a.ctypes.data % 64 == 2 * begin
        assert strides is None or [s // 2 for s in a.strides] == strides
        assert engines.check(call) is None


def test_a_store_beside_a_tensor_is_seen():
    call = call_of(strided_program([6, 1]))
    data = arguments.Arguments(call.scalars, call.tensors)
    given = data.fresh()
    given.values[1][...] = given.values[0]
    assert engines.difference(data, given) is None
    given.memories[0][64 + 2 * 5] ^= 1  # between two rows
    assert engines.difference(data, given) == "a store outside of the tensors, at byte 10"


def test_a_call_with_other_extents_is_judged(monkeypatch):
    n = p.Var("N")
    a, c = (p.Buffer(name, [n], "int32", "param") for name in "AC")
    i = p.Var("i")
    loop = p.For("Parallel", [i], [0], [n], [p.Store(c, [i], p.Load(a, [i]))])
    program = p.Program(1, [a, c], [p.Kernel([p.Var("b")], [1], [loop])], dims={"N": 4})
    more = next(found for found in (campaign.others(program, seed) for seed in range(50)) if found)
    call = engines.call_of(program, p.text(program), meaning(program), more)
    assert engines.check(call) is None
    call.more[0][1][1][5][0] += 1
    assert engines.check(call).layer == "interp"


def test_a_raw_exception_is_seen(monkeypatch):
    """Raw exceptions are failures, errors for users are none."""
    call = call_of(sum_program())
    rng = random.Random(1)
    monkeypatch.setattr(mutants, "mutated", lambda text, rng: text.replace("A[", "Z["))
    assert mutants.of_text(call.text, rng) is None
    monkeypatch.setattr(mutants.helve, "parse", lambda text: {}[text])
    assert mutants.of_text(call.text, rng).layer == "mutant text: KeyError"


def fragment_text(shape, threads, layout):
    """A program that clears a fragment of that shape and layout."""
    given = f', layout="{layout}"' if layout else ""
    return f"""@T.prim_func
def main():
    with T.Kernel(1, threads={threads}) as b:
        x = T.alloc_fragment({tuple(shape)}, "float32"{given})
        T.clear(x)
"""


def test_layouts_of_fragments_are_right_or_refused():
    """By the fuzzer's own view of the rules; two layouts that each break another one stand for the refused ones."""
    made = 0
    for seed in range(300):
        rng = random.Random(seed)
        shape = [rng.choice([1, 2, 3, 5, 6, 8, 9, 16, 33, 48]) for _ in range(rng.randint(1, 3))]
        threads = rng.choice([32, 64, 96, 128])
        layout = layouts.of_fragment(shape, threads, rng)
        if layout:
            made += 1
            helve.parse(fragment_text(shape, threads, layout))
        assert mutants.of_layout(fragment_text(shape, threads, layout), rng) is None
    assert made > 200
    for shape, layout in (((2, 3), "S[(6,) : (1@tx,)] + R[16 : 6@tx]"), ((48, 6), "S[(32, 9) : (1@tx, 1@reg)]")):
        with pytest.raises(helve.Error) as caught:
            helve.parse(fragment_text(shape, 32, layout))
        assert caught.value.code == "HV0584"


@pytest.mark.parametrize(("wrong", "seen"), [("S[(6,) : (1@reg,)] + R[32 : 1@tx]", "accepted"),
                                             ("S[(5,) : (1@reg,)]", "refused by HV0581")])
def test_a_wrong_layout_that_is_not_refused_rightly_is_seen(wrong, seen, monkeypatch):
    monkeypatch.setattr(layouts, "wrong", lambda shape, rng: wrong)
    failure = mutants.of_layout(fragment_text((2, 3), 32, None), random.Random(1))
    assert failure.layer == "mutant layout"
    assert failure.detail.startswith(seen)


@pytest.mark.parametrize("condition", ["0 == 6", "b < 0 and 0 != 0"])
def test_a_fragment_that_is_no_part_of_the_program_gets_no_wrong_layout(condition, monkeypatch):
    head, allocation, clear = fragment_text((2, 3), 32, None).rsplit("\n", 3)[:3]
    text = "\n".join([head, f"        if {condition}:", f"    {allocation}", f"    {clear}", ""])
    given = []
    for each in (text, text.replace(condition, "b < 1")):
        monkeypatch.setattr(layouts, "wrong", lambda shape, rng: given.append(shape) or "S[(6,) : (2@reg,)]")
        assert mutants.of_layout(each, random.Random(1)) is None
    assert given == [[2, 3]]  # by the second text


def product_program(columns):
    """C = A @ B of 2 x 2 elements, into a buffer of so many columns."""
    a, b = (p.Buffer(name, [2, 2], "float32", "param") for name in "AB")
    c = p.Buffer("C", [2, columns], "float32", "shared")
    product = p.Op("gemm", [p.Region(a), p.Region(b), p.Region(c)], {"clear": True})
    return p.Program(1, [a, b], [p.Kernel([p.Var("k")], [1], [p.Alloc(c), product])])


def test_a_product_into_another_shape_is_undefined():
    meaning(product_program(2))
    for columns in (1, 3):
        with pytest.raises(scalars.Undefined, match="unequal shapes"):
            meaning(product_program(columns))


@pytest.mark.parametrize(("size", "excused"), [(16, True), (17, False)])
def test_extents_may_differ_in_code_that_the_call_does_not_reach(size, excused):
    """Blocks from the second on copy (16, M) to (16, 16): there are none when M is 16."""
    m, b, k = p.Var("M"), p.Var("b"), p.Var("k")
    a, s = p.Buffer("A", [16, m], "int32", "param"), p.Buffer("S", [16, 16], "int32", "shared")
    copy = p.Op("copy", [p.Region(a), p.Region(s)])
    blocks = p.Apply("ceildiv", "index", [m, 16])
    program = p.Program(1, [a], [p.Kernel([b], [blocks], [p.Alloc(s), p.For("serial", [k], [0], [b], [copy])])],
                        dims={"M": size})
    with pytest.raises(helve.Error) as caught:
        helve.compile(helve.parse(p.text(program)), target="interp")
    assert caught.value.code == "HV0205"
    failure = engines.Failure("interp", str(caught.value))
    assert (campaign.excuse(program, failure) is not None) == excused


def guarded_by_block_program():
    """Iterations i that load A[b] of two elements where i <= b: those from 2 on do so in no call that is right."""
    n, b, i = p.Var("N"), p.Var("b"), p.Var("i")
    a, c = p.Buffer("A", [2], "int32", "param"), p.Buffer("C", [n, 4], "int32", "param")
    reached = p.If(p.Apply("<=", "index", [i, b]), [p.Store(c, [b, i], p.Load(a, [b]))], [])
    loop = p.For("Parallel", [i], [0], [4], [reached])
    return p.Program(1, [a, c], [p.Kernel([b], [n], [loop])], dims={"N": 2})


def test_a_twin_may_set_apart_what_no_call_reaches(monkeypatch):
    program = guarded_by_block_program()
    apart = twins.tree.clone(program)
    loop = apart.body[0].body[0]
    rest = twins.tree.clone(loop)
    loop.extents[0], rest.begins[0], rest.extents[0] = 2, 2, 2
    apart.body[0].body.append(rest)
    call = call_of(program)
    assert engines.check(call) is None
    assert "error[HV0210]" in engines.check(engines.call_of(apart, p.text(apart), meaning(program))).detail
    monkeypatch.setattr(campaign, "generate", lambda seed: program)
    monkeypatch.setattr(twins, "twin", lambda program, seed: ("split", apart))
    _, constructs, made, failure, _ = campaign.examine(6)
    assert (constructs["twin left out"], made, failure) == (1, 0, None)
    loop.body[0].then[0].value = p.Const("int32", 7)
    del apart.body[0].body[1]
    assert campaign.examine(6)[3].layer == "twin split: interp"


def test_a_number_below_0_is_refused_behind_any_condition(monkeypatch):
    """Which is a rule of the language; of a later stage it would be a fault."""
    a = p.Buffer("A", [2], "int32", "param")
    at = p.Apply("-", "index", [p.index(1), p.index(2)])
    condition = p.Apply("<=", "index", [p.index(0), at])
    value = p.Apply("if_then_else", "int32", [condition, p.Load(a, [at]), p.Const("int32", 7, True)])
    program = p.Program(1, [a], [p.Kernel([p.Var("b")], [1], [p.Store(a, [p.index(0)], value)])])
    refused = engines.check(call_of(program))
    assert refused.layer == "refused HV0203"
    monkeypatch.setattr(campaign, "generate", lambda seed: program)
    assert campaign.examine(1)[0] == "undefined"
    assert campaign.excuse(program, engines.Failure("after simplify (1)", refused.detail)) is None


def test_the_emulation_sees_a_wrong_result():
    if not campaign.on_host.is_possible():
        pytest.skip("this machine has no g++")
    found = []
    for combine in "+-":
        program = sum_program()
        failure, stage = engines.examine(call_of(program), engines.Effort())
        assert failure is None
        wrong = engines.call_of(program, p.text(program), meaning(sum_program(combine)))
        batch = campaign.on_host.Batch()
        batch.add(1, program, wrong, stage)
        found.append([failure.layer for _, failure, _ in batch.run(lambda seed: None)])
    assert found == [[], ["host emulation"]]


def chain_program(begins):
    """B[i] = A[i] + 1 in order, on memory that both names share."""
    a, b = (p.Buffer(name, [4], "int32", "param") for name in "AB")
    i = p.Var("i")
    value = p.Apply("+", "int32", [p.Load(a, [i]), p.Const("int32", 1)])
    loop = p.For("serial", [i], [0], [4], [p.Store(b, [i], value)])
    return p.Program(1, [a, b], [p.Kernel([p.Var("c")], [1], [loop])], shared=[p.Shared([a, b], begins)])


@pytest.mark.parametrize("begins", [[0, 0], [0, 1], [2, 0], [0, 9]])
def test_parameters_that_share_memory(begins):
    program = chain_program(begins)
    memories = meaning(program)
    data = engines.first_data(program, program.params[0], memories["A"])
    if begins == [0, 1]:
        assert memories["B"].data == [scalars.wrap(data[0] + 1 + n, "int32") for n in range(4)]
    call = engines.call_of(program, p.text(program), memories)
    assert "T.may_alias(A, B)" in call.text
    assert engines.check(call) is None
    a, b = arguments.Arguments(call.scalars, call.tensors, call.shared).fresh().values
    b[:] = 77
    assert (a == 77).any() == (begins != [0, 9])


@pytest.mark.parametrize("axis", ["x", "y"])
def test_a_group_has_to_agree_on_its_collective(axis):
    rows = p.Var("r")
    condition = p.Apply("<", "index", [rows, p.index(1)])
    body = [p.If(condition, [p.Op("comm.barrier", [], {"axis": axis})], [])]
    out = p.Buffer("A", [1], "int32", "param")
    program = p.Program(1, [out], [p.Kernel([rows, p.Var("c")], [2, 2], body)], mesh=[2, 2])
    if axis == "x":
        with pytest.raises(scalars.Undefined, match="disagree"):
            meaning(program)
    else:
        assert engines.check(call_of(program)) is None


def test_failures_shrink():
    """Whatever keeps a product stays; nearly all else goes."""
    import shrink

    def defined(seed):
        try:
            return meaning(generate(seed))
        except scalars.Undefined:
            return None

    seed = next(s for s in range(1, 400) if "T.gemm" in p.text(generate(s)) and defined(s))
    small = shrink.shrink(generate(seed), lambda candidate, memories: "T.gemm" in p.text(candidate), 200)
    assert "T.gemm" in p.text(small)
    assert shrink.weight(small) < shrink.weight(generate(seed)) / 2


@pytest.mark.parametrize("rewrite", twins.TWINS, ids=lambda f: f.__name__)
def test_twins_mean_the_same(rewrite):
    made = 0
    for seed in range(40):
        program = generate(seed)
        try:
            expected = {name: memory.data for name, memory in meaning(program).items()}
        except scalars.Undefined:
            continue
        other = rewrite(program, random.Random(seed))
        if other is None:
            continue
        made += 1
        assert {name: memory.data for name, memory in meaning(other).items()} == expected
        assert p.text(other) != p.text(program)
    assert made > 5


def test_a_call_survives_the_corpus(tmp_path):
    call = call_of(sum_program())
    corpus.write(tmp_path / "sum.py-text", call, "a note", "llvm")
    assert corpus.read(tmp_path / "sum.py-text") == (call, "a note", "llvm")


def test_a_process_that_dies_is_a_failure(monkeypatch):
    monkeypatch.setattr(engines, "check", lambda call: os.abort())
    assert campaign.isolated(call_of(sum_program())).layer == "crash SIGABRT"


@pytest.mark.parametrize(("value", "excused"), [(2**62, True), (-(2**63), True), (2**30, False)])
def test_an_address_with_a_far_parameter_may_be_refused(value, excused):
    """An access under a condition on the parameter, which the check of addresses does not ask."""
    out, u = p.Buffer("A", [4], "int32", "param"), p.Var("u", "int64")
    at = p.Cast("index", u)
    near = p.Apply("and", "bool", [p.Apply(">=", "index", [at, p.index(0)]), p.Apply("<", "index", [at, p.index(4)])])
    store = p.If(near, [p.Store(out, [at], p.Const("int32", 5))], [])
    program = p.Program(1, [u, out], [p.Kernel([p.Var("b")], [1], [store])], scalars={"u": value})
    failure = engines.check(call_of(program))
    if excused:
        assert "error[HV0625]" in failure.detail
        assert "beyond any extent" in campaign.excuse(program, failure)
    else:
        assert failure is None
        failure = engines.Failure("llvm raises", f"error[HV0625]: 'u' may not fit them with u={value}")
        assert campaign.excuse(program, failure) is None


def test_a_collective_that_no_core_comes_to_moves_nothing():
    """The turn of a loop that all cores have left."""
    out = p.Buffer("A", [1], "int32", "param")
    mine, theirs = (p.Buffer(name, [1], "int32", "shared") for name in "XY")
    cores = {"src_core": [p.index(0)] * 2, "dst_core": [p.index(1)] * 2}
    put = p.Op("comm.put", [p.Region(mine), p.Region(theirs)], cores)
    never = p.Apply("<", "index", [p.index(0), p.index(0)])
    body = [p.Alloc(mine), p.Alloc(theirs), p.While(never, [put])]
    program = p.Program(1, [out], [p.Kernel([p.Var("r"), p.Var("c")], [2, 2], body)], mesh=[2, 2])
    meaning(program)  # where nothing was stored to X, which a copy of it would find


@pytest.mark.parametrize("launch", [False, True])
def test_more_iterations_than_can_run_are_too_long(launch):
    out, huge = p.Buffer("A", [1], "int32", "param"), p.index(2**62)
    loops = [] if launch else [p.For("serial", [p.Var("i")], [0], [huge], [])]
    program = p.Program(1, [out], [p.Kernel([p.Var("b")], [huge if launch else 1], loops)])
    with pytest.raises(scalars.Undefined, match="too long"):
        meaning(program)


@pytest.mark.parametrize(("extents", "reason"), [([2**62, 0], None), ([0, 2**62], None), ([-1, -1], "negative"),
                                                 ([-1, 0], "negative")])
def test_a_launch_of_nothing_runs_nothing_and_one_of_less_is_undefined(extents, reason):
    out, grid = p.Buffer("A", [1], "int32", "param"), [p.index(n) for n in extents]
    program = p.Program(1, [out], [p.Kernel([p.Var("b"), p.Var("c")], grid, [p.Store(out, [0], p.Const("int32", 5))])])
    if reason:
        with pytest.raises(scalars.Undefined, match=reason):
            meaning(program)
    else:
        assert meaning(program)["A"].store.values[0] != 5


def test_results_are_plain_numbers():
    """As the corpus keeps them, a sum of nothing too."""
    args = [(2.0, 0.0), (3.0, 0.0), (-6.0, 0.0)]
    for dtype in ("float8_e5m2", "float16", "float64"):
        assert type(scalars.apply("fma", args, dtype)[0]) is float


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_rounding_is_numpys(dtype):
    """round_exact against NumPy's conversions, ties included."""
    kind = engines.NUMPY[dtype]
    for n in range(-3000, 3000):
        for scale in (1.0, 2.0**-9, 2.0**-30, 1.0 / 3):
            value = n * scale
            assert scalars.round_exact(value, dtype) == float(kind.type(value)), value


def test_constructs_are_counted():
    count = tree.constructs(sum_program())
    assert count["loop Parallel"] == 1 and count["buffer param"] == 3 and count["float +"] == 1
