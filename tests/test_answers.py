"""Laws of the estimators whose targets are label sets and rankings."""

from __future__ import annotations

import copy
import pickle
from itertools import pairwise
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
from cases import (
    CASES,
    OF_PROBABILITIES,
    OF_TABLES,
    Answers,
    Case,
    answers_of,
    every_case,
    rows_of,
    some,
    table_of,
)
from kesler import OnlineMultilabelClassifier, load, progressive_validate
from registry import CUSTOM, FAMILIES, SETS, covering
from streams import assert_same_but_declared, everything, learnt


def few(cases: list[Case]) -> list[Case]:
    """Return cases with every part of the learner, each with every kind of answer."""
    return covering(
        cases, "estimator", of=lambda case: vars(case.row) | {"estimator": case.estimator}
    )


FEW = few(CASES) + OF_PROBABILITIES
"""For laws on the steps before and after a trial, and on the ways to pass rows."""


def assert_same(one: Any, other: Any, X: np.ndarray) -> None:
    assert learnt(one) == learnt(other)
    assert (one.n_mistakes_, one.n_trials_) == (other.n_mistakes_, other.n_trials_)
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    assert one.predict(X).tolist() == other.predict(X).tolist()


# ---- 1 to 6 -------------------------------------------------------------------------------------


@every_case(FEW)
@settings(max_examples=4)
@given(seed=st.integers(0, 999), cuts=st.lists(st.integers(0, 30), max_size=4))
def test_1_any_split_into_batches_is_the_same(case, seed, cuts):
    X, y = some(case.estimator, seed)
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 1.0], size=len(X))
    weights[-1] = 1.0
    assume(any(labels != [] for labels, weight in zip(y, weights, strict=True) if weight))
    whole = case.learner().fit(X, y, weights)
    pieces, events = case.learner(), case.learner()
    for start, stop in pairwise(sorted({0, *cuts, len(X)})):
        pieces.partial_fit(X[start:stop], y[start:stop], sample_weight=weights[start:stop])
    assert_same(whole, pieces, X)
    unweighted = case.learner().partial_fit(X, y)
    for x, labels in zip(X, y, strict=True):
        events.learn_one(x, labels)
    assert_same(unweighted, events, X)


@pytest.mark.parametrize("estimator", OF_TABLES)
@settings(max_examples=20)
@given(seed=st.integers(0, 999), cuts=st.lists(st.integers(0, 30), max_size=4))
def test_1_tables_are_the_same_in_any_split(estimator, seed, cuts):
    X, y = some(estimator, seed)
    table = table_of(estimator, y, 8)  # two columns more than there are labels
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 1.0], size=len(X))
    whole = OF_TABLES[estimator]().partial_fit(X, table, sample_weight=weights)
    pieces = OF_TABLES[estimator]()
    for start, stop in pairwise(sorted({0, *cuts, len(X)})):
        pieces.partial_fit(X[start:stop], table[start:stop], sample_weight=weights[start:stop])
    assert_same(whole, pieces, X)
    assert whole.classes_.tolist() == list(range(8)) and whole.predict(X).shape == (30, 8)


@every_case(FEW)
def test_2_declared_labels_only_add_capacity(case):
    X, y = some(case.estimator, 2)
    plain, declared = case.learner().partial_fit(X, y), case.learner()
    declared.partial_fit(X, y, classes=range(100))
    if case.estimator == "ranks":
        assert_same_but_declared(plain, declared, X)
    else:
        assert_same(plain, declared, X)


@every_case([case for case in FEW if case.estimator != "ranks"])
def test_2_no_label_is_scored_before_its_first_row(case):
    X, y = some(case.estimator, 3)
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


@every_case([c for c in FEW if c.row.family != "grouped" and c.estimator != "ranks"])
def test_3_renaming_changes_names_only(case):
    X, y = some(case.estimator, 4)
    plain = case.learner().fit(X, y)
    for names in (["f", "c", "a", "e", "b", "d"], [(9 - i, "x") for i in range(6)]):
        model = case.learner().fit(X, [[names[label] for label in row] for row in y])
        assert model.classes_.tolist() == sorted(names)
        order = [model.classes_.tolist().index(name) for name in names]
        scores = model.decision_function(X)[:, order]
        np.testing.assert_array_equal(scores, plain.decision_function(X))
        named = [names[label] for label in plain.predict_one(X[0])]
        assert model.predict_one(X[0]) == type(plain.predict_one(X[0]))(named)


