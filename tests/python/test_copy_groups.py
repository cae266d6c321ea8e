"""What counts asynchronous copies: mbarriers, bulk groups, the groups of T.commit_async.

A wait covers the copies of its queue alone, so that each kind of wait of a kernel in thread form is needed.
"""

import numpy as np
import pytest
import test_async_copies
import test_box_copies
import test_bulk_copies

import helve
import helve.testing
from helve import _core

ARCH = "sm_90a"
SUITES = (test_async_copies, test_bulk_copies, test_box_copies)
PROGRAMS = {f"{suite.__name__}.{name}": (suite, name) for suite in SUITES for name in suite.PROGRAMS}


def lines_of(name):
    suite, of = PROGRAMS[name]
    form = helve.testing.lowering_stages(suite.PROGRAMS[of][0], target="cuda", arch=ARCH)[-1][1]
    return _core.print(form).split("\n")


def interpret(lines, name):
    suite, of = PROGRAMS[name]
    helve.testing.interpret(helve.parse("\n".join(lines)).function, *suite.arguments(of), check="fences")


def none_waited(line):
    """The wait where it leaves any number of groups unfinished."""
    wait, operands = line.rstrip(")").split("(")
    kept = [each for each in operands.split(", ") if each and "=" not in each and not each.isdigit()]
    return f"{wait}({', '.join([*kept, 'pending=1000'])})"


def kernel(body):
    statements = "".join(f"        {line}\n" for line in body.splitlines())
    return helve.parse(f"""
@T.prim_func
def main(A: T.Tensor((4, 256), "float32"), B: T.Tensor((4, 256), "float32")):
    with T.Kernel(1, threads=32) as b:
        bars = T.alloc_shared((2,), "uint64")
        more = T.alloc_shared((4,), "uint64")
        X = T.alloc_shared((256,), "float32")
        Y = T.alloc_shared((256,), "float32")
        T.mbarrier_init(bars)
        T.mbarrier_init(more)
{statements}""").function


def run(function, check="fences"):
    a, b = np.arange(1024, dtype="float32").reshape(4, 256), np.zeros((4, 256), "float32")
    helve.testing.interpret(function, a, b, check=check)
    return a, b


ROWS = """
for k in T.serial(4):
    T.cp_async_bulk(A[k, :], X, barriers=bars)
    T.mbarrier_commit(bars)
    T.mbarrier_wait(bars)
    T.sync_threads()
    for tx in T.threads(32):
        for i in T.serial(8):
            Y[tx + i * 32] = X[255 - tx - i * 32]
    T.fence_async()
    T.sync_threads()
    T.cp_async_bulk(Y, B[k, :], bulk_group=True)
    T.commit_bulk()
    T.wait_bulk(sources=True)
    T.sync_threads()
"""


def test_copies_of_two_queues_by_hand():
    function = kernel(ROWS)
    a, b = run(function)
    np.testing.assert_array_equal(b, a[:, ::-1])
    helve.testing.assert_round_trip(function)
    text, _ = _core.cuda_source(helve.testing.lowering_stages(function, target="cuda", arch=ARCH)[-1][1], prelude=False)
    for line in ("helve_open(bars, 2);", "bars + begun % 2", "helve_commit_bulk<2>(bars, begun, ended);",
                 "helve_wait_bulk<2>(bars, begun, ended, 0);", "helve_wait_sources<0>();"):
        assert line in text, line


def test_the_cpu_copies_in_order():
    a, b = np.arange(1024, dtype="float32").reshape(4, 256), np.zeros((4, 256), "float32")
    helve.compile(kernel(ROWS), target="llvm")(a, b)
    np.testing.assert_array_equal(b, a[:, ::-1])


