"""The layout algebra in plain Python, as one would write it from the definitions.

The yardstick of benchmarks/layout_bench.py: nested tuples, no checks, no classes. Written for this purpose; helve does
not use it.
"""

from math import gcd
from operator import itemgetter


def leaves(tree):
    """The integers of a nested tuple, from the left."""
    return [leaf for branch in tree for leaf in leaves(branch)] if isinstance(tree, tuple) else [tree]


def size(layout):
    """The number of coordinates of a CuTe layout (shape, stride)."""
    product = 1
    for extent in leaves(layout[0]):
        product *= extent
    return product


def cosize(layout):
    """1 + the largest offset."""
    return 1 + sum((extent - 1) * stride for extent, stride in zip(leaves(layout[0]), leaves(layout[1])))


def offset(layout, index):
    """The offset of a colexicographic index."""
    result = 0
    for extent, stride in zip(leaves(layout[0]), leaves(layout[1])):
        index, digit = divmod(index, extent)
        result += digit * stride
    return result


def coalesce(layout):
    """Neighbouring modes merged, extents of 1 dropped."""
    shape, stride = [1], [0]
    for extent, step in zip(leaves(layout[0]), leaves(layout[1])):
        if extent == 1:
            continue
        if shape[-1] == 1:
            shape[-1], stride[-1] = extent, step
        elif stride[-1] * shape[-1] == step:
            shape[-1] *= extent
        else:
            shape.append(extent)
            stride.append(step)
    return (shape[0], stride[0]) if len(shape) == 1 else (tuple(shape), tuple(stride))


