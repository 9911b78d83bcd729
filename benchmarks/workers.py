"""Processor time of one process and of two Dask workers: a table of texts, and rows of numbers.

    KESLER_DATA=... python benchmarks/workers.py [texts] [numbers]

Rows are read from a Parquet file of four row groups. The texts are 8 to 20 consecutive words of the
posts of 20 newsgroups, beside a category, a number and a date, with the default learner; the
numbers are those of Pendigits with noise, with PA-I. One process learns the file once; two workers
learn one epoch by parameter mixing. Client and workers wait for each other, so that on two free
processors the workers take at least the processor time of the client and of the slower worker
together; that of imports is left out by a first run on the first rows.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from distributed import Client, LocalCluster
from sklearn.base import clone

from kesler import OnlineClassifier
from kesler.datasets import load, load_pendigits
from kesler.distributed import Partitions, learn

AS_IT_IS = argparse.RawDescriptionHelpFormatter
N_TEXTS, N_NUMBERS, N_TEST, N_GROUPS, N_FIRST = 20_000, 2_000_000, 5_000, 4, 400


def main() -> int:
    """Print a line for each kind of rows that is asked for, and each way to learn them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=AS_IT_IS)
    parser.add_argument("kinds", nargs="*", help="texts, numbers or both")
    for kind in parser.parse_args().kinds or KINDS:
        make, learner = KINDS[kind]
        with tempfile.TemporaryDirectory() as folder:
            compare(kind, make(), learner, Path(folder))
    return 0


# ---- rows ---------------------------------------------------------------------------------------


def texts() -> pd.DataFrame:
    """Return rows of a text, a category, a number and a date."""
    drawn, posts = np.random.default_rng(0), load("20newsgroups")
    n = N_TEXTS + N_TEST
    words = [record["text"].split() for record in posts.records]
    which = drawn.integers(len(words), size=n)
    return pd.DataFrame(
        {
            "body": [window(words[i], drawn) for i in which.tolist()],
            "channel": drawn.choice(["mail", "phone", "web", "shop"], n),
            "amount": np.where(drawn.random(n) < 0.1, np.nan, drawn.lognormal(3, 1, n).round(2)),
            "received": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(n), "min"),
            "label": [str(posts.y[i]) for i in which.tolist()],
        }
    )


def window(words: list[str], drawn: np.random.Generator) -> str:
    """Return 8 to 20 consecutive words of a post."""
    start = int(drawn.integers(max(1, len(words) - 20)))
    return " ".join(words[start : start + int(drawn.integers(8, 21))])


def numbers() -> pd.DataFrame:
    """Return rows of 16 numbers."""
    drawn, digits = np.random.default_rng(0), load_pendigits()
    which = drawn.integers(len(digits.y), size=N_NUMBERS + N_TEST)
    X = digits.X[which] / 100 + drawn.normal(0, 0.05, (len(which), digits.X.shape[1]))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    return frame.assign(label=np.asarray(digits.y)[which].astype(str))


KINDS: dict[str, Any] = {
    "texts": (texts, OnlineClassifier()),
    "numbers": (numbers, OnlineClassifier("multi", update="pa1", uncertainty=False)),
}

# ---- ways to learn them -------------------------------------------------------------------------


def compare(kind: str, rows: pd.DataFrame, learner: Any, folder: Path) -> None:
    """Print the processor time and the accuracy of one process, and of two workers."""
    n_rows = len(rows) - N_TEST
    test = rows[n_rows:]
    whole, first = (written(rows[:n], folder) for n in (n_rows, N_FIRST))
    in_one_process(learner, first)
    begun = time.process_time()
    model = in_one_process(learner, whole)
    say(kind, "one process", n_rows, {"all": time.process_time() - begun}, model, test)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        on_workers(learner, first, client)
        before = spent(client)
        model = on_workers(learner, whole, client)
        used = [b - a for a, b in zip(before, spent(client), strict=True)]
    least = {"client": used[0], "slower worker": max(used[1:])}
    say(kind, "two workers", n_rows, least, model, test)


def written(rows: pd.DataFrame, folder: Path) -> Path:
    """Write rows to a Parquet file of `N_GROUPS` row groups."""
    path = folder / f"{len(rows)}.parquet"
    rows.to_parquet(path, row_group_size=-(-len(rows) // N_GROUPS), index=False)
    return path


def in_one_process(learner: Any, path: Path) -> Any:
    """Return a copy of a learner that has learnt a file once, as a data frame."""
    rows = pd.read_parquet(path)
    return clone(learner).partial_fit(rows.drop(columns="label"), rows["label"])


def on_workers(learner: Any, path: Path, client: Client) -> Any:
    """Return the learner that workers have mixed after one epoch."""
    return learn(learner, Partitions.from_parquet(path, label="label"), epochs=1, client=client)


def spent(client: Client) -> list[float]:
    """Return the processor time of this process, and of each worker."""
    return [time.process_time(), *client.run(time.process_time).values()]


def say(
    kind: str, way: str, n_rows: int, used: dict[str, float], model: Any, test: pd.DataFrame
) -> None:
    """Print the figures of one way."""
    parts = " + ".join(f"{name} {seconds:.1f}" for name, seconds in used.items())
    accuracy = model.score(test.drop(columns="label"), test["label"])
    print(
        f"{kind}, {way}: {n_rows:,} rows, {sum(used.values()):.1f} s ({parts}), "
        f"accuracy {accuracy:.1%}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
