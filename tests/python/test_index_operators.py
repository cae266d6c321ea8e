"""Every operator on index values at the ends of what machine words hold: exact, or refused before anything runs.

Index arithmetic is that of whole numbers. Python computes what a program means; the interpreter has it or says where
64 bits end, machine code has it or refuses the call, and so does every lowered stage; nobody gives another number.
"""

import helve
import helve.testing
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned

EDGES = [0, 1, -1, 2, 3, -7, 31, 32, 33, 61, 62, 63, 64, 65, 70, -63, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32,
         2**61, 2**62 - 1, 2**62, 2**62 + 1, -(2**62), 2**63 - 2, 2**63 - 1, -(2**63), -(2**63) + 1]


def shift(a, n):
    if n < 0:
        raise ValueError
    return a << n if a == 0 or n < 200 else a << 200


def unshift(a, n):
    if n < 0:
        raise ValueError
    return a >> min(n, 200)


# Of two parameters m and n: the text, and what it means.
OPERATORS = {
    "m + n": lambda m, n: m + n, "m - n": lambda m, n: m - n, "m * n": lambda m, n: m * n,
    "m // n": lambda m, n: m // n, "m % n": lambda m, n: m % n, "-m": lambda m, n: -m, "~m": lambda m, n: ~m,
    "m // -1": lambda m, n: m // -1, "m % -1": lambda m, n: 0, "T.abs(m)": lambda m, n: abs(m),
    "m & n": lambda m, n: m & n, "m | n": lambda m, n: m | n, "m ^ n": lambda m, n: m ^ n,
    "T.min(m, n)": lambda m, n: min(m, n), "T.max(m, n)": lambda m, n: max(m, n),
    "m if m < n else n": lambda m, n: m if m < n else n, "m << n": shift, "m >> n": unshift,
    "1 << n": lambda m, n: shift(1, n), "-1 << n": lambda m, n: shift(-1, n), "3 << n": lambda m, n: shift(3, n),
    "0 << n": lambda m, n: shift(0, n), "m << 3": lambda m, n: m << 3, "m << 70": lambda m, n: shift(m, 70),
    "1 << T.min(n, 62)": lambda m, n: shift(1, min(n, 62)), "1 << n % 63": lambda m, n: shift(1, n % 63),
    "(1 << n) - 1": lambda m, n: shift(1, n) - 1, "(m << n) // 8": lambda m, n: shift(m, n) // 8,
    "T.abs(m) - T.abs(n)": lambda m, n: abs(m) - abs(n), "(m & 255) << n % 48": lambda m, n: shift(m & 255, n % 48),
}
HEAD = 'def {name}(m: T.index, n: T.index, C: T.Tensor((1,), "int64")):\n    with T.Kernel(1, threads=32) as b:\n'


def program(text, name="main"):
    return helve.parse(f'@T.prim_func\n{HEAD.format(name=name)}        C[0] = T.cast({text}, "int64")\n')


def meaning(text, m, n):
    """The number, or None where there is none: a divisor of 0, a shift by less than 0."""
    try:
        return OPERATORS[text](m, n)
    except (ZeroDivisionError, ValueError):
        return None


def may_leave(text, m, n):
    """Can the expression or a part of it leave 64 bits?"""
    shifted = abs(m | 3) << (70 if text == "m << 70" else min(abs(n), 70))
    return abs(m) + abs(n) >= 2**59 or abs(m * n) >= 2**62 or "<<" in text and shifted >= 2**62


def outcome(kernel, m, n):
    """What a call stores, or the code by which it is refused; a refused call stores nothing."""
    c = np.full(1, -77, np.int64)
    try:
        kernel(m, n, c)
    except helve.Error as error:
        assert c[0] == -77
        return error.code
    return int(c[0])


def compiled(text, target):
    """The kernel, or None where the compile finds that no argument is small enough."""
    try:
        return helve.compile(program(text), target=target)
    except helve.Error as error:
        assert error.code == "HV0625"
        return None


def pairs():
    return [(m, n) for m in EDGES for n in EDGES]


@pytest.mark.parametrize("text", OPERATORS)
def test_machine_code_is_exact_or_refuses_the_call(text):
    kernel, ran = compiled(text, "llvm"), 0
    for m, n in pairs():
        exact, got = meaning(text, m, n), "HV0625" if kernel is None else outcome(kernel, m, n)
        if exact is None or got == "HV0625":
            continue
        assert got == exact, (text, m, n)
        ran += 1
    assert ran > 100 or text == "m << 70" and kernel is None


