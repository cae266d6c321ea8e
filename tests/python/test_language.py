"""The names below T: complete, documented, and written down for editors."""

import ast
import re
from pathlib import Path

import helve
import pytest
from helve import T, _core
from helve.language import stub
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


@pytest.mark.parametrize("name", sorted(set(T.NAMES) - {"comm"} - set(_core.dtype_names())))
def test_every_name_is_documented(name):
    assert len(T.NAMES[name].__doc__.strip()) > 15


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
