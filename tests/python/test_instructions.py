"""Instructions as operations of the table: written by hand, or chosen for a T.copy, they are typed, printed and
interpreted, and mean the same on every target.
"""

import numpy as np
import pytest
from copy_programs import check_on_the_cpu, check_text, whole_numbers
from cuda_on_host import HostKernels

import helve
import helve.testing
from helve import T, _core
from helve.layout import S, laneid, reg, tx

ARCH = "sm_90a"
MMA_A = S[(2, 8, 2, 4, 2) : (2 @ reg, 4 @ tx, 4 @ reg, 1 @ tx, 1 @ reg)]


def thread_form(function, arch=ARCH):
    return helve.testing.lowering_stages(function, target="cuda", arch=arch)[-1][1]


@T.prim_func
def runs(A: T.Tensor((2, 256), "float16"), B: T.Tensor((2, 256), "float16")):
    with T.Kernel(2, threads=32) as b:
        x = T.alloc_shared((256,), "float16")
        for i in T.Parallel(32):
            T.cp_async(A[b, i * 8 : i * 8 + 8], x[i * 8 : i * 8 + 8])
        T.commit_async()
        T.wait_async()
        for i in T.Parallel(256):
            B[b, i] = x[255 - i]


@T.prim_func
def runs_past_the_end(A: T.Tensor((100,), "float32"), B: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=32):
        x = T.alloc_shared((128,), "float32")
        for i in T.Parallel(32):
            T.cp_async(A[i * 4 : i * 4 + 4], x[i * 4 : i * 4 + 4])
        T.commit_async()
        T.wait_async()
        for i in T.Parallel(128):
            B[i] = x[127 - i] + 1.0


@T.prim_func
def one_run(A: T.Tensor((4, 8), "float32"), B: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=32):
        x = T.alloc_shared((8,), "float32")
        for k in T.serial(2):
            T.cp_async(A[k + 1, 4 : 8], x[k * 4 : k * 4 + 4])
        T.commit_async()
        T.wait_async()
        for i in T.Parallel(8):
            B[i] = x[7 - i]


@T.prim_func
def pieces(A: T.Tensor((4, 64), "float32"), B: T.Tensor((4, 64), "float32")):
    with T.Kernel(1, threads=32):
        x = T.alloc_shared((4, 64), "float32")
        y = T.alloc_shared((64,), "float32")
        T.cp_async_bulk(A[0, :], y, wait=True)
        T.cp_async_bulk(A, x)
        T.wait_async()
        for i, j in T.Parallel(4, 64):
            x[i, j] = x[i, j] + y[63 - j]
        T.cp_async_bulk(x[0:2, :], B[0:2, :])
        T.cp_async_bulk(x[2:4, :], B[2:4, :], wait=True)
        T.wait_async()


@T.prim_func
def boxes(A: T.Tensor((10, 40), "float32"), B: T.Tensor((10, 40), "float32")):
    with T.Kernel(1, threads=32):
        x = T.alloc_shared((16, 32), "float32")
        for k in T.serial(2):
            T.cp_async_bulk_tensor(A[0:16, k * 32 : k * 32 + 32], x)
            T.wait_async()
            for i, j in T.Parallel(16, 32):
                x[i, j] = x[i, j] * 2.0
            T.cp_async_bulk_tensor(x, B[0:16, k * 32 : k * 32 + 32], wait=True)


@T.prim_func
def matrices(A: T.Tensor((16, 16), "float16"), B: T.Tensor((16, 16), "float16")):
    with T.Kernel(1, threads=32):
        x = T.alloc_shared((16, 16), "float16")
        f = T.alloc_fragment((16, 16), "float16", layout=MMA_A)
        T.copy(A, x)
        T.ldmatrix(x, f, layout=MMA_A)
        for i, j in T.Parallel(16, 16):
            f[i, j] = f[i, j] * 2.0
        T.stmatrix(f, x, layout=MMA_A)
        T.copy(x, B)


