"""coef_ and intercept_, and classes that are declared before their first rows."""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import log_loss, roc_auc_score

from kesler import Ensemble, KeslerError, LinearMax, OnlineClassifier, OnlineOrdinalClassifier, load
from streams import make_stream

STREAM = make_stream(21, n_rows=80, n_classes=5)
TWO = make_stream(22, n_rows=80, n_classes=2)


def require_sums(model, X):
    """Scores are weighted sums, in float64 up to the rounding of float32."""
    scores = model.decision_function(X)
    found = np.asarray(X, np.float64) @ model.coef_.T.astype(np.float64) + model.intercept_
    size = max(1.0, float(abs(scores).max()))
    np.testing.assert_allclose(found.reshape(scores.shape), scores, atol=1e-5 * size)
    assert abs(model.coef_).max() > 0


@pytest.mark.parametrize(
    "given",
    [
        {"update": "perceptron"},
        {"update": "pa1", "intercept": 1.0},
        {"update": "pa1", "averaged": True, "intercept": 2.0},
        {"update": "softmax", "preconditioner": "scale-free-adagrad"},
        {"update": "ovr-hinge", "on_new_class": "inherit", "preconditioner": "adagrad"},
        {"update": "perceptron", "link": "exponential"},
        {"update": "pa1", "half_life": 20.0},
        {"preprocessing": None, "update": "softmax"},
    ],
)
def test_scores_are_weighted_sums(given):
    model = OnlineClassifier("multi", **given).fit(STREAM.X, STREAM.y)
    assert model.coef_.shape == (STREAM.n_classes, STREAM.X.shape[1])
    assert model.intercept_.shape == (STREAM.n_classes,)
    assert bool(abs(model.intercept_).max() > 0) == bool(model.resolved_.intercept)
    require_sums(model, STREAM.X)


def test_two_classes_have_one_row_and_names_are_in_order():
    names = np.array(["work", "ham"])
    model = OnlineClassifier("multi", update="pa1", intercept=1).fit(TWO.X, names[TWO.y])
    assert (model.coef_.shape, model.intercept_.shape) == ((1, TWO.X.shape[1]), (1,))
    require_sums(model, TWO.X)
    right = (TWO.X @ model.coef_[0] + model.intercept_[0]) > 0
    assert (model.predict(TWO.X) == np.where(right, "work", "ham")).all()


def test_columns_are_features_in_the_order_of_the_vocabulary():
    rows = [{"a": 1.0, "b": 2.0}, {"c": 1.0}, {"b": 1.0, "c": 3.0}] * 5
    model = OnlineClassifier("multi", update="pa1").fit(rows, [*"xyz"] * 5)
    places = model.vocabulary_.indices
    table = np.zeros((3, 3))
    for t, row in enumerate(rows[:3]):
        for name, value in row.items():
            table[t, places[name]] = value
    np.testing.assert_allclose(model.decision_function(rows[:3]), table @ model.coef_.T, atol=1e-6)


@pytest.mark.parametrize("n_rows", [6, 600])
def test_columns_that_are_zero_in_all_rows_are_features_too(n_rows):
    """Many rows are learnt in pieces, none of which has an entry in the last columns."""
    X = np.random.default_rng(0).normal(size=(n_rows, 5)) * [1, 0, 1, 0, 0]
    model = OnlineClassifier("multi", update="pa1").fit(sparse.csr_array(X), np.arange(n_rows) % 3)
    assert model.coef_.shape == (3, 5)
    assert model.coef_.any(axis=0).tolist() == [True, False, True, False, False]


def test_the_perceptron_by_hand():
    model = OnlineClassifier("multi", update="perceptron")
    model.fit([[1.0, 0.0], [0.0, 2.0], [0.0, 4.0]], ["a", "b", "b"])  # the third row is a mistake
    np.testing.assert_array_equal(model.decision_function([[1.0, 1.0]]), [8.0])
    np.testing.assert_array_equal(model.coef_, [[0.0, 8.0]])


def test_where_scores_are_no_sums_there_are_no_weights():
    learners = {
        "share hypotheses": OnlineClassifier("hybrid", update="pa1"),
        "several learners": Ensemble([OnlineClassifier("multi", update="pa1")]),
        "support vectors": OnlineClassifier("multi", update="pa1", kernel="rbf"),
        "preprocessed by ZScores": OnlineClassifier(
            "multi", update="pa1", preprocessing="z-scores"
        ),
    }
    for why, model in learners.items():
        model.fit(STREAM.X, STREAM.y)
        for name in ("coef_", "intercept_"):
            with pytest.raises(AttributeError, match=f"{name} does not exist.*{why}"):
                getattr(model, name)
            assert not hasattr(model, name)


