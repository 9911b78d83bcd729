"""Locks of learners and estimators, which a process forked beside running threads can still use."""

from __future__ import annotations

import os
import time
from threading import RLock
from typing import Any
from weakref import WeakSet

# How long a fork waits for the trials of other threads; the first of them may compile its loops.
MOST_SECONDS = 60.0
PAUSE = 0.001

_OF_LEARNERS: WeakSet[Any] = WeakSet()
_OF_CALLS: WeakSet[Any] = WeakSet()
_held: list[Any] = []


def learner_lock() -> Any:
    """Return a lock that is held while the arrays of a learner are read or written.

    A fork of the process waits until it is free, so that the child has no half-written weights.

    Examples
    --------
    >>> with learner_lock() as entered:
    ...     entered
    True
    """
    return _added(_OF_LEARNERS)


def call_lock() -> Any:
    """Return a lock that is held during a whole call, such as one that learns many rows.

    A fork does not wait for it: between two blocks of rows, the model is whole.
    """
    return _added(_OF_CALLS)


def _added(locks: WeakSet[Any]) -> Any:
    lock = RLock()
    locks.add(lock)
    return lock


def _hold() -> None:
    """Before a fork: hold the locks of all learners at the same moment, and none while waiting."""
    end = time.monotonic() + MOST_SECONDS
    while not _tried(list(_OF_LEARNERS)) and time.monotonic() < end:
        time.sleep(PAUSE)
    for lock in list(_OF_CALLS):
        if lock.acquire(blocking=False):
            _held.append(lock)


def _tried(locks: list[Any]) -> bool:
    """Hold all of these locks if they are free, or none."""
    for lock in locks:
        if not lock.acquire(blocking=False):
            _release()
            return False
        _held.append(lock)
    return True


def _release() -> None:
    while _held:
        _held.pop().release()


def _renew() -> None:
    """In the child: free the locks, also those of threads that it does not have."""
    held = {id(lock) for lock in _held}
    for lock in (*_OF_LEARNERS, *_OF_CALLS):
        if id(lock) not in held:
            lock._at_fork_reinit()
    _release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_renew)
