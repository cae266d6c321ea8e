"""Stores to elements that the variables of their loop do not all select: no stage loses one, on either target."""

import re

import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned
from differential import check
from partial_store_programs import CASES

import helve
import helve.testing
from helve import T, _core
from nvrtc import assert_compiles, needs_nvrtc
from test_buffer_layouts import compiled


def thread_form(function, **options):
    return helve.testing.lowering_stages(function, target="cuda", **options)[-1][1]


@pytest.mark.parametrize("name", CASES)
def test_interpreter_and_machine_code(name):
    function, wanted, arguments = CASES[name]
    given = arguments()
    check(function, given, {1: wanted(given[0])})


@pytest.mark.parametrize("name", CASES)
def test_thread_form(name):
    """Each stage, with all checks: no register is read that its thread did not write."""
    function, wanted, arguments = CASES[name]
    (pipeline,) = [each for each in helve.testing.PIPELINES if (each.target, each.arch) == ("cuda", "sm_80")]
    lowered = {pipeline: helve.testing.lowering_stages(function, None, 1, *pipeline)}
    for stage in helve.testing.distinct_stages(lowered):
        given = arguments()
        helve.testing.interpret(stage.function, *given, check=stage.check)
        np.testing.assert_array_equal(given[1], wanted(given[0]), err_msg=f"{name} after {stage.name}")
    helve.testing.assert_round_trip(stage.function)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    forms = [thread_form(function) for function, _, _ in CASES.values()]
    return HostKernels(forms, tmp_path_factory.mktemp("cuda"), names=list(CASES))


@pytest.mark.parametrize("name", CASES)
def test_cuda_text(kernels, name):
    _, wanted, arguments = CASES[name]
    given = [aligned(array) for array in arguments()]
    expected = wanted(given[0].copy())
    kernels.run(name, 1, dict(zip(["A", "OUT"], given)))
    np.testing.assert_array_equal(given[1], expected)


@pytest.mark.parametrize("target", ["llvm", "cuda"])
@pytest.mark.parametrize("name,loops,private", [
    ("one_element_of_each_iteration_is_rotated", 4, ["(64,)", "(1,)"]),
    ("one_element_that_data_pick", 4, ["(64,)", "(1,)"]),
    ("one_element_that_data_pick_is_read_for_others", 4, ["(64,)", "(1,)"]),
    ("several_iterations_at_one_element", 3, ["(1,)"]),
    ("several_iterations_divide_by_one_element", 3, ["(1,)"]),
    ("an_element_that_need_not_exist", 4, ["(64,)", "(1,)"]),
    ("an_element_that_a_loop_may_not_reach", 6, ["(64,)", "(64,)"]),
])
def test_an_iteration_copies_no_more_than_the_element_it_accesses(name, loops, private, target):
    """Loops over all elements stand in front of the loop, save where the element may not exist."""
    stages = dict(helve.testing.lowering_stages(CASES[name][0], target=target))
    text = _core.print(stages["privatize_scratch"])
    assert text.count(" in T.") == loops, text
    assert re.findall(r"x_\d+ = T.alloc_local\((\(\d+,\))", text) == private, text


def test_a_fragment_of_which_one_thread_holds_each_element_stays_in_registers():
    """Each thread has a row: no other one holds k[i], and none needs shared memory."""

    @T.prim_func
    def main(A: T.Tensor((64, 4), "int32"), OUT: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64) as bx:
            x = T.alloc_fragment((64, 4), "int32", layout="S[(64, 4) : (1@tx, 1@reg)]")
            k = T.alloc_fragment((64,), "int32", layout="S[64 : 1@tx]")
            T.fill(k, 0)
            T.copy(A, x)
            for i, j in T.Parallel(64, 4):
                if x[i, j] % 4 == 1 and (x[i, j] // 4) % 4 == T.cast(j, "int32"):
                    k[i] = x[i, j]
            T.copy(k, OUT)

    a = np.zeros((64, 4), "int32")
    a[np.arange(64), np.arange(64) % 4] = np.arange(64) % 4 * 4 + 1
    check(main, [a, np.zeros(64, "int32")], {1: a.max(1)})
    text = _core.print(thread_form(main))
    assert "alloc_shared" not in text and "k_copy" not in text
    out = np.zeros(64, "int32")
    helve.testing.interpret(thread_form(main), a.copy(), out, check="all")
    np.testing.assert_array_equal(out, a.max(1))


def test_a_placed_fragment_that_several_threads_store_to_is_refused_when_strict():
    function = CASES["diagonal_of_placed_fragments"][0]
    with pytest.raises(helve.Error, match="iterations on several threads store to one element") as caught:
        compiled(function, strict=True)
    assert caught.value.code == "HV0586"


def test_a_value_of_several_iterations_is_found_where_only_data_decide():
    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), OUT: T.Tensor((1,), "int32")):
        with T.Kernel(1) as bx:
            last = T.alloc_local((1,), "int32")
            last[0] = 0
            for i in T.Parallel(8):
                if A[i] > 0:
                    last[0] = A[i]
            OUT[0] = last[0]

    kernel = helve.compile(main, target="interp", check="all")
    out = np.zeros(1, "int32")
    kernel(np.array([0, 0, 5, 0, 0, 0, 0, 0], "int32"), out)
    assert out[0] == 5
    with pytest.raises(helve.Error) as caught:
        kernel(np.array([0, 0, 5, 0, 0, 0, 6, 0], "int32"), out)
    assert caught.value.code == "HV0312"


