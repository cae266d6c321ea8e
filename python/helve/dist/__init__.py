"""Tensors over a mesh of devices: where their elements are stored, and how they get elsewhere.

A distribution is a layout on device axes, so that what has to be communicated follows from two of them.
"""

from helve.dist.distribution import Distribution, distribution, distribution_of
from helve.dist.processes import init, rank, size
from helve.dist.redistribution import Redistribution, Step, redistribution
from helve.dist.tensor import DistTensor, PreparedRun

__all__ = ["DistTensor", "Distribution", "PreparedRun", "Redistribution", "Step", "distribution", "distribution_of",
           "init", "rank", "redistribution", "size"]
