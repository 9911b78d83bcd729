"""Reports, against scikit-learn's metrics and loops over rows."""

import json
import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import precision_recall_fscore_support

from kesler import (
    KeslerError,
    OnlineClassifier,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
    progressive_validate,
)
from kesler.datasets import load_pendigits
from kesler.evaluation.reports import measures
from kesler.evaluation.reports.text import width
from kesler.evaluation.results import MultilabelResult, ProgressiveResult
from kesler.learner.classes import label_array
from kesler.metrics import calibration_error

PENS = load_pendigits()


def result_of(targets, predictions, confidences=None, known=()):
    """A result of a method that knew some classes before; None is no prediction."""
    seen, wrong, n_first = set(known), [], 0
    for target, predicted in zip(targets, predictions, strict=True):
        n_first += target not in seen
        wrong.append(target in seen and predicted != target)
        seen.add(target)
    p = [math.nan] * len(targets) if confidences is None else confidences
    said = label_array(["" if label is None else label for label in predictions])
    return ProgressiveResult(
        len(targets),
        sum(wrong),
        n_first,
        np.cumsum(wrong, dtype=np.int64),
        said,
        label_array(targets),
        np.array([p, p], dtype=np.float64).T.reshape(-1, 2),
        1.0,
        no_prediction="",
    )


@st.composite
def runs(draw):
    """Targets, predictions of classes seen before or none, and confidences, some missing."""
    targets = draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=60))
    predictions = [
        draw(st.sampled_from([None, *sorted(set(targets[:t]))])) for t in range(len(targets))
    ]
    levels = st.sampled_from([0.05, 0.3, 0.31, 0.6, 0.99, 1.0, math.nan])
    confidences = [math.nan if label is None else draw(levels) for label in predictions]
    return targets, predictions, confidences


def first_rows(targets):
    return [label not in targets[:t] for t, label in enumerate(targets)]


def same(found, expected):
    return found == pytest.approx(expected, nan_ok=True)


# ---- classes ------------------------------------------------------------------------------------


@given(runs())
def test_classes_have_the_measures_of_scikit_learn(run):
    targets, predictions, _ = run
    report = result_of(*run).report()
    asked = [t for t, first in enumerate(first_rows(targets)) if not first]
    labels = [each.label for each in report.classes]
    assert sorted(labels) == sorted(set(targets))
    if not asked:
        return
    expected = precision_recall_fscore_support(
        [targets[t] for t in asked],
        [predictions[t] or "none" for t in asked],
        labels=labels,
        zero_division=np.nan,
    )
    for each, *measures_of_class in zip(report.classes, *expected[:3], strict=True):
        assert same([each.precision, each.recall, each.f1], measures_of_class)


@given(runs())
def test_rows_and_mistakes_are_counted(run):
    targets, predictions, p = run
    report, first = result_of(*run).report(), first_rows(targets)
    for each in report.classes:
        own = [t for t, target in enumerate(targets) if target == each.label]
        assert (each.first, each.rows) == (own[0] + 1, len(own))
        assert each.mistakes == sum(predictions[t] != each.label for t in own[1:])
        said = [t for t, label in enumerate(predictions) if label == each.label and not first[t]]
        assert each.predictions == len(said)
        right = np.array([targets[t] == each.label for t in said], dtype=bool)
        assert same(
            each.calibration_error, calibration_error(np.array([p[t] for t in said]), right)
        )
    rows = [each.rows for each in report.classes]
    assert rows == sorted(rows, reverse=True)


@given(runs())
def test_the_whole_is_that_of_the_result(run):
    result = result_of(*run)
    report = result.report()
    assert (report.n_rows, report.n_mistakes) == (result.n_trials, result.n_mistakes)
    assert (report.n_first_seen, report.error) == (result.n_first_seen, result.error)
    assert report.n_classes == len(set(run[0]))
    assert result.first_seen.tolist() == first_rows(run[0])


# ---- mistakes -----------------------------------------------------------------------------------


