"""Sub-experts: against the oracle, by hand, by the laws, and what is refused."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

import homemade
import reference_links
from kesler import (
    KeslerError,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    Ratings,
    load,
    progressive_validate,
)
from kesler.data.rows import Rows
from kesler.evaluation.comparison import Comparison
from kesler.hypotheses import Grouped, PerClass, Shared
from kesler.links import Exponential, PNorm
from kesler.maps import SubExperts
from kesler.online.blocks import readable_rows
from kesler.readers import Block
from reference_sub_experts import Part, linked_run, sub_experts_run
from registry import PLAIN_RULES, Row
from streams import (
    assert_same,
    assert_same_but_declared,
    in_order_of_appearance,
    learnt,
    run_trials,
)

SETS = ((0, 1, 2), (2, 3), (1, 4))
FAMILIES: dict[str, tuple[list[Any], list[Part]]] = {
    "shared": ([Shared(SubExperts())], [Part("shared", "ratings")]),
    "per class": ([PerClass(SubExperts())], [Part("per_class", "ratings")]),
    "grouped": (
        [Grouped(dict(enumerate(SETS)), SubExperts())],
        [Part("grouped", "ratings", SETS)],
    ),
    "beside attributes": (
        [PerClass(), Shared(SubExperts())],
        [Part("per_class", "attributes"), Part("shared", "ratings")],
    ),
    "broken into attributes": (
        [Shared(SubExperts()), Grouped(dict(enumerate(SETS))), PerClass(SubExperts())],
        [
            Part("shared", "ratings"),
            Part("grouped", "attributes", SETS),
            Part("per_class", "ratings"),
        ],
    ),
}


@dataclass(frozen=True)
class Council:
    """Dense ratings (m, k, n) and attributes, with class numbers in the order of appearance."""

    ratings: NDArray[np.float64]
    attributes: NDArray[np.float64]
    y: NDArray[np.int64]
    weights: NDArray[np.float64]

    @property
    def k(self) -> int:
        return self.ratings.shape[1]

    def dense(self, names: Any = None, rows: slice = slice(None)) -> Ratings:
        labels = range(self.k) if names is None else names[: self.k]
        return Ratings.from_dense(self.ratings[rows], labels, self.attributes[rows])

    def entries(self, rows: slice = slice(None)) -> Ratings:
        """Return what is not 0, ragged in classes and sub-experts."""
        return Ratings.from_sparse_rows(
            [{r: nonzero(x) for r, x in enumerate(row) if x.any()} for row in self.ratings[rows]],
            self.attributes[rows],
        )

    def sparse(self) -> Ratings:
        matrices = [sparse.csr_array(row) for row in self.ratings]
        return Ratings.from_sparse(matrices, range(self.k), self.attributes)


def nonzero(x: Any) -> dict[int, float]:
    return {int(i): float(x[i]) for i in np.flatnonzero(x)}


def make_council(seed: int, m: int = 40, k: int = 5, n: int = 6, density: float = 0.8) -> Council:
    """Sub-experts of different quality; the later half of them appears halfway."""
    rng = np.random.default_rng(seed)
    y = in_order_of_appearance(rng.integers(k, size=m))
    k = int(y.max()) + 1
    ratings = rng.normal(size=(m, k, n))
    ratings[np.arange(m), y] += rng.uniform(-1, 1.5, size=n)
    ratings[rng.random(ratings.shape) > density] = 0
    ratings[: m // 2, :, n // 2 :] = 0
    ratings[rng.random((m, k)) < 0.1] = 0  # classes that a row does not rate
    attributes = rng.normal(size=(m, 3))
    weights = rng.choice([0.5, 1.0, 2.0], size=m)
    as_stored = [a.astype(np.float32).astype(np.float64) for a in (ratings, attributes)]
    return Council(*as_stored, y, weights)


@st.composite
def councils(draw: Any) -> Council:
    seed, k = draw(st.integers(0, 2**32 - 1)), draw(st.integers(2, 9))
    n, density = draw(st.integers(1, 12)), draw(st.sampled_from([0.3, 0.8, 1.0]))
    return make_council(seed, draw(st.integers(10, 40)), k, n, density)


def learner(family: str, rule: str = "pa1", C: float = 1.0, **options: Any) -> OnlineClassifier:
    update = Row(rule, "multi", None).update(C)
    return OnlineClassifier(FAMILIES[family][0], update=update, **options)


every_family = pytest.mark.parametrize("family", FAMILIES)
every_rule = pytest.mark.parametrize("rule", PLAIN_RULES)


# ---- against the oracle -------------------------------------------------------------------------


@every_rule
@every_family
@settings(max_examples=4)
@given(council=councils(), weighted=st.booleans(), C=st.sampled_from([0.05, 1.0]))
def test_every_rule_is_as_the_papers_say(family, rule, council, weighted, C):
    weights = council.weights if weighted else None
    run = sub_experts_run(
        council.ratings, council.attributes, council.y, FAMILIES[family][1], rule, C, weights
    )
    end = run["doubtful"]
    assume(end > 5)
    model = learner(family, rule, C)
    close = 2e-3 if rule == "mira" else 1e-4
    for t in range(end):
        if t:
            scores = model._scores(council.dense(rows=slice(t, t + 1)))[0]
            size = 1 + np.abs(run["scores"][t]).max()
            np.testing.assert_allclose(scores, run["scores"][t], atol=close * size)
        part = slice(t, t + 1)
        share = None if weights is None else weights[part]
        predicted, _ = run_trials(model, council.dense(rows=part), council.y[part], share)
        assert predicted.tolist() == run["predictions"][t : t + 1]
    if end == len(council.y):
        assert model.n_mistakes_ == run["mistakes"]
        for i, (part, expected) in enumerate(zip(FAMILIES[family][1], run["W"], strict=True)):
            if part.kind == "grouped":
                continue  # groups are numbered as their classes are seen
            weights = model._learner.arrays()[f"weights.values.{i}"].T
            np.testing.assert_allclose(
                weights, expected.reshape(weights.shape), atol=close * (1 + abs(expected).max())
            )


LINKS = {
    "positive": (
        Exponential(1.5, total=2.0, balanced=False),
        reference_links.exponential(1.5, 2.0),
    ),
    "exponential": (Exponential(1.5, total=2.0), reference_links.balanced(1.5, 2.0)),
    "p-norm": (PNorm(4.0), reference_links.p_norm(4.0)),
}


@pytest.mark.parametrize("rule", ["perceptron", "pa1", "simproj"])
@pytest.mark.parametrize("link", LINKS)
@settings(max_examples=15)
@given(council=councils())
def test_links_move_sub_experts_as_they_move_features(link, rule, council):
    ours, theirs = LINKS[link]
    run = linked_run(council.ratings, council.y, rule, theirs, 1.0)
    end = run["doubtful"]
    assume(end > 5)
    model = OnlineClassifier("sub-experts", update=rule, link=ours)
    for t in range(end):
        X = Ratings.from_dense(council.ratings[t : t + 1], range(council.k))
        if t:  # a prediction counts sub-experts that have not been seen yet, as the trial does
            expected = run["scores"][t]
            close = 1e-3 * (1 + abs(expected).max())
            np.testing.assert_allclose(model._scores(X)[0], expected, atol=close)
        trials = model._run_trials(X, council.y[t : t + 1], keep_scores=True)
        if t:
            n = len(expected)
            np.testing.assert_allclose(trials.scores[0, :n], expected, atol=close)


def test_by_hand_weighted_majority():
    """Each mistake multiplies by alpha^(x^y - x^s); an unmet sub-expert has the weight of all."""
    link = Exponential(2.0, total=3.0, balanced=False)
    model = OnlineClassifier("sub-experts", update="perceptron", link=link)
    settings = {"a": {"x": 0.0, "y": 1.0, "z": 0.5}, "b": {"x": 1.0, "y": 0.0, "z": 0.5}}
    model.fit([settings] * 2, ["a", "b"])
    assert model.decision_function([settings]).tolist() == [0.0]  # 1.5 each
    model.learn_one(settings, "b")  # x doubles, y halves, z stays: 2 : 1/2 : 1 of a total of 3
    np.testing.assert_allclose(
        model._scores([settings])[0], 3 / 3.5 * np.array([1, 2.5]), rtol=1e-6
    )
    unmet = {"a": {"new": 1.0}, "b": {"newer": 0.5, "newest": 0.25}}
    np.testing.assert_allclose(model._scores([unmet])[0], 3 / 3.5 * np.array([1, 0.75]), rtol=1e-6)


def test_by_hand_whole_numbers():
    """Two sub-experts: one right, one that prefers the class seen first; the Perceptron's steps."""
    settings = [{"a": [1, 1], "b": [0, 0]}, {"a": [0, 1], "b": [1, 0]}]
    model = OnlineClassifier("sub-experts", update="perceptron")
    model.learn_one(settings[0], "a").learn_one(settings[1], "b")  # both only join
    assert model.n_mistakes_ == 0 and not model._learner.weights.any()
    model.learn_one(settings[1], "b")  # 0 : 0 says a; w = (1, 0) - (0, 1)
    assert model._learner.weights[:2, 0].tolist() == [1, -1] and model.n_mistakes_ == 1
    assert model.decision_function(settings).tolist() == [0, 2]  # b less a: 0 - 0, 1 - (-1)
    model.learn_one({"a": [2, 1], "b": [0.5, 0]}, "b")  # a: 1, b: 0.5
    assert model._learner.weights[:2, 0].tolist() == [-0.5, -2] and model.n_mistakes_ == 2


