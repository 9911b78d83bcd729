"""`fit` of all rows: their order, several passes and weights of classes, against loops by hand."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score
from sklearn.utils import get_tags
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.estimator_checks import check_estimator

from kesler import (
    BanditClassifier,
    CostSensitiveClassifier,
    Ensemble,
    KeslerError,
    LinearMax,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
    Ratings,
)
from kesler.forests import ExtraTrees
from kesler.hypotheses import PerClass, Shared
from kesler.kernels import KERNELS
from kesler.links import LINKS
from kesler.maps import MAPS, SubExperts
from kesler.preconditioners import PRECONDITIONERS
from kesler.preprocessing import PREPROCESSINGS
from kesler.updates import RULES
from kesler.updates.bandit import FEEDBACK_RULES
from streams import assert_same_bits, make_stream

STREAM = make_stream(3, n_rows=150, n_classes=4)
X, Y = STREAM.X, STREAM.y
NAMES = [{f"x{j}": float(v) for j, v in enumerate(row) if v} for row in X]
TEXTS = [" ".join(f"w{j}" for j in np.flatnonzero(row > 0)) + " end" for row in X]


def held(model: Any) -> dict[str, np.ndarray]:
    return model._learner.arrays()


def once(model: Any, rows: Any, y: Any, **given: Any) -> Any:
    """Learn rows in their order as a set, by the streaming interface."""
    with model._rows_as_set():
        return model.partial_fit(rows, y, **given)


# ---- order ---------------------------------------------------------------------------------------

ROWS: dict[str, tuple[Any, Any]] = {
    "array": (X, lambda order: X[order]),
    "sparse": (sparse.csr_array(X), lambda order: sparse.csr_array(X)[order]),
    "table": (
        pd.DataFrame(X).add_prefix("c"),
        lambda order: pd.DataFrame(X[order]).add_prefix("c"),
    ),
}
"""Rows, and how they are taken in an order."""


@pytest.mark.parametrize("settings", [{}, {"update": "pa1", "shuffle": True}], ids=str)
@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("seed", [0, 5])
def test_rows_are_learnt_in_the_order_of_the_seed(settings, kind, seed):
    rows, taken = ROWS[kind]
    model = OnlineClassifier(**settings, random_state=seed, epochs=1).fit(rows, Y)
    order = default_rng(seed).permutation(len(Y))
    assert_same_bits(model, once(OnlineClassifier(**settings), taken(order), Y[order]))


@pytest.mark.parametrize("rows", [NAMES, TEXTS], ids=["names", "texts"])
def test_names_are_numbered_in_the_order_given_and_rows_shuffled(rows):
    model = OnlineClassifier().fit(rows, Y)
    order = default_rng(0).permutation(len(Y))
    other = OnlineClassifier(shuffle=False).fit([rows[i] for i in order], Y[order])
    np.testing.assert_allclose(
        model.predict_proba(rows[:40]), other.predict_proba(rows[:40]), atol=1e-6
    )
    given = OnlineClassifier(shuffle=False).fit(rows, Y)
    assert [*model.vocabulary_.indices] == [*given.vocabulary_.indices]


@pytest.mark.parametrize("settings", [{}, {"shuffle": False}, {"epochs": 1}], ids=str)
def test_measurements_by_name_are_learnt_as_an_array(settings):
    """There are more rows than those that say whether numbers are measurements."""
    rows = [{f"x{j}": float(v) for j, v in enumerate(row)} for row in X]
    made, other = OnlineClassifier(**settings).fit(rows, Y), OnlineClassifier(**settings).fit(X, Y)
    np.testing.assert_array_equal(made.predict_proba(rows), other.predict_proba(X))


@pytest.mark.parametrize(
    ("attributes", "parts"), [(None, []), (X, [PerClass()])], ids=["alone", "attributes"]
)
def test_ratings_are_shuffled_with_their_rows(attributes, parts):
    values, order = default_rng(1).normal(size=(150, 4, 3)), default_rng(0).permutation(150)
    ratings = Ratings.from_dense(values, labels=range(4), attributes=attributes)
    model = OnlineClassifier([Shared(SubExperts()), *parts])
    other = once(clone(model), ratings[order], Y[order])
    assert_same_bits(model.set_params(shuffle=True).fit(ratings, Y), other)


@pytest.mark.parametrize(
    "settings",
    [{"shuffle": False}, {"update": "pa1"}, {"update": "softmax"}, {"half_life": 50}],
    ids=str,
)
def test_named_rules_and_streams_keep_the_order(settings):
    assert_same_bits(
        OnlineClassifier(**settings, epochs=1).fit(X, Y), once(OnlineClassifier(**settings), X, Y)
    )


def test_rows_behind_each_other_and_a_limit_on_memory_keep_the_order():
    limited = OnlineClassifier(memory_limit="50 MB")
    assert_same_bits(clone(limited).fit(TEXTS, Y), limited.partial_fit(TEXTS, Y))
    with pytest.raises(KeslerError, match="shuffle=True reads all rows"):
        OnlineClassifier(memory_limit="50 MB", shuffle=True).fit(TEXTS, Y)


@pytest.mark.parametrize("start", [0, 1, 7])
def test_rows_of_weight_0_are_as_if_they_were_not_there(start):
    weights = default_rng(start).integers(0, 3, len(Y)).astype(float)
    kept = weights > 0
    model = OnlineClassifier().fit(X, Y, sample_weight=weights)
    assert_same_bits(model, OnlineClassifier().fit(X[kept], Y[kept], sample_weight=weights[kept]))


def test_an_error_names_the_row_in_the_order_given_and_changes_nothing():
    model = OnlineClassifier().fit(X, Y)
    before = copy.deepcopy(held(model))
    rows = [dict(each) for each in NAMES]
    rows[3]["x0"] = float("inf")
    with pytest.raises(KeslerError, match="row 3"):
        model.fit(rows, Y)
    for name, array in held(model).items():
        np.testing.assert_array_equal(array, before[name])


def test_sorted_rows_give_no_warning_and_no_worse_model():
    order = np.argsort(Y, kind="stable")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = OnlineClassifier().fit(X[order], Y[order])
    assert model.score(X, Y) > OnlineClassifier().fit(X, Y).score(X, Y) - 0.05


@pytest.mark.parametrize("entries", [1, 40])
def test_many_rows_are_learnt_in_blocks(entries, monkeypatch):
    """A block has a row at least, however many entries that has."""
    from kesler.online import passes

    whole = OnlineClassifier().fit(X, Y)
    monkeypatch.setattr(passes, "BLOCK_ENTRIES", entries)
    assert_same_bits(OnlineClassifier().fit(X, Y), whole)


@pytest.mark.parametrize("n_blocks", [2, 3])
@pytest.mark.parametrize("rows", [X, [{"text": t} for t in TEXTS]], ids=["array", "table"])
def test_rows_that_are_read_in_blocks_are_shuffled_together(rows, n_blocks, monkeypatch):
    whole, n = OnlineClassifier().fit(rows, Y), len(Y) // n_blocks
    monkeypatch.setattr("kesler.data.inputs.BLOCK_ENTRIES", n * X.shape[1])
    monkeypatch.setattr("kesler.online.training.BLOCK_ROWS", n)
    assert_same_bits(OnlineClassifier().fit(rows, Y), whole)


SORTED = [
    ("a" * 20 + "b" * 20, True),
    ("b" * 20 + "a" * 20, True),
    ("a" * 39 + "b", True),
    ("a" * 20 + "b" * 19, False),  # fewer than 20 rows of a class
    ("a" * 30 + "b" * 29 + "a", False),
    ("a" * 60, False),
]


@pytest.mark.parametrize(("labels", "warns"), SORTED, ids=[labels for labels, _ in SORTED])
def test_rows_in_one_run_of_each_class_are_warned_of_from_20_rows_of_a_class_on(labels, warns):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        OnlineClassifier(update="pa1").fit(X[: len(labels)], [*labels])
    assert ["sorted by class" in str(each.message) for each in caught] == [True] * warns


# ---- passes --------------------------------------------------------------------------------------


STEPS_OF_THE_FIRST = {
    "0.weights.values.0",
    "0.preconditioner.evidence.0",
    "0.preconditioner.rates",
    "2.weights.values.0",
    "2.preconditioner.evidence.0",
    "2.preconditioner.rates",
}
"""What steps along gradients change: the weights of two members, and the sizes of their steps."""


def test_further_passes_move_only_the_weights_of_members_with_gradients():
    first, model = (OnlineClassifier(epochs=n).fit(X, Y) for n in (1, 4))
    before, after = held(first), held(model)
    changed = {name for name in after if not np.array_equal(before[name], after[name])}
    assert changed == STEPS_OF_THE_FIRST
    assert model.n_trials_ == first.n_trials_ == len(Y)
    assert model.n_mistakes_ == first.n_mistakes_


def test_members_of_any_kind_learn_again():
    kinds = [
        OnlineClassifier("multi", update="pa1"),
        OnlineClassifier("hybrid", update="arow", averaged=True),
        OnlineClassifier(update="pa1", kernel="rbf"),
        OnlineClassifier("multi", update="softmax", preprocessing="z-scores", replay=1),
        LinearMax(),
    ]
    first, model = (Ensemble(kinds, epochs=n).fit(np.abs(X), Y) for n in (1, 3))
    assert model.n_trials_ == first.n_trials_ == len(Y)
    for one, other in zip(first._learner.members, model._learner.members, strict=True):
        assert one.n_trials == other.n_trials == len(Y)
        has_moved = (
            any(
                not np.array_equal(one.arrays()[name], other.arrays()[name])
                for name in one.arrays()
                if "weights" in name or "coefficients" in name or name not in other.arrays()
            )
            or one.arrays().keys() != other.arrays().keys()
        )
        assert has_moved == one.gains_from_repetition  # a kernel would store the rows again
    del kinds[2]
    first, model = (Ensemble(kinds, epochs=n).fit(np.abs(X), Y) for n in (1, 3))
    assert model.score(np.abs(X), Y) >= first.score(np.abs(X), Y)


def test_ranks_learn_again():
    labels = [f"{'ab'[label % 2]};{label}" for label in Y.tolist()]
    first, model = (OnlineClassifier(ranks=";", epochs=n).fit(X, labels) for n in (1, 3))
    one, other = (each._learner.ranks.learners[0] for each in (first, model))
    assert one.n_trials == other.n_trials == len(Y)
    mine, others = one.arrays(), other.arrays()
    assert not np.array_equal(mine["0.weights.values.0"], others["0.weights.values.0"])


def test_each_pass_has_an_order_of_its_own():
    model = OnlineClassifier("multi", update="pa1", shuffle=True, epochs=3).fit(X, Y)
    draws, by_hand = default_rng(0), OnlineClassifier("multi", update="pa1")
    for _ in range(3):
        order = draws.permutation(len(Y))
        once(by_hand, X[order], Y[order])
    np.testing.assert_array_equal(
        held(model)["weights.values.0"], held(by_hand)["weights.values.0"]
    )
    assert model.n_trials_ == 3 * len(Y)


@pytest.mark.parametrize(
    ("settings", "rows", "n_passes"),
    [
        ({}, X, 10),
        ({}, TEXTS, 1),
        ({"shuffle": False}, X, 1),
        ({"update": "softmax"}, X, 1),
        ({"link": "exponential"}, X, 1),
        ({"epochs": 3}, X, 3),
        ({"epochs": 3}, TEXTS, 3),
    ],
    ids=str,
)
def test_the_number_of_passes(settings, rows, n_passes):
    model = OnlineClassifier(**settings).fit(rows, Y)
    assert model.resolved_.epochs == n_passes
    assert_same_bits(OnlineClassifier(**{**settings, "epochs": n_passes}).fit(rows, Y), model)


@pytest.mark.parametrize(
    ("n", "passes"), [(1, 10), (100_000, 10), (250_000, 4), (10**6, 2), (10**8, 2)]
)
def test_many_rows_have_fewer_passes(n, passes):
    from kesler.online.passes import Plan

    model = OnlineClassifier().fit(X, Y)
    assert Plan(shuffles=True, seed=0, epochs="auto").n_passes(model, n) == passes


def test_iris_in_folds_needs_no_shuffling():
    scores = cross_val_score(OnlineClassifier(), *load_iris(return_X_y=True), cv=5)
    assert scores.mean() > 0.95


# ---- weights of classes --------------------------------------------------------------------------

WEIGHTS = {0: 3.0, 2: 0.25}


@pytest.mark.parametrize("settings", [{}, {"update": "pa1"}, {"update": "softmax"}], ids=str)
def test_weights_of_classes_are_sample_weights(settings):
    of_rows = np.array([WEIGHTS.get(label, 1.0) for label in Y.tolist()])
    own = np.linspace(0.5, 2, len(Y))
    model = OnlineClassifier(**settings, class_weight=WEIGHTS)
    plain = OnlineClassifier(**settings)
    for weights in (None, own):
        product = of_rows if weights is None else of_rows * weights
        for method in ("fit", "partial_fit"):
            one = getattr(clone(model), method)(X, Y, sample_weight=weights)
            assert_same_bits(one, getattr(clone(plain), method)(X, Y, sample_weight=product))
    one, other = clone(model), clone(plain)
    for x, label, weight in zip(X[:40], Y[:40].tolist(), of_rows.tolist(), strict=False):
        before = other.predict_one(x) if other._learner else None
        assert one.learn_predict_one(x, label) == before
        other.learn_one(x, label, weight)
    assert_same_bits(one, other)


@pytest.mark.parametrize("settings", [{}, {"update": "pa1"}], ids=str)
def test_balanced_weights_are_those_of_scikit_learn(settings):
    classes = np.unique(Y)
    weights = compute_class_weight("balanced", classes=classes, y=Y)
    model = OnlineClassifier(**settings, class_weight="balanced").fit(X, Y)
    given = dict(zip(classes.tolist(), weights.tolist(), strict=True))
    assert_same_bits(model, OnlineClassifier(**settings, class_weight=given).fit(X, Y))
    for attempt in (lambda: model.partial_fit(X, Y), lambda: model.learn_one(X[0], 0)):
        with pytest.raises(KeslerError, match="which only `fit` knows"):
            attempt()


@pytest.mark.parametrize("weight", [1 << 20, 2.0**-20, np.float32(0.5)])
def test_weights_of_classes_have_the_range_of_those_of_rows(weight):
    model = OnlineClassifier(update="pa1", class_weight={0: weight}).partial_fit(X, Y)
    of_rows = np.where(Y == 0, float(weight), 1.0)
    assert_same_bits(model, OnlineClassifier(update="pa1").partial_fit(X, Y, None, of_rows))


def test_no_weight_of_any_class_is_none():
    model = OnlineClassifier(update="pa1", class_weight={}).fit(X, Y)
    assert_same_bits(model, OnlineClassifier(update="pa1").fit(X, Y))


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({0: 0.0}, "class_weight of 0 is 0.0"),
        ({0: -1}, "class_weight of 0 is -1"),
        ({0: float("nan")}, "class_weight of 0 is nan"),
        ({0: "2"}, "class_weight of 0 is '2'"),
        ({0: True}, "class_weight of 0 is True"),
        ({0: np.nextafter(2.0**20, np.inf)}, "class_weight of 0 is .*1/1,048,576 and 1,048,576"),
        ({0: np.nextafter(2.0**-20, 0)}, "class_weight of 0 is"),
        ({"0": 2.0}, "no row has such a label"),
        ("even", "class_weight='even' is unknown"),
        (3, "class_weight=3 is unknown"),
    ],
    ids=str,
)
def test_other_weights_are_refused(chosen, words):
    with pytest.raises(KeslerError, match=words):
        OnlineClassifier(class_weight=chosen).fit(X, Y)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"shuffle": "yes"}, "shuffle='yes' is unknown"),
        ({"shuffle": 1}, "shuffle=1 is unknown"),
        ({"random_state": -1}, "random_state=-1 must be an integer of 0 or more"),
        ({"random_state": None}, "random_state=None must be"),
        ({"random_state": True}, "random_state=True must be"),
        *(
            ({"epochs": n}, f"epochs={n!r} must be an integer of 1 or more")
            for n in (0, 1.5, True, None, "twice")
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("make", [OnlineClassifier, CostSensitiveClassifier])
def test_other_settings_are_refused(make, settings, words):
    y = Y if make is OnlineClassifier else [{0: 0.0, 1: 1.0}] * len(Y)
    with pytest.raises(KeslerError, match=words):
        make(**settings).fit(X, y)


# ---- scikit-learn --------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_what_scikit_learn_asks_of_estimators():
    results = check_estimator(OnlineClassifier(), on_fail=None, on_skip=None)
    failed = {each["check_name"] for each in results if each["status"] == "failed"}
    # An online learner takes a row of weight 2 in one step, and two rows in two.
    assert failed == {
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    }
    assert "check_class_weight_classifiers" in {each["check_name"] for each in results}


# ---- tables and texts that come again ------------------------------------------------------------


def in_table(n, *, of):
    """Return rows of a table with cells that do not fit, and their labels."""
    rng = default_rng(2)
    rows = [
        {
            "size": float(rng.normal()),
            "note": NOTES[rng.integers(3)],
            "colour": "red blue".split()[i % 2],
        }
        for i in range(n)
    ]
    kept = [{name: cell for name, cell in row.items() if name in of} for row in rows]
    if n > 55:
        kept[55]["size"] = "none at all"
    return kept, [int(row["size"] > 0) if type(row["size"]) is float else 0 for row in rows]


NOTES = ["cash now for all of you today", "lunch with the team at noon", "no cash and no lunch"]
TABLES = {
    "numbers": ("size",),
    "categories": ("size", "colour"),
    "texts": ("size", "note"),
}


@pytest.mark.filterwarnings("ignore::kesler.errors.MismatchWarning")
@pytest.mark.parametrize("n", [30, 90])
@pytest.mark.parametrize("of", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("update", ["auto", "softmax", "pa1"])
def test_further_passes_leave_what_is_known_of_a_table(update, of, n):
    rows, y = in_table(n, of=of)
    given = {
        "update": update,
        "shuffle": False,
        "columns": {"note": "text"} if "note" in of else {},
    }
    once_learnt, model = (OnlineClassifier(**given, epochs=k).fit(rows, y) for k in (1, 3))
    first, after = (each._input.columns.known for each in (once_learnt, model))
    assert after.to_json() == first.to_json()
    assert [column.n_cells for column in model.schema_] == [n] * len(of)
    before, found = held(once_learnt), held(model)
    assert any(
        not np.array_equal(before[name], found[name]) for name in before if "weights" in name
    )


def test_further_passes_leave_the_lengths_of_texts_and_the_first_dictionaries():
    texts = [f"a text of {i} and of other words" for i in range(20)]
    first, model = (OnlineClassifier(shuffle=False, epochs=k).fit(texts, Y[:20]) for k in (1, 3))
    assert model._input.texts == first._input.texts
    words = [{"cash": 1, f"w{i % 3}": 1} for i in range(20)]
    first, model = (OnlineClassifier(shuffle=False, epochs=k).fit(words, Y[:20]) for k in (1, 3))
    assert model._input.columns.known.to_json() == first._input.columns.known.to_json()


# ---- ranks, label sets and rankings --------------------------------------------------------------

SETS = [[label, 9] if i % 3 else [label] for i, label in enumerate(Y.tolist())]
RANKINGS = [
    [label, *(each for each in np.unique(Y).tolist() if each != label)] for label in Y.tolist()
]
OTHERS = {
    "ranks": (OnlineOrdinalClassifier, Y.tolist()),
    "sets": (OnlineMultilabelClassifier, SETS),
    "rankings": (OnlineLabelRanker, RANKINGS),
}


@pytest.mark.parametrize("settings", [{}, {"update": "pa1", "shuffle": True}], ids=str)
@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize(("make", "targets"), OTHERS.values(), ids=OTHERS)
def test_rows_of_other_targets_are_learnt_in_the_order_of_the_seed(make, targets, kind, settings):
    rows, taken = ROWS[kind]
    order = default_rng(3).permutation(len(Y))
    y = [targets[i] for i in order]
    model = make(**settings, random_state=3).fit(rows, targets)
    by_hand = make(**settings).partial_fit(taken(order), y)
    np.testing.assert_array_equal(model.decision_function(rows), by_hand.decision_function(rows))
    assert model.resolved_.shuffle is True
    kept = make(**settings | {"shuffle": False}).fit(rows, targets)
    assert_same_bits(kept, make(**settings).partial_fit(rows, targets))


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_weights_of_ranks_are_sample_weights(method):
    of_rows = [WEIGHTS.get(label, 1.0) for label in Y.tolist()]
    model = getattr(OnlineOrdinalClassifier(class_weight=WEIGHTS), method)(X, Y)
    assert_same_bits(model, getattr(OnlineOrdinalClassifier(), method)(X, Y, sample_weight=of_rows))


def test_weights_of_ranks_may_be_balanced_in_fit_alone():
    balanced = OnlineOrdinalClassifier(class_weight="balanced")
    classes = np.unique(Y)
    weights = compute_class_weight("balanced", classes=classes, y=Y)
    given = dict(zip(classes.tolist(), weights.tolist(), strict=True))
    assert_same_bits(balanced.fit(X, Y), OnlineOrdinalClassifier(class_weight=given).fit(X, Y))
    with pytest.raises(KeslerError, match="which only `fit` knows"):
        balanced.partial_fit(X, Y)


def learns(model: Any, rows: Any, y: Any) -> bool:
    try:
        clone(model).fit(rows, y)
    except KeslerError:
        return False
    return True


TAGGED: list[tuple[Any, bool, bool]] = [
    (OnlineClassifier(), True, True),
    (OnlineClassifier("multi", update="pa1"), True, False),
    (OnlineClassifier("multi", update="pa1", preprocessing="z-scores"), False, True),
    (OnlineClassifier("multi", update="pa1", preprocessing="counts"), True, False),
    (OnlineClassifier("multi", update="pa1", preprocessing="scale"), True, True),
    (OnlineClassifier("single", "gaussian-ratio", update="pa1"), False, False),
    (OnlineClassifier("single", "distance", update="pa1"), False, False),
    (OnlineClassifier("hybrid", update="pa1"), True, False),
    (OnlineClassifier("hybrid", update="pa1", kernel="rbf"), True, False),
    (OnlineClassifier("multi", update="pa1", kernel="rbf", preprocessing="ranges"), False, True),
    (OnlineClassifier(update=ExtraTrees(n_trees=2)), False, True),
    (OnlineClassifier(update="ensemble"), True, True),
    (OnlineClassifier(columns={}), False, True),
    (OnlineClassifier(update="pa1", columns={}), False, True),
    (Ensemble([OnlineClassifier("hybrid", update="pa1"), LinearMax("romma")]), True, False),
    (Ensemble([OnlineClassifier(update="softmax"), OnlineClassifier(update="pa1")]), True, False),
    (
        Ensemble([OnlineClassifier(update="pa1"), OnlineClassifier(update=ExtraTrees(n_trees=2))]),
        False,
        False,
    ),
    (CostSensitiveClassifier("hybrid", update="mira"), True, False),
    (OnlineOrdinalClassifier("hybrid", update="pa1"), True, False),
    (OnlineMultilabelClassifier("multi", update="pa1"), True, False),
    (OnlineLabelRanker("hybrid", update="pa1"), True, False),
]
"""Estimators, and whether they take sparse rows and missing values."""


@pytest.mark.parametrize(
    ("model", "takes_sparse", "takes_gaps"), TAGGED, ids=[repr(each) for each, *_ in TAGGED]
)
def test_tags_say_which_rows_are_learnt(model, takes_sparse, takes_gaps):
    """scikit-learn leaves out the checks of all that an estimator says it does not take."""
    with_gaps = X[:40].copy()
    with_gaps[::7, 0] = np.nan
    own = {OnlineMultilabelClassifier: SETS, OnlineLabelRanker: RANKINGS}
    y, tags = own.get(type(model), Y)[:40], get_tags(model)
    if type(model) is CostSensitiveClassifier:
        y = [{label: 0.0, -1: 1.0} for label in y.tolist()]
    assert learns(model, X[:40], y)
    assert learns(model, sparse.csr_array(X[:40]), y) is takes_sparse
    assert learns(model, with_gaps, y) is takes_gaps
    assert (tags.input_tags.sparse, tags.input_tags.allow_nan) == (takes_sparse, takes_gaps)
    assert tags.target_tags.required
    with pytest.raises(KeslerError, match="requires y to be passed"):
        clone(model).fit(X[:40], None)


REGISTRIES = {
    "update": RULES | FEEDBACK_RULES,
    "preconditioner": PRECONDITIONERS,
    "preprocessing": PREPROCESSINGS,
    "feature_map": MAPS,
    "kernel": KERNELS,
    "link": LINKS,
}
ANSWERS = {
    OnlineClassifier: Y,
    BanditClassifier: Y,
    LinearMax: Y,
    OnlineOrdinalClassifier: Y,
    OnlineMultilabelClassifier: SETS,
    OnlineLabelRanker: RANKINGS,
    CostSensitiveClassifier: [{label: 0.0, -1: 1.0} for label in Y.tolist()],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", REGISTRIES)
@pytest.mark.parametrize("make", ANSWERS)
def test_tags_of_every_part_say_whether_sparse_rows_are_learnt(make, part):
    updates = ["auto", "pa1", "softmax", *(FEEDBACK_RULES if make is BanditClassifier else ())]
    given: list[dict[str, Any]] = [
        {"update": update} | {part: name} for update in updates for name in REGISTRIES[part]
    ]
    y = ANSWERS[make][:8]
    for settings in given:
        own = settings.keys() & make().get_params(deep=False)
        model = make(**{name: settings[name] for name in own})
        if learns(model, X[:8], y):  # where nothing is learnt, errors say more than tags
            takes_sparse = learns(model, sparse.csr_array(X[:8]), y)
            assert get_tags(model).input_tags.sparse is takes_sparse, model


@pytest.mark.parametrize("make", [OnlineClassifier, BanditClassifier])
@pytest.mark.parametrize("preconditioner", PRECONDITIONERS)
def test_the_default_for_words_has_views_where_they_are_measured(make, preconditioner):
    model = make(preconditioner=preconditioner)
    is_refused = preconditioner == "second-order"
    assert learns(model, [{"cash": 1.0}, {"lunch": 1.0}], ["a", "b"]) is not is_refused
    if not is_refused:
        learner = model.fit([{"cash": 1.0}, {"lunch": 1.0}], ["a", "b"])._learner
        has_views = any(part.feature_map is not None for part in learner.parts)
        assert has_views is not preconditioner.startswith("scale-free")


@pytest.mark.parametrize(
    "settings", [{"update": "unknown"}, {"update": "pa1", "budget": 3}], ids=str
)
def test_settings_that_are_refused_have_tags(settings):
    """They are refused when rows are learnt, as scikit-learn wants it."""
    found = get_tags(OnlineClassifier(**settings)).input_tags
    assert (found.sparse, found.allow_nan) == (True, False)


def test_rows_sorted_by_rank_or_label_need_no_shuffling():
    rows, y = load_iris(return_X_y=True)
    ranks = OnlineOrdinalClassifier().fit(rows, y)
    assert np.abs(ranks.predict(rows) - y).mean() < 0.05
    sets = OnlineMultilabelClassifier().fit(rows, [[label] for label in y.tolist()])
    assert (sets.decision_function(rows).argmax(axis=1) == y).mean() > 0.9
