"""Kernels compiled for facts: the branches that are left out, and the learners that run them."""

import numpy as np
import pytest

from kesler import OnlineClassifier
from kesler.state.fields import flattened
from kesler.state.records import LearnerRecord, SupportVectors
from streams import make_stream
from test_startup import is_compiled

facts = pytest.importorskip("kesler.compiled.trial.facts")
pruning = pytest.importorskip("kesler.compiled.jit.pruning")

from kesler.compiled.jit.numba_internals import numba_ir, run_frontend  # noqa: E402
from kesler.compiled.jit.pointers import Facts, Pointed  # noqa: E402
from kesler.compiled.jit.record_types import LEARNER_RECORD  # noqa: E402
from kesler.compiled.trial import weight_trial  # noqa: E402
from kesler.compiled.trial.records import is_vs_rest, takes_one  # noqa: E402
from kesler.compiled.trial.variants import is_averaged  # noqa: E402

EVERY = {
    **facts.VARIANTS,
    **{"sparse": facts.SPARSE, **facts.KERNELS},
    "m": facts.MEASURED,
}


# ---- conditions ---------------------------------------------------------------------------------


def known(**values):
    return Pointed(LEARNER_RECORD, facts.facts(**values))


def calls_left(function, *arguments):
    """The names of the functions that are still called when facts have decided branches."""
    found = run_frontend(function)
    missing = [None] * (function.__code__.co_argcount - len(arguments))
    pruning.prune(found, [*arguments, *missing])
    loaded = [s.value for b in found.blocks.values() for s in b.body if hasattr(s, "value")]
    names = {v.name for v in loaded if isinstance(v, numba_ir.Global)}
    return sorted(name for name in names if name.startswith("left_"))


def left_here():
    pass


def left_there():
    pass


def compared(learner):
    if learner.rule.selection == 1:
        left_here()
    else:
        left_there()


def chained(learner, n):
    if learner.rule.selection == 1 and learner.link.exponent != 2 and n:
        left_here()
    if not (learner.rule.selection == 3 or n > 2):
        left_there()


def in_helpers(learner, n):
    if takes_one(learner.rule.selection):
        left_here()
    if is_vs_rest(learner.rule.selection) or is_averaged(learner):
        left_there()


def by_shape(learner):
    if learner.ranks.order.shape[0]:
        left_here()
    for _ in range(learner.statistics.kinds.shape[0]):
        left_there()


def by_values(learner):
    for part in range(learner.parts.kind.shape[0]):
        if learner.parts.kind[part] == 2:
            left_here()
        if learner.parts.map[part] > 1:
            left_there()


def through_variables(learner, n):
    rule, kind = learner.rule, learner.preconditioner.kind
    selection = rule.selection
    if n:
        selection = rule.requires
    if selection == 5:
        left_here()
    while n:
        kind += 1
        n -= 1
    if kind == 0:
        left_there()


@pytest.mark.parametrize(
    ("function", "values", "left"),
    [
        (compared, {"rule__selection": {1}}, ["left_here"]),
        (compared, {"rule__selection": {0, 2}}, ["left_there"]),
        (compared, {"rule__selection": {0, 1}}, ["left_here", "left_there"]),
        (compared, {}, ["left_here", "left_there"]),
        (chained, {"link__exponent": {2}, "rule__selection": {3}}, []),
        (chained, {"link__exponent": {2}}, ["left_there"]),
        (chained, {"rule__selection": {1}}, ["left_here", "left_there"]),
        (in_helpers, {"rule__selection": {1, 2}, "settings__predictor": {0}}, ["left_here"]),
        (in_helpers, {"rule__selection": {7, 8}}, ["left_there"]),
        (in_helpers, {"rule__selection": {1, 4}}, ["left_here", "left_there"]),
        (by_shape, {"ranks__order__shape__0": {0}}, ["left_there"]),
        (by_shape, {"statistics__kinds__shape__0": {0}}, ["left_here"]),
        (by_values, {"parts__kind__each": {0, 1}}, ["left_there"]),
        (by_values, {"parts__map__each": {0, 1}}, ["left_here"]),
        (through_variables, {"rule__selection": {4}, "rule__requires": {0, 1}}, ["left_there"]),
        (through_variables, {"rule__selection": {4}}, ["left_here", "left_there"]),
        (
            through_variables,
            {"rule__selection": {4}, "rule__requires": {1}, "preconditioner__kind": {1}},
            ["left_there"],
        ),
    ],
)
@is_compiled
def test_branches_are_left_out_only_if_facts_decide_them(function, values, left):
    assert calls_left(function, known(**values)) == left


