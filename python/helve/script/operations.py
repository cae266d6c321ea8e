"""Calls of T: what each construct builds.

Tile operations are generic over their row in the table; allocations, mesh annotations and sugar have a function each.
"""

from __future__ import annotations

import ast
from typing import Any

from helve import _core, language
from helve.errors import error
from helve.language.constructs import Construct, DType, TileOperation
from helve.script import layouts, threads, views
from helve.script.arguments import Arguments, match
from helve.script.context import Context
from helve.script.expressions import Expressions
from helve.script.inlinable import helper_of
from helve.script.reshape import Copies, view
from helve.script.values import number, plain, subscripts
from helve.script.views import Part, View

_SCOPES = {
    "alloc_global": "global",
    "alloc_shared": "shared",
    "alloc_shared_tiles": "shared",
    "alloc_fragment": "fragment",
    "alloc_local": "local",
    "alloc_var": "local",
}


def is_allocation(function: Any) -> bool:
    """Does the construct bring a buffer into being?"""
    return isinstance(function, Construct) and function.name in _SCOPES


def allocate(
    expressions: Expressions, function: Construct, call: ast.Call, name: str, span: _core.Span
) -> _core.Buffer:
    """The buffer of `name = T.alloc_...(shape, dtype)`."""
    context = expressions.context
    arguments = match(context, function, call)
    if function is language.alloc_var:
        dtype = expressions.dtype(arguments["dtype"], expressions.evaluate(arguments["dtype"]))
        return _core.make_buffer(name, dtype, "local", [_core.int_imm(1)], [], [], span)
    shape = expressions.index_list(arguments["shape"], f"an extent of '{name}'")
    dtype = expressions.dtype(arguments["dtype"], expressions.evaluate(arguments["dtype"]))
    if "scope" in arguments.nodes:
        scope = expressions.literal(arguments, "scope", str, "a scope", 'write scope="shared.dyn"')
        if scope not in ("shared", "shared.dyn"):
            raise context.bad_argument(arguments["scope"], function.text, "scope", "it is not a scope of shared memory",
                                       'write scope="shared.dyn"')
    tile = _tile_size(expressions, arguments, len(shape)) if _tiled(function, arguments) else []
    buffer = _core.make_buffer(name, dtype, _SCOPES[function.name], shape, tile, [], span)
    buffer = layouts.placed(expressions, function.text, "layout", arguments.get("layout"), buffer)
    if (node := arguments.get("slots")) is not None:
        slots = expressions.literal(arguments, "slots", int, "a number of slots", "write for example slots=4")
        buffer = _core.with_slots(buffer, slots, context.span(node))
    if (node := arguments.get("offset")) is not None:
        offset = expressions.literal(arguments, "offset", int, "a number of bytes", "write for example offset=1024")
        buffer = _core.at_offset(buffer, offset, context.span(node))
    if (node := arguments.get("place")) is not None:
        shared = function is language.alloc_shared
        remedy = 'write place="stack"' if shared else 'write place="packed", place="memory" or place="stack"'
        place = expressions.literal(arguments, "place", str, "a place", remedy)
        if place not in (("stack",) if shared else ("packed", "memory", "stack")):
            reason = "a block has no such place" if shared else "a thread has no such place"
            raise context.bad_argument(node, function.text, "place", reason, remedy)
        return _core.at_place(buffer, place)
    return buffer


def _tiled(function: Construct, arguments: Arguments) -> bool:
    return function.name == "alloc_shared_tiles" or "tile_size" in arguments.nodes


def _tile_size(expressions: Expressions, arguments: Arguments, rank: int) -> list[int]:
    """One tile extent a dimension; a shorter tile_size covers the last dimensions."""
    context, text = expressions.context, arguments.construct.text
    if rank == 0:
        raise context.bad_argument(arguments["shape"], text, "shape", "it has no dimension", "give one extent or more")
    node = arguments.get("tile_size")
    value = None if node is None else expressions.evaluate(node)
    if value is None:
        return _core.default_tile(rank)
    numbers = [number(item) for item in value] if isinstance(value, (tuple, list)) else [number(value)]
    if not all(isinstance(item, int) and not isinstance(item, bool) and 1 <= item < 2**31 for item in numbers):
        raise context.bad_argument(node, text, "tile_size", "tile extents are constants of 1 or more",
                                   "write for example tile_size=(32, 32)")
    if rank == 1 and len(numbers) == 2 and numbers[1] == 1:
        numbers = numbers[:1]
    if len(numbers) > rank or (len(numbers) < rank and len(numbers) != 2):
        raise context.bad_argument(node, text, "tile_size", f"the buffer has {rank} dimensions",
                                   "give two extents, for the last two dimensions, or one for each")
    return [1] * (rank - len(numbers)) + numbers


