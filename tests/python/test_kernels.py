"""helve.kernels: every kernel against its definition in float64, on the CPU and at every stage of the way to a GPU.

A kernel has a form for rows that fit a block's registers and one for rows that pass in chunks; small tuning parameters
make short rows take the second.
"""

import re
import warnings

import kernel_cases as cases
import numpy as np
import pytest
from nvrtc import ARCHITECTURES, assert_compiles, needs_nvrtc

import helve
import helve.testing
from helve import _core, kernels
from helve.kernels.ring import plan_ring
from helve.kernels.rows import plan_rows, plan_waiting_slices

# Rows of several chunks with a short last one, one of which stays on the chip where the kernel keeps any.
LONG = {"threads": 32, "elements": 8}
KEPT = {**LONG, "on_chip": 1200}
# Kernels whose slices of a row pass in pieces when a cluster shares the row.
SHARED = [cases.rms_norm, cases.layer_norm, cases.softmax]
SLICED = {"threads": 32, "elements": 4, "cluster": 4, "clusters": 2}
STREAMED = {**SLICED, "stages": 3}

SMALL = [
    *((case, 5, 77, "bfloat16", {}) for case in cases.BY_ROWS),
    *((case, 3, 600, "float32", KEPT if case in (cases.rms_norm, cases.layer_norm, cases.softmax) else LONG)
      for case in cases.BY_ROWS),
    (cases.softmax_backward, 3, 600, "float32", {**LONG, "on_chip": 2100}),
    *((case, 7, 40, "float16", {"blocks": 2}) for case in cases.BACKWARD),
    *((case, 3, 300, "float32", {**LONG, "blocks": 4}) for case in cases.BACKWARD),
    *((case, 7, 40, "bfloat16", {"blocks": 2, "rows": 1}) for case in cases.BACKWARD),
    *((case, 4, 132, "bfloat16", {"blocks": 3}) for case in cases.BACKWARD),
    *((case, 3, 517, "float32", {"blocks": 2, "stages": 4}) for case in cases.BACKWARD),
    *((case, 5, 300, "float32", {"threads": 32, "elements": 4, "cluster": 2, "clusters": 3}) for case in SHARED),
    *((case, 1, 77, "bfloat16", {"threads": 32, "cluster": 3, "clusters": 2}) for case in SHARED),
    (cases.softmax, 5, 300, "float32", {**STREAMED, "cluster": 2}),
    (cases.softmax, 1, 77, "bfloat16", {"threads": 32, "cluster": 3, "clusters": 2, "stages": 2}),
    *((case, 5, 300, "bfloat16", {**STREAMED, "held": 1}) for case in (cases.rms_norm, cases.layer_norm)),
    (cases.layer_norm, 5, 300, "float32", {**SLICED, "elements": 16, "stages": 2, "held": 2}),
    *((case, 7, 300, "float32", {"threads": 128, "cluster": 1, "clusters": 3})
      for case in (cases.rms_norm, cases.layer_norm)),
    *((case, 5, 150, "float32", {"threads": 32, "cluster": 4, "clusters": 2}) for case in cases.BACKWARD),
    *((case, 1, 77, "bfloat16", {"threads": 32, "cluster": 2, "clusters": 3}) for case in cases.BACKWARD),
    (cases.cross_entropy, 4, 77, "float32", {"ignore": 5}),
    (cases.cross_entropy, 4, 300, "float32", {**LONG, "ignore": 0, "label_dtype": "int32"}),
    (cases.cross_entropy_backward, 5, 77, "bfloat16", {"ignore": 5}),
    (cases.cross_entropy_backward, 5, 77, "float16", {}),
    (cases.cross_entropy_backward, 3, 300, "float32", {"threads": 32, "elements": 4, "label_dtype": "int32"}),
    (cases.rope, 5, 60, "bfloat16", {}),
    (cases.rope, 3, 30, "float32", {"threads": 32}),
    (cases.swiglu, 5, 77, "float16", {"threads": 32, "elements": 2}),
    (cases.swiglu_backward, 3, 136, "bfloat16", {"threads": 32, "elements": 8}),
    (cases.transpose, 19, 40, "bfloat16", {"tile": 16, "threads": 32}),
    (cases.transpose, 24, 40, "float32", {"tile": 16, "threads": 64, "fixed": True}),
    (cases.column_sums, 37, 77, "bfloat16", {"blocks": 6, "rows": 4, "threads": 32}),
]  # fmt: skip


