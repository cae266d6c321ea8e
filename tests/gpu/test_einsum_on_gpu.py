"""Contractions in the order of auto on a CUDA device: uneven, few rows, long reductions, extents of a call.

Skips itself where PyTorch finds no device. Values are small whole numbers, whose sums are exact; stages and texts of
the same programs are checked on the CPU (tests/python/test_schedule_auto_gpu.py).
"""

import helve
import numpy as np
import pytest
from test_schedule_auto import whole
from test_schedule_auto_gpu import CASES, DYNAMIC, K, M, N, dynamic

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

LARGER = [
    ("ij,jk->ik", (1000, 1111), (1111, 500)),
    ("ij,kj->ik", (515, 1000), (777, 1000)),
    ("bhid,bhjd->bhij", (2, 3, 197, 64), (2, 3, 197, 64)),
    ("ij,kj->ik", (16, 4096), (1024, 4096)),
    ("ij,jk->ik", (1, 7168), (7168, 4096)),
    ("i,ij->j", (4096,), (4096, 1031)),
    ("ijk,k->ij", (256, 256, 256), (256,)),
    ("ij,ik->jk", (5000, 96), (5000, 100)),
    ("ij->i", (1, 1_000_001)),
    ("i,i->", (1_000_001,), (1_000_001,)),
]


@pytest.mark.parametrize("case", CASES + LARGER, ids=str)
def test_einsum(case):
    spec, *shapes = case
    arrays = [whole(n, *shape) for n, shape in enumerate(shapes)]
    tensors = [torch.from_numpy(array).cuda() for array in arrays]
    got = helve.einsum(spec, *tensors)
    np.testing.assert_array_equal(got.cpu().numpy(), np.einsum(spec, *arrays, optimize=True))


def test_operands_that_begin_anywhere():
    """Memory that is aligned as one element is."""
    a, b = (torch.from_numpy(whole(n, 64 * 80 + 1)).cuda()[1:].view(*shape)
            for n, shape in enumerate([(64, 80), (80, 64)]))
    got = helve.einsum("ij,jk->ik", a, b)
    np.testing.assert_array_equal(got.cpu().numpy(), a.cpu().numpy() @ b.cpu().numpy())


@pytest.mark.parametrize("sizes", [(33, 29, 50), (1, 1, 1), (0, 5, 5), (5, 0, 5), (5, 5, 0), (130, 70, 67),
                                   (512, 256, 1024), (1000, 500, 1111)])
@pytest.mark.parametrize("form", DYNAMIC)
def test_extents_that_only_a_call_knows(form, sizes):
    spec, *shapes = DYNAMIC[form]
    known = dict(zip((str(each) for each in (M, N, K)), sizes, strict=True))
    arrays = [whole(n, *(known.get(str(e), e) for e in shape)) for n, shape in enumerate(shapes[:-1])]
    s = dynamic(form)
    s.auto("cuda", "sm_90a")
    wanted = np.einsum(spec, *arrays, optimize=True)
    got = torch.full(wanted.shape, 7.0, device="cuda")
    helve.compile(s, "cuda")(*(torch.from_numpy(array).cuda() for array in arrays), got)
    np.testing.assert_array_equal(got.cpu().numpy(), wanted)
