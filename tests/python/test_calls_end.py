"""Numbers at the ends of their types, calls that Ctrl-C ends, and what runs beside a compile."""

import _thread
import signal
import sys
import threading
import time

import helve
import numpy as np
import pytest
from helve import T

TARGETS = ["llvm", "interp"]


@pytest.fixture
def interruptible():
    """Ctrl-C raises, also where the tests run in the background of a shell that ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@T.prim_func
def keep(A: T.Tensor((1,), "uint64"), n: T.uint64):
    with T.Kernel(1) as b:
        A[b] = n


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("value", [0, 1, 2**63 - 1, 2**63, 2**64 - 1])
def test_every_uint64_is_an_argument(target, value):
    a = np.zeros(1, "uint64")
    helve.compile(keep, target=target)(a, value)
    assert int(a[0]) == value


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("value", [-1, 2**64])
def test_what_uint64_cannot_hold_is_refused_with_its_range(target, value):
    with pytest.raises(helve.Error) as fault:
        helve.compile(keep, target=target)(np.zeros(1, "uint64"), value)
    assert (fault.value.code, fault.value.message) == ("HV0615", f"'n' is uint64, which cannot hold {value}")
    assert fault.value.help == "pass a value from 0 to 18446744073709551615"


@pytest.mark.parametrize("target", TARGETS)
def test_what_int8_cannot_hold_is_refused_with_its_range(target):
    @T.prim_func
    def main(A: T.Tensor((1,), "int8"), n: T.int8):
        with T.Kernel(1) as b:
            A[b] = n

    for value in (128, -129, 2**70):
        with pytest.raises(helve.Error) as fault:
            helve.compile(main, target=target)(np.zeros(1, "int8"), value)
        assert fault.value.help == "pass a value from -128 to 127", value


@T.prim_func
def count(A: T.Tensor((1,), "int64"), n: T.index):
    with T.Kernel(1) as b:
        for i in T.serial(n):
            for j in T.serial(n):
                A[b] = A[b] + 1


@T.prim_func
def count_while(A: T.Tensor((1,), "int64"), n: T.index):
    with T.Kernel(1) as b:
        while A[0] < n:
            A[0] = A[0] + 1


@pytest.mark.parametrize("function", [count, count_while], ids=["loops", "while"])
def test_an_interrupt_ends_the_interpreter(function, interruptible):
    kernel = helve.compile(function, target="interp")
    timer = threading.Timer(0.2, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        kernel(np.zeros(1, "int64"), 2**60)
    timer.join()
    a = np.zeros(1, "int64")
    kernel(a, 3)
    assert a[0] in (3, 9)


def test_an_interrupt_ends_machine_code_between_blocks(interruptible):
    @T.prim_func
    def main(A: T.Tensor((1,), "int64"), n: T.index):
        with T.Kernel(n) as b:
            while A[0] + 1000 < T.cast(b, "int64"):
                A[0] = A[0] + 1

    kernel = helve.compile(main)
    timer = threading.Timer(0.2, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        kernel(np.full(1, 2**62, "int64"), 2**40)
    timer.join()


@pytest.mark.parametrize("stage", ["llvm", "asm"])
def test_sources_leave_the_lock(stage):
    """Another thread gets the interpreter lock only when it is given up, since no switch is forced; it must get it."""
    kernel = helve.compile(count)
    ticks, done = [0], threading.Event()

    def tick():
        while not done.is_set():
            ticks[0] += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000.0)
    thread = threading.Thread(target=tick)
    thread.start()
    try:
        before = ticks[0]
        for _ in range(200):  # the other thread may be slow to wake
            kernel.source(stage)
            after = ticks[0]
            if after > before:
                break
    finally:
        done.set()
        sys.setswitchinterval(interval)
        thread.join()
    assert after > before
