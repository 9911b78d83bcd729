"""Defaults: the values of parameters that are left at "auto".

They were chosen with `benchmarks/defaults.py`; its results page describes how. There is one setting
for rows that list only non-zeros (words, counts), one for rows that list every feature
(measurements, pixels) and one for kernels; ranks, label sets and rankings have their own, chosen
with `benchmarks/answers.py`. With a named update rule, the defaults follow the source
of the rule, without preprocessing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kesler.hypotheses import Grouped, Ordered, PerClass, Shared
from kesler.learner.targets import Kind
from kesler.maps import resolve_map
from kesler.maps.contrast import Contrast
from kesler.maps.distance import Distance
from kesler.maps.feature_map import FeatureMap
from kesler.maps.gaussian import GaussianRatio
from kesler.maps.view import SubExperts
from kesler.preconditioners import AdaGrad, SecondOrder, resolve_preconditioner
from kesler.preprocessing import (
    Bins,
    Concatenated,
    Counts,
    Pairs,
    RandomFourier,
    Ranges,
    Replay,
    ZScores,
)
from kesler.settings.table import AUTO, SETTINGS
from kesler.updates.confidence import AROW
from kesler.updates.gradient import LogisticGradient, SoftmaxGradient
from kesler.updates.one_vs_rest import (
    LeastSquares,
    OneVsRestHinge,
    OneVsRestLogistic,
    OneVsRestSquared,
)
from kesler.updates.rule import UpdateRule

if TYPE_CHECKING:
    from kesler.data.schema.measurements import Inputs

Settings = dict[str, Any]


CONTRASTS = [
    Shared(Contrast(), begins_at=0.15),
    Shared(Contrast(relative=False), begins_at=0.05),
]
"""The shared hypotheses of words: over rare and common words alike, and over common words."""


def of_words(view: FeatureMap | None = None) -> Settings:
    """Return the settings for rows that list only non-zeros."""
    views = [Shared(view, begins_at=0.15)] if view else CONTRASTS
    return {
        "hypotheses": [PerClass(), *views],
        "update": OneVsRestHinge(),
        "preconditioner": AdaGrad(),
        "on_new_class": "inherit",
        "preprocessing": Counts(information=True),
        "intercept": 1.0,
    }


def of_cells() -> Settings:
    """Return the settings of the learner of words that reads the features of tables."""
    return {**of_words(), "intercept": 0.0}


def of_measurements(view: FeatureMap | None = None) -> Settings:
    """Return the settings for rows that list every feature.

    With a map, all classes share a hypothesis over it, and rows are not expanded.
    """
    expanded = Concatenated((ZScores(), Bins(), RandomFourier()))
    shared = [] if view is None else [Shared(view, begins_at=0.02)]
    return {
        "hypotheses": [PerClass(), *shared],
        "update": SoftmaxGradient(1.5, invariant=True),
        "preconditioner": AdaGrad(length_free=True),
        "on_new_class": "learn",
        "preprocessing": expanded if view is None else ZScores(),
        "intercept": 1.0,
    }


def of_mapped(view: FeatureMap | None = None, *, dense: bool = True) -> Settings:
    """Return settings over one map, without expansions of measurements and information of words.

    They serve targets other than single classes, and learners that are to be mixed. The map is that
    of densities or of contrasts if None is given.
    """
    if dense:
        return of_measurements(view or GaussianRatio())
    return {**of_words(view or Contrast()), "preprocessing": Counts()}


def of_feedback(given: Mapping[str, Any], *, dense: bool) -> Settings:
    """Return the parameters of the default where only the class that is shown is judged."""
    chosen = _of_plain_words(given)
    if given.get("kernel") is not None:
        chosen = {**over_kernel(dense=dense), "update": OneVsRestSquared(1.5)}
    elif dense:
        chosen = {**of_measurements(), "update": OneVsRestSquared(1.5)}
    return _filled(given, chosen)


def _of_plain_words(given: Mapping[str, Any]) -> Settings:
    """Return those of `of_words`, without views if step sizes are in units of each feature of x."""
    chosen = of_words()
    if resolve_preconditioner(given.get("preconditioner", AUTO)).unit == "features":
        return {**chosen, "hypotheses": [PerClass()]}
    return chosen


def of_bandit_rule(given: Mapping[str, Any]) -> Settings:
    """Return the parameters of a rule for such feedback alone, as in its source."""
    return _filled(given, {**SOURCES, "hypotheses": "multi", "preconditioner": "euclidean"})


def _filled(given: Mapping[str, Any], chosen: Settings) -> Settings:
    """Return parameters, of which those that are left open have chosen values."""
    names = [n for n in given if n in chosen and _is(given[n], AUTO)]
    return {**given, **{name: chosen[name] for name in names}}


def of_least_squares(weights: tuple[float, ...] | None = None) -> Settings:
    """Return the settings of ridge regression over random features, for rows of measurements."""
    return {
        **of_measurements(),
        "update": LeastSquares(),
        "preconditioner": SecondOrder(ridge=25.0),
        # Other features than those of `of_measurements`.
        "preprocessing": RandomFourier(seed=1, weights=weights, information=True),
    }


def members_of_default(*, dense: bool, inputs: Inputs | None = None) -> list[Settings]:
    """Return the settings of the members of the default; none if it is a single learner.

    Those for measurements know different things: bins and pairs of them; ridge regression over
    random features; a line for each class, by small steps; the rows themselves, by a kernel; and
    the values of few inputs together, by trees. Of a table with categories, a learner of words
    reads the features, and these read its inputs, which have weights; the first learns rows again,
    of which few have the same categories. Vectors are read by a learner over the density of each
    number in each class and, where there are other inputs, which it reads as well, by one of a line
    for each class.
    """
    if inputs is None:
        return _of_measurements() if dense else []
    if not inputs.has_vectors:
        return [of_cells(), *_of_measurements(inputs)]
    if inputs.n_columns == len(inputs):
        return [of_cells(), of_mapped()]
    lines = {**of_measurements(), "preprocessing": ZScores()}
    return [of_cells(), *_of_measurements(inputs), of_mapped(), lines]


def _of_measurements(inputs: Inputs | None = None) -> list[Settings]:
    # Of measurements alone, classes may change suddenly, and rows before are then wrong.
    replay, weights, in_ranges = Replay(2, size=500, until=500), None, None
    if inputs is not None:
        replay, n = Replay(2), inputs.n_columns
        weights, in_ranges = inputs.weights[:n], inputs.weights_in_ranges[:n]
    pairs = {"preprocessing": Concatenated((ZScores(), Bins(), Pairs())), "replay": replay}
    lines = {
        "preprocessing": Concatenated((ZScores(),)),
        "update": SoftmaxGradient(0.1, invariant=True),
    }
    return [
        {**of_measurements(), **pairs},
        of_least_squares(weights),
        {**of_measurements(), **lines},
        of_kernel(in_ranges),
        of_trees(weights),
    ]


def of_kernel(weights: tuple[float, ...] | None = None) -> Settings:
    """Return the settings of a kernel machine that stores at most 1,000 rows of measurements."""
    from kesler.budgets import Budget

    ranges = Ranges(information=True, weights=weights)
    kernel = {"kernel": "rbf", "budget": Budget(1000, "smallest"), "preprocessing": ranges}
    return {**over_kernel(dense=True), **kernel}


def of_trees(weights: tuple[float, ...] | None = None) -> Settings:
    """Return the settings of a learner with trees."""
    from kesler.forests import ExtraTrees

    trees = ExtraTrees(weights=weights)
    return {**SOURCES, "hypotheses": "multi", "on_new_class": "learn", "update": trees}


def has_trees(given: Mapping[str, Any]) -> bool:
    """Return whether settings are those of a learner with trees."""
    update = given.get("update")
    return isinstance(update, UpdateRule) and update.has_trees


def of_ensemble(*, dense: bool, inputs: Inputs | None = None) -> list[Settings]:
    """Return the settings of the members of the default ensemble."""
    if dense or inputs is not None:
        large_steps = {**of_measurements(), "update": SoftmaxGradient(6.0, invariant=True)}
        return [*members_of_default(dense=dense, inputs=inputs), large_steps]
    default = of_words()
    arow = {"update": AROW(), "preconditioner": "auto", "on_new_class": "learn"}
    rare = {"hypotheses": [PerClass(), CONTRASTS[0]], "preprocessing": Counts(idf=True)}
    return [default, default | arow, default | rare, default | arow | rare]


SOURCES: Settings = {
    "hypotheses": "hybrid",
    "update": "pa1",
    "preconditioner": "auto",
    "on_new_class": "register",
    "preprocessing": None,
    "intercept": 0.0,
}
"""The settings in the sources of the rules."""

MARGIN: Settings = {**SOURCES, "on_new_class": "learn", "preprocessing": "scale"}
"""The settings with costs or a link, which need a rule with margins."""


def over_kernel(*, dense: bool) -> Settings:
    """Return the settings of a learner with a kernel."""
    return {**SOURCES, "hypotheses": "multi", "on_new_class": "learn", "preprocessing": "scale"}


def of_ranks(view: FeatureMap | None = None, *, dense: bool) -> Settings:
    """Return the settings for ordered classes: those of classes, and a direction for all ranks."""
    default = of_mapped(view, dense=dense)
    return {
        **default,
        "hypotheses": [*default["hypotheses"], Ordered()],
        "update": LogisticGradient(1.5, invariant=True),
        "on_new_class": "learn",
        "decision": "median",
    }


def of_sets(view: FeatureMap | None = None, *, dense: bool) -> Settings:
    """Return the settings for label sets."""
    if not dense:
        return {**of_words(view or Contrast()), "decision": "f1"}
    own = {"update": OneVsRestLogistic(1.0), "on_new_class": "learn"}
    return {**of_mapped(view), **own, "decision": "f1"}


def of_rankings(view: FeatureMap | None = None, *, dense: bool) -> Settings:
    """Return the settings for rankings of labels."""
    return {
        **_of_rows(dense=dense),
        "hypotheses": [PerClass(), Shared(view or (Distance() if dense else Contrast()))],
        "update": LogisticGradient(1.0, invariant=True),
        "on_new_class": "learn",
        "intercept": 1.0,
    }


def _of_rows(*, dense: bool) -> Settings:
    """Return the preparation of rows and the step sizes."""
    default = of_mapped(dense=dense)
    return {name: default[name] for name in ("preconditioner", "preprocessing")}


OF_ANSWERS: dict[Kind, Callable[..., Settings]] = {
    "rank": of_ranks,
    "sets": of_sets,
    "levels": of_rankings,
}
"""The settings for each kind of target other than single classes."""

KERNEL_OF_SETS: Settings = {"update": OneVsRestHinge(), "decision": "f1"}
"""What differs from the other settings with a kernel for label sets."""

SOURCES_OF_ANSWERS: dict[Kind, Settings] = {
    kind: {
        **SOURCES,
        "update": "simproj",
        "intercept": 1.0,
        "decision": "score",
        "hypotheses": "multi" if kind == "sets" else "hybrid",
    }
    for kind in OF_ANSWERS
}
"""The settings in the sources of the rules for these targets."""


def resolve(given: Mapping[str, Any], *, dense: bool, answer: Kind = "class") -> Settings:
    """Return the parameters of a learner with every "auto" resolved.

    Parameters
    ----------
    given : parameters by name.
    dense : whether the first rows list every feature.
    answer : the kind of target.

    Examples
    --------
    >>> resolve({"update": "auto", "on_new_class": "auto"}, dense=False)
    {'update': OneVsRestHinge(eta=0.5, invariant=True), 'on_new_class': 'inherit'}
    >>> resolve({"update": "mira", "on_new_class": "auto"}, dense=False)
    {'update': 'mira', 'on_new_class': 'register'}
    >>> resolve({"update": "auto", "decision": "auto"}, dense=True, answer="rank")
    {'update': LogisticGradient(eta=1.5, invariant=True), 'decision': 'median'}
    """
    if answer in ("class", "costs"):
        chosen = _settings(given, dense=dense, has_costs=answer == "costs")
    else:
        chosen = _settings_of(answer, given, dense=dense)
    return {
        name: chosen[name] if _is(value, AUTO) and name in chosen else value
        for name, value in given.items()
    }


def _settings(given: Mapping[str, Any], *, dense: bool, has_costs: bool) -> Settings:
    """Return the default settings that fit the given parameters."""
    if has_trees(given):
        return of_trees()
    if not _is(given.get("update"), AUTO) or _asks_sub_experts(given.get("hypotheses")):
        return SOURCES
    if given.get("kernel") is not None:
        return over_kernel(dense=dense)
    has_costs = has_costs or given.get("costs") is not None
    if has_costs or SETTINGS["link"].is_given(given.get("link", "linear")):
        return MARGIN
    named = given.get("feature_map", "auto")
    view = None if _is(named, AUTO) else resolve_map(named, dense=dense)
    if dense:
        return of_measurements(view)
    return _of_plain_words(given) if view is None else of_words(view)


def _settings_of(answer: Kind, given: Mapping[str, Any], *, dense: bool) -> Settings:
    """Return what `_settings` does, for other targets than single classes."""
    sources = SOURCES_OF_ANSWERS[answer]
    if not _is(given.get("update"), AUTO) or _asks_sub_experts(given.get("hypotheses")):
        return sources
    prepared = {**sources, "on_new_class": "learn", "preprocessing": "scale"}
    if given.get("kernel") is not None:
        return {**prepared, "hypotheses": "multi", **(KERNEL_OF_SETS if answer == "sets" else {})}
    has_costs = given.get("costs") is not None
    if has_costs or SETTINGS["link"].is_given(given.get("link", "linear")):
        return prepared
    named = given.get("feature_map", "auto")
    view = None if _is(named, AUTO) else resolve_map(named, dense=dense)
    return OF_ANSWERS[answer](view, dense=dense)


def _asks_sub_experts(hypotheses: Any) -> bool:
    """Return whether hypotheses use sub-experts, by name or as the feature map of a part."""
    if isinstance(hypotheses, str):
        return "sub-experts" in hypotheses.split("+")
    parts = hypotheses if isinstance(hypotheses, (list, tuple)) else [hypotheses]
    known = (part for part in parts if isinstance(part, (PerClass, Shared, Grouped)))
    return any(isinstance(part.feature_map, SubExperts) for part in known)


def _is(value: Any, name: str) -> bool:
    """Return whether a parameter is this name; objects are not compared with text."""
    return isinstance(value, str) and value == name