@pytest.mark.parametrize("estimator", OF_TABLES)
def test_3_a_table_equals_lists(estimator):
    X, y = some(estimator, 5)
    y[0] = [3, 1, 0, 2, 5, 4][: 6 if estimator == "rankings" else 3]
    table, names = table_of(estimator, y, 6), [*"abcdef"]
    plain = OF_TABLES[estimator]().partial_fit(X, table)
    forms = {
        "integers": (table.astype(int), None),
        "sparse": (sparse.csr_array(table), None),
        "sparse matrix": (sparse.coo_matrix(table), None),
        "named": (table, names),
        "frame": (pd.DataFrame(table, columns=names), None),
    }
    if estimator == "rankings":
        forms["NaN"] = (np.where(table == 0, np.nan, table), None)
        forms["other ranks"] = (table * 2.5, None)
    for name, (form, classes) in forms.items():
        model = OF_TABLES[estimator]().partial_fit(X, form, classes=classes)
        scores = model.decision_function(X), plain.decision_function(X)
        np.testing.assert_array_equal(*scores, err_msg=name)
        wanted = names if name in ("named", "frame") else list(range(6))
        assert model.classes_.tolist() == wanted, name
    lists = OF_TABLES[estimator]().fit(X, y)
    assert lists.classes_.tolist() == list(range(6))


def test_3_columns_may_come_in_any_order():
    X, y = some("sets", 6)
    table = table_of("sets", y, 6)
    model = OnlineMultilabelClassifier().partial_fit(X, table, classes=[*"fedcba"])
    back = model.predict(X)[:, ::-1]
    plain = OnlineMultilabelClassifier().partial_fit(X, table)
    np.testing.assert_array_equal(back, plain.predict(X))
    other = copy.deepcopy(model).partial_fit(X, table[:, ::-1], classes=[*"abcdef"])
    assert_same(model.partial_fit(X, table, classes=[*"fedcba"]), other, X)


@every_case(few([case for case in CASES if not case.row.dense_only]))
def test_4_dense_sparse_and_named_rows_are_the_same(case):
    X, y = some(case.estimator, 7)
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


@every_case(FEW)
def test_5_save_load_go_on_is_never_stopped(case, tmp_path):
    X, y = some(case.estimator, 8)
    y[0] = [0] if y[0] == [] else y[0]
    never_stopped = case.learner().partial_fit(X, y)
    model = case.learner().partial_fit(X[:11], y[:11])
    model.save(tmp_path / "model", source="here")
    loaded = load(tmp_path / "model", custom=CUSTOM)
    assert type(loaded) is type(model) and loaded.notes_ == {"source": "here"}
    assert loaded.get_params()["intercept"] == model.intercept
    for other in (loaded, pickle.loads(pickle.dumps(model)), copy.deepcopy(model), model):
        assert_same(never_stopped, other.partial_fit(X[11:], y[11:]), X)


def assert_trials_follow(model: Any, X: Any, y: Answers) -> None:
    """What predicts and the trial that comes next score alike, features never seen included."""
    expected = model._scores(X[:1])
    found = model._run_trials(X[:1], y[:1], keep_scores=True).scores
    np.testing.assert_array_equal(found[:, : expected.shape[1]], expected)


@every_case(FEW)
def test_6_predicting_changes_nothing(case):
    X, y = some(case.estimator, 9)
    model = case.learner().fit(X, y)
    before = everything(model), {k: v.tobytes() for k, v in model._learner.arrays().items()}
    model.predict(X), model.decision_function(X), model.predict_one(X[0]), model.target_levels(y)
    if not case.row.dense_only:
        rows = [{"a": 1.0, "never seen": 2.0}]
        named = case.learner().fit([{"a": 1.0, "b": 2.0}] * 9, y[:9])
        inside = everything(named)
        named.predict(rows), named.predict_one(rows[0])
        assert everything(named) == inside
        assert_trials_follow(named, [row | {"a": 2.0} for row in rows], y[:1])
    assert_trials_follow(copy.deepcopy(model), X[:3], y[:3])
    assert (
        everything(model),
        {k: v.tobytes() for k, v in model._learner.arrays().items()},
    ) == before


# ---- 7. the compiled trial equals the oracle ----------------------------------------------------


def settings_of_oracle(estimator: str, y: Answers) -> tuple[list[dict[int, int]], int]:
    """Return the levels of classes by number: the threshold is 0, so that labels begin at 1."""
    if estimator == "sets":
        return [{0: 1, **{label + 1: 0 for label in row}} for row in y], 2
    return [{label: place for place, label in enumerate(row)} for row in y], -1


def oracle_parts(case: Case) -> list[dict[str, Any]]:
    """Return the parts in the oracle's words; its groups go by number, with the threshold first."""
    shift = 1 if case.estimator == "sets" else 0
    groups = [[label + shift for label in labels] for labels in SETS.values()]
    return [part | {"groups": groups} for part in case.row.oracle()]


def our_weights(model: Any, kinds: Any) -> list[Any]:
    """Return the weights of each part, (hypotheses, features), groups in the order of `SETS`."""
    learner, found = model._learner, []
    for i, (kind, _) in enumerate(kinds):
        weights = learner.arrays()[f"weights.values.{i}"].T
        if kind == "grouped":
            nobody, columns = np.zeros(weights.shape[1]), learner.groups[i]
            weights = np.array([weights[columns[s]] if s in columns else nobody for s in SETS])
        found.append(weights)
    return found


