"""helve.autotune: what it finds, refuses and remembers. No test says how long anything takes."""

import functools
import importlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from nvrtc import needs_nvrtc

import helve
from helve import T

# `helve.autotune` is the function.
compiling = importlib.import_module("helve.autotune.compiling")
tune = importlib.import_module("helve.autotune.tune")
record = importlib.import_module("helve.autotune.record")
agreement = importlib.import_module("helve.autotune.agreement")
n = T.dyn("n")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HELVE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "autotune"


def scale(tile=64, threads=64, factor=2.0, dtype="float32"):
    """What its kernels compute does not depend on the first two."""
    if tile > 512:
        raise ValueError(f"tile is at most 512, not {tile}")

    @T.prim_func
    def main(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, tile), threads=threads) as b:
            for i in T.Parallel(tile):
                if b * tile + i < n:
                    B[b * tile + i] = A[b * tile + i] * T.cast(factor, dtype)
    return main


def add_up(tile):
    """Adds to what is there."""

    @T.prim_func
    def main(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
        with T.Kernel(T.ceildiv(n, tile)) as b:
            for i in T.Parallel(tile):
                if b * tile + i < n:
                    B[b * tile + i] = B[b * tile + i] + A[b * tile + i]
    return main


@pytest.fixture
def timed(monkeypatch):
    """The points whose kernels are measured, by their tile; a kernel of tile t takes t seconds."""
    calls = []

    class Timing:
        spread = 0.0

        def __init__(self, seconds):
            self.seconds = seconds

        def timing(self):
            return self

    def bench(candidates, *args, **options):
        kernel, = candidates.values()
        kernel(*args)
        tile = int(re.search(r"b \* (\d+)", kernel.source())[1])
        calls.append(tile)
        return Timing(float(tile))

    monkeypatch.setattr(tune, "bench", bench)
    return calls


def arrays(dtype="float32", size=200):
    return np.arange(size).astype(dtype), np.zeros(size, dtype)


def test_the_fastest_is_found(timed):
    a, b = arrays()
    found = helve.autotune(scale, {"tile": [64, 16, 32], "threads": [32, 64]}, a, b)
    assert found.best == {"tile": 16, "threads": 32} and found.left == 0
    assert [each.point["tile"] for each in found.candidates] == [16, 16, 32, 32, 64, 64]
    assert timed == [64, 64, 16, 16, 32, 32]  # in the order of the space
    b[:] = 0
    found.kernel(a, b)
    np.testing.assert_array_equal(b, 2 * a)
    assert found.to_dict()[2] == {"tile": 32, "threads": 32, "seconds": 32.0, "spread": 0.0, "ratio": 0.5,
                                  "refused": "", "recorded": False}


def test_with_the_true_clock():
    found = helve.autotune(scale, [{"tile": 16}, {"tile": 64, "threads": 32}], *arrays(), rounds=2, cache="warm")
    assert all(each.seconds > 0 for each in found.candidates) and found.best == found.candidates[0].point
    head, *rows = str(found).splitlines()
    assert head.split() == ["tile", "threads", "median", "spread", "ratio"] and len(rows) == 2
    assert rows[0].endswith("1.00x") and repr(found) == str(found)


def test_cost_gives_the_order_and_budgets_the_end(timed):
    points = {"tile": [64, 16, 32, 8]}
    found = helve.autotune(scale, points, *arrays(), cost=lambda tile: -tile, most=2)
    assert timed == [64, 32] and found.best == {"tile": 32} and found.left == 0
    found = helve.autotune(scale, points, *arrays(), seconds=1e-9, jobs=1)
    assert timed == [64, 32] and found.left == 3, "what is recorded takes no time"
    found = helve.autotune(scale, {"tile": [8, 16, 128, 256]}, *arrays(), seconds=1e-9, jobs=3)
    assert timed == [64, 32, 8] and found.left == 3
    assert str(found).splitlines()[-1] == "3 points were not tried: the time was over"


def test_outputs_options_and_other_arguments(timed):
    a, _ = arrays()
    build = functools.partial(scale, factor=3.0)
    found = helve.autotune(build, {"tile": [8, 16]}, a, out="B", fast_math=True, tolerance=1e-6)
    assert found.kernel.outputs == ("B",) and found.kernel(a)[3] == 9.0 and found.best == {"tile": 8}


@helve.jit(out="B", fast_math=True)
def shift(x, amount, tile=64):
    """Of the form that helve.jit takes: what it sees of an array is a TensorSpec."""
    size, = x.shape

    @T.prim_func
    def main(A: T.Tensor((size,), x.dtype), B: T.Tensor((size,), x.dtype)):
        with T.Kernel(T.ceildiv(size, tile)) as b:
            for i in T.Parallel(tile):
                if b * tile + i < size:
                    B[b * tile + i] = A[b * tile + i] + amount
    return main


def test_a_builder_under_jit_has_its_options(timed):
    a, _ = arrays()
    found = helve.autotune(shift, {"tile": [32, 8]}, a, 2.0)
    assert found.best == {"tile": 8} and found.kernel.outputs == ("B",) and found.kernel(a)[3] == 5.0
    assert text_of(lambda: helve.autotune(shift, {"tile": [8]}, a, 2.0, out="B")) == """\
error[HV0108]: 'helve.autotune' cannot take 'shift' for 'builder': it is under helve.jit, and has its outputs and \
options
help: leave them out here, or pass the function without helve.jit"""
    assert text_of(lambda: helve.autotune(shift, {"tile": [8]}, a)) == """\
error[HV0104]: 'shift' needs an argument for 'amount'
help: give it in every point of the space, or by functools.partial; to a builder under helve.jit, behind the \
space"""


def test_what_adds_is_compared_from_the_same_start(timed):
    a, b = arrays("int32")
    helve.autotune(add_up, {"tile": [8, 16, 32]}, a, b)
    np.testing.assert_array_equal(b, 3 * a)  # what was measured is written, what was compared is not


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_results_are_compared(library, dtype, timed):
    import ml_dtypes

    a, b = (each.astype(getattr(ml_dtypes, dtype, dtype)) for each in arrays())
    if library == "torch":
        torch = pytest.importorskip("torch")
        a, b = (torch.from_numpy(each.astype("float32")).to(getattr(torch, dtype)) for each in (a, b))
    near = {"float32": 2.00001, "bfloat16": 2.0, "int32": 2}[dtype]
    build = functools.partial(scale, dtype=dtype)
    two = {"factor": [2 if dtype == "int32" else 2.0, near]}
    assert len(helve.autotune(build, two, a, b).candidates) == 2
    with pytest.raises(helve.Error, match=r"differ from those of factor=2: 'B\[\d+\]' is \d+, not \d+, and 1\d\d of"):
        helve.autotune(build, {"factor": [2, 3]}, a, b, resume=False)


def test_differences_of_what_is_not_finite():
    def result(*elements):
        return [agreement.Result("X", "float32", np.array(elements))]

    inf, nan = np.inf, np.nan
    assert agreement.difference(result(1.0, inf, nan), result(1.0, inf, nan), None) is None
    assert agreement.difference(result(1.0, inf), result(1.0, -inf), None).startswith("'X[1]' is -inf, not inf, and 1")
    assert agreement.difference(result(1.0, 2.0), result(1.0, nan), None).startswith("'X[1]' is nan, not 2")
    assert agreement.difference(result(nan), result(0.0), None).startswith("'X[0]' is 0, not nan")
    assert agreement.difference(result(), result(), None) is None
    assert agreement.difference(result(1.0), result(1.0, 2.0), None) == "'X' has the shape (2,), not (1,)"
    assert agreement.difference(result(1.0), result(1.001), 0.01) is None


def test_a_search_goes_on_where_it_was(timed, folder):
    a, b = arrays()
    helve.autotune(scale, {"tile": [64, 32]}, a, b)
    found = helve.autotune(scale, {"tile": [32, 16, 64]}, a, b)
    assert timed == [64, 32, 16] and found.best == {"tile": 16}
    assert {each.point["tile"]: each.recorded for each in found.candidates} == {16: False, 32: True, 64: True}
    found = helve.autotune(scale, {"tile": [64, 32]}, a, b)
    assert timed == [64, 32, 16] and found.kernel(a, b) is None and "recorded" in str(found)
    helve.autotune(scale, {"tile": [64]}, a, b, resume=False)
    helve.autotune(scale, {"tile": [64]}, *arrays(size=100))
    helve.autotune(scale, {"tile": [64]}, a, b, cache="warm")
    helve.autotune(scale, {"tile": [64]}, a, b, fast_math=True)
    helve.autotune(scale, {"tile": [64], "factor": [3.0]}, a, b)  # another source
    assert timed == [64, 32, 16, 64, 64, 64, 64, 64]
    path = max(folder.iterdir(), key=lambda each: each.stat().st_size)
    head, *lines = map(json.loads, path.read_text().splitlines())
    assert head["circumstances"]["arguments"] == [["float32", 200], ["float32", 200]]
    assert [line["point"] for line in lines] == ["tile=64", "tile=32", "tile=16", "tile=64", "tile=64, factor=3.0"]


def test_a_new_candidate_is_compared_with_a_recorded_one(timed):
    helve.autotune(scale, {"factor": [2.0]}, *arrays())
    with pytest.raises(helve.Error, match="differ from those of factor=2.0"):
        helve.autotune(scale, {"factor": [2.0, 3.0]}, *arrays())


def test_lines_that_are_not_whole_are_passed_over(timed, folder):
    helve.autotune(scale, {"tile": [64, 32]}, *arrays())
    path, = folder.iterdir()
    text = path.read_text()
    path.write_text(text[:-9] + '\n[1]\n{"source": 3}\n{"source": "x", "seconds": -1.0, "spread": 0.0}\n' + text[:20])
    found = helve.autotune(scale, {"tile": [64, 32]}, *arrays())
    assert timed == [64, 32, 32] and all(each.seconds for each in found.candidates)
    helve.autotune(scale, {"tile": [64, 32]}, *arrays())
    assert len(timed) == 3, "what came behind the torn line is read"
    path.write_bytes(b"\xff\xfe\x00")
    helve.autotune(scale, {"tile": [64]}, *arrays())
    assert len(timed) == 4


PROGRAM = """
import numpy as np
import helve
from test_autotune import scale

a, b = np.ones(1000, "float32"), np.zeros(1000, "float32")
print(helve.autotune(scale, {"tile": [8, 16, 32, 64, 128]}, a, b, rounds=ROUNDS, cache="warm"))
"""


def environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), os.path.dirname(__file__)])}


