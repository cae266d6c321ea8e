"""Programs as the fuzzer holds them: a small tree of its own, and the text that the tree stands for.

The tree knows nothing of the compiler; `text` writes it in the language, `meaning` evaluates it. Nodes are plain and
mutable, so that the shrinker can cut them.
"""

from dataclasses import dataclass, field

INFIX = {"+", "-", "*", "/", "//", "%", "<", "<=", ">", ">=", "==", "!=", "and", "or", "&", "|", "^", "<<", ">>"}
COMPARISONS = {"<", "<=", ">", ">=", "==", "!="}
ATOMICS = ("atomic_add", "atomic_max", "atomic_min")
AXES = ("x", "y", "z")  # of a mesh
UPDATES = ("add", "mul", "max", "min")
ATOMIC_DTYPES = ("int32", "int64", "uint32", "uint64", "float16", "bfloat16", "float32", "float64")


@dataclass(eq=False)
class Buffer:
    """kind: param, global, shared, tiles, fragment or local. Extents are ints, or Var of kind index for dynamic ones.
    """

    name: str
    shape: list
    dtype: str
    kind: str
    tile: list | None = None
    strides: list | None = None  # of a parameter, in elements; expressions of dynamic extents
    begin: int = 0  # of a parameter: elements of its memory before the first, which need not be aligned
    rows: bool = False  # of a parameter: each row holds each of 0, 1, ... once, in some order
    sorted: bool = False  # of a parameter: elements do not decrease
    layout: str | None = None  # where elements of shared memory or a fragment stand


@dataclass(eq=False)
class Const:
    dtype: str
    value: object
    weak: bool = False  # written bare; takes its type from its neighbour


@dataclass(eq=False)
class Var:
    name: str
    dtype: str = "index"


# How many blocks the machine runs side by side: 4 where programs are judged, so that nothing may depend on it.
MULTIPROCESSORS = Var("T.multiprocessors()")


@dataclass(eq=False)
class Apply:
    """An operator of the language; dtype is that of the operands after widening, of the branches for if_then_else.
    `and` and `or` have two operands or more.
    """

    op: str
    dtype: str
    args: list
    plain: bool = False  # spelled as in Python: `a if c else b`, `min(a, b)`


@dataclass(eq=False)
class Cast:
    dtype: str
    arg: object
    plain: bool = False  # spelled T.float32(x)


@dataclass(eq=False)
class Load:
    buffer: Buffer
    indices: list


@dataclass(eq=False)
class Span:
    """One dimension of a region: `extent` elements from `begin`; a point drops its dimension."""

    begin: object
    extent: object
    point: bool = False


@dataclass(eq=False)
class Region:
    buffer: Buffer
    spans: list | None = None  # None: the whole buffer


@dataclass(eq=False)
class Lambda:
    """A function of one index, the value of a keyword."""

    var: Var
    value: object


@dataclass(eq=False)
class Alloc:
    buffer: Buffer


@dataclass(eq=False)
class Bind:
    var: Var
    value: object


@dataclass(eq=False)
class Store:
    buffer: Buffer
    indices: list
    value: object
    augmented: str | None = None  # written as `buffer[...] op= value`, or the atomic operation or update that combines
    previous: Var | None = None  # of an atomic operation: the name of what stood there before


@dataclass(eq=False)
class Assert:
    """T.assert_ of a condition."""

    condition: object


@dataclass(eq=False)
class Print:
    """T.print of a value."""

    value: object


@dataclass(eq=False)
class Breakpoint:
    """T.breakpoint, which nothing stops at."""


@dataclass(eq=False)
class Sync:
    """T.sync_threads, in code of a thread."""


@dataclass(eq=False)
class Shuffle:
    """What another lane of the warp gives: `name` below T, with the lane or the offset `by`."""

    var: Var
    name: str
    value: object
    by: object


@dataclass(eq=False)
class For:
    """kind: serial, range, unroll, vectorized, Parallel, Pipelined, Persistent or threads; `begins` and `extents` are
    index expressions. With a step a loop takes each step-th number below begin + extent.
    """

    kind: str
    vars: list
    begins: list
    extents: list
    body: list
    stages: int = 1
    step: int = 1
    scheduled: bool = False


