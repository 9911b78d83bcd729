"""Configurations at random: an estimator, settings of the table of settings, rows and targets.

python tests/configurations.py [--seed 0] [--n 1000]     # runs the law for an hour, or for n
python tests/configurations.py --saves 2000              # saves so many models of all estimators
"""

from __future__ import annotations

import argparse
import pickle
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Perceptron

import kesler
from kesler import LinearMax, OnlineClassifier
from kesler.budgets import Budget
from kesler.candidates import Candidates
from kesler.forests import ExtraTrees
from kesler.hypotheses import PerClass, Shared
from kesler.links import Exponential
from kesler.maps import Distance, Product
from kesler.preconditioners import AdaGrad
from kesler.preprocessing import Bins, RandomFourier, Ranges, Replay
from kesler.queries import LabelBudget
from kesler.settings.codec import ESTIMATORS
from kesler.settings.table import SETTINGS
from kesler.trees import Tree
from kesler.updates import MIRA, SoftmaxGradient

CLASSES = ("a", "b", "c")
ROWS_LEARNT = 36
MOST_GIVEN = 4  # settings that are given beside the estimator

VALUES: dict[str, list[Any]] = {
    "hypotheses": ["multi", [PerClass(), Shared(Product(), begins_at=0.5)]],
    "feature_map": ["product", Distance()],
    "update": ["pa1", "ensemble", MIRA(C=0.5), SoftmaxGradient(2.0), ExtraTrees(3, 16)],
    "link": ["exponential", Exponential()],
    "averaged": [True],
    "costs": [{("a", "b"): 3.0}, {("a", "c"): 3.0, ("c", "a"): 2.0}],
    "intercept": [2.0, np.float32(0.5)],
    "kernel": ["rbf"],
    "sigma": [2.0],
    "budget": [5, Budget(9, "projectron")],
    "preconditioner": [AdaGrad()],
    "on_new_class": ["learn"],
    "preprocessing": [
        None,
        "z-scores",
        [Bins(3), "z-scores"],
        Ranges(information=True),
        [RandomFourier(9, information=True)],
    ],
    "half_life": [1.0, 30],
    "replay": [1, Replay(1, size=20, seed=2), Replay(2, size=5, until=9)],
    "candidates": [None, Candidates(2, beyond=3, budget=9)],
    "memory_limit": ["200 MB", 10**8],
    "epochs": [2],
    "shuffle": [True, False],
    "random_state": [7],
    "class_weight": ["balanced", {"a": 2.0}],
    "C": [0.3],
    "eta": [0.5],
    "delta": [0.01],
    "r": [2.0],
    "columns": [None, {}],
    "on_mismatch": ["raise"],
    "vectors": ["words.vec"],
    "uncertainty": [True, False, "full"],
    "tree": [{"a": "ab", "b": "ab"}, Tree({"a": "ab", "b": "ab"}, {"c": "ab"})],
    "ranks": ["/"],
    "label_budget": [0.5, LabelBudget(0.25)],
    "decision": ["score"],
    "order": [CLASSES, np.array(CLASSES[::-1])],
    "learners": [[OnlineClassifier("multi", update="pa"), LinearMax()]],
    "combine": ["mixture", "majority", "best"],
    "discount": [0.9],
    "demotion": [0.5],
    "share": [0.01],
    "algorithm": ["p-norm", "alma"],
    "classes": [CLASSES, range(3)],
    "exploration": [0.2, "inverse-gap"],
    "weighted": [True],
    "seed": [7],
}
"""Values of each setting, beside those that have names."""

NOT_DRAWN = ("epochs", "shuffle", "random_state", "class_weight", "vectors")
"""Settings of `fit`, and those that only a part of the rows may have."""


def values_of(name: str) -> list[Any]:
    """Return the values that a setting may be given."""
    choices = SETTINGS[name].choices if name in SETTINGS else None
    return [*VALUES.get(name, []), *(choices() if choices else [])]


# ---- rows and targets ---------------------------------------------------------------------------


def _measurements(rng: Any) -> Any:
    return rng.normal(size=(ROWS_LEARNT, 3)).round(2)


def _with_gaps(rng: Any) -> Any:
    X = _measurements(rng)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def _by_name(rng: Any) -> Any:
    return [dict(zip("uvw", row.tolist(), strict=True)) for row in _measurements(rng)]


def _words(rng: Any) -> Any:
    return [{f"w{j}": 1.0 + int(j == 2) for j in rng.integers(0, 9, 4)} for _ in range(ROWS_LEARNT)]


