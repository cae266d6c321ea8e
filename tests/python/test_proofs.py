"""What kernel.proofs() says, and that proofs never refuse what runs.

Verdicts of whole programs; the texts of refused ones stand in tests/errors/proofs.cases.
"""

import helve
import numpy as np
import pytest
from helve import T


def proofs(function, kind, **options):
    kernel = helve.compile(function, target="interp", **options)
    return [(p.question, p.verdict, p.reason) for p in kernel.proofs() if p.kind == kind]


def test_a_guarded_loop_is_proved():
    @T.prim_func
    def main(A: T.Tensor((100,), "float32")):
        with T.Kernel(2) as b:
            for i in T.Parallel(64):
                if b * 64 + i < 100:
                    A[b * 64 + i] = 0.0

    assert proofs(main, "bounds") == [("A[b * 64 + i] is inside (100,)", "proved", "")]
    assert proofs(main, "race") == [
        ("blocks b are independent", "proved", ""),
        ("iterations i are independent", "proved", ""),
    ]


def test_an_unknown_answer_compiles_and_has_a_place():
    @T.prim_func
    def main(idx: T.Tensor((8,), "int32"), A: T.Tensor((8,), "float32")):
        with T.Kernel(1) as b:
            for i in T.Parallel(8):
                A[T.index(idx[i])] = 1.0

    unknown = [p for p in helve.compile(main, target="interp").proofs() if p.verdict == "unknown"]
    assert [p.kind for p in unknown] == ["bounds", "race"]
    line = test_an_unknown_answer_compiles_and_has_a_place.__code__.co_firstlineno
    assert [p.lineno - line for p in unknown] == [5, 4]
    assert unknown[0].filename == __file__
    assert "is not affine" in unknown[0].reason
    assert repr(unknown[0]).startswith("<unknown bounds: A[")
    assert f"({__file__}:{line + 5}:{unknown[0].column})" in repr(unknown[0])


def test_a_guard_on_constant_data_counts_and_on_changing_data_does_not():
    def program(changes):
        @T.prim_func
        def main(idx: T.Tensor((8,), "int32"), A: T.Tensor((8,), "float32")):
            with T.Kernel(1) as b:
                for i in T.serial(8):
                    if T.index(idx[i]) >= 0 and T.index(idx[i]) < 8:
                        if changes:
                            idx[i] = idx[i] + 1
                        A[T.index(idx[i])] = 1.0

        return main

    assert {verdict for _, verdict, _ in proofs(program(False), "bounds")} == {"proved"}
    assert proofs(program(True), "bounds")[-1][1] == "unknown"


def test_times_name_the_stage():
    @T.prim_func
    def main(A: T.Tensor((1,), "float32")):
        with T.Kernel(1) as b:
            A[b] = 0.0

    assert [stage for stage, _ in helve.compile(main, target="interp").times()][:2] == ["verify", "proofs"]


@pytest.mark.parametrize("extent", [0, 1])
def test_a_loop_without_two_iterations_has_no_race(extent):
    @T.prim_func
    def main(A: T.Tensor((1,), "float32")):
        with T.Kernel(1) as b:
            for i in T.Parallel(extent):
                A[0] = 0.0

    assert proofs(main, "race")[-1][1] == "proved"


def test_the_reason_is_what_keeps_the_question_open():
    """A loaded value that decides nothing is no reason; the subscript that is not affine is."""
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(1):
            s = T.alloc_shared((64,), "int32")
            T.copy(A, s)
            for i in T.Parallel(64):
                x = s[i]
                s[i ^ 4] = x
            T.copy(s, A)

    unknown = [p for p in helve.compile(main, target="interp").proofs() if p.verdict == "unknown"]
    assert [(p.kind, p.reason) for p in unknown] == [("race", "'i ^ 4' is not affine")]


