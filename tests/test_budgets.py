"""Policies of budgets: their reference, their laws, files, and what is refused."""

from __future__ import annotations

import math
import pickle
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

import homemade
from kesler import (
    KeslerError,
    OnlineClassifier,
    OnlineMultilabelClassifier,
    load,
    mistake_bound,
    progressive_validate,
)
from kesler.bounds.kernels import KernelCompetition, KernelRun, KernelTheorem
from kesler.budgets import POLICIES, Budget, resolve_budget
from kesler.data import model_file
from kesler.kernels import KERNELS
from kesler.updates import MarginPerceptron, PassiveAggressive
from reference_budgets import reference_budget_run
from reference_kernels import KERNELS as ORACLE_KERNELS
from reference_kernels import SETTINGS
from registry import CUSTOM, Row
from streams import (
    Stream,
    assert_labels_are_only_names,
    assert_same,
    assert_same_in_any_split,
    held,
    learnt,
    make_stream,
    run_trials,
    streams,
)

OURS = {
    **{name: make(**SETTINGS.get(name, {})) for name, make in KERNELS.items()},
    "overlap": homemade.overlap,
    "cauchy": homemade.cauchy,
}
RULES = {"": "perceptron", "Perceptron": "perceptron", "MarginPerceptron": "margin-perceptron"}


@dataclass(frozen=True)
class Case:
    """A learner over a kernel with a budget."""

    policy: str
    kernel: str = "rbf"
    family: str = "multi"
    view: str | None = None
    rule: str | None = None
    size: int = 6
    eta: float | None = None

    @property
    def name(self) -> str:
        return "-".join(str(value) for value in vars(self).values() if value is not None)

    @property
    def row(self) -> Row:
        return Row(self.rule or RULES[POLICIES[self.policy].rule], self.family, self.view)

    @property
    def budget(self) -> Budget:
        return Budget(self.size, self.policy, self.eta)

    def learner(self, **given: Any) -> OnlineClassifier:
        chosen = {"kernel": OURS[self.kernel], "budget": self.budget, **given}
        return self.row.learner().set_params(**chosen)

    def oracle(self, stream: Stream) -> dict[str, Any]:
        row, K = self.row, ORACLE_KERNELS[self.kernel]
        return reference_budget_run(stream.X, stream.y, row.oracle(), row.rule, K, self.budget)


CASES = [
    *(Case(policy) for policy in POLICIES),
    *(Case(policy, size=1) for policy in POLICIES),
    *(Case(policy, size=30) for policy in POLICIES),
    *(Case(p, eta=eta, size=25) for p in ("projectron", "projectron++") for eta in (0.4, 0.8)),
    Case("projectron", eta=0.0, size=12),
    *(Case(p, k) for p in ("forgetron", "projectron") for k in ("polynomial", "overlap", "cauchy")),
    Case("projectron", "linear", size=20),
    Case("projectron++", "cauchy"),
    *(Case(p, rule=r) for p in ("smallest", "projectron") for r in ("pa1", "simproj", "mira")),
    *(
        Case(policy, "rbf", family, view)
        for policy in ("smallest", "forgetron", "projectron")
        for family, view in (
            ("hybrid", "difference"),
            ("grouped", None),
            ("own-view", "difference"),
        )
    ),
]
LAWFUL = [
    Case("smallest", rule="pa1"),
    Case("forgetron"),
    Case("projectron"),
    Case("projectron++", size=20, eta=0.5),
    Case("projectron", "overlap"),
    Case("projectron", "polynomial", "grouped", rule="simproj"),
    Case("forgetron", "rbf", "hybrid", "difference"),
    Case("projectron", "rbf", "hybrid", "difference"),
]
SPARSE = [case for case in LAWFUL if case.kernel != "overlap" and case.view is None]


def every(cases: list[Case]) -> Any:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


# ---- the reference ------------------------------------------------------------------------------


