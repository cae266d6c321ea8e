"""The log of compiles: HELVE_LOG=info has a line for each, HELVE_LOG=debug also what was decided.

Lines go to the logger "helve" of Python's logging, which a program may set up itself in place of the variable.
"""

from __future__ import annotations

import logging
import os

from helve.errors import error

LEVELS = {"info": logging.INFO, "debug": logging.DEBUG}
_LOGGER = logging.getLogger("helve")


def check_log() -> None:
    """Sets the log up as HELVE_LOG says, once, for standard error.

    Raises:
        helve.Error: HV0818 for another value of the variable.
    """
    value = os.environ.get("HELVE_LOG", "")
    if not value or (_LOGGER.handlers and _LOGGER.level == LEVELS.get(value)):
        return
    if value not in LEVELS:
        raise error("LogLevel", value=value)
    if not _LOGGER.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("helve: %(message)s"))
        _LOGGER.addHandler(handler)
        _LOGGER.propagate = False
    _LOGGER.setLevel(LEVELS[value])


def log_compile(kernel) -> None:
    """Logs a kernel that was compiled just now: its target and time; for "debug" also the time of each stage, the
    questions that were left open, the implementations of operations, and what its kernels take of a GPU.
    """
    if not _LOGGER.isEnabledFor(logging.INFO):
        return
    times = kernel.times()
    cached = ", from the cache" if any("cache" in stage for stage, _ in times) else ""
    total = sum(seconds for _, seconds in times) * 1e3
    _LOGGER.info("compiled '%s' for %s in %.1f ms%s", kernel.name, kernel.target, total, cached)
    if not _LOGGER.isEnabledFor(logging.DEBUG):
        return
    for stage, seconds in times:
        _LOGGER.debug("    %8.2f ms  %s", seconds * 1e3, stage)
    open_questions = [proof for proof in kernel.proofs() if proof.verdict == "unknown"]
    for row in (*open_questions, *kernel.schedules(), *kernel.resources()):
        _LOGGER.debug("    %r", row)
