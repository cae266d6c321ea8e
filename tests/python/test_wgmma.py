"""T.gemm by the tensor cores of warpgroups: what it computes at every stage, its layouts, its text."""

import itertools
import re
from functools import partial

import numpy as np
import pytest
import tile_products
from cuda_on_host import HostKernels, aligned
from nvrtc import assert_fits_registers, compile_cubin, needs_nvrtc
from tile_products import OTHER_TYPES, TYPES, arguments

import helve
import helve.testing
from helve import T, _core
from helve.testing import changed_stages, lowering_stages

product = partial(tile_products.product, "wgmma")


def matmul(bm, bn, bk, threads, dtype="bfloat16", transpose_a=False, transpose_b=False, stages=3, out="float32",
           shape=None, sums="float32"):
    """C = A @ B in tiles, with extents of the call or of `shape`; tails are zeros in the tiles."""
    M, N, K = shape or (T.dyn("M"), T.dyn("N"), T.dyn("K"))

    @T.prim_func
    def main(A: T.Tensor((K, M) if transpose_a else (M, K), dtype),
             B: T.Tensor((N, K) if transpose_b else (K, N), dtype), C: T.Tensor((M, N), out)):
        with T.Kernel(T.ceildiv(M, bm), T.ceildiv(N, bn), threads=threads) as (i, j):
            a = T.alloc_shared((bk, bm) if transpose_a else (bm, bk), dtype)
            b = T.alloc_shared((bn, bk) if transpose_b else (bk, bn), dtype)
            c = T.alloc_fragment((bm, bn), sums)
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                if transpose_a:
                    T.copy(A[k * bk : k * bk + bk, i * bm : i * bm + bm], a)
                else:
                    T.copy(A[i * bm : i * bm + bm, k * bk : k * bk + bk], a)
                if transpose_b:
                    T.copy(B[j * bn : j * bn + bn, k * bk : k * bk + bk], b)
                else:
                    T.copy(B[k * bk : k * bk + bk, j * bn : j * bn + bn], b)
                T.gemm(a, b, c, transpose_A=transpose_a, transpose_B=transpose_b, dispatch="wgmma")
            T.copy(c, C[i * bm : i * bm + bm, j * bn : j * bn + bn])

    return main


CASES = [
    (64, 8, 16, 128, "float16", False, False, 1),
    (64, 24, 48, 128, "bfloat16", False, True, 2),
    (128, 64, 32, 256, "float16", True, False, 1),
    (64, 48, 64, 256, "bfloat16", True, True, 3),
    (64, 32, 16, 256, "float16", False, False, 1),  # 16 columns for each warpgroup, so slabs are no wider
    (64, 8, 8, 128, "float32", False, True, 2),
    (128, 16, 32, 256, "float32", False, True, 1),
    (64, 24, 64, 128, "float8_e4m3", False, True, 1),
    (64, 16, 32, 128, "float8_e5m2", False, True, 2),
    (64, 40, 64, 128, "int8", False, True, 2),
    (64, 32, 128, 128, "uint8", False, True, 1),
]
# A in registers: one warpgroup, two along M, two along N with a copy each.
IN_REGISTERS = [
    (64, 16, 32, 128, "float16", False, 2),
    (128, 24, 16, 256, "bfloat16", True, 1),
    (64, 32, 48, 256, "float16", False, 1),
    (64, 8, 16, 128, "float32", True, 2),
    (64, 16, 32, 128, "float8_e4m3", True, 1),
    (128, 16, 64, 128, "int8", True, 2),
]


def last_stage(function, arch="sm_90a"):
    return helve.testing.lowering_stages(function, target="cuda", arch=arch)[-1][1]


def programs():
    """Functions by name, with their arguments and results."""
    for number, (m, n, k, threads, dtype, ta, tb, steps) in enumerate(CASES):
        yield (f"product_{number}", product(m, n, k, threads, dtype, ta, tb, steps=steps),
               *arguments(m, n, k, dtype, ta, tb, steps))
    for number, (m, n, k, threads, dtype, tb, steps) in enumerate(IN_REGISTERS):
        yield (f"registers_{number}", product(m, n, k, threads, dtype, False, tb, steps=steps, registers=True),
               *arguments(m, n, k, dtype, False, tb, steps))


