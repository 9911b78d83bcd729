"""Every learner of the product, one row each, made of the product's own tables.

A new name in `RULES` or `MAPS` comes in by itself; one further row in `ROWS` buys all the laws of
`test_laws.py`. Classes go by numbers here, in the order in which they are met.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

import homemade
import reference
import reference_metrics
import reference_pooled
from kesler import Grouped, LinearMax, OnlineClassifier, PerClass, Shared
from kesler.algorithms import ALGORITHMS
from kesler.conditioning import CONDITIONINGS, Conditioning, resolve_conditioning
from kesler.estimators.defaults import of_measurements, of_words
from kesler.links import LINKS
from kesler.maps import MAPS, FeatureMap
from kesler.updates import RULES, UpdateRule
from reference_conditioning import conditioned

MOST_CLASSES = 12
SETS = {
    name: [code for code in range(MOST_CLASSES) if name in homemade.sets_of(code)]
    for name in ("even", "third", "low")
}
CUSTOM = [
    *(homemade.sets_of, homemade.damped, homemade.closeness),
    *(homemade.part_way, homemade.bent, homemade.counted),
]

# ---- the same parts in the oracle's words -------------------------------------------------------

ORACLE_MAPS: dict[str, dict[str, Any]] = {
    **reference.MAPS,
    "product": reference.MAPS["product_first"],
    "product-mean": reference.MAPS["product_mean"],
    "damped": {"g": lambda x, p: x * p / (1 + 0.25 * np.abs(p)), "statistic": "mean"},
    "closeness": {"g": lambda x, p: 1 / (1 + (x - p) ** 2), "statistic": "first"},
}
reference.RULES["part_way"] = lambda losses, norms, gram, C: (
    C * reference.pa(losses, norms, gram, C)
)
reference.CHOICES["part_way"] = reference.most_violated

NEEDS_TWIN = tuple(reference_metrics.RULES)
"""Rules that only trial-by-trial comparisons know: those against the rest, and confident ones."""
PLAIN_RULES = [rule for rule in RULES if rule not in NEEDS_TWIN]

# ---- families of hypotheses ---------------------------------------------------------------------

Names = Sequence[Any]
"""The label of each class, by its number."""


def grouped(names: Names | None, view: FeatureMap | None = None) -> Grouped:
    names = range(MOST_CLASSES) if names is None else names
    return Grouped({s: [names[code] for code in codes] for s, codes in SETS.items()}, view)


def born(names: Names | None, view: FeatureMap | None = None) -> Grouped:
    """Return groups that a function tells when a class appears."""
    if names is None:
        return Grouped(homemade.sets_of, view)
    return Grouped(lambda label: homemade.sets_of(names.index(label)), view)


@dataclass(frozen=True)
class Family:
    """Which hypotheses there are: as the user asks for them, and as the oracle describes them."""

    hypotheses: Callable[[Any, Any], Any]  # (names, view) -> what OnlineClassifier takes
    kinds: tuple[tuple[str, bool], ...]  # the oracle's kind of each part, whether it has the map


FAMILIES = {
    "multi": Family(lambda names, view: "multi", (("per_class", False),)),
    "single": Family(lambda names, view: "single", (("shared", True),)),
    "hybrid": Family(lambda names, view: "hybrid", (("per_class", False), ("shared", True))),
    "own-view": Family(lambda names, view: PerClass(view), (("per_class", True),)),
    "grouped": Family(lambda names, view: [grouped(names)], (("grouped", False),)),
    "grouped-view": Family(lambda names, view: [grouped(names, view)], (("grouped", True),)),
    "born": Family(lambda names, view: [born(names)], (("grouped", False),)),
    "born-view": Family(lambda names, view: born(names, view), (("grouped", True),)),
    "all-three": Family(
        lambda names, view: [PerClass(), Shared(view), grouped(names)],
        (("per_class", False), ("shared", True), ("grouped", False)),
    ),
}
WITH_MAP = [name for name, family in FAMILIES.items() if any(has for _, has in family.kinds)]
WITHOUT_MAP = [name for name in FAMILIES if name not in WITH_MAP]


def with_strength(rule: str, C: float) -> UpdateRule:
    """Return a rule whose aggressiveness, margin or step size, whichever it has, is C."""
    made = RULES[rule]()
    return replace(made, **{made.strength: C}) if made.strength is not None else made


DEFAULTS: dict[str, Callable[[], dict[str, Any]]] = {
    "default": dict,
    "words": of_words,
    "measurements": of_measurements,
}
"""What the learner of those who choose nothing is made of: left to it, or said."""

# ---- rows ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One learner: its parts by name."""

    rule: str
    family: str
    view: str | None
    link: str = "linear"
    averaged: bool = False
    algorithm: str | None = None
    conditioning: str | None = None
    metric: str = "auto"
    newcomers: Any = "wait"
    half_life: float | None = None
    invariant: bool = False
    sparse: bool = False  # whether its weights stand in sparse rows, however few they are
    settings: str | None = None  # of DEFAULTS: then the parts only say what is in them

    @property
    def name(self) -> str:
        link = self.link if self.link != "linear" else None
        first = self.rule if self.algorithm is None else f"linear-max-{self.algorithm}"
        parts = [self.settings, first, self.family, self.view, link, self.conditioning]
        options = {
            "mean": self.averaged,
            "invariant": self.invariant,
            "sparse-rows": self.sparse,
            self.metric: self.metric != "auto",
            self.newcomers: self.newcomers != "wait",
            f"half-life-{self.half_life}": self.half_life is not None,
        }
        return "-".join([*filter(None, parts), *(name for name, on in options.items() if on)])

    @property
    def is_plain(self) -> bool:
        """Whether the oracle of whole runs knows it: no link, metric, rest or newcomers."""
        told = (self.link, self.algorithm, self.conditioning, self.metric, self.newcomers)
        plain = told == ("linear", None, None, "auto", "wait") and not self.invariant
        known = self.has_oracle and self.half_life is None
        return plain and self.rule not in NEEDS_TWIN and known

    @property
    def has_oracle(self) -> bool:
        """Whether the oracle knows its map: where statistics of all rows fade it does not."""
        fades = self.half_life is not None and self.view in reference_pooled.VIEWS
        return self.view is None or (self.view in ORACLE_MAPS and not fades)

    @property
    def takes_weights(self) -> bool:
        """Whether rows may have weights: algorithms that move by themselves know none."""
        return self.algorithm not in ("romma", "alma", "counted")

    @property
    def feature_map(self) -> FeatureMap | None:
        if self.view is None:
            return None
        return MAPS[self.view]() if self.view in MAPS else getattr(homemade, self.view)

    @property
    def conditioned_by(self) -> Conditioning | None:
        return resolve_conditioning(self.conditioning, dense=True)

    def seen(self, X: Any, weights: Any = None) -> Any:
        """Return rows as their trials see them, in the oracle's words."""
        return conditioned(self.conditioned_by, X, weights)

    @property
    def dense_only(self) -> bool:
        parts = (self.feature_map, self.conditioned_by)
        return any(part is not None and not part.zero_at_zero for part in parts)

    def update(self, C: float) -> UpdateRule:
        if self.rule not in RULES:
            return getattr(homemade, self.rule).with_parameters(C)
        rule = with_strength(self.rule, C)
        return replace(rule, invariant=True) if self.invariant else rule  # type: ignore[call-arg]

    def learner(self, names: Names | None = None, C: float = 1.0) -> OnlineClassifier:
        if self.settings is not None:
            return OnlineClassifier(**DEFAULTS[self.settings]())
        view = self.feature_map
        hypotheses = FAMILIES[self.family].hypotheses(names, view)
        view = "auto" if view is None else view
        if self.algorithm is not None:
            known = self.algorithm in ALGORITHMS
            algorithm = self.algorithm if known else getattr(homemade, self.algorithm)
            return LinearMax(algorithm, hypotheses, view, self.conditioning)
        return OnlineClassifier(
            hypotheses,
            view,
            self.update(C),
            self.link if self.link in LINKS else getattr(homemade, self.link),
            self.averaged,
            conditioning=self.conditioning,
            metric=self.metric,
            newcomers=self.newcomers,
            half_life=self.half_life,
        )

    def oracle(self) -> list[dict[str, Any]]:
        view = None if self.view is None else ORACLE_MAPS[self.view]
        return [
            {"kind": kind, "map": view if mapped else None, "groups": list(SETS.values())}
            for kind, mapped in FAMILIES[self.family].kinds
        ]