def region(expressions: Expressions, node: ast.expr, function: str, parameter: str) -> _core.Region:
    """An operand of a tile operation: a buffer, or a box of it by slices and points."""
    context = expressions.context
    sliced = isinstance(node, ast.Subscript)
    base = node.value if sliced else node
    buffer = expressions.evaluate(base) if isinstance(base, (ast.Name, ast.Subscript, ast.Attribute)) else None
    if isinstance(buffer, View):
        raise context.bad_argument(node, function, parameter, "it is a part of a view",
                                   f"pass the whole view, or a part of '{buffer.name}' itself")
    if not isinstance(buffer, (_core.Buffer, Part)):
        raise context.bad_argument(node, function, parameter, "it is not a buffer or a part of one",
                                   "pass a buffer, whole or with slices: A, A[0:32, :]")
    if not sliced:
        return _core.Region(buffer.buffer, buffer.ranges) if isinstance(buffer, Part) else _core.whole_region(buffer)
    items = subscripts(node)
    if len(items) != buffer.rank:
        raise error("IndexCount", context.span(node), buffer=buffer.name, rank=buffer.rank, given=len(items))
    ranges = [_range(expressions, buffer, d, item) for d, item in enumerate(items)]
    if isinstance(buffer, Part):
        return _core.Region(buffer.buffer, buffer.within(ranges))
    return _core.Region(buffer, ranges)


def _range(expressions: Expressions, buffer: _core.Buffer | Part, dim: int, node: ast.expr) -> _core.Range:
    if not isinstance(node, ast.Slice):
        return _core.Range(expressions.subscript_index(buffer, node), _core.int_imm(1), True)
    context = expressions.context
    if node.step is not None and number(expressions.evaluate(node.step)) != 1:
        raise context.unsupported(node.step, "a slice with a step", "copy the elements in a loop")
    if node.upper is None and node.lower is None:
        return _core.Range(_core.int_imm(0), buffer.shape[dim])
    begin = _core.int_imm(0) if node.lower is None else expressions.subscript_index(buffer, node.lower)
    end = buffer.shape[dim] if node.upper is None else expressions.subscript_index(buffer, node.upper)
    return _core.Range(begin, extent_between(begin, end, context.span(node)))


def extent_between(begin: _core.Expr, end: _core.Expr, span: _core.Span) -> _core.Expr:
    """The extent of `begin:end`: the difference of constants, `end` from 0, `e` of `begin + e`, else `end - begin`."""
    if isinstance(begin, _core.IntImm) and isinstance(end, _core.IntImm):
        return _core.int_imm(end.value - begin.value, "index", span)
    if isinstance(begin, _core.IntImm) and begin.value == 0:
        return end
    if isinstance(end, _core.Apply) and end.op == "Add" and _core.expr_equal(end.args[0], begin):
        return end.args[1]
    return _core.apply_operands("Sub", [end, begin], span)


def _is_element(expressions: Expressions, node: ast.expr) -> bool:
    """Does the operand name one element: a buffer with a subscript and no slice?"""
    return (isinstance(node, ast.Subscript) and not any(isinstance(item, ast.Slice) for item in subscripts(node))
            and isinstance(expressions.evaluate(node.value), (_core.Buffer, View, Part)))


def is_region(expressions: Expressions, node: ast.expr) -> bool:
    """Does the operand name a box of a buffer, rather than a scalar?"""
    if isinstance(node, ast.Subscript):
        return any(isinstance(item, ast.Slice) for item in subscripts(node))
    return isinstance(node, (ast.Name, ast.Attribute)) and isinstance(expressions.evaluate(node),
                                                                        (_core.Buffer, Part))


def _place(expressions: Expressions, node: ast.Subscript) -> tuple[_core.Buffer, list[_core.Expr]]:
    """The buffer and the subscripts of the element that a subscript names, also of a view or a part."""
    context, base = expressions.context, expressions.evaluate(node.value)
    indices = expressions.indices(base, node)
    if isinstance(base, _core.Buffer):
        return base, indices
    if base.dtype != base.buffer.dtype:
        raise context.unsupported(node, "an update of a view as another type", "load the element, and store it")
    return base.buffer, views.base_indices(base, indices)


