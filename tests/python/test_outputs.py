"""Outputs that a call allocates: their libraries, dtypes, shapes and order, against what passing them gives.

Shapes are compared with Python's arithmetic on the same sizes.
"""

import inspect
import pickle
import sys
import types

import helve
import kernel_cases
import numpy as np
import pytest
from helve import T, _core
from helve.arguments import PACKED, numpy_dtype

M, N = T.dyn("M"), T.dyn("N")
TARGETS = ["interp", "llvm"]


def doubling(dtype="float32", rows=M):
    @T.prim_func
    def main(A: T.Tensor((rows, 4), dtype), B: T.Tensor((rows, 4), dtype)):
        """Twice A."""
        with T.Kernel(rows) as b:
            for j in T.Parallel(4):
                B[b, j] = A[b, j] + A[b, j]

    return main


def copying(dtype):
    @T.prim_func
    def main(A: T.Tensor((M,), dtype), B: T.Tensor((M,), dtype)):
        with T.Kernel(M) as b:
            B[b] = A[b]

    return main


@T.prim_func
def three(LOW: T.Tensor((M,), "int32"), A: T.Tensor((M, N), "float32"), s: T.float32, HIGH: T.Tensor((N,), "float64"),
          B: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32")):
    with T.Kernel(M) as b:
        LOW[b] = T.cast(b, "int32")
        for j in T.Parallel(N):
            C[b, j] = A[b, j] * s + B[b, j]
    with T.Kernel(N) as b:
        HIGH[b] = 0.5


@T.prim_func
def declared(A: T.Tensor((M, 4), "float32"), S: T.Tensor((M,), "float32", out=True),
             B: T.Tensor((M, 4), "float32", out=True)):
    with T.Kernel(M) as b:
        S[b] = A[b, 0]
        for j in T.Parallel(4):
            B[b, j] = A[b, j] + A[b, j]


def test_outputs_that_the_function_declares():
    a = np.arange(8, dtype="float32").reshape(2, 4)
    text = declared.script().replace('S: T.Tensor((M,), "float32")', 'S: T.Tensor((M,), "float32", out=True)')
    again = pickle.loads(pickle.dumps(declared))
    for function in (declared, again, helve.Schedule(declared), helve.Schedule(declared).function):
        kernel = helve.compile(function)
        s, b = kernel(a)
        assert np.array_equal(s, a[:, 0]) and np.array_equal(b, a + a)
        s, b = pickle.loads(pickle.dumps(kernel))(a)
        assert np.array_equal(s, a[:, 0]) and np.array_equal(b, a + a)
    s, b = helve.jit(declared)(a)
    assert np.array_equal(s, a[:, 0]) and np.array_equal(b, a + a)
    assert (declared.outputs, again.outputs, helve.parse(text).outputs) == (("S", "B"), ("S", "B"), ("S",))


def test_outputs_of_a_call_come_before_those_that_are_declared():
    a = np.arange(8, dtype="float32").reshape(2, 4)
    s, b = np.zeros(2, "float32"), np.zeros_like(a)
    assert np.array_equal(helve.compile(declared, out="B")(a, s), a + a) and np.array_equal(s, a[:, 0])
    assert helve.compile(declared, out=())(a, s, b) is None and np.array_equal(b, a + a)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows", [0, 1, 7, 64])
def test_a_new_array_holds_what_a_passed_one_does(target, rows):
    kernel = helve.compile(doubling(), target, out="B")
    a = np.random.default_rng(0).random((rows, 4), "float32")
    made = kernel(a)
    assert type(made) is np.ndarray and made.dtype == a.dtype and np.array_equal(made, a + a)
    passed = np.full_like(a, np.nan)
    assert kernel(a, passed) is passed and np.array_equal(passed, made)
    again = kernel(a)
    assert again is not made and not np.shares_memory(again, made)


def test_by_name_by_position_and_by_none():
    kernel = helve.compile(doubling(), out=-1)
    a = np.ones((3, 4), "float32")
    for call in (lambda b: kernel(a, B=b), lambda b: kernel(A=a, B=b), lambda b: kernel(B=b, A=a)):
        b = np.zeros_like(a)
        assert call(b) is b and (b == 2).all()
    for result in (kernel(A=a), kernel(a, None), kernel(a, B=None)):
        assert (result == 2).all() and result.shape == a.shape


@pytest.mark.parametrize("target", TARGETS)
def test_several_come_in_the_order_of_out(target):
    kernel = helve.compile(three, target, out=("C", "LOW", 3))
    assert kernel.outputs == ("C", "LOW", "HIGH")
    a, b = np.full((2, 3), 2, "float32"), np.full((2, 3), 1, "float32")
    for c, low, high in (kernel(a, 3.0, b), kernel(a, s=3.0, B=b), kernel(None, a, 3.0, None, b, None)):
        assert (c == 7).all() and c.shape == (2, 3)
        assert low.tolist() == [0, 1] and low.dtype == "int32"
        assert high.tolist() == [0.5] * 3 and high.dtype == "float64"
    kept = np.zeros(2, "int32")
    c, low, _ = kernel(a, 3.0, b, LOW=kept)
    assert low is kept and kept.tolist() == [0, 1] and (c == 7).all()


def test_a_sequence_of_one_is_one_and_an_empty_one_is_none():
    a = np.ones((2, 4), "float32")
    assert helve.compile(doubling(), out=["B"])(a).shape == (2, 4)
    for out in (None, (), []):
        kernel = helve.compile(doubling(), out=out)
        assert kernel.outputs == () and kernel(a, np.empty_like(a)) is None


@pytest.mark.parametrize("dtype", [name for name in _core.dtype_names() if name not in ("index", *PACKED)])
def test_every_dtype_of_numpy(dtype):
    a = np.array([0, 1, 1], numpy_dtype(dtype))
    b = helve.compile(copying(dtype), "interp", out="B")(a)
    assert b.dtype == a.dtype and np.array_equal(b, a)


@pytest.mark.parametrize(
    ("extents", "shape"),
    [
        ((N, M), lambda m, n: (n, m)),
        ((M + N, 2 * M), lambda m, n: (m + n, 2 * m)),
        ((T.ceildiv(M, 4), N % 5), lambda m, n: (-(-m // 4), n % 5)),
        ((M * N // 3,), lambda m, n: (m * n // 3,)),
        ((3,), lambda m, n: (3,)),
        ((), lambda m, n: ()),
    ],
)
def test_extents_are_computed_from_the_inputs(extents, shape):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor(extents, "float32")):
        with T.Kernel(1) as b:
            T.fill(B, 1.0)

    text = helve.parse(main.script())  # of an equal function
    kernels = [helve.compile(function, "interp", out="B") for function in (main, text)]
    for m, n in ((0, 0), (1, 0), (0, 3), (1, 1), (5, 7), (8, 13)):
        for kernel in kernels:
            assert kernel(np.ones((m, n), "float32")).shape == shape(m, n)


def test_different_extents_of_one_name():
    one, other = T.dyn("K"), T.dyn("K")

    @T.prim_func
    def main(A: T.Tensor((one,), "float32"), B: T.Tensor((other,), "float32"), C: T.Tensor((other, one), "float32")):
        with T.Kernel(1) as b:
            T.fill(C, 1.0)

    assert helve.compile(main, "interp", out="C")(np.ones(2, "float32"), np.ones(3, "float32")).shape == (3, 2)


@pytest.mark.parametrize("dtype", ["index", "int32", "uint8"])
@pytest.mark.parametrize("number", [3, True, np.int64(3), np.uint8(3), np.array(3)])
def test_extents_that_are_scalars(dtype, number):
    text = f"""@T.prim_func
def main(n: T.{dtype}, B: T.Tensor((2 * T.index(n) + 1,), 'float32')):
    with T.Kernel(2 * T.index(n) + 1) as b:
        B[b] = 1.0
"""
    b = helve.compile(helve.parse(text), out="B")(number)
    assert b.shape == (2 * int(number) + 1,) and (b == 1).all()


def test_without_tensors_among_the_inputs_it_is_numpys():
    @T.prim_func
    def main(s: T.float32, B: T.Tensor((4,), "float32")):
        with T.Kernel(4) as b:
            B[b] = s

    assert helve.compile(main, out="B")(2.0).tolist() == [2.0] * 4


def test_pytorch():
    torch = pytest.importorskip("torch")
    for dtype, other in (("float32", torch.float32), ("bfloat16", torch.bfloat16), ("int64", torch.int64),
                         ("float8_e4m3", torch.float8_e4m3fn), ("bool", torch.bool)):
        a = torch.tensor([0, 1, 1]).to(other)
        b = helve.compile(copying(dtype), out="B")(a)
        assert type(b) is torch.Tensor and b.dtype == other and b.device == a.device
        assert torch.equal(b.to(torch.float32), a.to(torch.float32))
    learned = torch.nn.Parameter(torch.ones(3))
    result = helve.compile(copying("float32"), out="B")(learned)
    assert type(result) is torch.Tensor and not result.requires_grad and result.tolist() == [1, 1, 1]


class Strange:
    """An array of a library with the array API and no NumPy."""

    def __init__(self, data, device="here"):
        self.data, self.device = data, device
        self.shape, self.dtype = data.shape, data.dtype

    def __dlpack__(self, **asked):
        return self.data.__dlpack__()

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()

    def __array_namespace__(self):
        def empty(shape, dtype, device):
            return Strange(np.empty(shape, dtype), device)

        return types.SimpleNamespace(empty=empty, float32=np.dtype("float32"), float16=np.dtype("float32"))


Strange.__module__ = "strange"


def test_the_array_api():
    a = Strange(np.ones(3, "float32"), "there")
    b = helve.compile(copying("float32"), out="B")(a)
    assert type(b) is Strange and b.device == "there" and b.data.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("dtype", "reason"),
    [("float64", "has no dtype float64"), ("float16", "makes it of dtype float32, not float16")],
)
def test_a_library_without_the_dtype(dtype, reason):
    @T.prim_func
    def main(A: T.Tensor((M,), "float32"), B: T.Tensor((M,), dtype)):
        with T.Kernel(M) as b:
            B[b] = T.cast(A[b], dtype)

    with pytest.raises(helve.Error) as caught:
        helve.compile(main, "interp", out="B")(Strange(np.ones(3, "float32")))
    assert caught.value.message == f"output 'B' of shape (3,) cannot be made: 'strange' {reason}"


def test_cupy_makes_it_on_the_device_of_the_input(monkeypatch):
    """CuPy's current device is not that of every array; its memory is of the current stream."""
    entered = []

    class Device:
        def __enter__(self):
            entered.append("in")

        def __exit__(self, *fault):
            entered.append("out")

    class ndarray(Strange):  # noqa: N801 - CuPy's name
        pass

    ndarray.__module__ = "cupy"

    def empty(shape, dtype):
        assert entered == ["in"]
        return ndarray(np.empty(shape, dtype))

    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(empty=empty))
    b = helve.compile(copying("float32"), out="B")(ndarray(np.ones(3, "float32"), Device()))
    assert type(b) is ndarray and entered == ["in", "out"] and b.data.tolist() == [1, 1, 1]


def test_that_memory_is_missing_is_the_librarys_to_say():
    @T.prim_func
    def main(A: T.Tensor((M,), "float32"), B: T.Tensor((M * 2**60,), "float32")):
        with T.Kernel(1) as b:
            B[0] = A[0]

    with pytest.raises(MemoryError):
        helve.compile(main, "interp", out="B")(np.ones(1, "float32"))


def accumulated(first):
    text = f"""@T.prim_func
def main(A: T.Tensor((4,), "float32"), s: T.int32, B: T.Tensor((4,), "float32")):
    with T.Kernel(1) as b:
        {first}
        for i in T.serial(4):
            B[i] = B[i] + A[i]
"""
    return helve.parse(text)


@pytest.mark.parametrize("first", ["T.clear(B)", "if s > 0:\n            T.clear(B)", "T.copy(A, B)", "B[0] = 1.0"])
def test_what_may_be_written_first_can_be_an_output(first):
    assert helve.compile(accumulated(first), "interp", out="B").outputs == ("B",)


@pytest.mark.parametrize(
    "first",
    ["pass", "T.atomic_add(B[0], 1.0)", 'T.update(B[0], 1.0, "add")', "if s > 0:\n            B[0] = B[1]",
     "T.reduce_sum(A, B[0:1], dim=0, clear=False)"],
)
def test_what_is_read_first_cannot(first):
    with pytest.raises(helve.Error) as caught:
        helve.compile(accumulated(first), "interp", out="B")
    assert caught.value.code == "HV0815" and "read before it is written" in caught.value.message


def test_a_mesh_a_schedule_and_index_notation():
    mesh = helve.Mesh((2, 3))

    @T.prim_func
    def main(A: T.Tensor((10, 9), "float32"), B: T.Tensor((10, 9), "float32")):
        T.annotate_mesh_tensor({A: {"sharding": {"x": 0, "y": 1}, "tiling": [4, 4]},
                                B: {"sharding": {"x": 0, "y": 1}, "tiling": [4, 4]}}, nrows=2, ncols=3)
        m, n = T.get_sharded_shape(A)
        with T.Kernel(2, 3) as (r, c):
            tile = T.alloc_shared((4, 4), "float32")
            for i, j in T.Persistent([T.ceildiv(m, 4), T.ceildiv(n, 4)]):
                T.mesh_tensor_copy(A, tile, coord=[i, j])
                T.mesh_tensor_copy(tile, B, coord=[i, j])

    a = np.random.default_rng(1).random((10, 9), "float32")
    assert np.array_equal(helve.compile(main, mesh=mesh, out="B")(a), a)
    assert np.array_equal(helve.compile(helve.Schedule(doubling()), out="B")(a[:, :4].copy()), 2 * a[:, :4])
    i, k = helve.indices("i k")
    X, S = helve.tensor("X", (M, N)), helve.tensor("S", (M,))
    S[i] = X[i, k]
    np.testing.assert_allclose(helve.compile(helve.function(S), out="S")(a), a.sum(axis=1), rtol=1e-5)


def test_a_kernel_tells_what_it_is():
    kernel = helve.compile(doubling(), out="B")
    text = "(A: 'float32[M, 4]', B: 'float32[M, 4]' = None) -> 'float32[M, 4]'"
    assert str(inspect.signature(kernel)) == text
    assert kernel.__name__ == "main" and kernel.__doc__ == "Twice A."
    assert repr(kernel) == "<helve.Kernel main(A: float32[M, 4]) -> B: float32[M, 4] for llvm>"
    plain = helve.compile(doubling())
    assert str(inspect.signature(plain)) == "(A: 'float32[M, 4]', B: 'float32[M, 4]') -> None"
    assert repr(plain) == "<helve.Kernel main(A: float32[M, 4], B: float32[M, 4]) for llvm>"
    between = inspect.signature(helve.compile(three, out=("C", "LOW")))
    assert list(between.parameters) == ["A", "s", "HIGH", "B", "LOW", "C"]
    assert between.parameters["C"].kind is inspect.Parameter.KEYWORD_ONLY
    assert between.return_annotation == "(float32[M, N], int32[M])"
    function = doubling()
    assert function.__name__ == "main" and function.__doc__ == "Twice A." and function.__module__ == __name__
    assert list(inspect.signature(function).parameters) == ["A", "B"]


CASES = ["rms_norm", "layer_norm", "rms_norm_backward", "layer_norm_backward", "softmax", "softmax_backward",
         "cross_entropy", "cross_entropy_backward", "rope", "swiglu", "swiglu_backward", "transpose", "row_sums",
         "column_sums"]  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_kernels_of_the_library_make_their_outputs(name):
    call = getattr(kernel_cases, name)(5, 40, "float32")
    made = helve.compile(call.function, out=list(range(-len(call.expected), 0)))(*call.inputs)
    call.check([*call.inputs, *(made if isinstance(made, tuple) else [made])])


def test_versions_of_a_schedule_keep_the_declared_outputs():
    @T.prim_func
    def twice(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32", out=True)):
        with T.Kernel(1) as b:
            for i in T.serial(4):
                B[i] = A[i] * 2.0

    s = helve.Schedule(twice)
    s.unroll("i")
    for each in (s, s.version(0), s.version(1), s.copy()):
        assert (helve.compile(each)(np.arange(4, dtype="float32")) == [0, 2, 4, 6]).all()


def positives():
    """Keeps rows that begin with a number above 0."""

    @T.prim_func
    def main(A: T.Tensor((M, 4), "float32"), B: T.Tensor((M, 4), "float32"), C: T.Tensor((M,), "float32")):
        with T.Kernel(M) as b:
            C[b] = A[b, 0]
            if A[b, 0] > 0.0:
                T.copy(A[b, :], B[b, :])

    return main


def unwritten(call):
    with pytest.raises(helve.Error) as caught:
        call()
    assert caught.value.name == "UnwrittenOutput"
    return caught.value.message, caught.value.notes[0]


@pytest.mark.parametrize("check", ["all", "uninitialised"])
def test_elements_of_a_new_array_that_are_not_written_are_found(check):
    kernel = helve.compile(positives(), target="interp", check=check, out=["C", "B"])
    a = np.ones((3, 4), "float32")
    c, b = kernel(a)
    assert (b == a).all() and (c == 1).all()
    a[1, 0] = 0
    where = "element (1, 0) of output 'B' is not written, and a new array has no contents"
    assert unwritten(lambda: kernel(a)) == (where, "4 of its 12 elements are not written")
    a[:, 0] = 0
    assert unwritten(lambda: kernel(a))[1] == "none of its elements is written"
    assert unwritten(lambda: helve.jit(positives(), target="interp", check=check, out=("B", "C"))(a))
    kernel(a[:0])  # empty arrays have no elements


def test_what_a_call_is_given_may_keep_elements():
    kernel = helve.compile(positives(), target="interp", check="all", out=["B", "C"])
    a, b, c = np.zeros((2, 4), "float32"), np.full((2, 4), 7, "float32"), np.empty(2, "float32")
    for given in ((a, b, c), (a, b, None)):
        kernel(*given)
        assert (b == 7).all()
    assert unwritten(lambda: kernel(a, None, c))[1] == "none of its elements is written"
    for unchecked in (None, "races"):
        helve.compile(positives(), target="interp", check=unchecked, out=["B", "C"])(a)


@pytest.mark.parametrize("dtype", ["int4", "float4_e2m1"])
def test_elements_that_share_bytes_are_told_apart(dtype):
    @T.prim_func
    def main(A: T.Tensor((2, 8), dtype), B: T.Tensor((2, 8), dtype)):
        with T.Kernel(2) as b:
            T.copy(A[b, 0:6], B[b, 0:6])

    kernel = helve.compile(main, target="interp", check="all", out="B")
    message, note = unwritten(lambda: kernel(np.zeros((2, 4), "uint8")))
    assert message.startswith("element (0, 6) of output 'B'") and note == "4 of its 16 elements are not written"


def test_all_cores_of_a_mesh_write_one_output():
    mesh = helve.Mesh((2, 2))

    @T.prim_func(mesh=mesh)
    def main(A: T.Tensor((4,), "float32"), B: T.Tensor((5,), "float32")):
        with T.Kernel(2, 2) as (r, c):
            B[2 * r + c] = A[2 * r + c]

    kernel = helve.compile(main, target="interp", mesh=mesh, check="all", out="B")
    assert unwritten(lambda: kernel(np.zeros(4, "float32"))) == (
        "element (4,) of output 'B' is not written, and a new array has no contents",
        "1 of its 5 elements is not written")