def name_of(value):
    return getattr(value, "__name__", None) or (",".join(f"{k}={v}" for k, v in value.items())
                                                if isinstance(value, dict) else str(value))


small = pytest.mark.parametrize(("case", "M", "N", "dtype", "tuning"), SMALL, ids=name_of)


@small
def test_targets_agree_with_the_definition(case, M, N, dtype, tuning):
    call = case(M, N, dtype, **tuning)
    for target in ("interp", "llvm"):
        arguments = call.arguments()
        helve.compile(call.function, target=target)(*arguments)
        call.check(arguments)


@small
def test_every_stage_towards_a_gpu_means_the_same(case, M, N, dtype, tuning):
    call = case(M, N, dtype, **tuning)
    step = cases.STEP[dtype] + 1e-5
    helve.testing.check_stages(call.function, call.arguments, target="cuda", rtol=step, atol=step)


@pytest.mark.parametrize("dtype", cases.DTYPES)
def test_every_dtype(dtype):
    for case in (cases.rms_norm, cases.softmax):
        call = case(6, 200, dtype)
        arguments = call.arguments()
        helve.compile(call.function)(*arguments)
        call.check(arguments)


@pytest.mark.parametrize("case", cases.ALL, ids=name_of)
@pytest.mark.parametrize("N", [1, 3, 8])
def test_short_rows(case, N):
    for M in (1, 9):
        call = case(M, N, "float32")
        arguments = call.arguments()
        helve.compile(call.function)(*arguments)
        call.check(arguments)


def test_one_compile_serves_any_number_of_rows():
    for tuning in ({}, LONG, SLICED, STREAMED):
        kernel = helve.compile(kernels.softmax(300, **tuning))
        for rows in (0, 1, 2, 31):
            call = cases.softmax(rows, 300, "float32", **tuning)
            arguments = call.arguments()
            kernel(*arguments)
            call.check(arguments)


def test_no_rows_at_all():
    """Sums over nothing are zero."""
    sliced = {"cluster": 2, "clusters": 3}
    for case, N, tuning in [(cases.column_sums, 300, {}), (cases.rms_norm_backward, 300, {}),
                            (cases.rms_norm_backward, 600, {"blocks": 4}), (cases.rms_norm_backward, 300, LONG),
                            (cases.rms_norm_backward, 300, sliced), (cases.layer_norm_backward, 300, sliced)]:
        call = case(0, N, "float32", **tuning)
        arguments = call.arguments()
        helve.compile(call.function)(*arguments)
        call.check(arguments)


def test_torch_agrees():
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional
    x, w, b, dy = (torch.randn(*shape, dtype=torch.float64) for shape in [(9, 333), (333,), (333,), (9, 333)])
    for leaf in (x, w, b):
        leaf.requires_grad_()
    kernel_inputs = [t.detach().float() for t in (x, w, b, dy)]
    normed = functional.layer_norm(x, (333,), w, b)
    gradients = torch.autograd.grad(normed, (x, w, b), dy)
    y, dx, dw, db = (torch.empty(*t.shape) for t in (x, x, w, b))
    helve.compile(kernels.layer_norm(333))(*kernel_inputs[:3], y)
    helve.compile(kernels.layer_norm_backward(333, blocks=4))(kernel_inputs[0], kernel_inputs[1], kernel_inputs[3], dx,
                                                              dw, db)
    for got, wanted in zip((y, dx, dw, db), (normed, *gradients), strict=True):
        torch.testing.assert_close(got.double(), wanted.detach(), rtol=1e-5, atol=1e-5)
    label = torch.tensor([5, -100, *range(7)])
    loss, lse = torch.empty(9), torch.empty(9)
    helve.compile(kernels.cross_entropy(333))(kernel_inputs[0], label, loss, lse)
    wanted = functional.cross_entropy(x.detach(), label, reduction="none")
    torch.testing.assert_close(loss.double(), wanted, rtol=1e-5, atol=1e-5)
    scale, dx = torch.randn(9), torch.empty(9, 333)
    helve.compile(kernels.cross_entropy_backward(333))(kernel_inputs[0], label, lse, scale, dx)
    wanted, = torch.autograd.grad(functional.cross_entropy(x, label, reduction="none"), x, scale.double())
    torch.testing.assert_close(dx.double(), wanted, rtol=1e-5, atol=1e-5)


