"""The command `helve`: what it prints, and its answers to what cannot be used: code 2, the fault and the remedy."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import helve
from helve.arguments import numpy_dtype
from helve.cli import cache, doctor, libraries, main
from helve.cli.mistakes import Mistake
from helve.cli.programs import load, to_torch
from nvrtc import needs_nvrtc

ROOT = Path(__file__).resolve().parents[2]
KERNELS = """
from helve import T

M = T.dyn("M")

@T.prim_func
def double(A: T.Tensor((M, 64), "float32"), B: T.Tensor((M, 64), "float32")):
    with T.Kernel(M) as i:
        for j in T.Parallel(64):
            B[i, j] = A[i, j] * 2.0

def fill(n, value):
    @T.prim_func
    def filled(A: T.Tensor((n,), "float32"), k: T.int32):
        with T.Kernel(n) as i:
            A[i] = value
    return filled

if __name__ == "__main__":
    raise SystemExit("not by the command")
"""
SHORTER = """
from helve import T

N = T.dyn("N")

@T.prim_func
def shorter(A: T.Tensor((N,), "float32"), B: T.Tensor((N - 5,), "float32")):
    with T.Kernel(1):
        for i in T.serial(N - 5):
            B[i] = A[i + 5]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("helve._core.host_machine", SmallCaches)
    (tmp_path / "kernels.py").write_text(KERNELS)
    return tmp_path


class SmallCaches:
    """A machine whose caches are quickly overwritten."""

    name, bandwidth, peaks, vector_bytes = "small", 0.0, {}, 32
    first_cache, last_cache, second_cache, processors = 1 << 10, 1 << 16, 1 << 12, 2


def refused(capsys, *words):
    """The message of a command that ends with 2."""
    try:
        code = main(list(words))
    except SystemExit as end:  # argparse's own
        code = end.code
    out, message = capsys.readouterr()
    assert code == 2 and out == ""
    return message


def printed(capsys, *words):
    assert main(list(words)) == 0
    out, message = capsys.readouterr()
    assert message == ""
    return out


def test_run_prints_shapes_and_times(folder, capsys):
    lines = printed(capsys, "run", "kernels.py", "--size", "M=8", "--rounds", "2").splitlines()
    assert lines[:3] == ["<helve.Kernel double(A: float32[M, 64], B: float32[M, 64]) for llvm>",
                         "  A: float32[8, 64]", "  B: float32[8, 64]"]
    assert [line.split()[:2] for line in lines[4:]] == [["double", "cold"], ["double", "warm"]]
    assert "  A: float32[256, 64]\n" in printed(capsys, "run", "kernels.py:double", "--rounds", "1")


def test_run_takes_expressions(folder, capsys):
    out = printed(capsys, "run", "kernels.py:fill(3, 1.0)", "--target", "interp")
    assert out == ("<helve.Kernel filled(A: float32[3], k: int32) for interp>\n  A: float32[3]\n  k: int32 = 1\n"
                   "it runs; the interpreter is not timed\n")


def test_run_on_a_mesh(folder, capsys):
    Path("mesh.py").write_text((ROOT / "tutorials" / "01_rms_norm.py").read_text())
    out = printed(capsys, "run", "mesh.py:rms_norm_splitk(64, 64, 32, 32, __import__('helve').Mesh((2, 2)))",
                  "--mesh", "2,2", "--rounds", "1")
    assert "  A: float32[64, 64]\n" in out


def test_show(folder, capsys):
    assert printed(capsys, "show", "kernels.py") == helve.compile(load("kernels.py:double")).source("script") + "\n"
    lowered = printed(capsys, "show", "kernels.py:double", "--stage", "llvm")
    assert "define" in lowered
    assert {"script", "lowered", "asm"} <= set(printed(capsys, "show", "kernels.py", "--stages").split())


def test_layout_in_the_notation_of_cute(capsys):
    assert printed(capsys, "layout", "(8,4):(4,1)") == printed(capsys, "layout", "S[(8, 4) : (4, 1)]")
    assert printed(capsys, "layout", "8:1") == printed(capsys, "layout", "S[8 : 1]")
    assert "error[HV05" in refused(capsys, "layout", "(8,4):(4")


