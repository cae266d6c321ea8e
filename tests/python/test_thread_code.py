"""Code of single threads: blocks of several dimensions, numbers of threads, barriers and shuffles, on every target."""

import helve
import helve.testing
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned, interpret
from differential import check, dtype_of
from helve import T, _core
from nvrtc import assert_compiles, needs_nvrtc
from test_cuda_lowering import thread_form

LANES = np.arange(64) % 32
WARPS = np.arange(64) // 32 * 32
SOURCES = {
    "T.shfl_xor(x, 5)": LANES ^ 5,
    "T.shfl_xor(x, n)": LANES ^ 6,
    "T.shfl_sync(x, 3)": 0 * LANES + 3,
    "T.shfl_sync(x, tx * 7 + n)": (LANES * 7 + WARPS * 7 + 6) % 32,
    "T.shfl_up(x, 4)": np.where(LANES >= 4, LANES - 4, LANES),
    "T.shfl_up(x, n)": np.where(LANES >= 6, LANES - 6, LANES),
    "T.shfl_down(x, 1)": np.where(LANES < 31, LANES + 1, LANES),
    "T.shfl_down(x, n)": np.where(LANES < 26, LANES + 6, LANES),
}
TYPES = ["float32", "float64", "float16", "bfloat16", "float8_e4m3", "int8", "uint16", "int32", "uint64", "bool"]


def exchange(call, dtype="float32"):
    return helve.parse(f"""@T.prim_func
def main(A: T.Tensor((2, 64), "{dtype}"), n: T.index, B: T.Tensor((2, 64), "{dtype}")):
    with T.Kernel(2, threads=64) as b:
        with T.thread() as tx:
            x = A[b, tx]
            B[b, tx] = {call}
""")


def elements(dtype):
    kind = dtype_of({"float8_e4m3": "float8_e4m3fn"}.get(dtype, dtype))
    return (np.arange(128) % 61 % (2 if dtype == "bool" else 61)).reshape(2, 64).astype(kind)


@pytest.mark.parametrize("call", SOURCES)
def test_shuffles(call):
    a = elements("float32")
    wanted = a[:, WARPS + SOURCES[call]]
    arguments = [a, 6, np.zeros_like(a)]
    check(exchange(call), arguments, {2: wanted})
    helve.testing.check_stages(exchange(call), lambda: [a.copy(), 6, np.zeros_like(a)], target="cuda")


@pytest.mark.parametrize("dtype", TYPES)
def test_shuffles_of_every_type(dtype):
    a = elements(dtype)
    check(exchange("T.shfl_up(x, 4)", dtype), [a, 6, np.zeros_like(a)], {2: a[:, WARPS + SOURCES["T.shfl_up(x, 4)"]]})


