"""`s.auto("cuda")`: results by machine code, by the interpreter and at the stages towards a GPU; texts that compile.

What the kernels do on a device is the matter of tests/gpu; their texts run here on the CPU like those of any program
(test_every_program.py).
"""

import math
import re

import helve
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned, blocks_and_extents, one_launch_each
from helve import _core
from helve.testing import changed_stages, interpret, lowering_stages
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
    ("ij,jk->ik", (131, 67), (67, 129)),
    ("bij,bkj->bik", (3, 65, 70), (3, 33, 70)),
    ("ij,jk->ik", (9, 1030), (1030, 40)),
    ("ij,jk->ik", (1, 1000), (1000, 130)),
    ("i,ij->j", (1000,), (1000, 131)),
    ("ij->j", (1000, 131)),
    ("ijk->k", (30, 40, 33)),
    ("ijk->j", (30, 40, 33)),
    ("ij->i", (131, 258)),
    ("ij,j->i", (5, 5003), (5003,)),
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
    for name, stage in changed_stages(lowering_stages(s.function, target="cuda", arch="sm_90a")):
        got = np.full(wanted.shape, 7, "float32")
        interpret(stage, *arrays, got)
        np.testing.assert_array_equal(got, wanted, err_msg=name)


EMULATED = [CASES[n] for n in (1, 5, 6, 12, 14, 19, 22, 26, 27, 28, 29, 31, 32, 34, 35)]


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    forms = {(n, k): list(lowering_stages(function, target="cuda", arch="sm_90a"))[-1][1]
             for n, case in enumerate(EMULATED)
             for k, function in enumerate(one_launch_each(planned(case)[0].script()))}
    kernels = HostKernels(forms.values(), tmp_path_factory.mktemp("cuda"), names=[f"k{n}_{k}" for n, k in forms])
    return kernels, forms


@pytest.mark.parametrize("number", range(len(EMULATED)), ids=[str(case) for case in EMULATED])
def test_the_text_computes_the_same(emulated, number):
    kernels, forms = emulated
    _, arrays, wanted = planned(EMULATED[number])
    memory = {f"x{n}": aligned(array) for n, array in enumerate(arrays)}
    memory["out"] = aligned(np.full(wanted.shape, 7, "float32"))
    for (n, k), form in forms.items():
        if n != number:
            continue
        for param in form.params:
            shape = [int(str(extent)) for extent in param.shape]
            memory.setdefault(param.name, aligned(np.full(shape, 7, "float32")))
        blocks, extents = blocks_and_extents(form, [memory[param.name] for param in form.params])
        assert all(key in (str(value), "multiprocessors") for key, value in extents.items())
        kernels.run(f"k{n}_{k}", blocks, memory)
    np.testing.assert_array_equal(memory["out"], wanted)


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
    assert "T.Kernel(4, 4)" in script and "T.Pipelined" not in script  # all terms are copied at once
    s, _, _ = planned(("ij,jk->ik", (128, 100), (100, 128)))
    assert "T.Pipelined(6, num_stages=3" in s.script()


def test_uneven_products_are_one_launch_of_whole_tiles():
    s, _, _ = planned(("ij,jk->ik", (1000, 1111), (1111, 500)))
    assert s.script()[s.script().index("    with"):] == """\
    with T.Kernel(16, 16) as (io, koo):
        out_fragment = T.alloc_fragment((64, 32), "float32")
        T.fill(out_fragment, 0.0)
        x0_shared = T.alloc_shared((64, 16), "float32", layout="S[(64, 16) : (20, 1)]")
        x1_shared = T.alloc_shared((16, 32), "float32")
        for jo in T.Pipelined(69, num_stages=3, scheduled=True):
            T.copy(x0[io * 64:io * 64 + 64, jo * 16:jo * 16 + 16], x0_shared)
            T.copy(x1[jo * 16:jo * 16 + 16, koo * 32:koo * 32 + 32], x1_shared)
            T.gemm(x0_shared, x1_shared, out_fragment)
        x0_shared_1 = T.alloc_shared((64, 7), "float32", layout="S[(64, 7) : (8, 1)]")
        T.copy(x0[io * 64:io * 64 + 64, 1104:1111], x0_shared_1)
        x1_shared_1 = T.alloc_shared((7, 32), "float32")
        T.copy(x1[1104:1111, koo * 32:koo * 32 + 32], x1_shared_1)
        T.gemm(x0_shared_1, x1_shared_1, out_fragment)
        T.copy(out_fragment, out[io * 64:io * 64 + 64, koo * 32:koo * 32 + 32])
"""
    assert all(step.effect in ("equal", "reassociated") for step in s.report())


def launches_of(s):
    return s.script().count("with T.Kernel(")


