"""Metamorphic twins: programs that are written differently and mean the same.

A twin is compared with the meaning of the program that it was made from, so it also checks the evaluator's view of it.
"""

import random

import program as p
import scalars
import tree
from meaning import meets


def _statements(program):
    """(path of the list, index, statement) in kernels, outside tile loops."""
    for path, v in tree.places(program):
        if not (isinstance(v, list) and path[-1] in ("body", "then", "otherwise")):
            continue
        node, kernel, tiles = program, False, False
        for key in path:
            kernel |= isinstance(node, p.Kernel)
            tiles |= isinstance(node, p.ForTiles)
            node = tree.step(node, key)
        if kernel and not tiles:
            yield from ((path, n, s) for n, s in enumerate(v))


def _meets(s):
    """Does the statement hold a collective, or something that must stay where it is?"""
    if isinstance(s, (p.Alloc, p.Bind)) or isinstance(s, p.For) and s.kind == "Persistent" or meets(s):
        return True
    if isinstance(s, p.Store) and s.previous:
        return True
    if isinstance(s, p.Op) and s.name in ("copy_async", "wait_async"):
        return True
    inner = [v for _, v in tree.places(s)]
    persistent = any(isinstance(v, p.For) and v.kind == "Persistent" for v in inner)
    return persistent or any(isinstance(v, p.Op) and v.name.startswith("comm.") for v in [s, *inner])


def _written(program):
    names = set()
    for _, v in tree.places(program):
        if isinstance(v, p.Store):
            names.add(v.buffer.name)
        elif isinstance(v, p.Op):
            written = v.regions[:1] if len(v.regions) == 1 or v.name in p.ATOMICS else v.regions[1:]
            names |= {r.buffer.name for r in written}
    return names | {b.name for group in program.shared for b in group.buffers}


def _truth(program, rng):
    """A condition that always holds, which only the data of an input can show."""
    inputs = [q for q in program.params if isinstance(q, p.Buffer) and q.name not in _written(program)]
    inputs = [q for q in inputs if all(isinstance(n, int) and n > 0 for n in q.shape)]
    if not inputs:
        return None
    q = rng.choice(inputs)
    x = p.Load(q, [p.index(rng.randrange(n)) for n in q.shape])
    if q.dtype == "bool":
        return p.Apply("or", "bool", [x, p.Apply("not", "bool", [x])])
    if scalars.is_float(q.dtype):
        return p.Apply("<", q.dtype, [x, p.Const(q.dtype, 400.0, True)])
    return p.Apply("<", q.dtype, [p.Apply("&", q.dtype, [x, p.Const(q.dtype, 1, True)]), p.Const(q.dtype, 2, True)])


def guarded(program, rng):
    """A statement under a condition that always holds."""
    truth = _truth(program, rng)
    found = [x for x in _statements(program) if not _meets(x[2])]
    if truth is None or not found:
        return None
    path, n, s = rng.choice(found)
    return tree.replaced(program, (*path, n), [p.If(truth, [s], [])])


def dead_branch(program, rng):
    """A copy of a statement that never runs."""
    truth = _truth(program, rng)
    found = [x for x in _statements(program) if not _meets(x[2])]
    if truth is None or not found:
        return None
    path, n, s = rng.choice(found)
    dead = p.If(p.Apply("not", "bool", [truth]), [tree.clone(s)], [])
    return tree.replaced(program, (*path, n), [dead, s] if rng.random() < 0.5 else [s, dead])


def split(program, rng):
    """A loop as two loops."""
    kinds = ("serial", "unroll", "Parallel", "vectorized", "Pipelined")
    found = [
        (path, n, s)
        for path, n, s in _statements(program)
        if isinstance(s, p.For) and s.kind in kinds and all(isinstance(e, int) for e in [*s.begins, *s.extents])
        # The second loop would begin with what an iteration of the first left in private memory.
        and not (s.kind in ("Parallel", "vectorized") and tree.passes_private(s))
    ]
    if not found:
        return None
    path, n, s = rng.choice(found)
    d = rng.randrange(len(s.vars))
    at = rng.randint(0, s.extents[d])
    first, second = tree.clone(s), tree.clone(s)
    first.extents[d] = at
    second.begins[d] += at
    second.extents[d] -= at
    return tree.replaced(program, (*path, n), [first, second])


TWINS = [guarded, dead_branch, split]


def twin(program, seed):
    """(name of the rewriting, another program of the same meaning), or None where none applies."""
    rng = random.Random(f"{seed}/twin")
    rewrite = rng.choice(TWINS)
    out = rewrite(program, rng)
    return None if out is None else (rewrite.__name__, out)
