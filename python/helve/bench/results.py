"""What a measurement found: times, throughput, and their share of what the machine can do.

The same figures as text, as rows for other tools, and as a picture.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from helve.bench.peaks import Peaks
from helve.errors import error

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (0.0, "ns"))
_SCALES = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


@dataclass(frozen=True)
class Timing:
    """The samples of one candidate with one state of the caches.

    Attributes:
        name: the candidate's.
        cache: "cold" or "warm".
        samples: seconds of one call, each; more than none.
    """

    name: str
    cache: str
    samples: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """The median."""
        return statistics.median(self.samples)

    @property
    def least(self) -> float:
        """Seconds of the fastest sample."""
        return min(self.samples)

    @property
    def spread(self) -> float:
        """The distance of the quartiles, relative to the median: 0.02 is a quiet machine."""
        if len(self.samples) < 2 or not self.seconds:
            return 0.0
        low, _, high = statistics.quantiles(self.samples, n=4, method="inclusive")
        return (high - low) / self.seconds


@dataclass(frozen=True)
class Results:
    """Times of candidates, in the order in which they were given, cold before warm.

    Attributes:
        timings: one for each candidate and state of the caches.
        bytes: what a call moves at least; None if it was not given.
        flops: floating-point operations of a call; None if it was not given.
        dtype: of the operations.
        peaks: of the machine that they ran on.
    """

    timings: tuple[Timing, ...]
    bytes: float | None
    flops: float | None
    dtype: str | None
    peaks: Peaks

    def timing(self, name: str | None = None, cache: str | None = None) -> Timing:
        """One of them, by default of the first candidate, and cold if both were measured.

        Raises:
            helve.Error: HV0108 if there is none.
        """
        for each in self.timings:
            if name in (None, each.name) and cache in (None, each.cache):
                return each
        known = ", ".join(f"{each.name} ({each.cache})" for each in self.timings)
        raise error("BadArgument", function="Results.timing", value=f"'{name}' ({cache})", parameter="name",
                    reason="it was not measured", remedy=f"these were: {known}")

    def seconds(self, cache: str | None = None) -> dict[str, float]:
        """Medians by candidate, with caches that are "cold" or "warm"; by default as `timing` chooses."""
        return {each.name: self.timing(each.name, cache).seconds for each in self.timings}

    def to_dict(self) -> list[dict[str, Any]]:
        """A row for each timing, of values that JSON and data frames hold.

        `name`, `cache`, `seconds` (the median), `least`, `spread`, `rounds`, `ratio` (the first candidate's median
        divided by its own: above 1 is faster), `bytes_per_second`, `share_of_bandwidth`, `flops_per_second` and
        `share_of_peak`, None where they are not known.
        """
        return [self._row(each) for each in self.timings]

    def _row(self, each: Timing) -> dict[str, Any]:
        def rate(amount: float | None, most: float) -> tuple[float | None, float | None]:
            per_second = amount / each.seconds if amount is not None and each.seconds else None
            return per_second, per_second / most if per_second is not None and most else None

        moved, share = rate(self.bytes, self.peaks.bandwidth)
        done, part = rate(self.flops, self.peaks.operations.get(self.dtype or "", 0.0))
        first = self.timing(None, each.cache).seconds
        return {"name": each.name, "cache": each.cache, "seconds": each.seconds, "least": each.least,
                "spread": each.spread, "rounds": len(each.samples),
                "ratio": first / each.seconds if each.seconds else None, "bytes_per_second": moved,
                "share_of_bandwidth": share, "flops_per_second": done, "share_of_peak": part}

    def __str__(self) -> str:
        heads = ["", "cache", "median", "spread", "least", "GB/s", "TFLOP/s", "ratio"]
        table = [heads, *(_cells(row) for row in self.to_dict())]
        if len({each.name for each in self.timings}) < 2:  # nothing to compare with
            table = [line[:-1] for line in table]
        columns = [column for column in zip(*table) if any(column[1:])]
        widths = [max(map(len, column)) for column in columns]
        lines = ("  ".join(cell.ljust(width) if place < 2 else cell.rjust(width)
                           for place, (cell, width) in enumerate(zip(line, widths))) for line in zip(*columns))
        return "\n".join(line.rstrip() for line in lines)

    def __repr__(self) -> str:
        return str(self)

    def plot(self, path: str | PathLike | None = None) -> Any:
        """Bars of the medians, with the quartiles' distance, as a Figure of Matplotlib; written to `path` if given, in
        the format of its ending.

        Raises:
            helve.Error: HV0588 where Matplotlib is not installed, or cannot write there.
        """
        name = Path(path).name if path is not None else "figure"
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
        except ImportError:
            raise error("PictureFormat", name=name, reason="it is drawn by Matplotlib, which is missing",
                        remedy='install it, as pip install "helve[plot]", or print the table') from None
        unit = _unit(max(each.seconds for each in self.timings))
        names = list(dict.fromkeys(each.name for each in self.timings))
        states = list(dict.fromkeys(each.cache for each in self.timings))
        figure = Figure(figsize=(6.4, 1.2 + 0.4 * len(self.timings)), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        for place, state in enumerate(states):
            rows = [self.timing(each, state) for each in names]
            height = 0.8 / len(states)
            axes.barh([y + (place - (len(states) - 1) / 2) * height for y in range(len(names))],
                      [each.seconds * _SCALES[unit] for each in rows], height=height, label=state,
                      xerr=[each.spread * each.seconds * _SCALES[unit] / 2 for each in rows])
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.set_xlabel(unit)
        axes.legend(title="cache")
        if path is not None:
            try:
                figure.savefig(path)
            except (OSError, ValueError) as fault:
                raise error("PictureFormat", name=name, reason=str(fault),
                            remedy="give a file that can be written and ends in .png, .svg or .pdf") from None
        return figure


def _unit(seconds: float) -> str:
    return next(unit for least, unit in _UNITS if seconds >= least)


def time_text(seconds: float) -> str:
    """A time with four digits and its unit: "1.234 ms"."""
    unit = _unit(seconds)
    return f"{seconds * _SCALES[unit]:.4g} {unit}"


def _cells(row: dict[str, Any]) -> list[str]:
    """A row as the table shows it; empty texts for what is not known."""
    def rate(value: float | None, scale: float, share: float | None) -> str:
        if value is None:
            return ""
        return f"{value / scale:.4g}" + (f" ({share:.0%})" if share is not None else "")

    return [row["name"], row["cache"], time_text(row["seconds"]), f"{row['spread']:.1%}", time_text(row["least"]),
            rate(row["bytes_per_second"], 1e9, row["share_of_bandwidth"]),
            rate(row["flops_per_second"], 1e12, row["share_of_peak"]),
            f"{row['ratio']:.2f}x" if row["ratio"] is not None else ""]
