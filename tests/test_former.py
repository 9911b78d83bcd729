"""Files and journals that versions before wrote: they load, and say what they said."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import kesler
from kesler.durable import Journal

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
