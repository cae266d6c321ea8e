"""`helve.bench` on a GPU: the device's time, not the host's, of kernels of helve and PyTorch."""

import numpy as np
import pytest

import helve
from helve import T
from helve.cli import main

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no CUDA device", allow_module_level=True)


N = T.dyn("N")


@T.prim_func
def copy(A: T.Tensor((N, 4096), "float32"), B: T.Tensor((N, 4096), "float32")):
    with T.Kernel(A.shape[0]) as i:
        for j in T.Parallel(4096):
            B[i, j] = A[i, j]


def test_a_copy_against_pytorch():
    a = torch.randn(16384, 4096, device="cuda")
    b = torch.empty_like(a)
    kernel = helve.compile(copy, target="cuda")
    found = helve.bench({"helve": kernel, "torch": lambda a, b: b.copy_(a)}, a, b, bytes=2 * a.nbytes, rounds=9)
    assert torch.equal(a, b)
    rows = {(row["name"], row["cache"]): row for row in found.to_dict()}
    print(found)
    # 512 MiB: what is measured is their transfer, which no host's enqueuing and no missing synchronisation looks like.
    assert all(0.3 < row["share_of_bandwidth"] < 1.05 for row in rows.values()), str(found)


def test_small_calls_are_faster_warm():
    a = torch.randn(1024, 4096, device="cuda")
    b = torch.empty_like(a)
    found = helve.bench(helve.compile(copy, target="cuda"), a, b, rounds=15)
    assert found.timing(cache="warm").seconds < found.timing(cache="cold").seconds, str(found)


def test_functions_without_arguments_and_arrays_of_the_host():
    a = torch.randn(1024, 4096, device="cuda")
    assert helve.bench({"sum": a.sum}, device="cuda", rounds=3).peaks.machine.startswith("sm_")
    host = np.ones((64, 4096), "float32")
    kernel = helve.compile(copy, target="cuda")
    assert helve.bench(kernel, host, host.copy(), rounds=1, cache="warm").peaks.machine == "cpu"


def test_the_command_runs_on_a_gpu(tmp_path, capsys):
    (tmp_path / "copies.py").write_text("""
from helve import T

@T.prim_func
def copy(A: T.Tensor((256, 4096), "bfloat16"), B: T.Tensor((256, 4096), "bfloat16")):
    with T.Kernel(256) as i:
        for j in T.Parallel(4096):
            B[i, j] = A[i, j]
""")
    assert main(["run", str(tmp_path / "copies.py"), "--target", "cuda", "--rounds", "3"]) == 0
    out = capsys.readouterr().out
    assert "for cuda" in out and "copies to the GPU" not in out and "cold" in out
    assert main(["doctor"]) == 0
    assert "GPU 0" in capsys.readouterr().out
