"""Write models of the version that is installed, in every form in which models are kept.

    python tests/write_former.py tests/former/VERSION     # at each release
    python tests/write_former.py FOLDER joblib skops      # dumps as well

Later versions have to read the files and the journal of each release (`test_former.py`); dumps of
joblib and skops are read by the version that wrote them.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import joblib
import numpy as np

import kesler
from kesler.durable import Journal

N_ROWS, N_ASKED = 60, 5


def numbers() -> list[list[float]]:
    """Return rows of three numbers."""
    rows: list[list[float]] = np.random.default_rng(0).normal(size=(N_ROWS, 3)).round(2).tolist()
    return rows


def texts() -> list[str]:
    """Return short texts, whose first word is that of a class."""
    rng = np.random.default_rng(1)
    return [f"{'abc'[i % 3]}{rng.integers(3)} w{rng.integers(9)} x" for i in range(N_ROWS)]


def words() -> list[dict[str, float]]:
    """Return rows of words."""
    return [dict.fromkeys(text.split(), 1.0) for text in texts()]


def table() -> list[dict[str, Any]]:
    """Return rows of a number, a kind and a day."""
    return [
        {"size": row[0], "kind": text[:1], "day": f"2026-11-{1 + i % 28:02}"}
        for i, (row, text) in enumerate(zip(numbers(), texts(), strict=True))
    ]


CLASSES = ["pqr"[i % 3] for i in range(N_ROWS)]
SETS = [[*{"pqr"[i % 3], "pqr"[i // 3 % 3]}] for i in range(N_ROWS)]
RANKS = [int(sum(v > 0 for v in row)) for row in numbers()]
LEARNERS = [kesler.OnlineClassifier("multi", update="pa"), kesler.LinearMax()]
MODELS: dict[str, tuple[Callable[[], Any], Callable[[], Any], list[Any]]] = {
    "ensemble": (lambda: kesler.Ensemble(LEARNERS), numbers, RANKS),
    "table": (lambda: kesler.OnlineClassifier(update="pa1"), table, CLASSES),
    "texts": (lambda: kesler.OnlineClassifier(), texts, CLASSES),
    "passive": (lambda: kesler.OnlineClassifier("hybrid", update="pa1"), words, CLASSES),
    "kernel": (lambda: kesler.OnlineClassifier(kernel="rbf", update="pa1"), numbers, RANKS),
    "sets": (lambda: kesler.OnlineMultilabelClassifier(), words, SETS),
    "rankings": (lambda: kesler.OnlineLabelRanker(), numbers, [list("pqr")] * N_ROWS),
    "ranks": (lambda: kesler.OnlineOrdinalClassifier(), numbers, RANKS),
    "share": (lambda: kesler.ShareBoostClassifier(2), numbers, RANKS),
    "svm": (lambda: kesler.CrammerSingerClassifier(), numbers, RANKS),
    "softmax": (lambda: kesler.SoftmaxClassifier(), numbers, RANKS),
}
"""What is written: each model, its rows and its targets."""


def rows_asked(name: str) -> Any:
    """Return the rows that a model was asked for."""
    return MODELS[name][1]()[:N_ASKED]


def scores(model: Any, name: str) -> list[list[float]]:
    """Return what a model answers."""
    found: list[list[float]] = model.decision_function(rows_asked(name)).tolist()
    return found


def dump(model: Any, path: Path) -> None:
    """Write a model in the form that the end of the path says."""
    if path.suffix == ".kesler":
        model.save(path)
    elif path.suffix == ".joblib":
        joblib.dump(model, path, compress=9)
    else:
        import skops.io

        skops.io.dump(model, path, compression=zipfile.ZIP_DEFLATED, compresslevel=9)


def read(path: Path) -> Any:
    """Return the model that `dump` wrote to the path."""
    if path.suffix == ".kesler":
        return getattr(MODELS[path.stem][0](), "load", kesler.load)(path)
    if path.suffix == ".joblib":
        return joblib.load(path)
    import skops.io

    return skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))


def write(folder: Path, dumps: Iterable[str]) -> None:
    """Write all models, what they answer, and a journal of some of them."""
    folder.mkdir()
    answers = {}
    for name, (make, rows, targets) in MODELS.items():
        model = make().fit(rows(), targets)
        answers[name] = scores(model, name)
        for form in ["kesler"] * hasattr(model, "save") + [*dumps]:
            dump(model, folder / f"{name}.{form}")
    with Journal(folder / "journal.db") as journal:
        for name in ("texts", "sets"):
            make, rows, targets = MODELS[name]
            model = journal.open(name, make())
            for row, target in zip(rows(), targets, strict=True):
                model.learn_one(row, target)
            answers[f"journal {name}"] = scores(model.copy(), name)
    (folder / "answers.json").write_text(json.dumps(answers, indent=1))


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2:])
