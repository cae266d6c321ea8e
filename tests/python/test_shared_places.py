"""Places of buffers in the shared memory of a block: what the interpreter says of buffers that share bytes, and which
buffers the compiler lets share them.
"""

import re

import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned

import helve
import helve.testing
from helve import T, _core

THREADS = 64
SYNC = "T.sync_threads()"


def over_threads(name, store):
    return [f"for {name} in T.threads({THREADS}):", f"    {store}"]


def block(*parts, params="A, B, C", dtype="float32"):
    """A function in thread form over vectors of as many elements as the block has threads."""
    lines = [line for part in parts for line in ([part] if isinstance(part, str) else part)]
    types = ", ".join(f'{name}: T.Tensor(({THREADS},), "{dtype}")' for name in params.split(", "))
    body = "\n".join("        " + line for line in lines)
    return f"@T.prim_func\ndef main({types}):\n    with T.Kernel(1, threads={THREADS}) as b:\n{body}\n"


def alloc(name, offset=None, shape=(THREADS,), dtype="float32", layout=None):
    more = ("" if layout is None else f', layout="{layout}"') + ("" if offset is None else f", offset={offset}")
    return f'{name} = T.alloc_shared({shape}, "{dtype}"{more})'


def arguments(count=3, dtype="float32"):
    return [np.arange(THREADS).astype(dtype), *(np.zeros(THREADS, dtype) for _ in range(count - 1))]


def verdict(text, count=3, dtype="float32", check="barriers"):
    """The code of what the interpreter finds, or None."""
    try:
        helve.testing.interpret(helve.parse(text), *arguments(count, dtype), check=check)
    except helve.Error as error:
        return error.code
    return None


def two_phases(*, barrier=True, offset=0, later="y[63 - t4]"):
    """x is written and read, then y, at `offset`."""
    return block(alloc("x", 0), alloc("y", offset), over_threads("t1", "x[t1] = A[t1]"), SYNC,
                 over_threads("t2", "B[t2] = x[63 - t2]"), *([SYNC] if barrier else []),
                 over_threads("t3", "y[t3] = A[t3] + 1.0"), SYNC, over_threads("t4", f"C[t4] = {later}"))


def test_buffers_that_share_bytes_one_after_the_other():
    assert verdict(two_phases()) is None


@pytest.mark.parametrize("offset", [0, 128])
def test_a_barrier_stands_between_the_uses_of_two_buffers(offset):
    assert verdict(two_phases(barrier=False, offset=offset)) == "HV0705"
    assert verdict(two_phases(barrier=False, offset=offset), check="all") is None  # threads of loops, one by one
    assert verdict(two_phases(barrier=False, offset=256)) is None


@pytest.mark.parametrize("check", ["barriers", "all"])
def test_what_was_written_as_another_buffer_is_undefined(check):
    assert verdict(two_phases(later="x[63 - t4]"), check=check) == "HV0704"
    assert verdict(two_phases(later="x[t4 // 2]", offset=128), check=check) is None
    assert verdict(two_phases(later="x[32 + t4 // 2]", offset=128), check=check) == "HV0704"
    assert verdict(two_phases(later="x[63 - t4]", offset=256), check=check) is None


def test_buffers_of_several_types():
    """An element is gone when a part of it is."""
    text = block(alloc("x", 0), alloc("y", 128, (THREADS,), "int8"), over_threads("t1", "x[t1] = A[t1]"), SYNC,
                 over_threads("t2", "if t2 == 3:"), '        y[t2] = T.cast(1, "int8")', SYNC,
                 over_threads("t3", "B[t3] = x[{}]"))
    assert verdict(text.format("T.min(t3, 31)")) is None
    assert verdict(text.format("33")) is None
    assert verdict(text.format("32")) == "HV0704"


def test_a_layout_says_where_the_bytes_are():
    """Elements of x are every other one of the memory."""
    text = block(alloc("x", 0, layout="S[64 : 2]"), alloc("y", 256, (32,)), over_threads("t1", "x[t1] = A[t1]"), SYNC,
                 [f"for t2 in T.threads({THREADS}):", "    if t2 == 2:", "        y[t2] = 1.0"], SYNC,
                 over_threads("t3", "B[t3] = x[{}]"))
    assert verdict(text.format("32")) is None
    assert verdict(text.format("33")) == "HV0704"  # 66 elements from the begin of x, 2 from that of y


def test_a_block_finds_nothing_of_the_block_before():
    """Neither values nor races are handed on."""
    text = two_phases().replace("T.Kernel(1,", "T.Kernel(2,").replace("B[t2] =", "B[t2] = b * 0.0 +")
    stores = text.replace("B[t2] = b * 0.0 +", "if b == 0:\n                B[t2] =").replace(
        "            C[t4] =", "            if b == 0:\n                C[t4] =")
    assert verdict(stores) is None


