"""How rows are distributed over the blocks and threads of a kernel.

Kernels that work row by row are memory-bound. Their speed depends on the bytes that a multiprocessor has in flight, so
a thread holds several vectors of a row, and on reading a row only once, so it is kept on chip between passes.
A `RowPlan` gives rows to blocks, a `ClusterPlan` gives each block of a cluster a slice of a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real

from helve import _core

# What plans are made for where a builder's caller says nothing: a kernel does not know yet where it will run.
MACHINE = _core.gpu_machine("sm_90a")
DTYPES = {"float32": 4, "float16": 2, "bfloat16": 2}

# Elements of a row that a thread holds at most: eight vectors of 16 bytes in float32, four of the narrow types.
ELEMENTS = 32
OTHER_VALUES = 32  # registers of a thread for values that are no elements of its row
MAX_THREADS = 512
# Shared memory for the part of a long row that is read once: two such blocks fit a multiprocessor, beside what the
# driver and reductions take.
ON_CHIP = MACHINE.shared_bytes // 2 - 2 * 1024
LOG2E = 1.4426950408889634  # exp(x) = exp2(x * LOG2E); processors have exp2
MULTIPROCESSORS = MACHINE.processors  # kernels whose blocks share all rows are laid out for so many

MAX_CLUSTER = MACHINE.cluster_blocks
SLICE_ON_CHIP = MACHINE.block_shared_bytes - 3 * 1024  # for the slice of a row; the rest is for reductions
SLICE_CHUNK = 8192  # elements of a slice that a block works on at the same time
LINED_UP = 4096  # blocks of clusters that keep no sums: many more than run together, so that no multiprocessor waits
CLUSTERED_MULTIPROCESSORS = 120  # of an H200: a cluster stands on neighbours, so that some are left over


@dataclass(frozen=True, slots=True)
class RowPlan:
    """A division of (M, N) among blocks.

    Attributes:
        rows: rows that a block processes at the same time; 1 if a row has several chunks.
        threads: threads per block.
        chunk: columns that a block processes at the same time; N if that is the whole row.
        chunks: the number of chunks of a row; the last may be short.
        kept: the number of leading chunks that are kept on chip between passes over the row; the others are read
            again.
    """

    rows: int
    threads: int
    chunk: int
    chunks: int
    kept: int


def plan_rows(N: int, dtype: str, words: int = 3, few: bool = False, whole: bool = True,
              rows: int | None = None, threads: int | None = None, elements: int | None = None,
              on_chip: int = ON_CHIP) -> RowPlan:
    """The division for rows of N elements.

    Args:
        N: elements of a row, at least 1.
        dtype: "float32", "float16" or "bfloat16".
        words: registers that the kernel needs for each element that a thread holds.
        few: hold half as many elements a thread where a row fits the block's registers that way, so that more blocks
            do.
        whole: False for the division into chunks also where a row fits.
        rows: rows per block; as many as fill its threads by default. Without effect on rows of several chunks.
        threads: threads per block, a multiple of 32; by default the least power of two whose registers hold a row, or
            512.
        elements: elements of a row that a thread may hold at once, by default what its registers allow, 32 at most;
            longer rows are cut into chunks.
        on_chip: bytes of shared memory for the chunks of a long row.

    Raises:
        ValueError: an argument is out of its range.
    """
    check_plan(N, dtype, threads, elements)
    check_arguments(on_chip=on_chip, rows=rows)
    given = threads
    for most in (ELEMENTS // 2, ELEMENTS) if few else (ELEMENTS,):
        threads = given or 32
        while not given and threads < MAX_THREADS and threads * (elements or _held(threads, words, most)) < N:
            threads *= 2
        width = threads * (elements or _held(threads, words, most))
        if N <= width:
            break
    if whole and N <= width:
        if rows is None:
            rows = max(1, min(width // N, 32))
        return RowPlan(rows, threads, N, 1, 1)
    chunks = -(-N // width)
    return RowPlan(1, threads, width, chunks, min(chunks, on_chip // (width * DTYPES[dtype])))


def vector_elements(dtype: str) -> int:
    """Elements of the widest vector that a thread loads; bytes for a name that is no dtype."""
    return MACHINE.vector_bytes // DTYPES.get(dtype, 1)


def holds_rows_as_asked(tuning: dict) -> bool:
    """Whether a builder's caller says how a block holds its rows, so that the builder does not choose a form by N."""
    return not {"rows", "threads", "elements"}.isdisjoint(tuning)


