"""kesler warm-up: compile everything that learners may need, so that no later process waits."""

from __future__ import annotations

import logging
import time
from argparse import Namespace
from collections.abc import Callable
from importlib import import_module
from pkgutil import walk_packages

import numpy as np

from kesler import (
    BanditClassifier,
    CostSensitiveClassifier,
    LinearMax,
    OnlineClassifier,
    OnlineOrdinalClassifier,
    compiled,
)
from kesler.algorithms import ALGORITHMS
from kesler.budgets import Budget
from kesler.compiled.jit.background import in_foreground
from kesler.kernels import KERNELS
from kesler.links import LINKS
from kesler.maps import MAPS
from kesler.progress import duration, logged, progress, say
from kesler.updates import RULES
from kesler.updates.bandit import FEEDBACK_RULES

TRIALS = ("weight_trial", "kernel_trial")  # compiled with the functions that they call by address
X, y = np.arange(24, dtype=np.float64).reshape(6, 4) % 5, [0, 1, 2, 0, 1, 2]


def run(options: Namespace) -> None:
    """Compile everything, and print what was compiled and how long it took."""
    begun, records = time.monotonic(), Records()
    with in_foreground(), logged(records), progress("warm-up", "parts", len(PARTS)) as task:
        for part in task.count(PARTS):
            part()
    say(f"{records.n_compiled} functions compiled in {duration(time.monotonic() - begun)}")


class Records(logging.Handler):
    """Prints what has been compiled, and counts it."""

    n_compiled = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record of the end of a compilation."""
        if record.msg.startswith("compiled"):
            self.n_compiled += 1
            say(record.getMessage())


# ---- what is compiled ----------------------------------------------------------------------------


def weights() -> None:
    """Compile the trial of learners whose hypotheses are weights, and all that it calls."""
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
    CostSensitiveClassifier().partial_fit(X, [{0: 0.0, 1: 1.0, 2: 2.0}] * len(X))
    for update in ("auto", *FEEDBACK_RULES):
        BanditClassifier([0, 1, 2], update).partial_fit(X, y)


def kernel_functions() -> None:
    """Compile the trial of learners whose hypotheses are support vectors, for each kernel."""
    for name in KERNELS:
        learn(OnlineClassifier("hybrid", update="pa1", kernel=name))
    learn(OnlineClassifier("multi", update="pa1", kernel="rbf", budget=Budget(2, "projectron")))
    learn(OnlineOrdinalClassifier("single", update="pa1", kernel="rbf"))
    BanditClassifier([0, 1, 2], kernel="rbf").partial_fit(X, y)


def others() -> None:
    """Compile all other kernels: of ensembles, of bounds, of batch solvers, of readers."""
    for module in walk_packages(compiled.__path__, f"{compiled.__name__}."):
        if module.name.rpartition(".")[2] not in TRIALS:
            import_module(module.name)


def learn(model: OnlineClassifier) -> None:
    """Run the kernels of a learner."""
    model.fit(X, y).predict(X)


PARTS: tuple[Callable[[], None], ...] = (weights, kernel_functions, others)
