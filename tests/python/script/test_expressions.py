"""Expressions: operators by their table, plain numbers as constants, and what Python decides while parsing."""

import math

import helve
import pytest
from helve import _core

HEAD = (
    '@T.prim_func\ndef main(A: T.Tensor((8, 8), "float32"), H: T.Tensor((8,), "bfloat16"), I: T.Tensor((8,), "int32"), '
    "U: T.Tensor((8,), \"uint64\"), n: T.index, b: T.bool):\n    with T.Kernel(4) as bx:\n        "
)


def value(expression):
    """The expression bound to a name in a kernel."""
    bind = helve.parse(HEAD + f"x = {expression}\n").function.body.body
    assert isinstance(bind, _core.Bind)
    return bind.value


@pytest.mark.parametrize("row", _core.operator_rows(), ids=lambda row: row[0])
def test_every_operator_is_parsed(row):
    """A row's own spelling builds the row's operator, and its text reads back as the same."""
    name, text, arity, form = row
    for items in (("A[0, 0]", "A[0, 1]", "2.0"), ("n", "3", "n"), ("b", "n > 1", "b"), ("b", "A[0, 0]", "1.0")):
        if form == "Infix":
            source = f"{items[0]} {text} {items[1]}"
        elif form == "Prefix":
            source = f"{text}{items[0]}"
        else:
            source = f"T.{text}({', '.join(items[:arity])})"
        try:
            built = value(source)
        except helve.Error as error:
            assert error.name in ("WrongType", "MixedTypes", "IntegerDivision"), str(error)
            continue
        assert (built.op, len(built.args)) == (name, arity)
        assert str(built) == source
        return
    pytest.fail(f"{name} takes none of the samples")


@pytest.mark.parametrize(
    "source, text, dtype",
    [
        ("A[0, 0] + 1", "A[0, 0] + 1.0", "float32"),
        ("1 - A[0, 0]", "1.0 - A[0, 0]", "float32"),
        ("H[0] * 0.5", "H[0] * 0.5", "bfloat16"),
        ("I[0] // 2", "I[0] // 2", "int32"),
        ("n * I[0]", "T.cast(n, \"int32\") * I[0]", "int32"),
        ("A[0, 0] ** 2", "T.pow(A[0, 0], 2.0)", "float32"),
        ("-n", "-n", "index"),
        ("+n", "n", "index"),
        ("not b", "not b", "bool"),
        ("~n", "~n", "index"),
        ("0 <= n < 8", "0 <= n and n < 8", "bool"),
        ("b and n > 1 and n < 4", "b and n > 1 and n < 4", "bool"),
        ("b or n > 1", "b or n > 1", "bool"),
        ("1.0 if b else A[0, 0]", "T.if_then_else(b, 1.0, A[0, 0])", "float32"),
        ("min(n, 3, 4)", "T.min(T.min(n, 3), 4)", "index"),
        ("max(A[0, 0], 0)", "T.max(A[0, 0], 0.0)", "float32"),
        ("abs(n)", "T.abs(n)", "index"),
        ("T.clamp(A[0, 0], -1, 1)", "T.min(T.max(A[0, 0], -1.0), 1.0)", "float32"),
        ("T.ceildiv(n, 4)", "(n + 4 - 1) // 4", "index"),
        ("T.cast(I[0], \"float32\")", "T.cast(I[0], \"float32\")", "float32"),
        ("T.float16(I[0])", "T.cast(I[0], \"float16\")", "float16"),
        ("T.cast(A[0, 0], A.dtype) + H[0]", "A[0, 0] + T.cast(H[0], \"float32\")", "float32"),
        ("T.index(I[0]) + A.shape[1]", "T.cast(I[0], \"index\") + 8", "index"),
        ("T.exp(2)", "T.exp(T.float32(2.0))", "float32"),
        ("T.fma(A[0, 0], 2, 1)", "T.fma(A[0, 0], 2.0, 1.0)", "float32"),
        ("A[n + 1, bx * 2 + 1]", "A[n + 1, bx * 2 + 1]", "float32"),
    ],
)
def test_typed_expressions(source, text, dtype):
    built = value(source)
    assert (str(built), built.dtype) == (text, dtype)


