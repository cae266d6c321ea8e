"""Functions and kernels that go through pickle: equal programs with the same options, in this process and in others."""

import copy
import pickle
import subprocess
import sys
import warnings

import helve
import numpy as np
import pytest
from helve import T, _core
from nvrtc import needs_nvrtc

M = T.dyn("M")


@T.prim_func
def shift(A: T.Tensor((M, 8), "float32"), s: T.float32, B: T.Tensor((M, 8), "float32")):
    """A, and s more."""
    T.assume(M < 1000)
    with T.Kernel(M) as b:
        for j in T.Parallel(8):
            B[b, j] = A[b, j] * A[b, j] + s


def again(value):
    return pickle.loads(pickle.dumps(value))


def test_a_function():
    other = again(shift)
    assert _core.structural_equal(other.function, shift.function) == (True, "")
    assert other.name == other.__name__ == "shift" and other.__doc__ == "A, and s more."
    assert other.__signature__ == shift.__signature__ and other.script() == shift.script()
    assert _core.structural_equal(again(other).function, shift.function) == (True, "")


def test_what_is_immutable_is_its_own_copy():
    kernel = helve.compile(shift)
    for value in (shift, kernel):
        assert copy.copy(value) is value and copy.deepcopy(value) is value
        assert copy.deepcopy([value])[0] is value


@pytest.mark.parametrize("options", [
    {}, {"out": "B"}, {"target": "interp", "out": -1}, {"fast_math": True}, {"stream_bytes": 64, "verify": True},
    {"target": "interp", "check": "all", "out": ["B"]},
])  # fmt: skip
def test_a_kernel(options):
    kernel = helve.compile(shift, **options)
    other = again(kernel)
    assert (other.target, other.outputs, other.stages) == (kernel.target, kernel.outputs, kernel.stages)
    assert [other.source(stage) for stage in other.stages] == [kernel.source(stage) for stage in kernel.stages]
    assert other.__doc__ == kernel.__doc__ and repr(other) == repr(kernel)
    assert pickle.dumps(again(other)) == pickle.dumps(other)
    a, b = np.random.default_rng(0).random((5, 8), "float32"), np.zeros((5, 8), "float32")
    expected, found = np.zeros_like(a), kernel(a, 2.0, b)
    other(a, 2.0, expected)
    assert np.array_equal(b, expected) and (found is b) == bool(kernel.outputs)


def test_a_kernel_of_a_mesh_of_a_schedule_and_of_index_notation():
    @T.prim_func
    def main(A: T.Tensor((10, 9), "float32"), B: T.Tensor((10, 9), "float32")):
        T.annotate_mesh_tensor({A: {"sharding": {"x": 0}, "tiling": [4, 4]},
                                B: {"sharding": {"x": 0}, "tiling": [4, 4]}}, nrows=2, ncols=3)
        m, n = T.get_sharded_shape(A)
        with T.Kernel(2, 3) as (r, c):
            tile = T.alloc_shared((4, 4), "float32")
            for i, j in T.Persistent([T.ceildiv(m, 4), T.ceildiv(n, 4)]):
                T.mesh_tensor_copy(A, tile, coord=[i, j])
                if c == 0:
                    T.mesh_tensor_copy(tile, B, coord=[i, j])

    a = np.random.default_rng(1).random((10, 9), "float32")
    assert np.array_equal(again(helve.compile(main, mesh=helve.Mesh((2, 3)), out="B"))(a), a)
    s = helve.Schedule(shift)
    assert again(helve.compile(s, out="B"))(a[:, :8].copy(), 0.0).shape == (10, 8)
    i, j, k = helve.indices("i j k")
    X, Y, Z = helve.tensor("X", (M, 9)), helve.tensor("Y", (9, 32)), helve.tensor("Z", (M, 32))
    Z[i, j] = X[i, k] * Y[k, j]
    function = helve.function(Z)
    other = again(function)
    assert type(other) is type(function) and other.script() == function.script()
    assert _core.structural_equal(other.nest, function.nest) == (True, "")
    y = np.random.default_rng(2).random((9, 32), "float32")
    for kernel in (again(helve.compile(function, out="Z")), helve.compile(other, out="Z")):
        np.testing.assert_allclose(kernel(a, y), a @ y, rtol=1e-5)


def test_another_process(tmp_path):
    (tmp_path / "kernel").write_bytes(pickle.dumps((shift, helve.compile(shift, out="B"))))
    program = (
        "import pickle, numpy as np\n"
        f"function, kernel = pickle.load(open({str(tmp_path / 'kernel')!r}, 'rb'))\n"
        "print(function.name, kernel(np.full((1, 8), 3, 'float32'), 1.0).tolist())\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.stdout == f"shift {[[10.0] * 8]}\n", run.stderr


def test_a_fault_of_a_loaded_kernel_quotes_the_printed_text():
    kernel = again(helve.compile(shift, out="B"))
    with pytest.raises(helve.Error) as caught:
        kernel(np.ones((1000, 8), "float32"), 1.0)
    assert caught.value.code == "HV0616" and "M < 1000" in str(caught.value)


def test_warnings_are_given_once():
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), I: T.Tensor((8,), "int32"), OUT: T.Tensor((4,), "float32")):
        with T.Kernel(1) as b:
            S = T.alloc_shared((4,), "float32")
            T.clear(S)
            for i in T.Parallel(8):
                S[T.index(I[i])] = S[T.index(I[i])] + A[i]
            T.copy(S, OUT)

    with pytest.warns(helve.Warning, match="HV0314"):
        kernel = helve.compile(main)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again(kernel)


def test_what_is_wrong_where_it_is_loaded():
    data = pickle.dumps(helve.compile(shift, out="B")).replace(b"llvm", b"lvlm")
    with pytest.raises(helve.Error):
        pickle.loads(data)


@needs_nvrtc
def test_a_kernel_for_a_gpu():
    kernel = helve.compile(shift, "cuda", arch="sm_90a", out="B")
    other = again(kernel)
    assert other.target == "cuda" and other.source("cuda") == kernel.source("cuda")
