"""What is always true of the faces whose answers are label sets and rankings."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import reference_answers
from kesler import (
    KeslerError,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    load,
    metrics,
    progressive_validate,
)
from kesler.updates import RULES
from registry import CUSTOM, FAMILIES, SETS, Row
from streams import everything, learnt, make_stream

FACES: dict[str, Any] = {"sets": OnlineMultilabelClassifier, "rankings": OnlineLabelRanker}
Answers = list[list[int]]


@dataclass(frozen=True)
class Case:
    """A face of a learner of the registry."""

    face: str
    row: Row
    intercept: float = 1.0

    @property
    def name(self) -> str:
        return f"{self.face}-{self.row.name}"

    def learner(self, C: float = 1.0) -> Any:
        view = self.row.feature_map
        hypotheses = FAMILIES[self.row.family].hypotheses(None, view)
        view, update = "auto" if view is None else view, self.row.update(C)
        return FACES[self.face](hypotheses, view, update, self.intercept)


CASES = [
    Case(face, Row(rule, family, "product-mean" if FAMILIES[family].kinds[0][1] else None))
    for face, rule, family in product(FACES, RULES, ["multi", "single", "own-view", "grouped"])
] + [Case(face, Row(rule, "hybrid", "distance")) for face, rule in product(FACES, RULES)]


def every_case(cases: list[Case]) -> Any:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def answers_of(face: str, seed: int, n_rows: int, k: int) -> Answers:
    """Lists of labels, numbered in the order in which they are named first."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, k + 1, size=n_rows)
    named = [rng.permutation(k)[: n // (2 if face == "sets" else 1)].tolist() for n in lengths]
    number: dict[int, int] = {}
    return [[number.setdefault(label, len(number)) for label in row] for row in named]


def rows_of(seed: int, n_rows: int = 30) -> np.ndarray:
    return make_stream(seed, n_rows).X


def some(face: str, seed: int, n_rows: int = 30, k: int = 6) -> tuple[np.ndarray, Answers]:
    return rows_of(seed, n_rows), answers_of(face, seed, n_rows, k)


def table_of(face: str, y: Answers, k: int) -> np.ndarray:
    """Return the same answers as an indicator matrix, or as ranks."""
    table = np.zeros((len(y), k))
    for row, labels in enumerate(y):
        table[row, labels] = 1 if face == "sets" else np.arange(1, len(labels) + 1)
    return table


def assert_same(one: Any, other: Any, X: np.ndarray) -> None:
    assert learnt(one) == learnt(other)
    assert (one.n_mistakes_, one.n_trials_) == (other.n_mistakes_, other.n_trials_)
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    assert one.predict(X).tolist() == other.predict(X).tolist()


# ---- 1 to 6 -------------------------------------------------------------------------------------


@every_case(CASES)
@settings(max_examples=4)
@given(seed=st.integers(0, 999), cuts=st.lists(st.integers(0, 30), max_size=4))
def test_1_any_split_into_batches_is_the_same(case, seed, cuts):
    X, y = some(case.face, seed)
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 1.0], size=len(X))
    weights[-1] = 1.0
    assume(any(labels for labels, weight in zip(y, weights, strict=True) if weight))
    whole = case.learner().fit(X, y, weights)
    pieces, events = case.learner(), case.learner()
    for start, stop in pairwise(sorted({0, *cuts, len(X)})):
        pieces.partial_fit(X[start:stop], y[start:stop], sample_weight=weights[start:stop])
    assert_same(whole, pieces, X)
    unweighted = case.learner().partial_fit(X, y)
    for x, labels in zip(X, y, strict=True):
        events.learn_one(x, labels)
    assert_same(unweighted, events, X)


@pytest.mark.parametrize("face", FACES)
@settings(max_examples=20)
@given(seed=st.integers(0, 999), cuts=st.lists(st.integers(0, 30), max_size=4))
def test_1_tables_are_the_same_in_any_split(face, seed, cuts):
    X, y = some(face, seed)
    table = table_of(face, y, 8)  # two columns more than there are labels
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 1.0], size=len(X))
    whole = FACES[face]().partial_fit(X, table, sample_weight=weights)
    pieces = FACES[face]()
    for start, stop in pairwise(sorted({0, *cuts, len(X)})):
        pieces.partial_fit(X[start:stop], table[start:stop], sample_weight=weights[start:stop])
    assert_same(whole, pieces, X)
    assert whole.classes_.tolist() == list(range(8)) and whole.predict(X).shape == (30, 8)


