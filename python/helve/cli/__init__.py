"""The command `helve`.

A layout on the command line is a question asked in passing; it should not need a script.
"""

from helve.cli.main import app

__all__ = ["app"]
