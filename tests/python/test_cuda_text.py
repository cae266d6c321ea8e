"""CUDA C of kernels in thread form: what its text holds, what it tells of its kernels, and what it refuses.

Whole texts are compared in test_golden_cuda.py.
"""

import re
from pathlib import Path

import helve
import pytest
import test_threads
from cuda_examples import FUNCTIONS
from nvrtc import assert_compiles, needs_nvrtc

from helve import _core


def cuda_source(function, **options):
    return _core.cuda_source(_core.widen_accesses(_core.allocate_shared(function.function)), **options)


def kernel_of(text):
    """The text without its prelude and the facts of the only kernel."""
    text, (kernel,) = cuda_source(helve.parse(text), prelude=False)
    return text, kernel


def body(statements, params='A: T.Tensor((4096,), "float32"), B: T.Tensor((4096,), "float32")', threads=128):
    lines = "\n".join("        " + line for line in statements.strip("\n").split("\n"))
    return f"@T.prim_func\ndef main({params}):\n    with T.Kernel(2, threads={threads}) as b:\n{lines}\n"


@pytest.mark.parametrize(("dtype", "wanted"), [
    ("index", "helve_shift_negated<int>(b, 2)"), ("int32", "helve_shift_negated<int>("),
    ("int8", "helve_shift_negated<signed char>("), ("uint32", None),
])  # fmt: skip
@pytest.mark.parametrize("form", ["-x // 4", "-x >> 2"])
def test_negated_numbers_are_not_shifted_as_they_stand(dtype, wanted, form):
    """Their shift is another expression of the same value; that of an unsigned number is no such shift."""
    made = {"index": ("b", "B[t] = T.cast({}, 'int32')")}.get(dtype, ("A[t]", "B[t] = {}"))
    number, store = made
    kind = "int32" if dtype == "index" else dtype
    text, _ = kernel_of(body("for t in T.threads(128):\n    " + store.format(form.replace("x", number)),
                             f'A: T.Tensor((128,), "{kind}"), B: T.Tensor((128,), "{kind}")'))
    assert wanted in text if wanted else "shift_negated" not in text, text


@pytest.mark.parametrize(("dtype", "wanted"), [
    ("index", "min(b, helve_negated<int>("), ("int32", "helve_negated<int>("),
    ("uint32", "helve_negated<unsigned int>("), ("int16", None),
])  # fmt: skip
def test_negated_numbers_are_no_operands_of_extremes(dtype, wanted):
    """Nor others of 32 bits that get a name: ptxas loses the sign of one in a maximum of three."""
    number = "T.cast(T.min(b, -(b + 3)), 'int32')" if dtype == "index" else "T.max(T.max(A[t] + B[t], -A[t]), B[t])"
    kind = "int32" if dtype == "index" else dtype
    text, _ = kernel_of(body(f"for t in T.threads(128):\n    B[t] = {number}",
                             f'A: T.Tensor((128,), "{kind}"), B: T.Tensor((128,), "{kind}")'))
    assert wanted in text if wanted else "helve_negated" not in text, text


def table(fill, read, dtype="bfloat16", size=24):
    """Each thread fills a table of its own and reads it, in loops of these heads, at these subscripts."""
    return body(f"""
for t in T.threads(128):
    x = T.alloc_local(({size},), "{dtype}")
    for i in {fill[0]}:
        x[{fill[1]}] = A[t, i]
    for i in {read[0]}:
        B[t, i] = x[{read[1]}]
""", f'A: T.Tensor((128, 512), "{dtype}"), B: T.Tensor((128, 512), "{dtype}"), K: T.Tensor((512,), "int32"), '
     "N: T.index")


ALL = ("T.serial(8)", "i")


@pytest.mark.parametrize(("text", "stays"), [
    (table(ALL, ALL), False),
    (table(ALL, ("T.unroll(24)", "i")), False),
    (table(ALL, ("T.serial(24)", "i")), True),
    (table(ALL, ("T.serial(24)", "i"), "float32"), False),
    (table(ALL, ("T.serial(300)", "i"), "float32", 300), True),
    (table(ALL, ("T.serial(N, N + 4)", "i")), True),
    (table(ALL, ("T.unroll(N, N + 4)", "i")), True),
    (table(ALL, ("T.serial(8)", "t % 24")), True),
    (table(("T.serial(8)", "T.index(K[i])"), ALL, "float32"), True),
    (table(("T.serial(8)", "N"), ALL, "int8"), True),
])  # fmt: skip
def test_arrays_that_the_run_subscripts_are_volatile(text, stays):
    text, _ = kernel_of(text)
    assert (re.search(r"volatile [\w ]+ x\[", text) is not None) == stays, text


