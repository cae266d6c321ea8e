"""Candidates compiled side by side.

Threads compile for the CPU, since a compile holds no lock of Python's. The compiler of CUDA C holds one of its own and
is slow, so that there each thread has a process, which leaves what it compiles in the cache; it starts without the
user's program, which therefore needs no `if __name__ == "__main__"`.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import queue
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from helve import _core
from helve.errors import Error
from helve.notation import NotationFunction
from helve.script.entry import read
from helve.script.prim_func import PrimFunc
from helve.target import Kernel, compile, core_function, declared_outputs

_SERVE = "from helve.autotune.worker import _serve; _serve()"


@dataclass(frozen=True)
class Recipe:
    """How candidates are compiled: the arguments of `helve.compile` besides the function."""

    target: str
    mesh: Any
    out: Any
    options: dict[str, Any]


class Compiler:
    """Compiles several functions at a time; to be used in a `with` statement.

    Args:
        recipe: how.
        jobs: how many at a time.
        processes: does each thread have a process that compiles first? By default for GPUs, if there is a cache.

    Attributes:
        carried: are kernels those of the functions' texts, as processes read them, without the places in the program?
    """

    def __init__(self, recipe: Recipe, jobs: int, processes: bool | None = None):
        self._recipe = recipe
        self._threads = ThreadPoolExecutor(jobs)
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        self._workers: list[_Worker] = []
        self.carried = False
        if recipe.target == "cuda" and _core.cache_limit() > 0 if processes is None else processes:
            self.carried = True
            self._workers = [_Worker() for _ in range(jobs)]
            for worker in self._workers:
                self._idle.put(worker)

    def __enter__(self) -> Compiler:
        return self

    def __exit__(self, *_: Any) -> None:
        for worker in self._workers:
            worker.end()
        self._threads.shutdown(cancel_futures=True)

    def compiled(self, funcs: Sequence[PrimFunc]) -> list[Kernel | str]:
        """For each function the kernel, or why it is refused."""
        return list(self._threads.map(self._one, funcs))

    def _one(self, func: PrimFunc) -> Kernel | str:
        recipe = self._recipe
        if self.carried and not isinstance(func, NotationFunction):  # whose order `compile` chooses
            text = _core.print(core_function(func))
            outputs = declared_outputs(func) or ()
            worker = self._idle.get()
            try:
                reason = worker.ask((text, outputs, recipe))
            finally:
                self._idle.put(worker)
            if reason is not None:
                return reason
            func = function_of(text, outputs)
        try:
            return compile(func, recipe.target, recipe.mesh, out=recipe.out, **recipe.options)
        except Error as fault:
            return reason_of(fault)


def function_of(text: str, outputs: tuple[str, ...]) -> PrimFunc:
    """A candidate's function from its text. What is compiled has the name of the text in it, so that is the same for
    all processes."""
    return PrimFunc(read(text, f"<candidate {hashlib.sha256(text.encode()).hexdigest()[:12]}>"), None, outputs)


class _Worker:
    """One process, started when it is first asked, and again after its end."""

    def __init__(self) -> None:
        self._process: subprocess.Popen | None = None

    def ask(self, job: tuple) -> str | None:
        """Its answer: None, or why the compile is refused."""
        if self._process is None:
            path = os.pathsep.join(entry for entry in sys.path if entry)
            self._process = subprocess.Popen([sys.executable, "-c", _SERVE], stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path})
        try:
            pickle.dump(job, self._process.stdin)
            self._process.stdin.flush()
            return pickle.load(self._process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            status = self._process.wait()
            self._process = None
            return f"the compiler ended with status {status}"

    def end(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process.stdin.close()
            self._process.stdout.close()
            self._process = None


def reason_of(fault: Exception) -> str:
    """Why something is refused, in a line, with its code if it has one."""
    return f"{fault.code}: {fault.message}" if isinstance(fault, Error) else str(fault).partition("\n")[0]


def default_jobs() -> int:
    """As many as there are processors that this process may run on."""
    return len(os.sched_getaffinity(0))