@is_compiled
def test_results_of_helpers_follow_from_facts():
    def code(selection):
        return 1 if selection == 2 else 0

    assert pruning.results_of(code, (frozenset([2]),)) == {1}
    assert pruning.results_of(code, (frozenset([2, 3]),)) == {0, 1}
    assert pruning.results_of(code, (None,)) == {0, 1}


# ---- facts and learners -------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_facts_are_about_fields_that_exist(name):
    fields = {**flattened(LearnerRecord), **flattened(SupportVectors, "weights.")}
    for key, values in EVERY[name]:
        field = key.removesuffix(".each").partition(".shape.")[0]
        assert (field in fields or field == "decay.growth") and values, key


def test_facts_compare_and_print_by_their_contents():
    one, other = facts.facts(a__b={1, 2}, c={0}), facts.facts(c={0}, a__b={2, 1})
    assert one == other and str(one) == str(other) and hash(one) == hash(other)
    assert one.of("a").values("b") == {1, 2} and one.values("d") is None
    assert Pointed(LEARNER_RECORD, one) == Pointed(LEARNER_RECORD, other)
    assert Pointed(LEARNER_RECORD, one).name != Pointed(LEARNER_RECORD).name


LEARNERS = {
    "one_pair": [{"update": name} for name in ("perceptron", "pa", "pa1", "pa2", "hinge")],
    "shared_pair": [
        {"hypotheses": hypotheses, "update": name, "feature_map": view}
        for hypotheses in ("hybrid", "single")
        for name, view in (("perceptron", "product"), ("pa1", "auto"), ("hinge", "gaussian-ratio"))
    ],
    "every": [
        {"update": "pa1", "averaged": True},
        {"update": "pa1", "half_life": 10.0},
        {"update": "pa1", "preprocessing": "z-scores"},
        {"update": "pa1", "on_new_class": "inherit"},
        {"update": "pa1", "preconditioner": "adagrad"},
        {"update": "perceptron", "link": "exponential"},
        {"update": "simproj"},
        {"update": "pa1", "costs": lambda a, b: 1.0 + abs(a - b)},
    ],
}


@pytest.mark.parametrize(("name", "given"), [(n, each) for n in LEARNERS for each in LEARNERS[n]])
def test_learners_run_the_kernels_whose_facts_hold(name, given):
    model = OnlineClassifier(**{"hypotheses": "multi", **given})
    learner = model._new_learner(dense=True)
    record = learner._record
    if given.get("averaged"):
        record = record._replace(settings=record.settings._replace(predictor=7))
    found = next(n for n, each in facts.VARIANTS.items() if facts.hold(each, record))
    assert found == name


def test_the_defaults_run_kernels_of_their_own():
    *dense, kernel, _ = OnlineClassifier()._new_learner(dense=True).members
    learners = [*dense, OnlineClassifier()._new_learner(dense=False)]
    names = ["measurements", "least_squares", "measurements", "words"]
    assert facts.hold(facts.KERNELS["budget"], kernel._record)
    for learner, name in zip(learners, names, strict=True):
        record = learner._record
        assert next(n for n, e in facts.VARIANTS.items() if facts.hold(e, record)) == name


# ---- results ------------------------------------------------------------------------------------


def learnt(given, stream, every, monkeypatch):
    """Weights and scores of a learner, by the kernels of all branches if `every`."""
    if every:
        monkeypatch.setattr(weight_trial.facts, "VARIANTS", {"every": Facts()})
    model = OnlineClassifier(**given)
    half = len(stream.y) // 2
    model.partial_fit(stream.X[:half], stream.y[:half], sample_weight=stream.weights[:half])
    for x, y in zip(stream.X[half:], stream.y[half:], strict=True):
        model.learn_one(x, y)
    monkeypatch.undo()
    return [*model._learner.hypothesis_weights(), model.decision_function(stream.X)]


@pytest.mark.parametrize("hypotheses", ["multi", "hybrid"])
@pytest.mark.parametrize("update", ["perceptron", "pa1", "pa2", "hinge"])
def test_all_kernels_give_the_same_bits(update, hypotheses, monkeypatch):
    stream, given = make_stream(11), {"hypotheses": hypotheses, "update": update}
    own, full = (learnt(given, stream, e, monkeypatch) for e in (False, True))
    for one, other in zip(own, full, strict=True):
        np.testing.assert_array_equal(one, other)
