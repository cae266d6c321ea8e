"""Kernels compiled at the call: when they are compiled, what tells them apart, and what they return."""

import importlib
import pickle
import threading

import helve
import numpy as np
import pytest
from helve import T

# `helve.jit` is the function.
options = importlib.import_module("helve.jit.options")
store = importlib.import_module("helve.jit.store")
TensorSpec = importlib.import_module("helve.jit.builder").TensorSpec
M = T.dyn("M")


@pytest.fixture
def compiled(monkeypatch):
    """The targets of the compiles, in order."""
    targets = []

    def record(func, target, *args, **named):
        targets.append(target)
        return helve.compile(func, "llvm" if target == "cuda" else target, *args, **named)

    monkeypatch.setattr(options, "compile", record)
    return targets


@T.prim_func
def twice(A: T.Tensor((M,), "float32"), B: T.Tensor((M,), "float32")):
    """Twice A."""
    with T.Kernel(M) as b:
        B[b] = A[b] + A[b]


def scaling(n, factor=2.0):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(n) as b:
            B[b] = A[b] * factor

    return main


@helve.jit(out="B")
def scaled(x, factor=2.0):
    """The builder at the top of a module."""

    @T.prim_func
    def main(A: T.Tensor(x.shape, x.dtype), B: T.Tensor(x.shape, x.dtype)):
        with T.Kernel(x.shape[0]) as b:
            B[b] = A[b] * T.cast(factor, x.dtype)

    return main


def ones(n=4, dtype="float32"):
    return np.ones(n, dtype)


@pytest.mark.parametrize("target", [None, "llvm", "interp"])
def test_a_function_is_compiled_at_its_first_call(compiled, target):
    function = helve.jit(twice, target=target, out="B")
    assert compiled == [] and function.kernels() == []
    for n in (4, 0, 7):
        assert function(ones(n)).tolist() == [2.0] * n
        assert function(A=ones(n)).tolist() == [2.0] * n
    passed = np.zeros(3, "float32")
    assert function(ones(3), passed) is passed and passed.tolist() == [2.0] * 3
    assert compiled == [target or "llvm"] and len(function.kernels()) == 1
    assert function.kernel() is function.kernels()[0]
    function.clear()
    function(ones())
    assert len(compiled) == 2


def test_without_outputs_all_arguments_are_passed():
    b = np.zeros(4, "float32")
    assert helve.jit(twice)(ones(), b) is None and b.tolist() == [2.0] * 4


class OnDevice:
    """An array that says it is on a GPU."""

    is_cuda = True

    def __init__(self, data):
        self.data, self.shape, self.dtype = data, data.shape, data.dtype

    def __dlpack__(self, **asked):
        return self.data.__dlpack__()

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()


def test_the_first_input_tells_the_target(compiled):
    function = helve.jit(twice)
    b = np.zeros(4, "float32")
    for a, named in ((ones(), {"B": b}), (OnDevice(ones()), {"B": b}), (ones(), {"B": b})):
        function(a, **named)
        function(A=a, **named)
    assert compiled == ["llvm", "cuda"]
    behind = helve.jit(helve.parse('@T.prim_func\ndef main(B: T.Tensor((4,), "float32"), A: T.Tensor((4,), "float32")):'
                                   "\n    with T.Kernel(1) as b:\n        T.copy(A, B)\n"), out="B")
    with pytest.raises(helve.Error, match="HV0633"):  # it says no way to make another one
        behind(OnDevice(ones()))
    assert behind(OnDevice(ones()), B=b) is b and behind(b, OnDevice(ones())) is b
    assert compiled == ["llvm", "cuda", "cuda"]
    assert helve.jit(scaling)(4).target == "llvm"


def test_a_jit_function_is_a_kernel_function():
    function = helve.jit(twice, out="B")
    assert function.__name__ == "twice" and function.__doc__ == "Twice A." and function.__module__ == __name__
    assert repr(function) == "<helve.jit twice(A: float32[M]) -> B: float32[M], 0 kernels>"
    assert helve.compile(function, out="B")(ones()).tolist() == [2.0] * 4
    assert len(helve.Schedule(function)) == 0

    @helve.jit(out="C")
    @T.prim_func
    def caller(A: T.Tensor((4,), "float32"), C: T.Tensor((4,), "float32")):
        G = T.alloc_global((4,), "float32")
        function(A, G)
        function(G, C)

    assert caller(ones()).tolist() == [4.0] * 4
    assert helve.jit(helve.Schedule(twice), out="B")(ones()).tolist() == [2.0] * 4


def test_a_builder_gives_the_kernel_of_its_constants(compiled):
    build = helve.jit(scaling, out="B")
    kernel = build(4)
    assert isinstance(kernel, helve.Kernel) and kernel(ones()).tolist() == [2.0] * 4
    for same in (build(4), build(n=4), build(4, 2.0), build(4, factor=2.0), build(factor=2.0, n=4)):
        assert same is kernel
    assert build(5) is not kernel and compiled == ["llvm", "llvm"]
    assert build.kernels() == [kernel, build(5)]
    assert repr(build) == "<helve.jit scaling(n, factor=2.0), 2 kernels>"
    assert build.__name__ == "scaling"


