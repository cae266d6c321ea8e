"""Compiling a kernel and calling it.

The one way from a function to machine code: targets are implemented in the core, their interface for users is here.
"""

from __future__ import annotations

import site
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from helve import _core, source
from helve.caller import at_caller
from helve.dist.own_arguments import OwnArguments
from helve.dist.processes import are_devices_of, compares_on_gpus, gpus_of, group_of
from helve.errors import Error, error, from_diagnostic, shown, suggestion, warning_from
from helve.findings import BufferPlace, Choice, Proof, Resources
from helve.log import check_log, log_compile
from helve.mesh import Mesh
from helve.notation import NotationFunction
from helve.outputs import Outputs
from helve.schedule import Schedule, default_order
from helve.script.entry import read
from helve.script.prim_func import PrimFunc
from helve.signature import call_text, signature
from helve.spellings import architecture_meant, target_meant
from helve.untraced import untraced

_TARGETS = ("interp", "llvm", "cuda")
_CHECKS = ("all", "uninitialised", "races")
_CHECKS_OF_CONTENTS = ("all", "uninitialised")
_OPTIONS = {"verify": False, "print_changed": False, "persistent_chunk": None, "fast_math": False, "check": None,
            "strict": False, "arch": None, "stream_bytes": None}
# What other compilers call an option.
_HABITS = {
    "debug": "in helve: print_changed=True, or HELVE_LOG=debug in the environment",
    "device": "in helve: target, and a call runs where its arrays are",
    "execution_backend": "leave it out: there is one way to call a kernel",
    "num_stages": "in helve: T.Pipelined(n, num_stages=...), in the kernel",
    "num_warps": "in helve: T.Kernel(..., threads=...), in the kernel, with 32 for each warp",
    "out_idx": "in helve: out=-1, or the name of the parameter",
    "pass_configs": "leave it out: no pass has to be configured",
    "target_host": "leave it out: the host is this machine",
    "threads": "in helve: T.Kernel(..., threads=...), in the kernel",
    "verbose": "in helve: HELVE_LOG=info in the environment",
}
# Stages of one target only.
_STAGES_OF = {"llvm": "llvm", "asm": "llvm", "host": "cuda", "cuda": "cuda", "ptx": "cuda", "sass": "cuda"}
_OPTIONS_OF = {"arch": "cuda", "strict": "cuda", "stream_bytes": "llvm"}  # of one target only; `check` is the core's


@dataclass(frozen=True, slots=True)
class _Recipe:
    """How a kernel was compiled, beside its function, so that it can be compiled again."""

    target: str
    mesh: Mesh | None
    options: dict[str, Any]


