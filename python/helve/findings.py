"""What a compile tells of a program: proofs, choices, where buffers are stored, what kernels take of a GPU.

Rows for users, of which a kernel's methods give lists.
"""

from __future__ import annotations

import html
from dataclasses import dataclass

from helve import _core
from helve.viz import Picture, draw_layout


@dataclass(frozen=True, slots=True, repr=False)
class Proof:
    """One question that the compiler asked about the program, and the answer.

    Attributes:
        kind: "shape" (operands have equal shapes), "bounds" (a subscript stays inside its buffer), "race" (iterations
            of a loop are independent) or "async" (asynchronous copies are waited for before their buffers are used).
        question: the statement in words.
        verdict: "proved", "checked" (each call is checked, and refused unless it satisfies the condition) or "unknown";
            a statement that every call violates is a compile error.
        filename, lineno, column: the access or the loop; None when unknown. Lines and columns count from 1.
        reason: why the answer is unknown; empty otherwise.
        condition: what each call must satisfy, an expression of extents and parameters; empty unless checked.
    """

    kind: str
    question: str
    verdict: str
    filename: str | None
    lineno: int | None
    column: int | None
    reason: str
    condition: str = ""

    def __repr__(self) -> str:
        place = f" ({self.filename}:{self.lineno}:{self.column})" if self.filename else ""
        reason = f": {self.reason}" if self.reason else ""
        needs = f": needs {self.condition}" if self.condition else ""
        return f"<{self.verdict} {self.kind}: {self.question}{place}{reason}{needs}>"


@dataclass(frozen=True, slots=True, repr=False)
class Choice:
    """How one tile operation, or one pipelined loop, is implemented.

    Attributes:
        operation: "T.copy", "T.Pipelined".
        schedule: the implementation that was chosen, "cp_async"; what `dispatch=` names.
        declined: (implementation, reason) of each that was tried before it.
        filename, lineno, column: the operation; None when unknown. Lines and columns count from 1.
    """

    operation: str
    schedule: str
    declined: tuple[tuple[str, str], ...]
    filename: str | None
    lineno: int | None
    column: int | None

    def __repr__(self) -> str:
        place = f" ({self.filename}:{self.lineno}:{self.column})" if self.filename else ""
        reasons = "".join(f"; {name} declined: {reason}" for name, reason in self.declined)
        return f"<{self.operation} by {self.schedule}{place}{reasons}>"


@dataclass(frozen=True, slots=True, repr=False)
class BufferPlace:
    """Where a buffer of a block is stored.

    Attributes:
        kernel: "k0" for the first kernel of the function.
        name: the buffer's name.
        domain: the extents that the layout covers, at least the buffer's own.
        layout: a helve.Layout on the axes `tx` and `reg` of registers, on `m` of shared memory, or None if the buffer
            is row-major in shared memory.
        reason: "annotated" if the program gives the layout; why a buffer is in shared memory, or the purpose of the
            layout that was chosen for it; empty otherwise.
    """

    kernel: str
    name: str
    domain: tuple[int, ...]
    layout: _core.Layout | None
    reason: str

    def __repr__(self) -> str:
        where = f"{self.layout} over {self.domain}" if self.layout is not None else "shared memory"
        return f"<{self.kernel} {self.name}: {where}{': ' if self.reason else ''}{self.reason}>"

    def picture(self) -> Picture | None:
        """Who holds each element, and where, for a terminal or a notebook; None without a layout."""
        return None if self.layout is None else draw_layout(self.layout, self.domain)

    def show(self) -> None:
        """Prints the row, and below it the picture's text."""
        picture = self.picture()
        print(self if picture is None else f"{self}\n{picture.text()}")

    def _repr_html_(self) -> str:
        picture = self.picture()
        return f"<pre>{html.escape(repr(self))}</pre>{'' if picture is None else picture.svg()}"


@dataclass(frozen=True, slots=True, repr=False)
class Resources:
    """What a kernel takes of a GPU, as the assembler reports it.

    Attributes:
        kernel: its name in the generated text, "scale_0".
        threads: threads of a block.
        registers: registers of 32 bits of a thread; where roles exchange some, those that it begins with.
        shared_bytes: shared memory of a block.
        local_bytes: local memory of a thread: spilled registers, and arrays that do not fit registers.
        spilled_bytes: bytes of a thread that are spilled: the larger one of what is stored and what is loaded.
        blocks: blocks that a multiprocessor of the architecture runs at the same time, by these figures.
    """

    kernel: str
    threads: int
    registers: int
    shared_bytes: int
    local_bytes: int
    spilled_bytes: int
    blocks: int

    def __repr__(self) -> str:
        local = f", {self.local_bytes} bytes of local memory a thread" if self.local_bytes else ""
        spilled = f" ({self.spilled_bytes} spilled)" if self.spilled_bytes else ""
        return (f"<{self.kernel}: {self.threads} threads with {self.registers} registers, {self.shared_bytes} bytes of "
                f"shared memory a block{local}{spilled}; {self.blocks} blocks a multiprocessor>")
