"""The stage check: a program means the same after every pass of every target.

The interpreter judges each stage with all its checks on, so a wrong pass is found by name, on any machine.
"""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from helve import _core
from helve.errors import Error
from helve.mesh import Mesh
from helve.script.entry import read
from helve.script.prim_func import PrimFunc
from helve.target import Kernel, check_option, check_target, core_function, mesh_shape


class Pipeline(NamedTuple):
    """The passes of a target, the architecture that they are for, empty where the target has one only, and what a core
    of a mesh is: "" as the target has it, "devices" for a GPU of its own."""

    target: str
    arch: str = ""
    cores: str = ""


# Machine code; asynchronous copies by threads; TMA and clusters.
PIPELINES = (Pipeline("llvm"), Pipeline("cuda", "sm_80"), Pipeline("cuda", "sm_90a"))
_OF_MESH = (Pipeline("cuda", "sm_90a", "devices"),)


def pipelines_of(function: PrimFunc | _core.Function, mesh: Mesh | None = None) -> tuple[Pipeline, ...]:
    """The pipelines that make stages of their own from the function."""
    on_mesh = mesh is not None or core_function(function).mesh is not None
    return PIPELINES + _OF_MESH if on_mesh else PIPELINES

# `check_stages` parses back one of so many stages, by the hash of its text; reading takes longer than interpreting.
PARSED_BACK = 1

# What two orders of the same sums, or two ways to the same function, may differ by: of the value, and of the largest
# value of the array.
_TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 2e-2}
_COARSE = 0.13  # eight bits
_NUMBER = re.compile(r"(-?\b(?:\d+(?:\.\d+)?(?:e[-+]\d+)?|inf|nan)\b)")  # in a line that a program prints


def lowering_stages(func: PrimFunc, mesh: Mesh | None = None, persistent_chunk: int | None = None,
                    target: str = "llvm", arch: str = "", cores: str = "",
                    stream_bytes: int = 1) -> list[tuple[str, _core.Function]]:
    """The function after each pass of the target's pipeline, itself first, as (name of the pass, function).

    `arch` is that of the compile option, by default the newest; `stream_bytes` too, by default that which takes every
    tensor for a large one; `cores` is that of `Pipeline`.

    Raises:
        helve.Error: the function or the mesh is wrong.
        helve.InternalError: a pass made a function that does not verify.
    """
    check_target(target)
    check_option("persistent_chunk", persistent_chunk)
    check_option("arch", arch)
    check_option("stream_bytes", stream_bytes)
    return _core.lowering_stages(core_function(func), mesh_shape(mesh), persistent_chunk, target, arch, stream_bytes,
                                 cores == "devices")


def interpret(function: _core.Function, *args, check: str | None = None, steps: int = 0, placement: int = 0,
              roles: int = 0, lines: list[str] | None = None) -> None:
    """Runs a function at any stage under the reference interpreter.

    Args:
        function: the function.
        args: its arguments.
        check: what the run looks for, as for `helve.compile`, or one of `stage_check`.
        steps: how many iterations and, of a checked run, accesses the run may make; 0: any number.
        placement: chooses where tensors begin (`T.misalignment`): each number puts them elsewhere, 0 at the most even
            addresses.
        roles: the order in which the roles of a block run, each until it waits for a ring: 0: the first that can; 1:
            the last; other numbers: one that is drawn at each event of a ring.
        lines: receives what the function prints, a line each; None: the standard output does.

    Raises:
        helve.Error: the arguments do not fit, or the program does what it must not.
        OutOfSteps: the run made more steps.
    """
    if check not in ("in_turn", "barriers", "fences"):
        check_option("check", check)
    receive = None if lines is None else lines.append
    Kernel(_core.interpreted(core_function(function), check, steps, placement, roles, receive))(*args)