@dataclass(eq=False)
class ForTiles:
    buffer: Buffer
    vars: list
    body: list  # Store, If and Bind; subscripts are tiles
    parallel: bool = False


@dataclass(eq=False)
class If:
    condition: object
    then: list
    otherwise: list


@dataclass(eq=False)
class While:
    condition: object
    body: list


@dataclass(eq=False)
class Op:
    """A tile operation or collective: `name` below T, regions in order, then keywords."""

    name: str
    regions: list
    keywords: dict = field(default_factory=dict)  # values: int, bool, str, an expression or a list of them, a Lambda


@dataclass(eq=False)
class Kernel:
    vars: list
    extents: list
    body: list
    threads: int | None = None
    producers: int | None = None  # threads of the role that fills rings
    registers: tuple | None = None  # of a thread of each role


@dataclass(eq=False)
class Placement:
    buffer: Buffer
    sharding: dict  # axis name -> dimension
    tiling: list


@dataclass(eq=False)
class Shared:
    """Parameters that T.may_alias names, and where each begins, in elements, in one piece of memory of the call."""

    buffers: list
    begins: list


@dataclass(eq=False)
class Assumed:
    """What T.assume says of an extent: `extent % modulus == rest`, or `extent <= rest` where `modulus` is 0."""

    extent: object  # Var, or Const where the shrinker made it one
    modulus: int
    rest: int

    def text(self):
        name = expr_text(self.extent)
        return f"{name} % {self.modulus} == {self.rest}" if self.modulus else f"{name} <= {self.rest}"

    def holds(self, dims):
        value = dims[self.extent.name] if isinstance(self.extent, Var) else self.extent.value
        return value % self.modulus == self.rest if self.modulus else value <= self.rest


@dataclass(eq=False)
class Program:
    """A function together with the scalars of one call; the contents of tensors follow from `seed` and their names.
    """

    seed: int
    params: list  # Buffer, or Var for scalars
    body: list
    dims: dict = field(default_factory=dict)  # dynamic extents: name -> value of the call
    scalars: dict = field(default_factory=dict)  # scalar parameters: name -> value of the call
    mesh: list | None = None
    placements: list = field(default_factory=list)
    chunk: int = 1
    shared: list = field(default_factory=list)  # Shared
    assumed: list = field(default_factory=list)  # Assumed


def index(value):
    """An index expression for an int, or the expression itself."""
    return Const("index", value) if isinstance(value, int) else value


def dtype_of(e):
    match e:
        case Apply(op=op, dtype=dtype):
            return "bool" if op in COMPARISONS or op in ("and", "or", "not") else dtype
        case Load(buffer=buffer):
            return buffer.dtype
        case Const(dtype=dtype) | Var(dtype=dtype) | Cast(dtype=dtype):
            return dtype


def expr_text(e):
    match e:
        case int():
            return str(e)
        case Const(dtype="index", value=value):
            return str(value) if value >= 0 else f"({value})"
        case Const(dtype=dtype, value=value, weak=weak):
            return (str(value) if not str(value).startswith("-") else f"({value})") if weak else f"T.{dtype}({value})"
        case Var(name=name):
            return name
        case Apply(plain=True) | Cast(plain=True):
            return _plain_text(e)
        case Apply(op="not", args=[a]):
            return f"(not {expr_text(a)})"
        case Apply(op=("-" | "~") as op, args=[a]):
            return f"({op}{expr_text(a)})"
        case Apply(op=op, args=[_, _, *_] as args) if op in INFIX:
            return f"({f' {op} '.join(map(expr_text, args))})"
        case Apply(op=op, args=args):
            return f"T.{op}({', '.join(map(expr_text, args))})"
        case Cast(dtype=dtype, arg=arg):
            return f'T.cast({expr_text(arg)}, "{dtype}")'
        case Load(buffer=buffer, indices=indices):
            return f"{buffer.name}[{_subscript(indices)}]"
    raise TypeError(f"no expression: {e!r}")


