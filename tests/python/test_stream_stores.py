"""The pass that lets stores go around the caches, judged by the interpreter wherever tensors begin."""

import re

import helve
import helve.testing
import numpy as np
import pytest
from helve import T, _core
from test_streams import M, doubled, shifted, two_outputs

PLACES = range(16)
DTYPES = ["float32", "float64", "float16", "bfloat16", "float8_e4m3", "int8", "uint8", "int16", "int32", "int64",
          "bool"]


def last_stage(function, **options):
    return helve.testing.lowering_stages(function, **options)[-1][1]


def run(stage, arrays, placement=0):
    """What the arrays hold after a run of a stage."""
    given = [each.copy() for each in arrays]
    helve.testing.interpret(stage, *given, check="in_turn", placement=placement)
    return given


def refused_or_wrong(stage, arrays, expected):
    """Do the runs with some placements show that the stage is wrong?"""
    for placement in PLACES:
        try:
            got = run(stage, arrays, placement)
        except helve.Error:
            return True
        if any(not np.array_equal(a, b) for a, b in zip(got, expected)):
            return True
    return False


def copied(columns, dtype):
    @T.prim_func
    def main(X: T.Tensor((M, columns), dtype), Y: T.Tensor((M, columns), dtype)):
        with T.Kernel(M) as r:
            for j in T.Parallel(columns):
                Y[r, j] = X[r, j]

    return main


def line():
    @T.prim_func
    def main(X: T.Tensor((M,), "float32"), Y: T.Tensor((M,), "float32")):
        with T.Kernel(1) as b:
            for j in T.Parallel(M):
                Y[j] = X[j] * 2.0

    return main


def values(shape, dtype, seed=0):
    import ml_dtypes

    of = {"bfloat16": ml_dtypes.bfloat16, "float8_e4m3": ml_dtypes.float8_e4m3fn}.get(dtype, dtype)
    return np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 9, shape).astype(of)


def as_bytes(array):
    return array.view(np.uint8) if array.size else array


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [1, 15, 16, 33, 64, 65, 130, 157, 256])
def test_every_type_and_rows_of_any_length(dtype, columns):
    stage = last_stage(copied(columns, dtype))
    for rows in (0, 1, 3):
        x = values((rows, columns), dtype)
        y = values((rows, columns), dtype, seed=1)
        for placement in PLACES:
            _, got = run(stage, [x, y], placement)
            np.testing.assert_array_equal(as_bytes(got), as_bytes(x), err_msg=f"{placement}")


@pytest.mark.parametrize("columns", [2048, 2049, 4100, 5000])
def test_long_rows_take_turns(columns):
    stage = last_stage(copied(columns, "float32"))
    assert "part = " in _core.print(stage)
    x = values((2, columns), "float32")
    for placement in PLACES[:6]:
        _, got = run(stage, [x, np.zeros_like(x)], placement)
        np.testing.assert_array_equal(got, x)


def test_tensors_of_any_extent():
    stage = last_stage(line())
    assert "T.store_nontemporal(" in _core.print(stage)
    for count in (0, 1, 15, 63, 64, 65, 127, 200, 4095, 4096, 5000):
        x = values((count,), "float32")
        for placement in PLACES[:6]:
            _, got = run(stage, [x, np.zeros_like(x)], placement)
            np.testing.assert_array_equal(got, x * 2)


MUTANTS = {
    "skips one more": (r"skip = ([^\n]+)", r"skip = (\1 + 1) % 8"),
    "skips one less": (r"skip = ([^\n]+)", r"skip = (\1 + 7) % 8"),
    "begins where the tensor does": (r"skip = [^\n]+", r"skip = 0"),
    "one vector too many": (r"T\.min\(skip, 1\)", r"0"),
    "one vector too few": (r"- T\.min\(skip, 1\)", r"- 1"),
    "parts of lines in all lanes": (r"if [^\n]*end[^\n]*:", r"if end >= 0:"),
    "no parts of lines": (r"if [^\n]*end[^\n]*:", r"if end < 0:"),
    "one end": (r"for end in T\.serial\(2\):", r"for end in T.serial(1):"),
    "neither end": (r"if 0 < skip:", r"if 7 < skip:"),
    "lines at the end elsewhere": (r"\+ skip \+ (\d+)", lambda m: f"+ skip + {int(m[1]) - 8}"),
    "another line": (r"T\.misalignment\(Y, 64\)", r"T.misalignment(Y, 32)"),
    "another tensor": (r"T\.misalignment\(Y, 64\)", r"T.misalignment(X, 64)"),
}


@pytest.mark.wrong_programs
@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_walks_are_refused(name):
    function = copied(192, "float64")  # lines of 8, vectors of 2 lines
    text = _core.print(last_stage(function))
    pattern, new = MUTANTS[name]
    mutant = re.sub(pattern, new, text)
    assert mutant != text
    x = values((3, 192), "float64")
    arrays = [x, np.zeros_like(x)]
    assert not refused_or_wrong(last_stage(function), arrays, [x, x])
    assert refused_or_wrong(helve.parse(mutant).function, arrays, [x, x])