def placements(text: str) -> tuple[int, ...]:
    """Where tensors are to begin in runs of a function with this text, as arguments of `interpret`: at pages, and at
    two choices that the text determines; one where it does not matter."""
    if "T.misalignment(" not in text:
        return (0,)
    chosen = zlib.crc32(text.encode())
    return (0, 1 + chosen % 1000, 1 + chosen // 1000 % 1000)


def role_orders(text: str) -> tuple[int, ...]:
    """The orders of roles to run a function with this text in, as arguments of `interpret`: each role first, and one
    that the text determines; one where there are no roles."""
    return (0, 1, 2 + zlib.crc32(text.encode()) % 1000) if "T.role(" in text else (0,)


class Stage(NamedTuple):
    """A stage that differs from all before it.

    Attributes:
        name: the pipeline and the pass that made it: "cuda sm_80: distribute_threads".
        function: the function.
        check: what the interpreter looks for.
    """

    name: str
    function: _core.Function
    check: str


def stage_check(passes: Sequence[str]) -> str:
    """The checks of the interpreter for a stage after these passes, as an argument of `interpret`.

    After privatize_scratch one memory serves the iterations of a loop in turn, and where threads share it, what
    several of them leave there may not be read ("in_turn"); after insert_barriers, of a GPU, also only T.sync_threads
    orders the threads of a block and TMA ("barriers"); after insert_fences TMA needs a T.fence_async besides
    ("fences"). All are "all" beyond that.
    """
    if "insert_fences" in passes:
        return "fences"
    if "insert_barriers" in passes:
        return "barriers"
    return "in_turn" if "privatize_scratch" in passes else "all"


def changed_stages(stages: Sequence[tuple[str, _core.Function]]) -> list[tuple[str, _core.Function]]:
    """The function itself, and the stages of passes that changed it: all that runs differently."""
    texts = [_core.print(function) for _, function in stages]
    return [stage for n, stage in enumerate(stages) if n == 0 or texts[n] != texts[n - 1]]


def with_variant(stages: Sequence[tuple[str, _core.Function]]) -> list[tuple[str, _core.Function]]:
    """The stages of a pipeline, and for a GPU also the variant of the last one whose tensors may begin anywhere."""
    if "insert_barriers" not in dict(stages):
        return list(stages)
    return [*stages, ("narrow_accesses", _core.narrow_accesses(stages[-1][1]))]


def distinct_stages(lowered: dict[Pipeline, list[tuple[str, _core.Function]]]) -> Iterator[Stage]:
    """What pipelines made of a function, first the function itself, each stage once. Of a GPU also the variant for
    tensors that are aligned as an element is ("narrow_accesses")."""
    seen = set()
    for pipeline, stages in lowered.items():
        for place, (name, function) in enumerate(with_variant(stages)):
            check = stage_check([name for name, _ in stages[:place + 1]])
            key = (_core.print(function), check)
            if key not in seen:
                seen.add(key)
                yield Stage(f"{' '.join(filter(None, pipeline))}: {name}" if place else name, function, check)


def assert_same(got: Sequence, wanted: Sequence, message: str, rtol: float | None = None,
                atol: float | None = None) -> None:
    """Arguments after a call are those after another: integers equal, floats within a tolerance, any NaN for any NaN.

    Args:
        got, wanted: the arguments of the calls.
        message: where `got` comes from.
        rtol: tolerance relative to the value; by dtype when not given.
        atol: absolute tolerance; `rtol` of the largest finite value of the array when not given.

    Raises:
        AssertionError: they differ.
    """
    for place, (a, b) in enumerate(zip(got, wanted, strict=True)):
        if not isinstance(b, np.ndarray):
            continue
        if b.dtype.kind in "iub" or b.dtype.name in ("int4", "uint4"):
            np.testing.assert_array_equal(a, b, err_msg=f"argument {place}, {message}")
            continue
        relative = _TOLERANCE.get(b.dtype.name, _COARSE) if rtol is None else rtol
        a, b = (np.asarray(x).astype(np.float64) for x in (a, b))
        largest = np.abs(b[np.isfinite(b)]).max(initial=1e-30)
        np.testing.assert_allclose(a, b, rtol=relative, atol=relative * largest if atol is None else atol,
                                   err_msg=f"argument {place}, {message}")


def check_stages(func: PrimFunc, make_args: Callable[[], list], mesh: Mesh | None = None, rtol: float | None = None,
                 atol: float | None = None, check: str | None = "all", target: str | None = None, arch: str = "",
                 cores: str = "", persistent_chunk: int | None = None) -> None:
    """Interprets every stage of every pipeline on the same arguments and compares with the function itself; each stage
    prints and parses back, or one of `PARSED_BACK`.

    Args:
        func: the function.
        make_args: called once a stage; returns fresh arguments with equal contents.
        mesh: the mesh, for a mesh function.
        rtol, atol: tolerance for floats, as for `assert_same`; integers must be equal.
        check: what each run looks for, as for `helve.compile`; "all" is that of `stage_check`.
        target, arch, cores: the only pipeline; all of `pipelines_of` when not given.
        persistent_chunk: as for `helve.compile`.

    Raises:
        helve.Error: the function itself is refused, by the interpreter's checks or by a target.
        helve.InternalError: a pass failed.
        AssertionError: a pass made a stage that a check refuses, or changed a result; the message names it.
    """
    pipelines = pipelines_of(func, mesh) if target is None else (Pipeline(target, arch, cores),)
    lowered = {each: lowering_stages(func, mesh, persistent_chunk, *each) for each in pipelines}
    check_lowered(lowered, [make_args], rtol, atol, check)


def check_lowered(lowered: dict[Pipeline, list[tuple[str, _core.Function]]], makes: Sequence[Callable[[], list]],
                  rtol: float | None = None, atol: float | None = None, check: str | None = "all",
                  steps: int = 0) -> None:
    """`check_stages` of a function that pipelines have lowered already, on the arguments of several calls.

    Args:
        lowered: the stages of each pipeline, the function itself first.
        makes: each gives fresh arguments of one call.
        rtol, atol, check: as for `check_stages`.
        steps: as for `interpret`, for each run.

    Raises:
        helve.Error, AssertionError: as for `check_stages`.
        OutOfSteps: a stage made more steps.
    """
    expected, said = None, []
    for stage in distinct_stages(lowered):
        text = _core.print(stage.function)
        if is_parsed_back(text):
            assert_round_trip(stage.function)
        for placement, roles in itertools.product(placements(text), role_orders(text)):
            results, lines = [make() for make in makes], []
            try:
                for args in results:
                    interpret(stage.function, *args, check=stage.check if check == "all" else check, steps=steps,
                              placement=placement, roles=roles, lines=lines)
            except Error as fault:
                if expected is None:
                    raise
                raise AssertionError(f"stage '{stage.name}' does what it must not: {fault}\n{text}") from fault
            if expected is None:
                expected, said = results, sorted(lines)
                continue
            for got, wanted in zip(results, expected):
                assert_same(got, wanted, f"stage '{stage.name}'", rtol, atol)
            assert _same_lines(sorted(lines), said), f"stage '{stage.name}' prints other lines:\n{''.join(lines)}"


def _same_lines(got: list[str], wanted: list[str]) -> bool:
    """Equal but for the last digits of floats."""
    parts = [[_NUMBER.split(line)[::2] for line in lines] for lines in (got, wanted)]
    numbers = [[float(each) for line in lines for each in _NUMBER.findall(line)] for lines in (got, wanted)]
    return parts[0] == parts[1] and np.allclose(*numbers, rtol=1e-3, equal_nan=True)


def is_parsed_back(text: str) -> bool:
    """Is a stage with this text among those that are parsed back?"""
    return zlib.crc32(text.encode()) % PARSED_BACK == 0


def assert_round_trip(function: _core.Function) -> None:
    """parse(print(function)) is structurally equal to the function, and prints the same.

    Raises:
        AssertionError: it is not; the message holds the text and the first difference.
    """
    text = _core.print(function)
    again = read(text)
    same, path = _core.structural_equal(function, again)
    assert same, f"differs at '{path}' after a round trip:\n{text}"
    assert _core.print(again) == text, f"prints differently after a round trip:\n{text}"