def test_large_means_do_not_spoil_the_variance():
    for tuning in ({}, LONG, SLICED):
        x = np.random.default_rng(1).standard_normal((2, 600)).astype("float32") + np.float32(4096)
        one, zero = np.ones(600, "float32"), np.zeros(600, "float32")
        y = np.empty_like(x)
        helve.compile(kernels.layer_norm(600, **tuning))(x, one, zero, y)
        X = x.astype(np.float64)
        np.testing.assert_allclose(y, (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 1e-5),
                                   rtol=1e-3, atol=1e-3)


def test_softmax_of_extreme_scores():
    """Masked scores are zero, large ones do not overflow, a row without any score is NaN."""
    for tuning in ({}, LONG, SLICED, STREAMED):
        x = np.full((3, 600), -np.inf, "float32")
        x[0, 5], x[1, 5], x[1, 500] = 7.0, 1e38, 1e38
        y = np.empty_like(x)
        helve.compile(kernels.softmax(600, **tuning))(x, y)
        assert y[0, 5] == 1.0 and y[0].sum() == 1.0
        assert y[1, 5] == y[1, 500] == 0.5 and y[1].sum() == 1.0
        assert np.isnan(y[2]).all()


def test_kernels_are_compiled_once():
    softmax = helve.jit(kernels.softmax, out=1)
    first = softmax(40, "float32")
    assert softmax(40, dtype="float32") is first and softmax(41, "float32") is not first
    assert np.isclose(first(np.zeros((2, 40), "float32")).sum(), 2.0)


def test_plans_cover_the_row():
    for dtype in cases.DTYPES:
        for N in [1, 5, 31, 32, 33, 1000, 1024, 4096, 5000, 8192, 8193, 65536, 131072, 262144, 300001]:
            for words, few in [(2, False), (3, False), (4, True), (6, True)]:
                plan = plan_rows(N, dtype, words, few)
                assert (plan.chunks - 1) * plan.chunk < N <= plan.chunks * plan.chunk
                assert plan.rows == 1 or plan.chunks == 1
                assert plan.kept * plan.chunk * cases.DTYPES[dtype].itemsize <= 112 * 1024 or plan.chunks == 1


@pytest.mark.parametrize(
    "build",
    [
        lambda: kernels.softmax(0),
        lambda: kernels.softmax(8, "float64"),
        lambda: kernels.rms_norm(8, threads=33),
        lambda: kernels.rms_norm(8, rows=0),
        lambda: kernels.layer_norm(8, elements=0),
        lambda: kernels.row_sums(8, on_chip=-1),
        lambda: kernels.cross_entropy(8, label_dtype="uint8"),
        lambda: kernels.cross_entropy_backward(8, label_dtype="uint8"),
        lambda: kernels.rope(1, 3),
        lambda: kernels.rope(1, 4, "int8"),
        lambda: kernels.swiglu(8, "int8"),
        lambda: kernels.swiglu_backward(8, threads=0),
        lambda: kernels.transpose("int8"),
        lambda: kernels.transpose(tile=129),
        lambda: kernels.column_sums(8, "int8"),
        lambda: kernels.column_sums(8, blocks=0),
        lambda: kernels.rms_norm_backward(8, blocks=0),
        lambda: kernels.layer_norm_backward(8, blocks=0),
        lambda: kernels.softmax(8, "float64", cluster=2),
        lambda: kernels.rms_norm(8, cluster=2, threads=33),
        lambda: kernels.layer_norm(8, cluster=2, elements=0),
    ],
)
def test_arguments_out_of_range_are_refused(build):
    with pytest.raises(ValueError):
        build()


OF_ROWS = [kernels.cross_entropy, kernels.layer_norm, kernels.layer_norm_backward, kernels.rms_norm,
           kernels.rms_norm_backward, kernels.softmax, kernels.softmax_backward, kernels.row_sums, kernels.column_sums,
           kernels.swiglu, kernels.swiglu_backward, kernels.cross_entropy_backward]


@pytest.mark.parametrize("builder", OF_ROWS, ids=name_of)
@pytest.mark.parametrize(("args", "named", "message"), [
    (("x",), {}, "N is a whole number of 1 or more, not 'x'"),
    ((64.0,), {}, "N is a whole number of 1 or more, not 64.0"),
    ((None,), {}, "N is a whole number of 1 or more, not None"),
    ((8, ["float32"]), {}, "dtype is one of float32, float16, bfloat16, not ['float32']"),
    ((8,), {"threads": "many"}, "threads is a multiple of 32 up to 1024, not 'many'"),
])  # fmt: skip
def test_arguments_of_another_type_are_refused(builder, args, named, message):
    with pytest.raises(ValueError) as refused:
        builder(*args, **named)
    assert str(refused.value) == message


