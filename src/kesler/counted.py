"""Counting: how many trials, mistakes and classes a machine has met."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.events import Event


class Counted:
    """What counts its trials: `counters` holds trials, mistakes and classes met."""

    counters: npt.NDArray[np.int64]
    lock: Any

    @cached_property
    def event(self) -> Event:
        """Room for one row, for who holds `lock` until its trial is over."""
        return Event()

    @property
    def n_trials(self) -> int:
        """Rows learnt from."""
        return int(self.counters[0])

    @property
    def n_mistakes(self) -> int:
        """Trials in which a class already known was not predicted."""
        return int(self.counters[1])

    @property
    def n_known(self) -> int:
        """Classes met so far."""
        return int(self.counters[2])
