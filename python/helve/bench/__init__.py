"""`helve.bench`: how long kernels take, against each other.

A kernel's time depends on what the caches hold and on what the machine does besides, so candidates alternate in one
process, with both states of the caches, and what is told is a median with its spread.
"""

from helve.bench.measure import bench
from helve.bench.results import Results, Timing

__all__ = ["Results", "Timing", "bench"]