@pytest.mark.parametrize("case, count", [
    (("ij,jk->ik", (1000, 1111), (1111, 500)), 1),
    (("ij,kj->ik", (4096, 1000), (777, 1000)), 1),
    (("bhid,bhjd->bhij", (2, 12, 500, 64), (2, 12, 500, 64)), 1),
    (("ij,kj->ik", (16, 4096), (4096, 4096)), 2),
    (("ijk,k->ij", (256, 256, 256), (256,)), 1),
    (("ij->i", (1003, 77)), 1),
    (("i,ij->j", (4096,), (4096, 7168)), 2),
    (("ij,jk->ik", (1, 7168), (7168, 4096)), 2),
    (("ij->j", (1000, 1111)), 2),
    (("ij->", (4096, 7168)), 2),
    (("i,i->", (10_000_001,), (10_000_001,)), 2),
    (("ijk->kji", (201, 301, 401)), 1),
], ids=str)
def test_uneven_extents_are_no_launches_of_their_own(case, count):
    spec, *shapes = case
    s = helve.Schedule(_core.einsum(spec, ["float32"] * len(shapes), shapes, [], _core.Span(), nest=True)[0])
    s.auto("cuda", "sm_90a")
    assert launches_of(s) == count, s.script()
    assert not s.proofs()


def test_parts_of_columns_are_blocks_of_their_own():
    """There is a block for each multiprocessor, and the parts are merged by a second launch."""
    machine = _core.gpu_machine("sm_90a")
    s, _, _ = planned(("ij->j", (4096, 256)))
    grids = re.findall(r"T.Kernel\(([\d, ]+)\)", s.script())
    blocks = [math.prod(map(int, grid.split(", "))) for grid in grids]
    assert blocks[0] >= machine.processors and len(blocks) == 2
    assert "T.alloc_global((128, 256)" in s.script()


def test_rows_are_reduced_by_the_threads_of_a_block():
    s, _, _ = planned(("ij,j->i", (600, 1000), (1000,)))
    assert "T.Kernel(600)" in s.script() and "T.reduce_sum(out_fragment, out[i], clear=False)" in s.script()


M, N, K = (helve.T.dyn(name) for name in "MNK")
DYNAMIC = {
    "product": ("ik,kj->ij", (M, K), (K, N), (M, N)),
    "product with rows of a call": ("ik,kj->ij", (M, 50), (50, 40), (M, 40)),
    "product with terms of a call": ("ik,jk->ij", (33, K), (40, K), (33, 40)),
    "rows": ("ij,j->i", (M, K), (K,), (M,)),
    "columns": ("i,ij->j", (M,), (M, N), (N,)),
    "columns in parts": ("i,ij->j", (M,), (M, 40), (40,)),
    "transpose": ("ij->ji", (M, N), (N, M)),
}


def dynamic(form):
    """The nest of a statement in index notation."""
    spec, *shapes = DYNAMIC[form]
    names, result = spec.split("->")[0].split(","), spec.split("->")[1]
    index = dict(zip("ijk", helve.indices("i j k"), strict=True))
    tensors = [helve.tensor(name, shape) for name, shape in zip("ABC", shapes, strict=False)]

    def element(tensor, letters):
        return tensor[tuple(index[letter] for letter in letters)]

    value = element(tensors[0], names[0])
    for tensor, letters in zip(tensors[1:-1], names[1:], strict=True):
        value = value * element(tensor, letters)
    tensors[-1][tuple(index[letter] for letter in result)] = value
    return helve.Schedule(helve.function(tensors[-1]).nest)


@pytest.mark.parametrize("sizes", [(33, 29, 50), (1, 1, 1), (0, 5, 5), (5, 0, 5), (5, 5, 0), (130, 70, 67)])
@pytest.mark.parametrize("form", DYNAMIC)
def test_extents_that_only_a_call_knows(form, sizes):
    spec, *shapes = DYNAMIC[form]
    known = dict(zip((str(each) for each in (M, N, K)), sizes, strict=True))
    arrays = [whole(n, *(known.get(str(e), e) for e in shape)) for n, shape in enumerate(shapes)]
    s = dynamic(form)
    s.auto("cuda", "sm_90a")
    assert any(f"T.{op}(" in s.script() for op in ("gemm", "reduce_sum", "copy")) and not s.proofs()
    wanted = np.einsum(spec, *arrays[:-1])
    for target in ("llvm", "interp"):
        got = np.full(wanted.shape, 7, "float32")
        helve.compile(s, target)(*arrays[:-1], got)
        np.testing.assert_array_equal(got, wanted, err_msg=s.script())


@pytest.mark.parametrize("form", DYNAMIC)
def test_every_stage_means_the_same_for_any_extents(form):
    spec, *shapes = DYNAMIC[form]
    known = {"M": 37, "N": 35, "K": 41}
    arrays = [whole(n, *(known.get(str(e), e) for e in shape)) for n, shape in enumerate(shapes)]
    s = dynamic(form)
    s.auto("cuda", "sm_90a")
    wanted = np.einsum(spec, *arrays[:-1])
    for name, stage in changed_stages(lowering_stages(s.function, target="cuda", arch="sm_90a")):
        got = np.full(wanted.shape, 7, "float32")
        interpret(stage, *arrays[:-1], got)
        np.testing.assert_array_equal(got, wanted, err_msg=name)


@needs_nvrtc
@pytest.mark.parametrize("form", ["product", "rows", "columns"])
def test_texts_of_any_extents_compile(form):
    s = dynamic(form)
    s.auto("cuda", "sm_90a")
    assert "__global__" in helve.compile(s, "cuda", arch="sm_90a").source("cuda")


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
