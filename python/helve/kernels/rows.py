"""How rows are laid over the blocks and threads of a kernel.

Kernels that work row by row are bound by memory: what decides is how many bytes a multiprocessor has in flight, so that
a thread holds several vectors of a row, and that a row is read once, so that it stays on the chip between passes.
"""

from __future__ import annotations

from dataclasses import dataclass

DTYPES = {"float32": 4, "float16": 2, "bfloat16": 2}

# Elements of a row that a thread holds at most: eight vectors of 16 bytes in float32, four of the narrow types.
ELEMENTS = 32
MOST_THREADS = 512
# Block memory for the part of a long row that is not read again: two such blocks fit a multiprocessor of Hopper, one of
# Ampere.
ON_CHIP = 112 * 1024
LOG2E = 1.4426950408889634  # exp(x) = exp2(x * LOG2E); processors have exp2
MULTIPROCESSORS = 132  # of an H200: kernels whose blocks share all rows are laid out for so many


@dataclass(frozen=True, slots=True)
class RowPlan:
    """A division of (M, N) among blocks.

    Attributes:
        rows: rows a block works on at the same time; 1 where a row has several chunks.
        threads: threads a block.
        chunk: columns that a block works on at the same time; N where that is the whole row.
        chunks: how many chunks a row has, the last possibly short.
        kept: the first so many chunks of several stay on the chip between passes over the row; the others are read
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
        rows: rows a block; as many as fill its threads by default. Without effect on rows of several chunks.
        threads: threads a block, a multiple of 32; by default the least power of two whose registers hold a row, or
            512.
        elements: elements of a row that a thread may hold at once, by default what its registers allow, 32 at most;
            longer rows are cut into chunks.
        on_chip: bytes of block memory for the chunks of a long row.

    Raises:
        ValueError: an argument is out of its range.
    """
    if N < 1 or on_chip < 0 or (elements is not None and elements < 1):
        raise ValueError(f"N and elements are at least 1, on_chip 0: {N}, {elements} and {on_chip} were given")
    if dtype not in DTYPES:
        raise ValueError(f"dtype is one of {', '.join(DTYPES)}, not {dtype!r}")
    if threads is not None and (threads % 32 or not 32 <= threads <= 1024):
        raise ValueError(f"threads is a multiple of 32 up to 1024, not {threads}")
    given = threads
    for most in (ELEMENTS // 2, ELEMENTS) if few else (ELEMENTS,):
        threads = given or 32
        while not given and threads < MOST_THREADS and threads * (elements or _held(threads, words, most)) < N:
            threads *= 2
        width = threads * (elements or _held(threads, words, most))
        if N <= width:
            break
    if whole and N <= width:
        if rows is None:
            rows = max(1, min(width // N, 32))
        if rows < 1:
            raise ValueError(f"a block works on 1 row or more, not {rows}")
        return RowPlan(rows, threads, N, 1, 1)
    chunks = -(-N // width)
    return RowPlan(1, threads, width, chunks, min(chunks, on_chip // (width * DTYPES[dtype])))


def _held(threads: int, words: int, most: int) -> int:
    """Elements of which `words` registers each fit a thread, a power of two up to `most`; some registers are left for
    the rest.
    """
    elements = most
    while elements > 8 and elements * words > min(255, 65536 // threads) - 56:
        elements //= 2
    return elements