def copies_of_a_block(body):
    mesh = helve.Mesh((2, 2), ("x", "y"))

    @T.prim_func(mesh=mesh)
    def main(A: T.Tensor((4, 4), "float32"), B: T.Tensor((4, 4), "float32")):
        T.annotate_mesh_tensor({A: {"sharding": {"x": 0}, "tiling": [2, 4]},
                                B: {"sharding": {"x": 0, "y": 1}, "tiling": [2, 2]}}, nrows=2, ncols=2)
        with T.Kernel(2, 2) as (r, c):
            s = T.alloc_shared_tiles((2, 4), "float32", tile_size=(2, 4))
            t = T.alloc_shared_tiles((2, 2), "float32", tile_size=(2, 2))
            T.clear(t)
            T.fill(s, T.cast(c, "float32"))
            if body == "all":
                T.mesh_tensor_copy(s, A, coord=[0, 0])
            if body == "one of them":
                if c == 0:
                    T.mesh_tensor_copy(s, A, coord=[0, 0])
            if body == "one, and others read":
                T.mesh_tensor_copy(A, s, coord=[0, 0])
                if c == 0:
                    T.mesh_tensor_copy(s, A, coord=[0, 0])
            if body == "blocks of their own":
                T.mesh_tensor_copy(t, B, coord=[0, 0])
            if body == "all read":
                T.mesh_tensor_copy(A, s, coord=[0, 0])

    return proofs(main, "race", mesh=mesh)[0]


@pytest.mark.parametrize("body, verdict", [
    ("all", "unknown"), ("one of them", "proved"), ("one, and others read", "unknown"),
    ("blocks of their own", "proved"), ("all read", "proved"),
])
def test_cores_that_hold_copies_of_one_block(body, verdict):
    question, found, reason = copies_of_a_block(body)
    assert (question, found) == ("cores r, c are independent", verdict)
    assert reason == ("copies of one block of 'A' are one memory where it is one array, and several cores use them"
                      if verdict == "unknown" else "")


def waits(body):
    """What is proved of the copies to `x` in a kernel of these statements."""
    lines = "\n".join("        " + line for line in body.splitlines())
    function = helve.parse(f"""
N = T.dyn("N")

@T.prim_func
def main(A: T.Tensor((8, 64), "float32"), B: T.Tensor((64,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(1):
        x = T.alloc_shared((2, 64), "float32")
        y = T.alloc_shared((64,), "float32")
        T.clear(y)
{lines}
        T.wait_async()
""")
    (found,) = {(question, verdict) for question, verdict, _ in proofs(function, "async")
                if question == "copies to x are complete where it is used"}
    return found[1]


@pytest.mark.parametrize("verdict, body", [
    ("unknown", "T.copy_async(A[0, :], x[0, :])\nfor i in T.Parallel(64):\n    B[i] = x[0, i]"),
    ("proved", "T.copy_async(A[0, :], x[0, :])\nT.wait_async()\nfor i in T.Parallel(64):\n    B[i] = x[0, i]"),
    # A wait for all but the youngest.
    ("proved", "T.copy_async(A[0, :], x[0, :])\nT.copy_async(B, y)\nT.wait_async(1)\nT.copy(x[0, :], x[1, :])"),
    ("unknown", "T.copy_async(B, y)\nT.copy_async(A[0, :], x[0, :])\nT.wait_async(1)\nT.copy(x[0, :], x[1, :])"),
    # One way waits, the other does not; a loop may run not at all.
    ("unknown", "T.copy_async(A[0, :], x[0, :])\nif C[0] > 0.0:\n    T.wait_async()\nB[0] = x[0, 0]"),
    ("proved", "T.copy_async(A[0, :], x[0, :])\nif C[0] > 0.0:\n    T.wait_async()\nelse:\n    T.wait_async(0)\n"
               "B[0] = x[0, 0]"),
    ("unknown", "T.copy_async(A[0, :], x[0, :])\nfor i in T.serial(N):\n    T.wait_async()\nB[0] = x[0, 0]"),
    ("proved", "T.copy_async(A[0, :], x[0, :])\nfor i in T.serial(2):\n    T.wait_async()\nB[0] = x[0, 0]"),
    # The source is written, or read; the other half is used.
    ("unknown", "T.copy_async(A[0, :], x[0, :])\nA[0, 3] = 1.0"),
    ("proved", "T.copy_async(A[0, :], x[0, :])\nA[1, 3] = A[0, 3]"),
    ("proved", "T.copy_async(A[0, :], x[0, :])\nx[1, 0] = 1.0"),
    ("unknown", "T.copy_async(A[0, :], x[0, :])\nx[0, 63] = 1.0"),
    # A ring: the copy of the next part runs while this one is used.
    ("proved", "T.copy_async(A[0, :], x[0, :])\nfor k in T.serial(8):\n    T.wait_async()\n    if k + 1 < 8:\n"
               "        T.copy_async(A[k + 1, :], x[(k + 1) % 2, :])\n    B[0] = B[0] + x[k % 2, 0]"),
    ("unknown", "T.copy_async(A[0, :], x[0, :])\nfor k in T.serial(8):\n    T.wait_async()\n    if k + 1 < 8:\n"
                "        T.copy_async(A[k + 1, :], x[(k + 1) % 2, :])\n    B[0] = B[0] + x[(k + 1) % 2, 0]"),
    ("unknown", "for k in T.serial(8):\n    if k > 0:\n        B[0] = x[0, 0]\n    T.copy_async(A[k, :], x[k % 2, :])"),
    # Through loops in loops: what an outer iteration began and an inner one uses.
    ("proved", "for k in T.serial(4):\n    T.copy_async(A[k, :], x[k % 2, :])\n    for i in T.serial(64):\n"
               "        B[i] = x[(k + 1) % 2, i]\n    T.wait_async()"),
    ("unknown", "for k in T.serial(4):\n    T.copy_async(A[k, :], x[k % 2, :])\n    for i in T.serial(64):\n"
                "        B[i] = x[(k + 1) % 2, i]"),
    ("unknown", "for k in T.serial(4):\n    for i in T.serial(4):\n        T.copy_async(A[i, :], x[0, :])\n"
                "    B[0] = x[0, 0]\n    T.wait_async()"),
    # Copies of independent iterations wait for a commit.
    ("unknown", "for r in T.Parallel(8):\n    T.copy_async(A[r, 0:4], x[0, r * 4 : r * 4 + 4])\nT.wait_async()\n"
                "B[0] = x[0, 0]\nT.commit_async()"),
    ("proved", "for r in T.Parallel(8):\n    T.copy_async(A[r, 0:4], x[0, r * 4 : r * 4 + 4])\nT.commit_async()\n"
               "T.wait_async()\nB[0] = x[0, 0]"),
])
def test_copies_are_complete_where_their_buffer_is_used(verdict, body):
    assert waits(body) == verdict