def _plain_text(e):
    """The spelling of Python itself, where there is one."""
    match e:
        case Cast(dtype=dtype, arg=arg):
            return f"T.{dtype}({expr_text(arg)})"
        case Apply(op="if_then_else", args=[c, a, b]):
            return f"({expr_text(a)} if {expr_text(c)} else {expr_text(b)})"
        case Apply(op="pow", args=[a, b]):
            return f"({expr_text(a)} ** {expr_text(b)})"
        case Apply(op=("min" | "max" | "abs") as op, args=args):
            return f"{op}({', '.join(map(expr_text, args))})"
    raise TypeError(f"nothing plain: {e!r}")


def _subscript(indices):
    return ", ".join(map(expr_text, indices)) if indices else "()"


def _span_text(s):
    if s.point:
        return expr_text(s.begin)
    if isinstance(s.begin, int) and isinstance(s.extent, int):
        return f"{s.begin}:{s.begin + s.extent}"
    return f"{expr_text(s.begin)}:{expr_text(s.begin)} + {expr_text(s.extent)}"


def region_text(r):
    if r.spans is None:
        return r.buffer.name
    return f"{r.buffer.name}[{', '.join(map(_span_text, r.spans))}]"


def _tuple(items):
    texts = [expr_text(x) for x in items]
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def _value_text(v):
    if isinstance(v, list):
        return f"[{', '.join(map(expr_text, v))}]"
    if isinstance(v, Lambda):
        return f"lambda {v.var.name}: {expr_text(v.value)}"
    return repr(v) if isinstance(v, (bool, str, int, tuple)) else expr_text(v)


def _bounds(begin, extent):
    begin_text, extent_text = expr_text(begin), expr_text(extent)
    if isinstance(begin, int) and isinstance(extent, int):
        return begin_text, str(begin + extent)
    return begin_text, f"{begin_text} + {extent_text}"


def _is_zero(e):
    return e == 0 or isinstance(e, Const) and e.value == 0


def _header(loop):
    names = ", ".join(v.name for v in loop.vars)
    pairs = [_bounds(b, e) for b, e in zip(loop.begins, loop.extents)]
    zero = [_is_zero(b) for b in loop.begins]
    mark = ", scheduled=True" if loop.scheduled else ""
    if loop.kind in ("Parallel", "Persistent"):
        items = ", ".join(expr_text(e) if z else f"({b}, {end})" for z, (b, end), e in zip(zero, pairs, loop.extents))
        return f"for {names} in T.{loop.kind}({items if loop.kind == 'Parallel' else f'[{items}]'}{mark}):"
    begin, end = pairs[0]
    arguments = expr_text(loop.extents[0]) if zero[0] else f"{begin}, {end}"
    if loop.kind == "Pipelined":
        arguments += f", num_stages={loop.stages}"
    if loop.step != 1:
        arguments = f"{begin}, {end}, {loop.step}"
    prefix = "" if loop.kind == "range" and not loop.scheduled else "T."
    return f"for {names} in {prefix}{loop.kind}({arguments}{mark}):"


