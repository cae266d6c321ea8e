"""Vector accesses in the IR: which the pass makes, what the interpreter says of wrong ones, what is printed of them."""

import numpy as np
import pytest

import helve
import helve.testing
from helve import T, _core

HEAD = """@T.prim_func
def main({params}):
    with T.Kernel(1, threads=32) as bx:
        for tx in T.threads(32):
"""
FLOATS = ", ".join(f'{name}: T.Tensor((512,), "float32")' for name in "AB")


def program(lines, params=FLOATS):
    body = "".join(f"            {line}\n" for line in lines.strip("\n").split("\n"))
    return helve.parse(HEAD.format(params=params) + body)


def widened(lines, params=FLOATS):
    """The threads' program with vector accesses, one line each."""
    text = _core.print(_core.widen_accesses(program(lines, params).function)).splitlines()
    return [line.strip() for line in text[text.index("        for tx in T.threads(32):") + 1 :]]


def test_lanes_load_before_and_store_after():
    assert widened("for v in T.vectorized(4):\n    B[tx * 4 + v] = A[tx * 4 + v] * 2.0") == [
        "for v in T.vectorized(4):",
        "T.store_vector(B[tx * 4 + v], T.load_vector(A[tx * 4 + v], 16) * 2.0, 16)",
    ]


@pytest.mark.parametrize(("lanes", "begin", "width"),
                         [(8, 0, 16), (8, 2, 8), (8, 1, 0), (2, 0, 8), (6, 0, 8), (3, 0, 0)])
def test_the_width_is_what_alignment_allows(lanes, begin, width):
    text = widened(f"for v in T.vectorized({lanes}):\n    B[v] = A[tx * {lanes} + {begin} + v]")[1]
    assert ("load_vector" in text) == (width > 0) and text.count(f", {width})") >= (width > 0)


def test_a_condition_of_all_lanes_stands_around_them():
    assert widened("for v in T.vectorized(4):\n    if tx < 7:\n        B[tx * 4 + v] = A[v]") == [
        "if tx < 7:",
        "for v in T.vectorized(4):",
        "T.store_vector(B[tx * 4 + v], T.load_vector(A[v], 16), 16)",
    ]


@pytest.mark.parametrize("lines", [
    "if A[tx * 4 + v] > 0.0:\n    B[tx * 4 + v] = 1.0",  # not every lane stores
    "B[tx * 4 + v] = 1.0\nB[tx * 4 + v] = 2.0",  # two stores to one element
])  # fmt: skip
def test_stores_stay_where_not_every_lane_makes_them_once(lines):
    text = widened("for v in T.vectorized(4):\n" + "\n".join("    " + line for line in lines.split("\n")))
    assert not any("T.store_vector" in line for line in text)


def test_what_another_lane_reads_is_no_vector():
    """The write cannot come after all lanes, since one of them reads another's element."""
    text = widened("for v in T.vectorized(4):\n    B[tx * 8 + v] = B[tx * 8 + v + 4] + A[v]")[1]
    assert "store_vector(B" not in text and "load_vector(B" not in text and "load_vector(A" in text


def test_what_may_be_the_same_memory_is_no_vector():
    text = _core.print(_core.widen_accesses(helve.parse("""
@T.prim_func
def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
    T.may_alias(A, B)
    with T.Kernel(1, threads=32) as bx:
        for tx in T.threads(32):
            for v in T.vectorized(4):
                B[tx * 4 + v] = A[tx * 4 + v]
""").function))
    assert "_vector" not in text


def test_names_of_lanes_are_replaced_by_their_values():
    assert "T.store_vector(B[tx * 4 + v], T.load_vector(A[tx * 4 + v], 16), 16)" in widened(
        "for v in T.vectorized(4):\n    i = tx * 4 + v\n    B[i] = A[i]")


def test_packed_registers_move_without_being_unpacked():
    params = ", ".join(f'{name}: T.Tensor((512,), "bfloat16")' for name in "AB")
    function = helve.parse(f"""
@T.prim_func
def main({params}):
    with T.Kernel(1, threads=32) as bx:
        x = T.alloc_fragment((32, 8), "bfloat16")
        for tx in T.threads(32):
            for v in T.vectorized(8):
                x[tx, v] = A[tx * 8 + v]
            for w in T.vectorized(8):
                B[tx * 8 + w] = x[tx, w]
""")
    form = _core.widen_accesses(function.function)
    text = _core.print(form)
    assert 'x = T.alloc_fragment((32, 8), "bfloat16", place="packed")' in text
    assert "T.store_vector(x[tx, v], T.load_vector(A[tx * 8 + v], 16), 16)" in text
    helve.testing.assert_round_trip(form)
    source, (kernel,) = _core.cuda_source(form, prelude=False)
    assert "helve_move<16, 8>(x + 0, A + tx * 8);" in source and kernel["alignments"] == [16, 16]


def test_widening_again_changes_nothing():
    form = _core.widen_accesses(program("for v in T.vectorized(4):\n    B[tx * 4 + v] = A[v]").function)
    assert _core.print(_core.widen_accesses(form)) == _core.print(form)


@pytest.mark.wrong_programs
def test_the_interpreter_moves_accesses_as_the_machine_does():
    """Lane 1 would read what lane 0 stored; as vectors, all lanes read before any stores."""
    @T.prim_func
    def main(A: T.Tensor((8,), "float32")):
        with T.Kernel(1):
            for v in T.vectorized(4):
                T.store_vector(A[v], T.load_vector(A[4 + v], 16) + 1.0, 16)
                A[4 + v] = A[v]

    a = np.arange(8, dtype="float32")
    helve.compile(main, target="interp")(a)
    np.testing.assert_array_equal(a, [5, 6, 7, 8, 0, 1, 2, 3])


def test_a_program_with_vectors_is_lowered_anew():
    """Other targets, and other machines, have vectors of their own."""
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=32):
            for tx in T.threads(32):
                for v in T.vectorized(4):
                    T.store_vector(B[tx * 4 + v], T.load_vector(A[tx * 4 + v], 8) * 2.0, 16)

    make = lambda: [np.arange(128, dtype="float32"), np.zeros(128, "float32")]  # noqa: E731
    helve.testing.check_stages(main, make)
    stages = dict(helve.testing.lowering_stages(main, target="cuda"))
    assert "T.load_vector(A[tx * 4 + v], 16)" in _core.print(stages["widen_accesses"])
    assert "_vector(" not in _core.print(helve.testing.lowering_stages(main)[-1][1])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_every_stage_means_the_same(dtype):
    @T.prim_func
    def main(A: T.Tensor((24, 64), dtype), B: T.Tensor((24, 64), dtype)):
        with T.Kernel(3, threads=32) as b:
            x = T.alloc_shared((8, 64), dtype)
            T.copy(A[b * 8 : b * 8 + 8, :], x)
            for i, j in T.Parallel(8, 64):
                B[b * 8 + i, j] = x[7 - i, j]

    rng = np.random.default_rng(0)
    kind = helve.testing.make_arguments(main)[0].dtype
    a = rng.integers(-9, 9, (24, 64)).astype(kind)
    helve.testing.check_stages(main, lambda: [a, np.zeros_like(a)])
    assert "T.load_vector(" in _core.print(helve.testing.lowering_stages(main, target="cuda")[-1][1])