def test_by_hand_a_passive_aggressive_step():
    """Loss 1 and ||x^b - x^a||^2 = 9 + 16: a step of 1 / 25 along the difference."""
    settings = {"a": {"x": 1.0}, "b": {"x": 4.0, "y": 4.0}}
    model = OnlineClassifier("sub-experts", update="pa").fit([settings] * 3, ["a", "b", "b"])
    np.testing.assert_allclose(model._learner.weights[:2, 0], [3 / 25, 4 / 25], rtol=1e-6)


def test_what_sub_experts_agree_on_moves_nothing():
    settings = {"a": {"same": 3.3, "right": 0}, "b": {"same": 3.3, "right": 1}, "c": {"same": 3.3}}
    for rule in PLAIN_RULES:
        model = OnlineClassifier("sub-experts", update=rule)
        model.fit([settings] * 6, ["a", "b", "c", "b", "b", "b"])
        same, right = model._learner.weights[:2, 0]
        assert same == 0 and right > 0, rule


# ---- the paper's constructions ------------------------------------------------------------------


@every_rule
def test_attributes_as_sub_experts_are_a_linear_learner(rule):
    """Mesterharm (2001), Section 5.2: attribute i becomes k sub-experts, each for one class."""
    rng = np.random.default_rng(5)
    m, k, n = 120, 4, 5
    X = rng.normal(size=(m, n))
    y = in_order_of_appearance(np.argmax(X @ rng.normal(size=(n, k)), axis=1))
    k = int(y.max()) + 1
    transformed = np.zeros((m, k, n * k))
    for r in range(k):
        transformed[:, r, r * n : (r + 1) * n] = X
    learner, council = (OnlineClassifier(h, update=rule) for h in ("multi", "sub-experts"))
    of_attributes = progressive_validate(learner, X, y)
    of_ratings = progressive_validate(council, Ratings.from_dense(transformed, range(k)), y)
    assert of_ratings.predictions.tolist() == of_attributes.predictions.tolist()
    assert of_ratings.n_mistakes == of_attributes.n_mistakes > 0
    weights = council._learner.weights[: n * k, 0].reshape(k, n)
    np.testing.assert_allclose(weights, learner._learner.weights[:n, :k].T, atol=1e-4)


