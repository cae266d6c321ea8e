"""Errors as Python objects: their attributes, their text, where the caret stands."""

import copy
import inspect
import pickle
import re
import traceback
import warnings
from pathlib import Path

import helve
import numpy as np
import pytest
from helve import T, _core, errors, source
from helve.errors import error


def raised(text, filename="errors.py"):
    with pytest.raises(helve.Error) as caught:
        helve.parse(text, filename=filename)
    return caught.value


BAD = '@T.prim_func\ndef main(A: T.Tensor((4,), "float32")):\n    A[0, 0] = 1.0\n'


def test_attributes():
    e = raised(BAD)
    assert (e.code, e.name, e.filename) == ("HV0201", "IndexCount", "errors.py")
    assert (e.lineno, e.column, e.end_lineno, e.end_column) == (3, 5, 3, 12)
    assert e.message == "'A' has 1 dimension, the subscript has 2 indices"
    assert e.notes == [] and e.help == "give one index or slice for each dimension"
    assert type(e).__module__ == "helve" and not isinstance(e, ValueError)


def test_pickling_and_copying_keep_all_but_the_diagnostic():
    e = raised(BAD)
    for other in (pickle.loads(pickle.dumps(e)), copy.copy(e)):
        assert (str(other), other.code, other.lineno, other.notes) == (str(e), e.code, e.lineno, e.notes)
        assert type(other) is helve.Error


LAYOUT_CLASSES = [
    (500, helve.LayoutError),
    (510, helve.ShapeError),
    (520, helve.DivisibilityError),
    (530, helve.InjectivityError),
    (540, helve.BoundsError),
    (550, helve.UnsupportedError),
    (560, helve.UnsupportedError),
    (570, helve.LayoutError),
    (580, helve.LayoutError),
]


@pytest.mark.parametrize("row", _core.diagnostic_rows(), ids=lambda row: row[0])
def test_every_diagnostic_renders_as_its_class(row):
    """Codes from 500 to 599 are layout errors, by tens; the templates name every argument that they need."""
    name, number, severity, message, help_text = row
    places = dict.fromkeys(re.findall(r"{(\w+)(?::[^}]*)?}", message + help_text), "1")
    e = errors.from_diagnostic(_core.Diagnostic(name, _core.Span(), list(places.items())))
    expected = next((kind for first, kind in LAYOUT_CLASSES if first <= number < first + 10), helve.Error)
    assert type(e) is expected and isinstance(e, ValueError) == (500 <= number < 600)
    assert str(e).startswith(f"{severity}[HV{number:04}]: ") and e.code == f"HV{number:04}"


def lines_of(name="IndexCount", span=None, text=None, **parts):
    if text is not None:
        source.replace("shown.py", text)
    return str(error(name, span, **{"buffer": "A", "rank": 1, "given": 2, **parts})).split("\n")


def test_without_a_place():
    assert lines_of() == [
        "error[HV0201]: 'A' has 1 dimension, the subscript has 2 indices",
        "help: give one index or slice for each dimension",
    ]


def test_a_place_whose_text_is_lost():
    span = _core.Span("no/such/file.py", 12, 3, 12, 9)
    assert lines_of(span=span)[1:2] == ["  --> no/such/file.py:12:3"]


def test_a_place_below_the_working_directory_is_shown_from_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, shown in ((str(tmp_path / "kernels" / "copy.py"), str(Path("kernels", "copy.py"))),
                        (str(tmp_path.parent / "copy.py"), str(tmp_path.parent / "copy.py")),
                        (f"{tmp_path}s/copy.py", f"{tmp_path}s/copy.py"), ("<text 1>", "<text 1>")):
        span = _core.Span(name, 12, 3, 12, 9)
        assert lines_of(span=span)[1:2] == [f"  --> {shown}:12:3"]
        assert source.shown_path(name) == shown


def test_the_gutter_is_as_wide_as_the_number():
    span = _core.Span("shown.py", 1000, 2, 1000, 4)
    assert lines_of(span=span, text=[""] * 999 + ["abcdef"])[1:5] == [
        "    --> shown.py:1000:2",
        "     |",
        "1000 | abcdef",
        "     |  ^^",
    ]