def _returns_previous(expressions: Expressions, arguments: Arguments) -> bool:
    return expressions.literal(arguments, "return_prev", bool, "True or False", "write return_prev=True")


def _atomic_store(expressions: Expressions, function: TileOperation, arguments: Arguments,
                  name: str | None = None) -> _core.Stmt:
    """The update of one element, which names what stood there if `name` is given."""
    context = expressions.context
    target, value = (arguments[p.name] for p in function.operands)
    buffer, indices = _place(expressions, target)
    if is_region(expressions, value):
        raise context.bad_argument(value, function.text, "value", "dst is one element",
                                   "give a scalar, or a region for dst")
    operand = expressions.stored(value, expressions.evaluate(value), buffer.dtype)
    if name is None:
        return _core.store(buffer, indices, operand, context.span(target), function.name)
    previous = context.make_var(name, buffer.dtype)
    return _core.fetch(previous, buffer, indices, operand, function.name, context.span(target))


def fetch(expressions: Expressions, call: ast.Call, name: str = "previous") -> _core.Var:
    """What stood in an element before the atomic update of a call with return_prev=True, which is executed here."""
    context = expressions.context
    function = expressions.evaluate(call.func)
    arguments = match(context, function, call)
    if not _returns_previous(expressions, arguments):
        raise context.unsupported(call, f"{function.text} inside an expression",
                                  "write return_prev=True for the value before, or call it in a statement of its own")
    if not _is_element(expressions, arguments["dst"]):
        raise context.bad_argument(arguments["return_prev"], function.text, "return_prev", "dst is not one element",
                                   "update single elements, T.atomic_add(A[i], x, return_prev=True)")
    statement = _atomic_store(expressions, function, arguments, name)
    context.emit(statement)
    return statement.previous


def _element(expressions: Expressions, arguments: Arguments, name: str) -> tuple[_core.Buffer, list[_core.Expr]]:
    """The buffer and the subscripts of an argument that names one element."""
    node = arguments[name]
    if not _is_element(expressions, node):
        raise expressions.context.bad_argument(node, arguments.construct.text, name, "it is not one element",
                                               "write a buffer with a subscript for each dimension")
    return _place(expressions, node)


def _buffer(expressions: Expressions, arguments: Arguments, name: str, what: str, remedy: str) -> _core.Buffer:
    """The buffer that an argument names; `what` it should be."""
    node = arguments[name]
    buffer = expressions.evaluate(node)
    if not isinstance(buffer, _core.Buffer):
        raise expressions.context.bad_argument(node, arguments.construct.text, name, f"it is not {what}", remedy)
    return buffer


_UPDATES = ("add", "mul", "max", "min")


def update(expressions: Expressions, call: ast.Call) -> _core.Stmt:
    """A store of what an operator makes of the element and the value."""
    context, function = expressions.context, language.update
    arguments = match(context, function, call)
    buffer, indices = _element(expressions, arguments, "dst")
    node = arguments["op"]
    remedy = "write one of " + ", ".join(f'"{name}"' for name in _UPDATES)
    op = expressions.literal(arguments, "op", str, "a string", remedy)
    if op.startswith("atomic_") and op in language.NAMES:
        raise context.bad_argument(node, function.text, "op", "an update is not atomic",
                                   f"write T.{op}(dst, value), or the operator alone")
    if op not in _UPDATES:
        raise context.bad_argument(node, function.text, "op", "it is no operator of updates", remedy)
    node = arguments["value"]
    value = expressions.operand(node, expressions.evaluate(node), "", buffer.dtype)
    if not isinstance(value, _core.Expr) and buffer.dtype != "bool":  # no value fits a bool
        value = _core.constant_of(value, buffer.dtype, context.span(node))
    return _core.update(buffer, indices, value, op, context.span(call))


def store_nontemporal(expressions: Expressions, call: ast.Call) -> _core.Stmt:
    """A store of lanes around the caches."""
    arguments = match(expressions.context, language.store_nontemporal, call)
    buffer, indices = _element(expressions, arguments, "dst")
    value = expressions.stored(arguments["value"], expressions.evaluate(arguments["value"]), buffer.dtype)
    piece = expressions.literal(arguments, "piece", int, "a compile-time integer", "write a constant")
    return _core.store_nontemporal(buffer, indices, value, piece, expressions.context.span(call.func))