def ring(slots, ahead, pending, early, read, form):
    """A ring whose copies begin `ahead` iterations before their slot is read: its text, and whether it may read what
    has not arrived. `read`: the slot that iteration k reads is that of k + read."""
    inside = f"""
            T.wait_async(pending={pending})
            for i in T.Parallel(8):
                B[i] = B[i] + x[{{read}}, i]
            if k + {ahead} < N:
                for r in T.Parallel(2):
                    T.copy_async(A[k + {ahead}, 4 * r : 4 * r + 4], x[{{fill}}, 4 * r : 4 * r + 4])
            T.commit_async()""".format(
        read=f"(k + {read}) % {slots}", fill="slot" if form == "named" else f"(k + {ahead}) % {slots}")
    if form == "named":
        inside = f"\n            slot = (k + {ahead}) % {slots}" + inside
    loop = "for k in T.serial(N):" + inside
    if form == "nested":
        loop = "for z in T.serial(2):\n        " + loop.replace("\n", "\n    ").replace("for k", "    for k", 1)
    text = f"""
N = T.dyn("N")

@T.prim_func
def main(A: T.Tensor((N, 8), "float32"), B: T.Tensor((8,), "float32")):
    with T.Kernel(1):
        x = T.alloc_shared(({slots}, 8), "float32")
        T.clear(x)
        for k in T.serial({early}):
            if k < N:
                for r in T.Parallel(2):
                    T.copy_async(A[k, 4 * r : 4 * r + 4], x[k % {slots}, 4 * r : 4 * r + 4])
            T.commit_async()
        {loop}
        T.wait_async()
"""
    wrong = False
    for n in range(12):
        flight = [k % slots if k < n else None for k in range(early)]  # a group for each commit
        for _ in range(2 if form == "nested" else 1):
            for k in range(n):
                flight = flight[len(flight) - pending :] if len(flight) > pending else flight
                wrong |= (k + read) % slots in flight
                wrong |= k + ahead < n and (k + ahead) % slots in flight
                flight.append((k + ahead) % slots if k + ahead < n else None)
    return text, wrong


