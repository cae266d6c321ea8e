"""Names in a kernel: what is bound where, and what Python binds around it.

Inside, names follow blocks; outside, they are compile-time constants of the place where the kernel was defined.
"""

from __future__ import annotations

import builtins
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType
from typing import Any
from collections.abc import Iterator

from helve import _core
from helve.errors import error, suggestion
from helve.language import NAMES
from helve.language.habits import meant

MISSING = object()
# What helve.parse may call besides T: none of these runs code of the program's own.
_SAFE = {name: getattr(builtins, name) for name in ("min", "max", "abs", "range", "len")}


@dataclass(frozen=True)
class Binding:
    """A name of the kernel: its value and what kind of name it is ("parameter", "loop", "variable" or "name").

    The value of a variable, which T.alloc_var makes, is the buffer that holds it.
    """

    value: Any
    kind: str = "name"
    span: _core.Span = field(default_factory=_core.Span)


@dataclass
class Surroundings:
    """The names around a kernel. With `text` nothing but `T` and harmless builtins is known.

    `local_names` are those that Python itself holds local to the kernel: they never mean an outer name.
    """

    tables: list[dict[str, Any]] = field(default_factory=list)
    text: bool = False
    local_names: frozenset[str] = frozenset()

    def find(self, name: str) -> Any:
        """The value of `name` around the kernel, or MISSING."""
        if name not in self.local_names:
            for table in self.tables:
                if name in table:
                    return table[name]
            if self.text:
                return _SAFE.get(name, MISSING)
            return getattr(builtins, name, MISSING)
        return MISSING

    def names(self) -> list[str]:
        """All names that `find` may know, builtins aside."""
        return [name for table in self.tables for name in table]


def closure_of(code: CodeType, closure: tuple | None) -> dict[str, Any]:
    """The closure variables of a function that have a value."""
    values = {}
    for name, cell in zip(code.co_freevars, closure or ()):
        try:
            values[name] = cell.cell_contents
        except ValueError:  # bound only after the kernel's definition
            continue
    return values


class Scope:
    """The blocks of a kernel, innermost last; or of a function inside it, where `outer` is the kernel's scope."""

    def __init__(self, surroundings: Surroundings, outer: Scope | None = None):
        self.surroundings = surroundings
        self.outer = outer
        self.blocks: list[dict[str, Binding]] = [{}]
        self._left: dict[str, tuple[str, int]] = {}

    @contextmanager
    def block(self, last_line: int) -> Iterator[None]:
        """A nested block whose names end with it; `last_line` is where it ends in the source."""
        self.blocks.append({})
        try:
            yield
        finally:
            self._left.update({name: (binding.kind, last_line) for name, binding in self.blocks.pop().items()})

    def own(self, name: str) -> Binding | None:
        """The innermost binding of `name` in these blocks."""
        for block in reversed(self.blocks):
            if name in block:
                return block[name]
        return None

    def find(self, name: str) -> Binding | None:
        """The binding that `name` means: in these blocks or, for a name that they do not bind, around them."""
        binding = self.own(name)
        if binding is None and self.outer is not None and name not in self.surroundings.local_names:
            return self.outer.find(name)
        return binding

    def lookup(self, name: str, span: _core.Span) -> Any:
        """The value of `name`; UnknownName when there is none."""
        binding = self.find(name)
        if binding is not None:
            return binding.value
        value = self.surroundings.find(name)
        if value is not MISSING:
            return value
        if name in self._left:
            kind, line = self._left[name]
            what = "is the variable of a loop" if kind == "loop" else "was bound inside a block"
            fix = "move this into the loop" if kind == "loop" else (
                f"bind '{name}' in the block that uses it, or make a variable before both: {name} = T.alloc_var(dtype)")
            note = _core.Note(f"'{name}' {what} that ended at line {line}")
            raise error("UnknownName", span, name=name, notes=[note], fixes=[fix])
        if name in self.surroundings.local_names:
            note = _core.Note(f"'{name}' is assigned in the kernel, so it means a name of the kernel everywhere in it")
            raise error("UnknownName", span, name=name, notes=[note], fixes=["choose another name for one of the two"])
        near = suggestion(name, NAMES, "T.") if name in NAMES else suggestion(name, self.known_names())
        raise error("UnknownName", span, name=name, fixes=near or meant(name, NAMES))

    def known_names(self) -> list[str]:
        """Names that can be meant, innermost first."""
        around = self.outer.known_names() if self.outer is not None else []
        return [name for block in reversed(self.blocks) for name in block] + around + self.surroundings.names()

    def check_bindable(self, name: str, span: _core.Span, kind: str = "name") -> None:
        """Refuses to rebind a parameter, a loop variable or a name of an outer block, as what `kind` says."""
        binding = self.own(name)
        if binding is None or name == "_":
            return
        if binding.kind == "parameter":
            tensor = isinstance(binding.value, _core.Buffer)
            raise error("AssignToParameter", span, name=name, fixes=[] if tensor else ["choose another name"])
        if binding.kind == "loop":
            if kind != "loop":
                raise error("AssignToLoopVariable", span, name=name)
            note = _core.Note(f"the loop or kernel around it has the variable '{name}' too", binding.span)
            raise error("AssignToLoopVariable", span, name=name, notes=[note],
                        fixes=["give the variable of one of the two loops another name"])
        if name not in self.blocks[-1]:
            raise error("RebindOuterName", span, name=name)

    def bind(self, name: str, value: Any, span: _core.Span, kind: str = "name") -> None:
        """Binds `name` in the innermost block."""
        self.check_bindable(name, span, kind)
        self.blocks[-1][name] = Binding(value, kind, span)
