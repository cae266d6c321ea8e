"""Statements and loops: each construct builds the IR that it stands for, and prints to a text that reads back equal."""

import helve
import pytest
from helve import T, _core

HEAD = """\
@T.prim_func
def main(A: T.Tensor((64, 64), "float32"), I: T.Tensor((64,), "int32"), s: T.float32, n: T.index):
"""


def function(body, head=HEAD):
    """The function whose body is the given lines; it reads back equal from its own text."""
    parsed = helve.parse(head + "\n".join("    " + line for line in body.strip("\n").split("\n")) + "\n")
    again = helve.parse(parsed.script())
    assert _core.structural_equal(parsed.function, again.function) == (True, "")
    assert again.script() == parsed.script()
    return parsed.function


def in_kernel(body, head=HEAD):
    """The statements of a kernel's body."""
    lines = ["with T.Kernel(2) as bx:", *("    " + line for line in body.strip("\n").split("\n"))]
    kernel = function("\n".join(lines), head)
    body = kernel.body.body
    return body.stmts if isinstance(body, _core.Seq) else [body]


def text(value):
    return [str(item) for item in value] if isinstance(value, list) else str(value)


def test_parameters():
    f = function("pass", 'M = T.dyn("M")\nN = T.dyn("N")\n@T.prim_func\ndef main(A: T.Tensor((N, 2 * M), "bfloat16", '
                 'strides=(9000, 1)), s: T.int8, B: T.Tensor((M, 3))):\n')
    assert f.name == "main"
    assert [dim.name for dim in f.dims] == ["N", "M"]
    a, s, b = f.params
    assert (a.name, a.dtype, a.scope) == ("A", "bfloat16", "param")
    assert (text(a.shape), text(a.strides)) == (["N", "2 * M"], ["9000", "1"])
    assert isinstance(s, _core.Var) and s.dtype == "int8"
    assert (b.dtype, b.strides) == ("float32", [])
    assert isinstance(f.body, _core.Seq) and f.body.stmts == []


@pytest.mark.parametrize(
    "call, scope, shape, tile",
    [
        ('T.alloc_shared((4, 5), "int8")', "shared", ["4", "5"], []),
        ('T.alloc_shared((4, 5), "int8", scope="shared.dyn")', "shared", ["4", "5"], []),
        ('T.alloc_fragment((7,), "int8")', "fragment", ["7"], []),
        ('T.alloc_fragment(7, "int8")', "fragment", ["7"], []),
        ('T.alloc_local((1,), "int8")', "local", ["1"], []),
        ('T.alloc_shared_tiles((128,), "int8")', "shared", ["128"], [32]),
        ('T.alloc_shared_tiles((128,), "int8", tile_size=(16, 1))', "shared", ["128"], [16]),
        ('T.alloc_shared_tiles((128,), "int8", tile_size=(16,))', "shared", ["128"], [16]),
        ('T.alloc_shared_tiles((100, 1), "int8")', "shared", ["100", "1"], [32, 32]),
        ('T.alloc_shared_tiles((2, 3, 64, 64), "int8")', "shared", ["2", "3", "64", "64"], [1, 1, 32, 32]),
        ('T.alloc_shared_tiles((3, 64, 64), "int8", tile_size=(16, 8))', "shared", ["3", "64", "64"], [1, 16, 8]),
        ('T.alloc_shared_tiles((3, 64, 64), "int8", tile_size=(3, 16, 8))', "shared", ["3", "64", "64"], [3, 16, 8]),
    ],
)
def test_allocations(call, scope, shape, tile):
    (alloc,) = in_kernel(f"S = {call}")
    buffer = alloc.buffer
    assert (buffer.name, buffer.dtype) == ("S", "int8")
    assert (buffer.scope, text(buffer.shape), buffer.tile) == (scope, shape, tile)


@pytest.mark.parametrize(
    "dtype, full",
    [('"float"', "float32"), ('"int"', "int32"), ("T.bfloat16", "bfloat16"), ("A.dtype", "float32")],
)
def test_dtypes_have_spellings(dtype, full):
    (alloc,) = in_kernel(f"S = T.alloc_shared((4,), {dtype})")
    assert alloc.buffer.dtype == full


def test_global_allocation_stands_in_the_host_body():
    alloc, kernel = function('G = T.alloc_global((8,), "float16")\nwith T.Kernel(8) as b:\n    G[b] = 0.5').body.stmts
    assert alloc.buffer.scope == "global"
    assert kernel.body.buffer == alloc.buffer and kernel.body.value.dtype == "float16"