def _texts(rng: Any) -> Any:
    words = [f"word{j}" for j in range(9)]
    return [" ".join(rng.choice(words, 4)) for _ in range(ROWS_LEARNT)]


def _table(rng: Any) -> Any:
    return [
        {"kind": str(rng.choice(["x", "y"])), "size": round(float(rng.normal()), 2)}
        for _ in range(ROWS_LEARNT)
    ]


def _table_of_texts(rng: Any) -> Any:
    return [{"body": f"{text} and {i}", "size": i % 5} for i, text in enumerate(_texts(rng))]


ROWS: dict[str, Callable[[Any], Any]] = {
    "array": _measurements,
    "array with gaps": _with_gaps,
    "integers": lambda rng: rng.integers(0, 5, (ROWS_LEARNT, 3)),
    "CSR": lambda rng: sparse.random(ROWS_LEARNT, 8, 0.3, format="csr", random_state=rng),
    "numbers by name": _by_name,
    "words": _words,
    "texts": _texts,
    "table": _table,
    "table of texts": _table_of_texts,
}
"""Kinds of rows, by functions of a generator of random numbers."""


def targets_of(name: str, rng: Any) -> list[Any]:
    """Return targets for an estimator."""
    labels = [CLASSES[i] for i in rng.integers(0, len(CLASSES), ROWS_LEARNT)]
    if name == "OnlineMultilabelClassifier":
        return [sorted({label, str(rng.choice(CLASSES))}) for label in labels]
    if name == "OnlineLabelRanker":
        return [[label, *sorted({*CLASSES} - {label})] for label in labels]
    if name == "CostSensitiveClassifier":
        return [{each: float(each != label) for each in CLASSES} for label in labels]
    return labels


