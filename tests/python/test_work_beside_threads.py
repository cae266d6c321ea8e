"""Work of a block beside code of its threads: tiles, fragments, loops over elements, stores and lines that are printed.

The block does each of them once, however many threads it has; on a GPU they are divided among the threads.
"""

import helve
import helve.testing
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned, interpret
from differential import check
from helve import _core
from nvrtc import assert_compiles, needs_nvrtc
from test_cuda_lowering import thread_form

HEAD = """@T.prim_func
def {name}(X: T.Tensor((N,), "int32"), H: T.Tensor((40,), "int32"), Y: T.Tensor((N,), "int32")):
    with T.Kernel(T.ceildiv(N, 64), threads=64) as b:
"""
PROGRAMS = {
    "histogram": """
own = T.alloc_shared((40,), "int32")
T.clear(own)
with T.thread() as tx:
    if b * 64 + tx < N:
        T.atomic_add(own[X[b * 64 + tx]], 1)
T.atomic_add(H, own)
""",
    "reversed": """
s = T.alloc_shared((64,), "int32")
r = T.alloc_shared((64,), "int32")
T.copy(X[b * 64], s)
with T.thread() as tx:
    r[tx] = s[63 - tx]
T.copy(r, Y[b * 64])
""",
    "between": """
s = T.alloc_shared((3, 64), "int32")
for k in T.serial(3):
    with T.thread() as tx:
        s[k, tx] = tx + k
    for i in T.Parallel(63):
        s[k, i] = s[k, i] + s[k, i] * k
if N > 70:
    T.fill(s[0, 0:7], -3)
with T.thread() as tx:
    if b * 64 + tx < N:
        Y[b * 64 + tx] = s[0, 63 - tx] + 2 * s[1, tx // 2] + s[2, tx]
""",
    "once": """
s = T.alloc_shared((64,), "int32")
T.atomic_add(H[0], 1)
H[1 + T.min(b, 38)] = T.cast(b, "int32") + 5
at = T.atomic_add(H[39], 2, return_prev=True)
with T.thread() as tx:
    s[tx] = at + tx
    if b * 64 + tx < N:
        Y[b * 64 + tx] = X[b * 64 + tx] + s[tx] - at
""",
    "scratch": """
s = T.alloc_shared((5, 13), "int32")
for i, j in T.Parallel(5, 13):
    total = T.alloc_local((1,), "int32")
    total[0] = 0
    for k in T.serial(i + 1):
        total[0] = total[0] + j * k
    s[i, j] = total[0]
with T.thread() as tx:
    if b * 64 + tx < N:
        Y[b * 64 + tx] = s[tx % 5, tx % 13]
""",
    "extents": """
for i in T.Parallel(N):
    if b == 0:
        Y[i] = X[i] * 2
s = T.alloc_shared((1,), "int32")
s[0] = 0
with T.thread() as tx:
    T.atomic_add(s[0], 1)
for i in T.Parallel(1):
    T.atomic_add(H[i], s[i])
for i in T.Parallel(0):
    H[i] = 99
""",
    "reduced": """
s = T.alloc_shared((4, 64), "int32")
m = T.alloc_shared((4,), "int32")
with T.thread() as tx:
    for k in T.serial(4):
        s[k, tx] = (tx * 7 + k) % 61
T.reduce_max(s, m, dim=1)
T.cumsum(s[1, :])
T.reduce_sum(s[0, :], H[b : b + 1], clear=False)
with T.thread() as tx:
    if b * 64 + tx < N:
        Y[b * 64 + tx] = m[tx % 4] + s[1, tx]
""",
    "fragments": """
x = T.alloc_fragment((2, 64), "int32")
top = T.alloc_fragment((2,), "int32")
own = T.alloc_fragment((64, 2), "int32")
s = T.alloc_shared((2, 64), "int32")
for k in T.serial(2):
    T.copy(X[b * 64 : b * 64 + 64], x[k, :])
    for i in T.Parallel(64):
        x[k, i] = x[k, i] * (k + 2) + i
T.reduce_max(x, top, dim=1)
T.cumsum(x, dim=0)
T.copy(x, s)
with T.thread() as tx:
    for r in T.unroll(2):
        own[tx, r] = s[r, 63 - tx] + s[r, tx]
for i, j in T.Parallel(2, 64):
    x[i, j] = x[i, j] + top[i]
T.copy(x, s)
with T.thread() as tx:
    if b * 64 + tx < N:
        Y[b * 64 + tx] = own[tx, 0] + own[tx, 1] + s[0, tx] + 10 * s[1, 63 - tx]
""",
    "counted": """
s = T.alloc_shared((64,), "int32")
n = T.alloc_var("int32", 1)
T.clear(s)
for k in T.serial(9):
    if k * 7 > b * 20 + 5:
        break
    n = n * 2
    for i in T.Parallel(64):
        s[i] = s[i] + n
    with T.thread() as tx:
        s[tx] = s[tx] * 2 - tx
T.atomic_add(H[0], n)
T.copy(s, Y[b * 64])
""",
    "multiplied": """
a = T.alloc_shared((16, 16), "int32")
c = T.alloc_fragment((16, 16), "int32")
o = T.alloc_shared((16, 16), "int32")
with T.thread() as tx:
    for r in T.serial(4):
        a[tx // 4, tx % 4 * 4 + r] = tx % 7 + r
T.clear(c)
T.gemm(a, a, c)
T.copy(c, o)
with T.thread() as tx:
    if b * 64 + tx < N:
        Y[b * 64 + tx] = o[tx // 16, tx % 16] + o[tx % 16, tx // 16]
""",
    "pipelined": """
s = T.alloc_shared((16,), "int32")
total = T.alloc_shared((64,), "int32")
T.clear(total)
for k in T.Pipelined(T.ceildiv(N, 16), num_stages=2):
    T.copy(X[k * 16], s)
    with T.thread() as tx:
        total[tx] = total[tx] + s[tx % 16] * (k + 1)
with T.thread() as tx:
    if b * 64 + tx < N:
        Y[b * 64 + tx] = total[tx]
""",
}
SIZES = (0, 1, 63, 64, 150)


