"""Gradients by names: which tensor of a forward pass each parameter of its backward kernel is.

The kernel library and most papers write DY for the gradient that comes in at Y, so that names say everything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from helve import _core
from helve.jit import JitFunction
from helve.target import core_function, declared_outputs
from helve.torch.registration import refused


@dataclass(frozen=True)
class Named:
    """What an operator takes and returns.

    Attributes:
        inputs: names of its parameters, in order.
        tensors: which of them are tensors.
        outputs: names of its results; empty texts where they have none.
    """

    inputs: tuple[str, ...]
    tensors: frozenset[str]
    outputs: tuple[str, ...]

    def gradients_of(self, backward: Any) -> tuple[str, ...] | None:
        """The outputs of a backward kernel that declares none: what it writes and is named as a gradient."""
        if isinstance(backward, JitFunction) or declared_outputs(backward):
            return None
        function = core_function(backward)
        effects = iter(_core.tensor_effects(function))
        found = [param.name for param in function.params if isinstance(param, _core.Buffer) and next(effects)[1]]
        return tuple(name for name in found if self._input_of(name) is not None)

    def _input_of(self, gradient: str) -> int | None:
        """The place of the input that a name is the gradient of."""
        return _place(gradient, self.inputs, gradient_names)


@dataclass(frozen=True)
class Match:
    """How a backward operator is called.

    Attributes:
        sources: for each of its parameters ("input", place), ("output", place) or ("gradient", place of the output).
        results: for each of its results the place of the input that it is the gradient of.
        inputs: how many inputs the forward operator has.
    """

    sources: tuple[tuple[str, int], ...]
    results: tuple[int, ...]
    inputs: int


def itself(name: str) -> tuple[str, ...]:
    """The spellings of a tensor."""
    return (name.lower(),)


def gradient_names(name: str) -> tuple[str, ...]:
    """The spellings of a tensor's gradient, in lower case."""
    return f"d{name.lower()}", f"d_{name.lower()}", f"grad_{name.lower()}"


def _place(name: str, candidates: tuple[str, ...], spellings: Callable[[str], tuple[str, ...]]) -> int | None:
    return next((n for n, each in enumerate(candidates) if each and name.lower() in spellings(each)), None)


def matched(name: str, forward: Named, backward: Named) -> Match:
    """The call of the backward operator.

    Raises:
        helve.Error: HV0108 for a parameter or a result whose name is none of the forward pass.
    """
    sources, results = [], []
    for each in backward.inputs:
        for kind, candidates, spellings in (("input", forward.inputs, itself), ("output", forward.outputs, itself),
                                            ("gradient", forward.outputs, gradient_names)):
            place = _place(each, candidates, spellings)
            if place is not None:
                sources.append((kind, place))
                break
        else:
            raise refused("helve.torch.op", each, "backward", f"the gradient's kernel takes it, and '{name}' has "
                          f"nothing of that name: {_listed(forward)}", "name its parameters after those of the forward "
                          "kernel, and gradients with a D in front")
    for each in backward.outputs:
        place = forward._input_of(each)
        if place is None or forward.inputs[place] not in forward.tensors:
            raise refused("helve.torch.op", each, "backward", "the gradient's kernel returns it, and it is the "
                          f"gradient of no tensor of '{name}': {_listed(forward)}",
                          "name results after the forward kernel's inputs, with a D in front")
        if place in results:
            raise refused("helve.torch.op", each, "backward", "it is a second gradient of "
                          f"'{forward.inputs[place]}'", "return one for each input")
        results.append(place)
    if not results:
        raise refused("helve.torch.op", f"{name}_backward", "backward", f"it returns no gradient: {_listed(forward)}",
                      "name a result after an input of the forward kernel, with a D in front")
    return Match(tuple(sources), tuple(results), len(forward.inputs))


def _listed(forward: Named) -> str:
    return f"its inputs are {', '.join(forward.inputs)}, its outputs {', '.join(filter(None, forward.outputs))}"


def gradient_function(operator: torch._ops.OpOverload, match: Match) -> tuple[Callable, Callable]:
    """(setup_context, backward), as `torch.library.register_autograd` takes them."""

    def setup(ctx: Any, inputs: tuple, output: Any) -> None:
        outputs = output if isinstance(output, tuple) else (output,)
        held = {"input": inputs, "output": outputs}
        values = [None if kind == "gradient" else held[kind][place] for kind, place in match.sources]
        ctx.save_for_backward(*[value for value in values if isinstance(value, torch.Tensor)])
        ctx.others = [None if isinstance(value, torch.Tensor) else value for value in values]
        ctx.saved = [isinstance(value, torch.Tensor) for value in values]
        ctx.dtypes = [inputs[place].dtype for place in match.results]

    def backward(ctx: Any, *gradients: Any) -> tuple:
        saved = iter(ctx.saved_tensors)
        values = [gradients[place] if kind == "gradient" else next(saved) if tensor else other
                  for (kind, place), tensor, other in zip(match.sources, ctx.saved, ctx.others)]
        results = operator(*values)
        found: list[Any] = [None] * match.inputs
        for place, dtype, result in zip(match.results, ctx.dtypes,
                                        results if isinstance(results, (tuple, list)) else (results,)):
            found[place] = result.to(dtype)
        return tuple(found)

    return setup, backward
