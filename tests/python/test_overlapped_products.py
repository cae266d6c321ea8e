"""Products of warpgroups that run while the program goes on: where they wait, and that each wait is needed."""

import re

import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned
from nvrtc import compile_cubin, needs_nvrtc
from test_wgmma import last_stage, matmul, text_of

import helve
import helve.testing
from helve import T, _core

PRODUCTS = ("T.wgmma_fence()", "T.wgmma_commit()", "T.wgmma_wait(")


def chained(steps=2, keys=16, depth=32, out=16):
    """Two products with work on the sums of the first between them, as attention has them."""

    @T.prim_func
    def main(Q: T.Tensor((64, depth), "float16"), K: T.Tensor((steps * keys, depth), "float16"),
             V: T.Tensor((steps * keys, out), "float16"), O: T.Tensor((64, out), "float32")):
        with T.Kernel(1, threads=128):
            q = T.alloc_shared((64, depth), "float16")
            k = T.alloc_shared((keys, depth), "float16")
            v = T.alloc_shared((keys, out), "float16")
            p = T.alloc_shared((64, keys), "float16")
            s = T.alloc_fragment((64, keys), "float32")
            o = T.alloc_fragment((64, out), "float32")
            T.copy(Q, q)
            T.clear(o)
            for j in T.Pipelined(steps, num_stages=2):
                T.copy(K[j * keys : j * keys + keys, :], k)
                T.copy(V[j * keys : j * keys + keys, :], v)
                T.gemm(q, k, s, transpose_B=True, clear=True, dispatch="wgmma")
                for m, n in T.Parallel(64, keys):
                    p[m, n] = T.max(s[m, n], 0.0)
                T.gemm(p, v, o, dispatch="wgmma")
            T.copy(o, O)

    return main


