"""A line on the terminal that says how far a search is, by rich.

It is shown where standard error is a terminal and rich is installed; a search tells the same without it, at the end.
"""

from __future__ import annotations

import sys
from typing import Any

from helve.autotune.space import refused
from helve.bench.results import time_text


class Progress:
    """To be used in a `with` statement.

    Args:
        title: what is searched.
        total: points.
        wanted: show it? None: where it can be seen.

    Raises:
        helve.Error: HV0108 where it is wanted and rich is not installed.
    """

    def __init__(self, title: str, total: int, wanted: bool | None):
        self._bar: Any = None
        if wanted is False or (wanted is None and not sys.stderr.isatty()):
            return
        try:
            from rich import console, progress
        except ModuleNotFoundError:
            if wanted:
                raise refused(True, "progress", "it is shown by rich, which is missing",
                              'install it, as pip install "helve[tune]", or leave progress= out') from None
            return
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"), progress.BarColumn(), progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(), progress.TextColumn("{task.fields[best]}"),
            console=console.Console(file=sys.stderr), transient=True,
        )
        self._task = self._bar.add_task(title, total=total, best="")

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, seconds: float | None, point: str) -> None:
        """One more point is known; `seconds` of the best so far, at `point`."""
        if self._bar is not None:
            best = f"{time_text(seconds)} by {point}" if seconds is not None else ""
            self._bar.update(self._task, advance=1, best=best)