@pytest.mark.parametrize("text", OPERATORS)
def test_what_64_bits_hold_by_far_is_not_refused(text):
    """A call is refused by the sizes of its parts, so never where they are small."""
    kernel = compiled(text, "llvm")
    for m in (0, 1, -1, 5, -9, 2**20):
        for n in (0, 1, 7, 30):
            exact = meaning(text, m, n)
            if exact is not None and kernel is not None:
                assert outcome(kernel, m, n) == exact, (text, m, n)


@pytest.mark.parametrize("text", OPERATORS)
def test_the_interpreter_is_exact_or_says_where_words_end(text):
    kernel = helve.compile(program(text), target="interp")
    for m, n in pairs():
        exact, got = meaning(text, m, n), outcome(kernel, m, n)
        if exact is None:
            assert got in ("HV0208", "HV0702")
        elif isinstance(got, str):
            assert got == "HV0701" and may_leave(text, m, n), (text, m, n)
        else:
            assert got == exact, (text, m, n)


@pytest.mark.parametrize("target", ["llvm", "cuda"])
@pytest.mark.parametrize("text", OPERATORS)
def test_every_stage_means_the_same(text, target):
    seen = {}
    for name, stage in helve.testing.lowering_stages(program(text), target=target):
        seen.setdefault(helve._core.print(stage), (name, stage))
    for name, stage in seen.values():
        for m, n in [(5, 3), (-9, 2), (2**62, 1), (2**40, 20), (0, 63)]:
            exact = meaning(text, m, n)
            c = np.full(1, -77, np.int64)
            try:
                helve.testing.interpret(stage, m, n, c)
            except helve.Error as error:
                assert error.code == "HV0701" and may_leave(text, m, n), (text, name, m, n)
            else:
                assert c[0] == exact, (text, name, m, n)


@pytest.fixture(scope="module", params=["own functions", "prelude"])
def kernels(request, tmp_path_factory):
    functions = []
    for place, text in enumerate(OPERATORS):
        if compiled(text, "llvm") is None:
            continue  # no argument is small enough
        stages = helve.testing.lowering_stages(program(text, f"f{place}"), target="cuda")
        functions.append(stages[-1][1])
    return HostKernels(functions, tmp_path_factory.mktemp("cuda"), prelude=request.param == "prelude")


@pytest.mark.parametrize("text", OPERATORS)
def test_cuda_text_is_exact_where_the_call_would_run(kernels, text):
    reference, place = compiled(text, "llvm"), list(OPERATORS).index(text)
    if reference is None:
        return
    for m, n in pairs()[::7]:
        exact = meaning(text, m, n)
        if exact is None or outcome(reference, m, n) == "HV0625":
            continue
        c = aligned(np.zeros(1, np.int64))
        kernels.run(f"f{place}", 1, {"C": c}, {"m": m, "n": n})
        assert c[0] == exact, (text, m, n)


def test_a_loop_bounds_the_shifts_in_it():
    head = ('@T.prim_func\ndef main(n: T.index, C: T.Tensor((1,), "int64")):\n    with T.Kernel(1) as b:\n'
            "        C[0] = 0\n")
    loop = '        for i in T.serial({}):\n            C[0] = C[0] + T.cast(1 << i, "int64")\n'
    for count, expected in ((62, 2**62 - 1), (63, 2**63 - 1)):
        c = np.zeros(1, np.int64)
        helve.compile(helve.parse(head + loop.format(count)))(0, c)
        assert c[0] == expected
    with pytest.raises(helve.Error, match="'1 << i' is computed as an index, in 64 bits"):
        helve.compile(helve.parse(head + loop.format(64)))
    kernel = helve.compile(helve.parse(head + loop.format("n")))
    for n in (0, 1, 40, 62):
        c = np.zeros(1, np.int64)
        kernel(n, c)
        assert c[0] == 2**n - 1
    with pytest.raises(helve.Error) as caught:
        kernel(64, c)
    assert caught.value.code == "HV0625"


def test_the_host_shifts_as_kernels_do():
    text = ('@T.prim_func\ndef main(n: T.index, C: T.Tensor((8,), "int64")):\n    with T.Kernel(1 << n) as b:\n'
            '        C[b] = T.cast(b, "int64") + 1\n')
    for target in ("llvm", "interp"):
        kernel = helve.compile(helve.parse(text), target=target)
        for n in range(4):
            c = np.zeros(8, np.int64)
            kernel(n, c)
            np.testing.assert_array_equal(c, np.where(np.arange(8) < 2**n, np.arange(8) + 1, 0))
        with pytest.raises(helve.Error) as caught:
            kernel(-1, c)
        assert caught.value.code == "HV0702"