@pytest.mark.parametrize(
    "source, dtype, expected",
    [
        ("T.float32(1)", "float32", 1.0),
        ("T.int8(-128)", "int8", -128),
        ("T.uint64(18446744073709551615)", "uint64", -1),
        ("T.int32(4.0)", "int32", 4),
        ("T.bool(True)", "bool", 1),
        ("T.index(7)", "index", 7),
        ("T.float16(0.1)", "float16", 0.0999755859375),
        ('T.infinity("bfloat16")', "bfloat16", math.inf),
        ("-T.infinity(T.float32)", "float32", -math.inf),
        ('T.cast(3, "float64")', "float64", 3.0),
        ("T.int32(True)", "int32", 1),
    ],
)
def test_constants(source, dtype, expected):
    built = value(source)
    assert (built.dtype, built.value) == (dtype, expected)


def test_nan():
    assert math.isnan(value('T.nan("float32")').value)


@pytest.mark.parametrize("name", [name for name in _core.dtype_names() if name not in ("bool", "index")])
def test_every_dtype_converts(name):
    built = value(f"T.{name}(1)")
    assert (built.dtype, built.value) == (name, 1)


@pytest.mark.parametrize(
    "source, expected",
    [
        ("2 ** 3 + 7 // 2 - 7 % 4", 8),
        ("1 << 4 | 3 & 2 ^ 1", 16 | 3 & 2 ^ 1),
        ("-7 // 2", -4),
        ("T.ceildiv(-7, 2)", -3),
        ("T.ceildiv(7, 2)", 4),
        ("min(3, 2) + max(1, 5) + abs(-1)", 8),
        ("T.min(3, 2) + T.max(1, 5) + T.abs(-1) + T.clamp(9, 0, 4)", 12),
        ("len((1, 2, 3))", 3),
        ("(1, 2, 3)[1]", 2),
        ("3 if 2 > 1 else missing", 3),
        ("A.shape[0] * A.ndim", 16),
        ("4 if A.dtype == 'float32' and not False else 5", 4),
        ("1 if False or 1 < 2 < 3 else 0", 1),
        ("{'a': 6}['a']", 6),
    ],
)
def test_python_arithmetic_is_folded(source, expected):
    store = helve.parse(HEAD + f"x = {source}\n        A[0, bx + x * 0] = x\n").function.body.body
    assert store.value.value == expected


def test_compile_time_operands_decide_from_left_to_right():
    assert str(value("(2 > 1 and b)")) == "b"
    assert str(value("(2 < 1 or b)")) == "b"
    store = helve.parse(HEAD + "A[0, 0] = 1.0 if 2 < 1 and missing else 2.0\n").function.body.body
    assert store.value.value == 2.0


def test_big_unsigned_constants_are_stored():
    store = helve.parse(HEAD + "U[0] = 18446744073709551615\n").function.body.body
    assert store.value.value == -1
    assert str(value("U[0] < 18446744073709551615")) == "U[0] < T.uint64(18446744073709551615)"
    assert str(value("18446744073709551615 ^ U[0]")) == "T.uint64(18446744073709551615) ^ U[0]"


def test_spans_count_characters():
    """Columns are characters of the line, not bytes; ends are exclusive."""
    text = HEAD + "x = (n + 'ä') if b else 0\n"
    with pytest.raises(helve.Error) as caught:
        helve.parse(text, filename="k.py")
    line = text.splitlines()[3]
    assert line[caught.value.column - 1 : caught.value.end_column - 1] == "'ä'"
    assert (caught.value.lineno, caught.value.filename) == (4, "k.py")


def test_nodes_carry_their_place():
    text = HEAD + "x = A[0, 0] * 2.0\n"
    bind = helve.parse(text, filename="k.py").function.body.body
    line = text.splitlines()[3]

    def quoted(node):
        return line[node.span.column - 1 : node.span.end_column - 1]

    assert quoted(bind) == "x = A[0, 0] * 2.0"
    assert quoted(bind.value) == "A[0, 0] * 2.0"
    assert quoted(bind.value.args[0]) == "A[0, 0]"
    assert bind.span.file == "k.py"