@pytest.mark.parametrize(("build", "message"), [
    (lambda: kernels.rope("4", 8), "heads is a whole number of 1 or more, not '4'"),
    (lambda: kernels.rope(4, 7), "D is even, not 7"),
    (lambda: kernels.transpose(N="x"), "N is a whole number of 1 or more, not 'x'"),
    (lambda: kernels.transpose(tile=129), "tile is at most 128, not 129"),
    (lambda: kernels.layer_norm(8, eps="small"), "eps is a number, not 'small'"),
    (lambda: kernels.softmax(8, cluster="2"), "2 to 16 blocks of a cluster share a row, not '2'"),
    (lambda: kernels.rms_norm_backward(8, blocks=2.5), "blocks is a whole number of 1 or more, not 2.5"),
    (lambda: kernels.softmax(8, on_chip=-1), "on_chip is a whole number of 0 or more, not -1"),
    (lambda: kernels.rms_norm(8, cluster=2, held=-1), "held is a whole number of 0 or more, not -1"),
])  # fmt: skip
def test_arguments_of_one_builder_are_refused(build, message):
    with pytest.raises(ValueError) as refused:
        build()
    assert str(refused.value) == message


SHARING = [kernels.rms_norm, kernels.layer_norm, kernels.softmax, kernels.rms_norm_backward,
           kernels.layer_norm_backward]


@pytest.mark.parametrize("builder", SHARING, ids=name_of)
@pytest.mark.parametrize(("tuning", "message"), [
    ({"cluster": 0}, "{} to 16 blocks of a cluster share a row, not 0"),
    ({"cluster": 17}, "{} to 16 blocks of a cluster share a row, not 17"),
    ({"cluster": 2, "clusters": 0}, "clusters is a whole number of 1 or more, not 0"),
])  # fmt: skip
def test_clusters_out_of_range_are_refused(builder, tuning, message):
    with pytest.raises(ValueError) as refused:
        builder(1024, **tuning)
    assert str(refused.value) == message.format(2 if builder is kernels.softmax else 1)


@pytest.mark.parametrize(("build", "message"), [
    (lambda: kernels.softmax(262144, "float32", cluster=2),
     "each of 2 blocks has 131072 elements of a row of 262144, where shared memory has room for 57344: cluster is at "
     "least 5"),
    (lambda: kernels.softmax(1 << 21, "bfloat16", cluster=16),
     "each of 16 blocks has 131072 elements of a row of 2097152, where shared memory has room for 114688: no cluster "
     "of up to 16 is enough"),
    (lambda: kernels.rms_norm(262144, "float32", cluster=4),
     "each of 4 blocks has 65536 elements of a row of 262144, which 2 stages of a ring do not hold: cluster is at "
     "least 11"),
    (lambda: kernels.layer_norm(262144, "bfloat16", cluster=4),
     "each of 4 blocks has 65536 elements of a row of 262144, which 2 stages of a ring do not hold: cluster is at "
     "least 6"),
    (lambda: kernels.rms_norm_backward(32768, cluster=2),
     "each of 2 blocks has 16384 elements of a row of 32768, which 512 threads do not hold: cluster is at least 4"),
    (lambda: kernels.layer_norm_backward(131072, cluster=8),
     "each of 8 blocks has 16384 elements of a row of 131072, which 512 threads do not hold: cluster is at least 16"),
    (lambda: kernels.rms_norm(1024, cluster=2, stages=1), "stages is a whole number of 2 or more, not 1"),
    (lambda: kernels.rms_norm_backward(1024, cluster=4, blocks=7),
     "blocks excludes clusters: 7 blocks and clusters of 4 were given"),
    (lambda: kernels.layer_norm_backward(1024, blocks=0),
     "blocks is a whole number of 1 or more, not 0"),
])  # fmt: skip
def test_what_a_cluster_cannot_share_is_refused(build, message):
    with pytest.raises(ValueError) as refused:
        build()
    assert str(refused.value) == message


