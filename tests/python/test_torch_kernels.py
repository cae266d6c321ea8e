"""The kernel library as operators of PyTorch: results and gradients against PyTorch's own in float64, and graphs."""

import functools
import importlib
import re
import subprocess
import sys

import pytest

import helve

torch = pytest.importorskip("torch")
import helve.torch as ht  # noqa: E402 - it needs torch

F = torch.nn.functional
STEP = {torch.float32: 2.0**-23, torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}
LABELS = torch.tensor([[3, 39, -100], [0, 1, 2]])
COLUMNS = LABELS.clamp(0, 39)


def angles(S, D):
    angle = torch.outer(torch.arange(S, dtype=torch.float64), 1e4 ** (-torch.arange(D // 2) / (D // 2)))
    return angle.cos(), angle.sin()


def turned(x, inverse=False):
    cos, sin = (each[:, None] for each in angles(x.shape[-3], x.shape[-1]))
    left, right = x.chunk(2, dim=-1)
    sin = -sin if inverse else sin
    return torch.cat([left * cos - right * sin, right * cos + left * sin], dim=-1)


def rope(x, **options):
    return ht.rope(x, *(each.float() for each in angles(x.shape[-3], x.shape[-1])), **options)


def reference_gemm(a, b, bias=None, residual=None, activation=None, transpose_a=False, transpose_b=False):
    z = (a.mT if transpose_a else a) @ (b.mT if transpose_b else b)
    z = z if bias is None else z + bias
    z = z if activation is None else getattr(F, activation)(z)
    return z if residual is None else z + residual


# name -> (operator, definition, shapes of its tensors); those that have a gradient.
CASES = {
    "rms_norm": (ht.rms_norm, lambda x, w: F.rms_norm(x, w.shape, w, 1e-6), [(2, 3, 40), (40,)]),
    "rms_norm long": (ht.rms_norm, lambda x, w: F.rms_norm(x, w.shape, w, 1e-6), [(5, 600), (600,)]),
    "rms_norm eps": (lambda x, w: ht.rms_norm(x, w, eps=0.5), lambda x, w: F.rms_norm(x, w.shape, w, 0.5),
                     [(3, 8), (8,)]),
    "layer_norm": (ht.layer_norm, lambda x, w, b: F.layer_norm(x, w.shape, w, b), [(2, 3, 40), (40,), (40,)]),
    "softmax": (ht.softmax, lambda x: x.softmax(-1), [(2, 3, 40)]),
    "softmax of columns": (lambda x: ht.softmax(x, dim=1), lambda x: x.softmax(1), [(2, 5, 4)]),
    "swiglu": (ht.swiglu, lambda a, b: F.silu(a) * b, [(2, 3, 40), (2, 3, 40)]),
    "cross_entropy": (lambda x: ht.cross_entropy(x, LABELS),
                      lambda x: F.cross_entropy(x.flatten(0, 1), LABELS.flatten()), [(2, 3, 40)]),
    "cross_entropy none": (lambda x: ht.cross_entropy(x, COLUMNS.int(), ignore_index=3, reduction="none"),
                           lambda x: F.cross_entropy(x.flatten(0, 1), COLUMNS.flatten(), ignore_index=3,
                                                     reduction="none").view(2, 3), [(2, 3, 40)]),
    "cross_entropy sum": (lambda x: ht.cross_entropy(x, LABELS, reduction="sum"),
                          lambda x: F.cross_entropy(x.flatten(0, 1), LABELS.flatten(), reduction="sum"), [(2, 3, 40)]),
    "rope": (rope, turned, [(2, 3, 5, 2, 8)]),
    "rope back": (functools.partial(rope, inverse=True), functools.partial(turned, inverse=True), [(5, 2, 8)]),
    "transpose": (ht.transpose, lambda x: x.t().clone(), [(7, 9)]),
    "row_sums": (ht.row_sums, lambda x: x.sum(-1), [(2, 3, 40)]),
    "column_sums": (ht.column_sums, lambda x: x.sum((0, 1)), [(2, 3, 40)]),
}
PRODUCTS = {
    "plain": ({}, [(5, 24), (24, 10)]),
    "A transposed": ({"transpose_a": True}, [(24, 5), (24, 10)]),
    "B transposed": ({"transpose_b": True}, [(5, 24), (10, 24)]),
    "both transposed": ({"transpose_a": True, "transpose_b": True}, [(24, 5), (10, 24)]),
    "a batch": ({"transpose_b": True}, [(3, 5, 24), (3, 10, 24)]),
    "bias": ({"transpose_b": True}, [(5, 24), (10, 24), (10,)]),
    "a batch with all": ({"transpose_a": True, "activation": "gelu"}, [(3, 24, 5), (3, 24, 10), (10,), (3, 5, 10)]),
    "bias and residual": ({}, [(5, 24), (24, 10), (10,), (5, 10)]),
    **{activation: ({"activation": activation}, [(5, 24), (24, 10), (10,), (5, 10)])
       for activation in ("relu", "silu", "gelu")},
}


def tensors(shapes, dtype, seed=0):
    """(leaves, the same numbers in float64)."""
    generator = torch.Generator().manual_seed(seed)
    made = [torch.randn(*shape, generator=generator).to(dtype) for shape in shapes]
    return [each.clone().requires_grad_() for each in made], [each.double().requires_grad_() for each in made]


def close(got, wanted, dtype, what=""):
    """Within some roundings of the dtype of the values' size."""
    size = max(1.0, wanted.detach().abs().max().item())
    torch.testing.assert_close(got.double(), wanted, rtol=4 * STEP[dtype], atol=size * (2 * STEP[dtype] + 3e-6),
                               msg=lambda text: f"{what}: {text}")


def check(operator, definition, shapes, dtype):
    """Results and gradients; every result is compared before it is differentiated."""
    given, exact = tensors(shapes, dtype)
    y, wanted = operator(*given), definition(*exact)
    assert y.shape == wanted.shape
    close(y, wanted, dtype, "result")
    dy = torch.randn(wanted.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(9)).to(y.dtype)
    gradients = torch.autograd.grad(y, given, dy)
    for n, (got, right, leaf) in enumerate(zip(gradients, torch.autograd.grad(wanted, exact, dy.double()), given)):
        assert got.dtype == leaf.dtype and got.shape == leaf.shape
        close(got, right, dtype, f"gradient {n}")


@pytest.mark.parametrize("dtype", STEP, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_operators_agree_with_pytorch(name, dtype):
    check(*CASES[name], dtype)


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_agree_with_pytorch(name):
    options, shapes = PRODUCTS[name]
    check(functools.partial(ht.gemm, **options), functools.partial(reference_gemm, **options), shapes, torch.bfloat16)


def test_products_of_other_types():
    (a, b), (A, B) = tensors([(5, 32), (10, 32)], torch.float16)
    close(ht.gemm(a, b, transpose_b=True, dtype=torch.float32), A @ B.mT, torch.float32)
    e = [each.detach().to(torch.float8_e4m3fn) for each in (a, b)]
    scale = torch.tensor([0.5])
    made = ht.gemm(*e, scale=scale, transpose_b=True)
    assert made.dtype == torch.bfloat16
    close(made, 0.5 * e[0].double() @ e[1].double().mT, torch.bfloat16)


def sdpa(q, k, v, causal=False, scale=None):
    """Attention by its definition; the last query is aligned to the last key, and a row without a key is 0."""
    k, v = (each.repeat_interleave(q.shape[1] // each.shape[1], dim=1) for each in (k, v))
    if not causal or q.shape[2] == k.shape[2]:
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)
    seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(k.shape[2] - q.shape[2])
    first = (~seen.any(1)).sum()
    rest = F.scaled_dot_product_attention(q[:, :, first:], k, v, attn_mask=seen[first:], scale=scale)
    return torch.cat([torch.zeros_like(q[:, :, :first]), rest], dim=2)


ATTENTIONS = {
    "plain": ({}, [(2, 2, 70, 64), *[(2, 2, 41, 64)] * 2]),
    "causal": ({"causal": True}, [(1, 2, 72, 64), *[(1, 2, 72, 64)] * 2]),
    "causal, more keys": ({"causal": True}, [(1, 1, 5, 128), *[(1, 1, 150, 128)] * 2]),
    "causal, fewer keys": ({"causal": True}, [(1, 1, 90, 64), *[(1, 1, 20, 64)] * 2]),
    "grouped": ({"causal": True, "scale": 0.2}, [(2, 4, 33, 64), *[(2, 2, 40, 64)] * 2]),
    "head 128": ({}, [(1, 2, 17, 128), *[(1, 1, 33, 128)] * 2]),
    "one query, one key": ({}, [(1, 1, 1, 64)] * 3),
}


@pytest.mark.parametrize(("name", "dtype"), [*((name, torch.float32) for name in ATTENTIONS),
                                             ("grouped", torch.float16), ("grouped", torch.bfloat16),
                                             ("head 128", torch.bfloat16)], ids=str)
def test_attention_agrees_with_pytorch(name, dtype):
    options, shapes = ATTENTIONS[name]
    check(functools.partial(ht.attention, **options), functools.partial(sdpa, **options), shapes, dtype)


def test_attention_of_heads_without_a_gradient():
    (q, k, v), (Q, K, V) = tensors([(1, 2, 7, 256)] * 3, torch.float16)
    with torch.no_grad():
        close(ht.attention(q, k, v, causal=True), sdpa(Q, K, V, causal=True).detach(), torch.float16)


def test_attention_without_queries_or_keys():
    for queries, keys in ((0, 5), (5, 0)):
        q, k, v = (torch.randn(1, 2, n, 64, requires_grad=True) for n in (queries, keys, keys))
        o = ht.attention(q, k, v)
        o.sum().backward()
        assert o.shape == q.shape and not o.any() and not any(each.grad.any() for each in (q, k, v))


@pytest.mark.parametrize("name", ["rms_norm", "layer_norm", "softmax", "swiglu", "cross_entropy", "rope", "gemm",
                                  "attention"])
def test_one_graph_with_gradients(name):
    operator, shapes, dtype = ht.gemm, [(5, 24), (24, 10), (10,)], torch.bfloat16
    if name == "attention":
        operator, shapes = functools.partial(ht.attention, causal=True), [(1, 2, 7, 64)] * 3
    elif name != "gemm":
        operator, _, shapes = CASES[name]
        dtype = torch.float32
    compiled = torch.compile(lambda *given: operator(*(each + 1 for each in given)) * 2, backend="aot_eager",
                             fullgraph=True)
    given, _ = tensors(shapes, dtype)
    y, eager = compiled(*given), operator(*(each + 1 for each in given)) * 2
    assert torch.equal(y, eager)
    dy = torch.randn(y.shape).to(y.dtype)
    for got, wanted in zip(torch.autograd.grad(y, given, dy), torch.autograd.grad(eager, given, dy)):
        assert torch.equal(got, wanted)


OPS = torch.ops.helve
CHECKED = {
    "rms_norm": (OPS.rms_norm, [(2, 3, 8), (8,)], (1e-6,), torch.float32),
    "layer_norm": (OPS.layer_norm, [(2, 3, 8), (8,), (8,)], (1e-5,), torch.float32),
    "softmax": (OPS.softmax, [(2, 3, 8)], (), torch.float32),
    "swiglu": (OPS.swiglu, [(2, 3, 8), (2, 3, 8)], (), torch.float32),
    "cross_entropy": (OPS.cross_entropy, [(2, 3, 40)], (LABELS, -100), torch.float32),
    "rope": (OPS.rope, [(3, 5, 2, 8)], (*(each.float() for each in angles(5, 8)), False), torch.float32),
    "transpose": (OPS.transpose, [(3, 5)], (), torch.float32),
    "row_sums": (OPS.row_sums, [(2, 3, 8)], (), torch.float32),
    "column_sums": (OPS.column_sums, [(2, 3, 8)], (), torch.float32),
    "gemm": (OPS.gemm, [(5, 24), (24, 8)], (None, None, None, "silu", False, False, torch.bfloat16), torch.bfloat16),
    "attention": (OPS.attention, [(1, 2, 3, 64)] * 3, (True, None), torch.float16),
}


@pytest.mark.parametrize("name", CHECKED)
def test_pytorch_finds_nothing_wrong(name):
    operator, shapes, others, dtype = CHECKED[name]
    given, _ = tensors(shapes, dtype)
    torch.library.opcheck(operator.default, (*given, *others), atol=1e-2, rtol=1e-2)


@pytest.mark.parametrize("name", ["rms_norm", "layer_norm", "softmax", "swiglu", "rope"])
def test_gradients_are_those_of_the_result(name):
    """By finite differences, as far as float32 allows."""
    operator, _, shapes = CASES[name]
    given, _ = tensors([tuple(min(extent, 8) for extent in shape) for shape in shapes], torch.float32)
    assert torch.autograd.gradcheck(operator, given, eps=1e-2, atol=1e-2, rtol=1e-2, nondet_tol=0.0)


def test_gradients_of_attention_are_those_of_the_result():
    """By finite differences along random directions: those of single elements are as many as there are products."""
    given, _ = tensors([(1, 2, 3, 64), *[(1, 1, 4, 64)] * 2], torch.float32)
    assert torch.autograd.gradcheck(functools.partial(ht.attention, causal=True), given, eps=1e-2, atol=1e-2,
                                    rtol=1e-2, fast_mode=True, nondet_tol=0.0)


def test_tensors_with_gaps_and_without_elements():
    x, w = torch.randn(6, 4, 8).transpose(0, 1), torch.randn(16)[::2]
    torch.testing.assert_close(ht.rms_norm(x, w), F.rms_norm(x, (8,), w, 1e-6))
    torch.testing.assert_close(ht.softmax(x), x.softmax(-1))
    for shape in ((0, 8), (3, 0, 8)):
        empty = torch.empty(shape, requires_grad=True)
        for made in (ht.rms_norm(empty, w), ht.softmax(empty), ht.swiglu(empty, empty)):
            assert made.shape == shape
            made.sum().backward()
        assert ht.row_sums(empty).shape == shape[:-1] and ht.column_sums(empty).tolist() == [0.0] * 8
    nothing = torch.empty(2, 0, 3, 8)
    assert ht.rope(nothing, torch.empty(0, 4), torch.empty(0, 4)).shape == nothing.shape
    assert ht.cross_entropy(torch.randn(1, 8), torch.tensor([8])).isnan()  # a label that is no column


def test_a_rotation_has_second_derivatives():
    x = torch.randn(3, 2, 8, requires_grad=True)
    assert torch.autograd.gradgradcheck(rope, x, eps=1e-2, atol=1e-2, rtol=1e-2)


def text_of(call):
    """The rendered error of a call, without the place."""
    with pytest.raises(helve.Error) as caught:
        call()
    assert caught.value.filename == __file__
    return re.sub(r"\n *--> .*\n *\|\n.*\n.*(?=\n|$)", "", str(caught.value))


x, h = torch.randn(3, 8), torch.randn(3, 8).half()
REFUSED = {
    "dtype": (lambda: ht.softmax(x.double()), """\
error[HV0108]: 'helve.torch.softmax' cannot take float64[3, 8] for 'x': its dtype is torch.float64
help: convert it to one of torch.float32, torch.float16, torch.bfloat16"""),
    "no row": (lambda: ht.row_sums(torch.tensor(1.0)), """\
error[HV0108]: 'helve.torch.row_sums' cannot take float32[] for 'x': it has no row of elements
help: pass a tensor whose last dimension has elements"""),
    "dtype of the weight": (lambda: ht.rms_norm(x, torch.ones(8).half()), """\
error[HV0108]: 'helve.torch.rms_norm' cannot take float16[8] for 'weight': x is torch.float32
help: convert one of them, as weight.to(x.dtype)"""),
    "shape of the bias": (lambda: ht.layer_norm(x, torch.ones(8), torch.ones(7)), """\
error[HV0108]: 'helve.torch.layer_norm' cannot take float32[7] for 'bias': its shape is another than [8]
help: pass a tensor that fits x"""),
    "labels": (lambda: ht.cross_entropy(x, torch.tensor([1])), """\
error[HV0108]: 'helve.torch.cross_entropy' cannot take int64[1] for 'target': x has rows of shape [3]
help: give each row of x, along its last dimension, a label"""),
    "reduction": (lambda: ht.cross_entropy(x, torch.tensor([1]), reduction="max"), """\
error[HV0108]: 'helve.torch.cross_entropy' cannot take 'max' for 'reduction': it is none
help: give "mean", "sum" or "none\""""),
    "head": (lambda: ht.rope(x, x, x), """\
error[HV0108]: 'helve.torch.rope' cannot take float32[3, 8] for 'x': it is no (..., positions, heads, D) with an even D
help: pass a tensor of these dimensions"""),
    "angles": (lambda: ht.rope(x[:, None], x, x), """\
error[HV0108]: 'helve.torch.rope' cannot take float32[3, 8] for 'cos': x has 3 positions and 8 elements a head
help: pass a tensor of shape [3, 4]"""),
    "matrix": (lambda: ht.transpose(x[0]), """\
error[HV0108]: 'helve.torch.transpose' cannot take float32[8] for 'x': it is no matrix
help: pass a tensor of two dimensions"""),
    "factor": (lambda: ht.gemm(x, x), """\
error[HV0108]: 'helve.torch.gemm' cannot take float32[3, 8] for 'a': its dtype is torch.float32
help: convert it to one of torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2"""),
    "two factors": (lambda: ht.gemm(h, h.bfloat16()), """\
error[HV0108]: 'helve.torch.gemm' cannot take bfloat16[3, 8] for 'b': a is torch.float16
help: convert one of them, as b.to(a.dtype)"""),
    "terms": (lambda: ht.gemm(h, h), """\
error[HV0108]: 'helve.torch.gemm' cannot take float16[3, 8] for 'b': a has 8 terms a sum where b has 3
help: make the extents equal; transpose_a and transpose_b say which is transposed"""),
    "batches": (lambda: ht.gemm(h, h[None]), """\
error[HV0108]: 'helve.torch.gemm' cannot take float16[3, 8] for 'a': b is 3-dimensional, and both are matrices, or \
batches of as many
help: reshape them to two or three dimensions"""),
    "sizes of batches": (lambda: ht.gemm(torch.zeros(2, 3, 8).half(), h[None], transpose_b=True), """\
error[HV0108]: 'helve.torch.gemm' cannot take float16[1, 3, 8] for 'b': a has 2 matrices where b has 1
help: make the extents equal; transpose_a and transpose_b say which is transposed"""),
    "activation": (lambda: ht.gemm(h, h, transpose_b=True, activation="tanh"), """\
error[HV0108]: 'helve.torch.gemm' cannot take 'tanh' for 'activation': it is none of the library
help: give one of relu, silu, gelu, or None"""),
    "dtype of a product": (lambda: ht.gemm(h, h, transpose_b=True, dtype=torch.float64), """\
error[HV0108]: 'helve.torch.gemm' cannot take torch.float64 for 'dtype': results are not of this dtype
help: give one of torch.bfloat16, torch.float16, torch.float32"""),
    "bias of a product": (lambda: ht.gemm(h, h, x[0], transpose_b=True), """\
error[HV0108]: 'helve.torch.gemm' cannot take float32[8] for 'bias': here it is float16[3]
help: convert it, or reshape it"""),
    "what a builder refuses": (lambda: ht.attention(*[torch.zeros(1, 1, 2, 64).half()] * 3, scale=-1.0), """\
error[HV0115]: evaluating 'helve.kernels.attention' failed: scale is a positive number, not -1.0
help: pass what that kernel takes"""),
    "queries": (lambda: ht.attention(h, h, h), """\
error[HV0108]: 'helve.torch.attention' cannot take float16[3, 8] for 'q': it is no (batch, heads, queries, head) with \
heads of 64, 128, 256 elements
help: pass a tensor of these dimensions"""),
    "keys": (lambda: ht.attention(*[torch.zeros(1, n, 2, 64).half() for n in (4, 3, 3)]), """\
error[HV0108]: 'helve.torch.attention' cannot take float16[1, 3, 2, 64] for 'k': q is float16[1, 4, 2, 64]
help: pass (batch, heads_kv, keys, head) of that dtype, where heads_kv divides the heads of q"""),
    "values": (lambda: ht.attention(*[torch.zeros(1, 1, n, 64).half() for n in (4, 3, 2)]), """\
error[HV0108]: 'helve.torch.attention' cannot take float16[1, 1, 2, 64] for 'v': k is float16[1, 1, 3, 64]
help: give both the same shape"""),
    "gradient of attention": (lambda: ht.attention(*[torch.zeros(1, 1, 2, 256, requires_grad=True).half()] * 3)
                              .sum().backward(), """\
error[HV0108]: 'helve::attention' cannot take a gradient for 'backward': heads of 256 elements have none
help: use heads of 64 or 128 elements where gradients are wanted"""),
    "gradient of 8 bits": (lambda: ht.gemm(*[x.to(torch.float8_e5m2).requires_grad_()] * 2, transpose_b=True)
                           .sum().backward(), """\
error[HV0108]: 'helve::gemm' cannot take a gradient for 'backward': products with a scale, and of 8-bit floats, have \
none
help: multiply in bfloat16 or float16 where gradients are wanted"""),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_operator_takes_is_refused(case):
    call, text = REFUSED[case]
    assert text_of(call) == text


def test_graphs_refuse_the_same():
    """The checks are those of tracing, too; PyTorch puts its own error around."""
    compiled = torch.compile(ht.softmax, backend="aot_eager", fullgraph=True)
    with pytest.raises(Exception, match="cannot take float64"):
        compiled(x.double())


WITHOUT = """
import sys
sys.modules["torch"] = None
import helve, helve.kernels
try:
    import helve.torch
except ImportError as fault:
    print(fault)
"""


def test_without_pytorch_the_remedy_is_named():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "helve.torch needs PyTorch, which is not installed: pip install torch\n"


class OnDevice:
    """What the operators ask of a tensor to choose its kernel."""

    device = torch.device("cuda")


def test_a_tensor_of_a_gpu_gets_a_kernel_for_it(monkeypatch):
    options = importlib.import_module("helve.jit.options")
    library = importlib.import_module("helve.torch.library")
    targets = []
    monkeypatch.setattr(options, "compile", lambda func, target, *args, **named: targets.append(target))
    found = library.Kernels(helve.kernels.softmax, "Y")
    found(OnDevice(), 40, "float32")
    found(x, 40, "float32")
    assert targets == ["cuda", "llvm"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_the_kernel_for_one_is_refused():
    library = importlib.import_module("helve.torch.library")
    with pytest.raises(helve.Error) as caught:
        library.Kernels(helve.kernels.softmax, "Y")(OnDevice(), 40, "float32")
    assert re.fullmatch("HV0(803|9..)", caught.value.code)


@pytest.mark.parametrize(("capability", "planned"), [((7, 5), "sm_80"), ((8, 0), "sm_80"), ((8, 9), "sm_89"),
                                                     ((9, 0), "sm_90a"), ((12, 0), "sm_120")])
def test_tiles_are_planned_for_the_device(capability, planned, monkeypatch):
    library = importlib.import_module("helve.torch.library")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert library.architecture(OnDevice()) == planned and library.architecture(x) == "sm_90a"


def test_rows_stay_symbols_in_a_graph():
    graphs = []
    compiled = torch.compile(lambda x, w: ht.rms_norm(x, w) + ht.softmax(x), dynamic=True, fullgraph=True,
                             backend=lambda graph, inputs: graphs.append(graph) or graph)
    for rows, columns in ((2, 8), (3, 8), (5, 12)):
        a, w = torch.randn(rows, columns), torch.randn(columns)
        torch.testing.assert_close(compiled(a, w), F.rms_norm(a, (columns,), w, 1e-6) + a.softmax(-1))
    assert len(graphs) == 1


def test_a_matrix_multiplies_all_rows_in_front():
    """As a linear layer has them; gradients have the shapes of what they belong to."""
    a = torch.randn(2, 3, 16).half().requires_grad_()
    b = torch.randn(8, 16).half().requires_grad_()
    bias, residual = torch.randn(8).half(), torch.randn(2, 3, 8).half()
    c = ht.gemm(a, b, bias, residual, transpose_b=True)
    wanted = torch.nn.functional.linear(a.double(), b.double(), bias.double()) + residual.double()
    torch.testing.assert_close(c.double(), wanted, rtol=2e-3, atol=2e-3)
    c.sum().backward()
    assert a.grad.shape == a.shape and b.grad.shape == b.shape
    assert ht.gemm(a[:0], b, transpose_b=True).shape == (0, 3, 8)


def test_autocast_gives_all_factors_one_dtype():
    """Weights of a model stay float32; PyTorch converts them where it multiplies."""
    x, w, v = torch.randn(4, 16), torch.ones(16, requires_grad=True), torch.randn(8, 16, requires_grad=True)
    with pytest.raises(helve.Error, match="HV0108"):
        ht.rms_norm(x.bfloat16(), w)
    with torch.autocast("cpu", torch.bfloat16):
        y = ht.rms_norm(x.bfloat16(), w)
        z = ht.layer_norm(x.bfloat16(), w, w)
        c = ht.gemm(y, v, transpose_b=True)
        o = ht.attention(*(torch.randn(1, 2, 5, 64) for _ in range(3)))
        sums = ht.gemm(y, v, torch.zeros(8), transpose_b=True, dtype=torch.float32)
        with pytest.raises(helve.Error, match="HV0108"):  # nor does PyTorch convert doubles
            ht.gemm(y, v.double(), transpose_b=True)
    assert {each.dtype for each in (y, z, c, o)} == {torch.bfloat16} and sums.dtype == torch.float32
    torch.testing.assert_close(c.float(), torch.nn.functional.rms_norm(x, (16,), eps=1e-6) @ v.T, rtol=0.05, atol=0.1)
    c.float().sum().backward()
    assert w.grad.dtype == v.grad.dtype == torch.float32


def test_autocast_in_a_graph():
    def step(x, w, v):
        with torch.autocast("cpu", torch.bfloat16):
            return ht.gemm(ht.rms_norm(x, w), v, transpose_b=True)

    given = torch.randn(4, 16).bfloat16(), torch.ones(16), torch.randn(8, 16)
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*given), step(*given))
