"""Times candidates against each other in one process.

Candidates alternate, so that what the machine does besides hits all of them alike; medians are compared, never single
runs. A ratio against the named reference is the result; absolute times belong to the machine.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """The median and least seconds of one candidate, and the reference's median divided by its own (above 1 is faster).
    """

    name: str
    seconds: float
    least: float
    ratio: float


def compare(candidates: dict[str, Callable[[], object]], reference: str, rounds: int = 15) -> list[Result]:
    """Runs every candidate once a round for `rounds` rounds after one warm-up round.

    Raises:
        KeyError: `reference` is not a candidate.
    """
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for name, call in candidates.items():
        call()
    for _ in range(rounds):
        for name, call in candidates.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(values) for name, values in times.items()}
    return [Result(name, seconds, min(times[name]), medians[reference] / seconds) for name, seconds in medians.items()]


def print_table(title: str, results: list[Result], bytes_moved: int | None = None) -> None:
    """One line a candidate: milliseconds (median and least), GB/s of the bytes that must move, ratio to the reference.
    """
    print(f"\n{title}")
    for r in results:
        rate = f"{bytes_moved / r.seconds / 1e9:8.2f} GB/s" if bytes_moved else ""
        print(f"  {r.name:32}{r.seconds * 1e3:10.3f} ms {r.least * 1e3:10.3f} ms {rate}  {r.ratio:6.2f}x")


def per_call(call: Callable[[], object], calls: int = 2000, rounds: int = 15) -> float:
    """Median seconds of one call, measured over runs of `calls`."""
    call()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - start) / calls)
    return statistics.median(times)