def program(name):
    body = PROGRAMS[name].strip("\n").split("\n")
    return helve.parse('N = T.dyn("N")\n' + HEAD.format(name=name) + "".join(f"        {line}\n" for line in body))


def arguments(size):
    x = np.random.default_rng(size).integers(0, 40, size).astype("int32")
    return [x, np.zeros(40, "int32"), np.zeros(size, "int32")]


def expected(name, size):
    """What NumPy makes of the same."""
    x, h, y = arguments(size)
    blocks = -(-size // 64)
    tx = np.arange(size) % 64
    if name == "histogram":
        h += np.bincount(x, minlength=40).astype("int32")
    elif name == "reversed":
        padded = np.pad(x, (0, blocks * 64 - size)).reshape(-1, 64)
        y[:] = padded[:, ::-1].reshape(-1)[:size]
    elif name == "between":
        s = np.arange(64) + np.arange(3)[:, None]
        s[:, :63] *= 1 + np.arange(3)[:, None]
        s[0, :7] = np.where(size > 70, -3, s[0, :7])
        y[:] = s[0, 63 - tx] + 2 * s[1, tx // 2] + s[2, tx]
    elif name == "once":
        h[0], h[39] = blocks, 2 * blocks
        h[1 : 1 + blocks] = np.arange(blocks) + 5
        y[:] = x + tx
    elif name == "scratch":
        y[:] = [sum(t % 13 * k for k in range(t % 5 + 1)) for t in tx]
    elif name == "fragments":
        padded = np.pad(x, (0, blocks * 64 - size)).reshape(-1, 1, 64)
        s = padded * np.array([[2], [3]]) + np.arange(64)
        top = s.max(axis=2, keepdims=True)
        s = s.cumsum(axis=1)
        own = (s + s[:, :, ::-1]).sum(axis=1)
        s = s + top
        y[:] = (own + s[:, 0] + 10 * s[:, 1, ::-1]).reshape(-1)[:size]
    elif name == "counted":
        for b in range(blocks):
            n, s = 1, np.zeros(64, "int32")
            for k in range(9):
                if k * 7 > b * 20 + 5:
                    break
                n *= 2
                s = (s + n) * 2 - np.arange(64, dtype="int32")
            h[0] += n
            y[b * 64 : b * 64 + 64] = s[: size - b * 64]
    elif name == "multiplied":
        a = (np.arange(64) % 7)[:, None] + np.arange(4)
        c = a.reshape(16, 16) @ a.reshape(16, 16)
        y[:] = c[tx // 16, tx % 16] + c[tx % 16, tx // 16]
    elif name == "reduced":
        s = (np.arange(64) * 7 + np.arange(4)[:, None]) % 61
        h[:blocks] = s[0].sum()
        y[:] = s.max(axis=1)[tx % 4] + s[1].cumsum()[tx]
    elif name == "extents":
        h[0] = 64 * blocks
        y[:] = x * 2
    else:
        padded = np.pad(x, (0, -size % 16)).reshape(-1, 16)
        y[:] = (padded * (np.arange(len(padded))[:, None] + 1)).sum(axis=0)[tx % 16]
    return {1: h, 2: y}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_cpu_and_the_interpreter(name):
    for size in SIZES:
        check(program(name), arguments(size), expected(name, size))


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_stage_for_a_gpu(name):
    for size in SIZES:
        helve.testing.check_stages(program(name), lambda size=size: arguments(size), target="cuda")
    assert _core.unordered_accesses(thread_form(program(name))) == []


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    return HostKernels([thread_form(program(name)) for name in PROGRAMS], tmp_path_factory.mktemp("cuda"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text(kernels, name):
    for size in SIZES[1:]:
        given = {key: aligned(array) for key, array in zip("XHY", arguments(size))}
        kernels.run(name, -(-size // 64), given, {"N": size})
        for place, wanted in expected(name, size).items():
            np.testing.assert_array_equal(given["XHY"[place]], wanted, err_msg=f"{name}, {size}")


@needs_nvrtc
def test_nvrtc_takes_the_text():
    for name in PROGRAMS:
        (text, *_) = _core.cuda_source(_core.allocate_shared(thread_form(program(name))), prelude=True)
        assert_compiles(text)


def test_a_line_is_printed_once():
    form = thread_form(helve.parse("""@T.prim_func
def main(X: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64) as b:
        T.print("begins", X[0])
        T.assert_(X[0] >= 0)
        with T.thread() as tx:
            X[tx] = X[tx] + 1
"""))
    printed, asserted = (_core.print(form).partition(word)[0] for word in ("T.print(", "T.fail("))
    assert printed.rstrip().endswith("if tx == 0:") and "if tx_1 == 0" in asserted


def test_the_interpreter_agrees():
    arguments_of_call = arguments(150)
    interpret(program("once"), *arguments_of_call)
    for place, wanted in expected("once", 150).items():
        np.testing.assert_array_equal(arguments_of_call[place], wanted)


def product(dispatch, threads=128):
    """A product whose sums threads add up by rows, and the block scales."""
    return helve.parse(f"""@T.prim_func
def product(A: T.Tensor((128, 80), "float16"), B: T.Tensor((80, 64), "float16"), C: T.Tensor((128, 64), "float32"),
            S: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads={threads}) as bx:
        a = T.alloc_shared((128, 32), "float16")
        b = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((128, 64), "float32")
        o = T.alloc_shared((128, 64), "float32")
        own = T.alloc_fragment(({threads}, 1), "float32")
        T.clear(c)
        for k in T.Pipelined(3, num_stages=2):
            T.copy(A[0, k * 32], a)
            T.copy(B[k * 32, 0], b)
            T.gemm(a, b, c, dispatch="{dispatch}")
        T.copy(c, o)
        for tx in T.threads({threads}):
            own[tx, 0] = 0.0
            for j in T.serial(64):
                own[tx, 0] = own[tx, 0] + o[tx % 128, j]
        for tx in T.threads({threads}):
            if tx < 128:
                S[tx] = own[tx, 0]
        for i, j in T.Parallel(128, 64):
            c[i, j] = c[i, j] * 2.0
        T.copy(c, C)
""")


@pytest.mark.parametrize(("dispatch", "arch", "threads"), [
    ("mma", "sm_80", 128), ("mma", "sm_90a", 256), ("wgmma", "sm_90a", 128), ("wgmma", "sm_90a", 256)])
def test_products_by_tensor_cores(dispatch, arch, threads, tmp_path):
    random = np.random.default_rng(0)
    a, b = (random.integers(-3, 4, shape).astype("float16") for shape in ((128, 80), (80, 64)))
    sums = a.astype("float32") @ b.astype("float32")
    empty = [np.zeros((128, 64), "float32"), np.zeros(128, "float32")]
    function = product(dispatch, threads)
    stage = helve.testing.lowering_stages(function, target="cuda", arch=arch)[-1][1]
    assert ("T.mma(" if dispatch == "mma" else "T.wgmma(") in _core.print(stage)
    helve.testing.assert_round_trip(stage)
    found = [array.copy() for array in empty]
    helve.testing.interpret(stage, a, b, *found, check="fences")
    given = dict(zip("ABCS", map(aligned, (a, b, *empty))))
    HostKernels([stage], tmp_path, names=["product"]).run("product", 1, given)
    for c, s in (found, (given["C"], given["S"])):
        assert np.array_equal(c, 2 * sums) and np.array_equal(s, sums.sum(axis=1))
    assert _core.unordered_accesses(stage) == []


def in_roles():
    """Code of threads, and what the block does once, in the role that takes from a ring."""
    return helve.parse("""@T.prim_func
def in_roles(A: T.Tensor((8, 256), "float32"), S: T.Tensor((256,), "float32"), TURNS: T.Tensor((1,), "int32")):
    with T.Kernel(1, threads=128) as b:
        a = T.alloc_shared((1, 256), "float32", slots=2)
        ring = T.alloc_barrier(2)
        with T.warpgroup(0):
            total = T.alloc_shared((256,), "float32")
            T.clear(total)
            for k in T.serial(8):
                T.ring_wait(ring)
                for tx in T.threads(128):
                    total[tx * 2] = total[tx * 2] + a[0, tx * 2]
                    total[tx * 2 + 1] = total[tx * 2 + 1] - a[0, tx * 2 + 1]
                T.atomic_add(TURNS[0], 1)
                T.ring_release(ring)
            T.copy(total, S)
        with T.warpgroup(1, elect=True):
            for k in T.serial(8):
                T.ring_acquire(ring)
                T.tma_load(A[k : k + 1, 0:256], a, ring)
                T.ring_commit(ring)
""")


def test_a_role_that_takes_from_a_ring(tmp_path):
    a = np.random.default_rng(0).integers(-9, 9, (8, 256)).astype("float32")
    sums = a.sum(axis=0) * np.where(np.arange(256) % 2, -1, 1)
    for target in ("interp", "llvm"):
        s, turns = np.zeros(256, "float32"), np.zeros(1, "int32")
        helve.compile(in_roles(), target=target)(a, s, turns)
        assert np.array_equal(s, sums) and turns == 8, target
    stage = helve.testing.lowering_stages(in_roles(), target="cuda", arch="sm_90a")[-1][1]
    given = dict(zip(("A", "S", "TURNS"), map(aligned, (a, np.zeros(256, "float32"), np.zeros(1, "int32")))))
    HostKernels([stage], tmp_path, names=["in_roles"]).run("in_roles", 1, given)
    assert np.array_equal(given["S"], sums) and given["TURNS"] == 8
