"""Clusters whose blocks fill rings for each other: what they compute, what the compiler shares, proves and refuses."""

import re

import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned
from nvrtc import assert_fits_registers, needs_nvrtc
from ring_programs import gemm_arguments, persistent_gemm

import helve
import helve.testing
from helve import T, _core

ORDERS = (0, 1, 2, 3)
# Pairs of tiles of 64 rows: none, half of one, one, one and a half, and more than there are clusters.
SHAPES = [(8, 40, 0), (64, 16, 48), (128, 72, 40), (136, 40, 80), (392, 104, 32)]


def lines_of_b(N, K, cluster, bn=32, bk=32, threads=128, stages=3, blocks=4, transposed=True, rows=None):
    """As persistent_gemm, of constant N and K, so that its text is short; B is (N, K), or (K, N)."""
    M = rows or T.dyn("M")

    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K) if transposed else (K, N), "float16"),
             C: T.Tensor((M, N), "float32")):
        with T.Kernel(blocks, threads=threads, cluster=cluster) as block:
            a = T.alloc_shared((64, bk), "float16")
            b = T.alloc_shared((bn, bk) if transposed else (bk, bn), "float16")
            c = T.alloc_fragment((64, bn), "float32")
            for i, j in T.Persistent([T.ceildiv(M, 64), T.ceildiv(N, bn)]):
                T.clear(c)
                for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                    T.copy(A[i * 64 : i * 64 + 64, k * bk : k * bk + bk], a)
                    if transposed:
                        T.copy(B[j * bn : j * bn + bn, k * bk : k * bk + bk], b)
                    else:
                        T.copy(B[k * bk : k * bk + bk, j * bn : j * bn + bn], b)
                    T.gemm(a, b, c, transpose_B=transposed, dispatch="tensor_cores")
                T.copy(c, C[i * 64 : i * 64 + 64, j * bn : j * bn + bn])

    return main


PROGRAMS = {
    "pairs": persistent_gemm(64, 32, 32, 128, 3, 4, cluster=2),
    "two warpgroups": persistent_gemm(128, 32, 32, 256, 2, 2, cluster=2),
    "fours": persistent_gemm(64, 32, 32, 128, 2, 8, cluster=4),
    "staged results": persistent_gemm(64, 64, 32, 128, 2, 4, out="bfloat16", cluster=2),
}


def stages(function, arch="sm_90a"):
    return helve.testing.lowering_stages(function, target="cuda", arch=arch)


def last_stage(function):
    return stages(function)[-1][1]


def out_of(function):
    return function.function.params[2].dtype


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_stage_in_every_order(program):
    lowered = stages(PROGRAMS[program])
    assert "multicast=" in _core.print(lowered[-1][1])
    for m, n, k in SHAPES:
        given, expected = gemm_arguments(m, n, k, out="bfloat16" if program == "staged results" else "float32")
        for name, stage in lowered:
            if name not in ("pair_tiles", "lower_block_loops", "share_fills", "split_roles"):
                continue
            helve.testing.assert_round_trip(stage)
            for order in ORDERS if name == "split_roles" else (0,):
                found = [each.copy() for each in given]
                check = "fences" if name in ("share_fills", "split_roles") else "all"
                helve.testing.interpret(stage, *found, check=check, roles=order)
                np.testing.assert_array_equal(found[2], expected, err_msg=f"{name} {m, n, k} {order}")


def test_what_does_not_depend_on_the_place_in_the_cluster_is_shared():
    text = _core.print(last_stage(lines_of_b(64, 64, 2)))
    copies = re.findall(r"T\.cp_async_bulk_tensor\((\w).*\)", text)
    shared = re.findall(r"T\.cp_async_bulk_tensor\((\w).*multicast=2\)", text)
    assert copies == ["A", "B"] and shared == ["B"]
    releases = re.findall(r"T\.ring_release\(.*\)", text)
    assert len(releases) == 2 and all("cluster=True" in each for each in releases)
    lines = [line.strip() for line in text.splitlines()]
    barriers = [at for at, line in enumerate(lines) if line == "T.sync_cluster()"]
    assert len(barriers) == 2 and barriers[1] == len(lines) - 1
    assert barriers[0] > next(at for at, line in enumerate(lines) if "mbarrier_init" in line)


