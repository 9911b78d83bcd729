"""Files and journals that versions before wrote: they load, and say what they said."""

import importlib.util
import json
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import kesler
import write_former
from kesler import (
    BanditClassifier,
    FilterTree,
    JointBoostClassifier,
    KeslerError,
    KeslerReduction,
    OnlineClassifier,
    ShareBoostClassifier,
    SoftmaxClassifier,
    StructuredLearner,
)
from kesler.durable import Journal
from kesler.settings.codec import estimator_of, settings_of

FORMER = Path(__file__).parent / "former"
SCORES = json.loads((FORMER / "scores.json").read_text())


def rows_of(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).round(2)
    if name == "default_words":
        return [{f"w{j}": 1.0 for j in rng.integers(0, 12, 4)} for _ in range(40)]
    if name == "table":
        kinds = [["p", "q"][int(v > 0)] for v in X[:, 1]]
        return pd.DataFrame({"u": X[:, 0], "v": kinds, "w": X[:, 2]})
    return X


@pytest.mark.parametrize("name", SCORES)
def test_a_model_file_of_before_says_the_same(name, tmp_path):
    model, rows = kesler.load(FORMER / f"{name}.kesler"), rows_of(name)[:5]
    assert model.notes_ == {"made_by": name}
    np.testing.assert_array_equal(model.decision_function(rows), SCORES[name])
    model.save(tmp_path / "again.kesler")
    again = kesler.load(tmp_path / "again.kesler")
    np.testing.assert_array_equal(again.decision_function(rows), SCORES[name])
    assert clone(again).get_params().keys() == model.get_params().keys()


def test_a_journal_of_before_is_learnt_again(tmp_path):
    (tmp_path / "journal.db").write_bytes((FORMER / "journal.db").read_bytes())
    X = rows_of("journal").tolist()
    with Journal(tmp_path / "journal.db") as journal:
        assert journal.check() == []
        mail, parts = journal.open("mail"), journal.open("parts")
        said = [mail.predict_one(dict(zip("uvw", row, strict=True))) for row in X]
        assert mail.estimator.n_trials_ == 60 and parts.estimator.n_trials_ == 20
        assert mail.estimator.preprocessing_ is not None
        assert said.count("a") > 5


FILES = sorted(FORMER.glob("*/*.kesler"))
JOURNALS = sorted(FORMER.glob("*/journal.db"))


def answers(folder):
    return json.loads((folder / "answers.json").read_text())


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_model_of_each_release_says_the_same_and_learns(path):
    model, expected = write_former.read(path), answers(path.parent)[path.stem]
    np.testing.assert_array_equal(write_former.scores(model, path.stem), expected)
    if hasattr(model, "partial_fit"):
        _, rows, targets = write_former.MODELS[path.stem]
        model.partial_fit(rows(), targets)


@pytest.mark.parametrize("path", JOURNALS, ids=lambda path: path.parent.name)
def test_a_journal_of_each_release_says_the_same(path, tmp_path):
    (tmp_path / "journal.db").write_bytes(path.read_bytes())
    expected = {n: said for n, said in answers(path.parent).items() if n.startswith("journal ")}
    assert len(expected) == 2
    with Journal(tmp_path / "journal.db") as journal:
        assert journal.check() == []
        for name, said in expected.items():
            kind = name.removeprefix("journal ")
            model = journal.open(kind, write_former.MODELS[kind][0]()).copy()
            np.testing.assert_array_equal(write_former.scores(model, kind), said)


FORMAT_3 = {
    "a classifier": OnlineClassifier(),
    "an ensemble": OnlineClassifier(update="ensemble"),
    "feedback": BanditClassifier(["a", "b"]),
}


@pytest.mark.parametrize("model", FORMAT_3.values(), ids=FORMAT_3)
def test_words_had_no_intercept_before_format_3(model):
    written = settings_of(model)
    for version, of_words in ((2, 0.0), (3, 1.0), (4, 1.0)):
        for rows, intercept in (([{"a": 1.0}, {"b": 1.0}], of_words), ([[0.5], [1.5]], 1.0)):
            read = clone(estimator_of({**written, "format": version}))
            assert settings_of(read) == written
            used = read.fit(rows, ["a", "b"]).resolved_
            first = used.update[0] if isinstance(used.update, list) else used
            assert first.intercept == intercept


DUMPS = ["joblib", *(["skops"] if importlib.util.find_spec("skops") else [])]
WRITTEN = [
    (name, form)
    for name, (make, _, _) in write_former.MODELS.items()
    for form in ("kesler", "joblib", "skops")
    if form != "kesler" or hasattr(make(), "save")
]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return a folder that another process of this version has written."""
    folder = tmp_path_factory.mktemp("written") / "now"
    command = [sys.executable, write_former.__file__, str(folder), *DUMPS]
    subprocess.run(command, check=True)
    return folder


@pytest.mark.parametrize(("name", "form"), WRITTEN)
def test_another_process_reads_every_form(written, name, form):
    if form == "skops" and form not in DUMPS:
        pytest.skip("needs skops")
    model = write_former.read(written / f"{name}.{form}")
    np.testing.assert_array_equal(write_former.scores(model, name), answers(written)[name])


def features(x, y):
    return {f"{x} {y}": 1.0}


@pytest.mark.parametrize(
    "make",
    [
        OnlineClassifier,
        lambda: StructuredLearner(features, max),
        SoftmaxClassifier,
        ShareBoostClassifier,
        JointBoostClassifier,
        FilterTree,
        KeslerReduction,
    ],
)
def test_a_pickle_of_another_version_is_refused(make, monkeypatch):
    data = pickle.dumps(make())
    assert repr(pickle.loads(data)) == repr(make())
    assert not hasattr(pickle.loads(data), "written_by")
    version = kesler.__version__
    monkeypatch.setattr(kesler, "__version__", "9.0")
    said = f"pickled by kesler {version}, and this is kesler 9.0"
    with pytest.raises(KeslerError, match=re.escape(said)):
        pickle.loads(data)
