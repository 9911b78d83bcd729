"""Trees in place of weights: against a reference, their laws, files and refusals."""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from kesler import (
    BanditClassifier,
    CostSensitiveClassifier,
    Ensemble,
    KeslerError,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
    load,
    mistake_bound,
)
from kesler.data import model_file
from kesler.forests import ExtraTrees
from kesler.preprocessing import ZScores
from reference_extra_trees import Reference
from streams import assert_same_in_any_split, held, in_order_of_appearance, make_stream, run_trials

# ---- equal to it ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Rows of a kind, and parameters of trees."""

    n_features: int = 5
    n_classes: int = 3
    n_trees: int = 3
    n_rows: int = 4096
    form: str = "normal"  # a key of FORMS
    weighted: bool = False
    weights: tuple[float, ...] | None = None
    length: int = 300

    def rows(self, seed: int) -> tuple[Any, Any, Any]:
        rng = np.random.default_rng(seed)
        n, d = self.length, self.n_features
        y = in_order_of_appearance(rng.integers(self.n_classes, size=n))
        X = rng.normal(size=(self.n_classes, d))[y] + rng.normal(size=(n, d))
        X = FORMS[self.form](X, rng).astype(np.float32)
        return X, y, rng.choice([0.5, 1.0, 2.0], size=n) if self.weighted else np.ones(n)

    @property
    def update(self) -> ExtraTrees:
        return ExtraTrees(self.n_trees, self.n_rows, self.weights)

    def reference(self) -> Reference:
        return Reference(self.n_features, self.n_trees, self.n_rows, self.weights)


def with_constants(X: Any, rng: Any) -> Any:
    return np.where(np.arange(X.shape[1]) % 3 > 0, 2.5, X)


def with_missing(X: Any, rng: Any) -> Any:
    """Some values are missing everywhere, all of a column, and all but equal ones of another."""
    X = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    X[:, 0] = np.nan
    X[:, 1] = np.where(np.isnan(X[:, 1]), np.nan, -1.5)
    return X


def mixed(X: Any, rng: Any) -> Any:
    return with_missing(np.rint(with_constants(X, rng))[rng.integers(60, size=len(X))], rng)


FORMS: dict[str, Any] = {
    "normal": lambda X, rng: X,
    "ties": lambda X, rng: np.rint(X),
    "duplicates": lambda X, rng: X[rng.integers(20, size=len(X))],
    "constant": with_constants,
    "near": lambda X, rng: np.float32(1) + np.rint(X) * np.float32(2**-23),
    "identical": lambda X, rng: np.ones_like(X),
    "missing": with_missing,
    "near, missing": lambda X, rng: with_missing(FORMS["near"](X, rng), rng),
    "mixed": mixed,
}