def test_a_sub_expert_broken_into_attributes():
    """Section 5.3: trusted for one class only, it serves where one weight for all cannot."""
    rng = np.random.default_rng(0)
    y = np.concatenate([[0, 1], rng.integers(2, size=300)])
    ratings = np.zeros((302, 2, 1))
    ratings[np.arange(302), y, 0] = np.where(y == 0, 1.0, -1.0)  # right of 0, contrary of 1
    rated = Ratings.from_dense(ratings, [0, 1])
    broken = learner("per class", "perceptron").fit(rated, y)
    assert broken.n_mistakes_ < 5 < learner("shared", "perceptron").fit(rated, y).n_mistakes_


def test_threshold_sub_experts_are_a_constant_feature_of_each_class():
    """Section 5.3: a constant attribute, k further sub-experts."""
    council = make_council(8)
    thresholds = np.broadcast_to(np.eye(council.k), (len(council.y), council.k, council.k))
    by_hand = np.concatenate([thresholds, council.ratings], axis=2)
    one = OnlineClassifier("sub-experts", update="perceptron")
    two = OnlineClassifier("multi+sub-experts", update="perceptron", intercept=1.0)
    found = progressive_validate(one, Ratings.from_dense(by_hand, range(council.k)), council.y)
    alone = Ratings.from_dense(council.ratings, range(council.k))
    expected = progressive_validate(two, alone, council.y)
    assert found.predictions.tolist() == expected.predictions.tolist()
    (of_thresholds,), (of_constants, _) = (
        model._learner.hypothesis_weights() for model in (one, two)
    )
    np.testing.assert_allclose(of_thresholds[: council.k, 0], of_constants[0], atol=1e-5)
    assert np.abs(of_constants[0]).max() > 0


