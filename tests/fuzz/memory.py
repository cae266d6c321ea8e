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

    Each has private memory for itself: it finds what stood there before the loop, and what it writes no other one sees.
    Behind the loop stands what one iteration left of an element; where several did, nothing is known of it.
    """

    def __init__(self, loop):
        self.loop = loop
        self.reached = {}
        self.count = 0
        self.go_on = {}  # of a buffer: the iterations that read private memory of it before they wrote there
        self.now = 0
        self.reads, self.writes, self.updates = {}, {}, {}  # of a place: the iteration, -1 for several
        self.kinds = {}  # of a place: the atomic operation
        self.fetched = set()  # places of which an update returned what stood there
        self.found = {}  # of the iteration, places of private memory that it wrote: (store, element, what stood there)
        self.left = {}  # places of private memory that an iteration wrote: (store, element, what it left)

    def begin(self, number):
        """The iteration before, if there was one, is over."""
        for place, (store, element, value) in self.found.items():
            self.left[place] = store, element, None if place in self.left else store.values[element]
            store.values[element] = value
        self.found = {}
        self.count += number is not None
        self.now = number

    def note_read(self, place, private):
        if private:
            return
        now = self.now
        if self.writes.get(place, now) != now:
            raise Undefined("two iterations meet in an element")
        if self.updates and self.updates.get(place, now) != now:
            raise Undefined("two iterations meet in an element")
        if self.reads.setdefault(place, now) != now:
            self.reads[place] = -1

    def note_write(self, place, memory, offset):
        if memory.private:
            self.found.setdefault(place, (memory.store, offset, memory.values[offset]))
            return
        now = self.now
        if self.reads.get(place, now) != now or self.updates and self.updates.get(place, now) != now:
            raise Undefined("two iterations meet in an element")
        if self.writes.setdefault(place, now) != now:
            raise Undefined("two iterations meet in an element")

    def note_update(self, place, kind, fetches):
        now = self.now
        if self.reads.get(place, now) != now or self.writes.get(place, now) != now:
            raise Undefined("two iterations meet in an element")
        known = self.updates.setdefault(place, now)
        if self.kinds.setdefault(place, kind) != kind:
            if known != now:
                raise Undefined("two iterations meet in an element")
            self.kinds[place] = "several"
        if fetches:
            self.fetched.add(place)
        if known != now:
            if place in self.fetched:
                raise Undefined("the order of iterations decides what an update finds")
            self.updates[place] = -1

    def close(self):
        self.begin(None)
        for store, element, value in self.left.values():
            store.values[element] = value
