"""Products that the tensor cores of a GPU compute; other targets lack the names of their implementations, of which
"tensor_cores" means any.
"""

import program as p

ON_TENSOR_CORES = ", dispatch='mma'"  # as the text of a program has it
BY_WARPGROUPS = ", dispatch='wgmma'"  # from sm_90a on; what they multiply from shared memory, warps can


class Products:
    """Makers of statements, over what `Generator` knows."""

    def tensor_core_product(self):
        """Tiles in shared memory that fit the instruction and the warps, and sums which later statements use."""
        rng = self.aside
        dtype = rng.choice(["float16", "bfloat16"])
        warps = (self.threads or 128) // 32
        groups = warps // 4
        by_groups = warps % 4 == 0 and groups <= 2 and rng.random() < 0.3
        if by_groups and rng.random() < 0.3:
            return self.chained_products(64 * groups, dtype)
        if rng.random() < 0.3:
            dtype = rng.choice(["float32", "int8", "uint8", *(["float8_e4m3", "float8_e5m2"] if by_groups else [])])
        depth = {"float32": 8, "float16": 16, "bfloat16": 16}.get(dtype, 32)
        rows = rng.choice([n for n in range(1, warps + 1) if warps % n == 0])
        m, n, k = 16 * rows * rng.choice([1, 1, 2]), 8 * (warps // rows) * rng.choice([1, 1, 2, 3]), depth
        if m * n > 1024:
            m, n = 16 * rows, 8 * (warps // rows)
        k *= 2 if m * n <= 512 and rng.random() < 0.4 else 1
        flags = {"transpose_A": rng.random() < 0.4, "transpose_B": rng.random() < 0.4}
        registers = by_groups and rng.random() < 0.3  # A is a fragment
        if by_groups and depth != 16:
            flags = {"transpose_A": False, "transpose_B": True}
        if registers:
            flags["transpose_A"] = False
        shapes = [(k, m) if flags["transpose_A"] else (m, k), (n, k) if flags["transpose_B"] else (k, n)]
        keywords = {name: True for name, on in flags.items() if on}
        if rng.random() < 0.3:
            keywords["clear"] = True
        if by_groups:  # the rows of one group or of all, columns for each
            m, n = rng.choice([(64 * groups, 8 * rng.choice([1, 2, 3, 4])), (64, 8 * groups * rng.choice([1, 2, 4]))])
            shapes = [(k, m) if flags["transpose_A"] else (m, k), (n, k) if flags["transpose_B"] else (k, n)]
        sums = self.declare(self.fresh("B"), [m, n], "int32" if "int" in dtype else "float32", "fragment")
        whole = lambda shape, scope: p.Region(self.declare(self.fresh("B"), shape, dtype, scope))  # noqa: E731
        scopes = ["fragment" if registers else "shared", "shared"]
        factors = [whole(shape, scope) if by_groups else self.factor(shape, dtype)
                   for shape, scope in zip(shapes, scopes)]
        self.placed.append(sums)
        if registers:
            self.placed.append(factors[0].buffer)
        out = [p.Alloc(sums), *self.tame_contents(sums)]
        for region in factors:
            out += [p.Alloc(region.buffer), *self.tame_contents(region.buffer)]
        dispatch = "wgmma" if by_groups else "mma"
        if not registers and "8_e" not in dtype and rng.random() < 0.4:
            dispatch = "tensor_cores"
        product = p.Op("gemm", [*factors, p.Region(sums)], {**keywords, "dispatch": dispatch})
        steps = rng.random() < 0.4 and dtype != "float32"  # whose bits a machine leaves out, unless numbers are small
        out += self.stepping(product, factors) if steps else [product]
        # A factor of warpgroups is in slabs, which no bulk copy makes.
        self.buffers += [sums, *(region.buffer for region in factors if dispatch == "mma" and rng.random() < 0.5)]
        return out

    def chained_products(self, rows, dtype):
        """A loop over tiles of two parameters: a product, its sums as a factor of another one, and what is between."""
        rng = self.aside
        keys, depth, out = 16 * rng.choice([1, 1, 2]), 16 * rng.choice([1, 2]), 8 * rng.choice([1, 2])
        count = rng.choice([1, 2, 3])
        tile = lambda shape, kind, scope: self.declare(self.fresh("B"), shape, kind, scope)  # noqa: E731
        q, k, v = (tile(shape, dtype, "shared") for shape in [(rows, depth), (keys, depth), (keys, out)])
        s, o = (tile(shape, "float32", "fragment") for shape in [(rows, keys), (rows, out)])
        weights = tile((rows, keys), dtype, rng.choice(["fragment", "shared"]))
        part = tile((rows,), "float32", "fragment")
        self.placed += [s, o, weights, part]
        body, step = [], p.Var(self.fresh("k"))
        for buffer, width in ((k, depth), (v, out)):
            source = self.param([keys * count + rng.choice([0, 0, 1]), width + rng.choice([0, 0, 0, 3, 8])], dtype)
            of = p.Region(source, [p.Span(p.Apply("*", "index", [step, p.index(keys)]), keys), p.Span(0, width)])
            body.append(p.Op("copy", [of, p.Region(buffer)], {}))
        among = ["wgmma"] if weights.kind == "fragment" else ["wgmma", "tensor_cores"]  # mma wants shared memory
        by = {"dispatch": rng.choice(among)}
        whole = [p.Region(each) for each in (q, k, s, weights, v, o)]
        body.append(p.Op("gemm", whole[:3], {"transpose_B": True, "clear": True, **by}))
        between = [self.scaled(s, rng.choice([0.5, 2.0])), self.scaled(o, rng.choice([0.5, 1.0])),
                   p.Op("reduce_max", [p.Region(s), p.Region(part)], {"dim": 1}), self.scaled(part, 0.25)]
        body += rng.sample(between, rng.randint(0, len(between) - 2)) if rng.random() < 0.7 else between
        body += [p.Op("copy", [p.Region(s), p.Region(weights)], {}), p.Op("gemm", whole[3:], by)]
        filled = [each for buffer in (q, o, part, s) for each in (p.Alloc(buffer), *self.tame_contents(buffer))]
        self.buffers += [o]  # what fills another one must not read it
        return [*filled, p.Alloc(k), p.Alloc(v), p.Alloc(weights),
                p.For("Pipelined", [step], [0], [count], body, rng.randint(1, 3))]

    def scaled(self, buffer, factor):
        """All elements of a buffer times a power of two."""
        at = [p.Var(self.fresh("i")) for _ in self.shapes[buffer]]
        value = p.Apply("*", "float32", [p.Load(buffer, list(at)), p.Const("float32", factor)])
        return p.For("Parallel", at, [0] * len(at), list(self.shapes[buffer]), [p.Store(buffer, list(at), value)])

    def factor(self, shape, dtype):
        """A whole buffer of shared memory, or a part of one, whose rows begin at 16 bytes or elsewhere."""
        rng = self.aside
        if rng.random() < 0.6:
            return p.Region(self.declare(self.fresh("B"), shape, dtype, "shared"))
        begins = [rng.choice([0, 1, 8]) for _ in shape]
        room = [n + begin + rng.choice([0, 0, 8, 1]) for n, begin in zip(shape, begins)]
        buffer = self.declare(self.fresh("B"), room, dtype, "shared")
        return p.Region(buffer, [p.Span(begin, n) for begin, n in zip(begins, shape)])

    def tame_contents(self, buffer):
        """Fills a tile with numbers of its subscripts, or as any buffer is filled."""
        rng = self.aside
        if rng.random() < 0.3 and buffer.dtype != "float32":
            return self.first_contents(buffer, [])
        at = [p.Var(self.fresh("i")) for _ in self.shapes[buffer]]
        index = lambda op, a, b: p.Apply(op, "index", [a, p.index(b)])  # noqa: E731
        rows, columns = index("*", at[0], rng.choice([1, 2, 3, 5])), index("*", at[-1], rng.choice([1, 3]))
        mixed = p.Apply("+", "index", [rows, columns])
        value = p.Cast(buffer.dtype, index("-", index("%", mixed, rng.choice([3, 5, 7])),
                                            0 if buffer.dtype == "uint8" else rng.randint(0, 3)))
        return [p.For("Parallel", at, [0, 0], list(self.shapes[buffer]), [p.Store(buffer, list(at), value)])]

    def stepping(self, product, factors):
        """A loop over tiles of parameters, each copied before it is multiplied."""
        rng = self.aside
        step = p.Var(self.fresh("k"))
        count = rng.choice([1, 2, 3])
        body = []
        for region in factors:
            shape = [s.extent for s in region.spans] if region.spans else self.shapes[region.buffer]
            tall = [shape[0] * count + rng.choice([0, 0, 1]), shape[1] + rng.choice([0, 0, 0, 3, 8])]
            source = self.param(tall, region.buffer.dtype)
            of = p.Region(source, [p.Span(p.Apply("*", "index", [step, p.index(shape[0])]), shape[0]),
                                   p.Span(0, shape[1])])
            body.append(p.Op("copy", [of, p.Region(region.buffer, region.spans)], {}))
        kind = rng.choice(["serial", "Pipelined"])
        return [p.For(kind, [step], [0], [count], [*body, product], rng.randint(1, 3))]