@pytest.mark.parametrize(
    "header, kind, begins, extents",
    [
        ("i in T.serial(8)", "serial", ["0"], ["8"]),
        ("i in T.serial(2, 8)", "serial", ["2"], ["6"]),
        ("i in T.range(n)", "serial", ["0"], ["n"]),
        ("i in range(n, 2 * n)", "serial", ["n"], ["2 * n - n"]),
        ("i in T.serial(n, n + 4)", "serial", ["n"], ["4"]),
        ("i in T.unroll(4)", "unroll", ["0"], ["4"]),
        ("i in T.vectorized(4)", "vectorized", ["0"], ["4"]),
        ("i in T.Parallel(8)", "Parallel", ["0"], ["8"]),
        ("i, j in T.Parallel((1, 8), n)", "Parallel", ["1", "0"], ["7", "n"]),
        ("i in T.Persistent([8])", "Persistent", ["0"], ["8"]),
        ("i, j in T.Persistent([8, (2, n)])", "Persistent", ["0", "2"], ["8", "n - 2"]),
        ("i in T.Persistent(8)", "Persistent", ["0"], ["8"]),
        ("i in T.serial(0)", "serial", ["0"], ["0"]),
    ],
)
def test_loops(header, kind, begins, extents):
    (loop,) = in_kernel(f"for {header}:\n    pass")
    assert (loop.loop, text(loop.begins), text(loop.extents)) == (kind, begins, extents)
    assert [var.name for var in loop.vars] == header.partition(" in ")[0].split(", ")
    assert loop.num_stages == 1


def test_pipelined():
    (loop,) = in_kernel("for k in T.Pipelined(n, num_stages=3):\n    pass")
    assert (loop.loop, loop.num_stages, text(loop.extents)) == ("Pipelined", 3, ["n"])
    (loop,) = in_kernel("for k in T.Pipelined(1, n):\n    pass")
    assert (loop.num_stages, text(loop.begins), text(loop.extents)) == (1, ["1"], ["n - 1"])


@pytest.mark.parametrize(
    "start, stop, step", [(0, 10, 3), (1, 10, 3), (0, 9, 3), (5, 5, 2), (7, 2, -2), (2, 7, -1), (0, 1, 5)]
)
def test_steps_are_normalised(start, stop, step):
    """The loop visits the values of Python's range, in its order."""
    (loop,) = in_kernel(f"for i in range({start}, {stop}, {step}):\n    A[i, 0] = 1.0")
    index = loop.body.indices[0]

    def value(expr, i):
        if isinstance(expr, _core.IntImm):
            return expr.value
        if isinstance(expr, _core.Var):
            return i
        left, right = (value(arg, i) for arg in expr.args)
        return {"Add": left + right, "Mul": left * right}[expr.op]

    assert text(loop.begins) == ["0"]
    assert [value(index, i) for i in range(loop.extents[0].value)] == list(range(start, stop, step))


def test_a_step_over_a_dynamic_range():
    (loop,) = in_kernel("for i in T.serial(2, n, 4):\n    A[i, 0] = 1.0")
    assert text(loop.extents) == ["(n - 2 + 4 - 1) // 4"]
    assert str(loop.body.indices[0]) == "2 + i * 4"


def test_tile_loop():
    alloc, copy, loop = in_kernel(
        'X = T.alloc_shared_tiles((64, 64), "float32")\nT.copy(A, X)\n'
        "for i, j in T.foreach_tile(X, parallel=True):\n    X[i, j] += X[i, j] * s"
    )
    assert isinstance(loop, _core.ForTiles) and loop.parallel and loop.buffer == alloc.buffer
    assert isinstance(loop.body, _core.TileStore)
    assert str(loop.body.value) == "X[i, j] + X[i, j] * s"
    assert isinstance(loop.body.value.args[0], _core.TileLoad)
    loop = in_kernel('X = T.alloc_shared_tiles((4,), "int8")\nfor i in T.foreach_tiles(X):\n    X[i] = 1')[1]
    assert loop.parallel is False