@pytest.mark.wrong_programs
@pytest.mark.parametrize("name", ["part begins later", "part ends later"])
def test_wrong_turns_are_refused(name):
    function = copied(4160, "float32")
    text = _core.print(last_stage(function))
    pattern, new = {"part begins later": (r"% 4 \* part", r"% 4 * (part + 1)"),
                    "part ends later": (r"< part \* 4", r"< part * 4 + 1")}[name]
    mutant = re.sub(pattern, new, text)
    assert mutant != text
    x = values((1, 4160), "float32")
    assert refused_or_wrong(helve.parse(mutant).function, [x, np.zeros_like(x)], [x, x])


def test_pieces_where_rows_lie_well_only():
    """Two tensors: pieces of 16 bytes, and only where both begin at multiples of them, and their rows."""
    stage = last_stage(two_outputs(200))
    text = _core.print(stage)
    assert "T.misalignment(Y, 16) == 0 and T.misalignment(Z, 16) == 0" in text and ", 16)" in text
    x = values((3, 200), "float32")
    for placement in PLACES:
        _, y, z = run(stage, [x, np.zeros_like(x), np.zeros_like(x)], placement)
        np.testing.assert_array_equal(y, x + 1)
        np.testing.assert_array_equal(z, x * x)
    odd = _core.print(last_stage(two_outputs(201)))
    assert "T.store_nontemporal" not in odd


@pytest.mark.wrong_programs
def test_pieces_where_one_tensor_lies_well_are_refused():
    text = _core.print(last_stage(two_outputs(200)))
    mutant = text.replace("T.misalignment(Z, 16) == 0", "T.misalignment(Y, 16) == 0")
    assert mutant != text
    x = values((3, 200), "float32")
    arrays = [x, np.zeros_like(x), np.zeros_like(x)]
    assert refused_or_wrong(helve.parse(mutant).function, arrays, [x, x + 1, x * x])


def test_values_and_reads_by_position():
    stage = last_stage(shifted(200))
    x = values((3, 203), "float32")
    expected = x[:, 3:] - x[:, :-3] + np.arange(200, dtype="float32")
    for placement in PLACES:
        _, y = run(stage, [x, np.zeros((3, 200), "float32")], placement)
        np.testing.assert_array_equal(y, expected)


def test_only_large_tensors():
    """The size decides: at compile time where extents are constant, else in the call."""

    def text(function, stream_bytes):
        return _core.print(last_stage(function, stream_bytes=stream_bytes))

    @T.prim_func
    def constant(X: T.Tensor((4, 256), "float32"), Y: T.Tensor((4, 256), "float32")):
        with T.Kernel(4) as r:
            for j in T.Parallel(256):
                Y[r, j] = X[r, j]

    assert "store_nontemporal" in text(constant, 4096) and "if " not in text(constant, 4096).partition("skip")[0]
    assert "store_nontemporal" not in text(constant, 4097)
    assert "if 4 < M:" in text(copied(256, "float32"), 4097)
    both = last_stage(copied(256, "float32"), stream_bytes=4096)
    for rows in (3, 4):
        x = values((rows, 256), "float32")
        for placement in PLACES[:6]:
            _, got = run(both, [x, np.zeros_like(x)], placement)
            np.testing.assert_array_equal(got, x)


def test_what_is_read_or_written_twice_goes_through_the_caches():
    @T.prim_func
    def main(X: T.Tensor((4, 256), "float32"), Y: T.Tensor((4, 256), "float32"), Z: T.Tensor((256,), "float32")):
        with T.Kernel(4) as r:
            for j in T.Parallel(256):
                Y[r, j] = X[r, j] + Y[r, j]
            if r == 3:
                for k in T.Parallel(256):
                    Z[k] = X[r, k]

    text = _core.print(last_stage(main))
    assert "T.store_nontemporal(Y" not in text and "T.store_nontemporal(Z" in text


def test_a_lowered_program_compiles_again():
    """Marks are of the machine that they were made for; what is compiled decides anew."""
    function = copied(200, "float32")
    again = helve.parse(_core.print(last_stage(function)))
    x = values((3, 200), "float32")
    for target in ("interp", "llvm"):
        for options in ({}, {"stream_bytes": 1} if target == "llvm" else {}):
            y = np.zeros_like(x)
            helve.compile(again, target, **options)(x, y)
            np.testing.assert_array_equal(y, x)
    helve.testing.check_stages(again, lambda: [x, np.zeros_like(x)])


def test_a_prefetch_has_no_effect():
    @T.prim_func
    def main(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(4) as b:
            for j in T.vectorized(16):
                Y[b * 16 + j] = X[b * 16 + j]
                T.prefetch(X[b * 16 + j + 1000])

    x = values((64,), "float32")
    helve.testing.check_stages(main, lambda: [x, np.zeros_like(x)])
    y = np.zeros_like(x)
    helve.compile(main)(x, y)
    np.testing.assert_array_equal(y, x)


def test_doubled_stages():
    for columns, tile in ((200, 64), (157, 157), (300, 100)):
        x = values((3, columns), "float32")
        helve.testing.check_stages(doubled(columns, "float32", tile), lambda: [x, np.zeros_like(x)])  # noqa: B023
