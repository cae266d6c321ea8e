"""The command `helve`, also `python -m helve`.

What is asked in passing (a layout, a stage of a kernel, what the machine has) should not need a script.
"""

from helve.cli.main import main

__all__ = ["main"]
