"""Random programs for a mesh: sharded tensors, phases of local work, collectives between them, chunks of persistent
loops.

Collectives stand where the cores of their groups agree: at the head of the kernel, in loops of uniform extents and
under uniform conditions, under control flow that coordinates on the other axis decide, or memory that a collective has
made equal, and in the host body between kernels.
"""

import itertools
import math

import program as p
import scalars
from generate import Generator, spell

NAMES = p.AXES


def sets_of_axes(mesh):
    """The sets of axes of the collectives where all cores come: single ones, pairs of a mesh of three, all."""
    names = NAMES[: len(mesh)]
    pairs = list(itertools.combinations(names, 2)) if len(mesh) > 2 else []
    return [*names, *pairs, "all"]


def is_over(axis, name):
    """Is `name` among the axes of a collective?"""
    return axis == "all" or name in axis


class MeshGenerator(Generator):
    """A kernel over the mesh, or several with collectives of the host between them."""

    def program(self):
        rng = self.rng
        self.mesh = [rng.randint(1, 3), rng.randint(1, 3)]
        if rng.random() < 0.25:
            self.mesh.append(rng.randint(1, 2))
        self.placements = []
        self.kinds = [d for d in self.kinds if d != "bool"] or ["float32"]
        self.pool = [min(n, 6) for n in self.pool]
        self.work = []
        self.meets = sets_of_axes(self.mesh)  # axes whose groups come to this place whole
        placed = len(self.mesh) == 2 and rng.random() < 0.85  # what annotates tensors has rows and columns
        inputs = [self.sharded(rng.random() < 0.3) for _ in range(rng.randint(1, 2))] if placed else []
        plain = [self.param(self.shape(rng.choice([1, 2])), self.dtype()) for _ in range(0 if inputs else 1)]
        if rng.random() < 0.3:
            self.scalar_param()
        if rng.random() < 0.12:
            self.wide_scalar()
        self.buffers += plain
        outputs = [self.sharded(True)] if inputs and rng.random() < 0.7 else []
        result = self.declare(self.fresh("R"), [*self.mesh, *self.shape(rng.choice([1, 2]))], self.dtype(), "param")
        self.params.append(result)
        body = self.host_body(result) if rng.random() < 0.25 else [self.mesh_kernel(inputs, outputs, result)]
        chunk = rng.choice([1, 1, 2, 3])
        spell(body, rng)
        return p.Program(
            self.seed, self.params, body, self.dims, self.scalar_values, self.mesh, self.placements, chunk
        )

    def sharded(self, everywhere):
        """A tensor cut over the mesh; over every axis when cores must not share its elements."""
        rng = self.rng
        shape = [rng.randint(1, 9) for _ in range(rng.choice([1, 2, 2, 3]))]
        sharding = {}
        for axis in NAMES[:2]:
            if everywhere or rng.random() < 0.7:
                sharding[axis] = rng.randrange(len(shape))
        buffer = self.declare(self.fresh("A"), shape, self.dtype(), "param")
        self.params.append(buffer)
        tiling = [rng.randint(1, 4) for _ in shape]
        self.placements.append(p.Placement(buffer, sharding, tiling))
        return self.placements[-1]

    def tiles(self, placement, d):
        """How many tiles cover the block in dimension d, on every core."""
        cores = 1
        for axis, dim in placement.sharding.items():
            cores *= self.mesh[NAMES.index(axis)] if dim == d else 1
        block = -(-self.shapes[placement.buffer][d] // cores)
        return -(-block // placement.tiling[d])

    def coordinate(self, placement):
        """Tile numbers: those of the work item where they count this, else any, also one past the block."""
        rng = self.rng
        out = []
        for d in range(len(placement.tiling)):
            count = self.tiles(placement, d)
            fits = [v for v, lo, hi in self.indices if lo >= 0 and isinstance(v, p.Var) and v.name.startswith("w")]
            if fits and rng.random() < 0.6:
                out.append(rng.choice(fits))
            else:
                out.append(p.index(rng.randint(0, count)))
        return out

    # -- collectives --------------------------------------------------------------------------------------------------

    def group(self, axis):
        return math.prod(n for name, n in zip(NAMES, self.mesh) if is_over(axis, name))

    def whole_or_part(self, buffer):
        """A region for a collective and its shape."""
        sizes = self.shapes[buffer]
        if self.rng.random() < 0.7:
            return p.Region(buffer), list(sizes)
        spans = []
        for n in sizes:
            extent = self.rng.randint(1, n)
            spans.append(p.Span(self.rng.randint(0, n - extent), extent))
        return p.Region(buffer, spans), [s.extent for s in spans]

    def collective(self, scope):
        """(buffers to allocate and fill before, the collective) on buffers of `scope`: a kernel's, or the host's global
        ones.
        """
        rng = self.rng
        axis = rng.choice(self.meets)
        k = self.group(axis)
        sources = [b for b in self.targets() if all(self.shapes[b])]
        if not sources:
            return [], []
        source = rng.choice(sources)
        region, shape = self.whole_or_part(source)
        name = rng.choice(
            ["broadcast", "put", "all_gather", "all_gather", "reduce_scatter", "all_reduce", "all_reduce", "all_to_all",
             "permute", "permute", "gather", "scatter", "reduce", "barrier"]
        )  # fmt: skip
        if name == "put" and "all" not in self.meets:
            return [], []
        keywords = {} if axis == "all" and rng.random() < 0.5 else {"axis": axis}
        rank = len(shape)
        if name == "barrier":
            return [], [p.Op("comm.barrier", [], keywords)]
        result = list(shape)
        head = []
        if name in ("broadcast", "gather", "scatter", "reduce"):
            head, root = self.of_group(axis, k, scope)
            keywords = {"root": root, **keywords}
        if name == "put":
            keywords = {
                "src_core": [p.index(self.number_of_group("all", n, scope)) for n in self.mesh],
                "dst_core": [p.index(self.number_of_group("all", n, scope)) for n in self.mesh],
            }
        elif name == "permute" and rng.random() < 0.4:
            keywords["shift"] = rng.randint(-3, 3)
        elif name == "permute":
            head, keywords["source"] = self.source(axis, k, scope)
        elif name in ("all_reduce", "reduce"):
            keywords["op"] = rng.choice(["sum", "prod", "max", "min"])
        elif name in ("all_gather", "gather"):
            dim = rng.randint(0, rank)
            if dim == rank or rng.random() < 0.5:
                result.insert(dim, k)
                keywords["dim"] = rng.choice([dim, dim - rank - 1])
            else:
                result[dim] *= k
                keywords["dim"] = rng.choice([dim, dim - rank])
        elif name == "all_to_all":
            dim = rng.randrange(rank)
            if shape[dim] % k:
                return [], []
            keywords["dim"] = rng.choice([dim, dim - rank])
        elif name in ("reduce_scatter", "scatter"):
            if name == "reduce_scatter":
                keywords["op"] = rng.choice(["sum", "prod", "max", "min"])
            dims = [d for d in range(rank) if shape[d] % k == 0]
            if not dims:
                return [], []
            dim = rng.choice(dims)
            if shape[dim] == k and rank > 1 and rng.random() < 0.6:
                del result[dim]
            else:
                result[dim] //= k
            keywords["dim"] = rng.choice([dim, dim - rank])
        if len(result) > 3 or self.size(result) > 120:
            return [], []
        targets = [b for b in self.targets() if b is not source and b.dtype == source.dtype
                   and self.shapes[b] == result]
        before = []
        if targets and rng.random() < 0.6:
            target = rng.choice(targets)
        else:
            target = self.declare(self.fresh("C"), result, source.dtype, scope or rng.choice(["shared", "fragment"]))
            before.append(target)
        return before, [*head, p.Op(f"comm.{name}", [region, p.Region(target)], keywords)]

    def of_group(self, axis, count, scope):
        """(statements before, a number in [0, count) that all cores of a group over `axis` have)."""
        if scope is None and self.rng.random() < 0.1:
            head, number, _ = self.agreed(axis)
            return head, p.Apply("%", "index", [number, p.index(count)])
        return [], self.number_of_group(axis, count, scope)

    def number_of_group(self, axis, count, scope):
        """Such a number that needs no statement before."""
        own = [v for v, name in zip(self.core, NAMES) if is_over(axis, name)] if scope is None else []
        known = [v for v, _, _ in self.indices if not any(v is core for core in own)]
        if known and self.rng.random() < 0.5:
            return p.Apply("%", "index", [self.rng.choice(known), p.index(count)])
        return self.rng.randrange(count)

    def source(self, axis, count, scope):
        """(statements before, a map from a core of a group to the one that it gets values from, or to none)."""
        rng = self.rng
        me = p.Var(self.fresh("m"))
        head, by = self.of_group(axis, count, scope)
        by = p.index(by)
        moved = p.Apply(rng.choice("+-"), "index", [me, by])
        kind = rng.choice(["line", "ring", "turned", "some", "one"])
        if kind == "ring":
            moved = p.Apply("%", "index", [moved, p.index(count)])
        elif kind == "turned":
            moved = p.Apply("-", "index", [by, me])
        elif kind == "some":
            even = p.Apply("==", "index", [p.Apply("%", "index", [me, p.index(2)]), p.index(rng.randint(0, 1))])
            moved = p.Apply("if_then_else", "index", [even, moved, p.index(rng.choice([-1, 0, count]))])
        elif kind == "one":
            moved = by
        return head, p.Lambda(me, moved)

    def size(self, shape):
        n = 1
        for e in shape:
            n *= e
        return n

    # -- kernels ------------------------------------------------------------------------------------------------------

    def phases(self, count, placements, depth=0):
        """Statements of a kernel with collectives among them."""
        rng = self.rng
        out = []
        for _ in range(count):
            choice = rng.random()
            if choice < 0.35:
                before, op = self.collective(None)
                for b in before:
                    self.allocs.append(p.Alloc(b))
                    out += self.first_contents(b, [])
                out += op
                self.buffers += before
            elif choice < 0.43 and placements:
                out += self.read_tile(rng.choice(placements))
            elif choice < 0.53 and depth < 2:
                out.append(self.uniform_loop(placements, depth))
            elif choice < 0.7 and depth < 3:
                out += self.decided(placements, depth)
            elif choice < 0.75 and depth < 2:
                known = list(self.buffers)
                self.depth += 1
                then = self.phases(1, placements, depth + 1)
                self.buffers = known
                self.depth -= 1
                out.append(p.If(self.uniform_condition(), then, []))
            else:
                out += self.statements(1)
        return out

    def decided(self, placements, depth):
        """Control flow in which groups over an axis agree, and others may not."""
        rng = self.rng
        axis = rng.choice(self.meets)
        head, number, limit = self.agreed(axis)
        known, meets, values = list(self.buffers), self.meets, len(self.values)
        self.meets = meets if axis == "all" else [each for each in meets if set(each) <= set(axis)]
        self.depth += 1
        kind = rng.choice(["if", "for", "while"])
        if kind == "if":
            comparison = rng.choice(["<", "<=", "==", "!=", ">"])
            condition = p.Apply(comparison, "index", [number, p.index(rng.randint(0, limit))])
            then = self.phases(rng.randint(1, 2), placements, depth + 1)
            self.buffers = list(known)
            otherwise = self.phases(1, placements, depth + 1) if rng.random() < 0.4 else []
            head.append(p.If(condition, then, otherwise))
        else:
            count = p.Apply("min", "index", [number, p.index(rng.randint(0, 2))])
            maker = self.counted_loop if kind == "for" else self.counting_loop
            head += maker(count, lambda: self.phases(rng.randint(1, 2), placements, depth + 1))
        self.depth -= 1
        del self.values[values:]
        self.buffers, self.meets = known, meets
        return head

    def agreed(self, axis):
        """(statements before, an index that is equal in each group over the axis, a number that it rarely passes)."""
        rng = self.rng
        others = [d for d in range(len(self.mesh)) if not is_over(axis, NAMES[d])]
        if others and rng.random() < 0.4:
            other = rng.choice(others)
            return [], self.core[other], self.mesh[other]
        kinds = [rng.choice(["shared", "fragment"]) for _ in range(2)]
        own, common = (self.declare(self.fresh("D"), [1], "int32", kind) for kind in kinds)
        self.allocs += [p.Alloc(own), p.Alloc(common)]
        at = [p.index(0)]
        value = p.Apply("&", "int32", [self.stored("int32", 2), p.Const("int32", 3)])
        if rng.random() < 0.5:
            name, keywords = "all_reduce", {"op": rng.choice(["sum", "max", "min"])}
        else:
            name, keywords = "broadcast", {"root": rng.randrange(self.group(axis))}
        op = p.Op(f"comm.{name}", [p.Region(own), p.Region(common)], {**keywords, "axis": axis})
        return [p.Store(own, at, value), op], p.Cast("index", p.Load(common, at)), 4

    def counted_loop(self, count, body):
        """A loop of `count` turns, at most 2."""
        begin, var = self.rng.choice([0, 0, 1]), p.Var(self.fresh("k"))
        self.indices.append((var, begin, begin + 1))
        inside = body()
        self.indices.pop()
        return [p.For(self.rng.choice(["serial", "serial", "Pipelined"]), [var], [begin], [count], inside)]

    def counting_loop(self, count, body):
        """The same by a counter in memory of the core."""
        counter = self.declare(self.fresh("n"), [1], "int32", self.rng.choice(["local", "shared"]))
        self.allocs.append(p.Alloc(counter))
        at = p.Load(counter, [p.index(0)])
        inside = body()
        step = p.Store(counter, [p.index(0)], p.Apply("+", "int32", [at, p.Const("int32", 1, True)]))
        inside.insert(self.rng.randint(0, len(inside)), step)
        condition = p.Apply("<", "index", [p.Cast("index", at), count])
        return [p.Store(counter, [p.index(0)], p.Const("int32", 0)), p.While(condition, inside)]

    def uniform_condition(self):
        hidden, self.indices = self.indices, [x for x in self.indices if x[0] not in self.core]
        out = self.index_condition()
        self.indices = hidden
        return out

    def uniform_loop(self, placements, depth):
        """A serial loop with collectives inside; buffers carry over its iterations."""
        rng = self.rng
        begin, extent = rng.choice([0, 0, 1]), rng.choice([0, 1, 2, 3])
        var = p.Var(self.fresh(rng.choice("kw")))
        known = list(self.buffers)
        self.indices.append((var, begin, begin + max(extent, 1) - 1))
        self.depth += 1
        body = self.phases(rng.randint(1, 3), placements, depth + 1)
        self.depth -= 1
        self.indices.pop()
        self.buffers = known
        return p.For(rng.choice(["serial", "serial", "Pipelined", "unroll"]), [var], [begin], [extent], body,
                     rng.randint(1, 2))

    def read_tile(self, placement):
        """A tile of a sharded tensor into a buffer of its tiling."""
        rng = self.rng
        fits = [b for b in self.targets() if self.shapes[b] == placement.tiling]
        fits = [b for b in fits if self.castable(placement.buffer.dtype, b.dtype)]
        before = []
        if fits and rng.random() < 0.8:
            target = rng.choice(fits)
        else:
            target = self.declare(self.fresh("B"), list(placement.tiling), placement.buffer.dtype,
                                  rng.choice(["shared", "tiles"]))
            if target.kind == "tiles":
                target.tile = [1] * (len(placement.tiling) - 2) + [rng.choice([2, 3, 4]) for _ in placement.tiling[-2:]]
            self.allocs.append(p.Alloc(target))
            before = [target]
        keywords = {"coord": self.coordinate(placement)}
        if rng.random() < 0.3:
            keywords["pad"] = self.constant(target.dtype)
        self.buffers += before
        return [p.Op("mesh_tensor_copy", [p.Region(placement.buffer), p.Region(target)], keywords)]

    def write_tile(self, placement, variables):
        """The tile of this work item, from a buffer of its tiling."""
        fits = [b for b in self.targets() if self.shapes[b] == placement.tiling]
        fits = [b for b in fits if self.castable(b.dtype, placement.buffer.dtype)]
        out = []
        if fits:
            block = self.rng.choice(fits)
        else:
            block = self.declare(self.fresh("B"), list(placement.tiling), placement.buffer.dtype, "shared")
            self.allocs.append(p.Alloc(block))
            out += self.first_contents(block, [])
        counts = [self.tiles(placement, d) for d in range(len(placement.tiling))]
        inner = [p.Var(self.fresh("w")) for _ in counts]
        coord = [variables[d] if d < len(variables) else inner[d] for d in range(len(counts))]
        copy = p.Op("mesh_tensor_copy", [p.Region(block), p.Region(placement.buffer)], {"coord": coord})
        for d in range(len(variables), len(counts)):
            copy = p.For("serial", [inner[d]], [0], [counts[d]], [copy])
        return [*out, copy]

    def own_result(self, result):
        """Each core writes its own part of a tensor that is not sharded."""
        rng = self.rng
        shape = self.shapes[result][len(self.mesh) :]
        variables = [p.Var(self.fresh("i")) for _ in shape]
        known = len(self.indices)
        self.indices += [(v, 0, n - 1) for v, n in zip(variables, shape)]
        value = self.stored(result.dtype, 2)
        del self.indices[known:]
        body = [p.Store(result, [*self.core, *variables], value)]
        kind = rng.choice(["Parallel", "Parallel", "serial"])
        if kind == "Parallel":
            return [p.For("Parallel", variables, [0] * len(shape), list(shape), body)]
        for v, n in reversed(list(zip(variables, shape))):
            body = [p.For("serial", [v], [0], [n], body)]
        return body

    def enter(self):
        self.core = [p.Var(self.fresh("b")) for _ in self.mesh]
        self.indices += [(v, 0, n - 1) for v, n in zip(self.core, self.mesh)]
        self.allocs = []

    def fill_some(self, count):
        body = []
        for _ in range(count):
            buffer = self.block_buffer(self.shape(self.rng.choice([1, 2])))
            self.allocs.append(p.Alloc(buffer))
            body += self.first_contents(buffer, [])
            self.buffers.append(buffer)
        return body

    def mesh_kernel(self, inputs, outputs, result):
        rng = self.rng
        known = len(self.indices)
        self.enter()
        outside = list(self.buffers)
        head = []
        if rng.random() < 0.45:
            counts = [rng.randint(0, 4)]
            if outputs:
                counts = [self.tiles(outputs[0], d) for d in range(rng.randint(1, len(outputs[0].tiling)))]
            variables = [p.Var(self.fresh("w")) for _ in counts]
            self.indices += [(v, 0, max(n - 1, 0)) for v, n in zip(variables, counts)]
            if not outputs and rng.random() < 0.3:  # work of its own for each mesh row, or column
                own = rng.randrange(len(self.mesh))
                self.meets = [name for d, name in enumerate(NAMES[: len(self.mesh)]) if d != own]
                counts = [p.Apply("min", "index", [self.core[own], p.index(counts[0])])]
            body = self.fill_some(rng.randint(1, 3)) + self.phases(rng.randint(1, 5), inputs, 1)
            self.meets = sets_of_axes(self.mesh)
            if outputs:
                body += self.write_tile(outputs[0], variables)
            head = [p.For("Persistent", variables, [0] * len(counts), list(counts), body)]
            self.buffers = outside
            del self.indices[known + len(self.mesh) :]
            head += self.fill_some(1) + self.own_result(result)
        else:
            head = self.fill_some(rng.randint(1, 3)) + self.phases(rng.randint(2, 6), inputs)
            if rng.random() < 0.4:
                head += self.decided(inputs, 1)
            if outputs:
                head += self.write_tile(outputs[0], [])
            head += self.own_result(result)
        self.buffers = outside
        del self.indices[known:]
        return p.Kernel(self.core, list(self.mesh), [*self.allocs, *head])

    def flagged(self, flag, moves, mine, known):
        """Collectives and a launch of the host body as often as a number says that each core reads for itself."""
        rng = self.rng
        self.enter()
        target = rng.choice(mine)
        count = p.Cast("index", p.Load(flag, [p.index(0)]))
        hidden, self.buffers = self.buffers, [b for b in self.buffers if b is not target]
        launch = p.Kernel(self.core, list(self.mesh), self.first_contents(target, []))
        self.buffers = hidden
        del self.indices[known:]
        inside = [*moves, launch]
        if rng.random() < 0.5:
            return [p.If(p.Apply("<", "index", [p.index(0), count]), inside, moves if rng.random() < 0.3 else [])]
        return [p.For("serial", [p.Var(self.fresh("h"))], [0], [count], inside)]

    def host_body(self, result):
        """Global buffers, one instance a core: a kernel fills them, collectives move them, a kernel reads them."""
        rng = self.rng
        outside = list(self.buffers)
        mine = [self.declare(self.fresh("G"), self.shape(rng.choice([1, 2])), self.dtype(), "global")
                for _ in range(rng.randint(1, 2))]
        known = len(self.indices)
        self.enter()
        first = []
        for g in mine:
            first += self.first_contents(g, [])
            self.buffers.append(g)
        flag = self.declare(self.fresh("G"), [1], "int32", "global") if rng.random() < 0.5 else None
        axis = rng.choice(NAMES[: len(self.mesh)])
        if flag:
            other = p.Cast("int32", self.core[rng.choice([d for d in range(len(self.mesh)) if NAMES[d] != axis])])
            value = rng.choice([other, p.Apply("&", "int32", [self.stored("int32", 1), p.Const("int32", 1)])])
            first.append(p.Store(flag, [p.index(0)], value))
        body = [*map(p.Alloc, [*mine, flag] if flag else mine), p.Kernel(self.core, list(self.mesh), first)]
        del self.indices[known:]
        if flag:
            body.append(p.Op("comm.all_reduce", [p.Region(flag)] * 2, {"op": "max", "axis": axis}))
            self.meets = [axis]
        moves, fresh = [], []
        for _ in range(rng.randint(1, 3)):
            before, op = self.collective("global")
            fresh += before
            moves += op
        if moves and rng.random() < 0.3:
            moves = [p.For("serial", [p.Var(self.fresh("h"))], [0], [rng.randint(0, 2)], moves)]
        if flag:
            moves = self.flagged(flag, moves, mine, known)
        if fresh:
            self.enter()
            fills = [s for g in fresh for s in self.first_contents(g, [])]
            body += [*map(p.Alloc, fresh), p.Kernel(self.core, list(self.mesh), fills)]
            del self.indices[known:]
        self.meets = sets_of_axes(self.mesh)
        self.buffers += fresh
        self.enter()
        last = self.fill_some(1) + self.statements(1) + self.own_result(result)
        kernel = p.Kernel(self.core, list(self.mesh), [*self.allocs, *last])
        self.buffers = outside
        del self.indices[known:]
        return [*body, *moves, kernel]
