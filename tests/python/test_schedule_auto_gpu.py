"""`s.auto("cuda")`: results by machine code, by the interpreter and at the stages towards a GPU; texts that compile.

What the kernels do on a device is the matter of tests/gpu; their texts run here on the CPU like those of any program
(test_every_program.py).
"""

import helve
import numpy as np
import pytest
from helve.testing import interpret, lowering_stages
from nvrtc import needs_nvrtc
from test_schedule_auto import nest, whole

CASES = [
    ("ij,jk->ik", (64, 64), (64, 64)),
    ("ij,jk->ik", (37, 41), (41, 53)),
    ("ij,jk->ik", (40, 8), (8, 72)),
    ("ij,jk->ki", (33, 17), (17, 40)),
    ("ij,kj->ik", (50, 20), (35, 20)),
    ("ki,kj->ij", (20, 50), (20, 35)),
    ("bij,bjk->bik", (3, 33, 17), (3, 17, 16)),
    ("ijk,kl->ijl", (5, 13, 21), (21, 16)),
    ("ijk,jr,kr->ir", (9, 14, 15), (14, 9), (15, 9)),
    ("ij,jk->ik", (1, 300), (300, 97)),
    ("ij,jk->ik", (300, 97), (97, 1)),
    ("ij,jk->ik", (7, 100), (100, 33)),
    ("ijk,k->ij", (20, 30, 40), (40,)),
    ("ijk,j->ik", (20, 30, 40), (30,)),
    ("i,ij->j", (133,), (133, 261)),
    ("ij->i", (200, 133)),
    ("ij->i", (3, 6001)),
    ("ij->j", (200, 133)),
    ("ij->j", (3001, 7)),
    ("ij->", (200, 133)),
    ("i,i->", (20011,), (20011,)),
    ("ij->ji", (130, 150)),
    ("ijk->kji", (30, 19, 33)),
    ("i,j->ij", (130,), (150,)),
    ("ij,jk->ik", (64, 0), (0, 64)),
    ("ij,jk->ik", (0, 64), (64, 64)),
]


def planned(case, dtype="float32", arch="sm_90a"):
    spec, *shapes = case
    arrays = [whole(n, *shape, dtype=dtype) for n, shape in enumerate(shapes)]
    s = nest(spec, *arrays)
    s.auto("cuda", arch)
    return s, arrays, np.einsum(spec, *arrays)


@pytest.mark.parametrize("case, dtype", [*((case, "float32") for case in CASES),
                                         *((CASES[n], "int32") for n in (1, 8, 12, 14, 17))], ids=str)
def test_contractions(case, dtype):
    s, arrays, wanted = planned(case, dtype)
    got = np.empty(wanted.shape, dtype)
    helve.compile(s)(*arrays, got)
    np.testing.assert_array_equal(got, wanted, err_msg=s.script())
    assert not s.proofs()
    again = s.version(0)
    again.replay(helve.Trace.from_json(s.trace().json()))
    assert again.script() == s.script()


@pytest.mark.parametrize("case", [CASES[n] for n in (1, 6, 12, 14, 18, 19, 22)], ids=str)
def test_every_stage_means_the_same(case):
    s, arrays, wanted = planned(case)
    for name, stage in lowering_stages(s.function, target="cuda", arch="sm_90a"):
        got = np.full(wanted.shape, 7, "float32")
        interpret(stage, *arrays, got)
        np.testing.assert_array_equal(got, wanted, err_msg=name)


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("case", [CASES[n] for n in (1, 12, 14, 21)], ids=str)
def test_texts_compile(case, arch):
    s, _, _ = planned(case, arch=arch)
    assert "__global__" in helve.compile(s, "cuda", arch=arch).source("cuda")


def test_products_are_tiles_in_registers_and_shared_memory():
    s, _, _ = planned(("ij,jk->ik", (128, 64), (64, 128)))
    script = s.script()
    assert "T.gemm(x0_shared" in script and "T.alloc_fragment((32, 32)" in script
    assert "T.Pipelined(4, num_stages=3" in script and "T.Kernel(4, 4)" in script


def test_rows_are_reduced_by_the_threads_of_a_block():
    s, _, _ = planned(("ij,j->i", (600, 1000), (1000,)))
    assert "T.Kernel(600)" in s.script() and "T.reduce_sum(out_fragment, out[i], clear=False)" in s.script()


def test_what_only_a_call_knows_stays_with_rows():
    i, j, k = helve.indices("i j k")
    M = helve.T.dyn("M")
    A, B, C = helve.tensor("A", (M, 50)), helve.tensor("B", (50, 40)), helve.tensor("C", (M, 40))
    C[i, j] = A[i, k] * B[k, j]
    s = helve.Schedule(helve.function(C).nest)
    s.auto("cuda")
    a, b, c = whole(0, 33, 50), whole(1, 50, 40), np.empty((33, 40), "float32")
    for target in ("llvm", "interp"):
        helve.compile(s, target)(a, b, c)
        np.testing.assert_array_equal(c, a @ b)


def test_index_notation_is_ordered_for_the_target():
    i, j, k = helve.indices("i j k")
    A, B, C = (helve.tensor(name, (64, 64)) for name in "ABC")
    C[i, j] = A[i, k] * B[k, j]
    kernel = helve.compile(helve.function(C), "cuda", arch="sm_90a")
    assert any(choice.operation == "T.gemm" for choice in kernel.schedules())


def test_targets_and_architectures():
    s = nest("ij->i", whole(0, 4, 4))
    for arguments, code in [(("interp",), "HV0802"), (("cuda", "gpu"), "HV1005"), (("cuda", "sm_10"), "HV1005"),
                            (("llvm", "sm_90a"), "HV1005"), ((3,), "HV0802"), (("cuda", 90), "HV1005")]:
        with pytest.raises(helve.Error) as caught:
            s.auto(*arguments)
        assert caught.value.code == code