@needs_nvrtc
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_text_compiles(name):
    assert_compiles(cuda_source(FUNCTIONS[name])[0])


@needs_nvrtc
def test_the_text_compiles_with_lines():
    assert_compiles(cuda_source(test_threads.row_sums, line_directives=True)[0])


def test_lines_are_those_of_the_source():
    text, _ = cuda_source(test_threads.row_sums, line_directives=True)
    source = Path(test_threads.__file__).read_text().split("\n")
    number, file, seen = 0, "", {}
    for line in text.split("\n"):
        if found := re.match(r'\s*#line (\d+) "(.*)"', line):
            number, file = int(found[1]), found[2]
            continue
        seen.setdefault(line.strip(), []).append((number, file))
        number += 1
    for line, wanted in {
        "s[0] = s[0] + x[r];": "s[tx, 0] = s[tx, 0] + x[tx, r]",
        "__syncthreads();": "T.sync_threads()",
        "B[b] = w[0] + w[1];": "B[b] = w[0] + w[1]",
        "float t[1];": 't = T.alloc_fragment((THREADS, 1), "float32")',
        "if (tx % 32 == 0) {": "if tx % 32 == 0:",
    }.items():
        ((at, where),) = seen[line]
        assert source[at - 1].strip() == wanted
        assert where.endswith("test_threads.py")


def test_kernels_are_described():
    _, (kernel,) = cuda_source(test_threads.row_sums)
    assert kernel == {
        "name": "row_sums_0",
        "threads": 64,
        "shared_bytes": 128,
        "mesh": False,
        "instances": {},
        "cluster": 1,
        "cooperative": False,
        "barrier_words": 0,
        "faults": False,
        "buffers": ["A", "B"],
        "alignments": [16, 4],
        "maps": [],
        "scalars": [],
    }


@pytest.mark.parametrize(
    ("dtype", "lanes", "shift", "bytes_"),
    [
        ("float32", 4, 0, 16),
        ("float32", 8, 0, 16),
        ("float32", 6, 0, 8),
        ("float32", 3, 0, 4),
        ("float32", 4, 2, 8),
        ("float32", 4, 1, 4),
        ("float64", 2, 0, 16),
        ("float64", 2, 1, 8),
        ("bfloat16", 8, 0, 16),
        ("bfloat16", 8, 4, 8),
        ("bfloat16", 8, 6, 4),
        ("bfloat16", 2, 0, 4),
        ("bfloat16", 1, 0, 2),
        ("int8", 16, 0, 16),
        ("int8", 2, 0, 2),
        ("int8", 12, 0, 4),
        ("bool", 4, 8, 4),
    ],
)
def test_the_width_of_a_vector_follows_from_its_alignment(dtype, lanes, shift, bytes_):
    params = f'A: T.Tensor((4096,), "{dtype}"), B: T.Tensor((4096,), "{dtype}")'
    text, kernel = kernel_of(
        body(
            f"""
for tx in T.threads(128):
    for v in T.vectorized({lanes}):
        B[(b * 128 + tx) * {lanes} + v] = A[(b * 128 + tx) * {lanes} + v + {shift}]
""",
            params,
        )
    )
    alignments = dict(zip(kernel["buffers"], kernel["alignments"]))
    assert alignments["A"] == bytes_
    element = {"float64": 8, "float32": 4, "bfloat16": 2, "int8": 1, "bool": 1}[dtype]
    assert ("helve_load" in text) == (bytes_ > element)


@pytest.mark.parametrize(("begin", "bytes_"), [("0", 16), ("2", 8), ("1", 4), ("b", 4), ("b * 2", 8), ("n", 4)])
def test_lanes_may_begin_anywhere(begin, bytes_):
    text, kernel = kernel_of(
        body(
            f"""
for tx in T.threads(128):
    for v in T.vectorized({begin}, {begin} + 4):
        B[tx * 8 + v] = A[tx * 8 + v]
""",
            'A: T.Tensor((4096,), "float32"), B: T.Tensor((4096,), "float32"), n: T.index',
        )
    )
    assert kernel["alignments"] == [bytes_, bytes_]
    if bytes_ > 4 and begin != "0":
        assert f"B_v[v - {begin}]" in text.replace("(", "").replace(")", "")


