"""The interpreter as a checker: each fault on a minimal kernel, and silence on programs that are sound."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import helve
import helve.target
import helve.testing
from helve import T

ROOT = Path(__file__).resolve().parents[2]


def load(path):
    spec = importlib.util.spec_from_file_location(f"checked_{path.stem}", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def checked(function, mesh=None, check="all"):
    return helve.compile(function, target="interp", mesh=mesh, check=check)


def fault(function, *args, mesh=None, check="all"):
    with pytest.raises(helve.Error) as caught:
        checked(function, mesh, check)(*args)
    return caught.value


def zeros(*shape):
    return np.zeros(shape, "float32")


# Faults


def accumulate(initialised):
    @T.prim_func
    def main(A: T.Tensor((6,), "float32"), S: T.Tensor((1,), "float32")):
        with T.Kernel(1) as b:
            sum = T.alloc_fragment((1,), "float32")
            if initialised:
                T.clear(sum)
            for i in T.serial(6):
                sum[0] = sum[0] + A[i]
            S[0] = sum[0]

    return main


def test_an_accumulator_without_a_start():
    checked(accumulate(True))(zeros(6), zeros(1))
    error = fault(accumulate(False), zeros(6), zeros(1))
    assert error.name == "UninitialisedRead" and "'sum'" in error.message
    assert "with b=0, i=0" in error.notes


def scatter(parallel):
    loop = T.Parallel if parallel else T.serial

    @T.prim_func
    def main(W: T.Tensor((5,), "int32"), A: T.Tensor((5,), "float32")):
        with T.Kernel(1) as b:
            for i in loop(5):
                A[T.index(W[i])] = 1.0

    return main


@pytest.mark.parametrize("where", [[0, 1, 2, 3, 4], [4, 0, 3, 1, 2]])
def test_a_permutation_does_not_race(where):
    checked(scatter(True))(np.array(where, "int32"), zeros(5))


def test_a_collision_races_in_a_parallel_loop_only():
    where = np.array([0, 1, 2, 1, 4], "int32")
    checked(scatter(False))(where, zeros(5))
    checked(scatter(True), check="uninitialised")(where, zeros(5))
    error = fault(scatter(True), where, zeros(5))
    assert error.name == "RacingIterations"
    assert error.message == "iteration i=3 writes element (1,) of 'A', which iteration i=1 writes too"


def persistent(blocks):
    @T.prim_func
    def main(P: T.Tensor((7,), "int32"), A: T.Tensor((7,), "float32")):
        with T.Kernel(blocks) as b:
            for k in T.Persistent([7]):
                A[T.index(P[k])] = 1.0

    return main


def test_persistent_iterations_race_on_one_block_and_on_several():
    text = "{} {}=1 writes element (0,) of 'A', which {} {}=0 writes too"
    places = np.arange(7, dtype="int32") // 2
    assert fault(persistent(1), places, zeros(7)).message == text.format("iteration", "k", "iteration", "k")
    assert fault(persistent(2), places, zeros(7)).message == text.format("block", "b", "block", "b")


def exchange(barrier):
    @T.prim_func(mesh=helve.Mesh((2, 3)))
    def main(A: T.Tensor((2, 3), "float32"), B: T.Tensor((2, 3), "float32")):
        with T.Kernel(2, 3) as (r, c):
            A[r, c] = 1.0
            if barrier is not None:
                T.comm.barrier(axis=barrier)
            B[r, c] = A[r, (c + 1) % 3]

    return main


@pytest.mark.parametrize(("barrier", "races"), [(None, True), ("x", True), ("y", False), ("all", False)])
def test_cores_exchange_behind_a_barrier_of_both(barrier, races):
    mesh = helve.Mesh((2, 3))
    if not races:
        return checked(exchange(barrier), mesh)(zeros(2, 3), zeros(2, 3))
    error = fault(exchange(barrier), zeros(2, 3), zeros(2, 3), mesh=mesh)
    # Without a collective the two accesses are compared before the compile already.
    assert error.name == ("RacingCores" if barrier else "RacingLoop")
    return None


def test_a_fault_stays_the_same_call_after_call():
    kernel = checked(scatter(True))
    for _ in range(2):
        kernel(np.arange(5, dtype="int32"), zeros(5))
        with pytest.raises(helve.Error, match="HV0705"):
            kernel(np.zeros(5, "int32"), zeros(5))


def test_checks_by_name():
    for name in ("all", "uninitialised", "races", None):
        checked(scatter(True), check=name)(np.arange(5, dtype="int32"), zeros(5))
    with pytest.raises(helve.Error, match="HV0813"):
        checked(scatter(True), check="")
    with pytest.raises(helve.Error, match="HV0807"):
        helve.compile(scatter(True), target="llvm", check="all")


# Silence

rms = load(ROOT / "tutorials" / "01_rms_norm.py")


@pytest.mark.parametrize("mesh_shape", [(1, 1), (2, 3), (3, 2)], ids=lambda m: "x".join(map(str, m)))
@pytest.mark.parametrize(("shape", "blk_m", "blk_k"), [((70, 45), 32, 32), ((37, 131), 16, 48), ((1, 1), 32, 32)])
@pytest.mark.parametrize("chunk", [1, 2])
def test_rms_norm_at_every_stage(shape, blk_m, blk_k, mesh_shape, chunk):
    """Padding of tiles is memory like any other once tiles are lowered, and is never read for its value."""
    mesh = helve.Mesh(mesh_shape)
    a = np.random.default_rng(3).standard_normal(shape, dtype=np.float32)
    function = rms.rms_norm_splitk(*shape, blk_m, blk_k, mesh)
    stages = helve.testing.lowering_stages(function, mesh=mesh, persistent_chunk=chunk)
    assert len(stages) > 5
    for name, stage in helve.testing.changed_stages(stages):
        b = np.full_like(a, np.nan)
        helve.testing.interpret(stage, a, b, check="all")
        np.testing.assert_allclose(b, rms.reference(a), rtol=2e-6, atol=1e-6, err_msg=name)


class CheckedKernel:
    """A kernel of the checking interpreter that checks every stage on its way down as well."""

    def __init__(self, func, mesh, **options):
        self.kernel = helve.target.compile(func, target="interp", mesh=mesh, check="all", **options)
        self.count = len(helve.target.core_function(func).params)  # a call may leave out outputs
        self.stages = [stage for _, stage in helve.testing.lowering_stages(func, mesh=mesh)][1:]

    def __call__(self, *args):
        arrays = [a for a in args if isinstance(a, np.ndarray)]
        whole = all(a.flags.owndata for a in arrays)  # a copy of a view has other strides
        if len(args) == self.count and whole and all(a.size < 10_000 for a in arrays):
            for stage in self.stages:
                copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
                helve.testing.interpret(stage, *copies, check="all")
        return self.kernel(*args)

    def __getattr__(self, name):
        return getattr(self.kernel, name)


@pytest.fixture
def all_checked(monkeypatch):
    """The kernels that are compiled, each of them checked."""
    compiled = []

    def compile_checked(func, target=None, mesh=None, **options):
        compiled.append(CheckedKernel(func, mesh, **options))
        return compiled[-1]

    monkeypatch.setattr(helve, "compile", compile_checked)
    return compiled


def test_the_first_tutorial(all_checked, capsys):
    load(ROOT / "tutorials" / "00_first_kernel.py").main()
    assert len(all_checked) == 2


def test_the_examples_of_the_language(all_checked):
    text = (ROOT / "docs" / "language.md").read_text()
    namespace = {"__name__": "page"}
    generate = load(ROOT / "docs" / "generate.py")
    for example in generate.examples(text):
        if "check=" not in example.code:
            generate.run(example, "language.md", namespace)
    assert len(all_checked) > 10
