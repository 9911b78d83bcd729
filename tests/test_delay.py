"""Answers that come some rows after their predictions: progressive validation with a delay."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from commands import account, kesler, messages, refused, write_jsonl
from kesler import (
    NEW,
    KeslerError,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
    compare,
    progressive_validate,
)
from kesler.evaluation.comparison import Comparison
from kesler.evaluation.late import LateFigures
from kesler.evaluation.methods import KeslerMethod
from kesler.evaluation.uncertainty import UncertaintyTrace

ROWS = messages(90, seed=3)
TEXTS, FOLDERS = [" ".join(words) for _, words in ROWS], [label for label, _ in ROWS]
RNG = np.random.default_rng(5)
TARGETS = np.sort(RNG.integers(5, size=80) + np.arange(80) // 20).tolist()  # classes come up
MATRIX = RNG.normal(size=(80, 4)) + np.array(TARGETS)[:, None] * [1, 0, -1, 0]
STREAMS = {"texts": (TEXTS, FOLDERS), "matrix": (MATRIX, TARGETS)}
LEARNERS = {
    "default": {},
    "pa1": {"hypotheses": "multi", "update": "pa1"},
    "hybrid": {"hypotheses": "hybrid", "update": "perceptron", "uncertainty": True},
}


def by_hand(settings, X, y, delay):
    """Learn row t before row t + delay is predicted, by the public methods."""
    model = OnlineClassifier(**settings)
    for t, row in enumerate(X):
        one = [row] if isinstance(row, str) else np.array([row])
        if t >= delay:
            said = dict(zip(model.classes_.tolist(), model.predict_proba(one)[0], strict=True))
            (label,) = model.predict(one).tolist()
            own = said[label] if y[t] in said else np.nan
            yield label, own, said.get(y[t], np.nan), model, one
        else:
            yield None, np.nan, np.nan, None, one
        if t >= delay - 1:
            i = t - delay + 1
            before = [X[i]] if isinstance(row, str) else np.array([X[i]])
            model.partial_fit(before, [y[i]])


@pytest.mark.parametrize("delay", [1, 7, 30])
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("stream", STREAMS)
def test_rows_are_predicted_as_by_hand(stream, learner, delay):
    X, y = STREAMS[stream]
    result = progressive_validate(OnlineClassifier(**LEARNERS[learner]), X, y, delay=delay)
    assert result.delay == delay and result.n_first_seen == len(set(y))
    first = {label: y.index(label) for label in y}
    n_mistakes = 0
    for t, (label, own, of_target, model, one) in enumerate(
        by_hand(LEARNERS[learner], X, y, delay)
    ):
        assert result.predictions[t] == (result.no_prediction if label is None else label)
        np.testing.assert_array_equal(result.probabilities[t], [own, of_target])
        n_mistakes += label != y[t] and first[y[t]] < t
        if model is not None and result.uncertainty is not None:
            trace = result.uncertainty
            assert trace.confidence[t] == model.confidence(one)[0]
            assert trace.new[t] == model.predict_proba(one, new=True)[0, -1]
            for by_class in (False, True):
                (chosen,) = model.predict_set(one, coverage=0.9, by_class=by_class)
                target = y[t] if y[t] in model.classes_.tolist() else NEW
                assert trace.covered(0.9, by_class=by_class)[t] == (target in chosen)
                assert trace.sizes(0.9, by_class=by_class)[t] == len(chosen)
    assert result.n_mistakes == n_mistakes
    assert (result.uncertainty is None) == (learner == "pa1")


def test_no_delay_is_the_usual_run():
    usual = progressive_validate(OnlineClassifier(), MATRIX, TARGETS)
    given = progressive_validate(OnlineClassifier(), MATRIX, TARGETS, delay=0)
    assert given.curve.tolist() == usual.curve.tolist() and given.delay == 0
    assert not any("Each answer arrived" in note for note in given.report().notes)


@pytest.mark.parametrize("delay", [0, 1, 2, 9])
def test_the_delay_is_that_of_river(delay):
    evaluate = pytest.importorskip("river.evaluate", reason="needs river")
    from river import metrics
    from river.base import Classifier

    class Counting(Recorder, Classifier):
        """A classifier of river."""

    theirs, ours = Counting(), Recorder()
    rows = [({"x": 1.0}, label) for label in TARGETS]
    evaluate.progressive_val_score(rows, theirs, metrics.Accuracy(), delay=delay)
    progressive_validate(ours, [row for row, _ in rows], TARGETS, delay=delay)
    assert ours.at_predictions == theirs.at_predictions


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_delay_of_one_row_is_none(learner):
    runs = [
        progressive_validate(OnlineClassifier(**LEARNERS[learner]), MATRIX, TARGETS, delay=delay)
        for delay in (0, 1)
    ]
    assert runs[0].predictions.tolist() == runs[1].predictions.tolist()
    np.testing.assert_allclose(runs[0].probabilities, runs[1].probabilities, rtol=1e-6)


def test_a_delay_beyond_the_rows_learns_nothing():
    model = OnlineClassifier()
    result = progressive_validate(model, MATRIX, TARGETS, delay=len(MATRIX) + 1)
    assert model.n_known_ == 0 and result.n_mistakes == len(MATRIX) - len(set(TARGETS))
    assert np.isnan(result.probabilities).all()


def test_rows_of_weight_0_neither_count_nor_wait():
    weights = np.ones(len(MATRIX))
    weights[::3] = 0
    kept = np.flatnonzero(weights)
    whole = progressive_validate(OnlineClassifier(), MATRIX, TARGETS, weights, delay=5)
    alone = progressive_validate(
        OnlineClassifier(), MATRIX[kept], [TARGETS[i] for i in kept], delay=5
    )
    assert whole.predictions.tolist() == alone.predictions.tolist()


def test_a_learner_that_continues_knows_its_classes():
    model = OnlineClassifier().partial_fit(MATRIX, TARGETS)
    result = progressive_validate(model, MATRIX, TARGETS, delay=10)
    assert result.n_first_seen == 0 and not np.isnan(result.probabilities).any()


# ---- other methods -------------------------------------------------------------------------------


class Recorder:
    """A learner of events that notes how many rows it had learnt at each prediction."""

    def __init__(self):
        self.learnt, self.at_predictions = [], []

    def predict_one(self, x):
        self.at_predictions.append(len(self.learnt))
        return self.learnt[-1] if self.learnt else None

    def learn_one(self, x, y):
        self.learnt.append(y)


class RecorderOfRows:
    """The same with `partial_fit`."""

    def __init__(self):
        self.learnt = []

    def fit(self, X, y):
        raise AssertionError("a classifier with partial_fit is not fitted again")

    def partial_fit(self, X, y):
        self.learnt.extend(y)

    def predict(self, X):
        return [self.learnt[-1]] * len(X)

    def __sklearn_is_fitted__(self):
        return bool(self.learnt)


class Refitted:
    """A classifier that predicts the last label of its rows."""

    def fit(self, X, y):
        self.last = y[-1]

    def predict(self, X):
        return [self.last] * len(X)


def last_of(X, y, x):
    assert len(X) == len(y)
    return y[-1]


@pytest.mark.parametrize("delay", [0, 1, 9])
def test_every_kind_of_method_learns_what_has_been_answered(delay):
    recorder, n = Recorder(), len(MATRIX)
    methods = {"events": recorder, "rows": RecorderOfRows(), "function": last_of}
    found = compare({**methods, "last": "last answer again"}, MATRIX, TARGETS, delay=delay)
    lag = max(1, delay)
    assert recorder.at_predictions == [max(0, t - lag + 1) for t in range(n)]
    expected = [None] * lag + TARGETS[: n - lag]
    for name, result in found.items():
        none = result.no_prediction
        assert [None if p == none else p for p in result.predictions.tolist()] == expected, name


@pytest.mark.parametrize("delay", [0, 1, 9])
def test_a_classifier_is_fitted_on_the_rows_that_have_been_answered(delay):
    result = progressive_validate(Refitted(), MATRIX, TARGETS, delay=delay)
    fits = [1 << i for i in range(8)]
    for size, after in pairwise(fits):
        lag = max(0, delay - 1)
        rows = result.predictions[size + lag : after + lag].tolist()
        assert set(rows) <= {TARGETS[size - 1]}


@pytest.mark.parametrize("delay", [1, 9])
def test_the_most_frequent_class_is_that_of_answers(delay):
    found = compare(["most frequent class"], MATRIX, TARGETS, delay=delay)["most frequent class"]
    for t in range(delay, len(TARGETS)):
        counts = Counter(TARGETS[: t - delay + 1])
        assert counts[found.predictions[t]] == max(counts.values())


# ---- figures -------------------------------------------------------------------------------------


def test_figures_of_late_answers_are_those_of_the_rows():
    result = progressive_validate(OnlineClassifier(), MATRIX, TARGETS, delay=12)
    trace, right = result.uncertainty, result.predictions == result.targets
    answered = [{*TARGETS[: max(0, t - 11)]} for t in range(len(TARGETS))]
    unknown = np.array([y not in known for y, known in zip(TARGETS, answered, strict=True)])
    sure = trace.confidence >= 0.8
    found = result.late.to_dict()
    assert found["unknown"] == unknown.mean() and found["sure"] == sure.mean()
    assert found["probability_of_new"] == trace.new.mean()
    assert found["sure_wrong"] == (~right[sure]).mean()
    told = ~np.isnan(trace.sizes(0.9))
    assert told.tolist() == [False] * 12 + [True] * (len(TARGETS) - 12)
    assert found["covered"] == trace.covered(0.9)[told].mean()
    bins = np.minimum((trace.confidence * 15).astype(int), 14)
    gaps = [
        abs(trace.confidence[bins == b].sum() - right[bins == b].sum()) for b in np.unique(bins)
    ]
    assert found["calibration_error"] == pytest.approx(sum(gaps) / len(right))
    (said, *_) = result.report().notes
    assert said.startswith("Each answer arrived 12 rows late.")
    assert f"{unknown.mean():.1%} of the rows" in said
    assert said in result.report().to_dict()["notes"]


@pytest.mark.parametrize("delay", [1, 12])
def test_results_of_a_comparison_are_those_of_the_runs_alone(delay):
    methods = {name: OnlineClassifier(**given) for name, given in LEARNERS.items()}
    found = compare({**methods, "last": "last answer again"}, MATRIX, TARGETS, delay=delay)
    assert {each.delay for each in found.values()} == {delay}
    assert found["last"].late is None is found["pa1"].uncertainty
    for name in ("default", "hybrid"):
        alone = progressive_validate(
            OnlineClassifier(**LEARNERS[name]), MATRIX, TARGETS, delay=delay
        )
        assert found[name].late == alone.late
        np.testing.assert_array_equal(found[name].uncertainty.table, alone.uncertainty.table)
        assert found[name].report().notes[0] == alone.report().notes[0]


def test_results_of_a_comparison_without_a_delay_have_no_figures_of_it():
    found = compare([OnlineClassifier()], MATRIX, TARGETS)["OnlineClassifier"]
    assert found.delay == 0 and found.late is None


def test_figures_that_are_not_defined_are_none():
    nothing = UncertaintyTrace(np.tile([1.0, 0.0, 0.0, *[np.nan] * 16], (4, 1)))
    none = np.zeros(4, dtype=np.bool_)
    found = LateFigures.of(nothing, none, ~none)
    assert found.to_dict()["sure_wrong"] is None and found.to_dict()["covered"] is None
    assert "wrong" not in str(found) and "sets" not in str(found)


def test_the_command_line_compares_with_late_answers(tmp_path, capsys):
    rows, out = write_jsonl(tmp_path / "rows.jsonl", ROWS), tmp_path / "out.json"
    asked = ("--methods", "default,multi,last answer again", "--top", 2, "--delay", 8)
    done = kesler(capsys, "compare", rows, *asked, "--json", out)
    assert done.code == 0, done
    assert "answers arrive 8 rows late" in done.out
    assert "  default: " in done.out and "of the rows were of classes" in done.out
    entries = [dict.fromkeys(words, 1.0) for _, words in ROWS]
    found = account(out)
    assert found["delay"] == 8
    for name in ("default", "multi"):
        own = compare([name], entries, FOLDERS, delay=8)[name]
        assert found["methods"][name]["mistakes"] == own.n_mistakes
        at_two = next(each for each in found["methods"][name]["top"] if each["k"] == 2)
        assert at_two["recall"] == pytest.approx(own.recall_at(2))
    late = progressive_validate(OnlineClassifier(), entries, FOLDERS, delay=8).late
    assert found["methods"]["default"]["late"] == pytest.approx(late.to_dict())
    assert "late" not in found["methods"]["multi"]


# ---- refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay", [-1, 1.5, True, "2", None])
def test_what_is_no_number_of_rows_is_refused(delay):
    for run in (progressive_validate, lambda m, *given, **d: compare([m], *given, **d)):
        with pytest.raises(
            KeslerError,
            match=r"delay=.* must be an integer of 0 or more: answers arrive so many rows late",
        ):
            run(OnlineClassifier(), MATRIX, TARGETS, delay=delay)


@pytest.mark.parametrize(
    "learner, y",
    [
        (OnlineMultilabelClassifier(), [[label] for label in TARGETS]),
        (OnlineLabelRanker(), [[label, 99] for label in TARGETS]),
        (OnlineOrdinalClassifier(), TARGETS),
    ],
)
def test_targets_of_several_labels_are_refused(learner, y):
    with pytest.raises(KeslerError, match="delay applies to classifiers whose rows have one class"):
        progressive_validate(learner, MATRIX, y, delay=2)


def test_a_method_that_learns_all_rows_at_once_is_refused():
    for run in (progressive_validate, lambda m, *given, **d: compare([m], *given, **d)):
        with pytest.raises(KeslerError, match="delay=2 does not apply to a KeslerMethod"):
            run(KeslerMethod(OnlineClassifier()), MATRIX, TARGETS, delay=2)
    with pytest.raises(KeslerError, match="delay=2 does not apply to a KeslerMethod"):
        Comparison({"": KeslerMethod(OnlineClassifier())}, delay=2)


def test_a_label_budget_is_refused(tmp_path, capsys):
    with pytest.raises(KeslerError, match=r"label_budget=0\.2 .* omit one"):
        progressive_validate(OnlineClassifier(), MATRIX, TARGETS, label_budget=0.2, delay=2)
    rows = write_jsonl(tmp_path / "rows.jsonl", ROWS)
    refused(kesler(capsys, "compare", rows, "--delay", 2, "--bounds"), "--delay", "--bounds")
    refused(kesler(capsys, "compare", rows, "--delay", 2, "--label-budget", 0.2), "omit one")