@dataclass(frozen=True)
class Configuration:
    """An estimator with settings, and the rows and the targets that it learns."""

    seed: int
    estimator: str = field(init=False)
    settings: dict[str, Any] = field(init=False)
    form: str = field(init=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        name = str(rng.choice([*ESTIMATORS]))
        own = [n for n in getattr(kesler, name)().get_params(deep=False) if values_of(n)]
        own = [each for each in own if each not in NOT_DRAWN]
        given = rng.permutation(own)[: int(rng.integers(0, MOST_GIVEN + 1))].tolist()
        if name == "BanditClassifier":
            given = [*{*given} - {"classes"}]
        chosen = {"classes": CLASSES} if name == "BanditClassifier" else {}
        chosen |= {each: _drawn(values_of(each), rng) for each in sorted(given)}
        object.__setattr__(self, "estimator", name)
        object.__setattr__(self, "settings", chosen)
        object.__setattr__(self, "form", str(rng.choice([*ROWS])))

    def learner(self) -> Any:
        """Return a new estimator."""
        return getattr(kesler, self.estimator)(**self.settings)

    @property
    def is_online(self) -> bool:
        """Whether it is an online learner of rows."""
        return self.estimator in ESTIMATORS

    def rows(self) -> tuple[Any, list[Any], list[int]]:
        """Return the rows, the targets, and where the rows are split."""
        rng = np.random.default_rng(self.seed + 1)
        cuts = sorted({*rng.integers(1, ROWS_LEARNT, 2).tolist()})
        return ROWS[self.form](rng), targets_of(self.estimator, rng), [0, *cuts, ROWS_LEARNT]

    def __repr__(self) -> str:
        return f"{self.seed}: {self.learner()!r} over {self.form}"


BOTH = [True, False]
LEARNERS = [
    LogisticRegression(fit_intercept=False),
    OnlineClassifier(update="pa1"),
    Perceptron(fit_intercept=False),
]
DECOMPOSED = {"estimator": LEARNERS}
SOLVED = {"tol": [1e-2], "class_weight": ["balanced", {"a": 2.0}], "fit_intercept": BOTH}
HYPOTHESES = {"hypotheses": ["multi", "hybrid", [PerClass(), Shared(Product())]]}
STEPS = {"update": ["pa1", "simproj", "mira"], "averaged": BOTH}
OF_BATCHES: dict[str, dict[str, list[Any]]] = {
    "CrammerSingerClassifier": {
        **SOLVED, **HYPOTHESES, "C": [0.5], "kernel": ["rbf", "linear"], "sigma": [2.0],
        "costs": [{("a", "b"): 3.0}], "order": ["random"], "random_state": [3],
    },
    "SoftmaxClassifier": {
        **SOLVED, **HYPOTHESES, "C": [0.5], "sigma": [2.0], "loss": ["softmax", "margin-softmax"],
    },
    "ShareBoostClassifier": {
        "n_features_to_select": [1, 2], "dictionary": ["columns", "stumps", "products"],
        "choice": ["gradient", "line", "column", "full"], "loss": ["softmax"], "bias": BOTH,
        "penalty": ["frobenius", "2-1"], "class_weight": ["balanced"], "scale": ["spread"],
    },
    "JointBoostClassifier": {"n_rounds": [3], "n_thresholds": [4]},
    "MixedNormClassifier": {**SOLVED, "alpha": [0.1], "norm": ["inf-1", "2-1"]},
    "KeslerReduction": {**DECOMPOSED, "n_passes": [2], "intercept": [0.0]},
    "OneVsRest": DECOMPOSED,
    "OneVsOne": {**DECOMPOSED, "decoding": ["majority"]},
    "OneAgainstSome": {"estimator": LEARNERS[1:], "n_candidates": [2], "random_state": [3]},
    "ErrorCorrectingCode": {**DECOMPOSED, "code": ["dense", "sparse"], "random_state": [3]},
    "ErrorCorrectingTournament": {**DECOMPOSED, "n_eliminations": [1, 3]},
    "FilterTree": DECOMPOSED,
    "LabelTree": {**DECOMPOSED, "n_children": [3], "max_depth": [1]},
    "StructuredLearner": STEPS,
}  # fmt: skip
"""Values of settings of the estimators that are no online learners of rows."""


def joint_features(x: Any, label: str) -> dict[Any, float]:
    """Return the values of a row by their numbers and a label."""
    return {(i, label): value for i, value in enumerate(x)}


def best_label(weights: Any, x: Any) -> str:
    """Return the label of highest score."""
    return max(CLASSES, key=lambda label: sum(weights[f] * v for f, v in _pairs(x, label)))


def best_augmented(weights: Any, x: Any, y: str) -> str:
    """Return the label of highest score, to which wrong ones have 1 added."""
    return max(
        CLASSES,
        key=lambda label: (label != y) + sum(weights[f] * v for f, v in _pairs(x, label)),
    )


def _pairs(x: Any, label: str) -> Any:
    return joint_features(x, label).items()


@dataclass(frozen=True, repr=False)
class OfBatches(Configuration):
    """A configuration of an estimator that is no online learner of rows."""

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        name = str(rng.choice([*OF_BATCHES]))
        values = OF_BATCHES[name]
        given = {"OneAgainstSome": ["estimator"], "StructuredLearner": []}.get(name, [])
        given += rng.permutation([*values])[: int(rng.integers(0, MOST_GIVEN))].tolist()
        chosen = {each: _drawn(values[each], rng) for each in sorted({*given})}
        if name == "StructuredLearner":
            functions = {"features": joint_features, "infer": best_label}
            chosen |= functions | {"infer_augmented": best_augmented}
        forms = ["array"] if name in ("StructuredLearner", "JointBoostClassifier") else None
        object.__setattr__(self, "estimator", name)
        object.__setattr__(self, "settings", chosen)
        object.__setattr__(self, "form", str(rng.choice(forms or ["array", "integers", "CSR"])))


def _drawn(values: list[Any], rng: Any) -> Any:
    return values[int(rng.integers(len(values)))]


# ---- the law ------------------------------------------------------------------------------------


def broken(configuration: Configuration, folder: Path) -> str:
    """Return how a configuration breaks the law; "" if it holds, "refused" if it is refused.

    A stream teaches the same as a whole, in parts with a file in between, and row by row;
    predictions change nothing; a loaded model has the parameters of the saved one.
    """
    X, y, ends = configuration.rows()
    try:
        whole = configuration.learner()
    except kesler.KeslerError:
        return "refused"
    ways = {"whole": lambda: whole.partial_fit(X, y)}
    ways["split"] = lambda: _in_parts(configuration, X, y, ends, folder)
    ways["row by row"] = lambda: _row_by_row(configuration, X, y)
    made = {name: _tried(way) for name, way in ways.items()}
    refused = {name: model for name, model in made.items() if isinstance(model, Exception)}
    if refused:
        if len(refused) == len(made):
            return "refused"
        return "; ".join(f"{name} is refused: {error}" for name, error in refused.items())
    for name in ("split", "row by row"):
        different = _difference(made["whole"], made[name])
        if different:
            return f"{name}: {different}"
    before = _held(whole)
    whole.predict(X)
    if _held(whole) != before:
        return "predict changes the model"
    if _params(made["split"]) != _params(whole):
        return "a loaded model has other parameters"
    return ""


def _tried(way: Callable[[], Any]) -> Any:
    try:
        return way()
    except kesler.KeslerError as error:
        return error


def _in_parts(configuration: Configuration, X: Any, y: Any, ends: list[int], folder: Path) -> Any:
    model = configuration.learner()
    for start, end in pairwise(ends):
        model.partial_fit(X[start:end], y[start:end])
        model.save(folder / "model")
        model = kesler.load(folder / "model")
    return model


def _row_by_row(configuration: Configuration, X: Any, y: Any) -> Any:
    model = configuration.learner()
    for i, target in enumerate(y):
        model.learn_one(X[i], target)
    return model


def _params(model: Any) -> str:
    """Return the parameters as text, numbers of NumPy as those of Python."""
    params = model.get_params(deep=False).items()
    return repr({n: v.item() if isinstance(v, np.generic) else v for n, v in params})


def _held(model: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in model._learner.arrays().items()}


def _difference(one: Any, other: Any) -> str:
    mine, others = _held(one), _held(other)
    if one.width_ != other.width_:
        return f"{one.width_} and {other.width_} features"
    if mine.keys() != others.keys():
        return f"other arrays: {sorted(mine.keys() ^ others.keys())}"
    return ", ".join(name for name in mine if mine[name] != others[name])


# ---- saving -------------------------------------------------------------------------------------


def broken_save(configuration: Configuration, folder: Path) -> str:
    """Return what differs in a model that was saved and loaded; "refused" if it cannot learn.

    It has the parameters of the saved one, predicts the same, is the same bytes when it is saved
    again, and goes on equally. Estimators without `save` are pickled.
    """
    X, y, _ = configuration.rows()
    try:
        model = configuration.learner()
        (model.partial_fit if configuration.is_online else model.fit)(X, y)
    except kesler.KeslerError:
        return "refused"
    data = _stored(model, folder)
    again = _restored(model, data, folder)
    if _params(model) != _params(again):
        return "a loaded model has other parameters"
    first, second = (_stored(each, folder) for each in (again, _restored(model, data, folder)))
    if (data if hasattr(model, "save") else second) != first:
        return "a loaded model is saved as other bytes"
    for when in ("a loaded model", "a loaded model that goes on"):
        if _said(model, X) != _said(again, X):
            return f"{when} predicts otherwise"
        if hasattr(model, "partial_fit"):
            model.partial_fit(X, y)
            again.partial_fit(X, y)
            if configuration.is_online and (found := _difference(model, again)):
                return f"a loaded model goes on otherwise: {found}"
    return ""


def _stored(model: Any, folder: Path) -> bytes:
    if not hasattr(model, "save"):
        return pickle.dumps(model)
    model.save(folder / "model")
    return (folder / "model").read_bytes()


def _restored(model: Any, data: bytes, folder: Path) -> Any:
    if not hasattr(model, "save"):
        return pickle.loads(data)
    (folder / "model").write_bytes(data)
    return getattr(model, "load", kesler.load)(folder / "model")


def _said(model: Any, X: Any) -> list[str]:
    methods = ("predict", "decision_function", "predict_proba")
    return [repr(np.asarray(getattr(model, m)(X)).tolist()) for m in methods if hasattr(model, m)]


def saves(seed: int) -> Iterator[Configuration]:
    """Yield configurations of all estimators, those of batches one time in three."""
    for i, each in enumerate(configurations(seed)):
        yield OfBatches(each.seed) if i % 3 == 0 else each


def configurations(seed: int) -> Iterator[Configuration]:
    """Yield configurations without end."""
    rng = np.random.default_rng(seed)
    while True:
        yield Configuration(int(rng.integers(1 << 40)))


def main() -> int:
    """Run the law, and print what breaks it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--n", type=int, default=1 << 40)
    parser.add_argument("--saves", type=int, help="number of models to save, in place of the law")
    parser.add_argument("--seconds", type=float, default=3600.0)
    options = parser.parse_args()
    law, drawn = (broken, configurations) if options.saves is None else (broken_save, saves)
    most = options.n if options.saves is None else options.saves
    warnings.simplefilter("ignore")
    counts, end = Counter[str](), time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as folder:
        for each in drawn(options.seed):
            if counts.total() - counts["refused"] * (options.saves is not None) >= most:
                break
            if time.monotonic() > end:
                break
            try:
                found = law(each, Path(folder))
            except Exception as error:
                found = f"{type(error).__name__}: {error}"
            counts["held" if not found else found if found == "refused" else "broken"] += 1
            if found and found != "refused":
                print(f"{each}\n    {found}", flush=True)
    print(dict(counts))
    return int(counts["broken"] > 0)


if __name__ == "__main__":
    sys.exit(main())
