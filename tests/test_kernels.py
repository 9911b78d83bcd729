"""Learners over Mercer kernels: their reference, their laws, budgets and what is refused."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import zlib
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import homemade
from kesler import (
    KeslerError,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    datasets,
    load,
    mercer_kernel,
    progressive_validate,
)
from kesler.hypotheses import PerClass, Shared
from kesler.kernels import KERNELS, RBF, Polynomial, resolve_kernel
from kesler.kernels.rbf import rbf
from kesler.maps import Difference, Distance, Frequency
from reference_kernels import KERNELS as ORACLE_KERNELS
from reference_kernels import SETTINGS, reference_kernel_run
from registry import CUSTOM, FAMILIES, PLAIN_RULES, ROWS, Row, covering
from streams import (
    Stream,
    assert_same,
    assert_same_but_declared,
    everything,
    in_order_of_appearance,
    learnt,
    make_stream,
    run_trials,
)

OURS = {
    **{name: make(**SETTINGS.get(name, {})) for name, make in KERNELS.items()},
    "overlap": homemade.overlap,
    "cauchy": homemade.cauchy,
}


@dataclass(frozen=True)
class Case:
    """A learner of the registry over a kernel."""

    row: Row
    kernel: str
    budget: int | None = None
    averaged: bool = False

    @property
    def name(self) -> str:
        beside = [str(self.budget)] * bool(self.budget) + ["averaged"] * self.averaged
        return "-".join([self.kernel, self.row.name, *beside])

    def learner(self, C: float = 1.0) -> OnlineClassifier:
        chosen = {"kernel": OURS[self.kernel], "budget": self.budget, "averaged": self.averaged}
        return self.row.learner(C=C).set_params(**chosen)

    def oracle(self, stream: Stream, C: float = 1.0, *, weighted: bool = False) -> dict[str, Any]:
        return reference_kernel_run(
            self.row.seen(stream.X, stream.weights if weighted else None, stream.y),
            stream.y,
            self.row.oracle(),
            self.row.rule,
            ORACLE_KERNELS[self.kernel],
            C,
            stream.weights if weighted else None,
            self.budget,
            close=1e-3 if self.row.rule == "mira" else 1e-5,
            averaged=self.averaged,
        )


BY_RULE: list[Case] = []  # every rule, over each way of sharing of the paper


def _cases() -> list[Case]:
    views = {name: "difference" if name in ("single", "hybrid") else None for name in FAMILIES}
    rows = [
        Row(rule, family, views[family])
        for rule, family in product([*PLAIN_RULES, "part_way"], ["multi", "single", "hybrid"])
    ]
    cases = [Case(row, "rbf") for row in rows]
    BY_RULE.extend(cases)
    few = [
        Row(rule, family, views[family] or ("difference" if "view" in family else None))
        for rule, family in product(
            ["perceptron", "simproj"],
            ["multi", "single", "hybrid", "own-view", "grouped", "born-view"],
        )
    ] + [Row("pa1", "all-three", "product-mean"), Row("mira", "hybrid", "frequency")]
    cases += [Case(row, kernel) for row, kernel in product(few, OURS)]
    cases += [Case(row, "rbf", budget) for row, budget in product(few[:6], [1, 7])]
    cases += [
        Case(replace(row, preprocessing=preprocessing), "rbf")
        for row in (Row("perceptron", "multi", None), Row("simproj", "hybrid", "product-mean"))
        for preprocessing in ("counts", "idf", "z-scores")
    ]
    cases += [Case(row, kernel, averaged=True) for row, kernel in zip(few, OURS, strict=False)]
    cases += [Case(Row("mira", "hybrid", "frequency"), "rbf", averaged=True)]
    return list(dict.fromkeys(cases))


CASES = _cases()
SOME = [
    case
    for case in CASES
    if case.name
    in (
        *(f"{kernel}-perceptron-multi" for kernel in KERNELS),
        "rbf-simproj-single-difference",
        "rbf-mira-hybrid-difference",
        "polynomial-simproj-grouped",
        "cauchy-perceptron-born-view-difference",
        "overlap-perceptron-hybrid-difference",
        "rbf-perceptron-hybrid-difference-7",
        "rbf-perceptron-multi-7",
        "rbf-mira-hybrid-frequency",
        "rbf-perceptron-multi-idf",
        "rbf-simproj-hybrid-product-mean-counts",
        "rbf-perceptron-multi-z-scores",
        "rbf-perceptron-multi-averaged",
        "rbf-mira-hybrid-frequency-averaged",
    )
]
SPARSE = [case for case in SOME if not case.row.dense_only and case.kernel != "overlap"]
# Where users write 1 for 1.0, compiled code counts in double and NumPy in float32.
OURS_ALONE = [case for case in SOME if case.kernel in KERNELS]
assert {case.kernel for case in SOME} >= set(KERNELS) and len(SPARSE) >= 6


def every(cases: list[Case]) -> Any:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


# ---- the reference
# -----------------------------------------------------------------------------------


def assert_follows(case: Case, stream: Stream, C: float, *, weighted: bool = False) -> int:
    """Compare a run with the oracle's up to where rounding decides; return how far that is."""
    run = case.oracle(stream, C, weighted=weighted)
    stop = run["doubtful"]
    model, trials = case.learner(C), stream[:stop]
    predictions = []
    for t, x in enumerate(trials.X):
        if model.n_known_:
            size = 1.0 + np.abs(run["scores"][t]).max()
            scores = model._scores(x[None])[0]
            tolerance = 2e-2 if case.row.rule == "mira" else 2e-3
            assert_allclose(scores, run["scores"][t], atol=tolerance * size, rtol=0)
        weight = trials.weights[t : t + 1] if weighted else None
        predictions.extend(run_trials(model, x[None], trials.y[t : t + 1], weight)[0])
    assert predictions == run["predictions"][:stop]
    if stop == len(stream):
        assert model.n_mistakes_ == run["mistakes"]
        assert model.n_support_vectors_ == run["n_supports"]
    return stop


