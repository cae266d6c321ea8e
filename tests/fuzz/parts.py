"""Parts of a tensor whose places are data: the elements from one place up to the next belong to one iteration."""

import program as p
from idioms import both, compare


class Parts:
    def parts(self):
        """Iterations, one for each part, that write their own elements of a buffer."""
        rng = self.aside
        targets = [b for b in self.targets() if len(self.shapes[b]) == 1 and 0 < self.shapes[b][0] <= 64]
        if not targets:
            return []
        target, known, values = rng.choice(targets), len(self.indices), len(self.values)
        n, count = self.shapes[target][0], rng.randint(1, 4)
        places = self.param([count + 1], rng.choice(["int32", "int32", "int64", "int16", "uint8"]), compact=True)
        places.sorted = True
        z, i = p.Var(self.fresh("z")), p.Var(self.fresh("i"))

        def place(at):
            return p.Cast("index", p.Load(places, [at]))

        begin, end = place(z), place(p.Apply("+", "index", [z, p.index(1)]))
        self.indices += [(z, 0, count - 1), (i, 0, n - 1)]
        self.hide(target)
        value = self.stored(target.dtype, 2)
        if rng.random() < 0.4 and target.dtype != "bool":
            value = p.Apply(rng.choice(["max", "min"]), target.dtype, [value, p.Load(target, [i])])
        self.show(target)
        guard = both([compare("<=", begin, i), compare("<", i, end)])
        store = p.If(guard, [p.Store(target, [i], value)], [])
        del self.indices[known:], self.values[values:]
        return self.nest([(z, count), (i, n)], [store], rng.choice(["Parallel", "Parallel", "nested"]))
