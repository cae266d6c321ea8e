"""Kernels compiled at the call: `helve.jit` and what it makes of functions and of their builders.

A kernel is kept for each specialisation, so that a program names neither the moment of a compile nor the kernels.
"""

from helve.jit.builder import JitBuilder, TensorSpec, spec_of
from helve.jit.function import JitFunction, jit
from helve.jit.options import JitOptions
from helve.jit.store import KernelStore

__all__ = ["JitBuilder", "JitFunction", "JitOptions", "KernelStore", "TensorSpec", "jit", "spec_of"]
