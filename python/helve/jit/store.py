"""Kernels by what tells them apart.

Threads that ask for the same kernel wait for one compile of it; those that ask for others do not.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from helve.target import Kernel

LIMIT = 256  # kernels; those that were not asked for for longest go first


class _Entry:
    """The place of one kernel. The lock is held while it is made, and may be taken again by who makes it."""

    __slots__ = ("kernel", "lock")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.kernel: Kernel | None = None


class KernelStore:
    """At most `LIMIT` kernels."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()

    def find(self, key: Hashable) -> Kernel | None:
        """The kernel of the key, if it is kept."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
        return entry.kernel

    def find_or_make(self, key: Hashable, make: Callable[[], Kernel]) -> Kernel:
        """The kernel of the key. What `make` raises is raised here, and the next call makes it again."""
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            while len(self._entries) > LIMIT:
                self._entries.popitem(last=False)
        with entry.lock:
            if entry.kernel is None:
                entry.kernel = make()
            return entry.kernel

    def kernels(self) -> list[Kernel]:
        """Those that are made, the one that was asked for last at the end."""
        with self._lock:
            return [entry.kernel for entry in self._entries.values() if entry.kernel is not None]

    def clear(self) -> None:
        """Forgets all kernels."""
        with self._lock:
            self._entries.clear()
