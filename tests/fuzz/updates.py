"""Updates of elements by named operators: where a plain store may stand, and in loops that combine many values. Atomic
updates of which a program uses what stood there before, where no order decides what that is.
"""

import program as p
import scalars


class Updates:
    """Makers of updates, over what `Generator` knows."""

    def updated(self, target, subscripts, depth=1):
        """An update of the element in a list, which is empty where the type has none; products do not grow."""
        rng, dtype = self.aside, target.dtype
        if dtype == "bool":
            return []
        op, value = rng.choice(p.UPDATES), self.stored(dtype, depth)
        if op == "mul" and scalars.is_float(dtype):
            one, less = p.Const(dtype, 1.0, True), p.Const(dtype, -1.0, True)
            if isinstance(value, p.Const):
                value = p.Const(dtype, max(-1.0, min(1.0, value.value)), value.weak)
            else:
                value = p.Apply("max", dtype, [p.Apply("min", dtype, [value, one]), less])
        if rng.random() < 0.15 and not isinstance(value, p.Const):
            wide = self.wide(dtype)
            value = p.Cast(wide, value) if wide else value
        return [p.Store(target, list(subscripts), value, op)]

    def wide(self, dtype):
        """A float type that is wider; None for integers, which no store narrows, and for float64."""
        wider = {"float32": ["float64"], "float64": []}
        small = ["float32", "float64"] if scalars.is_float(dtype) else []
        return self.aside.choice(wider.get(dtype, small) or [None])

    def update(self):
        """A loop in order that combines values: of any element, or, in each iteration of a parallel nest, of its own.
        """
        rng = self.aside
        targets = [b for b in self.targets() if b.dtype != "bool" and all(self.shapes[b])]
        if not targets:
            return []
        target, known = rng.choice(targets), len(self.indices)
        k, extent = p.Var(self.fresh("k")), rng.choice([0, 1, 2, 3, 5, 7, 9])
        order = rng.choice(["serial", "serial", "range", "unroll"])
        own = rng.random() < 0.6
        pairs = [(p.Var(self.fresh("i")), n) for n in self.shapes[target]] if own else []
        self.indices += [(v, 0, n - 1) for v, n in [*pairs, (k, max(extent, 1))]]
        subscripts = [v for v, _ in pairs] if own else [self.index_in(n) for n in self.shapes[target]]
        if own:
            self.hide(target)
            self.own.append(p.Load(target, list(subscripts)))
        body = self.updated(target, subscripts, 2)
        if rng.random() < 0.25:
            body = [p.If(self.condition(2), body, self.updated(target, subscripts) if rng.random() < 0.4 else [])]
        if own:
            self.own.pop()
            self.show(target)
        del self.indices[known:]
        loop = [p.For(order, [k], [0], [extent], body)]
        return self.nest(pairs, loop, rng.choice(["Parallel", "Parallel", "nested"])) if own else loop

    def fetched(self):
        """Iterations that update elements of their own and use what they find, or one update by the block."""
        rng = self.aside
        targets = [b for b in self.atomic_targets() if all(self.shapes[b])]
        if rng.random() < 0.4:
            targets = [b for b in targets if b.kind != "global"]  # other blocks update it too
            return self.fetched_once(rng.choice(targets)) if targets else []
        if not targets:
            return []
        target, known, values = rng.choice(targets), len(self.indices), len(self.values)
        sizes = self.shapes[target]
        out = self.declare(self.fresh("B"), sizes, target.dtype, rng.choice(["shared", "fragment"]))
        pairs = [(p.Var(self.fresh("i")), n) for n in sizes]
        self.indices += [(v, 0, n - 1) for v, n in pairs]
        at = [p.Apply("-", "index", [p.index(n - 1), v]) if rng.random() < 0.3 else v for v, n in pairs]
        self.hide(target)
        old = p.Var(self.fresh("old"), target.dtype)
        body = [p.Store(target, at, self.value(target.dtype, 1), rng.choice(p.ATOMICS), old)]
        self.values.append(old)
        value = p.Apply(rng.choice(["max", "min"]), target.dtype, [old, self.stored(target.dtype, 1)])
        body.append(p.Store(out, [v for v, _ in pairs], value))
        self.show(target)
        del self.indices[known:], self.values[values:]
        self.buffers.append(out)
        return [p.Alloc(out), *self.nest(pairs, body, rng.choice(["Parallel", "Parallel", "nested"])),
                *self.consumed(out)]

    def fetched_once(self, target):
        """An update of the block, and a name for what it found."""
        self.hide(target)
        old = p.Var(self.fresh("old"), target.dtype)
        at = [self.index_in(n) for n in self.shapes[target]]
        store = p.Store(target, at, self.value(target.dtype, 1), self.aside.choice(p.ATOMICS), old)
        self.show(target)
        self.values.append(old)
        return [store]