def store_vector(expressions: Expressions, call: ast.Call) -> _core.Stmt:
    """A store of lanes together."""
    arguments = match(expressions.context, language.store_vector, call)
    buffer, indices = _element(expressions, arguments, "dst")
    value = expressions.stored(arguments["value"], expressions.evaluate(arguments["value"]), buffer.dtype)
    width = expressions.literal(arguments, "width", int, "a compile-time integer", "write a constant")
    return _core.store_vector(buffer, indices, value, width, expressions.context.span(call.func))


def prefetch(expressions: Expressions, call: ast.Call) -> _core.Stmt:
    """A request for the memory of an element."""
    arguments = match(expressions.context, language.prefetch, call)
    return _core.prefetch(*_element(expressions, arguments, "src"), expressions.context.span(call.func))


def peer(expressions: Expressions, call: ast.Call, name: str, span: _core.Span) -> _core.Stmt:
    """The statement of `name = T.peer(buffer, core)`."""
    arguments = match(expressions.context, language.peer, call)
    source = _buffer(expressions, arguments, "buffer", "a buffer", "name a buffer of T.alloc_shared or T.alloc_global")
    core = expressions.index_list(arguments["core"], "a coordinate of T.peer")
    return _core.peer(_core.declare_again(source, name, span), source, core, span)


def tile_operation(expressions: Expressions, function: TileOperation, call: ast.Call) -> list[_core.Stmt]:
    """The statements of a call of a row of the table: one, and what writes back to views."""
    context = expressions.context
    if function is language.cumsum and len(call.args) == 1 and all(k.arg != "dst" for k in call.keywords):
        call = ast.copy_location(ast.Call(call.func, [call.args[0], call.args[0]], call.keywords), call)  # in place
    arguments = match(context, function, call)
    sources = [p for p in function.operands if p.kind == "Source"]
    if function.is_atomic and _returns_previous(expressions, arguments):
        fetch(expressions, call)
        return []
    if sources and _is_element(expressions, arguments["dst"]):
        return [_atomic_store(expressions, function, arguments)]
    copies = Copies(expressions, function.text)
    operands: dict[str, Any] = {}
    for parameter in function.operands:
        boxed = parameter in sources and is_region(expressions, arguments[parameter.name])
        barriers = parameter.kind == "Barriers" and arguments.get(parameter.name) is not None
        if boxed or barriers or parameter.kind in ("In", "Out", "InOut"):
            node = arguments[parameter.name]
            seen = expressions.evaluate(node) if isinstance(node, (ast.Name, ast.Attribute)) or (
                expressions.callee(node) in (language.reshape, language.view)) else None
            if isinstance(seen, View):
                keeps = "clear" in arguments.nodes
                operands[parameter.name] = copies.of(node, parameter.name, parameter.kind, seen, keeps)
            else:
                operands[parameter.name] = region(expressions, node, function.text, parameter.name)
    if function.op in _COPIES:
        operands |= _opened(operands["src"], operands["dst"])
    written = next((operands[p.name] for p in function.operands if p.kind in ("Out", "InOut")), None)
    for parameter in function.operands:
        if parameter.name not in operands:
            operands[parameter.name] = _scalar_operand(expressions, arguments, parameter, written)
    given = [arguments.get(p.name) for p in function.operands]
    operation = _core.tile_op(function.op, [operands[p.name] for p in function.operands], context.span(call.func),
                              [_core.Span() if node is None else context.span(node) for node in given])
    return [operation, *copies.write_back()]


_COPIES = ("Copy", "CopyAsync")


def _opened(src: _core.Region, dst: _core.Region) -> dict[str, _core.Region]:
    """The operands of a copy, of which one may be a point, `T.copy(A[i, j], tile)`: where the other's box begins."""
    pair = {"src": src, "dst": dst}
    points = [name for name, region in pair.items() if region.ranges and all(r.point for r in region.ranges)]
    if len(points) != 1:
        return pair
    (name,) = points
    extents = [r.extent for r in pair["dst" if name == "src" else "src"].ranges if not r.point]
    ranges = list(pair[name].ranges)
    while len(extents) > len(ranges) and isinstance(extents[0], _core.IntImm) and extents[0].value == 1:
        extents = extents[1:]
    if len(extents) > len(ranges):
        return pair
    first = len(ranges) - len(extents)
    ranges[first:] = [_core.Range(r.begin, extent) for r, extent in zip(ranges[first:], extents)]
    return {**pair, name: _core.Region(pair[name].buffer, ranges)}


