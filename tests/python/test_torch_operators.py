"""Operators of PyTorch made of kernels: their schemas, results, gradients, graphs, and what is refused."""

import re
import subprocess
import sys

import pytest

import helve
from helve import T

torch = pytest.importorskip("torch")
import helve.torch  # noqa: E402 - it needs torch

M, N = T.dyn("M"), T.dyn("N")
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}


@T.prim_func
def scaled(A: T.Tensor((M, N), "float64"), factor: T.float64, B: T.Tensor((M, N), "float64")):
    with T.Kernel(M) as i:
        for j in T.Parallel(N):
            B[i, j] = A[i, j] * A[i, j] * factor


@T.prim_func
def scaled_backward(A: T.Tensor((M, N), "float64"), factor: T.float64, DB: T.Tensor((M, N), "float64"),
                    DA: T.Tensor((M, N), "float64")):
    with T.Kernel(M) as i:
        for j in T.Parallel(N):
            DA[i, j] = 2.0 * A[i, j] * DB[i, j] * factor


corner = helve.parse("""
M = T.dyn("M")
N = T.dyn("N")

@T.prim_func
def corner(A: T.Tensor((M, N), "float32"), n: T.int32,
           B: T.Tensor((T.min(M, N) + T.index(n), (N + 3) // 4), "float32"), C: T.Tensor((M,), "int32")):
    with T.Kernel(M) as i:
        C[i] = 7
    with T.Kernel(T.min(M, N) + T.index(n)) as i:
        for j in T.Parallel((N + 3) // 4):
            B[i, j] = 3.0
""")


