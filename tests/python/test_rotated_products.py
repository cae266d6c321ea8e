"""Loops that multiply, compute and multiply again: their last product is one turn late. What stays as it is, too."""

import re

import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned
from nvrtc import compile_cubin, needs_nvrtc

import helve
import helve.testing
from helve import T, _core

ROWS, KEYS, DEPTH, OUT = 64, 16, 32, 32
ORDERS = (0, 1, 2, 3, 4)


def chained(registers=True, persistent=False, first=0):
    """O = relu(Q @ K^T) @ V + sums of the scores, from key tile `first` on; a running sum crosses the turns."""
    N, M = T.dyn("N"), T.dyn("M")

    @T.prim_func
    def main(Q: T.Tensor((M, DEPTH), "float16"), K: T.Tensor((N, DEPTH), "float16"), V: T.Tensor((N, OUT), "float16"),
             O: T.Tensor((M, OUT), "float32")):
        with T.Kernel(2 if persistent else T.ceildiv(M, ROWS), threads=128) as b:
            q = T.alloc_shared((ROWS, DEPTH), "float16")
            k = T.alloc_shared((KEYS, DEPTH), "float16")
            v = T.alloc_shared((KEYS, OUT), "float16")
            s = T.alloc_fragment((ROWS, KEYS), "float32")
            if registers:
                p = T.alloc_fragment((ROWS, KEYS), "float16")
            else:
                p = T.alloc_shared((ROWS, KEYS), "float16")
            o = T.alloc_fragment((ROWS, OUT), "float32")
            part = T.alloc_fragment((ROWS,), "float32")
            total = T.alloc_fragment((ROWS,), "float32")

            def tile(i):
                T.copy(Q[i : i + ROWS, :], q)
                T.clear(o)
                T.clear(total)
                for j in T.Pipelined(first, T.ceildiv(N, KEYS), num_stages=2):
                    T.copy(K[j * KEYS : j * KEYS + KEYS, :], k)
                    T.copy(V[j * KEYS : j * KEYS + KEYS, :], v)
                    T.gemm(q, k, s, transpose_B=True, clear=True, dispatch="wgmma")
                    if j * KEYS + KEYS > N:
                        for m, n in T.Parallel(ROWS, KEYS):
                            if j * KEYS + n >= N:
                                s[m, n] = 0.0
                    for m, n in T.Parallel(ROWS, KEYS):
                        s[m, n] = T.max(s[m, n], 0.0)
                    T.reduce_sum(s, part, dim=1)
                    for m in T.Parallel(ROWS):
                        total[m] = total[m] + part[m]
                    for m, n in T.Parallel(ROWS, OUT):
                        o[m, n] = o[m, n] + 1.0
                    T.copy(s, p)
                    T.gemm(p, v, o, dispatch="wgmma")
                for m, n in T.Parallel(ROWS, OUT):
                    o[m, n] = o[m, n] + total[m]
                T.copy(o, O[i : i + ROWS, :])

            if persistent:
                for t in T.Persistent([T.ceildiv(M, ROWS)]):
                    tile(t * ROWS)
            else:
                tile(b * ROWS)

    return main


