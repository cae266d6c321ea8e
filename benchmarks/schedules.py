"""helve's schedules beside those of Exo, Apache TVM and Halide: a product, a blur, and steps that change results.

Run it: ``python benchmarks/schedules.py speed``, ``... illegal``, and ``... steps`` for what the steps of helve's
schedules of products cost, in milliseconds of the processor with the proofs. The other systems are
optional: ``pip install exo-lang==1.0.0 apache-tvm==0.27.0.post1 halide==21.0.0``, best into an environment of their own
whose ``site-packages`` is named by ``--peers``. Speeds are medians of turns in one process, on one core; each result is
compared with NumPy's.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import statistics
import sys
import time
from pathlib import Path

if "speed" in sys.argv:  # read once, when the libraries are loaded
    os.environ.update(OPENBLAS_NUM_THREADS="1", HL_NUM_THREADS="1", TVM_NUM_THREADS="1", OMP_NUM_THREADS="1")

import numpy as np  # noqa: E402

SYSTEMS = ("helve", "exo", "tvm", "halide")
SIZE = 1024  # of the matrices
ROWS = COLUMNS = 2048  # of the blurred image


def load(name: str):
    """The module of a system; none if it is not installed."""
    try:
        return importlib.import_module(f"schedules_of.{name}_system")
    except ImportError as error:
        print(f"{name} is left out: {error}")
        return None


def schedule_lines(function) -> int:
    """Lines of code between the marks."""
    lines = [line.strip() for line in inspect.getsource(function).splitlines()]
    marked = lines[lines.index("# lines of the schedule: begin") + 1 : lines.index("# lines of the schedule: end")]
    return sum(bool(line) and not line.startswith("#") for line in marked)


def medians(calls: dict, rounds: int) -> dict[str, float]:
    """Seconds of the processor a call; each has its own data in the caches when it is timed."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            call()
            start = time.process_time()
            call()
            seconds[name].append(time.process_time() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def aligned(*shape: int) -> np.ndarray:
    """An array that begins at a multiple of 64 bytes, as TVM demands."""
    count = int(np.prod(shape))
    raw = np.empty(count + 16, "float32")
    skip = (-raw.ctypes.data % 64) // 4
    return raw[skip : skip + count].reshape(shape)


def compare(title: str, systems, build, arguments, exact, reference, work: float, unit: str, rounds: int) -> None:
    """Prints a line a system: lines, seconds to schedule and compile, speed, ratio to the reference."""
    calls, notes = {"NumPy": reference} if reference else {}, {}
    for system in systems:
        kernel, scheduled, compiled = build(system)
        arguments[-1][...] = -1
        kernel(*arguments)
        if not np.allclose(arguments[-1], exact, rtol=1e-3, atol=1e-3):
            raise AssertionError(f"{title}: the result of {system.NAME} is wrong")
        notes[system.NAME] = (schedule_lines(getattr(system, f"{title}_schedule")), scheduled, compiled)
        calls[system.NAME] = lambda kernel=kernel: kernel(*arguments)
    found = medians(calls, rounds)
    base = found["NumPy" if reference else systems[0].NAME]
    print(f"\n{title}\n| system | lines | schedule, ms | compile, ms | {unit} | ratio |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, seconds in found.items():
        lines, scheduled, compiled = notes.get(name, (0, 0.0, 0.0))
        cells = [str(lines), f"{scheduled * 1e3:.0f}", f"{compiled * 1e3:.0f}"] if lines else [" ", " ", " "]
        print(f"| {name} | {' | '.join(cells)} | {work / seconds / 1e9:.1f} | {base / seconds:.2f} |")


def speeds(systems, rounds: int) -> None:
    """The product against OpenBLAS, and the blur against helve's."""
    rng = np.random.default_rng(0)
    a, b, c = aligned(SIZE, SIZE), aligned(SIZE, SIZE), aligned(SIZE, SIZE)
    for each in (a, b):
        each[...] = rng.standard_normal(each.shape)
    compare("gemm", systems, lambda system: system.gemm(SIZE), [a, b, c], a.astype("float64") @ b,
            lambda: np.matmul(a, b, out=c), 2.0 * SIZE**3, "GFLOPS", rounds)
    image, out = aligned(ROWS + 2, COLUMNS + 2), aligned(ROWS, COLUMNS)
    image[...] = rng.standard_normal(image.shape)
    first = (image[:, :-2] + image[:, 1:-1] + image[:, 2:]) / 3
    exact = (first[:-2] + first[1:-1] + first[2:]) / 3
    compare("blur", systems, lambda system: system.blur(ROWS, COLUMNS), [image, out], exact, None,
            2.0 * out.nbytes, "GB/s", rounds)


def illegal(systems) -> None:
    """What each system does with each step."""
    from schedules_of.cases import CASES
    from schedules_of.outcome import outcome

    print(f"\n| step | {' | '.join(system.NAME for system in systems)} |\n| --- {'| --- ' * len(systems)}|")
    said = []
    for case in CASES:
        words = []
        for system in systems:
            word, message = outcome(case, getattr(system, case.name), system.REFUSALS)
            words.append(word)
            if message:
                said.append(f"{case.name}, {system.NAME}: {message}")
        print(f"| {case.step} | {' | '.join(words)} |", flush=True)
    print("\n" + "\n".join(said))


def steps(rounds: int) -> None:
    """The median of each step of two schedules of a product whose extents only a call knows, and of s.auto()."""
    from schedules_of.helve_steps import automatic, with_copies, with_loops

    for title, run in (("loops", with_loops), ("three copies", with_copies), ("auto", automatic)):
        taken = [run() for _ in range(rounds)]
        median = [(name, statistics.median(each[n][1] for each in taken)) for n, (name, _) in enumerate(taken[0])]
        total = sum(seconds for _, seconds in median)
        print(f"{title}: {total * 1e3:.1f} ms in {len(median)} steps, the first time "
              f"{sum(seconds for _, seconds in taken[0]) * 1e3:.1f}")
        print("  " + ", ".join(f"{name} {seconds * 1e3:.1f}" for name, seconds in median))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["speed", "illegal", "steps"])
    parser.add_argument("--rounds", type=int, default=15, help="turns of each candidate; the median counts")
    parser.add_argument("--peers", type=Path, help="the site-packages with the other systems")
    options = parser.parse_args()
    if options.peers:
        sys.path.append(str(options.peers))
    if options.what == "steps":
        steps(options.rounds)
        sys.exit()
    present = [module for module in map(load, SYSTEMS) if module]
    if options.what == "illegal":
        illegal(present)
    else:
        import helve

        helve.set_num_threads(1)
        speeds(present, options.rounds)