COPIES = """
@T.prim_func
def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64) as b:
        x = T.alloc_shared((64,), "float32", offset=0)
        y = T.alloc_shared((64,), "float32", offset=0)
        for t1 in T.threads(64):
            y[t1] = 1.0
        {before}
        T.cp_async_bulk(A, x)
        {first}
        {second}
        for t2 in T.threads(64):
            y[t2] = 2.0
        T.sync_threads()
        for t3 in T.threads(64):
            C[t3] = y[63 - t3]
        {end}
"""


def test_bytes_of_a_copy_are_free_behind_its_wait_and_a_barrier():
    wait, nothing = "T.wait_async()", "pass"

    def found(before, first, second, end=nothing):
        text = COPIES.format(before=before, first=first, second=second, end=end)
        return verdict(text.replace("        pass\n", ""))

    assert found(SYNC, wait, SYNC) is None
    assert found(nothing, wait, SYNC) == "HV0705"  # threads have not left y
    assert found(SYNC, SYNC, wait) == "HV0705"  # a thread may have waited before the copy is seen by others
    assert found(SYNC, wait, nothing) == "HV0705"
    assert found(SYNC, SYNC, nothing, wait) == "HV0708"


# What the pass does.


def rows():
    return np.arange(8 * 256, dtype="float32").reshape(8, 256)


def placed(function, arch="sm_90a"):
    """Buffer -> (offset, bytes) in the last stage of a function, which verifies and means the same as the others."""
    form = helve.testing.lowering_stages(function, target="cuda", arch=arch)[-1][1]
    text = _core.print(form)
    found = re.findall(r'(\w+) = T\.alloc_shared\((\(.*?\)), "(\w+)".*?(?:, offset=(\d+))?\)\n', text)
    return {name: int(offset) for name, _, _, offset in found if offset}, form


def chain(phases, elements=256):
    """Each phase mirrors what the one before has made."""
    lines = [f'x{k} = T.alloc_shared(({elements},), "float32")' for k in range(phases)]
    lines += ["T.copy(A, x0)"]
    lines += [f"for i{k} in T.Parallel({elements}):\n            x{k}[i{k}] = x{k - 1}[{elements - 1} - i{k}] + {k}.0"
              for k in range(1, phases)]
    lines += [f"for j in T.Parallel({elements}):\n            B[j] = x{phases - 1}[{elements - 1} - j]"]
    body = "\n".join("        " + line for line in lines)
    types = f'A: T.Tensor(({elements},), "float32"), B: T.Tensor(({elements},), "float32")'
    return helve.parse(f"@T.prim_func\ndef main({types}):\n    with T.Kernel(1, threads=64) as b:\n{body}\n")


@pytest.mark.parametrize("phases", [2, 3, 6])
def test_a_chain_of_phases_needs_the_memory_of_two(phases):
    function = chain(phases)
    offsets, form = placed(function)
    assert len(offsets) == phases and set(offsets.values()) == {0, 1024}
    (kernel,) = _core.cuda_source(form)[1]
    assert kernel["shared_bytes"] == 2048
    helve.testing.check_stages(function, lambda: [np.arange(256, dtype="float32"), np.zeros(256, "float32")],
                               target="cuda")


def test_the_text_of_a_chain(tmp_path):
    """The emulation has one memory for all of them."""
    _, form = placed(chain(6))
    kernels = HostKernels([form], tmp_path)
    a, b = aligned(np.arange(256, dtype="float32")), aligned(np.zeros(256, "float32"))
    kernels.run("main", 1, {"A": a, "B": b}, {})
    np.testing.assert_array_equal(b, np.arange(256, dtype="float32") + 15.0)


@T.prim_func
def tiles(A: T.Tensor((8, 256), "float32"), B: T.Tensor((8, 256), "float32")):
    """The buffers stand outside of the loop, whose iterations write all of them before they read."""
    with T.Kernel(1, threads=64) as b:
        x = T.alloc_shared((256,), "float32")
        y = T.alloc_shared((256,), "float32")
        z = T.alloc_shared((256,), "float32")
        w = T.alloc_shared((256,), "float32")
        for k in T.serial(8):
            T.copy(A[k, :], x)
            for i in T.Parallel(256):
                y[i] = x[255 - i] * 2.0
            for j in T.Parallel(256):
                z[j] = y[255 - j] + 1.0
            for n in T.Parallel(256):
                w[n] = z[255 - n] * 3.0
            for m in T.Parallel(256):
                B[k, m] = w[255 - m]


