"""Makes a failing program small: cuts statements, expressions and extents as long as the same failure stays.

The evaluator judges each candidate first, so a cut that makes the program undefined is never taken.
"""

import copy
import time

import program as p
import scalars
import tree
from meaning import meaning, number


def simplest(dtype):
    if dtype == "bool":
        return p.Const("bool", True)
    return p.Const(dtype, 1.0 if scalars.is_float(dtype) else 1)


def unrolled_once(loop):
    """The body for the first iteration."""
    body = tree.clone(loop.body)
    if not body:
        return []
    for var, begin in zip(loop.vars, loop.begins):
        for path, value in list(tree.places(body)):
            if isinstance(value, p.Var) and value.name == var.name:
                node = body
                for key in path[:-1]:
                    node = tree.step(node, key)
                new = p.index(tree.clone(begin))
                if isinstance(node, list):
                    node[path[-1]] = new
                else:
                    setattr(node, path[-1], new)
    return body


def fewer_variables(loop):
    """The loop without its last variable, which keeps its first value."""
    last = tree.clone(loop)
    first = unrolled_once(p.For(last.kind, last.vars[-1:], last.begins[-1:], last.extents[-1:], last.body))
    return [p.For(last.kind, last.vars[:-1], last.begins[:-1], last.extents[:-1], first, scheduled=last.scheduled)]


