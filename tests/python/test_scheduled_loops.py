"""Loops that stay as they are (`scheduled=True`): each pass that changes loops changes the loop without the mark, and
leaves the one with it.
"""

import helve
import helve.testing
import numpy as np
import pytest
from helve import T, _core

MATRIX = "A: T.Tensor((64, 1024), 'float32'), B: T.Tensor((64, 1024), 'float32')"


def program(body, signature=MATRIX, grid="T.Kernel(1) as b"):
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return helve.parse(f"@T.prim_func\ndef f({signature}):\n    with {grid}:\n{lines}")


def around(function, name, target="llvm", which=0):
    """The texts before and after a pass."""
    stages = helve.testing.lowering_stages(function, target=target)
    at = [k for k, (stage, _) in enumerate(stages) if stage == name][which]
    return _core.print(stages[at - 1][1]), _core.print(stages[at][1])


# The pass, its program with MARK in its loops, and the grid.
CHANGED = {
    "fuse_loops": (
        "for i in T.serial(8MARK):\n    A[i, 0] = 1.0\nfor j in T.serial(8MARK):\n    B[j, 0] = A[j, 0] + 1.0",
        MATRIX, "T.Kernel(1) as b"),
    "split_full_blocks": (
        "for i in T.Parallel(T.min(64 - b * 48, 48)MARK):\n    B[b * 48 + i, 0] = A[b * 48 + i, 0] + 1.0",
        MATRIX, "T.Kernel(2) as b"),
    "vectorize_loops": (
        "for j in T.Parallel(64MARK):\n    B[0, j] = A[0, j] + 1.0", MATRIX, "T.Kernel(1) as b"),
    "join_blocks": (
        "for i in T.Parallel(2MARK):\n    for j in T.vectorized(16):\n"
        "        B[r * 2 + i, c * 16 + j] = A[r * 2 + i, c * 16 + j] + 1.0",
        MATRIX, "T.Kernel(32, 64) as (r, c)"),
    "legalize_vectors": (
        "for j in T.vectorized(4MARK):\n    for k in T.serial(2):\n        B[k, j] = A[k, j]\n"
        "for i in T.vectorized(100):\n    B[9, i] = A[9, i]",
        MATRIX, "T.Kernel(1) as b"),
    "unroll_loops": (
        "for i in T.unroll(60MARK):\n    for j in T.unroll(60MARK):\n        B[i, j] = A[i, j]",
        MATRIX, "T.Kernel(1) as b"),
    "prefetch_reads": (
        "s = T.alloc_local((64,), 'float32')\nfor l in T.vectorized(64):\n    s[l] = A[b, l]\n"
        "t = T.alloc_local((1,), 'float32')\nt[0] = 0.0\nfor k in T.serial(64):\n    t[0] = t[0] + s[k]\n"
        "for m in T.vectorized(64MARK):\n    B[b, m] = A[b, m] / t[0]",
        MATRIX, "T.Kernel(64) as b"),
    "stream_stores": (
        "for v in T.serial(16MARK):\n    for l in T.vectorized(64MARK):\n"
        "        B[b, v * 64 + l] = A[b, v * 64 + l] + 1.0",
        MATRIX, "T.Kernel(64) as b"),
}


def changed(name, mark):
    body, signature, grid = CHANGED[name]
    return program(body.replace("MARK", mark), signature, grid)


@pytest.mark.parametrize("name", [name for name in CHANGED if name not in ("legalize_vectors", "unroll_loops")])
def test_a_pass_leaves_scheduled_loops(name):
    before, after = around(changed(name, ""), name)
    assert before != after, before
    marked = changed(name, ", scheduled=True")
    before, after = around(marked, name)
    assert before == after and "scheduled=True" in before, f"{before}\n{after}"
    helve.testing.check_stages(marked, lambda: helve.testing.make_arguments(marked))


def test_lanes_that_are_not_two_to_some_power_are_several_vectors():
    function = program("for i in T.vectorized(100, scheduled=True):\n    B[9, i] = A[9, i]")
    _, after = around(function, "legalize_vectors")
    heads = [line.strip() for line in after.splitlines() if "vectorized" in line]
    assert heads == ["for i in T.vectorized(32, scheduled=True):", "for i_1 in T.vectorized(4, scheduled=True):"]
    helve.testing.check_stages(function, lambda: helve.testing.make_arguments(function))


def test_lanes_that_cannot_run_in_step_are_refused():
    body = "for j in T.vectorized(4MARK):\n    T.atomic_add(B[0, 0], A[0, j])"
    _, after = around(program(body.replace("MARK", "")), "legalize_vectors")
    assert "for j in T.serial(4):" in after
    with pytest.raises(helve.Error) as caught:
        helve.testing.lowering_stages(program(body.replace("MARK", ", scheduled=True")))
    assert caught.value.code == "HV1011"


def test_a_scheduled_loop_is_unrolled_however_long():
    body = "for i in T.unroll(100MARK):\n    B[0, i] = A[0, i] + 1.0"
    before, after = around(program(body.replace("MARK", "")), "unroll_loops")
    assert before == after and "T.unroll(100)" in after
    marked = program(body.replace("MARK", ", scheduled=True"))
    _, after = around(marked, "unroll_loops")
    assert "for " not in after and "B[0, 99] = A[0, 99] + 1.0" in after
    helve.testing.check_stages(marked, lambda: helve.testing.make_arguments(marked))


