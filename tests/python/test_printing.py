"""T.print: the lines of every target, in whole, as often as the program says."""

import subprocess
import sys
import textwrap

import helve
import helve.testing
import numpy as np
import pytest
from cuda_on_host import HostKernels, slot_of
from helve import T, _core
from nvrtc import needs_nvrtc
from test_cuda_lowering import thread_form

HOST = ["interp", "llvm"]


def lines_of(capfd):
    return capfd.readouterr().out.splitlines()


def some(n, block, threads=64):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "int32"), x: T.int32):
        with T.Kernel(T.ceildiv(n, block), threads=threads) as b:
            for i in T.Parallel(block):
                if b * block + i < n:
                    if A[b * block + i] < 0.0:
                        T.print("negative", A[b * block + i], x, B[b * block + i] + 1)
                    B[b * block + i] = x

    return main


def arguments():
    a = np.arange(20, dtype="float32")
    a[[3, 13]] = -0.1, -1e20
    return [a, np.arange(20, dtype="int32"), 7]


SOME = ["b=0, i=3: negative A[b * block + i]=-0.1, x=7, B[b * block + i] + 1=4",
        "b=1, i=5: negative A[b * block + i]=-1e+20, x=7, B[b * block + i] + 1=14"]


@pytest.mark.parametrize("target", HOST)
def test_lines_of_blocks_and_iterations(target, capfd):
    kernel = helve.compile(some(20, 8), target=target)
    a, b, x = arguments()
    kernel(a, b, x)
    assert sorted(lines_of(capfd)) == SOME
    assert (b == 7).all()


def everything():
    @T.prim_func
    def main(A: T.Tensor((3, 20), "bfloat16"), f: T.float32, u: T.uint64, s: T.int8, t: T.bool, d: T.float64):
        with T.Kernel(1):
            tile = T.alloc_shared((3, 20), "bfloat16")
            row = T.alloc_fragment((5,), "int32")
            T.copy(A, tile)
            for i in T.Parallel(5):
                row[i] = T.cast(i * i, "int32")
            T.print("start")
            T.print(f, u, s, t, d, 1, 0.5, True)
            T.print(f * 0.0, -f / 0.0)
            T.print(tile)
            T.print("part", tile[1, 2:4])
            T.print("one", tile[2, 0])
            T.print(row)
            for i in T.serial(2):
                T.print("then", i)
                T.print("100%", row[i] == 1)

    return main


EVERYTHING = """
bx=0: start
bx=0: f=0.1, u=18446744073709551615, s=-128, t=True, d=1e+300, 1=1, 0.5=0.5, True=True
bx=0: f * 0.0=0, -f / 0.0=-inf
bx=0, i=0, j=0: tile 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
bx=0, i=0, j=16: tile 16, 17, 18, 19
bx=0, i=1, j=0: tile 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35
bx=0, i=1, j=16: tile 36, 37, 38, 39
bx=0, i=2, j=0: tile 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55
bx=0, i=2, j=16: tile 56, 57, 58, 59
bx=0, i=0: part 22, 23
bx=0: one tile[2, 0]=40
bx=0, i=0: row 0, 1, 4, 9, 16
bx=0, i=0: then i=0
bx=0, i=0: 100% row[i] == 1=False
bx=0, i=1: then i=1
bx=0, i=1: 100% row[i] == 1=True
""".strip().splitlines()


def all_types():
    import ml_dtypes

    return [np.arange(60).reshape(3, 20).astype(ml_dtypes.bfloat16), 0.1, 2**64 - 1, -128, True, 1e300]


@pytest.mark.parametrize("target", HOST)
def test_values_of_all_types_tiles_and_order(target, capfd):
    helve.compile(everything(), target=target)(*all_types())
    assert lines_of(capfd) == EVERYTHING


def test_every_stage_prints_the_same():
    helve.testing.check_stages(some(20, 8), arguments)
    helve.testing.check_stages(everything(), all_types)


def test_a_stage_that_prints_otherwise_is_seen():
    right = helve.testing.lowering_stages(some(20, 8))[0][1]
    wrong = helve.parse(_core.print(right).replace("negative", "positive")).function
    with pytest.raises(AssertionError, match="prints other lines"):
        helve.testing.check_lowered({helve.testing.PIPELINES[0]: [("source", right), ("wrong", wrong)]}, [arguments])


def test_no_pass_fuses_vectorizes_or_drops_it(capfd):
    """Loops that would be one, a value that nobody uses, and lanes."""
    @T.prim_func
    def main(A: T.Tensor((8,), "float32")):
        with T.Kernel(1):
            x = T.alloc_shared((8,), "float32")
            for i in T.Parallel(8):
                x[i] = A[i] * 2.0
                T.print("first", x[i])
            for i in T.vectorized(8):
                T.print("second", x[i])

    helve.compile(main)(np.arange(8, dtype="float32"))
    lines = lines_of(capfd)
    assert sorted(lines[:8]) == [f"bx=0, i={i}: first x[i]={2 * i}" for i in range(8)]
    assert lines[8:] == [f"bx=0, i={i}: second x[i]={2 * i}" for i in range(8)]