def assert_follows(case: Case, stream: Stream) -> int:
    """Compare a run with the oracle's up to where rounding decides; return how far that is."""
    run = case.oracle(stream)
    stop, model, predictions = run["doubtful"], case.learner(), []
    for t, x in enumerate(stream.X[:stop]):
        if model.n_known_:
            size = 1.0 + np.abs(run["scores"][t]).max()
            tolerance = (2e-2 if case.row.rule == "mira" else 2e-3) * size
            assert_allclose(model._scores(x[None])[0], run["scores"][t], atol=tolerance, rtol=0)
        predictions.extend(run_trials(model, x[None], stream.y[t : t + 1])[0])
    assert predictions == run["predictions"][:stop]
    if stop == len(stream):
        assert model.n_support_vectors_ == run["n_supports"]
        if POLICIES[case.policy].is_measured:
            sums = model._learner.supports.stored["sums"][:, 1:5]
            assert_allclose(sums, run["sums"], rtol=1e-3, atol=1e-3 * len(stream))
    return stop


@every(CASES)
def test_every_policy_is_as_in_the_oracle(case):
    reached = 0
    for seed in range(4):
        stream = make_stream(seed, n_rows=60, n_classes=4, n_features=4, density=1.0)
        reached += assert_follows(case, stream)
    assert reached > 60  # of 240


@settings(max_examples=40, deadline=None)
@given(
    stream=streams(max_rows=60),
    policy=st.sampled_from(list(POLICIES)),
    size=st.integers(1, 20),
    eta=st.sampled_from([0.05, 0.3, 0.7]),
)
def test_every_policy_is_as_in_the_oracle_on_any_stream(stream, policy, size, eta):
    projects = POLICIES[policy].projects
    assert_follows(Case(policy, size=size, eta=eta if projects else None), stream)


@settings(max_examples=30, deadline=None)
@given(stream=streams(max_rows=60), size=st.integers(2, 40), share=st.booleans())
def test_the_inverse_is_that_of_the_gram_matrix(stream, size, share):
    sigma = "auto" if share else 2.5
    model = Case("projectron", size=size, eta=0.2).learner(kernel="rbf", sigma=sigma)
    model.fit(stream.X, stream.y)
    stored = model._learner.supports.stored
    n, panels = int(stored["following"][0]), stored["panels"][0]
    U = panels.transpose(0, 2, 1).reshape(-1, panels.shape[1])[:n].astype(float)
    factor = stored["widths"][0] if share else 0.5 / sigma
    K = np.exp(-factor * ((U[:, None] - U) ** 2).sum(axis=2))
    assert_allclose(stored["inverse"][0, :n, :n] @ K, np.eye(n), atol=2e-2)


def test_without_a_distance_to_project_a_projectron_is_the_perceptron():
    stream = make_stream(2, n_rows=200, density=1.0)
    model = Case("projectron", size=500, eta=0.0).learner().fit(stream.X, stream.y)
    plain = Case("least-recent", size=500).learner().fit(stream.X, stream.y)
    assert model.n_mistakes_ == plain.n_mistakes_
    assert model.n_support_vectors_ == plain.n_support_vectors_
    scores = plain.decision_function(stream.X)
    assert_allclose(model.decision_function(stream.X), scores, atol=1e-3)


def test_a_number_and_the_least_recent_policy_are_the_same():
    stream = make_stream(3, n_rows=200)
    one = Case("least-recent", size=9).learner().fit(stream.X, stream.y)
    other = one.set_params(budget=9).fit(stream.X, stream.y)
    assert_same(one, other, stream.X)
    assert resolve_budget(np.int64(9)) == 9


def test_a_projectron_makes_fewer_mistakes_than_removal():
    stream = make_stream(1, n_rows=2000, n_classes=8, n_features=3, density=1.0)
    n_mistakes = {
        policy: Case(policy, size=40).learner().fit(stream.X, stream.y).n_mistakes_
        for policy in ("least-recent", "projectron")
    }
    assert n_mistakes["projectron"] < 0.95 * n_mistakes["least-recent"]


