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
from importlib import import_module
from multiprocessing import get_context
from pkgutil import walk_packages

import numpy as np

from kesler import LinearMax, OnlineClassifier, compiled
from kesler.algorithms import ALGORITHMS
from kesler.compiled.jit.cache import SHIPPED, shipping
from kesler.kernels import KERNELS
from kesler.links import LINKS
from kesler.maps import MAPS
from kesler.updates import RULES

TRIALS = ("weight_trial", "kernel_trial")  # compiled beside the functions that they are handed
X, y = np.arange(24, dtype=np.float64).reshape(6, 4) % 5, [0, 1, 2, 0, 1, 2]


def weights() -> None:
    """Compile the trial of learners whose hypotheses are weights, and all that it is handed."""
    learn(OnlineClassifier())
    OnlineClassifier().learn_one({"a": 1}, "b")
    for name in RULES:
        learn(OnlineClassifier("multi", update=name))
        learn(OnlineClassifier("hybrid", update=name))
    for name in LINKS:
        learn(OnlineClassifier("multi", update="perceptron", link=name))
    for name in MAPS:
        learn(OnlineClassifier("single", name, update="pa1"))
    for name in ALGORITHMS:
        learn(LinearMax(name, "multi"))


def kernel_functions() -> None:
    """Compile the trial of learners whose hypotheses are support vectors, for each kernel."""
    for name in KERNELS:
        learn(OnlineClassifier("hybrid", update="pa1", kernel=name))


def others() -> None:
    """Compile all other kernels, whichever there are: of ensembles, of measures.

    Of batch solvers.
    """
    for module in walk_packages(compiled.__path__, f"{compiled.__name__}."):
        if module.name.rpartition(".")[2] not in TRIALS:
            import_module(module.name)


def learn(model: OnlineClassifier) -> None:
    """Run the kernels of a learner."""
    model.fit(X, y).predict(X)


def ship(work: Callable[[], None]) -> str:
    """Do work with all that it compiles shipped; return its name."""
    with shipping():
        work()
    return work.__name__


def main() -> int:
    """Ship everything, in as many processes as there are parts."""
    shutil.rmtree(SHIPPED, ignore_errors=True)
    parts = (weights, kernel_functions, others)
    with ProcessPoolExecutor(len(parts), mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(ship, part) for part in parts]):
            print(f"{done.result()}: compiled", flush=True)
    files = list(SHIPPED.iterdir())
    size = sum(file.stat().st_size for file in files)
    print(f"{SHIPPED}: {len(files)} files, {size / 2**20:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
