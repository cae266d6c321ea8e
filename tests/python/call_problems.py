"""What a user should never meet: an exception that is no helve.Error, an error without a place, no end.

Campaigns of wrong programs ask it of each.
"""

import signal
import warnings
from contextlib import contextmanager

import helve

SECONDS = 20  # of one program; far beyond what any of them takes


class TooSlow(BaseException):
    """Raised by the clock, so that nothing that handles errors takes it for one."""


@contextmanager
def clock(seconds):
    def ring(*_):
        raise TooSlow

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def problem_of(action, text):
    """What the action raised, if it is nothing that a user should meet; `text` is the program that it is about."""
    try:
        with clock(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            action()
    except helve.Error as error:
        text = str(error)
        if not text.startswith(f"error[{error.code}]: ") or "{" in error.message + error.help and "{" not in text:
            return f"odd text: {text}"
        if error.filename is None and not error.code.startswith("HV06"):
            return f"no place: {text}"
        return None
    except TooSlow:
        return "no end"
    except BaseException as error:  # noqa: BLE001 - that is the test
        return f"{type(error).__module__}.{type(error).__name__}: {error}"
    return None