@pytest.mark.parametrize(
    "text, start, end, carets",
    [
        ("\tA[0]", 2, 6, "\t^^^^"),
        ("a\tb = c", 3, 4, " \t^"),
        ("'你好' + x", 8, 9, "         ^"),
        ("'你好' + x", 1, 5, "^^^^^^"),
        ("e\u0301 + x", 6, 7, "    ^"),
        ("abc", 4, 4, "   ^"),
        ("abc", 2, 2, " ^"),
    ],
)
def test_carets_stand_below_their_text(text, start, end, carets):
    shown = lines_of(span=_core.Span("shown.py", 1, start, 1, end), text=[text])
    assert shown[3:5] == [f"1 | {text}", f"  | {carets}"]


def test_a_place_of_several_lines_is_underlined_to_the_end_of_the_first():
    shown = lines_of(span=_core.Span("shown.py", 1, 5, 2, 3), text=["x = f(1,", "      2)"])
    assert shown[3:5] == ["1 | x = f(1,", "  |     ^^^^"]


def test_notes_have_places_and_fixes_lines():
    note = _core.Note("declared here", _core.Span("shown.py", 1, 1, 1, 2))
    shown = lines_of(span=_core.Span("shown.py", 2, 1, 2, 2), text=["a", "b"], notes=[note], fixes=["one", "two"])
    assert shown == [
        "error[HV0201]: 'A' has 1 dimension, the subscript has 2 indices",
        " --> shown.py:2:1",
        "  |",
        "2 | b",
        "  | ^",
        "note: declared here",
        " --> shown.py:1:1",
        "  |",
        "1 | a",
        "  | ^",
        "help: one",
        "      two",
    ]


def test_a_missing_argument_of_a_template_is_a_fault_of_helve():
    with pytest.raises(helve.InternalError, match="lacks its argument 'rank'"):
        error("IndexCount", None, buffer="A", given=2)
    with pytest.raises(ValueError, match="no diagnostic is named 'Nothing'"):
        error("Nothing")


def test_warnings_are_the_same_data():
    diagnostic = _core.Diagnostic("IndexCount", _core.Span(), [("buffer", "A"), ("rank", 1), ("given", 2)])
    warning = errors.warning_from(diagnostic)
    assert isinstance(warning, UserWarning) and warning.code == "HV0201" and str(warning) == errors.render(diagnostic)


