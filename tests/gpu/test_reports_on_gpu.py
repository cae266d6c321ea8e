"""T.assert_ and T.print on a CUDA device: when errors arrive, and what is printed.

Skips itself where PyTorch finds no device.
"""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import helve
from helve import T

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


def positive(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 256)) as b:
            x = T.alloc_fragment((256,), "float32")
            T.copy(A[b * 256 : (b + 1) * 256], x, pad=1.0)
            for i in T.Parallel(256):
                T.assert_(x[i] > 0.0, "A is positive")
            for i in T.Parallel(256):
                if b * 256 + i < n:
                    B[b * 256 + i] = 2.0 * x[i]

    return main


def test_the_call_behind_a_fault_ends_with_it():
    kernel = helve.compile(positive(10000), target="cuda")
    a, b = torch.ones(10000, device="cuda"), torch.empty(10000, device="cuda")
    kernel(a, b)
    torch.cuda.synchronize()
    assert (b == 2).all()
    a[7777] = -1
    kernel(a, b)  # returns before it has run
    torch.cuda.synchronize()
    a[7777] = 1
    with pytest.raises(helve.Error) as raised:
        kernel(a, b)
    assert raised.value.message == "assertion failed: A is positive"
    assert raised.value.notes == [f"where b={7777 // 256}, i={7777 % 256}, x[i]=-1"]
    b.zero_()
    kernel(a, b)  # the context is sound, and the fault is reported once
    assert (b == 2).all()


def test_a_call_with_host_arrays_ends_with_its_own_fault():
    kernel = helve.compile(positive(1000), target="cuda")
    a, b = np.ones(1000, "float32"), np.empty(1000, "float32")
    a[999] = 0
    with pytest.raises(helve.Error, match="HV0724"):
        kernel(a, b)
    a[999] = 3
    kernel(a, b)
    assert (b == 2 * a).all()


def test_a_fault_in_a_graph_ends_the_next_call():
    kernel = helve.compile(positive(1000), target="cuda")
    a, b = torch.ones(1000, device="cuda"), torch.empty(1000, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        kernel(a, b)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        kernel(a, b)
    a[5] = -2
    graph.replay()
    torch.cuda.synchronize()
    with pytest.raises(helve.Error, match="HV0724"):
        kernel(a, b)


def test_lines(tmp_path):
    """In a process of its own: the driver keeps what it prints until the end of the process, or a wait."""
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent("""
        import helve
        import numpy as np
        from helve import T

        @T.prim_func
        def main(A: T.Tensor((4, 20), "float32"), u: T.uint64, t: T.bool):
            with T.Kernel(2) as b:
                x = T.alloc_fragment((2, 20), "float32")
                T.copy(A[b * 2 : b * 2 + 2, :], x)
                for i, j in T.Parallel(2, 20):
                    if x[i, j] < 0.0:
                        T.print("negative", x[i, j], u, t)
                if b == 1:
                    T.print("100%", x)

        a = np.arange(80, dtype="float32").reshape(4, 20)
        a[1, 3] = -0.1
        helve.compile(main, target="cuda")(a, 2**64 - 1, True)
    """))
    done = subprocess.run([sys.executable, program], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert "b=0, i=1, j=3: negative x[i, j]=-0.1, u=18446744073709551615, t=True" in lines, done.stderr
    tile = [line for line in lines if "100%" in line]
    row = ", ".join
    assert tile == [f"b=1, i={i}, j={j}: 100% {row(str(40 + 20 * i + k) for k in range(j, min(j + 16, 20)))}"
                    for i in range(2) for j in (0, 16)]
    assert len(lines) == 5
