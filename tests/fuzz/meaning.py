"""What a program means: a literal evaluator of the tree, independent of every engine of the compiler.

It also judges whether the program is defined: an access out of bounds, a read of nothing, two iterations that meet in
an element, or a collective that cores reach differently raises `scalars.Undefined`.
"""

import copy
import itertools
import math
import random
from dataclasses import dataclass, field

import numpy as np

import program as p
import scalars
from evaluate import Evaluator
from memory import Iterations, Memory, Store
from scalars import Undefined
from wide import wide_indices

STEPS = 12_000  # statements and loads
UPDATE = {"add": "+", "mul": "*"}
ATOMIC = {"atomic_add": "+", "atomic_max": "max", "atomic_min": "min"}


class Refused(Undefined):
    """The call is refused, before anything is written, by the error of that code."""


@dataclass
class Core:
    """An executor with its names and its buffers; without a mesh there is one."""

    at: tuple = ()
    vars: dict = field(default_factory=dict)
    memory: dict = field(default_factory=dict)
    tile: tuple | None = None  # (tile of the loop, element inside the tile)
    own: list = field(default_factory=list)  # buffers of the running kernel
    copies: bool = False  # an asynchronous copy has begun, and the next statement has to be the wait


def tensor_data(seed, name, shape, dtype, rows=False, in_order=False):
    """The contents of a tensor argument: tame, and exact in every float type. With `rows` each row is a permutation."""
    rng = random.Random(f"{seed}/{name}")
    count = math.prod(shape)
    if in_order:
        return sorted(rng.randint(0 if dtype == "uint8" else -2, 20) for _ in range(count))
    if rows:
        out = []
        for _ in range(count // shape[-1] if count else 0):
            row = list(range(shape[-1]))
            rng.shuffle(row)
            out += [(float(x), 0.0) for x in row] if scalars.is_float(dtype) else row
        return out
    if dtype == "bool":
        return [rng.random() < 0.5 for _ in range(count)]
    if scalars.is_float(dtype):
        reach, unit = (8, 2) if dtype == "float8_e5m2" else (16, 4)
        return [(rng.randint(-reach, reach) / unit, 0.0) for _ in range(count)]
    low, high = scalars.int_range(dtype)
    near = [rng.randint(max(low, -9), 9) for _ in range(count)]
    far = [low, high, None, between_floats(rng, high)]
    return [_far(rng, far, low, high) if rng.random() < 0.2 else v for v in near]


def _far(rng, far, low, high):
    x = rng.choice(far)
    return rng.randint(low, high) if x is None else x


def between_floats(rng, high):
    """An integer at or beside the middle of two floats of some precision: rounding it twice goes wrong."""
    precision = rng.choice([8, 8, 11, 24])
    bits = high.bit_length()
    if bits <= precision + 2:
        return rng.randint(0, high)
    middle = (1 << precision | rng.getrandbits(precision - 1) << 1 | 1) << (bits - precision - 1)
    return min(high, (middle >> rng.randint(0, max(0, bits - precision - 3))) + rng.choice([-1, 0, 1, 1]))


def number(e, dims):
    """The value of a stride: arithmetic on numbers and dynamic extents."""
    if isinstance(e, int):
        return e
    if isinstance(e, p.Const):
        return e.value
    if isinstance(e, p.Var):
        return dims[e.name]
    a, b = (number(x, dims) for x in e.args)
    return a + b if e.op == "+" else a * b


def contents(program, buffer, shape):
    """What a tensor argument holds before the call; elements of one address hold one value."""
    strides = [number(s, program.dims) for s in buffer.strides] if buffer.strides else []
    if 0 not in strides:
        return tensor_data(program.seed, buffer.name, shape, buffer.dtype, buffer.rows, buffer.sorted)
    own = [1 if s == 0 else n for n, s in zip(shape, strides)]
    data = as_array(tensor_data(program.seed, buffer.name, own, buffer.dtype, buffer.rows), own)
    return list(np.broadcast_to(data, shape).reshape(-1))


class Machine:
    """Evaluates one program."""

    def __init__(self, program, watch=False):
        self.program = program
        self.watch = watch
        self.at = None  # the statement that runs
        self.steps = 0
        self.loops = []
        self.runs = []  # of a watched machine: the Iterations of every run of a loop, once it is over
        self.unwatched = set()  # loops that all cores run together, whose iterations are not told apart
        self.params = {}
        self.evaluator = Evaluator(self.load)
        self.stores = {}

    # -- the whole ----------------------------------------------------------------------------------------------------

    def run(self):
        """Name of a tensor parameter -> its Memory after the call."""
        self.enter_call()
        wide = {name for name, value in self.program.scalars.items() if value >= 2**63}
        if wide and wide & wide_indices(self.program, surely=True):
            raise Refused("HV0615")
        if wide and wide & wide_indices(self.program):
            raise Undefined("a number that is no index, in code that may be left out when the function is read")
        for _ in self.together(self.program.body, self.cores, host=True):
            raise Undefined("a collective outside all cores")
        return self.params

    def enter_call(self):
        """Name of a tensor parameter -> its Memory before the call."""
        program = self.program
        shape = tuple(program.mesh) if program.mesh else ()
        cores = [Core(at) for at in np.ndindex(*shape)]
        for core in cores:
            core.vars.update(program.dims)
            core.vars[p.MULTIPROCESSORS.name] = 4
            core.vars.update(program.scalars)
        self.share(cores[0])
        for q in program.params:
            if isinstance(q, p.Buffer):
                if q.name not in self.params:
                    extents = tuple(self.int(cores[0], e) for e in q.shape)
                    store = Store(contents(program, q, extents))
                    self.params[q.name] = Memory(q, extents, store)
            elif scalars.is_float(q.dtype):
                for core in cores:
                    core.vars[q.name] = (program.scalars[q.name], 0.0)
        for core in cores:
            for q in program.params:
                if isinstance(q, p.Buffer):
                    core.memory[q.name] = self.params[q.name]
        self.cores = cores
        return self.params

    def share(self, core):
        """Gives the parameters of each group their places in one piece of memory."""
        for group in self.program.shared:
            extents = [tuple(self.int(core, e) for e in q.shape) for q in group.buffers]
            if len({q.dtype for q in group.buffers}) != 1 or any(q.strides for q in group.buffers):
                raise Undefined("memory of two types")
            ends = [begin + math.prod(shape) for begin, shape in zip(group.begins, extents, strict=True)]
            name = "/".join(q.name for q in group.buffers)
            store = Store(tensor_data(self.program.seed, name, (max(ends),), group.buffers[0].dtype))
            for q, shape, begin in zip(group.buffers, extents, group.begins):
                self.params[q.name] = Memory(q, shape, store, begin)

    def tick(self):
        self.steps += 1
        if self.steps > STEPS:
            raise Undefined("too long")

    # -- expressions --------------------------------------------------------------------------------------------------

    def int(self, core, e):
        return e if type(e) is int else int(self.evaluator.of(e)(core))

    def extent(self, core, e):
        """Of a loop or a grid."""
        if (value := self.int(core, e)) < 0:
            raise Undefined("a negative extent")
        return value

    def value(self, core, e):
        return self.evaluator.of(e)(core)

    def load(self, e):
        """The function that reads what a Load denotes."""
        name, buffer = e.buffer.name, e.buffer
        indices = [self.evaluator.of(i) for i in e.indices]

        def read(core):
            self.tick()
            memory = core.memory.get(name)
            if memory is None:
                raise Undefined("a buffer out of scope")
            if core.tile is not None:
                at = self.in_tile(core, buffer, [f(core) for f in indices])
                return self.read(memory, self.place(memory, at))
            offset = 0
            for f, n in zip(indices, memory.shape):
                i = f(core)
                if not 0 <= i < n:
                    raise Undefined("an access out of bounds")
                offset = offset * n + i
            return self.read(memory, offset)

        return read

    # -- memory -------------------------------------------------------------------------------------------------------

    def place(self, memory, at):
        offset = 0
        for i, n in zip(at, memory.shape, strict=True):
            if not 0 <= i < n:
                raise Undefined("an access out of bounds")
            offset = offset * n + i
        return offset

    def read(self, memory, offset):
        if self.watch:
            self.touch(memory)
            self.find(memory, memory.store.key + memory.begin + offset)
        offset += memory.begin
        x = memory.values[offset]
        if x is None:
            raise Undefined("a read of nothing")
        if self.loops:
            place = memory.store.key + offset
            for loop in self.loops:
                loop.note_read(place, memory.private)
        return x

    def write(self, memory, offset, x):
        if self.watch:
            self.touch(memory)
        offset += memory.begin
        place = memory.store.key + offset
        for loop in self.loops:
            loop.note_write(place, memory, offset)
        memory.values[offset] = x

    def update(self, memory, offset, name, x, fetches=False):
        """The element becomes what stands there, combined with x, by the atomic operation `name`. What stood there,
        which is looked at if the update fetches it."""
        if self.watch:
            self.touch(memory)
        offset += memory.begin
        for loop in self.loops:
            loop.note_update(memory.store.key + offset, name, fetches)
        old = memory.values[offset]
        if old is None:
            raise Undefined("a read of nothing")
        evaluated = scalars.evaluation_dtype(memory.dtype)
        operands = [scalars.convert(old, memory.dtype, evaluated), x]
        combined = scalars.apply(ATOMIC[name], operands, evaluated)
        memory.values[offset] = scalars.convert(combined, evaluated, memory.dtype)
        return old

    def in_tile(self, core, buffer, at):
        """The element that a tile subscript denotes at the place inside the tile that is being computed."""
        _, inside = core.tile
        return [i * t + (inside[d] if t > 1 else 0) for d, (i, t) in enumerate(zip(at, buffer.tile, strict=True))]

    def region(self, core, r):
        """(memory, begins, extents, which dimensions stay) of a region."""
        memory = core.memory.get(r.buffer.name)
        if memory is None:
            raise Undefined("a buffer out of scope")
        if r.spans is None:
            return memory, [0] * len(memory.shape), list(memory.shape), [True] * len(memory.shape)
        begins = [self.int(core, s.begin) for s in r.spans]
        extents = [1 if s.point else self.int(core, s.extent) for s in r.spans]
        if any(b < 0 for b in begins) or any(e < 0 for e in extents):
            raise Undefined("a region out of bounds")
        return memory, begins, extents, [not s.point for s in r.spans]

    def inside(self, core, r):
        """The same for a region that must lie inside; elements as offsets, and the shape without points."""
        memory, begins, extents, kept = self.region(core, r)
        if any(b + e > n for b, e, n in zip(begins, extents, memory.shape)):
            raise Undefined("a region out of bounds")
        ranges = [range(b, b + e) for b, e in zip(begins, extents)]
        offsets = [self.place(memory, at) for at in itertools.product(*ranges)]
        return memory, offsets, [e for e, k in zip(extents, kept) if k]

    def gather(self, core, r, dtype):
        memory, offsets, shape = self.inside(core, r)
        return [scalars.convert(self.read(memory, o), memory.dtype, dtype) for o in offsets], shape

    def scatter(self, core, r, values, dtype):
        memory, offsets, _ = self.inside(core, r)
        for o, x in zip(offsets, values, strict=True):
            self.write(memory, o, scalars.convert(x, dtype, memory.dtype))

    # -- statements that one executor runs on its own -----------------------------------------------------------------

    def find(self, memory, place):
        """Of a watched machine: the iterations that find in private memory what they did not leave there."""
        for loop in self.loops if memory.private else ():
            if place not in loop.found:
                loop.go_on.setdefault(memory.name, set()).add(loop.now)

    def touch(self, memory):
        """Of a watched machine: the iterations in which the present statement touches a buffer."""
        for loop in self.loops:
            loop.reached.setdefault((self.at, memory.name), set()).add(loop.now)

    def come_to(self, s):
        self.at = s
        for loop in self.loops if self.watch else ():
            loop.reached.setdefault(s, set()).add(loop.now)

    def leave(self):
        run = self.loops.pop()
        run.close()
        if self.watch:
            self.runs.append(run)

    def all(self, core, stmts):
        for s in stmts:
            self.tick()
            self.come_to(s)
            if core.copies and not (isinstance(s, p.Op) and s.name == "wait_async"):
                raise Undefined("something stands between an asynchronous copy and its wait")
            self.STATEMENTS[type(s)](self, core, s)

    def _alloc(self, core, s):
        memory = Memory(s.buffer, tuple(self.int(core, e) for e in s.buffer.shape))
        core.memory[s.buffer.name] = memory
        if s.buffer.kind != "global":
            core.own.append(memory)

    def _bind(self, core, s):
        core.vars[s.var.name] = self.value(core, s.value)

    def stored(self, s):
        """The function of the value of a Store, converted to the element type unless it is an atomic operand."""
        known = self.stores.get(id(s))
        if known is None:
            target = s.buffer.dtype
            value = s.value
            if s.augmented in ATOMIC:
                f = self.evaluator.operand(value, scalars.evaluation_dtype(target))
            else:
                if s.augmented:
                    op, old = UPDATE.get(s.augmented, s.augmented), p.Load(s.buffer, s.indices)
                    wide = s.augmented in p.UPDATES and isinstance(value, p.Cast) and value.dtype != target
                    value = p.Apply(op, value.dtype, [p.Cast(value.dtype, old), value]) if wide \
                        else p.Apply(op, target, [old, value])
                f = self.evaluator.converted(value, target)
            known = self.stores[id(s)] = f, s, [self.evaluator.of(i) for i in s.indices]
        return known

    def _store(self, core, s):
        memory = core.memory.get(s.buffer.name)
        if memory is None:
            raise Undefined("a buffer out of scope")
        f, _, indices = self.stored(s)
        offset = self.place(memory, [i(core) for i in indices])
        if s.augmented in ATOMIC:
            found = self.update(memory, offset, s.augmented, f(core), s.previous is not None)
            if s.previous:
                core.vars[s.previous.name] = found
            return
        self.write(memory, offset, f(core))

    def iterations(self, core, s):
        begins = [self.int(core, b) for b in s.begins]
        extents = [self.extent(core, e) for e in s.extents]
        if s.step != 1:
            extents = [-(-e // s.step) for e in extents]
        for at in places_of(extents):
            yield [b + x * s.step for b, x in zip(begins, at)]

    def _for(self, core, s):
        if s.kind == "threads" and meets(s):
            return self.threads(core, s)
        record = Iterations(s) if s.kind in ("Parallel", "vectorized", "Persistent", "threads") else None
        dealt = s.kind == "Persistent" and not self.program.mesh
        if record:
            self.loops.append(record)
        for number, at in enumerate(self.iterations(core, s)):
            if dealt and number % core.blocks != core.block:
                continue
            if record:
                record.begin(number)
            if s.kind == "Persistent":
                self.forget(core)
            for var, x in zip(s.vars, at):
                core.vars[var.name] = x
            self.all(core, s.body)
        if record:
            self.leave()
        if s.kind == "Persistent":
            self.forget(core)

    # -- threads that meet --------------------------------------------------------------------------------------------

    def threads(self, core, s):
        """The threads of a block in turns, each up to where it meets the others."""
        (count,) = [self.extent(core, e) for e in s.extents]
        ways = []
        for number in range(count):
            own = copy.copy(core)
            own.vars, own.memory = {**core.vars, s.vars[0].name: number}, dict(core.memory)
            ways.append((own, self.way(own, s.body, {})))
        going = True
        while going:
            record = Iterations(s)
            self.loops.append(record)
            met = []
            for number, (_, way) in enumerate(ways):
                record.now, record.count = number, record.count + 1
                met.append(next(way, None))
            record.found = {}  # what a thread has for itself stays
            self.leave()
            if any(each[0] is not met[0][0] if each and met[0] else each is not met[0] for each in met):
                raise Undefined("threads meet at different places")
            going = met[0] is not None
            if going and isinstance(met[0][0], p.Shuffle):
                for number, (own, _) in enumerate(ways):
                    given = met[source_of(met[0][0].name, number, met[number][2])][1]
                    own.vars[met[0][0].var.name] = given

    def way(self, core, stmts, names):
        """Runs the code of a thread; gives (statement, value, lane or offset) where it meets others. What it names of
        small floats is rounded there.
        """
        for s in stmts:
            if not (isinstance(s, (p.Sync, p.Shuffle)) or meets(s)):
                self.all(core, [s])
                if isinstance(s, p.Bind):
                    names[s.var.name] = s.var.dtype
                continue
            self.tick()
            self.come_to(s)
            if isinstance(s, p.For):
                for at in self.iterations(core, s):
                    for var, x in zip(s.vars, at):
                        core.vars[var.name] = x
                    yield from self.way(core, s.body, names)
            elif isinstance(s, p.If):
                yield from self.way(core, s.then if self.value(core, s.condition) else s.otherwise, names)
            else:
                given = by = None
                if isinstance(s, p.Shuffle):
                    given = self.evaluator.converted(s.value, s.var.dtype)(core)
                    by = self.int(core, s.by)
                for name, dtype in names.items():
                    if dtype in scalars.SMALL:
                        core.vars[name] = scalars.convert(core.vars[name], dtype, dtype)
                yield s, given, by

    def forget(self, core):
        for memory in core.own:
            memory.forget()

    def _tiles(self, core, s):
        memory = core.memory.get(s.buffer.name)
        if memory is None:
            raise Undefined("a buffer out of scope")
        counts = [-(-n // t) for n, t in zip(memory.shape, s.buffer.tile)]
        record = Iterations(s) if s.parallel else None
        if record:
            self.loops.append(record)
        for number, at in enumerate(itertools.product(*map(range, counts))):
            if record:
                record.begin(number)
            for var, x in zip(s.vars, at):
                core.vars[var.name] = x
            self.tile_body(core, s.body, s.buffer.tile)
        if record:
            self.leave()

    def tile_body(self, core, stmts, tile):
        """Each statement reads all elements of its tiles before it stores."""
        for s in stmts:
            self.tick()
            self.come_to(s)
            if isinstance(s, p.If):
                self.tile_body(core, s.then if self.value(core, s.condition) else s.otherwise, tile)
                continue
            memory = core.memory.get(s.buffer.name)
            if memory is None:
                raise Undefined("a buffer out of scope")
            results = []
            for inside in itertools.product(*map(range, tile)):
                core.tile = (tile, inside)
                at = self.in_tile(core, s.buffer, [self.int(core, i) for i in s.indices])
                if all(i < n for i, n in zip(at, memory.shape)):
                    results.append((self.place(memory, at), self.stored(s)[0](core)))
                core.tile = None
            for offset, x in results:
                self.write(memory, offset, x)

    def _assert(self, core, s):
        if not self.value(core, s.condition):
            raise Undefined("an assertion fails")

    def _print(self, core, s):
        self.value(core, s.value)

    def _breakpoint(self, core, s):
        """Nothing stops."""

    def _if(self, core, s):
        self.all(core, s.then if self.value(core, s.condition) else s.otherwise)

    def _while(self, core, s):
        while self.value(core, s.condition):
            self.all(core, s.body)
            self.at = s

    # -- tile operations ----------------------------------------------------------------------------------------------

    def _op(self, core, s):
        name = "reduce" if s.name.startswith("reduce_") else "atomic" if s.name in ATOMIC else s.name
        getattr(self, f"op_{name}")(core, s, s.keywords)

    def op_copy(self, core, s, keywords):
        source, target = s.regions
        pad = keywords.get("pad")
        self.transfer(core, self.region(core, source), self.region(core, target), pad)

    def op_copy_async(self, core, s, keywords):
        self.op_copy(core, s, keywords)
        core.copies = True

    def op_wait_async(self, core, s, keywords):
        core.copies = False

    def transfer(self, core, source, target, pad, limits=(None, None)):
        """Elements between two boxes; past the end of global memory reads give `pad` and writes are dropped."""
        values, shapes = [], []
        memory, begins, extents, kept = source
        to = target[0]
        if memory is to:
            raise Undefined("a copy within a buffer")
        filler = (0.0, 0.0) if scalars.is_float(to.dtype) else 0
        if pad is not None:
            filler = scalars.convert(self.value(core, pad), p.dtype_of(pad), to.dtype)
        elif to.dtype == "bool":
            filler = False
        for at in itertools.product(*map(range, extents)):
            offset = self.reach(memory, [b + x for b, x in zip(begins, at)], limits[0])
            if offset is None:
                values.append(filler)
            else:
                values.append(scalars.convert(self.read(memory, offset), memory.dtype, to.dtype))
        shapes.append([e for e in extents if e != 1])
        _, begins, extents, kept = target
        shapes.append([e for e in extents if e != 1])
        if shapes[0] != shapes[1]:
            raise Undefined("a copy between unequal shapes")
        for at, x in zip(itertools.product(*map(range, extents)), values, strict=True):
            offset = self.reach(to, [b + x for b, x in zip(begins, at)], limits[1])
            if offset is not None:
                self.write(to, offset, x)

    def reach(self, memory, at, limit):
        """The offset of an element, None past the end of global memory or of a core's block."""
        if limit and any(i >= n for i, n in zip(at, limit)):
            return None
        if memory.buffer.kind in ("param", "global") and any(i >= n for i, n in zip(at, memory.shape)):
            return None
        return self.place(memory, at)

    def op_fill(self, core, s, keywords):
        value = keywords["value"]
        memory, offsets, _ = self.inside(core, s.regions[0])
        x = scalars.convert(self.value(core, value), p.dtype_of(value), memory.dtype)
        for o in offsets:
            self.write(memory, o, x)

    def op_clear(self, core, s, keywords):
        memory, offsets, _ = self.inside(core, s.regions[0])
        zero = (0.0, 0.0) if scalars.is_float(memory.dtype) else False if memory.dtype == "bool" else 0
        for o in offsets:
            self.write(memory, o, zero)

    def op_gemm(self, core, s, keywords):
        a, b, c = s.regions
        if c.buffer in (a.buffer, b.buffer):
            raise Undefined("a product into its operand")
        dtype = c.buffer.dtype
        evaluated = scalars.evaluation_dtype(dtype)
        left, (rows, columns) = self.gather(core, a, evaluated)
        right, (height, width) = self.gather(core, b, evaluated)
        left, right = np.array(range(len(left))).reshape(rows, columns), left + right
        if keywords.get("transpose_A"):
            left = left.T
        places = np.array(range(height * width)).reshape(height, width) + rows * columns
        if keywords.get("transpose_B"):
            places = places.T
        if left.shape[1] != places.shape[0]:
            raise Undefined("a product of unequal shapes")
        shape = [left.shape[0], places.shape[1]]
        if self.inside(core, c)[2] != shape:
            raise Undefined("a product of unequal shapes")
        if keywords.get("clear"):
            old = [scalars.identity("sum", dtype)] * math.prod(shape)
        else:
            old, _ = self.gather(core, c, evaluated)
        out = []
        for i, j in np.ndindex(*shape):
            terms = [
                scalars.apply("*", [right[left[i, k]], right[places[k, j]]], evaluated) for k in range(left.shape[1])
            ]
            out.append(scalars.fold("sum", old[i * shape[1] + j], terms, dtype))
        if keywords.get("dispatch") and all(isinstance(each, tuple) for each in out):
            # Tensor cores cut off where other additions of floats round.
            out = [(value, 2 * error) for value, error in out]
        self.scatter(core, c, out, evaluated)

    def op_reduce(self, core, s, keywords):
        kind = s.name.removeprefix("reduce_")
        source, target = s.regions
        if source.buffer is target.buffer:
            raise Undefined("a reduction within a buffer")
        dtype = target.buffer.dtype
        evaluated = scalars.evaluation_dtype(dtype)
        values, shape = self.gather(core, source, evaluated)
        dim = keywords.get("dim", -1) % len(shape)
        kept = shape[:dim] + shape[dim + 1 :]
        outer = shape[:dim] + [1] + shape[dim + 1 :]
        _, _, given = self.inside(core, target)
        if given not in (kept, outer):
            raise Undefined("a reduction to another shape")
        if keywords.get("clear", True):
            start = [scalars.identity(kind, dtype)] * math.prod(kept)
        else:
            start, _ = self.gather(core, target, evaluated)
        places = np.moveaxis(np.arange(math.prod(shape)).reshape(shape), dim, -1).reshape(math.prod(kept), shape[dim])
        out = [scalars.fold(kind, start[n], [values[i] for i in row], dtype) for n, row in enumerate(places)]
        self.scatter(core, target, out, evaluated)

    def op_cumsum(self, core, s, keywords):
        source, target = s.regions
        dtype = target.buffer.dtype
        evaluated = scalars.evaluation_dtype(dtype)
        values, shape = self.gather(core, source, evaluated)
        if self.inside(core, target)[2] != shape:
            raise Undefined("a scan to another shape")
        dim = keywords.get("dim", -1) % len(shape)
        places = np.moveaxis(np.arange(math.prod(shape)).reshape(shape), dim, -1).reshape(-1, shape[dim])
        out = [None] * len(values)
        for line in places:
            line = line[::-1] if keywords.get("reverse") else line
            for n, place in enumerate(line, 1):
                out[place] = scalars.fold("sum", scalars.identity("sum", dtype), [values[i] for i in line[:n]], dtype)
        self.scatter(core, target, out, evaluated)

    def op_atomic(self, core, s, keywords):
        memory, offsets, shape = self.inside(core, s.regions[0])
        if "value" in keywords:
            values = [self.value(core, keywords["value"])] * len(offsets)
        else:
            values, given = self.gather(core, s.regions[1], memory.dtype)
            if [e for e in given if e != 1] != [e for e in shape if e != 1]:
                raise Undefined("an update by another shape")
        for offset, x in zip(offsets, values, strict=True):
            self.update(memory, offset, s.name, x)

    def op_mesh_tensor_copy(self, core, s, keywords):
        source, target = s.regions
        placed = {q.buffer: q for q in self.program.placements}
        reads = source.buffer in placed
        placement = placed[source.buffer if reads else target.buffer]
        memory = core.memory[placement.buffer.name]
        begins, limits = [], []
        for d, (n, tile) in enumerate(zip(memory.shape, placement.tiling)):
            cores, mine = 1, 0
            for axis, dim in sorted(placement.sharding.items()):
                if dim == d:
                    extent = self.program.mesh["xy".index(axis)]
                    cores, mine = cores * extent, mine * extent + core.at["xy".index(axis)]
            block = -(-n // cores)
            coordinate = self.int(core, keywords["coord"][d])
            if coordinate < 0:
                raise Undefined("a tile before the block")
            begins.append(mine * block + coordinate * tile)
            limits.append(min((mine + 1) * block, n))
        box = (memory, begins, list(placement.tiling), [True] * len(begins))
        if reads:
            self.transfer(core, box, self.region(core, target), keywords.get("pad"), (limits, None))
        else:
            self.transfer(core, self.region(core, source), box, None, (None, limits))

    # -- the host body, and kernels whose cores meet ------------------------------------------------------------------

    def together(self, stmts, cores, host=False):
        """Runs statements on all cores. Yields never; a generator only so that nesting reads alike everywhere."""
        for s in stmts:
            self.tick()
            if isinstance(s, p.Kernel):
                self.launch(s, cores)
            elif isinstance(s, p.Op) and s.name.startswith("comm."):
                self.collective(s, cores)
            elif not (host or holds_collective(s)):
                for core in cores:
                    self.turn_to(core)
                    self.all(core, [s])
            elif isinstance(s, p.For):
                self.unwatched.add(s)
                rounds = [list(self.iterations(self.turn_to(core), s)) for core in cores]
                for turns, group in self.parts(cores, rounds, s):
                    yield from self.turns(s, turns, group, host)
            elif isinstance(s, p.If):
                conditions = [bool(self.value(self.turn_to(core), s.condition)) for core in cores]
                for condition, group in self.parts(cores, conditions, s):
                    yield from self.together(s.then if condition else s.otherwise, group, host)
            elif isinstance(s, p.While):
                going = cores
                while going:
                    self.tick()
                    conditions = [bool(self.value(self.turn_to(core), s.condition)) for core in going]
                    going = dict(self.parts(going, conditions, s)).get(True, [])
                    yield from self.together(s.body, going, host)
            else:
                self.all_of(cores, s)

    def turn_to(self, core):
        """What happens now is of that core."""
        for loop in self.loops:
            loop.now = self.cores.index(core)
        return core

    def turns(self, s, turns, cores, host):
        for at in turns:
            for core in cores:
                if s.kind == "Persistent":
                    self.forget(core)
                for var, x in zip(s.vars, at):
                    core.vars[var.name] = x
            yield from self.together(s.body, cores, host)
        if s.kind == "Persistent":
            for core in cores:
                self.forget(core)

    def parts(self, cores, answers, s):
        """(answer, the cores that give it); a group that meets in a collective of `s` gives one answer."""
        for axis in axes_below(s):
            given = {}
            for core, answer in zip(cores, answers):
                if given.setdefault(group_of(core, axis), answer) != answer:
                    raise Undefined("cores of a group disagree on control flow around their collective")
        out = []
        for core, answer in zip(cores, answers):
            known = next((group for other, group in out if other == answer), None)
            if known is None:
                out.append((answer, known := []))
            known.append(core)
        return out

    def all_of(self, cores, s):
        for core in cores:
            self.all(core, [s])

    def launch(self, s, cores):
        grids = {tuple(self.extent(core, e) for e in s.extents) for core in cores}
        if len(grids) != 1:
            raise Undefined("cores disagree on a grid")
        (grid,) = grids
        record = Iterations(s)
        self.loops.append(record)
        if self.program.mesh:
            if list(grid) != list(self.program.mesh):
                raise Undefined("a grid that is not the mesh")
            for core in cores:
                self.enter(core, s, core.at)
            for _ in self.together(s.body, cores):
                pass
            self.end_copies(cores)
        else:
            (core,) = cores
            core.blocks = count_of(grid)
            for number, at in enumerate(places_of(grid)):
                core.block = number
                record.begin(number)
                self.enter(core, s, at)
                self.all(core, s.body)
                self.end_copies(cores)
        self.leave()

    def end_copies(self, cores):
        if any(core.copies for core in cores):
            raise Undefined("an asynchronous copy is unfinished where its kernel ends")

    def enter(self, core, s, at):
        core.own = []
        for var, x in zip(s.vars, at):
            core.vars[var.name] = x

    def collective(self, s, cores):
        axis = s.keywords.get("axis", "all")
        if s.name == "comm.barrier" or not cores:
            return
        if s.name == "comm.put":
            source = self.core_at(s.keywords["src_core"])
            target = self.core_at(s.keywords["dst_core"])
            values, _ = self.gather(self.turn_to(source), s.regions[0], s.regions[0].buffer.dtype)
            self.deliver(target, s, values)
            return
        groups = {}
        for core in cores:
            groups.setdefault(group_of(core, axis), []).append(core)
        for group in groups.values():
            self.exchange(s, group)

    def core_at(self, coordinates):
        at = tuple(self.int(self.cores[0], e) for e in coordinates)
        for core in self.cores:
            if core.at == at:
                return core
        raise Undefined("no such core")

    def deliver(self, core, s, values):
        self.turn_to(core)
        memory, offsets, _ = self.inside(core, s.regions[1])
        for o, x in zip(offsets, values, strict=True):
            self.write(memory, o, scalars.convert(x, memory.dtype, memory.dtype))

    def exchange(self, s, group):
        dtype = s.regions[0].buffer.dtype
        gathered = []
        for core in group:
            self.turn_to(core)
            gathered.append(self.gather(core, s.regions[0], dtype))
        arrays = [as_array(values, shape) for values, shape in gathered]
        k = len(group)
        name = s.name.removeprefix("comm.")
        dim = s.keywords.get("dim", 0 if name == "all_to_all" else -1)
        _, _, wanted = self.inside(group[0], s.regions[1])
        root = self.common(group, s.keywords.get("root", 0))
        if not 0 <= root < k:
            raise Undefined("no such root")
        if name == "broadcast":
            out = [arrays[root]] * k
        elif name == "permute":
            sources = self.sources(group, s.keywords)
            out = [arrays[source] if 0 <= source < k else None for source in sources]
        elif name in ("all_gather", "gather"):
            whole = np.concatenate(arrays, axis=dim) if len(wanted) == arrays[0].ndim else np.stack(arrays, axis=dim)
            out = [whole] * k
        elif name == "all_to_all":
            parts = [np.split(a, k, axis=dim) for a in arrays]
            out = [np.concatenate([parts[sender][me] for sender in range(k)], axis=dim) for me in range(k)]
        else:
            whole = arrays[root] if name == "scatter" else np.empty(arrays[0].shape, object)
            for at in np.ndindex(*whole.shape) if name != "scatter" else ():
                whole[at] = self.combine(s.keywords.get("op", "sum"), [a[at] for a in arrays], dtype)
            out = [whole] * k
            if name in ("reduce_scatter", "scatter"):
                own = len(wanted) + 1 == whole.ndim
                out = [np.take(whole, n, axis=dim) for n in range(k)] if own else np.split(whole, k, axis=dim)
        if name in ("gather", "reduce"):
            out = [a if n == root else None for n, a in enumerate(out)]
        for core, a in zip(group, out):
            if a is not None:
                self.deliver(core, s, list(a.reshape(-1)))

    def common(self, group, e):
        """An operand that all cores of a group have alike."""
        values = {self.int(self.turn_to(core), e) for core in group}
        if len(values) != 1:
            raise Undefined("cores of a group differ")
        return values.pop()

    def sources(self, group, keywords):
        """The source of each core of a group in a permutation."""
        k = len(group)
        if "source" not in keywords:
            shift = self.common(group, keywords.get("shift", 1))
            return [(n - shift) % k for n in range(k)]
        source, out = keywords["source"], []
        for n in range(k):
            for core in group:
                core.vars[source.var.name] = n
            out.append(self.common(group, source.value))
        return out

    def combine(self, kind, items, dtype):
        """In order of the core's index, in the evaluation dtype, rounded once."""
        x = items[0]
        for y in items[1:]:
            x = scalars.apply({"sum": "+", "prod": "*"}.get(kind, kind), [x, y], dtype)
        return x

    STATEMENTS = {
        p.Alloc: _alloc,
        p.Bind: _bind,
        p.Store: _store,
        p.Assert: _assert,
        p.Print: _print,
        p.Breakpoint: _breakpoint,
        p.For: _for,
        p.ForTiles: _tiles,
        p.If: _if,
        p.While: _while,
        p.Op: _op,
    }


def meets(s):
    """Do threads meet inside of the statement?"""
    match s:
        case p.Sync() | p.Shuffle():
            return True
        case p.For(body=body) | p.While(body=body):
            return any(map(meets, body))
        case p.If(then=then, otherwise=otherwise):
            return any(map(meets, then + otherwise))
    return False


def source_of(name, thread, by):
    """The thread whose value a shuffle gives to `thread`."""
    lane = thread % 32
    source = {"shfl_sync": by % 32, "shfl_xor": lane ^ by, "shfl_up": lane - by, "shfl_down": lane + by}[name]
    return thread - lane + (source if 0 <= source < 32 else lane)


def as_array(values, shape):
    """An array of objects, which may be pairs."""
    out = np.empty(len(values), object)
    for n, x in enumerate(values):
        out[n] = x
    return out.reshape(shape)


def group_of(core, axis):
    """What the cores of its group over `axis` have in common."""
    return tuple(x for name, x in zip(p.AXES, core.at) if axis != "all" and name not in axis)


def axes_below(s):
    """The axes of the collectives in a statement."""
    match s:
        case p.Op(name=name, keywords=keywords) if name.startswith("comm."):
            return {keywords.get("axis", "all")}
        case p.For(body=body) | p.While(body=body):
            return set().union(*map(axes_below, body))
        case p.If(then=then, otherwise=otherwise):
            return set().union(*map(axes_below, then + otherwise))
    return set()


def holds_collective(s):
    return bool(axes_below(s))


def two_iterations_meet(program, loop, one, other, buffer=None):
    """Did, in a run of `loop`, two of its iterations come to the two statements, one to each, and to what they touch of
    a buffer if one is named? True if it is not known.
    """
    machine = Machine(program, watch=True)
    machine.run()
    if loop in machine.unwatched:
        return True
    for run in machine.runs:
        keys = [(s, buffer) if buffer else s for s in (one, other)]
        first, second = (run.reached.get(key, set()) for key in keys)
        if run.loop is loop and first and second and len(first | second) > 1:
            return True
    return False


def count_of(extents):
    """How many iterations a loop or a launch has, if they are so few that they can run."""
    count = math.prod(extents)
    if count > STEPS:
        raise Undefined("too long")
    return count


def places_of(extents):
    """The coordinates of those iterations; there are none where one extent is 0, however large the others are."""
    return itertools.product(*map(range, extents)) if count_of(extents) else ()


def iterations_go_on(program, loop, buffer):
    """Did, in a run of `loop`, all of several iterations read private memory before they wrote there?"""
    machine = Machine(program, watch=True)
    machine.run()
    return any(run.loop is loop and 1 < run.count == len(run.go_on.get(buffer, ())) for run in machine.runs)


def meaning(program):
    """Name of a tensor parameter -> its Memory after the call. Raises Undefined."""
    return Machine(program).run()
