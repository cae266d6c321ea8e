"""The layout algebra against plain Python, from C++ and from Python, and the rate of apply_many.

Run it after `ninja -C build layout_bench`: ``python benchmarks/layout_bench.py [--build build]``. Plain Python
(plain_layouts.py) is the reference of every ratio; both sides answer the same questions, and their answers are compared
first.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import plain_layouts as plain

from helve import cute
from helve.layout import Layout, S
from helve.layout import tile as tile_axe

A = cute.Layout(((4, 8), (2, 2)), ((32, 1), (16, 8)))
B = cute.Layout((8, 4), (4, 1))
C = cute.Layout((4, (2, 8)), (16, (8, 1)))
TILE = cute.Layout((4, 2), (1, 8))
AXE = Layout.parse("S[(8, 2, 4, 2) : (4@laneid, 1@warpid, 1@laneid, 1)] + R[2 : 4@warpid] + 5@warpid")
BLOCKS = Layout.parse("S[(2, 1, 4, 3, 8) : (96@m, 7@laneid, 24@m, 8@m, 1@m)]")
GEOMETRIC_MEAN = ("composition", "complement", "logical_divide", "logical_product", "right_inverse")


def tuples(layout):
    return layout.shape, layout.stride


def iters(layout):
    """An Axe layout as plain_layouts wants it."""
    named = [[(e, s, axis.name) for e, s, axis in part] for part in (layout.shard, layout.replica)]
    return (*named, {axis.name: value for axis, value in layout.offset.items()})


@dataclass
class Case:
    """One question: its line for layout_bench.cc, the call in helve's Python and in plain Python, and whether they
    agree.
    """

    line: tuple[str, ...]
    helve: Callable[[], object]
    plain: Callable[[], object]
    agree: Callable[[object, object], bool]


def same_layout(ours, theirs):
    """Equal as functions; spellings may differ."""
    size = plain.size(theirs)
    return cute.size(ours) == size and all(ours(i) == plain.offset(theirs, i) for i in range(size))


def same_shard(ours, theirs):
    return [(e, s, axis.name) for e, s, axis in ours.shard] == list(theirs[0])


def cases() -> list[Case]:
    a, b, c, tile, axe, blocks = tuples(A), tuples(B), tuples(C), tuples(TILE), iters(AXE), iters(BLOCKS)
    left, right = S[(4, 8) : (8, 1)], S[(8, 8) : (8, 1)]
    left_iters, right_iters = iters(left), iters(right)
    return [
        Case(("call", str(A), "77"), lambda: A(77), lambda: plain.offset(a, 77), lambda x, y: x == y),
        Case(("coalesce", str(A)), lambda: cute.coalesce(A), lambda: plain.coalesce(a), same_layout),
        Case(("composition", str(C), str(B)), lambda: cute.composition(C, B), lambda: plain.composition(c, b),
             same_layout),
        Case(("complement", str(TILE), "256"), lambda: cute.complement(TILE, 256), lambda: plain.complement(tile, 256),
             same_layout),
        Case(("right_inverse", str(A)), lambda: cute.right_inverse(A), lambda: plain.right_inverse(a), same_layout),
        Case(("logical_divide", str(C), str(TILE)), lambda: cute.logical_divide(C, TILE),
             lambda: plain.logical_divide(c, tile), same_layout),
        Case(("logical_product", str(TILE), str(B)), lambda: cute.logical_product(TILE, B),
             lambda: plain.logical_product(tile, b), same_layout),
        Case(("apply", str(AXE), "77"), lambda: AXE.apply(77), lambda: plain.axe_apply(axe, 77),
             lambda x, y: [{axis.name: v for axis, v in p.items()} for p in x] == y),
        Case(("canonicalize", str(BLOCKS)), BLOCKS.canonicalize, lambda: plain.axe_canonicalize(blocks), same_shard),
        Case(("group", str(BLOCKS), "8,24"), lambda: BLOCKS.group((8, 24)), lambda: plain.axe_group(blocks, (8, 24)),
             lambda x, y: same_shard(x[0], y[0]) and list(x[1]) == y[1]),
        Case(("tile", str(left), "4,8", str(right), "8,8"), lambda: tile_axe(left, (4, 8), right, (8, 8)),
             lambda: plain.axe_tile(left_iters, (4, 8), right_iters, (8, 8)), same_shard),
    ]  # fmt: skip


def cpp_seconds(binary: Path, questions: list[Case]) -> list[float]:
    text = "".join("\t".join(case.line) + "\n" for case in questions)
    done = subprocess.run([binary], input=text, capture_output=True, text=True, check=True)
    return [float(line) * 1e-9 for line in done.stdout.splitlines()]


def print_operations(binary: Path) -> None:
    questions = cases()
    for case in questions:
        ours, theirs = case.helve(), case.plain()
        if not case.agree(ours, theirs):
            raise SystemExit(f"{case.line}: helve says {ours}, plain Python says {theirs}")
    print(f"{'operation':18}{'plain, us':>12}{'C++, us':>12}{'ratio':>9}{'Python, us':>12}{'ratio':>9}")
    ratios: dict[str, tuple[float, float]] = {}
    for case, in_cpp in zip(questions, cpp_seconds(binary, questions), strict=True):
        seconds = helve.bench({"plain": case.plain, "helve": case.helve}, cache="warm", rounds=9).seconds()
        reference, ours = seconds["plain"], seconds["helve"]
        ratios[case.line[0]] = (reference / in_cpp, reference / ours)
        numbers = (f"{reference * 1e6:12.2f}{in_cpp * 1e6:12.4f}{reference / in_cpp:9.0f}"
                   f"{ours * 1e6:12.3f}{reference / ours:9.1f}")
        print(f"{case.line[0]:18}{numbers}")
    for column, name in enumerate(("C++", "Python")):
        mean = math.exp(sum(math.log(ratios[each][column]) for each in GEOMETRIC_MEAN) / len(GEOMETRIC_MEAN))
        print(f"geometric mean over {', '.join(GEOMETRIC_MEAN)}, {name}: {mean:.1f}x")


RATES = {
    "2 iters, powers of two": "S[(2048, 2048) : (1, 2048)]",
    "4 iters, powers of two": "S[(64, 32, 64, 32) : (32, 2048, 1, 65536)]",
    "the same, swizzled": "S[(64, 32, 64, 32) : (32, 2048, 1, 65536)] ^ Swizzle(3, 4, 3)",
    "the same, rows padded": "S[(64, 32, 64, 32) : (33, 2112, 1, 67584)]",
    "4 iters on 2 axes": "S[(64, 32, 64, 32) : (1@laneid, 2048, 1, 65536)]",
    "4 iters and 2 replicas": "S[(64, 32, 64, 32) : (32, 2048, 1, 65536)] + R[2 : 4194304]",
    "4 iters, other extents": "S[(60, 30, 70, 36) : (36, 2160, 64800, 1)]",
}


def print_rates() -> None:
    """Indices a second of apply_many on one core, against a copy of as many integers as it writes."""
    print(f"\n{'apply_many, one core':24}{'indices':>9}{'order':>12}{'M indices/s':>13}{'copy':>8}{'ratio':>7}")
    for count in (1 << 16, 1 << 22):
        orders = {"random": np.random.default_rng(1).integers(0, count, count), "sequential": np.arange(count)}
        for name, text in RATES.items():
            layout = Layout.parse(text)
            for order, indices in orders.items():
                ours, copy = alternate(layout, indices)
                rates = f"{count / ours / 1e6:13.0f}{count / copy / 1e6:8.0f}{copy / ours:7.2f}"
                print(f"{name:24}{count:9}{order:>12}{rates}")


def alternate(layout: Layout, indices: np.ndarray, rounds: int = 15) -> tuple[float, float]:
    """Median seconds of apply_many, and of copying arrays like its outputs into them, in turns."""
    out = layout.apply_many(indices)
    sources = [np.zeros_like(array) for array in out.values()]
    calls = max(1, (1 << 20) // indices.size)
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            layout.apply_many(indices, out=out)
        middle = time.perf_counter()
        for _ in range(calls):
            for array, source in zip(out.values(), sources, strict=True):
                np.copyto(array, source)
        seconds[0].append((middle - start) / calls)
        seconds[1].append((time.perf_counter() - middle) / calls)
    return statistics.median(seconds[0]), statistics.median(seconds[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=Path("build"), help="the CMake build folder with layout_bench")
    print_operations(parser.parse_args().build.resolve() / "src/layout_bench")
    print_rates()


if __name__ == "__main__":
    main()