def _lines(stmts, depth):
    """(line of text, the statement that begins there or None) of each line."""
    pad = "    " * depth
    if not stmts:
        yield f"{pad}pass", None
    for s in stmts:
        match s:
            case Alloc(buffer=b):
                name = {"tiles": "shared_tiles"}.get(b.kind, b.kind)
                tile = f", tile_size={_tuple(b.tile)}" if b.tile else ""
                tile += f', layout="{b.layout}"' if b.layout else ""
                yield f'{pad}{b.name} = T.alloc_{name}({_tuple(b.shape)}, "{b.dtype}"{tile})', s
            case Bind(var=var, value=value):
                yield f"{pad}{var.name} = {expr_text(value)}", s
            case Store(buffer=b, indices=indices, value=value, augmented=augmented) if augmented in ATOMICS:
                name, more = (f"{s.previous.name} = ", ", return_prev=True") if s.previous else ("", "")
                yield f"{pad}{name}T.{augmented}({b.name}[{_subscript(indices)}], {expr_text(value)}{more})", s
            case Store(buffer=b, indices=indices, value=value, augmented=op) if op in UPDATES:
                yield f'{pad}T.update({b.name}[{_subscript(indices)}], {expr_text(value)}, "{op}")', s
            case Store(buffer=b, indices=indices, value=value, augmented=augmented):
                yield f"{pad}{b.name}[{_subscript(indices)}] {augmented or ''}= {expr_text(value)}", s
            case Assert(condition=condition):
                yield f"{pad}T.assert_({expr_text(condition)})", s
            case Print(value=value):
                yield f'{pad}T.print("a line", {expr_text(value)})', s
            case Breakpoint():
                yield f"{pad}T.breakpoint()", s
            case Sync():
                yield f"{pad}T.sync_threads()", s
            case Shuffle(var=var, name=name, value=value, by=by):
                yield f"{pad}{var.name} = T.{name}({expr_text(value)}, {expr_text(by)})", s
            case For():
                yield pad + _header(s), s
                yield from _lines(s.body, depth + 1)
            case ForTiles(buffer=b, vars=variables, parallel=parallel):
                names = ", ".join(v.name for v in variables)
                yield f"{pad}for {names} in T.foreach_tiles({b.name}{', parallel=True' if parallel else ''}):", s
                yield from _lines(s.body, depth + 1)
            case If(condition=condition, then=then, otherwise=otherwise):
                yield f"{pad}if {expr_text(condition)}:", s
                yield from _lines(then, depth + 1)
                if otherwise:
                    yield f"{pad}else:", None
                    yield from _lines(otherwise, depth + 1)
            case While(condition=condition, body=body):
                yield f"{pad}while {expr_text(condition)}:", s
                yield from _lines(body, depth + 1)
            case Op(name=name, regions=regions, keywords=keywords):
                arguments = [*map(region_text, regions), *(f"{k}={_value_text(v)}" for k, v in keywords.items())]
                yield f"{pad}T.{name}({', '.join(arguments)})", s
            case Kernel(vars=variables, extents=extents, body=body):
                names = ", ".join(v.name for v in variables)
                names = f"({names})" if len(variables) > 1 else names
                launch = {name: getattr(s, name) for name in ("threads", "producers", "registers")}
                given = [f"{name}={value}" for name, value in launch.items() if value]
                yield f"{pad}with T.Kernel({', '.join([*map(expr_text, extents), *given])}) as {names}:", s
                yield from _lines(body, depth + 1)
            case _:
                raise TypeError(f"no statement: {s!r}")


def _param_text(p):
    if isinstance(p, Var):
        return f"{p.name}: T.{p.dtype}"
    strides = f", strides={_tuple(p.strides)}" if p.strides else ""
    order = ", sorted=True" if p.sorted else ""
    return f'{p.name}: T.Tensor({_tuple(p.shape)}, "{p.dtype}"{strides}{order})'


def _head(program):
    """The lines before the body."""
    lines = [f'{name} = T.dyn("{name}")' for name in program.dims]
    names = AXES[: max(len(program.mesh or ()), 2)]
    if program.mesh and not program.placements:
        lines.append(f"@T.prim_func(mesh=T.Mesh({tuple(program.mesh)}, {names}))")
    else:
        lines.append("@T.prim_func")
    lines.append(f"def main({', '.join(map(_param_text, program.params))}):")
    if program.placements:
        entries = [f'{p.buffer.name}: {{"sharding": {p.sharding}, "tiling": {p.tiling}}}' for p in program.placements]
        items = ", ".join(entries)
        lines.append(f"    T.annotate_mesh_tensor({{{items}}}, nrows={program.mesh[0]}, ncols={program.mesh[1]})")
    lines += [f"    T.may_alias({', '.join(b.name for b in group.buffers)})" for group in program.shared]
    lines += [f"    T.assume({each.text()})" for each in program.assumed]
    return lines


def text(program):
    """The program in the language."""
    return "\n".join([*_head(program), *(line for line, _ in _lines(program.body, 1))]) + "\n"


def statements(program):
    """Number of a line of the text -> the statement that begins there."""
    first = len(_head(program)) + 1
    return {n: s for n, (_, s) in enumerate(_lines(program.body, 1), first) if s is not None}