@pytest.mark.parametrize("function", [lines_of_b(64, 64, 1), lines_of_b(64, 64, 2)], ids=["alone", "pairs"])
def test_only_machines_with_clusters_share(function):
    alone = function.function.body.cluster == 1
    for arch in ("sm_80", "sm_90", "sm_90a"):
        text = _core.print(stages(function, arch)[-1][1])
        assert ("multicast" in text) == (arch == "sm_90a" and not alone)


@pytest.mark.parametrize(("rows", "guards"), [(None, 1), (256, 0), (192, 1)])
def test_a_tile_that_may_not_be_there_writes_nothing(rows, guards):
    text = _core.print(dict(stages(lines_of_b(64, 64, 2, rows=rows)))["pair_tiles"])
    assert len(re.findall(r"if i < ", text)) == guards and "place in T.Persistent(" in text


def test_the_text_computes_it(tmp_path):
    functions = {**PROGRAMS, "rows of k": lines_of_b(64, 48, 2, bn=64, transposed=False),
                 "slabs": lines_of_b(128, 48, 2, bn=128, transposed=False, stages=2)}
    for prelude in (False, True):
        names = [name.replace(" ", "_") for name in functions]
        forms = [last_stage(each) for each in functions.values()]
        kernels = HostKernels(forms, tmp_path, prelude=prelude, names=names)
        for (program, function), name in zip(functions.items(), names):
            kernel = kernels.kernels[name][0]
            assert kernel["cluster"] == (4 if program == "fours" else 2), program
            blocks = {"fours": 8, "two warpgroups": 2}.get(program, 4)
            for m, n, k in SHAPES:
                if program in ("rows of k", "slabs"):
                    n, k = (64, 48) if program == "rows of k" else (128, 48)
                out = "bfloat16" if program == "staged results" else "float32"
                dtype = "float16" if program in ("rows of k", "slabs") else "bfloat16"
                given, expected = gemm_arguments(m, n, k, dtype, out)
                if program in ("rows of k", "slabs"):
                    given[1] = np.ascontiguousarray(given[1].T)
                given = [aligned(each) for each in given]
                kernels.run(name, blocks, dict(zip("ABC", given)), {"M": m, "N": n, "K": k})
                np.testing.assert_array_equal(given[2], expected, err_msg=f"{program} {m, n, k} {prelude}")


@needs_nvrtc
@pytest.mark.parametrize("options", [{}, {"out": "bfloat16"}, {"cluster": 4, "blocks": 128}], ids=str)
def test_the_text_compiles_without_spills(options):
    options = {"blocks": 132, "cluster": 2, **options}
    text = _core.cuda_source(last_stage(persistent_gemm(128, 256, 64, 256, 4, **options)))[0]
    assert ".multicast::cluster" in text and "helve_ring_release_all<4, " in text
    assert_fits_registers(text, "sm_90a", "main_0")


def test_a_tile_that_reads_memory_by_itself_is_not_paired():
    """What bounds its loop a block without a tile could not read. The schedule says so."""
    M = T.dyn("M")

    @T.prim_func
    def main(A: T.Tensor((M, 64), "float16"), B: T.Tensor((32, 64), "float16"), n: T.Tensor((M,), "int32"),
             C: T.Tensor((M, 32), "float32")):
        with T.Kernel(4, threads=128, cluster=2) as block:
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((64, 32), "float32")
            for i, j in T.Persistent([T.ceildiv(M, 64), 1]):
                T.clear(c)
                for k in T.Pipelined(T.index(n[i * 64]), num_stages=2):
                    T.copy(A[i * 64 : i * 64 + 64, k * 32 : k * 32 + 32], a)
                    T.copy(B[:, k * 32 : k * 32 + 32], b)
                    T.gemm(a, b, c, transpose_B=True, dispatch="wgmma")
                T.copy(c, C[i * 64 : i * 64 + 64, :])

    text = _core.print(last_stage(main))
    assert "T.ring_" in text and "multicast" not in text


# The verifier.


def lines_with(text, pattern):
    return [number for number, line in enumerate(text.splitlines()) if re.search(pattern, line)]