def test_lines_of_many_threads_stay_whole(capfd):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(64) as b:
            for i in T.serial(20):
                T.print("a line that is long enough to be cut into pieces", A[b], i)

    helve.compile(main)(np.arange(64, dtype="int32"))
    expected = [f"b={b}, i={i}: a line that is long enough to be cut into pieces A[b]={b}, i={i}"
                for b in range(64) for i in range(20)]
    assert sorted(lines_of(capfd)) == sorted(expected)


def test_a_line_stands_behind_what_python_printed_before(tmp_path):
    """Also where Python holds back what it prints, since nobody looks at a terminal."""
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent("""
        import helve
        from helve import T

        @T.prim_func
        def main(n: T.int32):
            with T.Kernel(1):
                T.print("kernel", n)

        print("before")
        helve.compile(main)(3)
        print("after")
    """))
    done = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert done.stdout == "before\nbx=0: kernel n=3\nafter\n", done.stderr


def test_calls_with_interrupts_and_lines(tmp_path):
    """Ctrl-C in the middle of lines: the call ends, and no lock stays behind."""
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent("""
        import os, signal, threading
        import helve
        import numpy as np
        from helve import T

        @T.prim_func
        def main(A: T.Tensor((1,), "int64"), n: T.int64):
            with T.Kernel(1):
                while A[0] < n:
                    A[0] = A[0] + 1
                    T.print(A[0])

        signal.signal(signal.SIGINT, signal.default_int_handler)  # which jobs of a shell ignore
        kernel = helve.compile(main)
        for _ in range(3):
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                kernel(np.zeros(1, "int64"), 1 << 60)
            except KeyboardInterrupt:
                pass
        kernel(np.zeros(1, "int64"), 1)
        print("end")
    """))
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60)
    assert done.stdout.endswith("bx=0: A[0]=1\nend\n"), done.stderr


# The text of CUDA.


@pytest.mark.parametrize("program, values, blocks, expected", [
    (some(20, 8), arguments, 3, SOME),
    (everything(), all_types, 1, EVERYTHING),
], ids=["some", "everything"])
def test_the_text_of_cuda_prints_the_same(program, values, blocks, expected, tmp_path, capfd):
    form = thread_form(program)
    kernels = HostKernels([form], tmp_path)
    given = values()
    arrays = {q.name: a for q, a in zip(form.params, given) if isinstance(a, np.ndarray)}
    scalars = {q.name: slot(a, q.dtype) for q, a in zip(form.params, given) if not isinstance(a, np.ndarray)}
    kernels.run("main", blocks, arrays, scalars)
    kernels.library.fflush(None)
    got = [line.replace("-nan", "nan") for line in lines_of(capfd)]
    assert sorted(got) == sorted(expected)
    if blocks == 1:
        assert got == expected


def slot(value, dtype):
    return slot_of(value, dtype) if dtype != "uint64" else value - 2**64


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_the_text_compiles(arch, recwarn):
    helve.compile(everything(), target="cuda", arch=arch)
    assert not recwarn.list


# Schedules.


def lines_program():
    @T.prim_func
    def main(A: T.Tensor((8, 9), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1):
            for k in T.serial(8):
                B[k] = 1
            for i in T.serial(8):
                for j in T.serial(9):
                    T.print("a line", A[i, j])

    return main


@pytest.mark.parametrize("step", [
    lambda s: s.reorder("j", "i"), lambda s: s.parallel("i"), lambda s: s.vectorize("j"), lambda s: s.reverse("i"),
    lambda s: s.join("k", "i"),
])
def test_schedules_do_not_change_the_order_of_lines(step):
    s = helve.Schedule(lines_program())
    with pytest.raises(helve.Error, match="would change results: .*T.print"):
        step(s)


@pytest.mark.parametrize("step", [
    lambda s: s.split("i", 3), lambda s: s.fuse("i", "j"), lambda s: s.cut("j", 4), lambda s: s.unroll("j"),
    lambda s: s.parallel("k"), lambda s: s.shift("i", 2),
])
def test_schedules_that_keep_the_order_of_lines(step, capfd):
    s = helve.Schedule(lines_program())
    step(s)
    arguments = [np.arange(72, dtype="int32").reshape(8, 9), np.zeros(8, "int32")]
    for program in (lines_program(), s.function):
        helve.compile(program)(*arguments)
    lines = [line.partition(": ")[2] for line in lines_of(capfd)]
    assert len(lines) == 144 and lines[:72] == lines[72:]
