"""Random kernels: from a seed to a program that is defined nearly always by construction.

A generator keeps the ranges of index variables, so subscripts stay inside, writes each element of an output from one
block, and fills every buffer before it is read. What slips through is caught by the evaluator, which refuses undefined
programs.
"""

import math
import random

import layouts
import program as p
import scalars
import tree
from bulk import Bulk
from conditions import Conditions
from expressions import Expressions
from idioms import Idioms
from private import Private
from packed import Packed
from parts import Parts
from products import Products
from reports import assert_some
from updates import Updates
from warps import Warps
from wide import Wide

DTYPES = ["float32"] * 5 + ["float64", "float16", "bfloat16"] * 2 + ["int8", "int16", "int32", "int64"] * 2
DTYPES += ["uint8", "uint16", "uint32", "uint64", "bool", "float8_e4m3", "float8_e5m2"]
LARGE = [13, 16, 17, 24, 31, 32, 33, 48, 64, 65, 100, 129]
MOST = 500  # elements of a buffer
REDUCTIONS = ["sum", "sum", "prod", "max", "min", "absmax"]
FLAT = ("Parallel", "serial", "unroll", "vectorized")


def wider(dtype, rng):
    """A dtype that a reduction or product of dtype may accumulate in."""
    if scalars.is_float(dtype):
        return rng.choice([dtype, dtype, "float32" if dtype != "float64" else "float64"])
    same = [d for d in scalars.BITS if scalars.is_unsigned(d) == scalars.is_unsigned(dtype)]
    return rng.choice([d for d in same if scalars.BITS[d] >= scalars.BITS[dtype]])


