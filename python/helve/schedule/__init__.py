"""Schedules: programs with the same results and another order.

A schedule holds a function and changes it by primitives, each proved to keep what is computed; `docs/schedule.md` is
the guide.
"""

from helve.schedule.cursor import Cursor
from helve.schedule.default import default_order
from helve.schedule.schedule import Schedule
from helve.schedule.trace import StepReport, Trace

__all__ = ["Cursor", "Schedule", "StepReport", "Trace", "default_order"]