def arguments(M, N, first=0):
    rng = np.random.default_rng(M + 7 * N)
    q, k, v = (rng.integers(-1, 2, shape).astype("float32") for shape in [(M, DEPTH), (N, DEPTH), (N, OUT)])
    begin = min(first * KEYS, N)
    scores = np.maximum(q @ k[begin:].T, 0)
    turns = max(0, -(-N // KEYS) - first)
    wanted = scores @ v[begin:] + turns + scores.sum(1, keepdims=True)
    return [each.astype("float16") for each in (q, k, v)] + [np.full((M, OUT), np.nan, "float32")], wanted


PROGRAMS = {
    "registers": chained(),
    "shared memory": chained(registers=False),
    "persistent": chained(persistent=True),
    "a begin": chained(first=1),
}
# Loops of no turn, one, two and several; with tails.
SIZES = [(64, 0), (64, 16), (64, 5), (70, 32), (130, 55)]


def stages(function):
    return helve.testing.lowering_stages(function, target="cuda", arch="sm_90a")


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_stage(name):
    first = 1 if name == "a begin" else 0
    lowered = list(stages(PROGRAMS[name]))
    for M, N in SIZES:
        given, wanted = arguments(M, N, first)
        for stage, form in lowered:
            found = [each.copy() for each in given]
            helve.testing.interpret(form, *found, check="all")
            np.testing.assert_array_equal(found[3], wanted, err_msg=f"{stage} {M, N}")
        for order in ORDERS:
            found = [each.copy() for each in given]
            helve.testing.interpret(lowered[-1][1], *found, check="fences", roles=order)
            np.testing.assert_array_equal(found[3], wanted, err_msg=f"order {order}, {M, N}")


def events(text):
    return re.findall(r"T\.gemm|T\.ring_release|for j in|for i in|if 0 <|reduce_sum", text)


def test_the_second_product_comes_one_turn_late():
    lowered = dict(stages(PROGRAMS["registers"]))
    helve.testing.assert_round_trip(lowered["rotate_products"])
    text = _core.print(lowered["rotate_products"]).partition("else:")[0]
    assert text.count("T.gemm(q, k, s") == 2 and text.count("T.gemm(p, v, o") == 2
    loop = text.partition("for j in T.serial(")[2]
    assert events(loop)[:5] == ["T.gemm", "T.gemm", "T.ring_release", "reduce_sum", "T.ring_release"]
    waits = _core.print(lowered["overlap_products"]).partition("for j in T.serial(")[2]
    order = re.findall(r"T\.wgmma\(|T\.wgmma_wait\([^)]*\)", waits)
    assert order[:4] == ["T.wgmma(", "T.wgmma(", "T.wgmma_wait(pending=1)", "T.wgmma_wait()"]


def test_the_tiles_of_a_block_begin_early():
    """What a tile begins with has a ring of one slot, and is filled while the tile before is stored."""
    lowered = dict(stages(PROGRAMS["persistent"]))
    text = _core.print(lowered["split_roles"]).partition("else:")[0]
    fills = text.partition("elect=True):")[2]
    assert "slots=1" in text and "T.alloc_shared((2, 1), \"uint64\"" in text
    assert re.findall(r"T\.ring_acquire\((\w+)\)", fills)[0] == "ring_2"
    assert "Q[" in fills


@pytest.mark.parametrize("unaligned", [False, True])
def test_the_text_computes_it(tmp_path, unaligned):
    names = {name.replace(" ", "_"): function for name, function in PROGRAMS.items()}
    host = HostKernels([stages(each)[-1][1] for each in names.values()], tmp_path, names=list(names),
                       unaligned=unaligned)
    for name in names:
        for M, N in SIZES:
            given, wanted = arguments(M, N, 1 if name == "a_begin" else 0)
            given = [aligned(each) for each in given]
            blocks = 2 if name == "persistent" else -(-M // ROWS)
            host.run(name, blocks, dict(zip("QKVO", given)), {"M": M, "N": N})
            np.testing.assert_array_equal(given[3], wanted, err_msg=f"{name} {M, N}")


@needs_nvrtc
def test_the_schedule_tells():
    choices = [(each.operation, each.schedule) for each in
               helve.compile(PROGRAMS["persistent"], target="cuda", arch="sm_90a").schedules()]
    assert ("T.Pipelined", "rings") in choices and ("T.Pipelined", "rotated products") in choices
    assert ("T.Persistent", "rings") in choices


def dependent(what):
    """The first product of a turn needs the second one of the turn before, or stands for both."""

    @T.prim_func
    def main(Q: T.Tensor((ROWS, DEPTH), "float16"), K: T.Tensor((64, DEPTH), "float16"),
             V: T.Tensor((64, KEYS), "float16"), O: T.Tensor((ROWS, KEYS), "float32")):
        with T.Kernel(1, threads=128):
            q = T.alloc_shared((ROWS, DEPTH), "float16")
            k = T.alloc_shared((KEYS, DEPTH), "float16")
            v = T.alloc_shared((KEYS, KEYS), "float16")
            p = T.alloc_shared((ROWS, KEYS), "float16")
            s = T.alloc_fragment((ROWS, KEYS), "float32")
            o = T.alloc_fragment((ROWS, KEYS), "float32")
            T.copy(Q, q)
            T.clear(o)
            T.clear(s)
            for j in T.Pipelined(4, num_stages=2):
                T.copy(K[j * KEYS : j * KEYS + KEYS, :], k)
                T.copy(V[j * KEYS : j * KEYS + KEYS, :], v)
                if what == "same sums":
                    T.gemm(q, k, o, transpose_B=True, dispatch="wgmma")
                else:
                    T.gemm(q, k, s, transpose_B=True, clear=True, dispatch="wgmma")
                if what == "a condition":
                    if j > 1:
                        T.copy(s, p)
                        T.gemm(p, v, o, dispatch="wgmma")
                else:
                    T.copy(s, p)
                    T.gemm(p, v, o, dispatch="wgmma")
                if what == "a statement behind":
                    for m, n in T.Parallel(ROWS, KEYS):
                        o[m, n] = T.max(o[m, n], 0.0)
            T.copy(o, O)

    return main


@pytest.mark.parametrize("what", ["same sums", "a condition", "a statement behind"])
def test_what_is_not_rotated(what):
    lowered = dict(stages(dependent(what)))
    assert _core.print(lowered["rotate_products"]) == _core.print(lowered["make_rings"])
    rng = np.random.default_rng(3)
    given = [rng.integers(-1, 2, shape).astype("float16") for shape in [(ROWS, DEPTH), (64, DEPTH), (64, KEYS)]]
    results = []
    for form in (lowered["make_rings"], lowered["split_roles"]):
        found = [*given, np.zeros((ROWS, KEYS), "float32")]
        helve.testing.interpret(form, *found)
        results.append(found[3])
    np.testing.assert_array_equal(*results)


@needs_nvrtc
def test_weights_are_rounded_in_pairs():
    """Half as many registers hold them, and half as many conversions make them."""
    text = _core.cuda_source(stages(PROGRAMS["registers"])[-1][1])[0]
    assert re.search(r"helve_keep_rounded<4>\(p \+ ", text)
    _, log = compile_cubin(text, "sm_90a")
    assert not re.search(r"\bC75\d\d\b", log), log