class Generator(Idioms, Conditions, Private, Products, Packed, Parts, Bulk, Updates, Warps, Wide, Expressions):
    """Statements of a kernel over the buffers of `self.buffers`; subclasses decide what stands around them."""

    def __init__(self, seed):
        super().__init__(random.Random(seed))
        self.seed = seed
        self.params, self.dims, self.scalar_values = [], {}, {}
        self.shared = []
        self.pool = [self.rng.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 11]) for _ in range(3)]
        self.kinds = [self.rng.choice(DTYPES) for _ in range(self.rng.randint(1, 3))]
        self.large = self.rng.random() < 0.15
        self.even = self.rng.random() < 0.2  # extents that threads and layouts divide
        if self.large:
            self.pool[0] = self.rng.choice(LARGE)
        if self.even:
            self.pool = [self.rng.choice([2, 4, 8, 16]) for _ in self.pool]
        self.threads = None
        self.placed = []  # fragments to which a target may give a layout of its own
        self.depth = 0

    # -- declarations -------------------------------------------------------------------------------------------------

    def dtype(self):
        return self.rng.choice(self.kinds)

    def declare(self, name, shape, dtype, kind, tile=None, strides=None, written=None):
        """A buffer with its concrete shape; extents of `written` replace some of them in the text."""
        buffer = p.Buffer(name, list(written or shape), dtype, kind, tile, strides)
        self.shapes[buffer] = list(shape)
        return buffer

    def dynamic(self, extent):
        """A dynamic extent of that value, or the number itself."""
        if self.rng.random() < 0.7:
            return extent
        for name, value in self.dims.items():
            if value == extent:
                return p.Var(name)
        if len(self.dims) < 2:
            name = "MN"[len(self.dims)]
            self.dims[name] = extent
            return p.Var(name)
        return extent

    def param(self, shape, dtype, compact=False, written=False, rows=False):
        """A tensor parameter; sometimes dynamic, strided unless it has to be compact, at any address."""
        extents = [self.dynamic(n) for n in shape]
        strides = None if compact or self.rng.random() < 0.75 else self.strides(shape, extents, written)
        buffer = self.declare(self.fresh("A"), shape, dtype, "param", strides=strides, written=extents)
        buffer.rows = rows
        if not compact and self.rng.random() < 0.2:
            buffer.begin = self.rng.choice([1, 1, 2, 3, 4, 8])
        self.params.append(buffer)
        return buffer

    def strides(self, shape, extents, written):
        """Rows with room between them, columns one after the other, either way round, or, of what is only read, one row
        for all.
        """
        rng = self.rng
        order = list(range(len(shape)))
        if rng.random() < 0.35:
            rng.shuffle(order)
        repeated = rng.randrange(len(shape)) if not written and len(shape) > 1 and rng.random() < 0.15 else None
        strides, step = [None] * len(shape), 1
        for d in reversed(order):
            if d == repeated:
                strides[d] = 0
                continue
            strides[d] = step
            room = rng.choice([0, 0, 1, 2, 5])
            wide = extents[d]
            if isinstance(step, int) and isinstance(wide, int):
                step = step * (wide + room)
                continue
            wide = p.Apply("+", "index", [p.index(wide), p.index(room)]) if room else p.index(wide)
            step = wide if step == 1 else p.Apply("*", "index", [p.index(step), wide])
        if rng.random() < 0.25:
            d = rng.randrange(len(shape))
            at = strides[d]
            strides[d] = -at if isinstance(at, int) else p.Apply("*", "index", [p.index(-1), at])
        return strides

    def row_param(self):
        """A parameter each row of which holds each number once."""
        shape = self.shape(self.rng.choice([1, 2, 2, 2, 3]))
        dtype = self.rng.choice(["int32", "int32", "int64", "uint8", "float32", "float16"])
        if shape[-1] > 100:
            dtype = "int32"
        return self.param(shape, dtype, rows=True)

    def scalar_param(self):
        dtype = self.rng.choice(["index", "float32", "int32", "int64", "bool", "float64", "uint8"])
        var = p.Var(self.fresh("s"), dtype)
        self.params.append(var)
        value = {"bool": self.rng.random() < 0.5, "index": self.rng.randint(0, 4),
                 "uint8": self.rng.randint(0, 200)}.get(
            dtype, self.rng.randint(-5, 5)
        )
        if scalars.is_float(dtype):
            value = float(value) / 2
        self.scalar_values[var.name] = value
        if dtype == "index":
            self.indices.append((var, value, value))
        else:
            self.values.append(var)

    def shape(self, rank=None):
        rank = rank or self.rng.choice([1, 2, 2, 2, 3])
        shape = [self.rng.choice(self.pool) for _ in range(rank)]
        while math.prod(shape) > MOST:
            shape[shape.index(max(shape))] = self.rng.choice([1, 2, 3, 4])
        return shape

    def block_buffer(self, shape=None, dtype=None):
        """A buffer of the kernel and its Alloc."""
        rng = self.rng
        shape = shape or self.shape()
        kind = rng.choice(["shared", "shared", "tiles", "tiles", "fragment", "local"])
        tile = None
        if kind == "tiles":
            tile = [1] * (len(shape) - 2) + [rng.choice([2, 3, 4, 5, 8]) for _ in shape[-2:]]
            if rng.random() < 0.4:
                tile = [1] * (len(shape) - 2) + self.tile[-len(shape[-2:]) :] if len(shape) > 1 else self.tile[:1]
        buffer = self.declare(self.fresh("B"), shape, dtype or self.dtype(), kind, tile)
        if rng.random() < 0.25:
            buffer.layout = self.layout(kind, shape)
        return buffer

    def layout(self, kind, shape):
        """A layout of a buffer of a kernel; None where none fits."""
        if not math.prod(shape) or not self.threads:
            return None
        if kind == "fragment":
            return layouts.of_fragment(shape, self.threads, self.rng)
        return layouts.of_memory(shape, self.rng)

    # -- regions ------------------------------------------------------------------------------------------------------

    def span(self, n, extent, past=0):
        """`extent` elements of n; `past` allows that many beyond the end."""
        room = n - extent + past
        begin = self.rng.randint(0, room) if self.rng.random() < 0.4 else self.index_in(room + 1)
        return p.Span(begin, extent)

    def region(self, buffer, shape, copies=False):
        """A region of that shape, dimensions of extent 1 aside when it is for a copy; None when there is none."""
        sizes = self.shapes[buffer]
        past = 2 if copies and buffer.kind in ("param", "global") and self.rng.random() < 0.4 else 0
        if sizes == list(shape) and not past and self.rng.random() < 0.6:
            return p.Region(buffer)
        spans, wanted = [], list(shape)
        for d, n in enumerate(sizes):
            left = len(sizes) - d
            if wanted and n + past >= wanted[0] and (left <= len(wanted) or self.rng.random() < 0.7):
                spans.append(self.span(n, wanted.pop(0), past))
            elif n > 0:
                spans.append(p.Span(self.index_in(n), 1, True))
            else:
                return None
        return None if wanted else p.Region(buffer, spans)

    # -- statements of a block ----------------------------------------------------------------------------------------

    def statement(self):
        """A list of statements over filled buffers."""
        rng = self.rng
        if (rare := self.aside.random()) < 0.06:
            return self.packed()
        if rare > 0.97 and (made := self.fetched()):
            return made
        if 0.94 < rare <= 0.97 and (made := self.parts()):
            return made
        makers = [
            (self.elementwise, 8),
            (self.copy, 4),
            (self.fill, 2),
            (self.reduce, 4),
            (self.scan, 2),
            (self.atomic, 2),
            (self.atomic_loop, 2),
            (self.gemm, 2),
            (self.tile_loop, 3),
            (self.bind, 1),
            (self.pick, 3),
            (self.argmax, 1.5),
            (self.scratch, 3),
            (self.private, 2.5),
            (self.gather, 2),
            (self.update, 2.5),
            (self.named, 1),
        ]
        if self.depth < 2:
            makers += [(self.branch, 2), (self.loop, 3), (self.loop_while, 0.8)]
        weights = [w for _, w in makers]
        for _ in range(8):
            made = rng.choices(makers, weights)[0][0]()
            if made:
                return made
        return self.elementwise() or []

    def statements(self, count):
        depth, self.depth = self.depth, self.depth + 1
        values, indices, buffers = len(self.values), len(self.indices), list(self.buffers)
        made = [s for _ in range(count) for s in self.statement()]
        del self.values[values:], self.indices[indices:]
        self.buffers = buffers
        self.depth = depth
        return made

    def named(self):
        """Names that later statements of the block use."""
        long = self.rng.random() < 0.01
        return self.chain(self.rng.randint(14, 40) if long else None)

    def targets(self):
        return [b for b in self.buffers if b.kind != "param"]

    def elementwise(self):
        """A nest of loops that stores one element, or several, an iteration."""
        rng = self.rng
        if not self.targets():
            return []
        target = rng.choice(self.targets())
        sizes = self.shapes[target]
        kind = rng.choice(FLAT)
        loops, subscripts, known = [], [], len(self.indices)
        begins, extents, variables = [], [], []
        for n in sizes:
            if rng.random() < 0.12 and n > 0:
                subscripts.append(self.index_in(n))
                continue
            begin = rng.choice([0, 0, 0, rng.randint(0, n)])
            extent = rng.choice([n - begin] * 6 + [rng.randint(0, n - begin), min(1, n - begin)])
            var = p.Var(self.fresh("i"))
            shift = rng.randint(0, begin) if rng.random() < 0.3 else 0
            begins.append(begin - shift)
            extents.append(self.symbolic(extent, known))
            variables.append(var)
            self.indices.append((var, begin - shift, begin - shift + max(extent, 1) - 1))
            subscripts.append(p.Apply("+", "index", [var, p.index(shift)]) if shift else var)
        own = p.Load(target, subscripts)
        body = self.element_body(target, subscripts, own, kind, variables)
        del self.indices[known:]
        if not variables:
            return body
        if kind == "Parallel":
            return [p.For("Parallel", variables, begins, extents, body)]
        order = list(range(len(variables)))
        if kind == "serial":
            rng.shuffle(order)
        for n in reversed(order):
            inner = kind if n == order[-1] or kind in ("serial", "unroll") else "Parallel"
            body = [p.For(inner, [variables[n]], [begins[n]], [extents[n]], body)]
        return body + loops

    def element_body(self, target, subscripts, own, kind, variables):
        """Stores to the iteration's own element; others are only read where iterations are independent."""
        rng = self.rng
        independent = kind != "serial" and kind != "unroll"
        hidden = target if independent else None
        self.hide(hidden)
        known = len(self.values)
        body = []
        indices = len(self.indices)
        if rng.random() < 0.2:
            body += self.bind_here() if rng.random() < 0.5 else self.chain()
        if independent:
            self.own.append(own)
        value = self.stored(target.dtype, 3)
        if rng.random() < 0.15 and target.dtype != "bool":
            op = rng.choice(["+", "-", "*"] if not scalars.is_float(target.dtype) else ["+", "-"])
            update = self.updated(target, subscripts, 2) if self.aside.random() < 0.5 else []
            body += update or [p.Store(target, subscripts, self.stored(target.dtype, 2), op)]
        else:
            body.append(p.Store(target, subscripts, value))
        if rng.random() < 0.25:
            guard = self.condition(2)
            other = [p.Store(target, subscripts, self.stored(target.dtype, 2))] if rng.random() < 0.5 else []
            body = body[:-1] + [p.If(guard, body[-1:], other)]
        if rng.random() < 0.2:
            body.append(p.Store(target, subscripts, self.stored(target.dtype, 2)))
        if rng.random() < 0.08:
            body += self.beside(target)
        if rng.random() < 0.12:
            first = next((n for n, s in enumerate(body) if not isinstance(s, p.Bind)), len(body))
            body = body[:first] + self.guards(body[first:])
        if independent:
            self.own.pop()
        self.show(hidden)
        del self.values[known:], self.indices[indices:]
        return body

    def bind_here(self):
        dtype = self.dtype()
        value = self.value(dtype, 2)
        if isinstance(value, p.Const):
            return []
        var = p.Var(self.fresh("v"), dtype)
        self.values.append(var)
        return [p.Bind(var, value)]

    bind = bind_here

    def copy(self):
        rng = self.rng
        if not self.targets():
            return []
        target, source = rng.choice(self.targets()), rng.choice(self.buffers)
        if target is source or not self.castable(source.dtype, target.dtype):
            return []
        shape = [rng.randint(0 if rng.random() < 0.1 else min(n, 1), n) if rng.random() < 0.4 else n
                 for n in self.shapes[target]]
        to = self.region(target, shape, True)
        limited = [min(e, n) if isinstance(e, int) else e for e, n in zip(shape, self.shapes[target])]
        of = self.region(source, limited, True) if to else None
        if not of:
            return []
        keywords = {}
        if rng.random() < 0.3 and source.kind in ("param", "global"):
            keywords["pad"] = self.constant(target.dtype)
        if rng.random() < 0.2:
            return [p.Op("copy_async", [of, to], keywords), p.Op("wait_async", [])]
        return [p.Op("copy", [of, to], keywords)]

    def fill(self):
        if not self.targets():
            return []
        target = self.rng.choice(self.targets())
        shape = [self.rng.randint(min(1, n), n) for n in self.shapes[target]]
        r = self.region(target, self.shapes[target] if self.rng.random() < 0.5 else shape)
        if self.rng.random() < 0.4:
            return [p.Op("clear", [r])]
        return [p.Op("fill", [r], {"value": self.stored(target.dtype, 2)})]

    def reduce(self):
        """Reduces a region of any buffer into a buffer that fits, or into a new one."""
        rng = self.rng
        source = rng.choice(self.buffers)
        shape = [rng.randint(min(1, n), n) if rng.random() < 0.3 else n for n in self.shapes[source]]
        dim = rng.randrange(len(shape))
        kept = shape[:dim] + ([1] if rng.random() < 0.3 else []) + shape[dim + 1 :]
        dtype = source.dtype if source.dtype == "bool" else wider(source.dtype, rng)
        kind = rng.choice(["any", "all"] if dtype == "bool" else REDUCTIONS)
        fits = [b for b in self.targets() if b is not source and b.dtype == dtype]
        rng.shuffle(fits)
        of = self.region(source, shape)
        if of is None or (of.spans and any(s.point for s in of.spans)) or not kept:
            return []
        for target in fits:
            to = self.region(target, kept)
            if to and (to.spans is None or sum(not s.point for s in to.spans) == len(kept)):
                keywords = {"dim": dim - (len(shape) if rng.random() < 0.5 else 0)}
                if rng.random() < 0.4:
                    keywords["clear"] = rng.random() < 0.3
                return [p.Op(f"reduce_{kind}", [of, to], keywords)]
        return []

    def scan(self):
        """Running sums of a region in place, or into a buffer that fits."""
        rng = self.rng
        source = rng.choice(self.buffers)
        if source.dtype == "bool":
            return []
        shape = [rng.randint(min(1, n), n) if rng.random() < 0.3 else n for n in self.shapes[source]]
        of = self.region(source, shape)
        if of is None or (of.spans and any(s.point for s in of.spans)):
            return []
        dim = rng.randrange(len(shape))
        keywords = {"dim": dim - (len(shape) if rng.random() < 0.5 else 0)}
        if rng.random() < 0.4:
            keywords["reverse"] = True
        if source.kind != "param" and rng.random() < 0.3:
            return [p.Op("cumsum", [of, of], keywords)]
        dtype = wider(source.dtype, rng)
        fits = [b for b in self.targets() if b is not source and b.dtype == dtype]
        rng.shuffle(fits)
        for target in fits:
            to = self.region(target, shape)
            if to and (to.spans is None or sum(not s.point for s in to.spans) == len(shape)):
                return [p.Op("cumsum", [of, to], keywords)]
        return []

    def atomic_targets(self):
        return [b for b in self.targets() if b.kind in ("global", "shared", "tiles") and b.dtype in p.ATOMIC_DTYPES]

    def atomic(self):
        """Updates a region by a scalar or by another buffer's region."""
        rng = self.rng
        if not self.atomic_targets():
            return []
        target = rng.choice(self.atomic_targets())
        shape = [rng.randint(min(1, n), n) if rng.random() < 0.3 else n for n in self.shapes[target]]
        to = self.region(target, shape)
        # Blocks that add floats to one element do it in any order.
        ordered = target.kind == "global" and scalars.is_float(target.dtype)
        name = rng.choice(["atomic_max", "atomic_min"] if ordered else p.ATOMICS)
        # A region without slices is one element, whose update is a statement of its own.
        if to is None or (to.spans and all(s.point for s in to.spans)):
            return []
        if rng.random() < 0.4:
            return [p.Op(name, [to], {"value": self.value(target.dtype, 2)})]
        fits = [b for b in self.buffers if b is not target and b.dtype == target.dtype]
        rng.shuffle(fits)
        for source in fits:
            of = self.region(source, shape)
            if of and not (of.spans and all(s.point for s in of.spans)):
                return [p.Op(name, [to, of])]
        return []

    def atomic_loop(self):
        """Iterations that meet in elements: sums of integers and all extremes are equal in any order."""
        rng = self.rng
        if self.aside.random() < 0.4 and (made := self.fetched()):
            return made
        if not self.atomic_targets():
            return []
        target = rng.choice(self.atomic_targets())
        if 0 in self.shapes[target]:
            return []
        name = rng.choice(["atomic_max", "atomic_min"] if scalars.is_float(target.dtype) else p.ATOMICS)
        var, extent, known = p.Var(self.fresh("i")), rng.randint(1, 9), len(self.indices)
        self.indices.append((var, 0, extent - 1))
        self.hide(target)
        subscripts = [self.index_in(n) for n in self.shapes[target]]
        body = [p.Store(target, subscripts, self.value(target.dtype, 2), name)]
        if rng.random() < 0.3:
            body = [p.If(self.condition(2), body, [])]
        self.show(target)
        del self.indices[known:]
        return [p.For(rng.choice(FLAT), [var], [p.index(0)], [p.index(extent)], body)]

    def gemm(self):
        """A product of regions; operands of one dtype."""
        rng = self.rng
        if self.aside.random() < 0.25:
            return self.tensor_core_product()
        matrices = [b for b in self.buffers if len(self.shapes[b]) >= 2 and b.dtype != "bool"]
        pairs = [(a, b) for a in matrices for b in matrices if a.dtype == b.dtype]
        if not pairs:
            return []
        a, b = rng.choice(pairs)
        ta, tb = rng.random() < 0.3, rng.random() < 0.3
        (m, k), (k2, n) = self.shapes[a][-2:], self.shapes[b][-2:]
        if ta:
            m, k = k, m
        if tb:
            k2, n = n, k2
        k = min(k, k2)
        for c in rng.sample(matrices, len(matrices)):
            accumulates = c.dtype == a.dtype if scalars.is_float(a.dtype) else c.dtype in ("int32", "int64")
            if scalars.is_float(a.dtype) and scalars.is_float(c.dtype):
                accumulates |= scalars.FLOATS[c.dtype][0] > 20 and scalars.FLOATS[a.dtype][0] < 20
            if not scalars.is_float(a.dtype) and scalars.is_float(c.dtype):
                accumulates = False
            wide = not scalars.is_float(a.dtype) and scalars.BITS[a.dtype] > scalars.BITS.get(c.dtype, 0)
            if not accumulates or wide or c in (a, b) or c.kind == "param":
                continue
            m, n = min(m, self.shapes[c][-2]), min(n, self.shapes[c][-1])
            regions = [
                self.matrix(a, (k, m) if ta else (m, k)),
                self.matrix(b, (n, k) if tb else (k, n)),
                self.matrix(c, (m, n)),
            ]
            if min(m, n, k) < 1:
                return []
            keywords = {}
            if ta:
                keywords["transpose_A"] = True
            if tb:
                keywords["transpose_B"] = True
            if rng.random() < 0.7:
                keywords["clear"] = True
            return [p.Op("gemm", regions, keywords)]
        return []

    def matrix(self, buffer, shape):
        sizes = self.shapes[buffer]
        if sizes == list(shape):
            return p.Region(buffer)
        points = [p.Span(self.index_in(n), 1, True) for n in sizes[:-2]]
        return p.Region(buffer, points + [self.span(n, e) for n, e in zip(sizes[-2:], shape)])

    def tile_loop(self):
        """Whole tiles: operands of the same tile, and of lower rank, broadcast."""
        rng = self.rng
        tiled = [b for b in self.buffers if b.kind == "tiles"]
        if not tiled:
            return []
        target = rng.choice(tiled)
        variables = [p.Var(self.fresh("t")) for _ in target.tile]
        reads = []
        for b in tiled:
            rank = len(b.tile)
            same = self.shapes[b] == self.shapes[target] and b.tile == target.tile
            shorter = self.shapes[b] == self.shapes[target][:rank]
            lower = rank < len(target.tile) and b.tile == target.tile[:rank] and shorter
            if same or lower:
                reads.append(p.Load(b, variables[:rank]))
        parallel = rng.random() < 0.6
        known, hidden = len(self.indices), (self.buffers, self.own)
        counts = [-(-n // t) for n, t in zip(self.shapes[target], target.tile)]
        self.indices += [(v, 0, max(c - 1, 0)) for v, c in zip(variables, counts)]
        self.buffers, self.own = [], reads
        body = [p.Store(target, list(variables), self.stored(target.dtype, 3))]
        if rng.random() < 0.3:
            body.append(p.Store(target, list(variables), self.stored(target.dtype, 2)))
        if rng.random() < 0.15:
            body = [p.If(self.index_condition(), body[:1], body[1:])]
        self.buffers, self.own = hidden
        del self.indices[known:]
        return [p.ForTiles(target, variables, body, parallel)]

    def branch(self):
        rng = self.rng
        then = self.statements(rng.randint(1, 2))
        otherwise = self.statements(1) if rng.random() < 0.5 else []
        test = self.long_condition() if rng.random() < 0.15 else None
        return [p.If(test or self.condition(2), then, otherwise)]

    def loop(self):
        """A loop in order around statements of the block."""
        rng = self.rng
        kind = rng.choice(["serial", "serial", "range", "Pipelined", "unroll"])
        begin, extent = rng.choice([0, 0, 0, 1, 2]), rng.choice([0, 1, 2, 2, 3])
        var = p.Var(self.fresh("k"))
        self.indices.append((var, begin, begin + max(extent, 1) - 1))
        body = self.statements(rng.randint(1, 2))
        self.indices.pop()
        if kind in ("serial", "unroll") and rng.random() < 0.2:
            return [p.For(kind, [var], [begin], [extent], body, step=rng.choice([2, 3]))]
        return [p.For(kind, [var], [begin], [self.symbolic(extent)], body, rng.randint(1, 3))]

    def loop_while(self):
        """A counter in a buffer of its own, and statements that do not touch it."""
        counter = self.declare(self.fresh("n"), [1], "int32", "local")
        at = p.Load(counter, [p.index(0)])
        body = self.statements(1)
        start, limit = self.rng.randint(-2, 2), self.rng.randint(-1, 3)
        step = p.Store(counter, [p.index(0)], p.Apply("+", "int32", [at, p.Const("int32", 1, True)]))
        body.insert(self.rng.randint(0, len(body)), step)
        test = p.Apply("<", "int32", [at, p.Const("int32", limit, True)])
        hidden, self.buffers = self.buffers, [
            b for b in self.buffers if b not in self.placed and (b.kind != "fragment" or not b.layout)]
        more = self.long_condition() if self.rng.random() < 0.6 else None
        self.buffers = hidden
        if more:
            operands = more.args if more.op == "and" else [more]
            place = self.rng.randint(0, len(operands))
            test = p.Apply("and", "bool", [*operands[:place], test, *operands[place:]])
        return [
            p.Alloc(counter),
            p.Store(counter, [p.index(0)], p.Const("int32", start)),
            p.While(test, body),
        ]

    # -- filling and writing out --------------------------------------------------------------------------------------

    def first_contents(self, buffer, work):
        """Statements that fill a buffer of the block: from an input, a constant or element by element."""
        rng = self.rng
        sources = [b for b in self.buffers if b.kind in ("param", "global") and self.castable(b.dtype, buffer.dtype)]
        if sources and rng.random() < 0.6:
            source = rng.choice(sources)
            sizes = self.shapes[source]
            if len(sizes) == len(self.shapes[buffer]):
                spans = []
                for n, extent in zip(sizes, self.shapes[buffer]):
                    begin = rng.choice([0, *(p.Apply("*", "index", [v, p.index(extent)]) for v, _, _ in work)])
                    spans.append(p.Span(begin, extent))
                keywords = {"pad": self.constant(buffer.dtype)} if rng.random() < 0.4 else {}
                return [p.Op("copy", [p.Region(source, spans), p.Region(buffer)], keywords)]
        if rng.random() < 0.4:
            return [p.Op("fill", [p.Region(buffer)], {"value": self.constant(buffer.dtype)})]
        variables = [p.Var(self.fresh("i")) for _ in self.shapes[buffer]]
        known = len(self.indices)
        self.indices += [(v, 0, max(n - 1, 0)) for v, n in zip(variables, self.shapes[buffer])]
        value = self.stored(buffer.dtype, 2)
        del self.indices[known:]
        zero = [0] * len(variables)
        return [p.For("Parallel", variables, zero, list(self.shapes[buffer]),
                      [p.Store(buffer, list(variables), value)])]

    def write_out(self, block, output, starts):
        """The block's part of an output; `starts` is its begin in each dimension."""
        rng = self.rng
        sizes = self.shapes[block]
        if rng.random() < 0.5 and self.castable(block.dtype, output.dtype):
            spans = [p.Span(b, e) for b, e in zip(starts, sizes)]
            return [p.Op("copy", [p.Region(block), p.Region(output, spans)])]
        variables = [p.Var(self.fresh("i")) for _ in sizes]
        at = [v if p._is_zero(b) else p.Apply("+", "index", [b, v]) for b, v in zip(starts, variables)]
        guard = None
        for x, n in zip(at, output.shape):
            test = p.Apply("<", "index", [x, p.index(n)])
            guard = test if guard is None else p.Apply("and", "bool", [guard, test])
        known = len(self.indices)
        self.indices += [(v, 0, max(n - 1, 0)) for v, n in zip(variables, sizes)]
        self.own.append(p.Load(block, list(variables)))
        hidden, self.buffers = self.buffers, [b for b in self.buffers if b is not output]
        own = rng.random() < 0.6
        value = self.stored(output.dtype, 2) if own else self.fit(p.Load(block, list(variables)), output.dtype)
        more = self.updated(output, at) if self.aside.random() < 0.15 else []
        self.buffers = hidden
        self.own.pop()
        del self.indices[known:]
        body = [p.If(guard, [p.Store(output, at, value), *more], [])]
        return [p.For("Parallel", variables, [0] * len(sizes), list(sizes), body)]


class KernelGenerator(Generator):
    """Programs without a mesh: kernels over grids, global buffers between them, host loops and branches around them."""

    def program(self):
        rng = self.rng
        for _ in range(rng.randint(1, 3)):
            self.buffers.append(self.param(self.shape(), self.dtype()))
        if rng.random() < 0.35:
            self.buffers.append(self.row_param())
        for _ in range(rng.choice([0, 0, 1, 2])):
            self.scalar_param()
        if rng.random() < 0.2:
            self.wide_scalar()
        body = []
        outer = list(self.buffers)
        if rng.random() < 0.16:
            of_threads = self.lanes if self.aside.random() < 0.4 else self.warps
            body.append(self.streams() if rng.random() < 0.75 else of_threads())
            return self.finish(body)
        if rng.random() < 0.25:
            between = self.declare(self.fresh("G"), self.shape(), self.dtype(), "global")
            body.append(p.Alloc(between))
            body.append(self.kernel(between))
            self.buffers = [*outer, between]
        result = self.result()
        last = self.kernel(result)
        self.buffers = outer
        if rng.random() < 0.2:
            var = p.Var(self.fresh("h"))
            last = p.For("serial", [var], [0], [self.symbolic(rng.choice([0, 1, 2]))], [last])
        elif rng.random() < (0.3 if len(self.indices) > 1 else 0.1) and self.indices:
            last = p.If(self.index_condition(), [last], [])
        body.append(last)
        return self.finish(body)

    def finish(self, body):
        spell(body, self.rng)
        assumed = [self.assumption(p.Var(name), value) for name, value in self.dims.items() if self.rng.random() < 0.3]
        return p.Program(self.seed, self.params, body, self.dims, self.scalar_values, shared=self.shared,
                         assumed=assumed)

    def assumption(self, extent, value):
        """A condition that an extent of this value meets."""
        modulus = self.rng.choice([0, 1, 2, 3, 8])
        return p.Assumed(extent, modulus, value % modulus if modulus else value + self.rng.randint(0, 9))

    def streams(self):
        """A kernel that writes rows of several widths and types, each once, straight to tensors."""
        rng = self.rng
        rows = rng.choice([1, 2, 3, 4])
        height = rows * rng.randint(1, 4) - (rng.random() < 0.3)
        height = max(height, 1)
        self.kinds = [*self.kinds, "float32", "float32"]
        sources = [self.param([height, rng.choice([8, 33, 65, 129, 129])], self.dtype()) for _ in range(2)]
        self.buffers += sources
        outs = []
        for n in range(rng.choice([1, 2, 2, 3])):
            # One vector, or several whole ones; and rows whose vectors begin anywhere.
            width = rng.choice([8, 8, 16, 16, 32, 64] if n == 0 else [1, 3, 7, 15, 17, 33, 33, 65, 96, 129, 129])
            dtype = rng.choice([self.dtype(), self.dtype(), "float32", "int8", "float64"])
            outs.append(self.param([height, width], dtype, written=True, compact=rng.random() < 0.7))
        block, i = p.Var(self.fresh("b")), p.Var(self.fresh("i"))
        count = -(-height // rows)
        single = count == 1 and rng.random() < 0.5
        row = i if single else p.Apply("+", "index", [p.Apply("*", "index", [block, p.index(rows)]), i])
        known = len(self.indices)
        self.indices += [(block, 0, count - 1), (i, 0, rows - 1)]
        nests = []
        for out in outs:
            width, j = self.shapes[out][1], p.Var(self.fresh("j"))
            here = len(self.indices)
            self.indices.append((j, 0, width - 1))
            wide = [b for b in sources if self.shapes[b][1] >= width]
            # The row is inside, wherever the guard holds.
            self.own += [p.Load(b, [row, j]) for b in wide]
            plain = [x for x in self.own if x.buffer.dtype == out.dtype]
            value = rng.choice(plain) if plain and rng.random() < 0.6 else self.stored(out.dtype, rng.choice([1, 2]))
            store = p.Store(out, [row, j], value)
            del self.own[len(self.own) - len(wide):]
            body = [store]
            if rng.random() < 0.2:
                body = [p.If(self.condition(1), body, [])]
            del self.indices[here:]
            nests.append(p.For(rng.choice(["Parallel", "Parallel", "vectorized", "serial"]), [j], [0],
                               [out.shape[1]], body))
        del self.indices[known:]
        rng.shuffle(nests)
        if rows * count != height or rng.random() < 0.15:
            nests = [p.If(p.Apply("<", "index", [row, p.index(outs[0].shape[0])]), nests, [])]
        extent = 1 if single else self.grid_extent(outs[0].shape[0], count, rows)
        return p.Kernel([block], [extent], [p.For("Parallel", [i], [0], [rows], nests)],
                        rng.choice([None, 32, 64, 128]))

    def result(self):
        """The parameter that is written. It may lie in one memory with others that are read, apart or over them."""
        rng = self.rng
        shape = self.shape(rng.choice([1, 2, 2, 3]))
        compact = [b for b in self.buffers if b.kind == "param" and not b.strides]
        compact = [b for b in compact if not (b.begin or b.rows or b.sorted)]
        if not compact or rng.random() < 0.75:
            return self.param(shape, self.dtype(), written=True)
        first = rng.choice(compact)
        group = [b for b in compact if b is first or b.dtype == first.dtype and rng.random() < 0.5]
        if rng.random() < 0.4:
            shape = list(self.shapes[first])
        result = self.param(shape, first.dtype, compact=True)
        group.insert(rng.randint(0, len(group)), result)
        reach = max(math.prod(self.shapes[b]) for b in group)
        begins = [rng.choice([0, 0, rng.randint(0, 3), rng.randint(0, 2 * reach)]) for _ in group]
        self.shared.append(p.Shared(group, begins))
        return result

    def kernel(self, output):
        """A kernel whose blocks, or work items, each write a part of the output."""
        rng = self.rng
        sizes = self.shapes[output]
        cuts = 0.3 if any(output in group.buffers for group in self.shared) else 0.7  # blocks that overlap would race
        blocks = [rng.randint(1, max(n, 1)) if rng.random() < cuts else max(n, 1) for n in sizes]
        counts = [-(-n // b) for n, b in zip(sizes, blocks)]
        cut = [d for d, c in enumerate(counts) if c != 1] or [0]
        variables = [p.Var(self.fresh("b")) for _ in cut]
        extents = [self.grid_extent(output.shape[d], counts[d], blocks[d]) for d in cut]
        known = len(self.indices)
        work = [(v, 0, max(counts[d] - 1, 0)) for v, d in zip(variables, cut)]
        self.indices += work
        starts = [0] * len(sizes)
        for v, d in zip(variables, cut):
            starts[d] = p.Apply("*", "index", [v, p.index(blocks[d])])
        outside, values = list(self.buffers), len(self.values)
        self.threads = rng.choice([None, None, 32, 32, 32, 64, 64, 96, 128, 256])
        allocs, body = [], []
        own = self.declare(self.fresh("B"), blocks, rng.choice([output.dtype, self.dtype()]),
                           rng.choice(["shared", "fragment"]))
        for buffer in [own, *(self.block_buffer() for _ in range(rng.randint(1, 3)))]:
            allocs.append(p.Alloc(buffer))
            body += self.first_contents(buffer, work)
            self.buffers.append(buffer)
        if output.kind == "param" and rng.random() < 0.3 and self.castable(output.dtype, own.dtype):
            spans = [p.Span(b, e) for b, e in zip(starts, blocks)]
            body.append(p.Op("copy", [p.Region(output, spans), p.Region(own)]))
        body += self.statements(rng.choice([1, 2, 2, 3, 4]))
        body += self.write_out(own, output, starts)
        if rng.random() < 0.12:
            body += self.picked_out(variables, counts, cut)
        if self.aside.random() < 0.2:
            body += self.rows_by_tma(variables, counts, cut)
        self.buffers = outside
        del self.indices[known:], self.values[values:]
        if rng.random() < 0.15:
            inner = p.For("Persistent", variables, [0] * len(cut), extents, body)
            grid = [rng.randint(1, 3) for _ in range(rng.randint(1, 2))]
            if self.aside.random() < 0.4 and not any(getattr(each, "op", "") == "<<" for _, each in tree.places(inner)):
                grid[-1] = p.MULTIPROCESSORS  # by which a shift may leave an index, for all that a call knows
            return p.Kernel([p.Var(self.fresh("b")) for _ in grid], grid, [*allocs, inner], self.threads, *self.roles())
        return p.Kernel(variables, extents, [*allocs, *body], self.threads, *self.roles())

    def roles(self):
        """What the launch says of threads that fill rings, if there will be rings, and of registers."""
        rng = self.aside
        if rng.random() < 0.8:
            return None, None
        producers = rng.choice([32, 64, 128])
        budgets = {128: [(224, 56), (200, 24), (0, 40)], 256: [(232, 40), (224, 56)]}.get(self.threads or 128)
        return producers, rng.choice(budgets) if producers == 128 and budgets and rng.random() < 0.5 else None

    def picked_out(self, variables, counts, cut):
        """A tensor of which each block writes its part by picking."""
        parts = self.shape(self.rng.choice([1, 1, 2]))
        out = self.param([*(max(counts[d], 1) for d in cut), *parts], self.dtype(), written=True)
        return self.pick_into(out, [*((v, 1) for v in variables), *((0, n) for n in parts)])

    def grid_extent(self, written, count, block):
        if isinstance(written, p.Var):
            return p.Apply("ceildiv", "index", [written, p.index(block)])
        known = [v for v, lo, hi in self.indices if lo == hi == count]
        return self.rng.choice(known) if known and self.rng.random() < 0.3 else count


def spell(body, rng):
    """Writes some operators as Python does."""
    for _, node in tree.places(body):
        if isinstance(node, p.Cast):
            node.plain = node.dtype != "bool" and rng.random() < 0.3
        elif isinstance(node, p.Apply) and node.op in ("if_then_else", "min", "max", "abs", "pow"):
            node.plain = rng.random() < 0.3


def generate(seed):
    """The program of a seed; about one in four is for a mesh."""
    from generate_mesh import MeshGenerator

    program = (MeshGenerator if seed % 4 == 3 and MeshGenerator else KernelGenerator)(seed).program()
    mark_some(program, random.Random(f"marks {seed}"))
    assert_some(program, random.Random(f"reports {seed}"))
    return program


# Loops of which any program keeps what they say; lanes may not run in step, and copies may be too many.
MARKED = ("serial", "range", "Parallel", "Pipelined", "Persistent")


def mark_some(program, rng):
    """Marks some loops of every third program, so that passes leave them as they are."""
    if rng.randrange(3):
        return
    for _, loop in list(tree.places(program)):
        if not isinstance(loop, p.For):
            continue
        short = loop.kind == "unroll" and isinstance(loop.extents[0], int) and loop.extents[0] <= 3
        if loop.kind in MARKED or short:
            loop.scheduled = rng.random() < 0.3