@T.prim_func
def add_to(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
    with T.Kernel(N) as i:
        B[i] = B[i] + A[i]


def softmax(x, scale: float = 1.0):
    rows, columns = x.shape

    @T.prim_func
    def main(X: T.Tensor((rows, columns), x.dtype), Y: T.Tensor((rows, columns), x.dtype)):
        with T.Kernel(rows) as r:
            row = T.alloc_fragment((columns,), x.dtype)
            one = T.alloc_fragment((1,), x.dtype)
            T.copy(X[r, :], row)
            T.reduce_max(row, one, dim=0)
            for j in T.Parallel(columns):
                row[j] = T.exp((row[j] - one[0]) * scale)
            T.reduce_sum(row, one, dim=0)
            for j in T.Parallel(columns):
                Y[r, j] = row[j] / one[0]
    return main


def softmax_backward(y, dy, scale: float = 1.0):
    rows, columns = y.shape

    @T.prim_func
    def main(Y: T.Tensor((rows, columns), y.dtype), DY: T.Tensor((rows, columns), y.dtype),
             DX: T.Tensor((rows, columns), y.dtype)):
        with T.Kernel(rows) as r:
            row = T.alloc_fragment((columns,), y.dtype)
            one = T.alloc_fragment((1,), y.dtype)
            for j in T.Parallel(columns):
                row[j] = Y[r, j] * DY[r, j]
            T.reduce_sum(row, one, dim=0)
            for j in T.Parallel(columns):
                DX[r, j] = scale * Y[r, j] * (DY[r, j] - one[0])
    return main


def doubles(*shape, grad=True):
    generator = torch.Generator().manual_seed(len(shape))
    return torch.randn(*shape, dtype=torch.float64, generator=generator).requires_grad_(grad)


def test_a_function_becomes_an_operator():
    op = helve.torch.op("test_helve::scaled", scaled, out="B", backward=scaled_backward)
    assert op is torch.ops.test_helve.scaled.default
    assert str(op._schema) == "test_helve::scaled(Tensor A, float factor) -> Tensor"
    a = doubles(3, 5)
    torch.testing.assert_close(op(a, 2.0), 2 * a * a)
    torch.testing.assert_close(torch.ops.test_helve.scaled(A=a.detach(), factor=0.5), 0.5 * a.detach() ** 2)
    assert torch.autograd.gradcheck(lambda a: op(a, 1.5), a)
    torch.library.opcheck(op, (a, 2.0))
    torch.library.opcheck(torch.ops.test_helve.scaled_backward.default, (a.detach(), 2.0, a.detach()))
    op(a.t(), 2.0).sum().backward()  # neither the input nor the gradient is contiguous
    torch.testing.assert_close(a.grad, 4 * a.detach())


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_one_graph_serves_all_sizes(backend):
    op = helve.torch.op("test_helve::scaled", scaled, out="B", backward=scaled_backward)
    graphs = []

    def count(graph, inputs):
        graphs.append(graph)
        return torch._dynamo.lookup_backend(backend)(graph, inputs)

    compiled = torch.compile(lambda a: op(a.cos(), 3.0) + 1, backend=count, fullgraph=True, dynamic=True)
    for shape in ((3, 5), (4, 7), (9, 2)):
        a = doubles(*shape)
        torch.testing.assert_close(compiled(a), 3 * a.cos() ** 2 + 1)
        gradient, = torch.autograd.grad(compiled(a).sum(), a)
        torch.testing.assert_close(gradient, -6 * (a.cos() * a.sin()).detach())
    assert len(graphs) == 1


def test_extents_of_results_follow_from_the_inputs():
    op = helve.torch.op("test_helve::corner", corner, out=("B", "C"))
    assert str(op._schema) == "test_helve::corner(Tensor A, SymInt n) -> (Tensor, Tensor)"
    for shape in ((3, 9), (6, 2)):
        b, c = op(torch.zeros(shape), 4)
        assert b.shape == (min(shape) + 4, (shape[1] + 3) // 4) and (b == 3).all()
        assert c.shape == shape[:1] and c.dtype == torch.int32 and (c == 7).all()
    torch.library.opcheck(op, (torch.zeros(3, 9), 4))
    compiled = torch.compile(lambda a, n: op(a, n), backend="aot_eager", fullgraph=True, dynamic=True)
    assert compiled(torch.zeros(3, 9), 4)[0].shape == (7, 3) and compiled(torch.zeros(9, 6), 2)[0].shape == (8, 2)


@T.prim_func
def two_results(A: T.Tensor((M, N), "float64"), W: T.Tensor((N,), "float64"), B: T.Tensor((M, N), "float64"),
                C: T.Tensor((M, N), "float64")):
    with T.Kernel(M) as i:
        for j in T.Parallel(N):
            B[i, j] = T.exp(A[i, j])
            C[i, j] = A[i, j] * W[j]


@T.prim_func
def two_results_backward(B: T.Tensor((M, N), "float64"), w: T.Tensor((N,), "float64"),
                         grad_B: T.Tensor((M, N), "float64"), d_C: T.Tensor((M, N), "float64"),
                         dA: T.Tensor((M, N), "float64")):
    with T.Kernel(M) as i:
        for j in T.Parallel(N):
            dA[i, j] = B[i, j] * grad_B[i, j] + w[j] * d_C[i, j]


def test_a_gradient_in_python():
    def setup(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.factor = inputs[1]

    op = helve.torch.op("test_helve::python", scaled, out="B", setup_context=setup,
                        backward=lambda ctx, db: (2 * ctx.saved_tensors[0] * ctx.factor * db, None))
    a = doubles(3, 5)
    assert torch.autograd.gradcheck(lambda a: op(a, 1.5), a) and torch.autograd.gradgradcheck(lambda a: op(a, 1.5), a)
    torch.library.opcheck(op, (a, 2.0))


def test_gradients_of_several_results():
    op = helve.torch.op("test_helve::two", two_results, out=("B", "C"), backward=two_results_backward)
    a, w = doubles(3, 5), doubles(5, grad=False)
    assert torch.autograd.gradcheck(lambda a: op(a, w), a)
    gradient, = torch.autograd.grad(op(a, w)[1].sum(), a)  # the other result counts as 0
    torch.testing.assert_close(gradient, w.expand(3, 5))
    w.requires_grad_()
    b, c = op(a, w)
    assert torch.autograd.grad((b + c).sum(), (a, w), allow_unused=True)[1] is None
    torch.library.opcheck(op, (a, w.detach()))


def test_what_is_written_is_declared():
    op = helve.torch.op("test_helve::add_to", add_to)
    assert str(op._schema) == "test_helve::add_to(Tensor A, Tensor(a1!) B) -> ()"
    a, b = torch.ones(4), torch.zeros(4)
    assert op(a, b) is None and b.tolist() == [1.0] * 4 and b._version > 0
    torch.library.opcheck(op, (a, b))

    @torch.compile(backend="aot_eager", fullgraph=True)
    def twice(a):
        b = torch.zeros_like(a)
        op(a, b)
        op(a, b)
        return b * 10

    assert twice(a).tolist() == [20.0] * 4
    with pytest.raises(helve.Error) as caught:
        op(a, torch.zeros(8)[::2])
    assert caught.value.code.startswith("HV06")


def test_a_builder_becomes_an_operator():
    backward = helve.torch.op("test_helve::softmax_backward", softmax_backward, out="DX")
    op = helve.torch.op("test_helve::softmax", softmax, out="Y", backward=backward)
    assert str(op._schema) == "test_helve::softmax(Tensor x, float scale=1.) -> Tensor"
    x = doubles(3, 8)
    for scale in (1.0, 0.5):
        torch.testing.assert_close(op(x, scale), torch.softmax(x * scale, 1))
    torch.testing.assert_close(op(x.detach().float()), torch.softmax(x.detach().float(), 1))
    assert torch.autograd.gradcheck(lambda x: op(x, 0.5), x)
    torch.library.opcheck(op, (x,))
    torch.library.opcheck(op, (x, 0.5))
    compiled = torch.compile(op, backend="aot_eager", fullgraph=True)
    for rows in (2, 3):
        torch.testing.assert_close(compiled(x[:rows]), torch.softmax(x[:rows], 1))


def test_a_jit_function_and_a_schedule_are_kernels():
    schedule = helve.Schedule(scaled)
    for n, kernel in enumerate((helve.jit(scaled, out="B"), helve.jit(schedule, out="B", target="interp"))):
        op = helve.torch.op(f"test_helve::kind{n}", kernel)
        assert op(torch.ones(1, 2, dtype=torch.float64), 4.0).tolist() == [[4.0, 4.0]]
    op = helve.torch.op("test_helve::kind_jit", helve.jit(softmax, out="Y"))
    torch.testing.assert_close(op(torch.zeros(1, 4)), torch.full((1, 4), 0.25))
    assert helve.torch.op("test_helve::by_schedule", schedule, out="B")(doubles(1, 1, grad=False), 0.0).item() == 0


def test_a_name_is_taken_again():
    """As a cell of a notebook that is run again."""
    first = helve.torch.op("test_helve::again", add_to)
    second = helve.torch.op("test_helve::again", scaled, out="B")
    assert first is not second and torch.ops.test_helve.again.default is second
    assert second(torch.ones(1, 1, dtype=torch.float64), 3.0).item() == 3


def test_results_have_the_device_of_fake_tensors():
    op = helve.torch.op("test_helve::scaled", scaled, out="B")
    with torch._subclasses.FakeTensorMode():
        made = op(torch.empty(3, 4, dtype=torch.float64, device="cuda"), 1.0)
        assert made.device.type == "cuda" and made.shape == (3, 4)
        normed = helve.torch.rms_norm(torch.empty(2, 3, 8, device="cuda", dtype=torch.bfloat16),
                                      torch.empty(8, device="cuda", dtype=torch.bfloat16))
        assert normed.device.type == "cuda" and normed.dtype == torch.bfloat16 and normed.shape == (2, 3, 8)
    with torch.device("meta"):
        assert op(torch.empty(3, 4, dtype=torch.float64), 1.0).shape == (3, 4)


def text_of(call):
    """The rendered error of a call, without the place in front of the line."""
    with pytest.raises(helve.Error) as caught:
        call()
    assert caught.value.filename == __file__
    return re.sub(r"\n *--> .*\n *\|\n.*\n.*(?=\n|$)", "", str(caught.value))


@pytest.mark.parametrize(("call", "message"), [
    (lambda: helve.torch.row_sums((4, 8)), "'helve.torch.row_sums' cannot take (4, 8) for 'x': it is no tensor\n"
     "help: pass a tensor"),
    (lambda: helve.torch.rms_norm(torch.ones(2, 8), torch.ones(8), "small"),
     "'helve.torch.rms_norm' cannot take 'small' for 'eps': it is no number\nhelp: pass a number"),
    (lambda: helve.torch.gemm(torch.ones(2, 8), torch.ones(8, 2), transpose_a="yes"),
     "'helve.torch.gemm' cannot take 'yes' for 'transpose_a': it is no truth value\nhelp: pass a truth value"),
], ids=["tensor", "number", "truth value"])
def test_arguments_of_other_types_are_refused(call, message):
    assert text_of(call) == f"error[HV0108]: {message}"


def test_a_dtype_that_pytorch_lacks_is_refused(monkeypatch):
    monkeypatch.delattr(torch, "int4")
    assert text_of(lambda: helve.torch.op("test_helve::a", half, out="B")) == """\
error[HV0108]: 'helve.torch.op' cannot take 'test_helve::a' for 'kernel': 'A' is int4, which PyTorch does not have
help: give the parameter a dtype of PyTorch"""


@T.prim_func
def half(A: T.Tensor((N,), "int4"), B: T.Tensor((N,), "int32")):
    with T.Kernel(N) as i:
        B[i] = T.cast(A[i], "int32")


numbers = helve.parse("""
@T.prim_func
def numbers(n: T.index, B: T.Tensor((n,), "float32")):
    with T.Kernel(n) as i:
        B[i] = 1.0
""")


@T.prim_func
def unknown(A: T.Tensor((M,), "float32"), B: T.Tensor((N,), "float32")):
    with T.Kernel(N) as i:
        B[i] = A[0]


@T.prim_func
def misnamed(A: T.Tensor((M, N), "float64"), G: T.Tensor((M, N), "float64"), DA: T.Tensor((M, N), "float64")):
    with T.Kernel(M) as i:
        for j in T.Parallel(N):
            DA[i, j] = A[i, j] * G[i, j]


@T.prim_func
def of_nothing(A: T.Tensor((M, N), "float64"), DB: T.Tensor((M, N), "float64"), E: T.Tensor((M, N), "float64")):
    with T.Kernel(M) as i:
        for j in T.Parallel(N):
            E[i, j] = A[i, j] * DB[i, j]


@T.prim_func
def two_of_one(A: T.Tensor((M, N), "float64"), DA: T.Tensor((M, N), "float64"), grad_A: T.Tensor((M, N), "float64")):
    with T.Kernel(M) as i:
        for j in T.Parallel(N):
            DA[i, j] = A[i, j]
            grad_A[i, j] = A[i, j]


@T.prim_func
def in_place(A: T.Tensor((M, N), "float64")):
    with T.Kernel(M) as i:
        for j in T.Parallel(N):
            A[i, j] = A[i, j] * 2.0


def builder_of_lists(x, sizes: list):
    return scaled


def builder_of_constants(n: int):
    return scaled


def writing(x, y):
    @T.prim_func
    def main(A: T.Tensor(x.shape, x.dtype), B: T.Tensor(y.shape, y.dtype), Y: T.Tensor(x.shape, x.dtype)):
        with T.Kernel(1):
            for i in T.Parallel(A.shape[0]):
                B[i] = A[i]
                Y[i] = A[i]
    return main


op = helve.torch.op
REFUSED = {
    "name": (lambda: op("scaled", scaled, out="B"), """\
error[HV0108]: 'helve.torch.op' cannot take 'scaled' for 'name': it is no name of an operator
help: give a namespace and a name, such as "mylib::scale\""""),
    "kernel": (lambda: op("test_helve::a", 3), """\
error[HV0108]: 'helve.torch.op' cannot take 3 for 'kernel': it is no kernel
help: pass a function below @T.prim_func, a compiled kernel, or a function that returns one"""),
    "compiled": (lambda: op("test_helve::a", helve.compile(add_to)), """\
error[HV0108]: 'helve.torch.op' cannot take 'add_to' for 'kernel': it is compiled already, for one target
help: pass the function that it was compiled from, with out= and the options"""),
    "options twice": (lambda: op("test_helve::a", helve.jit(add_to), out="B"), """\
error[HV0108]: 'helve.torch.op' cannot take 'add_to' for 'kernel': it has its outputs and options already
help: leave out= and options out, or pass the function that it was made of"""),
    "no tensor": (lambda: op("test_helve::a", numbers, out="B"), """\
error[HV0108]: 'helve.torch.op' cannot take 'numbers' for 'kernel': none of its inputs is a tensor, by which \
PyTorch chooses a device
help: pass it what it writes, instead of naming that in out="""),
    "extent": (lambda: op("test_helve::a", unknown, out="B"), """\
error[HV0816]: the shape of output 'B' is not known from the inputs: no input gives 'N'
help: give 'N' in the shape of an input, alone, or as a scalar parameter; or leave 'B' out of out=, and pass it"""),
    "read first": (lambda: op("test_helve::a", add_to, out="B"), """\
error[HV0815]: 'B' cannot be an output of 'add_to': it is read before it is written, and a new array has no contents
help: write it first, for example with T.clear(B), or leave it out of out= and pass it"""),
    "gradient's input": (lambda: op("test_helve::a", scaled, out="B", backward=misnamed), """\
error[HV0108]: 'helve.torch.op' cannot take 'G' for 'backward': the gradient's kernel takes it, and 'test_helve::a' \
has nothing of that name: its inputs are A, factor, its outputs B
help: name its parameters after those of the forward kernel, and gradients with a D in front"""),
    "no gradient": (lambda: op("test_helve::a", scaled, out="B", backward=of_nothing), """\
error[HV0108]: 'helve.torch.op' cannot take 'E' for 'backward': the gradient's kernel takes it, and 'test_helve::a' \
has nothing of that name: its inputs are A, factor, its outputs B
help: name its parameters after those of the forward kernel, and gradients with a D in front"""),
    "gradient's result": (lambda: op("test_helve::a", scaled, out="B",
                                     backward=op("test_helve::e", of_nothing, out="E")), """\
error[HV0108]: 'helve.torch.op' cannot take 'E' for 'backward': the gradient's kernel returns it, and it is the \
gradient of no tensor of 'test_helve::a': its inputs are A, factor, its outputs B
help: name results after the forward kernel's inputs, with a D in front"""),
    "two gradients": (lambda: op("test_helve::a", scaled, out="B", backward=two_of_one), """\
error[HV0108]: 'helve.torch.op' cannot take 'grad_A' for 'backward': it is a second gradient of 'A'
help: return one for each input"""),
    "gradient written in place": (lambda: op("test_helve::a", scaled, out="B", backward=op("test_helve::e", in_place)),
                                  """\
error[HV0108]: 'helve.torch.op' cannot take 'test_helve::a_backward' for 'backward': it returns no gradient: its \
inputs are A, factor, its outputs B
help: name a result after an input of the forward kernel, with a D in front"""),
    "gradient in Python": (lambda: op("test_helve::a", scaled, out="B", backward=builder_of_lists), """\
error[HV0108]: 'helve.torch.op' cannot take 'builder_of_lists' for 'backward': it is neither a kernel function nor an \
operator that helve.torch.op made
help: make an operator of it first, by helve.torch.op; with a gradient in Python give setup_context="""),
    "kernel and context": (lambda: op("test_helve::a", scaled, out="B", backward=misnamed, setup_context=print), """\
error[HV0108]: 'helve.torch.op' cannot take 'misnamed' for 'backward': with setup_context= it is a function of Python
help: give both as torch.library.register_autograd takes them, or no setup_context="""),
    "no backward": (lambda: op("test_helve::a", scaled, out="B", setup_context=print), """\
error[HV0108]: 'helve.torch.op' cannot take None for 'backward': with setup_context= it is a function of Python
help: give both as torch.library.register_autograd takes them, or no setup_context="""),
    "gradient of a write": (lambda: op("test_helve::a", add_to, backward=misnamed), """\
error[HV0108]: 'helve.torch.op' cannot take 'misnamed' for 'backward': 'test_helve::a' writes to its inputs, and \
PyTorch has no gradients of such operators
help: make what it writes an output, by out="""),
    "builder's outputs": (lambda: op("test_helve::a", softmax), """\
error[HV0108]: 'helve.torch.op' cannot take 'softmax' for 'kernel': which parameters of its kernels are results is not \
said
help: name them by out="""),
    "builder's parameter": (lambda: op("test_helve::a", builder_of_lists, out="B"), """\
error[HV0108]: 'helve.torch.op' cannot take 'builder_of_lists' for 'kernel': its parameter 'sizes' is annotated list, \
which an operator does not take
help: annotate it with torch.Tensor, int, float, bool or str"""),
    "builder's constants": (lambda: op("test_helve::a", builder_of_constants, out="B"), """\
error[HV0108]: 'helve.torch.op' cannot take 'builder_of_constants' for 'kernel': none of its parameters is a tensor, \
by which PyTorch chooses a device
help: annotate those for tensors with torch.Tensor"""),
    "builder's write": (lambda: op("test_helve::a", writing, out="Y")(torch.ones(2), torch.ones(2)), """\
error[HV0108]: 'helve.torch.op' cannot take 'test_helve::a' for 'kernel': it writes to 'B', and an operator of a \
builder writes to its outputs only
help: name 'B' in out=, or pass a kernel function"""),
    "dtype of a call": (lambda: op("test_helve::a", scaled, out="B")(torch.ones(2, 2), 1.0), """\
error[HV0603]: 'A' is float64, the argument is float32
note: 'A' is declared here
help: convert the argument to float64"""),
    "rank in a graph": (lambda: on_meta(op("test_helve::a", scaled, out="B"), torch.float64, 2), """\
error[HV0604]: 'A' has 2 dimensions, the argument has 1
help: pass a tensor of 2 dimensions"""),
    "dtype in a graph": (lambda: on_meta(op("test_helve::a", scaled, out="B"), torch.int32, 2, 2), """\
error[HV0603]: 'A' is float64, the argument is int32
help: convert the argument to float64"""),
    "a gradient": (lambda: op("test_helve::a", scaled, out="B")(doubles(2, 2), 1.0).sum().backward(), """\
error[HV0108]: 'test_helve::a' cannot take a gradient for 'backward': it has none
help: call it on tensors that require no gradient, or under torch.no_grad(); helve.torch.op takes a kernel for \
gradients as backward="""),
}


def on_meta(operator, dtype, *shape):
    """A call with a tensor without data, as a graph is traced with."""
    return operator(torch.empty(*shape, dtype=dtype, device="meta"), 1.0)


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_operator_is_refused(case):
    call, text = REFUSED[case]
    assert text_of(call) == text


@pytest.mark.parametrize("name", ["aten::relu", "prim::scaled"])
def test_names_of_pytorch_are_refused(name):
    before = torch.relu(torch.tensor(-1.0))
    first, remedy = text_of(lambda: op(name, scaled, out="B")).split("\n")
    assert first.startswith(f"error[HV0108]: 'helve.torch.op' cannot take '{name}' for 'name': PyTorch refuses it: ")
    assert remedy == "help: choose another name" and torch.relu(torch.tensor(-1.0)) == before
