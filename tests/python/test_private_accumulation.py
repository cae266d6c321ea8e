"""Sums that iterations make in private memory, each in a copy of its own: which are warned of, and which are not."""

import warnings

import helve
import pytest

HEAD = 'A: T.Tensor((64,), "float32"), OUT: T.Tensor((64,), "float32"), n: T.index'


def warned(body):
    """The warnings of a kernel with this body."""
    lines = "".join(f"        {line}\n" for line in body.strip("\n").splitlines())
    function = helve.parse(f"@T.prim_func\ndef main({HEAD}):\n    with T.Kernel(1) as b:\n{lines}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        helve.compile(function, target="interp")
    return [entry.message for entry in caught]


ONE = 'acc = T.alloc_local((1,), "float32")\nacc[0] = 0.0\n'
READ = "OUT[b] = acc[0]\n"

LOUD = {
    "under a condition": ONE + "for i in T.Parallel(16):\n    if A[i] > 0.0:\n        acc[0] += A[i]\n" + READ,
    "a maximum": ONE + "for i in T.Parallel(16):\n    if A[i] > 0.0:\n        acc[0] = T.max(acc[0], A[i])\n" + READ,
    "in a lane": ONE + "for i in T.vectorized(16):\n    if A[i] > 0.0:\n        acc[0] += A[i]\n" + READ,
    "read in a later turn": ONE + (
        "for k in T.serial(4):\n    for i in T.Parallel(16):\n        if A[i] > 0.0:\n            acc[0] += A[i]\n"),
    "read under a condition": (
        ONE + "for i in T.Parallel(16):\n    if A[i] > 0.0:\n        acc[0] += A[i]\nif b == n:\n    " + READ),
}


@pytest.mark.parametrize("title", LOUD)
def test_a_sum_of_which_one_term_is_left(title):
    (found,) = warned(LOUD[title])
    assert found.code == "HV0313" and "'acc'" in found.message
    assert ("T.atomic_max" if title == "a maximum" else "T.atomic_add") in found.help


REFUSED = {
    "under a condition that holds twice": (
        ONE + "for i in T.Parallel(16):\n    if i % 8 == 3:\n        acc[0] += A[i]\n" + READ),
    "of some elements": (
        'acc = T.alloc_local((4,), "float32")\nT.clear(acc)\n'
        "for i in T.Parallel(16):\n    acc[i % 4] += A[i]\n" + READ),
}


@pytest.mark.parametrize("title", REFUSED)
def test_a_sum_that_always_loses_terms(title):
    with pytest.raises(helve.Error) as refused:
        warned(REFUSED[title])
    assert refused.value.code == "HV0312" and "T.atomic_add" in refused.value.help


QUIET = {
    "one iteration": ONE + "for i in T.Parallel(16):\n    if i == 3:\n        acc[0] += A[i]\n" + READ,
    "one iteration of the call": ONE + "for i in T.Parallel(16):\n    if i == n:\n        acc[0] += A[i]\n" + READ,
    "a loop in order": ONE + "for i in T.serial(16):\n    if A[i] > 0.0:\n        acc[0] += A[i]\n" + READ,
    "an element of each": (
        'acc = T.alloc_local((16,), "float32")\nT.clear(acc)\n'
        "for i in T.Parallel(16):\n    if A[i] > 0.0:\n        acc[i] += A[i]\n" + READ),
    "a search": ONE + "for i in T.Parallel(16):\n    if A[i] > 0.0:\n        acc[0] = A[i]\n" + READ,
    "begun in the iteration": ONE + (
        "for i in T.Parallel(16):\n    acc[0] = 0.0\n    for k in T.serial(4):\n        acc[0] += A[i]\n"
        "    OUT[i] = acc[0]\n"),
    "not read after the loop": ONE + (
        "for i in T.Parallel(16):\n    if A[i] > 0.0:\n        acc[0] += A[i]\n    OUT[i] = acc[0]\n"),
    "allocated in the iteration": (
        "for i in T.Parallel(16):\n"
        '    acc = T.alloc_local((1,), "float32")\n    acc[0] = 0.0\n'
        "    if A[i] > 0.0:\n        acc[0] += A[i]\n    OUT[i] = acc[0]\n"),
    "atomic": (
        'acc = T.alloc_shared((1,), "float32")\nT.clear(acc)\n'
        "for i in T.Parallel(16):\n    if A[i] > 0.0:\n        T.atomic_add(acc[0], A[i])\n" + READ),
}


@pytest.mark.parametrize("title", QUIET)
def test_no_warning_where_nothing_is_lost(title):
    assert not [found for found in warned(QUIET[title]) if found.code == "HV0313"]