def mutants(text):
    """Texts in which a barrier of the cluster is missing or elsewhere, a copy is made together that is not the same in
    all blocks or by another number of them, a slot is released to others than those that fill it, or blocks of a
    cluster make other turns."""
    lines = text.splitlines()

    def changed(at, pattern, by):
        return [*lines[:at], re.sub(pattern, by, lines[at]), *lines[at + 1 :]]

    for at in lines_with(text, r"T\.sync_cluster\(\)"):
        yield f"without line {at}", lines[:at] + lines[at + 1 :]
        yield f"line {at} for a block", changed(at, "cluster", "threads")
        if at + 1 == len(lines):
            before = next(n for n in range(at, 0, -1) if re.match(r" {8}\S", lines[n - 1]))
            yield f"line {at} before the last role", [*lines[: before - 1], lines[at], *lines[before - 1 : at]]
    first = lines_with(text, r"T\.sync_cluster\(\)")[0]
    init = lines_with(text, r"mbarrier_init\(ring")[-1]
    yield "the barrier before the mbarriers", [*lines[:init], lines[first], *lines[init:first], *lines[first + 1 :]]
    for at in lines_with(text, r"multicast="):
        yield f"line {at} alone", changed(at, r", multicast=\d", "")
        yield f"line {at} by three", changed(at, r"multicast=\d", "multicast=3")
        yield f"line {at} of another row", changed(at, r"B\[(.*?):", r"B[\1 + block % 2:")
    for at in lines_with(text, r"cp_async_bulk_tensor\(A"):
        yield f"line {at} by two", changed(at, r"barriers=ring\)", "barriers=ring, multicast=2)")
    for at in lines_with(text, r"T\.ring_release"):
        yield f"line {at} to the block", changed(at, ", cluster=True", "")
        yield f"without line {at}", lines[:at] + lines[at + 1 :]
    turns = lines_with(text, r"for turn\w* in T\.serial\(")
    both = list(lines)
    for at in turns:
        both[at] = re.sub(r"T\.serial\((.*)\):", r"T.serial((\1) + block % 2):", both[at])
    yield "another turn in the second block", both
    both = list(lines)
    for at in lines_with(text, r"for k\w* in T\.serial\("):
        both[at] = re.sub(r"T\.serial\((.*)\):", r"T.serial((\1) - block % 2):", both[at])
    yield "fewer terms in the second block", both
    clusters = lines_with(text, r"cluster=2\) as")
    yield "clusters of four", [re.sub("cluster=2", "cluster=4", line) if at in clusters else line
                               for at, line in enumerate(lines)]
    yield "no clusters", [re.sub(", cluster=2", "", line) if at in clusters else line for at, line in enumerate(lines)]


def test_the_verifier_objects_to_mutations():
    text = _core.print(last_stage(lines_of_b(64, 96, 2)))
    count = 0
    for what, lines in mutants(text):
        assert lines != text.splitlines(), what
        with pytest.raises(helve.Error) as fault:
            stages(helve.parse("\n".join(lines) + "\n"))
        assert fault.value.code in ("HV0320", "HV0108"), f"{what}: {fault.value}"
        count += 1
    assert count >= 18


def test_a_lowered_program_is_compiled_again():
    """It loses nothing, and runs on targets without clusters."""
    form = last_stage(lines_of_b(64, 96, 2))
    again = helve.parse(_core.print(form))
    text = _core.print(last_stage(again))
    assert text.count("multicast=2") == 1 and text.count("T.sync_cluster()") == 2
    given, expected = gemm_arguments(136, 64, 96, "float16")
    helve.compile(again, target="llvm")(*given)
    np.testing.assert_array_equal(given[2], expected)


def test_the_interpreter_finds_blocks_that_copy_other_regions():
    text = _core.print(last_stage(lines_of_b(64, 96, 2)))
    given, _ = gemm_arguments(136, 64, 96, "float16")
    changes = [(r"(tensor\(B\[)(.*?:)", r"\1block % 2 + \2"), (r"(for k\w* in T\.serial\()", r"\1block % 2, ")]
    for pattern, by in changes:
        wrong = re.sub(pattern, by, text)
        assert wrong != text
        with pytest.raises(helve.Error) as fault:
            helve.testing.interpret(helve.parse(wrong), *[each.copy() for each in given])
        assert fault.value.code == "HV0723"
