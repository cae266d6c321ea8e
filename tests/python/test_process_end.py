"""Processes that end while threads are inside helve, and threads with little room."""

import subprocess
import sys
import tempfile
import textwrap

import pytest

HEAD = """
import sys, threading, time
import numpy as np
import helve
from helve import T

@T.prim_func
def forever(a: T.Tensor((1,), "int64"), n: T.index):
    with T.Kernel(1) as b:
        while a[0] < n:
            a[0] = a[0] * 3 % 7

@T.prim_func
def double(a: T.Tensor((8,), "float32"), b: T.Tensor((8,), "float32")):
    with T.Kernel(1):
        for i in T.Parallel(8):
            b[i] = a[i] * 2.0

def in_daemons(work, count=3):
    started = [threading.Event() for _ in range(count)]
    def run(event):
        while True:
            event.set()
            work()
    for event in started:
        threading.Thread(target=run, args=(event,), daemon=True).start()
    for event in started:
        event.wait()
"""

WORK = {
    "a call that never returns": """
        kernel = helve.compile(forever, target="{target}")
        in_daemons(lambda: kernel(np.zeros(1, "int64"), 2**40))
        time.sleep(0.2)
        """,
    "short calls": """
        kernel = helve.compile(double, target="{target}")
        in_daemons(lambda: kernel(np.ones(8, np.float32), np.ones(8, np.float32)))
        time.sleep(0.05)
        """,
    "compiles": """
        in_daemons(lambda: helve.compile(double, target="{target}"))
        time.sleep(0.1)
        """,
    "stages": """
        kernel = helve.compile(double, target="{target}")
        in_daemons(lambda: kernel.source(kernel.stages[-1]))
        time.sleep(0.05)
        """,
}


def run(program):
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:  # kernels are read from their file
        file.write(HEAD + textwrap.dedent(program))
        file.flush()
        done = subprocess.run([sys.executable, file.name], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@pytest.mark.parametrize("target", ["interp", "llvm"])
@pytest.mark.parametrize("work", WORK)
def test_a_process_ends_while_daemons_are_inside(work, target, llvm):
    for _ in range(3):
        run(WORK[work].format(target=target))


def test_a_process_ends_after_a_compile_was_left(llvm):
    run("""
        import os, signal
        signal.signal(signal.SIGINT, signal.default_int_handler)

        @T.prim_func
        def large(a: T.Tensor((100000,), "float32")):
            with T.Kernel(1):
                for i in T.unroll(100000):
                    a[i] = a[i] * 2.0 + 1.0

        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            while True:
                helve.compile(large)
        except KeyboardInterrupt:
            pass
        """)


@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_threads_with_little_stack_compile_and_call(target, llvm):
    printed = run(f"""
        scratch = '''
        @T.prim_func
        def scratch(a: T.Tensor((2048,), "float32"), b: T.Tensor((2048,), "float32")):
            with T.Kernel(1):
                local = T.alloc_shared((2048,), "float32")
                other = T.alloc_shared((2048,), "float32")
                for i in T.serial(2048):
                    local[i] = a[2047 - i]
                for i in T.serial(2048):
                    other[i] = local[2047 - i]
                for i in T.serial(2048):
                    b[i] = other[2047 - i] + local[i]
        '''
        import textwrap
        function = helve.parse(textwrap.dedent(scratch))

        def work():
            try:
                kernel = helve.compile(function, target="{target}")
                a, b = np.arange(2048, dtype=np.float32), np.zeros(2048, np.float32)
                kernel(a, b)
                kernel.source("script")
                print((b == 2 * a[::-1]).all())
            except BaseException as fault:
                print(repr(fault))

        threading.stack_size(64 << 10)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        """)
    assert printed == "True\n"
