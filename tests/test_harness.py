"""Progressive validation of methods of any kind, and compare: loops by hand are the oracle."""

import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.linear_model import LogisticRegression, Perceptron, SGDClassifier
from sklearn.metrics import accuracy_score, classification_report, confusion_matrix
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import kesler
from kesler import KeslerError, OnlineClassifier, OnlineMultilabelClassifier, progressive_validate
from kesler.datasets import load_pendigits
from kesler.errors import MismatchWarning
from kesler.evaluation.comparing import ComparisonResult
from kesler.evaluation.results import no_label
from kesler.evaluation.tables import Table
from kesler.plots import MistakeCurveDisplay

PENS = load_pendigits()
X, DIGITS = PENS.X[:150].astype(np.float64), PENS.y[:150]
NAMES = np.array([*"zyxwvutsrq"])[DIGITS]
TEXTS = [f"{word} {i % 7} {'pay' if word == 'bill' else 'eat'}" for i, word in
         enumerate(["bill", "lunch", "bill", "note", "lunch"] * 12)]  # fmt: skip
TOPICS = [text.split()[0] for text in TEXTS]


def counted(predictions, y):
    """Cumulative mistakes; the first row of a class is none."""
    seen, wrong = set(), []
    for predicted, label in zip(predictions, y, strict=True):
        wrong.append(label in seen and predicted != label)
        seen.add(label)
    return np.cumsum(wrong).tolist()


def require(result, predictions, y):
    """A result is that of a loop which predicted these labels, None for no prediction."""
    none = result.no_prediction
    assert none not in set(y)
    assert result.predictions.tolist() == [none if p is None else p for p in predictions]
    assert result.targets.tolist() == list(y)
    assert result.curve.tolist() == counted(predictions, y)
    assert result.n_mistakes == result.curve[-1] > 0
    assert (result.n_trials, result.n_first_seen) == (len(y), len(set(y)))


def refused(call, *words):
    with pytest.raises(KeslerError) as raised:
        call()
    for word in words:
        assert word in str(raised.value)


# ---- partial_fit --------------------------------------------------------------------------------


def by_partial_fit(model, X, y, weights=None, before=()):
    predictions, classes = [], np.unique(y)
    for t in range(len(y)):
        row = X[t : t + 1]
        for step in before:
            row = step.transform(row) if t else row
        predictions.append(model.predict(row)[0] if t else None)
        row = X[t : t + 1]
        for step in before:
            row = step.partial_fit(row).transform(row)
        given = {} if weights is None else {"sample_weight": weights[t : t + 1]}
        model.partial_fit(row, y[t : t + 1], classes=classes, **given)
    return predictions


@pytest.mark.parametrize("y", [DIGITS, NAMES], ids=["numbers", "text"])
@pytest.mark.parametrize("model", [SGDClassifier, Perceptron, MultinomialNB])
def test_a_classifier_with_partial_fit_is_a_loop(model, y):
    found = progressive_validate(model(), X, y)
    require(found, by_partial_fit(model(), X, y), y.tolist())
    assert np.isnan(found.probabilities).all() and np.isnan(found.log_loss)


def test_the_steps_of_a_pipeline_learn_after_the_prediction():
    pipeline = make_pipeline(StandardScaler(), "passthrough", SGDClassifier(random_state=1))
    by_hand = by_partial_fit(SGDClassifier(random_state=1), X, NAMES, before=[StandardScaler()])
    require(progressive_validate(pipeline, X, NAMES), by_hand, NAMES.tolist())


def test_texts_are_given_as_they_are():
    pipeline = make_pipeline(HashingVectorizer(n_features=64), Normalizer(), MultinomialNB())
    pipeline.set_params(hashingvectorizer__alternate_sign=False)
    rows = pipeline[:-1].transform(TEXTS)
    expected = by_partial_fit(MultinomialNB(), rows, np.array(TOPICS))
    found = progressive_validate(pipeline, TEXTS, TOPICS)
    assert found.predictions.tolist() == ["", *expected[1:]]


def test_a_fitted_classifier_continues():
    fitted = MultinomialNB().fit(X[:100], DIGITS[:100])
    first = fitted.predict(X[100:101])[0]
    found = progressive_validate(fitted, X[100:], DIGITS[100:])
    assert found.predictions[0] == first != found.no_prediction