def _rows() -> list[Row]:
    asked = [
        # Every rule, over each way of sharing.
        *product(RULES, ["multi", "single", "hybrid", "grouped-view"], ["product-mean"]),
        # Every map, in each family that has one, and each family.
        *product(["perceptron", "pa1"], FAMILIES, MAPS),
        # A user's own.
        *product(["part_way"], FAMILIES, ["damped"]),
        *product(["pa1"], WITH_MAP, ["closeness"]),
    ]
    rows = [Row(rule, family, view if family in WITH_MAP else None) for rule, family, view in asked]
    averaged = [replace(row, averaged=True) for row in rows if row.rule == "perceptron"]
    # Every link, over each way of sharing.
    linked = [
        replace(row, link=link)
        for row in rows
        for link in [*LINKS, "bent"]
        if row.rule in ("perceptron", "simproj") and row.view in (None, "product-mean")
        if row.family in ("multi", "single", "hybrid", "grouped-view", "born")
        if (row.rule, link) != ("simproj", "bent")  # which has no norm
    ]
    linear_max = [
        Row("perceptron", family, view, algorithm=algorithm)
        for algorithm in [*ALGORITHMS, "counted"]
        for family, view in [
            ("multi", None),
            ("hybrid", "product-mean"),
            ("grouped-view", "distance"),
            ("all-three", "frequency"),
        ]
    ]
    conditioned = [
        replace(row, conditioning=conditioning)
        for row in [
            Row("pa1", "multi", None),
            Row("perceptron", "hybrid", "frequency"),
            Row("mira", "grouped-view", "product-mean"),
            Row("simproj", "hybrid", "product-mean", "exponential"),
            Row("perceptron", "all-three", "product", averaged=True),
            Row("perceptron", "multi", None, algorithm="romma"),
        ]
        for conditioning in CONDITIONINGS
        if conditioning != "none"
    ]
    return list(
        dict.fromkeys(
            [
                *(*rows, *averaged[:4], *linked, *linear_max, *conditioned),
                *(*_adaptive(), *_forgetting(), *_defaults(), *_sparse()),
            ]
        )
    )


