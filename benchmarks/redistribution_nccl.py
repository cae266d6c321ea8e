"""Redistributions between GPUs against the calls of torch.distributed with NCCL that do the same, by turns.

Run it: ``torchrun --nproc-per-node 4 benchmarks/redistribution_nccl.py``, or ``helve launch --tcp -n 4
benchmarks/redistribution_nccl.py``. Both write memory that exists, on one stream; what either packs is in its time. The
time of a turn is by events of the GPU, of many calls, on the slowest process; the median of the turns counts. Every
result is compared in the same run. The size is that of the whole tensor, float32. NVLink multicast is off for both.
"""

from __future__ import annotations

import argparse
import os
import statistics

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--rounds", type=int, default=11, help="turns of each candidate; the median counts")
parser.add_argument("--largest", type=int, default=1024, help="MiB of the largest tensor")
parser.add_argument("--only", help="a step alone")
CHOSEN = parser.parse_args() if __name__ == "__main__" else parser.parse_args([])
os.environ["NCCL_NVLS_ENABLE"] = "0"  # read by NCCL when it is loaded

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import helve  # noqa: E402
from helve.dist import DistTensor, distribution  # noqa: E402

EXTENTS = (512, 2048, 4096, 8192, 16384)  # 1 MiB to 1 GiB


def all_gather(part, new, count):
    return lambda: dist.all_gather_into_tensor(new, part)


def reduce_scatter(part, new, count):
    return lambda: dist.reduce_scatter_tensor(new, part)


def all_reduce(part, new, count):
    """In place, as the library has it: what it is called on grows from call to call, which costs nothing."""
    work = part.clone()

    def run():
        dist.all_reduce(work)

    def once():
        work.copy_(part)
        dist.all_reduce(work)
        new.copy_(work)

    run.once = once
    return run


def broadcast(part, new, count):
    if part is not None:
        new.copy_(part)
    return lambda: dist.broadcast(new, 0)


def reduce(part, new, count):
    work = part.clone()

    def run():
        dist.reduce(work, 0)

    def once():
        work.copy_(part)
        dist.reduce(work, 0)
        if new is not None:
            new.copy_(work)

    run.once = once
    return run


def all_to_all(part, new, count):
    rows, columns = part.shape[0], part.shape[1] // count
    sent, came = (torch.empty((count, rows, columns), device="cuda") for _ in range(2))

    def run():
        sent.copy_(part.view(rows, count, columns).transpose(0, 1))
        dist.all_to_all_single(came, sent)

    def once():
        run()
        new.copy_(came.view(count * rows, columns))

    run.once = once
    return run


def all_gather_of_columns(part, new, count):
    came = torch.empty((count, *part.shape), device="cuda")

    def run():
        dist.all_gather_into_tensor(came, part)
        new.view(part.shape[0], count, part.shape[1]).copy_(came.transpose(0, 1))

    return run


# By step: the distributions, what the library does, and the share of the tensor that crosses a link (bus bandwidth).
CASES = (
    ("i j -> i", "i j -> *", all_gather, lambda n: (n - 1) / n),
    ("i j -> +", "i j -> i", reduce_scatter, lambda n: (n - 1) / n),
    ("i j -> +", "i j -> *", all_reduce, lambda n: 2 * (n - 1) / n),
    ("i j -> 0", "i j -> *", broadcast, lambda n: 1),
    ("i j -> +", "i j -> 0", reduce, lambda n: 1),
    ("i j -> i", "i j -> j", all_to_all, lambda n: (n - 1) / n / n),
    ("i j -> j", "i j -> *", all_gather_of_columns, lambda n: (n - 1) / n),
)


def seconds(call, count: int) -> float:
    """Of one call, on the slowest process."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    dist.barrier()
    torch.cuda.synchronize()
    begin.record()
    for _ in range(count):
        call()
    end.record()
    torch.cuda.synchronize()
    worst = torch.tensor(begin.elapsed_time(end) / 1e3 / count, device="cuda")
    dist.all_reduce(worst, op=dist.ReduceOp.MAX)
    return worst.item()


def measure(case, extent: int, mesh: helve.Mesh, rank: int) -> tuple[float, float]:
    """Median seconds of the library, and of helve."""
    before, after, library, _ = case
    source, destination = (distribution(text, (extent, extent), mesh) for text in (before, after))
    shape = source.local_shape((rank,))
    generator = torch.Generator("cuda").manual_seed(rank)
    part = None if shape is None else torch.randint(-99, 99, shape, generator=generator, device="cuda").float()
    tensor = DistTensor.from_local(part, source)
    run = tensor.prepare(tensor.plan(destination))
    shape = destination.local_shape((rank,))
    theirs_new = None if shape is None else torch.empty(shape, device="cuda")
    theirs = library(part, theirs_new, mesh.size)
    run()
    getattr(theirs, "once", theirs)()
    torch.cuda.synchronize()
    if theirs_new is not None:
        assert torch.equal(run.out.shards[rank,], theirs_new), library.__name__
    once = max(seconds(theirs, 3), seconds(run, 3))
    turns = max(3, int(0.02 / once))
    times: dict[str, list[float]] = {"library": [], "helve": []}
    for _ in range(CHOSEN.rounds):
        times["library"].append(seconds(theirs, turns))
        times["helve"].append(seconds(run, turns))
    return statistics.median(times["library"]), statistics.median(times["helve"])


def main() -> None:
    local = int(os.environ.get("LOCAL_RANK", "0"))
    torch.cuda.set_device(local)
    dist.init_process_group("nccl", device_id=torch.device("cuda", local))
    rank, count = helve.dist.rank(), helve.dist.size()
    mesh = helve.Mesh((count,), device="cuda")
    lines = ["| step | size | torch us | helve us | torch / helve | helve GB/s bus |", f"|{' --- |' * 6}"]
    for case in CASES:
        name = case[2].__name__
        for extent in EXTENTS:
            size = extent * extent * 4
            if size > CHOSEN.largest << 20 or CHOSEN.only not in (None, name):
                continue
            library, ours = measure(case, extent, mesh, rank)
            torch.cuda.empty_cache()
            if rank == 0:
                bus = case[3](count) * size / ours / 1e9
                lines.append(f"| {name} | {size >> 20} MiB | {library * 1e6:.1f} | {ours * 1e6:.1f} | "
                             f"{library / ours:.2f} | {bus:.0f} |")
                print(lines[-1], flush=True)
    if rank == 0:
        version = ".".join(map(str, torch.cuda.nccl.version()))
        print(f"\n{count} x {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, NCCL {version}")
        print("\n".join(lines))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
