"""Index notation: classical expressions against NumPy, on targets and in every stage."""

import contextlib
import re
import sys
from types import SimpleNamespace

import helve
import helve.testing
import ml_dtypes
import numpy as np
import pytest
from helve import T, _core
from helve.script.prim_func import PrimFunc

i, j, k, l, m = helve.indices("i j k l m")


def whole(seed, *shape):
    return np.random.default_rng(seed).integers(-3, 4, shape).astype("float32")


def check(function, inputs, wanted, held=7):
    """Both targets and every stage; the result is the last parameter, which holds `held` before."""
    inputs, wanted = [np.asarray(x) for x in inputs], np.asarray(wanted)

    def make():
        return [*(x.copy() for x in inputs), np.full(wanted.shape, held, wanted.dtype)]

    for target in ("llvm", "interp"):
        args = make()
        helve.compile(function, target)(*args)
        np.testing.assert_allclose(args[-1], wanted, rtol=1e-5, atol=1e-6)
    helve.testing.check_stages(function, make)


def tensors(**shapes):
    return [helve.tensor(name, shape) for name, shape in shapes.items()]


@pytest.mark.parametrize("sizes", [(5, 7, 3), (1, 1, 1), (0, 3, 2), (3, 4, 0)])
def test_matrix_product(sizes):
    m, n, inner = sizes
    A, B, C = helve.tensor("A", (m, inner)), helve.tensor("B", (inner, n)), helve.tensor("C", (m, n))
    C[i, j] = A[i, k] * B[k, j]
    a, b = whole(0, m, inner), whole(1, inner, n)
    check(helve.function(C), [a, b], a @ b)


def test_mttkrp():
    B, C, D = helve.tensor("B", (4, 3, 5)), helve.tensor("C", (3, 6)), helve.tensor("D", (5, 6))
    A = helve.tensor("A", (4, 6))
    A[i, l] = B[i, j, k] * C[j, l] * D[k, l]
    b, c, d = whole(0, 4, 3, 5), whole(1, 3, 6), whole(2, 5, 6)
    check(helve.function(A), [b, c, d], np.einsum("ijk,jl,kl->il", b, c, d))


def test_a_sum_stays_in_its_term():
    b, A, x, y = (helve.tensor(*each) for each in (("b", (5,)), ("A", (5, 7)), ("x", (7,)), ("y", (5,))))
    y[i] = b[i] * (b[i] + A[i, j] * x[j]) + 1.0
    v, m, u = whole(0, 5), whole(1, 5, 7), whole(2, 7)
    check(helve.function(y), [v, m, u], v * (v + m @ u) + 1)


def test_a_convolution_of_a_dynamic_extent():
    M = T.dyn("M")
    u, w, y = helve.tensor("u", (M,)), helve.tensor("w", (3,)), helve.tensor("y", (M - 2,))
    y[i] = u[i + k] * w[k]
    a, b = whole(0, 9), whole(1, 3)
    check(helve.function(y), [a, b], np.correlate(a, b, "valid"))


def test_statements_with_temporaries():
    X, m, E, P = (helve.tensor(*each) for each in (("X", (4, 6)), ("m", (4,)), ("E", (4, 6)), ("P", (4, 6))))
    m[i] = helve.reduce_max(j, X[i, j])
    E[i, j] = T.exp(X[i, j] - m[i])
    P[i, j] = E[i, j] / helve.reduce_sum(j, E[i, j])
    x = whole(0, 4, 6)
    e = np.exp(x - x.max(1, keepdims=True))
    check(helve.function(P), [x], e / e.sum(1, keepdims=True))


def test_products_of_a_tensor_and_a_vector_or_a_matrix():
    b, c, d = whole(0, 4, 3, 5), whole(1, 5), whole(2, 6, 5)
    A, B, C = tensors(A=(4, 3), B=b.shape, C=c.shape)
    A[i, j] = B[i, j, k] * C[k]
    check(helve.function(A), [b, c], b @ c)
    A, B, C = tensors(A=(4, 3, 6), B=b.shape, C=d.shape)
    A[i, j, l] = B[i, j, k] * C[l, k]
    check(helve.function(A), [b, d], b @ d.T)


def test_inner_products_and_diagonals():
    b, c = whole(0, 3, 4, 2), whole(1, 3, 4, 2)
    t, B, C = tensors(t=(), B=b.shape, C=c.shape)
    t[()] = B[i, j, k] * C[i, j, k]
    check(helve.function(t), [b, c], (b * c).sum())
    a = whole(2, 5, 5)
    t, A = tensors(t=(), A=a.shape)
    t[()] = A[i, i]
    check(helve.function(t), [a], np.trace(a))