def composition(a, b):
    """R with R(c) = a(b(c)), mode by mode of b."""
    if isinstance(b[0], tuple):
        parts = [composition(a, mode) for mode in zip(*b)]
        return tuple(part[0] for part in parts), tuple(part[1] for part in parts)
    extent, step = b
    if step == 0:
        return extent, 0
    shape, stride = [], []
    flat = coalesce(a)
    modes = list(zip(leaves(flat[0]), leaves(flat[1])))
    for length, unit in modes[:-1]:
        if step % length and length % step:
            raise ValueError("not divisible")
        taken = min(max(1, length // step), extent)
        if extent % taken:
            raise ValueError("not divisible")
        if taken > 1:
            shape.append(taken)
            stride.append(step * unit)
        extent //= taken
        step = -(-step // length)
    if extent > 1 or not shape:
        shape.append(extent)
        stride.append(step * modes[-1][1])
    return (shape[0], stride[0]) if len(shape) == 1 else (tuple(shape), tuple(stride))


def complement(layout, bound):
    """The ordered layout of what `layout` leaves out below `bound`."""
    shape, stride, current = [], [], 1
    for step, extent in sorted(zip(leaves(layout[1]), leaves(layout[0]))):
        if step == 0 or extent == 1:
            continue
        if step % current:
            raise ValueError("not divisible")
        shape.append(step // current)
        stride.append(current)
        current = extent * step
    shape.append(-(-bound // current))
    stride.append(current)
    return coalesce((tuple(shape), tuple(stride)))


def right_inverse(layout):
    """R with layout(R(i)) = i."""
    shape, stride, current = [], [], 1
    flat_shape, flat_stride = leaves(layout[0]), leaves(layout[1])
    starts = [1]
    for extent in flat_shape:
        starts.append(starts[-1] * extent)
    for step, extent, start in sorted(zip(flat_stride, flat_shape, starts)):
        if extent == 1:
            continue
        if step != current:
            break
        shape.append(extent)
        stride.append(start)
        current *= extent
    return coalesce((tuple(shape), tuple(stride))) if shape else (1, 0)


def logical_divide(a, b):
    """a o (b, complement of b)."""
    rest = complement(b, size(a))
    return composition(a, ((b[0], rest[0]), (b[1], rest[1])))


def logical_product(a, b):
    """(a, copies of a for each element of b)."""
    copies = composition(complement(a, size(a) * cosize(b)), b)
    return (a[0], copies[0]), (a[1], copies[1])


def axe_apply(layout, index):
    """All points of an index of an Axe layout (shard, replica, offset) with iters (extent, stride, axis).

    Sorted, without repetitions; each names all axes of the layout.
    """
    shard, replica, start = layout
    axes = sorted({axis for _, _, axis in shard + replica} | start.keys())
    base = dict.fromkeys(axes, 0)
    base.update(start)
    for extent, stride, axis in reversed(shard):
        index, digit = divmod(index, extent)
        base[axis] += digit * stride
    points = [base]
    for extent, stride, axis in replica:
        points = [{**point, axis: point[axis] + step * stride} for point in points for step in range(extent)]
    places = sorted({tuple(point.values()) for point in points})
    return [dict(zip(axes, place)) for place in places]


def axe_canonicalize(layout):
    """Unit iters dropped, neighbours merged, replicas positive, merged where one continues another, and sorted."""
    shard = []
    for extent, stride, axis in layout[0]:
        if extent == 1:
            continue
        if stride == 0:
            axis = "m"
        if shard and shard[-1][2] == axis and shard[-1][1] == extent * stride:
            shard[-1] = (shard[-1][0] * extent, stride, axis)
        else:
            shard.append((extent, stride, axis))
    start = dict(layout[2])
    replica = []
    for extent, stride, axis in layout[1]:
        if extent == 1 or stride == 0:
            continue
        if stride < 0:
            start[axis] = start.get(axis, 0) + (extent - 1) * stride
            stride = -stride
        replica.append((extent, stride, axis))
    return shard, merged(sorted(replica, key=itemgetter(2, 1))), {axis: value for axis, value in start.items() if value}


def merged(replica):
    """Replica iters, sorted by axis and stride, of which none continues another."""
    for i, (extent, stride, axis) in enumerate(replica):
        for j, (other, step, name) in enumerate(replica):
            if i != j and name == axis and step % stride == 0 and step // stride <= extent:
                rest = [iter for k, iter in enumerate(replica) if k not in (i, j)]
                rest.append((extent + step // stride * (other - 1), stride, axis))
                return merged(sorted(rest, key=itemgetter(2, 1)))
    return replica


def axe_group(layout, shape):
    """The shard cut into blocks of the extents of `shape`."""
    out, separators = [], [0]
    rest = list(reversed(axe_canonicalize(layout)[0]))
    for target in reversed(shape):
        while target > 1:
            extent, stride, axis = rest.pop(0)
            taken = gcd(extent, target)
            if taken == 1:
                raise ValueError("not divisible")
            out.append((taken, stride, axis))
            if extent > taken:
                rest.insert(0, (extent // taken, stride * taken, axis))
            target //= taken
        separators.append(len(out))
    return (list(reversed(out)), layout[1], layout[2]), [len(out) - cut for cut in reversed(separators)]


def axe_span(layout, axis):
    """max - min + 1 on an axis."""
    return 1 + sum(abs(stride) * (extent - 1) for extent, stride, name in layout[0] + layout[1] if name == axis)


def axe_tile(outer, outer_shape, inner, inner_shape):
    """The Kronecker product on the interleaved domain."""
    (a, _), a_cuts = axe_group(outer, outer_shape)[0][:2], axe_group(outer, outer_shape)[1]
    (b, _), b_cuts = axe_group(inner, inner_shape)[0][:2], axe_group(inner, inner_shape)[1]
    axes = {axis for _, _, axis in outer[0] + outer[1]}
    spans = {axis: axe_span(inner, axis) for axis in axes}
    shard = []
    for d in range(len(outer_shape)):
        shard += [(extent, stride * spans[axis], axis) for extent, stride, axis in a[a_cuts[d] : a_cuts[d + 1]]]
        shard += b[b_cuts[d] : b_cuts[d + 1]]
    replica = [(extent, stride * spans[axis], axis) for extent, stride, axis in outer[1]] + inner[1]
    start = dict(inner[2])
    for axis, value in outer[2].items():
        start[axis] = start.get(axis, 0) + value * spans.get(axis, 1)
    return shard, replica, start
