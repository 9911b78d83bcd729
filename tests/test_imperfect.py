"""Imperfect trials, which theorems on simultaneous projections bound, beside mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import amit2006
from enron import read_mail
from kesler import (
    BanditClassifier,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
    load,
    mistake_bound,
    progressive_validate,
)
from kesler.updates import ConProj
from streams import make_stream


def counted(X: Any, y: Any, C: float) -> tuple[int, int]:
    """ConProj of Amit et al. 2006 with a vector a class: mistakes, and trials with a lead <= 0."""
    w, known, mistakes, imperfect = np.zeros((int(y.max()) + 1, X.shape[1])), 0, 0, 0
    for x, r in zip(X, map(int, y), strict=True):
        if r == known:
            known += 1
            continue
        scores = w[:known] @ x
        mistakes += int(scores.argmax() != r)
        above = [s for s in range(known) if s != r and scores[s] >= scores[r]]
        imperfect += bool(above)
        for s in above:
            step = min(C, (1 - (scores[r] - scores[s])) / max(2 * float(x @ x), 1e-300))
            w[r] += step / len(above) * x
            w[s] -= step / len(above) * x
    return mistakes, imperfect


@pytest.mark.parametrize("on_new_class", ["register", "learn"])
def test_ties_are_imperfect_and_no_mistakes(on_new_class):
    """Rows of zeros tie all classes: the first is predicted, rightly in half of the rows."""
    X, y = np.zeros((41, 2)), np.array([0, 1] * 20 + [0])
    model = OnlineClassifier("multi", update="simperc", on_new_class=on_new_class, intercept=0)
    model.fit(X, y)
    # Row 0 brings a class; row 1 another one, while the first has no rival.
    assert (model.n_mistakes_, model.n_imperfect_) == (19, 39)


@pytest.mark.parametrize("C", [0.0625, 1.0])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_count_is_that_of_the_source(C, sparse):
    """Of three classes and lengths of 2: all numbers are exact, and so are ties."""
    rng = np.random.default_rng(3)
    X = rng.choice([-1.0, 1.0], size=(300, 4))
    names = np.argmax(X[:, :3] + 0.5 * rng.normal(size=(300, 3)), axis=1).tolist()
    order = list(dict.fromkeys(names))
    y = np.array([order.index(each) for each in names])
    model = OnlineClassifier("multi", update=ConProj(C), intercept=0)
    rows = [{f"f{i}": v for i, v in enumerate(x) if v} for x in X] if sparse else X
    model.fit(rows, y)
    expected = counted(X, y, C)
    assert expected[1] > expected[0]
    assert (model.n_mistakes_, model.n_imperfect_) == expected


@pytest.mark.data
def test_the_counts_on_mail():
    """By another program: 650 imperfect trials, of which 647 are mistakes."""
    mail = read_mail("lokay-m")
    model = OnlineClassifier(amit2006.SHARED, update=ConProj(0.01))
    model.fit(mail.counts, mail.folders)
    assert (model.n_imperfect_, model.n_mistakes_) == (650, 647)


TARGETS: dict[str, tuple[Any, Any]] = {
    "sets": (OnlineMultilabelClassifier, lambda rng: (rng.normal(size=(80, 3)) > 0).astype(int)),
    "ranking": (OnlineLabelRanker, lambda rng: np.argsort(rng.normal(size=(80, 3)), axis=1)),
    "ranks": (OnlineOrdinalClassifier, lambda rng: rng.integers(3, size=80)),
}


@pytest.mark.parametrize("kind", TARGETS)
def test_of_every_kind_of_target_ties_count(kind):
    """Without features all scores tie, and so every row that compares classes is imperfect."""
    make, targets = TARGETS[kind]
    rng = np.random.default_rng(4)
    y = targets(rng)
    model = make("multi", update="simperc", intercept=0)
    model.fit(np.zeros((80, 2)), y)
    assert 60 < model.n_imperfect_ <= 80
    assert model.n_imperfect_ >= model.n_mistakes_


def test_theorem_1_bounds_them():
    stream = make_stream(9, 300)
    result = progressive_validate(OnlineClassifier("multi", update="conproj"), stream.X, stream.y)
    model = OnlineClassifier("multi", update="conproj").fit(stream.X, stream.y)
    assert result.n_mistakes <= model.n_imperfect_ <= mistake_bound(result).bound


def test_the_count_is_kept_in_files_and_goes_on(tmp_path):
    stream = make_stream(2)
    model = OnlineClassifier("multi", update="simperc").fit(stream.X[:20], stream.y[:20])
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    for each in (model, again):
        each.partial_fit(stream.X[20:], stream.y[20:])
    assert again.n_imperfect_ == model.n_imperfect_ > 0


@pytest.mark.parametrize(
    "model", [OnlineClassifier(), BanditClassifier(classes=[0, 1], update="banditron")]
)
def test_who_has_no_such_count_says_so(model):
    model.learn_one([1.0, 2.0], 0)
    with pytest.raises(AttributeError, match="read n_mistakes_"):
        _ = model.n_imperfect_
