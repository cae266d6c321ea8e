"""Where kernels may be defined: files, notebooks, texts registered in linecache; and the names around them."""

import linecache
import subprocess
import sys

import helve
import pytest
from helve import T, _core
from script_texts import registered

# A module's names are constants of its kernels.
SIZE = 48
KIND = "float16"
LIMITS = {"rows": 3}


def test_a_function_of_a_file():
    @T.prim_func
    def scale(A: T.Tensor((SIZE, LIMITS["rows"]), KIND)):
        with T.Kernel(SIZE) as b:
            A[b, 0] = A[b, 0] * 2

    assert scale.name == "scale"
    (a,) = scale.function.params
    assert ([str(e) for e in a.shape], a.dtype) == (["48", "3"], "float16")
    assert a.span.file == __file__
    line = linecache.getline(__file__, a.span.line)
    assert line[a.span.column - 1 : a.span.end_column - 1] == 'A: T.Tensor((SIZE, LIMITS["rows"]), KIND)'
    assert _core.structural_equal(helve.parse(scale.script()).function, scale.function) == (True, "")


def test_closures_are_constants():
    class Shape:
        rows, cols = 4, 7

    def make(n, dtype, tile, factor):
        shape = Shape()
        extents = (n, shape.cols)
        M = T.dyn("M")

        @T.prim_func
        def main(A: T.Tensor(extents, dtype), B: T.Tensor((M,), "float32")):
            with T.Kernel(T.ceildiv(M, tile)) as b:
                if factor is not None:
                    A[0, shape.rows + len(extents)] = factor
                B[b] = float("0.5") * B[b]

        return main

    f = make(5, T.bfloat16, 8, 1.5).function
    assert [str(e) for e in f.params[0].shape] == ["5", "7"]
    first, second = f.body.body.stmts
    assert str(first.indices[1]) == "6" and first.value.value == 1.5 and first.value.dtype == "bfloat16"
    assert str(f.body.extents[0]) == "(M + 8 - 1) // 8"
    assert isinstance(make(5, "int8", 8, None).function.body.body, _core.Store)


def test_numpy_values_are_constants():
    np = pytest.importorskip("numpy")
    n, scale, flag = np.int64(4), np.float32(0.5), np.bool_(True)

    @T.prim_func
    def main(A: T.Tensor((n,), np.float32), B: T.Tensor((4,), np.dtype("int8"))):
        with T.Kernel(n) as b:
            if flag:
                A[b] = A[b] * scale + n

    assert [p.dtype for p in main.function.params] == ["float32", "int8"]
    assert str(main.function.body.body.value) == "A[b] * 0.5 + 4.0"


def test_a_mesh_of_python():
    mesh = helve.Mesh((2, 3))

    @T.prim_func(mesh=mesh)
    def main(A: T.Tensor((4, 4), "float32")):
        T.annotate_mesh_tensor({A: {"sharding": {"x": 0}, "tiling": [mesh.shape[0], 2]}})
        with T.Kernel(2, 3) as (r, c):
            T.comm.barrier()

    assert main.function.mesh.extents == [2, 3]


def test_names_of_the_defining_frame_serve_annotations():
    extent = 7  # used in the annotation only, so no closure variable of the kernel

    @T.prim_func
    def main(A: T.Tensor((extent,), "float32")):
        pass

    assert str(main.function.params[0].shape[0]) == "7"


def test_postponed_annotations():
    names = registered(
        """
        from __future__ import annotations

        def make(n):
            @T.prim_func
            def main(A: T.Tensor((n, 2), "float32"), B: "T.Tensor((4, 2), 'int8')", s: T.float32):
                with T.Kernel(n) as b:
                    A[b, 0] = s + n
            return main

        main = make(6)
        """,
        "<postponed>",
    )
    params = names["main"].function.params
    assert [str(e) for e in params[0].shape] == ["6", "2"] and params[1].dtype == "int8"


def test_a_type_kept_in_a_name():
    K = T.dyn("K")
    spec = T.Tensor((K, K * 2), "int16", strides=(100, 1))

    @T.prim_func
    def main(A: spec):
        pass

    (a,) = main.function.params
    assert ([str(e) for e in a.shape], a.dtype, len(main.function.dims)) == (["K", "K * 2"], "int16", 1)


def test_aliases_of_the_language():
    import helve.language as tl

    copy, f32 = tl.copy, T.float32

    @tl.prim_func
    def main(A: tl.Tensor((4,), f32), s: f32):
        with tl.Kernel(1):
            S = tl.alloc_shared((4,), f32)
            copy(A, S)

    assert isinstance(main.function.body.body.stmts[1], _core.TileOp)


def test_a_redefined_cell_is_quoted_as_it_was():
    """Errors quote the text that was parsed, though the file name has another text by now."""
    first = registered("""
        @T.prim_func
        def main(A: T.Tensor((4,), "float32")):
            pass
        """, "<cell 1>")["main"]
    with pytest.raises(helve.Error, match=r"3 \| def main\(A: T.Tensor\(\(4,\), \"float31\"\)\):"):
        registered("""
            @T.prim_func
            def main(A: T.Tensor((4,), "float31")):
                pass
            """, "<cell 1>")
    assert first.name == "main"


def test_source_that_cannot_be_had():
    text = '@T.prim_func\ndef main(A: T.Tensor((4,), "float32")):\n    pass\n'
    with pytest.raises(helve.Error) as caught:
        exec(compile(text, "<nowhere>", "exec"), {"T": T})
    assert (caught.value.code, caught.value.filename, caught.value.lineno) == ("HV0001", "<nowhere>", 1)


def test_a_changed_file_is_refused(tmp_path):
    """The text at the function's line is not the function any more."""
    path = tmp_path / "changed.py"
    path.write_text('from helve import T\n@T.prim_func\ndef main(A: T.Tensor((4,), "float32")):\n    pass\n')
    code = compile(path.read_text(), str(path), "exec")
    path.write_text("\n\ndef other(): pass\n\n")
    with pytest.raises(helve.Error) as caught:
        exec(code, {})
    assert caught.value.code == "HV0001"


@pytest.mark.parametrize("arguments, given", [(["-c"], True), (["-"], False)])
def test_command_line_and_standard_input(arguments, given):
    """Python before 3.13 keeps the source of neither; then the error says so, and nothing else goes wrong."""
    text = 'from helve import T\n@T.prim_func\ndef main(A: T.Tensor((4,), "float32")):\n    pass\nprint(main.name)\n'
    command = [sys.executable, *arguments, *([text] if given else [])]
    done = subprocess.run(command, input=None if given else text, capture_output=True, text=True)
    assert done.stdout == "main\n" or "error[HV0001]: the source of 'main' cannot be read" in done.stderr


def test_a_notebook_cell():
    shell_module = pytest.importorskip("IPython.core.interactiveshell")
    shell = shell_module.InteractiveShell.instance()
    try:
        cell = 'from helve import T\n@T.prim_func\ndef main(A: T.Tensor((4,), "float32")):\n    pass\n'
        assert shell.run_cell(cell).success
        assert shell.user_ns["main"].name == "main"
        outcome = shell.run_cell(cell.replace("pass", "A[0, 0] = 1.0"), silent=True)
        assert "4 |     A[0, 0] = 1.0\n  |     ^^^^^^^" in str(outcome.error_in_exec)
    finally:
        shell_module.InteractiveShell.clear_instance()
