"""T.update: what it means, who may meet in an element, and that every target computes the plain store's bits."""

import warnings

import helve
import helve.testing
import numpy as np
import pytest
from differential import check, dtype_of, sample
from helve import T, _core
from test_cuda_lowering import thread_form
from test_racing_updates import HEAD, LOUD, QUIET

OPS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
PLAIN = {"add": "{0} + {1}", "mul": "{0} * {1}", "max": "T.max({0}, {1})", "min": "T.min({0}, {1})"}
ALLOC = {
    "shared": 'T.alloc_shared(({m},), "{dtype}")',
    "tiles": 'T.alloc_shared_tiles(({m},), "{dtype}", tile_size=(4,))',
    "fragment": 'T.alloc_fragment(({m},), "{dtype}")',
    "local": 'T.alloc_local(({m},), "{dtype}")',
}


def updates_as_stores(text):
    """The text with plain stores in the place of updates, which stand on lines of their own."""
    lines = []
    for line in text.splitlines():
        before, update, rest = line.partition("T.update(")
        if update:
            target, value = rest.rsplit(", ", 1)[0].split("], ", 1)
            op = rest.rsplit('"', 2)[1]
            line = f"{before}{target}] = " + PLAIN[op].format(target + "]", f"({value})")
        lines.append(line)
    return "\n".join(lines) + "\n"


def sums(op, dtype, n, m, kind):
    """Rows combined in a buffer of some kind of memory, one serial loop in each iteration of a parallel one."""
    alloc = ALLOC[kind].format(m=m, dtype=dtype)
    return f"""@T.prim_func
def main(A: T.Tensor(({m}, {n}), "{dtype}"), B: T.Tensor(({m},), "{dtype}"), C: T.Tensor(({m},), "{dtype}")):
    with T.Kernel(1, threads=32) as b:
        X = {alloc}
        for i in T.Parallel({m}):
            X[i] = 1
        for i in T.Parallel({m}):
            for k in T.serial({n}):
                T.update(X[i], A[i, k], "{op}")
        for i in T.Parallel({m}):
            T.update(B[i], X[i], "{op}")
        for k in T.serial({n}):
            for i in T.Parallel({m}):
                if k % 2 == 0:
                    T.update(C[i], A[i, k], "{op}")
"""


def sums_arguments(dtype, n, m):
    return [sample((m, n), dtype, 1), sample((m,), dtype, 2), sample((m,), dtype, 3)]


def sums_results(op, dtype, n, m):
    a, b, c = sums_arguments(dtype, n, m)
    x = np.ones(m, a.dtype)
    with np.errstate(over="ignore"):
        for k in range(n):
            x = OPS[op](x, a[:, k])
            if k % 2 == 0:
                c = OPS[op](c, a[:, k])
        return {1: OPS[op](b, x), 2: c}


SIZES = [(0, 3), (1, 1), (7, 0), (3, 37), (5, 33)]


