"""Index arithmetic in machine words: exact, or refused at the call; 32 bits only where they hold every value."""

import re

import helve
import helve.testing
import numpy as np
import pytest
from helve import _core

EDGE = 2**31


def compiled(text, **options):
    return helve.compile(helve.parse(text), **options)


def huge(extent):
    """A tensor of any extent over one element."""
    return np.broadcast_to(np.int8(0), (extent,))


HEAD = (
    'M = T.dyn("M")\nN = T.dyn("N")\n@T.prim_func\n'
    'def main(n: T.index, A: T.Tensor((M,), "int8", strides=(0,)), B: T.Tensor((N,), "int8", strides=(0,)), '
    'C: T.Tensor((1,), "int64")):\n'
    "    with T.Kernel(1) as b:\n"
)


@pytest.mark.parametrize(
    "value, exact, reach",
    [
        ("M * N", lambda m, n, k: m * n, lambda m, n, k: m * n),
        ("(M * N + 5) // 16", lambda m, n, k: (m * n + 5) // 16, lambda m, n, k: m * n + 5),
        ("(M - N) * (N + 3)", lambda m, n, k: (m - n) * (n + 3), lambda m, n, k: (m + n) * (n + 3)),
        ("M * n", lambda m, n, k: m * k, lambda m, n, k: m * abs(k)),
        ("n + 1", lambda m, n, k: k + 1, lambda m, n, k: abs(k) + 1),
        ("T.min(M * N, 7)", lambda m, n, k: min(m * n, 7), lambda m, n, k: m * n),
        ("M * N % 1000", lambda m, n, k: m * n % 1000, lambda m, n, k: m * n),
        ("M * 16 - N * n", lambda m, n, k: m * 16 - n * k, lambda m, n, k: m * 16 + n * abs(k)),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_a_call_is_exact_or_refused(value, exact, reach):
    """Refused is just what can overflow by the sizes of its parts."""
    kernel = compiled(HEAD + f'        C[0] = T.cast({value}, "int64")\n')
    ran = refused = 0
    for m in (0, 1, 3, EDGE, 2**40, 2**48 - 1):
        for n in (1, 5, EDGE - 1, 2**45):
            for k in (0, 1, -3, EDGE, -(2**62), 2**63 - 1):
                c = np.full(1, -1, np.int64)
                try:
                    kernel(k, huge(m), huge(n), c)
                except helve.Error as error:
                    assert error.code == "HV0625"
                    assert c[0] == -1, "a refused call writes nothing"
                    assert reach(m, n, k) >= 2**63
                    refused += 1
                else:
                    assert c[0] == exact(m, n, k)
                    ran += 1
    assert ran > 40
    assert refused > 0


def test_the_interpreter_refuses_no_call_that_machine_code_runs():
    text = HEAD + ('        for i in T.serial(T.min(M, 2)):\n'
                   '            C[0] = C[0] + T.cast((i + 1) * N * n, "int64")\n')
    machine, reference = compiled(text), compiled(text, target="interp")
    for m in (0, 2):
        for n in (1, EDGE, 2**40):
            for k in (0, -7, 2**22, 2**23, 2**40):
                results = []
                for kernel in (machine, reference):
                    c = np.zeros(1, np.int64)
                    try:
                        kernel(k, huge(m), huge(n), c)
                        results.append(c[0])
                    except helve.Error as error:
                        results.append(error.code)
                if results[0] != "HV0625":
                    assert results[0] == results[1]
                else:
                    assert results[1] == "HV0701" or m == 0 or n * k * 4 >= 2**63


def test_strides_and_extents_that_make_an_address():
    text = (
        'M = T.dyn("M")\n@T.prim_func\n'
        'def main(ld: T.index, A: T.Tensor((M, 2), "int32", strides=(ld, 1)), B: T.Tensor((2,), "int32")):\n'
        "    with T.Kernel(1) as b:\n        for i in T.serial(M):\n            B[0] = B[0] + A[i, 1]\n"
    )
    kernel = compiled(text)
    memory = np.arange(12, dtype=np.int32)
    for stride in (0, 2, 5, -3):
        base = memory[6:] if stride < 0 else memory
        a = np.lib.stride_tricks.as_strided(base, (2, 2), (stride * 4, 4))
        b = np.zeros(2, np.int32)
        kernel(stride, a, b)
        assert b[0] == a[0, 1] + a[1, 1]
    a = np.lib.stride_tricks.as_strided(memory, (1, 2),
                                        (2**62, 4))  # one row: its stride is never used, and would not fit
    with pytest.raises(helve.Error) as caught:
        kernel(2**61, a, np.zeros(2, np.int32))
    assert caught.value.code == "HV0625"


@pytest.mark.parametrize("begin", [0, EDGE - 40, EDGE - 1, 2 * EDGE - 20])
@pytest.mark.parametrize("divisor", [1, 3, 7, 8, 48, EDGE - 1, EDGE, EDGE + 1, 3 * EDGE])
def test_quotients_and_lanes_at_the_edge_of_32_bits(begin, divisor):
    count = 70
    text = (
        f'@T.prim_func\n'
        f'def main(Q: T.Tensor(({count},), "int64"), R: T.Tensor(({count},), "int64"), '
        f'F: T.Tensor(({count},), "float64"), '
        f'L: T.Tensor(({count},), "int64")):\n    with T.Kernel(1) as b:\n'
        f"        for i in T.Parallel({count}):\n            Q[i] = T.cast((i + {begin}) // {divisor}, \"int64\")\n"
        f'            R[i] = T.cast((i + {begin} - 35) % {divisor}, "int64")\n'
        f'            F[i] = T.cast(i + {begin}, "float64")\n'
        f'            L[i] = T.cast(T.if_then_else(i + {begin} < {EDGE}, i * 3, i - {begin}), "int64")\n'
    )
    got = [np.zeros(count, t) for t in ("int64", "int64", "float64", "int64")]
    compiled(text)(*got)
    i = np.arange(count)
    np.testing.assert_array_equal(got[0], (i + begin) // divisor)
    np.testing.assert_array_equal(got[1], (i + begin - 35) % divisor)
    np.testing.assert_array_equal(got[2], (i + begin).astype(np.float64))
    np.testing.assert_array_equal(got[3], np.where(i + begin < EDGE, i * 3, i - begin))


def test_data_of_64_bits_carries_no_promise():
    """An index that is read from int64 may be anything: its arithmetic wraps, and is not marked as if it could not."""
    text = (
        '@T.prim_func\n'
        'def main(I: T.Tensor((40,), "{0}"), A: T.Tensor((1000,), "int32"), B: T.Tensor((40,), "int32")):\n'
        "    with T.Kernel(1) as b:\n        for i in T.serial(40):\n            B[i] = A[T.index(I[i]) * 21 + 5]\n"
    )
    far, near = compiled(text.format("int64")), compiled(text.format("int32"))
    products = lambda kernel: re.findall(r"mul (nsw )?i64 [^\n]*, (?:21|84)\b", kernel.source("llvm"))  # noqa: E731
    assert "nsw " not in products(far)
    assert "nsw" in near.source("llvm")
    rows = np.random.default_rng(1).integers(0, 47, 40)
    a = np.arange(1000, dtype=np.int32)
    for kernel, dtype in ((far, np.int64), (near, np.int32)):
        b = np.zeros(40, np.int32)
        kernel(rows.astype(dtype), a, b)
        np.testing.assert_array_equal(b, a[rows * 21 + 5])


def test_shifts_by_what_guards_keep_small():
    """Among threads a loop of 37 runs as a digit of 64 values under a guard; its powers of two stay those of 37."""
    text = (
        '@T.prim_func\n'
        'def main(A: T.Tensor((8, 37), "int64"), B: T.Tensor((3, 4), "int64")):\n'
        "    with T.Kernel(3) as b:\n"
        '        row = T.alloc_shared((4,), "int64")\n'
        "        T.fill(row, 0)\n"
        "        for j, i in T.Parallel(8, 37):\n"
        "            if b == 0:\n"
        '                A[j, i] = T.cast(1 << i, "int64")\n'
        "        for j, i in T.Parallel(8, 37):\n"
        "            if b == i and j == 0:\n"
        '                row[(1 << i % 4) % 4] = T.cast(1 << i % 4, "int64")\n'
        "        for i in T.Parallel(4):\n"
        "            B[b, i] = row[i]\n"
    )
    function = helve.parse(text)
    powers = np.broadcast_to(np.int64(1) << np.arange(37, dtype=np.int64), (8, 37))
    rows = np.int64([[0, 1, 0, 0], [0, 0, 2, 0], [4, 0, 0, 0]])

    def run(call):
        given = [np.zeros((8, 37), np.int64), np.zeros((3, 4), np.int64)]
        call(*given)
        np.testing.assert_array_equal(given[0], powers)
        np.testing.assert_array_equal(given[1], rows)

    run(helve.compile(function, target="llvm"))
    for arch in ("sm_80", "sm_90a"):
        stages = helve.testing.lowering_stages(function, target="cuda", arch=arch)
        for _, stage in helve.testing.changed_stages(stages):
            run(lambda *given: helve.testing.interpret(stage, *given, check="all"))  # noqa: B023
        source, _ = _core.cuda_source(stages[-1][1], cluster_blocks={"sm_80": 1, "sm_90a": 16}[arch])
        assert "__global__" in source


POWERS = """N = T.dyn("N")
@T.prim_func
def main(A: T.Tensor((N,), "float64"), B: T.Tensor((3, N), "int64")):
    with T.Kernel(3, threads=64) as b:
        for i in T.Parallel(1):
            for j in T.vectorized(N):
                if b == 0:
                    A[j] = T.cast(1 << j, "float64")
        for i, j in T.Parallel(5, N):
            if i == b:
                B[b, j] = T.cast(j * 144115188075855872 + (1 << j + 1) % 7, "int64")
"""


def check_powers(kernel, greatest):
    """Calls of every extent up to `greatest` are right, all larger ones are refused before anything is written."""
    for n in (0, 1, 2, 7, 8, 9, 31, 32, 33, 48, greatest - 1, greatest, greatest + 1, 64, 65, 200):
        a, b = np.full(n, -1.0), np.full((3, n), -1, np.int64)
        if n > greatest:
            with pytest.raises(helve.Error) as caught:
                kernel(a, b)
            assert caught.value.code == "HV0625"
            assert caught.value.message.endswith(f"with N={n}")
            assert (a == -1).all()
            assert (b == -1).all()
            continue
        kernel(a, b)
        j = np.arange(n, dtype=np.int64)
        np.testing.assert_array_equal(a, 2.0**j)
        np.testing.assert_array_equal(b, np.broadcast_to(j * 2**57 + np.int64(2)**(j + 1) % 7, (3, n)))


def test_a_divided_loop_asks_no_more_than_the_loop():
    """Vectors and threads compute j as a sum under the guard of its extent; the call needs what the loop needs."""
    check_powers(compiled(POWERS), 62)
    function = helve.parse(POWERS)
    for arch in ("sm_80", "sm_90a"):
        *_, (_, stage) = helve.testing.lowering_stages(function, target="cuda", arch=arch)
        for n in (1, 8, 40, 62):
            a, b = np.zeros(n), np.zeros((3, n), np.int64)
            helve.testing.interpret(stage, a, b, check="all")
            np.testing.assert_array_equal(a, 2.0**np.arange(n))


@pytest.mark.parametrize("dividend", ["n * 5", "-n * 5", "M - n"])
def test_a_branch_that_arguments_decide_refuses_no_call_of_the_other(dividend):
    """What a branch requires is known under its condition; a call that does not take it has to satisfy it as well."""
    kernel = compiled(HEAD + (f'        if n < 0:\n            C[0] = T.cast(({dividend}) // 8, "int64")\n'
                              f'        else:\n            C[0] = T.cast(({dividend}) // 8 + 1, "int64")\n'))
    for n in (-(2**60), -EDGE, -7, -1, 0, 1, 2, 900, EDGE, 2**60):
        for m in (1, 2**40):
            c = np.zeros(1, np.int64)
            kernel(n, huge(m), huge(1), c)
            assert c[0] == eval(dividend, {"n": n, "M": m}) // 8 + (n >= 0)
    for n in (2**63 - 1, -(2**63) + 1):
        with pytest.raises(helve.Error) as caught:
            kernel(n, huge(2**20), huge(1), np.zeros(1, np.int64))
        assert caught.value.code == "HV0625"


def test_blocks_that_share_a_persistent_loop_ask_no_more_than_it():
    """Each block's turns end with the loop, which the quotient of their number says."""
    kernel = compiled(
        'M = T.dyn("M")\n@T.prim_func\ndef main(A: T.Tensor((M,), "int64")):\n'
        "    with T.Kernel(3, 3) as (x, y):\n        for i in T.Persistent([M]):\n"
        '            A[i] = T.cast(1 << i * 3, "int64")\n')
    for m in (0, 1, 2, 9, 10, 20):
        a = np.zeros(m, np.int64)
        kernel(a)
        np.testing.assert_array_equal(a, np.int64(1) << 3 * np.arange(m, dtype=np.int64))
    with pytest.raises(helve.Error) as caught:
        kernel(np.zeros(23, np.int64))
    assert caught.value.code == "HV0625"


@pytest.mark.parametrize("loop", ["T.serial", "T.Parallel", "T.vectorized"])
def test_a_parameter_of_64_bits_is_the_extent_of_a_loop(loop):
    """A part of its type's range, as the number of vectors is, bounds no more than the type."""
    kernel = compiled('@T.prim_func\ndef main(u: T.int64, A: T.Tensor((2, 200), "int32")):\n'
                      f"    with T.Kernel(1) as b:\n        for i in {loop}(T.index(u)):\n"
                      "            A[1, i] = T.int32(i + 1)\n")
    for extent in (0, 1, 63, 64, 65, 200):
        a = np.zeros((2, 200), np.int32)
        kernel(extent, a)
        wanted = np.zeros((2, 200), np.int32)
        wanted[1, :extent] = np.arange(1, extent + 1)
        np.testing.assert_array_equal(a, wanted)


def test_a_shift_that_a_block_number_limits():
    """The guard of a loop divided among threads names the block, whose number extents limit."""
    text = ('N = T.dyn("N")\n@T.prim_func\ndef main(A: T.Tensor((N, 64), "int64")):\n'
            "    with T.Kernel(N, threads=32) as b:\n        for i in T.Parallel(b):\n"
            '            A[b, i] = T.cast(1 << i, "int64")\n')
    kernel = compiled(text)
    for n in (1, 5, 62):
        a = np.zeros((n, 64), np.int64)
        kernel(a)
        np.testing.assert_array_equal(a[:, :n], np.tril(np.broadcast_to(np.int64(1) << np.arange(n), (n, n)), -1))
    threads = compiled(text, target="cuda", arch="sm_80")
    assert re.findall("check 0 <= (.*<<.*) else HV0625", threads.source("plan")) == ["(1 << N)"]


def test_a_value_that_is_read_in_a_divided_loop_is_under_its_guards():
    """Behind a name as well: iteration i of block b runs for i < b, so no power is above 4."""
    text = ('@T.prim_func\ndef main(A: T.Tensor((4,), "int64"), B: T.Tensor((4, 3), "int64")):\n'
            "    with T.Kernel(4, threads=256) as b:\n        for i in T.Parallel(b):\n"
            "            x = A[(1 << i) % 4]\n            B[b, i] = x + 1\n")
    function = helve.parse(text)
    a = np.int64([10, 20, 30, 40])
    wanted = np.tril(np.broadcast_to(a[[1, 2, 0]] + 1, (4, 3)), -1)
    for arch in ("sm_80", "sm_90a"):
        stages = helve.testing.lowering_stages(function, target="cuda", arch=arch)
        for _, stage in helve.testing.changed_stages(stages):
            b = np.zeros((4, 3), np.int64)
            helve.testing.interpret(stage, a, b, check="all")
            np.testing.assert_array_equal(b, wanted)
        source, _ = _core.cuda_source(stages[-1][1], cluster_blocks={"sm_80": 1, "sm_90a": 16}[arch])
        assert "__global__" in source
    b = np.zeros((4, 3), np.int64)
    compiled(text)(a, b)
    np.testing.assert_array_equal(b, wanted)


@pytest.mark.parametrize("host", ["if n >= 0 and n < 20:", "if not (n < 0 or n > 19):"])
def test_a_condition_of_the_host_keeps_a_call_from_what_its_kernel_requires(host):
    """A kernel that is not launched asks nothing."""
    text = ('@T.prim_func\ndef main(n: T.index, A: T.Tensor((2,), "int64"), B: T.Tensor((3,), "int64")):\n'
            f"    {host}\n        with T.Kernel(3) as b:\n            B[b] = A[((1 << n) + b) % 2]\n")
    kernel = compiled(text)
    a = np.int64([7, 2])
    for n in (0, 3, 19, 20, 62, 63, 200, 2**40):
        b = np.zeros(3, np.int64)
        kernel(n, a, b)
        np.testing.assert_array_equal(b, [0, 0, 0] if n > 19 else [7, 2, 7] if n else [2, 7, 2])


UINT64 = """@T.prim_func
def main(A: T.Tensor((4,), "int64"), k: T.uint64):
{host}    with T.Kernel({grid}) as b:
{body}"""
USES = {
    "an extent": UINT64.format(host="", grid="1", body="        for i in T.serial(T.index(k)):\n"
                                                       "            if i < 4:\n                A[i] = 1\n"),
    "a grid": UINT64.format(host="", grid="T.index(k)", body="        if b < 4:\n            A[b] = 1\n"),
    "a named value": UINT64.format(host="", grid="1", body="        x = k\n        for i in T.serial(4):\n"
                                                           "            if i < T.index(x):\n"
                                                           "                A[i] = 1\n"),
    "a subscript": UINT64.format(host="", grid="1", body="        for i in T.serial(4):\n"
                                                         "            if T.index(k) > i:\n"
                                                         "                A[T.index(k) - (T.index(k) - i)] = 1\n"),
    "the host": UINT64.format(host="    A_ = T.alloc_global((1,), 'int64')\n", grid="1",
                              body="        A_[0] = 1\n    for i in T.serial(T.index(k)):\n"
                                   "        with T.Kernel(1) as b:\n            A[i] = A_[0]\n"),
}  # fmt: skip


@pytest.mark.parametrize("target", ["llvm", "interp"])
@pytest.mark.parametrize("use", USES)
def test_a_uint64_that_is_no_index_is_refused_at_the_call(use, target):
    kernel = compiled(USES[use], target=target)
    for k in (0, 3, 4):
        a = np.zeros(4, np.int64)
        kernel(a, k)
        np.testing.assert_array_equal(a, np.arange(4) < k)
    for k in (2**63, 2**64 - 1):
        with pytest.raises(helve.Error) as caught:
            kernel(a, k)
        assert caught.value.code == "HV0615"
        assert str(k) in caught.value.message
    if target == "llvm":
        assert "scalar k: uint64 below 2^63 -> k" in kernel.source("plan")


@pytest.mark.parametrize("target", ["llvm", "interp"])
def test_a_uint64_as_data_has_all_its_values(target):
    kernel = compiled(UINT64.format(host="", grid="1", body="        A[0] = T.cast(k // T.cast(2, \"uint64\"), "
                                                            "\"int64\")\n"), target=target)  # fmt: skip
    a = np.zeros(4, np.int64)
    kernel(a, 2**64 - 1)
    assert a[0] == 2**63 - 1


def test_arithmetic_on_a_uint64_index_is_exact_or_refused():
    kernel = compiled(UINT64.format(host="", grid="1", body="        A[0] = T.cast(T.index(k) * 3 - 5, \"int64\")\n"))
    for k in (0, 1, 2**61, 2**63 // 3, 2**62, 2**63 - 1):
        a = np.zeros(4, np.int64)
        if k * 3 + 5 < 2**63:
            kernel(a, k)
            assert a[0] == k * 3 - 5
        else:
            with pytest.raises(helve.Error) as caught:
                kernel(a, k)
            assert caught.value.code == "HV0625"


def test_a_loaded_uint64_is_checked_by_the_interpreter():
    text = (
        '@T.prim_func\ndef main(I: T.Tensor((2,), "uint64"), A: T.Tensor((2,), "int64")):\n'
        '    with T.Kernel(2) as b:\n        A[b] = T.cast(T.index(I[b]), "int64")\n'
    )
    a = np.zeros(2, np.int64)
    compiled(text, target="interp")(np.array([1, 2**63 - 1], np.uint64), a)
    np.testing.assert_array_equal(a, [1, 2**63 - 1])
    with pytest.raises(helve.Error) as caught:
        compiled(text, target="interp")(np.array([1, 2**63], np.uint64), a)
    assert caught.value.code == "HV0701"
    compiled(text)(np.array([1, 2**63], np.uint64), a)
    np.testing.assert_array_equal(a, [1, -(2**63)])