def _held(threads: int, words: int, most: int) -> int:
    """Elements of which `words` registers each fit a thread, a power of two up to `most`; some registers are left for
    the rest.
    """
    elements = most
    while elements > 8 and elements * words > MACHINE.value_registers(threads) - OTHER_VALUES:
        elements //= 2
    return elements


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """A division of (M, N) among clusters of blocks.

    Attributes:
        clusters: clusters that process the rows in turn.
        cluster: blocks of each; a block works on the same slice of every row of its cluster.
        threads: threads per block.
        columns: columns of a slice; the last slices may reach past the row's end.
        chunk: columns of a slice that a block works on at the same time, a divisor of `columns`.
    """

    clusters: int
    cluster: int
    threads: int
    columns: int
    chunk: int


def plan_waiting_slices(N: int, dtype: str, cluster: int, clusters: int | None = None, narrow: bool = False,
                        threads: int | None = None, elements: int | None = None) -> ClusterPlan:
    """The division for slices that are kept in shared memory between two passes.

    Args:
        N: elements of a row, at least 1.
        dtype: "float32", "float16" or "bfloat16".
        cluster: blocks that share a row, 2 to 16.
        clusters: how many clusters, by default 4096 blocks of them.
        narrow: use half as many threads with twice the elements for slices of two chunks or less, so that more blocks
            are resident on a multiprocessor.
        threads: threads per block, a multiple of 32; by default the least power of two that works on a slice at once,
            512 at most, or 256.
        elements: elements that a thread works on at the same time, 16 by default, or 32.

    Raises:
        ValueError: an argument is out of its range, or a slice is too long for shared memory.
    """
    check_plan(N, dtype, threads, elements, cluster, clusters)
    most = MAX_THREADS // 2 if narrow and -(-N // cluster) <= 2 * SLICE_CHUNK else MAX_THREADS
    elements = elements or SLICE_CHUNK // most
    if threads is None:
        threads = 32
        while threads < most and threads * elements * cluster < N:
            threads *= 2
    chunk = threads * elements

    def columns(blocks: int) -> int:
        return -(-N // (blocks * chunk)) * chunk

    most = SLICE_ON_CHIP // DTYPES[dtype]
    if columns(cluster) > most:
        raise too_long(f"{columns(cluster)} elements of a row of {N}, where shared memory has room for {most}",
                        cluster, lambda blocks: columns(blocks) <= most)
    return ClusterPlan(clusters or LINED_UP // cluster, cluster, threads, columns(cluster), chunk)


def too_long(slice_: str, cluster: int, fits: Callable[[int], bool]) -> ValueError:
    """Says how many blocks would be enough."""
    enough = next((blocks for blocks in range(cluster + 1, MAX_CLUSTER + 1) if fits(blocks)), None)
    advice = f"no cluster of up to {MAX_CLUSTER} is enough" if enough is None else f"cluster is at least {enough}"
    return ValueError(f"each of {cluster} blocks has {slice_}: {advice}")


def check_plan(N: int, dtype: str, threads: int | None, elements: int | None, cluster: int | None = None,
               clusters: int | None = None, least: int = 2) -> None:
    """Raises a ValueError for what no division has; clusters of `least` blocks up, where there are any."""
    check_arguments(N=N, dtype=dtype, threads=threads, elements=elements, clusters=clusters)
    if cluster is not None and not (isinstance(cluster, Integral) and least <= cluster <= MAX_CLUSTER):
        raise ValueError(f"{least} to {MAX_CLUSTER} blocks of a cluster share a row, not {cluster!r}")


def _from(least: int) -> tuple[str, Callable[[object], bool]]:
    return f"a whole number of {least} or more", lambda value: isinstance(value, Integral) and value >= least


# What the arguments of builders are, by name: as a message says it, and as a test.
_ARGUMENTS = {
    **dict.fromkeys(["N", "M", "K", "D", "heads", "heads_kv", "queries", "keys", "elements", "rows", "clusters",
                     "blocks", "cluster", "split", "tile", "columns", "groups"], _from(1)),
    "on_chip": _from(0),
    "held": _from(0),
    "depth": _from(1),
    "stages": _from(2),
    "dtype": (f"one of {', '.join(DTYPES)}", lambda value: isinstance(value, str) and value in DTYPES),
    "threads": (f"a multiple of 32 up to {MACHINE.block_threads}",
                lambda value: isinstance(value, Integral) and value % 32 == 0 and 32 <= value <= MACHINE.block_threads),
    "eps": ("a number", lambda value: isinstance(value, Real)),
}
# by the plan, or another argument, where they are None
_CHOSEN = {"threads", "elements", "rows", "clusters", "cluster", "split", "blocks", "stages", "heads_kv", "queries",
           "keys", "columns", "depth"}


def check_arguments(**arguments) -> None:
    """Raises a ValueError for an argument of a builder, given by its name, that is not what the builders take."""
    for name, value in arguments.items():
        what, holds = _ARGUMENTS[name]
        if not (value is None and name in _CHOSEN) and not holds(value):
            raise ValueError(f"{name} is {what}, not {value!r}")
