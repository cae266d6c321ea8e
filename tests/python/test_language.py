"""The names below T: complete, documented, and written down for editors."""

import ast
import inspect
import pydoc
import re
from pathlib import Path

import helve
import numpy as np
import pytest
from helve import T, _core
from helve.language import stub
from helve.language.constructs import Construct
from helve.language.habits import HABITS


def test_the_stub_is_up_to_date():
    """`python -m helve.language.stub > python/helve/language/__init__.pyi` makes it so."""
    text = (Path(T.__file__).parent / "__init__.pyi").read_text()
    assert text == stub.stub_text()
    declared = {node.name for node in ast.parse(text).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    declared |= {node.target.id for node in ast.parse(text).body if isinstance(node, ast.AnnAssign)}
    assert declared == set(T.NAMES) | {"NAMES"}


def test_all_tables_are_names():
    """Every dtype, every tile operation and every operator that is a call is reached below T and prints as itself."""
    names = [*_core.dtype_names(), *(row[1] for row in _core.tile_op_rows())]
    names += [row[1] for row in _core.operator_rows() if row[3] == "Call"]
    for name in names:
        value = T
        for part in name.split("."):
            value = getattr(value, part)
        assert repr(value) == f"T.{name}"


def test_a_map_that_is_not_given_is_none():
    """The table, help and the reference say so alike."""
    maps = [(row[1], p) for row in _core.tile_op_rows() for p in row[3] if p[0] == "Map"]
    assert [(name, p[1], p[3]) for name, p in maps] == [("comm.permute", "source", None)]
    assert T.comm.permute.__doc__.splitlines()[0] == "T.comm.permute(src, dst, shift=1, axis='all', source=None)"
    language = (Path(__file__).parents[2] / "docs" / "language.md").read_text()
    assert "#### `T.comm.permute(src, dst, shift=1, axis='all', source=None)`" in language


@pytest.mark.parametrize("name", sorted(set(T.NAMES) - {"comm"} - set(_core.dtype_names())))
def test_every_name_is_documented(name):
    value = T.NAMES[name]
    assert len(getattr(value, "documentation", value.__doc__).strip()) > 15


def constructs():
    return [value for value in [*T.NAMES.values(), *vars(T.comm)["members"].values()] if isinstance(value, Construct)]


@pytest.mark.parametrize("value", constructs(), ids=repr)
def test_help_shows_what_a_name_takes(value):
    shown = inspect.signature(value).parameters
    assert list(shown) == [*filter(None, [value.variadic]), *(each.name for each in value.parameters)]
    for each in value.parameters:
        assert shown[each.name].default is (inspect.Parameter.empty if each.required else each.default)
    assert pydoc.render_doc(value, renderer=pydoc.plaintext).count(f"{value!r}{inspect.signature(value)}") == 1


def test_the_text_of_help():
    assert T.copy.__doc__.splitlines()[0] == "T.copy(src, dst, pad=0.0, dispatch='')"
    assert T.Kernel.__doc__.splitlines()[0] == "T.Kernel(*grid, threads=128, cluster=1, producers=0, registers=())"


def test_dtypes_are_strings_that_convert():
    assert T.float32 == "float32" and {"float32": 1}[T.float32] == 1
    assert (T.int8(3).value, T.int8(3).dtype) == (3, "int8")
    with pytest.raises(helve.Error, match="300 is out of range, expected int8"):
        T.int8(300)


def test_extents_have_arithmetic_outside_kernels():
    M = T.dyn("M")
    assert str((M + 1) * 2 // 3 % 4 - 5) == "(M + 1) * 2 // 3 % 4 - 5"
    assert str(-(8 - M)) == "-(8 - M)"
    with pytest.raises(helve.Error, match="'/' of two integers"):
        M / 2


def test_habits_lead_to_names_that_exist():
    """No habit hides a name of T, and what is offered in its place is there."""
    assert not set(HABITS) & set(T.NAMES)
    for habit, offer in HABITS.items():
        assert offer and "\n" not in offer, habit
        for name in re.findall(r"\bT\.(\w+)", offer):
            assert name in T.NAMES, (habit, name)
        with pytest.raises(AttributeError, match=re.escape(f"in helve: {offer}")):
            getattr(T, habit)


X = np.concatenate([[0.0, 1e-7, -1e-7, 3e-4, -3e-4, 0.01, 0.25, 0.49, -0.49, 0.5, 0.51, -0.51, 0.9, -0.9, 1.0, 40.0],
                    np.linspace(-0.99, 5.0, 46)]).astype("float32")
A, B = X[::-1].copy(), np.where(X == 0, np.float32(2), X)


def of_float32(name):
    return lambda x, a, b: x.astype(name).astype("float32")


# Habits that are answered with an expression of x, or of a and b, and what it is.
EXPRESSIONS = {
    "absolute": lambda x, a, b: np.abs(x),
    "clip": lambda x, a, b: np.clip(x, -0.5, 0.5),
    "divide": lambda x, a, b: a / b,
    "float_": of_float32("float64"), "fmax": lambda x, a, b: np.maximum(a, b),
    "fmin": lambda x, a, b: np.minimum(a, b),
    "maximum": lambda x, a, b: np.maximum(a, b),
    "minimum": lambda x, a, b: np.minimum(a, b), "multiply": lambda x, a, b: a * b, "negative": lambda x, a, b: -x,
    "power": lambda x, a, b: np.abs(a) ** b, "reciprocal": lambda x, a, b: 1 / x,
    "relu": lambda x, a, b: np.maximum(x, 0),
    "select": lambda x, a, b: np.where(a < b, a, b), "square": lambda x, a, b: x * x,
    "subtract": lambda x, a, b: a - b, "to": of_float32("float16"), "true_divide": lambda x, a, b: a / b,
    "where": lambda x, a, b: np.where(a < b, a, b), "inf": lambda x, a, b: np.full_like(x, np.inf),
    "floor_divide": lambda x, a, b: np.floor(a * 8) // np.floor(np.abs(b) * 8 + 1),
    "mod": lambda x, a, b: np.floor(a * 8) % np.floor(np.abs(b) * 8 + 1),
    "remainder": lambda x, a, b: np.floor(a * 8) % np.floor(np.abs(b) * 8 + 1),
    "logical_and": lambda x, a, b: (a > 0.1) & (b > 0.1), "logical_or": lambda x, a, b: (a > 0.1) | (b > 0.1),
    "logical_not": lambda x, a, b: ~(a > 0.1),
    "add": lambda x, a, b: a + b, "sub": lambda x, a, b: a - b, "mul": lambda x, a, b: a * b,
    "div": lambda x, a, b: a / b, "fdiv": lambda x, a, b: a / b, "div_rn": lambda x, a, b: a / b,
    "neg": lambda x, a, b: -x, "sqrt_rn": lambda x, a, b: np.sqrt(x),
    "cosh": lambda x, a, b: np.cosh(x), "sinh": lambda x, a, b: np.sinh(x), "tan": lambda x, a, b: np.tan(x),
    "log10": lambda x, a, b: np.log10(x), "exp10": lambda x, a, b: np.power(np.float32(10), x),
}
WHOLE, TRUTHS = ("floor_divide", "mod", "remainder"), ("logical_and", "logical_or", "logical_not")


@pytest.mark.parametrize("habit", EXPRESSIONS)
def test_the_expressions_that_habits_are_answered_with(habit):
    """They compute what their name says, to the last places of float32, also where a plain formula would not."""
    offer, _, where = HABITS[habit].partition(", where ")
    offer = re.sub(r", or T\.cast\(.*| for an element.*", "", offer)
    given = {"a": "A[i]", "b": "B[i]", "x": "X[i]", "condition": "A[i] < B[i]", "lo": "-0.5", "hi": "0.5",
             "dtype": "'float16'"}
    if habit in WHOLE:
        given |= {"a": "T.cast(T.floor(A[i] * 8.0), 'int32')", "b": "T.cast(T.abs(B[i]) * 8.0 + 1.0, 'int32')"}
    elif habit in TRUTHS:
        given |= {"a": "(A[i] > 0.1)", "b": "(B[i] > 0.1)"}
    elif habit == "power":
        given["a"] = "T.abs(A[i])"

    def filled(text):
        return re.sub(r"\b(a|b|x|condition|lo|hi|dtype)\b", lambda m: given[m[0]], text)

    name, _, value = where.partition(" = ")
    lines = [f"{name} = {filled(value)}"] * bool(where)
    lines.append(f"Y[i] = T.cast({filled(offer)}, 'float32')")
    n = len(X)
    tensors = ", ".join(f'{t}: T.Tensor(({n},), "float32")' for t in "XABY")
    body = "".join(f"            {line}\n" for line in lines)
    function = helve.parse(f"@T.prim_func\ndef main({tensors}):\n    with T.Kernel(1) as k:\n"
                           f"        for i in T.Parallel({n}):\n{body}")
    with np.errstate(all="ignore"):
        wanted = EXPRESSIONS[habit](X, A, B)
    for target in ("interp", "llvm"):
        y = np.zeros_like(X)
        helve.compile(function, target=target)(X, A, B, y)
        np.testing.assert_allclose(y, wanted, rtol=1e-6, atol=0)


def test_the_calls_that_habits_are_answered_with():
    """Each names as many arguments as its construct takes, and only keywords that it has."""
    seen = 0
    for habit, offer in HABITS.items():
        for start in (m.start() for m in re.finditer(r"\bT\.\w+\(", offer)):
            end = next(e for e in range(start, len(offer) + 1) if _is_call(offer[start:e]))
            call = ast.parse(offer[start:end], mode="eval").body
            construct = T.NAMES[call.func.attr]
            names = [p.name for p in construct.parameters]
            seen += 1
            assert {k.arg for k in call.keywords} <= set(names), (habit, offer)
            assert construct.variadic or len(call.args) <= len(names), (habit, offer)
            required = [p.name for p in construct.parameters if p.required]
            assert len(call.args) + len(call.keywords) >= len(required), (habit, offer)
    assert seen > 40


def _is_call(text):
    try:
        return isinstance(ast.parse(text, mode="eval").body, ast.Call)
    except SyntaxError:
        return False