def test_branches():
    (branch,) = in_kernel(
        "if n > 4:\n    A[0, 0] = 1.0\nelif n > 2:\n    A[0, 1] = 1.0\n    A[0, 2] = 1.0\nelse:\n    pass"
    )
    assert isinstance(branch.then_body, _core.Store)
    inner = branch.else_body
    assert isinstance(inner, _core.If) and len(inner.then_body.stmts) == 2 and inner.else_body.stmts == []
    (branch,) = in_kernel("if n > 4:\n    pass")
    assert branch.else_body is None


def test_while():
    (loop,) = in_kernel("while I[0] > 0:\n    I[0] -= 1")
    assert isinstance(loop, _core.While) and str(loop.condition) == "I[0] > 0"
    assert str(loop.body.value) == "I[0] - 1"
    (loop,) = in_kernel("while True:\n    I[0] = 1")
    assert isinstance(loop.condition, _core.IntImm) and loop.condition.dtype == "bool"


def test_grids():
    f = function("with T.Kernel(n, 4, threads=256) as (x, y):\n    pass")
    assert (text(f.body.extents), f.body.threads, [v.name for v in f.body.vars]) == (["n", "4"], 256, ["x", "y"])
    f = function("with T.Kernel(3):\n    pass")
    assert (len(f.body.vars), f.body.threads) == (1, 128)
    f = function("with T.Kernel(3) as (b,):\n    pass")
    assert [v.name for v in f.body.vars] == ["b"]


def test_bindings():
    first, second, store = in_kernel("x = A[0, 0]\nx = x + 1\nA[0, 1] = x")
    assert isinstance(first, _core.Bind) and isinstance(second, _core.Bind)
    assert first.var != second.var and second.value.args[0] == first.var
    assert store.value == second.var
    bind, store = in_kernel("x = s\nx *= 2\nA[0, 0] = x")[1:]
    assert str(bind.value) == "x * 2.0" and store.value == bind.var


def test_swapped_bindings_read_their_values_first():
    a, b, new_a, new_b = in_kernel("a = A[0, 0]\nb = A[0, 1]\na, b = b, a")
    assert new_a.value == b.var and new_b.value == a.var


def test_constants_stay_constants():
    """A number behind a name takes the type of its neighbour, and serves where a constant is wanted."""
    alloc, store = in_kernel(
        'size = 2 * 8\nhalf, one = size // 2, 1\nS = T.alloc_shared((size, half), "float16")\nS[one, 0] = one'
    )
    assert text(alloc.buffer.shape) == ["16", "8"]
    assert isinstance(store.value, _core.FloatImm) and store.value.dtype == "float16"


def test_a_typed_constant_is_a_variable():
    bind, store = in_kernel("k = T.index(5)\nA[k, 0] = 1.0")
    assert bind.var.dtype == "index" and store.indices[0] == bind.var


def test_annotated_assignment():
    (bind,) = in_kernel("x: T.float64 = 1")
    assert (bind.var.dtype, bind.value.value) == ("float64", 1.0)


def test_compile_time_branches_leave_their_names():
    store, = in_kernel("if 2 > 1:\n    v = 3\nelse:\n    v = missing\nA[0, v] = 1.0")
    assert str(store.indices[1]) == "3"


def test_docstrings_and_pass_build_nothing():
    assert in_kernel('"""What it does."""\npass') == []


def test_regions():
    copy, = in_kernel("T.copy(A[n, 0:32], A[n + 1, 32:64])")
    src, dst = copy.operands[:2]
    assert [(str(r.begin), str(r.extent), r.point) for r in src.ranges] == [("n", "1", True), ("0", "32", False)]
    assert [(str(r.begin), str(r.extent), r.point) for r in dst.ranges] == [("n + 1", "1", True), ("32", "32", False)]
    fill, = in_kernel("T.fill(A[n:n + 4, :], 1)")
    assert [(str(r.begin), str(r.extent)) for r in fill.operands[0].ranges] == [("n", "4"), ("0", "64")]
    fill, = in_kernel("T.fill(A[2:, :n], 1)")
    assert [(str(r.begin), str(r.extent)) for r in fill.operands[0].ranges] == [("2", "62"), ("0", "n")]
    fill, = in_kernel("T.fill(A, 1)")
    assert fill.operands[0].whole


