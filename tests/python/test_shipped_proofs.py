"""Nothing that the shipped kernels rely on is left unproved.

What only data decides is promised by sorted parameters.
"""

import helve
import pytest
from helve import kernels

NORMS = ["layer_norm", "rms_norm", "softmax", "row_sums", "column_sums", "cross_entropy", "swiglu"]
GRADIENTS = [f"{name}_backward" for name in ("layer_norm", "rms_norm", "softmax", "cross_entropy", "swiglu")]
CASES = {
    "gemm": lambda: kernels.gemm(),
    "gemm of known columns": lambda: kernels.gemm(N=4096, K=4096, bias=True, activation="gelu", residual=True),
    "gemm of batches": lambda: kernels.gemm(batch=True, transpose_A=True, transpose_B=True),
    "gemm in parts": lambda: kernels.gemm(M=64, N=4096, K=14336),
    "gemm of fp8": lambda: kernels.gemm("float8_e4m3", "bfloat16", N=4096, K=4096, transpose_B=True, scale=True),
    "grouped_gemm": lambda: kernels.grouped_gemm(8, scale=True, bias=True),
    "grouped_gemm of known columns": lambda: kernels.grouped_gemm(8, N=2048, K=1024),
    "grouped_gemm of odd columns": lambda: kernels.grouped_gemm(64, N=2050, K=1000, transpose_B=True),
    "gemm_w4a16": lambda: kernels.gemm_w4a16(4096, 4096),
    "rope": lambda: kernels.rope(32, 128, "bfloat16"),
    "transpose": lambda: kernels.transpose("bfloat16"),
    "rms_norm of clusters": lambda: kernels.rms_norm(65536, "bfloat16", cluster=2),
    "rms_norm_backward of clusters": lambda: kernels.rms_norm_backward(65536, "bfloat16", cluster=4),
    **{f"{name} of {n}": lambda name=name, n=n: getattr(kernels, name)(n, "bfloat16")
       for name in [*NORMS, *GRADIENTS] for n in (3584, 50257)},
    **{f"attention {head} {causal}": lambda head=head, causal=causal: kernels.attention(
        16, head, causal=causal, lse=True) for head in (64, 128, 256) for causal in (False, True)},
    **{f"attention_varlen {head} {causal}": lambda head=head, causal=causal: kernels.attention_varlen(
        16, head, causal=causal, lse=True) for head in (64, 256) for causal in (False, True)},
    **{f"attention_backward {causal}": lambda causal=causal: kernels.attention_backward(16, 64, causal=causal)
       for causal in (False, True)},
}


@pytest.mark.parametrize("name", CASES)
def test_everything_is_proved(name):
    proofs = helve.compile(CASES[name](), target="interp").proofs()
    assert [proof for proof in proofs if proof.verdict == "unknown"] == []
    assert any(proof.kind == "race" and proof.verdict == "proved" for proof in proofs)
