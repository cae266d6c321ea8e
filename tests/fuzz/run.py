"""Fuzzes the compiler by hand: `python tests/fuzz/run.py --seed 1 --until 100001 --seconds 1500 --json summary.json`.

Prints how far it is each minute and failures as they come, in the end what was covered and what failed. A seed that
failed does so again by `python tests/fuzz/run.py --show --seed N`, with the same targets. It needs the built package,
NumPy and ml_dtypes; `--targets cuda` a GPU.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import campaign
import corpus
import engines
import program


def tell(text):
    """Prints at once, also to a file."""
    print(text, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120.0, help="how long to run")
    parser.add_argument("--seed", type=int, default=None, help="the first seed; the time of day by default")
    parser.add_argument("--until", type=int, help="the seed to end before")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes; one for each core by default")
    parser.add_argument("--targets", help="what machine code to run, with commas between: llvm, cuda")
    parser.add_argument("--json", type=Path, help="a file for counts, constructs, and failures with their text")
    parser.add_argument("--shrink", type=float, default=0.0,
                        help="seconds to spend on shrinking one failure of each kind; 0 keeps none")
    parser.add_argument("--show", action="store_true", help="print the program of --seed and run it")
    parser.add_argument("--corpus", type=Path, default=corpus.FOLDER, help="where shrunk failures are kept")
    arguments = parser.parse_args()
    if arguments.targets:
        engines.TARGETS[:] = arguments.targets.split(",")
    seed = int(time.time()) % 10**9 if arguments.seed is None else arguments.seed
    if arguments.show:
        return show(seed)
    count = None if arguments.until is None else arguments.until - seed
    report = campaign.run(seed, arguments.seconds, count, tell, arguments.jobs)
    print(report.text())
    if arguments.json:
        arguments.json.write_text(json.dumps(report.record(), indent=1))
    known = set()
    for failing, failure, _ in report.failures:
        if arguments.shrink > 0 and failure.layer not in known:
            known.add(failure.layer)
            path = campaign.keep(failing, failure, arguments.corpus, arguments.shrink)
            print(f"kept {path}\n{path.read_text()}")
    return 1 if report.failures else 0


def show(seed):
    """One seed, in this process, with all that a campaign does with it."""
    print(program.text(campaign.generate(seed)))
    batch = campaign.on_host.Batch()
    found = campaign.examine(seed, batch)
    failures = [found[3]] if found[0] == "ran" and found[3] else []
    failures += [failure for _, failure, _ in batch.run(lambda seed: None)]
    for failure in failures:
        print(f"{failure.layer}\n{failure.detail}")
    if not failures:
        print("agrees" if found[0] == "ran" else f"undefined: {found[1]}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