def few(cases: list[Case], *pairs_with: str) -> list[Case]:
    """Return cases with every part of the learner; see `covering`."""
    return covering(
        cases,
        *pairs_with,
        of=lambda case: (
            vars(case.row)
            | {"kernel": case.kernel, "budget": case.budget, "averaged": case.averaged}
        ),
    )


@every(few(CASES, "kernel"))
def test_every_rule_over_every_kernel_is_as_in_the_oracle(case):
    reached = 0
    for seed in range(4):
        stream = make_stream(seed, n_rows=40, n_classes=4, n_features=5, density=1.0)
        weighted = seed % 2 == 1
        reached += assert_follows(case, stream, [1.0, 0.1][seed // 2], weighted=weighted)
    assert reached > 24  # of 160: the first rows tie or decide nothing


@every(few(BY_RULE))
def test_200_trials_on_a_real_set_are_as_in_the_oracle(case):
    digits = datasets.load("pendigits")
    rows = slice(1000, 1200)
    X = (np.asarray(digits.X, dtype=float)[rows] / 50 - 1).astype(np.float32).astype(float)
    stream = Stream(X, in_order_of_appearance(digits.y[rows]), np.ones(200))
    assert assert_follows(case, stream, 1.0) > (4 if case.row.rule == "mira" else 15)


@pytest.mark.parametrize("rule", PLAIN_RULES)
@pytest.mark.parametrize("family", ["multi", "grouped", "hybrid"])
def test_the_linear_kernel_predicts_what_weights_do(rule, family):
    row = Row(rule, family, "product-mean" if family == "hybrid" else None)
    for seed in range(5):
        stream = make_stream(seed, n_rows=60)
        weights, kernel = row.learner(), row.learner().set_params(kernel="linear")
        weights.fit(stream.X, stream.y), kernel.fit(stream.X, stream.y)
        if weights.n_mistakes_ != kernel.n_mistakes_:
            continue  # a tie that rounding decides
        one, other = weights.decision_function(stream.X), kernel.decision_function(stream.X)
        assert_allclose(one, other, atol=3e-3 * (1 + np.abs(one).max()), rtol=0)
        return
    pytest.fail("no stream on which rounding decides nothing")


@settings(max_examples=200, deadline=None)
@given(
    distance=st.floats(0, 1e6, width=32),
    sigma=st.floats(1e-3, 1e3),
)
def test_the_exponential_is_right_to_a_ten_millionth(distance, sigma):
    q = (np.float32(RBF(sigma).parameters[0]),)
    t = float(np.float32(-np.float32(distance) * q[0]))
    value = float(rbf(np.float32(0), np.float32(distance), q))
    if t < -80:
        assert value == 0
    else:
        assert value == pytest.approx(np.exp(t), rel=1e-7, abs=0)


def bits_of(case: Case) -> int:
    """Return a sum over all that a case learns of 30 rows, and over its scores."""
    stream = make_stream(5, n_rows=30)
    model = case.learner().fit(stream.X, stream.y)
    arrays = model._learner.arrays()
    bits = b"".join(arrays[name].tobytes() for name in sorted(arrays))
    return zlib.crc32(bits + model.decision_function(stream.X).tobytes())


def test_interpreted_trials_have_the_same_bits():
    code = """
import sys
sys.path.insert(0, "tests")
from test_kernels import OURS_ALONE, bits_of
print(*map(bits_of, OURS_ALONE))
"""
    there = "0" if os.environ.get("NUMBA_DISABLE_JIT") == "1" else "1"
    assert [*map(int, _output(code, there).split())] == [*map(bits_of, OURS_ALONE)]


def _output(code: str, disabled: str) -> str:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": disabled}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


# ---- the laws -----------------------------------------------------------------------------------


@every(SOME)
def test_1_any_split_into_batches_is_the_same(case):
    stream = make_stream(3, n_rows=400, n_classes=6)
    whole, pieces = case.learner().partial_fit(stream.X, stream.y), case.learner()
    for start, stop in pairwise([0, 1, 5, 6, 90, 250, 400]):
        pieces.partial_fit(stream.X[start:stop], stream.y[start:stop])
    events = case.learner()
    for x, y in zip(stream.X, stream.y, strict=True):
        events.learn_one(x, y)
    assert_same(whole, pieces, stream.X)
    assert_same(whole, events, stream.X)


@every(SOME)
def test_2_declaring_classes_changes_nothing(case):
    stream = make_stream(4, n_rows=80)
    declared = case.learner().partial_fit(stream.X, stream.y, classes=range(100))
    assert_same_but_declared(case.learner().partial_fit(stream.X, stream.y), declared, stream.X)


@every([case for case in SOME if case.row.family in ("multi", "single", "hybrid")])
def test_3_renaming_changes_names_only(case):
    stream = make_stream(5, n_rows=60)
    names = np.array([*"hgfed"])
    plain = progressive_validate(case.learner(), stream.X, stream.y)
    renamed = progressive_validate(case.learner(), stream.X, names[stream.y])
    assert renamed.curve.tolist() == plain.curve.tolist()


@every(SPARSE)
def test_4_dense_sparse_and_named_rows_are_the_same(case):
    stream = make_stream(6, n_rows=150, n_classes=6, density=0.5)
    names = [f"x{j}" for j in range(stream.X.shape[1])]
    forms = [
        stream.X,
        sparse.csr_array(stream.X),
        [{n: v for n, v in zip(names, x, strict=True) if v} for x in stream.X.tolist()],
    ]
    models, runs = [case.learner() for _ in forms], []
    for model, X in zip(models, forms, strict=True):
        runs.append(progressive_validate(model, X, stream.y).curve.tolist())
    assert runs[0] == runs[1] == runs[2]
    scores = [model.decision_function(X) for model, X in zip(models, forms, strict=True)]
    assert_array_equal(scores[0], scores[1])
    assert_allclose(scores[0], scores[2], atol=1e-4, rtol=1e-4)


def test_4_support_vectors_of_sparse_rows_store_their_non_zeros():
    rng = np.random.default_rng(0)
    rows = [{f"w{word}": 1.0 for word in rng.integers(100_000, size=20)} for _ in range(500)]
    y = rng.integers(5, size=500)
    model = OnlineClassifier("multi", update="perceptron", kernel="rbf", sigma=10.0).fit(rows, y)
    supports = model._learner.supports
    assert model.n_support_vectors_[0] > 200
    held = [array.nbytes for array in supports.stored.values()]
    assert sum(held) < 100 * 20 * model.n_support_vectors_[0]


@every(SOME)
@pytest.mark.parametrize("way", ["file", "pickle", "joblib"])
def test_5_save_load_go_on_is_never_stopped(case, way, tmp_path):
    stream = make_stream(7, n_rows=300, n_classes=6)
    model = case.learner().partial_fit(stream.X[:150], stream.y[:150])
    whole = case.learner().partial_fit(stream.X, stream.y)
    path = tmp_path / "model"
    if way == "file":
        model.save(path)
        restored = load(path, custom=[*CUSTOM, homemade.overlap, homemade.cauchy])
        assert restored.kernel == model.kernel and restored.budget == model.budget
    elif way == "pickle":
        restored = pickle.loads(pickle.dumps(model))
    else:
        joblib.dump(model, path)
        restored = joblib.load(path, mmap_mode="r")
    assert learnt(restored) == learnt(model)
    restored.partial_fit(stream.X[150:], stream.y[150:])
    assert_same(restored, whole, stream.X)


def test_5_sparse_models_go_on_too(tmp_path):
    stream = make_stream(8, n_rows=300, n_classes=6, density=0.3)
    X = sparse.csr_array(stream.X)
    for case in SPARSE:
        whole = case.learner().partial_fit(X, stream.y)
        case.learner().partial_fit(X[:170], stream.y[:170]).save(tmp_path / case.name)
        restored = load(tmp_path / case.name, custom=[*CUSTOM, homemade.cauchy])
        assert_same(restored.partial_fit(X[170:], stream.y[170:]), whole, X)


@every(SOME)
def test_6_predicting_changes_nothing(case):
    stream = make_stream(9, n_rows=60)
    model = case.learner().fit(stream.X, stream.y)
    before = everything(model)
    model.predict(stream.X), model.decision_function(stream.X), model.predict_one(stream.X[0])
    assert everything(model) == before
    assert clone(model).get_params() == model.get_params()


def learn_some() -> None:
    """Have all compiled that the cases need, where it is not yet."""
    stream = make_stream(5, n_rows=30)
    for case in SOME:
        case.learner().fit(stream.X, stream.y).predict(stream.X)


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_9_a_second_process_compiles_nothing():
    code = """
import sys
sys.path.insert(0, "tests")
from numba.core import event
from test_kernels import learn_some
with event.install_recorder("numba:compile") as recorder:
    learn_some()
print(len(recorder.buffer))
"""
    learn_some()
    assert _output(code, "0").split() == ["0"]


@pytest.mark.filterwarnings("ignore:the rows are sorted by class")
@pytest.mark.parametrize("hypotheses", ["multi", "hybrid"])
def test_10_scikit_learn_checks_pass(hypotheses):
    estimator = OnlineClassifier(hypotheses, update="pa1", kernel="rbf", sigma=1.0)
    expected = {
        "check_sample_weight_equivalence_on_dense_data": "a weight is an aggressiveness",
        "check_sample_weight_equivalence_on_sparse_data": "a weight is an aggressiveness",
        "check_class_weight_classifiers": "one step with a small kernel is not felt far away",
    }
    results = check_estimator(
        estimator, expected_failed_checks=expected, on_fail=None, on_skip=None
    )
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {} and len(results) > 60


# ---- budgets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("hypotheses", ["multi", "hybrid"])
@pytest.mark.parametrize("sparse_rows", [False, True])
def test_a_budget_holds_memory_still(hypotheses, sparse_rows):
    stream = make_stream(1, n_rows=6000, n_classes=8, n_features=3)
    X = sparse.csr_array(stream.X) if sparse_rows else stream.X
    model = OnlineClassifier(
        hypotheses, "product-mean", "perceptron", kernel="rbf", sigma=0.5, budget=50
    )
    capacities = set()
    for start in range(0, 6000, 500):
        model.partial_fit(X[start : start + 500], stream.y[start : start + 500])
        assert max(model.n_support_vectors_) <= 50
        capacities.add(model._learner.supports.stored["squared_norms"].shape[1])
    assert model.n_mistakes_ > 2000
    assert max(capacities) <= 1024


def test_a_budget_that_is_not_reached_changes_nothing():
    stream = make_stream(2, n_rows=200)
    model = OnlineClassifier(update="pa1", kernel="rbf").fit(stream.X, stream.y)
    bounded = clone(model).set_params(budget=10_000).fit(stream.X, stream.y)
    assert_same(model, bounded, stream.X)


# ---- estimators ---------------------------------------------------------------------------------


def test_auto_is_the_difference_of_dense_rows_under_a_kernel():
    stream = make_stream(3)
    assert (
        OnlineClassifier(update="pa1", kernel="rbf").fit(stream.X, stream.y).feature_map_
        == Difference()
    )
    assert OnlineClassifier(update="pa1").fit(stream.X, stream.y).feature_map_ == Distance()
    named = OnlineClassifier(update="pa1", kernel="rbf").fit([{"a": 1.0}, {"b": 1.0}], [0, 1])
    assert named.feature_map_ == Frequency()


@pytest.mark.parametrize("hypotheses", ["multi", "hybrid"])
def test_label_sets_and_rankings_are_learnt_over_kernels(hypotheses):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    inside = (X**2).sum(axis=1) < 1.4
    sets = np.c_[inside, X[:, 0] > 0].astype(int)
    ranks = np.where(inside[:, None], [[1, 2, 3]], [[3, 2, 1]])
    chosen = {"kernel": "rbf", "sigma": 0.3, "preprocessing": None}
    model = OnlineMultilabelClassifier(hypotheses, **chosen).fit(X[:500], sets[:500])
    assert (model.predict(X[500:]) == sets[500:]).mean() > 0.88
    plain = OnlineMultilabelClassifier("multi").fit(X[:500], sets[:500])
    assert (plain.predict(X[500:]) == sets[500:]).mean() < 0.85
    ranker = OnlineLabelRanker(hypotheses, **chosen).fit(X[:500], ranks[:500])
    assert ranker.score(X[500:], ranks[500:]) > 0.7


def test_costs_are_the_margins_of_kernels_too():
    stream = make_stream(4, n_rows=100, n_classes=3)
    plain = OnlineClassifier("multi", update="pa1", kernel="rbf").fit(stream.X, stream.y)
    priced = clone(plain).set_params(costs={(0, 1): 5.0}).fit(stream.X, stream.y)
    assert not np.array_equal(plain.decision_function(stream.X), priced.decision_function(stream.X))


# ---- what is refused ----------------------------------------------------------------------------

REFUSED: dict[str, Any] = {
    "an unknown name": {"kernel": "gauss"},
    "a number": {"kernel": 3},
    "no sigma": {"kernel": "rbf", "sigma": 0},
    "a negative sigma": {"kernel": "rbf", "sigma": -0.1},
    "NaN for sigma": {"kernel": "rbf", "sigma": float("nan")},
    "text for sigma": {"kernel": "rbf", "sigma": "scale"},
    "no budget": {"kernel": "rbf", "budget": 0},
    "half a budget": {"kernel": "rbf", "budget": 10.5},
    "a budget of weights": {"budget": 10},
    "a link": {"kernel": "rbf", "link": "exponential"},
    "an average of removed rows": {"kernel": "rbf", "averaged": True, "budget": 9},
}


@pytest.mark.parametrize("parameters", REFUSED.values(), ids=REFUSED)
def test_bad_parameters_are_refused_in_a_sentence(parameters):
    model = OnlineClassifier(**parameters)
    with pytest.raises(KeslerError) as caught:
        model.fit(np.eye(3), [0, 1, 2])
    text = str(caught.value)
    assert len(text.split()) > 8 and "\n" not in text


@pytest.mark.parametrize(
    "make",
    [
        lambda: Polynomial(degree=0),
        lambda: Polynomial(degree=1.5),
        lambda: Polynomial(constant=-1.0),
        lambda: Polynomial(scale=0.0),
        lambda: mercer_kernel(of="rows")(lambda x, z: 0.0),
        lambda: mercer_kernel(parameters=(1, 2, 3, 4, 5))(lambda x, z, q: 0.0),
        lambda: mercer_kernel()(len),
        lambda: resolve_kernel(None),
    ],
)
def test_kernels_that_are_none_are_refused_where_they_are_made(make):
    with pytest.raises(KeslerError, match=r"\w+ \w+ \w+ \w+"):
        make()


def test_a_kernel_of_vectors_takes_no_sparse_rows():
    model = OnlineClassifier("multi", update="pa1", kernel=homemade.overlap)
    with pytest.raises(KeslerError, match=r"whole vectors.*products"):
        model.fit(sparse.csr_array(np.eye(3)), [0, 1, 2])
    other = OnlineClassifier(Shared(Difference()), update="pa1", kernel="rbf")
    with pytest.raises(KeslerError, match="not zero at zero"):
        other.partial_fit(sparse.csr_array(np.eye(3)), [0, 1, 2])
    with pytest.raises(KeslerError, match="row 1 has no number named 'b'"):
        other.partial_fit([{"a": 1.0, "b": 2.0}, {"a": 1.0}], [0, 1])


def test_a_kernel_that_cannot_be_compiled_is_refused():
    @mercer_kernel()
    def opened(x, z):
        return len(format(x[0], ".3f"))

    with pytest.raises(KeslerError, match="cannot be compiled"):
        OnlineClassifier("multi", update="pa1", kernel=opened).fit(np.eye(3), [0, 1, 2])


def test_a_users_kernel_that_a_file_names_must_be_handed_over(tmp_path):
    model = OnlineClassifier("multi", update="pa1", kernel=homemade.cauchy).fit(
        np.eye(3), [0, 1, 2]
    )
    model.save(tmp_path / "m")
    with pytest.raises(KeslerError, match=r"homemade\.cauchy.*custom"):
        load(tmp_path / "m")
    assert load(tmp_path / "m", custom=[homemade.cauchy]).kernel is not None


def test_powers_that_float32_cannot_hold_are_refused():
    model = OnlineClassifier("multi", update="pa1", kernel=Polynomial(degree=9))
    X = np.array([[1e6, 0.0], [0.0, 1e6], [1e6, 0.0]])
    with pytest.raises(KeslerError, match="float32"):
        model.fit(X, [0, 1, 1])


def test_the_table_of_kernels_is_complete():
    assert [type(resolve_kernel(name)) for name in KERNELS] == list(KERNELS.values())
    assert {row.view for row in ROWS} >= {"difference"}
    assert (
        OnlineClassifier(PerClass(), update="pa1", kernel="rbf").fit(np.eye(2), [0, 1]).n_known_
        == 2
    )
    assert replace(RBF(1.0), sigma=2) == RBF(2.0)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_row_whose_norm_float32_cannot_hold_leaves_a_model_that_can_be_saved(kernel, tmp_path):
    model = OnlineClassifier(update="pa1", kernel=kernel).fit(np.eye(3), [0, 1, 2])
    with suppress(KeslerError):
        model.partial_fit(np.full((4, 3), 1e30), [0, 1, 2, 0])
    model.save(tmp_path / "model")
    assert_array_equal(load(tmp_path / "model").predict(np.eye(3)), model.predict(np.eye(3)))
