"""Locks of learners and estimators, which a process forked beside running threads can still use."""

from __future__ import annotations

import os
import time
from threading import RLock
from typing import Any, NoReturn
from weakref import WeakKeyDictionary, WeakSet

from kesler.errors import KeslerError

# How long a fork waits for other threads: a piece of rows takes 0.05 s, compiling loops longer.
MOST_SECONDS = 2.0
PATIENCE = 0.1  # how long for one lock, while others are held

_LEARNERS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_ESTIMATORS: WeakSet[Any] = WeakSet()
_held: list[Any] = []


def learner_lock(learner: Any) -> Any:
    """Return a lock that is held while the arrays of a learner are read or written, its `lock`.

    A fork of the process waits a while until it is free. If it is not, the copy of the learner in
    the child may be half-learnt, and is refused there.

    Examples
    --------
    >>> class Owner: ...
    >>> with learner_lock(Owner()) as entered:
    ...     entered
    True
    """
    lock = _LEARNERS[learner] = RLock()
    return lock


def call_lock(estimator: Any) -> Any:
    """Return a lock that is held during a whole call of an estimator, its `_created_lock`.

    A fork does not wait for it: between two blocks of rows, the model is whole.
    """
    _ESTIMATORS.add(estimator)
    return RLock()


class HalfLearnt:
    """The lock of a learner that another thread was writing when the process was forked."""

    def acquire(self, blocking: bool = True) -> NoReturn:
        """Refuse the use of the learner."""
        raise KeslerError(
            "this model was learning in another thread when the process was forked, and its copy "
            "here may have learnt half of a row: fork before the thread starts, or load the model "
            "from a file in the new process"
        )

    def __enter__(self) -> NoReturn:
        self.acquire()

    def __exit__(self, *error: object) -> None:
        """Do nothing: it was not acquired."""

    def release(self) -> None:
        """Do nothing: it was not acquired."""


def _hold() -> None:
    """Before a fork: hold the locks of all learners at the same moment, if they become free."""
    end = time.monotonic() + MOST_SECONDS
    locks = list(_LEARNERS.values())
    while not _tried(locks) and time.monotonic() < end:
        pass


def _tried(locks: list[Any]) -> bool:
    """Hold all of these locks if they become free, or none."""
    for lock in locks:
        if not lock.acquire(timeout=PATIENCE):
            _release()
            return False
        _held.append(lock)
    return True


def _release() -> None:
    while _held:
        _held.pop().release()


def _renew() -> None:
    """In the child: free the locks, and refuse learners that another thread was writing."""
    held = {id(lock) for lock in _held}
    for learner, lock in list(_LEARNERS.items()):
        if id(lock) in held:
            continue
        if lock.acquire(blocking=False):
            lock.release()
        else:
            learner.lock = HalfLearnt()
            del _LEARNERS[learner]
    _release()
    for estimator in list(_ESTIMATORS):
        estimator._created_lock = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_renew)
