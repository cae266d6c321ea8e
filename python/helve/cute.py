"""CuTe layouts and their algebra: nested shapes and strides, composition, complement, division, products, swizzles.

Names, notation and the colexicographic order (left mode fastest) are those of CuTe and of its Python model; every
operation answers exactly or raises a `helve.LayoutError` that names the numbers and, where there is one, a coordinate.
The calls go straight into the C++ core. `docs/cute.md` is the guide.
"""

import operator as _operator

from helve._core import CuteBasis as Basis
from helve._core import CuteComposedLayout as ComposedLayout
from helve._core import CuteCoordinateLayout as CoordinateLayout
from helve._core import CuteLayout as Layout
from helve._core import CuteSwizzle as Swizzle
from helve._core import cute as _algebra
from helve.errors import error as _error
from helve.viz import draw_offsets as _draw_offsets

E = _algebra.E
append = _algebra.append
affine = _algebra.affine
blocked_product = _algebra.blocked_product
ceil_div = _algebra.ceil_div
coalesce = _algebra.coalesce
compatible = _algebra.compatible
complement = _algebra.complement
composition = _algebra.composition
congruent = _algebra.congruent
cosize = _algebra.cosize
crd2crd = _algebra.crd2crd
crd2idx = _algebra.crd2idx
depth = _algebra.depth
dice = _algebra.dice
domain_distribute = _algebra.domain_distribute
downcast = _algebra.downcast
evenly_divides = _algebra.evenly_divides
filter = _algebra.filter  # noqa: A001 - CuTe's name
filter_zeros = _algebra.filter_zeros
flat_divide = _algebra.flat_divide
flat_product = _algebra.flat_product
flatten = _algebra.flatten
format_layout = _algebra.format_layout
get = _algebra.get
group = _algebra.group
idx2crd = _algebra.idx2crd
inner_product = _algebra.inner_product
left_inverse = _algebra.left_inverse
local_partition = _algebra.local_partition
local_tile = _algebra.local_tile
logical_divide = _algebra.logical_divide
logical_product = _algebra.logical_product
make_fragment_like = _algebra.make_fragment_like
make_identity_layout = _algebra.make_identity_layout
make_layout = _algebra.make_layout
make_layout_like = _algebra.make_layout_like
make_layout_tv = _algebra.make_layout_tv
make_ordered_layout = _algebra.make_ordered_layout
make_right_layout = _algebra.make_right_layout
make_tv_layout = _algebra.make_tv_layout
max_common_layout = _algebra.max_common_layout
max_common_vector = _algebra.max_common_vector
nullspace = _algebra.nullspace
parse = Layout.parse
prefix_product = _algebra.prefix_product
prepend = _algebra.prepend
print_layout = _algebra.print_layout
product = _algebra.product
product_each = _algebra.product_each
raked_product = _algebra.raked_product
rank = _algebra.rank
recast = _algebra.recast
recast_layout = _algebra.recast_layout
replace = _algebra.replace
right_inverse = _algebra.right_inverse
select = _algebra.select
shape_div = _algebra.shape_div
size = _algebra.size
slice_ = _algebra.slice_
slice_and_offset = _algebra.slice_and_offset
take = _algebra.take
tile_to_shape = _algebra.tile_to_shape
tiled_divide = _algebra.tiled_divide
tiled_product = _algebra.tiled_product
unflatten = _algebra.unflatten
upcast = _algebra.upcast
weakly_compatible = _algebra.weakly_compatible
weakly_congruent = _algebra.weakly_congruent
zipped_divide = _algebra.zipped_divide
zipped_product = _algebra.zipped_product


def print_latex(layout) -> None:
    """Prints the layout as a LaTeX document: its offsets in a table, mode 0 down and all others to the right.

    `helve.viz` draws more (threads and values, swizzles, banks); every picture has `.latex()`.

    Args:
        layout: a layout, plain or composed.
    """
    print(_draw_offsets(layout).latex(), end="")


def print_tensor(values, layout) -> None:
    """Prints the elements of a tensor as CuTe's print_tensor does.

    A line for each coordinate of mode 0, a column for each of mode 1; for ranks 3 and 4 a table for each coordinate of
    the further modes, with rules of `-` and `=` between them.

    Args:
        values: the memory, as a flat sequence: element `layout(c)` of it is the one at coordinate c.
        layout: a layout of rank 1 to 4, plain or composed.

    Raises:
        helve.ShapeError: a layout of another rank.
        helve.BoundsError: the layout reaches outside the values.
        helve.LayoutError: a value that is no number, values or a layout that are none (HV0507).
    """
    print(format_tensor(values, layout), end="")


def format_tensor(values, layout) -> str:
    """The text that print_tensor prints. Raises as it does."""
    if not is_layout(layout):
        raise _error("LayoutArgument", value=repr(layout), expected="layout of helve.cute",
                     remedy="print_tensor prints a sequence of numbers through one, as cute.Layout((2, 4), (4, 1))")
    if not hasattr(values, "__len__") or not hasattr(values, "__getitem__"):
        raise _error("LayoutArgument", value=repr(values), expected="sequence of numbers",
                     remedy="print_tensor prints a list or a flat array")
    ranks = layout.rank()
    if ranks > 4:
        needed = "a tensor has 1 to 4"
        raise _error("CuteRank", operation="print_tensor", operand=str(layout), given=ranks, needed=needed)
    count = len(values)

    def place(coordinate):
        offset = layout(coordinate)
        if not 0 <= offset < count:
            raise _error("CoordinateBounds", coordinate=f"({offset},)", shape=f"({count},)")
        return offset

    extents = [layout[mode].size() for mode in range(ranks)] if ranks > 1 else [layout.size()]
    sizes = extents + [1] * (4 - ranks)
    blocks = []
    for last in range(sizes[3]):
        for third in range(sizes[2]):
            if blocks:
                blocks.append(("-" if third else "=") * (5 * sizes[1]) + "\n")
            for row in range(sizes[0]):
                coordinates = [(row, column, third, last)[:ranks] for column in range(sizes[1])]
                texts = [_cell(values[place(each if ranks > 1 else each[0])]) for each in coordinates]
                blocks.append("".join(texts) + "\n")
    return f"{layout}:\n" + "".join(blocks)


def _cell(value) -> str:
    """An element, right-aligned as CuTe aligns it: integers in 5 places, other numbers in 10 with two decimals."""
    try:
        return f"{_operator.index(value):5d}"
    except TypeError:
        pass
    try:
        return f"{float(value):10.2e}"
    except (TypeError, ValueError):
        raise _error("LayoutArgument", value=repr(value), expected="number",
                     remedy="print_tensor prints numbers") from None


def is_layout(x: object) -> bool:
    """Whether `x` is a layout, plain, composed or of coordinates."""
    return isinstance(x, (Layout, ComposedLayout, CoordinateLayout))


__all__ = sorted(name for name in globals() if not name.startswith("_"))