@T.prim_func
def bytes_of_threads(A: T.Tensor((64,), "uint8"), B: T.Tensor((64, 2), "bfloat16")):
    with T.Kernel(1, threads=64):
        w = T.alloc_fragment((64, 2), "bfloat16")
        for t in T.threads(64):
            T.unpack_int4(A[63 - t], w[t, 0:2])
            for r in T.unroll(2):
                B[t, r] = w[t, r]


@T.prim_func
def bytes_of_iterations(A: T.Tensor((64,), "uint8"), B: T.Tensor((64, 2), "float16")):
    with T.Kernel(1, threads=32):
        w = T.alloc_fragment((64, 2), "float16")
        for i in T.Parallel(64):
            T.unpack_int4(A[63 - i], w[i, 0:2])
        T.copy(w, B)


@T.prim_func
def bytes_of_the_block(A: T.Tensor((3,), "uint8"), B: T.Tensor((3, 6), "bfloat16")):
    with T.Kernel(1, threads=32):
        s = T.alloc_shared((1,), "float32")
        w = T.alloc_fragment((3, 6), "bfloat16")
        T.fill(s, 0.75)
        T.fill(w, 9.0)
        for i in T.serial(3):
            T.unpack_scaled_int4(A[i], s[0], w[i, i : i + 2])
        T.copy(w, B)


def halves(a):
    """The two int4 of each byte, the low one first."""
    codes = np.stack([a & 15, a >> 4], axis=-1).astype("int8")
    return np.where(codes < 8, codes, codes - 16)


def halves_along_the_diagonal(a):
    out = np.full((3, 6), 9.0)
    for i, pair in enumerate(halves(a)):
        out[i, i : i + 2] = pair * 0.75
    return out


