"""kernels.gemm with what follows a product, against torch.nn.functional.linear and what follows it, in one process.

`python benchmarks/gpu/product_epilogues.py` prints microseconds of the product alone and of each that follows it, by
helve with N and K known, and how many times as fast that is as PyTorch, eager and compiled by torch.compile; they take
turns. A is (M, K), weights are (N, K), bfloat16; residuals are (M, N). `--check` compares results with float32 first.
"""

from __future__ import annotations

import argparse

import torch
from gemm_tensor_cores import compare
from torch.nn import functional

import helve
from helve import kernels

SHAPES = [(4096, 4096, 4096), (8192, 14336, 4096), (8192, 4096, 14336), (2048, 5120, 5120)]
EPILOGUES = [{}, {"bias": True}, {"activation": "silu"}, {"bias": True, "activation": "gelu"},
             {"bias": True, "activation": "relu", "residual": True}]
ACTIVATIONS = {None: lambda x: x, "relu": functional.relu, "silu": functional.silu, "gelu": functional.gelu}


def library(bias: bool = False, activation: str | None = None, residual: bool = False):
    """The same by PyTorch; it takes what the kernel takes but the result."""

    def run(a, b, *rest):
        rest = list(rest)
        y = ACTIVATIONS[activation](functional.linear(a, b, rest.pop(0) if bias else None))
        return y + rest.pop(0) if residual else y

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare the results with float32 first")
    options = parser.parse_args()
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    for m, n, k in SHAPES:
        shapes = [(m, k), (n, k), (n,), (m, n)]
        a, b, row, added = (torch.randn(shape, device="cuda").to(torch.bfloat16) for shape in shapes)
        b /= k**0.5  # as weights of a layer
        c = torch.empty_like(added)
        for epilogue in EPILOGUES:
            kernel = helve.compile(kernels.gemm(N=n, K=k, transpose_B=True, **epilogue), target="cuda")
            follows = [t for name, t in (("bias", row), ("residual", added)) if name in epilogue]
            eager = library(**epilogue)
            torch._dynamo.reset()  # else it compiles no more than eight of them
            compiled = torch.compile(eager, dynamic=False)
            if options.check:
                c.fill_(float("nan"))
                kernel(a, b, *follows, c)
                wanted = eager(a[:256].float(), b.float(), *(t.float()[:256] if t is added else t.float()
                                                             for t in follows))
                assert (c[:256].float() - wanted).abs().max() < 0.05, (m, n, k, epilogue)
            arguments = (a, b, *follows)
            times = compare({"helve": lambda: kernel(*arguments, c), "eager": lambda: eager(*arguments),
                             "compiled": lambda: compiled(*arguments)}, burst=0.03)
            ratios = " ".join(f"{times[name] / times['helve']:.2f}" for name in ("eager", "compiled"))
            name = " + ".join(str(value) if key == "activation" else key for key, value in epilogue.items()) or "none"
            print(f"{f'{m} x {n} x {k}':>20} {name:20} {1e6 * times['helve']:7.0f}   {ratios}", flush=True)


if __name__ == "__main__":
    main()
