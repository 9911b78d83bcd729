"""Ranks: the oracle, PRank, cases worked out by hand, what is refused, and real rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import reference
from kesler import (
    KeslerError,
    OnlineClassifier,
    OnlineOrdinalClassifier,
    links,
    load,
    metrics,
    progressive_validate,
    update_rule,
)
from kesler.budgets import Budget
from kesler.datasets import load as load_data
from kesler.hypotheses import Grouped, Ordered, PerClass, Shared
from kesler.maps import Distance, Frequency
from kesler.updates import SimProj
from reference_links import LINKS
from reference_ordinal import prank, reference_ordinal_run
from registry import PLAIN_RULES, Row
from streams import assert_same, everything, make_stream

LINKED = {name: link for name, link in LINKS.items() if name != "linear"}
OVER_KERNELS: list[dict[str, Any]] = [
    {"kernel": "rbf", "sigma": 30.0},
    {"kernel": "rbf", "sigma": 30.0, "averaged": True},
    {"kernel": "rbf", "sigma": 30.0, "budget": Budget(60, "projectron")},
]
KINDS = {"single": ("ordered",), "multi": ("per_class",), "hybrid": ("per_class", "ordered")}


def stream(seed: int, n_rows: int = 60, k: int = 5, noise: float = 0.5) -> tuple[Any, Any]:
    """Rows along a direction, cut into k ranks that come in any order."""
    rng = np.random.default_rng(seed)
    X = make_stream(seed, n_rows, density=1.0).X
    along = X @ rng.normal(size=X.shape[1])
    along += noise * along.std() * rng.normal(size=n_rows)
    return X, np.searchsorted(np.quantile(along, np.arange(1, k) / k), along)


# ---- the oracle ---------------------------------------------------------------------------------


def sums_of(model: OnlineOrdinalClassifier, space: Any) -> np.ndarray:
    """Return our sums as the oracle stacks them: thresholds under the rank above them."""
    arrays, blocks = model._learner.arrays(), []
    codes = [model._learner.classes.code(rank) for rank in range(space.n_ranks)]
    for i, kind in enumerate(space.kinds):
        linked = model.link != "linear"
        table = arrays[f"weights.states.{i}"][0] if linked else arrays[f"weights.values.{i}"]
        if kind == "shared":
            blocks.append(table[:, 0])
        elif kind == "tree":
            columns = model._learner.groups[i]
            own = [table[:, columns[n]] if n in columns else np.zeros(space.n) for n in space.names]
            blocks.append(np.concatenate(own))
        elif kind == "per_class":
            own = [np.zeros(space.n) if c is None else table[:, c] for c in codes]
            blocks.append(np.concatenate(own))
        else:
            steps = [0.0 if c is None else table[0, 1 + c] for c in codes]
            blocks.append(np.concatenate([table[1:, 0], steps]))
    return np.concatenate(blocks)


def compare(
    X: Any,
    y: Any,
    hypotheses: str,
    rule: str,
    C: float,
    weights: Any = None,
    *,
    exact: bool = False,
    link: Any = "linear",
    kinds: Any = None,
    given: Any = None,
    **sharing: Any,
) -> int:
    """Compare up to the first trial that rounding decides; return how many trials these are."""
    wide = np.hstack([np.ones((len(X), 1)), X])
    kinds, geometry = kinds or KINDS[hypotheses], LINKED.get(link)
    stop = reference_ordinal_run(wide, y, kinds, rule, C, weights, geometry, **sharing)["doubtful"]
    stop = len(X) if exact else stop
    X, y, wide, weights = (
        X[:stop],
        y[:stop],
        wide[:stop],
        None if weights is None else weights[:stop],
    )
    run = reference_ordinal_run(wide, y, kinds, rule, C, weights, geometry, **sharing)
    update = Row(rule, hypotheses, None).update(C)
    model = OnlineOrdinalClassifier(hypotheses, update=update, link=link, **(given or {}))
    result = progressive_validate(model, X, y, weights)
    assert result.predictions.tolist() == run["predictions"]
    assert model.n_mistakes_ == run["mistakes"]
    close = 1e-3 if rule == "mira" or "tree" in kinds else 1e-4
    near = close * (run["moved"] + run["moved"].max()) + 1e-6
    assert (abs(sums_of(model, run["space"]) - run["v"]) <= near).all()
    return stop


@pytest.mark.parametrize("hypotheses", ["single", "hybrid"])
@pytest.mark.parametrize("link", LINKED)
@pytest.mark.parametrize("rule", ["perceptron", "simproj"])
@settings(max_examples=4)
@given(seed=st.integers(0, 2**31), k=st.integers(2, 7), C=st.sampled_from([0.02, 0.2, 1.0]))
def test_7_every_link_equals_the_oracle(rule, link, hypotheses, seed, k, C):
    X, y = stream(seed, k=k)
    assume(compare(X, y, hypotheses, rule, C, link=link) >= k + 3)


def test_an_intercept_below_0_gives_a_link_of_one_sign_thresholds_above_0():
    X, y = stream(3, 200, 4, noise=0.1)
    model = OnlineOrdinalClassifier("single", "perceptron", link="positive", intercept=-1.0)
    model.partial_fit(np.hstack([X, -X]), y)
    assert (model.thresholds_ > 0).all()
    assert (np.diff(model.thresholds_) > 0).all()


@pytest.mark.parametrize("hypotheses", KINDS)
@pytest.mark.parametrize("rule", PLAIN_RULES)
@settings(max_examples=8)
@given(
    seed=st.integers(0, 2**31),
    k=st.integers(2, 7),
    C=st.sampled_from([0.02, 0.2, 1.0]),
    weighted=st.booleans(),
)
def test_7_every_rule_equals_the_oracle(rule, hypotheses, seed, k, C, weighted):
    X, y = stream(seed, k=k)
    weights = np.random.default_rng(seed).choice([0.5, 1.0, 2.0], size=len(X)) if weighted else None
    assume(compare(X, y, hypotheses, rule, C, weights) >= k + 3)


COSTS = {
    "absolute": lambda y, s: float(abs(y - s)),
    "squared": lambda y, s: float((y - s) ** 2),
    "zero-one": lambda y, s: 1.0,
    "uneven": lambda y, s: (1.5 if s > y else 0.75) * abs(y - s) ** 0.5 * (1 + y % 2),
}
OF_MARGINS = ["pa", "pa1", "simproj", "hinge", "margin-perceptron", "mira"]


@pytest.mark.parametrize("hypotheses", KINDS)
@pytest.mark.parametrize("rule", OF_MARGINS)
@pytest.mark.parametrize("cost", COSTS)
@settings(max_examples=3)
@given(seed=st.integers(0, 2**31), k=st.integers(2, 7), C=st.sampled_from([0.02, 0.2, 1.0]))
def test_ranks_with_costs_equal_the_oracle(cost, rule, hypotheses, seed, k, C):
    X, y = stream(seed, k=k)
    compare(X, y, hypotheses, rule, C, given={"costs": COSTS[cost]}, cost=COSTS[cost])


def test_the_absolute_error_is_what_ranks_cost_anyway():
    X, y = stream(4, 200, k=6)
    _, firsts = np.unique(y, return_index=True)  # ranks between that are not seen cost as well
    rows = np.r_[firsts, np.setdiff1d(np.arange(200), firsts)]
    X, y = X[rows], y[rows]
    plain, costly = (
        OnlineOrdinalClassifier(update="simproj", costs=cost).fit(X, y)
        for cost in (None, COSTS["absolute"])
    )
    assert_same(plain, costly, X)
    squared = OnlineOrdinalClassifier(update="simproj", costs=COSTS["squared"]).fit(X, y)
    assert (squared.predict(X) != plain.predict(X)).any()


def test_a_matrix_of_costs_is_learnt_alike_in_any_split(tmp_path):
    X, y = stream(5, 90, k=5)
    given = {(a, b): float(COSTS["uneven"](a, b)) for a in range(5) for b in range(5) if a != b}
    made = lambda: OnlineOrdinalClassifier(update="pa1", costs=given)  # noqa: E731
    whole, pieces, rows = made().partial_fit(X, y), made(), made()
    for part in (slice(0, 13), slice(13, 40), slice(40, 90)):
        pieces.partial_fit(X[part], y[part]).save(tmp_path / "model")
        pieces = load(tmp_path / "model")
    for x, rank in zip(X, y.tolist(), strict=True):
        rows.learn_one(x, rank)
    assert_same(whole, pieces, X)
    assert_same(whole, rows, X)


def test_a_function_of_costs_is_asked_for_new_ranks_alone():
    asked = []

    def costs(right, wrong):
        asked.append((right, wrong))
        return COSTS["uneven"](right, wrong)

    X, y = stream(5, 90, k=5)
    model = OnlineOrdinalClassifier(update="pa1", costs=costs)
    expected = OnlineOrdinalClassifier(update="pa1", costs=COSTS["uneven"]).fit(X, y)
    model.partial_fit(X[:60], y[:60])
    assert {*y[:60].tolist()} == {*range(5)}
    del asked[:]
    model.partial_fit(X[60:80], y[60:80])
    for x, rank in zip(X[80:], y[80:].tolist(), strict=True):
        model.learn_one(x, rank)
    assert not asked
    assert_same(model, expected, X)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"costs": {(0, 1): 3.0}}, "predicting 2 where 0 is right costs less than 1"),
        ({"costs": lambda y, s: 1 / abs(y - s)}, "must not fall with the distance"),
        ({"costs": COSTS["squared"], "update": "logistic"}, "ignores margins"),
        ({"costs": COSTS["squared"], "update": "perceptron"}, "ignores margins"),
        ({"tree": {0: "low"}, "hypotheses": "single"}, "the hypotheses have none"),
        ({"feature_map": "none"}, "feature_map='none' is not known"),
    ],
)
def test_costs_and_trees_that_say_nothing_of_ranks_are_refused(given, words):
    X, y = stream(5, 90, k=3)
    model = OnlineOrdinalClassifier(**{"update": "simproj"} | given)
    with pytest.raises(KeslerError, match=words):
        model.fit(X, y)
    with pytest.raises(KeslerError, match=words):
        for x, rank in zip(X, y.tolist(), strict=True):
            model.learn_one(x, rank)


@pytest.mark.parametrize("rule", ["simproj", "pa1", "logistic"])
@pytest.mark.parametrize("view", ["distance", "product-mean"])
@pytest.mark.parametrize("hypotheses", ["single", "hybrid"])
@settings(max_examples=3)
@given(seed=st.integers(0, 2**31), k=st.integers(2, 7), C=st.sampled_from([0.02, 0.2, 1.0]))
def test_a_vector_over_a_feature_map_equals_the_oracle(hypotheses, view, rule, seed, k, C):
    X, y = stream(seed, k=k)
    kinds = (*KINDS[hypotheses], "shared")
    own = reference.MAPS[view.replace("-", "_")]
    compare(X, y, hypotheses, rule, C, given={"feature_map": view}, kinds=kinds, view=own)


@pytest.mark.parametrize("rule", ["simproj", "pa1", "logistic"])
@pytest.mark.parametrize("hypotheses", ["multi", "hybrid"])
@settings(max_examples=3)
@given(seed=st.integers(0, 2**31), k=st.integers(2, 7), C=st.sampled_from([0.02, 0.2, 1.0]))
def test_ranks_below_the_nodes_of_a_tree_equal_the_oracle(hypotheses, rule, seed, k, C):
    X, y = stream(seed, k=k)
    tree = {rank: "low" if rank < k // 2 else "high" for rank in range(k)}
    nodes = [(rank, above, "root") for rank, above in tree.items()]
    given = {"tree": {**tree, "low": "root", "high": "root"}}
    kinds = ("tree", *KINDS[hypotheses][1:])
    compare(X, y, hypotheses, rule, C, given=given, kinds=kinds, nodes=nodes)


def test_the_map_of_the_default_may_be_chosen():
    X, y = stream(6, 60)
    model = OnlineOrdinalClassifier(feature_map="distance").fit(X, y)
    assert [type(part) for part in model._learner.parts] == [PerClass, Shared, Ordered]
    assert isinstance(model.feature_map_, Distance)


def test_ranks_are_asked_for_within_the_budget(tmp_path):
    """About a share of them, and above all those about which the doubt is largest."""
    X, y = stream(7, 600, noise=0.1)
    result = progressive_validate(OnlineOrdinalClassifier(), X, y, label_budget=0.2)
    assert 0.15 < result.n_asked / len(X) < 0.3
    model, asked = OnlineOrdinalClassifier(label_budget=0.2), []
    for t, (x, rank) in enumerate(zip(X, y.tolist(), strict=True)):
        if t == 300:
            model.save(tmp_path / "model")
            model = load(tmp_path / "model")
        asked.append(model.query_one(x))
        if asked[-1]:
            model.learn_one(x, rank)
    assert asked == result.asked.tolist()
    assert model.n_trials_ == sum(asked)


@pytest.mark.data
@pytest.mark.parametrize("hypotheses", KINDS)
@pytest.mark.parametrize("rule", ["simperc", "conproj", "simproj", "mira"])
def test_7_real_rows_give_what_the_oracle_gives(rule, hypotheses):
    data = load_data("ordinal/boston_housing")
    X = StandardScaler().fit_transform(data.X).astype(np.float32).astype(float)
    y = np.searchsorted(np.quantile(data.y, np.arange(1, 5) / 5), data.y)
    runs = np.array_split(np.random.default_rng(1).permutation(len(y)), 16)
    assert sum(compare(X[rows], y[rows], hypotheses, rule, 0.1) for rows in runs) >= 200


@pytest.mark.parametrize("hypotheses", KINDS)
@settings(max_examples=25)
@given(seed=st.integers(0, 2**31), k=st.integers(3, 7))
def test_7_whole_numbers_tie_as_in_the_oracle(hypotheses, seed, k):
    X, y = stream(seed, k=k)
    compare(np.rint(2 * X), y, hypotheses, "perceptron", 1.0, exact=True)


# ---- PRank --------------------------------------------------------------------------------------


@update_rule(constraints="all", requires="losses")
def unit_steps(parameters, weight, losses, squared_norms, gram, steps):
    """Move by 1 along every constraint that is wrong, ties too: PRank."""
    for j in range(losses.shape[0]):
        if losses[j] >= 1:
            steps[j] = 1


@pytest.mark.parametrize("k", [2, 3, 6])
@settings(max_examples=20)
@given(seed=st.integers(0, 2**31))
def test_unit_steps_along_every_wrong_neighbour_are_prank(k, seed):
    X, y = stream(seed, 150, k)
    # All ranks are seen first, the highest before the others: PRank, too, gives ties to it.
    ranks = np.arange(k)[::-1]
    model = OnlineOrdinalClassifier("single", update=unit_steps).fit(
        np.zeros((k, X.shape[1])), ranks
    )
    y[0] = 0  # at the start all is tied, and PRank moves unless the highest rank is right
    predictions, w, b = prank(X, y, k)
    result = progressive_validate(model, X, y)
    assert result.predictions.tolist() == predictions
    np.testing.assert_allclose(model._learner.weights[1 : len(w) + 1, 0], w, atol=1e-3)
    assert model.thresholds_.tolist() == b.tolist() == sorted(b)


def test_between_two_ranks_simperc_is_prank():
    X, y = stream(3, 200, 2)
    y[0] = 0
    model = OnlineOrdinalClassifier("single", update="simperc").fit(
        np.zeros((2, X.shape[1])), [1, 0]
    )
    assert progressive_validate(model, X, y).predictions.tolist() == prank(X, y, 2)[0]


# ---- by hand ------------------------------------------------------------------------------------


def test_a_rank_far_off_costs_a_constraint_for_each_threshold_between():
    model = OnlineOrdinalClassifier("single", update="simperc").fit([[1.0]] * 4, [0, 1, 2, 3])
    # Of equals the rank seen first is ahead: 0 is predicted, right of nothing, 3 needs all three.
    model.learn_one([2.0], 3)
    assert model.n_mistakes_ == 1
    np.testing.assert_allclose(model.thresholds_, [-1 / 3] * 3, rtol=1e-6)
    # w = 3 (1/3) 2 = 2; scores are sums of 2 x + 1/3.
    np.testing.assert_allclose(model.decision_function([[1.0]]), [[0, 7 / 3, 14 / 3, 7]], rtol=1e-6)


def test_projections_know_their_norm():
    model = OnlineOrdinalClassifier("single", update="simproj").fit([[1.0]] * 3, [0, 1, 2])
    model.learn_one([2.0], 1)  # ||(2, -1)||^2 = 5: steps of 1 / 5 / 2 up and down
    np.testing.assert_allclose(model.thresholds_, [-0.1, 0.1], rtol=1e-6)
    assert model.decision_function([[5.0]]).tolist() == [[0, model.thresholds_[1], 0]]
    hybrid = OnlineOrdinalClassifier("hybrid", update="simproj").fit([[1.0]] * 2, [0, 1])
    hybrid.learn_one([2.0], 1)  # 5 + 2 (4 + 1) = 15, of which loss 1: now the margin is seen
    np.testing.assert_allclose(hybrid.decision_function([[2.0]]), [1.0], rtol=1e-6)


def test_the_target_compares_neighbours_only():
    # The score of 0 may stay above that of 2: of these two nothing is demanded.
    model = OnlineOrdinalClassifier("multi", update="pa").fit([[0.0]] * 3, [0, 1, 2])
    assert model.n_mistakes_ == 0
    for _ in range(50):
        model.learn_one([1.0], 2)
    low, middle, high = model.decision_function([[1.0]])[0]
    assert middle - low >= 0.99 and high - middle >= 0.99


@pytest.mark.parametrize(
    "given",
    [{"averaged": True}, *({"link": link} for link in links.LINKS), *OVER_KERNELS],
    ids=str,
)
@pytest.mark.parametrize("late", [1, 2, 3])
def test_a_rank_inserted_takes_no_row_from_others(given, late):
    X, y = stream(5, 300, 5, noise=0.1)
    model = OnlineOrdinalClassifier("single", "simproj", **given)
    model.fit(X[y != late], y[y != late])
    before = model.predict(X)
    model.learn_one(X[y == late][0], late)
    assert model.classes_.tolist() == [0, 1, 2, 3, 4]
    assert model.predict(X).tolist() == before.tolist()


@pytest.mark.parametrize("given", [*({"link": link} for link in links.LINKS), OVER_KERNELS[1]])
@pytest.mark.parametrize("late", [1, 2, 3])
def test_a_rank_inserted_has_the_mean_threshold_of_its_neighbour(given, late):
    X, y = stream(5, 300, 5, noise=0.1)
    model = OnlineOrdinalClassifier("single", "simproj", **{**given, "averaged": True})
    model.fit(X[y != late], y[y != late])
    before = model.thresholds_
    model.learn_one(X[y == late][0], late)
    after = model.thresholds_
    assert after[late - 1] == after[late]
    # The others move by one more trial of the last weights.
    np.testing.assert_allclose(np.delete(after, late), before, rtol=0.05)


@pytest.mark.parametrize("kernel", [None, "polynomial"])
@pytest.mark.parametrize(("late", "nearest"), [(0, 1), (4, 3)])
def test_a_rank_at_an_end_begins_an_average_distance_off(late, nearest, kernel):
    X, y = stream(6, 300, 5, noise=0.1)
    model = OnlineOrdinalClassifier("single", "simproj", kernel=kernel)
    model.fit(X[y != late], y[y != late])
    before, old = model.predict(X), model.thresholds_
    model.learn_one(X[y == late][0], late)
    new = model.thresholds_
    gap = (old[-1] - old[0]) / 2
    np.testing.assert_allclose(new[1:] if late == 0 else new[:-1], old)
    np.testing.assert_allclose(np.diff(new)[0 if late == 0 else -1], gap, rtol=1e-5)
    after = model.predict(X)
    changed = after != before
    assert set(after[changed]) <= {late} and set(before[changed]) <= {nearest}


@pytest.mark.parametrize(
    "given",
    [
        *({"link": name} for name in links.LINKS if name != "positive"),
        {"kernel": "polynomial"},
        {"kernel": "rbf", "sigma": 9.0, "budget": Budget(20, "projectron")},
    ],
    ids=str,
)
@pytest.mark.parametrize("hypotheses", KINDS)
def test_an_average_is_the_mean_over_trials(hypotheses, given):
    X, y = stream(12, 80)
    model = OnlineOrdinalClassifier(hypotheses, update="simproj", **given)
    mean = OnlineOrdinalClassifier(hypotheses, update="simproj", averaged=True, **given)
    X[:5], y[:5] = 0, [2, 0, 4, 1, 3]
    scores = []
    for x, rank in zip(X, y, strict=True):
        model.learn_one(x, int(rank))
        if model.n_known_ == 5:
            scores.append(model.decision_function(X))
    mean.fit(X, y)
    wanted = np.sum(scores, axis=0) / len(X)  # weights are 0 before all are known
    close = 1e-4 * max(1.0, abs(wanted).max())
    np.testing.assert_allclose(mean.decision_function(X), wanted, atol=close)


def test_thresholds_without_ordered_hypotheses_are_none():
    model = OnlineOrdinalClassifier("multi").fit([[0.0], [1.0]], [0, 1])
    assert not hasattr(model, "thresholds_")
    with pytest.raises(AttributeError, match="Ordered"):
        _ = model.thresholds_


# ---- orders of labels ---------------------------------------------------------------------------

NAMES = ["low", "mid", "high", "top", "peak"]


@pytest.mark.parametrize("hypotheses", KINDS)
def test_3_a_declared_order_changes_names_only(hypotheses, tmp_path):
    X, y = stream(7)
    plain = OnlineOrdinalClassifier(hypotheses).fit(X, y)
    named = OnlineOrdinalClassifier(hypotheses, order=NAMES).fit(X, [NAMES[r] for r in y])
    assert named.classes_.tolist() == NAMES
    np.testing.assert_array_equal(named.decision_function(X), plain.decision_function(X))
    assert named.predict(X).tolist() == [NAMES[r] for r in plain.predict(X)]
    assert named.predict_one(X[0]) == NAMES[plain.predict_one(X[0])]
    named.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.order == NAMES
    assert_same(
        named.partial_fit(X, [NAMES[r] for r in y]), loaded.partial_fit(X, [NAMES[r] for r in y]), X
    )
    with pytest.raises(KeslerError, match="'none' is not in the order"):
        loaded.learn_one(X[0], "none")


@pytest.mark.parametrize(
    "names", [[*"abcde"], [-2.0, 0.0, 1.0, 10.0, 99.0], [(i, "x") for i in range(5)]]
)
def test_3_labels_in_their_own_order(names):
    X, y = stream(8)
    plain = OnlineOrdinalClassifier().fit(X, y)
    model = OnlineOrdinalClassifier().fit(X, [names[r] for r in y])
    assert model.classes_.tolist() == names
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))


def test_declared_ranks_that_never_came_count_in_distances_only():
    X, y = np.eye(2)[[0, 1, 0, 1]], ["low", "top", "top", "low"]
    model = OnlineOrdinalClassifier(order=NAMES)
    result = progressive_validate(model, X, y)
    assert model.classes_.tolist() == ["low", "top"]
    assert (result.n_mistakes, result.n_first_seen) == (2, 2)
    assert result.mean_absolute_error == 3.0
    assert progressive_validate(OnlineOrdinalClassifier(), X, y).mean_absolute_error == 1.0


def test_mean_absolute_error_is_of_places():
    assert metrics.mean_absolute_error(["a", "c"], ["c", "c"], [*"abc"]) == 1.0
    with pytest.raises(KeslerError, match="'z' is not among the ranks"):
        metrics.mean_absolute_error(["z"], ["a"], [*"abc"])


# ---- what is refused ----------------------------------------------------------------------------

REFUSED = {
    "text for an order": (lambda: OnlineOrdinalClassifier(order="abc"), "give a list"),
    "a set for an order": (lambda: OnlineOrdinalClassifier(order={0, 1}), "give a list"),
    "a label twice": (lambda: OnlineOrdinalClassifier(order=[0, 1, 0]), "names 0 twice"),
    "no label": (lambda: OnlineOrdinalClassifier(order=[]), "names no label"),
    "a list as label": (lambda: OnlineOrdinalClassifier(order=[[1], [2]]), "not hashable"),
    "outside the order": (
        lambda: OnlineOrdinalClassifier(order=[1, 2]),
        "label 0 is not in the order",
    ),
    "no thresholds": (lambda: OnlineOrdinalClassifier(intercept=0), "without thresholds"),
    "no order of classes": (lambda: OnlineClassifier(Ordered()), "OnlineOrdinalClassifier"),
    "no such hypotheses": (lambda: OnlineOrdinalClassifier("double"), "for ranks, Ordered"),
}


@pytest.mark.parametrize(("make", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused_with_a_sentence(make, sentence):
    model = make()
    before = everything(model)
    with pytest.raises(KeslerError, match=sentence):
        model.fit([[1.0], [2.0]], [0, 1])
    assert everything(model) == before


def test_steps_beyond_float32_are_refused():
    with pytest.raises(KeslerError, match="float32"):
        OnlineOrdinalClassifier("single", update="perceptron").fit(
            [[0.0], [0.0], [1e38]], [0, 1, 1]
        )


# ---- every family, and scikit-learn -------------------------------------------------------------


@pytest.mark.parametrize(
    "hypotheses",
    [
        [Ordered(), PerClass()],
        [Ordered(), Grouped({"ends": [0, 4]})],
        Grouped({"low": [0, 1], "high": [3, 4]}, Frequency()),
        [Shared(Frequency()), Ordered()],
    ],
    ids=["ordered first", "groups", "grouped views", "shared"],
)
@pytest.mark.parametrize("rule", PLAIN_RULES)
def test_any_hypotheses_learn_ranks(rule, hypotheses, tmp_path):
    X, y = stream(9, 80)
    model = OnlineOrdinalClassifier(hypotheses, update=rule).fit(X, y)
    events = OnlineOrdinalClassifier(hypotheses, update=rule)
    for x, rank in zip(X, y, strict=True):
        events.learn_one(x, int(rank))
    assert_same(model, events, X)
    sparse_rows = OnlineOrdinalClassifier(hypotheses, update=rule).fit(sparse.csr_array(X), y)
    np.testing.assert_array_equal(sparse_rows.decision_function(X), model.decision_function(X))
    model.save(tmp_path / "model")
    assert_same(load(tmp_path / "model").partial_fit(X, y), model.partial_fit(X, y), X)


def test_many_ranks_grow_the_capacity():
    X, y = stream(10, 600, 60)
    model = OnlineOrdinalClassifier("single")
    for start in range(0, 600, 7):
        model.partial_fit(X[start : start + 7], y[start : start + 7])
    assert_same(model, OnlineOrdinalClassifier("single").partial_fit(X, y), X)
    assert model.classes_.tolist() == list(range(60)) and model.thresholds_.shape == (59,)


def test_10_in_a_pipeline_and_a_grid():
    X, y = stream(11, 200, noise=0.1)
    model = make_pipeline(StandardScaler(), OnlineOrdinalClassifier())
    grid = {"onlineordinalclassifier__update": [SimProj(0.01), SimProj(1.0)]}
    search = GridSearchCV(model, grid, cv=3, scoring="neg_mean_absolute_error").fit(X, y)
    assert search.best_score_ > -0.6


def test_an_ordered_categorical_is_not_put_in_another_order():
    grades = pd.Series(pd.Categorical(["low", "high", "mid"], ["low", "mid", "high"], ordered=True))
    with pytest.raises(KeslerError, match=r"order=list\(y\.cat\.categories\)"):
        OnlineOrdinalClassifier().fit(np.eye(3), grades)
    settings = OnlineOrdinalClassifier(order=list(grades.cat.categories)).fit(np.eye(3), grades)
    assert settings.classes_.tolist() == ["low", "mid", "high"]
