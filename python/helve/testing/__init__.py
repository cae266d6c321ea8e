"""Ways to test kernels and the compiler itself.

Every stage of a compile is a program: it can be interpreted, printed and parsed, and these functions do so.
"""

from __future__ import annotations

from helve import _core
from helve.mesh import Mesh
from helve.script.entry import parse
from helve.script.prim_func import PrimFunc
from helve.target import Kernel, check_option, check_target, core_function, mesh_shape

__all__ = ["assert_round_trip", "check_stages", "interpret", "lowering_stages"]


def lowering_stages(func: PrimFunc, mesh: Mesh | None = None, persistent_chunk: int = 1,
                    target: str = "llvm", arch: str = "") -> list[tuple[str, _core.Function]]:
    """The function after each pass of the target's pipeline, itself first, as (name of the pass, function).

    `arch` is that of the compile option, by default the newest.

    Raises:
        helve.Error: the function or the mesh is wrong.
        helve.InternalError: a pass made a function that does not verify.
    """
    check_target(target)
    check_option("persistent_chunk", persistent_chunk)
    check_option("arch", arch)
    return _core.lowering_stages(core_function(func), mesh_shape(mesh), persistent_chunk, target, arch)


def interpret(function: _core.Function, *args, check: str | None = None) -> None:
    """Runs a function at any stage under the reference interpreter.

    Args:
        function: the function.
        args: its arguments.
        check: what the run looks for, as for `helve.compile`.

    Raises:
        helve.Error: the arguments do not fit, or the program does what it must not.
    """
    check_option("check", check)
    Kernel(_core.compile(core_function(function), "interp", None, False, False, 1, check))(*args)


def check_stages(func: PrimFunc, make_args, mesh: Mesh | None = None, rtol: float = 1e-5, atol: float = 1e-6,
                 check: str | None = "all", target: str = "llvm", arch: str = "") -> None:
    """Interprets every stage on the same arguments and compares with the first.

    Args:
        func: the function.
        make_args: called once a stage; returns fresh arguments with equal contents.
        mesh: the mesh, for a mesh function.
        rtol, atol: tolerance for floats; integers must be equal.
        check: what each run looks for, as for `helve.compile`.
        target, arch: whose pipeline.

    Raises:
        helve.Error: a check of a stage failed.
        AssertionError: a pass changed a result; the message names it.
    """
    import numpy as np

    expected = None
    for name, stage in lowering_stages(func, mesh, target=target, arch=arch):
        args = make_args()
        interpret(stage, *args, check=check)
        if expected is None:
            expected = args
            continue
        for place, (got, wanted) in enumerate(zip(args, expected, strict=True)):
            exact = np.asarray(got).dtype.kind in "iub"
            np.testing.assert_allclose(
                got, wanted, rtol=0 if exact else rtol, atol=0 if exact else atol,
                err_msg=f"argument {place} differs after pass '{name}'",
            )


def assert_round_trip(function: _core.Function) -> None:
    """parse(print(function)) is structurally equal to the function, and prints the same.

    Raises:
        AssertionError: it is not; the message holds the text and the first difference.
    """
    function = core_function(function)
    text = _core.print(function)
    again = parse(text).function
    same, path = _core.structural_equal(function, again)
    assert same, f"differs at '{path}' after a round trip:\n{text}"
    assert _core.print(again) == text, f"prints differently after a round trip:\n{text}"
