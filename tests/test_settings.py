"""Laws over the settings of the estimators: what is saved, loaded, cloned and written as JSON."""

import json
import re
from contextlib import nullcontext, suppress
from inspect import cleandoc, signature
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import kesler
from configurations import VALUES
from kesler import (
    KeslerError,
    LinearMax,
    OnlineClassifier,
)
from kesler.budgets import Budget
from kesler.candidates import Candidates
from kesler.forests import ExtraTrees
from kesler.hypotheses import Grouped, Ordered, PerClass, Shared
from kesler.links import Exponential
from kesler.maps import Contrast
from kesler.online.contract import require_usable
from kesler.preprocessing import Counts, RandomFourier, Ranges, Replay, ZScores
from kesler.settings.codec import ESTIMATORS, estimator_of, settings_of
from kesler.settings.table import SETTINGS, count_or_name, number_or_name
from kesler.updates import RULES, SOBA, HingeGradient
from streams import assert_same_bits

RNG = np.random.default_rng(5)
X = RNG.normal(size=(40, 3)).round(2)
LABELS = np.array(["a", "b", "c"])[(X @ RNG.normal(size=(3, 3))).argmax(axis=1)].tolist()

TARGETS: dict[str, Any] = {
    "OnlineMultilabelClassifier": [[label] for label in LABELS],
    "OnlineLabelRanker": [[label, *sorted({"a", "b", "c"} - {label})] for label in LABELS],
    "CostSensitiveClassifier": [
        {each: float(each != label) for each in ("a", "b", "c")} for label in LABELS
    ],
}
"""The targets of the estimators that do not learn one class of each row."""

OF_FUNCTIONS = {"features", "infer", "infer_augmented", "cost", "n_best"}
"""The parameters that hold functions, and how many answers they return."""

OWN_DEFAULTS: dict[str, dict[str, Any]] = {
    "LinearMax": {"hypotheses": "multi", "preprocessing": None, "on_new_class": "register"},
    "StructuredLearner": {"update": "perceptron"},
}
"""The defaults of estimators that follow another source."""

OF_WORDS = {
    "hypotheses": [PerClass(), Shared(Contrast(), begins_at=0.05)],
    "update": "ovr-hinge",
    "preconditioner": "adagrad",
    "on_new_class": "inherit",
    "preprocessing": "information",
    "intercept": 0.0,
}
"""Those of the default for words, which has candidates."""

TOGETHER: list[tuple[str, dict[str, Any]]] = [
    ("OnlineClassifier", {"update": "pa2", "C": 0.25}),
    ("OnlineClassifier", {"update": "arow", "r": 2.0}),
    ("OnlineClassifier", {"update": "perceptron", "kernel": "rbf", "sigma": 2.0, "budget": 9}),
    ("OnlineClassifier", {"update": "pa1", "kernel": "rbf", "budget": Budget(9, "projectron")}),
    ("OnlineClassifier", {"hypotheses": [Grouped({"g": ["a", "b"], "h": ["c"]})], "update": "pa"}),
    ("OnlineClassifier", {**OF_WORDS, "candidates": 2}),
    ("OnlineClassifier", {**OF_WORDS, "candidates": Candidates(2, beyond=3, budget=9)}),
    ("OnlineOrdinalClassifier", {"hypotheses": [PerClass(), Ordered()]}),
    ("OnlineClassifier", {"update": [OnlineClassifier("multi", update="scw1"), LinearMax()]}),
]


def cases():
    for name in ESTIMATORS:
        made = getattr(kesler, name)
        begun = {"classes": ["a", "b", "c"]} if name == "BanditClassifier" else {}
        yield name, begun
        for parameter in made().get_params(deep=False):
            for value in VALUES.get(parameter, []):
                yield name, {**begun, parameter: value}
    yield from TOGETHER


def fitted(name: str, settings: dict[str, Any]) -> Any:
    """Return a fitted estimator of these settings, None if they do not fit each other."""
    try:
        return learnt(getattr(kesler, name)(**settings))
    except kesler.KeslerError:
        return None


def learnt(model: Any) -> Any:
    return model.fit(X, TARGETS.get(type(model).__name__, LABELS))


def said(model: Any) -> np.ndarray:
    return np.asarray(model.decision_function(X))


