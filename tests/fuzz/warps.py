"""Kernels of single threads that meet: barriers around shared memory, and shuffles between lanes, under loops and
conditions that all threads take alike.
"""

import program as p
import scalars

SHUFFLES = ("shfl_sync", "shfl_xor", "shfl_up", "shfl_down")


class Warps:
    """Makers of statements, over what `Generator` knows."""

    def warps(self):
        """A kernel in thread form whose threads exchange values between several steps."""
        rng = self.aside
        blocks, threads = rng.choice([1, 1, 2]), rng.choice([32, 64, 64, 96])
        out = self.param([blocks * threads], self.dtype(), written=True)
        dtype = out.dtype
        block, thread = p.Var(self.fresh("b")), p.Var(self.fresh("t"))
        known, values = len(self.indices), len(self.values)
        self.indices += [(block, 0, blocks - 1), (thread, 0, threads - 1)]
        exchange = self.declare(self.fresh("S"), [threads], dtype, "shared")
        own = self.declare(self.fresh("L"), [1], dtype, "local")
        first = p.Var(self.fresh("v"), dtype)
        body = [p.Alloc(own), p.Store(own, [p.index(0)], self.stored(dtype, 2)),
                p.Bind(first, self.together(p.Load(own, [p.index(0)]), dtype))]
        self.values.append(first)
        for _ in range(rng.randint(1, 4)):
            body += self.exchanged(own, exchange, thread, threads)
        row = p.Apply("+", "index", [p.Apply("*", "index", [block, p.index(threads)]), thread])
        body.append(p.Store(out, [row], self.together(p.Load(own, [p.index(0)]), dtype)))
        del self.indices[known:], self.values[values:]
        loop = p.For("threads", [thread], [0], [threads], body)
        return p.Kernel([block], [blocks], [p.Alloc(exchange), loop], threads)

    def together(self, one, dtype):
        """A value with another one, that stays as small as they are."""
        if dtype == "bool":
            return p.Apply(self.aside.choice(["and", "or"]), "bool", [one, self.truth(1)])
        return p.Apply(self.aside.choice(["max", "min"]), dtype, [one, self.stored(dtype, 1)])

    def exchanged(self, own, exchange, thread, threads):
        """A step in which threads meet; its last statement stores to what a thread has for itself."""
        rng, dtype, at = self.aside, own.dtype, [p.index(0)]
        match rng.choice(["shuffle", "shuffle", "memory", "loop", "branch"]):
            case "shuffle":
                return self.shuffled(own)
            case "memory":
                partner = p.Apply("%", "index", [p.Apply("+", "index", [thread, p.index(rng.randint(0, threads))]),
                                                 p.index(threads)])
                read = p.Var(self.fresh("v"), dtype)
                self.values.append(read)
                return [p.Store(exchange, [thread], p.Load(own, at)), p.Sync(),
                        p.Bind(read, p.Load(exchange, [partner])), p.Sync(),
                        p.Store(own, at, self.together(p.Load(own, at), dtype))]
            case "loop":
                k, known, values = p.Var(self.fresh("k")), len(self.indices), len(self.values)
                count = rng.randint(0, 4)
                self.indices.append((k, 0, max(count - 1, 0)))
                body = self.shuffled(own, p.Apply("<<", "index", [p.index(1), k]) if rng.random() < 0.5 else k)
                del self.indices[known:], self.values[values:]
                return [p.For(rng.choice(["serial", "serial", "unroll"]), [k], [0], [count], body)]
        test, values = self.alike(thread), len(self.values)
        then = self.shuffled(own)
        del self.values[values:]
        return [p.If(test, then, [])]

    def alike(self, thread):
        """A condition that is the same for all threads."""
        indices = [each for each in self.indices if each[0] is not thread]
        (var, low, high) = self.aside.choice(indices)
        return p.Apply(self.aside.choice(["<", "=="]), "index", [var, p.index(self.aside.randint(low, high + 1))])

    def shuffled(self, own, by=None):
        """A value of another lane, which is kept."""
        rng, at = self.aside, [p.index(0)]
        name = rng.choice(SHUFFLES)
        by = p.index(rng.randrange(32)) if by is None else by
        if name == "shfl_sync" and rng.random() < 0.4:
            by = self.index_in(32)
        got = p.Var(self.fresh("v"), own.dtype)
        given = p.Load(own, at) if rng.random() < 0.6 else self.together(p.Load(own, at), own.dtype)
        out = [p.Shuffle(got, name, given, by)]
        self.values.append(got)
        if own.dtype == "bool":
            value = p.Apply("or", "bool", [got, p.Load(own, at)])
        elif scalars.is_float(own.dtype):
            value = p.Apply(rng.choice(["max", "min"]), own.dtype, [got, p.Load(own, at)])
        else:
            value = p.Apply(rng.choice(["+", "-", "max"]), own.dtype, [got, p.Load(own, at)])
        return [*out, p.Store(own, at, value)]
