"""Expressions as functions of an executor: each is made once, with the conversions of its operands already decided.

`meaning` evaluates an expression thousands of times; walking its tree each time was most of the time of a campaign.
"""

import operator

import program as p
import scalars
from scalars import Undefined

LIMIT = 2**40  # of an index, on any machine
COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
           "!=": operator.ne}
PLAIN = {"+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_,
         "^": operator.xor, "min": min, "max": max}


def _index(f):
    """A function of index values whose result has to be one."""

    def checked(core):
        x = f(core)
        if -LIMIT <= x <= LIMIT:
            return x
        raise Undefined("an index is out of any machine's range")

    return checked


def _small(f):
    """A function of uint64 values whose result has to be an index."""

    def checked(core):
        x = f(core)
        if x < 2**63:
            return x
        raise Undefined("a uint64 of 2**63 or more is no index")

    return checked


def _wrapped(f, dtype):
    """A function of integers whose result wraps."""
    mask = (1 << scalars.BITS[dtype]) - 1
    if scalars.is_unsigned(dtype):
        return lambda core: f(core) & mask
    half = (mask + 1) >> 1
    return lambda core: (f(core) + half & mask) - half


class Evaluator:
    """Makes the functions; `load` gives the value of a Load on an executor."""

    def __init__(self, load):
        self.load = load
        self.made = {}  # id of an expression -> (function, the expression, which keeps its id)

    def of(self, e):
        known = self.made.get(id(e))
        if known is None:
            known = self.made[id(e)] = self.MAKERS[type(e)](self, e), e
        return known[0]

    def _int(self, e):
        return lambda core: e

    def _const(self, e):
        value = (scalars.round_float(float(e.value), e.dtype), 0.0) if scalars.is_float(e.dtype) else e.value
        return lambda core: value

    def _var(self, e):
        name = e.name
        return lambda core: core.vars[name]

    def _cast(self, e):
        return self.converted(e.arg, e.dtype)

    def _load(self, e):
        return self.load(e)

    def converted(self, e, dtype):
        """The value of e as T.cast and operators convert it."""
        own, f = p.dtype_of(e), self.of(e)
        if own == dtype and dtype not in scalars.SMALL:
            return f
        if dtype == "index" and own == "uint64":
            return _small(f)
        if dtype == "index" and own != "bool" and not scalars.is_float(own):
            return f
        convert = scalars.convert
        return lambda core: convert(f(core), own, dtype)

    def operand(self, e, dtype):
        """An operand, widened to the common type."""
        return self.of(e) if p.dtype_of(e) == dtype else self.converted(e, dtype)

    def _apply(self, e):
        if e.op in ("and", "or", "not"):
            return self.logical(e.op, [self.of(a) for a in e.args])
        if e.op == "if_then_else":
            condition = self.of(e.args[0])
            then, otherwise = (self.operand(a, e.dtype) for a in e.args[1:])
            return lambda core: then(core) if condition(core) else otherwise(core)
        if e.op in ("<<", ">>"):
            f = self.general(e.op, [self.of(a) for a in e.args], e.dtype)
            return f
        args = [self.operand(a, e.dtype) for a in e.args]
        if e.op == "clamp":
            x, low, high = args
            raised = self.general("max", [x, low], e.dtype)
            return self.general("min", [raised, high], e.dtype)
        is_float = scalars.is_float(e.dtype)
        if e.op in p.COMPARISONS:
            a, b = args
            if is_float:
                op, dtype, compare = e.op, e.dtype, scalars.compare
                return lambda core: compare(op, a(core), b(core), dtype)
            f = COMPARE[e.op]
            return lambda core: f(a(core), b(core))
        if not is_float and e.op in PLAIN and len(args) == 2:
            a, b = args
            f = PLAIN[e.op]
            plain = lambda core: f(a(core), b(core))  # noqa: E731
            return _index(plain) if e.dtype == "index" else _wrapped(plain, e.dtype)
        return self.general(e.op, args, e.dtype)

    @staticmethod
    def general(op, args, dtype):
        apply = scalars.apply
        if len(args) == 2:
            a, b = args
            return lambda core: apply(op, [a(core), b(core)], dtype)
        return lambda core: apply(op, [a(core) for a in args], dtype)

    @staticmethod
    def logical(op, args):
        """What the left side decides is not evaluated on the right."""
        a = args[0]
        if op == "not":
            return lambda core: not a(core)
        decide = all if op == "and" else any
        return lambda core: decide(f(core) for f in args)

    MAKERS = {int: _int, p.Const: _const, p.Var: _var, p.Cast: _cast, p.Apply: _apply, p.Load: _load}