class Kernel:
    """A compiled function. Call it with arrays (anything with DLPack) and numbers, in the order of its parameters.

    Immutable: a copy is the kernel itself, and several threads may call it at the same time. A call on tensors of a GPU
    returns when it is enqueued on their stream, any other call when the results are written. It is pickled as the
    printed text of its function and its options, and compiled again where it is loaded.
    """

    __slots__ = ("__dict__", "_call", "_compiled", "_outputs", "_recipe")

    def __init__(self, compiled: _core.CompiledKernel, outputs: Outputs | None = None, recipe: _Recipe | None = None,
                 doc: str | None = None):
        if not isinstance(compiled, _core.CompiledKernel):
            raise TypeError(f"Kernel: helve.compile makes one, not a value of type '{type(compiled).__name__}'")
        self._compiled = compiled
        self._outputs = outputs
        self._recipe = recipe
        call = compiled.__call__
        if recipe is not None and are_devices_of(recipe.mesh):
            call = _on_processes(compiled, recipe)
        checks = recipe is not None and recipe.options.get("check") in _CHECKS_OF_CONTENTS
        self._call = call if outputs is None else outputs.runner(call, compiled.call_with_new if checks else None)
        self.__name__ = self.__qualname__ = compiled.function.name
        self.__doc__ = doc
        self.__signature__ = signature(compiled.function, self.outputs)

    @untraced
    def __call__(self, /, *args, **named) -> Any:
        """Runs the kernel. Arguments may be named by their parameters: `kernel(a, B=b)`.

        Returns:
            Of a kernel with outputs, the output, or a tuple of several: those that were passed, and new arrays for
            those that were not, or that are None. They are of the library and on the device of the first tensor among
            the inputs. Positional arguments are the inputs, or, if there are more, all parameters. Otherwise None.

        Raises:
            helve.Error: the arguments do not fit the parameters (HV06xx, at the caller's line), or the program does
                what it must not (HV07xx, at the kernel's line). On a mesh of processes also HV0425 for a tensor of
                another distribution, and HV0419 to HV0423 where processes differ, are late or end; on one of GPUs also
                HV0426 to HV0431.
        """
        try:
            return self._call(*(self._in_order(args, named) if named else args))
        except Error as fault:
            about = dict(fault.diagnostic.args)
            parameter = about.get("parameter") or about.get("keyword") or about.get("second")
            raise at_caller(self._hinted(fault, len(args)), *self._place_of(parameter, len(args), named)) from None

    def _hinted(self, fault: Error, count: int) -> Error:
        """The fault; where a call leaves out just what it could make, with the hint that it can."""
        if fault.name != "CallArgumentCount" or self.outputs or are_devices_of(self.mesh):
            return fault
        params = self._compiled.function.params
        effects = iter(_core.tensor_effects(self._compiled.function))
        makes = [isinstance(p, _core.Buffer) and next(effects)[1:] == (True, False) for p in params]
        missing = [f'"{p.name}"' for p in params[count:]]
        if not missing or not all(makes[count:]):
            return fault
        data = fault.diagnostic
        text = missing[0] if len(missing) == 1 else f"({', '.join(missing)})"
        hint = f"or compile it with out={text}, so that calls make and return what they leave out"
        fixes = [*data.help.split("\n"), hint]
        return from_diagnostic(_core.Diagnostic(data.name, data.span, data.args, data.notes, fixes))

    def _positional(self, count: int) -> list[str]:
        """The parameters that so many positional arguments are for."""
        names = [p.name for p in self._compiled.function.params]
        inputs = [name for name in names if name not in self.outputs]
        return names if count > len(inputs) else inputs

    def _in_order(self, args: tuple, named: dict) -> list:
        """All arguments in the order of the parameters; None for outputs that are not given."""
        names = [p.name for p in self._compiled.function.params]
        text = ", ".join(names)
        values = dict(zip(self._positional(len(args)), args))
        if len(args) > len(names):
            raise error("CallArgumentCount", kernel=self.name, expected=len(names), given=len(args) + len(named),
                        names=text)
        for name, value in named.items():
            if name not in names:
                raise error("UnknownKeyword", function=self.name, keyword=name, parameters=text,
                            fixes=suggestion(name, names))
            if name in values:
                raise error("BadArgument", function=self.name, value="a value", parameter=name,
                            reason="it is given by position as well", remedy=f"give '{name}' once")
            values[name] = value
        for name in names:
            if name not in values and name not in self.outputs:
                raise error("MissingArgument", function=self.name, parameter=name, parameters=text)
        return [values.get(name) for name in names]

    def _place_of(self, parameter: str | None, count: int, named: dict) -> tuple:
        """(the argument in the call, notes on its declaration) of a parameter."""
        found = next((p for p in self._compiled.function.params if p.name == parameter), None)
        if found is None or parameter in named:
            argument = parameter if parameter in named else None
        else:
            given = self._positional(count)
            argument = given.index(parameter) if parameter in given else None
        if found is None:
            return (argument,)
        return argument, [_core.Note(f"'{parameter}' is declared here", found.span)] if found.span.known else []

    @property
    def name(self) -> str:
        """The function's name."""
        return self._compiled.function.name

    @property
    def target(self) -> str:
        """What the kernel was compiled for: "interp", "llvm" or "cuda"."""
        return self._compiled.target

    @property
    def mesh(self) -> Mesh | None:
        """The mesh that the kernel was compiled for, as `helve.compile` was given it."""
        return self._recipe.mesh if self._recipe is not None else None

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the parameters that a call returns, in order; empty unless `out=` chose some."""
        return self._outputs.names if self._outputs is not None else ()

    @property
    def stages(self) -> list[str]:
        """The names that `source` and `show` take."""
        return self._compiled.stages()

    def source(self, stage: str = "script") -> str:
        """The text of a stage: "script", "lowered", "plan" (the steps of a call), of target "llvm" also "llvm" and
        "asm", of "cuda" also "host" (the plan as C++ of CUDA's driver and NCCL), "cuda", "ptx" and "sass", or the name
        of a pass.

        Raises:
            helve.Error: HV0804 for a stage that this kernel does not have; HV0820 for "host" where cores of one process
                exchange values between launches; HV0913 for "sass" without nvdisasm.
        """
        try:
            return self._text_of(stage)
        except Error as fault:
            raise at_caller(fault, 0) from None

    def _text_of(self, stage: str) -> str:
        if stage not in self.stages:
            other = _STAGES_OF.get(stage) if isinstance(stage, str) else None
            fixes = [f'compile with target="{other}", which has it'] if other else suggestion(stage, self.stages)
            raise error("UnknownStage", stage=stage, known=", ".join(self.stages), fixes=fixes)
        return self._compiled.source(stage)

    def show(self, stage: str = "script") -> None:
        """Prints `source(stage)`."""
        try:
            text = self._text_of(stage)
        except Error as fault:
            raise at_caller(fault, 0) from None
        print(text)

    def times(self) -> list[tuple[str, float]]:
        """The stages of the compile with their wall time in seconds, in order."""
        return self._compiled.times()

    def proofs(self) -> list[Proof]:
        """What the compiler asked about the program: shapes and bounds in program order, then races of each loop.

        A program with unknown answers compiles; the interpreter checks the open questions at run time.
        """
        out = []
        for kind, question, verdict, span, reason, condition in self._compiled.proofs():
            place = (span.file, span.line, span.column) if span.known else (None, None, None)
            out.append(Proof(kind, question, verdict, *place, reason, condition))
        return out

    def layouts(self) -> list[BufferPlace]:
        """Where each buffer of a block is stored, in program order; empty for targets without threads."""
        return [BufferPlace(kernel, buffer.name, tuple(domain), layout, reason)
                for kernel, buffer, layout, domain, reason in self._compiled.layouts()]

    def resources(self) -> list[Resources]:
        """The registers, the memory and the occupancy of each kernel, in the order of the generated text; empty for
        targets other than GPUs.
        """
        return [Resources(*use) for use in self._compiled.resources()]

    def schedules(self) -> list[Choice]:
        """How pipelined loops and tile operations are implemented, in program order, with the reasons; empty for the
        interpreter.
        """
        return [Choice(operation, schedule, tuple(declined),
                       *((span.file, span.line, span.column) if span.known else (None, None, None)))
                for operation, span, schedule, declined in self._compiled.schedules()]

    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, memo: dict) -> Kernel:
        return self

    def __reduce__(self) -> tuple:
        if self._recipe is None:
            raise TypeError(f"a kernel that helve.compile did not make cannot be pickled: {self!r}")
        recipe = self._recipe
        text = _core.print(self._compiled.function)
        return _compiled_again, (text, recipe.target, recipe.mesh, self.outputs, recipe.options, self.__doc__)

    def __repr__(self) -> str:
        return f"<helve.Kernel {call_text(self._compiled.function, self.outputs)} for {self.target}>"


# What these warn of costs time, and no result.
_OF_SPEED = frozenset(("SerialPipeline", "BarrierUndecided", "ValueCrossesRoles", "HintWithoutEffect", "RegisterSpills",
                       "LocalArrays"))


def compile(func: PrimFunc | Schedule | _core.Function, target: str | None = None,  # noqa: A001
            mesh: Mesh | None = None, *, out: str | int | Sequence[str | int] | None = None, **options) -> Kernel:
    """Compiles a function.

    Args:
        func: a result of `T.prim_func` or `helve.parse`, or a `helve.Schedule`.
        target: "llvm" (machine code for this CPU; the default), "cuda" (an NVIDIA GPU; the default for a mesh of device
            "cuda") or "interp" (the reference interpreter).
        mesh: the mesh to run on, for functions that are written for one.
        out: the parameters that a call allocates and returns, by name or position (-1 for the last): one, or a
            sequence. Calls may still pass them. Their shapes must follow from the other parameters.
        verify: run the verifier after each pass.
        print_changed: print the function to standard error after each pass that changed it.
        persistent_chunk: iterations of a T.Persistent loop that share one collective; by default 1, and on a mesh of
            device "cuda" all whose values fit 256 MiB.
        fast_math: allow a product and a sum to be contracted to a fused multiply-add, and on a GPU approximate
            division, square root and functions, with subnormal float32 numbers flushed to 0. Results are then not
            bit-identical with those of other targets. The interpreter stays exact.
        check: for target "interp", what each call checks: "all", "uninitialised" (uses of elements that were never
            written, and of outputs that the call allocates those that are not written at its end), "races" (conflicts
            of iterations, blocks and cores), or None. Checked calls are several times slower.
        strict: for target "cuda", refuse an operation that needs a fragment in another layout than the program gives;
            otherwise the fragment is converted there, through shared memory. Other targets convert nothing, and refuse
            the option.
        arch: for target "cuda", what to compile for ("sm_80", "sm_90a"), so that no GPU is needed before the first
            call; the first device's own by default.
        stream_bytes: for target "llvm", tensors of at least this many bytes that a kernel only writes are stored
            around the caches; a quarter of the last-level cache by default.

    Raises:
        helve.Error: the function, the mesh or an option is wrong. On a mesh of processes also HV0417 and HV0418, and
            HV0424 for a function that accesses more than its own part of a tensor.
    """
    argument: int | str | None = None
    try:
        check_log()
        check_options(options)
        argument = "target"
        if target is not None:
            check_target(target)
        argument = 0
        function = core_function(func)
        if target is None:
            target = "cuda" if are_devices_of(mesh) and mesh.device == "cuda" else "llvm"
        if isinstance(func, NotationFunction):
            arch = options.get("arch") if target == "cuda" else None
            function = default_order(func.nest, target, arch) or function
        argument = "mesh"
        shape = mesh_shape(mesh)
        argument = "out"
        outputs = outputs_of(function, declared_outputs(func) if out is None else out, target)
        if outputs and are_devices_of(mesh):
            raise error("BadArgument", function="helve.compile", parameter="out", value=shown(out),
                        reason="calls on a mesh of processes allocate no tensors",
                        remedy="declare no outputs, and pass tensors of helve.dist for all parameters")
        argument = None
        recipe = _Recipe(target, mesh, options)
        compiled = _compiled(function, recipe, shape)
    except Error as fault:  # of an option: the diagnostic names it
        if fault.name == "CudaArchitecture":
            argument, told = "arch", dict(fault.diagnostic.args)
            fault = error(fault.name, fixes=architecture_meant(told["arch"]), **told)
        raise at_caller(fault, dict(fault.diagnostic.args).get("option", argument)) from None
    _, inside = source.outside(sys._getframe(1))
    for diagnostic in compiled.warnings():
        if diagnostic.name in _OF_SPEED and source.is_inner(diagnostic.span.file):
            continue  # of one of helve's own kernels, whose callers cannot mend it
        warnings.warn(warning_from(diagnostic), stacklevel=2 + inside)
    kernel = Kernel(compiled, outputs, recipe, func.__doc__ if isinstance(func, PrimFunc) else None)
    log_compile(kernel)
    return kernel


def _compiled(function: _core.Function, recipe: _Recipe, mesh: _core.MeshShape | None) -> _core.CompiledKernel:
    """The function compiled. Raises helve.Error HV0807 for an option of another target."""
    chosen = {**_OPTIONS, **recipe.options}
    processes = gpus = None
    if are_devices_of(recipe.mesh):
        target = "cuda" if recipe.mesh.device == "cuda" else "llvm"
        if recipe.target != target:
            raise error("TargetMissing", what=f"target '{recipe.target}' on a mesh of device '{recipe.mesh.device}'",
                        remedy=f'compile for target="{target}", or for a mesh of device="host"')
        processes = group_of(recipe.mesh) if target == "llvm" else None
        gpus = gpus_of(recipe.mesh) if target == "cuda" else None
    for option, other in _OPTIONS_OF.items():
        if chosen[option] != _OPTIONS[option] and recipe.target != other:
            raise error("OptionOfTarget", target=recipe.target, option=option, other=other)
    arch = chosen.pop("arch")
    places = site.getsitepackages() if recipe.target == "cuda" else []
    return _core.compile(function, recipe.target, mesh, **chosen, arch=arch or "", site_packages=places,
                         processes=processes, gpus=gpus, compares=compares_on_gpus())


def _compiled_again(text: str, target: str, mesh: Mesh | None, out: tuple[str, ...], options: dict,
                    doc: str | None) -> Kernel:
    """The kernel that was pickled. Its warnings were given when it was compiled first."""
    try:
        function, recipe = read(text), _Recipe(target, mesh, options)
        compiled = _compiled(function, recipe, mesh_shape(mesh))
        return Kernel(compiled, outputs_of(function, out, target), recipe, doc)
    except Error as fault:
        raise at_caller(fault) from None


def outputs_of(function: _core.Function, out: Any, target: str | None) -> Outputs | None:
    """What `out=` chooses; None for no outputs.

    Raises:
        helve.Error: as Outputs does.
    """
    if out is None or out == () or out == []:
        return None
    names = [each.name for each in (*function.dims, *function.params)]
    # Printed, things of one name have names of their own.
    return Outputs(function if len(set(names)) == len(names) else read(_core.print(function)), out, target or "llvm")


def check_options(options: dict[str, Any]) -> None:
    """Raises helve.Error for a name that is no compile option (HV0805), or a value that one cannot take (HV0813)."""
    for name in options:
        if name not in _OPTIONS:
            known = ("out", *_OPTIONS)
            raise error("UnknownOption", option=name, known=", ".join(known),
                        fixes=[_HABITS[name]] if name in _HABITS else suggestion(name, known))
    for name, value in options.items():
        check_option(name, value)


def _kind_of(value) -> str:
    """What the value is, in words."""
    kind = type(value).__name__
    return f"'{value}'" if isinstance(value, (int, float, str, type(None))) else f"a value of type '{kind}'"


def check_option(name: str, value) -> None:
    """Raises helve.Error HV0813 for a value that the option cannot take."""
    if isinstance(_OPTIONS[name], bool):
        if not isinstance(value, bool):
            raise error("OptionValue", option=name, value=shown(value), expected="True or False")
    elif name == "persistent_chunk" and value is not None and (
        isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 2**20
    ):
        raise error("OptionValue", option=name, value=shown(value), expected="a whole number from 1 to 1048576")
    elif name == "arch" and value is not None and not isinstance(value, str):
        raise error("OptionValue", option=name, value=shown(value),
                    expected='an architecture such as "sm_90a", or None')
    elif name == "stream_bytes" and value is not None and (
        isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**63
    ):
        raise error("OptionValue", option=name, value=shown(value), expected="a number of bytes, 1 or more, or None")
    elif name == "check" and value is not None and value not in _CHECKS:
        raise error("OptionValue", option=name, value=shown(value), expected='"all", "uninitialised", "races" or None')


def core_function(func: PrimFunc | _core.Function) -> _core.Function:
    """The function as the core has it.

    Raises:
        helve.Error: it is none (HV0806).
    """
    function = getattr(func, "function", func)  # of a schedule: its decorated function, which has one in turn
    function = getattr(function, "function", function)
    if not isinstance(function, _core.Function):
        raise error("NotAKernel", given=_kind_of(func), fixes=_kernel_remedy(func))
    return function


def declared_outputs(func: PrimFunc | _core.Function) -> tuple[str, ...] | None:
    """The parameters that a function, or that of a schedule, declares as outputs; None without any."""
    return getattr(func, "outputs", None) or getattr(getattr(func, "function", None), "outputs", None) or None


def _kernel_remedy(value) -> list[str]:
    """What was probably forgotten where a value is no kernel function; else nothing."""
    if value is None:
        return ["a function that makes a kernel has to return it: end it with the name of the decorated function, "
                "`return main`"]
    if isinstance(value, FunctionType):
        return [f"decorate it with @T.prim_func, or call it if it makes a kernel: helve.compile({value.__name__}(...))"]
    return []


def check_target(target: str) -> None:
    """Raises helve.Error HV0802 for anything but the name of a target."""
    if not isinstance(target, str) or target not in _TARGETS:
        name = target if isinstance(target, str) else shown(target)
        raise error("UnknownTarget", target=name, known=", ".join(_TARGETS), fixes=target_meant(target, _TARGETS))


def _on_processes(compiled: _core.CompiledKernel, recipe: _Recipe):
    """A call, of which each process runs the core that it is."""
    own = OwnArguments(compiled.function, recipe.mesh, recipe.options)
    return lambda *args: compiled(*own(args))


def mesh_shape(mesh: Mesh | None) -> _core.MeshShape | None:
    """The mesh as the core has it.

    Raises:
        helve.Error: it is no mesh (HV0808).
    """
    if mesh is None:
        return None
    if not isinstance(mesh, Mesh):
        raise error("NotAMesh", given=shown(mesh))
    return _core.MeshShape(list(mesh.shape), list(mesh.names))


def set_num_threads(count: int | None) -> None:
    """Sets the number of threads that kernels use; None: one a core this process may run on.

    Raises:
        helve.Error: HV0640 for anything but a whole number of threads.
    """
    try:
        if count is not None and (isinstance(count, bool) or not isinstance(count, int) or not 1 <= count < 2**31):
            raise error("ThreadCount", origin="set_num_threads", value=count, limit=_core.thread_limit())
        _core.set_num_threads(_core.default_num_threads() if count is None else count)
    except Error as fault:
        raise at_caller(fault, 0) from None


def num_threads() -> int:
    """The number of threads that kernels use."""
    return _core.num_threads()