@pytest.mark.parametrize("form", ["plain", "named", "nested"])
@pytest.mark.parametrize("slots", [2, 3, 4])
def test_rings_by_hand(slots, form):
    """As a count of what each commit and each wait leave. What stands under a guard counts, whatever the guard says, so
    that rings which go on in the next iteration of an outer loop may be right and stay unproved."""
    known = [0, 0]
    for ahead in range(slots):
        for pending in range(slots):
            for read in range(2):
                text, wrong = ring(slots, ahead, pending, ahead, read, form)
                (found,) = [verdict for question, verdict, _ in proofs(helve.parse(text), "async")
                            if question == "copies to x are complete where it is used"]
                assert found == "unknown" if wrong else found == "proved" or form == "nested", text
                known[wrong] += found == ("unknown" if wrong else "proved")
    assert all(known)


@pytest.mark.parametrize("body", [
    # A block runs every so many iterations of a Persistent loop.
    """for k in T.Persistent([16]):
            for i in T.Parallel(8):
                x[k % 2, i] = 1.0
            T.copy_async(A[k, 0:8], x[k % 2, 0:8])
            T.wait_async(pending=1)""",
    """T.copy_async(A[0, 0:8], x[1, 0:8])
        for k in T.Persistent([16]):
            if k == b:
                for i in T.Parallel(8):
                    x[k, i] = 1.0""",
    """for k in T.Persistent([16]):
            T.copy_async(A[k, 0:8], x[k, 0:8])
            T.wait_async(pending=1)
        for i in T.Parallel(8):
            x[14, i] = 1.0""",
    # A thread's copies of several iterations of a loop of its own.
    """for r in T.Parallel(2):
            for k in T.serial(3):
                T.copy_async(A[k, 4 * r : 4 * r + 4], x[0, 4 * r : 4 * r + 4])
        T.commit_async()""",
])
def test_copies_that_may_meet_are_not_proved(body):
    """The interpreter shows that they do."""
    main = helve.parse(f"""
@T.prim_func
def main(A: T.Tensor((16, 8), "float32")):
    with T.Kernel(2) as b:
        x = T.alloc_shared((16, 8), "float32")
        {body}
        T.wait_async()
""")
    kernel = helve.compile(main, target="interp", check="all")
    assert [p.verdict for p in kernel.proofs() if p.kind == "async"] == ["unknown"]
    with pytest.raises(helve.Error, match="HV0708"):
        kernel(np.zeros((16, 8), "float32"))


@pytest.mark.parametrize("depth", [2, 4])
def test_nests_of_copies_without_a_wait_end(depth):
    loops = "".join(f"{' ' * (4 * d + 8)}for i{d} in T.serial(20):\n" for d in range(depth))
    found = proofs(helve.parse(f"""
@T.prim_func
def main(A: T.Tensor((4, 8), "float32")):
    with T.Kernel(1):
        x = T.alloc_shared((4, 8), "float32")
{loops}{' ' * (4 * depth + 8)}T.copy_async(A[i0 % 4, :], x[i{depth - 1} % 4, :])
        T.wait_async()
"""), "async")
    assert [verdict for _, verdict, _ in found] == ["unknown"]


@pytest.mark.parametrize("loop", ["T.Persistent([2, b + 3])", "T.Persistent([2, T.index(E[b])])",
                                  "T.Persistent([2, T.max(0, T.index(E[b]))])"])
def test_blocks_that_number_iterations_otherwise_may_meet(loop):
    main = helve.parse(f"""
@T.prim_func
def main(E: T.Tensor((2,), "int32"), Y: T.Tensor((2, 8), "int32")):
    with T.Kernel(2) as b:
        for i, j in {loop}:
            Y[i, j] = T.cast(b, "int32")
""")
    kernel = helve.compile(main, target="interp", check="all")
    assert "unknown" in [p.verdict for p in kernel.proofs() if p.kind == "race" and "blocks" in p.question]
    with pytest.raises(helve.Error, match="HV0706"):
        kernel(np.array([3, 4], "int32"), np.zeros((2, 8), "int32"))


