"""The contestants of `many_classes.py`: one pass over a stream, predicted before learnt.

    python benchmarks/many_classes_learners.py wordnet 12000 kesler

This prints the figures of a pass as JSON, from a process that has imported no other learner.
"""

from __future__ import annotations

import gc
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any

import numpy as np
import numpy.typing as npt

from many_classes_streams import Codes, by_first_row, n_mistakes, stream

Found = dict[str, Any]

BLOCK, WARM = 250, 1000
"""Rows of a call, and of the untimed run that compiles or loads loops."""
NEAR = {2_000: (1_500, 2_500), 20_000: (19_500, 20_500)}
"""The classes known, from and to, between which the time of a row is measured."""
MEGABYTE = 1e6

BITS, OAA_BITS, NB_BITS, NB_BLOCK, NB_ALPHA = 28, 30, 14, 100, 0.01
LOGISTIC = "--loss_function logistic"
WORDS_ONLY = ("wordnet", "udhr")
HINGE = ("wordnet",)


# ---- memory -------------------------------------------------------------------------------------


def memory_now() -> float:
    """Return the memory of this process in megabytes, and reset the record of its peak."""
    with suppress(OSError):  # Linux only; elsewhere an earlier peak may hide later ones
        Path("/proc/self/clear_refs").write_text("5")
        return status_entry("VmRSS")
    return peak_memory()


def peak_memory() -> float:
    """Return the peak memory of this process in megabytes."""
    with suppress(OSError):
        return status_entry("VmHWM")
    return getrusage(RUSAGE_SELF).ru_maxrss * 1024 / MEGABYTE


