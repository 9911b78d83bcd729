"""What holds of machine code: it equals the interpreter's arithmetic, bit for bit."""

import ast
import inspect
import os
import subprocess
import sys
from enum import Enum
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from kesler import OnlineClassifier, Ratings
from kesler.compiled.jit import decorators
from kesler.forests import ExtraTrees
from kesler.hypotheses import Grouped, PerClass, Shared
from kesler.maps import Contrast, Distance, Frequency, GaussianRatio, Product, SubExperts
from kesler.updates import RULES

HYPOTHESES = {
    "multi": "multi",
    "single": "single",
    "hybrid": "hybrid",
    "grouped": [PerClass(), Grouped({"a": [0, 1, 2], "b": [2, 3]}, Distance())],
    "per class over a map": [PerClass(Product()), Grouped({"a": [0, 4], "b": [1, 2]})],
    "frequency": [PerClass(), Grouped({"a": [0, 1], "b": [2, 3]}, Frequency())],
    "contrast": [PerClass(), Shared(Contrast(), begins_at=0.1)],
    "gaussian ratio": [PerClass(), Shared(GaussianRatio(), begins_at=0.1)],
    "sub-experts": "multi+sub-experts",
    "grouped sub-experts": [
        PerClass(SubExperts()),
        Shared(Distance()),
        Grouped({"a": [0, 1], "b": [1, 3]}, SubExperts()),
    ],
}


OTHERS = {
    "trees": OnlineClassifier(update=ExtraTrees(4)),
    "kernel": OnlineClassifier(update="pa1", kernel="rbf", sigma=1.0),
    "matrix": OnlineClassifier("multi", update="hinge", preconditioner="second-order"),
    "default": OnlineClassifier(),
}
"""Learners with other states than weights and statistics."""


def scores_of_all() -> dict[str, np.ndarray]:
    """Return the scores after 24 trials, for every rule, family of hypotheses and form of state."""
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(24, 7)), generator.integers(0, 5, 24)
    X[generator.random(X.shape) < 0.3] = 0
    ratings = generator.normal(size=(24, 5, 9))
    ratings[generator.random(ratings.shape) < 0.3] = 0
    rated = Ratings.from_dense(ratings, range(5), attributes=X)
    scores = {}
    for rule in RULES:
        for name, hypotheses in HYPOTHESES.items():
            rows = rated if "sub-experts" in name else X
            model = OnlineClassifier(hypotheses, update=rule).fit(rows, y)
            scores[f"{rule}, {name}"] = model.decision_function(rows)
    for name, model in OTHERS.items():
        first, rest = (X[:1], y[:1]), (X[1:], y[1:])
        model = clone(model).partial_fit(*first, classes=range(5)).partial_fit(*rest)
        scores[name] = model.decision_function(X)
    # As many as a cache line holds, and one more: a shared weight may be on the first line too.
    for n_classes in (16, 17):
        y = np.arange(24) % n_classes
        model = OnlineClassifier([PerClass(), Shared(Distance())], update="pa1")
        scores[f"{n_classes} classes"] = model.fit(X, y).partial_fit(X, y).decision_function(X)
    return scores


def test_machine_code_equals_the_interpreter_bit_for_bit(tmp_path):
    """No fused multiply-adds, no reordering: unrolling and vectors change nothing.

    Nor does the interpreter warn of overflow or division by zero, as machine code does not.
    """
    path = tmp_path / "interpreted.npz"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "error", __file__, str(path)]
    subprocess.run(command, env=environment, check=True)
    interpreted = np.load(path)
    for name, scores in scores_of_all().items():
        np.testing.assert_array_equal(scores, interpreted[name], err_msg=name)


if __name__ == "__main__":
    np.savez(sys.argv[1], **scores_of_all())


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_records_of_different_learners_have_different_names_in_machine_code():
    """Cached kernels of two processes call helpers by names made of these: one would do for both.

    A process that loaded a table's trial before a kernel's then read one record as the other.
    """
    from kesler.compiled.jit import record_types
    from kesler.compiled.jit.pointers import Pointed

    records = [kind for name, kind in vars(record_types).items() if name.endswith("LEARNER_RECORD")]
    names = {Pointed(record).name for record in records}
    assert len(names) == len(records) == 4
    assert names == {Pointed(record).name for record in records}


def imported_by(file):
    """Yield the names that a compiled module takes from others of Kesler, with their modules."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        module = (isinstance(node, ast.ImportFrom) and node.module) or ""
        if module.startswith("kesler.") and not module.startswith("kesler.compiled"):
            yield from ((module, each.name) for each in node.names)


def test_kernels_are_named_by_all_files_that_they_are_compiled_from(tmp_path, monkeypatch):
    """A number of another file is a constant of machine code, which the cache would keep."""
    sources = {file.resolve() for file in decorators._sources()}
    folder = Path(decorators.__file__).resolve().parents[1]
    own = {*folder.rglob("*.py")}
    assert own <= sources
    for module, name in sorted({each for file in own for each in imported_by(file)}):
        value = getattr(import_module(module), name)
        is_class = isinstance(value, type) and not issubclass(value, Enum)
        if module.startswith("kesler.state") or not (is_class or inspect.isroutine(value)):
            assert Path(inspect.getfile(import_module(module))).resolve() in sources, (module, name)
    monkeypatch.setattr(decorators, "_sources", lambda: [tmp_path / "a.py"])
    digests = set()
    for text in ("FEW = 256", "FEW = 257", "FEW = 256"):
        (tmp_path / "a.py").write_text(text)
        digests.add(decorators._package_digest.__wrapped__())
    assert len(digests) == 2
