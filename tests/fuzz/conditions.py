"""Random conditions of many operands: spines of `and` and `or`, flat, nested to one side, and in groups of each other.

What an operand guards stands anywhere behind it, so a condition that is taken apart and put together in another order,
or evaluated as a whole, reads outside of a tensor.
"""

import program as p
import scalars
from idioms import both

OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
OTHER = {"and": "or", "or": "and"}


def opposite(e):
    """The condition that holds where e fails."""
    if isinstance(e, p.Apply) and e.op in OPPOSITE and not scalars.is_float(e.dtype):
        return p.Apply(OPPOSITE[e.op], e.dtype, e.args)
    return p.Apply("not", "bool", [e])


def grouped(op, operands, rng):
    """The operands in their order under one operator, however it is nested."""
    match rng.choice(["flat", "flat", "left", "right", "halves"]):
        case "left":
            return both(operands, op)
        case "right":
            out = operands[-1]
            for e in reversed(operands[:-1]):
                out = p.Apply(op, "bool", [e, out])
            return out
        case "halves" if len(operands) > 2:
            at = rng.randint(1, len(operands) - 1)
            return p.Apply(op, "bool", [grouped(op, part, rng) if len(part) > 1 else part[0]
                                        for part in (operands[:at], operands[at:])])
    return p.Apply(op, "bool", list(operands))


class Conditions:
    """Makers of conditions, over what `Generator` knows."""

    def long_condition(self, loads=True):
        """A condition of 17 to 60 operands; None where no name is in scope."""
        rng = self.rng
        if not self.indices:
            return None
        self.loading = loads
        count = rng.choice([17, 18, rng.randint(17, 32), rng.randint(17, 60)])
        return self.spine(rng.choice(["and", "or"]), count, rng.random() < 0.7, rng.choice([0, 0, 1, 2]))

    def spine(self, op, count, holds, depth):
        """So many operands under `op`, of which some are groups of the other one; true or false nearly always."""
        rng = self.rng
        neutral = op == "and"  # what leaves the result to the operands after it
        decides = None if holds == neutral else rng.randrange(count)
        operands, later = [], []
        while count > 0:
            size = rng.randint(2, max(2, count // 2))
            if decides is not None and count <= decides + 1:
                operands.append(self.operand(not neutral))
                decides = None
                count -= 1
            elif depth and size <= count and rng.random() < 0.4:
                operands.append(self.spine(OTHER[op], size, neutral, depth - 1))
                count -= size
            elif self.loading and rng.random() < 0.2 and (tests := self.guarded(neutral)):
                later.append(tests.pop())
                operands += tests
                count -= len(tests) + 1
            else:
                operands.append(self.operand(neutral))
                count -= 1
            if later and rng.random() < 0.3:
                operands.append(later.pop(0))
        return grouped(op, operands + later, rng) if len(operands + later) > 1 else (operands + later)[0]

    def operand(self, holds):
        """A condition that is nearly always true, or false."""
        if self.loading and self.rng.random() < 0.04:
            return self.truth_of(2)
        e = self.usual()
        return e if holds else opposite(e)

    def guarded(self, holds):
        """Conditions, each nearly always of that value, behind which the last one may be evaluated: it loads."""
        rng = self.rng
        fits = [b for b in self.buffers if all(self.shapes[b]) and b.dtype != "bool"]
        if not fits:
            return []
        b = rng.choice(fits)
        load, tests = self.reaching(b)
        if scalars.is_float(b.dtype):
            e = p.Apply("<", b.dtype, [load, p.Const(b.dtype, rng.choice([2.5, 128.0, 128.0]))])
        else:
            e = p.Apply(rng.choice(["!=", "<"]), b.dtype, [load, p.Const(b.dtype, rng.randint(3, 9))])
        return [t if holds else opposite(t) for t in [*tests, e]]