# ---- bounds -------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(
    stream=streams(max_rows=80),
    policy=st.sampled_from(["forgetron", "projectron", "projectron++"]),
    size=st.sampled_from([1, 5, 20, 100]),
)
def test_8_no_run_makes_more_mistakes_than_its_theorem_allows(stream, policy, size):
    for budget in (Budget(size, policy), None if policy != "projectron++" else Budget(9, policy)):
        model = Case(policy).learner(kernel="rbf", sigma=2.5, budget=budget)
        bound = mistake_bound(model, stream.X, stream.y)
        assert bound.n_mistakes <= bound.bound * (1 + 1e-6)


@pytest.mark.parametrize("policy", ["forgetron", "projectron"])
def test_a_bound_on_a_separable_stream_is_of_use(policy):
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0], [4, 4], [0, 4], [4, 0]], dtype=float)
    y = np.r_[0:4, rng.integers(4, size=1500)]
    X = centres[y] + 0.3 * rng.normal(size=(len(y), 2))
    model = Case(policy).learner(kernel="rbf", sigma=2.0, budget=Budget(100, policy))
    result = progressive_validate(model, X, y)
    bound = mistake_bound(result)
    assert bound.n_mistakes == result.n_mistakes <= bound.bound < 0.1 * bound.n_compared


def test_the_theorem_of_the_forgetron_is_used_where_it_holds():
    of = KernelCompetition(loss=np.array([3.0, 3.0]), squared_norm=np.array([0.1, 100.0]))
    theorem = KernelTheorem("", np.zeros(7), math.sqrt(2), 500, is_prior=True)
    most = math.sqrt(501 / math.log(501)) / 4
    assert math.sqrt(0.2) <= most < math.sqrt(200)
    assert theorem.bound(of).tolist() == [2 * 2 * 0.1 + 12, math.inf]


@settings(max_examples=20, deadline=None)
@given(stream=streams(max_rows=60), name=st.sampled_from(["rbf", "polynomial", "cauchy"]))
def test_norms_of_competitors_are_those_of_their_support_vectors(stream, name):
    model = Case("projectron", name).learner(budget=None)
    made = model._prepared(dense=True)
    run = KernelRun(made, list(model._blocks(stream.X, stream.y)))
    searcher = run.learner(PassiveAggressive(0.3))
    scores, _ = run.learn(searcher)
    square = run._grown(run.leads(scores, run.n_known), 0.3, run.n_known)
    stored = searcher.supports.stored
    n, panels, starts = stored["following"][0], stored["panels"][0], stored["entry_starts"][0]
    U = panels.transpose(0, 2, 1).reshape(-1, panels.shape[1])[:n, : stream.X.shape[1]]
    beta = np.zeros((n, run.n_classes))
    for s in range(n):
        for e in range(starts[s], starts[s + 1]):
            beta[s, stored["owners"][0, e]] += stored["coefficients"][0, e]
    K = np.array([ORACLE_KERNELS[name](U.astype(float), u.astype(float)) for u in U])
    expected = np.einsum("ir,ij,jr", beta, K.reshape(n, n), beta)
    assert_allclose(square, expected, rtol=1e-3, atol=1e-4)
    assert_allclose(run.squares, [ORACLE_KERNELS[name](x[None], x)[0] for x in stream.X], rtol=1e-5)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"budget": 5}, "no theorem that bounds the mistakes within budget=5"),
        ({"budget": Budget(5, "smallest")}, "within budget=Budget(size=5, policy='smallest'"),
        ({"update": "pa1"}, "over a kernel"),
        ({"hypotheses": "hybrid"}, "one hypothesis per class"),
        ({"sigma": "auto"}, "changes during the run"),
        ({"preprocessing": "z-scores"}, "changes during the run"),
        (
            {
                "update": MarginPerceptron(),
                "budget": Budget(5, "projectron++"),
                "costs": {(0, 1): 2.0},
            },
            "no theorem covers costs",
        ),
        ({"on_new_class": "learn"}, "no theorem covers"),
    ],
)
def test_what_has_no_bound_is_refused_with_a_sentence(parameters, words):
    chosen = {"sigma": 1.0, "preprocessing": None, "on_new_class": "register", **parameters}
    chosen = {"hypotheses": "multi", "update": "perceptron", "kernel": "rbf", **chosen}
    stream = make_stream(3)
    with pytest.raises(KeslerError, match=re.escape(words)):
        mistake_bound(OnlineClassifier(**chosen), stream.X, stream.y)


