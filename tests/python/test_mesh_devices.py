"""Meshes of devices, and the targets that those have.

A program for such a mesh must not run on the host instead: the user would measure, and trust, something else.
"""

import helve
import helve.testing
import pytest
from helve import T

OTHERS = [("mpi", "interp", "llvm"), ("mpi", "cuda", "llvm"), ("cuda", "interp", "cuda"), ("cuda", "llvm", "cuda")]


@T.prim_func
def main(A: T.Tensor((4,), "float32")):
    with T.Kernel(2) as b:
        A[b] = 0.0


@pytest.mark.parametrize(("device", "target", "right"), OTHERS)
def test_devices_have_one_target(device, target, right):
    with pytest.raises(helve.Error) as caught:
        helve.compile(main, target=target, mesh=helve.Mesh((2,), device=device))
    assert caught.value.code == "HV0803"
    assert caught.value.message == (
        f"this build of helve does not compile for target '{target}' on a mesh of device '{device}'")
    assert caught.value.help == f'compile for target="{right}", or for a mesh of device="host"'
    assert caught.value.filename == __file__


def test_a_mesh_of_this_process_is_taken():
    assert helve.compile(main, mesh=helve.Mesh((2,), device="host")).target == "llvm"


def test_stages_need_no_devices():
    lowered = helve.testing.lowering_stages(main, helve.Mesh((2,), device="cuda"), target="cuda", cores="devices")
    assert "spread_cores" in dict(lowered)