def warp_sums(n=96):
    """The usual sum over a warp by shuffles, then over the warps of a block through shared memory."""

    @T.prim_func
    def main(A: T.Tensor((3, n), "float32"), S: T.Tensor((3,), "float32")):
        with T.Kernel(3, threads=n) as b:
            parts = T.alloc_shared((n // 32,), "float32")
            with T.thread() as tx:
                total = T.alloc_var("float32", A[b, tx])
                lane = tx % 32
                for k in T.serial(5):
                    total = total + T.shfl_xor(total, 1 << k)
                if lane == 0:
                    parts[tx // 32] = total
                T.sync_threads()
                if tx == 0:
                    for w in T.serial(n // 32):
                        if w > 0:
                            total = total + parts[w]
                    S[b] = total

    return main


def sum_arguments():
    return [np.random.default_rng(0).integers(-9, 9, (3, 96)).astype("float32"), np.zeros(3, "float32")]


def test_sums_over_warps():
    a, s = sum_arguments()
    check(warp_sums(), [a, s], {1: a.sum(axis=1)}, rtol=0, atol=0)
    helve.testing.check_stages(warp_sums(), sum_arguments, target="cuda")
    assert _core.unordered_accesses(thread_form(warp_sums())) == []


def test_the_program_is_one_of_loops_without_barriers():
    text = warp_sums().script()
    assert text == """@T.prim_func
def main(A: T.Tensor((3, 96), "float32"), S: T.Tensor((3,), "float32")):
    with T.Kernel(3, threads=96) as b:
        parts = T.alloc_shared((3,), "float32")
        total = T.alloc_fragment((96, 1), "float32")
        for tx in T.threads(96):
            total[tx, 0] = A[b, tx]
            lane = tx % 32
        for k in T.serial(5):
            lanes = T.alloc_fragment((96, 1), "float32")
            for tx_1 in T.threads(96):
                lanes[tx_1, 0] = total[tx_1, 0]
            for tx_2 in T.threads(96):
                received = lanes[tx_2 // 32 * 32 + (tx_2 % 32 ^ 1 << k) % 32, 0]
                total[tx_2, 0] = total[tx_2, 0] + received
        for tx_3 in T.threads(96):
            lane_1 = tx_3 % 32
            if lane_1 == 0:
                parts[tx_3 // 32] = total[tx_3, 0]
        for tx_4 in T.threads(96):
            if tx_4 == 0:
                for w in T.serial(3):
                    if w > 0:
                        total[tx_4, 0] = total[tx_4, 0] + parts[w]
                S[b] = total[tx_4, 0]
"""
    helve.testing.assert_round_trip(warp_sums().function)


def kept(n=64):
    """What threads have from before a barrier: names of values and of indices, private arrays, old values."""

    @T.prim_func
    def main(A: T.Tensor((n,), "int32"), I: T.Tensor((n,), "int32"), COUNT: T.Tensor((n,), "int32"),
             B: T.Tensor((n, 4), "int32")):
        with T.Kernel(1, threads=n):
            s = T.alloc_shared((n,), "int32")
            with T.thread() as tx:
                x = A[tx]
                other = n - 1 - tx
                place = T.index(I[tx])
                even = x % 2 == 0
                own = T.alloc_local((2, 2), "int32")
                own[0, 1] = x * 3
                own[1, 0] = x + 1
                old = T.atomic_add(COUNT[tx], 1, return_prev=True)
                s[tx] = x
                T.sync_threads()
                y = s[other] + x
                T.sync_threads()
                s[other] = y
                T.sync_threads()
                B[tx, 0] = s[place]
                B[tx, 1] = own[0, 1] - own[1, 0]
                B[tx, 2] = T.if_then_else(even, y, x)
                B[tx, 3] = old

    return main


def kept_arguments():
    rng = np.random.default_rng(3)
    return [rng.integers(-50, 50, 64).astype("int32"), rng.permutation(64).astype("int32"),
            np.arange(64, dtype="int32"), np.zeros((64, 4), "int32")]


def test_threads_keep_what_they_have():
    a, place, count, b = kept_arguments()
    y = a[::-1] + a
    s = y[::-1]
    wanted = np.stack([s[place], a * 3 - (a + 1), np.where(a % 2 == 0, y, a), count], axis=1)
    check(kept(), [a, place, count, b], {2: count + 1, 3: wanted})
    helve.testing.check_stages(kept(), kept_arguments, target="cuda")


def matrices(shape):
    extents = ", ".join(map(str, shape))
    names = ", ".join(f"t{c}" for c in "xyz"[: len(shape)])
    return helve.parse(f"""@T.prim_func
def main(A: T.Tensor(({", ".join(map(str, shape[::-1]))},), "int32"), B: T.Tensor(({shape[0]},), "int32")):
    with T.Kernel(1, threads=({extents},)) as b:
        s = T.alloc_shared(({", ".join(map(str, shape[::-1]))},), "int32")
        with T.thread() as ({names},):
            s[{", ".join(f"t{c}" for c in "xyz"[: len(shape)][::-1])}] = A[{", ".join(
                f"t{c}" for c in "xyz"[: len(shape)][::-1])}] * 2
            T.sync_threads()
            if {" and ".join(f"t{c} == 0" for c in "yz"[: len(shape) - 1]) or "True"}:
                B[T.get_thread_binding(0)] = s[{", ".join(["0"] * (len(shape) - 1) + ["tx"])}]
""")


@pytest.mark.parametrize("shape", [(32,), (16, 4), (8, 4, 3)])
def test_threads_of_several_dimensions(shape):
    a = np.arange(np.prod(shape), dtype="int32").reshape(shape[::-1])
    wanted = 2 * a[(0,) * (len(shape) - 1)]
    check(matrices(shape), [a, np.zeros(shape[0], "int32")], {1: wanted})
    helve.testing.check_stages(matrices(shape), lambda: [a.copy(), np.zeros(shape[0], "int32")], target="cuda")


def test_numbers_of_threads_and_blocks():
    @T.prim_func
    def main(B: T.Tensor((2, 3, 4, 8, 4), "int32")):
        with T.Kernel(2, 3, threads=(8, 4)) as (i, j):
            for t in T.threads(32):
                tx, ty = T.get_thread_binding(0), T.get_thread_binding(1)
                B[T.get_block_binding(0), T.get_block_binding(1), ty, tx, 0] = T.cast(tx, "int32")
                B[i, j, ty, tx, 1] = T.cast(ty, "int32")
                B[i, j, ty, tx, 2] = T.cast(t, "int32")
            for tx, ty in T.threads(8, 4):
                B[i, j, ty, tx, 3] = T.cast(ty * 8 + tx, "int32")

    ty, tx = np.mgrid[:4, :8]
    wanted = np.broadcast_to(np.stack([tx, ty, ty * 8 + tx, ty * 8 + tx], axis=-1), (2, 3, 4, 8, 4)).astype("int32")
    check(main, [np.zeros((2, 3, 4, 8, 4), "int32")], {0: wanted})


def test_barriers_under_what_all_threads_take_alike():
    """Loops over bounds from tensors, branches on parameters, and loops in loops."""

    @T.prim_func
    def main(N: T.Tensor((1,), "int32"), A: T.Tensor((32,), "int32"), flag: T.bool, B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((32,), "int32")
            with T.thread() as tx:
                steps = N[0]
                x = T.alloc_var("int32", A[tx])
                for k in T.serial(steps):
                    if flag:
                        s[tx] = x
                        T.sync_threads()
                        for _ in T.unroll(2):
                            x = x + s[(tx + 1) % 32]
                        T.sync_threads()
                    else:
                        x = T.shfl_down(x, 1)
                B[tx] = x

    a = np.arange(32, dtype="int32")
    for flag in (True, False):
        wanted = a.copy()
        for _ in range(3):
            wanted = wanted + 2 * np.roll(wanted, -1) if flag else np.append(wanted[1:], wanted[-1])
        check(main, [np.int32([3]), a, flag, np.zeros(32, "int32")], {3: wanted})
        helve.testing.check_stages(main, lambda: [np.int32([3]), a.copy(), flag, np.zeros(32, "int32")], target="cuda")


def test_a_missing_barrier_is_the_compilers_matter():
    """Two loops over threads are ordered for the whole block; one loop is not, and the interpreter says so."""

    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((32,), "int32")
            with T.thread() as tx:
                s[tx] = A[tx]
                B[tx] = s[31 - tx]

    with pytest.raises(helve.Error) as found:
        helve.testing.interpret(main.function, np.zeros(32, "int32"), np.zeros(32, "int32"), check="all")
    assert found.value.code in ("HV0704", "HV0705")


TEXTS = {"sums": warp_sums, "kept": kept, **{f"shuffle{n}": lambda call=call: exchange(call)
                                             for n, call in enumerate(SOURCES)},
         **{f"type_{dtype}": lambda dtype=dtype: exchange("T.shfl_sync(x, 9)", dtype) for dtype in TYPES}}
ARGUMENTS = {"sums": lambda: (3, dict(zip("AS", sum_arguments())), {}),
             "kept": lambda: (1, dict(zip(("A", "I", "COUNT", "B"), kept_arguments())), {})}


def text_arguments(name):
    if name in ARGUMENTS:
        return ARGUMENTS[name]()
    a = elements(name.removeprefix("type_") if name.startswith("type_") else "float32")
    return 2, {"A": a, "B": np.zeros_like(a)}, {"n": 6}


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    forms = [thread_form(make()) for make in TEXTS.values()]
    folder = tmp_path_factory.mktemp("cuda")
    return [HostKernels(forms, folder, prelude, list(TEXTS)) for prelude in (False, True)]


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("prelude", [False, True])
def test_the_text(kernels, name, prelude):
    blocks, arrays, numbers = text_arguments(name)
    program = TEXTS[name]()
    wanted = [numbers[param.name] if param.name in numbers else arrays[param.name].copy()
              for param in program.function.params]
    interpret(program, *wanted)
    given = {key: aligned(array) for key, array in arrays.items()}
    kernels[prelude].run(name, blocks, given, numbers)
    for param, expected in zip(program.function.params, wanted):
        if param.name in given:
            np.testing.assert_array_equal(given[param.name], expected)


def test_lanes_are_read_by_shuffles():
    (text, *_) = _core.cuda_source(thread_form(exchange("T.shfl_xor(x, 5)")))
    assert "helve_shuffle_xor(lanes[0], 5)" in text and "__syncthreads" not in text
    (text, *_) = _core.cuda_source(thread_form(exchange("T.shfl_sync(x, 3)")))
    assert "helve_shuffle(lanes[0], 3)" in text and "__syncthreads" not in text


@needs_nvrtc
@pytest.mark.parametrize("name", TEXTS)
def test_the_text_compiles(name):
    assert_compiles(_core.cuda_source(thread_form(TEXTS[name]()))[0])
