"""`helve.autotune`: the fastest of the kernels that a builder makes, by measurement.

Every candidate is compiled, compared with the first one's results, and timed; what was found is kept on disk, so that a
search that was stopped goes on where it was.
"""

from helve.autotune.results import Candidate, Tuned
from helve.autotune.tune import autotune

__all__ = ["Candidate", "Tuned", "autotune"]