def entries(folder):
    """Whole lines of the only record, the first aside."""
    paths = list(folder.glob("*.jsonl"))
    return [json.loads(line) for line in paths[0].read_text().split("\n")[1:-1]] if paths else []


def test_a_killed_search_resumes(folder, llvm):
    slow = subprocess.Popen([sys.executable, "-c", PROGRAM.replace("ROUNDS", "10000")], env=environment())
    try:
        end = time.monotonic() + 200
        while len(entries(folder)) < 2 and time.monotonic() < end:
            assert slow.poll() is None, "it has ended by itself"
            time.sleep(0.01)
    finally:
        slow.send_signal(signal.SIGKILL)
        slow.wait()
    before = entries(folder)
    assert 2 <= len(before) < 5
    done = subprocess.run([sys.executable, "-c", PROGRAM.replace("ROUNDS", "2")], env=environment(), timeout=120,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("recorded") == len(before) and len(done.stdout.splitlines()) == 6
    after = entries(folder)
    assert after[: len(before)] == before and len({each["source"] for each in after}) == len(after) == 5


def test_the_terminal_shows_how_far_it_is(llvm):
    pytest.importorskip("rich")
    terminal, end = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", PROGRAM.replace("ROUNDS", "2")], stdout=subprocess.PIPE, stderr=end,
                          env={**environment(), "TERM": "xterm"}) as process:
        os.close(end)
        shown = b""
        try:
            while part := os.read(terminal, 4096):
                shown += part
        except OSError:  # the other end is closed
            pass
        assert len(process.stdout.read().splitlines()) == 6
    os.close(terminal)
    text = shown.decode()
    assert "scale" in text and "/5" in text and re.search(r"s by tile=\d+", text)