def test_weights_of_rows_scale_steps_and_weight_zero_skips():
    weights = np.tile([1.0, 0.0, 2.0], 50)
    kept = weights > 0
    expected = by_partial_fit(SGDClassifier(), X[kept], DIGITS[kept], weights[kept])
    found = progressive_validate(SGDClassifier(), X, DIGITS, weights)
    require(found, expected, DIGITS[kept].tolist())


def test_declared_classes_are_given_and_missing_ones_are_those_that_occur():
    class Recorder(SGDClassifier):
        def partial_fit(self, X, y, classes=None, sample_weight=None):
            given.append(None if classes is None else list(classes))
            return super().partial_fit(X, y, classes=classes, sample_weight=sample_weight)

    for declared in (None, [*"abcd"]):
        given = []
        progressive_validate(Recorder(), X[:4], [*"abca"], classes=declared)
        assert given == [declared or [*"abc"], None, None, None]


@pytest.mark.parametrize(
    "form", [sparse.csr_array, sparse.coo_matrix, pd.DataFrame, np.ndarray.tolist]
)
def test_the_form_of_the_rows_does_not_matter(form):
    weights = np.tile([1.0, 0.0, 1.0], 50)
    rows = form(X)
    with warnings.catch_warnings():  # pipelines, whose columns have names in some steps only
        warnings.simplefilter("ignore", UserWarning)
        for model in (MultinomialNB, DecisionTreeClassifier):
            given = {"random_state": 0} if model is DecisionTreeClassifier else {}
            plain = progressive_validate(model(**given), X, DIGITS, weights)
            found = progressive_validate(model(**given), rows, DIGITS, weights)
            assert found.predictions.tolist() == plain.predictions.tolist()


# ---- refitted -----------------------------------------------------------------------------------