@given(runs(), st.integers(1, 4))
def test_confused_pairs_are_counted(run, top):
    targets, predictions, _ = run
    first, rows = first_rows(targets), {}
    for t, pair in enumerate(zip(targets, predictions, strict=True)):
        if pair[0] != pair[1] and not first[t]:
            rows.setdefault(pair, []).append(t + 1)
    found = result_of(*run).report(top=top).confusions
    most = sorted(map(len, rows.values()), reverse=True)[:top]
    assert [each.count for each in found] == most
    for each in found:
        of_pair = rows[each.target, each.predicted]
        assert (each.count, each.rows) == (len(of_pair), tuple(of_pair[-5:]))
        assert each.share == len(of_pair) / (targets.count(each.target) - 1)


def test_the_last_rows_of_a_pair_are_examples():
    [pair] = result_of(["a", *"b" * 9], [None, *"a" * 9]).report().confusions
    assert (pair.count, pair.share, pair.rows) == (8, 1.0, (6, 7, 8, 9, 10))


@given(runs(), st.integers(1, 5))
def test_the_surest_mistakes_are_listed(run, top):
    targets, predictions, p = run
    first = first_rows(targets)
    wrong = [
        (-p[t], t + 1)
        for t in range(len(targets))
        if predictions[t] != targets[t] and not first[t] and p[t] == p[t]
    ]
    found = result_of(*run).report(top=top).surely_wrong
    assert [(-each.confidence, each.row) for each in found] == sorted(wrong)[:top]
    for each in found:
        assert (each.target, each.predicted) == (targets[each.row - 1], predictions[each.row - 1])


@given(runs())
def test_the_matrix_counts_pairs(run):
    targets, predictions, _ = run
    matrix, first = result_of(*run).report().matrix, first_rows(targets)
    counts = Counter(
        (target, said)
        for target, said, new in zip(targets, predictions, first, strict=True)
        if not new
    )
    assert sorted(matrix.labels) == sorted(set(targets))
    for target, row in zip(matrix.labels, matrix.counts, strict=True):
        expected = [counts[target, said] for said in matrix.labels]
        assert list(row) == [*expected, counts[target, None]]


def test_the_matrix_has_the_classes_with_the_most_rows():
    targets = [f"c{i}" for i in range(20) for _ in range(i + 2)]
    matrix = result_of(targets, ["c0"] * len(targets)).report().matrix
    assert matrix.labels == tuple(f"c{i}" for i in range(19, 4, -1))
    assert [len(row) for row in matrix.counts] == [16] * 15
    assert matrix.counts[0] == (0,) * 15 + (20,)  # all were taken for c0, which is not shown


# ---- time ---------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(runs(), st.integers(1, 3))
def test_windows_and_growth_count_rows(run, times):
    targets, predictions, p = (list(each) * times for each in run)
    result = result_of(targets, predictions, p)
    report, wrong, first = result.report(), result.wrong, first_rows(targets)
    assert len(report.windows) <= 40
    assert [each.start for each in report.windows] == [
        1,
        *(each.stop + 1 for each in report.windows[:-1]),
    ]
    assert report.windows[-1].stop == len(targets)
    assert len({each.rows for each in report.windows[:-1]}) <= 1
    for each in report.windows:
        part = slice(each.start - 1, each.stop)
        assert each.mistakes == sum(wrong[part]) and each.first_seen == sum(first[part])
        assert each.error == each.mistakes / len(targets[part])
    growth = report.growth
    assert (growth.rows[0], growth.rows[-1]) == (1, len(targets))
    for row, mistakes, classes in zip(growth.rows, growth.mistakes, growth.classes, strict=True):
        assert (mistakes, classes) == (sum(wrong[:row]), len(set(targets[:row])))


@given(runs())
def test_errors_by_age_are_those_of_the_rows_of_each_class(run):
    targets, predictions, _ = run
    age = [targets[: t + 1].count(label) for t, label in enumerate(targets)]
    for group in result_of(*run).report().ages:
        most = group.most or math.inf
        own = [t for t, a in enumerate(age) if group.least <= a <= most and a > 1]
        assert group.rows == len(own)
        assert group.mistakes == sum(predictions[t] != targets[t] for t in own)
        assert same(group.error, group.mistakes / len(own) if own else math.nan)