def _scalar_operand(expressions: Expressions, arguments: Arguments, parameter, written: _core.Region | None) -> Any:
    node = arguments.get(parameter.name)
    function = arguments.construct.text
    if parameter.kind in ("Value", "Source"):
        dtype = written.buffer.dtype
        if node is None:
            return _default_value(parameter.default, dtype, expressions.context.span(arguments.call))
        return expressions.stored(node, expressions.evaluate(node), dtype)
    if parameter.kind == "Barriers":
        return None
    if parameter.kind == "Index":
        if node is None:
            return _core.int_imm(parameter.default)
        return expressions.index(node, expressions.evaluate(node), f"'{parameter.name}' of {function}")
    if parameter.kind == "Map":
        return _map(expressions, arguments, parameter.name)
    if parameter.kind == "Coord":
        return expressions.index_list(node, f"a coordinate of {function}")
    if parameter.kind == "Integer":
        return expressions.literal(arguments, parameter.name, int, "a compile-time integer", "write a constant")
    if parameter.kind == "Layout":
        return layouts.layout(expressions, function, parameter.name, node, expressions.evaluate(node))
    if parameter.kind == "Flag":
        return expressions.literal(arguments, parameter.name, bool, "True or False", "write True or False")
    if parameter.kind == "Axes":
        return _axes(expressions, arguments, parameter.name)
    return expressions.literal(arguments, parameter.name, str, "a string", "write a string constant")


def _map(expressions: Expressions, arguments: Arguments, name: str) -> _core.IndexMap | None:
    """A function of one index, `lambda k: k - 1` or one that is defined elsewhere: what it computes of a variable."""
    node = arguments.get(name)
    value = None if node is None else expressions.evaluate(node)
    if value is None:
        return None
    context, function = expressions.context, arguments.construct.text
    helper = helper_of(value)
    if helper is None or not helper.parameters or any(each.required for each in helper.parameters[1:]):
        raise context.bad_argument(node, function, name, "it is not a function of one index",
                                   f"write for example {name}=lambda k: k - 1")
    var = context.make_var(helper.parameters[0].name)
    argument = ast.copy_location(ast.Name(helper.parameters[0].name, ast.Load()), node)
    call = ast.copy_location(ast.Call(node, [argument], []), node)
    with context.evaluated_lazily():
        result = expressions.inline(helper, call, False, [var], {})
    return _core.IndexMap(var, expressions.index(node, result, f"'{name}' of {function}"))


def _axes(expressions: Expressions, arguments: Arguments, name: str) -> str:
    """One axis of the mesh, or several as the table has them: `("x", "z")` is "x, z"."""
    value = expressions.literal(arguments, name, (str, tuple, list), "the name of an axis or a tuple of names",
                                'write axis="x", axis=("x", "y") or axis="all"')
    names = (value,) if isinstance(value, str) else tuple(value)
    if not names or not all(isinstance(each, str) and each and "," not in each for each in names):
        raise expressions.context.bad_argument(arguments[name], arguments.construct.text, name,
                                               "it is not the name of an axis or a tuple of names",
                                               'write axis="x", axis=("x", "y") or axis="all"')
    return ", ".join(names)


def _default_value(default: float, dtype: str, span: _core.Span) -> _core.Expr:
    """The table's default number as a constant of the written type."""
    if dtype == "bool":
        return _core.bool_imm(bool(default), span)
    return _core.constant_of(int(default) if float(default).is_integer() else default, dtype, span)


def gather_sugar(expressions: Expressions, function: Construct, call: ast.Call) -> _core.Stmt:
    """`row_allgather(send, recv)` and `col_allgather(send, recv)` as an all_gather over one axis."""
    arguments = match(expressions.context, function, call)
    send, recv = (region(expressions, arguments[name], function.text, name) for name in ("send", "recv"))
    axis = "x" if function.name == "comm.row_allgather" else "y"
    dim = next(p.default for p in language.comm.all_gather.parameters if p.name == "dim")
    context, nowhere = expressions.context, _core.Span()
    places = [context.span(arguments["send"]), context.span(arguments["recv"]), nowhere, nowhere]
    return _core.tile_op("CommAllGather", [send, recv, axis, dim], context.span(call.func), places)


