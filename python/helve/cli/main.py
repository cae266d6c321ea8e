"""The commands and their options.

Commands parse text, call the library and print; what they know, the library knows. A command ends with 0, or with 2 and
a message on standard error where what it was given cannot be used.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import helve
from helve import _core, source
from helve.cli import cache, doctor, launch, layouts, programs
from helve.cli.mistakes import Mistake
from helve.errors import from_diagnostic

_PROGRAM = ("a file of Python, then the kernel: FILE:function, or FILE:builder(4096, 8) for a function that makes one; "
            "FILE alone if it defines one kernel only")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        arguments: the words after `helve`; those of the process by default.

    Returns:
        The exit code: 0, or 2 where the command line, or the program that it names, is wrong.
    """
    chosen = _parser().parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            chosen.command(chosen)
        sys.stdout.flush()
    except BrokenPipeError:  # who reads has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except helve.Error as fault:
        print(_told(fault, source.outside(sys._getframe())[0].f_code.co_filename), file=sys.stderr)
        return 2
    except Mistake as fault:
        print(fault, file=sys.stderr)
        return 2
    return 0


def _warn(message, category, filename, lineno, file=None, line=None) -> None:
    """Prints a warning of helve as its text, any other as Python does."""
    if issubclass(category, helve.Warning):
        print(message, file=sys.stderr)
    else:
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno, line))


def _told(fault: helve.Error, caller: str) -> helve.Error:
    """The fault; without its place where that is only what called the command."""
    if fault.filename != caller:
        return fault
    data = fault.diagnostic
    fixes = data.help.split("\n") if data.help else []
    return from_diagnostic(_core.Diagnostic(data.name, _core.Span(), data.args, data.notes, fixes))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="helve", description="helve, a tensor compiler.")
    parser.add_argument("--version", action="version", version=helve.__version__)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    each = _command(commands, "doctor", doctor.command, "say what this machine has, and how to get what is missing")

    each = _command(commands, "cache", cache.command, "show or clear the cache of compiled kernels")
    each.add_argument("action", nargs="?", choices=("show", "clear"), default="show", help="show is the default")

    each = _command(commands, "run", programs.run_command, "compile a kernel, run it on random arguments, and time it")
    _add_program(each)
    each.add_argument("--size", type=_size, action="append", default=[], metavar="NAME=N",
                      help=f"an extent that the kernel leaves open; {programs.EXTENT} by default")
    each.add_argument("--seed", type=_natural, default=0, help="of the random numbers")
    each.add_argument("--rounds", type=_positive, default=15, help="samples of the time, 15 by default")

    each = _command(commands, "show", programs.show_command, "print a stage of a compile")
    _add_program(each)
    each.add_argument("--stage", default="script", help='"script" (the default), "lowered", "llvm", "cuda", "asm", ...')
    each.add_argument("--stages", action="store_true", help="list the stages that there are")
    each.add_argument("--arch", help='for target "cuda": what to compile for, such as sm_90a')

    each = _command(commands, "launch", launch.command, "run a program of Python in processes that reach each other")
    each.add_argument("-n", "--processes", type=_positive, required=True, help="one for each device of the mesh")
    each.add_argument("--tcp", action="store_true", help="without mpirun, which else starts them where there is one")
    each.add_argument("program", nargs=argparse.REMAINDER, help="a file of Python, and its arguments")

    each = _command(commands, "layout", layouts.command, "say what a layout is, and draw it")
    each.add_argument("notation", help='the layout, for example "S[(8, 16) : (4@laneid, 1)]"')
    each.add_argument("--shape", type=_extents, help="extents of the picture, for example 8,16")
    each.add_argument("--svg", type=Path, help="write the picture to this file")
    return parser


def _command(commands: argparse._SubParsersAction, name: str, function, summary: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
    parser.set_defaults(command=function)
    return parser


def _add_program(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", metavar="FILE[:function]", help=_PROGRAM)
    parser.add_argument("--target", default="llvm", help='"llvm" (the default), "cuda" or "interp"')
    parser.add_argument("--mesh", type=_extents, metavar="R,C", help="cores of the mesh, for functions of one")


def _extents(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no list of numbers such as 8,16") from None


def _number(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if not least <= value < 2**31:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number of {least} or more")
    return value


def _natural(text: str) -> int:
    return _number(text, 0)


def _positive(text: str) -> int:
    return _number(text, 1)


def _size(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    if not name.isidentifier():
        raise argparse.ArgumentTypeError(f"'{text}' is no extent such as M=4096")
    return name, _number(value, 0)
