"""What label sets and rankings demand, worked out by hand, and which answers are refused."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import kendalltau

from cases import ESTIMATORS, OF_TABLES
from kesler import (
    KeslerError,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    metrics,
    progressive_validate,
)
from kesler.learner.classes import ClassTable
from kesler.online.label_sets import require_contrast, targets_of_sets
from streams import everything


def test_an_empty_set_demands_the_threshold_over_all():
    model = OnlineMultilabelClassifier(update="simproj").fit(
        [[1.0], [1.0]], np.array([[1, 1], [0, 0]])
    )
    # The first row only adds the labels. In the second, 0 is over both: C = 1 holds, ||d||^2 = 4.
    assert model.decision_function([[1.0]]).tolist() == [[-0.75, -0.75]]
    assert model.predict_one([1.0]) == set() and model.n_mistakes_ == 0
    model.learn_one([1.0], [0, 1])
    assert model.n_mistakes_ == 1


def test_a_set_of_all_labels_demands_all_over_the_threshold():
    model = OnlineMultilabelClassifier().partial_fit([[1.0]] * 20, [["a", "b"]] * 20)
    assert model.predict_label_sets([[1.0]]) == [{"a", "b"}]


def test_a_row_without_features_has_a_threshold_too():
    model = OnlineMultilabelClassifier().fit([[0.0]] * 9, np.array([[1, 0]] * 9))
    assert model.predict([[0.0]]).tolist() == [[1, 0]]
    without = OnlineMultilabelClassifier(intercept=0, decision="score")
    assert without.fit([[0.0]] * 9, np.array([[1, 0]] * 9)).predict([[0.0]]).tolist() == [[0, 0]]


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
    "a sparse vector": (
        "sets",
        sparse.coo_array([3.0]),
        "row 0 of y is .*3.0.*not a set of labels",
    ),
    "a label twice": ("sets", [["a", "b", "a"]], "row 0 of y names the label 'a' twice"),
    "no indicator": ("sets", np.array([[1, 2]]), "2.0 in row 0, column 1.*indicator"),
    "NaN": ("sets", np.array([[1, np.nan]]), "nan in row 0, column 1.*indicator"),
    "table of text": ("sets", np.array([["a", "b"]]), "must hold numbers"),
    "two rows": ("sets", [["a"], ["b"]], "inconsistent numbers of samples"),
    "labels of two types": ("sets", [["a", 1]], "cannot be ordered"),
    "a list in a set": ("sets", [["a", ["b"]]], "not hashable"),
    "no label": ("sets", [["a", None]], "is no class"),
    "nothing": ("sets", None, "y is None"),
    "no name at all": ("sets", [[]], "no target names a label"),
    "twice ranked": ("rankings", [["a", "b", "a"]], "row 0 of y names the label 'a' twice"),
    "a set for a ranking": ("rankings", [{"a", "b"}], "in order, best first"),
    "text for a ranking": ("rankings", ["ab"], "not a list of labels"),
    "a sparse vector of ranks": ("rankings", sparse.coo_array([1.0]), "not a list of labels"),
    "negative rank": ("rankings", np.array([[1, -2]]), "rank -2.0 in row 0, column 1"),
    "infinite rank": ("rankings", np.array([[1, np.inf]]), "rank inf in row 0, column 1"),
    "no ranking": ("rankings", None, "y is None"),
}


@pytest.mark.parametrize(("estimator", "y", "sentence"), REFUSED.values(), ids=REFUSED)
def test_a_refused_answer_is_a_sentence_and_leaves_no_trace(estimator, y, sentence):
    model = ESTIMATORS[estimator]()
    before = everything(model)
    with pytest.raises(KeslerError, match=sentence) as caught:
        model.fit([[1.0, 2.0]], y)
    assert len(str(caught.value).split()) > 5
    assert everything(model) == before


@pytest.mark.parametrize("estimator", OF_TABLES)
@pytest.mark.parametrize(
    ("columns", "classes", "sentence"),
    [
        (3, None, "stand for 0, 1, 2, but none for the label 3, which"),
        (4, ["a", "b", "c", "d"], "stand for 'a', 'b', 'c' and 1 more, but none for the label 0,"),
        (4, [0, 1, 2], "4 columns, but classes= names 3"),
        (4, [0, 1, 2, 2], "names a label twice"),
    ],
)
def test_columns_that_do_not_stand_for_the_labels_known_are_refused(
    estimator, columns, classes, sentence
):
    model = ESTIMATORS[estimator]().fit(np.eye(4), np.eye(4))
    before = everything(model)
    with pytest.raises(KeslerError, match=sentence):
        model.partial_fit(np.eye(4), np.ones((4, columns)), classes=classes)
    assert everything(model) == before
    assert model.partial_fit(np.eye(4), np.ones((4, 5))).classes_.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("intercept", ["1", None, float("nan"), float("inf")])
def test_an_intercept_is_a_number(intercept):
    with pytest.raises(KeslerError, match="intercept="):
        OnlineMultilabelClassifier(intercept=intercept).fit([[1.0]], [["a"]])


def test_the_command_line_refuses_other_estimators(tmp_path, capsys):
    from kesler.cli import main

    path = tmp_path / "model"
    OnlineLabelRanker("multi").fit([[1.0]], [["a", "b"]]).save(path)
    rows = tmp_path / "rows.csv"
    rows.write_text("x\n1\n")
    assert main(["predict", str(path), str(rows)]) != 0
    assert "OnlineLabelRanker" in capsys.readouterr().err


def test_sets_and_tables_are_scored_alike():
    X = np.eye(4)[[0, 1, 2, 3] * 5]
    sets = [["a"], ["a", "b"], [], ["c"]] * 5
    model = OnlineMultilabelClassifier().fit(X, sets)
    table = np.array([[label in row for label in "abc"] for row in sets])
    right = (model.predict(X) == table).all(axis=1).mean()
    assert model.score(X, sets) == model.score(X, table) == right
    assert model.score(X[:2], [["a"], ["never seen"]]) <= 0.5


@pytest.mark.parametrize("estimator", [OnlineMultilabelClassifier, OnlineLabelRanker])
def test_a_row_of_a_table_is_no_list_of_labels(estimator):
    with pytest.raises(KeslerError, match="may be labels or a row of a table"):
        estimator().learn_one([1.0, 2.0], np.array([0, 1]))


@pytest.mark.parametrize(
    ("y", "part"),
    [
        (np.ones((4, 3)), "names all 3 labels"),
        ([["a", "b"]] * 4, "names all 2 labels"),
        (np.zeros((4, 3)), "no row of y names any of the 3 labels"),
        ([[]] * 4, "no target names a label"),
    ],
)
def test_label_sets_that_all_name_everything_or_nothing_are_refused(y, part):
    with pytest.raises(KeslerError, match=part):
        OnlineMultilabelClassifier().fit(np.eye(4), y)
    some = OnlineMultilabelClassifier().fit(np.eye(4), [["a", "b"], [], ["a"], ["b"]])
    assert some.n_trials_ == 4  # in single rows they are what they are


@pytest.mark.parametrize("shape", [(n, k) for n in (1, 2, 3) for k in (1, 2, 3)], ids=str)
def test_a_table_has_relevant_and_irrelevant_labels_unless_it_has_one_row(shape):
    """One label alone may be in every row."""
    n_rows, n_labels = shape
    for cells in product([0, 1], repeat=n_rows * n_labels):
        table = np.array(cells).reshape(shape)
        is_whole, is_empty = table.all() and n_labels > 1, not table.any()
        targets = targets_of_sets(table, None, ClassTable())
        if n_rows > 1 and (is_whole or is_empty):
            with pytest.raises(KeslerError, match="names all" if is_whole else "names any"):
                require_contrast(targets)
        else:
            require_contrast(targets)


@pytest.mark.parametrize(
    ("estimator", "wrong"),
    [*(("sets", x) for x in (2.0, -1.0, 0.5)), *(("rankings", x) for x in (-1.0, np.inf, -np.inf))],
)
def test_the_first_wrong_cell_of_a_table_is_named(estimator, wrong):
    for row, column in np.ndindex(3, 2):
        table = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
        table[row, column] = table[2, 1] = wrong
        with pytest.raises(KeslerError, match=rf"\D{wrong} in row {row}, column {column}:"):
            ESTIMATORS[estimator]().fit(np.eye(3), table)


def test_a_sparse_table_of_targets_is_not_changed():
    y = sparse.csr_array(([1.0, 0.0, 1.0], [0, 1, 1], [0, 2, 3]), shape=(2, 2))
    OnlineMultilabelClassifier().fit(np.eye(2), y)
    assert y.data.tolist() == [1.0, 0.0, 1.0] and y.indices.tolist() == [0, 1, 1]


def test_the_columns_of_a_matrix_of_ranks_without_names_are_the_classes_in_order():
    """Also where labels were seen in another order, and are no numbers of columns."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 4))
    scores = X @ rng.normal(size=(4, 3))
    ranks = (-scores).argsort(axis=1).argsort(axis=1) + 1  # of "c", "a" and "b"
    model = OnlineLabelRanker().partial_fit(X, ranks, classes=["c", "a", "b"])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.classes_by_code_.tolist() != ["a", "b", "c"]
    assert model.score(X, model.predict(X)) == 1.0
    in_order = ranks[:, [1, 2, 0]]
    by_hand = np.mean([kendalltau(one, other).statistic
                       for one, other in zip(model.predict(X), in_order, strict=True)])  # fmt: skip
    assert model.score(X, in_order) == pytest.approx(by_hand)
    assert model.score(X, ranks) < by_hand
    assert model.score(X, pd.DataFrame(ranks, columns=["c", "a", "b"])) == pytest.approx(by_hand)