EVEN, ODD = (1.0, 0.0, 3.0, 0.5, 0.0), (0.0, 7.0)
CASES = {
    "one tree": Case(n_trees=1, length=400),
    "several trees": Case(n_trees=5, length=400),
    "two features": Case(n_features=2, n_classes=2),
    "one feature": Case(n_features=1, n_classes=4, form="ties"),
    "forty features": Case(n_features=40, n_classes=9, n_trees=2),
    "as many tries as may be": Case(n_features=70, n_trees=1, length=200),
    "ties": Case(form="ties", n_classes=6),
    "duplicates": Case(form="duplicates", n_classes=7),
    "identical rows of nine classes": Case(form="identical", n_classes=9),
    "constant columns": Case(form="constant", n_features=7, n_classes=4),
    "neighbouring numbers": Case(form="near", n_classes=4),
    "missing": Case(form="missing", n_classes=5),
    "missing, two features": Case(form="missing", n_features=2),
    "neighbouring numbers, missing": Case(form="near, missing", n_features=4),
    "mixed": Case(form="mixed", n_features=8, n_classes=9),
    "weights of rows": Case(weighted=True, n_classes=5),
    "weights of rows, mixed": Case(weighted=True, form="mixed", n_classes=9),
    "weights of features": Case(weights=EVEN),
    "weights of features, missing": Case(weights=EVEN, form="missing", weighted=True),
    "one feature of two": Case(weights=ODD, n_features=2, form="ties"),
    "a ring of 16": Case(n_rows=16, n_trees=4),
    "a ring of 16, mixed": Case(n_rows=16, n_trees=1, form="mixed", weighted=True, n_classes=9),
    "rows that double between two trees": Case(n_trees=14, n_features=1, n_classes=2, length=500),
    "each pause between two trees": Case(n_rows=16, n_trees=40, n_features=2, length=560),
    "a ring of 64": Case(n_rows=64, n_trees=2, length=700),
    "a ring of 64, ties": Case(n_rows=64, form="ties", n_classes=9, weights=EVEN),
    "many judges": Case(n_trees=1, n_features=3, n_classes=2, form="ties", length=900),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_prediction_and_score_is_that_of_the_reference(case):
    X, y, w = case.rows(len(repr(case)))
    model, reference = OnlineClassifier(update=case.update), case.reference()
    for i in range(len(y)):
        if i:
            expected = reference.scores(X[i])
            assert_allclose(model._scores(X[[i]])[0], expected, atol=1e-6, rtol=0, err_msg=f"{i}")
        trials = run_trials(model, X[i : i + 1], y[i : i + 1], w[i : i + 1])
        assert trials[0].tolist() == [reference.predict(X[i])], i
        reference.learn(X[i], y[i], w[i])
    assert model._learner.arrays()["forest.due"].tolist() == reference.due
    expected = np.array([reference.scores(x) for x in X[:50]])
    assert_allclose(model._scores(X[:50]), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("seed", range(12))
def test_rows_at_once_are_those_of_the_reference(seed):
    """Small streams of any kind, with weights that add up exactly.

    Others leave it to rounding which of two cuts that divide the rows alike is chosen.
    """
    rng = np.random.default_rng(seed)
    case = Case(
        n_features=int(rng.integers(2, 41)),
        n_classes=int(rng.integers(2, 10)),
        n_trees=int(rng.integers(1, 6)),
        n_rows=int(rng.choice([16, 64, 4096])),
        form=str(rng.choice(list(FORMS))),
        length=int(rng.integers(20, 250)),
    )
    X, y, _ = case.rows(seed)
    w = rng.integers(1, 200, size=len(y)) / 64
    model, reference = OnlineClassifier(update=case.update), case.reference()
    expected = []
    for x, code, weight in zip(X, y, w, strict=True):
        expected.append(reference.predict(x))
        reference.learn(x, code, weight)
    assert run_trials(model, X, y, w)[0].tolist() == expected
    scores = np.array([reference.scores(x) for x in X])
    assert_allclose(model._scores(X), scores, atol=1e-6, rtol=0)
    assert_array_equal(model.predict(X), scores.argmax(axis=1))


@pytest.mark.parametrize(("n_features", "n_rows"), [(2**13, 4096), (2**14, 2048), (2**20, 64)])
def test_rows_of_many_features_are_kept_in_128_megabytes(n_features, n_rows):
    model = OnlineClassifier(update=ExtraTrees(1)).partial_fit(np.ones((1, n_features)), [0])
    assert model._learner.arrays()["forest.grown"].tolist()[-1] == n_rows


def test_scores_of_several_classes_are_in_the_order_of_labels():
    case = CASES["ties"]
    X, y, _ = case.rows(0)
    names = np.array([*"fedcba"])
    plain = OnlineClassifier(update=case.update).fit(X, y)
    named = OnlineClassifier(update=case.update).fit(X, names[y])
    assert_array_equal(named.decision_function(X)[:, ::-1], plain._scores(X))
    assert_array_equal(named.predict(X), names[plain.predict(X)])


# ---- laws ----------------------------------------------------------------------------------------

MADE = {
    "default": ExtraTrees(),
    "one tree": ExtraTrees(1),
    "a ring of 16": ExtraTrees(4, 16),
    "a ring of 64": ExtraTrees(3, 64),
    "weights": ExtraTrees(3, 64, (1.0, 0.0, 2.0, 3.0, 0.5, 1.0, 1.0)),
}
of_each = pytest.mark.parametrize("update", MADE.values(), ids=MADE)


def saved(model: Any, path: Any) -> bytes:
    model.save(path)
    return bytes(path.read_bytes())


@of_each
@pytest.mark.parametrize("cuts", [[1, 2, 3], [5, 100, 101, 230], [64, 128]])
def test_1_any_split_is_the_same(update, cuts):
    stream = make_stream(3, n_rows=260)
    assert_same_in_any_split(lambda: OnlineClassifier(update=update), stream, cuts)


@of_each
def test_1_files_of_any_split_are_the_same(update, tmp_path):
    stream, files = make_stream(4, n_rows=150), []
    for size in (1, 7, 150):
        model = OnlineClassifier(update=update)
        for start in range(0, 150, size):
            rows = slice(start, start + size)
            model.partial_fit(stream.X[rows], stream.y[rows], sample_weight=stream.weights[rows])
        files.append(saved(model, tmp_path / "model"))
    assert files[0] == files[1] == files[2]


@of_each
@pytest.mark.parametrize("n_before", [1, 40, 100, 300])
@pytest.mark.parametrize("form", ["file", "pickle"])
def test_2_what_is_restored_goes_on_as_if_never_stopped(update, n_before, form, tmp_path):
    stream = make_stream(5, n_rows=n_before + 260)
    X, y = stream.X, stream.y
    model = OnlineClassifier(update=update).partial_fit(X[:n_before], y[:n_before])
    contents = saved(model, tmp_path / "model")
    restored = load(tmp_path / "model") if form == "file" else pickle.loads(pickle.dumps(model))
    assert saved(restored, tmp_path / "again") == contents
    for start in range(n_before, len(y), 4):  # so that the first difference is seen
        rows = slice(start, start + 4)
        expected = run_trials(model, X[rows], y[rows])[0].tolist()
        assert run_trials(restored, X[rows], y[rows])[0].tolist() == expected
        assert held(restored) == held(model), start
    assert_array_equal(restored.predict_proba(X), model.predict_proba(X))
    assert saved(restored, tmp_path / "again") == saved(model, tmp_path / "model")


@of_each
def test_3_answers_change_nothing(update, tmp_path):
    stream = make_stream(6, n_rows=120)
    model = OnlineClassifier(update=update).partial_fit(stream.X, stream.y)
    before = saved(model, tmp_path / "model")
    for answer in (model.predict, model.predict_proba, model.decision_function, model.predict_top):
        answer(stream.X)
    model.predict_one(stream.X[0])
    assert saved(model, tmp_path / "model") == before


def test_4_parameters_are_those_given_and_what_is_in_use_learns_the_same():
    stream, update = make_stream(7, n_rows=120), MADE["weights"]
    model = OnlineClassifier(update=update).fit(stream.X, stream.y)
    assert clone(model).get_params(deep=False)["update"] == update
    again = clone(model.resolved_).fit(stream.X, stream.y)
    assert held(again) == held(model)


@pytest.mark.parametrize("how", ["alone", "alone, shuffled", "pool", "ensemble"])
def test_5_fit_counts_rows_once(how):
    stream = make_stream(8, n_rows=90)
    update, shuffle = ExtraTrees(3, 64), how == "alone, shuffled"
    epochs = 1 if how.startswith("alone") else 3
    members = [OnlineClassifier(update=each) for each in (update, "pa1")]
    made = {
        "pool": OnlineClassifier(update=members, epochs=epochs, shuffle=shuffle),
        "ensemble": Ensemble(members, epochs=epochs, shuffle=shuffle),
    }.get(how, OnlineClassifier(update=update, epochs=epochs, shuffle=shuffle))
    learner = made.fit(stream.X, stream.y)._learner
    trees = getattr(learner, "members", [learner])[0]
    order = np.random.default_rng(0).permutation(90) if shuffle else np.arange(90)
    once = OnlineClassifier(update=update).partial_fit(stream.X[order], stream.y[order])
    found, wanted = trees.arrays(), once._learner.arrays()
    for name in ("rows", "codes", "cuts", "owners", "amounts", "priors", "grown"):
        assert_array_equal(found[f"forest.{name}"], wanted[f"forest.{name}"])


@pytest.mark.parametrize("shuffle", ["auto", True, False])
def test_5_trees_refuse_to_count_rows_again(shuffle):
    stream = make_stream(8, n_rows=20)
    model = OnlineClassifier(update=ExtraTrees(3, 64)).fit(stream.X, stream.y)
    before = held(model)
    with pytest.raises(KeslerError, match=r"epochs=2: .* would count each row 2 times"):
        model.set_params(epochs=2, shuffle=shuffle).fit(stream.X, stream.y)
    assert held(model) == before


def test_6_rows_without_weight_teach_nothing():
    stream = make_stream(9, n_rows=90)
    seen = np.arange(90) % 3 > 0
    seen[:30] = True  # all classes
    models = [OnlineClassifier(update=ExtraTrees(3)) for _ in range(2)]
    models[0].partial_fit(stream.X, stream.y, sample_weight=seen.astype(float))
    models[1].partial_fit(stream.X[seen], stream.y[seen])
    assert_array_equal(models[0]._scores(stream.X), models[1]._scores(stream.X))


# ---- probabilities and explanations --------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 6])
@pytest.mark.parametrize("how", ["alone", "member", "default", "ensemble"])
def test_probabilities_sum_to_1_and_contributions_to_the_score(how, n_classes):
    stream = make_stream(10, n_rows=150, n_classes=n_classes)
    members = [OnlineClassifier(update=each) for each in (ExtraTrees(3, 64), "pa1")]
    made = {
        "alone": OnlineClassifier(update=ExtraTrees(3, 64)),
        "member": OnlineClassifier(update=members),
        "default": OnlineClassifier(),
        "ensemble": Ensemble(members),
    }
    model = made[how].fit(stream.X, stream.y)
    probabilities = model.predict_proba(stream.X)
    assert (probabilities >= 0).all()
    assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(stream.X))
    for x in stream.X[:5]:
        why = model.explain_one(x)
        expected = float(model._scores(x[None])[0, model._learner.classes.code(why.label)])
        assert why.label == model.predict_one(x)
        assert why.score == pytest.approx(expected, abs=1e-6 * (1 + abs(expected)))
        assert sum(each.score for each in why.summands) == pytest.approx(why.score, abs=2e-4)


# ---- what is refused -----------------------------------------------------------------------------

X3, Y3 = np.eye(3), [0, 1, 2]
BAD_PARAMETERS: list[dict[str, Any]] = [
    *({"n_trees": each} for each in (0, -1, 1001, 2.0, True, None, "8")),
    *({"n_rows": each} for each in (15, 2**24 + 1, 64.0, None)),
    *({"weights": each} for each in ((), (0, 0), (-1, 2), (math.nan, 1), (math.inf, 1), "ab", 3)),
]


def assert_sentence(error: Any, least: int = 9) -> None:
    text = str(error)
    assert len(text.split()) >= least and "\n" not in text and ": " in text, text


@pytest.mark.parametrize("chosen", BAD_PARAMETERS, ids=repr)
def test_parameters_out_of_range_are_refused(chosen):
    ((name, _),) = chosen.items()
    with pytest.raises(KeslerError, match=rf"ExtraTrees\({name}=") as caught:
        ExtraTrees(**chosen)
    assert_sentence(caught.value)


BESIDE: list[dict[str, Any]] = [
    {"intercept": 1.0},
    {"link": "p-norm"},
    {"preconditioner": "adagrad"},
    {"preprocessing": "z-scores"},
    {"half_life": 9.0},
    {"replay": 2},
    {"averaged": True},
    {"costs": {(0, 1): 2.0}},
    {"kernel": "rbf"},
    {"sigma": 2.0},
    {"budget": 9},
    {"hypotheses": "hybrid"},
    {"on_new_class": "inherit"},
    {"on_new_class": "unseen"},
    {"C": 1.0},
    {"memory_limit": 10**6},
    {"candidates": 5},
    {"tree": {0: "a", 1: "a"}},
]


@pytest.mark.parametrize("beside", BESIDE, ids=repr)
def test_settings_of_weights_beside_trees_are_refused(beside):
    with pytest.raises(KeslerError) as caught:
        OnlineClassifier(update=ExtraTrees(), **beside).fit(X3, Y3)
    assert_sentence(caught.value)


@pytest.mark.parametrize("beside", [{"tree": {0: "a", 1: "a"}}, {"memory_limit": 10**6}], ids=repr)
def test_a_refusal_speaks_of_what_was_given(beside):
    with pytest.raises(KeslerError, match="tree") as caught:
        OnlineClassifier(update=ExtraTrees(), **beside).fit(X3, Y3)
    assert all(name in str(caught.value) for name in beside)
    assert not any(name in str(caught.value) for name in ("kernel", "hypotheses"))


OTHERS: dict[str, Any] = {
    "ranks": lambda rule: OnlineOrdinalClassifier(update=rule).fit(X3, Y3),
    "sets": lambda rule: OnlineMultilabelClassifier(update=rule).fit(X3, np.eye(3, dtype=int)),
    "rankings": lambda rule: OnlineLabelRanker(update=rule).fit(X3, [[0, 1, 2]] * 3),
    "feedback": lambda rule: BanditClassifier(range(3), update=rule).partial_fit(X3, Y3),
    "costs": lambda rule: CostSensitiveClassifier(update=rule).fit(X3, 1 - np.eye(3)),
}


@pytest.mark.parametrize("learn", OTHERS.values(), ids=OTHERS)
def test_other_estimators_refuse_trees(learn):
    with pytest.raises(KeslerError, match="OnlineClassifier") as caught:
        learn(ExtraTrees())
    assert_sentence(caught.value)


WRONG_ROWS: dict[str, Any] = {
    "sparse": lambda model: model.partial_fit(sparse.csr_array(X3), Y3),
    "sparse, to predict": lambda model: model.predict(sparse.csr_array(X3)),
    "infinite": lambda model: model.partial_fit(np.full((1, 3), np.inf), [0]),
    "wider": lambda model: model.partial_fit(np.eye(4), [0, 1, 2, 0]),
    "wider, to predict": lambda model: model.predict(np.eye(4)),
    "narrower": lambda model: model.predict(np.eye(2)),
    "one, wider": lambda model: model.learn_one(np.ones(4), 0),
    "one, narrower": lambda model: model.predict_one(np.ones(2)),
    "texts": lambda model: model.predict(["a", "b"]),
    "mappings": lambda model: model.predict_one({"a": 1.0}),
}


@pytest.mark.parametrize("use", WRONG_ROWS.values(), ids=WRONG_ROWS)
def test_rows_that_do_not_fit_are_refused_and_change_nothing(use):
    model = OnlineClassifier(update=ExtraTrees(2, weights=(1, 2, 3))).fit(X3, Y3)
    before = held(model)
    with pytest.raises((KeslerError, ValueError), match=r"\w+ \w+ \w+ \w+"):
        use(model)
    assert held(model) == before


@pytest.mark.parametrize("n_features", [1, 2, 4])
def test_other_features_than_weights_are_refused(n_features):
    X, model = np.ones((2, n_features)), OnlineClassifier(update=ExtraTrees(weights=(1, 2, 3)))
    for learn in (lambda: model.fit(X, [0, 1]), lambda: model.learn_one(X[0], 0)):
        with pytest.raises(KeslerError, match=f"3 weights, but rows have {n_features}"):
            learn()


# ---- altered files -------------------------------------------------------------------------------

INNER, LEAF = 3, -1  # the fourth node that compares, the last leaf
ALTERED: dict[str, tuple[str, Any]] = {
    "a child that is the node": ("children", lambda f: (f.inner, f.inner[1])),
    "a child above": ("children", lambda f: (f.inner, 1)),
    "the root as a child": ("children", lambda f: (f.inner, 0)),
    "a child without a second": ("children", lambda f: (f.inner, f.n_nodes - 1)),
    "a child beyond": ("children", lambda f: (f.inner, f.n_nodes)),
    "a child far beyond": ("children", lambda f: (f.inner, 2**30)),
    "a child before": ("children", lambda f: (f.inner, -1)),
    "a leaf without counts": ("children", lambda f: (f.leaf, f.n_leaves)),
    "a leaf far beyond": ("children", lambda f: (f.leaf, 2**30)),
    "a feature beyond": ("features", lambda f: (f.inner, 4)),
    "a feature far beyond": ("features", lambda f: (f.inner, 2**30)),
    "a feature before": ("features", lambda f: (f.inner, -2)),
    "a cut that is no number": ("cuts", lambda f: (f.inner, np.nan)),
    "an owner beyond": ("owners", lambda f: ((0, 0, 0), 3)),
    "an owner before": ("owners", lambda f: ((0, 0, 0), -1)),
    "less than nothing in a leaf": ("amounts", lambda f: ((0, 0, 0), -1.0)),
    "no number in a leaf": ("amounts", lambda f: ((0, 0, 0), np.nan)),
    "due before": ("due", lambda f: (0, 0)),
    "no nodes": ("n_nodes", lambda f: (0, 0)),
    "too many nodes": ("n_nodes", lambda f: (0, 2**20)),
    "the root alone": ("n_nodes", lambda f: (0, 1)),
    "two nodes fewer": ("n_nodes", lambda f: (0, f.n_nodes - 2)),
    "one leaf fewer": ("n_leaves", lambda f: (0, f.n_leaves - 1)),
    "a class beyond": ("codes", lambda f: (0, 3)),
    "a class before": ("codes", lambda f: (0, -1)),
    "a row of less than nothing": ("weights", lambda f: (0, -1.0)),
    "an infinite value": ("rows", lambda f: ((0, 0), np.inf)),
    "less than no rows of a class": ("priors", lambda f: (0, -1.0)),
    "no rows": ("grown", lambda f: (0, 0)),
    "fewer rows than are kept": ("grown", lambda f: (0, 50)),
    "draws before the first": ("grown", lambda f: (1, -1)),
    "no features": ("grown", lambda f: (2, 0)),
    "more features": ("grown", lambda f: (2, 5)),
    "no ring": ("grown", lambda f: (3, 0)),
    "a smaller ring": ("grown", lambda f: (3, 63)),
    "a larger ring": ("grown", lambda f: (3, 2**30)),
}


class Places:
    """Where a tree of a file has a node that compares, and a leaf."""

    def __init__(self, arrays: Any) -> None:
        self.n_nodes = int(arrays["forest.n_nodes"][0])
        self.n_leaves = int(arrays["forest.n_leaves"][0])
        features = arrays["forest.features"][0, : self.n_nodes]
        self.inner = (0, int(np.flatnonzero(features >= 0)[INNER]))
        self.leaf = (0, int(np.flatnonzero(features < 0)[LEAF]))


@pytest.fixture
def filed(tmp_path):
    """The path, arrays and metadata of the file of a model of 100 rows."""
    stream = make_stream(11, n_rows=100, n_classes=3, n_features=4)
    OnlineClassifier(update=ExtraTrees(3, 64)).fit(stream.X, stream.y).save(tmp_path / "model")
    return tmp_path / "model", *model_file.load(tmp_path / "model")


def assert_refused(path: Any, arrays: Any, metadata: Any) -> None:
    model_file.save(path, arrays, metadata)
    with pytest.raises(KeslerError, match="damaged or was changed") as caught:
        load(path)
    assert_sentence(caught.value)


@pytest.mark.parametrize("name", ALTERED)
def test_altered_trees_are_refused(name, filed):
    path, arrays, metadata = filed
    array, alter = ALTERED[name]
    changed = np.array(arrays[f"forest.{array}"])
    place, value = alter(Places(arrays))
    assert changed[place] != value
    changed[place] = value
    assert_refused(path, arrays | {f"forest.{array}": changed}, metadata)


def test_arrays_of_other_shapes_are_refused(filed):
    path, arrays, metadata = filed
    for key in [each for each in arrays if each.startswith("forest.")]:
        rest = {name: array for name, array in arrays.items() if name != key}
        assert_refused(path, rest, metadata)
        for changed in (arrays[key][:-1], np.repeat(arrays[key], 2, axis=0), arrays[key][..., :0]):
            assert_refused(path, rest | {key: np.ascontiguousarray(changed)}, metadata)


@pytest.mark.parametrize(
    ("n", "n_rows", "grows"), [(300, 4096, True), (200, 4096, False), (300, 256, False)]
)
def test_a_set_that_ends_grows_trees_from_all_its_rows(n, n_rows, grows):
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(n, 4)).astype(np.float32), rng.integers(3, size=n)
    rule = ExtraTrees(n_trees=5, n_rows=n_rows)
    model = OnlineClassifier(update=rule, shuffle=True, random_state=3).fit(X, y)
    reference, codes = Reference(4, 5, n_rows), {}
    for i in np.random.default_rng(3).permutation(n):
        reference.learn(X[i], codes.setdefault(y[i], len(codes)))
    if grows:
        reference.trees = [reference.grown() for _ in reference.trees]
    labels = {code: label for label, code in codes.items()}
    asked = rng.normal(size=(100, 4)).astype(np.float32)
    expected = [labels[reference.predict(x)] for x in asked]
    assert model.predict(asked).tolist() == expected
    assert model.n_trials_ == n