@pytest.mark.parametrize("kind", ["Pipelined", "Persistent"])
@pytest.mark.parametrize("target", ["llvm", "cuda"])
def test_a_loop_of_a_block_keeps_its_mark(kind, target):
    extent = "[4]" if kind == "Persistent" else "4"
    function = program(f"for i in T.{kind}({extent}, scheduled=True):\n    for j in T.Parallel(64):\n"
                       "        B[i, j] = A[i, j]")
    _, after = around(function, "lower_block_loops", target)
    assert ("T.serial(4, scheduled=True)" if kind == "Pipelined" else ", scheduled=True):") in after
    helve.testing.check_stages(function, lambda: helve.testing.make_arguments(function))


def test_a_loop_of_a_thread_is_cut_only_without_a_mark():
    body = ("for tx in T.threads(32):\n    for v in T.serial(4MARK):\n"
            "        if v < 1:\n            B[v, tx] = A[v, tx]\n        else:\n            B[v, tx] = 0.0")
    grid = "T.Kernel(1, threads=32) as b"
    before, after = around(program(body.replace("MARK", ""), grid=grid), "partition_loops", "cuda")
    assert before != after
    marked = program(body.replace("MARK", ", scheduled=True"), grid=grid)
    before, after = around(marked, "partition_loops", "cuda")
    assert before == after and "for v in T.serial(4, scheduled=True):" in after
    text, _ = _core.cuda_source(helve.testing.lowering_stages(marked, target="cuda")[-1][1], prelude=False)
    assert "#pragma unroll 1\n" in text


def test_a_loop_that_is_divided_inside_keeps_its_mark():
    function = program("for i in T.Parallel(2, scheduled=True):\n    for k in T.serial(2):\n"
                       "        for j in T.Parallel(64):\n            B[i * 2 + k, j] = A[i * 2 + k, j]")
    _, after = around(function, "distribute_threads", "cuda")
    assert "for i in T.serial(2, scheduled=True):" in after


def test_machine_code_keeps_the_loop():
    for mark, there in (("", False), (", scheduled=True", True)):
        function = program(f"for i in T.serial(64{mark}):\n    B[i, 0] = A[i, 0] + 1.0")
        kernel = helve.compile(function)
        if "llvm" in kernel.stages:
            assert ("llvm.loop.disable_nonforced" in kernel.source("llvm")) == there
        a, b = np.ones((64, 1024), "float32"), np.zeros((64, 1024), "float32")
        kernel(a, b)
        assert (b[:, 0] == 2).all()


def test_the_text_is_read_back():
    for head in ("serial(2, 6, scheduled=True)", "unroll(4, scheduled=True)", "vectorized(4, scheduled=True)",
                 "Parallel(4, scheduled=True)", "Parallel((1, 4), scheduled=True)", "Persistent([4], scheduled=True)",
                 "Pipelined(4, num_stages=2, scheduled=True)"):
        function = program(f"for i in T.{head}:\n    B[i, 0] = A[i, 0]")
        text = _core.print(function.function)
        assert f"for i in T.{head}:" in text
        again = helve.parse(text)
        assert _core.structural_equal(again.function, function.function)[0]
        plain = helve.parse(text.replace(", scheduled=True", ""))
        assert _core.structural_equal(plain.function, function.function) == (False, "body.body.scheduled")


# Schedules mark what they make or change.

NEST = "for i in T.serial(8):\n    for j in T.serial(8):\n        A[i, j] = B[i, j]"
STEPS = {
    "split": (NEST, lambda s: s.split("j", 4), ["jo", "ji"]),
    "divide": (NEST, lambda s: s.divide("i", 3), ["io", "ii"]),
    "rotate": (NEST, lambda s: s.rotate("j", "i"), ["j"]),
    "pipeline": (NEST, lambda s: s.pipeline("i", 2), ["i"]),
    "cut": (NEST, lambda s: s.cut("j", 4), ["j", "j_1"]),
    "reorder": (NEST, lambda s: s.reorder("j", "i"), ["j", "i"]),
    "fuse": (NEST, lambda s: s.fuse("i", "j"), ["ij"]),
    "unroll": (NEST, lambda s: s.unroll("i"), []),
    "shift": (NEST, lambda s: s.shift("i", 2), ["i"]),
    "skew": (NEST, lambda s: s.skew("i", "j", 1), ["j"]),
    "parallel": (NEST, lambda s: s.parallel("j"), ["j"]),
    "vectorize": (NEST, lambda s: s.vectorize("j"), ["j"]),
    "serial": (NEST, lambda s: s.serial("j"), ["j"]),
    "bind": (NEST, lambda s: s.bind("i"), []),
    "separate": ("for i, j in T.Parallel(8, 8):\n    A[i, j] = B[i, j]", lambda s: s.separate("i"), ["i", "j"]),
    "join": ("for i in T.serial(8):\n    A[i, 0] = 1.0\nfor k in T.serial(8):\n    B[k, 0] = 1.0",
             lambda s: s.join("i", "k"), ["i"]),
    "fission": (NEST + "\n    B[i, 0] = 0.0", lambda s: s.fission(s.store("B")), ["i", "i_1"]),
    "unswitch": ("for i in T.serial(8):\n    if b < 1:\n        A[i, 0] = 1.0", lambda s: s.unswitch("i"), ["i"]),
}


@pytest.mark.parametrize("name", STEPS)
def test_steps_mark_loops(name):
    body, step, marked = STEPS[name]
    s = helve.Schedule(program(body))
    assert "scheduled" not in s.script()
    step(s)
    heads = [line.split()[1] for line in s.script().replace("for i, j", "for i j").splitlines() if "scheduled" in line]
    assert heads == marked, s.script()


def test_joined_loops_are_not_joined_by_passes_again():
    s = helve.Schedule(program("for i in T.serial(8):\n    A[i, 0] = 1.0\n    B[i, 0] = A[i, 0]"))
    s.fission(s.store("B"))
    before, after = around(s.function, "fuse_loops")
    assert before == after and after.count("for ") == 2