def same(one: Any, other: Any) -> bool:
    """Return whether two parameters are equal, estimators by theirs."""
    if type(one) is not type(other) and not isinstance(one, (np.generic, bool, int, float)):
        return False
    if hasattr(one, "get_params"):
        mine, others = one.get_params(deep=False), other.get_params(deep=False)
        return mine.keys() == others.keys() and all(same(mine[n], others[n]) for n in mine)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(np.all(one == other))


@pytest.mark.filterwarnings("ignore:ranks=./.. no label has")  # the labels are single letters
@pytest.mark.parametrize(("name", "settings"), list(cases()), ids=repr)
def test_a_loaded_estimator_is_the_one_that_was_saved(name, settings, tmp_path):
    model = fitted(name, settings)
    if model is None:
        pytest.skip("these settings are refused")
    model.save(tmp_path / "model")
    loaded = kesler.load(tmp_path / "model")
    assert type(loaded) is type(model)
    assert same(loaded, model)
    np.testing.assert_array_equal(said(loaded), said(model))
    assert same(loaded.resolved_, model.resolved_)
    np.testing.assert_array_equal(said(learnt(clone(loaded))), said(learnt(clone(model))))


@pytest.mark.parametrize(("name", "settings"), list(cases()), ids=repr)
def test_settings_are_the_same_after_json(name, settings):
    model = getattr(kesler, name)(**settings)
    assert same(estimator_of(json.loads(json.dumps(settings_of(model)))), model)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_setting_has_a_value_in_these_laws(name):
    made = {**VALUES, **{parameter: 0 for _, given in TOGETHER for parameter in given}}
    rest = {"eta", "delta"}  # of rules, as C and r
    assert set(getattr(kesler, name)().get_params(deep=False)) <= set(made) | rest


# ---- numbers and truth values of NumPy -----------------------------------------------------------

NUMBERS: dict[str, Any] = {
    "C": 0.5, "eta": 0.5, "delta": 0.25, "r": 2.0, "sigma": 2.0, "intercept": 0.5,
    "half_life": 16.0, "discount": 0.5, "demotion": 0.5, "share": 0.25, "exploration": 0.25,
    "label_budget": 0.5,
    "budget": 5, "replay": 2, "candidates": 2, "memory_limit": 10**8, "epochs": 2, "seed": 7,
    "random_state": 7, "averaged": True, "shuffle": True, "uncertainty": True, "weighted": True,
}  # fmt: skip
"""A value of each setting that may be a number or a truth value."""

BESIDE: dict[str, dict[str, Any]] = {
    "C": {"update": "pa1"}, "eta": {"update": "hinge"}, "delta": {"update": "margin-perceptron"},
    "r": {"update": "arow"}, "averaged": {"update": "pa1"},
    "sigma": {"kernel": "rbf", "update": "simproj", "algorithm": "perceptron"},
    "budget": {"kernel": "rbf", "update": "simproj", "algorithm": "perceptron"},
    "label_budget": {"update": "pa1"}, "half_life": {"update": "pa1"},
}  # fmt: skip
"""What a setting needs to have an effect."""

OF_NUMPY = {float: (np.float32, np.float64, np.int64), int: (np.int64, np.int32), bool: (np.bool_,)}


def numbers():
    for name in ESTIMATORS:
        own = getattr(kesler, name)().get_params(deep=False)
        yield from ((name, setting) for setting in own if setting in NUMBERS)


def outcome(name: str, settings: dict[str, Any], path: Any) -> Any:
    """Return what an estimator has learnt and stores of its settings, or that it is refused."""
    begun = {"classes": ["a", "b", "c"]} if name == "BanditClassifier" else {}
    own = getattr(kesler, name)().get_params(deep=False)
    model = getattr(kesler, name)(**begun, **{n: v for n, v in settings.items() if n in own})
    rows = WORDS if "candidates" in settings or "memory_limit" in settings else X
    try:
        learnt_from(model, rows)
    except kesler.KeslerError:
        return "refused"
    model.save(path)
    return path.read_bytes(), said_of(model, rows)


def said_of(model: Any, rows: Any) -> list[Any]:
    return np.asarray(model.decision_function(rows)).tolist()


@pytest.mark.parametrize(("name", "setting"), list(numbers()))
def test_numbers_of_numpy_are_settings_as_those_of_python_are(name, setting, tmp_path):
    value, beside = NUMBERS[setting], BESIDE.get(setting, {})
    expected = outcome(name, beside | {setting: value}, tmp_path / "model")
    assert expected != "refused"
    for kind in OF_NUMPY[type(value)]:
        given = kind(value)
        if given == value:
            if isinstance(given, np.integer) != isinstance(value, int):  # files say 2, not 2.0
                expected = outcome(name, beside | {setting: given.item()}, tmp_path / "model")
            assert outcome(name, beside | {setting: given}, tmp_path / "model") == expected, kind