def test_warnings_are_given_once_a_place():
    """By Python's usual filter, as each warning of a compile."""
    function = helve.parse(
        "@T.prim_func\ndef main(A: T.Tensor((100,), 'float32'), B: T.Tensor((4,), 'float32')):\n"
        "    with T.Kernel(4) as b:\n        S = T.alloc_shared((32,), 'float32')\n"
        "        T.copy(A[b * 32 : b * 32 + 32], S)\n        T.reduce_max(S, B[b : b + 1], dim=0)\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            helve.compile(function, target="interp")
        helve.compile(function, target="interp")
    assert [entry.message.code for entry in caught] == ["HV0310"] * 2
    assert {entry.filename for entry in caught} == {__file__}


def test_warnings_are_rebuilt_from_their_arguments():
    """As pickle does it, and what sends warnings of tests between processes: by a call of the class."""
    note = _core.Note("declared here", _core.Span("shown.py", 1, 1, 1, 2))
    args = [("buffer", "A"), ("rank", 1), ("given", 2)]
    warning = errors.warning_from(_core.Diagnostic("IndexCount", _core.Span(), args, [note], ["one", "two"]))
    for other in (pickle.loads(pickle.dumps(warning)), copy.copy(warning), type(warning)(*warning.args)):
        assert type(other) is helve.Warning and str(other) == str(warning)
        assert (other.code, other.message, other.notes, other.help) == (
            "HV0201", "'A' has 1 dimension, the subscript has 2 indices", ["declared here"], "one\ntwo")


def test_constructs_refuse_to_be_called():
    with pytest.raises(helve.Error) as caught:
        T.copy(1, 2)
    assert caught.value.name == "OutsideKernel" and "T.copy(1, 2)" in str(caught.value)
    assert T.ceildiv(7, 2) == 4 and str(T.ceildiv(T.dyn("M"), 2)) == "(M + 2 - 1) // 2"


def test_an_integer_beyond_64_bits_is_no_float():
    for of in (lambda: T.dyn("M") * 2**70, lambda: 10**400 + T.dyn("M"), lambda: T.dyn("M") // 2**63):
        with pytest.raises(helve.Error, match="^error.HV0206.: an integer of .* bits is out of range") as caught:
            of()
        assert "integers have 64 bits at most" in str(caught.value)
    with pytest.raises(helve.Error, match="an integer of 71 bits is out of range"):
        T.ceildiv(T.dyn("M"), 2**70)


@pytest.mark.parametrize(
    "arguments",
    [((),), ((0, 2),), ((2, 3, 4),), ((2, 2), ("x", "x")), ((2, 2), ("x", "all")), ((2, 2), ("x", "y"), "tpu")],
)
def test_a_wrong_mesh_is_refused(arguments):
    with pytest.raises(helve.Error) as caught:
        helve.Mesh(*arguments)
    assert caught.value.code == "HV0412" and "helve.Mesh(*arguments)" in str(caught.value)


def test_a_mesh_is_a_value():
    assert helve.Mesh((2, 3)) == helve.Mesh([2, 3], ["x", "y"]) and helve.Mesh((4,)).names == ("x",)
    assert helve.Mesh((2, 3)).size == 6 and hash(helve.Mesh((2, 3))) == hash(T.Mesh((2, 3)))


BROKEN = "@T.prim_func\ndef main(A: T.Tensor((8,), 'float32')):\n    A[0] = 1.0\n"
SOUND = ("@T.prim_func\ndef main(n: T.int32, A: T.Tensor((8,), 'float32')):\n    with T.Kernel(1) as b:\n"
         "        A[0] = 1.0\n")
RUNS_OUT = SOUND.replace("A[0]", "A[T.index(n)]")


def _defined_wrongly():
    @helve.T.prim_func
    def wrong(A: helve.T.Tensor((8,), "float32")):
        A[0, 0] = 1.0


@pytest.mark.parametrize(
    "action",
    [lambda: helve.parse(BROKEN), _defined_wrongly, lambda: helve.compile(helve.parse(SOUND), target="gpu"),
     lambda: helve.compile(helve.parse(SOUND), mesh=helve.Mesh((2, 2)), verify=3), lambda: helve.compile(3),
     lambda: helve.compile(helve.parse(SOUND))(1.0, np.zeros(8, "float32")),
     lambda: helve.compile(helve.parse(SOUND))(),
     lambda: helve.compile(helve.parse(RUNS_OUT), target="interp")(70, np.zeros(8, "float32")),
     lambda: helve.T.exp(1.0), lambda: helve.T.dyn(3), lambda: helve.Layout.parse("S[")],
)
def test_a_traceback_ends_at_the_door(action):
    """Below the user's own frames stands what was called, and nothing of what it is made of."""
    with pytest.raises(helve.Error) as caught:
        action()
    package = str(Path(helve.__file__).parent)
    inside = [entry for entry in traceback.extract_tb(caught.value.__traceback__) if entry.filename.startswith(package)]
    assert len(inside) <= 2, inside
    assert not [entry for entry in inside if "/script/" in entry.filename and not entry.filename.endswith("entry.py")]
    assert caught.value.__cause__ is None and caught.value.__suppress_context__ or caught.value.__context__ is None


def test_integers_of_thousands_of_digits_are_a_limit_of_the_text():
    for text in (SOUND.replace("1.0", "1" + "0" * 5000), SOUND.replace("1.0", "2**20000")):
        with pytest.raises(helve.Error, match="beyond the limit of 4096 bits of an integer") as caught:
            helve.parse(text)
        assert caught.value.code == "HV0113"


def wrong_peak():
    """A function that is warned of: the pad of its copy may be the maximum."""

    @T.prim_func
    def main(A: T.Tensor((5,), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((8,), "float32")
            T.copy(A[0:8], a)
            T.reduce_max(a, B)

    return main


def test_faults_of_compiles_inside_helve_are_at_the_user_s_line():
    line = inspect.currentframe().f_lineno
    with pytest.warns(helve.Warning) as caught:
        helve.jit(wrong_peak)()
    assert (caught[0].filename, caught[0].lineno) == (__file__, line + 2)
    with pytest.raises(helve.Error) as refused:
        helve.jit(wrong_peak, target="lvm")
    assert (refused.value.filename, refused.value.lineno) == (__file__, line + 5)
    assert refused.value.code == "HV0802" and refused.value.column > 20, "the argument is marked"