def test_new_sub_experts_begin_where_all_began():
    """Section 6.1: unseen ones rate 0 and share one weight."""
    council = make_council(9)
    half = len(council.y) // 2
    model = learner("shared").fit(council.entries(slice(0, half)), council.y[:half])
    assert model._learner.n_sub_experts <= 3
    model.partial_fit(council.entries(slice(half, None)), council.y[half:])
    assert model._learner.n_sub_experts == 6
    assert_same(model, learner("shared").fit(council.dense(), council.y), council.dense())


def test_unseen_classes_never_win_and_their_ratings_wait():
    """Section 6.2: the ratings of a class count from the row after its first."""
    settings = {"a": [0.1], "b": [1.0], "never": [9.0]}
    model = OnlineClassifier("sub-experts", update="perceptron").fit(
        [settings, settings], ["a", "a"]
    )
    assert model.predict([settings]).tolist() == ["a"] and model.n_mistakes_ == 0
    model.learn_one(settings, "b")
    assert model.n_mistakes_ == 0 and not model._learner.weights.any()
    model.learn_one(settings, "b")
    assert model._learner.weights[0, 0] == np.float32(1) - np.float32(0.1)
    assert model.predict_one(settings) == "b" and model.classes_.tolist() == ["a", "b"]


# ---- the laws -----------------------------------------------------------------------------------


@every_rule
@every_family
def test_law_1_any_split_into_batches_is_the_same(family, rule):
    for seed in (1, 2):
        council = make_council(seed)
        X = council.dense()
        whole = learner(family, rule).partial_fit(X, council.y, sample_weight=council.weights)
        pieces, events = learner(family, rule), learner(family, rule)
        for start, stop in [(0, 1), (1, 7), (7, 25), (25, 40)]:
            part = slice(start, stop)
            pieces.partial_fit(X[part], council.y[part], sample_weight=council.weights[part])
        assert_same(whole, pieces, X)
        for t, label in enumerate(council.y):
            events.learn_one(X[t : t + 1], label)
        assert_same(learner(family, rule).fit(X, council.y), events, X)
        assert [events.predict_one(X[t : t + 1]) for t in range(9)] == events.predict(
            X[:9]
        ).tolist()


def test_law_1_rows_of_weight_zero_are_left_out():
    council = make_council(3)
    X, stored = council.dense(), np.arange(40) % 3 != 1
    model = learner("beside attributes").fit(X, council.y, np.where(stored, council.weights, 0.0))
    without = learner("beside attributes")
    for t in np.flatnonzero(stored):
        part = slice(t, t + 1)
        without.partial_fit(X[part], council.y[part], sample_weight=council.weights[part])
    assert_same(model, without, X)


def test_law_1_rows_that_are_learnt_in_blocks_are_the_same():
    rng = np.random.default_rng(1)
    attributes = rng.normal(size=(30, 40_000)).astype(np.float32)
    X = Ratings.from_dense(rng.normal(size=(30, 4, 3)), range(4), attributes)
    whole = learner("beside attributes").fit(X, np.arange(30) % 4)
    events = learner("beside attributes")
    for t in range(30):
        events.learn_one(X[t : t + 1], t % 4)
    assert_same(whole, events, X[:3])


@every_family
def test_law_2_declaring_classes_changes_nothing(family):
    council = make_council(4)
    declared = learner(family).partial_fit(council.dense(), council.y, classes=range(90))
    plain = learner(family).fit(council.dense(), council.y)
    assert_same_but_declared(plain, declared, council.dense())


@every_family
def test_law_3_renaming_changes_names_only(family):
    council, names = make_council(5), [*"hgfedcba"]
    named = [names[code] for code in council.y]
    hypotheses = FAMILIES[family][0]
    groups = {i: [names[code] for code in codes] for i, codes in enumerate(SETS)}
    other = [Grouped(groups, p.feature_map) if isinstance(p, Grouped) else p for p in hypotheses]
    model = OnlineClassifier(other, update="pa1").fit(council.dense(names), named)
    plain = learner(family).fit(council.dense(), council.y)
    same = ("labels", "types")
    assert {k: v for k, v in learnt(model).items() if k not in same} == {
        k: v for k, v in learnt(plain).items() if k not in same
    }
    predicted = model.predict(council.dense(names)).tolist()
    assert predicted == [names[code] for code in plain.predict(council.dense())]


def test_law_3_the_order_in_which_a_row_rates_classes_does_not_matter():
    council = make_council(6)
    backwards = Ratings.from_dense(
        council.ratings[:, ::-1], range(council.k)[::-1], council.attributes
    )
    for family in FAMILIES:
        model = learner(family).fit(backwards, council.y)
        assert_same(learner(family).fit(council.dense(), council.y), model, council.dense())


