"""Ctrl-C ends what helve does at once, wherever it is, and helve is as usable as before.

Each program runs in a process of its own that gets a SIGINT in the middle. How long it took is printed for people; what
is tested is that the work, which would take minutes or for ever, did not go on.
"""

import signal
import subprocess
import sys
import tempfile
import textwrap

import pytest

HEAD = """
import os, signal, sys, threading, time
import numpy as np
import helve
from helve import T

signal.signal(signal.SIGINT, signal.default_int_handler)

def interrupted(work, after=0.3):
    timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        work()
    except KeyboardInterrupt:
        print("late by", round(time.perf_counter() - begin - after, 2), file=sys.stderr)
        return True
    finally:
        timer.join()
    return False

@T.prim_func
def double(a: T.Tensor((8,), "float32"), b: T.Tensor((8,), "float32")):
    with T.Kernel(1):
        for i in T.Parallel(8):
            b[i] = a[i] * 2.0

def still_usable(target="llvm"):
    a, b = np.ones(8, np.float32), np.zeros(8, np.float32)
    helve.compile(double, target=target)(a, b)
    assert (b == 2).all()
    print("usable")

begin = time.perf_counter()
"""


def run(program, timeout=120):
    """What the program prints. A child that outlives the timeout did not end."""
    text = HEAD + textwrap.dedent(program)
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:  # kernels are read from their file
        file.write(text)
        file.flush()
        done = subprocess.run([sys.executable, file.name], capture_output=True, text=True, timeout=timeout,
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


# Each would run for hours: (kernel, how it is launched).
LOOPS = {
    "serial loops": """
        @T.prim_func
        def forever(a: T.Tensor((8,), "int64"), n: T.index):
            with T.Kernel({blocks}) as b:
                for i in T.serial(n):
                    for j in T.serial(n):
                        a[b % 8] = (a[b % 8] + j) % 1000003 * 3
        """,
    "a while loop": """
        @T.prim_func
        def forever(a: T.Tensor((8,), "int64"), n: T.index):
            with T.Kernel({blocks}) as b:
                while a[b % 8] < n:
                    a[b % 8] = a[b % 8] * 3 % 7
        """,
    "vectors": """
        @T.prim_func
        def forever(a: T.Tensor((8,), "int64"), n: T.index):
            with T.Kernel({blocks}) as b:
                for i in T.serial(n):
                    for j in T.vectorized(8):
                        a[j] = a[j] * 3 + i
        """,
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("loops", LOOPS)
def test_one_long_block_of_machine_code_ends(loops, threads, llvm):
    program = textwrap.dedent(LOOPS[loops]).format(blocks=1) + textwrap.dedent(f"""
        helve.set_num_threads({threads})
        kernel = helve.compile(forever)
        begin = time.perf_counter()
        for _ in range(2):
            assert interrupted(lambda: kernel(np.zeros(8, "int64"), 2**40))
            begin = time.perf_counter()
        still_usable()
        """)
    assert run(program) == ["usable"]


def test_long_blocks_of_several_threads_end(llvm):
    program = textwrap.dedent(LOOPS["a while loop"]).format(blocks=16) + textwrap.dedent("""
        helve.set_num_threads(4)
        kernel = helve.compile(forever)
        begin = time.perf_counter()
        assert interrupted(lambda: kernel(np.zeros(8, "int64"), 2**40))
        still_usable()
        """)
    assert run(program) == ["usable"]


def test_the_interpreter_ends():
    program = textwrap.dedent(LOOPS["serial loops"]).format(blocks=1) + textwrap.dedent("""
        kernel = helve.compile(forever, target="interp")
        assert interrupted(lambda: kernel(np.zeros(8, "int64"), 2**40))
        still_usable("interp")
        """)
    assert run(program) == ["usable"]


def test_a_handler_that_does_not_raise_lets_the_kernel_go_on(llvm):
    program = """
        seen = []
        signal.signal(signal.SIGINT, lambda *_: seen.append(1))

        @T.prim_func
        def wait(a: T.Tensor((1,), "int64")):
            with T.Kernel(1) as b:
                while a[0] == 0:
                    if a[0] == 2:
                        a[0] = 3

        a = np.zeros(1, "int64")
        kernel = helve.compile(wait)

        def handler(*_):
            double_kernel(*arrays)  # a call from the handler, in the middle of the other
            seen.append(1)
            a[0] = 1

        arrays = np.ones(8, np.float32), np.zeros(8, np.float32)
        double_kernel = helve.compile(double)
        signal.signal(signal.SIGINT, handler)
        assert not interrupted(lambda: None)
        assert a[0] == 1 and seen == [1]
        a[0] = 0
        """
    program += """
        @T.prim_func
        def count(a: T.Tensor((1,), "int64"), n: T.index):
            with T.Kernel(1) as b:
                for i in T.serial(n):
                    a[0] = (a[0] * 5 + i) % 1000003

        def plain(n):
            a = np.zeros(1, "int64")
            counter(a, n)
            return a[0]

        counter = helve.compile(count)
        n, spent = 1 << 20, 0.0
        while spent < 0.8:
            n *= 2
            begin = time.perf_counter()
            expected = plain(n)
            spent = time.perf_counter() - begin
        results = []
        assert not interrupted(lambda: results.append(plain(n)))
        assert results == [expected] and len(seen) == 2 and (arrays[1] == 2).all()
        still_usable()
        """
    assert run(program) == ["usable"]


COMPILES = {
    "a loop that is unrolled": """
        @T.prim_func
        def large(a: T.Tensor((100000,), "float32")):
            with T.Kernel(1):
                for i in T.unroll(100000):
                    a[i] = a[i] * 2.0 + 1.0
        """,
    "many loops": """
        text = "@T.prim_func\\ndef large(a: T.Tensor((64, 64), 'float32')):\\n    with T.Kernel(1):\\n"
        for n in range(1500):
            text += f"        for i{n}, j{n} in T.Parallel(64, 64):\\n"
            text += f"            a[i{n}, j{n}] = a[i{n}, j{n}] * {n}.0\\n"
        large = helve.parse(text)
        """,
}


@pytest.mark.parametrize("target", ["llvm", "cuda"])
@pytest.mark.parametrize("compiled", COMPILES)
def test_a_compile_ends(compiled, target, llvm):
    # Lowering for CUDA needs neither a device nor a compiler of CUDA C.
    lower = ("helve._core.lowering_stages(large.function, None, 1, 'cuda', 'sm_90a')" if target == "cuda"
             else "helve.compile(large)")
    program = textwrap.dedent(COMPILES[compiled]) + textwrap.dedent(f"""
        def work():
            while True:  # a compile that is faster than the signal is done again
                {lower}

        begin = time.perf_counter()
        assert interrupted(work)
        still_usable()
        """)
    assert run(program) == ["usable"]


LOWERINGS = {
    "check_and_lower": "helve._core.check_and_lower(large.function, None, 'cuda', 'sm_90a')",
    "lowering_warnings": "helve._core.lowering_warnings(large.function, 'cuda', 'sm_90a')",
}


@pytest.mark.parametrize("lowering", LOWERINGS)
def test_a_lowering_ends(lowering):
    program = textwrap.dedent(COMPILES["many loops"]) + textwrap.dedent(f"""
        def work():
            while True:
                {LOWERINGS[lowering]}

        begin = time.perf_counter()
        assert interrupted(work)
        still_usable("interp")
        """)
    assert run(program) == ["usable"]


def test_stages_and_the_choice_of_schedules_end(llvm):
    program = textwrap.dedent(COMPILES["many loops"].replace("1500", "60")) + textwrap.dedent("""
        kernel = helve.compile(large)
        for work in (lambda: kernel.source("asm"), kernel.schedules):
            def repeat(work=work):
                while True:
                    work()
            begin = time.perf_counter()
            assert interrupted(repeat)
        still_usable()
        """)
    assert run(program) == ["usable"]