def test_the_preprocessing_of_an_ensemble_is_that_of_its_members_with_weights():
    trees = OnlineClassifier(update=ExtraTrees())
    assert OnlineClassifier(update=[trees]).fit(X3, Y3).preprocessing_ is None
    assert OnlineClassifier(preprocessing="z-scores").fit(X3, Y3).preprocessing_ == ZScores()
    assert OnlineClassifier().fit(X3, Y3).preprocessing_ is None


# ---- rows that people bring
# -----------------------------------------------------------------------------------


def test_dictionaries_whose_numbers_come_and_go_are_learnt_with_columns():
    """As in a report on another library's forest, which failed when fewer features were left."""
    rows = [{"a": i % 5, "b": 2, "c": i % 3} for i in range(20)] + [{"a": 13}, {"d": 1.5}, {"a": 2}]
    labels = [f"class {i % 5}" for i in range(20)] + ["few", "other", "class 2"]
    model = OnlineClassifier(update=ExtraTrees(), columns={})
    for row, label in zip(rows * 3, labels * 3, strict=True):
        model.learn_one(row, label)
    assert model.predict([rows[2], rows[20]]).tolist() == ["class 2", "few"]
    with pytest.raises(KeslerError, match=r"dense with columns=\{\} if the first has a number"):
        OnlineClassifier(update=ExtraTrees()).partial_fit(rows, labels)


