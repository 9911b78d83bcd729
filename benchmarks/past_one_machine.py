"""Several machines: four Dask worker processes, with and without a failure, and one process.

    python benchmarks/past_one_machine.py [--quick] [--repeats 1]

Rows are in Parquet files, whose row groups the workers read themselves. ShareBoost must select the
same features on the workers as in one process; a worker that is killed may cost time, but must not
change the result. On one machine with fewer processors than workers, four processes take longer
than one: each step of the solver exchanges a message with each worker. For parameter mixing, the
table shows the mistakes of each epoch, compared with one learner that makes several passes over all
rows.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from distributed import Client, LocalCluster
from sklearn.base import clone

from kesler import OnlineClassifier, ShareBoostClassifier
from kesler.datasets import load
from kesler.distributed import Epoch, Partitions, fit, learn
from racing import Contestant, Figures, Race, command_line, table

N_WORKERS = N_PARTITIONS = 4
EPOCHS = 5
Labels = npt.NDArray[Any]


def main() -> int:
    """Run the race."""
    arguments = command_line(__doc__).parse_args()
    race = Race("past_one_machine", "Several machines", __doc__, arguments)
    name = "pendigits" if race.is_quick else "letter"
    dataset = load(name)
    names = [f"x{j}" for j in range(dataset.X.shape[1])]
    X, y = pd.DataFrame(dataset.X.astype(np.float64), columns=names), dataset.y
    with tempfile.TemporaryDirectory() as folder, workers() as client:
        rows = written(Path(folder), X, y)
        choose(race, client, rows, X, y)
        mix(race, client, rows, X, y)
        bound(race, client)
    return race.write()


@contextmanager
def workers() -> Iterator[Client]:
    """Start worker processes of one thread each."""
    with (
        LocalCluster(
            n_workers=N_WORKERS,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def written(folder: Path, X: pd.DataFrame, y: Labels) -> Partitions:
    """Write rows to a Parquet file with one row group per partition."""
    import pyarrow as pa
    from pyarrow import parquet

    group = -(-len(y) // N_PARTITIONS)
    named = pa.Table.from_pandas(X.assign(y=y), preserve_index=False)
    parquet.write_table(named, folder / "rows.parquet", row_group_size=group)
    return Partitions.from_parquet(folder, label="y")


# ---- ShareBoost -----------------------------------------------------------------------------


def choose(race: Race, client: Client, rows: Partitions, X: pd.DataFrame, y: Labels) -> None:
    """Fit ShareBoost in one process, on the workers, and on workers of which one is killed."""
    X = X.astype(np.float64)
    n_features = 4 if race.is_quick else 12
    learner = ShareBoostClassifier(n_features, dictionary="products")
    found: dict[str, ShareBoostClassifier] = {}

    def runs(name: str, fitted: Callable[[], ShareBoostClassifier]) -> Contestant:
        def run() -> Figures:
            found[name] = fitted()
            return {"error %": 100 * (1 - found[name].score(X, y)), "steps": found[name].n_iter_}

        return Contestant(name, run, len(y))

    def with_failure() -> ShareBoostClassifier:
        with killed(client, after=1.0):
            return fit(learner, rows, client=client)

    race.run(
        f"ShareBoost, {n_features} products of two features, {N_PARTITIONS} partitions",
        [
            runs("one process", lambda: clone(learner).fit(X, y)),
            runs(f"{N_WORKERS} workers", lambda: fit(learner, rows, client=client)),
            runs(f"{N_WORKERS} workers, one killed", with_failure),
        ],
    )
    one, many, survived = found.values()
    race.check(
        "the selected features equal those of one process",
        one.support_.tolist() == many.support_.tolist(),
    )
    apart = float(np.abs(one.coef_ - many.coef_).max() / np.abs(one.coef_).max())
    race.at_most("largest difference of coefficients, relative to the largest one", apart, 1e-6)
    race.check(
        "with a worker killed, the result is the same to the last bit",
        bool((survived.coef_ == many.coef_).all() and (survived.support_ == many.support_).all()),
    )


@contextmanager
def killed(client: Client, after: float) -> Iterator[None]:
    """Kill a worker process `after` seconds."""
    process = next(iter(client.run(os.getpid).values()))
    timer = threading.Timer(after, os.kill, [process, signal.SIGKILL])
    timer.start()
    yield
    timer.join()
    with suppress(TimeoutError):  # a nanny may not restart its worker; the others continue
        client.wait_for_workers(N_WORKERS, timeout=30)


# ---- parameter mixing -----------------------------------------------------------------------


def mix(race: Race, client: Client, rows: Partitions, X: pd.DataFrame, y: Labels) -> None:
    """Show the mistakes of each epoch, of mixed learners and of one learner."""
    lines = []
    learners = {
        "Perceptron": OnlineClassifier("multi", update="perceptron", intercept=8.0),
        "PA-I": OnlineClassifier("multi", update="pa1", intercept=8.0),
        "default": OnlineClassifier(),
    }
    for name, learner in learners.items():
        for mixing in ("mistakes", "uniform"):
            epochs: list[Epoch] = []
            model = learn(
                learner, rows, epochs=EPOCHS, mixing=mixing, client=client, report=epochs.append
            )
            shares = [100 * each.n_mistakes / len(y) for each in epochs]
            lines.append(line(f"{name}, mixed by {mixing}", shares, model, X, y))
        lines.append(line(f"{name}, serial", *serial(learner, X, y), X, y))
    head = ["learner", *(f"epoch {n}, mistakes %" for n in range(1, EPOCHS + 1)), "at the end, %"]
    race.add(
        "### Parameter mixing by epoch, compared with one learner on all rows", table(head, lines)
    )


def bound(race: Race, client: Client) -> None:
    """Check Theorem 3 of McDonald et al. (2010) on rows that known weights of norm 1 separate."""
    rng = np.random.default_rng(0)
    U = rng.normal(size=(5, 10))
    X = rng.normal(size=(4000, 10))
    leads = np.diff(np.sort(X @ U.T, axis=1)[:, -2:])[:, 0] / np.linalg.norm(U)
    X, gamma = X[leads > 0.1], leads[leads > 0.1].min()
    y = np.argmax(X @ U.T, axis=1)
    parts = np.array_split(np.arange(len(y)), N_PARTITIONS)
    epochs: list[Epoch] = []
    learner = OnlineClassifier("multi", update="perceptron")
    rows = Partitions.of([(X[each], y[each]) for each in parts])
    learn(learner, rows, epochs=EPOCHS, client=client, report=epochs.append)
    most = 2 * float((X**2).sum(axis=1).max()) / gamma**2
    found = sum(each.mixed_mistakes for each in epochs)
    race.at_most("sum of mu k, bounded by R^2 / gamma^2 (Theorem 3)", found, most)


def serial(
    learner: OnlineClassifier, X: pd.DataFrame, y: Labels
) -> tuple[list[float], OnlineClassifier]:
    """Return the mistakes of one learner in each epoch over all rows."""
    model, before, shares = clone(learner), 0, []
    for _ in range(EPOCHS):
        model.partial_fit(X, y)
        shares.append(100 * (model.n_mistakes_ - before) / len(y))
        before = model.n_mistakes_
    return shares, model


def line(
    name: str, shares: list[float], model: OnlineClassifier, X: pd.DataFrame, y: Labels
) -> list[str]:
    """Return a row of the table: the progressive mistakes, and those of the final model."""
    left = 100 * (1 - model.score(X, y))
    return [name, *(f"{share:.2f}" for share in shares), f"{left:.2f}"]


if __name__ == "__main__":
    sys.exit(main())