def smaller_numbers(n):
    return [v for v in (0, 1, n // 2, n - 1) if 0 <= v < n]


def statement_cuts(program):
    places = [(path, v) for path, v in tree.places(program) if path[-1] in ("body", "then", "otherwise")]
    lists = [(path, v) for path, v in places if isinstance(v, list)]
    for path, stmts in lists:
        for size in (8, 4, 2):
            for start in range(0, len(stmts) - size + 1, size):
                yield tree.replaced(program, path, stmts[:start] + stmts[start + size :])
        for n, s in enumerate(stmts):
            yield tree.replaced(program, (*path, n), [])
            if isinstance(s, p.If):
                yield tree.replaced(program, (*path, n), s.then)
                yield tree.replaced(program, (*path, n), s.otherwise)
            elif isinstance(s, p.For):
                yield tree.replaced(program, (*path, n), unrolled_once(s))
                if s.kind != "serial" and len(s.vars) == 1:
                    yield tree.replaced(program, (*path, n, "kind"), "serial")
                if s.step != 1:
                    yield tree.replaced(program, (*path, n, "step"), 1)
                if len(s.vars) > 1:
                    yield tree.replaced(program, (*path, n), fewer_variables(s))
            elif isinstance(s, p.Kernel):
                for each in ("registers", "producers", "threads"):
                    if getattr(s, each):
                        yield tree.replaced(program, (*path, n, each), None)
            elif isinstance(s, p.While):
                yield tree.replaced(program, (*path, n), s.body)


def fewer_operands(e):
    """Of a condition of several."""
    if not (isinstance(e, p.Apply) and e.op in ("and", "or")):
        return
    count = len(e.args)
    for size in (count // 2, count // 4, 1):
        for start in range(0, count, size) if size else ():
            if count - size >= 2:
                yield e.args[:start] + e.args[start + size :]


def expression_cuts(program):
    for path, e in tree.places(program):
        names = path[-1] in ("var", "previous") or "vars" in path[-2:]
        if isinstance(e, (p.Apply, p.Cast, p.Load, p.Var)) and not names:
            if path[0] == "params":
                continue
            dtype = p.dtype_of(e)
            yield tree.replaced(program, path, p.Const("index", 0) if dtype == "index" else simplest(dtype))
            for args in fewer_operands(e):
                yield tree.replaced(program, (*path, "args"), args)
            for a in getattr(e, "args", []):
                if p.dtype_of(a) == dtype:
                    yield tree.replaced(program, path, a)
            if getattr(e, "plain", False):
                yield tree.replaced(program, (*path, "plain"), False)
        elif isinstance(e, p.Region) and e.spans is not None:
            yield tree.replaced(program, (*path, "spans"), None)
        elif isinstance(e, p.Op):
            for key in ("pad", "clear", "transpose_A", "transpose_B"):
                if key in e.keywords:
                    yield tree.replaced(program, (*path, "keywords"), {k: v for k, v in e.keywords.items() if k != key})


def known_stride(e, dims):
    """A stride with dynamic extents of `dims` as numbers."""
    match e:
        case p.Var(name=name) if name in dims:
            return dims[name]
        case p.Apply(op=op, dtype=dtype, args=args):
            args = [known_stride(a, dims) for a in args]
            if all(isinstance(a, (int, p.Const)) for a in args):
                return number(p.Apply(op, dtype, args), {})
            return p.Apply(op, dtype, [p.index(a) for a in args])
    return e


def param_cuts(program):
    for n, q in enumerate(program.params):
        out = copy.deepcopy(program)
        del out.params[n]
        out.placements = [x for x in out.placements if x.buffer.name != q.name]
        out.scalars.pop(q.name, None)
        out.shared = [group for group in out.shared if all(b.name != q.name for b in group.buffers)]
        yield out
        if isinstance(q, p.Buffer) and q.strides:
            out = copy.deepcopy(program)
            out.params[n].strides = None
            yield out
        if isinstance(q, p.Buffer) and (q.begin or q.rows):
            out = copy.deepcopy(program)
            out.params[n].begin, out.params[n].rows = 0, q.rows and not q.begin
            yield out
    for name, value in program.dims.items():
        out = copy.deepcopy(program)
        del out.dims[name]
        for path, v in list(tree.places(out)):
            if isinstance(v, p.Var) and v.name == name:
                node = out
                for key in path[:-1]:
                    node = tree.step(node, key)
                new = p.index(value)
                if isinstance(node, list):
                    node[path[-1]] = new
                else:
                    setattr(node, path[-1], new)
        for b in tree.buffers(out):
            b.shape = [value if isinstance(x, p.Var) and x.name == name else x for x in b.shape]
            if b.strides:
                b.strides = [known_stride(x, {name: value}) for x in b.strides]
        yield out
    for n, b in enumerate(tree.buffers(program)):
        if b.layout:
            out = copy.deepcopy(program)
            tree.buffers(out)[n].layout = None
            yield out
        if b.kind not in ("param", "global", "shared"):
            out = copy.deepcopy(program)
            simpler = tree.buffers(out)[n]
            simpler.kind, simpler.tile, simpler.layout = "shared", None, None
            yield out
    if program.chunk > 1:
        yield tree.replaced(program, ("chunk",), 1)
    if program.shared:
        yield tree.replaced(program, ("shared", 0), [])
    if program.assumed:
        yield tree.replaced(program, ("assumed",), [])


def number_cuts(program):
    """One number made smaller, in one place or in all."""
    numbers = set()
    for b in tree.buffers(program):
        numbers |= {n for n in b.shape if isinstance(n, int)} | set(b.tile or [])
    for v in sorted(numbers, reverse=True):
        for new in smaller_numbers(v):
            if new == 0:
                continue
            out = copy.deepcopy(program)
            for path, x in list(tree.places(out)):
                if type(x) is int and x == v and path[-1] != "seed":
                    node = out
                    for key in path[:-1]:
                        node = tree.step(node, key)
                    if isinstance(node, (list, dict)):
                        node[path[-1]] = new
                    else:
                        setattr(node, path[-1], new)
            for b in tree.buffers(out):
                b.shape = [new if x == v else x for x in b.shape]
                b.tile = b.tile and [new if x == v else x for x in b.tile]
            yield out
    for n, b in enumerate(tree.buffers(program)):
        for field in ("shape", "tile"):
            for d, x in enumerate(getattr(b, field) or []):
                for new in smaller_numbers(x) if isinstance(x, int) else ():
                    if new:
                        out = copy.deepcopy(program)
                        getattr(tree.buffers(out)[n], field)[d] = new
                        yield out
    for path, x in tree.places(program):
        if type(x) is int and x > 0 and path[-1] not in ("seed", "dim") and path[0] not in ("mesh", "placements"):
            for new in smaller_numbers(x):
                yield tree.replaced(program, path, new)


def dtype_cuts(program):
    """All of one dtype made another, simpler one."""
    used = {b.dtype for b in tree.buffers(program)}
    for old in sorted(used - {"float32", "int32", "bool"}):
        new = "float32" if scalars.is_float(old) else "int32"
        out = copy.deepcopy(program)
        for b in tree.buffers(out):
            b.dtype = new if b.dtype == old else b.dtype
        for _, v in list(tree.places(out)):
            if isinstance(v, (p.Const, p.Var, p.Apply, p.Cast)) and v.dtype == old:
                v.dtype = new
        yield out


CUTS = [statement_cuts, param_cuts, expression_cuts, number_cuts, dtype_cuts]


def shrink(program, fails, seconds=60.0):
    """The smallest program found for which `fails(program, memories)` holds; it must hold for the given one."""
    end = time.monotonic() + seconds
    tried = set()  # texts, so that a cut that makes nothing smaller is taken once
    changed = True
    while changed:
        changed = False
        for cuts in CUTS:
            again = True
            while again and time.monotonic() < end:
                again = False
                for candidate in cuts(program):
                    if time.monotonic() >= end:
                        return program
                    try:
                        memories = meaning(candidate)
                        size = len(p.text(candidate)) + sum(len(m.data) for m in memories.values())
                    except Exception:  # noqa: BLE001, S112  an undefined or malformed candidate
                        continue
                    if size >= weight(program) and cuts not in (dtype_cuts, param_cuts):
                        continue
                    if p.text(candidate) in tried:
                        continue
                    tried.add(p.text(candidate))
                    if fails(candidate, memories):
                        program, again, changed = candidate, True, True
                        break
        if time.monotonic() >= end:
            break
    return program


def weight(program):
    """What shrinking lowers: the text and the number of elements."""
    return len(p.text(program)) + sum(len(m.data) for m in meaning(program).values())
