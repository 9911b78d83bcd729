"""User-defined functions with faults are refused by name, in trial calls and in compiled code."""

import copy
import sys
import threading
import time

import numpy as np
import pytest
from numba import config, njit

import faulty
import homemade
from faulty import FAULTS, KINDS, LATE, TRIGGER
from kesler import (
    CrammerSingerClassifier,
    Ensemble,
    KeslerError,
    OnlineClassifier,
    SoftmaxClassifier,
    StructuredLearner,
    feature_map,
    link_function,
    load,
    mercer_kernel,
    preconditioner,
    query_rule,
    threshold_algorithm,
    update_rule,
)
from kesler.compiled.jit import decorators
from kesler.hypotheses import Grouped, PerClass
from kesler.learner import state
from kesler.parts import time_limit, trial_calls
from kesler.parts.user_part import UserPart
from test_laws import assert_sentence

ROWS = np.random.default_rng(5).normal(size=(40, 4))
LABELS = np.abs(ROWS[:, :3]).argmax(axis=1)
HOSTILE = np.array([[TRIGGER, 1.0, -TRIGGER, 1.0]])

SAID = {
    "write_out_of_range": "index out of range|TypeError",  # a tuple cannot be written to
    "write_far_out_of_range": "index out of range|TypeError",
    "read_out_of_range": "index out of range",
    "read_far_out_of_range": "index out of range",
    "raise_an_error": "no answer",
    "divide_by_zero": "division by zero",
    "divide_numpy_by_zero": "divide by zero|no finite number",
    "loop_forever": "did not return",
    "loop_forever_in_a_generator": "did not return",
    "recurse_forever": "recursion",
    "return_an_array": "must return a number|no finite number|array element|converted",
    "return_text": "must return a number|no finite number|could not convert",
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_is_refused_before_the_function_is_compiled(kind, fault, monkeypatch):
    if fault.startswith("loop"):
        monkeypatch.setattr(time_limit, "LIMIT", 0.02)
    n_compiled = decorators._callback.cache_info().misses
    part = KINDS[kind].faulty(FAULTS[fault])
    tracer = sys.gettrace()
    with pytest.raises(KeslerError, match=SAID[fault]) as caught:
        KINDS[kind].estimator(part).fit(ROWS, LABELS)
    assert part.written.__qualname__ in str(caught.value)
    assert_sentence(caught.value)
    assert decorators._callback.cache_info().misses == n_compiled
    assert sys.gettrace() is tracer


def learnt_state(model):
    """Return all that was learnt; the calibration is that of predictions, which are made before."""
    arrays = model._learner.arrays().items()
    return {name: array.copy() for name, array in arrays if not name.startswith("calibration")}


@pytest.mark.parametrize(("part", "kind"), LATE, ids=lambda each: getattr(each, "field", each))
def test_a_call_ends_at_a_fault_of_compiled_code_and_its_row_is_not_learnt(part, kind, tmp_path):
    model = KINDS[kind].estimator(part).fit(ROWS, LABELS)
    wrong = next(label for label in range(3) if label != _predicted(model))
    rows, labels = np.vstack([ROWS[:2], HOSTILE, ROWS[2:4]]), [*LABELS[:2], wrong, 2, 3]
    expected = copy.deepcopy(model).partial_fit(ROWS[:2], LABELS[:2])
    for learn in (
        lambda: model.partial_fit(rows, labels),
        lambda: model.learn_one(HOSTILE[0], wrong),
    ):
        with pytest.raises(KeslerError, match=f"{part.written.__qualname__} failed on a row"):
            learn()
        assert list(model.classes_) == [0, 1, 2] and model.n_trials_ == expected.n_trials_
        if kind not in ("link", "preconditioner"):  # which are asked for each weight by itself
            assert_same(learnt_state(model), learnt_state(expected))
    model.save(tmp_path / "model")
    assert_same(learnt_state(load(tmp_path / "model", custom=[part])), learnt_state(model))
    if kind != "preconditioner":  # whose evidence remains
        model.partial_fit(ROWS, LABELS)
    assert np.isfinite(model.decision_function(ROWS)).all()


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, array in found.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)