def test_sampled_dense_dense_products():
    b, c, d = whole(0, 4, 5), whole(1, 4, 6), whole(2, 6, 5)
    A, B, C, D = tensors(A=b.shape, B=b.shape, C=c.shape, D=d.shape)
    A[i, j] = B[i, j] * C[i, k] * D[k, j]
    check(helve.function(A), [b, c, d], b * (c @ d))


def test_sums_of_matrices_and_residuals():
    b, c, d, x, z = whole(0, 4, 5), whole(1, 4, 5), whole(2, 4, 5), whole(3, 5), whole(4, 4)
    A, B, C, D = tensors(A=b.shape, B=b.shape, C=c.shape, D=d.shape)
    A[i, j] = B[i, j] + C[i, j] + D[i, j]
    check(helve.function(A), [b, c, d], b + c + d)
    y, Z, B, X = tensors(y=(4,), Z=(4,), B=b.shape, X=(5,))
    y[i] = Z[i] - B[i, j] * X[j]
    check(helve.function(y), [z, b, x], z - b @ x)
    y, Z, B, X = tensors(y=(5,), Z=(4,), B=b.shape, X=(5,))
    alpha, beta = helve.scalar("alpha"), helve.scalar("beta")
    y[j] = alpha * B[i, j] * Z[i] + beta * X[j]
    check(helve.function(y), [np.float32(2), b, z, np.float32(3), x], 2 * b.T @ z + 3 * x)
    A, B, C, D = tensors(A=(4, 3), B=(4, 3, 5), C=(5,), D=(4, 3))
    A[i, j] = B[i, j, k] * C[k] + D[i, j]
    b, c, d = whole(5, 4, 3, 5), whole(6, 5), whole(7, 4, 3)
    check(helve.function(A), [b, c, d], b @ c + d)


def test_chains_of_products():
    a, b, c = whole(0, 3, 4), whole(1, 4, 5), whole(2, 5, 2)
    A, B, C, D, U = tensors(A=a.shape, B=b.shape, C=c.shape, D=(3, 2), U=(3, 5))
    U[i, j] = A[i, k] * B[k, j]
    D[i, j] = U[i, k] * C[k, j]
    check(helve.function(D), [a, b, c], a @ b @ c)
    D = helve.tensor("D", (3, 2))
    D[i, j] = A[i, k] * B[k, l] * C[l, j]
    check(helve.function(D), [a, b, c], a @ b @ c)


@pytest.mark.parametrize("shape", [(5, 7), (1, 7), (5, 1), (3, 200)])
def test_softmax_in_one_statement(shape):
    X, P = tensors(X=shape, P=shape)
    e = T.exp(X[i, j] - helve.reduce_max(k, X[i, k]))
    P[i, j] = e / helve.reduce_sum(j, e)
    x = whole(0, *shape)
    e = np.exp(x - x.max(1, keepdims=True))
    function = helve.function(P)
    check(function, [x], e / e.sum(1, keepdims=True))
    # Each reduction is computed once a row: no loop in series stands inside of another one, nor in that of P.
    text = function.script()
    assert text.count("T.serial") == 2 and "T.serial" not in text[text.rindex("T.Kernel") :]


def test_a_reduction_inside_of_a_sum_that_uses_its_index():
    a, b = whole(0, 4, 3), whole(1, 3, 5)
    A, B, y = tensors(A=a.shape, B=b.shape, y=(4,))
    y[i] = A[i, j] * helve.reduce_max(k, B[j, k])
    function = helve.function(y)
    check(function, [a, b], a @ b.max(1))
    assert function.script().count("alloc_global") == 1
    c = whole(2, 4, 3, 5)
    C, y = tensors(C=c.shape, y=(4,))
    y[i] = helve.reduce_sum(j, helve.reduce_max(k, C[i, j, k]))
    function = helve.function(y)
    check(function, [c], c.max(2).sum(1))
    assert "alloc_global" not in function.script()


def test_an_index_of_the_left_side_alone_repeats():
    x, a = whole(0, 4), whole(1, 4, 3)
    X, A, Y = tensors(X=x.shape, A=a.shape, Y=(4, 6))
    Y[i, j] = X[i] + A[i, k]
    check(helve.function(Y), [x, a], np.repeat((x + a.sum(1))[:, None], 6, 1))
    Y = helve.tensor("Y", (2, 3))
    Y[i, j] = 4
    check(helve.function(Y), [], np.full((2, 3), 4, "float32"))


