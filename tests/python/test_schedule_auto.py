"""`s.auto()`: what it makes of programs, and that results stay what they are.

Results are NumPy's and the interpreter's; that steps are proved is the matter of the other tests of schedules.
"""

from types import SimpleNamespace

import helve
import helve.testing
import numpy as np
import pytest
from helve import _core
from helve.schedule.auto import order


def nest(spec, *arrays):
    """The plain loops of a contraction."""
    dtypes, shapes = [str(x.dtype) for x in arrays], [x.shape for x in arrays]
    return helve.Schedule(_core.einsum(spec, dtypes, shapes, [], _core.Span(), nest=True)[0])


def whole(seed, *shape, dtype="float32"):
    """Small whole numbers, whose products and sums are exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


PRODUCTS = [
    ("ij,jk->ik", (64, 64), (64, 64)),
    ("ij,jk->ik", (37, 41), (41, 53)),
    ("ij,jk->ik", (101, 7), (7, 103)),
    ("ij,jk->ik", (1, 300), (300, 97)),
    ("ij,jk->ik", (300, 97), (97, 1)),
    ("ij,jk->ik", (7, 500), (500, 16)),
    ("ij,jk->ik", (3, 900), (900, 15)),
    ("ij,kj->ik", (50, 60), (70, 60)),
    ("ki,kj->ij", (60, 50), (60, 70)),
    ("bij,bjk->bik", (5, 33, 17), (5, 17, 40)),
    ("ijk,kl->ijl", (9, 13, 21), (21, 40)),
    ("ijk,jr,kr->ir", (19, 14, 15), (14, 23), (15, 23)),
    ("ijk,k->ij", (20, 30, 40), (40,)),
    ("i,ij->j", (133,), (133, 261)),
    ("ij->i", (200, 133), ),
    ("ij->j", (200, 133), ),
    ("ij->", (200, 133), ),
    ("ij,ij->", (200, 133), (200, 133)),
    ("ij->ji", (130, 150)),
    ("i,j->ij", (130,), (150,)),
    ("ij,jk->ki", (64, 40), (40, 50)),
    ("ij,jk->ik", (64, 0), (0, 64)),
    ("ij,jk->ik", (0, 64), (64, 64)),
]


@pytest.mark.parametrize("case", PRODUCTS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_contractions(case, dtype):
    spec, *shapes = case
    arrays = [whole(n, *shape, dtype=dtype) for n, shape in enumerate(shapes)]
    s = nest(spec, *arrays)
    s.auto()
    wanted = np.einsum(spec, *arrays)
    got = np.empty(wanted.shape, dtype)
    helve.compile(s)(*arrays, got)
    np.testing.assert_array_equal(got, wanted, err_msg=s.script())
    assert not s.proofs()
    again = s.version(0)
    again.replay(helve.Trace.from_json(s.trace().json()))
    assert again.script() == s.script()


@pytest.mark.parametrize("spec, shapes", [("ij,jk->ik", ((31, 47), (47, 33))), ("ij,j->i", ((31, 47), (47,)))])
def test_sums_that_are_rounded_once(spec, shapes):
    arrays = [whole(n, *shape, dtype="float16") for n, shape in enumerate(shapes)]
    s = nest(spec, *arrays)
    s.auto()
    wanted = np.einsum(spec, *arrays, dtype="float32").astype("float16")
    got = np.empty(wanted.shape, "float16")
    helve.compile(s)(*arrays, got)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("sizes", [(37, 65, 50), (6, 16, 40), (1, 1, 1), (0, 5, 5), (5, 0, 5), (5, 5, 0), (90, 3, 70)])
def test_extents_that_only_a_call_knows(sizes):
    i, j, k = helve.indices("i j k")
    M, N, K = (helve.T.dyn(name) for name in "MNK")
    A, B, C = helve.tensor("A", (M, K)), helve.tensor("B", (K, N)), helve.tensor("C", (M, N))
    C[i, j] = A[i, k] * B[k, j]
    s = helve.Schedule(helve.function(C).nest)
    s.auto()
    assert "unroll" in str(s.trace())
    m, n, p = sizes
    a, b, c = whole(0, m, p), whole(1, p, n), np.full((m, n), 7, "float32")
    for target in ("llvm", "interp"):
        helve.compile(s, target)(a, b, c)
        np.testing.assert_array_equal(c, a @ b)


def test_several_statements():
    i, j, k = helve.indices("i j k")
    A, D, E, F = (helve.tensor(name, (70, 70)) for name in "ADEF")
    D[i, j] = A[i, k] * A[k, j]
    E[i, j] = D[i, j] + 1.0
    F[i, j] = E[i, k] * A[j, k]
    a, f = whole(0, 70, 70), np.empty((70, 70), "float32")
    helve.compile(helve.function(F))(a, f)
    np.testing.assert_array_equal(f, (a @ a + 1) @ a.T)


def written(lines, signature="A: T.Tensor((200, 96), 'int32'), B: T.Tensor((200, 96), 'int32')"):
    text = "".join(f"    {line}\n" for line in lines)
    return helve.Schedule(helve.parse(f"@T.prim_func\ndef f({signature}):\n{text}"), check=False)


def same(s):
    """The program as it is now does what the one before did."""
    wanted, got = (helve.testing.make_arguments(s) for _ in range(2))
    helve.testing.interpret(s.version(0), *wanted)
    helve.compile(s)(*got)
    for a, b in zip(got, wanted):
        np.testing.assert_array_equal(a, b, err_msg=s.script())


def test_a_recurrence_keeps_its_order():
    s = written(["with T.Kernel(1):", "    for i in T.serial(199):", "        for j in T.serial(96):",
                 "            A[i + 1, j] = A[i, j] + B[i, j]"])
    s.auto()
    assert "bind(s.loop(\"j" in str(s.trace()) and "bind(s.loop(\"i" not in str(s.trace())
    same(s)


@pytest.mark.parametrize("inside", [
    ["X = T.alloc_local((1,), 'int32')", "X[0] = 0", "while X[0] < 9:", "    X[0] = X[0] + 1", "A[i, 0] = X[0]"],
    ["X = T.alloc_shared((96,), 'int32')", "T.copy(B[i, 0:96], X)", "for j in T.Parallel(96):", "    A[i, j] = X[j]"],
    ["if i < 5:", "    A[i, 0] = B[i, 0]"],
])
def test_what_is_no_nest_gets_blocks(inside):
    s = written(["with T.Kernel(1):", "    for i in T.serial(200):", *(f"        {line}" for line in inside)])
    s.auto()
    assert str(s.trace()) == "s.bind(s.loop(\"i\"), to=\"block\")\n"
    same(s)


def test_statements_beside_each_other_stay():
    s = written(["with T.Kernel(1):", "    for i in T.serial(200):", "        A[i, 0] = 1",
                 "    for j in T.serial(200):", "        B[j, 0] = A[j, 0]"])
    s.auto()
    assert len(s) == 0


def test_small_programs_stay():
    s = nest("ij,jk->ik", whole(0, 4, 4), whole(1, 4, 4))
    s.auto()
    assert len(s) == 0


def test_transposed_loops_get_lanes_where_elements_are_neighbours():
    s = written(["with T.Kernel(1):", "    for j in T.serial(96):", "        for i in T.serial(200):",
                 "            A[i, j] = B[i, j] + 1"])
    s.auto()
    assert "T.vectorized" in s.script()
    inner = [line for line in s.script().splitlines() if "T.vectorized" in line]
    assert "for j" in inner[0]
    same(s)


def test_rows_of_one_operand_become_a_reduction_of_the_target():
    s = nest("ij->i", whole(0, 200, 133))
    s.auto()
    assert "T.reduce_sum(x0[i, :], out[i], clear=False)" in s.script() and "T.Kernel(200)" in s.script()
    s = written(["with T.Kernel(1):", "    for i in T.serial(200):", "        for j in T.serial(96):",
                 "            T.update(A[i, 0], B[i, j], 'max')"])
    s.auto()
    assert "T.reduce_max(B[i, :], A[i, 0], clear=False)" in s.script()
    same(s)


def test_plain_sums_of_floats_keep_their_order():
    s = written(["with T.Kernel(1):", "    for i in T.serial(200):", "        A[i, 0] = 0.0",
                 "        for j in T.serial(96):", "            A[i, 0] = A[i, 0] + B[i, j] * B[i, j]"],
                "A: T.Tensor((200, 96), 'float32'), B: T.Tensor((200, 96), 'float32')")
    s.auto()
    assert "rfactor" not in str(s.trace()) and "tensorize" not in str(s.trace())
    assert all(step.effect == "equal" for step in s.report())
    same(s)


def test_rows_that_share_an_operand_have_partial_results_in_lanes():
    s = nest("ij,j->i", whole(0, 200, 133), whole(1, 133))
    s.auto()
    assert "T.Kernel(25)" in s.script() and "out_local = T.alloc_local((8, " in s.script()
    assert {step.effect for step in s.report()} == {"equal", "reassociated"}


def test_vectors_times_matrices_stream_whole_rows():
    s = nest("i,ij->j", whole(0, 333), whole(1, 333, 4000))
    s.auto()
    script = s.script()
    assert "rfactor" not in str(s.trace()) and "x1[io * 4 + 3, " in script and "T.vectorized" in script


def test_few_elements_of_many_terms_are_reduced_in_parts():
    s = nest("i,i->", whole(0, 200003), whole(1, 200003))
    s.auto()
    assert "T.alloc_global(" in s.script() and "scope=\"global\"" in str(s.trace())
    got = np.empty((), "float32")
    a, b = whole(0, 200003), whole(1, 200003)
    helve.compile(s)(a, b, got)
    assert got == np.einsum("i,i->", a, b)


def test_transposes_pass_through_square_tiles():
    s = nest("ij->ji", whole(0, 150, 132))
    s.auto()
    assert "x0_local = T.alloc_local((16, 16), \"float32\")" in s.script()


def test_einsum_takes_a_schedule():
    a, b = whole(0, 65, 66), whole(1, 66, 67)
    seen = []

    def rows(s):
        seen.append(s)
        s.bind("i")

    for schedule in (None, "auto", rows, rows):
        np.testing.assert_array_equal(helve.einsum("ij,jk->ik", a, b, schedule=schedule), a @ b)
    assert len(seen) == 1
    with pytest.raises(helve.Error) as caught:
        helve.einsum("ij,jk->ik", a, b, schedule="fast")
    assert "schedule" in caught.value.message


@pytest.mark.parametrize("processors", [2, 16, 64])
@pytest.mark.parametrize("shapes", [((384, 320), (320, 256)), ((391, 320), (320, 250)), ((24, 320), (320, 256))])
def test_a_block_copies_a_panel_however_many_processors_there_are(processors, shapes):
    """Too few panels for the processors are not a reason to copy all of the operand for each block of rows."""
    host = _core.host_machine()
    facts = {name: getattr(host, name) for name in dir(host) if not name.startswith("_")}
    machine = SimpleNamespace(**{**facts, "processors": processors, "second_cache": 2 << 20, "vector_bytes": 32})
    a, b = whole(1, *shapes[0]), whole(2, *shapes[1])
    s = nest("ij,jk->ik", a, b)
    order(s, s._now, machine)
    copies = [line for line in s.script().splitlines() if "x1_local" in line and "alloc_local" in line]
    assert all("(320, 16)" in line for line in copies), copies
    grid = next(line for line in s.script().splitlines() if "T.Kernel" in line)
    blocks = np.prod([int(n) for n in grid.partition("(")[2].partition(")")[0].split(",")])
    assert blocks >= min(processors * 2, -(-shapes[0][0] // 6) * 15), grid
    out = np.empty((a.shape[0], b.shape[1]), "float32")
    helve.compile(s)(a, b, out)
    assert (out == a @ b).all()
