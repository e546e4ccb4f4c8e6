"""What the child of a fork must not take over from its parent: locks that another thread may hold, threads, and files.

`os.fork` copies the thread alone that calls it. A lock that another one holds at that moment is never released in the
child.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref
from functools import cached_property
from typing import Protocol


class Forgets(Protocol):
    """An object with something that belongs to the process that made it."""

    def forget(self) -> None:
        """Called in the child of a fork: make anew, or give up, what belongs to the parent."""


_LOCKS: weakref.WeakSet[threading.Lock] = weakref.WeakSet()
_OWNERS: weakref.WeakSet[Forgets] = weakref.WeakSet()


def new_lock() -> threading.Lock:
    """A lock that is free in each child that is forked, whoever holds it at that moment."""
    lock = threading.Lock()
    _LOCKS.add(lock)
    return lock


def forget_in_children(owner: Forgets) -> None:
    """Have `owner.forget` called in each child that is forked as long as the owner exists."""
    _OWNERS.add(owner)


def _in_child() -> None:
    is_collecting = gc.isenabled()
    gc.disable()  # an object that is collected may ask for a lock which is not renewed yet
    try:
        if sys.version_info < (3, 12):
            _renew_property_locks()
        for lock in list(_LOCKS):
            lock._at_fork_reinit()  # type: ignore[attr-defined]  # as the standard library does with its own
        for owner in list(_OWNERS):
            owner.forget()
    finally:
        if is_collecting:
            gc.enable()


def _renew_property_locks() -> None:
    """Give cached properties new locks: before Python 3.12, one is held while a value is computed."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "triplewire":
            classes = [value for value in vars(module).values() if isinstance(value, type)]
            for entry in [entry for cls in classes for entry in vars(cls).values()]:
                if isinstance(entry, cached_property):
                    entry.lock = threading.RLock()  # type: ignore[attr-defined]  # its stub is that of 3.12


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