def test_all_kinds_of_reductions():
    x = whole(0, 4, 6)
    for kind, of in (("sum", np.sum), ("prod", np.prod), ("max", np.max), ("min", np.min)):
        X, y = tensors(X=x.shape, y=(4,))
        y[i] = getattr(helve, f"reduce_{kind}")(j, X[i, j])
        check(helve.function(y), [x], of(x, 1))
    for kind, of in (("any", np.any), ("all", np.all)):
        X, y = helve.tensor("X", x.shape), helve.tensor("y", (4,), "bool")
        y[i] = getattr(helve, f"reduce_{kind}")(j, (X[i, j] > -3) & ~(X[i, j] >= 3))
        check(helve.function(y), [x], of((x > -3) & (x < 3), 1))
        Y = helve.tensor("Y", x.shape)
        Y[i, j] = T.if_then_else(getattr(helve, f"reduce_{kind}")(k, X[i, k] > 1), X[i, j], 0.0)
        check(helve.function(Y), [x], np.where(of(x > 1, 1)[:, None], x, 0))


def test_reductions_over_nothing():
    X, y = tensors(X=(3, 0), y=(3,))
    y[i] = helve.reduce_max(j, X[i, j])
    check(helve.function(y), [whole(0, 3, 0)], np.full(3, -np.inf, "float32"))
    X, Y = tensors(X=(0, 4), Y=(0, 4))
    Y[i, j] = X[i, j] / helve.reduce_sum(k, X[i, k])
    check(helve.function(Y), [whole(0, 0, 4)], np.empty((0, 4), "float32"))
    X, Y = tensors(X=(3, 4), Y=(3, 0))
    Y[i, j] = X[i, k]
    check(helve.function(Y), [whole(0, 3, 4)], np.empty((3, 0), "float32"))


def test_updates():
    a, x = whole(0, 5, 7), whole(1, 7)
    for held, wanted in ((3, 3 + a @ x), (0, a @ x)):
        A, X, y = tensors(A=a.shape, X=x.shape, y=(5,))
        y[i] += A[i, j] * X[j]
        check(helve.function(y), [a, x], wanted, held)
    A, y = tensors(A=a.shape, y=(5,))
    y[i] -= A[i, j]
    check(helve.function(y), [a], 2 - a.sum(1), 2)
    A, y = tensors(A=a.shape, y=(5,))
    y[i] *= A[i, 0] + 1
    check(helve.function(y), [a], 2 * (a[:, 0] + 1), 2)
    A, y = tensors(A=a.shape, y=(5,))
    y[i] = A[i, j]
    y[i] += 2 * A[i, 0]
    check(helve.function(y), [a], a.sum(1) + 2 * a[:, 0])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_an_update_of_a_small_float_rounds_once(dtype):
    """The sum alone is no number of the type, and would be rounded down; with the old value it is rounded up."""
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    ulp = 2.0 * float(ml_dtypes.finfo(dtype).eps)  # of numbers from 2 to 4
    a = np.array([[2.0, ulp * 0.25, ulp * 0.125]], dtype)
    held = ulp * 0.25
    A, y = helve.tensor("A", a.shape, dtype.name), helve.tensor("y", (1,), dtype.name)
    y[i] += A[i, j]
    wanted = np.array([2.0 + ulp * 0.625]).astype(dtype)
    assert wanted != (a.astype("float64").sum(1).astype(dtype).astype("float64") + held).astype(dtype)
    check(helve.function(y), [a], wanted, held)


def test_threads_divide_the_elements_of_a_block():
    """A block of a vector's elements has many of them, and threads for them."""
    M = T.dyn("M")
    x, y = tensors(x=(M,), y=(M,))
    y[i] = x[i] * 2
    function = helve.function(y)
    for n in (0, 1, 31, 128, 1024, 1025, 3000):
        v = whole(n, n)
        out = np.full(n, 7, "float32")
        for target in ("llvm", "interp"):
            helve.compile(function, target)(v, out)
            np.testing.assert_array_equal(out, v * 2)
    assert "T.Kernel((M + 1024 - 1) // 1024)" in function.script() and "T.Parallel(1024)" in function.script()
    A, B, C = tensors(A=(300, 5), B=(5, 3), C=(300, 3))
    C[i, j] = A[i, k] * B[k, j]
    function = helve.function(C)
    assert "T.Parallel(43, 3)" in function.script()
    check(function, [whole(0, 300, 5), whole(1, 5, 3)], whole(0, 300, 5) @ whole(1, 5, 3))