@needs_nvrtc
def test_show_cuda_without_a_gpu(folder, capsys):
    out = printed(capsys, "show", "kernels.py", "--target", "cuda", "--arch", "sm_80", "--stage", "cuda")
    assert "__global__" in out


@pytest.mark.parametrize("words, message", [
    (["run", "none.py"], "error: there is no file 'none.py'\n"
     "help: give a file of Python, and the kernel behind a colon: kernels.py:softmax\n"),
    (["run", "kernels.py:doubel"], "error: there is no 'doubel' in 'kernels.py'\nhelp: did you mean 'double'?\n"),
    (["show", "kernels.py:xyz"], "error: there is no 'xyz' in 'kernels.py'\nhelp: its kernels are: double\n"),
    (["run", "kernels.py:fill"], "error: 'fill' in 'kernels.py' is no kernel function but a value of type 'function'\n"
     "help: if it makes a kernel, give its arguments: kernels.py:fill(...)\n"),
    (["run", "kernels.py:M"], "error: 'M' in 'kernels.py' is no kernel function but a value of type 'Var'\n"
     "help: name one of: double\n"),
    (["run", "kernels.py", "--size", "N=3"], "error: 'double' has no open extent 'N'\nhelp: its open extents are: M\n"),
    (["run", "kernels.py", "--size", "M=2147483647"], "error: the arguments do not fit in memory: the arguments have "
     "more than 2147483648 elements\nhelp: give smaller extents by --size\n"),
    (["run", "shorter.py", "--size", "N=4"], "error: 'B' would have -1 elements along axis 0\n"
     "help: give larger extents by --size\n"),
    (["run", "two.py"], "error: 'two.py' has 2 kernels\nhelp: name one: two.py:double; they are double, other\n"),
    (["run", "empty.py"], "error: 'empty.py' has no kernel\n"
     "help: give a call that makes one: empty.py:builder(4096)\n"),
    (["show", "empty.py:xyz"], "error: there is no 'xyz' in 'empty.py'\nhelp: it has no kernels\n"),
])
def test_mistakes(folder, capsys, words, message):
    Path("two.py").write_text(KERNELS + "\nother = fill(3, 1.0)\n")
    Path("empty.py").write_text("")
    Path("shorter.py").write_text(SHORTER)
    assert refused(capsys, *words) == message


def test_files_that_fail(folder, capsys):
    Path("fails.py").write_text("x = 1\n1 / 0\n")
    at = Path("fails.py").resolve()
    remedy = 'help: mend it, or put what is not to run below: if __name__ == "__main__":\n'
    assert refused(capsys, "run", "fails.py") == (
        f"error: 'fails.py' fails at {at}:2: ZeroDivisionError: division by zero\n{remedy}")
    Path("fails.py").write_text("x = = 1\n")
    assert refused(capsys, "run", "fails.py").startswith(f"error: 'fails.py' fails at {at}:1: SyntaxError: ")
    assert refused(capsys, "run", "kernels.py:fill(3").startswith("error: 'fill(3' fails at <kernels.py:fill(3>:1: Syn")
    Path("fails.py").write_text("raise SystemExit('done')\n")
    assert refused(capsys, "run", "fails.py").startswith(f"error: 'fails.py' fails at {at}:1: SystemExit: done\n")


def test_faults_of_kernels_are_told_as_helve_does(folder, capsys):
    Path("wrong.py").write_text(KERNELS.replace("A[i, j] * 2.0", "A[i, j, 0]"))
    assert re.match(r"error\[HV\d+\]: .*\n *--> wrong.py:10:", refused(capsys, "run", "wrong.py"))
    # Of the command line there is no place to show.
    assert refused(capsys, "run", "kernels.py", "--target", "lvm") == (
        "error[HV0802]: 'lvm' is not a target\nhelp: did you mean 'llvm'?\n")
    assert refused(capsys, "show", "kernels.py", "--arch", "sm_80") == (
        "error[HV0807]: target 'llvm' has no option 'arch'\nhelp: compile with target=\"cuda\", which has it\n")
    assert refused(capsys, "layout", "S[(2, 3) : (3").startswith("error[HV05")
    unknown = refused(capsys, "show", "kernels.py", "--stage", "lowerd")
    assert unknown == "error[HV0804]: 'lowerd' is not a stage of this kernel\nhelp: did you mean 'lowered'?\n"