@every_family
def test_law_4_dense_and_sparse_ratings_are_the_same(family):
    council = make_council(7, density=0.4)
    dense = learner(family).fit(council.dense(), council.y)
    vectors = [dict(enumerate(row)) for row in council.ratings]
    matrices = [
        {r: sparse.csr_array(x[None]) for r, x in enumerate(row)} for row in council.ratings
    ]
    for X in (
        council.entries(),
        council.sparse(),
        Ratings.from_sparse_rows(vectors, council.attributes),
        Ratings.from_sparse_rows(matrices, council.attributes),
    ):
        model = learner(family).fit(X, council.y)
        assert_same(dense, model, X)
        assert model.predict(X).tolist() == dense.predict(council.dense()).tolist()


GEOMETRIES: dict[str, dict[str, Any]] = {
    "linear": {},
    "averaged": {"averaged": True},
    **{name: {"link": link} for name, (link, _) in LINKS.items()},
}


@every_family
@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("stop", [1, 20])
def test_law_5_save_load_go_on_is_never_stopped(family, geometry, stop, tmp_path):
    council, options = make_council(8), GEOMETRIES[geometry]
    X, y = council.dense(), council.y
    never_stopped = learner(family, **options).fit(X, y)
    model = learner(family, **options).fit(X[:stop], y[:stop])
    model.save(tmp_path / "model")
    for other in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert learnt(other) == learnt(model)
        assert_same(never_stopped, other.partial_fit(X[stop:], y[stop:]), X)


def test_law_5_named_sub_experts_go_on_with_new_names(tmp_path):
    council = make_council(9)
    rows = [
        {r: {f"of {i}": v for i, v in nonzero(x).items()} for r, x in enumerate(row)}
        for row in council.ratings
    ]
    never_stopped = OnlineClassifier("sub-experts", update="pa1").fit(rows, council.y)
    OnlineClassifier("sub-experts", update="pa1").fit(rows[:9], council.y[:9]).save(
        tmp_path / "model"
    )
    model = load(tmp_path / "model").partial_fit(rows[9:], council.y[9:])
    assert_same(never_stopped, model, rows)
    assert sorted(model.sub_experts_.names) == [f"of {i}" for i in range(6)]
    assert model.vocabulary_ is None
    stranger = {r: {**vector, "stranger": 5.0} for r, vector in rows[-1].items()}
    assert model.predict_one(stranger) == model.predict_one(rows[-1])


@pytest.mark.parametrize(
    ("rated", "others"), [({"one": 1.0}, [1.0]), ([1.0], {"one": 1.0})], ids=["names", "numbers"]
)
def test_rows_without_ratings_do_not_say_how_sub_experts_are_identified(rated, others):
    def row(ratings):
        return Ratings.from_sparse_rows(ratings, attributes={"x": 1.0})

    model = OnlineClassifier("multi+sub-experts", update="pa1").learn_one(row({}), "a")
    model.learn_one(row({"a": rated}), "a").learn_one(row({}), "a")
    with pytest.raises(KeslerError, match="this model identifies its sub-experts by"):
        model.learn_one(row({"a": others}), "a")
    assert model.learn_one(row({"a": rated}), "a").n_trials_ == 4


def test_rows_of_a_file_to_predict_add_no_names():
    model = OnlineClassifier("sub-experts", update="pa1").learn_one({"a": {"known": 1.0}}, "a")
    before = learnt(model)
    ratings = Ratings.from_sparse_rows([{"a": {"new": 1.0, "known": 2.0, "newer": 3.0}}])
    rows = readable_rows(model, replace(Rows.empty(1), ratings=ratings))
    assert learnt(model) == before
    assert rows.ratings.vectors.indices.tolist() == [1, 0, 1]  # all new names have one number


@every_family
def test_law_6_predict_changes_nothing(family):
    council = make_council(10)
    model = learner(family).fit(council.dense(rows=slice(0, 20)), council.y[:20])
    before = learnt(model)
    model.predict(council.dense()), model.decision_function(council.entries())
    wide = Ratings.from_dense(np.ones((1, 2, 500)), [0, 1], np.ones((1, 3)))
    model.predict(wide)
    assert learnt(model) == before