@every_case(CASES)
def test_2_declared_labels_are_room_and_no_more(case):
    X, y = some(case.face, 2)
    plain, declared = case.learner().partial_fit(X, y), case.learner()
    declared.partial_fit(X, y, classes=range(100))
    assert_same(plain, declared, X)


@every_case(CASES)
def test_2_no_label_is_scored_before_its_first_row(case):
    X, y = some(case.face, 3)
    result = progressive_validate(case.learner(), X, y)
    for t, known in enumerate(~np.isnan(result.scores)):
        assert set(np.flatnonzero(known)) == {label for row in y[:t] for label in row}
    model = case.learner()
    for t, (x, labels) in enumerate(zip(X, y, strict=True)):
        if model.n_known_:
            before = model.decision_function([x])[0]
            np.testing.assert_array_equal(result.scores[t, model.classes_], before)
        model.learn_one(x, labels)
    assert result.n_mistakes == model.n_mistakes_


@every_case([case for case in CASES if case.row.family != "grouped"])
def test_3_renaming_changes_names_only(case):
    X, y = some(case.face, 4)
    plain = case.learner().fit(X, y)
    for names in (["f", "c", "a", "e", "b", "d"], [(9 - i, "x") for i in range(6)]):
        model = case.learner().fit(X, [[names[label] for label in row] for row in y])
        assert model.classes_.tolist() == sorted(names)
        order = [model.classes_.tolist().index(name) for name in names]
        scores = model.decision_function(X)[:, order]
        np.testing.assert_array_equal(scores, plain.decision_function(X))
        named = [names[label] for label in plain.predict_one(X[0])]
        assert model.predict_one(X[0]) == type(plain.predict_one(X[0]))(named)


@pytest.mark.parametrize("face", FACES)
def test_3_a_table_says_what_lists_say(face):
    X, y = some(face, 5)
    y[0] = [3, 1, 0, 2, 5, 4][: 6 if face == "rankings" else 3]
    table, names = table_of(face, y, 6), [*"abcdef"]
    plain = FACES[face]().fit(X, table)
    forms = {
        "integers": (table.astype(int), None),
        "sparse": (sparse.csr_array(table), None),
        "sparse matrix": (sparse.coo_matrix(table), None),
        "named": (table, names),
        "frame": (pd.DataFrame(table, columns=names), None),
    }
    if face == "rankings":
        forms["NaN"] = (np.where(table == 0, np.nan, table), None)
        forms["other ranks"] = (table * 2.5, None)
    for name, (form, classes) in forms.items():
        model = FACES[face]().partial_fit(X, form, classes=classes)
        scores = model.decision_function(X), plain.decision_function(X)
        np.testing.assert_array_equal(*scores, err_msg=name)
        wanted = names if name in ("named", "frame") else list(range(6))
        assert model.classes_.tolist() == wanted, name
    lists = FACES[face]().fit(X[:0] if False else X, y)
    assert lists.classes_.tolist() == list(range(6))


def test_3_columns_may_come_in_any_order():
    X, y = some("sets", 6)
    table = table_of("sets", y, 6)
    model = OnlineMultilabelClassifier().partial_fit(X, table, classes=[*"fedcba"])
    back = model.predict(X)[:, ::-1]
    plain = OnlineMultilabelClassifier().fit(X, table)
    np.testing.assert_array_equal(back, plain.predict(X))
    other = copy.deepcopy(model).partial_fit(X, table[:, ::-1], classes=[*"abcdef"])
    assert_same(model.partial_fit(X, table, classes=[*"fedcba"]), other, X)


@every_case([case for case in CASES if not case.row.dense_only])
def test_4_dense_sparse_and_named_rows_are_the_same(case):
    X, y = some(case.face, 7)
    plain = case.learner().fit(X, y)
    names = [dict(zip("abcdefg", x.tolist(), strict=True)) for x in X]
    for rows in (
        sparse.csr_array(X),
        sparse.coo_matrix(X),
        X.astype(np.float32),
        X.tolist(),
        names,
    ):
        model = case.learner().fit(rows, y)
        np.testing.assert_array_equal(model.decision_function(rows), plain.decision_function(X))
        assert model.n_mistakes_ == plain.n_mistakes_


