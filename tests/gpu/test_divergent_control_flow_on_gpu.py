"""Divergent control flow around collectives, on a CUDA device: where cores diverge, a launch is one for each range of
their blocks, and a collective leaves the other groups' memory alone.

Skips itself where PyTorch finds no device.
"""

import numpy as np
import pytest
import test_divergent_control_flow as divergent

import helve

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


@pytest.mark.parametrize("form", divergent.FORMS)
@pytest.mark.parametrize("mesh", divergent.MESHES)
def test_mesh_rows_decide_for_themselves(mesh, form):
    kernel = helve.compile(divergent.by_rows(mesh, form), mesh=helve.Mesh(mesh), target="cuda")
    for n in ([5, 3, 1], [2, 4, 6]):
        n = np.array(n[: mesh[0]])
        out = np.zeros(mesh, "int64")
        kernel(n, out)
        assert np.array_equal(out, divergent.expected_by_rows(mesh, form, n)), n