def test_functions_of_elements():
    x, n = np.abs(whole(0, 9)) + 1, np.array([3, 0, 2], "int32")
    X, y = tensors(X=(9,), y=(9,))
    y[i] = T.sqrt(X[i]) + T.max(X[i], 2) ** 2 - T.clamp(X[i], 1.5, 2.5) / 2 + T.cast(i, "float32") + abs(-X[i])
    wanted = np.sqrt(x) + np.maximum(x, 2) ** 2 - np.clip(x, 1.5, 2.5) / 2 + np.arange(9) + x
    check(helve.function(y), [x], wanted.astype("float32"))
    X, N, y = helve.tensor("X", (9,)), helve.tensor("N", (3,), "int32"), helve.tensor("y", (3,))
    y[i] = X[T.index(N[i])] + T.float32(N[i])
    check(helve.function(y), [x, n], x[n] + n.astype("float32"))


def test_dynamic_extents_serve_all_sizes():
    M, N, K = (T.dyn(name) for name in "MNK")
    A, B, C = tensors(A=(M, K), B=(K, N), C=(M, N))
    C[i, j] = A[i, k] * B[k, j]
    function = helve.function(C)
    kernel = helve.compile(function)
    for sizes in ((3, 4, 5), (1, 1, 1), (0, 4, 5), (3, 0, 5), (3, 4, 0), (7, 300, 2)):
        a, b = whole(0, sizes[0], sizes[2]), whole(1, sizes[2], sizes[1])
        c = np.full((sizes[0], sizes[1]), 7, "float32")
        kernel(a, b, c)
        np.testing.assert_array_equal(c, a @ b)
    check(function, [whole(0, 3, 5), whole(1, 5, 4)], whole(0, 3, 5) @ whole(1, 5, 4))


def test_a_schedule_divides_and_interchanges_a_product():
    a, b = whole(0, 4, 10), whole(1, 10, 96)
    A, B, C = tensors(A=a.shape, B=b.shape, C=(4, 96))
    C[i, j] = A[i, k] * B[k, j]
    s = helve.Schedule(helve.function(C))
    s.fission(s.loop("k"))
    outer, inner = s.split("k", 4)
    s.reorder(outer, inner, "j_1")
    assert len(s) == 3
    body = s.script()[s.script().index("for ko") :]
    assert re.findall(r"for (\w+) in", body) == ["ko", "ki", "j_1"]
    check(helve.parse(s.script()), [a, b], a @ b)


@pytest.mark.parametrize("seed", range(40))
def test_einsum_of_random_specifications(seed):
    rng = np.random.default_rng(seed)
    operands = ["".join(rng.choice(list("ijkl"), rng.integers(1, 4))) for _ in range(rng.integers(1, 4))]
    letters = sorted(set("".join(operands)))
    spec = ",".join(operands) + "->" + "".join(rng.permutation([c for c in letters if rng.random() < 0.5]))
    extents = {"i": 2, "j": 3, "k": 1, "l": 4}
    arrays = [whole(seed + n, *(extents[c] for c in operand)) for n, operand in enumerate(operands)]
    wanted = np.einsum(spec, *arrays)
    for target in ("interp", "llvm"):
        np.testing.assert_allclose(helve.einsum(spec, *arrays, target=target), wanted, rtol=1e-5, err_msg=spec)
    function, _, _ = _core.einsum(spec, ["float32"] * len(arrays), [x.shape for x in arrays], [], _core.Span())
    check(PrimFunc(function), arrays, wanted)


SPECS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ba", (2, 3)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("i,j->ij", (2,), (3,)),
    ("...ij,...jk->...ik", (2, 3, 4), (2, 4, 5)),
    ("ij->", (2, 3)),
    ("...ij,jk", (2, 1, 3, 4), (4, 5)),
    ("...,...", (4, 1), (1, 3)),
    ("bij,bjk->bik", (1, 2, 3), (1, 3, 2)),
    ("ij,ij->i", (0, 3), (0, 3)),
    ("ij,j->i", (2, 0), (0,)),
    ("i j , j k -> i k", (2, 3), (3, 2)),
    (",->", (), ()),
]


