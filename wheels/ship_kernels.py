"""Compile the kernels that a wheel carries, so that no user waits for Numba.

    python wheels/ship_kernels.py    # then build the wheel: `make wheel` does both

They go to src/kesler/compiled/shipped/, by the versions of Python, Numba and llvmlite that they are
good for and by platform; the folders of several may stand side by side. Under other versions, or
after an edit of what they were compiled from, kernels are compiled from Python as they always were.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from kesler.cli.warm_up import PARTS
from kesler.compiled.jit.cache import SHIPPED, shipping


def ship(work: Callable[[], None]) -> str:
    """Do work with all that it compiles shipped; return its name."""
    with shipping():
        work()
    return work.__name__


def main() -> int:
    """Ship everything, in as many processes as there are parts."""
    shutil.rmtree(SHIPPED, ignore_errors=True)
    with ProcessPoolExecutor(len(PARTS), mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(ship, part) for part in PARTS]):
            print(f"{done.result()}: compiled", flush=True)
    files = list(SHIPPED.iterdir())
    size = sum(file.stat().st_size for file in files)
    print(f"{SHIPPED}: {len(files)} files, {size / 2**20:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