@pytest.mark.parametrize(
    "statement",
    [
        "B[tx * 4 + v] = A[tx * 8 + v * 2]",  # lanes apart
        "B[tx * 4 + v] = A[(tx * 4 + v) % 512]",  # side by side, but that takes more to see
        "B[tx * 4 + v] = T.if_then_else(tx > v, A[tx * 4 + v], 0.0)",  # not every lane reads
        "B[tx * 4 + v] = T.if_then_else(B[tx * 4 + v] > A[0], A[0], 1.0)",  # B is in vectors, A is not
    ],
)
def test_other_reads_stay_single(statement):
    text, kernel = kernel_of(body(f"for tx in T.threads(128):\n    for v in T.vectorized(4):\n        {statement}"))
    assert dict(zip(kernel["buffers"], kernel["alignments"])) == {"A": 4, "B": 16}
    assert "helve_store<16>(B + tx * 4, B_v" in text


@pytest.mark.parametrize(
    "statements",
    [
        "    B[tx * 4 + v] = 1.0\n        A[tx * 4 + v] = B[tx * 4 + v]",  # read after it is written
        "    B[tx * 4 + v] = 1.0\n        B[tx * 4 + v] = A[tx * 4 + v]",  # written twice
    ],
)
def test_what_cannot_wait_for_all_lanes_stays_single(statements):
    text, _ = kernel_of(body(f"for tx in T.threads(128):\n    for v in T.vectorized(4):\n    {statements}"))
    assert "B_v" not in text


def test_what_is_not_used_is_not_declared():
    text, kernel = kernel_of(
        body(
            """
S = T.alloc_shared((64,), "float32")
x = T.alloc_fragment((128, 4), "float32")
q = b * 3
for tx in T.threads(128):
    B[tx] = A[tx]
"""
        )
    )
    assert kernel["shared_bytes"] == 0
    assert "helve_shared" not in text and "x[" not in text and "q" not in text


def test_packed_elements_are_refused():
    with pytest.raises(helve.Error) as caught:
        kernel_of(
            body(
                """
for tx in T.threads(128):
    L = T.alloc_local((2,), "int4")
    L[0] = T.cast(1, "int4")
    B[tx] = T.cast(L[0], "float32")
"""
            )
        )
    assert caught.value.code == "HV0810"


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        ("for i in T.Parallel(128):\n    B[i] = A[i]", "not of the thread form"),
        ('x = T.alloc_fragment((64, 4), "float32")\nfor tx in T.threads(128):\n    x[tx // 2, 0] = A[tx]',
         "first dimension"),
        (
            'x = T.alloc_fragment((128, 1), "float32")\nfor tx in T.threads(128):\n    x[tx, 0] = A[tx]\n'
            "for tx in T.threads(128):\n    if tx % 2 == 0:\n        B[tx] = x[tx ^ 1, 0]",
            "may take different ways",
        ),
        (
            'x = T.alloc_fragment((128, 1), "float32")\nfor tx in T.threads(128):\n    x[tx, 0] = A[tx]\n'
            "for tx in T.threads(128):\n    B[tx] = x[tx ^ 32, 0]",
            "not known to be below 32",
        ),
        (
            'x = T.alloc_fragment((128, 1), "float32")\nfor tx in T.threads(128):\n    x[tx, 0] = A[tx]\n'
            "for tx in T.threads(128):\n    B[tx] = x[(tx + 1) % 128, 0]",
            "known to be one of its warp",
        ),
    ],
)
def test_what_is_not_in_thread_form_is_a_fault_of_a_pass(statements, reason):
    with pytest.raises(helve.InternalError, match=reason):
        kernel_of(body(statements))


def test_warps_may_part_before_an_exchange():
    text, _ = kernel_of(
        body(
            """
x = T.alloc_fragment((128, 1), "float32")
for tx in T.threads(128):
    x[tx, 0] = A[tx]
for tx in T.threads(128):
    if tx // 32 == 1 and b == 0:
        B[tx] = x[tx ^ 1, 0]
    if tx >= 96:
        B[tx] = x[tx ^ 3, 0]
"""
        )
    )
    assert text.count("helve_shuffle_xor") == 2
