"""Matching the arguments of a call with the parameters of a construct.

Python's own rules, but on syntax trees: values are evaluated later, each by what its parameter wants.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import ClassVar

from helve.errors import error
from helve.language.constructs import Parameter
from helve.language.habits import keyword_meant
from helve.script.context import Context


@dataclass(frozen=True)
class Signature:
    """The parameters of a function, as those of a construct."""

    text: str
    parameters: tuple[Parameter, ...]
    variadic = None
    spellings: ClassVar[dict[str, str]] = {}
    hints: ClassVar[dict[str, str]] = {}

    @property
    def parameter_text(self) -> str:
        """The parameters as in diagnostics."""
        return ", ".join(map(str, self.parameters)) or "none"


@dataclass
class Arguments:
    """The arguments of one call: a node for each parameter that was given, and the further positional ones."""

    construct: object
    call: ast.Call
    nodes: dict[str, ast.expr] = field(default_factory=dict)
    rest: list[ast.expr] = field(default_factory=list)

    def get(self, name: str) -> ast.expr | None:
        """The node given for a parameter, or None when its default holds."""
        return self.nodes.get(name)

    def __getitem__(self, name: str) -> ast.expr:
        return self.nodes[name]


def match(context: Context, construct, call: ast.Call) -> Arguments:
    """Matches a call; raises TooManyArguments, UnknownKeyword, MissingArgument or BadArgument where the fault is."""
    arguments = Arguments(construct, call)
    parameters = construct.parameters
    for node in call.args:
        if isinstance(node, ast.Starred):
            raise context.unsupported(node, "'*' before an argument", "write the arguments one by one")
    if construct.variadic:
        arguments.rest = list(call.args)
    else:
        if len(call.args) > len(parameters):
            raise error("TooManyArguments", context.span(call.args[len(parameters)]), function=construct.text,
                        limit=len(parameters), given=len(call.args), parameters=construct.parameter_text)
        arguments.nodes = {p.name: node for p, node in zip(parameters, call.args)}
    known = {p.name for p in parameters}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise context.unsupported(keyword.value, "'**' before an argument", "write the arguments one by one")
        name = construct.spellings.get(keyword.arg, keyword.arg)
        if name in construct.hints:
            context.warn(keyword, "HintWithoutEffect", hint=f"{keyword.arg}=", reason=construct.hints[name])
            continue
        if name not in known:
            raise error("UnknownKeyword", context.span(keyword), function=construct.text, keyword=keyword.arg,
                        parameters=construct.parameter_text,
                        fixes=keyword_fixes(keyword.arg, construct))
        if name in arguments.nodes:
            raise context.bad_argument(keyword.value, construct.text, name, "it is given by position as well",
                                       f"give '{name}' once")
        arguments.nodes[name] = keyword.value
    for parameter in parameters:
        if parameter.required and parameter.name not in arguments.nodes:
            raise error("MissingArgument", context.span(call), function=construct.text, parameter=parameter.name,
                        parameters=construct.parameter_text)
    return arguments


def keyword_fixes(keyword: str, construct) -> list[str]:
    """The parameter that was meant, if one is near, and all of them."""
    near = keyword_meant(keyword, [p.name for p in construct.parameters])
    return [*near, f"its parameters are: {construct.parameter_text}"] if near else []
