"""The pass that converts both int4 of a byte by one instruction: what it finds, what it leaves, what both compute."""

import helve
import helve.testing
import ml_dtypes
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned
from helve import T, _core
from nvrtc import assert_compiles, needs_nvrtc

HEAD = """@T.prim_func
def main(Q: T.Tensor((256,), "uint8"), S: T.Tensor((8,), "{scale}"), C: T.Tensor((256, 4), "{to}")):
    with T.Kernel(1, threads=256):
        w = T.alloc_fragment((256, 4), "{to}")
        for tx in T.threads(256):
            for r in T.unroll(2):
"""
TAIL = """            for r in T.unroll(4):
                C[tx, r] = w[tx, r]
"""
HALF = 'T.cast(T.cast({byte}, "int32") << T.cast({shift}, "int32") >> 28, "int8")'
PAIR = "for v in T.vectorized(2):\n    w[tx, r * 2 + v] = "
SCALES = [1.0, -0.5, 0.3, 3e38, 1e-38, -0.0, np.inf, np.nan]


def half(byte="Q[tx]", shift="28 - v * 4"):
    return HALF.format(byte=byte, shift=shift)


def value(scale, to="bfloat16", **of):
    """What a lane stores, times S[r] of type `scale` or nothing."""
    if scale is None:
        return f'T.cast({half(**of)}, "{to}")'
    return f'T.cast(T.cast({half(**of)}, "float32") * T.cast(S[r + r], "float32"), "{to}")'


def program(lines, to="bfloat16", scale="float32"):
    body = "".join(f"                {line}\n" for line in lines.strip("\n").split("\n"))
    return helve.parse(HEAD.format(to=to, scale=scale) + body + TAIL)


def stages(function):
    """The function in front of the pass and behind it."""
    found = dict(helve.testing.lowering_stages(function, target="cuda", arch="sm_90a"))
    return found["widen_accesses"], found["unpack_pairs"]


def chosen(lines, **types):
    return [line.strip() for line in _core.print(stages(program(lines, **types))[1]).splitlines() if "T.unpack" in line]


@pytest.mark.parametrize("to", ["bfloat16", "float16"])
def test_a_loop_over_halves_is_an_instruction(to):
    assert chosen(PAIR + value(None, to), to=to) == ["T.unpack_int4(Q[tx], w[tx, r * 2:r * 2 + 2])"]
    for scale in ("float32", to):
        assert chosen(PAIR + value(scale, to), to=to, scale=scale) == [
            "T.unpack_scaled_int4(Q[tx], S[r * 2], w[tx, r * 2:r * 2 + 2])"]