def compare(case: Case, X: Any, y: Answers, C: float, weights: Any) -> None:
    settings, rest = settings_of_oracle(case.estimator, y)
    seen = case.row.seen(X, weights)
    wide = np.hstack([np.ones((len(X), 1)), seen])
    arguments = (oracle_parts(case), case.row.rule, C)
    run = reference_answers.reference_answers_run(wide, settings, rest, *arguments, weights)
    stop = run["doubtful"]
    assume(stop >= 6 and any(y[:stop]))
    weights = None if weights is None else weights[:stop]
    run = reference_answers.reference_answers_run(
        wide[:stop], settings[:stop], rest, *arguments, weights
    )
    model = case.learner(C)
    result = progressive_validate(model, X[:stop], y[:stop], weights)
    assert result.n_mistakes == run["mistakes"]
    ours = our_weights(model, FAMILIES[case.row.family].kinds)
    ends = np.cumsum([part.size for part in run["W"]])[:-1]
    close = reference_answers.CLOSE * (10 if case.row.rule == "mira" else 1)
    for mine, theirs, moved in zip(ours, run["W"], np.split(run["moved"], ends), strict=True):
        near = close * (moved.reshape(theirs.shape) + run["moved"].max(initial=0))
        assert (abs(mine - theirs) <= near + 1e-6).all()


WITH_ORACLE = [
    case for case in CASES if case.estimator != "ranks" and case.row.preconditioner == "auto"
]


@every_case(few(WITH_ORACLE))  # every rule with every family is in the grid
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
    compare(case, X, answers_of(case.estimator, seed, len(X), k), C, weights)


# ---- 9. a second learner compiles nothing -------------------------------------------------------


@every_case([case for case in FEW if case.row.rule in ("simproj", "mira")])
def test_9_a_second_learner_compiles_nothing(case):
    from numba.core import event

    X, y = some(case.estimator, 10)
    case.learner().fit(X, y).predict(X)
    X, y = some(case.estimator, 11, n_rows=50, k=9)
    with event.install_recorder("numba:compile") as compiled:
        case.learner().fit(X.astype(np.float32), y).predict(X)
        progressive_validate(case.learner(), X, y)
    assert len(compiled.buffer) == 0


# ---- 10. scikit-learn's conventions -------------------------------------------------------------


@pytest.mark.parametrize("estimator", OF_TABLES)
def test_10_a_estimator_is_an_estimator(estimator):
    X, y = some(estimator, 12, n_rows=60)
    table = table_of(estimator, y, 6)
    model = OF_TABLES[estimator]("multi", update="pa1")
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
        model.predict(X),
        MultiLabelBinarizer(classes=range(6)).fit_transform(model.predict_label_sets(X)),
    )
    assert model.score(X, table) == (model.predict(X) == table).all(axis=1).mean()


OF_ANY_ESTIMATOR = [
    *("complex_data", "do_not_raise_errors_in_init_or_set_params", "estimator_cloneable"),
    *("estimator_repr", "estimator_tags_renamed", "estimators_empty_data_messages"),
    *("estimators_unfitted", "fit1d", "get_params_invariance", "mixin_order", "set_params"),
    *("no_attributes_set_in_init", "parameters_default_constructible", "valid_tag_types"),
]
# Others expect that the labels of a probability above 1/2 are predicted, or single classes.
OF_MULTILABEL = [
    *("classifiers_multilabel_output_format_decision_function", "estimators_fit_returns_self"),
    *("classifiers_multilabel_output_format_predict", "estimator_sparse_tag"),
    *("classifiers_multilabel_output_format_predict_proba",),
    *("dict_unchanged", "dont_overwrite_parameters", "dtype_object"),
    *("estimators_overwrite_params", "estimators_pickle", "fit2d_1sample"),
    *("f_contiguous_array_estimator", "fit2d_predict1d", "fit_check_is_fitted", "fit_idempotent"),
    *("all_zero_sample_weights_error", "methods_sample_order_invariance", "n_features_in"),
    *("methods_subset_invariance", "pipeline_consistency", "readonly_memmap_input"),
    *("requires_y_none", "sample_weights_list", "supervised_y_no_nan"),
]


@pytest.mark.parametrize(
    ("estimator", "wanted"),
    [("sets", OF_ANY_ESTIMATOR + OF_MULTILABEL), ("rankings", OF_ANY_ESTIMATOR)],
)
def test_10_scikit_learn_s_checks_pass_where_they_have_such_targets(estimator, wanted):
    """Most others hand out one label a row, which is neither a label set nor a ranking."""
    results = check_estimator(OF_TABLES[estimator](), on_fail=None, on_skip=None)
    failed = {result["check_name"] for result in results if result["status"] == "failed"}
    passed = {result["check_name"] for result in results} - failed
    assert {f"check_{name}" for name in wanted} <= passed
