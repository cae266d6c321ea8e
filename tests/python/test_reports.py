"""What an internal error asks for: a report with a program that runs as it stands."""

from types import SimpleNamespace

import helve
import pytest
from helve import T, _core
from helve.errors import ASK_FOR_REPORT

TEXT = """@T.prim_func
def main(A: T.Tensor((4,), "float32")):
    with T.Kernel(1) as b:
        T.clear(A)
"""
MESH = helve.Mesh((2, 3), ("x", "y"))
M = T.dyn("M")


@T.prim_func
def vector(A: T.Tensor((M,), "float32"), s: T.float32):
    with T.Kernel(T.ceildiv(M, 8)) as b:
        for i in T.Parallel(8):
            if b * 8 + i < M:
                A[b * 8 + i] = A[b * 8 + i] * s


@T.prim_func
def tiles(A: T.Tensor((8, 9), "float32")):
    T.annotate_mesh_tensor({A: {"sharding": {"x": 0, "y": 1}, "tiling": [4, 4]}}, nrows=2, ncols=3)
    with T.Kernel(2, 3) as (r, c):
        X = T.alloc_shared_tiles((4, 4), "float32")
        T.mesh_tensor_copy(A, X, coord=[0, 0])
        T.mesh_tensor_copy(X, A, coord=[0, 0])


@T.prim_func
def plain(A: T.Tensor((4,), "int32")):
    with T.Kernel(2, 3) as (r, c):
        pass


@pytest.mark.parametrize(
    "function, target, options",
    [
        (vector, "llvm", {}),
        (vector, "interp", {"check": "all"}),
        (tiles, "llvm", {"verify": True, "persistent_chunk": 2}),
        (plain, "llvm", {"mesh": MESH}),
        (plain, "interp", {"mesh": MESH, "check": "races"}),
    ],
)
def test_a_reproducer_runs_and_compiles_the_same_function(function, target, options):
    given = dict(options)
    if "mesh" in given:
        given["mesh"] = _core.MeshShape(list(MESH.shape), list(MESH.names))
    text = _core.reproducer(function.function, target, **given)
    names = {}
    exec(compile(text, "report.py", "exec"), names)
    kernel = names["kernel"]
    expected = helve.compile(function, target=target, **options)
    assert kernel.source() == expected.source() and kernel.target == target
    assert len(text) < 1000


def broken_function():
    """A function that no front end makes: it loads from a buffer that is not there."""
    a, other = (_core.make_buffer(name, "float32", "param", [_core.int_imm(4)]) for name in ("A", "gone"))
    zero = _core.int_imm(0)
    body = _core.kernel([_core.make_var("b")], [_core.int_imm(1)], 128,
                        _core.store(a, [zero], _core.load(other, [zero])))
    return SimpleNamespace(function=_core.make_function("broken", [], [a], None, [], body))


@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_an_internal_error_of_a_compile_brings_the_program_and_the_options(target):
    with pytest.raises(helve.InternalError) as caught:
        helve.compile(broken_function(), target=target, verify=True)
    first, ask, rest = str(caught.value).split("\n", 2)
    assert first.startswith("internal error: 'gone' is used where it is not defined (")
    assert ask == ASK_FOR_REPORT
    assert rest == f"""
# helve {helve.__version__}
import helve

main = helve.parse(r'''
@T.prim_func
def broken(A: T.Tensor((4,), "float32")):
    with T.Kernel(1) as b:
        A[0] = gone[0]
''')
kernel = helve.compile(main, target="{target}", verify=True)
"""


@pytest.mark.parametrize("inside", [False, True])
def test_an_internal_error_at_the_definition_brings_its_text(monkeypatch, inside):
    verify = _core.verify
    monkeypatch.setattr(_core, "verify", lambda function: verify(broken_function().function))
    with pytest.raises(helve.InternalError) as caught:
        if inside:

            @T.prim_func
            def main(A: T.Tensor((4,), "float32")):
                with T.Kernel(1) as b:
                    T.clear(A)

        else:
            helve.parse(TEXT)
    first, rest = str(caught.value).split("\n", 1)
    assert first.startswith("internal error: 'gone' is used where it is not defined (")
    assert rest == f"{ASK_FOR_REPORT}\n\n# helve {helve.__version__}\n{TEXT}"


def test_an_internal_error_is_no_error_of_the_program():
    with pytest.raises(helve.InternalError) as caught:
        helve.compile(broken_function())
    assert not isinstance(caught.value, helve.Error)
