"""Rotary position embedding: pairs of a head's elements are turned by an angle that grows with the position.

An element is paired with the one half a head further, as in the models that came after Su et al., "RoFormer", 2021.
"""

from __future__ import annotations

from helve import T
from helve.kernels.rows import check_arguments


def rope(heads: int, D: int, dtype: str = "float32", inverse: bool = False, threads: int = 128, elements: int = 16):
    """Y[b, s, h, :D/2] = X1 * COS[s] - X2 * SIN[s]; Y[b, s, h, D/2:] = X2 * COS[s] + X1 * SIN[s], X1 and X2 the halves
    of a head.

    The kernel takes (X, COS, SIN, Y): X and Y (B, S, heads, D) of `dtype`, COS and SIN (S, D / 2) float32; any batch B
    and length S. It computes in float32 and rounds once.

    Args:
        heads: heads of a position.
        D: elements of a head, even.
        dtype: "float32", "float16" or "bfloat16".
        inverse: turn back; this is the backward pass too, for a rotation's transpose is its inverse.
        threads: threads per block.
        elements: elements of each half that a thread turns.

    Raises:
        ValueError: an argument is out of its range.
    """
    check_arguments(heads=heads, D=D, dtype=dtype, threads=threads, elements=elements)
    if D % 2:
        raise ValueError(f"D is even, not {D}")
    B, S = T.dyn("B"), T.dyn("S")
    half = D // 2
    group = max(1, min(heads, threads * elements // half))  # heads of a block
    sign = -1.0 if inverse else 1.0

    @T.prim_func
    def rope(X: T.Tensor((B, S, heads, D), dtype), COS: T.Tensor((S, half), "float32"),
             SIN: T.Tensor((S, half), "float32"),
             Y: T.Tensor((B, S, heads, D), dtype)):
        with T.Kernel(B, S, T.ceildiv(heads, group), threads=threads) as (b, s, g):
            x1 = T.alloc_fragment((group, half), "float32")
            x2 = T.alloc_fragment((group, half), "float32")
            y = T.alloc_fragment((group, half), "float32")
            cos = T.alloc_fragment((half,), "float32")
            sin = T.alloc_fragment((half,), "float32")
            T.copy(X[b, s, g * group : (g + 1) * group, 0:half], x1)
            T.copy(X[b, s, g * group : (g + 1) * group, half:D], x2)
            T.copy(COS[s, :], cos)
            T.copy(SIN[s, :], sin)
            for h, j in T.Parallel(group, half):
                y[h, j] = x1[h, j] * cos[j] - x2[h, j] * (sign * sin[j])
            T.copy(y, Y[b, s, g * group : (g + 1) * group, 0:half])
            for h, j in T.Parallel(group, half):
                y[h, j] = x2[h, j] * cos[j] + x1[h, j] * (sign * sin[j])
            T.copy(y, Y[b, s, g * group : (g + 1) * group, half:D])

    return rope