@every_case(CASES)
def test_5_save_load_go_on_is_never_stopped(case, tmp_path):
    X, y = some(case.face, 8)
    y[0] = y[0] or [0]
    never_stopped = case.learner().partial_fit(X, y)
    model = case.learner().partial_fit(X[:11], y[:11])
    model.save(tmp_path / "model", source="here")
    loaded = load(tmp_path / "model", custom=CUSTOM)
    assert type(loaded) is type(model) and loaded.notes_ == {"source": "here"}
    assert loaded.get_params()["intercept"] == model.intercept
    for other in (loaded, pickle.loads(pickle.dumps(model)), copy.deepcopy(model), model):
        assert_same(never_stopped, other.partial_fit(X[11:], y[11:]), X)


@every_case(CASES)
def test_6_predicting_changes_nothing(case):
    X, y = some(case.face, 9)
    model = case.learner().fit(X, y)
    before = everything(model), {k: v.tobytes() for k, v in model._machine.arrays().items()}
    model.predict(X), model.decision_function(X), model.predict_one(X[0]), model.levels_told(y)
    if not case.row.dense_only:
        rows = [{"a": 1.0, "never met": 2.0}]
        named = case.learner().fit([{"a": 1.0, "b": 2.0}] * 9, y[:9])
        inside = everything(named)
        named.predict(rows), named.predict_one(rows[0])
        assert everything(named) == inside
    assert (
        everything(model),
        {k: v.tobytes() for k, v in model._machine.arrays().items()},
    ) == before


# ---- 7. the compiled trial equals the oracle ----------------------------------------------------


def told_to_oracle(face: str, y: Answers) -> tuple[list[dict[int, int]], int]:
    """Return the levels of classes by number: the threshold is 0, so that labels begin at 1."""
    if face == "sets":
        return [{0: 1, **{label + 1: 0 for label in row}} for row in y], 2
    return [{label: place for place, label in enumerate(row)} for row in y], -1


def oracle_parts(case: Case) -> list[dict[str, Any]]:
    """Return the parts in the oracle's words; its groups go by number, with the threshold first."""
    shift = 1 if case.face == "sets" else 0
    groups = [[label + shift for label in labels] for labels in SETS.values()]
    return [part | {"groups": groups} for part in case.row.oracle()]


def our_weights(model: Any, kinds: Any) -> list[Any]:
    """Return the weights of each part, (hypotheses, features), groups in the order of `SETS`."""
    machine, found = model._machine, []
    for i, (kind, _) in enumerate(kinds):
        weights = machine.arrays()[f"weights.{i}"].T
        if kind == "grouped":
            nobody, columns = np.zeros(weights.shape[1]), machine.groups[i]
            weights = np.array([weights[columns[s]] if s in columns else nobody for s in SETS])
        found.append(weights)
    return found


def compare(case: Case, X: Any, y: Answers, C: float, weights: Any) -> None:
    told, rest = told_to_oracle(case.face, y)
    wide = np.hstack([np.ones((len(X), 1)), X])
    arguments = (oracle_parts(case), case.row.rule, C)
    run = reference_answers.reference_answers_run(wide, told, rest, *arguments, weights)
    stop = run["doubtful"]
    assume(stop >= 6 and any(y[:stop]))
    weights = None if weights is None else weights[:stop]
    run = reference_answers.reference_answers_run(
        wide[:stop], told[:stop], rest, *arguments, weights
    )
    model = case.learner(C)
    result = progressive_validate(model, X[:stop], y[:stop], weights)
    assert result.n_mistakes == run["mistakes"]
    ours = our_weights(model, FAMILIES[case.row.family].kinds)
    ends = np.cumsum([part.size for part in run["W"]])[:-1]
    for mine, theirs, moved in zip(ours, run["W"], np.split(run["moved"], ends), strict=True):
        near = reference_answers.CLOSE * (moved.reshape(theirs.shape) + run["moved"].max(initial=0))
        assert (abs(mine - theirs) <= near + 1e-6).all()


@every_case(CASES)
@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**31),
    k=st.integers(2, 8),
    C=st.sampled_from([0.02, 0.2, 1.0]),
    weighted=st.booleans(),
)
def test_7_every_learner_equals_the_oracle(case, seed, k, C, weighted):
    X = rows_of(seed)
    weights = np.random.default_rng(seed).choice([0.5, 1.0, 2.0], size=len(X)) if weighted else None
    compare(case, X, answers_of(case.face, seed, len(X), k), C, weights)


# ---- 9. a second learner compiles nothing -------------------------------------------------------


