"""Kernels whose roles, rings and registers are written by hand: what they compute, what is kept, what is refused."""

import re

import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned
from nvrtc import assert_fits_registers, needs_nvrtc
from ring_programs import gemm_arguments, product_by_hand

import helve
import helve.testing
from helve import T, _core

ORDERS = (0, 1, 2, 3, 4)
SHAPES = [(64, 16, 16), (136, 40, 80), (72, 8, 0), (200, 264, 200)]


def lowered(function, arch="sm_90a"):
    return helve.testing.lowering_stages(function, target="cuda", arch=arch)


def last_stage(function):
    return lowered(function)[-1][1]


def roles(function):
    """The roles of the last stage, those of the first kernel."""
    text = _core.print(last_stage(function))
    return re.findall(r"with (T\.role\(.*\)):", text.partition("else:")[0])


@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_on_every_target(shape):
    given, expected = gemm_arguments(*shape)
    function = product_by_hand(64, 32, 32, 3)
    for target in ("interp", "llvm"):
        c = given[2].copy()
        helve.compile(function, target=target)(*given[:2], c)
        np.testing.assert_array_equal(c, expected, err_msg=target)
    stage = last_stage(function)
    helve.testing.assert_round_trip(stage)
    for order in ORDERS:
        found = [each.copy() for each in given]
        helve.testing.interpret(stage, *found, check="fences", roles=order)
        np.testing.assert_array_equal(found[2], expected, err_msg=f"{order}")


def test_the_text_computes_it(tmp_path):
    kernels = HostKernels([last_stage(product_by_hand(64, 32, 32, 3))], tmp_path, names=["product"])
    for m, n, k in SHAPES:
        given, expected = gemm_arguments(m, n, k)
        given = [aligned(each) for each in given]
        kernels.run("product", 2, dict(zip("ABC", given)), {"M": m, "N": n, "K": k})
        np.testing.assert_array_equal(given[2], expected, err_msg=f"{m, n, k}")


@needs_nvrtc
def test_registers_suffice():
    function = product_by_hand(128, 128, 64, 4, blocks=132, groups=2, registers=(232, 40), out="bfloat16")
    assert_fits_registers(_core.cuda_source(last_stage(function))[0], "sm_90a")


@pytest.mark.parametrize("groups, registers, expected", [
    (2, (232, 40), ["T.role(0, 256, registers=232)", "T.role(256, 128, registers=40, elect=True)"]),
    (2, (240, 24), ["T.role(0, 256, registers=240)", "T.role(256, 128, registers=24, elect=True)"]),
    (2, (0, 0), ["T.role(0, 256)", "T.role(256, 128, elect=True)"]),
    (1, (0, 0), ["T.role(0, 128)", "T.role(128, 128, elect=True)"]),
])
def test_threads_and_registers_are_kept(groups, registers, expected):
    assert roles(product_by_hand(64 * groups, 32, 32, 3, groups=groups, registers=registers)) == expected


def test_a_single_warp_fills():
    text = product_by_hand(64, 32, 32, 3).script()
    assert "T.role(128, 128, elect=True)" in text
    function = helve.parse(text.replace("T.role(128, 128, elect=True)", "T.warp(4, elect=True)"))
    assert roles(function) == ["T.role(0, 128)", "T.role(128, 32, elect=True)"]


def test_a_kernel_says_what_its_roles_have():
    """A pipelined loop gets roles from the compiler, with the threads and registers of the launch."""

    def program(producers=0, registers=()):
        @T.prim_func
        def main(A: T.Tensor((256, 256), "bfloat16"), B: T.Tensor((256, 256), "bfloat16"),
                 C: T.Tensor((256, 256), "float32")):
            with T.Kernel(2, 2, threads=256, producers=producers, registers=registers) as (i, j):
                a = T.alloc_shared((128, 64), "bfloat16")
                b = T.alloc_shared((128, 64), "bfloat16")
                c = T.alloc_fragment((128, 128), "float32")
                T.clear(c)
                for k in T.Pipelined(4, num_stages=3):
                    T.copy(A[i * 128 : i * 128 + 128, k * 64 : k * 64 + 64], a)
                    T.copy(B[j * 128 : j * 128 + 128, k * 64 : k * 64 + 64], b)
                    T.gemm(a, b, c, transpose_B=True, dispatch="tensor_cores")
                T.copy(c, C[i * 128 : i * 128 + 128, j * 128 : j * 128 + 128])

        return main

    assert roles(program()) == ["T.role(0, 256, registers=232)", "T.role(256, 128, registers=40, elect=True)"]
    assert roles(program(producers=32)) == ["T.role(0, 256)", "T.role(256, 32, elect=True)"]
    given = program(producers=128, registers=(224, 56))
    assert "producers=128, registers=[224, 56]" in given.script()
    assert roles(given) == ["T.role(0, 256, registers=224)", "T.role(256, 128, registers=56, elect=True)"]
    (a, b, c), expected = gemm_arguments(256, 256, 256)
    helve.compile(given, target="llvm")(a, b, c)
    np.testing.assert_array_equal(c, expected)


# Each event of the program, and why it is refused without it; "" where the compiler puts back what it owes.
EVENTS = [
    ("T.mbarrier_init(ring)", "HV0108", "they are not initialized before"),
    ("T.sync_threads()", "", ""),
    ("T.ring_wait(ring)", "HV0320", "no role takes the slot of 'ring' that is filled here"),
    ("T.ring_release(ring, pending=1)", "HV0320",
     "all 3 slots of 'ring' may be in use here, and no T.ring_release is before it"),
    ("T.ring_release(ring)", "HV0320", "a slot of 'ring' is never released"),
    ("T.ring_acquire(ring)", "HV0320", "'a' is filled outside of T.ring_acquire and T.ring_commit of 'ring'"),
    ("T.cp_async_bulk_tensor(A", "HV0320", "'a' has slots, and no copy fills them for a ring"),
    ("T.cp_async_bulk_tensor(B", "HV0320", "'b' has slots, and no copy fills them for a ring"),
    ("T.ring_commit(ring)", "HV0320", "no role fills the slot of 'ring' that is taken here"),
]


@pytest.mark.parametrize(("event", "code", "reason"), EVENTS, ids=[event for event, *_ in EVENTS])
def test_each_event_is_needed(event, code, reason):
    """Without one line of its rings the program is refused, or the compiler puts back what it owes."""
    text = product_by_hand(64, 32, 32, 3).script().splitlines()
    (at,) = [at for at, line in enumerate(text) if line.strip().startswith(event)]
    text[at] = text[at][: len(text[at]) - len(text[at].lstrip())] + "pass"
    if code:
        with pytest.raises(helve.Error) as refused:
            last_stage(helve.parse("\n".join(text)))
        assert refused.value.code == code and refused.value.message.endswith(reason)
        return
    given, expected = gemm_arguments(136, 40, 80)
    helve.testing.interpret(last_stage(helve.parse("\n".join(text))), *given, check="fences", roles=1)
    np.testing.assert_array_equal(given[2], expected)


def test_all_events_are_tried():
    lines = [line.strip() for line in product_by_hand(64, 32, 32, 3).script().splitlines()]
    found = [line for line in lines if re.match(r"T\.(ring_|cp_async|mbarrier_init|sync_threads)", line)]
    assert len(found) == len(EVENTS)
