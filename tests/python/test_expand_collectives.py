"""Collectives of a kernel as what each core does: barriers of groups, the memory of other cores, stores to it."""

import numpy as np
import pytest
from test_cuda_collectives import programs, thread_form

import helve
import helve.testing
from helve import _core

NAMES = [name for name in programs() if name.endswith("_2x3")]
# A race, a value that was never written, memory that a store by T.st_async is still on its way to.
FAULTS = {"HV0705", "HV0707", "HV0708"}


def lines_of(name, way):
    return _core.print(thread_form(name, way)).split("\n")


def interpret(lines, name):
    _, _, make = programs()[name]
    arguments = make()
    helve.testing.interpret(helve.parse("\n".join(lines)).function, *arguments, check="barriers")
    return arguments


def fault(lines, name):
    """The code of what the interpreter refuses, or none."""
    try:
        interpret(lines, name)
    except helve.Error as error:
        return error.code
    return None


def without(lines, n):
    line = lines[n]
    return [*lines[:n], line[:len(line) - len(line.lstrip())] + "pass", *lines[n + 1:]]


def places(lines, *words):
    return [n for n, line in enumerate(lines) if any(word in line for word in words)]


@pytest.mark.parametrize("way", ["cluster", "grid"])
@pytest.mark.parametrize("name", NAMES)
def test_every_barrier_of_cores_is_needed(name, way):
    """Without one of them a core reads what another has not written, or writes what another reads."""
    lines = lines_of(name, way)
    _, function, make = programs()[name]
    wanted = make()
    helve.compile(function, target="interp", mesh=helve.Mesh((2, 3)))(*wanted)
    for a, b in zip(interpret(lines, name), wanted):
        np.testing.assert_array_equal(a.view(np.uint8), b.view(np.uint8))
    found = [fault(without(lines, n), name) for n in places(lines, "T.comm.barrier(", "T.comm.wait_bytes(")]
    by_hand = 3 if name.startswith("put") else 0  # barriers of the program itself, which order nothing
    assert len(found) > by_hand and set(found[:by_hand]) <= {None} and set(found[by_hand:]) <= FAULTS


@pytest.mark.parametrize("name", ["all_gather_x_2x3", "all_reduce_max_y_2x3", "all_gather_all_2x3"])
def test_what_a_push_needs(name):
    lines = lines_of(name, "cluster")
    stores = places(lines, "T.st_async(")
    before = [n for n in places(lines, "T.sync_threads(") if n < stores[0]][-1]
    after = [n for n in places(lines, "T.sync_threads(") if n > stores[0]][0]
    assert fault(without(lines, before), name) == "HV0705"  # the source is read by other threads than wrote it
    assert fault(without(lines, after), name) == "HV0705"  # the next push comes while threads read this one
    (turn,) = places(lines, " = 1 - half_")
    assert fault(without(lines, turn), name) == "HV0707"  # members store to slots that others read
    (ready,) = places(lines, "T.mbarrier_init(")
    assert fault(without(lines, ready), name) == "HV0108"
    (wait,) = places(lines, "T.comm.wait_bytes(")
    fewer = lines[wait].replace(", ", ", 4 + ", 1)
    assert fault([*lines[:wait], fewer, *lines[wait + 1:]], name) == "HV0711"


def test_a_core_that_is_alone_reads_its_own_memory():
    text = "\n".join(lines_of("all_reduce_max_x_1x4", "cluster"))
    assert "T.peer(" not in text and "T.st_async(" not in text


@pytest.mark.parametrize(("name", "way", "wanted"), [
    ("all_gather_x_2x3", "cluster", ["T.st_async(", "T.comm.wait_bytes("]),       # few elements of 4 bytes
    ("all_gather_x_2x3", "grid", ["T.peer(S_home, (tx"]),                          # through global memory
    ("permute_x_2x3", "cluster", ["T.peer(S, ((r + 1) % 2, c))"]),
    ("put_2x3", "cluster", ["T.peer(S, (1, 0))", "if r * 3 + c == 2:"]),
    ("broadcast_all_2x3", "cluster", ["T.peer(S, (1, 2))"]),
])
def test_how_values_move(name, way, wanted):
    text = "\n".join(lines_of(name, way))
    for part in wanted:
        assert part in text, text


@pytest.mark.parametrize("name", ["all_gather_x_2x3", "put_2x3"])
def test_a_push_needs_cores_of_one_cluster(name):
    text = "\n".join(lines_of(name, "grid"))
    assert "T.st_async(" not in text
