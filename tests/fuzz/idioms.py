"""Random programs of the shapes that people write and plain nests of elementwise stores do not reach.

An element that one iteration of a parallel loop picks, scratch wherever it may stand, loads behind guards, chains of
named values, guards of many conditions, rows of several widths in one loop.
"""

import program as p
import scalars

LOOPS = ("Parallel", "Parallel", "serial", "vectorized", "unroll")


def both(conditions, op="and"):
    """One condition of several."""
    out = conditions[0]
    for c in conditions[1:]:
        out = p.Apply(op, "bool", [out, c])
    return out


def compare(op, a, b):
    return p.Apply(op, "index", [a if not isinstance(a, int) else p.index(a), b if not isinstance(b, int)
                                 else p.index(b)])


def varies(e):
    """Does the expression hold a variable?"""
    return isinstance(e, p.Var) or isinstance(e, p.Apply) and any(map(varies, e.args))


class Idioms:
    """Makers of statements, over what `Generator` knows."""

    # -- one iteration of a parallel loop picks -----------------------------------------------------------------------

    def pick(self):
        """A store whose target the loop variables do not all select; a guard leaves one iteration for each element."""
        targets = [b for b in self.targets() if all(self.shapes[b])]
        return self.pick_into(self.rng.choice(targets)) if targets else []

    def pick_into(self, target, base=None):
        """The same for a target; `base` are begins of subscripts that already stand for something, and their extents.
        """
        rng = self.rng
        known, values = len(self.indices), len(self.values)
        subscripts, loops = [], []
        for d, n in enumerate(self.shapes[target]):
            begin, room = base[d] if base else (0, n)
            if base and room == 1:
                subscripts.append(begin if not isinstance(begin, int) else p.index(begin))
                continue
            if rng.random() < 0.35:
                at = self.index_in(room)
            else:
                at = p.Var(self.fresh("i"))
                loops.append((at, rng.choice([room, room, max(1, room - 1)])))
                self.indices.append((at, 0, loops[-1][1] - 1))
            subscripts.append(at if p._is_zero(begin) else p.Apply("+", "index", [begin, at]))
        self.hide(target)
        kept = list(self.indices)
        conditions = []
        for _ in range(rng.choice([1, 1, 1, 2]) if loops else rng.choice([1, 2])):
            var = p.Var(self.fresh("j"))
            extent, condition = self.chosen(var, kept)
            loops.insert(rng.randint(0, len(loops)), (var, extent))
            conditions.append(condition)
            self.indices.append((var, 0, extent - 1))
        picked = [v for v, _ in loops if v.name.startswith("j")]
        if rng.random() < 0.25:
            conditions.insert(rng.randint(0, len(conditions)), self.index_condition())
        if rng.random() < 0.5:
            value = self.fit_index(rng.choice(picked), target.dtype)
        else:
            value = self.stored(target.dtype, 2)
        body = [p.Store(target, subscripts, value)]
        if rng.random() < 0.1:
            body.append(p.Store(target, list(subscripts), self.stored(target.dtype, 1)))
        beside = self.beside(target) if rng.random() < 0.15 else []
        self.show(target)
        del self.indices[known:], self.values[values:]
        body = self.under(conditions, body) + beside
        return self.nest(loops, body, rng.choice(["Parallel"] * 5 + ["vectorized", "nested"]))

    def fit_index(self, var, dtype):
        low, high = self.range_of(var)
        if dtype == "bool" or dtype == "int8" and high > 120 or dtype in scalars.COARSE and max(-low, high) > 8:
            return self.constant(dtype)
        return p.Cast(dtype, var)

    def range_of(self, var):
        return next((lo, hi) for v, lo, hi in reversed(self.indices) if v is var)

    def chosen(self, var, kept):
        """(extent of the variable, a condition that holds for at most one of its values, whatever the others are)."""
        rng = self.rng
        rows = [b for b in self.buffers if b.rows and self.shapes[b][-1] > 0]
        if rows and rng.random() < 0.35:
            b = rng.choice(rows)
            n = self.shapes[b][-1]
            hidden, self.indices = self.indices, kept
            load = p.Load(b, [*(self.index_in(m) for m in self.shapes[b][:-1]), var])
            self.indices = hidden
            number = rng.randrange(n)
            value = p.Const(b.dtype, float(number) if scalars.is_float(b.dtype) else number)
            return n, p.Apply("==", b.dtype, [load, value])
        extent = rng.choice([2, 3, 4, 5, 8, 8, 9, 16, 32, 33, 37] + [64, 96, 128, 200, 256] * self.large)
        hidden, self.indices = self.indices, kept
        match rng.choice(["constant", "constant", "index", "index", "sum", "data", "between", "not"]):
            case "constant":
                out = compare("==", *rng.sample([var, rng.choice([0, extent - 1, rng.randrange(extent)])], 2))
            case "index":
                out = compare("==", *rng.sample([var, self.index_in(extent)], 2))
            case "sum":
                total = p.Apply("+", "index", [var, self.any_index(1)[0]])
                out = compare("==", p.Apply("%", "index", [total, p.index(extent)]), rng.randrange(extent))
            case "data":
                loads = [x for x in self.loads() if x.buffer.dtype in ("int32", "uint8", "int8", "int16", "uint16")]
                at = self.index_in(extent)
                if loads:
                    at = p.Apply("%", "index", [p.Cast("index", rng.choice(loads)), p.index(extent)])
                out = compare("==", var, at)
            case "between":
                c = rng.randrange(extent)
                out = both([compare(">=", var, c), compare("<", var, c + 1)])
            case "not":
                out = p.Apply("not", "bool", [compare("!=", var, self.index_in(extent))])
        self.indices = hidden
        return extent, out

    def under(self, conditions, body):
        """The body where all conditions hold: nested, or in one condition."""
        if len(conditions) == 1 or self.rng.random() < 0.5:
            return [p.If(both(conditions), body, [])]
        for c in reversed(conditions):
            body = [p.If(c, body, [])]
        return body

    def nest(self, loops, body, kind):
        """A loop over (variable, extent) pairs."""
        if kind == "Parallel":
            return [p.For("Parallel", [v for v, _ in loops], [0] * len(loops), [n for _, n in loops], body)]
        for place, (var, n) in reversed(list(enumerate(loops))):
            inner = "vectorized" if kind == "vectorized" and place == len(loops) - 1 else "Parallel"
            body = [p.For(inner, [var], [0], [n], body)]
        return body

    def argmax(self):
        """The place of the greatest element of each row, by a reduction and a comparison with its result."""
        rng = self.rng
        rows = [b for b in self.buffers if b.rows and len(self.shapes[b]) >= 2 and all(self.shapes[b])]
        if not rows:
            return []
        source = rng.choice(rows)
        (n, m) = self.shapes[source][-2:]
        points = [p.Span(self.index_in(e), 1, True) for e in self.shapes[source][:-2]]
        kinds = [rng.choice(["shared", "fragment", "fragment", "local"]) for _ in range(3)]
        x = self.declare(self.fresh("B"), [n, m], source.dtype, kinds[0])
        best = self.declare(self.fresh("B"), [n], source.dtype, kinds[1])
        place = self.declare(self.fresh("B"), [n], rng.choice(["int32", "int64", "float32"]), kinds[2])
        i, j = p.Var(self.fresh("i")), p.Var(self.fresh("j"))
        kind = rng.choice(["max", "min"])
        guard = p.Apply("==", source.dtype, rng.sample([p.Load(x, [i, j]), p.Load(best, [i])], 2))
        store = p.If(guard, [p.Store(place, [i], p.Cast(place.dtype, j))], [])
        order = [(i, n), (j, m)]
        if rng.random() < 0.2:
            order.reverse()
        of = p.Region(source) if not points and rng.random() < 0.5 else \
            p.Region(source, [*points, p.Span(0, n), p.Span(0, m)])
        out = [p.Alloc(x), p.Alloc(best), p.Alloc(place), p.Op("copy", [of, p.Region(x)]),
               p.Op(f"reduce_{kind}", [p.Region(x), p.Region(best)], {"dim": 1}),
               *self.nest(order, [store], rng.choice(["Parallel", "Parallel", "nested"]))]
        self.buffers += [x, best, place]
        return out + self.consumed(place)

    def consumed(self, buffer):
        """A statement by which the block's result comes to depend on the buffer."""
        rng = self.rng
        targets = [b for b in self.targets() if b is not buffer and all(self.shapes[b]) and b.kind != "global"]
        if not targets or not all(self.shapes[buffer]):
            return []
        target = targets[0] if rng.random() < 0.7 else rng.choice(targets)
        variables = [p.Var(self.fresh("i")) for _ in self.shapes[target]]
        known = len(self.indices)
        self.indices += [(v, 0, n - 1) for v, n in zip(variables, self.shapes[target])]
        at = []
        for n in self.shapes[buffer]:
            v = rng.choice(variables)
            at.append(p.index(0) if n == 1 else p.Apply("%", "index", [v, p.index(n)]))
        value = self.fit(p.Load(buffer, at), target.dtype)
        own = p.Load(target, list(variables))
        if target.dtype == "bool":
            value = p.Apply("!=", "int32", [self.fit(p.Load(buffer, at), "int32"), p.Const("int32", 0)])
        elif rng.random() < 0.5:
            value = p.Apply("max", target.dtype, [value, own])
        del self.indices[known:]
        return [p.For("Parallel", variables, [0] * len(variables), list(self.shapes[target]),
                      [p.Store(target, list(variables), value)])]

    # -- scratch ------------------------------------------------------------------------------------------------------

    def scratch(self):
        """Elements computed in steps, in memory of their own that stands outside or inside of the loop."""
        rng = self.rng
        targets = [b for b in self.targets() if all(self.shapes[b])]
        if not targets:
            return []
        target = rng.choice(targets)
        outer = rng.choice(LOOPS)
        inside = rng.random() < 0.4
        independent = outer in ("Parallel", "vectorized") and not inside
        kind = "local" if independent or rng.random() < 0.6 else rng.choice(["fragment", "shared"])
        own = self.declare(self.fresh("B"), rng.choice([[1], [1], [2], [4], [2, 3]]), self.dtype(), kind)
        known, values = len(self.indices), len(self.values)
        variables = [p.Var(self.fresh("r")) for _ in self.shapes[target]]
        self.indices += [(v, 0, n - 1) for v, n in zip(variables, self.shapes[target])]
        self.hide(target)
        body = self.filled(own)
        self.own.append(p.Load(own, [p.index(rng.randrange(n)) for n in self.shapes[own]]))
        for _ in range(rng.randint(1, 2)):
            body += self.step(own)
        value = p.Load(own, [self.index_in(n) for n in self.shapes[own]])
        value = self.fit(value, target.dtype) if rng.random() < 0.6 else self.stored(target.dtype, 2)
        if target.dtype == "bool" and not isinstance(value, p.Load):
            value = self.truth(1)
        self.own.pop()
        self.show(target)
        body.append(p.Store(target, list(variables), value))
        del self.indices[known:], self.values[values:]
        head = [p.Alloc(own)]
        if inside:
            body, head = head + body, []
        pairs = list(zip(variables, self.shapes[target]))
        if outer == "Parallel":
            return head + self.nest(pairs, body, rng.choice(["Parallel", "Parallel", "nested"]))
        for place, (v, n) in reversed(list(enumerate(pairs))):
            inner = outer if place == len(pairs) - 1 or outer in ("serial", "unroll") else "Parallel"
            inner = "serial" if inner == "Parallel" and kind != "local" and not inside else inner
            body = [p.For(inner, [v], [0], [n], body)]
        return head + body

    def filled(self, own):
        """Scratch begins with a value in each element."""
        rng = self.rng
        if self.shapes[own] == [1]:
            return [p.Store(own, [p.index(0)], self.stored(own.dtype, 1))]
        v = [p.Var(self.fresh("v")) for _ in self.shapes[own]]
        self.indices += [(x, 0, n - 1) for x, n in zip(v, self.shapes[own])]
        body = [p.Store(own, list(v), self.stored(own.dtype, 1))]
        del self.indices[-len(v):]
        for x, n in reversed(list(zip(v, self.shapes[own]))):
            body = [p.For(rng.choice(["serial", "unroll", "range"]), [x], [0], [n], body)]
        return body

    def step(self, own):
        """Something that changes scratch: a search, a sum, a loop until a condition fails."""
        rng = self.rng
        at = [self.index_in(n) for n in self.shapes[own]]
        atomic = own.kind == "shared" and own.dtype in p.ATOMIC_DTYPES and rng.random() < 0.6
        match "sum" if atomic else rng.choice(["search", "search", "sum", "while", "if", "bind"]):
            case "while":
                return self.counted(own, at) if self.aside.random() < 0.4 else self.halving(own, at)
            case "if":
                other = [p.Store(own, list(at), self.stored(own.dtype, 1))] if rng.random() < 0.4 else []
                return [p.If(self.condition(2), [p.Store(own, at, self.stored(own.dtype, 2))], other)]
            case "bind":
                return [*self.chain(rng.randint(1, 3)), p.Store(own, at, self.stored(own.dtype, 2))]
        v, n = p.Var(self.fresh("v")), rng.choice([1, 2, 3, 4, 4, 5])
        self.indices.append((v, 0, n - 1))
        sums = atomic or rng.random() < 0.4 and own.dtype != "bool"
        if sums:
            update = rng.choice(p.ATOMICS) if atomic else "+"
            if update == "+" and self.aside.random() < 0.5:
                update = self.aside.choice(["add", "max", "min"])
            store = p.Store(own, at, self.constant(own.dtype) if rng.random() < 0.3 else self.leaf(own.dtype), update)
        else:
            value = self.fit_index(v, own.dtype) if rng.random() < 0.5 else self.stored(own.dtype, 1)
            store = p.Store(own, at, value)
        body = [store] if sums and rng.random() < 0.5 else [p.If(self.condition(2), [store], [])]
        self.indices.pop()
        return [p.For(rng.choice(["serial", "serial", "unroll", "range"]), [v], [0], [n], body)]

    def halving(self, own, at):
        """A count by data, down to nothing."""
        rng = self.rng
        count = self.declare(self.fresh("n"), [1], rng.choice(["int32", "int64"]), "local")
        zero = [p.index(0)]
        at_count = p.Load(count, zero)
        start = p.Apply("&", count.dtype, [self.value(count.dtype, 1), p.Const(count.dtype, 7)])
        two = p.Const(count.dtype, 2, True)
        down = rng.choice([p.Apply("//", count.dtype, [at_count, two]),
                           p.Apply("-", count.dtype, [at_count, p.Const(count.dtype, 1, True)]),
                           p.Apply(">>", count.dtype, [at_count, p.Const(count.dtype, 1, True)])])
        change = p.Store(own, at, self.stored(own.dtype, 1))
        if own.dtype != "bool" and rng.random() < 0.6:
            change = p.Store(own, at, self.constant(own.dtype), rng.choice(["+", "-"]))
        inside = [p.Store(count, zero, down)]
        inside.insert(rng.randint(0, 1), change)
        condition = p.Apply(">", count.dtype, [at_count, p.Const(count.dtype, 0, True)])
        return [p.Alloc(count), p.Store(count, zero, start), p.While(condition, inside)]

    def counted(self, own, at):
        """As many steps as a count said when the loop began; the loop changes the count."""
        rng = self.aside
        count, zero = self.declare(self.fresh("n"), [1], rng.choice(["int32", "int64"]), "local"), [p.index(0)]
        start = p.Apply("&", count.dtype, [self.value(count.dtype, 1), p.Const(count.dtype, 7)])
        v = p.Var(self.fresh("k"))
        self.indices.append((v, 0, 6))
        change = p.Store(count, zero, p.Const(count.dtype, rng.randint(0, 6)))
        step = p.Store(own, at, self.fit_index(v, own.dtype))
        self.indices.pop()
        first = compare(rng.choice(["<", "=="]), v, rng.randint(0, 3))
        body = [p.If(first, [change], [step])] if rng.random() < 0.6 else [p.If(first, [change], []), step]
        loop = p.For("serial", [v], [0], [p.Cast("index", p.Load(count, zero))], body)
        return [p.Alloc(count), p.Store(count, zero, start), loop]

    # -- loads behind guards ------------------------------------------------------------------------------------------

    def guarded_load(self, dtype):
        """An element wherever the subscript may point, and something else where it is outside."""
        rng = self.rng
        fits = [b for b in self.buffers if all(self.shapes[b]) and (b.dtype == dtype or rng.random() < 0.2)]
        if not fits:
            return None
        b = rng.choice(fits)
        load, tests = self.reaching(b)
        load = self.fit(load, dtype)
        if not tests:
            return load
        other = self.constant(dtype) if rng.random() < 0.6 else self.leaf(dtype)
        return p.Apply("if_then_else", dtype, [both(tests), load, other])

    def own_of_one(self, own):
        """The element, now and then with a variable of the loop for the 0 of a dimension of one, where both are equal.

        The guard is not affine: no pass writes the 0.
        """
        rng = self.aside
        ones = [d for d, n in enumerate(self.shapes[own.buffer]) if n == 1]
        variables = [e for e in own.indices if isinstance(e, p.Var)]
        if not ones or not variables or rng.random() < 0.5:
            return own
        dim, var = rng.choice(ones), rng.choice(variables)
        other = p.Load(own.buffer, [*own.indices[:dim], var, *own.indices[dim + 1:]])
        square = p.Apply("*", "index", [var, var])
        return p.Apply("if_then_else", own.buffer.dtype, [compare("<", square, 1), other, own])

    def reaching(self, b):
        """(a load of any subscripts, the conditions under which they are inside)."""
        rng = self.rng
        subscripts, tests = [], []
        for n in self.shapes[b]:
            if rng.random() < 0.4:
                subscripts.append(self.cheap_index(n))
                continue
            e, lo, hi = self.any_index(2)
            if not (0 <= lo and hi < n) and (lo == hi or not varies(e)):  # a number that the parser may refuse
                subscripts.append(self.cheap_index(n))
                continue
            extent = n
            written = b.shape[len(subscripts)]
            if isinstance(written, p.Var) and rng.random() < 0.5:
                extent = written
            if lo < 0:
                tests.append(compare("<=", 0, e) if rng.random() < 0.5 else compare(">=", e, 0))
            if hi >= n:
                tests.append(compare("<", e, extent))
            subscripts.append(e)
        rng.shuffle(tests)
        return p.Load(b, subscripts), tests

    def gather(self):
        """Lanes that read backwards, apart or shifted, each behind its guard."""
        rng = self.rng
        sources = [b for b in self.buffers if b.kind in ("param", "global", "shared") and all(self.shapes[b])
                   and b.dtype != "bool"]
        if not sources:
            return []
        source = rng.choice(sources)
        lanes = rng.choice([1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 21, 24, 31, 32, 33, 37, 48, 56, 63, 64])
        rows = rng.choice([1, 1, 2, 3])
        dtype = source.dtype if rng.random() < 0.8 else self.dtype()
        x = self.declare(self.fresh("B"), [rows, lanes], dtype, rng.choice(["shared", "fragment", "local"]))
        i, j = p.Var(self.fresh("i")), p.Var(self.fresh("j"))
        known = len(self.indices)
        self.indices += [(i, 0, rows - 1), (j, 0, lanes - 1)]
        step, shift = rng.choice([-1, -1, -1, 1, 2, -2, 3, 0]), rng.randint(-3, lanes + 2)
        if step == -1:
            at = p.Apply("-", "index", [p.index(shift), j])
        else:
            at = p.Apply("+", "index", [p.Apply("*", "index", [j, p.index(step)]), p.index(shift)])
        where = rng.randrange(len(self.shapes[source]))
        if step == 0 or lanes == 1:
            shift %= self.shapes[source][where]
            at = p.Apply("+", "index", [p.Apply("*", "index", [j, p.index(step)]), p.index(shift)])
        ends = (shift, shift + step * (lanes - 1))
        subscripts = [self.cheap_index(n) for n in self.shapes[source]]
        subscripts[where] = at
        n = self.shapes[source][where]
        written = source.shape[where]
        tests = []
        if min(ends) < 0:
            tests.append(compare(">=", at, 0))
        if max(ends) >= n or rng.random() < 0.3:
            tests.append(compare("<", at, written if isinstance(written, p.Var) else n))
        rng.shuffle(tests)
        value = p.Load(source, subscripts)
        if rng.random() < 0.3 and scalars.is_float(source.dtype) and self.inexact:
            value = p.Apply("sqrt", source.dtype, [self.positive(value, source.dtype, 0.5)])
        value = self.fit(value, dtype)
        if tests:
            value = p.Apply("if_then_else", dtype, [both(tests), value, self.constant(dtype)])
        if self.inexact and dtype in ("float32", "float64") and rng.random() < 0.4:
            value = p.Apply("sqrt", dtype, [self.positive(value, dtype, 0.5)])
        if rng.random() < 0.4 and dtype != "bool":
            other = self.leaf(dtype)
            value = p.Apply(rng.choice(["+", "-", "max"]), dtype, [other, value])
        del self.indices[known:]
        store = p.Store(x, [i, j], value)
        inner = rng.choice(["vectorized"] * 3 + ["Parallel"])
        out = [p.For(rng.choice(["Parallel", "serial"]), [i], [0], [rows], [p.For(inner, [j], [0], [lanes], [store])])]
        self.buffers.append(x)
        return [p.Alloc(x), *out, *self.consumed(x)]

    # -- names --------------------------------------------------------------------------------------------------------

    def chain(self, length=None):
        """Values named one after the other, each from those before it."""
        rng = self.rng
        length = length or rng.choice([2, 3, 4, 5, 6] + [9, 12] * (rng.random() < 0.1))
        if rng.random() < 0.4:
            return self.chain_of_indices(length)
        out = []
        dtype = self.dtype()
        if dtype == "bool":
            return self.chain_of_indices(length)
        last = None
        for _ in range(length):
            value = self.stored(dtype, 1 if last is not None else 2)
            if last is not None:
                op = rng.choice(["+", "-", "*", "max", "min"])
                value = p.Apply(op, dtype, [last, rng.choice([last, value])])
                if scalars.is_float(dtype):
                    value = p.Apply("max", dtype, [p.Apply("min", dtype, [value, p.Const(dtype, 8.0, True)]),
                                                   p.Const(dtype, -8.0, True)])
            if isinstance(value, p.Const):
                continue
            last = p.Var(self.fresh("v"), dtype)
            out.append(p.Bind(last, value))
            self.values.append(last)
        return out

    def chain_of_indices(self, length):
        rng = self.rng
        out = []
        for _ in range(length):
            e, lo, hi = self.any_index(2)
            if isinstance(e, (p.Const, p.Var)):
                continue
            if max(-lo, hi) > 1000:
                e, lo, hi = p.Apply("%", "index", [e, p.index(rng.choice([7, 16, 100]))]), 0, 99
            var = p.Var(self.fresh("k"))
            out.append(p.Bind(var, e))
            self.indices.append((var, lo, hi))
        return out

    # -- guards -------------------------------------------------------------------------------------------------------

    def usual(self):
        """A condition on indices that holds nearly always."""
        rng = self.rng
        e, lo, hi = self.any_index(2)
        slack = rng.choice([0, 0, 0, 1]) if hi - lo > 1 else 0
        match rng.choice(["<", "<=", ">", ">=", "!=", "%", "between"]):
            case "<":
                return compare("<", e, hi + 1 - slack)
            case "<=":
                return compare("<=", e, hi - slack)
            case ">":
                return compare(">", e, lo - 1 + slack)
            case ">=":
                return compare(">=", e, lo + slack)
            case "!=":
                return compare("!=", e, rng.choice([hi + 1, lo - 1, lo]))
            case "%":
                return compare("<", p.Apply("%", "index", [e, p.index(7)]), 6)
        return both([compare("<=", lo, e), compare("<", e, hi + 1)])

    def guards(self, body):
        """The body under several conditions, nested and joined."""
        rng = self.rng
        if rng.random() < 0.15 and (test := self.long_condition()):
            return [p.If(test, body, [])]
        many = rng.random() < 0.05
        for _ in range(rng.choice([1, 1, 2, 3])):
            count = rng.randint(6, 14) if many else rng.choice([1, 2, 2, 3, 4, 5])
            many = False
            tests = [self.usual() for _ in range(count)]
            if rng.random() < 0.2:
                tests.append(self.condition(2))
            if any(isinstance(t, p.Const) for t in tests):
                continue
            body = [p.If(both(tests), body, [])]
        return body

    # -- atomics beside other code ------------------------------------------------------------------------------------

    def beside(self, target):
        """An update of some element of another buffer."""
        rng = self.rng
        fits = [b for b in self.atomic_targets() if b is not target and all(self.shapes[b])]
        if not fits:
            return []
        b = rng.choice(fits)
        name = rng.choice(["atomic_max", "atomic_min"] if scalars.is_float(b.dtype) else p.ATOMICS)
        hidden, self.buffers = self.buffers, [x for x in self.buffers if x is not b]
        out = p.Store(b, [self.index_in(n) for n in self.shapes[b]], self.value(b.dtype, 1), name)
        self.buffers = hidden
        return [out]
