"""Names that a schedule does not have.

People come with the primitives of TVM, Halide and Exo in their fingers; those that are spelled too differently for a
guess by spelling are in this table.
"""

from __future__ import annotations

import sys

from helve import _core, source
from helve.errors import UnknownNameError, suggestion

_STORE = 's.store("C"), the statement that writes a buffer'
_LOOP = 's.loop("i"), by the name of its variable'
_SPLITS = "s.split(loop, factor) for each loop, then s.reorder(...)"

_HABITS = {
    "add_unsafe_guard": "s.specialize(statement, loop, at)",
    "blockize": "s.substitute(statement, function), or s.tensorize(loop, operation) for a tile operation",
    "cache_inplace": "s.cache_read(at, buffer) and s.cache_write(at, buffer)",
    "compute_inline": "s.inline(producer)",
    "compute_root": "nothing: a statement is computed where it stands, until s.compute_at(producer, loop)",
    "decompose_reduction": "s.fission(before), in front of the loop of the reduction",
    "divide_loop": "s.split(loop, factor), or s.divide(loop, parts)",
    "double_buffer": "s.pipeline(loop, stages)",
    "find": "s.loop, s.store, s.text, s.line or s.path",
    "find_loop": _LOOP,
    "get_block": _STORE,
    "get_loops": _LOOP,
    "get_sblock": _STORE,
    "loop_partition": "s.cut(loop, at)",
    "merge": "s.join(first, second)",
    "mod": "s.script(), the program as text",
    "mult_loops": "s.fuse(outer, inner)",
    "reverse_compute_inline": "s.inline(producer)",
    "set_memory": "s.cache_read(at, buffer, scope)",
    "software_pipeline": "s.pipeline(loop, stages)",
    "stage_mem": "s.cache_read(at, buffer) and s.cache_write(at, buffer)",
    "storage_align": "s.pad(buffer, dim, by)",
    "store_at": "s.sink(allocation, loop)",
    "tile": _SPLITS,
    "transform_layout": "s.set_layout(buffer, layout)",
}


def unknown(schedule: type, name: str) -> AttributeError:
    """The error for a name that a schedule does not have, at the line of a user's program.

    It is an AttributeError too, so that Python's own questions (`hasattr`, `copy`) are answered.
    """
    if name.startswith("_"):
        return AttributeError(f"'{schedule.__name__}' object has no attribute '{name}'")
    known = [each for each in vars(schedule) if not each.startswith("_")]
    fixes = [f"in helve: {_HABITS[name]}"] if name in _HABITS else suggestion(name, known, "s.")
    place = source.span_of_call(source.outside(sys._getframe(2))[0])
    arguments = [("function", "helve.Schedule"), ("what", f"method '{name}'"), ("known", ", ".join(known))]
    return UnknownNameError(_core.Diagnostic("ScheduleNothingFound", place, arguments, [], fixes))