def test_a_bound_over_a_kernel_takes_no_weights_as_competitor():
    stream = make_stream(3)
    with pytest.raises(KeslerError, match="hindsight"):
        mistake_bound(Case("projectron").learner(), stream.X, stream.y, competitor=[stream.X])


# ---- the laws -----------------------------------------------------------------------------------


@every(LAWFUL)
def test_1_any_split_into_batches_is_the_same(case):
    stream = make_stream(3, n_rows=300, n_classes=6)
    assert_same_in_any_split(case.learner, stream, [1, 5, 6, 90, 250])


@every([case for case in LAWFUL if case.family != "grouped"])
def test_2_and_3_labels_are_only_names(case):
    assert_labels_are_only_names(case.learner)


@every(SPARSE)
def test_4_dense_sparse_and_named_rows_are_the_same(case):
    stream = make_stream(6, n_rows=150, n_classes=6, density=0.5)
    names = [f"x{j}" for j in range(stream.X.shape[1])]
    named = [{n: v for n, v in zip(names, x, strict=True) if v} for x in stream.X.tolist()]
    models = [case.learner() for _ in range(3)]
    for model, X in zip(models, (stream.X, sparse.csr_array(stream.X), named), strict=True):
        model.fit(X, stream.y)
    assert len({model.n_mistakes_ for model in models}) == 1
    assert models[0].n_support_vectors_ == models[2].n_support_vectors_
    scores = models[0].decision_function(stream.X)
    assert_allclose(models[2].decision_function(named), scores, atol=1e-3, rtol=1e-3)


@every(LAWFUL)
@pytest.mark.parametrize("way", ["file", "pickle"])
@pytest.mark.parametrize("is_estimated", [True, False])
def test_5_save_load_go_on_is_never_stopped(case, way, is_estimated, tmp_path):
    kernel = {"kernel": "rbf", "sigma": "auto"} if is_estimated else {}
    stream = make_stream(7, n_rows=300, n_classes=6)
    model = case.learner(**kernel).partial_fit(stream.X[:150], stream.y[:150])
    whole = case.learner(**kernel).partial_fit(stream.X, stream.y)
    if way == "file":
        model.save(tmp_path / "model")
        restored = load(tmp_path / "model", custom=[*CUSTOM, homemade.overlap])
        assert restored.budget == model.budget
    else:
        restored = pickle.loads(pickle.dumps(model))
    assert learnt(restored) == learnt(model)
    restored.partial_fit(stream.X[150:], stream.y[150:])
    assert_same(restored, whole, stream.X)


@every(SPARSE)
def test_5_sparse_models_go_on_too(case, tmp_path):
    stream = make_stream(8, n_rows=300, n_classes=6, density=0.3)
    X = sparse.csr_array(stream.X)
    whole = case.learner().partial_fit(X, stream.y)
    case.learner().partial_fit(X[:170], stream.y[:170]).save(tmp_path / "model")
    restored = load(tmp_path / "model", custom=CUSTOM)
    assert_same(restored.partial_fit(X[170:], stream.y[170:]), whole, X)


@every(LAWFUL)
def test_6_predicting_changes_nothing(case):
    stream = make_stream(9, n_rows=60)
    model = case.learner().fit(stream.X, stream.y)
    before = held(model)
    model.predict(stream.X), model.decision_function(stream.X), model.predict_one(stream.X[0])
    assert held(model) == before


