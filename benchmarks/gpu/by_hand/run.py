"""Products and attention by hand, against cuBLAS and cuDNN, on one Hopper GPU.

Run it: ``python benchmarks/gpu/by_hand/run.py [gemm|attention ...]``. Candidates alternate in one process on random
data in [-1, 1], the results are compared with those of a reference, and TFLOP/s are printed with ratios: sustained,
that is many calls one after another, and rested, one call after the level 2 cache was overwritten.
"""

from __future__ import annotations

import math
import statistics
import sys

import torch
from attention import AttentionShape, attention_text
from device import TextKernel, tensor_map
from gemm import GemmShape, gemm_text

SUSTAINED = 12  # calls that follow each other


def seconds_of(calls: dict, rounds: int, repeat: int, flush: torch.Tensor | None) -> dict[str, float]:
    """Median seconds of a call, by turns."""
    samples = {name: [] for name in calls}
    for turn in range(rounds + 1):
        for name, call in calls.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            if flush is not None:
                flush.zero_()
            start.record()
            for _ in range(repeat):
                call()
            end.record()
            torch.cuda.synchronize()
            if turn:
                samples[name].append(start.elapsed_time(end) * 1e-3 / repeat)
    return {name: statistics.median(each) for name, each in samples.items()}


def report(what: str, operations: float, calls: dict, reference: str) -> None:
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    sustained = seconds_of(calls, 9, SUSTAINED, None)
    rested = seconds_of(calls, 9, 1, flush)
    cells = [f"{name} {operations / sustained[name] / 1e12:.0f} ({sustained[reference] / sustained[name]:.3f}), rested "
             f"{operations / rested[name] / 1e12:.0f} ({rested[reference] / rested[name]:.3f})" for name in calls]
    print(f"{what}: " + "; ".join(cells), flush=True)


def uniform(*shape: int) -> torch.Tensor:
    return torch.empty(shape, device="cuda", dtype=torch.float32).uniform_(-1, 1).to(torch.bfloat16)


def error(result: torch.Tensor, expected: torch.Tensor) -> float:
    return ((result.float() - expected).norm() / expected.norm()).item()


SHAPES = {
    "128x256 pair": GemmShape(),
    "128x256": GemmShape(cluster=1),
    "128x128 pair": GemmShape(columns=128, stages=6),
}


def gemm() -> None:
    kernels = {name: (shape, TextKernel(gemm_text(shape), "gemm", shape.shared_bytes, 384))
               for name, shape in SHAPES.items()}
    blocks = torch.cuda.get_device_properties(0).multi_processor_count
    for M, N, K in ((300, 520, 200), (4096, 4096, 4096), (8192, 8192, 8192), (16384, 16384, 16384),
                    (8192, 28672, 4096), (8192, 5120, 5120)):
        a, b = uniform(M, K), uniform(N, K)
        calls = {"cuBLAS": lambda: torch.matmul(a, b.t())}  # noqa: B023
        for name, (shape, kernel) in kernels.items():
            c = torch.full((M, N), float("nan"), device="cuda", dtype=torch.bfloat16)
            maps = (tensor_map(a, (64, shape.rows)), tensor_map(b, (64, shape.columns // shape.cluster)),
                    tensor_map(c, (64, 64)))
            call = kernel.launcher(blocks // shape.cluster * shape.cluster, *maps, M, N, K)
            call()
            rows = slice(max(0, M - 700), M)
            off = error(c[rows], a[rows].float() @ b.float().t())
            if not off < 5e-3:
                print(f"{M}x{N}x{K} {name}: relative error {off}")
            calls[name] = lambda call=call, c=c: call()
        report(f"{M}x{N}x{K}", 2.0 * M * N * K, calls, "cuBLAS")


# By D and causal: the candidates.
ATTENTION = {
    (128, False): [AttentionShape(128, 176), AttentionShape(128, 128, query_slots=2)],
    (128, True): [AttentionShape(128, 128, causal=True, query_slots=2), AttentionShape(128, 176, causal=True)],
    (64, False): [AttentionShape(64, 128, 3, query_slots=2), AttentionShape(64, 192, 2, query_slots=2)],
    (64, True): [AttentionShape(64, 128, 3, causal=True, query_slots=2), AttentionShape(64, 192, 2, causal=True)],
    (256, False): [AttentionShape(256, 80)],
    (256, True): [AttentionShape(256, 80, causal=True)],
}


def attention() -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention as sdpa

    blocks = torch.cuda.get_device_properties(0).multi_processor_count
    for (D, causal), shapes in ATTENTION.items():
        kernels = [(shape, TextKernel(attention_text(shape), "attention", shape.shared_bytes, shape.threads))
                   for shape in shapes]
        for S, batch, heads in ((333, 2, 4), (4096, 4, 2048 // D), (8192, 2, 2048 // D), (16384, 1, 2048 // D)):
            q, k, v = (uniform(batch, S, heads, D) for _ in range(3))
            swapped = [t.transpose(1, 2) for t in (q, k, v)]

            def cudnn(swapped=swapped, causal=causal):
                with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                    return sdpa(*swapped, is_causal=causal)

            calls = {"cuDNN": cudnn}
            expected = None
            if S < 1000:
                expected = sdpa(*[t.float() for t in swapped], is_causal=causal).transpose(1, 2)
            else:
                expected = cudnn().transpose(1, 2).float()
            for shape, kernel in kernels:
                o = torch.full_like(q, float("nan"))
                call = kernel.launcher(
                    min(blocks, -(-S // shape.queries) * heads * batch), tensor_map(q, (64, 1, shape.queries, 1)),
                    tensor_map(k, (64, 1, shape.keys, 1)), tensor_map(v, (64, 1, shape.keys, 1)),
                    tensor_map(o, (64, 1, 64, 1)), S, heads, 1, batch, math.log2(math.e) / math.sqrt(D))
                call()
                off = error(o, expected)
                if not off < 1e-2:
                    print(f"S {S}, D {D}, causal {causal}, {shape}: relative error {off}")
                calls[f"{shape.queries}x{shape.keys}"] = lambda call=call, kept=(o, q, k, v): call()
            del expected
            operations = 4.0 * batch * heads * S * S * D * (0.5 if causal else 1)
            report(f"D {D}{', causal' if causal else ''}, S {S}, {batch} x {heads} heads", operations, calls, "cuDNN")


if __name__ == "__main__":
    for part in sys.argv[1:] or ["gemm", "attention"]:
        {"gemm": gemm, "attention": attention}[part]()
