"""Selective sampling: rules of asking, their state, and runs that learn only rows asked for."""

from __future__ import annotations

import copy
import json
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from kesler import (
    Ensemble,
    KeslerError,
    LinearMax,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineOrdinalClassifier,
    compare,
    load,
    mistake_bound,
    progressive_validate,
    query_rule,
)
from kesler.data import model_file
from kesler.learner.queries import Queries, estimated
from kesler.queries import LabelBudget, MarginQuery, RandomQuery
from kesler.queries.budget import allowance
from kesler.queries.query import RowEstimates, uniform
from test_laws import assert_sentence

N_ROWS = 240


def stream(n_rows: int = N_ROWS, seed: int = 0) -> tuple[Any, list[str]]:
    """Return noisy rows of five classes, which come one after another."""
    rng = np.random.default_rng(seed)
    latest = np.minimum(5, 1 + np.arange(n_rows) // 30)
    codes = np.array([rng.integers(n) for n in latest])
    X = rng.normal(size=(n_rows, 6)) + 2.5 * np.eye(6)[codes]
    return X, [f"class {code}" for code in codes]


X, Y = stream()
WORDS = [
    {f"f{i}": float(value) for i, value in enumerate(row) if abs(value) > 1} or {"f0": 1.0}
    for row in X
]
TEXTS = [" ".join(names) for names in WORDS]


@query_rule(parameters=(0.7,))
def when_unsure(parameters, margin, confidence, new):
    """Ask where the confidence is low or the class may be new."""
    return 1.0 if confidence < parameters[0] or new > 0.5 else 0.1


RULES: dict[str, Any] = {
    "budget": 0.2,
    "margin": MarginQuery(2.0, seed=5),
    "random": RandomQuery(0.3, seed=1),
    "custom": when_unsure.with_parameters(0.6),
}
ESTIMATORS: dict[str, Any] = {
    "default": OnlineClassifier,
    "perceptron": lambda **more: OnlineClassifier("multi", update="perceptron", **more),
    "hybrid pa1": lambda **more: OnlineClassifier(
        update="pa1", intercept=1, uncertainty=True, **more
    ),
    "kernel": lambda **more: OnlineClassifier(kernel="rbf", **more),
    "averaged": lambda **more: OnlineClassifier("multi", update="softmax", averaged=True, **more),
    "ensemble": lambda **more: Ensemble(
        [OnlineClassifier("multi", update="pa1"), OnlineClassifier("multi", update="hinge")], **more
    ),
    "linear-max": lambda **more: LinearMax("p-norm", **more),
}


def one_by_one(model: Any, rows: Any, labels: Any) -> tuple[list[Any], list[bool]]:
    """Predict, query and learn each row, as a user would; return predictions and questions."""
    predicted, asked = [], []
    for x, label in zip(rows, labels, strict=True):
        predicted.append(model.predict_one(x) if model._learner is not None else None)
        asked.append(model.query_one(x))
        if asked[-1]:
            model.learn_one(x, label)
    return predicted, asked


def everything(model: Any) -> bytes:
    """Return all that a model file would hold of a model, in bytes."""
    arrays = model._learner.arrays() | model._queries.arrays()
    return b"".join(name.encode() + arrays[name].tobytes() for name in sorted(arrays))


# ---- runs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ["default", "hybrid pa1", "ensemble"])
def test_the_probability_of_each_answer_is_that_before_it_is_learnt(estimator):
    """Of rows that are asked for and of those that are not; the log-loss is of these."""
    make = ESTIMATORS[estimator]
    result = progressive_validate(make(), X, Y, label_budget=0.3)
    other, said = make(label_budget=0.3), []
    for x, label in zip(X, Y, strict=True):
        known = other.predict_proba_one(x) if other._learner is not None else {}
        said.append(known.get(label, np.nan))
        if other.query_one(x):
            other.learn_one(x, label)
    np.testing.assert_array_equal(result.probabilities[:, 1], said)
    known = np.array(said)[~np.isnan(said)]
    assert result.log_loss == pytest.approx(-np.log(known).mean(), rel=1e-9)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_validation_equals_a_loop_of_single_calls(estimator, rule):
    make, budget = ESTIMATORS[estimator], RULES[rule]
    model = make()
    result = progressive_validate(model, X, Y, label_budget=budget)
    other = make(label_budget=budget)
    predicted, asked = one_by_one(other, X, Y)
    assert result.asked.tolist() == asked
    assert result.predictions.tolist() == ["" if each is None else each for each in predicted]
    assert everything(model) == everything(other)
    assert 1 < result.n_asked < len(Y)


@pytest.mark.parametrize("rule", ["budget", "margin"])
@pytest.mark.parametrize("rows", ["sparse", "words", "texts"])
def test_rows_of_other_forms_too(rows, rule):
    given, single = {
        "sparse": (sparse.csr_array(X * (X > 1)), None),
        "words": (WORDS, WORDS),
        "texts": (TEXTS, TEXTS),
    }[rows]
    if single is None:
        single = [(row.nonzero()[0], row[row.nonzero()]) for row in X * (X > 1)]
    model, other = OnlineClassifier(), OnlineClassifier(label_budget=RULES[rule])
    result = progressive_validate(model, given, Y, label_budget=RULES[rule])
    predicted, asked = one_by_one(other, single, Y)
    assert result.asked.tolist() == asked
    assert result.predictions.tolist() == ["" if each is None else each for each in predicted]
    assert result.n_asked == model.n_trials_ == other.n_trials_


def test_tables_of_mixed_columns_are_asked_about():
    cells = [{"text": text, "size": float(row[0])} for text, row in zip(TEXTS, X, strict=True)]
    model = OnlineClassifier(columns={"text": "text"})
    result = progressive_validate(model, cells, Y, label_budget=0.3)
    assert model.schema_ is not None and model.n_trials_ == result.n_asked
    assert result.n_asked - 1 <= 0.3 * N_ROWS + allowance(N_ROWS, 0.3) + 1


def test_a_budget_of_all_rows_learns_as_without_one():
    whole, plain = (
        progressive_validate(OnlineClassifier(), X, Y, label_budget=share) for share in (1, None)
    )
    assert whole.asked.all() and whole.curve.tolist() == plain.curve.tolist()
    assert whole.n_first_seen == plain.n_first_seen == 5


def test_every_row_counts_and_first_rows_of_the_stream_are_no_mistakes():
    result = progressive_validate(OnlineClassifier(), X, Y, label_budget=RandomQuery(0.1))
    first = [label not in Y[:t] for t, label in enumerate(Y)]
    wrong = [p != y and not new for p, y, new in zip(result.predictions, Y, first, strict=True)]
    assert result.wrong.tolist() == wrong and result.first_seen.sum() == 5
    learnt = [label in {Y[s] for s in range(t) if result.asked[s]} for t, label in enumerate(Y)]
    assert result.known.tolist() == learnt and not result.known.all()
    assert result.n_mistakes_of_known == sum(w and k for w, k in zip(wrong, learnt, strict=True))


def test_results_have_labels_and_mistakes_over_time_and_json():
    result = progressive_validate(OnlineClassifier(), X, Y, label_budget=0.2)
    assert result.by_labels[:, 0].tolist() == np.cumsum(result.asked).tolist()
    assert result.by_labels[:, 1].tolist() == result.curve.tolist()
    told = json.loads(result.to_json())
    assert told["n_asked"] == result.n_asked and len(told["curve"]) == 200
    last = {"trial": N_ROWS, "asked": result.n_asked, "mistakes": result.n_mistakes}
    assert told["curve"][-1] == last and told["n_mistakes"] == result.n_mistakes
    assert result.to_frame()["asked"].sum() == result.n_asked


def test_comparisons_ask_for_labels_too():
    models = {"asks": OnlineClassifier(label_budget=0.05), "learns": OnlineClassifier()}
    found = compare(models, X, Y)
    alone = progressive_validate(OnlineClassifier(label_budget=0.05), X, Y)
    assert found["asks"].n_mistakes == alone.n_mistakes > found["learns"].n_mistakes


def test_the_command_line_compares_with_a_label_budget(tmp_path, capsys):
    from kesler.cli import main

    path = tmp_path / "rows.csv"
    lines = [",".join([f"{value:.3f}" for value in row] + [y]) for row, y in zip(X, Y, strict=True)]
    path.write_text("\n".join(["a,b,c,d,e,f,label", *lines]))
    output = tmp_path / "out.json"
    options = ["--methods", "default,multi", "--label-budget", "0.2", "--json", str(output)]
    assert main(["compare", str(path), "--label", "label", *options]) == 0
    told = json.loads(output.read_text())["methods"]
    for name in ("default", "multi"):
        assert told[name]["trials"] == N_ROWS and 40 < told[name]["asked"] < 100
        assert f"{told[name]['asked']}" in capsys.readouterr().out or name == "multi"
    assert main(["compare", str(path), "--label", "label", "--label-budget", "7"]) == 2
    assert (
        "--label-budget 7.0 must be a finite number above 0 and at most 1"
        in capsys.readouterr().err
    )


def test_mistakes_are_drawn_by_labels():
    from matplotlib.figure import Figure

    from kesler.plots import LabelCurveDisplay

    result = progressive_validate(OnlineClassifier(), X, Y, label_budget=0.2)
    display = LabelCurveDisplay.from_results({"doubt": result}, ax=Figure().subplots())
    [line] = display.lines_
    assert np.array_equal(np.column_stack(line.get_data()), result.by_labels)
    with pytest.raises(KeslerError, match="learnt every row"):
        LabelCurveDisplay({"all": progressive_validate(OnlineClassifier(), X, Y)})  # type: ignore[dict-item]
    with pytest.raises(KeslerError, match="nothing to draw"):
        LabelCurveDisplay({})


def test_a_second_run_continues():
    whole = progressive_validate(OnlineClassifier(label_budget=0.2), X, Y)
    model = OnlineClassifier(label_budget=0.2)
    parts = [progressive_validate(model, X[some], Y[some]) for some in (slice(90), slice(90, None))]
    assert np.concatenate([each.asked for each in parts]).tolist() == whole.asked.tolist()
    assert sum(each.n_mistakes for each in parts) == whole.n_mistakes


# ---- single calls -------------------------------------------------------------------------------


def test_before_any_class_every_row_is_worth_asking_and_none_is_counted():
    model = OnlineClassifier(label_budget=0.1)
    assert [model.query_one(X[0]) for _ in range(5)] == [True] * 5
    assert (model.n_offered_, model.n_asked_) == (0, 0) and model._learner is None
    model.learn_one(X[0], "a")
    model.query_one(X[1])
    assert model.n_offered_ == 1


def test_asking_learns_nothing_and_learning_counts_nothing():
    model = OnlineClassifier(label_budget=0.2).fit(X, Y)
    before = [array.tobytes() for array in model._learner.arrays().values()]
    asked = sum(model.query_one(x) for x in X[:50])
    assert [array.tobytes() for array in model._learner.arrays().values()] == before
    assert (model.n_offered_, model.n_asked_, model.n_trials_) == (50, asked, N_ROWS)
    assert model.fit(X, Y).n_offered_ == 0


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("estimator", ["default", "kernel", "linear-max", "ensemble"])
def test_saved_and_copied_models_ask_the_same(estimator, rule, tmp_path):
    model = ESTIMATORS[estimator](label_budget=RULES[rule])
    one_by_one(model, X[:150], Y[:150])
    model.save(tmp_path / "model.kesler")
    others = [
        load(tmp_path / "model.kesler", custom=[when_unsure]),
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
    ]
    wanted = one_by_one(model, X[150:], Y[150:])
    for other in others:
        assert one_by_one(other, X[150:], Y[150:]) == wanted
        assert everything(other) == everything(model)
        assert (other.n_offered_, other.n_asked_) == (model.n_offered_, model.n_asked_)


def test_another_rule_begins_anew():
    model = OnlineClassifier(label_budget=0.2)
    one_by_one(model, X[:50], Y[:50])
    model.set_params(label_budget=0.3)
    model.query_one(X[50])
    assert model.n_offered_ == 1


# ---- rules --------------------------------------------------------------------------------------

doubts = st.tuples(st.floats(0, 1), st.floats(0, 1))


@settings(max_examples=60, deadline=None)
@given(
    share=st.floats(0.01, 1),
    estimates=st.lists(doubts, min_size=1, max_size=30),
    n_rows=st.integers(1, 900),
    seed=st.integers(0, 5),
)
def test_a_budget_holds_over_every_prefix(share, estimates, n_rows, seed):
    queries, n_asked = Queries(LabelBudget(share, seed=seed)), 0
    for t in range(1, n_rows + 1):
        lead, new = estimates[t % len(estimates)]
        n_asked += queries.decide(RowEstimates(lead, lead, 0.5, new))
        most = 20 + 200 * share * max(0.0, 1 - t / 500) + 1
        assert share * (t - 1) - 1e-6 <= n_asked <= share * t + most + 1e-6
    assert (queries.n_offered, queries.n_asked) == (n_rows, n_asked)


def test_a_budget_asks_about_the_largest_doubts():
    rng, queries = np.random.default_rng(3), Queries(LabelBudget(0.2))
    leads = rng.random(3000)
    asked = np.array([queries.decide(RowEstimates(0.0, lead, 0.5, 0.0)) for lead in leads])
    late = slice(1000, None)
    assert abs(asked[late].mean() - 0.2) < 0.01
    assert asked[late][leads[late] < 0.1].mean() > 0.95
    assert asked[late][leads[late] > 0.3].mean() < 0.01
    assert LabelBudget(0.2).doubt(RowEstimates(0.0, 0.5, 0.0, 0.5)) == 0.75


def test_random_draws_are_those_of_splitmix64():
    def reference(start: int, number: int) -> float:
        with np.errstate(over="ignore"):
            z = np.uint64(start) + np.uint64(number + 1) * np.uint64(0x9E3779B97F4A7C15)
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return float((z ^ (z >> np.uint64(31))) >> np.uint64(11)) / 2**53

    for start in (0, 12345, 2**64 - 1):
        drawn = [uniform(start, n) for n in range(2000)]
        assert drawn == [reference(start, n) for n in range(2000)]
        assert abs(np.mean(drawn) - 0.5) < 0.02 and 0 <= min(drawn) < max(drawn) < 1


@pytest.mark.parametrize("b", [0.1, 1.0, 20.0])
@pytest.mark.parametrize("margin", [0.0, 0.5, 4.0])
def test_margins_are_asked_about_with_their_probability(b, margin):
    n = 4000
    queries = Queries(MarginQuery(b, seed=2))
    asked = sum(queries.decide(RowEstimates(margin, 0.0, 0.5, 0.0)) for _ in range(n))
    p = b / (b + margin)
    assert abs(asked - n * p) <= 4 * math.sqrt(n * p * (1 - p))


def test_what_is_said_of_rows_is_what_the_estimator_says():
    for make in (ESTIMATORS["hybrid pa1"], OnlineClassifier):
        model = make().fit(X, Y)
        estimates = estimated(model._learner, next(model._input.rows_to_score(model, X[:40])))
        probabilities = np.sort(model.predict_proba(X[:40]), axis=1)
        assert np.allclose(estimates.lead, probabilities[:, -1] - probabilities[:, -2])
        assert np.array_equal(estimates.confidence, model.confidence(X[:40]))
        assert np.array_equal(estimates.new, model.predict_proba(X[:40], new=True)[:, -1])
    model = ESTIMATORS["perceptron"]().fit(X, Y)
    estimates = estimated(model._learner, next(model._input.rows_to_score(model, X[:40])))
    scores = np.sort(model.decision_function(X[:40]).astype(np.float64), axis=1)
    assert np.array_equal(estimates.margin, scores[:, -1] - scores[:, -2])
    assert not estimates.new.any()


def test_with_one_known_class_margins_are_0_and_leads_are_1():
    model = ESTIMATORS["perceptron"](label_budget=MarginQuery(0.001)).learn_one(X[0], "only")
    assert all(model.query_one(x) for x in X[:50])
    assert estimated(model._learner, next(model._input.rows_to_score(model, X[:1]))).of(0)[:2] == (
        0.0,
        1.0,
    )


# ---- the bound ----------------------------------------------------------------------------------


@pytest.mark.parametrize("b", [0.5, 4.0, 40.0])
def test_expected_mistakes_are_within_the_bound(b):
    rows, labels = stream(150, seed=4)
    n_mistakes, bounds = [], set()
    for seed in range(20):
        model = OnlineClassifier(
            "multi", update="perceptron", label_budget=MarginQuery(b, seed=seed)
        )
        result = progressive_validate(model, rows, labels)
        if seed < 2:
            bounds.add(mistake_bound(result).bound)
        n_mistakes.append(result.n_mistakes_of_known)
    [bound] = bounds  # it depends on the stream, not on the draws
    assert np.mean(n_mistakes) <= bound


def test_the_bound_is_that_of_the_theorem():
    result = progressive_validate(
        OnlineClassifier("multi", update="perceptron", label_budget=MarginQuery(2.0)), X, Y
    )
    found = mistake_bound(result)
    square = found.radius**2
    wanted = (1 + square / 4) * found.loss + (4 + square) ** 2 / 16 * found.squared_norm
    assert math.isclose(found.bound, wanted) and found.n_mistakes == result.n_mistakes_of_known
    differences = [2 * float(row @ row) for row in X[1:].astype(np.float32).astype(np.float64)]
    assert math.isclose(square, max(differences), rel_tol=1e-5)
    assert "Cesa-Bianchi" in str(found)


def test_other_rules_have_no_bound():
    for budget, update in ((0.2, "perceptron"), (MarginQuery(1.0), "pa1")):
        model = OnlineClassifier("multi", update=update, label_budget=budget)
        result = progressive_validate(model, X, Y)
        with pytest.raises(KeslerError, match="there is one for MarginQuery") as caught:
            mistake_bound(result)
        assert_sentence(caught.value)
    with pytest.raises(KeslerError, match="give the result of progressive_validate"):
        mistake_bound(OnlineClassifier(label_budget=0.2), X, Y)


# ---- bad input ----------------------------------------------------------------------------------

BAD_SHARES = [0, 0.0, -0.1, 1.01, math.nan, math.inf, True, "0.2", [0.2], 1j, {0.2}]


@pytest.mark.parametrize("budget", BAD_SHARES, ids=repr)
def test_budgets_are_shares_or_rules(budget):
    model = OnlineClassifier(label_budget=budget)
    for call in (
        lambda: model.query_one(X[0]),
        lambda: progressive_validate(OnlineClassifier(), X, Y, label_budget=budget),
    ):
        with pytest.raises(KeslerError, match="above 0 and at most 1") as caught:
            call()
        assert_sentence(caught.value)
    assert "_queries" not in vars(model)


@pytest.mark.parametrize(
    "make",
    [
        lambda: MarginQuery(0),
        lambda: MarginQuery(math.nan),
        lambda: MarginQuery("1"),
        lambda: RandomQuery(2),
        lambda: LabelBudget(0.2, seed=-1),
        lambda: LabelBudget(0.2, seed=1.5),
    ],
)
def test_parameters_of_rules_are_checked(make):
    with pytest.raises(KeslerError) as caught:
        make()
    assert_sentence(caught.value)


@query_rule()
def turns_bad(parameters, margin, confidence, new):
    """Return what is no probability once a margin is large."""
    return 0.5 if margin < 3 else math.nan


@query_rule()
def fails_late(parameters, margin, confidence, new):
    """Divide by zero once a margin is large."""
    return 0.5 if margin < 3 else 1 / 0


@query_rule()
def always_bad(parameters, margin, confidence, new):
    """Return a text."""
    return "yes"


@pytest.mark.parametrize("rule", [turns_bad, fails_late])
def test_rules_that_fail_count_and_learn_nothing(rule):
    model = OnlineClassifier("multi", update="perceptron", label_budget=rule)
    model.fit(X, Y)
    model.query_one(np.zeros(6))
    far = 100 * np.eye(6)[1]
    with pytest.raises(KeslerError, match="the row was not counted") as caught:
        model.query_one(far)
    assert_sentence(caught.value)
    assert (model.n_offered_, model.n_trials_) == (1, N_ROWS)
    weights = model.coef_.copy()
    with pytest.raises(KeslerError, match="the row was not counted"):
        progressive_validate(model, far[None], ["class 0"])
    assert np.array_equal(model.coef_, weights)


def test_functions_are_tried_before_anything_is_asked():
    with pytest.raises(KeslerError, match="must return a number") as caught:
        OnlineClassifier(label_budget=always_bad).query_one(X[0])
    assert_sentence(caught.value)


def test_estimators_without_a_budget_say_so():
    for model, match in (
        (OnlineClassifier(), "has no label budget"),
        (OnlineOrdinalClassifier(), "has no label budget"),
        (OnlineLabelRanker(), "does not choose the rows"),
    ):
        with pytest.raises(KeslerError, match=match) as caught:
            model.query_one(X[0])
        assert_sentence(caught.value)
    with pytest.raises(KeslerError, match="has no effect on OnlineLabelRanker"):
        progressive_validate(OnlineLabelRanker(), X, Y, label_budget=0.2)
    with pytest.raises(KeslerError, match="omit sample_weight"):
        progressive_validate(OnlineClassifier(), X, Y, np.full(N_ROWS, 2.0), label_budget=0.2)


@pytest.mark.parametrize("bad", [np.full(6, np.inf), np.zeros(5), "a text", None])
def test_bad_rows_are_refused_and_not_counted(bad):
    model = OnlineClassifier(label_budget=0.2).fit(X, Y)
    with pytest.raises((KeslerError, ValueError, TypeError)):
        model.query_one(bad)
    assert model.n_offered_ == 0


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("queries.counts", lambda a: a[::-1].copy()),
        ("queries.counts", lambda a: -a),
        ("queries.recent", lambda a: a - 9),
        ("queries.recent", lambda a: a * np.nan),
        ("queries.recent", lambda a: a[:-1]),
        ("queries.recent", None),
    ],
)
def test_damaged_files_are_refused(name, change, tmp_path):
    model = OnlineClassifier(label_budget=0.2)
    one_by_one(model, X[:60], Y[:60])
    model.save(tmp_path / "model.kesler")
    arrays, metadata = model_file.load(tmp_path / "model.kesler")
    if change is None:
        del arrays[name]
    else:
        arrays[name] = change(arrays[name])
    model_file.save(tmp_path / "other.kesler", arrays, metadata)
    with pytest.raises(KeslerError, match="queries") as caught:
        load(tmp_path / "other.kesler")
    assert_sentence(caught.value)
