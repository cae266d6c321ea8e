"""A bounded run of calls with arguments that nothing was made for, and the calls that were found so."""

import helve
import junk
import pytest
from helve import T, _core


@pytest.mark.parametrize("seed", [1, 2])
def test_junk_is_refused(seed):
    calls, findings = junk.run(seed, 4000)
    assert calls == 4000
    assert not findings, "\n".join(map(str, findings))


@pytest.mark.parametrize("operator", ["add", "sub", "mul", "floordiv", "mod", "truediv"])
@pytest.mark.parametrize("side", ["", "r"])
def test_none_is_no_operand(operator, side):
    extent = T.dyn("M")
    assert getattr(extent, f"__{side}{operator}__")(None) is NotImplemented


def test_nodes_are_never_none():
    for call in (lambda: _core.ceil_div(None, None), lambda: _core.seq([None]), lambda: _core.alloc(None),
                 lambda: _core.Range(None, None), lambda: _core.print(None), lambda: _core.verify(None),
                 lambda: _core.compile(None, "llvm", None, False, False, 1, None),
                 lambda: _core.expr_equal(None, _core.int_imm(1)),
                 lambda: _core.make_buffer("a", "float32", "global", [None]),
                 lambda: _core.CompiledKernel.stages(None), lambda: _core.Storage.rank.fget(None),
                 lambda: _core.Layout.canonicalize(None)):
        with pytest.raises(TypeError):
            call()
    one = _core.seq([])
    assert _core.if_then(_core.bool_imm(True), one).else_body is None
    assert _core.if_then(_core.bool_imm(True), one, None).else_body is None


@pytest.mark.parametrize("target", ["\ud800", "\udfff llvm", 10**5000], ids=["surrogate", "words", "number"])
def test_a_target_of_no_text_is_refused_as_any_other(target):
    with pytest.raises(helve.Error) as caught:
        helve.compile(helve.parse("@T.prim_func\ndef main():\n    pass\n"), target=target)
    assert caught.value.code == "HV0802"
    str(caught.value).encode()
