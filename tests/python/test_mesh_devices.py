"""Meshes whose devices this build has no target for.

A program for such a mesh must not run on the host instead: the user would measure, and trust, something else.
"""

import helve
import helve.testing
import pytest
from helve import T


@T.prim_func
def main(A: T.Tensor((4,), "float32")):
    with T.Kernel(2) as b:
        A[b] = 0.0


@pytest.mark.parametrize("target", [None, "llvm", "interp"])
def test_a_mesh_of_devices_without_a_target_is_refused(target):
    with pytest.raises(helve.Error) as caught:
        helve.compile(main, target=target, mesh=helve.Mesh((2,), device="cuda"))
    assert caught.value.code == "HV0803"
    assert caught.value.message == "this build of helve does not compile for meshes of device 'cuda'"
    assert caught.value.help.startswith('use a mesh of device="host": its cores run in this process with target="llvm"')
    assert caught.value.filename == __file__


@pytest.mark.parametrize("target", ["interp", "cuda"])
def test_processes_are_for_machine_code_of_the_cpu(target):
    with pytest.raises(helve.Error) as caught:
        helve.compile(main, target=target, mesh=helve.Mesh((2,), device="mpi"))
    assert caught.value.code == "HV0803"
    assert caught.value.message == (
        f"this build of helve does not compile for target '{target}' on a mesh of device 'mpi'")
    assert caught.value.help == 'compile for target="llvm", or for a mesh of device="host"'


def test_a_mesh_of_this_process_is_taken():
    assert helve.compile(main, mesh=helve.Mesh((2,), device="host")).target == "llvm"


def test_stages_are_refused_alike():
    with pytest.raises(helve.Error, match="HV0803"):
        helve.testing.lowering_stages(main, helve.Mesh((2,), device="cuda"))