def two_sums(steps=3, m=64, n=16, k=32):
    """Two products that have nothing to do with each other."""

    @T.prim_func
    def main(A: T.Tensor((m, k), "float16"), B: T.Tensor((k, n), "float16"), C: T.Tensor((m, n), "float32"),
             D: T.Tensor((m, n), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((m, k), "float16")
            b = T.alloc_shared((k, n), "float16")
            c = T.alloc_fragment((m, n), "float32")
            d = T.alloc_fragment((m, n), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.clear(d)
            for s in T.serial(steps):
                T.gemm(a, b, c, dispatch="wgmma")
                T.gemm(a, b, d, dispatch="wgmma")
            T.copy(c, C)
            T.copy(d, D)

    return main


def whole(*shape, dtype="float16"):
    return np.random.default_rng(7).integers(-2, 3, shape).astype(dtype)


def chained_arguments(steps=2, keys=16, depth=32, out=16):
    q, k, v = whole(64, depth), whole(steps * keys, depth), whole(steps * keys, out)
    scores = np.maximum(q.astype("float32") @ k.astype("float32").T, 0)
    return [q, k, v, np.zeros((64, out), "float32")], [scores @ v.astype("float32")]


def two_arguments(steps=3, m=64, n=16, k=32):
    a, b = whole(m, k), whole(k, n)
    product = steps * (a.astype("float32") @ b.astype("float32"))
    return [a, b, np.zeros((m, n), "float32"), np.zeros((m, n), "float32")], [product, product]


def matmul_arguments(m=64, n=16, k=80):
    a, b = whole(m, k), whole(k, n)
    return [a, b, np.zeros((m, n), "float32")], [a.astype("float32") @ b.astype("float32")]


PROGRAMS = {
    "matmul": (lambda: matmul(64, 16, 16, 128, "float16", stages=3, shape=(64, 16, 80)), matmul_arguments),
    "matmul_dynamic": (lambda: matmul(64, 16, 16, 128, "float16", stages=2), matmul_arguments),
    "chained": (chained, chained_arguments),
    "two_sums": (two_sums, two_arguments),
}


@pytest.fixture(scope="module")
def stages():
    return {name: helve.testing.lowering_stages(make(), target="cuda", arch="sm_90a")
            for name, (make, _) in PROGRAMS.items()}


def products_of(form):
    """What orders the products of the program, beside what it is between."""
    wanted = (*PRODUCTS, "T.wgmma(", "T.sync_threads", "T.cp_async_bulk", "for ", "if ")
    lines = [line for line in _core.print(form).split("\n") if line.strip().startswith(wanted)]
    return [re.sub(r"\(.*", "", line.strip()) + "".join(re.findall(r"\(\d+\)$", line.strip())) for line in lines]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_stage(stages, name):
    given, expected = PROGRAMS[name][1]()
    last = stages[name][-1][0]
    for stage, form in helve.testing.with_variant(stages[name]):
        found = [each.copy() for each in given]
        helve.testing.interpret(form, *found, check="fences" if stage == last else "all")
        for out, wanted in zip(found[-len(expected):], expected):
            np.testing.assert_array_equal(out, wanted, err_msg=stage)


def test_the_slot_of_the_product_before_is_refilled():
    """One product is in flight while the slot of the one before it is given back, for the copies of a later one."""
    text = _core.print(last_stage(matmul(128, 128, 64, 128))).split("with T.Kernel")[1]  # for aligned rows
    lines = [line.strip() for line in text.split("\n")]
    place = next(n for n, line in enumerate(lines) if line.startswith("T.wgmma("))
    assert lines[place - 1 : place] + lines[place + 1 : place + 6] == [
        "T.ring_wait(ring)", "T.wgmma_commit()", "T.wgmma_wait(pending=1)", "T.ring_release(ring, pending=1)",
        "T.wgmma_wait()", "T.ring_release(ring)",
    ]
    fences = [n for n, line in enumerate(lines) if line == "T.wgmma_fence()"]
    assert [lines[n + 1][:6] for n in fences] == ["for k "]


def test_a_stage_is_refilled_behind_the_next_product(stages):
    """Where boxes are too small for a ring, threads wait for each other between the two."""
    text = _core.print(stages["matmul_dynamic"][-1][1]).split("with T.Kernel")[1]  # for aligned rows
    lines = [line.strip() for line in text.split("\n")]
    place = next(n for n, line in enumerate(lines) if line.startswith("T.wgmma("))
    assert lines[place + 1 : place + 3] == ["T.wgmma_commit()", "T.wgmma_wait(pending=1)"]
    assert lines[place + 3].startswith("if ") and lines[place + 4] == "T.sync_threads()"
    assert "T.cp_async_bulk_tensor(" in lines[place + 5]
    assert [line for line in lines[place + 4 :] if line.startswith("T.wgmma_wait")] == ["T.wgmma_wait()"]


def test_two_sums_run_side_by_side(stages):
    """Nothing in the loop waits for both; the loop leaves one in flight."""
    waits = re.findall(r"T\.wgmma_wait\((.*)\)", _core.print(dict(stages["two_sums"])["overlap_products"]))
    assert waits[0] == "pending=1" and waits[-1] == ""


def mutants(form):
    """Texts of the program with one of its fences, commits and waits missing, a step later, or waiting for less."""
    lines = _core.print(form).split("\n")
    depth = lambda line: len(line) - len(line.lstrip())  # noqa: E731
    for n, line in enumerate(lines):
        if not line.strip().startswith(PRODUCTS):
            continue
        yield f"line {n} is missing", "\n".join(lines[:n] + lines[n + 1 :])
        if "wait" in line:
            pending = int((re.findall(r"pending=(\d+)", line) or ["0"])[0])
            less = " " * depth(line) + f"T.wgmma_wait(pending={pending + 1})"
            yield f"line {n} waits for less", "\n".join([*lines[:n], less, *lines[n + 1 :]])
        end = n + 1
        if "commit" in line and lines[end].strip().startswith("T.wgmma("):
            continue  # one group of two products is waited for as well
        if "commit" in line and not any(each in step for step in following(lines, n) for each in PRODUCTS):
            continue  # only waits ask for groups
        if "fence" in line and lines[end].strip() in ("T.sync_threads()", "T.fence_async()"):
            continue  # which touch no register
        if end < len(lines) and depth(lines[end]) == depth(line):
            end += 1
            while end < len(lines) and depth(lines[end]) > depth(line):
                end += 1
            while end < len(lines) and lines[end].startswith(" " * depth(line) + "else"):
                end += 1
                while end < len(lines) and depth(lines[end]) > depth(line):
                    end += 1
            moved = [*lines[:n], *lines[n + 1 : end], line, *lines[end:]]
            yield f"line {n} is a step later", "\n".join(moved)


def following(lines, n):
    """The lines of the statement behind line n, if that is of the same block."""
    depth = len(lines[n]) - len(lines[n].lstrip())
    end = n + 2
    while end < len(lines) and len(lines[end]) - len(lines[end].lstrip()) > depth:
        end += 1
    return lines[n + 1 : end]


def parsed(text):
    """The function of a text; nothing where its verifier finds a product that is left unfinished."""
    try:
        return helve.parse(text).function
    except helve.Error as refused:
        assert refused.code == "HV0311"
        return None


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_fence_commit_and_wait_is_needed(stages, name):
    """Where it is: a mutant is objected to before it runs, and what the pass makes of it is the program again."""
    form = stages[name][-1][1]
    assert _core.early_uses(form) == []
    count = 0
    for what, text in mutants(form):
        mutant = parsed(text)
        objected = mutant is None or _core.early_uses(mutant) or _core.unordered_accesses(mutant)
        assert objected, f"{name}: {what} in:\n{text}"
        count += 1
    assert count >= 8


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_interpreter_judges_them(stages, name):
    """It finds each that is missing, or that waits for less, in a run."""
    calls = [PROGRAMS[name][1]()[0]]
    if name == "matmul_dynamic":
        calls.append(matmul_arguments(64, 15, 37)[0])  # for the other version
    for what, text in mutants(stages[name][-1][1]):
        mutant = parsed(text)
        if "later" in what or mutant is None:
            continue
        with pytest.raises(helve.Error) as refused:
            for given in calls:
                for check in ("all", "fences"):
                    helve.testing.interpret(mutant, *[each.copy() for each in given], check=check)
        assert refused.value.code in ("HV0311", "HV0705", "HV0708", "HV0713"), what


@pytest.mark.parametrize("prelude", [False, True])
def test_the_text_computes_it(stages, tmp_path, prelude):
    names = [name for name in PROGRAMS if name != "matmul_dynamic"]
    kernels = HostKernels([stages[name][-1][1] for name in names], tmp_path, prelude=prelude, names=names)
    for name in names:
        given, expected = PROGRAMS[name][1]()
        given = [aligned(each) for each in given]
        kernels.run(name, 1, dict(zip([each.name for each in kernels.forms[name].params], given)))
        for out, wanted in zip(given[-len(expected):], expected):
            np.testing.assert_array_equal(out, wanted, err_msg=name)


def test_the_emulation_gives_results_as_late_as_allowed(stages, tmp_path):
    """A text without one of its waits computes something else, or is caught."""
    given, expected = chained_arguments()
    form = stages["chained"][-1][1]
    for what, text in mutants(form):
        of_wait = "wait" in _core.print(form).split("\n")[int(what.split()[1])]
        if "missing" not in what or not of_wait or parsed(text) is None:
            continue
        folder = tmp_path / what.replace(" ", "_")
        folder.mkdir()
        kernels = HostKernels([helve.parse(text).function], folder, names=["chained"])
        arrays = [aligned(each.copy()) for each in given]
        try:
            kernels.run("chained", 1, dict(zip("QKVO", arrays)))
        except AssertionError:
            continue
        assert not np.array_equal(arrays[-1], expected[0]), what


@needs_nvrtc
@pytest.mark.parametrize("name", ["chained", "matmul", "matmul_dynamic"])
def test_the_text_compiles_without_remarks(name):
    _, log = compile_cubin(text_of(PROGRAMS[name][0]()), "sm_90a")
    assert not re.search(r"\bC7(?:5|6)\d\d\b", log), log
    assert {*re.findall(r"(\d+) bytes (?:stack frame|spill stores|spill loads)", log)} <= {"0"}, log  # some say nothing