@pytest.mark.parametrize(("cast", "verdict"), [
    ("T.index(places[{}])", "proved"), ('T.index(T.cast(places[{}], "int64"))', "proved"),
    ("T.max(T.index(places[{}]), 3)", "proved"), ("T.min(T.max(T.index(places[{}]), 3), 9)", "proved"),
    ('T.index(T.cast(places[{}], "uint8"))', "unknown"), ('T.index(T.cast(places[{}], "int8"))', "unknown"),
    ('T.max(T.index(T.cast(places[{}], "int8")), 0)', "unknown"), ('T.index(T.cast(places[{}], "uint32"))', "unknown"),
    ("-T.index(places[{}])", "proved"), ("T.abs(T.index(places[{}]))", "proved"),  # one of two such ranges is empty
    ("100 - T.index(places[{}]) % 7", "unknown"),
])
def test_the_order_of_places_survives_what_keeps_it(cast, verdict):
    found = proofs(helve.parse(f"""
P = T.dyn("P")
N = T.dyn("N")

@T.prim_func
def main(places: T.Tensor((P,), "int32", sorted=True), Y: T.Tensor((N,), "float32")):
    with T.Kernel(P - 1) as p:
        for i in T.serial(N):
            if {cast.format("p")} <= i and i < {cast.format("p + 1")}:
                Y[i] = Y[i] + 1.0
"""), "race")
    assert [each[1] for each in found if "blocks" in each[0]] == [verdict]


@pytest.mark.parametrize(("first", "last", "verdict"), [
    ("p", "p + 1", "proved"), ("p + 1", "p + 2", "proved"), ("p + 1", "p + 1", "proved"), ("p", "p + 2", "unknown"),
    ("p", "p", "proved"), ("2 * p", "2 * p + 1", "proved"), ("2 * p", "2 * p + 2", "unknown"),
    ("2 * p", "2 * p + 3", "unknown"), ("p // 2", "p // 2 + 1", "unknown"),
])
def test_parts_from_one_place_to_another(first, last, verdict):
    """Parts between places that are further apart than two blocks are overlap. That numbers of blocks differ by 2 here
    is not seen.
    """
    found = proofs(helve.parse(f"""
P = T.dyn("P")
N = T.dyn("N")

@T.prim_func
def main(X: T.Tensor((P,), "int8"), places: T.Tensor((2 * P + 3,), "int64", sorted=True), Y: T.Tensor((N,), "int8")):
    with T.Kernel(P) as p:
        for i in T.serial(N):
            if T.index(places[{first}]) <= i and i < T.index(places[{last}]):
                Y[i] = X[p]
"""), "race")
    assert [each[1] for each in found if "blocks" in each[0]] == [verdict]


@pytest.mark.parametrize("guard", ["T.index(k) + i <= 0", "T.index(k) - i >= 255", "T.index(s) + i <= -128"])
def test_a_guard_on_a_parameter_counts_with_what_its_type_holds(guard):
    """Only iteration 0 has a value of the type for which it stores."""
    kinds = ["uint8", "uint16", "uint64"] if "<= 0" in guard else ["uint8"]
    for kind in kinds:
        main = helve.parse("@T.prim_func\n"
                           f'def main(A: T.Tensor((1,), "float32"), k: T.{kind}, s: T.int8):\n'
                           "    with T.Kernel(1) as b:\n        for i in T.Parallel(8):\n"
                           f"            if {guard}:\n                A[0] = 1.0\n")
        assert ("iterations i are independent", "proved", "") in proofs(main, "race")


@pytest.mark.parametrize(("index", "verdict"), [("~i", "proved"), ("~(i // 2)", "refuted")])
def test_a_complement_is_a_difference(index, verdict):
    text = ('@T.prim_func\ndef main(A: T.Tensor((8,), "int32")):\n    with T.Kernel(1) as b:\n'
            f"        for i in T.Parallel(8):\n            A[8 + {index}] = i\n")
    if verdict == "proved":
        assert ("iterations i are independent", "proved", "") in proofs(helve.parse(text), "race")
    else:
        with pytest.raises(helve.Error) as refused:
            helve.compile(helve.parse(text), target="interp")
        assert refused.value.code == "HV0306"


@pytest.mark.parametrize("dtype", ["uint64", "int64", "index"])
def test_the_search_for_a_counterexample_ends_where_parameters_have_no_bound(dtype):
    function = helve.parse(
        'M = T.dyn("M")\n@T.prim_func\n'
        f'def main(A: T.Tensor((M,), "uint8"), u: T.{dtype}, B: T.Tensor((3,), "uint8")):\n'
        "    with T.Kernel(3) as b:\n        B[b] = A[(-b - T.cast(u, \"index\") % 7) % 4]\n")
    (asked, *_) = proofs(function, "bounds")
    reason = "it depends on 'M', 'u'" + ("" if dtype == "uint64" else ", by no simple condition")
    assert asked[1:] == ("unknown", reason)