def status_entry(entry: str) -> float:
    """Return an entry of the status of this process in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith(f"{entry}:"))
    return int(kilobytes) * 1024 / MEGABYTE


def measured(run: Callable[[], Codes], targets: Codes) -> Found:
    """Run a pass, which returns predictions; return its time, memory and mistakes."""
    gc.collect()
    before, wall, start = memory_now(), time.perf_counter(), time.process_time()
    predicted = run()
    return {
        "processor": time.process_time() - start,
        "wall": time.perf_counter() - wall,
        "megabytes": peak_memory(),
        "grown": peak_memory() - before,
        "error": 100 * n_mistakes(predicted, targets) / len(targets),
        "rows": len(targets),
        "classes": int(targets.max()) + 1,
    }


# ---- Kesler -------------------------------------------------------------------------------------


def kesler(X: Any, labels: list[Any], **settings: Any) -> Found:
    """Make one pass with our learner."""
    from kesler import OnlineClassifier

    pass_of(OnlineClassifier(**settings), X[:WARM], labels[:WARM])
    model, times = OnlineClassifier(**settings), []
    targets = by_first_row(labels)
    found = measured(lambda: pass_of(model, X, labels, times), targets)
    comparing = getattr(model._learner, "comparing", None)
    recall = 100 * comparing.recall if comparing else None
    return found | {"recall": recall, "near": times_near(times)}


def pass_of(model: Any, X: Any, labels: list[Any], times: list[Any] | None = None) -> Codes:
    """Return the predictions of one pass, as numbers of classes; append the time of each block."""
    parts, n_rows = [], len(labels)
    for start in range(0, n_rows, BLOCK):
        begun, some = time.process_time(), slice(start, start + BLOCK)
        parts.append(model._run_trials(X[some], labels[some]).predictions)
        if times is not None:
            seconds = time.process_time() - begun
            times.append((model.n_known_, len(parts[-1]), seconds))
    return np.concatenate(parts)


def times_near(times: list[tuple[int, int, float]]) -> dict[int, float]:
    """Return the microseconds of a row by the number of classes known.

    Examples
    --------
    >>> times_near([(100, 250, 1.0), (1600, 250, 0.1), (2100, 250, 0.15)])
    {2000: 500.0}
    """
    found = {}
    for n, (least, most) in NEAR.items():
        some = [(rows, seconds) for known, rows, seconds in times if least <= known < most]
        if some:
            rows, seconds = (sum(each) for each in zip(*some, strict=True))
            found[n] = 1e6 * seconds / rows
    return found


# ---- Vowpal Wabbit ------------------------------------------------------------------------------


def vowpal_wabbit(name: str, X: Any, labels: list[Any], options: str) -> Found:
    """Make one pass with Vowpal Wabbit, from a file of its format, whose making is not timed."""
    targets = by_first_row(labels)
    n_classes = int(targets.max()) + 1
    bits = OAA_BITS if "--oaa" in options else BITS
    command = f"{options.format(n_classes)} -b {bits} --quiet"
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "stream.vw"
        has_runs = name not in WORDS_ONLY
        with data.open("w", encoding="utf-8") as file:
            for text, target in zip(X, targets.tolist(), strict=True):
                file.write(f"{target + 1} {features(text, has_runs=has_runs)}\n")
        run = one_by_one if "--plt" in options else from_file
        return measured(lambda: run(command, data) - 1, targets)


def features(text: str, *, has_runs: bool) -> str:
    """Return the words of a text, and their runs of 3 and 4 characters, as Vowpal Wabbit reads it.

    Examples
    --------
    >>> features("A rose", has_runs=True)
    '|w a rose |c _a_ _ro ros ose se_ _ros rose ose_'
    """
    words = re.findall(r"\w+", text.lower())
    given = f"|w {' '.join(words)}"
    return f"{given} |c {' '.join(runs(words))}" if has_runs else given


def runs(words: list[str]) -> Iterator[str]:
    """Yield the runs of 3 and 4 characters of words, with their ends."""
    for word in words:
        whole = f"_{word}_"
        for length in (3, 4):
            yield from (whole[i : i + length] for i in range(len(whole) - length + 1))


def from_file(command: str, data: Path) -> Codes:
    """Return the predictions of a pass over a file."""
    from vowpalwabbit import Workspace

    predictions = data.with_suffix(".out")
    Workspace(f"{command} -d {data} -p {predictions}").finish()
    return np.atleast_1d(np.loadtxt(predictions, usecols=0)).astype(np.int64)


def one_by_one(command: str, data: Path) -> Codes:
    """Return the predictions of a pass that calls predict and learn for each row.

    The label tree does not predict where it learns.
    """
    from vowpalwabbit import Workspace

    workspace, found = Workspace(command), []
    kind = workspace.get_prediction_type()
    with data.open(encoding="utf-8") as lines:
        for line in lines:
            example = workspace.parse(line.rstrip("\n"))
            workspace.predict(example)
            best = example.get_prediction(kind)
            workspace.learn(example)
            workspace.finish_example(example)
            found.append(best[0] if best else 0)
    workspace.finish()
    return np.array(found, dtype=np.int64)


def loss_of(name: str) -> str:
    """Return the options of the better loss of one-against-all on a set."""
    return "--loss_function hinge" if name in HINGE else ""


# ---- scikit-learn -------------------------------------------------------------------------------


def naive_bayes(X: Any, labels: list[Any]) -> Found:
    """Make one pass with multinomial naive Bayes: a block is predicted, then learnt."""
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.naive_bayes import MultinomialNB

    targets = by_first_row(labels)
    hashed = HashingVectorizer(n_features=1 << NB_BITS, alternate_sign=False, norm=None)
    model, every = MultinomialNB(alpha=NB_ALPHA), np.arange(targets.max() + 1)

    def run() -> npt.NDArray[np.int64]:
        predicted = np.full(len(targets), -1)
        for start in range(0, len(targets), NB_BLOCK):
            some = slice(start, start + NB_BLOCK)
            rows = hashed.transform(X[some])
            if start:
                predicted[some] = model.predict(rows)
            model.partial_fit(rows, targets[some], classes=every)
        return predicted

    return measured(run, targets)


# ---- all ----------------------------------------------------------------------------------------

Run = Callable[[str, Any, list[Any]], Found]
KESLER, ALL_CLASSES, PA1 = "kesler", "kesler, all classes", "kesler PA-I"
OAA, PLT, RECALL_TREE, NAIVE_BAYES = "vw --oaa", "vw --plt", "vw --recall_tree", "MultinomialNB"
LEARNERS: dict[str, Run] = {
    KESLER: lambda name, X, y: kesler(X, y),
    ALL_CLASSES: lambda name, X, y: kesler(X, y, candidates=None),
    PA1: lambda name, X, y: kesler(X, y, hypotheses="multi", update="pa1"),
    OAA: lambda name, X, y: vowpal_wabbit(name, X, y, f"--oaa {{}} {loss_of(name)}"),
    PLT: lambda name, X, y: vowpal_wabbit(name, X, y, f"--plt {{}} --top_k 1 {LOGISTIC}"),
    RECALL_TREE: lambda name, X, y: vowpal_wabbit(name, X, y, "--recall_tree {}"),
    NAIVE_BAYES: lambda name, X, y: naive_bayes(X, y),
}
PACKAGES = {OAA: "vowpalwabbit", PLT: "vowpalwabbit", RECALL_TREE: "vowpalwabbit"}


def main() -> None:
    """Print the figures of one pass."""
    name, n_rows, learner = sys.argv[1:]
    X, labels = stream(name, int(n_rows))
    print(json.dumps(LEARNERS[learner](name, X, labels)))


if __name__ == "__main__":
    main()