@pytest.mark.parametrize("start", [["-m", "helve"], ["-c", "import sys, helve.cli; sys.exit(helve.cli.main())"]])
def test_the_process_ends_with_the_code(start):
    done = subprocess.run([sys.executable, *start, "layout", "S[6 : 1]", "--shape", "0,6"], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("error[HV0512]") and "-->" not in done.stderr


@pytest.mark.parametrize("words, message", [
    ([], "the following arguments are required: COMMAND"),
    (["docter"], "invalid choice: 'docter'"),
    (["cache", "empty"], "invalid choice: 'empty'"),
    (["run"], "the following arguments are required: FILE[:function]"),
    (["run", "kernels.py", "--size", "8"], "'8' is no extent such as M=4096"),
    (["run", "kernels.py", "--size", "M=x"], "'x' is no whole number of 0 or more"),
    (["run", "kernels.py", "--rounds", "0"], "'0' is no whole number of 1 or more"),
    (["run", "kernels.py", "--mesh", "2x2"], "'2x2' is no list of numbers such as 8,16"),
])
def test_options_that_cannot_be_used(folder, capsys, words, message):
    text = refused(capsys, *words)
    assert message in text and text.startswith("usage: helve")


def test_doctor_finds_and_remedies(monkeypatch, capsys):
    monkeypatch.setattr(libraries, "distribution", {"numpy": "2.0", "cupy-cuda12x": "13.0"}.get)
    monkeypatch.setattr(libraries, "driver", lambda: None)
    monkeypatch.setattr(libraries, "nccl_version", lambda: "2.27.3")
    monkeypatch.setattr(libraries, "program_line", lambda program, pattern: None)
    lines = printed(capsys, "doctor").splitlines()
    assert lines[0].startswith(f"ok       helve       {helve.__version__} at ")
    assert 'ok       LLVM        target="llvm" compiles' in lines
    assert "ok       NCCL        2.27.3" in lines and "ok       cupy        13.0" in lines
    place = lines.index("missing  driver      not found")
    assert lines[place + 1].strip().startswith("help: for a GPU of NVIDIA, install its driver")
    below = lines[lines.index("missing  jax         not found") + 1]
    assert below == " " * 21 + "help: for arrays of JAX: pip install jax"
    named = [line[9:20].strip() for line in lines if line[:1] != " "]
    assert named == ["helve", "CPU", "LLVM", "driver", "NVRTC", "nvcc", "NCCL", "MPI", "numpy", "ml_dtypes", "torch",
                     "cupy", "jax", "rich", "matplotlib", "cache"]
    for line, below in zip(lines, [*lines[1:], ""]):
        assert line.startswith("missing") == below.strip().startswith("help: ")


def test_doctor_tells_gpus(monkeypatch):
    class Driver:
        lines = ["NVIDIA H100, sm_90, 80 GiB, 132 multiprocessors"]

        def version(self):
            return "CUDA 13.0"

        def devices(self):
            return self.lines

    monkeypatch.setattr(libraries, "driver", Driver)
    assert [str(each) for each in doctor._gpus()] == [
        "ok       driver      CUDA 13.0", "ok       GPU 0       NVIDIA H100, sm_90, 80 GiB, 132 multiprocessors"]
    Driver.lines = []
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert [each.remedy for each in doctor._gpus()] == ["", "CUDA_VISIBLE_DEVICES is '': unset it"]


def test_doctor_tells_why_a_compiler_does_not_work(monkeypatch):
    monkeypatch.setattr(helve, "compile", lambda *args, **options: helve.parse("def"))
    finding = doctor._compiler("LLVM", "llvm", "", [])
    assert finding.text and finding.remedy
    monkeypatch.setenv("HELVE_CACHE_LIMIT", "much")
    assert str(doctor._cache([])).startswith("missing  cache")


@needs_nvrtc
def test_doctor_tells_what_the_compiler_says_of_the_cache(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HELVE_CACHE_DIR", str(tmp_path / "file" / "kernels"))
    monkeypatch.delenv("HELVE_CACHE_LIMIT", raising=False)
    line, *below = printed(capsys, "doctor").splitlines()[-2:]
    assert line.startswith("missing  cache       the cache folder ")
    assert below[0].strip().startswith("help: set HELVE_CACHE_DIR to a folder that can be written")


def test_warnings_of_helve_are_told_as_they_are(folder, capsys):
    Path("warns.py").write_text("import warnings, helve\n"
                                "warnings.warn(helve.Warning('warning[HV0000]: w', 'HV0000', 'w', [], ''))\n"
                                "warnings.warn('other')\n" + KERNELS)
    assert main(["show", "warns.py"]) == 0
    told = capsys.readouterr().err
    assert told.startswith("warning[HV0000]: w\n") and "UserWarning: other" in told


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float8_e4m3", "bool", "int8", "uint16", "int64"])
def test_arguments_move_to_torch(name):
    torch = pytest.importorskip("torch")
    value = (np.arange(6).reshape(2, 3) % 2).astype(numpy_dtype(name))
    for each in (value, value[0, 1:2].reshape(())):
        moved = to_torch(torch, each, "cpu")
        assert moved.shape == each.shape and moved.double().tolist() == each.astype("float64").tolist()
    with pytest.raises(TypeError):
        to_torch(torch, value.T, "cpu")


class Library:
    """What a driver's functions write."""

    @staticmethod
    def cuDriverGetVersion(out):  # noqa: N802
        out._obj.value = 13010
        return 0

    @staticmethod
    def cuInit(flags):  # noqa: N802
        return 0

    @staticmethod
    def cuDeviceGetCount(out):  # noqa: N802
        out._obj.value = 1
        return 0

    @staticmethod
    def cuDeviceGet(out, number):  # noqa: N802
        return 0

    @staticmethod
    def cuDeviceGetName(name, size, device):  # noqa: N802
        name.value = b"GPU"

    @staticmethod
    def cuDeviceTotalMem_v2(out, device):  # noqa: N802
        out._obj.value = 80 << 30

    @staticmethod
    def cuDeviceGetAttribute(out, key, device):  # noqa: N802
        out._obj.value = {75: 9, 76: 0, 16: 132}[key]


def test_the_driver_is_asked():
    driver = libraries.Driver(Library)
    assert driver.version() == "CUDA 13.1"
    assert driver.devices() == ["GPU, sm_90, 80 GiB, 132 multiprocessors"]


def test_versions_of_programs(tmp_path):
    program = tmp_path / "nvcc"
    program.write_text("#!/bin/sh\necho first\necho release 13.0\n")
    program.chmod(0o755)
    assert libraries.program_line(str(program), "release") == f"release 13.0 at {program}"
    assert libraries.program_line(str(program), "third") == f"first at {program}"
    program.write_text("#!/bin/sh\nexit 3\n")
    assert libraries.program_line(str(program), "x") is None
    assert libraries.program_line(str(tmp_path / "none"), "x") is None
    assert libraries.distribution("numpy") and libraries.distribution("no-such-package") is None
    assert libraries.shared_library(["libnone.so.7"], "none") is None


def entry(name="0" * 64, text=b"HELVEC01" + b"x" * 1016, version="v1"):
    path = cache.folder() / version / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)
    return path


def test_the_cache_is_shown_and_cleared(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HELVE_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.delenv("HELVE_CACHE_LIMIT", raising=False)
    assert printed(capsys, "cache") == f"{tmp_path}/kernels\n0 entries, 0 bytes of at most 1.0 GiB\n"
    ours = [entry(), entry(".new-1-2-3", b"")]
    others = [entry("1" * 64, b"other"), entry("notes.txt"), entry(version="own"), entry("a.jsonl", b"{}", "autotune")]
    ours.append(entry("b.jsonl", b'{"circumstances": {}}\n', "autotune"))
    (link := tmp_path / "kernels" / "v1" / ("2" * 64)).symlink_to(others[1])
    assert printed(capsys, "cache", "show").splitlines()[1] == "3 entries, 1.0 KiB of at most 1.0 GiB"
    assert printed(capsys, "cache", "clear").splitlines()[1] == "removed 3 entries, 1.0 KiB"
    assert not any(path.exists() for path in ours) and all(path.exists() for path in [*others, link])
    monkeypatch.setenv("HELVE_CACHE_LIMIT", "0")
    assert printed(capsys, "cache").splitlines()[1] == "0 entries, 0 bytes; turned off by HELVE_CACHE_LIMIT"
    monkeypatch.setenv("HELVE_CACHE_LIMIT", "-3")
    assert refused_after_folder(capsys) == (
        "error: HELVE_CACHE_LIMIT is '-3'\n"
        "help: give the largest size of the cache in MiB, a whole number; 0 turns the cache off\n")


def refused_after_folder(capsys):
    assert main(["cache"]) == 2
    return capsys.readouterr().err


def test_the_folder_of_the_cache(monkeypatch):
    for name in ("HELVE_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    assert cache.folder().name == f"helve-{os.getuid()}"
    monkeypatch.setenv("HOME", "/users/me")
    assert cache.folder() == Path("/users/me/.cache/helve")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache.folder() == Path("/caches/helve")
    monkeypatch.setenv("HELVE_CACHE_DIR", "/own")
    assert cache.folder() == Path("/own")


@needs_nvrtc
@pytest.mark.parametrize("variables", [{"HELVE_CACHE_DIR": "a"}, {"XDG_CACHE_HOME": "b"}, {"HOME": "c"}],
                         ids=["HELVE_CACHE_DIR", "XDG_CACHE_HOME", "HOME"])
def test_the_compiler_stores_where_the_command_looks(tmp_path, variables):
    """One entry is compiled, one is counted and one is removed."""
    tmp_path.chmod(0o700)
    (tmp_path / "kernels.py").write_text(KERNELS)
    plain = {name: value for name, value in os.environ.items()
             if name not in ("HELVE_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "HELVE_CACHE_LIMIT")}
    environment = {**plain, **{name: str(tmp_path / value) for name, value in variables.items()}}

    def command(*words):
        done = subprocess.run([sys.executable, "-m", "helve", *words], cwd=tmp_path, env=environment, text=True,
                              capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    command("show", "kernels.py", "--target", "cuda", "--arch", "sm_80")
    assert re.match(r"1 entry, \d+\.\d KiB of", command("cache").splitlines()[1])
    assert command("cache", "clear").splitlines()[1].startswith("removed 1 entry, ")
    assert command("cache").splitlines()[1].startswith("0 entries")


def test_sizes_have_units():
    assert [cache.size_text(size) for size in (0, 1023, 1024, 3 << 19, 5 << 30)] == [
        "0 bytes", "1023 bytes", "1.0 KiB", "1.5 MiB", "5.0 GiB"]


def test_a_reader_that_stops_reading_is_no_fault(tmp_path):
    (tmp_path / "kernels.py").write_text(KERNELS)
    line = f"{sys.executable} -m helve show kernels.py --stage asm | head -c 1"
    done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert len(done.stdout) == 1 and done.stderr == ""


def test_commands_of_the_documentation_end_well(folder, monkeypatch, capsys):
    """Those of the page about the command, on the file that the page makes."""
    monkeypatch.setenv("HELVE_CACHE_DIR", str(folder / "cache"))
    text = (ROOT / "docs" / "command.md").read_text()
    found = re.findall(r"^\$ helve (.*)$", text, re.M)
    assert len(found) >= 6 and {line.split()[0] for line in found} >= {"doctor", "cache", "run", "show"}
    for line in found:
        if "--target cuda" in line and libraries.shared_library(["libnvrtc.so.13"], "cu13") is None:
            continue
        assert main(shlex.split(line)) == 0, line
    assert capsys.readouterr().out


def test_mistakes_have_the_form_of_diagnostics():
    assert str(Mistake("it is wrong", "mend it")) == "error: it is wrong\nhelp: mend it"
