"""Fuzzes the compiler by hand: `python tests/fuzz/run.py --seconds 600 --seed 1`.

Prints how far it is each minute and failures as they come, in the end what was covered and what failed; failures are
shrunk and kept in tests/fuzz/corpus.
"""

import argparse
import concurrent.futures
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import campaign
import corpus


def tell(text):
    """Prints at once, also to a file."""
    print(text, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120.0, help="how long to run")
    parser.add_argument("--count", type=int, help="how many seeds to run at most, per job")
    parser.add_argument("--seed", type=int, default=None, help="the first seed; the time of day by default")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--shrink", type=float, default=60.0,
                        help="seconds to spend on shrinking each failure; 0 keeps none")
    parser.add_argument("--show", action="store_true", help="print the program of --seed and run it")
    parser.add_argument("--corpus", type=Path, default=corpus.FOLDER, help="where failures are kept")
    arguments = parser.parse_args()
    seed = int(time.time()) % 10**9 if arguments.seed is None else arguments.seed
    if arguments.show:
        import program

        print(program.text(campaign.generate(seed)))
        found = campaign.examine(seed)
        print(found[3] if found[0] == "ran" else found)
        return 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        firsts = [seed + n * 10_000_000 for n in range(arguments.jobs)]
        reports = list(pool.map(lambda first: campaign.run(first, arguments.seconds, arguments.count, tell), firsts))
    failed = 0
    for report in reports:
        print(report.text())
        known = set()
        for failing, failure, _ in report.failures:
            failed += 1
            if arguments.shrink > 0 and failure.layer not in known:
                known.add(failure.layer)
                path = campaign.keep(failing, failure, arguments.corpus, arguments.shrink)
                print(f"kept {path}\n{path.read_text()}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