def by_refits(make, X, y, first):
    predictions, model = [], None
    for t in range(len(y)):
        if t >= first and (t / first).is_integer() and (t // first).bit_count() == 1:
            known = set(y[:t].tolist())
            model = known.pop() if len(known) == 1 else make().fit(X[:t], y[:t])
        if model is None:
            predictions.append(None)
        else:
            predictions.append(model if np.isscalar(model) else model.predict(X[t : t + 1])[0])
    return predictions


def tree():
    return DecisionTreeClassifier(random_state=0)


@pytest.mark.parametrize("refit, first", [(None, 1), ("doubling", 1), (1, 1), (3, 3), (10, 10)])
def test_a_classifier_without_partial_fit_is_refitted_at_doublings(refit, first):
    found = progressive_validate(tree(), X, NAMES, refit=refit)
    require(found, by_refits(tree, X, NAMES, first), NAMES.tolist())


def test_a_classifier_with_partial_fit_may_be_refitted_and_rows_of_one_class_need_no_fit():
    y = np.array([4] * 6 + DIGITS[6:].tolist())
    require(
        progressive_validate(MultinomialNB(), X, y, refit="doubling"),
        by_refits(MultinomialNB, X, y, 1),
        y.tolist(),
    )


def test_a_pipeline_whose_steps_need_all_rows_is_refitted():
    def made():
        return make_pipeline(CountVectorizer(), MultinomialNB())

    rows, topics = np.array(TEXTS), np.array(TOPICS)
    found = progressive_validate(made(), TEXTS, TOPICS)
    expected = by_refits(made, rows, topics, 1)
    assert found.predictions.tolist() == ["", *expected[1:]]


def test_weights_reach_the_fits():
    weights = np.tile([1.0, 1.0, 5.0], 50)
    found = progressive_validate(tree(), X, DIGITS, weights, refit=70)
    model = tree().fit(X[:70], DIGITS[:70], sample_weight=weights[:70])
    assert found.predictions[70:140].tolist() == model.predict(X[70:140]).tolist()


def test_a_fit_that_fails_says_to_start_later():
    nearest = KNeighborsClassifier(5)
    refused(
        lambda: progressive_validate(make_pipeline(Failing()), X, DIGITS),
        "cannot be fitted on the first 2 rows (too few)",
        "refit=8",
    )
    assert progressive_validate(nearest, X, DIGITS, refit=8).error < 0.5


class Failing(DecisionTreeClassifier):
    def fit(self, X, y):
        raise ValueError("too few")


# ---- events and functions -----------------------------------------------------------------------


class Counting:
    """A method with river's interface: the class that a feature was largest in most often."""

    def __init__(self):
        self.counts = {}

    def predict_one(self, x):
        votes = self.counts.get(max(x, key=x.get), {})
        return max(votes, key=votes.get) if votes else None

    def learn_one(self, x, y):
        votes = self.counts.setdefault(max(x, key=x.get), {})
        votes[y] = votes.get(y, 0) + 1


def by_events(model, rows, y):
    predictions = []
    for row, label in zip(rows, y, strict=True):
        predictions.append(model.predict_one(row))
        model.learn_one(row, label)
    return predictions


FORMS = {
    "array": (X, [dict(enumerate(row)) for row in X.tolist()]),
    "sparse": (sparse.csr_array(X), [{j: v for j, v in enumerate(r) if v} for r in X.tolist()]),
    "frame": (
        pd.DataFrame(X, columns=[*"abcdefghijklmnop"]),
        [dict(zip("abcdefghijklmnop", row, strict=True)) for row in X.tolist()],
    ),
    "dictionaries": tuple([[dict(enumerate(row)) for row in X.tolist()]] * 2),
}


@pytest.mark.parametrize("form", FORMS)
def test_an_object_of_events_is_a_loop(form):
    given, rows = FORMS[form]
    expected = by_events(Counting(), rows, NAMES.tolist())
    require(progressive_validate(Counting(), given, NAMES), expected, NAMES.tolist())


def test_river_is_a_loop():
    naive_bayes = pytest.importorskip("river.naive_bayes")
    expected = by_events(naive_bayes.GaussianNB(), FORMS["array"][1], NAMES.tolist())
    found = progressive_validate(naive_bayes.GaussianNB(), X, NAMES)
    require(found, expected, NAMES.tolist())


def test_rivers_bags_of_words_are_given_texts():
    pytest.importorskip("river")
    from river import compose, feature_extraction, naive_bayes

    def made():
        return compose.Pipeline(
            feature_extraction.BagOfWords(lowercase=True), naive_bayes.MultinomialNB()
        )

    found = progressive_validate(made(), TEXTS, TOPICS)
    expected = by_events(made(), TEXTS, TOPICS)
    assert found.predictions.tolist() == ["" if p is None else p for p in expected]


def test_a_function_is_given_what_came_before():
    calls = []

    def nearest(before, labels, x):
        calls.append((before.shape, len(labels), x.shape))
        return labels[((before - x) ** 2).sum(axis=1).argmin()] if len(labels) > 4 else None

    expected = [None] * 5
    for t in range(5, len(X)):
        expected.append(NAMES[((X[:t] - X[t]) ** 2).sum(axis=1).argmin()])
    require(progressive_validate(nearest, X, NAMES), expected, NAMES.tolist())
    assert calls == [((t, 16), t, (16,)) for t in range(1, len(X))]


def test_a_function_of_texts_and_of_frames():
    first = progressive_validate(lambda X, y, x: x.split()[0], TEXTS, TOPICS)
    assert first.n_mistakes == 0 and first.predictions.tolist() == ["", *TOPICS[1:]]
    frame = pd.DataFrame({"kind": TOPICS, "n": range(len(TOPICS))})
    found = progressive_validate(lambda X, y, x: X["kind"].iloc[-1] + x["kind"], frame, TOPICS)
    pairs = [one + other for one, other in pairwise(TOPICS)]
    assert found.predictions.tolist() == ["", *pairs]


# ---- results ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "y, none",
    [
        (NAMES, ""),
        (np.where(NAMES == "z", "", NAMES), "?"),
        (DIGITS, -1),
        (DIGITS - 3, -4),
        (DIGITS.astype(float), -1),
        (DIGITS > 4, -1),
    ],
)
@pytest.mark.parametrize("method", [OnlineClassifier("multi", update="pa1"), tree()])
def test_metrics_accept_the_predictions(method, y, none):
    found = progressive_validate(kesler_or_clone(method), X, y)
    assert found.no_prediction == none and found.predictions[0] == none
    assert (found.predictions[1:] != none).all()
    report = classification_report(y, found.predictions, zero_division=0)
    assert len(report.splitlines()) > len(set(y.tolist()))
    assert confusion_matrix(y, found.predictions).sum() == len(y)
    right = 1 - (found.n_mistakes + found.n_first_seen) / len(y)
    by_luck = np.mean((found.predictions == y) & ~found.wrong) - right  # first rows of classes
    assert accuracy_score(y, found.predictions) == pytest.approx(right + by_luck)