def test_clusters_cover_the_row():
    for dtype in cases.DTYPES:
        for N in [1, 5, 33, 1000, 8192, 50257, 65536, 131072, 262144]:
            for cluster in range(1, 9):
                for whole in (False, True):
                    try:
                        plan = plan_ring(N, dtype, 2, cluster, whole=whole)
                    except ValueError as refused:
                        assert "cluster" in str(refused) and N > 4096
                        continue
                    assert plan.columns * cluster >= N and plan.threads % 32 == 0 and plan.clusters >= 1
                    assert plan.stages >= 2 and (plan.pieces == 1 or not whole)
                    size = cases.DTYPES[dtype].itemsize
                    assert 2 * plan.stages * plan.columns * size <= 224 * 1024
                try:
                    waiting = plan_waiting_slices(N, dtype, max(cluster, 2))
                except ValueError as refused:
                    assert "cluster" in str(refused) and N > 8192
                    continue
                assert waiting.columns * max(cluster, 2) >= N and waiting.columns % waiting.chunk == 0


def test_what_was_measured_is_the_default():
    """Threads, and clusters or columns at a time, of the sizes that were measured on an H200."""
    def of(plan):
        return plan.threads, plan.chunk

    assert of(plan_waiting_slices(65536, "bfloat16", 4)) == (512, 8192)
    assert of(plan_waiting_slices(131072, "bfloat16", 8, narrow=True)) == (256, 8192)
    assert plan_waiting_slices(262144, "bfloat16", 8).clusters == 512
    for N, cluster, found in [(1024, 1, (32, 1056, 3)), (2048, 1, (64, 528, 3)), (4096, 1, (128, 264, 3)),
                              (8192, 1, (256, 132, 3)), (32768, 8, (128, 45, 3))]:
        plan = plan_ring(N, "bfloat16", 2, cluster, whole=True)
        assert (plan.threads, plan.clusters, plan.stages) == found


# What users run: (builder, its arguments).
LARGE = {
    "rms_norm_1k": (kernels.rms_norm, (1024, "bfloat16")),
    "rms_norm_8k": (kernels.rms_norm, (8192, "bfloat16")),
    "rms_norm_64k": (kernels.rms_norm, (65536, "bfloat16")),
    "rms_norm_odd": (kernels.rms_norm, (5001, "float32")),
    "layer_norm_4k": (kernels.layer_norm, (4096, "float32")),
    "layer_norm_8k": (kernels.layer_norm, (8192, "bfloat16")),
    "layer_norm_16k": (kernels.layer_norm, (16384, "bfloat16")),
    "layer_norm_32k": (kernels.layer_norm, (32768, "bfloat16")),
    "rms_norm_backward_4k": (kernels.rms_norm_backward, (4096, "bfloat16")),
    "rms_norm_backward_32k": (kernels.rms_norm_backward, (32768, "bfloat16")),
    "rms_norm_backward_8k": (kernels.rms_norm_backward, (8192, "bfloat16")),
    "layer_norm_backward_4k": (kernels.layer_norm_backward, (4096, "bfloat16")),
    "layer_norm_backward_32k": (kernels.layer_norm_backward, (32768, "float16")),
    "softmax_4k": (kernels.softmax, (4096, "float32")),
    "softmax_128k": (kernels.softmax, (131072, "bfloat16")),
    "softmax_backward_4k": (kernels.softmax_backward, (4096, "bfloat16")),
    "softmax_backward_32k": (kernels.softmax_backward, (32768, "bfloat16")),
    "cross_entropy_32k": (kernels.cross_entropy, (32768, "bfloat16")),
    "cross_entropy_50257": (kernels.cross_entropy, (50257, "bfloat16")),
    "cross_entropy_backward_32k": (kernels.cross_entropy_backward, (32768, "bfloat16")),
    "cross_entropy_backward_50257": (kernels.cross_entropy_backward, (50257, "bfloat16")),
    "rope": (kernels.rope, (32, 128, "bfloat16")),
    "swiglu": (kernels.swiglu, (11008, "bfloat16")),
    "swiglu_backward": (kernels.swiglu_backward, (11008, "bfloat16")),
    "transpose": (kernels.transpose, ("bfloat16",)),
    "row_sums": (kernels.row_sums, (4096, "bfloat16")),
    "column_sums": (kernels.column_sums, (4096, "bfloat16")),
}

