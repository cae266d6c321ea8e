"""Memory of the evaluator, and the record of who touched what in loops whose iterations promise to be independent.

Each element has a number of its own, its place, so that records are plain dictionaries.
"""

import itertools
import math

from scalars import Undefined

_serial = itertools.count()
_SPAN = 40  # bits of a place that tell the elements of one store apart


class Store:
    """A piece of memory."""

    def __init__(self, values):
        self.values, self.key = values, next(_serial) << _SPAN


class Memory:
    """One instance of a buffer: row-major values, None where nothing was written.

    `store` holds them from element `begin` on; buffers that lie over each other have one store.
    """

    def __init__(self, buffer, shape, store=None, begin=0):
        self.buffer, self.shape, self.begin = buffer, shape, begin
        self.dtype, self.name = buffer.dtype, buffer.name
        self.size = math.prod(shape)
        self.private = buffer.kind == "local"
        self.use(Store([None] * self.size) if store is None else store)

    def use(self, store):
        self.store, self.values = store, store.values

    @property
    def data(self):
        return self.values[self.begin : self.begin + self.size]

    def forget(self):
        self.use(Store([None] * len(self.values)))


class Iterations:
    """Who touched what in a loop whose iterations promise to be independent, and which of them came to which statement.

    Private memory of a thread may be written by many iterations, each for itself: what one wrote no other may read, and
    after the loop nothing is known of it.
    """

    def __init__(self, loop):
        self.loop = loop
        self.reached = {}
        self.now = 0
        self.reads, self.writes, self.updates = {}, {}, {}  # of a place: the iteration, -1 for several
        self.kinds = {}  # of a place: the atomic operation
        self.scratch = {}  # places of private memory that several iterations wrote: (store, element)

    def note_read(self, place, private):
        now = self.now
        writer = self.writes.get(place)
        if writer is not None:
            if writer != now:
                raise Undefined("two iterations meet in an element")
            if private:
                return
        if self.updates and self.updates.get(place, now) != now:
            raise Undefined("two iterations meet in an element")
        if self.reads.setdefault(place, now) != now:
            self.reads[place] = -1

    def note_write(self, place, memory, offset):
        now = self.now
        if self.reads.get(place, now) != now or self.updates and self.updates.get(place, now) != now:
            raise Undefined("two iterations meet in an element")
        if self.writes.setdefault(place, now) != now:
            if not memory.private:
                raise Undefined("two iterations meet in an element")
            self.writes[place] = now
            self.scratch[place] = memory.store, offset

    def note_update(self, place, kind):
        now = self.now
        if self.reads.get(place, now) != now or self.writes.get(place, now) != now:
            raise Undefined("two iterations meet in an element")
        known = self.updates.setdefault(place, now)
        if self.kinds.setdefault(place, kind) != kind:
            if known != now:
                raise Undefined("two iterations meet in an element")
            self.kinds[place] = "several"
        if known != now:
            self.updates[place] = -1

    def close(self):
        """What several iterations wrote, each in memory of its own, is nobody's value now."""
        for store, offset in self.scratch.values():
            store.values[offset] = None
