"""Scalar parameters of 64 bits: any value as data, a small one as an index too.

A uint64 of 2**63 or more is a number like any other until the function makes an index of it: such a call is refused.
"""

import dataclasses

import program as p
from scalars import int_range


def wide_value(dtype, rng):
    """A value that a wrong sign, 63 bits or 53 bits change."""
    low, high = int_range(dtype)
    middle = 2**63 if dtype == "uint64" else 2**62
    return rng.choice([low, high, middle, middle - 1, middle + rng.getrandbits(50), rng.randint(low, high),
                       high - rng.randint(0, 99), rng.randint(max(low, -9), 9)])


def no_index(rng):
    """A uint64 that is no index."""
    return 2**63 + rng.choice([0, 1, 5, 2**63 - 1, rng.getrandbits(62)])


def wide_indices(program, surely=False):
    """Names of the uint64 parameters that the function makes indices of; `surely`: not only in code that a condition
    without run-time values may leave out when the function is read.
    """
    kinds = {q.name: q.dtype for q in program.params if isinstance(q, p.Var)}
    return {name for name in _converted(program.body, surely) if kinds.get(name) == "uint64"}


def _converted(node, surely):
    if isinstance(node, p.Cast) and node.dtype == "index" and isinstance(node.arg, p.Var):
        yield node.arg.name
    if surely and _may_leave_out(node):
        return
    for value in vars(node).values() if dataclasses.is_dataclass(node) else _items(node):
        if not isinstance(value, p.Buffer):
            yield from _converted(value, surely)


def _may_leave_out(node):
    match node:
        case (p.If(condition=condition) | p.While(condition=condition)
              | p.Apply(op="if_then_else", args=[condition, *_])):
            return _may_be_known(condition)
        case p.Apply(op="and" | "or"):
            return _may_be_known(node)
    return False


def _may_be_known(condition):
    """May what is known of the operands decide the condition?"""
    connects = isinstance(condition, p.Apply) and condition.op in ("and", "or", "not")
    return _is_known(condition) or connects and any(map(_may_be_known, condition.args))


def _is_known(e):
    """Does nothing of this expression hang on the run?"""
    if isinstance(e, (p.Var, p.Load)):
        return False
    return all(map(_is_known, e.args if isinstance(e, p.Apply) else [e.arg] if isinstance(e, p.Cast) else []))


def _items(node):
    return node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()


class Wide:
    """Declares such parameters."""

    def wide_scalar(self):
        rng = self.rng
        dtype = rng.choice(["uint64", "uint64", "uint64", "int64"])
        var = p.Var(self.fresh("u"), dtype)
        self.params.append(var)
        self.values.append(var)
        if rng.random() < 0.5:
            value = rng.choice([0, 1, 2, 3, 4, rng.choice(self.pool)])
            self.indices.append((p.Cast("index", var), value, value))
        else:
            value = wide_value(dtype, rng)
            self.kinds.append(dtype)
        self.scalar_values[var.name] = value

    def wide_condition(self):
        """A comparison of such a parameter with a number; None where there is none."""
        rng = self.rng
        fits = [v for v in self.values if v.name.startswith("u")]
        if not fits:
            return None
        var = rng.choice(fits)
        value = rng.choice([self.scalar_values[var.name], wide_value(var.dtype, rng)])
        return p.Apply(rng.choice(sorted(p.COMPARISONS)), var.dtype, [var, p.Const(var.dtype, value)])
