"""kernels.attention_varlen against PyTorch's attention of packed sequences (torch.nn.attention.varlen), in one process.

`python benchmarks/gpu/attention_packed.py` prints, for heads of 64, 128 and 256, full and causal, TFLOP/s of helve and
of torch, which take turns, and their ratio; for sequences of one length also the ratio to kernels.attention, which has
them as one dense tensor and takes turns with helve alone, as clocks depend on what ran before. Lengths: eight of 2048;
32 of random lengths, most of a few hundred tokens, some of thousands. 16 heads, bfloat16. Causal attention counts half
of the operations. Each result is compared with float32 first.
"""

from __future__ import annotations

import argparse
import random
from itertools import pairwise

import torch
from gemm_tensor_cores import compare
from torch.nn.attention.varlen import varlen_attn

import helve
from helve import kernels

HEADS = 16


def random_lengths(count: int = 32) -> list[int]:
    """Lengths of requests: the logarithm is normal, with a median of 665 tokens."""
    rng = random.Random(1)
    return [min(8192, max(1, int(rng.lognormvariate(6.5, 1)))) for _ in range(count)]


def check(q, k, v, o, ends: list[int], causal: bool) -> None:
    for begin, end in pairwise(ends[:9]):
        own = (x[begin:end].float().transpose(0, 1)[None] for x in (q, k, v))
        wanted = torch.nn.functional.scaled_dot_product_attention(*own, is_causal=causal)[0].transpose(0, 1)
        error = (o[begin:end].float() - wanted).abs().max()
        assert error < 2e-2, (begin, end, causal, float(error))


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    print(f"{'head':>4} {'':6} {'lengths':>10} {'helve':>7} {'torch':>7}   TFLOP/s; ratios to torch, to a dense tensor")
    torch.manual_seed(0)
    for lengths in ([2048] * 8, random_lengths()):
        ends = [sum(lengths[:n]) for n in range(len(lengths) + 1)]
        places = torch.tensor(ends, dtype=torch.int32, device="cuda")
        for head in (64, 128, 256):
            q, k, v = (torch.randn(ends[-1], HEADS, head, device="cuda").bfloat16() for _ in range(3))
            o = torch.empty_like(q)
            for causal in (False, True):
                own = helve.compile(kernels.attention_varlen(HEADS, head, causal=causal), target="cuda",
                                    fast_math=True)
                packed = (q, k, v, places, places, max(lengths), o)
                own(*packed)
                check(q, k, v, o, ends, causal)
                window = (-1, 0) if causal else (-1, -1)
                runs = {"helve": lambda own=own, packed=packed: own(*packed),
                        "torch": lambda q=q, k=k, v=v, window=window: varlen_attn(
                            q, k, v, places, places, max(lengths), max(lengths), window_size=window)}
                operations = 4 * head * HEADS * sum(n * n for n in lengths) / (2 if causal else 1)
                rate = {name: operations / t / 1e12 for name, t in compare(runs).items()}
                ratios, label = f"{rate['helve'] / rate['torch']:.2f}", f"{len(lengths)} random"
                if len(set(lengths)) == 1:
                    dense = helve.compile(kernels.attention(HEADS, head, causal=causal), target="cuda", fast_math=True)
                    shape = (len(lengths), lengths[0], HEADS, head)
                    whole = [x.view(shape).transpose(1, 2).contiguous() for x in (q, k, v, o)]
                    seconds = compare({"helve": runs["helve"],
                                       "dense": lambda dense=dense, whole=whole: dense(*whole)})
                    ratios += f" {seconds['dense'] / seconds['helve']:.2f}"
                    label = f"{len(lengths)}x{lengths[0]}"
                print(f"{head:4} {'causal' if causal else 'full':6} {label:>10} {rate['helve']:7.0f} "
                      f"{rate['torch']:7.0f}   {ratios}")


if __name__ == "__main__":
    main()
