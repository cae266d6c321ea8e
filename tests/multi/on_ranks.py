"""Functions in several processes, by mpirun or TCP: what each of them returned, or the error that it ended with.

    on_ranks(4, "test_file", "function", argument)

A function gets its arguments, returns what JSON can say, and is found in its test file by name.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def on_ranks(count, file, function, *arguments, environment=None, options=(), timeout=120, by="mpi"):
    """What each process answered, by rank: its result, {"error": code, "text": ...} or None if it died."""
    from helve.cli import launch

    if by == "mpi" and launch.find_mpirun() is None:
        pytest.skip("no mpirun")
    with tempfile.TemporaryDirectory() as folder:
        program = [__file__, folder, file.rpartition(".")[2], function, json.dumps(arguments)]
        start, *rest = launch.command_line(count, program) if by == "mpi" else [
            sys.executable, "-m", "helve", "launch", "--tcp", "-n", str(count), *program]
        done = subprocess.run([start, *options, *rest], env={**launch.environment(), "HELVE_NUM_THREADS": "1",
                                                             **(environment or {})},
                              capture_output=True, text=True, timeout=timeout)
        answers = [Path(folder, str(rank)) for rank in range(count)]
        out = [json.loads(each.read_text()) if each.exists() else None for each in answers]
    assert any(each is not None for each in out), done.stdout + done.stderr
    return out


def main(folder, file, function, arguments):
    sys.path[:0] = [str(HERE), str(HERE.parent / "python")]
    spec = importlib.util.spec_from_file_location(file, HERE / f"{file}.py")
    module = sys.modules[file] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    import helve

    rank = next(os.environ[name] for name in ("PMIX_RANK", "OMPI_COMM_WORLD_RANK", "RANK") if name in os.environ)

    def answer(value):
        unready = Path(folder, f"unready-{rank}")
        unready.write_text(json.dumps(value))
        unready.rename(Path(folder, rank))

    try:
        answer(getattr(module, function)(*json.loads(arguments)))
    except helve.Error as fault:
        answer({"error": fault.code, "text": str(fault)})
        raise


if __name__ == "__main__":
    main(*sys.argv[1:])