# ---- declared classes ---------------------------------------------------------------------------


def test_declared_classes_are_columns_from_the_start():
    model = OnlineClassifier("multi", update="pa1", intercept=1)
    model.partial_fit(STREAM.X[:1], ["c"], classes=[*"dcba"])
    assert model.classes_.tolist() == [*"abcd"] and model.classes_by_code_.tolist() == ["c"]
    assert model.predict_proba(STREAM.X[:2]).tolist() == [[0, 0, 1, 0]] * 2
    scores = model.decision_function(STREAM.X[:2])
    assert np.isneginf(scores[:, [0, 1, 3]]).all() and np.isfinite(scores[:, 2]).all()
    assert model.predict(STREAM.X[:2]).tolist() == ["c", "c"]
    assert model.predict_proba_one(STREAM.X[0]) == {"a": 0, "b": 0, "c": 1, "d": 0}
    assert model.coef_.shape[0] == 4 and np.isneginf(model.intercept_).tolist() == [1, 1, 0, 1]
    names = np.array([*"abcde"])[STREAM.y]
    assert "e" in names
    model.partial_fit(STREAM.X, names)  # one more class than declared
    assert model.classes_.tolist() == [*"abcde"]
    plain = OnlineClassifier("multi", update="pa1", intercept=1)
    plain.partial_fit(STREAM.X[:1], ["c"]).partial_fit(STREAM.X, names)
    np.testing.assert_array_equal(
        model.predict_proba(STREAM.X), plain.predict_proba(STREAM.X), strict=True
    )
    assert model.fit(STREAM.X[:3], [*"xyx"]).classes_.tolist() == ["x", "y"]


def test_metrics_of_all_classes_accept_the_probabilities():
    model = OnlineClassifier().partial_fit(STREAM.X, STREAM.y % 3, classes=range(4))
    y, labels = [0, 1, 2, 3] * 20, [0, 1, 2, 3]
    found = model.predict_proba(STREAM.X)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert log_loss(y, found, labels=labels) > 1
    assert 0 <= roc_auc_score(y, found, multi_class="ovr", labels=labels) <= 1


def test_one_of_two_declared_classes_has_an_infinite_score():
    model = OnlineClassifier("multi", update="pa1").partial_fit(TWO.X[:2], [1, 1], classes=[0, 1])
    assert np.isposinf(model.decision_function(TWO.X)).all()
    assert model.predict_proba(TWO.X[:1]).tolist() == [[0, 1]]


@pytest.mark.parametrize("learner", [OnlineClassifier, LinearMax, Ensemble])
def test_declared_classes_are_copied_and_saved(learner, tmp_path):
    model = learner().partial_fit(STREAM.X, STREAM.y, classes=range(9))
    model.save(tmp_path / "model")
    for other in (
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        load(tmp_path / "model"),
    ):
        assert other.classes_.tolist() == list(range(9))
        np.testing.assert_array_equal(
            other.decision_function(STREAM.X), model.decision_function(STREAM.X)
        )


def test_ranks_are_declared_in_their_order():
    grades = OnlineOrdinalClassifier(order=["low", "mid", "high"])
    grades.partial_fit([[1.0], [3.0]], ["low", "high"], classes=["high", "low", "mid"])
    assert grades.classes_.tolist() == ["low", "mid", "high"]
    assert grades.predict_proba([[1.0]])[0, 1] == 0


def test_classes_that_cannot_be_are_refused_and_change_nothing():
    model = OnlineClassifier("multi", update="pa1").partial_fit(STREAM.X, STREAM.y)
    before = model.classes_.tolist()
    for classes in (["a"], [None], [[1]], 3):
        with pytest.raises(KeslerError):
            model.partial_fit(STREAM.X, STREAM.y, classes=classes)
    assert model.classes_.tolist() == before
    with pytest.raises(KeslerError, match="label"):
        model.partial_fit(STREAM.X, np.array([*"abcde"])[STREAM.y], classes=before)
    csr = sparse.csr_array(STREAM.X)
    assert OnlineClassifier("multi", update="pa1").partial_fit(csr, STREAM.y).coef_.shape[0] == 5