@pytest.mark.parametrize(("wait", "instead"), [
    ("T.mbarrier_wait(bars)", "T.wait_async()"),
    ("T.mbarrier_wait(bars)", "T.wait_bulk()"),
    ("T.mbarrier_wait(bars)", "T.mbarrier_wait(more)"),
    ("T.mbarrier_wait(bars)", "T.mbarrier_wait(bars, pending=1)"),
    ("T.wait_bulk(sources=True)", "T.wait_async()"),
    ("T.wait_bulk(sources=True)", "T.wait_bulk(pending=1)"),
    ("T.wait_bulk(sources=True)", "T.mbarrier_wait(bars)"),
])
def test_a_wait_covers_its_queue_alone(wait, instead):
    """What it does not cover is in flight where it is used, for the interpreter and for the proofs."""
    body = ROWS.replace(wait, instead) + "\nT.mbarrier_wait(bars)\nT.wait_bulk()"
    function = kernel(body)
    with pytest.raises(helve.Error) as refused:
        run(function)
    assert refused.value.code == "HV0708"
    verdicts = {p.verdict for p in helve.compile(function, target="interp").proofs() if "complete" in p.question}
    assert "unknown" in verdicts


def test_proofs_of_waits():
    proofs = [p for p in helve.compile(kernel(ROWS), target="interp").proofs() if "copies to X" in p.question]
    assert [p.verdict for p in proofs] == ["proved"]


def test_a_read_by_a_copy_of_another_queue_is_remembered():
    """The source of a store may be overwritten only after its own wait, whichever copies read it since."""
    store = "T.cp_async_bulk(X, B[{}, :], bulk_group=True)\nT.commit_bulk()"
    body = """
for tx in T.threads(32):
    for i in T.serial(8):
        X[tx + i * 32] = 1.0
T.fence_async()
T.sync_threads()
""" + store.format(0) + """
T.cp_async_bulk(X, B[1, :])
T.wait_async()
T.sync_threads()
{}
for tx in T.threads(32):
    for i in T.serial(8):
        X[tx + i * 32] = 2.0
T.wait_bulk()
"""
    run(kernel(body.format("T.wait_bulk()\nT.sync_threads()")))
    with pytest.raises(helve.Error) as refused:
        run(kernel(body.format("")))
    assert refused.value.code == "HV0708"


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_wait_of_a_thread_form_is_needed(name):
    """Without any one of them the interpreter refuses the program, or it leaves a copy unfinished."""
    lines = lines_of(name)
    interpret(lines, name)
    # A wait may find all copies complete: behind a last iteration, or in a branch that these arguments do not take.
    waits = [n for n, line in enumerate(lines) if line.strip().startswith(("T.mbarrier_wait(", "T.wait_bulk("))]
    kinds = {lines[n].strip().split("(")[0] for n in waits}
    missed = set()
    for n in waits:
        try:
            interpret(lines[:n] + [none_waited(lines[n])] + lines[n + 1:], name)
        except helve.Error as error:
            assert error.code in ("HV0311", "HV0708", "HV0705"), error
            missed.add(lines[n].strip().split("(")[0])
    assert missed == kinds


@pytest.mark.parametrize("name", PROGRAMS)
def test_copies_by_tma_are_in_groups(name):
    text = "\n".join(lines_of(name))
    copies = [line for line in text.split("\n") if "T.cp_async_bulk" in line]
    assert all("barriers=" in line or "bulk_group=True" in line for line in copies)
    assert ("T.mbarrier_init(" in text) == any("barriers=" in line for line in copies)


def test_the_ring_has_room_for_the_groups_of_a_pipeline():
    """Its length is a power of two: the groups that a wait leaves unfinished, and the places that commit one."""
    lengths = {}
    for stages in (2, 20, 80):
        function = test_bulk_copies.rows_ahead(100, 1024, stages=stages)
        text = _core.print(helve.testing.lowering_stages(function, target="cuda", arch=ARCH)[-1][1])
        lengths[stages] = int(text.split("arrivals = T.alloc_shared((")[1].split(",")[0])
    assert lengths == {2: 16, 20: 32, 80: 64}
