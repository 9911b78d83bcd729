"""An attack that finds a fault, crashes, raises and hangs, to see that the script notices it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np


def prepare(folder: Path) -> Callable[[np.random.Generator], str | None]:
    """Return a function whose cases differ; their number survives a process."""
    counter = Path(os.environ["KESLER_CASES"])

    def case(rng: np.random.Generator) -> str | None:
        n = len(counter.read_bytes())
        counter.write_bytes(b"." * (n + 1))
        if n == 2:
            os.abort()
        if n == 3:
            raise RuntimeError("an attack itself failed")
        if n == 4:
            time.sleep(3600)
        return "a fault" if n == 1 else None

    return case