@pytest.mark.parametrize("kind", ALLOC)
@pytest.mark.parametrize("op", OPS)
def test_sizes(op, kind):
    for n, m in SIZES:
        dtype = "int32" if kind == "local" else "float32"
        if kind == "local" and m > 1:  # memory of one thread, which each iteration would have to itself
            continue
        program = helve.parse(sums(op, dtype, n, m, kind))
        check(program, sums_arguments(dtype, n, m), sums_results(op, dtype, n, m), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("op", OPS)
def test_types(op, dtype):
    program = helve.parse(sums(op, dtype, 4, 9, "shared"))
    check(program, sums_arguments(dtype, 4, 9), sums_results(op, dtype, 4, 9), rtol=0, atol=0)


@pytest.mark.parametrize("kind", ["shared", "tiles", "fragment"])
@pytest.mark.parametrize(("target", "arch"), [each[:2] for each in helve.testing.PIPELINES],
                         ids=lambda part: part or "any")
def test_stages(kind, target, arch):
    for op, (n, m) in zip(OPS, SIZES[1:]):
        program = helve.parse(sums(op, "float32", n, m, kind))
        helve.testing.check_stages(program, lambda n=n, m=m: sums_arguments("float32", n, m), target=target, arch=arch)


# -- the first pass ---------------------------------------------------------------------------------------------------

FORMS = {
    "a value of a wider type": 'T.update(H[0], A[0], "{op}")',
    "a value of a narrower type": 'T.update(A[0], H[0], "{op}")',
    "a weak number": 'T.update(H[1], 3, "{op}")',
    "a loop variable": 'for i in T.serial(4):\n    T.update(A[i], i + 1, "{op}")',
    "a product that is not rounded": 'T.update(H[2], H[0] * H[1], "{op}")',
    "the element itself": 'T.update(A[1], A[1] + A[0], "{op}")',
    "a loaded subscript": 'for i in T.serial(4):\n    T.update(A[T.index(I[i])], A[i], "{op}")',
    "lanes": 'for i in T.vectorized(4):\n    T.update(A[i], H[i], "{op}")',
    "a condition": 'if A[0] > 1.0:\n    T.update(A[2], A[3], "{op}")\nelse:\n    T.update(H[2], A[3], "{op}")',
    "a while": 'while I[0] < 3:\n    T.update(I[0], 1, "add")\n    T.update(A[0], A[1], "{op}")',
}


def form(body, op):
    lines = "".join(f"        {line}\n" for line in body.format(op=op).splitlines())
    return f"""@T.prim_func
def main(A: T.Tensor((4,), "float32"), H: T.Tensor((4,), "bfloat16"), I: T.Tensor((4,), "int32")):
    with T.Kernel(1) as b:
{lines}"""


@pytest.mark.parametrize("body", FORMS.values(), ids=list(FORMS))
@pytest.mark.parametrize("op", OPS)
def test_an_update_becomes_the_plain_store(op, body):
    """So every bit is that of the plain store, and the types and the roundings are."""
    text = form(body, op)
    program, plain = helve.parse(text), helve.parse(updates_as_stores(text))
    for target, arch, _ in helve.testing.PIPELINES:
        stages = dict(helve.testing.lowering_stages(program, target=target, arch=arch))
        assert "T.update" in _core.print(program.function)
        assert _core.print(stages["lower_updates"]) == _core.print(plain.function)
    helve.testing.assert_round_trip(program.function)
    arguments = [sample((4,), "float32", 5), sample((4,), "bfloat16", 6), np.array([0, 2, 1, 2], np.int32)]
    expected = [a.copy() for a in arguments]
    helve.testing.interpret(plain.function, *expected)
    check(program, arguments, dict(enumerate(expected)), rtol=0, atol=0)


def test_small_floats_round_each_sum_once():
    """256 + 1.0039 is nearer to 258; the value as a bfloat16 is 1, and 256 + 1 a tie that goes to 256."""
    program = helve.parse("""@T.prim_func
def main(X: T.Tensor((1,), "float32"), S: T.Tensor((1,), "bfloat16")):
    with T.Kernel(1) as b:
        T.update(S[0], X[0], "add")
""")
    s = np.array([256.0], dtype_of("bfloat16"))
    check(program, [np.array([1.0039], np.float32), s], {1: np.array([258.0], s.dtype)}, rtol=0, atol=0)


def test_a_not_a_number_stays():
    program = helve.parse("""@T.prim_func
def main(X: T.Tensor((3,), "float32"), S: T.Tensor((2,), "float32")):
    with T.Kernel(1) as b:
        for i in T.serial(3):
            T.update(S[0], X[i], "max")
            T.update(S[1], X[i], "min")
""")
    x = np.array([1, np.nan, 2], np.float32)
    check(program, [x, np.zeros(2, np.float32)], {1: np.array([np.nan, np.nan], np.float32)})


def test_updates_keep_their_order():
    """No schedule changes it, so the sum of floats is that of the loop."""
    x = sample((1000,), "float32", 7)
    program = helve.parse("""@T.prim_func
def main(X: T.Tensor((1000,), "float32"), S: T.Tensor((1,), "float32")):
    with T.Kernel(1) as b:
        for i in T.serial(1000):
            T.update(S[0], X[i], "add")
""")
    wanted = np.zeros(1, np.float32)
    for each in x:
        wanted += each
    check(program, [x, np.zeros(1, np.float32)], {1: wanted}, rtol=0, atol=0)


# -- who may meet -----------------------------------------------------------------------------------------------------


def meeting(statements, at):
    """Iterations that meet in an element, which the data of N decides or which is stated."""
    body = "".join(f"            {line.format(at=at)}\n" for line in statements)
    return helve.parse(f"""@T.prim_func
def main(S: T.Tensor((4,), "int32"), R: T.Tensor((8,), "int32"), N: T.Tensor((1,), "int32")):
    with T.Kernel(1) as b:
        for i in T.Parallel(8):
{body}""")


RACES = {
    "itself": ['T.update({at}, 1, "add")'],
    "one of the same operator": ['T.update({at}, 1, "max")', 'T.update({at}, 2, "max")'],
    "one in one iteration": ['if i == 1:', '    T.update({at}, 1, "add")', "R[i] = {at}"],
    "a store": ["if i == 1:", "    {at} = 1", "else:", '    T.update({at}, 1, "mul")'],
    "an atomic": ["if i == 1:", '    T.update({at}, 1, "add")', "else:", "    T.atomic_add({at}, 1)"],
}


@pytest.mark.parametrize("statements", RACES.values(), ids=list(RACES))
def test_updates_race(statements):
    with pytest.raises(helve.Error) as refused:
        helve.compile(meeting(statements, "S[0]"))
    assert refused.value.code == "HV0306"
    arguments = np.zeros(4, "int32"), np.zeros(8, "int32"), np.zeros(1, "int32")
    with warnings.catch_warnings(), pytest.raises(helve.Error) as found:
        warnings.simplefilter("ignore")
        helve.testing.interpret(meeting(statements, "S[T.index(N[0])]").function, *arguments, check="races")
    assert found.value.code == "HV0705"


def as_updates(body):
    """The body with updates where it has `x += y`; None if it has none."""
    lines = []
    for line in body.splitlines():
        head, plus, value = line.partition(" += ")
        indent = head[: len(head) - len(head.lstrip())]
        lines.append(f'{indent}T.update({head.lstrip()}, {value}, "add")' if plus else line)
    text = "\n".join(lines)
    return None if text == body.rstrip("\n") else text


def verdict(body):
    """(the error or the warnings of the kernel with this body, its proofs), as text without places."""
    lines = "".join(f"        {line}\n" for line in body.strip("\n").splitlines())
    program = helve.parse(f'M = T.dyn("M")\n@T.prim_func\ndef main({HEAD}):\n    with T.Kernel(2) as b:\n{lines}')
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            kernel = helve.compile(program, target="interp")
        except helve.Error as error:
            return error.code, error.message, error.help
    said = [(w.message.code, w.message.message, w.message.help) for w in caught]
    return said, sorted((proof.kind, str(proof.verdict), proof.question) for proof in kernel.proofs())


BODIES = {title: body for title, (body, _) in LOUD.items()} | QUIET
BODIES = {title: body for title, body in BODIES.items() if as_updates(body)}


@pytest.mark.parametrize("title", BODIES)
def test_proofs_and_warnings_are_those_of_the_plain_store(title):
    assert verdict(as_updates(BODIES[title])) == verdict(BODIES[title])


def test_lanes_that_update_one_element_race():
    for at in ("S[0]", "S[i // 2]"):
        with pytest.raises(helve.Error) as refused:
            helve.compile(helve.parse(f"""@T.prim_func
def main(S: T.Tensor((4,), "float32"), A: T.Tensor((8,), "float32")):
    with T.Kernel(1) as b:
        for i in T.vectorized(8):
            T.update({at}, A[i], "add")
"""))
        assert refused.value.code == "HV0306"


# -- what an update reads ---------------------------------------------------------------------------------------------


def test_an_update_reads_and_writes_its_element():
    @T.prim_func
    def main(A: T.Tensor((4,), "int32"), S: T.Tensor((4,), "int32")):
        with T.Kernel(1) as b:
            T.update(S[b], A[b], "add")

    effects = {name: (read, written) for name, read, written in effects_of(main)}
    assert effects == {"A": (True, False), "S": (True, True)}
    read_only = np.zeros(4, np.int32)
    read_only.flags.writeable = False
    with pytest.raises(helve.Error):
        helve.compile(main, target="interp")(np.zeros(4, np.int32), read_only)


def effects_of(program):
    """(name, read, written) of each tensor, as the host plan says it."""
    for line in helve.compile(program, target="llvm").source("plan").splitlines():
        words = line.split()
        if words[:1] == ["tensor"]:
            yield words[1].rstrip(":"), "read" in words, "written" in words


@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_an_undefined_element_is_read(target):
    program = helve.parse("""@T.prim_func
def main(S: T.Tensor((1,), "int32")):
    with T.Kernel(1) as b:
        X = T.alloc_shared((1,), "int32")
        T.update(X[0], 1, "add")
        T.copy(X, S)
""")
    stage = program.function
    if target == "llvm":
        stage = dict(helve.testing.lowering_stages(program))["lower_updates"]
    with pytest.raises(helve.Error) as found:
        helve.testing.interpret(stage, np.zeros(1, "int32"), check="all")
    assert found.value.code == "HV0704"
    assert found.value.lineno == 5


def test_threads_wait_for_the_value_that_they_update():
    """In thread form an update reads what another thread wrote before the barrier."""
    program = helve.parse("""@T.prim_func
def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64) as b:
        s = T.alloc_shared((64,), "float32")
        x = T.alloc_fragment((64, 1), "float32")
        for tx in T.threads(64):
            s[tx] = A[tx]
            x[tx, 0] = 1.0
        for tx in T.threads(64):
            T.update(s[63 - tx], A[tx], "max")
            T.update(x[tx, 0], s[63 - tx], "mul")
        for tx in T.threads(64):
            B[tx] = x[tx, 0]
""")
    a = sample((64,), "float32", 3)
    for target, arch, _ in helve.testing.PIPELINES:
        helve.testing.check_stages(program, lambda: [a, np.zeros(64, np.float32)], target=target, arch=arch)
    text = _core.print(thread_form(program))
    assert text.count("T.sync_threads()") == 1
    check(program, [a, np.zeros(64, np.float32)], {1: np.maximum(a, a[::-1])})


def test_cores_of_a_mesh():
    program = helve.parse("""@T.prim_func
def main(A: T.Tensor((6, 10), "int32"), B: T.Tensor((6, 10), "int32")):
    T.annotate_mesh_tensor({A: {"sharding": {"x": 0, "y": 1}, "tiling": [3, 4]},
                            B: {"sharding": {"x": 0, "y": 1}, "tiling": [3, 4]}}, nrows=2, ncols=3)
    with T.Kernel(2, 3) as (r, c):
        X = T.alloc_shared((3, 4), "int32")
        S = T.alloc_shared((3,), "int32")
        W = T.alloc_shared((3,), "int32")
        T.clear(S)
        T.mesh_tensor_copy(A, X, coord=[0, 0])
        for k in T.serial(4):
            for i in T.Parallel(3):
                T.update(S[i], X[i, k], "add")
        T.comm.all_reduce(S, W, op="sum", axis="y")
        for i, k in T.Parallel(3, 4):
            T.update(X[i, k], W[i], "max")
        T.mesh_tensor_copy(X, B, coord=[0, 0])
""")
    a = sample((6, 10), "int32", 3)
    mesh = helve.Mesh((2, 3), ("x", "y"))
    check(program, [a, np.zeros((6, 10), np.int32)], {1: np.maximum(a, a.sum(1, keepdims=True))}, mesh=mesh)
