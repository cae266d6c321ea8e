"""Updates of shared and global elements that iterations may lose: which are warned of, and which are not."""

import warnings

import helve
import pytest
from helve import T

HEAD = ('A: T.Tensor((64,), "float32"), I: T.Tensor((64,), "int32"), OUT: T.Tensor((64,), "float32"), '
        'X: T.Tensor((M, M), "float32"), n: T.index')
SHARED = 'S = T.alloc_shared((8,), "float32")\nT.clear(S)\n'


def compiled(body, blocks=1):
    """(the kernel with this body, its warnings of lost updates)."""
    lines = "".join(f"        {line}\n" for line in body.strip("\n").splitlines())
    function = helve.parse(
        f'M = T.dyn("M")\n@T.prim_func\ndef main({HEAD}):\n    with T.Kernel({blocks}) as b:\n{lines}')
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernel = helve.compile(function, target="interp")
    return kernel, [entry.message for entry in caught if entry.message.code == "HV0314"]


def parallel(body, extent=64):
    return f"for i in T.Parallel({extent}):\n" + "".join(f"    {line}\n" for line in body.splitlines())


LOUD = {  # with the operations that are named
    "loaded subscripts": (parallel("OUT[T.index(I[i])] += A[i]"), ["T.atomic_add", "T.serial"]),
    "a condition": (parallel("if A[i] > 0.0:\n    OUT[3] += A[i]"), ["T.reduce_sum", "T.atomic_add", "T.serial"]),
    "shared memory": (SHARED + parallel("S[T.index(I[i])] = T.max(S[T.index(I[i])], A[i])"),
                      ["T.atomic_max", "T.serial"]),
    "lanes": ("for i in T.vectorized(8):\n    OUT[T.index(I[i])] -= A[i]\n", ["T.atomic_add", "T.serial"]),
    "a search": (parallel("x = A[i]\nif x < OUT[2]:\n    OUT[2] = x"), ["T.reduce_min", "T.atomic_min", "T.serial"]),
    "the old value by a name": (parallel("old = OUT[T.index(I[i])]\nOUT[T.index(I[i])] = old + A[i]"),
                                ["T.atomic_add", "T.serial"]),
    "two updates": (parallel("OUT[T.index(I[i])] += 1.0\nOUT[T.index(I[63 - i])] += 1.0"),
                    ["T.atomic_add", "T.serial"]),
    "a recurrence": (parallel("OUT[T.index(I[i])] = 0.5 * OUT[T.index(I[i])] + A[i]"), ["T.serial"]),
    "rows that overlap": ("for i, j in T.Parallel(M, M + 1):\n    OUT[i * M + j] += 1.0\n",
                          ["T.reduce_sum", "T.atomic_add", "T.serial"]),
}


@pytest.mark.parametrize("title", LOUD)
def test_updates_that_may_be_lost(title):
    body, named = LOUD[title]
    _, (found,) = compiled(body)
    known = ["T.reduce_sum", "T.reduce_min", "T.reduce_max", "T.atomic_add", "T.atomic_min", "T.atomic_max", "T.serial"]
    assert [name for name in known if name in found.help] == sorted(named, key=known.index)


@pytest.mark.parametrize("body", ["OUT[T.index(I[b])] += 1.0", parallel("OUT[T.index(I[b * 8 + i])] += 1.0", 8)])
def test_updates_of_blocks_are_warned_of_once(body):
    _, (found,) = compiled(body, blocks=8)
    assert found.message.startswith("blocks of this kernel") and "T.atomic_add(OUT[" in found.help


QUIET = {
    "an element of each": parallel("if A[i] > 0.0:\n    OUT[i] += A[i]"),
    "an element of each and its condition": parallel("if A[i] > OUT[i]:\n    OUT[i] = A[i]"),
    "a loop in order": "for i in T.serial(64):\n    OUT[T.index(I[i])] += A[i]\n",
    "a store that reads nothing old": parallel("OUT[T.index(I[i])] = A[i]"),
    "a flag that is tested and set": parallel("if OUT[T.index(I[i])] == 0.0:\n    OUT[T.index(I[i])] = 1.0"),
    "a store that reads another element": parallel("OUT[T.index(I[i])] = OUT[i] + A[i]"),
    "atomic": parallel("if A[i] > 0.0:\n    T.atomic_add(OUT[T.index(I[i])], A[i])"),
    "shared memory of the block": SHARED + "S[T.index(I[b])] += 1.0\n",
    "memory of the iteration": parallel(
        'S = T.alloc_shared((8,), "float32")\nS[T.index(I[i])] = 1.0\nS[T.index(I[i])] += 1.0'),
    "one iteration of the call": parallel("if i == n:\n    OUT[0] += A[i]"),
    "rows one behind the other": "for i, j in T.Parallel(M, M):\n    OUT[i * M + j] += 1.0\n",
    "what every call is checked for": parallel("OUT[T.min(i, n)] += A[i]"),
}


@pytest.mark.parametrize("title", QUIET)
def test_updates_that_are_not_lost(title):
    assert compiled(QUIET[title])[1] == []


def test_a_store_to_an_own_tile_of_a_block():
    assert compiled(parallel("OUT[b * 8 + i] += A[b * 8 + i]", 8), blocks=8)[1] == []


def test_an_update_is_one_box():
    """Its load and its store have the same bounds, asked once."""
    kernel, _ = compiled(parallel("OUT[i] += A[i]"))
    assert [proof.question for proof in kernel.proofs() if proof.kind == "bounds"] == [
        "OUT[i] is inside (64,)", "A[i] is inside (64,)"]


def test_cores_are_not_warned_of():
    """Collectives may order them, and those with copies of one block may store equal values."""
    mesh = helve.Mesh((2,))

    @T.prim_func(mesh=mesh)
    def main(I: T.Tensor((4,), "int32"), OUT: T.Tensor((4,), "int32")):
        with T.Kernel(2) as r:
            OUT[T.index(I[r])] += 1

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        helve.compile(main, mesh=mesh, target="interp")
