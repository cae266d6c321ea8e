"""kernels.attention as a user calls it, without tuning, against torch's scaled_dot_product_attention, in one process.

`python benchmarks/gpu/attention.py` prints, for heads of 64, 128 and 256, full and causal, TFLOP/s of helve and of
torch's cuDNN and flash backends, which take turns, and helve's ratio to each. A hidden size of 2048 and 16384 tokens
in all are cut into sequences of 4096, 8192 and 16384; bfloat16. Causal attention counts half of the operations.
`--check` compares results with float32 first, for one sequence and head. `--tiles` measures other tiles than the plan's
too, each by its rate.
"""

from __future__ import annotations

import argparse

import torch
from gemm_tensor_cores import compare
from torch.nn.attention import SDPBackend, sdpa_kernel

import helve
from helve import kernels

TOKENS, HIDDEN = 16384, 2048
# queries and keys of a tile, threads
TILES = {64: [(192, 128, 384), (128, 176, 256), (192, 96, 384)],
         128: [(128, 144, 256), (128, 160, 256), (128, 176, 256)], 256: [(128, 80, 256), (128, 48, 256)]}
BACKENDS = {"cuDNN": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}


def library(backend: SDPBackend, q, k, v, causal: bool):
    """A call of torch by one backend; torch raises if the backend does not apply."""

    def run():
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    return run


def check(name: str, q, k, v, o, causal: bool) -> None:
    """The last 256 queries of the first sequence's first head, in float32."""
    scores = q[0, 0, -256:].float() @ k[0, 0].float().T / q.shape[-1] ** 0.5
    if causal:
        scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu(k.shape[2] - 255), -torch.inf)
    error = (o[0, 0, -256:].float() - scores.softmax(-1) @ v[0, 0].float()).abs().max()
    assert error < 1e-2, (name, tuple(q.shape), causal, float(error))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare the results with float32 first")
    parser.add_argument("--tiles", action="store_true", help="measure other tiles too")
    options = parser.parse_args()
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    print(f"{'head':>4} {'':6} {'tokens':>6} {'helve':>7} {'cuDNN':>7} {'flash':>7}   TFLOP/s; ratios")
    for head in (64, 128, 256):
        for causal in (False, True):
            heads = HIDDEN // head
            built = {"helve": kernels.attention(heads, head, causal=causal)}
            for queries, keys, threads in TILES[head] if options.tiles else ():
                built[f"{queries}x{keys}"] = kernels.attention(heads, head, causal=causal, queries=queries, keys=keys,
                                                               threads=threads)
            built = {name: helve.compile(each, target="cuda") for name, each in built.items()}
            for tokens in (4096, 8192, 16384):
                shape = (TOKENS // tokens, heads, tokens, head)
                q, k, v = (torch.randn(shape, device="cuda").to(torch.bfloat16) for _ in range(3))
                o = torch.empty_like(q)
                runs = {name: lambda args=(q, k, v, o), kernel=each: kernel(*args) for name, each in built.items()}
                for name, run in runs.items() if options.check else ():
                    o.fill_(float("nan"))
                    run()
                    check(name, q, k, v, o, causal)
                runs.update({name: library(each, q, k, v, causal) for name, each in BACKENDS.items()})
                times = compare(runs, burst=0.03)
                operations = 4 * TOKENS * tokens * HIDDEN / (2 if causal else 1)
                rates = " ".join(f"{operations / times[name] / 1e12:7.0f}" for name in ("helve", *BACKENDS))
                ratios = " ".join(f"{times[name] / times['helve']:.3f}" for name in BACKENDS)
                print(f"{head:>4} {'causal' if causal else 'full':6} {tokens:>6} {rates}   {ratios}", flush=True)
                if options.tiles:
                    print("    " + ", ".join(f"{name} {operations / times[name] / 1e12:.0f}" for name in built))


if __name__ == "__main__":
    main()