def test_constants_that_are_equal_and_not_the_same():
    calls = []

    @helve.jit
    def build(*keys, **more):
        calls.append(keys)
        return twice

    values = [1, 1.0, True, np.float32(1), np.int64(1), "1", (1, 0.0), (1, -0.0), (True, 0.0), 0.0, -0.0, None,
              (1, (2, 3)), (1, 2, 3), float("nan"), np.float64(-0.0), T.float32, "float32", 1j, frozenset((1,))]
    for _ in range(2):
        kernels = [build(value) for value in values]
        assert len({id(kernel) for kernel in kernels}) == len(values)
    assert len(calls) == len(values)
    assert build(a=1, b=2) is build(b=2, a=1) and build(a=1) is not build(b=1) and build(1, 2) is not build((1, 2))


def test_a_builder_called_with_arrays(compiled):
    torch = pytest.importorskip("torch")
    scaled.clear()
    assert scaled(ones(3)).tolist() == [2.0] * 3
    assert scaled(x=ones(3), factor=2.0).tolist() == [2.0] * 3
    assert compiled == ["llvm"]
    assert scaled(ones(3), 3.0).tolist() == [3.0] * 3 and len(compiled) == 2
    assert scaled(ones(3, "float64")).dtype == "float64" and len(compiled) == 3
    assert scaled(ones(0)).tolist() == [] and len(compiled) == 4
    result = scaled(torch.ones(3, dtype=torch.bfloat16))
    assert result.dtype == torch.bfloat16 and result.tolist() == [2.0] * 3 and len(compiled) == 5


def test_arrays_go_to_the_kernel_in_the_order_of_the_builders_parameters():
    seen = []

    @helve.jit(out="C")
    def subtract(a, n, b):
        seen.append((a, b, a.ndim))

        @T.prim_func
        def main(A: T.Tensor((n,), a.dtype), B: T.Tensor((n,), b.dtype), C: T.Tensor((n,), a.dtype)):
            with T.Kernel(n) as i:
                C[i] = A[i] - B[i]

        return main

    a, b = np.full(2, 5, "float32"), np.full(2, 3, "float32")
    for result in (subtract(a, 2, b), subtract(b=b, n=2, a=a), subtract(a, b=b, n=2)):
        assert result.tolist() == [2.0, 2.0]
    spec = TensorSpec((2,), "float32")
    assert seen == [(spec, spec, 1)]


def test_what_fails_is_tried_again():
    tries = []

    @helve.jit
    def build(n):
        tries.append(n)
        if len(tries) == 1:
            raise ZeroDivisionError("once")
        return twice

    with pytest.raises(ZeroDivisionError, match="once"):
        build(1)
    assert build.kernels() == [] and build(1) is build(1) and len(tries) == 2


def test_kernels_that_were_not_asked_for_go(monkeypatch, compiled):
    monkeypatch.setattr(store, "LIMIT", 2)
    build = helve.jit(scaling)
    one, two = build(1), build(2)
    assert build(1) is one
    build(3)
    assert build(1) is one and len(build.kernels()) == 2
    assert build(2) is not two and len(compiled) == 4


def test_kernels_are_forgotten_when_asked(compiled):
    build = helve.jit(scaling, out="B")
    build(3)
    build.clear()
    assert build.kernels() == [] and build(3).name == "main" and len(compiled) == 2


def test_threads_compile_a_kernel_once(compiled):
    build, function = helve.jit(scaling, out="B"), helve.jit(twice, out="B")
    results, barrier = [], threading.Barrier(8)

    def run(n):
        barrier.wait()
        results.append((n, build(n)(ones(n)).tolist(), function(ones(n)).tolist()))

    threads = [threading.Thread(target=run, args=(1 + n % 2,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8 and all(a == b == [2.0] * n for n, a, b in results)
    assert len(compiled) == 3


def test_a_builder_may_call_others_and_itself_with_other_arguments():
    @helve.jit
    def build(n):
        if n > 1:
            assert build(n - 1).name == "main"
        return scaling(n)

    assert build(3).name == "main" and len(build.kernels()) == 3


def test_a_builder_that_is_a_method():
    class Family:
        def __init__(self, factor):
            self.factor = factor

        @helve.jit(out="B")
        def build(self, n):
            return scaling(n, self.factor)

    two, three = Family(2.0), Family(3.0)
    assert two.build(2)(ones(2)).tolist() == [2.0] * 2 and three.build(2)(ones(2)).tolist() == [3.0] * 2
    assert two.build(2) is two.build(2) and len(Family.build.kernels()) == 2


def test_pickles():
    assert pickle.loads(pickle.dumps(scaled)) is scaled  # by reference, as functions
    function = pickle.loads(pickle.dumps(helve.jit(twice, out="B", target="interp")))
    assert function(ones()).tolist() == [2.0] * 4 and function.kernel().target == "interp"
    assert function.__doc__ == "Twice A."
