"""Parameters as scikit-learn's users write them: beside the name of a rule, and in searches."""

import copy
import re
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kesler import (
    CrammerSingerClassifier,
    KeslerError,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
    SoftmaxClassifier,
    StructuredLearner,
)
from kesler.budgets import Budget
from kesler.kernels import RBF, Polynomial
from kesler.links import Exponential
from kesler.maps import Contrast
from kesler.online.named_rule import rule_of
from kesler.updates import (
    AROW,
    MIRA,
    PARAMETERS,
    RULES,
    SCW,
    HingeGradient,
    MarginPerceptron,
    PassiveAggressive,
)
from streams import make_stream

STREAM = make_stream(2, n_rows=60, n_classes=3)
WITH_A_RULE = [
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
    lambda **given: StructuredLearner(len, len, len, **given),
]


def rule_in_use(estimator):
    return rule_of(estimator.update, estimator.get_params(deep=False))


@pytest.mark.parametrize("make", WITH_A_RULE)
@pytest.mark.parametrize(
    "given, rule",
    [
        ({"update": "pa1", "C": 0.01}, PassiveAggressive(0.01)),
        ({"update": "pa2", "C": np.float64(2)}, PassiveAggressive(2.0, variant=2)),
        ({"update": "margin-perceptron", "delta": 3}, MarginPerceptron(3.0)),
        ({"update": "arow", "r": 0.5}, AROW(0.5)),
        ({"update": "hinge", "eta": 0.5}, HingeGradient(0.5)),
    ],
)
def test_parameters_of_a_rule_stand_beside_its_name(make, given, rule):
    assert rule_in_use(make(**given)) == rule


def test_the_learner_runs_the_rule_with_its_parameter():
    by_name = OnlineClassifier("multi", update="pa1", C=0.01).fit(STREAM.X, STREAM.y)
    by_object = OnlineClassifier("multi", update=PassiveAggressive(0.01))
    by_object.fit(STREAM.X, STREAM.y)
    default = OnlineClassifier("multi", update="pa1").fit(STREAM.X, STREAM.y)
    scores = by_name.decision_function(STREAM.X)
    assert np.array_equal(scores, by_object.decision_function(STREAM.X))
    assert not np.array_equal(scores, default.decision_function(STREAM.X))
    assert by_name.resolved_.update == PassiveAggressive(0.01)


@pytest.mark.parametrize(
    "given, words",
    [
        ({"update": "perceptron", "C": 1.0}, "'perceptron': it has no parameters"),
        ({"update": "pa1", "eta": 1.0}, "eta=1.0 has no effect on update='pa1': its parameters"),
        ({"update": MIRA(), "C": 1.0}, "which has its own parameters"),
        ({"C": 1.0}, "has no effect on SoftmaxGradient"),
        ({"update": "ensemble", "C": 1.0}, "does not fit each member"),
        ({"update": "pa1", "C": -1.0}, "C must be a finite number above 0"),
    ],
)
def test_a_parameter_without_effect_is_refused(given, words):
    with pytest.raises(KeslerError, match=words):
        OnlineClassifier(**given).fit(STREAM.X, STREAM.y)


def test_a_kernel_has_a_rule_by_default():
    assert OnlineClassifier(kernel="rbf", C=10).fit(STREAM.X, STREAM.y).resolved_.update == (
        PassiveAggressive(10.0)
    )


@pytest.mark.parametrize("name", RULES)
def test_every_parameter_of_every_rule_can_be_set_within_the_update(name):
    model = OnlineClassifier(update=name)
    params = {key: value for key, value in model.get_params().items() if "__" in key}
    assert params == {f"update__{key}": getattr(RULES[name](), key) for key in inner_names(name)}
    for key, value in params.items():
        other = not value if isinstance(value, bool) else value * 0.9
        assert model.set_params(**{key: other}) is model
        inner = key.removeprefix("update__")
        assert getattr(rule_in_use(model), inner) == other == model.get_params()[key]
        assert rule_in_use(clone(model)) == rule_in_use(model)
        alone = OnlineClassifier(update=name).set_params(**{key: other})
        assert getattr(rule_in_use(alone), inner) == other
        if inner != "invariant":  # the others stand beside the name
            assert (alone.update, getattr(alone, inner)) == (name, other)