# name: (function, shapes of its arguments, their dtypes, blocks), what it computes
PROGRAMS = {
    "runs": ((runs, [(2, 256)] * 2, ["float16"] * 2, 2), lambda a: a[:, ::-1]),
    "runs_past_the_end": ((runs_past_the_end, [(100,), (128,)], ["float32"] * 2, 1),
                          lambda a: np.concatenate([a, np.zeros(28, a.dtype)])[::-1] + 1),
    "one_run": ((one_run, [(4, 8), (8,)], ["float32"] * 2, 1), lambda a: a[1:3, 4:].reshape(-1)[::-1]),
    "pieces": ((pieces, [(4, 64)] * 2, ["float32"] * 2, 1), lambda a: a + a[0, ::-1]),
    "boxes": ((boxes, [(10, 40)] * 2, ["float32"] * 2, 1), lambda a: a * 2),
    "matrices": ((matrices, [(16, 16)] * 2, ["float16"] * 2, 1), lambda a: a * 2),
    "bytes_of_threads": ((bytes_of_threads, [(64,), (64, 2)], ["uint8", "bfloat16"], 1), lambda a: halves(a[::-1])),
    "bytes_of_iterations": ((bytes_of_iterations, [(64,), (64, 2)], ["uint8", "float16"], 1),
                            lambda a: halves(a[::-1])),
    "bytes_of_the_block": ((bytes_of_the_block, [(3,), (3, 6)], ["uint8", "bfloat16"], 1), halves_along_the_diagonal),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_instructions_mean_the_same_at_every_stage(name):
    (function, shapes, dtypes, _), expected = PROGRAMS[name]

    def make():
        return [whole_numbers(shape, dtype) for shape, dtype in zip(shapes, dtypes)]

    given = make()
    helve.testing.interpret(function, *given, check="all")
    np.testing.assert_array_equal(given[1], expected(given[0]))
    helve.testing.check_stages(function, make, target="cuda", check="all", arch=ARCH)
    helve.testing.check_stages(function, make, target="llvm")


@pytest.mark.parametrize("unaligned", [False, True])
def test_the_text_computes_the_same(tmp_path, unaligned):
    forms = [thread_form(program[0]) for program, _ in PROGRAMS.values()]
    kernels = HostKernels(forms, tmp_path, names=list(PROGRAMS), unaligned=unaligned)
    for name, (program, _) in PROGRAMS.items():
        check_text(kernels, name, program)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_cpu_runs_them_and_their_thread_forms(name):
    program, _ = PROGRAMS[name]
    check_on_the_cpu(program, thread_form(program[0]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_copy_is_left_that_is_no_instruction(name):
    """Neither is a name of an implementation."""
    stages = dict(helve.testing.lowering_stages(PROGRAMS[name][0][0], target="cuda", arch=ARCH))
    for stage in list(stages)[list(stages).index("lower_tile_ops"):]:
        text = _core.print(stages[stage])
        assert "T.copy(" not in text and "T.copy_async(" not in text and "dispatch=" not in text


@pytest.mark.parametrize("dispatch, arch, instruction", [
    ("cp_async", "sm_80", "T.cp_async("), ("tma", "sm_90a", "T.cp_async_bulk("),
    ("tma_tensor", "sm_90a", "T.cp_async_bulk_tensor("), ("registers", "sm_90a", None)])
def test_an_implementation_is_an_instruction_behind_the_choice(dispatch, arch, instruction):
    @T.prim_func
    def main(A: T.Tensor((32, 64), "float32"), B: T.Tensor((32, 64), "float32")):
        with T.Kernel(1, threads=64):
            x = T.alloc_shared((32, 64), "float32")
            T.copy_async(A, x, dispatch=dispatch)
            T.wait_async()
            for i, j in T.Parallel(32, 64):
                B[i, j] = x[31 - i, j]

    text = _core.print(dict(helve.testing.lowering_stages(main, target="cuda", arch=arch))["lower_tile_ops"])
    assert instruction is None or text.count(instruction) == 1
    assert text.count("T.cp_async") == (instruction is not None)


def test_a_copy_between_matrices_is_an_instruction_behind_the_choice():
    @T.prim_func
    def main(A: T.Tensor((16, 16), "float16"), B: T.Tensor((16, 16), "float16")):
        with T.Kernel(1, threads=32):
            x = T.alloc_shared((16, 16), "float16")
            f = T.alloc_fragment((16, 16), "float16", layout=MMA_A)
            T.copy(A, x)
            T.copy(x, f)
            T.copy(f, B)

    stages = dict(helve.testing.lowering_stages(main, target="cuda", arch=ARCH))
    assert f'T.ldmatrix(x, f, layout="{MMA_A}")' in _core.print(stages["lower_tile_ops"])
    assert f'T.ldmatrix(x, f, layout="{MMA_A}")' in _core.print(stages["distribute_threads"])


def test_layouts_are_operands():
    """Equal layouts are equal operands, whether a value or its text; others are not. Ones on other axes are others."""
    head = """
@T.prim_func
def main(A: T.Tensor((16, 16), "float16")):
    with T.Kernel(1, threads=32):
        x = T.alloc_shared((16, 16), "float16")
        f = T.alloc_fragment((16, 16), "float16", layout=L)
        T.ldmatrix(x, f, layout=M)
"""

    def operand(layout):
        function = helve.parse(head.replace("=L", f'="{MMA_A}"').replace("=M", f'="{layout}"'))
        return function.function, function.function.body.body.stmts[-1].operands[2]

    on_lanes = S[(2, 8, 2, 4, 2) : (2 @ reg, 4 @ laneid, 4 @ reg, 1 @ laneid, 1 @ reg)]
    f, layout = operand(MMA_A)
    assert isinstance(layout, _core.Layout) and layout == MMA_A
    g, _ = operand(MMA_A)
    assert _core.structural_equal(f, g)[0] and _core.structural_hash(f) == _core.structural_hash(g)
    h, _ = operand(MMA_A.canonicalize())
    assert _core.structural_equal(f, h)[0] == (MMA_A.canonicalize() == MMA_A)
    with pytest.raises(helve.Error, match="does not give each thread"):
        operand(on_lanes)