# -- expressions ------------------------------------------------------------------------------------------------------


def _operator(expressions: Expressions, call: ast.Call) -> Any:
    """`T.exp(x)` and all other operators that are written as a call."""
    function = expressions.evaluate(call.func)
    arguments = match(expressions.context, function, call)
    items = []
    for parameter in function.parameters:
        chosen = function.op == "Select" and parameter.name != "condition"
        with expressions.context.evaluated_lazily(chosen):
            items.append((arguments[parameter.name], expressions.evaluate(arguments[parameter.name])))
    plain_numbers = [number(value) for _, value in items]
    folds = {"Min": min, "Max": max, "Abs": abs}
    if function.op in folds and None not in plain_numbers:
        return folds[function.op](*plain_numbers)
    operands = [expressions.operand(node, value, function.op) for node, value in items]
    return _core.apply_operands(function.op, operands, expressions.context.span(call))


def _cast(expressions: Expressions, call: ast.Call) -> _core.Expr:
    function = expressions.evaluate(call.func)
    arguments = match(expressions.context, function, call)
    value = expressions.evaluate(arguments["x"])
    if isinstance(value, (str, DType)):
        x, dtype = ast.unparse(arguments["dtype"]), f'"{value}"'
        right = f"{dtype}, {x}" if function is language.Cast else f"{x}, {dtype}"
        raise expressions.context.bad_argument(arguments["x"], function.text, "x", "it is a type, no value",
                                               f"write {function.text}({right})")
    dtype = expressions.dtype(arguments["dtype"], expressions.evaluate(arguments["dtype"]))
    return expressions.convert(arguments["x"], value, dtype, expressions.context.span(call))


def _reinterpret(expressions: Expressions, call: ast.Call) -> _core.Expr:
    arguments = match(expressions.context, expressions.evaluate(call.func), call)
    (x_node, x), (dtype_node, value) = ((arguments[n], expressions.evaluate(arguments[n])) for n in ("x", "dtype"))
    if isinstance(x, str):  # as TVM writes it
        (x_node, x), (dtype_node, value) = (dtype_node, value), (x_node, x)
    dtype = expressions.dtype(dtype_node, value)
    bits = number(x)
    if isinstance(bits, int) and not isinstance(bits, bool) and not dtype.startswith(("index", "bool")):
        x = expressions.convert(x_node, bits, DType(f"{'u' if bits >= 0 else ''}int{_core.dtype_bits(dtype)}"),
                                expressions.context.span(x_node))
    return _core.bitcast(expressions.typed(x_node, x), dtype, expressions.context.span(call))


def _misalignment(expressions: Expressions, call: ast.Call) -> _core.Expr:
    context = expressions.context
    arguments = match(context, language.misalignment, call)
    tensor = _buffer(expressions, arguments, "tensor", "a tensor", "name a tensor parameter of the function")
    unit = expressions.literal(arguments, "unit", int, "a compile-time integer", "write a constant")
    return _core.misalignment(tensor, unit, context.span(call))


def _load_vector(expressions: Expressions, call: ast.Call) -> _core.Expr:
    arguments = match(expressions.context, language.load_vector, call)
    buffer, indices = _element(expressions, arguments, "src")
    width = expressions.literal(arguments, "width", int, "a compile-time integer", "write a constant")
    return _core.load_vector(buffer, indices, width, expressions.context.span(call))


def _clamp(expressions: Expressions, call: ast.Call) -> Any:
    arguments = match(expressions.context, language.clamp, call)
    x, lo, hi = ((arguments[name], expressions.evaluate(arguments[name])) for name in ("x", "lo", "hi"))
    if None not in (numbers := [number(value) for _, value in (x, lo, hi)]):
        return min(max(numbers[0], numbers[1]), numbers[2])
    x, lo, hi = (expressions.operand(node, value, "clamp") for node, value in (x, lo, hi))
    span = expressions.context.span(call)
    return _core.apply_operands("Min", [_core.apply_operands("Max", [x, lo], span), hi], span)


def _annotated(expressions: Expressions, function: Construct, call: ast.Call) -> _core.MeshTensor:
    """The annotation of the tensor that is the one argument of a call."""
    context = expressions.context
    arguments = match(context, function, call)
    node = arguments["tensor"]
    tensor = region(expressions, node, function.text, "tensor").buffer
    placement = context.mesh_tensor_of(tensor)
    if placement is None:
        raise error("NotSharded", context.span(node), tensor=tensor.name)
    return placement


