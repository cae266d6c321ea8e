"""Tensors over a mesh of devices: where their elements are stored.

A distribution is a layout on device axes, so that what has to be communicated follows from two of them.
"""

from helve.dist.distribution import Distribution, distribution

__all__ = ["Distribution", "distribution"]
