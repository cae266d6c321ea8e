"""What a search found: the fastest kernel, and a table of all candidates.

Candidates that were refused stand in it with the reason, those that time did not suffice for are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from helve.autotune.space import Point
from helve.bench.results import time_text
from helve.errors import shown
from helve.target import Kernel


@dataclass(frozen=True)
class Candidate:
    """One point of the search.

    Attributes:
        point: the builder's keyword values.
        seconds: the median of a call; None if it was refused.
        spread: the distance of the samples' quartiles, relative to the median; None if it was refused.
        refused: why there is no kernel, or the kernel cannot be called; empty if it was measured.
        recorded: was it measured by an earlier search?
    """

    point: Point
    seconds: float | None
    spread: float | None
    refused: str = ""
    recorded: bool = False


@dataclass(frozen=True)
class Tuned:
    """The result of `helve.autotune`. `print` shows the table.

    Attributes:
        kernel: the fastest kernel.
        best: its point.
        candidates: all that were tried, the fastest first, refused ones at the end.
        left: points that were not tried, since the time was over.
    """

    kernel: Kernel
    best: Point
    candidates: tuple[Candidate, ...]
    left: int = 0

    def to_dict(self) -> list[dict[str, Any]]:
        """A row for each candidate, for `pandas.DataFrame` or `json`: the point's values by name, `seconds`, `spread`,
        `ratio` (the best's median divided by its own), `refused` and `recorded`."""
        best = self.candidates[0].seconds
        return [{**each.point, "seconds": each.seconds, "spread": each.spread,
                 "ratio": best / each.seconds if best and each.seconds else None, "refused": each.refused,
                 "recorded": each.recorded} for each in self.candidates]

    def __str__(self) -> str:
        names = list(dict.fromkeys(name for each in self.candidates for name in each.point))
        table = [[*names, "median", "spread", "ratio", ""]]
        for each, row in zip(self.candidates, self.to_dict()):
            cells = [shown(each.point[name]) if name in each.point else "" for name in names]
            if each.seconds is None:
                table.append([*cells, "refused", "", "", each.refused])
            else:
                ratio = f"{row['ratio']:.2f}x" if row["ratio"] is not None else ""
                table.append([*cells, time_text(each.seconds), f"{each.spread:.1%}", ratio,
                              "recorded" if each.recorded else ""])
        widths = [max(map(len, column)) for column in list(zip(*table))[:-1]]
        lines = ["  ".join([*(cell.rjust(width) for cell, width in zip(line, widths)), line[-1]]).rstrip()
                 for line in table]
        if self.left:
            lines.append(f"{self.left} {'point was' if self.left == 1 else 'points were'} not tried: the time was over")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)