def kesler_or_clone(method):
    return type(method)(**method.get_params(deep=False))


def test_labels_of_other_types_have_none():
    assert no_label([("a", 1), ("b", 2)]) is None and no_label([]) is None
    found = progressive_validate(lambda X, y, x: y[-1], [[0]] * 3, [("a", 1), ("b", 2), ("b", 2)])
    assert found.predictions.tolist() == [None, ("a", 1), ("b", 2)]


def test_the_frame_has_a_row_for_each_trial():
    found = progressive_validate(OnlineClassifier("multi", update="pa1"), X, NAMES)
    frame = found.to_frame()
    assert frame.columns.tolist() == ["trial", "target", "prediction", "mistake"]
    assert frame["trial"].tolist() == list(range(1, 151))
    assert frame["target"].tolist() == NAMES.tolist()
    assert frame["prediction"].tolist() == found.predictions.tolist()
    assert frame["mistake"].cumsum().tolist() == found.curve.tolist()


# ---- compare ------------------------------------------------------------------------------------


def test_each_method_of_a_comparison_is_validated_as_if_alone():
    def last(X, y, x):
        return y[-1]

    makers = {
        "pa1": lambda: OnlineClassifier("multi", update="pa1"),
        "sgd": lambda: SGDClassifier(random_state=0),
        "tree": tree,
        "events": Counting,
        "last": lambda: last,
    }
    weights = np.tile([1.0, 0.0, 1.0], 50)
    found = kesler.compare(
        {n: make() for n, make in makers.items()}, X, NAMES, sample_weight=weights
    )
    assert isinstance(found, ComparisonResult) and list(found) == list(makers) and len(found) == 5
    for name, make in makers.items():
        alone = progressive_validate(make(), X, NAMES, weights)
        assert found[name].predictions.tolist() == alone.predictions.tolist()
        assert found[name].curve.tolist() == alone.curve.tolist()
        assert found[name].n_first_seen == alone.n_first_seen
        np.testing.assert_array_equal(found[name].probabilities, alone.probabilities)
    frame = found.to_frame()
    assert frame["method"].tolist() == list(makers)
    assert frame["mistakes"].tolist() == [each.n_mistakes for each in found.values()]
    assert frame["error"].tolist() == [each.n_mistakes / 100 for each in found.values()]
    best = min(found, key=lambda name: found[name].n_mistakes)
    lines = str(found).splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(makers)
    assert [line.split()[0] for line in lines if line.endswith("best")] == [best]
    MistakeCurveDisplay(found)


def test_baselines_are_what_they_say():
    y = [*"abbacccc"]
    found = kesler.compare(["most frequent class", "last answer again"], [[0]] * 8, y)
    most, last = found.values()
    # After a, b, b the most frequent is b; a draws level at the fourth row, c overtakes at the 7th.
    assert most.predictions.tolist() == ["", "a", "a", "b", "b", "b", "b", "c"]
    assert last.predictions.tolist() == ["", *"abbaccc"]
    assert (most.n_mistakes, last.n_mistakes) == (4, 1)


SHARING = ["multi", "single", "hybrid"]
BASELINES = ["most frequent class", "last answer again"]


def test_without_methods_the_default_is_first_and_baselines_are_last():
    rows = [{"w": 1.0, TEXTS[i]: 1.0} for i in range(40)]
    found = kesler.compare(None, rows, TOPICS[:40])
    assert list(found) == ["default", "ensemble", *SHARING, *BASELINES]
    default = progressive_validate(OnlineClassifier(), rows, TOPICS[:40])
    assert found["default"].predictions.tolist() == default.predictions.tolist()
    pa1 = progressive_validate(OnlineClassifier("hybrid", update="pa1"), rows, TOPICS[:40])
    assert found["hybrid"].curve.tolist() == pa1.curve.tolist()


