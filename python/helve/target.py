"""Compiling a kernel and calling it.

The one way from a function to machine code; what a target does stands in the core, what a user sees of it stands here.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helve import _core, source
from helve.mesh import Mesh
from helve.errors import Error, error, from_diagnostic

if TYPE_CHECKING:
    from helve.script.entry import PrimFunc

_OPTIONS = {"verify": False, "print_changed": False, "persistent_chunk": 1, "check": None}


@dataclass(frozen=True, slots=True, repr=False)
class Proof:
    """One question that a compile asked of the program, and the answer.

    Attributes:
        kind: "bounds" (a subscript stays inside its buffer) or "race" (iterations of a loop stay apart).
        question: the statement in words.
        verdict: "proved" or "unknown"; a refuted statement is an error of the compile.
        filename, lineno, column: the access or the loop; None when unknown. Lines and columns count from 1.
        reason: why the answer is unknown; empty when it is proved.
    """

    kind: str
    question: str
    verdict: str
    filename: str | None
    lineno: int | None
    column: int | None
    reason: str

    def __repr__(self) -> str:
        place = f" ({self.filename}:{self.lineno}:{self.column})" if self.filename else ""
        reason = f": {self.reason}" if self.reason else ""
        return f"<{self.verdict} {self.kind}: {self.question}{place}{reason}>"


class Kernel:
    """A compiled function. Call it with arrays (anything with DLPack) and numbers, in the order of its parameters.

    Immutable; threads may call it at the same time. The call returns when the results are written.
    """

    __slots__ = ("_call", "_compiled")

    def __init__(self, compiled: _core.CompiledKernel):
        self._compiled = compiled
        self._call = compiled.__call__

    def __call__(self, *args) -> None:
        """Runs the kernel.

        Raises:
            helve.Error: the arguments do not fit the parameters (HV06xx, at the caller's line), or the program does what it
                must not (HV07xx, at the kernel's line).
        """
        try:
            self._call(*args)
        except Error as fault:
            raise _at_caller(fault) from None

    @property
    def name(self) -> str:
        """The function's name."""
        return self._compiled.function.name

    @property
    def target(self) -> str:
        """What the kernel was compiled for: "interp" or "llvm"."""
        return self._compiled.target

    @property
    def stages(self) -> list[str]:
        """The names that `source` and `show` take."""
        return self._compiled.stages()

    def source(self, stage: str = "script") -> str:
        """The text of a stage: "script", "lowered", "host", "llvm", "asm", or the name of a pass.

        Raises:
            helve.Error: HV0804 for a stage that this kernel does not have.
        """
        try:
            return self._compiled.source(stage)
        except Error as fault:
            raise _at_caller(fault) from None

    def show(self, stage: str = "script") -> None:
        """Prints `source(stage)`."""
        try:
            text = self._compiled.source(stage)
        except Error as fault:
            raise _at_caller(fault) from None
        print(text)

    def times(self) -> list[tuple[str, float]]:
        """The stages of the compile with their wall time in seconds, in order."""
        return self._compiled.times()

    def proofs(self) -> list[Proof]:
        """What was asked of the program before it was compiled: bounds in program order, then races of each parallel loop.

        An unknown answer compiles; the interpreter checks the bounds that are left open when it runs.
        """
        out = []
        for kind, question, verdict, span, reason in self._compiled.proofs():
            place = (span.file, span.line, span.column) if span.known else (None, None, None)
            out.append(Proof(kind, question, verdict, *place, reason))
        return out

    def __repr__(self) -> str:
        return f"<helve.Kernel {self.name} for {self.target}>"


def compile(func: PrimFunc, target: str | None = None, mesh: Mesh | None = None, **options) -> Kernel:  # noqa: A001
    """Compiles a function.

    Args:
        func: what `T.prim_func` or `helve.parse` gave.
        target: "llvm" (machine code for this CPU; the default) or "interp" (the reference interpreter).
        mesh: the mesh to run on, for functions that are written for one.
        verify: run the verifier after each pass.
        print_changed: print the function to standard error after each pass that changed it.
        persistent_chunk: iterations of a T.Persistent loop that share one collective.
        check: for target "interp", what each call looks for: "all", "uninitialised" (uses of elements that were never
            written), "races" (conflicts of iterations, blocks and cores), or None. Checked calls are several times
            slower.

    Raises:
        helve.Error: the function, the mesh or an option is wrong.
    """
    try:
        for name in options:
            if name not in _OPTIONS:
                raise error("UnknownOption", option=name, known=", ".join(_OPTIONS))
        chosen = {**_OPTIONS, **options}
        for name, value in chosen.items():
            _check_option(name, value)
        if target is not None and not isinstance(target, str):
            raise error("UnknownTarget", target=target, known="interp, llvm")
        function = getattr(func, "function", None)
        if not isinstance(function, _core.Function):
            raise error("NotAKernel", given=type(func).__name__)
        return Kernel(_core.compile(function, target or "llvm", mesh_shape(mesh), **chosen))
    except Error as fault:
        raise _at_caller(fault) from None


def _check_option(name: str, value) -> None:
    """Raises helve.Error HV0813 for a value that the option cannot take."""
    if isinstance(_OPTIONS[name], bool):
        if not isinstance(value, bool):
            raise error("OptionValue", option=name, value=repr(value), expected="True or False")
    elif isinstance(_OPTIONS[name], int) and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 2**20):
        raise error("OptionValue", option=name, value=repr(value), expected="a whole number from 1 to 1048576")


def mesh_shape(mesh: Mesh | None) -> _core.MeshShape | None:
    """The mesh as the core has it.

    Raises:
        helve.Error: it is no mesh (HV0808), or of devices that this build cannot run on (HV0803).
    """
    if mesh is None:
        return None
    if not isinstance(mesh, Mesh):
        raise error("NotAMesh", given=repr(mesh))
    if mesh.device != "host":
        raise error("TargetMissing", target=mesh.device, remedy='use a mesh of device="host": its cores run in this process')
    return _core.MeshShape(list(mesh.shape), list(mesh.names))


def set_num_threads(count: int | None) -> None:
    """Sets the number of threads that kernels use; None: one a core this process may run on.

    Raises:
        ValueError: a count below 1.
    """
    if count is not None and count < 1:
        raise ValueError(f"a count of threads is 1 or more, given {count}")
    _core.set_num_threads(_core.default_num_threads() if count is None else count)


def num_threads() -> int:
    """The number of threads that kernels use."""
    return _core.num_threads()


def _at_caller(fault: Error) -> Error:
    """The fault at the line that called this module, unless it has a place of its own."""
    if fault.filename is not None:
        return fault
    frame = sys._getframe(2)
    span = source.span_of_frame(frame)
    positions = list(frame.f_code.co_positions())[frame.f_lasti // 2] if hasattr(frame.f_code, "co_positions") else ()
    if positions and None not in positions:
        span = _core.Span(frame.f_code.co_filename, positions[0], positions[2] + 1, positions[1], positions[3] + 1)
    data = fault.diagnostic
    fixes = data.help.split("\n") if data.help else []
    return from_diagnostic(_core.Diagnostic(data.name, span, data.args, data.notes, fixes))
