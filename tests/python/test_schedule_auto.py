"""`s.auto()`: what it makes of programs, and that results stay what they are.

Results are NumPy's and the interpreter's; that steps are proved is the matter of the other tests of schedules.
"""

import helve
import helve.testing
import numpy as np
import pytest
from helve import T, _core


def nest(spec, *arrays):
    """The plain loops of a contraction."""
    dtypes, shapes = [str(x.dtype) for x in arrays], [x.shape for x in arrays]
    return helve.Schedule(_core.einsum(spec, dtypes, shapes, [], _core.Span(), nest=True)[0])


def whole(seed, *shape, dtype="float32"):
    """Small whole numbers, whose products and sums are exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


PRODUCTS = [
    ("ij,jk->ik", (64, 64), (64, 64)),
    ("ij,jk->ik", (37, 41), (41, 53)),
    ("ij,jk->ik", (101, 7), (7, 103)),
    ("ij,jk->ik", (1, 300), (300, 97)),
    ("ij,jk->ik", (300, 97), (97, 1)),
    ("ij,jk->ik", (7, 500), (500, 16)),
    ("ij,jk->ik", (3, 900), (900, 15)),
    ("ij,kj->ik", (50, 60), (70, 60)),
    ("ki,kj->ij", (60, 50), (60, 70)),
    ("bij,bjk->bik", (5, 33, 17), (5, 17, 40)),
    ("ijk,kl->ijl", (9, 13, 21), (21, 40)),
    ("ijk,jr,kr->ir", (19, 14, 15), (14, 23), (15, 23)),
    ("ijk,k->ij", (20, 30, 40), (40,)),
    ("i,ij->j", (133,), (133, 261)),
    ("ij->i", (200, 133), ),
    ("ij->j", (200, 133), ),
    ("ij->", (200, 133), ),
    ("ij,ij->", (200, 133), (200, 133)),
    ("ij->ji", (130, 150)),
    ("i,j->ij", (130,), (150,)),
    ("ij,jk->ki", (64, 40), (40, 50)),
    ("ij,jk->ik", (64, 0), (0, 64)),
    ("ij,jk->ik", (0, 64), (64, 64)),
]


@pytest.mark.parametrize("case", PRODUCTS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_contractions(case, dtype):
    spec, *shapes = case
    arrays = [whole(n, *shape, dtype=dtype) for n, shape in enumerate(shapes)]
    s = nest(spec, *arrays)
    s.auto()
    wanted = np.einsum(spec, *arrays)
    got = np.empty(wanted.shape, dtype)
    helve.compile(s)(*arrays, got)
    np.testing.assert_array_equal(got, wanted, err_msg=s.script())
    assert not s.proofs()
    again = s.version(0)
    again.replay(helve.Trace.from_json(s.trace().json()))
    assert again.script() == s.script()