def _defaults() -> list[Row]:
    """The learner of those who choose nothing: it sees arrays, which it takes for measurements."""
    words = Row(
        *("ovr-hinge", "hybrid", "contrast"),
        conditioning="counts",
        metric="adagrad",
        newcomers="virtual",
        settings="words",
    )
    measurements = Row(
        *("softmax", "hybrid", "gaussian-ratio"),
        conditioning="z-scores",
        metric="adagrad",
        newcomers="learn",
        invariant=True,
        settings="measurements",
    )
    return [words, measurements, replace(measurements, settings="default")]


def _sparse() -> list[Row]:
    """Learners whose weights stand in sparse rows."""
    return [
        Row("perceptron", "multi", None, sparse=True),
        Row("pa1", "multi", None, sparse=True),
        Row("pa2", "multi", None, sparse=True, half_life=2.0),
        Row("hinge", "multi", None, sparse=True, newcomers="learn"),
    ]


def _forgetting() -> list[Row]:
    """Learners of which each keeps something else that fades; after 40 rows all is divided."""
    return [
        Row("pa1", "hybrid", "product-mean", half_life=2.0),
        Row("perceptron", "single", "frequency", half_life=5.0),
        Row("ovr-squared", "all-three", "product-mean", metric="adagrad", half_life=2.0),
        Row("ovr-squared", "hybrid", "contrast", metric="adagrad", half_life=2.0),
        Row("softmax", "hybrid", "gaussian-ratio", metric="adagrad", half_life=2.0),
        Row("ovr-squared", "multi", None, metric="adagrad", newcomers="virtual", half_life=1.0),
        Row("pa1", "multi", None, half_life=2.0),
        Row("simproj", "hybrid", "frequency", metric="confidence", half_life=2.0),
        Row("softmax", "multi", None, metric="confidence", half_life=5.0),
        Row("pa1", "multi", None, conditioning="idf", half_life=2.0),
        Row("pa1", "hybrid", "distance", conditioning="z-scores", half_life=2.0),
    ]


def _adaptive() -> list[Row]:
    """Metrics, newcomers and steps that do not overshoot, each with parts that differ."""
    view = "product-mean"
    return [
        # Each metric, where few classes move and where all do, over every way of sharing.
        *(
            Row(rule, family, view if family in WITH_MAP else None, metric=metric)
            for metric in ("adagrad", "confidence")
            for rule, family in [
                *(("pa1", "multi"), ("simproj", "hybrid"), ("ovr-squared", "multi")),
                *(("softmax", "grouped-view"), ("ovr-squared", "all-three")),
            ]
        ),
        Row("softmax", "hybrid", "distance", metric="adagrad"),
        Row("perceptron", "own-view", "frequency", metric="adagrad", averaged=True),
        *(
            Row(rule, family, None, metric=metric)
            for metric in ("scale-free", "scale-free-adagrad")
            for rule, family in [("ovr-squared", "multi"), ("pa1", "grouped"), ("softmax", "born")]
        ),
        *(
            Row(rule, family, map_, metric=metric, newcomers=newcomers)
            for newcomers in ("learn", "virtual")
            for rule, family, map_, metric in [
                ("ovr-squared", "hybrid", "frequency", "adagrad"),
                ("softmax", "multi", None, "adagrad"),
                ("pa1", "all-three", "distance", "auto"),
                ("scw1", "hybrid", view, "auto"),
                ("ovr-hinge", "multi", None, "scale-free-adagrad"),
            ]
        ),
        Row("simproj", "multi", None, newcomers="virtual", averaged=True),
        Row("mira", "hybrid", "difference", newcomers="virtual"),
        *(Row(rule, "hybrid", view, invariant=True) for rule in ("hinge", "softmax", "logistic")),
        Row("softmax", "hybrid", "distance", metric="adagrad", newcomers="learn", invariant=True),
    ]


ROWS = _rows()