def test_a_tensor_is_read_where_it_was_written_by_its_other_name(tmp_path):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32"), X: T.Tensor((64,), "int32"),
             C: T.Tensor((64,), "int32")):
        T.may_alias(A, B)
        with T.Kernel(1, threads=32) as bx:
            for i in T.Parallel(64):
                B[i] = X[i] + 1
                t = A[i] * 2
                C[i] = t

    kernels = HostKernels([thread_form(main)], tmp_path)
    shared, x, out = (aligned(np.zeros(64, "int32")) for _ in range(3))
    x[...] = np.arange(64)
    kernels.run("main", 1, {"A": shared, "B": shared, "X": x, "C": out})
    np.testing.assert_array_equal(shared, np.arange(1, 65))
    np.testing.assert_array_equal(out, 2 * np.arange(1, 65))


MESH = helve.Mesh((1, 4))


@T.prim_func(mesh=T.Mesh((1, 4)))
def found_by_one_core(A: T.Tensor((1, 4, 96), "int32"), OUT: T.Tensor((1, 4, 1), "int32")):
    with T.Kernel(1, 4, threads=64) as (r, c):
        mine = T.alloc_shared((1,), "int32")
        all = T.alloc_shared((1,), "int32")
        T.fill(mine, 0)
        for i in T.Parallel(96):
            if A[r, c, i] == 7:
                mine[0] = T.cast(i * 10 + c, "int32")
        T.comm.all_reduce(mine, all, axis="y")
        OUT[r, c, 0] = all[0]


def mesh_arguments():
    a = np.zeros((1, 4, 96), "int32")
    a[0, 2, 77] = 7
    return [a, np.zeros((1, 4, 1), "int32")]


def test_cores_of_a_mesh(tmp_path):
    given = mesh_arguments()
    check(found_by_one_core, given, {1: np.full((1, 4, 1), 772)}, mesh=MESH)
    for _, stage in helve.testing.changed_stages(helve.testing.lowering_stages(found_by_one_core, MESH, target="cuda")):
        given = mesh_arguments()
        helve.testing.interpret(stage, *given, check="all")
        assert (given[1] == 772).all()
    kernels = HostKernels([stage], tmp_path)
    arrays = dict(zip(["A", "OUT"], map(aligned, mesh_arguments())))
    kernels.run("found_by_one_core", 4, arrays)
    assert (arrays["OUT"] == 772).all()


@T.prim_func
def größe_日本(A: T.Tensor((40,), "int32"), OUT: T.Tensor((40,), "int32")):
    with T.Kernel(1, threads=64) as bx:
        for i in T.Parallel(40):
            OUT[i] = A[i] + 1


def test_functions_with_names_beyond_ascii(tmp_path):
    text, (kernel,) = _core.cuda_source(thread_form(größe_日本))
    assert kernel["name"].isascii() and kernel["name"].isidentifier() and f"{kernel['name']}(" in text
    again, _ = _core.cuda_source(thread_form(größe_日本))
    assert again == text
    other = helve.parse(größe_日本.script().replace("größe_日本", "größe_日木"))
    assert _core.cuda_source(thread_form(other))[1][0]["name"] != kernel["name"]
    kernels = HostKernels([thread_form(größe_日本)], tmp_path)
    given = [aligned(np.arange(40, dtype="int32")), aligned(np.zeros(40, "int32"))]
    kernels.run(kernel["name"].removesuffix("_0"), 1, dict(zip(["A", "OUT"], given)))
    np.testing.assert_array_equal(given[1], np.arange(1, 41))


@needs_nvrtc
def test_names_beyond_ascii_compile():
    assert_compiles(_core.cuda_source(thread_form(größe_日本), prelude=True)[0])


CONDITIONS = ["(j + 1) % 3 <= 0", "(j + 1) % 3 < j // 4", "(j * 3) % 4 <= 1", "(j + 2) // 3 < 2", "j % 2 < 1",
              "(7 - j) % 5 < 2", "j * j < 9", "j ^ 1 < 3", "j < 4", "4 <= j", "8 * b + j < 12"]


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_lanes_of_a_vector_that_do_not_agree(condition, dtype):
    """Elements that a thread may store at once, and a condition that some of them meet."""
    function = helve.parse(f"""@T.prim_func
def main(A: T.Tensor((3, 8), "{dtype}")):
    with T.Kernel(3, threads=32) as b:
        for j in T.Parallel(8):
            if {condition}:
                A[b, j] = 1
""")
    b, j = np.ogrid[:3, :8]
    wanted = np.broadcast_to(eval(condition, {"b": b, "j": j}), (3, 8)).astype(dtype)  # noqa: S307 - the texts above
    for _, stage in helve.testing.changed_stages(helve.testing.lowering_stages(function, target="cuda", arch="sm_90a")):
        found = np.zeros((3, 8), dtype)
        helve.testing.interpret(stage, found, check="all")
        np.testing.assert_array_equal(found, wanted)