@pytest.mark.parametrize(("spec", "shapes"), [(spec, shapes) for spec, *shapes in SPECS], ids=[s[0] for s in SPECS])
@pytest.mark.parametrize("dtype", ["float32", "int32", "float64"])
def test_einsum_of_numpy_arrays(spec, shapes, dtype):
    arrays = [whole(n, *shape).astype(dtype) for n, shape in enumerate(shapes)]
    wanted = np.einsum(spec, *arrays)
    for target in ("interp", "llvm"):
        result = helve.einsum(spec, *arrays, target=target)
        assert result.dtype == wanted.dtype and result.shape == wanted.shape
        np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize(("spec", "shapes"), [(spec, shapes) for spec, *shapes in SPECS], ids=[s[0] for s in SPECS])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_einsum_of_torch_tensors(spec, shapes, dtype):
    torch = pytest.importorskip("torch")
    operands = [torch.from_numpy(whole(n, *shape)).to(getattr(torch, dtype)) for n, shape in enumerate(shapes)]
    result = helve.einsum(spec, *operands)
    wanted = torch.einsum(spec, *operands)
    assert result.dtype == wanted.dtype
    torch.testing.assert_close(result, wanted)


def test_einsum_reads_views_and_writes_where_it_is_told():
    a, b = whole(0, 6, 4)[::2].T, whole(1, 3, 10)[:, ::2]
    np.testing.assert_array_equal(helve.einsum("ij,jk->ik", a, b), a @ b)
    out = np.full((4, 5), 7, "float32")
    assert helve.einsum("ij,jk->ik", a, b, out=out) is out
    np.testing.assert_array_equal(out, a @ b)
    repeated = np.broadcast_to(whole(2, 3), (4, 3))
    np.testing.assert_array_equal(helve.einsum("ij->i", repeated), repeated.sum(1))


def test_einsum_compiles_once_for_a_signature(monkeypatch):
    module = sys.modules["helve.einsum"]
    compiled = []
    monkeypatch.setattr(module, "_kernels", type(module._kernels)())
    monkeypatch.setattr(module, "compile", lambda *args: compiled.append(args) or helve.compile(*args))
    for _ in range(3):
        helve.einsum("ij->j", whole(0, 2, 3))
    assert len(compiled) == 1
    helve.einsum("ij->j", whole(0, 2, 4))
    assert len(compiled) == 2


class Array:
    """An array of a library that has DLPack and little else, on the memory of NumPy's."""

    def __init__(self, values):
        self.values = values
        self.dtype, self.shape, self.strides, self.itemsize = values.dtype, values.shape, values.strides, 4
        self.device = contextlib.nullcontext()

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()

    def __dlpack__(self, **asked):
        return self.values.__dlpack__()


def test_results_are_arrays_of_libraries_that_do_not_name_their_namespace(monkeypatch):
    old = type("ndarray", (Array,), {"__module__": "cupy._core.core"})
    cuda = SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=1))
    library = SimpleNamespace(cuda=cuda, empty=lambda shape, dtype: old(np.empty(shape, dtype)))
    monkeypatch.setitem(sys.modules, "cupy", library)
    values = np.arange(6, dtype="float32").reshape(2, 3)
    got = helve.einsum("ij->i", old(values))
    assert isinstance(got, old) and got.values.tolist() == [3.0, 12.0]


def test_arrays_that_nobody_can_make_need_a_place_for_the_result():
    values = np.arange(6, dtype="float32").reshape(2, 3)
    with pytest.raises(helve.Error) as caught:
        helve.einsum("ij->i", Array(values))
    assert caught.value.code == "HV0108" and "do not say how to make another one" in caught.value.message
    out = np.zeros(2, "float32")
    assert helve.einsum("ij->i", Array(values), out=out) is out and out.tolist() == [3.0, 12.0]


@pytest.mark.parametrize("op", ["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "<", "<=", ">", ">=",
                                "==", "!="])
def test_scalars_of_numpy_beside_an_operator_are_numbers(op):
    """On both sides; NumPy asks its own functions where the left side is its scalar."""
    dtype = "float32" if op in ("/", "**") else "int32"
    i = helve.index("i")

    def written(number):
        x, y, z = (helve.tensor(name, (4,), dtype) for name in "xyz")
        y[i] = T.cast(eval(f"a {op} x[i]", {"a": number, "x": x, "i": i}), dtype)
        z[i] = T.cast(eval(f"x[i] {op} a", {"a": number, "x": x, "i": i}), dtype)
        return helve.function(y, z).script()

    number = 3.0 if dtype == "float32" else 3
    assert written(getattr(np, dtype)(3)) == written(number)
    assert written(np.array(3, dtype)) == written(number)
