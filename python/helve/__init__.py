"""helve, a tensor compiler: tile kernels in Python, machine code for CPUs, GPUs and meshes of both.

The package's front door; what stands here is public, the rest is reached through its own modules.
"""

from helve._core import __version__

__all__ = ["__version__"]