def test_rich_is_asked_for_where_it_is_missing(monkeypatch, timed):
    monkeypatch.setitem(sys.modules, "rich", None)
    assert helve.autotune(scale, {"tile": [8]}, *arrays()).best == {"tile": 8}
    assert text_of(lambda: helve.autotune(scale, {"tile": [8]}, *arrays(), progress=True)) == """\
error[HV0108]: 'helve.autotune' cannot take True for 'progress': it is shown by rich, which is missing
help: install it, as pip install "helve[tune]", or leave progress= out"""


def recipe(target="llvm", **options):
    return compiling.Recipe(target, None, None, options)


def test_processes_compile_for_others():
    with compiling.Compiler(recipe(), 2, processes=True) as compiler:
        kernels = compiler.compiled([scale(tile) for tile in (8, 16, 32)])
        assert [each.target for each in kernels] == ["llvm"] * 3
        odd = helve.parse('@T.prim_func\ndef f(A: T.Tensor((4,), "float32")):\n    with T.Kernel(4) as i:\n'
                          '        A[i] = A[i + 4]\n')
        assert compiler.compiled([odd])[0].startswith("HV0210: index")


def test_a_compiler_that_ends_takes_one_candidate(monkeypatch):
    with compiling.Compiler(recipe(), 1, processes=True) as compiler:
        monkeypatch.setattr(compiling, "_SERVE", "import os; os._exit(3)")
        assert compiler.compiled([scale()]) == ["the compiler ended with status 3"]
        monkeypatch.undo()
        assert compiler.compiled([scale()])[0].target == "llvm"