@pytest.mark.parametrize("hypotheses", ["multi", "grouped", "sparse rows"])
def test_classes_after_a_fault_are_not_known(hypotheses, monkeypatch):
    groups = {"even": [0, 2], "low": [0, 1], "two": [2], "odd": [1, 3], "high": [3]}
    if hypotheses == "sparse rows":
        monkeypatch.setattr(state, "LARGEST_TABLE", 0)
    parts = Grouped(groups) if hypotheses == "grouped" else "multi"
    model = OnlineClassifier(parts, update=faulty.late_rule).fit(ROWS, LABELS)
    assert (model._learner.sparse is None) == (hypotheses != "sparse rows")
    expected = copy.deepcopy(model)
    wrong = next(label for label in range(3) if label != model.predict(HOSTILE)[0])
    with pytest.raises(KeslerError, match="late_rule failed"):
        model.partial_fit(np.vstack([HOSTILE, ROWS]), [wrong, 3, *LABELS[1:]])
    assert_same(learnt_state(model), learnt_state(expected))
    for each in (model, expected):
        each.partial_fit(ROWS, [3, *LABELS[1:]])
    assert_same(learnt_state(model), learnt_state(expected))
    assert model._learner.groups == expected._learner.groups
    np.testing.assert_array_equal(model.classes_, expected.classes_)


def test_names_of_a_row_that_meets_a_fault_are_not_counted():
    model = OnlineClassifier(update=faulty.late_rule, uncertainty=False, columns=None)
    for row, label in zip(ROWS, LABELS, strict=True):
        model.learn_one(dict(zip("abcd", row.tolist(), strict=True)), int(label))
    hostile = {"new": TRIGGER, "newer": 1.0}
    wrong = next(label for label in range(3) if label != model.predict_one(hostile))
    before = learnt_state(model)
    with pytest.raises(KeslerError, match="late_rule failed"):
        model.learn_one(hostile, wrong)
    assert_same(learnt_state(model), before)
    assert model.vocabulary_.names == [*"abcd"]


def _predicted(model):
    try:
        return model.predict(HOSTILE)[0]
    except KeslerError:
        return 0


@pytest.mark.parametrize("i", [i for i, (_, kind) in enumerate(LATE) if kind in ("map", "kernel")])
def test_a_fault_in_prediction_is_said(i):
    part, kind = LATE[i]
    model = KINDS[kind].estimator(part).fit(ROWS, LABELS)
    for ask in (model.predict, model.decision_function, lambda rows: model.predict_one(rows[0])):
        with pytest.raises(KeslerError, match=f"{part.written.__qualname__} failed"):
            ask(HOSTILE)
    model.predict(ROWS)


def test_correct_functions_are_called_a_few_times_and_only_once():
    calls = []

    def part_of_loss(parameters, weight, losses, squared_norms, gram, steps):
        calls.append(len(losses))

    rule = update_rule(constraints="all")(part_of_loss)
    for _ in range(3):
        trial_calls.try_out(rule)
    assert sorted(calls) == [1, 1, 3, 3]


def test_our_own_parts_are_not_called():
    for part in (OnlineClassifier().update, None, "pa1"):
        assert not isinstance(part, UserPart)
        trial_calls.try_out(part)


CORRECT = [each for each in vars(homemade).values() if isinstance(each, UserPart)]
CORRECT.remove(homemade.not_arithmetic)


@pytest.mark.parametrize("part", CORRECT, ids=str)
def test_correct_functions_pass_within_milliseconds(part):
    trial_calls.try_out(part)
    start = time.thread_time()
    trial_calls._try_out_once.__wrapped__(part)
    assert time.thread_time() - start < 0.1