OTHERS = {
    "halves in the other order": PAIR + value(None, shift="24 + v * 4"),
    "one half twice": PAIR + value(None, shift="28"),
    "halves of two bytes": PAIR + value(None, byte="Q[(tx + v) % 256]"),
    "another byte for each scale": PAIR + value("float32").replace("S[r + r]", "S[r + v]"),
    "registers apart": value(None).join(["for v in T.vectorized(2):\n    w[tx, r + v * 2] = ", ""]),
    "registers in the other order": value(None).join(["for v in T.vectorized(2):\n    w[tx, r * 2 + 1 - v] = ", ""]),
    "one after the other": PAIR.replace("vectorized", "serial") + value(None),
    "two products": PAIR + value("float32").replace(', "bfloat16")', ' * 2.0, "bfloat16")'),
    "a sum": PAIR + value("float32").replace(" * T.cast(S", " + T.cast(S"),
    "a scale of the registers": PAIR + value("float32").replace("S[r + r]", "w[tx, 0]"),
    "a scale of a third type": PAIR + value("float16"),
    "four lanes": "if r == 0:\n    for v in T.vectorized(4):\n        w[tx, v] = " + value(None),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_loops_stay(name):
    scale = "float16" if name == "a scale of a third type" else "float32"
    assert chosen(OTHERS[name], scale=scale) == []


def test_float32_is_left():
    assert chosen(PAIR + value(None, "float32"), to="float32") == []


def test_arrays_in_memory_are_left():
    """A subscript that the run alone knows keeps the array in memory."""
    lines = PAIR + value(None) + "\nw[tx, 0] = w[tx, T.cast(Q[tx], 'index') % 4]"
    assert 'place="memory"' in _core.print(stages(program(lines))[0])
    assert chosen(lines) == []


def arguments(to, scale, factor):
    kinds = [helve.testing.numpy_dtype(scale or "float32"), helve.testing.numpy_dtype(to)]
    with np.errstate(over="ignore"):
        scales = np.array([factor, 0, -factor, 0, 0, 0, 0, 0], "float32").astype(kinds[0])
    return [np.arange(256, dtype="uint8"), scales, np.zeros((256, 4), kinds[1])]


def bits(array):
    return array.view("uint16")


@pytest.mark.parametrize("scale", [None, "own", "float32"])
@pytest.mark.parametrize("to", ["bfloat16", "float16"])
def test_both_compute_the_same_bits(tmp_path, to, scale):
    """Every byte, by the loop, by the instruction, and by the rule that a product of float32 is rounded once."""
    kind = {None: None, "own": to}.get(scale, scale)
    before, after = stages(program(PAIR + value(kind, to), to=to, scale=kind or "float32"))
    text = _core.print(after)
    assert "T.vectorized" not in text and "T.unpack" in text
    host = HostKernels([after], tmp_path, False, ["pairs"])
    for factor in SCALES if scale else [1.0]:
        by_loop, by_instruction = (arguments(to, kind, factor) for _ in range(2))
        helve.testing.interpret(before, *by_loop, check="all")
        helve.testing.interpret(after, *by_instruction, check="all")
        np.testing.assert_array_equal(bits(by_instruction[2]), bits(by_loop[2]))
        data, scales, _ = by_loop
        codes = np.stack([data & 15, data >> 4], axis=1).astype("int8")
        numbers = np.where(codes < 8, codes, codes - 16).astype("float32")
        with np.errstate(over="ignore", invalid="ignore"):
            products = [numbers if scale is None else numbers * scales[r].astype("float32") for r in (0, 2)]
            wanted = np.concatenate(products, axis=1).astype(by_loop[2].dtype).astype("float32")
        np.testing.assert_array_equal(by_loop[2].astype("float32"), wanted)
        np.testing.assert_array_equal(np.signbit(by_loop[2][wanted == 0]), np.signbit(wanted[wanted == 0]))
        given = [aligned(each) for each in arguments(to, kind, factor)]
        host.run("pairs", 1, dict(zip("QSC", given)))
        np.testing.assert_array_equal(given[2].astype("float32"), wanted)


@pytest.mark.parametrize("scale", [None, "bfloat16", "float32"])
def test_the_lowered_program_is_a_program(scale):
    """It is read back, and lowered again to itself, and to a loop for the CPU."""
    _, after = stages(program(PAIR + value(scale), scale=scale or "float32"))
    text = _core.print(after)
    again = helve.parse(text)
    assert _core.structural_equal(again.function, after)[0]
    assert "T.unpack" in _core.print(stages(again)[1])
    wanted, given = (arguments("bfloat16", scale, 0.3) for _ in range(2))
    helve.testing.interpret(after, *wanted)
    helve.compile(again, target="llvm")(*given)
    np.testing.assert_array_equal(bits(given[2]), bits(wanted[2]))
    assert given[2].dtype == ml_dtypes.bfloat16


@needs_nvrtc
def test_the_text_compiles():
    for scale in (None, "bfloat16", "float32"):
        after = stages(program(PAIR + value(scale), scale=scale or "float32"))[1]
        assert_compiles(_core.cuda_source(after)[0])


def test_a_byte_of_another_lane_is_read_by_a_shuffle():
    """The registers stay the thread's own."""
    lines = 'T.unpack_int4(q[tx ^ 1, 0], w[tx, r * 2:r * 2 + 2])'
    head = HEAD.replace("        for tx", '        q = T.alloc_fragment((256, 1), "uint8")\n'
                        "        for tx in T.threads(256):\n            q[tx, 0] = Q[tx]\n        for tx", 1)
    text = head.format(to="bfloat16", scale="float32") + f"                {lines}\n" + TAIL
    source = _core.cuda_source(stages(helve.parse(text))[1])[0]
    assert "helve_unpack_int4(w + r * 2, helve_shuffle_xor" in source


def test_registers_of_others_are_not_written():
    form = helve.parse(HEAD.format(to="bfloat16", scale="float32")
                       + "                T.unpack_int4(Q[tx], w[tx ^ 1, r * 2:r * 2 + 2])\n" + TAIL)
    with pytest.raises(helve.Error, match="a thread stores to the registers of another"):
        helve.compile(form, target="cuda", arch="sm_90a")
    with pytest.raises(Exception, match="a thread stores to the registers of another"):
        _core.cuda_source(form.function)