def test_every_setting_that_is_a_number_has_one_in_these_laws():
    for name, setting in SETTINGS.items():
        is_one = isinstance(setting.default, (bool, int, float)) or setting.read in (
            *(float, int, bool, number_or_name, count_or_name),
        )
        assert not is_one or name in NUMBERS or name in OF_FUNCTIONS, name


@pytest.mark.parametrize(
    ("part", "name"),
    [(HingeGradient, "invariant"), (SOBA, "diagonal"), (Contrast, "relative"),
     (Exponential, "exact"), (Exponential, "balanced"), (Counts, "damped"),
     (RandomFourier, "information"), (Ranges, "information")],
)  # fmt: skip
def test_truth_values_of_numpy_are_those_of_python(part, name):
    for value in (True, False):
        assert repr(part(**{name: np.bool_(value)})) == repr(part(**{name: value}))
    for wrong in (1, "yes", np.array([True]), None):
        with pytest.raises(kesler.KeslerError, match="give True or False"):
            part(**{name: wrong})


# ---- the default keeps what it is ----------------------------------------------------------------

WORDS = [{f"w{j}": 1.0 for j in RNG.integers(0, 9, 4)} for _ in range(40)]
SORTS = {"measurements": X, "words": WORDS}
"""The kinds of rows."""


def learnt_from(model: Any, rows: Any) -> Any:
    return model.fit(rows, TARGETS.get(type(model).__name__, LABELS))


def in_use(name: str, rows: Any) -> tuple[Any, dict[str, Any]]:
    """Return a default estimator, and the settings that it uses where its members agree."""
    begun = {"classes": ["a", "b", "c"]} if name == "BanditClassifier" else {}
    model = learnt_from(getattr(kesler, name)(**begun), rows)
    used = model.resolved_.get_params(deep=False)
    members = used.pop("learners", None) or used.pop("update", None)
    if isinstance(members, list):
        each = [member.get_params(deep=False) for member in members]
        used |= {n: v for n, v in each[0].items() if all(same(one[n], v) for one in each)}
        used.pop("update", None)
    return model, used


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_value_in_use_changes_nothing(name, sort):
    """A rule that is named has the settings of its source, so `update` is another choice."""
    model, used = in_use(name, SORTS[sort])
    begun = {"classes": ["a", "b", "c"]} if name == "BanditClassifier" else {}
    own = model.get_params(deep=False)
    for setting, value in used.items():
        if setting in own and setting not in ("update", "algorithm"):
            given = getattr(kesler, name)(**{**begun, setting: value})
            assert_same_bits(learnt_from(given, SORTS[sort]), model)


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_resolved_estimator_learns_the_same(name, sort):
    model, _ = in_use(name, SORTS[sort])
    assert_same_bits(learnt_from(model.resolved_, SORTS[sort]), model)