def test_the_limit_holds_in_every_thread_and_stops_no_other(monkeypatch):
    monkeypatch.setattr(time_limit, "LIMIT", 0.1)
    raised, counted = [], []

    def fit():
        try:
            trial_calls.try_out(KINDS["link"].faulty(FAULTS["loop_forever"]))
        except KeslerError as error:
            raised.append(str(error))

    threads = [threading.Thread(target=fit) for _ in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        counted.append(1)
        time.sleep(0.01)
    assert len(raised) == 2 and all("did not return" in said for said in raised)
    assert counted


def test_a_map_is_called_at_zero_within_the_limit(monkeypatch):
    monkeypatch.setattr(time_limit, "LIMIT", 0.1)
    for name, said in (("loop_forever", "did not return"), ("raise_an_error", "no answer")):
        fault = FAULTS[name]
        with pytest.raises(KeslerError, match=said):
            feature_map(zero_at_zero=True)(_calling(fault))


def _calling(fault):
    return lambda x, p: fault([x], x)


def is_even(n):
    return 1.0 if n <= 0 else is_odd(n - 1)


def is_odd(n):
    return 0.0 if n <= 0 else is_even(n - 1)


@njit
def factorial(n):
    return 1.0 if n <= 1 else n * factorial(n - 1)


@pytest.mark.parametrize("helper", [is_even, factorial])
def test_functions_that_call_themselves_are_refused(helper):
    """Numba crashes when it loads them from its cache, and deep calls exhaust the stack."""

    @update_rule()
    def by_turns(parameters, weight, losses, squared_norms, gram, steps):
        steps[0] = helper(len(steps) + 1)

    with pytest.raises(KeslerError, match=r"by_turns cannot be compiled, since \w+ calls itself"):
        OnlineClassifier("multi", update=by_turns).fit(ROWS, LABELS)


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")
def test_compiled_functions_are_called_by_their_own_names():
    @update_rule()
    def by_module(parameters, weight, losses, squared_norms, gram, steps):
        steps[0] = faulty.at(losses, 0)

    with pytest.raises(KeslerError, match=r"by_module calls faulty\.at, .*from faulty import at"):
        OnlineClassifier("multi", update=by_module).fit(ROWS, LABELS)


def mean(a):
    return a.mean()


def test_a_function_may_have_the_name_of_a_method_that_it_calls():
    @update_rule()
    def by_mean(parameters, weight, losses, squared_norms, gram, steps):
        steps[0] = mean(losses)

    OnlineClassifier("multi", update=by_mean).fit(ROWS, LABELS)


def test_a_structured_learner_names_the_rule_that_failed():
    model = StructuredLearner(
        features=lambda x, s: {s: x},
        infer=lambda weights, x: max("ab", key=lambda s: weights[s] * x),
        infer_augmented=lambda weights, x, y: max("ab", key=lambda s: weights[s] * x + (s != y)),
        update=faulty.late_rule,
    )
    model.partial_fit([1.0, 2.0], ["b", "b"])
    with pytest.raises(KeslerError, match="late_rule used an index out of range"):
        model.learn_one(-TRIGGER, "b")
    assert model.predict([1.0]) == ["b"]


def test_a_rule_must_not_change_what_it_reads():
    @update_rule()
    def greedy(parameters, weight, losses, squared_norms, gram, steps):
        losses[0] = 0.0

    with pytest.raises(KeslerError, match="greedy changed an argument"):
        trial_calls.try_out(greedy)


def test_the_parameters_of_a_function_may_be_too_few():
    with pytest.raises(KeslerError, match="part_way used an index out of range"):
        OnlineClassifier("multi", update=homemade.part_way.with_parameters()).fit(ROWS, LABELS)


def test_members_of_an_ensemble_name_their_functions():
    model = Ensemble([KINDS[kind].estimator(part) for part, kind in LATE[:2]])
    model.fit(ROWS, LABELS)
    expected = copy.deepcopy(model)
    wrong = next(label for label in range(3) if label != model.predict(HOSTILE)[0])
    with pytest.raises(KeslerError, match="late_rule failed"):
        model.partial_fit(np.vstack([HOSTILE, ROWS[:1]]), [wrong, 3])
    expected.partial_fit(ROWS[:1], [3])  # all members learn the other rows of the call
    for one, other in zip(model._learner.members, expected._learner.members, strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)
    model.partial_fit(ROWS, LABELS)  # raises none of the errors before


@pytest.mark.parametrize(
    "model",
    [
        SoftmaxClassifier(hypotheses=PerClass(faulty.late_map)),
        CrammerSingerClassifier(kernel=faulty.late_kernel),
    ],
    ids=["map", "kernel"],
)
def test_batch_machines_name_the_function_that_failed(model):
    with pytest.raises(KeslerError, match=r"late_\w+ failed"):
        model.fit(np.vstack([ROWS, HOSTILE]), [*LABELS, 0])
    model.fit(ROWS, LABELS)
    with pytest.raises(KeslerError, match=r"late_\w+ failed"):
        model.predict(HOSTILE)


PLAIN = {
    update_rule: lambda parameters, weight, losses, squared_norms, gram, steps: None,
    feature_map: lambda x, p: x - p,
    link_function: lambda v: v,
    mercer_kernel: lambda x, z: 1.0,
    preconditioner: lambda evidence: 1.0,
    query_rule: lambda parameters, margin, confidence, new: 1.0,
    threshold_algorithm: lambda parameters, positions, z, margin, weights, states, numbers: None,
}


@pytest.mark.parametrize("decorator", PLAIN, ids=lambda decorator: decorator.__name__)
def test_decorators_need_no_parentheses(decorator):
    function = PLAIN[decorator]
    assert decorator(function) == decorator()(function)