@every(LAWFUL)
def test_the_number_of_support_vectors_stays_within_the_budget(case):
    stream = make_stream(1, n_rows=1500, n_classes=8, n_features=3)
    for X in (stream.X, sparse.csr_array(stream.X)):
        if case not in SPARSE and X is not stream.X:
            continue
        model, capacities = case.learner(), set()
        for start, stop in pairwise(range(0, 1501, 300)):
            model.partial_fit(X[start:stop], stream.y[start:stop])
            assert max(model.n_support_vectors_) <= case.size
            capacities.add(model._learner.supports.stored["squared_norms"].shape[1])
        assert max(capacities) <= 1024


def test_label_sets_are_learnt_within_budgets():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    sets = np.c_[(X**2).sum(axis=1) < 1.4, X[:, 0] > 0].astype(int)
    model = OnlineMultilabelClassifier(
        "multi", kernel="rbf", sigma=0.3, preprocessing=None, budget=Budget(60, "projectron")
    )
    model.fit(X[:500], sets[:500])
    assert model.n_support_vectors_ == [60]
    assert (model.predict(X[500:]) == sets[500:]).mean() > 0.88


# ---- files --------------------------------------------------------------------------------------

DAMAGE: dict[str, Any] = {
    "an inverse that is not finite": ("inverse", lambda a: np.full_like(a, np.nan)),
    "an inverse of another size": ("inverse", lambda a: a[:, :-1]),
    "sums of another size": ("sums", lambda a: a[:, :3]),
    "a width below 0": ("widths", lambda a: a - 1),
    "hypotheses out of order": ("owners", lambda a: a[:, ::-1]),
    "entries of other lengths": ("entry_starts", lambda a: np.maximum(a - (a > 3), 0)),
    "more support vectors than the budget": ("following", lambda a: a + 1),
    "support vectors no longer in use": ("oldest", lambda a: a + 1),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_files_are_refused_in_a_sentence(name, tmp_path):
    stream = make_stream(7, n_rows=100)
    path = tmp_path / "model"
    Case("projectron").learner().fit(stream.X, stream.y).save(path)
    arrays, metadata = model_file.load(path)
    array, damage = DAMAGE[name]
    arrays = dict(arrays)
    arrays[f"supports.{array}"] = np.ascontiguousarray(damage(arrays[f"supports.{array}"]))
    model_file.save(path, arrays, metadata)
    with pytest.raises(KeslerError, match=r"\w+ \w+ \w+ \w+"):
        load(path)


@pytest.mark.parametrize(
    "budget",
    [
        {"name": "budgets.Budget", "fields": {"size": -1, "policy": "projectron", "eta": None}},
        {"name": "budgets.Budget", "fields": {"size": 6, "policy": "forgetron", "eta": 1.0}},
        {"name": "budgets.Budget", "fields": {"size": 6, "policy": [], "eta": None}},
        {"name": "budgets.Budget", "fields": {"length": 6}},
        {"name": "kernels.RBF", "fields": {}},
        {"fields": {}},
        [6],
        0,
    ],
)
def test_budgets_that_a_file_cannot_mean_are_refused(budget, tmp_path):
    stream = make_stream(7, n_rows=40)
    path = tmp_path / "model"
    Case("projectron").learner().fit(stream.X, stream.y).save(path)
    arrays, metadata = model_file.load(path)
    in_use = metadata["resolved"]["parameters"]
    in_use["budget"] = {"part": budget} if isinstance(budget, dict) else budget
    model_file.save(path, arrays, metadata)
    with pytest.raises(KeslerError, match=r"\w+ \w+ \w+ \w+"):
        load(path)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), policy=st.sampled_from(["forgetron", "projectron"]))
