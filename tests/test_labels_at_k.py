"""Precision, recall, F1 and NDCG of the k labels of highest score."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import ndcg_score, precision_recall_fscore_support

from kesler import KeslerError, OnlineMultilabelClassifier, metrics, progressive_validate

MEASURES = ("precision", "recall", "f1", "ndcg")
DEPTHS = (1, 2, 3, 5, 7, 12, 13, 40)
N_LABELS = 12


def measured(name, scores, relevant, k):
    return getattr(metrics, f"{name}_at")(scores, relevant, k)


def reference(scores, relevant, k):
    """Return the four measures, one row and one label after another."""
    found = []
    for row, truth in zip(scores.tolist(), relevant.tolist(), strict=True):
        n = sum(truth)
        if not n:
            continue
        known = [i for i, score in enumerate(row) if not math.isnan(score)]
        first = sorted(known, key=lambda i: (-row[i], i))[:k]
        gains = [1 / math.log2(place + 2) for place, i in enumerate(first) if truth[i]]
        best = [1 / math.log2(place + 2) for place in range(min(k, n))]
        hits = len(gains)
        found.append((hits / k, hits / n, 2 * hits / (k + n), sum(gains) / sum(best)))
    return np.mean(found, axis=0)


@pytest.fixture(params=["distinct", "ties", "unknown", "ties and unknown"])
def stream(request):
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(300, N_LABELS)).astype(np.float32)
    relevant = rng.random(scores.shape) < 0.2
    if "ties" in request.param:
        scores = np.round(scores)
    if "unknown" in request.param:
        scores[np.arange(300)[:, None] < rng.integers(0, 300, N_LABELS)] = np.nan
        assert np.isnan(scores[0]).all() and relevant[np.isnan(scores)].any()
    assert not relevant.any(axis=1).all()
    return scores, relevant


@pytest.mark.parametrize("k", DEPTHS)
def test_measures_are_those_of_a_loop_over_labels(stream, k):
    found = [measured(name, *stream, k) for name in MEASURES]
    assert found == pytest.approx(reference(*stream, k).tolist())


@pytest.mark.parametrize("k", [1, 3, 5, N_LABELS])
def test_measures_without_ties_are_those_of_scikit_learn(k):
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(200, N_LABELS))
    relevant = rng.random(scores.shape) < 0.3
    rows = relevant.any(axis=1)
    expected = ndcg_score(relevant[rows], scores[rows], k=k)
    assert metrics.ndcg_at(scores, relevant, k) == pytest.approx(expected)
    suggested = scores >= np.sort(scores, axis=1)[:, -k, None]
    of_samples = precision_recall_fscore_support(
        relevant[rows], suggested[rows], average="samples", zero_division=0
    )
    found = [measured(name, scores, relevant, k) for name in MEASURES[:3]]
    assert found == pytest.approx(of_samples[:3])


def test_the_first_label_is_wrong_as_often_as_one_error_says(stream):
    one_error = metrics.one_error(*stream)
    assert metrics.precision_at(*stream, 1) == pytest.approx(1 - one_error)
    assert metrics.ndcg_at(*stream, 1) == pytest.approx(1 - one_error)


@pytest.mark.parametrize("name", MEASURES)
def test_measures_without_a_row_with_a_label_are_not_defined(name):
    for shape in ((0, 3), (2, 3), (2, 0)):
        assert math.isnan(measured(name, np.zeros(shape), np.zeros(shape, bool), 2))


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("k", [0, -1, 1.5, True, "3", None])
def test_other_numbers_of_labels_are_refused(name, k):
    with pytest.raises(KeslerError, match=r"k=.* of 1 or more: it is the number of labels"):
        measured(name, np.zeros((1, 2)), np.ones((1, 2), bool), k)


def test_results_and_reports_have_the_measures():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    sets = [{name for name, x in zip("abcd", row, strict=True) if x > 0.3} for row in X]
    result = progressive_validate(OnlineMultilabelClassifier(), X, sets)
    report = result.report()
    assert [each.k for each in report.at] == [1, 3, 5]
    for each in report.at:
        expected = reference(result.scores, result.relevant, each.k).tolist()
        assert [getattr(each, name) for name in MEASURES] == pytest.approx(expected)
        of_result = [getattr(result, f"{name}_at")(each.k) for name in MEASURES]
        assert of_result == pytest.approx(expected)
    line = next(line for line in str(report).splitlines() if "first 3" in line)
    assert line.split()[2:] == [f"{getattr(report.at[1], name):.3f}" for name in MEASURES]
    assert report.to_dict()["at"][2]["ndcg"] == report.at[2].ndcg
