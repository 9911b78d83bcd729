"""Label sets with costs of pairs, a tree of labels and a label budget: the oracle, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kesler import KeslerError, OnlineMultilabelClassifier, load, progressive_validate
from kesler.hypotheses import Grouped
from kesler.trees import Tree
from reference_pairs import THRESHOLD, Nodes, reference_sets_run
from streams import assert_same, make_stream

LABELS = [*"abcdef"]
TREE = {"a": "vowel", "e": "vowel", "b": "hard", "c": "hard", "d": "hard", "f": "soft"}
ABOVE = {label: [label, node, ""] for label, node in TREE.items()}
rng = np.random.default_rng(0)
COSTS = {(r, s): float(rng.uniform(0.3, 3.0)) for r in LABELS for s in LABELS if r != s}


def stream(seed: int, n_rows: int = 50) -> tuple[Any, list[list[str]]]:
    """Rows, each with the labels of the largest of six directions."""
    X = make_stream(seed, n_rows, density=1.0).X
    own = np.random.default_rng(seed)
    above = X @ own.normal(size=(X.shape[1], len(LABELS))) + 0.3 * own.normal(size=(n_rows, 6))
    return X, [[LABELS[j] for j in np.flatnonzero(row > 1)] for row in above]


def compare(model: Any, X: Any, sets: Any, nodes: Nodes, cost: Any, rule: str, C: float) -> None:
    """Require the scores of the oracle after one pass."""
    model.partial_fit(X, sets)
    wide = np.hstack([np.ones((len(X), 1)), X])
    w = reference_sets_run(wide, sets, nodes, cost, rule, C)
    phi, labels = nodes.phi, model.classes_.tolist()
    expected = [[w @ (phi(x, r) - phi(x, THRESHOLD)) for r in labels] for x in wide]
    close = 1e-4 * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(model.decision_function(X), expected, atol=close)


# ---- costs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["simproj", "pa", "pa1"])
@settings(max_examples=6)
@given(seed=st.integers(0, 2**31), C=st.sampled_from([0.02, 0.2, 1.0]))
def test_costs_of_pairs_equal_the_oracle(rule, seed, C):
    X, sets = stream(seed)
    given = {"C": C} if rule != "pa" else {}
    model = OnlineMultilabelClassifier("multi", update=rule, costs=COSTS, **given)
    own = {label: [label] for label in [*LABELS, THRESHOLD]}
    nodes = Nodes(own, X.shape[1] + 1)
    compare(model, X, sets, nodes, lambda r, s: COSTS[r, s], rule, C if given else 1.0)


def test_costs_without_a_rule_choose_one_and_are_kept(tmp_path):
    X, sets = stream(1, 200)
    model = OnlineMultilabelClassifier(costs=COSTS).partial_fit(X[:90], sets[:90])
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.costs == COSTS
    rows = OnlineMultilabelClassifier(costs=COSTS)
    for x, y in zip(X, sets, strict=True):
        rows.learn_one(x, y)
    assert_same(loaded.partial_fit(X[90:], sets[90:]), rows, X)
    plain = OnlineMultilabelClassifier(costs={}).partial_fit(X, sets)
    assert (plain.decision_function(X) != rows.decision_function(X)).any()


@pytest.mark.parametrize("update", ["ovr-hinge", "logistic", "perceptron"])
def test_rules_that_ignore_costs_are_refused(update):
    X, sets = stream(1)
    with pytest.raises(KeslerError, match="ignores margins, so that costs would have no effect"):
        OnlineMultilabelClassifier(update=update, costs=COSTS).fit(X, sets)


# ---- trees --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rule", "costs"), [("simproj", {}), ("simproj", COSTS), ("pa1", COSTS)])
@settings(max_examples=6)
@given(seed=st.integers(0, 2**31), C=st.sampled_from([0.02, 0.2, 1.0]))
def test_labels_below_the_nodes_of_a_tree_equal_the_oracle(rule, costs, seed, C):
    X, sets = stream(seed)
    model = OnlineMultilabelClassifier("multi", update=rule, C=C, tree=TREE, costs=costs)
    nodes = Nodes({**ABOVE, THRESHOLD: []}, X.shape[1] + 1)
    compare(model, X, sets, nodes, lambda r, s: costs.get((r, s), 1.0), rule, C)


@pytest.mark.parametrize("rows", ["array", "names"])
def test_the_default_shares_vectors_in_any_split(rows, tmp_path):
    X, sets = stream(2, 90)
    if rows == "names":
        X = [{f"w{j}": abs(v) for j, v in enumerate(row) if v > 0} for row in X.tolist()]
    made = lambda: OnlineMultilabelClassifier(tree=TREE, columns=None)  # noqa: E731
    whole, pieces, events = made().partial_fit(X, sets), made(), made()
    for part in (slice(0, 20), slice(20, 90)):
        pieces.partial_fit(X[part], sets[part]).save(tmp_path / "model")
        pieces = load(tmp_path / "model")
    for i, y in enumerate(sets):
        events.learn_one(X[i], y)
    assert Grouped(Tree(TREE)) in whole._learner.parts
    assert_same(whole, pieces, X)
    assert_same(whole, events, X)


def test_a_label_that_is_new_is_placed_in_the_tree():
    X, sets = stream(2, 90)
    model = OnlineMultilabelClassifier("multi", update="simproj", tree=TREE).fit(X, sets)
    x = X[0]
    near = model.hang("o", "vowel").learn_one(x, ["o"]).decision_function(X)[:, -1]
    assert model.classes_.tolist()[-1] == "o"
    of_vowels = model.decision_function(X)[:, [0, 4]].mean(axis=1)
    assert np.corrcoef(near, of_vowels)[0, 1] > 0.3


# ---- the label budget ---------------------------------------------------------------------------


def doubt(probabilities: Any) -> float:
    """1 minus the lead of the label that is most in doubt; see `kesler.queries`."""
    return float(1 - np.abs(2 * np.asarray(probabilities) - 1).min())


def test_sets_are_asked_for_within_the_budget_and_where_the_doubt_is_largest(tmp_path):
    X, sets = stream(3, 600)
    model, asked, doubts = OnlineMultilabelClassifier(label_budget=0.25), [], []
    for t, (x, y) in enumerate(zip(X, sets, strict=True)):
        if t == 300:
            model.save(tmp_path / "model")
            model = load(tmp_path / "model")
        if model.n_known_:
            doubts.append(doubt([*model.predict_proba_one(x).values()]))
        asked.append(model.query_one(x))
        if asked[-1]:
            model.learn_one(x, y)
    assert model.n_trials_ == sum(asked)
    assert 0.2 < model.n_asked_ / model.n_offered_ < 0.3
    late, doubts_of_late = np.array(asked[300:]), np.array(doubts)[-300:]
    assert doubts_of_late[late].mean() > doubts_of_late[~late].mean() + 0.1


def test_a_stream_of_sets_with_a_budget_is_not_validated_in_silence():
    X, sets = stream(3)
    for model, setting in (
        (OnlineMultilabelClassifier(label_budget=0.2), {}),
        (OnlineMultilabelClassifier(), {"label_budget": 0.2}),
    ):
        with pytest.raises(KeslerError, match=r"label_budget=0\.2"):
            progressive_validate(model, X, sets, **setting)
