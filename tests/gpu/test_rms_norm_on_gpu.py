"""The tutorial's RMSNorm over a mesh on a CUDA device, unchanged: cores are blocks.

Skips itself where PyTorch finds no device. A row of the mesh is a cluster.
"""

import helve
import numpy as np
import pytest
from test_rms_norm import rms

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


@pytest.mark.parametrize("chunk", [1, 3])
@pytest.mark.parametrize("shape", [(256, 512), (130, 257), (7, 33), (1, 1)], ids=str)
@pytest.mark.parametrize("mesh_shape", [(1, 1), (2, 2), (2, 3), (2, 4), (8, 8)], ids=str)
def test_meshes_of_blocks(mesh_shape, shape, chunk):
    mesh = helve.Mesh(mesh_shape)
    a = np.random.default_rng(3).standard_normal(shape, dtype=np.float32)
    function = rms.rms_norm_splitk(*shape, 32, 64, mesh)
    kernel = helve.compile(function, target="cuda", mesh=mesh, persistent_chunk=chunk)
    b = torch.full(shape, float("nan"), device="cuda")
    kernel(torch.from_numpy(a).cuda(), b)
    np.testing.assert_allclose(b.cpu().numpy(), rms.reference(a), rtol=2e-6, atol=1e-6)
    wanted = np.full_like(a, np.nan)
    helve.compile(function, target="interp", mesh=mesh, persistent_chunk=chunk)(a, wanted)
    np.testing.assert_allclose(b.cpu().numpy(), wanted, rtol=1e-6, atol=1e-6)