PROGRAMS = {name: rest for name, *rest in programs()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_stage(name):
    function, given, expected = PROGRAMS[name]
    for name, stage in changed_stages(lowering_stages(function, target="cuda", arch="sm_90a")):
        found = [each.copy() for each in given]
        helve.testing.interpret(stage, *found)
        np.testing.assert_array_equal(found[2], expected, err_msg=name)
        helve.testing.assert_round_trip(stage)


@pytest.mark.parametrize("target", ["interp", "llvm"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_instruction_runs_on_every_target(target, name):
    """As a block has it, and as its threads have it."""
    function, given, expected = PROGRAMS[name]
    stages = helve.testing.lowering_stages(function, target="cuda", arch="sm_90a")
    for stage in (dict(stages)["lower_tile_ops"], stages[-1][1]):
        assert "T.wgmma(" in _core.print(stage)
        found = [each.copy() for each in given]
        helve.compile(helve.parse(_core.print(stage)), target=target)(*found)
        np.testing.assert_array_equal(found[2], expected)


def text_of(function, arch="sm_90a"):
    return _core.cuda_source(last_stage(function, arch))[0]


@pytest.mark.parametrize("prelude", [False, True])
@pytest.mark.parametrize("unaligned", [False, True])
def test_the_text_computes_it(tmp_path, prelude, unaligned):
    """Copied by TMA or, for tensors that are aligned as an element is, by the threads."""
    forms = [last_stage(function) for function, *_ in PROGRAMS.values()]
    kernels = HostKernels(forms, tmp_path, prelude=prelude, names=list(PROGRAMS), unaligned=unaligned)
    for name, (_, given, expected) in PROGRAMS.items():
        given = [aligned(each.copy()) for each in given]
        kernels.run(name, 1, dict(zip("ABC", given)))
        np.testing.assert_array_equal(given[2], expected, err_msg=name)


def test_descriptors_are_those_of_the_layouts():
    """Slabs of as many elements as divide a row, one after the other."""
    stages = dict(helve.testing.lowering_stages(product(128, 96, 128, 256, "float16", False, False), target="cuda",
                                                arch="sm_90a"))
    placed = _core.print(stages["place_operands"])
    shared = {"a": "S[(128, 2, 64) : (64, 8192, 1)] ^ Swizzle(3, 3, 3)",
              "b": "S[(128, 3, 32) : (32, 4096, 1)] ^ Swizzle(2, 3, 3)"}
    for (name, layout), columns in zip(shared.items(), (128, 96)):
        assert f'{name} = T.alloc_shared((128, {columns}), "float16", layout="{layout}")' in placed
    digits = "(2, 4, 2, 8, 12, 4, 2) : (128@tx, 32@tx, 2@reg, 4@tx, 4@reg, 1@tx, 1@reg)"
    assert f'c = T.alloc_fragment((128, 96), "float32", layout="S[{digits}]")' in placed
    lowered = _core.print(stages["lower_tile_ops"])
    assert "descriptor_A=[16, 1024, 128], descriptor_B=[8192, 512, 64]" in lowered


def test_a_tile_is_copied_as_boxes():
    """TMA writes the layout of the instruction: a box for each slab."""
    text = text_of(matmul(128, 128, 64, 128, shape=(256, 256, 256)))
    assert "helve_load_box(" in text
    assert re.findall(r"helve_descriptor<[^>]*>", text) == ["helve_descriptor<16, 1024, 128>",
                                                           "helve_descriptor<8192, 1024, 128>"]
    assert "helve_copy_async" not in text


ORDERS = list(itertools.product([False, True], repeat=2))


@needs_nvrtc
@pytest.mark.parametrize(("ta", "tb"), ORDERS)
@pytest.mark.parametrize(("bm", "bn", "threads"), [(128, 256, 256), (128, 128, 128), (64, 24, 128)])
def test_the_text_compiles_without_spills(bm, bn, threads, ta, tb):
    for dtype in TYPES:
        text = text_of(matmul(bm, bn, 64, threads, dtype, ta, tb, 3, dtype))
        assert_fits_registers(text, "sm_90a")


@needs_nvrtc
@pytest.mark.parametrize("dtype", OTHER_TYPES)
def test_the_text_of_other_types_compiles_without_spills(dtype):
    out = "int32" if "int" in dtype else "float32"
    for bm, bn, threads in [(128, 256, 256), (128, 128, 128)]:
        text = text_of(matmul(bm, bn, 128 * 8 // (32 if dtype == "float32" else 8), threads, dtype, False, True, 3, out,
                              sums=out))
        assert_fits_registers(text, "sm_90a")


@needs_nvrtc
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name.startswith("registers")])
def test_the_text_of_factors_in_registers_compiles_without_remarks(name):
    _, log = compile_cubin(text_of(PROGRAMS[name][0]), "sm_90a")
    assert not re.search(r"\bC75\d\d\b", log), log


@pytest.mark.parametrize(("ta", "tb"), ORDERS)
def test_ragged_products(ta, tb):
    """Tails in every dimension, no turn of the loop, and one."""
    function = matmul(64, 16, 16, 128, "float16", ta, tb, 3)
    rng = np.random.default_rng(5)
    for m, n, k in [(64, 16, 16), (72, 24, 40), (8, 8, 0), (65, 17, 33)]:
        a, b = (rng.integers(-3, 4, shape).astype("float16") for shape in [(m, k), (k, n)])
        given = [np.ascontiguousarray(a.T if ta else a), np.ascontiguousarray(b.T if tb else b),
                 np.full((m, n), 7, "float32")]
        expected = a.astype("float32") @ b.astype("float32")
        stages = helve.testing.lowering_stages(function, target="cuda", arch="sm_90a")
        for name, stage in helve.testing.with_variant(stages)[-2:]:
            found = [each.copy() for each in given]
            helve.testing.interpret(stage, *found, check="all")
            np.testing.assert_array_equal(found[2], expected, err_msg=f"{name} {m, n, k}")
