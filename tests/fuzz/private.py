"""Private memory of a block that some iterations of a parallel loop store to, and that all of them read.

An iteration finds there what stood there before the loop, whichever iterations ran before it on the same memory; after
the loop an element has the value that the only iteration left that wrote it.
"""

import program as p
from idioms import both, compare


class Private:
    """Makers of statements, over what `Generator` knows."""

    def private(self):
        rng = self.rng
        targets = [b for b in self.targets() if all(self.shapes[b])]
        if not targets:
            return []
        target = rng.choice(targets)
        own = self.declare(self.fresh("L"), rng.choice([[1], [1], [2], [3], [4], [2, 2]]), self.dtype(), "local")
        known, values = len(self.indices), len(self.values)
        variables = [p.Var(self.fresh("q")) for _ in self.shapes[target]]
        pairs = list(zip(variables, self.shapes[target]))
        head = [p.Alloc(own), *self.filled(own)]
        self.hide(target)
        cut = rng.randint(1, len(pairs) - 1) if len(pairs) > 1 and rng.random() < 0.6 else len(pairs)
        alone = rng.random() < 0.35
        body = self.private_nest(target, own, pairs, cut, alone)
        self.show(target)
        del self.indices[known:], self.values[values:]
        return head + body + (self.consumed(own) if alone else [])

    def private_nest(self, target, own, pairs, cut, alone):
        """A parallel loop over the first `cut` variables, in which one over the others stands. If `alone`, one
        iteration of the whole nest stores.
        """
        rng = self.rng
        outer, inner = pairs[:cut], pairs[cut:]
        self.indices += [(v, 0, n - 1) for v, n in outer]
        body = []
        if inner and not alone and rng.random() < 0.5:
            body += self.sometimes(own, outer)
        kept = list(self.indices)
        self.indices += [(v, 0, n - 1) for v, n in inner]
        at = [v for v, _ in pairs]
        store = p.Store(target, at, self.private_value(target, own))
        if alone:
            tests = [compare("==", v, rng.randrange(n)) for v, n in pairs]
            some = [p.If(both(tests), self.changed(own), [])]
        else:
            some = self.sometimes(own, inner or outer)
        # A single element that all iterations read first is refused: that is a sum.
        lanes = [*some, store] if self.shapes[own] == [1] or rng.random() < 0.8 else [store, *some]
        self.indices = kept
        if not inner:
            return self.nest(outer, lanes, rng.choice(["Parallel", "Parallel", "vectorized", "nested"]))
        picked = rng.random() < 0.4 and not alone
        if picked:  # one lane of each iteration stores, which may be read after the lanes
            tests = [compare("==", v, self.index_in(n)) for v, n in inner]
            lanes = [p.If(both(tests), some[0].then, []), *[s for s in lanes if s not in some]]
        body += self.nest(inner, lanes, rng.choice(["vectorized", "vectorized", "Parallel"]))
        if picked or alone:
            last = [v for v, _ in outer] + [p.index(rng.randrange(n)) for _, n in inner]
            body.append(p.Store(target, last, self.private_value(target, own)))
        return self.nest(outer, body, rng.choice(["Parallel", "Parallel", "nested"]))

    def place_of(self, own):
        return [self.index_in(n) for n in self.shapes[own]]

    def private_value(self, target, own):
        """What all iterations read of it."""
        value = p.Load(own, self.place_of(own))
        if target.dtype == "bool" and own.dtype != "bool":
            return p.Apply("!=", own.dtype, [value, self.constant(own.dtype)])
        value = self.fit(value, target.dtype)
        if target.dtype != "bool" and self.rng.random() < 0.3:
            return p.Apply(self.rng.choice(["max", "min"]), target.dtype, [value, self.stored(target.dtype, 1)])
        return value

    def sometimes(self, own, pairs):
        """A store that some iterations come to."""
        rng = self.rng
        v, n = rng.choice(pairs)
        match rng.choice(["below", "odd", "one", "any", "long"]):
            case "below":
                test = compare(rng.choice(["<", ">="]), v, (n + 1) // 2)
            case "odd":
                test = compare("==", p.Apply("%", "index", [self.any_index(1)[0], p.index(2)]), rng.randrange(2))
            case "one":
                test = compare("==", v, self.index_in(n))
            case "any":
                test = self.condition(2)
            case "long":
                test = self.long_condition()
        if rng.random() < 0.4:
            return [p.If(test, [p.Store(own, self.place_of(own), self.fit_index(v, own.dtype))], [])]
        return [p.If(test, self.changed(own), [])]

    def changed(self, own):
        """A store of what may come from the memory itself."""
        rng = self.rng
        if own.dtype != "bool" and rng.random() < 0.15:
            op = rng.choice(["+", "-"])
            op = self.aside.choice(["add", "max", "min"]) if self.aside.random() < 0.5 else op
            return [p.Store(own, self.place_of(own), self.constant(own.dtype), op)]
        self.own.append(p.Load(own, [p.index(rng.randrange(n)) for n in self.shapes[own]]))
        value = self.stored(own.dtype, 1)
        self.own.pop()
        return [p.Store(own, self.place_of(own), value)]

    def lanes(self):
        """A kernel in thread form, whose threads have lanes that share private memory of the thread."""
        rng = self.rng
        blocks, threads, lanes = rng.choice([1, 1, 2]), rng.choice([32, 32, 64]), rng.choice([1, 2, 3, 4, 4, 8])
        out = self.param([blocks * threads, lanes], self.dtype(), written=True)
        block, thread, lane = (p.Var(self.fresh(x)) for x in "btj")
        row = p.Apply("+", "index", [p.Apply("*", "index", [block, p.index(threads)]), thread])
        known = len(self.indices)
        self.indices += [(block, 0, blocks - 1), (thread, 0, threads - 1)]
        own = self.declare(self.fresh("L"), rng.choice([[1], [1], [2], [4]]), self.dtype(), "local")
        head = [p.Alloc(own), *self.filled(own)]
        before = self.sometimes(own, [(thread, threads)]) if rng.random() < 0.4 else []
        self.indices.append((lane, 0, lanes - 1))
        picked = rng.random() < 0.4
        some = self.sometimes(own, [(lane, lanes)])
        if picked:
            some[0].condition = compare("==", lane, rng.randrange(lanes))
        body = [*some, p.Store(out, [row, lane], self.private_value(out, own))]
        self.indices.pop()
        after = [p.Store(out, [row, p.index(0)], self.private_value(out, own))] if picked else []
        del self.indices[known:]
        loop = p.For("vectorized", [lane], [0], [lanes], body)
        of_threads = p.For("threads", [thread], [0], [threads], [*head, *before, loop, *after])
        return p.Kernel([block], [blocks], [of_threads], threads)