@every_case([case for case in CASES if case.row.rule in ("simproj", "mira")])
def test_9_a_second_learner_compiles_nothing(case):
    from numba.core import event

    X, y = some(case.face, 10)
    case.learner().fit(X, y).predict(X)
    X, y = some(case.face, 11, n_rows=50, k=9)
    with event.install_recorder("numba:compile") as compiled:
        case.learner().fit(X.astype(np.float32), y).predict(X)
        progressive_validate(case.learner(), X, table_of(case.face, y, 9))
    assert len(compiled.buffer) == 0


# ---- 10. scikit-learn's conventions -------------------------------------------------------------


@pytest.mark.parametrize("face", FACES)
def test_10_a_face_is_an_estimator(face):
    X, y = some(face, 12, n_rows=60)
    table = table_of(face, y, 6)
    model = FACES[face]("multi", update="pa1")
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert clone(model).get_params() == model.get_params()
    piped = make_pipeline(StandardScaler(), model).fit(X, table)
    assert piped.predict(X).shape == (60, 6)
    assert np.isfinite(cross_val_score(model, X, table, cv=3)).all()
    search = GridSearchCV(model, {"intercept": [0.0, 1.0]}, cv=2).fit(X, table)
    assert search.best_params_["intercept"] in (0.0, 1.0)
    with pytest.raises(ValueError, match="2 features"):
        piped.named_steps[type(model).__name__.lower()].predict(X[:, :2])


def test_10_scikit_learn_s_own_binarizer_and_metrics_fit():
    X, y = some("sets", 13, n_rows=60)
    table = MultiLabelBinarizer(classes=range(6)).fit_transform(y)
    model = OnlineMultilabelClassifier().fit(X, table)
    np.testing.assert_array_equal(
        model.predict(X), MultiLabelBinarizer(classes=range(6)).fit_transform(model.predict_sets(X))
    )
    assert model.score(X, table) == (model.predict(X) == table).all(axis=1).mean()


@pytest.mark.parametrize("face", FACES)
def test_10_scikit_learn_s_checks_of_what_is_not_the_answer_pass(face):
    """Its checks hand out one label a row: those that learn nothing else, or from tables, pass."""
    results = check_estimator(FACES[face](), on_fail=None, on_skip=None)
    outcomes = Counter(result["status"] for result in results)
    assert outcomes["passed"] >= 15, outcomes


# ---- what is demanded, by hand ------------------------------------------------------------------


def test_an_empty_set_demands_the_threshold_over_all():
    model = OnlineMultilabelClassifier(update="simproj").fit(
        [[1.0], [1.0]], np.array([[1, 1], [0, 0]])
    )
    # The first row only meets the labels. In the second, 0 is over both: C = 1 holds, ||d||^2 = 4.
    assert model.decision_function([[1.0]]).tolist() == [[-0.75, -0.75]]
    assert model.predict_one([1.0]) == set() and model.n_mistakes_ == 0
    model.learn_one([1.0], [0, 1])
    assert model.n_mistakes_ == 1


def test_a_set_of_all_labels_demands_all_over_the_threshold():
    model = OnlineMultilabelClassifier().fit([[1.0]] * 20, [["a", "b"]] * 20)
    assert model.predict_sets([[1.0]]) == [{"a", "b"}]


def test_a_row_without_features_has_a_threshold_too():
    model = OnlineMultilabelClassifier().fit([[0.0]] * 9, np.array([[1, 0]] * 9))
    assert model.predict([[0.0]]).tolist() == [[1, 0]]
    assert OnlineMultilabelClassifier(intercept=0).fit([[0.0]] * 9, np.array([[1, 0]] * 9)).predict(
        [[0.0]]
    ).tolist() == [[0, 0]]


def test_ties_and_labels_that_are_not_ranked_are_not_compared():
    X = [[1.0]] * 8
    model = OnlineLabelRanker("multi").fit(X, np.array([[1, 2, 2, 0]] * 8))
    scores = model.decision_function([[1.0]])[0]
    assert scores[0] > scores[1] == scores[2] and scores[3] == 0
    assert OnlineLabelRanker("multi").fit(X, [["a", "b"]] * 8).predict_one([1.0]) == ["a", "b"]
    assert OnlineLabelRanker("multi").fit(X, np.ones((8, 3))).n_mistakes_ == 0


