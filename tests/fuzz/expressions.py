"""Random typed expressions over the names and buffers in scope.

Index expressions carry their range, so that a subscript is inside its buffer by construction.
"""

import random

import program as p
import scalars

FUNCTIONS = ["exp", "exp2", "exp2_approx", "sqrt", "rsqrt", "log", "log2", "sin", "cos", "tanh", "erf", "sigmoid",
             "pow"]
PLAIN = [name for name in [*scalars.BITS, *scalars.FLOATS, "bool"] if name not in scalars.PACKED]


class Expressions:
    """What is in scope, and expressions over it."""

    def __init__(self, rng):
        self.rng = rng
        self.aside = random.Random(repr(rng.getstate()))  # for what came later: the other choices of a seed stay
        self.names = 0
        self.indices = []  # (Var, least, greatest)
        self.values = []  # Var
        self.buffers = []  # readable everywhere
        self.own = []  # Load expressions that are readable here
        self.shapes = {}  # Buffer -> concrete extents
        self.inexact = rng.random() < 0.3
        self.bits = True  # shifts and masks of indices
        self.tile = [rng.choice([2, 3, 4]), rng.choice([2, 3, 4, 8])]

    def fresh(self, letter):
        self.names += 1
        return f"{letter}{self.names}"

    def hide(self, buffer):
        if buffer is not None:
            self.hidden = self.buffers
            self.buffers = [b for b in self.buffers if b is not buffer]

    def show(self, buffer):
        if buffer is not None:
            self.buffers = self.hidden

    # -- index --------------------------------------------------------------------------------------------------------

    def any_index(self, depth):
        """(expression, least, greatest)."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.3:
            if self.indices and rng.random() < 0.8:
                return rng.choice(self.indices)
            c = rng.randint(0, 4)
            return p.Const("index", c), c, c
        a, lo, hi = self.any_index(depth - 1)
        c = rng.choice([1, 2, 3, 4, 5, 7])
        n = p.Const("index", c)
        match rng.choice(["+", "-", "*", "//", "%", "+", "-", "*", "//", "%", "+v", "-v", "min", "max", "neg", "//-",
                          "%-", "bits"]):
            case "bits" if not self.bits:
                return a, lo, hi
            case "bits":
                return self.index_bits(a, lo, hi)
            case "+":
                return p.Apply("+", "index", [a, n]), lo + c, hi + c
            case "-":
                return p.Apply("-", "index", [a, n]), lo - c, hi - c
            case "*":
                return p.Apply("*", "index", [a, n]), lo * c, hi * c
            case "//":
                return p.Apply("//", "index", [a, n]), lo // c, hi // c
            case "%":
                return p.Apply("%", "index", [a, n]), 0, c - 1
            case "//-":
                return p.Apply("//", "index", [a, p.Const("index", -c)]), hi // -c, lo // -c
            case "%-":
                return p.Apply("%", "index", [a, p.Const("index", -c)]), 1 - c, 0
            case "neg":
                return p.Apply("-", "index", [a]), -hi, -lo
            case "min" | "max" as op:
                b, lo2, hi2 = self.any_index(depth - 1)
                f = min if op == "min" else max
                return p.Apply(op, "index", [a, b]), f(lo, lo2), f(hi, hi2)
            case "+v":
                b, lo2, hi2 = self.any_index(depth - 1)
                return p.Apply("+", "index", [a, b]), lo + lo2, hi + hi2
            case "-v":
                b, lo2, hi2 = self.any_index(depth - 1)
                return p.Apply("-", "index", [a, b]), lo - hi2, hi - lo2

    def index_bits(self, a, lo, hi):
        """Shifts and bits of an index."""
        c = self.rng.randint(0, 3)
        n, ones = p.Const("index", c), p.Const("index", 2**c - 1)
        match self.rng.choice(["<<", ">>", "&", "|", "^", "~", "1<<"]):
            case "<<":
                return p.Apply("<<", "index", [a, n]), lo << c, hi << c
            case ">>":
                return p.Apply(">>", "index", [a, n]), lo >> c, hi >> c
            case "&":
                return p.Apply("&", "index", [a, ones]), 0, 2**c - 1
            case ("|" | "^") as op if lo >= 0:
                return p.Apply(op, "index", [a, ones]), 0, 2 ** max(hi.bit_length(), c) - 1
            case "1<<" if 0 <= lo and hi <= 9:
                # Of a number of blocks that a call gives, the power would have no bound.
                return p.Apply("<<", "index", [p.Const("index", 1), p.Apply("min", "index", [a, p.Const("index", 9)])]
                               ), 1 << lo, 1 << hi
        return p.Apply("~", "index", [a]), ~hi, ~lo

    def index_in(self, n):
        """An index expression in [0, n), n > 0."""
        rng = self.rng
        if n == 1 and rng.random() < 0.7:
            return p.Const("index", 0)
        fits = [v for v, lo, hi in self.indices if 0 <= lo and hi < n]
        if fits and rng.random() < 0.5:
            return rng.choice(fits)
        if rng.random() < 0.1:
            loads = [x for x in self.loads() if x.buffer.dtype in ("int8", "int16", "int32", "uint8", "uint16")]
            if loads:
                return p.Apply("%", "index", [p.Cast("index", rng.choice(loads)), p.Const("index", n)])
        e, lo, hi = self.any_index(2)
        if 0 <= lo and hi < n:
            return e
        if lo > 0 and hi - lo < n:
            return p.Apply("-", "index", [e, p.Const("index", lo)])
        if rng.random() < 0.5:
            return p.Apply("%", "index", [e, p.Const("index", n)])
        return p.Apply("min", "index", [p.Apply("max", "index", [e, p.Const("index", 0)]), p.Const("index", n - 1)])

    def symbolic(self, extent, known=None):
        """An extent as a number, or as an expression that is only known to be it."""
        if self.rng.random() < 0.15:
            for v, lo, hi in self.indices[:known]:
                if lo == hi == extent:
                    return v
        if self.rng.random() < 0.1:
            varying = [(v, lo, hi) for v, lo, hi in self.indices[:known] if lo != hi and 0 <= lo and hi <= extent]
            if varying:
                return self.rng.choice(varying)[0]
        return extent

    def index_condition(self):
        a, _, _ = self.any_index(2)
        b, _, _ = self.any_index(1)
        if isinstance(a, p.Const) and isinstance(b, p.Const):
            return p.Const("bool", a.value < b.value)
        return p.Apply(self.rng.choice(sorted(p.COMPARISONS)), "index", [a, b])

    # -- values -------------------------------------------------------------------------------------------------------

    def castable(self, source, target):
        """Does a copy convert so, and may we? Unexact floats are kept out of integers."""
        return source == target or not (scalars.is_float(source) and not scalars.is_float(target))

    def constant(self, dtype, weak=False):
        rng = self.rng
        if dtype == "bool":
            return p.Const("bool", rng.random() < 0.5)
        if scalars.is_float(dtype):
            return p.Const(dtype, scalars.round_float(rng.randint(-12, 12) / 4, dtype), weak)
        low, high = scalars.int_range(dtype)
        value = rng.randint(max(low, -6), 9) if rng.random() < 0.8 else rng.choice([low, high, high // 2])
        return p.Const(dtype, value, weak)

    def loads(self):
        """Loads of what is readable here, each buffer at a random place."""
        return self.own + [self.load(b) for b in self.buffers if all(n > 0 for n in self.shapes[b])]

    def load(self, buffer):
        indices = []
        for n in self.shapes[buffer]:
            fits = [v for v, lo, hi in self.indices if 0 <= lo and hi < n]
            plain = fits and self.rng.random() < 0.6
            indices.append(self.rng.choice(fits) if plain else self.cheap_index(n))
        return p.Load(buffer, indices)

    def cheap_index(self, n):
        """As index_in, without loads, so that subscripts do not nest."""
        e, lo, hi = self.any_index(2)
        return e if 0 <= lo and hi < n else p.Apply("%", "index", [e, p.Const("index", n)])

    def leaf(self, dtype):
        rng = self.rng
        options = [v for v in self.values if v.dtype == dtype]
        candidates = [b for b in self.buffers if b.dtype == dtype and all(n > 0 for n in self.shapes[b])]
        owns = [x for x in self.own if x.buffer.dtype == dtype]
        if owns and rng.random() < 0.5:
            return self.own_of_one(rng.choice(owns))
        if rng.random() < 0.06:
            load = self.guarded_load(dtype)
            if load is not None:
                return load
        if candidates and rng.random() < 0.8:
            return self.load(rng.choice(candidates))
        if options and rng.random() < 0.5:
            return rng.choice(options)
        if self.indices and dtype != "bool" and rng.random() < 0.3:
            e, lo, hi = self.any_index(1)
            if lo == hi:  # the parser may know the number, and refuses one that does not fit
                e, lo, hi = rng.choice(self.indices)
            if dtype in scalars.COARSE and max(-lo, hi) > (1000 if dtype == "float16" else 8):
                return self.constant(dtype)
            return p.Cast(dtype, e)
        everything = [b for b in self.buffers if all(n > 0 for n in self.shapes[b])]
        source = None
        wide = [v for v in self.values if v.dtype in ("int64", "uint64")] if scalars.is_int(dtype) else []
        if self.own and rng.random() < 0.4:
            source = rng.choice(self.own)
        elif wide and rng.random() < 0.4:
            source = rng.choice(wide)
        elif everything and rng.random() < 0.5:
            source = self.load(rng.choice(everything))
        if source is not None:
            return self.fit(source, dtype)
        return self.constant(dtype)

    def fit(self, e, dtype):
        """The expression converted to dtype; floats reach integers only in programs that are exact."""
        own = p.dtype_of(e)
        if own == dtype:
            return e
        if scalars.is_float(own) and not scalars.is_float(dtype) and self.inexact:
            return self.constant(dtype)
        return p.Cast(dtype, e)

    def stored(self, dtype, depth):
        """A value for a store: floats are kept small, so that loops cannot make them grow."""
        e = self.value(dtype, depth)
        if scalars.is_float(dtype) and isinstance(e, p.Apply) and self.rng.random() < 0.85:
            low, high = p.Const(dtype, -8.0, True), p.Const(dtype, 8.0, True)
            if self.rng.random() < 0.2:
                return p.Apply("clamp", dtype, [e, low, high])
            return p.Apply("max", dtype, [p.Apply("min", dtype, [e, high]), low])
        return e

    def condition(self, depth):
        choice = self.rng.random()
        if choice < 0.3:
            return self.index_condition()
        if choice < 0.33 and (e := self.long_condition()):
            return e
        if choice < 0.37 and (e := self.wide_condition()):
            return e
        return self.value("bool", depth)

    def value(self, dtype, depth):
        """An expression of dtype; a Const only where nothing else is in scope or by choice."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.15:
            return self.leaf(dtype)
        if dtype == "bool":
            return self.truth(depth)
        if rng.random() < 0.12:
            branches = [self.value(dtype, depth - 1), self.value(dtype, depth - 1)]
            condition = self.condition(depth - 1)
            constant = isinstance(condition, p.Const)
            return branches[0] if constant else p.Apply("if_then_else", dtype, [condition, *branches])
        if rng.random() < 0.08:
            return self.widened(dtype, depth)
        if rng.random() < 0.05:
            return self.fit(self.value(rng.choice(PLAIN), depth - 1), dtype)
        return (self.float_value if scalars.is_float(dtype) else self.int_value)(dtype, depth)

    def truth(self, depth):
        rng = self.rng
        choice = rng.random()
        if choice < 0.2:
            return self.leaf("bool")
        if choice < 0.35:
            return p.Apply(rng.choice(["and", "or"]), "bool", [self.truth_of(depth), self.truth_of(depth)])
        if choice < 0.45:
            return p.Apply("not", "bool", [self.truth_of(depth)])
        if choice < 0.6:
            return self.index_condition()
        dtypes = {b.dtype for b in self.buffers} | {v.dtype for v in self.values} | {x.buffer.dtype for x in self.own}
        dtypes = sorted(dtypes - {"bool", "index"})
        if not dtypes:
            return self.index_condition()
        dtype = rng.choice(dtypes)
        return p.Apply(rng.choice(sorted(p.COMPARISONS)), dtype, self.pair(dtype, depth))

    def truth_of(self, depth):
        return self.truth(depth - 1) if depth > 1 else self.index_condition()

    def pair(self, dtype, depth):
        """Two operands, not both constant; a constant may be written bare."""
        a = self.value(dtype, depth - 1)
        b = self.value(dtype, depth - 1)
        if isinstance(a, p.Const) and isinstance(b, p.Const):
            return [a, b]
        if isinstance(b, p.Const) and self.rng.random() < 0.5:
            b.weak = True
        return [a, b]

    def widened(self, dtype, depth):
        """An operator on a narrower and a wider operand."""
        narrow = {
            "float32": ["float16", "bfloat16"], "float64": ["float32", "float16"], "int16": ["int8"],
            "int32": ["int8", "int16"],
            "int64": ["int8", "int32"], "uint16": ["uint8"], "uint32": ["uint8", "uint16"],
            "uint64": ["uint32", "uint8"],
        }.get(dtype)  # fmt: skip
        if not narrow:
            return self.leaf(dtype)
        a, b = self.value(self.rng.choice(narrow), depth - 1), self.value(dtype, depth - 1)
        args = [a, b] if self.rng.random() < 0.5 else [b, a]
        return p.Apply(self.rng.choice(["+", "-", "min", "max"]), dtype, args)

    def int_value(self, dtype, depth):
        rng = self.rng
        op = rng.choice(["+", "+", "-", "-", "*", "*", "//", "%", "&", "|", "^", "<<", ">>", "~", "abs", "neg", "min",
                         "max"])
        a = self.value(dtype, depth - 1)
        if op in ("~", "abs"):
            return p.Apply(op, dtype, [a])
        if op == "neg":
            return p.Apply("-", dtype, [a])
        if op in ("//", "%"):
            low, high = scalars.int_range(dtype)
            if rng.random() < 0.5:
                divisors = [c for c in (1, 2, 3, 4, 5, 7, 8, -1, -2, -3, -8, low, high) if c and c >= low]
                b = p.Const(dtype, rng.choice(divisors))
            else:
                b = p.Apply("|", dtype, [self.value(dtype, depth - 1), p.Const(dtype, 1, True)])
            return p.Apply(op, dtype, [a, b])
        if op in ("<<", ">>"):
            bits = scalars.BITS[dtype]
            if rng.random() < 0.6:
                return p.Apply(op, dtype, [a, p.Const(dtype, rng.choice([0, 1, 2, 3, bits - 1, bits - 1, bits]))])
            return p.Apply(op, dtype, [a, p.Apply("&", dtype, [self.value(dtype, depth - 1), p.Const(dtype, 7, True)])])
        b = self.value(dtype, depth - 1)
        if isinstance(b, p.Const) and not isinstance(a, p.Const) and rng.random() < 0.5:
            b.weak = True
        return p.Apply(op, dtype, [a, b])

    def float_value(self, dtype, depth):
        rng = self.rng
        if self.inexact and rng.random() < 0.25:
            return self.function(dtype, depth)
        op = rng.choice(["+", "+", "-", "-", "*", "*", "min", "max", "abs", "neg", "fma", "/", "round"])
        a = self.value(dtype, depth - 1)
        if op == "abs":
            return p.Apply("abs", dtype, [a])
        if op == "neg":
            return p.Apply("-", dtype, [a])
        if op == "round":
            return a if self.inexact else p.Apply(rng.choice(["floor", "ceil", "round"]), dtype, [a])
        if op == "fma":
            return p.Apply("fma", dtype, [a, self.value(dtype, depth - 1), self.value(dtype, depth - 1)])
        if op == "/":
            if rng.random() < 0.6 or not self.inexact:
                return p.Apply("/", dtype, [a, p.Const(dtype, rng.choice([2.0, -4.0, 0.5]))])
            return p.Apply("/", dtype, [a, self.positive(self.value(dtype, depth - 1), dtype, 1.0)])
        b = self.value(dtype, depth - 1)
        if isinstance(b, p.Const) and not isinstance(a, p.Const) and rng.random() < 0.5:
            b.weak = True
        return p.Apply(op, dtype, [a, b])

    def positive(self, e, dtype, least):
        return p.Apply("+", dtype, [p.Apply("abs", dtype, [e]), p.Const(dtype, least, True)])

    def function(self, dtype, depth):
        op = self.rng.choice(FUNCTIONS)
        low, high = p.Const(dtype, -6.0, True), p.Const(dtype, 6.0, True)
        a = p.Apply("max", dtype, [p.Apply("min", dtype, [self.value(dtype, depth - 1), high]), low])
        if op in ("sqrt", "rsqrt", "log", "log2"):
            a = self.positive(a, dtype, 0.5)
        if op == "pow":
            return p.Apply("pow", dtype, [self.positive(a, dtype, 0.5), self.constant(dtype)])
        return p.Apply(op, dtype, [a])
