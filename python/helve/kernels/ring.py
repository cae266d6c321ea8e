"""Rows that stream through rings of buffers in shared memory.

A block, or a cluster of blocks that share a row, processes rows in turn. While it processes one, asynchronous copies
load the next ones: each thread copies the vectors that it reads itself, so that no barrier is needed in between. The
second pass over a row overlaps with the exchange of the next row's sums between blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from helve import T
from helve.kernels.rows import (CLUSTERED_MULTIPROCESSORS, DTYPES, MAX_THREADS, MULTIPROCESSORS,
                                SLICE_ON_CHIP, check_arguments, check_plan, too_long, vector_elements)

SHORT = 512  # elements of a row that several share a block with, in place of a ring
VECTORS = 4  # of 16 bytes that a thread works on
WARPS = 8  # of a multiprocessor, each with so many vectors: what keeps the memory busy
RING = 96 * 1024  # bytes of a block's rings that leave room for other blocks; two such fit a multiprocessor of Hopper
LONGEST = 64 * 1024  # bytes of a row in all rings, for a block alone: two stages fit every GPU with asynchronous copies


@dataclass(frozen=True, slots=True)
class RingPlan:
    """A division of (M, N) among clusters of blocks; each block has the same slice of every row of its cluster.

    Attributes:
        clusters: clusters that process the rows in turn.
        cluster: blocks of each; 1 where no row is shared.
        threads: threads per block.
        run: contiguous elements per thread, an aligned vector if N allows it.
        turns: vectors that a thread processes at the same time.
        pieces: how often it does so for a slice; the last slices may reach past the row's end.
        stages: slices of a ring, of which all but one are in flight.
        held: the number of leading parameter rows whose slices are kept on chip.
    """

    clusters: int
    cluster: int
    threads: int
    run: int
    turns: int
    pieces: int
    stages: int
    held: int

    @property
    def columns(self) -> int:
        """Columns of a slice."""
        return self.pieces * self.turns * self.threads * self.run

    @property
    def mesh(self) -> T.Mesh | None:
        """The mesh of a kernel whose blocks share rows."""
        return T.Mesh((self.clusters, self.cluster)) if self.cluster > 1 else None


def streams(N: int, dtype: str, rings: int, most: int, threads: int | None = None, elements: int | None = None,
            **tuning) -> bool:
    """Do rows stream through the rings of one block on every GPU with asynchronous copies? `most` is how many elements
    of a row its registers hold; with so many threads and elements on each those that these make.
    """
    if threads is not None or elements is not None:
        most = min(most, (threads or MAX_THREADS) * (elements or VECTORS * vector_elements(dtype)))
    return "rows" not in tuning and SHORT < N <= most and rings * N * DTYPES.get(dtype, 1) <= LONGEST


def plan_ring(N: int, dtype: str, rings: int, cluster: int = 1, clusters: int | None = None, whole: bool = False,
              threads: int | None = None, elements: int | None = None, stages: int | None = None,
              held: int = 0) -> RingPlan:
    """The division for rows of N elements.

    Args:
        N: elements of a row, at least 1.
        dtype: "float32", "float16" or "bfloat16".
        rings: tensors that stream.
        cluster: blocks that share a row, 1 to 16.
        clusters: how many clusters, by default what 8 warps on each multiprocessor make of an H200, 12 where rows are
            shared.
        whole: a thread works on its part of a slice at once.
        threads: threads per block, a multiple of 32; by default the least power of two that works on a slice at once,
            512 at most.
        elements: elements that a thread works on at the same time, by default four vectors.
        stages: slices of a ring, 2 or more; by default 3 where a multiprocessor's rings have the room, else 2.
        held: parameter rows whose slices stay on the chip.

    Raises:
        ValueError: an argument is out of its range, or a slice is too long for a block.
    """
    check_plan(N, dtype, threads, elements, cluster, clusters, least=1)
    check_arguments(stages=stages, held=held)
    run = gcd(vector_elements(dtype), N)
    elements = max(run, (elements or VECTORS * vector_elements(dtype)) // run * run)
    if threads is None:
        threads = 32
        while threads < MAX_THREADS and threads * elements * cluster < N:
            threads *= 2

    def division(blocks: int) -> tuple[int, int]:
        """(turns, pieces) of a slice."""
        vectors = -(-N // (blocks * threads * run))
        turns = min(elements // run, vectors)
        return turns, -(-vectors // turns)

    def room(blocks: int) -> bool:
        turns, pieces = division(blocks)
        slots = rings * (stages or 2) + (held if pieces > 1 else 0)
        return slots * turns * pieces * threads * run * DTYPES[dtype] <= SLICE_ON_CHIP

    def fits(blocks: int) -> bool:
        return room(blocks) and (division(blocks)[1] == 1 or not whole)

    turns, pieces = division(cluster)
    if not fits(cluster):
        limit = f"{threads} threads do" if whole and pieces > 1 else f"{stages or 2} stages of a ring do"
        raise too_long(f"{-(-N // cluster)} elements of a row of {N}, which {limit} not hold", cluster, fits)
    if clusters is None:
        at_once = max(1, (WARPS if cluster == 1 else WARPS + WARPS // 2) * 32 // threads)
        clusters = max(1, (MULTIPROCESSORS if cluster == 1 else CLUSTERED_MULTIPROCESSORS) * at_once // cluster)
    if stages is None:
        stages = 3 if 3 * rings * turns * pieces * threads * run * DTYPES[dtype] <= RING else 2
    return RingPlan(clusters, cluster, threads, run, turns, pieces, stages, held)