def test_metrics_of_progressive_validation():
    X, y = np.eye(2)[[0, 1, 0, 1]], np.array([[1, 0], [0, 1]] * 2)
    result = progressive_validate(OnlineMultilabelClassifier(), X, y)
    assert np.isnan(result.scores[0]).all() and result.n_trials == 4
    assert result.relevant.tolist() == y.astype(bool).tolist()
    assert result.one_error == metrics.one_error(result.scores, result.relevant)
    assert 0 <= result.ranking_loss <= 1 and 0 < result.hamming_loss < 1
    ranks = np.array([[1, 2], [2, 1]] * 2)
    assert progressive_validate(OnlineLabelRanker("multi"), X, ranks).kendall_tau > -1
    weighted = progressive_validate(OnlineMultilabelClassifier(), X, y, [1, 0, 1, 1])
    assert weighted.n_trials == 3 == len(weighted.levels)
    assert np.isnan(metrics.one_error(np.zeros((1, 2)), np.zeros((1, 2), bool)))


# ---- bad input ----------------------------------------------------------------------------------

REFUSED: dict[str, tuple[str, Any, str]] = {
    "text for a set": ("sets", ["ab"], r"row 0 of y is 'ab'.*write \['ab'\]"),
    "a label for a set": ("sets", [3], r"row 0 of y is 3.*write \[3\]"),
    "a label twice": ("sets", [["a", "b", "a"]], "row 0 of y names the label 'a' twice"),
    "no indicator": ("sets", np.array([[1, 2]]), "2.0 in row 0, column 1.*indicator"),
    "NaN": ("sets", np.array([[1, np.nan]]), "nan in row 0, column 1.*indicator"),
    "table of text": ("sets", np.array([["a", "b"]]), "must hold numbers"),
    "two rows": ("sets", [["a"], ["b"]], "inconsistent numbers of samples"),
    "labels of two types": ("sets", [["a", 1]], "cannot be ordered"),
    "a list in a set": ("sets", [["a", ["b"]]], "not hashable"),
    "no label": ("sets", [["a", None]], "is no class"),
    "nothing": ("sets", None, "y is None"),
    "no name at all": ("sets", [[]], "no answer names a label"),
    "twice ranked": ("rankings", [["a", "b", "a"]], "row 0 of y names the label 'a' twice"),
    "a set for a ranking": ("rankings", [{"a", "b"}], "needs an order"),
    "text for a ranking": ("rankings", ["ab"], "not a list of labels"),
    "negative rank": ("rankings", np.array([[1, -2]]), "rank -2.0 in row 0, column 1"),
    "infinite rank": ("rankings", np.array([[1, np.inf]]), "rank inf in row 0, column 1"),
    "no ranking": ("rankings", None, "y is None"),
}


@pytest.mark.parametrize(("face", "y", "sentence"), REFUSED.values(), ids=REFUSED)
def test_a_refused_answer_is_a_sentence_and_leaves_no_trace(face, y, sentence):
    model = FACES[face]()
    before = everything(model)
    with pytest.raises(KeslerError, match=sentence) as caught:
        model.fit([[1.0, 2.0]], y)
    assert len(str(caught.value).split()) > 5
    assert everything(model) == before


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize(
    ("columns", "classes", "sentence"),
    [
        (3, None, r"none for the label 3"),
        (4, ["a", "b", "c", "d"], "none for the label 0"),
        (4, [0, 1, 2], "4 columns, but classes= names 3"),
        (4, [0, 1, 2, 2], "names a label twice"),
    ],
)
def test_columns_that_do_not_stand_for_the_labels_known_are_refused(
    face, columns, classes, sentence
):
    model = FACES[face]().fit(np.eye(4), np.eye(4))
    before = everything(model)
    with pytest.raises(KeslerError, match=sentence):
        model.partial_fit(np.eye(4), np.ones((4, columns)), classes=classes)
    assert everything(model) == before
    assert model.partial_fit(np.eye(4), np.ones((4, 5))).classes_.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("intercept", ["1", None, float("nan"), float("inf")])
def test_an_intercept_is_a_number(intercept):
    with pytest.raises(KeslerError, match="intercept="):
        OnlineMultilabelClassifier(intercept=intercept).fit([[1.0]], [["a"]])


def test_the_command_line_refuses_other_faces(tmp_path, capsys):
    from kesler.cli import main

    path = tmp_path / "model"
    OnlineLabelRanker("multi").fit([[1.0]], [["a", "b"]]).save(path)
    rows = tmp_path / "rows.csv"
    rows.write_text("x\n1\n")
    assert main(["predict", str(rows), "--model", str(path)]) != 0
    assert "OnlineLabelRanker" in capsys.readouterr().err