# Rows over the blocks of clusters, for devices that have them: (builder, columns, tuning).
CLUSTERED = {
    "rms_norm_64k_x2": (kernels.rms_norm, 65536, {"cluster": 2, "clusters": 66, "threads": 1024, "stages": 3}),
    "rms_norm_128k_x8": (kernels.rms_norm, 131072,
                         {"cluster": 8, "clusters": 15, "threads": 512, "stages": 4, "held": 1}),
    "rms_norm_256k_x8": (kernels.rms_norm, 262144, {"cluster": 8, "clusters": 15, "threads": 1024, "stages": 3}),
    "layer_norm_64k_x4": (kernels.layer_norm, 65536,
                          {"cluster": 4, "clusters": 30, "threads": 512, "stages": 4, "elements": 16, "held": 2}),
    "layer_norm_128k_x8": (kernels.layer_norm, 131072,
                           {"cluster": 8, "clusters": 15, "threads": 512, "stages": 4, "elements": 16, "held": 2}),
    "layer_norm_256k_x8": (kernels.layer_norm, 262144,
                           {"cluster": 8, "clusters": 15, "threads": 1024, "stages": 2, "elements": 8, "held": 1}),
    "softmax_64k_x4": (kernels.softmax, 65536, {"cluster": 4}),
    "softmax_128k_x8": (kernels.softmax, 131072, {"cluster": 8}),
    "softmax_256k_x8": (kernels.softmax, 262144,
                        {"cluster": 8, "clusters": 15, "threads": 512, "stages": 3, "elements": 16}),
    **{f"{builder.__name__}_{N // 1024}k_x{cluster}": (builder, N, {"cluster": cluster})
       for builder in (kernels.rms_norm_backward, kernels.layer_norm_backward)
       for N, cluster in [(8192, 2), (16384, 8), (32768, 8)]},
}  # fmt: skip


def clustered_form(name):
    builder, N, tuning = CLUSTERED[name]
    return helve.testing.lowering_stages(builder(N, "bfloat16", **tuning), target="cuda", arch="sm_90a")[-1][1]


def clustered_text(name, **options):
    return _core.cuda_source(clustered_form(name), cluster_blocks=8, **options)


@needs_nvrtc
@pytest.mark.parametrize("builder", [kernels.rms_norm, kernels.layer_norm])
def test_rows_of_odd_length_that_stream_stay_in_registers(builder):
    """What is known of a fragment spreads before the division of another loop contradicts it."""
    kernel = helve.compile(builder(50257, "float32", cluster=3), target="cuda", arch="sm_90a")
    found = {row.name: str(row.layout) for row in kernel.layouts()}
    assert found["x"] == "S[(16, 512) : (1@reg, 1@tx)]"


def thread_form(name):
    builder, arguments = LARGE[name]
    return helve.testing.lowering_stages(builder(*arguments), target="cuda")[-1][1]


@pytest.mark.parametrize("name", LARGE)
def test_fragments_are_registers(name):
    """Shared memory holds what a kernel puts there by itself, and the results of warps."""
    in_memory = set(re.findall(r"(\w+) = T.alloc_shared\(", _core.print(thread_form(name))))
    kept = {"x"} if name == "transpose" else {"row", "row_y", "row_dy", "ring_x", "ring_dy", "sums", "mine"}
    assert {re.sub(r"_\d+$", "", buffer) for buffer in in_memory} <= {"warps", *kept}


@needs_nvrtc
@pytest.mark.parametrize("name", LARGE)
def test_gpu_code_keeps_to_its_registers(name, tmp_path, monkeypatch):
    """Spills and arrays in memory would be warnings of the compile."""
    monkeypatch.setenv("HELVE_CACHE_LIMIT", "0")
    builder, arguments = LARGE[name]
    for arch in ARCHITECTURES:
        with warnings.catch_warnings():
            warnings.simplefilter("error", helve.Warning)
            kernel = helve.compile(builder(*arguments), target="cuda", arch=arch)
    assert "__global__" in kernel.source("cuda")


@needs_nvrtc
@pytest.mark.parametrize("name", CLUSTERED)
def test_a_cluster_exchanges_by_pushing_and_does_not_spill(name):
    text, found = clustered_text(name)
    assert found[0]["cluster"] == CLUSTERED[name][2]["cluster"]
    assert not any(kernel["cooperative"] for kernel in found)
    assert "helve_wait_pushed(arrivals" in text
    assert_compiles(text, architectures=("sm_90a",))