@pytest.mark.filterwarnings("ignore:column")
@pytest.mark.parametrize(
    "first", [{"n": 1}, {"n": 1.5, "m": 2, "k": "x"}, {"on": "2026-01-02"}], ids=str
)
@pytest.mark.parametrize(
    "row", [{}, {"k": "x"}, {"n": None}, {"is": True}, {"n": 2}, {"on": "2026-01-03"}], ids=str
)
def test_the_advice_for_tables_without_numbers_helps(first, row):
    """Rows that are refused as the first ones are learnt behind a row as the error asks for."""
    model = OnlineClassifier(update=ExtraTrees(2), columns={})
    if not {"n", "on"} & {name for name, cell in row.items() if cell is not None}:
        with pytest.raises(KeslerError, match="if the first has a number or a date"):
            clone(model).learn_one(row, "a")
    model.learn_one(first, "a").learn_one(row, "b")
    assert model.n_trials_ == 2 and model.predict_one(row) in ("a", "b")
    for refused in ({"text": "one of many words " * 9}, {"tags": ["a", "b"]}):
        with pytest.raises(KeslerError, match="no column is a text or a list"):
            clone(model).partial_fit([first, refused], ["a", "b"])


def test_values_may_be_missing_only_where_rows_are_predicted():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 3))
    model = OnlineClassifier(update=ExtraTrees()).fit(X, X[:, 0] > 0)
    asked = np.array([[2.0, np.nan, np.nan], [-2.0, np.nan, np.nan], [np.nan] * 3])
    assert model.predict(asked)[:2].tolist() == [True, False]
    assert np.isfinite(model.predict_proba(asked)).all()


def test_no_mistake_bound_is_given():
    with pytest.raises(KeslerError, match="no theorem bounds the mistakes of ExtraTrees"):
        mistake_bound(OnlineClassifier(update=ExtraTrees()), X3, Y3)
