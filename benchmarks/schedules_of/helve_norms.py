"""One RMS norm by plain loops, and the schedules that make the kernels of helve.kernels.rms_norm of it.

The tutorial docs/tutorials/norms.md explains each line; benchmarks/gpu/norms_by_schedule.py measures them.
"""

from __future__ import annotations

import helve
from helve import T
from helve.kernels.rows import plan_rows


def rms_norm(N: int, dtype: str, eps: float = 1e-6):
    """Rows over their root mean square, as the formula has it."""
    M = T.dyn("M")

    @T.prim_func
    def rms_norm(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(1):
            for i in T.serial(M):
                total = T.alloc_local((1,), "float32")
                total[0] = 0.0
                for j in T.serial(N):
                    T.update(total[0], T.cast(X[i, j], "float32") * T.cast(X[i, j], "float32"), "add")
                total[0] = T.rsqrt(total[0] * (1.0 / N) + eps)
                for k in T.serial(N):
                    Y[i, k] = X[i, k] * total[0] * W[k]

    return rms_norm


def whole_rows(program, threads: int, check: bool = False) -> helve.Schedule:
    """A block has a row, which stays in registers from the load to the store."""
    s = helve.Schedule(program, check=check)
    s.split("i", 1)
    x, _ = s.cache_read("ii", "X", "fragment")
    w, _ = s.cache_read("ii", "W", "fragment")
    s.unroll("ii")
    s.threads(s.bind("io"), threads)
    _, merge = s.rfactor("j", scope="fragment")
    s.tensorize(merge, "reduce_sum")
    s.tensorize(x, "copy")
    s.tensorize(w, "copy")
    s.parallel("j")
    s.parallel("k")
    return s


def schedule(N: int, dtype: str, eps: float = 1e-6) -> helve.Schedule:
    """The schedule of the form that `helve.kernels.rms_norm` has for such rows."""
    plan = plan_rows(N, dtype, words=3)
    return whole_rows(rms_norm(N, dtype, eps), plan.threads)