def _get_sharded_shape(expressions: Expressions, call: ast.Call) -> tuple:
    placement = _annotated(expressions, language.get_sharded_shape, call)
    return tuple(plain(extent) for extent in _core.sharded_shape(expressions.context.mesh, placement))


def _local_shape(expressions: Expressions, call: ast.Call) -> tuple:
    context = expressions.context
    placement = _annotated(expressions, language.local_shape, call)
    if context.kernel_vars is None or len(context.kernel_vars) != len(context.mesh.extents):
        raise error("OperationScope", context.span(call), operation="T.local_shape", scope="host",
                    remedy="call it inside the kernel, where the executing core is known")
    return tuple(plain(extent) for extent in _core.local_shape(context.mesh, placement, list(context.kernel_vars)))


HANDLERS = {
    **{name: _operator for name, value in language.NAMES.items() if isinstance(value, language.Operator)},
    "cast": _cast,
    "Cast": _cast,
    "reshape": view,
    "view": view,
    "reinterpret": _reinterpret,
    "bitcast": _reinterpret,
    "clamp": _clamp,
    **{name: fetch for name, value in language.NAMES.items()
       if isinstance(value, TileOperation) and value.is_atomic},
    "misalignment": _misalignment,
    "get_thread_binding": threads.thread_binding,
    "get_block_binding": threads.block_binding,
    **dict.fromkeys(("shfl_sync", "shfl_xor", "shfl_up", "shfl_down"), threads.shuffle),
    "load_vector": _load_vector,
    "get_sharded_shape": _get_sharded_shape,
    "local_shape": _local_shape,
}


# -- mesh annotations -------------------------------------------------------------------------------------------------


def annotate_mesh_tensor(expressions: Expressions, call: ast.Call) -> None:
    """Sets the function's mesh and the placement of its tensors."""
    context = expressions.context
    function = language.annotate_mesh_tensor
    arguments = match(context, function, call)
    if not context.at_head or context.mesh_tensors:
        raise error("OperationScope", context.span(call), operation=function.text,
                    scope="block" if context.kernel_vars is not None else "host",
                    remedy="write it once, at the head of the function")
    _set_mesh(expressions, arguments)
    node = arguments["annotations"]
    if isinstance(node, ast.Dict) and None not in node.keys:
        entries = [(key, expressions.evaluate(key), value, expressions.evaluate(value))
                   for key, value in zip(node.keys, node.values)]
    else:
        value = expressions.evaluate(node)
        if not isinstance(value, dict):
            raise context.bad_argument(node, function.text, "annotations", "it is not a dict",
                                       'write {A: {"sharding": {"x": 0}, "tiling": [32, 32]}}')
        entries = [(node, key, node, item) for key, item in value.items()]
    for key_node, key, value_node, value in entries:
        context.mesh_tensors.append(_placement(expressions, key_node, key, value_node, value))


def _set_mesh(expressions: Expressions, arguments: Arguments) -> None:
    context = expressions.context
    given = {}
    for name in ("nrows", "ncols"):
        given[name] = expressions.literal(arguments, name, int, "a compile-time integer", "write the number of cores")
        if given[name] is not None and given[name] < 1:
            raise context.bad_argument(arguments[name], arguments.construct.text, name, "it is less than 1",
                                       "a mesh has one core or more in each direction")
    extents = list(given.values())
    if context.mesh is None:
        for name, extent in given.items():
            if extent is None:
                raise error("MissingArgument", context.span(arguments.call), function=arguments.construct.text,
                            parameter=name, parameters=arguments.construct.parameter_text)
        context.mesh = _core.MeshShape(extents, ["x", "y"])
    elif extents != [None, None] and extents != context.mesh.extents:
        node = next(arguments[name] for name in given if name in arguments.nodes)
        raise context.bad_argument(node, arguments.construct.text, "nrows", f"the function's mesh is {context.mesh}",
                                   "leave nrows and ncols out, or make them equal to the mesh")


