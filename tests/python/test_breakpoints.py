"""Breakpoints: the interpreter stops with what is in scope, other targets leave them out."""

import os
import sys
import warnings

import helve
import helve.testing
import numpy as np
import pytest
from helve import T, _core


@pytest.fixture
def stops(monkeypatch):
    """The frames in which sys.breakpointhook was called: file, line, function, names."""
    seen = []

    def hook():
        frame = sys._getframe(1)
        seen.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, dict(frame.f_locals)))

    monkeypatch.setattr(sys, "breakpointhook", hook)
    return seen


M = T.dyn("M")


@T.prim_func
def rows(A: T.Tensor((M, 4), "float32"), n: T.int32, B: T.Tensor((M, 4), "float32")):
    with T.Kernel(M, threads=32) as b:
        tile = T.alloc_shared((4,), "float32")
        best = T.alloc_var("int32", 7)
        T.copy(A[b, :], tile)
        for i in T.serial(4):
            x = tile[i] * 2.0
            breakpoint()
            B[b, i] = x + T.cast(n + best, "float32")


LINE = next(n for n, line in enumerate(open(__file__), 1) if line.strip() == "breakpoint()")


def arguments():
    return [np.arange(8, dtype="float32").reshape(2, 4), 3, np.zeros((2, 4), "float32")]


def test_the_interpreter_stops_with_what_is_in_scope(stops):
    given = arguments()
    helve.compile(rows, target="interp")(*given)
    assert len(stops) == 8
    filename, line, function, scope = stops[5]
    assert (filename, line, function) == (__file__, LINE, "rows")
    assert set(scope) == {"M", "A", "B", "n", "b", "tile", "best", "i", "x"}
    assert [scope[name] for name in ("M", "n", "b", "best", "i", "x")] == [2, 3, 1, 7, 1, 10.0]
    assert isinstance(scope["x"], float) and isinstance(scope["i"], int)
    np.testing.assert_array_equal(scope["A"], given[0])
    np.testing.assert_array_equal(scope["tile"], np.float32([4, 5, 6, 7]))
    np.testing.assert_array_equal(scope["B"], [[10, 12, 14, 16], [18, 0, 0, 0]])
    np.testing.assert_array_equal(given[2], given[0] * 2 + 10)


def test_what_is_shown_is_a_copy(stops):
    helve.compile(rows, target="interp")(*arguments())
    with pytest.raises(ValueError, match="read-only"):
        stops[0][3]["A"][0, 0] = 1


@pytest.mark.parametrize("check", ["all", "races", None])
def test_looking_is_no_use(stops, check):
    """What was never written is shown too, and is no fault."""
    program = helve.parse("""@T.prim_func
def main(A: T.Tensor((4,), "bfloat16"), I: T.Tensor((4,), "int4"), F: T.Tensor((2,), "float4_e2m1"),
         B: T.Tensor((4,), "bool")):
    with T.Kernel(1) as b:
        X = T.alloc_shared((2, 2), "bfloat16")
        t = A[1]
        T.breakpoint()
        for i in T.Parallel(4):
            B[i] = A[i] > t
""")
    a = np.arange(4).astype(helve.testing.numpy_dtype("bfloat16"))
    helve.compile(program, target="interp", check=check)(a, np.uint8([0x8f, 0x70]), np.uint8([0xf2]),
                                                           np.zeros(4, bool))
    (scope,) = [names for *_, names in stops]
    assert np.isnan(scope["X"].astype("float32")).all() and scope["X"].shape == (2, 2)
    assert scope["t"] == 1.0 and scope["B"].tolist() == [False] * 4
    assert scope["I"].tolist() == [-1, -8, 0, 7] and scope["F"].tolist() == [1.0, -6.0]


def test_a_fault_in_the_hook_ends_the_call(monkeypatch):
    def hook():
        raise RuntimeError("enough")

    monkeypatch.setattr(sys, "breakpointhook", hook)
    with pytest.raises(RuntimeError, match="enough"):
        helve.compile(rows, target="interp")(*arguments())


def test_pdb_is_the_default(tmp_path):
    """As a user has it: pdb shows the kernel's file, and its commands know the names."""
    import subprocess

    path = tmp_path / "kernel.py"
    path.write_text("""import helve, numpy as np
from helve import T

@T.prim_func
def double(A: T.Tensor((2,), "float32")):
    with T.Kernel(1) as b:
        for i in T.serial(2):
            x = A[i]
            breakpoint()
            A[i] = x * 2.0

a = np.float32([1.5, 2.5])
helve.compile(double, target="interp")(a)
print(a)
""")
    done = subprocess.run([sys.executable, str(path)], input="p (i, x)\nc\np A.tolist()\nc\n", text=True,
                          capture_output=True, check=True, env={**os.environ, "PYTHONBREAKPOINT": ""})
    assert f"> {path}(9)double()" in done.stdout
    assert "(0, 1.5)" in done.stdout and "[3.0, 2.5]" in done.stdout
    assert done.stdout.endswith("[3. 5.]\n")


@pytest.mark.parametrize("target", ["llvm", "cuda"])
def test_other_targets_leave_it_out(target, stops):
    stages = dict(helve.testing.lowering_stages(rows, target=target))
    assert "breakpoint" in _core.print(stages["script"])
    assert "breakpoint" not in _core.print(stages["drop_breakpoints"])
    if target == "llvm":
        with pytest.warns(helve.Warning, match="HV0819"):
            kernel = helve.compile(rows, target="llvm")
        given = arguments()
        kernel(*given)
        np.testing.assert_array_equal(given[2], given[0] * 2 + 10)
    helve.testing.check_stages(rows, arguments, target=target)
    assert stops == []


def test_the_text_reads_back():
    helve.testing.assert_round_trip(rows.function)
    assert "T.breakpoint({" in rows.script()


def test_a_name_of_the_program_is_not_pythons():
    breakpoint = 2.0  # noqa: A001

    @T.prim_func
    def main(A: T.Tensor((1,), "float32")):
        with T.Kernel(1):
            A[0] = breakpoint

    assert "T.breakpoint" not in main.script()


def test_a_helper_shows_its_own_names(stops):
    def halved(x):
        y = x * 0.5
        breakpoint()
        return y

    @T.prim_func
    def main(A: T.Tensor((1,), "float32")):
        with T.Kernel(1) as b:
            z = A[0]
            A[0] = halved(z)

    helve.compile(main, target="interp")(np.float32([3]))
    (scope,) = [names for *_, names in stops]
    assert scope == {"x": 3.0, "y": 1.5}


def test_no_warning_under_the_interpreter(stops):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        helve.compile(rows, target="interp")
