"""The arguments of a call as arrays in memory of known contents, and what is there afterwards.

Each tensor stands in memory of its own, between guard bytes, at its offset from an aligned address; those that share
memory are views of one. A call is judged by all bytes, those between and around the elements too.
"""

import math

import ml_dtypes
import numpy as np
import scalars

NUMPY = {name: np.dtype(name) for name in [*scalars.BITS, "bool", "float16", "float32", "float64"]
         if name not in scalars.PACKED}
NUMPY["bfloat16"] = np.dtype(ml_dtypes.bfloat16)
NUMPY["float8_e4m3"] = np.dtype(ml_dtypes.float8_e4m3fn)
NUMPY["float8_e5m2"] = np.dtype(ml_dtypes.float8_e5m2)
GUARD = 64  # bytes, and the alignment of memory


def _aligned(count):
    memory = np.empty(count + GUARD, np.uint8)
    begin = -memory.ctypes.data % GUARD
    return memory[begin : begin + count]


class Given:
    """Fresh arguments: arrays and numbers in order, and the memory that the arrays are views of."""

    def __init__(self, memories, values):
        self.memories, self.values = memories, values

    def same_bits(self, other):
        return all(map(np.array_equal, self.memories, other.memories))


class Arguments:
    """The arguments of one call, before and after."""

    def __init__(self, numbers, tensors, shared=()):
        """As engines.Call has them."""
        self.numbers, self.tensors = numbers, tensors
        self.place = {}  # position of a tensor -> (number of its memory, first byte, shape, strides in bytes, dtype)
        sizes = []
        together = {n: (k, begin) for k, group in enumerate(shared) for n, begin in group}
        of_group = {}
        for n, t in enumerate(tensors):
            if t is None:
                continue
            _, name, shape, strides = t[:4]
            dtype = NUMPY[name]
            if not strides:
                strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
            reaches = [s * (e - 1) for s, e in zip(strides, shape)] if math.prod(shape) else []
            count = 1 + sum(map(abs, reaches)) if math.prod(shape) else 0
            begin = t[7] if len(t) > 7 else 0
            before = -sum(reach for reach in reaches if reach < 0)  # elements that lie in front of the first
            if n in together:
                group, begin = together[n]
                memory = of_group.setdefault(group, len(sizes))
            else:
                memory = len(sizes)
            if memory == len(sizes):
                sizes.append(0)
            sizes[memory] = max(sizes[memory], (begin + count) * dtype.itemsize)
            self.place[n] = memory, GUARD + (begin + before) * dtype.itemsize, tuple(shape), \
                tuple(s * dtype.itemsize for s in strides), dtype
        self.before = [np.full(size + 2 * GUARD, 0xA5, np.uint8) for size in sizes]
        for n, view in self.views(self.before):
            view[...] = np.array(tensors[n][4], view.dtype).reshape(view.shape)
        self.after = [memory.copy() for memory in self.before]
        for n, view in self.views(self.after):
            view[...] = np.array(tensors[n][5], view.dtype).reshape(view.shape)

    def views(self, memories):
        """(position, array) of each tensor."""
        for n, (memory, begin, shape, strides, dtype) in self.place.items():
            yield n, np.ndarray(shape, dtype, memories[memory], begin, strides)

    def fresh(self):
        memories = []
        for memory in self.before:
            memories.append(_aligned(len(memory)))
            memories[-1][...] = memory
        values = list(self.numbers)
        for n, view in self.views(memories):
            values[n] = view
        return Given(memories, values)


def difference(wanted, given):
    """The first element that is not what it must be, as text; None when all are."""
    if all(map(np.array_equal, wanted.after, given.memories)):
        return None
    touched = [np.zeros(len(memory), np.uint8) for memory in wanted.before]
    for n, mark in wanted.views(touched):
        raw = np.ndarray(mark.shape, f"V{mark.dtype.itemsize}", touched[wanted.place[n][0]], wanted.place[n][1],
                         mark.strides)
        raw[...] = np.frombuffer(b"\1" * mark.dtype.itemsize, raw.dtype)
        t = wanted.tensors[n]
        if found := _difference(given.values[n], t[5], t[6]):
            at, rest = found
            return f"{t[0]}{at} {rest}"
    for memory, got, mark in zip(wanted.before, given.memories, touched):
        outside = (memory != got) & (mark == 0)
        if outside.any():
            return f"a store outside of the tensors, at byte {int(np.argmax(outside)) - GUARD}"
    return None


def _difference(array, expected, errors):
    """(index, text) of the first element that is not within the error of what is expected."""
    shape = array.shape
    if array.dtype.kind in "iub":
        want = np.array(expected, array.dtype).reshape(shape)
        same = array == want
    else:
        got, want = array.astype(np.float64), np.array(expected, np.float64).reshape(shape)
        error = np.array(errors or [0.0] * want.size, np.float64).reshape(shape)
        with np.errstate(invalid="ignore"):
            same = (got == want) | (error > 0) & np.isfinite(got) & (np.abs(got - want) <= 2 * error)
    if same.all():
        return None
    at = tuple(int(i) for i in np.unravel_index(int(np.argmin(same)), shape))
    allowed = f" within {2 * errors[int(np.ravel_multi_index(at, shape))]:g}" if errors and any(errors) else ""
    return list(at), f"is {array[at].item()}, must be {want[at].item()}{allowed}"
