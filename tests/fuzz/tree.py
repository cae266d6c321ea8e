"""Walking program trees: all places of a tree by path, and what constructs a program uses."""

import collections
import copy
import dataclasses
import math

import program as p
import scalars
from meaning import holds_collective


def places(node, path=()):
    """(path, value) of every field and list item below node; buffers are entered once a mention, not below."""
    if dataclasses.is_dataclass(node) and not (isinstance(node, p.Buffer) and path):
        items = [(f.name, getattr(node, f.name)) for f in dataclasses.fields(node)]
    elif isinstance(node, dict):
        items = list(node.items())
    elif isinstance(node, list):
        items = list(enumerate(node))
    else:
        return
    for key, value in items:
        yield (*path, key), value
        yield from places(value, (*path, key))


def step(node, key):
    return node[key] if isinstance(node, (list, dict)) else getattr(node, key)


def clone(node):
    """A copy of a part of a tree; buffers stay the same objects."""
    return copy.deepcopy(node, {id(b): b for b in buffers(node)})


def replaced(tree, path, value):
    """A copy of the tree with `value` at the path; in a list, the item is replaced by the items of a list."""
    out, value = copy.deepcopy((tree, value))
    node = out
    for key in path[:-1]:
        node = step(node, key)
    key = path[-1]
    if isinstance(node, list) and isinstance(value, list):
        node[key : key + 1] = value
    elif isinstance(node, (list, dict)):
        node[key] = value
    else:
        setattr(node, key, value)
    return out


def buffers(tree):
    """All buffers, each once."""
    found = {id(tree): tree} if isinstance(tree, p.Buffer) else {}
    for _, value in places(tree):
        if isinstance(value, p.Buffer):
            found[id(value)] = value
    return list(found.values())


def reads_memory(control):
    """Does memory decide what control flow does?"""
    heads = [control.extents, control.begins] if isinstance(control, p.For) else [[control.condition]]
    return any(isinstance(v, p.Load) for head in heads for _, v in places(head))


def _picks(loop):
    """Is there a store in the parallel loop whose subscripts leave out one of its variables?"""
    if loop.kind != "Parallel":
        return False
    names = {v.name for v in loop.vars}
    for _, s in places(loop.body):
        if isinstance(s, p.Store) and s.augmented not in p.ATOMICS and s.buffer.kind != "local":
            used = {v.name for i in s.indices for _, v in [((), i), *places(i)] if isinstance(v, p.Var)}
            if not names <= used:
                return True
    return False


def operands(e):
    """The operands of a condition, those of nested `and` and `or` too."""
    if isinstance(e, p.Apply) and e.op in ("and", "or", "not"):
        return [x for a in e.args for x in operands(a)]
    return [e]


def _long(condition):
    """What a condition of more than 16 operands is counted as."""
    conditions = operands(condition)
    if len(conditions) <= 16:
        return
    yield "long condition"
    if any(isinstance(v, p.Load) for c in conditions for _, v in [((), c), *places(c)]):
        yield "long condition with loads"
    nodes = [condition, *(v for _, v in places(condition))]
    yield "long condition flat" if any(isinstance(v, p.Apply) and len(v.args) > 16 for v in nodes) \
        else "long condition nested"


def shares_private(loop):
    """Is there a store to private memory, under a condition inside of the loop, at an element that some variable of
    the loop does not select, and a read of that memory?
    """
    names, made = {v.name for v in loop.vars}, {v.buffer for _, v in places(loop.body) if isinstance(v, p.Alloc)}
    read = {v.buffer for _, v in places(loop.body) if isinstance(v, p.Load)} - made
    for _, branch in places(loop.body):
        for _, s in places(branch) if isinstance(branch, p.If) else ():
            if isinstance(s, p.Store) and s.buffer.kind == "local" and s.buffer in read:
                used = {v.name for i in s.indices for _, v in [((), i), *places(i)] if isinstance(v, p.Var)}
                if not names <= used:
                    return True
    return False