def test_ages_cover_all_rows():
    bounds = [(least, most) for least, most in measures.AGES]
    assert bounds[0][0] == 1 and bounds[-1][1] is None
    assert all(a[1] + 1 == b[0] for a, b in pairwise(bounds))


# ---- confidence ---------------------------------------------------------------------------------


@given(runs())
def test_reliability_is_that_of_the_rows_in_each_bin(run):
    targets, predictions, p = run
    first = first_rows(targets)
    known = [t for t in range(len(targets)) if p[t] == p[t] and not first[t]]
    bins = result_of(*run).report().reliability
    assert len(bins) == (10 if known else 0)
    for each in bins:
        last = each.high == 1
        own = [t for t in known if each.low <= p[t] < each.high or (last and p[t] == 1)]
        assert each.rows == len(own)
        if own:
            assert each.confidence == pytest.approx(sum(p[t] for t in own) / len(own))
            right = sum(targets[t] == predictions[t] for t in own)
            assert each.accuracy == pytest.approx(right / len(own))


def test_the_curve_of_a_result_leaves_first_rows_out():
    targets, predictions = ["a", "b", "a", "b", "a"], [None, "a", "a", "a", "a"]
    result = result_of(targets, predictions, [0.9, 0.8, 0.7, 0.6, math.nan])
    curve = result.risk_coverage()
    assert curve.thresholds.tolist() == [0.7, 0.6] and curve.n_left_out == 3
    assert curve.risk.tolist() == [0.0, 0.5]
    assert result.threshold_for(0.1).confidence == 0.7
    assert np.array_equal(result.confidences, result.probabilities[:, 0], equal_nan=True)


def test_without_probabilities_the_rest_is_reported():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(3, size=60)
    result = progressive_validate(SGDClassifier(), X, y)
    report = result.report()
    assert math.isnan(report.log_loss) and math.isnan(report.calibration_error)
    assert report.risk_coverage is None and not report.surely_wrong and not report.reliability
    assert any("no confidences" in note for note in report.notes)
    assert "no confidences" in str(report) and "Confidence to ask for" not in str(report)
    assert report.thresholds() == {} and report.to_dict()["risk_coverage"] is None
    with pytest.raises(KeslerError, match="no row has a confidence"):
        result.risk_coverage()


def test_no_prediction_has_no_confidence():
    report = result_of(["a"] * 3, [None, None, "a"], [0.9, 0.9, 0.5]).report()
    assert not report.surely_wrong and report.reliability[5].rows == 1
    assert report.risk_coverage.n_answered.tolist() == [1]


def test_missing_confidences_are_noted():
    result = result_of(["a"] * 4, [None, "a", "a", "a"], [math.nan, math.nan, 0.5, 0.5])
    assert result.report().notes[0].startswith("1 of 3 predictions have no confidence")


# ---- results ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pens():
    return progressive_validate(OnlineClassifier("multi", update="pa1"), PENS.X[:800], PENS.y[:800])


def test_a_real_run_agrees_with_its_result(pens):
    report = pens.report()
    assert report.log_loss == pytest.approx(pens.log_loss)
    assert report.calibration_error == pytest.approx(pens.calibration_error)
    assert report.error == pens.error and report.n_first_seen == 10
    assert sum(each.mistakes for each in report.classes) == pens.n_mistakes


def test_a_model_that_continues_knows_its_classes():
    X, y = PENS.X[:600], PENS.y[:600]
    model = OnlineClassifier("multi", update="pa1").fit(X[:200][y[:200] < 8], y[:200][y[:200] < 8])
    result = progressive_validate(model, X[200:], y[200:])
    report = result.report()
    assert report.n_first_seen == result.n_first_seen == 2
    assert report.n_mistakes == result.n_mistakes
    first = {int(label): int(np.argmax(y[200:] == label)) for label in (8, 9)}
    assert np.flatnonzero(result.first_seen).tolist() == sorted(first.values())


def test_ranks_have_their_absolute_error():
    result = progressive_validate(OnlineOrdinalClassifier(), PENS.X[:80], PENS.y[:80] % 3)
    report = result.report()
    assert report.mean_absolute_error == result.mean_absolute_error
    assert f"mean absolute error {result.mean_absolute_error:.3f}" in str(report)


