"""The CUDA C of some programs, as it is printed: between them they have every construct of the code generator.

The texts are in tests/golden/cuda; tests/golden/rewrite.py writes them anew.
"""

import helve.testing
import pytest
import test_box_copies
import test_bulk_copies
import test_clusters
import test_kernels
import test_tensor_core_products
import test_wgmma
from cuda_examples import FUNCTIONS
from golden import GOLDEN, check_golden
from helve import _core

WITH_PRELUDE = {"row_sums", "bulk_ahead", "boxes_ring", "products", "wgmma", "pairs"}


def lowered(function, arch):
    return helve.testing.lowering_stages(function, target="cuda", arch=arch)[-1][1]


# name -> (what is printed, options of the printer). The first are in thread form as they stand.
PROGRAMS = {
    **{
        name: lambda name=name: (_core.widen_accesses(_core.allocate_shared(FUNCTIONS[name].function)), {})
        for name in ("row_sums", "collatz", "integers", "names", "guarded_rows", "cores")
    },
    **{
        f"bulk_{name}": lambda name=name: (lowered(test_bulk_copies.PROGRAMS[name][0], "sm_90a"), {})
        for name in ("ahead", "line_250")
    },
    "boxes_ring": lambda: (lowered(test_box_copies.PROGRAMS["ring"][0], "sm_90a"), {}),
    "products": lambda: (
        lowered(test_tensor_core_products.product(32, 16, 32, 64, "bfloat16", transpose_b=True), "sm_80"), {}),
    "wgmma": lambda: (
        lowered(test_wgmma.matmul(128, 128, 64, 128, transpose_b=True, stages=4, out="bfloat16", shape=(512, 384, 256)),
                "sm_90a"), {}),
    "pairs": lambda: (lowered(test_clusters.lines_of_b(64, 96, 2), "sm_90a"), {}),
    **{
        f"kernels_{name}": lambda name=name: (test_kernels.thread_form(name), {})
        for name in ("rms_norm_1k", "transpose")
    },
    "kernels_softmax_128k_x8": lambda: (test_kernels.clustered_form("softmax_128k_x8"), {"cluster_blocks": 8}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_text(name):
    form, options = PROGRAMS[name]()
    text, _ = _core.cuda_source(form, prelude=name in WITH_PRELUDE, **options)
    check_golden(f"cuda/{name}.cu", text)


def test_every_kept_text_is_compared():
    assert {path.stem for path in (GOLDEN / "cuda").iterdir()} == set(PROGRAMS)
