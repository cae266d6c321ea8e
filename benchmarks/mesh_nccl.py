"""RMSNorm on a mesh whose cores are GPUs, one of each process, against one GPU.

Run it: ``torchrun --nproc-per-node 4 benchmarks/mesh_nccl.py``, or ``helve launch --tcp -n 4 benchmarks/mesh_nccl.py``;
with one process it measures the mesh of one GPU. The kernel is that of tutorials/01_rms_norm.py, float32, on meshes of
N x 1 (rows are cut, no value crosses), 1 x N (columns are cut) and 2 x N/2, with the best of a few tiles. A time is by
events of the GPU, of many calls, on the slowest process; the median of turns counts. Every result is compared with
float64. One GPU has all of the tensor and runs helve.kernels.rms_norm. NVLink multicast is off.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--rounds", type=int, default=11, help="turns; the median counts")
CHOSEN = parser.parse_args() if __name__ == "__main__" else parser.parse_args([])
os.environ["NCCL_NVLS_ENABLE"] = "0"  # read by NCCL when it is loaded

import numpy as np  # noqa: E402
import torch  # noqa: E402

import helve  # noqa: E402
from helve.dist import DistTensor, distribution  # noqa: E402
from helve.kernels import rms_norm  # noqa: E402

SHAPES = ((1024, 4096), (4096, 8192), (16384, 8192), (32768, 16384))
TILES = ((4, 1024), (8, 512), (32, 256))  # rows and columns of a block's tile


def tutorial():
    spec = importlib.util.spec_from_file_location("rms_norm", Path(__file__).parents[1] / "tutorials/01_rms_norm.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def microseconds(call) -> float:
    """Of one call, the median of turns on this process."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times, count = [], 20
    for _ in range(CHOSEN.rounds):
        begin.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / count)
    return statistics.median(times)


def slowest(value: float) -> float:
    """The largest of all processes."""
    mesh = helve.Mesh((helve.dist.size(),), device="cuda")
    mine = torch.full((1,), value, device="cuda")
    tensor = DistTensor.from_local(mine, distribution("i -> max", (1,), mesh))
    return float(tensor.redistribute(distribution("i -> *", (1,), mesh)).shards[helve.dist.rank(),][0])


def one_gpu(rows: int, columns: int) -> float:
    """The library's kernel, all of it on the GPU of each process."""
    a = torch.randn((rows, columns), device="cuda")
    weight, out = torch.ones((columns,), device="cuda"), torch.empty_like(a)
    kernel = helve.compile(rms_norm(columns), "cuda")
    kernel(a, weight, out)
    return slowest(microseconds(lambda: kernel(a, weight, out)))


def on_mesh(shape: tuple[int, int], rows: int, columns: int, tile: tuple[int, int]) -> float:
    mesh = helve.Mesh(shape, device="cuda")
    device = np.unravel_index(helve.dist.rank(), shape)
    kernel = helve.compile(tutorial().rms_norm_splitk(rows, columns, *tile, mesh), mesh=mesh)
    blocks = distribution("i j -> i j", (rows, columns), mesh)
    torch.manual_seed(7)  # the same rows everywhere
    a = torch.randn((rows, columns), device="cuda")
    given, out = (DistTensor.from_global(each, blocks) for each in (a, torch.empty_like(a)))
    kernel(given, out)
    wanted = a.double() / torch.sqrt((a.double() ** 2).mean(dim=1, keepdim=True) + 1e-6)
    begin, part = blocks.local_begin(tuple(map(int, device))), out.shards[tuple(map(int, device))]
    box = tuple(slice(b, b + e) for b, e in zip(begin, part.shape, strict=True))
    error = float((part.double() - wanted[box]).abs().max())
    assert error < 1e-5, f"{shape}: differs by {error}"
    return slowest(microseconds(lambda: kernel(given, out)))


def main() -> None:
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", helve.dist.rank())))
    count = helve.dist.size()
    meshes = sorted({(count, 1), (1, count), (2, count // 2) if count % 2 == 0 else (count, 1)})
    for rows, columns in SHAPES:
        times = {shape: min(on_mesh(shape, rows, columns, tile) for tile in TILES) for shape in meshes}
        alone = one_gpu(rows, columns)
        if helve.dist.rank() == 0:
            bytes_ = 2 * rows * columns * 4
            print(f"{rows} x {columns}: " + ", ".join(
                f"{shape[0]}x{shape[1]} {us:.1f} us ({bytes_ / us / 1e3:.0f} GB/s, {alone / us:.2f} of one GPU's rate)"
                for shape, us in times.items()) + f"; one GPU {alone:.1f} us", flush=True)


if __name__ == "__main__":
    main()