@pytest.mark.parametrize("targets", [[1, 2, 1, 2], [True, False, True, True], [(1, "a"), (2, "b")]])
def test_labels_of_any_type(targets):
    said = [targets[0]] * len(targets)
    report = result_of(targets, said).report()
    assert {each.label for each in report.classes} == set(targets)
    json.loads(report.to_json())
    assert str(report)


def test_one_class_can_be_reported():
    report = result_of(["a"] * 3, [None, "a", "a"], [math.nan, 0.9, 0.8]).report()
    assert report.n_classes == 1 and report.error == 0 and not report.confusions
    assert "3 rows of 1 class: 0 mistakes" in str(report)


def test_a_run_of_first_rows_alone_can_be_reported():
    report = result_of(["a", "b"], [None, "a"]).report()
    assert report.error == 0 and math.isnan(report.classes[0].recall)
    assert "none could be right" in str(report)


def test_empty_results_are_refused():
    with pytest.raises(KeslerError, match="no trials to report"):
        result_of([], []).report()


@pytest.mark.parametrize("top", [0, -1, 1.5, "3", True, None])
def test_other_numbers_of_rows_are_refused(top):
    with pytest.raises(KeslerError, match="top="):
        result_of(["a"], [None]).report(top=top)


# ---- label sets ---------------------------------------------------------------------------------


def test_labels_have_the_measures_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    Y = [{name for name, x in zip("abc", row, strict=False) if x > 0.3} for row in X]
    result = progressive_validate(OnlineMultilabelClassifier(), X, Y)
    report, n_seen = result.report(), 0
    assert (report.n_rows, report.micro_f1) == (200, result.micro_f1)
    assert [each.rows for each in report.labels] == sorted(
        [sum(name in labels for labels in Y) for name in "abc"], reverse=True
    )
    for each in report.labels:
        column = result.labels.index(each.label)
        truth = np.array([each.label in labels for labels in Y])
        scores = result.scores[:, column]
        kept = ~np.isnan(scores)
        expected = precision_recall_fscore_support(truth[kept], scores[kept] > 0, average="binary")
        assert [each.precision, each.recall, each.f1] == pytest.approx(expected[:3])
        assert each.first == truth.argmax() + 1
        assert each.predictions == (scores > 0).sum()
        n_seen += (~kept).sum()
    assert n_seen > 0
    assert json.loads(report.to_json()) == report.to_dict()
    assert report.to_frame()["label"].tolist() == [each.label for each in report.labels]
    assert str(report).startswith("200 rows with 3 labels: ")


def test_empty_label_sets_are_refused():
    none = MultilabelResult(0, np.empty((0, 2), np.float32), np.empty((0, 2), np.int32), 1.0)
    with pytest.raises(KeslerError, match="no trials to report"):
        none.report()


# ---- forms --------------------------------------------------------------------------------------


def test_the_text_fits_into_100_columns():
    names = ["漢字" * 20, "\x1b[31mred\x1b[0m", "two\nlines", "x" * 500, ""]
    targets = [names[i % 5] for i in range(200)]
    said = [None, *targets[:-1]]
    text = str(result_of(targets, said, [math.nan] * 5 + [0.9] * 195).report())
    assert max(map(width, text.splitlines())) <= 100
    assert "\x1b" not in text and "\\x1b[31mred" in text and "two\\nlines" in text


def test_json_holds_the_report(pens):
    report = pens.report()
    found = json.loads(report.to_json())
    assert found == report.to_dict()
    assert found["classes"][0]["precision"] == report.classes[0].precision
    assert found["risk_coverage"]["area"] == report.risk_coverage.area
    assert found["thresholds"]["0.1"]["confidence"] == pens.threshold_for(0.1).confidence
    assert len(found["risk_coverage"]["risk"]) <= 201


def test_a_frame_has_a_row_for_each_class(pens):
    report = pens.report()
    frame = report.to_frame()
    assert frame["label"].tolist() == [each.label for each in report.classes]
    assert frame["f1"].tolist() == [each.f1 for each in report.classes]