@pytest.mark.parametrize("width, kernel", [(100, ["kernel"]), (101, [])])
def test_a_kernel_is_compared_on_dense_rows_of_few_features(width, kernel):
    wide = np.tile(X, 7)[:20, :width]
    found = kesler.compare(None, wide, NAMES[:20])
    assert list(found) == ["default", "ensemble", *SHARING, *kernel, *BASELINES]
    sparse_rows = kesler.compare(None, sparse.csr_array(wide), NAMES[:20])
    assert "kernel" not in sparse_rows


def test_tables_are_dense_if_all_columns_are_numbers():
    frame = pd.DataFrame({"a": [1, 2], "b": [True, False], "c": [0.5, 1.5]})
    for rows, dense in (
        (frame, True),
        (frame.assign(d=["x", "y"]), False),
        (frame.to_numpy(dtype=float), True),
        ([[1, 2], [3, 4]], True),
        (sparse.csr_array(np.eye(2)), False),
        ([{"a": 1}, {"b": 2}], False),
        (["a text", "another"], False),
    ):
        assert Table.of(rows, [0, 1]).is_dense == dense


def test_lists_take_names_from_the_methods():
    def guess(X, y, x):
        return y[0]

    found = kesler.compare(["multi:perceptron", Counting(), guess], X, NAMES)
    assert list(found) == ["multi:perceptron", "Counting", "guess"]
    alone = progressive_validate(OnlineClassifier("multi", update="perceptron"), X, NAMES)
    assert found["multi:perceptron"].curve.tolist() == alone.curve.tolist()
    assert list(kesler.compare("single", X, NAMES)) == ["single"]
    assert list(kesler.compare(tree(), X, NAMES)) == ["DecisionTreeClassifier"]


def test_refits_are_for_classifiers_of_others():
    methods = {"pa1": OnlineClassifier("multi", update="pa1"), "tree": tree(), "events": Counting()}
    found = kesler.compare(methods, X, NAMES, refit=10)
    assert (found["tree"].predictions[:10] == "").all()
    assert (found["pa1"].predictions[1:] != "").all()


# ---- refusals -----------------------------------------------------------------------------------


def test_what_cannot_be_validated_is_refused():
    for method, what in [(3, "int"), (OnlineClassifier, "OnlineClassifier, a class")]:
        refused(lambda m=method: progressive_validate(m, X, NAMES), what, "give a kesler.Online")
    for refit in (0, True, "always", 2.5):
        refused(lambda r=refit: progressive_validate(tree(), X, NAMES, refit=r), "refit=", "None")
    for method in (Counting(), OnlineClassifier(), lambda X, y, x: 0):
        refused(lambda m=method: progressive_validate(m, X, NAMES, refit=2), "has no effect")
    weights = np.full(len(X), 2.0)
    for method in (Counting(), lambda X, y, x: 0, KNeighborsClassifier(), Weightless()):
        refused(lambda m=method: progressive_validate(m, X, NAMES, weights), "omit sample_weight")
    refused(lambda: progressive_validate(tree(), X, NAMES[:5]), "150 rows", "5 labels")
    refused(lambda: kesler.compare([tree(), tree()], X, NAMES), "DecisionTreeClassifier", "dict")
    refused(lambda: kesler.compare([], X, NAMES), "give at least one")
    refused(lambda: kesler.compare(["many"], X, NAMES), "hypotheses='many'")
    refused(lambda: kesler.compare([OnlineMultilabelClassifier()], X, NAMES), "OnlineMultilabel")


class Weightless:
    def partial_fit(self, X, y):
        return self

    def fit(self, X, y):
        return self

    def predict(self, X):
        raise NotFittedError("never asked")


def test_logistic_regression_beats_the_baselines():
    methods = [make_pipeline(StandardScaler(), LogisticRegression()), *BASELINES]
    found = kesler.compare(methods, X, NAMES)
    assert min(found, key=lambda name: found[name].n_mistakes) == "Pipeline"


def test_methods_that_have_learnt_before_are_named():
    model = OnlineClassifier("multi", update="pa1").fit(X[:20], DIGITS[:20])
    methods = {"old": model, "new": OnlineClassifier("multi", update="pa1")}
    with pytest.warns(MismatchWarning, match="old has learnt 20 rows before this") as warned:
        kesler.compare(methods, X, DIGITS)
    assert len(warned) == 1