def test_values_of_operations_take_the_written_type():
    alloc, fill, copy = in_kernel(
        'B = T.alloc_shared((4,), "bfloat16")\nT.fill(B, 1)\nT.copy(A[0, 0:4], B, pad=-T.infinity())'
    )
    assert (fill.operands[1].dtype, fill.operands[1].value) == ("bfloat16", 1.0)
    assert (copy.operands[2].dtype, copy.operands[2].value) == ("bfloat16", float("-inf"))
    alloc, copy = in_kernel('B = T.alloc_shared((64,), "int32")\nT.copy(I, B)')
    assert (copy.operands[2].dtype, copy.operands[2].value) == ("int32", 0)


# -- meshes -----------------------------------------------------------------------------------------------------------

MESH = '@T.prim_func\ndef main(A: T.Tensor((100, 70), "float32"), B: T.Tensor((100,), "float32")):\n'
PLACED = ('T.annotate_mesh_tensor({A: {"sharding": {"y": 1, "x": 0}, "tiling": [16, 16]}, '
          '"B": {"sharding": {"y": 0}, "tiling": (8,)}}, nrows=2, ncols=3)\n')


def test_mesh_annotations():
    f = function(PLACED + "with T.Kernel(2, 3) as (r, c):\n    pass", MESH)
    assert (f.mesh.extents, f.mesh.names) == ([2, 3], ["x", "y"])
    a, b = f.mesh_tensors
    assert (a.buffer, a.sharding, a.tiling) == (f.params[0], [("x", 0), ("y", 1)], [16, 16])
    assert (b.buffer, b.sharding, b.tiling) == (f.params[1], [("y", 0)], [8])


def test_sharded_and_local_shapes():
    f = function(PLACED + "m, k = T.get_sharded_shape(A)\nwith T.Kernel(2, 3) as (r, c):\n"
                 '    S = T.alloc_shared((m, k), "float32")\n    p, q = T.local_shape(B)[0], T.local_shape(A)[1]', MESH)
    alloc, p, q = f.body.body.stmts
    assert text(alloc.buffer.shape) == ["50", "24"]
    assert (str(p.value), str(q.value)) == ("T.max(0, T.min(34, 100 - c * 34))", "T.max(0, T.min(24, 70 - c * 24))")


def test_gather_spellings():
    body = PLACED + 'with T.Kernel(2, 3) as (r, c):\n    P = T.alloc_shared((8,), "float32")\n' \
        '    X = T.alloc_shared((8, 2), "float32")\n    Y = T.alloc_shared((8, 3), "float32")\n    '
    sugar = function(body + "T.comm.row_allgather(P, X)\n    T.comm.col_allgather(send=P, recv=Y)", MESH)
    plain = function(body + 'T.comm.all_gather(P, X, axis="x")\n    T.comm.all_gather(P, Y, "y")', MESH)
    assert _core.structural_equal(sugar, plain) == (True, "")


def test_a_mesh_without_annotations():
    head = '@T.prim_func(mesh=T.Mesh((4,), ("ring",)))\ndef main():\n'
    f = function("with T.Kernel(4) as c:\n    T.comm.barrier()", head)
    assert (f.mesh.extents, f.mesh.names) == ([4], ["ring"])


def test_difference_is_located():
    a = helve.parse(HEAD + "    with T.Kernel(2) as bx:\n        A[0, bx] = 1.0\n")
    b = helve.parse(HEAD + "    with T.Kernel(2) as bx:\n        A[0, bx] = 2.0\n")
    same, path = _core.structural_equal(a.function, b.function)
    assert not same and path.startswith("body.body.value")


def test_every_tile_operation_is_parsed_by_its_row():
    """Each row of the table is a name below T that builds its opcode with one operand for each parameter."""
    operands = dict.fromkeys(("In", "Out", "InOut"), "A")
    operands |= {"Value": "1", "Source": "1", "Coord": "[0, 0]", "Integer": "0", "Flag": "True", "Text": '"x"',
                 "Axes": '"x"', "Index": "0", "Map": "lambda k: k", "Layout": "'S[4 : 1@tx]'", "Barriers": "A"}
    for name, python, _, params, _ in _core.tile_op_rows():
        arguments = ", ".join(f"{param}={operands[kind]}" for kind, param, _, _ in params)
        try:
            helve.parse(f'@T.prim_func\ndef main(A: T.Tensor((4, 4), "float32")):\n    T.{python}({arguments})\n')
        except helve.Error as error:  # the verifier refuses most of them here; the parser must not
            assert not 100 <= int(error.code[2:]) < 200, str(error)
        assert repr(eval(f"T.{python}", {"T": T})) == f"T.{python}"