@needs_nvrtc
def test_what_processes_compile_for_a_gpu_is_in_the_cache(folder):
    with compiling.Compiler(recipe("cuda", arch="sm_80"), 2) as compiler:
        assert all(isinstance(each, helve.Kernel) for each in compiler.compiled([scale(8), scale(16)]))
        assert all(worker._process is not None for worker in compiler._workers)
    assert all(worker._process is None for worker in compiler._workers)
    assert len(list(folder.parent.glob("v*/*"))) == 2


def text_of(call):
    """The rendered error, without its place, which is the call's."""
    with pytest.raises(helve.Error) as caught:
        call()
    assert caught.value.filename == __file__
    return re.sub(r"\n *--> .*\n *\|\n.*\n.*(?=\n|$)", "", str(caught.value), count=1)


def tuned(space, *args, build=scale, **named):
    return lambda: helve.autotune(build, space, *(args or arrays()), **named)


REFUSED = {
    "no space": (tuned(3), """\
error[HV0108]: 'helve.autotune' cannot take 3 for 'space': it is neither a dictionary of lists nor a list of \
dictionaries
help: give for example {"tile": [32, 64], "threads": [128, 256]}"""),
    "no point": (tuned({"tile": []}), """\
error[HV0108]: 'helve.autotune' cannot take {'tile': []} for 'space': it has no point
help: give each keyword a value or more"""),
    "no list": (tuned({"tile": 8}), """\
error[HV0108]: 'helve.autotune' cannot take 8 for 'space': the values of 'tile' are no list
help: give the values in a list"""),
    "no such keyword": (tuned({"tiles": [8]}), """\
error[HV0103]: 'scale' has no parameter 'tiles'
help: did you mean 'tile'?"""),
    "nothing like it": (tuned([{"tile": 8}, {"warps": 8}]), """\
error[HV0103]: 'scale' has no parameter 'warps'
help: its parameters are: tile=64, threads=64, factor=2.0, dtype='float32'"""),
    "a keyword is missing": (tuned([{}], build=add_up), """\
error[HV0104]: 'add_up' needs an argument for 'tile'
help: give it in every point of the space, or by functools.partial; to a builder under helve.jit, behind the \
space"""),
    "no builder": (tuned({"tile": [8]}, build=4), """\
error[HV0108]: 'helve.autotune' cannot take 4 for 'builder': it is no function
help: pass a function that returns a kernel function"""),
    "no arguments": (lambda: helve.autotune(scale, {"tile": [8]}), """\
error[HV0108]: 'helve.autotune' cannot take <function scale> for 'builder': there is nothing to call its kernels with
help: give the arguments of a call behind the space"""),
    "interpreter": (tuned({"tile": [8]}, target="interp"), """\
error[HV0108]: 'helve.autotune' cannot take 'interp' for 'target': the time of the interpreter says nothing about a \
kernel
help: give "llvm" or "cuda\""""),
    "time": (tuned({"tile": [8]}, seconds=0), """\
error[HV0108]: 'helve.autotune' cannot take 0 for 'seconds': it is no number above 0
help: leave it out, or give such a number"""),
    "cache": (tuned({"tile": [8]}, cache="both"), """\
error[HV0108]: 'helve.autotune' cannot take 'both' for 'cache': it is no state of the caches
help: give "cold" or "warm\""""),
    "cost": (tuned({"tile": [8]}, cost=lambda tile: "much"), """\
error[HV0108]: 'helve.autotune' cannot take 'much' for 'cost': it is no cost of tile=8
help: return a number"""),
    "all are refused": (tuned([{"tile": 1024}, {"threads": 33}, {"tile": 8, "dtype": "int32"}]), """\
error[HV0108]: 'helve.autotune' cannot take these points for 'space': none of them gives a kernel
note: tile=1024: tile is at most 512, not 1024
note: threads=33: HV0108: 'T.Kernel' cannot take 33 for 'threads': threads come in warps of 32
note: tile=8, dtype='int32': HV0603: 'A' is int32, the argument is float32
help: correct what the notes say, or give other values"""),
    "results differ": (tuned({"tile": [8], "factor": [2.0, 3.0]}), """\
error[HV0108]: 'helve.autotune' cannot take tile=8, factor=3.0 for 'space': its results differ from those of tile=8, \
factor=2.0: 'B[1]' is 3, not 2, and 199 of 200 elements differ
help: correct the builder: what is tuned must not change results; or allow the difference by tolerance="""),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_tuned_is_refused(case, timed):
    call, text = REFUSED[case]
    assert re.sub(" at 0x[0-9a-f]+", "", text_of(call)) == text


def test_a_record_that_cannot_be_written_is_told(folder, timed):
    folder.parent.mkdir()
    folder.write_text("")
    fault = text_of(tuned({"tile": [8]}))
    assert re.sub("take '.*?'", "take 'PATH'", fault) == """\
error[HV0108]: 'helve.autotune' cannot take 'PATH' for 'resume': its record cannot be written: File exists
help: set HELVE_CACHE_DIR to a folder that this user may write"""


def test_what_a_builder_raises_comes_through(timed):
    def broken(tile):
        return undefined  # noqa: F821

    with pytest.raises(NameError):
        helve.autotune(broken, {"tile": [8]}, *arrays())
    found = helve.autotune(lambda tile: None if tile == 8 else scale(tile), {"tile": [8, 16]}, *arrays())
    assert found.best == {"tile": 16} and found.candidates[1].refused.startswith("HV0806")