def test_law_9_a_second_learner_compiles_nothing():
    from numba.core import event

    def run(seed: int, **options: Any) -> None:
        council = make_council(seed, **options)
        for family in FAMILIES:
            learner(family).fit(council.dense(), council.y).predict(council.entries())

    run(1)
    with event.install_recorder("numba:run_pass") as passes:
        run(2, m=30, k=9, n=40)
    assert len(passes.buffer) == 0


def test_the_pieces_of_ratings_fit_together():
    council = make_council(11)
    rows = [
        replace(Rows.from_dense(council.attributes[part]), ratings=council.entries(part))
        for part in (slice(0, 5), slice(5, 6), slice(6, 40))
    ]
    whole = Rows.concatenate(rows)
    plain = replace(council.entries(), attributes=None)
    fitted = [learner("shared").fit(X, council.y) for X in (whole.ratings, plain)]
    assert_same(*fitted, plain)
    numbers = np.random.default_rng(0).permutation(40)
    predicted = fitted[0].predict(whole.take(numbers).ratings)
    assert predicted.tolist() == fitted[0].predict(plain)[numbers].tolist()


def test_named_pieces_of_ratings_fit_together():
    pieces = [
        Ratings.from_sparse_rows([{"a": {"x": 1.0}}]),
        Ratings.from_sparse_rows([{"b": {"y": 2.0, "x": 3.0}}, {}]),
    ]
    whole = Ratings.concatenate(pieces)
    assert (len(whole), whole.labels, whole.names) == (3, ("a", "b"), ("x", "y"))
    assert whole.starts.tolist() == [0, 1, 2, 2] and whole.rated.tolist() == [0, 1]
    assert whole.vectors.indices.tolist() == [0, 1, 0]
    assert whole.vectors.values.tolist() == [1, 2, 3]


# ---- the other faces ----------------------------------------------------------------------------


def test_label_sets_and_rankings_of_rated_labels():
    """The threshold, a class that nobody rates, has the rating 0."""
    rng = np.random.default_rng(3)
    ratings = rng.normal(size=(200, 4, 3))
    relevant = (ratings[:, :, 1] > 0).astype(int)
    relevant[0] = 1
    X = Ratings.from_dense(ratings, range(4))
    sets = OnlineMultilabelClassifier("sub-experts").fit(X, relevant)
    assert (sets.predict(X[100:]) == relevant[100:]).mean() > 0.9
    ranks = 1 + np.argsort(np.argsort(-ratings[:, :, 2]))
    assert progressive_validate(OnlineLabelRanker("sub-experts"), X, ranks).kendall_tau > 0.9


def test_progressive_validation_and_comparison_of_blocks():
    council = make_council(12, m=200)
    model = learner("shared", "perceptron")
    result = progressive_validate(model, council.dense(), council.y)
    rows = replace(Rows.from_dense(council.attributes), ratings=council.entries())
    learners = {family: learner(family, "perceptron") for family in FAMILIES}
    comparison = Comparison(learners)
    list(comparison.run([Block(rows[:70], council.y[:70].tolist())]))
    list(comparison.run([Block(rows[70:], council.y[70:].tolist())]))
    assert comparison.results()["shared"].n_mistakes == result.n_mistakes > 0
    scores = learners["shared"]._fitted().scores(rows)
    np.testing.assert_array_equal(scores, model._scores(council.dense()))


# ---- what is refused ----------------------------------------------------------------------------