def _placement(
    expressions: Expressions, key_node: ast.expr, key: Any, value_node: ast.expr, value: Any
) -> _core.MeshTensor:
    """One entry of the annotation: `{"sharding": {axis: dimension}, "tiling": [extent, ...]}` of a tensor parameter."""
    context = expressions.context
    text = language.annotate_mesh_tensor.text

    def refuse(node: ast.expr, reason: str) -> Exception:
        return context.bad_argument(node, text, "annotations", reason,
                                    'write {A: {"sharding": {"x": 0}, "tiling": [32, 32]}}')

    tensors = [p for p in context.params if isinstance(p, _core.Buffer)]
    tensor = next((p for p in tensors if p == key or (isinstance(key, str) and p.name == key)), None)
    if tensor is None:
        raise refuse(key_node, "it is not a tensor parameter")
    if context.mesh_tensor_of(tensor) is not None:
        raise refuse(key_node, "the tensor is annotated twice")
    if not isinstance(value, dict) or set(value) != {"sharding", "tiling"}:
        raise refuse(value_node, 'an entry has the keys "sharding" and "tiling"')
    parts = {"sharding": value_node, "tiling": value_node}
    if isinstance(value_node, ast.Dict):
        parts.update({expressions.evaluate(k): v for k, v in zip(value_node.keys, value_node.values)})
    sharding = _sharding(context, tensor, parts["sharding"], value["sharding"], refuse)
    tiling = [number(t) for t in value["tiling"]] if isinstance(value["tiling"], (tuple, list)) else []
    if len(tiling) != tensor.rank or not all(type(t) is int and 1 <= t < 2**31 for t in tiling):
        raise refuse(parts["tiling"], f"tiling has one constant of 1 or more for each of the {tensor.rank} dimensions")
    return _core.MeshTensor(tensor, sharding, tiling, context.span(key_node))


def _sharding(context: Context, tensor: _core.Buffer, node: ast.expr, value: Any, refuse) -> list[tuple[str, int]]:
    if not isinstance(value, dict):
        raise refuse(node, "sharding maps mesh axes to dimensions")
    keys = dict(zip(value, node.keys)) if isinstance(node, ast.Dict) else {}
    items = dict(zip(value, node.values)) if isinstance(node, ast.Dict) else {}
    for axis, dim in value.items():
        if axis not in context.mesh.names:
            raise error("UnknownMeshAxis", context.span(keys.get(axis, node)), axis=axis,
                        axes=", ".join(f'"{name}"' for name in context.mesh.names))
        if type(number(dim)) is not int or not 0 <= number(dim) < tensor.rank:
            raise error("ShardedDimension", context.span(items.get(axis, node)), tensor=tensor.name, dim=dim,
                        rank=tensor.rank)
    return [(axis, number(value[axis])) for axis in context.mesh.names if axis in value]


# -- aliasing and assumptions ------------------------------------------------------------------------------------------


def may_alias(expressions: Expressions, call: ast.Call) -> None:
    """Adds the tensors of the call to those that may share memory; the verifier knows which may be named."""
    context = expressions.context
    function = language.may_alias
    arguments = match(context, function, call)
    _require_head(context, function, call)
    if not arguments.rest:
        raise error("MissingArgument", context.span(call), function=function.text, parameter="tensors",
                    parameters=function.parameter_text)
    buffers = []
    for node in arguments.rest:
        buffer = expressions.evaluate(node)
        if not isinstance(buffer, _core.Buffer):
            raise context.bad_argument(node, function.text, "tensors", "it is no tensor parameter",
                                       "name tensor parameters of the function")
        buffers.append(buffer)
    places = [context.span(node) for node in arguments.rest]
    context.may_alias.append(_core.MayAlias(buffers, places, context.span(call.func)))


def assume(expressions: Expressions, call: ast.Call) -> None:
    """Adds a condition of every call; the verifier knows what it may consist of."""
    context = expressions.context
    function = language.assume
    node = match(context, function, call)["condition"]
    _require_head(context, function, call)
    value = expressions.evaluate(node)
    if value is True:
        return
    if not isinstance(value, _core.Expr):
        reason = "it never holds" if value is False else "it is no condition"
        raise context.bad_argument(node, function.text, "condition", reason,
                                   "compare extents, constants and integer parameters")
    context.assumptions.append(_core.Assumption(value, context.span(call)))


def _require_head(context: Context, function: Construct, call: ast.Call) -> None:
    if not context.at_head:
        raise error("OperationScope", context.span(call), operation=function.text,
                    scope="block" if context.kernel_vars is not None else "host",
                    remedy="write it at the head of the function")