@T.prim_func
def sums(A: T.Tensor((8, 256), "float32"), B: T.Tensor((256,), "float32")):
    """Iterations hand on what is in z."""
    with T.Kernel(1, threads=64) as b:
        x = T.alloc_shared((256,), "float32")
        y = T.alloc_shared((256,), "float32")
        z = T.alloc_shared((256,), "float32")
        for h in T.Parallel(256):
            z[255 - h] = 0.0
        for k in T.serial(8):
            T.copy(A[k, :], x)
            for i in T.Parallel(256):
                y[i] = x[255 - i] * 2.0
            for j in T.Parallel(256):
                z[j] = z[j] + y[255 - j]
        for m in T.Parallel(256):
            B[m] = z[255 - m]


def test_iterations_that_write_before_they_read():
    offsets, _ = placed(tiles)
    assert sorted(offsets.values()) == [0, 0, 1024, 1024]
    helve.testing.check_stages(tiles, lambda: [rows(), np.zeros((8, 256), "float32")], target="cuda")


def test_what_iterations_hand_on_keeps_its_bytes():
    offsets, _ = placed(sums)
    assert len(set(offsets.values())) == len(offsets)
    helve.testing.check_stages(sums, lambda: [rows(), np.zeros(256, "float32")],
                               target="cuda")


def without_barrier(text, number):
    """The text without one of its barriers."""
    places = [match.span() for match in re.finditer(r"\n *T\.sync_threads\(\)", text)]
    begin, end = places[number]
    return text[:begin] + text[end:]


@pytest.mark.parametrize("name", ["chain", "tiles"])
def test_no_barrier_can_be_left_out(name):
    function = chain(5) if name == "chain" else tiles
    _, form = placed(function)
    text = str(_core.print(form))
    shapes = [(256,), (256,)] if name == "chain" else [(8, 256), (8, 256)]
    barriers = text.count("T.sync_threads()")
    assert barriers >= 3
    for number in range(barriers):
        mutant = helve.parse(without_barrier(text, number))
        with pytest.raises(helve.Error) as refused:
            helve.testing.interpret(mutant, *(np.ones(shape, "float32") for shape in shapes), check="barriers")
        assert refused.value.code == "HV0705"


def test_offsets_of_a_program_are_chosen_anew():
    """Passes before the last take buffers for apart, so that they may be."""
    function = helve.parse(two_phases())
    for target in ("llvm", "cuda"):
        helve.testing.check_stages(function, arguments, target=target)
        assert "offset" not in str(_core.print(helve.testing.lowering_stages(function, target=target)[1][1]))


def test_places_are_a_part_of_the_program():
    form = _core.print(helve.parse(two_phases()).function)
    assert 'y = T.alloc_shared((64,), "float32", offset=0)' in str(form)
    one, other = (helve.parse(two_phases(offset=offset)).function for offset in (0, 128))
    assert not _core.structural_equal(one, other)[0]


# In each turn of ti two statements of the loop over i_1 write a part of Y; Q is written and never read.
PARTS = '''
@T.prim_func
def main(A: T.Tensor((9, 3), "int32"), B: T.Tensor((1, 9, 3), "int32")):
    with T.Kernel(1) as bx:
        X = T.alloc_shared((3, 3, 3), "int32")
        Y = T.alloc_shared((3, 3, 3), "int32")
        Z = T.alloc_shared((9, 3), "int32")
        v = T.alloc_shared((3, 3), "int32")
        w = T.alloc_shared((3,), "int32")
        Q = T.alloc_shared((3, 3), "int32")
        for i in T.Parallel(9):
            for l in T.vectorized(2):
                Z[i, l] = A[i, l]
        for l_1 in T.vectorized(2):
            w[l_1] = 2
        for ti in T.Parallel(3):
            for l_2 in T.vectorized(2):
                v[ti, l_2] = 0
            for l_3 in T.vectorized(2):
                Q[ti, l_3] = 1
            for i_1 in T.Parallel(3):
                for l_5 in T.vectorized(2):
                    Y[ti, i_1, l_5] = A[ti * 3 + i_1, l_5]
                Y[ti, i_1, 2] = A[ti * 3 + i_1, 2]
                Z[ti * 3 + i_1, 1] = X[ti, i_1, 0]
                partial = T.alloc_local((2,), "int32")
                for l_6 in T.vectorized(2):
                    partial[l_6] = 0
                partial[0] = partial[0] + partial[1]
                v[ti, i_1] = partial[0]
        for i_2 in T.serial(3):
            for r in T.Parallel(3):
                for l_7 in T.vectorized(2):
                    X[i_2, r, l_7] = Y[i_2, r, l_7] + T.min(v[i_2, r], 7)
'''


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_a_loop_that_writes_a_part_ends_no_buffer(arch):
    """Bytes of Y went to Q, as the part of one turn was taken for all of Y."""
    helve.testing.check_stages(helve.parse(PARTS), lambda: [np.arange(27, dtype="int32").reshape(9, 3),
                                                            np.zeros((1, 9, 3), "int32")], target="cuda", arch=arch)