ONES = np.ones((2, 3, 4))
REFUSED: dict[str, tuple[Any, str]] = {
    "two dimensions": (lambda: Ratings.from_dense(ONES[0], "ab"), r"shape \(3, 4\)"),
    "ragged": (lambda: Ratings.from_dense([[[1], [1, 2]]], "ab"), "must be an array of numbers"),
    "text": (lambda: Ratings.from_dense([[["x"]]], "a"), "not of numbers"),
    "labels": (lambda: Ratings.from_dense(ONES, "ab"), "of 3 classes, but there are 2 labels"),
    "a label twice": (lambda: Ratings.from_dense(ONES, "aba"), "not distinct"),
    "a list as label": (lambda: Ratings.from_dense(ONES, ["a", "b", []]), "label is invalid"),
    "NaN": (
        lambda: Ratings.from_dense(
            np.where(np.arange(24).reshape(2, 3, 4) == 18, np.nan, 1), "abc"
        ),
        "row 1, label 'b': the rating by sub-expert 2 is NaN",
    ),
    "infinity by name": (
        lambda: Ratings.from_sparse_rows([{}, {"a": {"x": 1, "y": float("inf")}}]),
        "row 1, label 'a': the rating by sub-expert 'y'",
    ),
    "too large": (lambda: Ratings.from_sparse_rows({"a": {7: 1e39}}), "sub-expert 7 is NaN, inf"),
    "arrays as sparse": (lambda: Ratings.from_sparse(ONES, "abc"), "list of scipy sparse matrices"),
    "no matrices": (lambda: Ratings.from_sparse([], "abc"), "list of scipy sparse matrices"),
    "matrices of two shapes": (
        lambda: Ratings.from_sparse([sparse.eye_array(2), sparse.eye_array(3)], "ab"),
        r"row 1 have the shape \(3, 3\)",
    ),
    "no mapping": (
        lambda: Ratings.from_sparse_rows([{}, [1.0]]),
        "row 1 are a list, not a mapping",
    ),
    "a number": (
        lambda: Ratings.from_sparse_rows({"a": 1.0}),
        "ratings of label 'a' in row 0 are 1.0",
    ),
    "a table": (lambda: Ratings.from_sparse_rows({"a": ONES[0]}), "give numbers, one for each"),
    "text as rating": (lambda: Ratings.from_sparse_rows({"a": {"x": "1"}}), "give numbers"),
    "two rows as one": (
        lambda: Ratings.from_sparse_rows({"a": sparse.eye_array(2)}),
        "give a matrix of one row",
    ),
    "names and numbers in one": (
        lambda: Ratings.from_sparse_rows({"a": {"x": 1.0, 3: 1.0}}),
        "name the sub-expert 'x'",
    ),
    "names and numbers": (
        lambda: Ratings.from_sparse_rows([{"a": {"x": 1.0}}, {"a": [1.0]}]),
        "label 'a' in row 1 and those before identify sub-experts",
    ),
    "a number below 0": (
        lambda: Ratings.from_sparse_rows({"a": {-1: 1.0}}),
        "name the sub-expert -1",
    ),
}


