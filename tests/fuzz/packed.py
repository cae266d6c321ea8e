"""Memory of which two elements share a byte: stored element by element, copied in whole bytes, read by conversions;
and bytes whose halves a program converts itself.

Operations and targets know such types only in places, so no other statement finds these buffers.
"""

import program as p
import scalars


class Packed:
    """Makers of statements, over what `Generator` knows."""

    def packed(self):
        """A buffer whose elements iterations store, a copy of it, and a buffer of a plain type made from that."""
        rng = self.aside
        sizes = [rng.randint(1, 4), 2 * rng.randint(1, 8)]
        dtype = rng.choice(["int4", "int4", "float4_e2m1"])
        own = self.declare(self.fresh("Q"), sizes, dtype, rng.choice(["shared", "fragment"]))
        other = self.declare(self.fresh("Q"), sizes, dtype, "shared")
        plain = [d for d in self.kinds if d != "bool" and (not scalars.is_float(dtype) or scalars.is_float(d))]
        out = self.declare(self.fresh("B"), sizes, rng.choice(plain or ["float32"]), rng.choice(["shared", "fragment"]))
        known, pairs = len(self.indices), [(p.Var(self.fresh("i")), n) for n in sizes]
        self.indices += [(v, 0, n - 1) for v, n in pairs]
        at = [v for v, _ in pairs]
        store = p.Store(own, at, self.packed_value(dtype))
        kind = rng.choice(["Parallel", "Parallel", "nested"])
        body = [p.Alloc(own), *self.nest(pairs, [store], kind), p.Alloc(other),
                p.Op("copy", [p.Region(own), p.Region(other)])]
        mirrored = [at[0], p.Apply("-", "index", [p.index(sizes[1] - 1), at[1]])]
        read = p.Load(other, mirrored)
        if dtype == "int4" and rng.random() < 0.5:
            read = p.Apply(rng.choice(["+", "-", "*", "max", "&", ">>"]), dtype, [read, p.Load(own, at)])
            if read.op == ">>":
                read.args[1] = p.Const(dtype, rng.randint(0, 5))
        del self.indices[known:]
        again = [(p.Var(v.name), n) for v, n in pairs]
        body += [p.Alloc(out), *self.nest(again, [p.Store(out, at, p.Cast(out.dtype, read))], kind)]
        self.buffers.append(out)
        body += [*self.consumed(out), *self.in_pairs(out, sizes, kind)]
        return body + self.halves() if rng.random() < 0.5 else body

    def halves(self):
        """A fragment of the int4 in bytes, two a byte, times nothing or a scale of the row."""
        rng = self.aside
        rows = rng.randint(1, 6)
        codes = self.declare(self.fresh("Q"), [rows], "uint8", rng.choice(["shared", "shared", "fragment"]))
        out = self.declare(self.fresh("B"), [rows, 2], rng.choice(["float16", "bfloat16"]), "fragment")
        scales = self.declare(self.fresh("S"), [rows], rng.choice([out.dtype, "float32"]), "shared")
        r, i, j = (p.Var(self.fresh("i")) for _ in range(3))
        known = len(self.indices)
        self.indices.append((r, 0, rows - 1))
        number = p.Cast("float32", p.Apply("&", "int32", [self.value("int32", 1), p.Const("int32", 255, True)]))
        scale = p.Apply("*", "float32", [number, p.Const("float32", rng.choice([0.5, -0.375, 1e-6, 2.0]), True)])
        stores = [p.Store(codes, [r], self.value("uint8", 1)), p.Store(scales, [r], p.Cast(scales.dtype, scale))]
        del self.indices[known:]
        low, step = (28, -4) if rng.random() < 0.8 else (24, 4)
        place = p.Cast("int32", p.Apply("+", "index", [p.index(low), p.Apply("*", "index", [j, p.index(step)])]))
        left = p.Apply("<<", "int32", [p.Cast("int32", p.Load(codes, [i])), place])
        value = p.Cast("int8", p.Apply(">>", "int32", [left, p.Const("int32", 28, True)]))
        if rng.random() < 0.7:
            value = p.Apply("*", "float32", [p.Cast("float32", value), p.Cast("float32", p.Load(scales, [i]))])
        body = [p.Alloc(codes), p.Alloc(scales), *self.nest([(r, rows)], stores, "Parallel"), p.Alloc(out),
                *self.nest([(i, rows), (j, 2)], [p.Store(out, [i, j], p.Cast(out.dtype, value))], "Parallel")]
        seen = self.declare(self.fresh("B"), [rows, 2], out.dtype, "shared")
        self.buffers.append(seen)
        return [*body, p.Alloc(seen), p.Op("copy", [p.Region(out), p.Region(seen)]), *self.consumed(seen)]

    def in_pairs(self, source, sizes, kind):
        """A buffer of which neighbours in a row are one element of another, from an even index on or an odd one."""
        out = self.declare(self.fresh("B"), sizes, source.dtype, "shared")
        pairs = [(p.Var(self.fresh("i")), n) for n in sizes]
        i, j = (v for v, _ in pairs)
        begin = p.Apply("+", "index", [j, p.index(self.aside.randint(0, sizes[1]))])
        read = p.Load(source, [i, p.Apply("//", "index", [begin, p.index(2)])])
        self.buffers.append(out)
        return [p.Alloc(out), *self.nest(pairs, [p.Store(out, [i, j], read)], kind), *self.consumed(out)]

    def packed_value(self, dtype):
        """What may be stored: any integer wraps, and floats stay in the range of the type."""
        source = self.aside.choice([d for d in ("int32", "int8", "uint8", "int64") if d in self.kinds] or ["int32"])
        if dtype == "int4":
            return p.Cast(dtype, self.value(source, 2))
        value = p.Apply("&", source, [self.value(source, 1), p.Const(source, 7, True)])
        small = p.Apply("-", "float32", [p.Cast("float32", value), p.Const("float32", 3.0, True)])
        return p.Cast(dtype, p.Apply("*", "float32", [small, p.Const("float32", 0.75, True)]))