def test_any_sums_and_inverse_that_a_file_may_hold_can_be_used(seed, policy, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    stream, rng = make_stream(7, n_rows=80), np.random.default_rng(seed)
    case = Case(policy)
    case.learner().fit(stream.X[:40], stream.y[:40]).save(path)
    arrays, metadata = model_file.load(path)
    arrays = dict(arrays)
    for name in ("supports.sums", "supports.inverse"):
        if name in arrays:
            arrays[name] = rng.normal(size=arrays[name].shape) * 10.0 ** rng.integers(-9, 9)
    model_file.save(path, arrays, metadata)
    model = load(path)
    try:
        model.partial_fit(stream.X[40:], stream.y[40:])
    except KeslerError as error:
        assert "finite" in str(error) or "float32" in str(error)
    assert max(model.n_support_vectors_) <= case.size


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Budget(0), "size must be an integer of 1 or more"),
        (lambda: Budget(2.5), "size must be an integer"),
        (lambda: Budget(True), "size must be an integer"),
        (lambda: Budget("500"), "size must be an integer"),
        (lambda: Budget(5, "random"), "choose one of least-recent, smallest"),
        (lambda: Budget(5, ["projectron"]), "choose one of"),
        (lambda: Budget(5, eta=0.1), "projects none"),
        (lambda: Budget(5, "forgetron", 0.1), "projects none"),
        (lambda: Budget(5, "projectron", -0.1), "0 or more"),
        (lambda: Budget(5, "projectron", float("nan")), "finite number"),
        (lambda: Budget(5, "projectron", "0.1"), "finite number"),
        (lambda: Budget(5, "projectron", True), "finite number"),
        (lambda: Budget(5, "projectron++", 0), "above 0"),
        (lambda: resolve_budget("projectron"), "a kesler.budgets.Budget, or None"),
    ],
)
def test_budgets_that_are_none_are_refused_where_they_are_made(make, words):
    with pytest.raises(KeslerError, match=re.escape(words)):
        make()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"budget": Budget(5, "forgetron"), "update": "pa1"}, "defined for the rule Perceptron"),
        ({"budget": Budget(5, "projectron++")}, "defined for the rule MarginPerceptron"),
        ({"budget": Budget(5, "projectron"), "half_life": 10.0}, "omit half_life"),
        ({"budget": Budget(5, "forgetron"), "half_life": 10.0}, "omit half_life"),
        ({"budget": Budget(5, "projectron"), "preprocessing": "ranges"}, "Gram matrix"),
        (
            {
                "budget": Budget(5, "projectron++"),
                "update": MarginPerceptron(),
                "hypotheses": "hybrid",
            },
            "one part",
        ),
        ({"budget": Budget(5, "projectron"), "kernel": None}, "exist only with a kernel"),
    ],
)
def test_a_policy_that_does_not_fit_is_refused_in_a_sentence(parameters, words):
    chosen = {"hypotheses": "multi", "update": "perceptron", "kernel": "rbf", **parameters}
    with pytest.raises(KeslerError, match=re.escape(words)):
        OnlineClassifier(**chosen).fit(np.eye(3), [0, 1, 2])


def test_projections_are_in_units_that_stay():
    stream = make_stream(3)
    model = Case("projectron").learner(preprocessing="scale").fit(stream.X, stream.y)
    assert type(model._learner.preprocessing).__name__ == "ZScores"


@pytest.mark.parametrize("policy", ["smallest", "forgetron"])
def test_removal_fits_units_that_change(policy):
    stream = make_stream(3, n_rows=120, density=1.0)
    model = Case(policy).learner(preprocessing="ranges", kernel="rbf", sigma="auto")
    model.fit(stream.X, stream.y)
    assert model.n_support_vectors_ == [6]
    assert np.isfinite(model.decision_function(stream.X)).all()


def test_the_explanation_of_a_projectron_adds_up():
    stream = make_stream(3, n_rows=80)
    model = Case("projectron").learner().fit(stream.X, stream.y)
    scores = np.sort(model.decision_function(stream.X[:1])[0])
    explanation = model.explain_one(stream.X[0])
    assert_allclose([explanation.score, explanation.rival_score], scores[:-3:-1], rtol=1e-4)
    assert len(explanation.contributions) == 6
