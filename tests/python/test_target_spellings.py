"""Targets, architectures and dtypes in the words of other tools: what is meant, and what is not guessed."""

import helve
import pytest
from helve import T
from helve.spellings import architecture_meant, dtype_meant, target_meant

TARGETS = ("interp", "llvm", "cuda")


@pytest.mark.parametrize(("given", "meant"), [
    ("90", "sm_90"), ("90a", "sm_90a"), ("compute_80", "sm_80"), ("SM_80", "sm_80"), ("sm80", "sm_80"),
    ("9.0", "sm_90"), ("12.0", "sm_120"), ("sm-100a", "sm_100a"), (" sm_90", "sm_90"),
])
def test_architectures_that_are_meant(given, meant):
    whole = "'sm_90a', or 'sm_90', which has no wgmma" if meant == "sm_90" else f"'{meant}'"
    assert architecture_meant(given) == [f"did you mean {whole}?"]
    assert target_meant(given, TARGETS) == [f'in helve: target="cuda", arch="{meant}"']


@pytest.mark.parametrize("given", ["", "hopper", "sm_999", "75", "sm_90x", "9", "3.14159", "sm_", "1e3", "cuda"])
def test_what_means_no_architecture(given):
    assert architecture_meant(given) == []


@pytest.mark.parametrize(("given", "meant"), [
    ("cpu", ["in helve: target=\"llvm\""]), ("GPU", ["in helve: target=\"cuda\""]),
    ("cuda:0", ["in helve: target=\"cuda\""]), ("cuda:sm_90", ["in helve: target=\"cuda\", arch=\"sm_90\""]),
    ("cuda-sm_80", ["in helve: target=\"cuda\", arch=\"sm_80\""]), ("lvm", ["did you mean 'llvm'?"]),
    ("rocm", []), ("", []), (3, []), (None, []),
])
def test_targets_that_are_meant(given, meant):
    assert target_meant(given, TARGETS) == meant


def test_what_is_meant_is_one_of_the_known():
    assert target_meant("cpu", ("cuda",)) == [] and target_meant("sm_90", ("llvm",)) == []


@pytest.mark.parametrize("arch", ["90", "compute_90", "9.0"])
def test_an_architecture_without_its_prefix_is_refused_alike(arch):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(1):
            for i in T.serial(64):
                A[i] = 1.0

    calls = {"HV0906": lambda: helve.compile(main, target="cuda", arch=arch),
             "HV1005": lambda: helve.Schedule(main).auto("cuda", arch)}
    for code, call in calls.items():
        with pytest.raises(helve.Error) as refused:
            call()
        assert refused.value.code == code
        assert refused.value.help == "did you mean 'sm_90a', or 'sm_90', which has no wgmma?"


@pytest.mark.parametrize(("given", "meant"), [
    ("fp32", "float32"), ("f16", "float16"), ("FP64", "float64"), ("bf16", "bfloat16"), ("i32", "int32"),
    ("s8", "int8"), ("u8", "uint8"), ("uint_64", "uint64"), ("int32_t", "int32"), ("e4m3", "float8_e4m3"),
    ("fp8_e5m2", "float8_e5m2"), ("float8e4m3fn", "float8_e4m3"), ("byte", "uint8"), ("flaot32", "float32"),
])
def test_dtypes_that_are_meant(given, meant):
    (fix,) = dtype_meant(given)
    assert fix.startswith(f"did you mean '{meant}'? dtypes are: index, bool, ")


@pytest.mark.parametrize("given", ["", "real", "complex64", "f7", "e3m4", "x", 3, None])
def test_what_means_no_dtype(given):
    assert dtype_meant(given) == []