@pytest.mark.parametrize(("attempt", "said"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_rating_is_refused(attempt, said):
    with pytest.raises(KeslerError, match=said) as caught:
        attempt()
    assert len(str(caught.value).split()) > 8


def fitted(**options: Any) -> OnlineClassifier:
    settings = {"a": [1.0, 0.0], "b": [0.0, 1.0]}
    return OnlineClassifier("sub-experts", update="pa1", **options).fit(
        [settings] * 3, ["a", "b", "b"]
    )


REFUSED_BY_LEARNERS: dict[str, tuple[Any, str]] = {
    "no ratings": (lambda m: m.partial_fit(np.eye(2), ["a", "b"]), "the rows have no ratings"),
    "an event without": (lambda m: m.learn_one([1.0, 2.0], "a"), "the rows have no ratings"),
    "an array of three dimensions": (
        lambda m: m.partial_fit(ONES, ["a", "b"]),
        "does not say which classes its columns rate",
    ),
    "too few answers": (lambda m: m.partial_fit([{"a": [1.0]}], ["a", "b"]), "inconsistent"),
    "attributes of other rows": (
        lambda m: m.partial_fit(Ratings.from_dense(ONES, "abc", np.ones((3, 1))), ["a", "b", "a"]),
        "of 2 rows, but their attributes of 3",
    ),
    "two rows as an event": (
        lambda m: m.learn_one(Ratings.from_sparse_rows([{"a": [1.0]}] * 2), "a"),
        "of 2 rows, but their attributes of 1",
    ),
    "labels of another type": (
        lambda m: m.partial_fit(Ratings.from_dense(ONES, [1, 2, 3]), ["a", "c"]),
        "cannot be ordered among labels like 'a'",
    ),
    "the same, to predict": (
        lambda m: m.predict(Ratings.from_dense(ONES, [1, 2, 3])),
        "cannot be ordered among labels like 'a'",
    ),
    "names after numbers": (
        lambda m: m.partial_fit([{"a": {"x": 1.0}}], ["a"]),
        "identifies its sub-experts by number",
    ),
    "a rating that is none": (lambda m: m.learn_one({"a": {"x": "y"}}, "a"), "give numbers"),
    "a rating that is NaN": (lambda m: m.predict_one({"a": [np.nan, 0]}), "row 0, label 'a'"),
}


@pytest.mark.parametrize(("attempt", "said"), REFUSED_BY_LEARNERS.values(), ids=REFUSED_BY_LEARNERS)
def test_rows_that_do_not_fit_are_refused_and_leave_no_trace(attempt, said):
    model = fitted()
    before = learnt(model)
    with pytest.raises(KeslerError, match=said):
        attempt(model)
    assert learnt(model) == before


def test_names_of_sub_experts_are_forgotten_if_their_row_is_refused():
    model = OnlineClassifier("sub-experts", update="pa1").learn_one({"a": {"x": 1.0}}, "a")
    before = learnt(model)
    refusals = [
        lambda: model.learn_one({"a": {"new": 1.0}}, 3),
        lambda: model.learn_one({"a": {"new": 1.0}, 3: {"newer": 1.0}}, "a"),
        lambda: model.partial_fit([{"a": {"new": 1.0}, 3: {}}], ["a"]),
        lambda: model.partial_fit([{"a": {"new": 1.0}}], ["a"], sample_weight=[-1]),
        lambda: model.learn_one({"a": [1.0]}, "a"),
    ]
    for refused in refusals:
        with pytest.raises(KeslerError):
            refused()
        assert learnt(model) == before


def test_ratings_are_refused_by_learners_that_do_not_look_at_them():
    with pytest.raises(KeslerError, match="no part of this learner reads them"):
        OnlineClassifier("multi", update="pa1").fit(Ratings.from_dense(ONES, "abc"), ["a", "b"])


def test_attributes_that_were_learnt_from_are_asked_for():
    X = Ratings.from_dense(ONES, "abc", attributes=np.eye(2))
    model = OnlineClassifier("multi+sub-experts", update="pa1").fit(X, ["a", "b"])
    with pytest.raises(KeslerError, match="learnt from 2 attributes"):
        model.predict(Ratings.from_dense(ONES, "abc"))
    with pytest.raises(KeslerError, match="learnt from 2 attributes"):
        model.predict_one({"a": [1.0]})


def test_rows_to_predict_have_ratings_and_attributes_for_each():
    X = Ratings.from_dense(ONES, "abc", attributes=np.eye(2))
    model = OnlineClassifier("multi+sub-experts", update="pa1").fit(X, ["a", "b"])
    for n in (1, 3):
        with pytest.raises(KeslerError, match=f"of 2 rows, but their attributes of {n}:"):
            model.predict(Ratings.from_dense(ONES, "abc", attributes=np.ones((n, 2))))
    with pytest.raises(KeslerError, match="of 2 rows, but their attributes of 1:"):
        model.predict_one(Ratings.from_dense(ONES, "abc", attributes=np.ones((1, 2))))


def test_attributes_may_be_named_and_new():
    model = OnlineClassifier("multi+sub-experts", update="perceptron")
    for label, word in [("a", "x"), ("b", "y"), ("b", "y"), ("a", "x")]:
        settings = {"a": {"one": 1.0}, "b": {"one": 1.0}}
        model.learn_one(Ratings.from_sparse_rows(settings, attributes={word: 1.0}), label)
    assert model.vocabulary_.names == ["x", "y"] and model.sub_experts_.names == ["one"]
    assert model.predict_one(Ratings.from_sparse_rows({}, attributes={"y": 1.0})) == "b"
    rows = [Ratings.from_sparse_rows({}, attributes={"x": 1.0})] * 1
    assert [model.predict_one(row) for row in rows] == ["a"]


def test_a_map_that_looks_at_zeros_stands_beside_sub_experts():
    council = make_council(13)
    view = homemade.closeness
    model = OnlineClassifier([Shared(view), Shared(SubExperts())], update="pa1").fit(
        council.dense(), council.y
    )
    assert_same(
        model,
        OnlineClassifier([Shared(view), Shared(SubExperts())], update="pa1").fit(
            council.entries(), council.y
        ),
        council.dense(),
    )


def test_scikit_learn_can_split_ratings():
    X = Ratings.from_dense(np.tile(ONES, (6, 1, 1)), "abc", attributes=np.arange(6 * len(ONES)))
    numbers = np.array([3, 0, 5])
    for some in (X[numbers], X[numbers, ...], X[numbers.tolist()]):
        assert len(some) == 3 and some.attributes.tolist() == [3, 0, 5]
    assert X.shape == (len(X),) and len(X[np.arange(len(X)) % 2 == 0]) == (len(X) + 1) // 2


def test_a_step_along_ratings_too_large_for_float32_is_skipped():
    model = OnlineClassifier([Shared(SubExperts())], update="perceptron")
    model.partial_fit(Ratings.from_dense(np.ones((2, 2, 1)), [0, 1]), [0, 1])
    before = model._learner.weights.copy()
    huge = np.array([[[0.0], [1e38]], [[1e38], [0.0]]])
    with pytest.raises(KeslerError, match="the step was skipped"):
        model.partial_fit(Ratings.from_dense(huge, [0, 1]), [0, 1])
    np.testing.assert_array_equal(model._learner.weights, before)