@pytest.mark.parametrize("given", [{"C": -1.0}, {"eta": 0.5}], ids=str)
def test_parameters_are_listed_also_of_a_rule_that_does_not_take_them(given):
    """What does not fit is an error of `fit`, as in scikit-learn."""
    model = OnlineClassifier(update="pa1", **given)
    assert model.get_params() == model.get_params(deep=False)
    assert given.items() <= model.get_params().items()
    with pytest.raises(KeslerError, match=next(iter(given))):
        model.fit(STREAM.X, STREAM.y)


def inner_names(name):
    """Return the fields of a rule, except the variant that the name determines."""
    return [key for key in vars(RULES[name]()) if key != "variant"]


def test_parameters_beside_a_name_are_declared_once():
    names = {inner for name in RULES for inner in inner_names(name)}
    assert names == {*PARAMETERS, "invariant"}


def test_parts_are_replaced_and_not_changed():
    rule, link = MIRA(0.5), Exponential(1.2)
    model = OnlineClassifier(update=rule, link=link).set_params(update__C=0.1, link__alpha=1.5)
    assert (model.update, model.link) == (MIRA(0.1), Exponential(1.5))
    assert (rule, link) == (MIRA(0.5), Exponential(1.2))


@pytest.mark.parametrize("make", WITH_A_RULE)
def test_a_rule_is_shown_and_its_parameters_are_listed(make):
    model = make(update=MIRA(0.5))
    assert model.get_params()["update__C"] == 0.5
    assert re.fullmatch(rf"{type(model).__name__}\(.*update=MIRA\(C=0.5\)\)", repr(model))


@pytest.mark.parametrize("make", WITH_A_RULE)
def test_a_deep_copy_shares_what_the_estimator_shared(make):
    rule = MIRA(0.5)
    model, own = copy.deepcopy([make(update=rule), rule])
    assert model.update is own and own is not rule


@pytest.mark.parametrize("make", WITH_A_RULE)
def test_the_rule_is_set_before_its_parameters(make):
    model = make().set_params(update__C=0.25, update="mira")
    assert rule_in_use(model) == MIRA(0.25)


@pytest.mark.parametrize("key", ["update__gamma", "update__C__C", "gamma", "link__alpha"])
def test_unknown_parameters_are_refused_as_by_scikit_learn(key):
    with pytest.raises(ValueError, match=f"Invalid parameter '{key}'"):
        OnlineClassifier(update=MIRA()).set_params(**{key: 1.0})


@pytest.mark.parametrize("update", ["pa1", PassiveAggressive()])
def test_a_search_sets_the_parameter_of_the_rule(update):
    pipeline = make_pipeline(StandardScaler(), OnlineClassifier("multi", update=update))
    grid = {"onlineclassifier__update__C": [1e-6, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(STREAM.X, STREAM.y)
    apart = [
        GridSearchCV(
            make_pipeline(StandardScaler(), OnlineClassifier("multi", update=PassiveAggressive(C))),
            {},
            cv=2,
        ).fit(STREAM.X, STREAM.y)
        for C in (1e-6, 1.0)
    ]
    scores = [each.cv_results_["mean_test_score"][0] for each in apart]
    assert search.cv_results_["mean_test_score"].tolist() == scores
    assert scores[0] != scores[1]


@pytest.mark.parametrize("value", [True, np.True_, Fraction(1, 2), 10**400, np.nan, -1])
@pytest.mark.parametrize(
    "use",
    [
        lambda value: CrammerSingerClassifier(C=value).fit([[0.0], [1.0]], [0, 1]),
        lambda value: CrammerSingerClassifier(delta=value).fit([[0.0], [1.0]], [0, 1]),
        lambda value: SoftmaxClassifier(tol=value).fit([[0.0], [1.0]], [0, 1]),
        lambda value: SCW(C=value),
        lambda value: RBF(value),
        lambda value: Contrast(value),
        lambda value: Budget(5, "projectron", value),
    ],
)
def test_what_is_no_number_in_the_range_is_refused(use, value):
    with pytest.raises(KeslerError, match="must be a finite number"):
        use(value)


def test_ranges_are_said_in_words():
    with pytest.raises(KeslerError, match="from 0 to 1,000,000: it is a number of rows"):
        Contrast(-1)
    with pytest.raises(KeslerError, match="degree must be an integer of 1 or more"):
        Polynomial(True)