@pytest.mark.parametrize(
    "given",
    [{"intercept": 2.0}, {"half_life": 30}, {"replay": 1}, {"on_new_class": "register"},
     {"hypotheses": "multi"}, {"preprocessing": "z-scores"}, {"preprocessing": None}],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("update", ["auto", "ensemble"])
def test_a_setting_applies_to_the_members_of_the_default(given, update):
    members = OnlineClassifier(update=update, **given).fit(X, LABELS).resolved_.update
    assert len(members) == {"auto": 5, "ensemble": 6}[update]
    (trees,) = (each for each in members if isinstance(each.update, ExtraTrees))
    assert trees.update == ExtraTrees()
    ((name, value),) = given.items()
    parts = {"multi": [PerClass()], "z-scores": ZScores(), 1: Replay(1)}
    applied = [
        same(getattr(member, name), parts.get(value, value))
        for member in members
        if member is not trees
    ]
    # Neither applies to a kernel, the fourth, and rows are not learnt again by ridge regression.
    unfit = {"half_life": [3], "replay": [1, 3]}.get(name, [])
    assert [i for i, applies in enumerate(applied) if not applies] == unfit


def test_a_kernel_among_the_members_has_no_weights_to_inherit():
    *others, kernel, _ = OnlineClassifier(on_new_class="inherit").fit(X, LABELS).resolved_.update
    assert kernel.kernel is not None and kernel.on_new_class == "learn"
    assert {each.on_new_class for each in others} == {"inherit"}


REFUSED = [{"averaged": True}, {"sigma": 2.0}, {"budget": 9}, {"C": 0.5}]


@pytest.mark.parametrize("given", REFUSED, ids=repr)
@pytest.mark.parametrize("update", ["auto", "ensemble"])
def test_a_setting_without_effect_is_refused(given, update):
    with pytest.raises(kesler.KeslerError, match=next(iter(given))):
        OnlineClassifier(update=update, **given).fit(X, LABELS)


@pytest.mark.parametrize(
    ("given", "forms"),
    [
        ({}, [False, True]),
        ({"preconditioner": "second-order"}, [True]),
        ({"memory_limit": "1 MB"}, [False]),
        ({"update": "pa1", "budget": 5}, []),
    ],
    ids=str,
)
def test_settings_are_usable_if_rows_of_a_form_can_be_learnt(given, forms):
    """The forms are those of rows that list non-zeros, and of rows that list every feature."""
    model, fit = OnlineClassifier(**given), []
    for dense in (False, True):
        with suppress(KeslerError):
            fit.append(model._new_learner(dense=dense) and dense)
    assert fit == forms
    with nullcontext() if forms else pytest.raises(KeslerError, match=re.escape("budget=5")):
        require_usable(model)


def test_means_of_weights_are_for_single_learners():
    """The default for words is one, and so is that of a named rule."""
    for model, rows in ((OnlineClassifier(averaged=True), WORDS),
                        (OnlineClassifier(update="softmax", averaged=True), X)):  # fmt: skip
        assert model.fit(rows, LABELS).resolved_.averaged is True


ALONE = [{"hypotheses": "hybrid"}, {"kernel": "rbf"}, {"link": "p-norm"}]


@pytest.mark.parametrize("given", ALONE, ids=repr)
def test_another_kind_of_learner_is_named_in_resolved(given):
    resolved = OnlineClassifier(**given).fit(X, LABELS).resolved_
    assert not isinstance(resolved.update, list) and resolved.update != "auto"


# ---- the table -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*ESTIMATORS, "StructuredLearner"])
def test_signatures_have_the_defaults_of_the_table(name):
    given = OF_FUNCTIONS if name == "StructuredLearner" else set()
    for parameter in signature(getattr(kesler, name)).parameters.values():
        if parameter.name not in given:
            own = OWN_DEFAULTS.get(name, {})
            assert parameter.default == own.get(parameter.name, SETTINGS[parameter.name].default)


def documented(text: str) -> dict[str, str]:
    """Return the types that a docstring gives for its parameters."""
    text = cleandoc(text.replace("\\\n", ""))
    section = text.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    heads = re.findall(r"^(\w[\w, ]*?)(?: : (.*))?$", section, flags=re.MULTILINE)
    return {name: kind for names, kind in heads for name in names.split(", ")}


def learns_by(name: str, rule: str) -> bool:
    """Return whether an estimator learns by a named rule."""
    try:
        if name == "StructuredLearner":
            searches = {"infer": lambda x, score: 0, "infer_augmented": lambda x, score, y: 1 - y}
            features = {"features": lambda x, y: {y: 1.0}}
            kesler.StructuredLearner(**features, **searches, update=rule).learn_one(None, 1)
        else:
            getattr(kesler, name)(update=rule).partial_fit(X, TARGETS.get(name, LABELS))
    except KeslerError:
        return False
    return True


SAID_OF_RULES = {
    name: text
    for name in (*ESTIMATORS, "StructuredLearner")
    if '"pa1"' in (text := documented(getattr(kesler, name).__doc__).get("update", ""))
}
"""What the docstrings say of `update`, of estimators that do not refer to another one for it."""


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", SAID_OF_RULES)
def test_docstrings_name_the_rules_that_an_estimator_learns_by(name, rule):
    assert (f'"{rule}"' in SAID_OF_RULES[name]) == learns_by(name, rule)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_docstrings_describe_every_setting_and_its_default(name):
    types = documented(getattr(kesler, name).__doc__)
    for setting, value in getattr(kesler, name)().get_params(deep=False).items():
        assert setting in types
        said = f"default {value!r}".replace("'", '"')
        if "default" in types[setting]:
            assert said in types[setting].replace("'", '"'), (setting, types[setting])