def passes_private(loop):
    """May an iteration read private memory that another one stored to, if they had one memory? So where only some
    store, and where what is read is not the element that the variables of the loop select for the store.
    """
    made = {v.buffer for _, v in places(loop.body) if isinstance(v, p.Alloc)}
    accesses = [v for _, v in places(loop.body) if isinstance(v, (p.Load, p.Store)) and v.buffer.kind == "local"]
    for s in accesses:
        at = [p.expr_text(i) for i in s.indices]
        others = [v for v in accesses if v.buffer is s.buffer and [p.expr_text(i) for i in v.indices] != at]
        if isinstance(s, p.Store) and s.buffer not in made and others:
            return True
    return shares_private(loop)


def constructs(tree):
    """How often each construct of the language stands in the program."""
    count = collections.Counter()
    for _, node in places(tree):
        match node:
            case p.For(kind=kind, vars=variables, extents=extents):
                count[f"loop {kind}"] += 1
                count["loop step"] += node.step != 1
                count["scheduled loop"] += node.scheduled
                count["pick"] += _picks(node)
                if kind in ("Parallel", "vectorized") and shares_private(node):
                    count["private memory that some iterations write"] += 1
                    inside = [v for _, v in places(node.body) if isinstance(v, p.For) and shares_private(v)]
                    count["private memory in nested loops"] += any(v.kind in ("Parallel", "vectorized") for v in inside)
                if kind == "threads":
                    count["private memory of lanes"] += any(
                        v.kind == "vectorized" and shares_private(v) for _, v in places(node.body)
                        if isinstance(v, p.For))
                count[f"update in a loop {kind}"] += any(
                    isinstance(v, p.Store) and v.augmented in p.UPDATES for _, v in places(node.body))
                if kind in ("Parallel", "vectorized"):
                    count["scratch in a parallel loop"] += any(
                        isinstance(v, p.Store) and v.buffer.kind == "local" for _, v in places(node.body))
                count["allocation in a loop"] += any(isinstance(v, p.Alloc) for v in node.body)
                count["a loop that changes its extent"] += any(
                    isinstance(e, p.Cast) and isinstance(e.arg, p.Load) and any(
                        isinstance(v, p.Store) and v.buffer is e.arg.buffer for _, v in places(node.body))
                    for e in extents)
                for e in extents:
                    if e in (0, 1):
                        count[f"loop of extent {e}"] += 1
                    elif not isinstance(e, int):
                        count["loop of variable extent"] += 1
                if len(variables) > 1:
                    count["loop of several variables"] += 1
            case p.ForTiles(parallel=parallel):
                count[f"foreach_tiles{' parallel' if parallel else ''}"] += 1
            case p.If(otherwise=otherwise):
                count["if else" if otherwise else "if"] += 1
            case p.While():
                count["while"] += 1
            case p.Assert():
                count["assertion"] += 1
            case p.Print():
                count["print"] += 1
            case p.Breakpoint():
                count["breakpoint"] += 1
            case p.Sync():
                count["barrier of threads"] += 1
            case p.Shuffle(name=name):
                count[name] += 1
            case p.Kernel(extents=extents, threads=threads, producers=producers):
                count[f"kernel of {len(extents)} dimensions"] += 1
                count["threads"] += threads is not None
                count["producers"] += producers is not None
            case p.Op(name=name, keywords=keywords):
                count[name] += 1
                count["root that is no constant"] += not isinstance(keywords.get("root", 0), int)
                for k in keywords:
                    if k in ("pad", "clear", "transpose_A", "transpose_B", "axis", "dispatch", "source"):
                        count[f"{name.replace('reduce_max', 'reduce')} {k}"] += 1
            case p.Bind(var=var):
                count["bind index" if var.dtype == "index" else "bind"] += 1
            case p.Store(augmented=op, buffer=buffer) if op in p.UPDATES:
                count[f"update {op}"] += 1
                count[f"update of {buffer.kind}"] += 1
            case p.Store(augmented=augmented):
                atomic = augmented in p.ATOMICS
                count["atomic store" if atomic else "augmented store" if augmented else "store"] += 1
                count["name of what stood before an update"] += node.previous is not None
            case p.Region(spans=spans) if spans is not None:
                count["region"] += 1
            case p.Load(buffer=buffer, indices=indices):
                twice = [e for e in indices if sum(e is other for other in indices) > 1]
                count["a variable twice, for a dimension of one"] += any(
                    isinstance(e, p.Var) and n == 1 and any(e is other for other in twice)
                    for e, n in zip(indices, buffer.shape))
            case p.Cast(dtype=dtype):
                count[f"cast to {dtype}"] += 1
                count["spelled as Python"] += node.plain
            case p.Apply(op=op, dtype=dtype):
                kind = dtype if dtype in ("index", "bool") else "float" if scalars.is_float(dtype) else "int"
                count[f"{kind} {op}"] += 1
                count["spelled as Python"] += node.plain
                if op == "if_then_else" and any(isinstance(v, p.Load) for _, v in places(node.args[1])):
                    count["load behind a condition"] += 1
        if isinstance(node, (p.For, p.If, p.While)) and holds_collective(node) and reads_memory(node):
            count[f"{type(node).__name__} by memory"] += 1
    for b in buffers(tree):
        count[f"buffer {b.kind}"] += 1
        count[f"dtype {b.dtype}"] += 1
        count[f"rank {len(b.shape)}"] += 1
        if b.strides:
            count["strides"] += 1
            count["strides of dynamic extents"] += not all(isinstance(s, int) for s in b.strides)
            count["stride 0"] += 0 in b.strides
            count["negative stride"] += any(isinstance(s, int) and s < 0 for s in b.strides)
            count["strides not of rows"] += b.strides[-1] != 1
        count["unaligned base"] += b.begin != 0
        count["rows of distinct numbers"] += b.rows
        count["sorted parameter"] += b.sorted
        count[f"layout {b.kind}"] += b.layout is not None
        count["large extent"] += any(isinstance(n, int) and n > 11 for n in b.shape)
    for group in tree.shared:
        count["may_alias"] += 1
        sizes = [math.prod(n for n in b.shape if isinstance(n, int)) for b in group.buffers]
        spans = sorted((begin, begin + size) for begin, size in zip(group.begins, sizes))
        count["overlapping arguments"] += any(low < end for (_, end), (low, _) in zip(spans, spans[1:]))
    count["assume"] += len(tree.assumed)
    count["dynamic extent"] += len(tree.dims)
    count["scalar parameter"] += len(tree.scalars)
    wide = {q.name for q in tree.params if isinstance(q, p.Var) and q.dtype in ("int64", "uint64")}
    for _, node in places(tree.body):
        if isinstance(node, (p.If, p.While)):
            for name in _long(node.condition):
                count[f"{name} in {type(node).__name__.lower()}"] += 1
        elif isinstance(node, p.Apply) and node.op == "if_then_else":
            for name in _long(node.args[0]):
                count[f"{name} in if_then_else"] += 1
        elif isinstance(node, p.Var) and node.name in wide:
            count["use of a scalar of 64 bits"] += 1
            count["use of a scalar of 2**63 or more"] += tree.scalars[node.name] >= 2**63
        if isinstance(node, p.Cast) and node.dtype == "index" and isinstance(node.arg, p.Var):
            count["scalar of 64 bits as an index"] += node.arg.name in wide
    for s in tree.body:
        for e in [*getattr(s, "extents", []), getattr(s, "condition", 0)]:
            used = [v for _, v in [((), e), *places(e)] if isinstance(v, p.Var)]
            count["scalar of 64 bits in the host body"] += any(v.name in wide for v in used)
    if tree.mesh:
        count[f"mesh {'x'.join(map(str, tree.mesh))}"] += 1
        count[f"persistent_chunk {tree.chunk}"] += 1
        count["sharded tensor"] += len(tree.placements)
    return +count
