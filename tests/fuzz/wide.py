"""Scalar parameters of 64 bits: any value as data, a small one as an index too.

A uint64 of 2**63 or more is a number like any other until the function makes an index of it: such a call is refused.
"""

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


def wide_indices(program):
    """Names of the uint64 parameters that the function makes indices of."""
    import tree

    kinds = {q.name: q.dtype for q in program.params if isinstance(q, p.Var)}
    found = (e.arg.name for _, e in tree.places(program.body)
             if isinstance(e, p.Cast) and e.dtype == "index" and isinstance(e.arg, p.Var))
    return {name for name in found if kinds.get(name) == "uint64"}


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
