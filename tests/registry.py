"""Every learner of the product, one row each, made of the product's own tables.

A new name in `RULES` or `MAPS` comes in by itself; one further row in `ROWS` buys all the laws of
`test_laws.py`. Classes go by numbers here, in the order in which they are seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

import homemade
import reference
import reference_pooled
import reference_preconditioners
from kesler import LinearMax, OnlineClassifier
from kesler.algorithms import ALGORITHMS
from kesler.hypotheses import Grouped, PerClass, Shared
from kesler.links import LINKS, resolve_link
from kesler.maps import MAPS, FeatureMap, GaussianRatio
from kesler.online.defaults import of_measurements, of_words
from kesler.preconditioners import PRECONDITIONERS
from kesler.preprocessing import PREPROCESSINGS, Preprocessing, resolve_preprocessing
from kesler.updates import RULES, UpdateRule
from reference_preprocessing import conditioned

MOST_CLASSES = 12
SETS = {
    name: [code for code in range(MOST_CLASSES) if name in homemade.sets_of(code)]
    for name in ("even", "third", "low")
}
CUSTOM = [
    *(homemade.sets_of, homemade.damped, homemade.closeness),
    *(homemade.part_way, homemade.bent, homemade.rising, homemade.stretched, homemade.counted),
    homemade.slowing,
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

NEEDS_REFERENCE = tuple(reference_preconditioners.RULES)
"""Rules that only trial-by-trial comparisons know: those against the rest, and confident ones."""
PLAIN_RULES = [rule for rule in RULES if rule not in NEEDS_REFERENCE]

# ---- families of hypotheses ---------------------------------------------------------------------

Names = Sequence[Any]
"""The label of each class, by its number."""


def grouped(names: Names | None, view: FeatureMap | None = None) -> Grouped:
    names = range(MOST_CLASSES) if names is None else names
    return Grouped({s: [names[code] for code in codes] for s, codes in SETS.items()}, view)


def born(names: Names | None, view: FeatureMap | None = None) -> Grouped:
    """Return groups that a function assigns when a class appears."""
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


SCALED = [name for name, make in PRECONDITIONERS.items() if make().unit == "features"]
"""The metrics that measure features in units of their own, which maps have none of."""

DEFAULTS: dict[str, Callable[[], dict[str, Any]]] = {
    "words": of_words,
    "measurements": lambda: of_measurements(GaussianRatio()),
}
"""Settings of the default learner: for words, and for measurements with a map.

The default for measurements without a map expands rows: see `test_expansions.py`.
"""

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
    preprocessing: str | None = None
    preconditioner: str = "auto"
    on_new_class: Any = "register"
    half_life: float | None = None
    invariant: bool = False
    sparse: bool = False  # whether its weights are stored in sparse rows, whatever their number
    settings: str | None = None  # of DEFAULTS: the parts then only describe them

    @property
    def name(self) -> str:
        link = self.link if self.link != "linear" else None
        first = self.rule if self.algorithm is None else f"linear-max-{self.algorithm}"
        parts = [self.settings, first, self.family, self.view, link, self.preprocessing]
        options = {
            "mean": self.averaged,
            "invariant": self.invariant,
            "sparse-rows": self.sparse,
            self.preconditioner: self.preconditioner != "auto",
            self.on_new_class: self.on_new_class != "register",
            f"half-life-{self.half_life}": self.half_life is not None,
        }
        return "-".join([*filter(None, parts), *(name for name, on in options.items() if on)])

    @property
    def moved_in(self) -> Any:
        """The preconditioner, or the name of one of ours."""
        known = self.preconditioner in (*PRECONDITIONERS, "auto")
        return self.preconditioner if known else getattr(homemade, self.preconditioner)

    @property
    def linked_by(self) -> Any:
        """The name of the link, or a user's."""
        return self.link if self.link in LINKS else getattr(homemade, self.link)

    @property
    def is_plain(self) -> bool:
        """Whether the oracle of whole runs knows it: no link, preconditioner.

        Rest or new classes.
        """
        settings = (
            self.link,
            self.algorithm,
            self.preprocessing,
            self.preconditioner,
            self.on_new_class,
        )
        plain = settings == ("linear", None, None, "auto", "register") and not self.invariant
        known = self.has_oracle and self.half_life is None
        return plain and self.rule not in NEEDS_REFERENCE and known

    @property
    def has_oracle(self) -> bool:
        """Whether the oracle knows its map: where statistics of all rows fade it does not."""
        fades = self.half_life is not None and self.view in reference_pooled.VIEWS
        return self.view is None or (self.view in ORACLE_MAPS and not fades)

    @property
    def takes_weights(self) -> bool:
        """Whether rows may have weights: algorithms that move by themselves know none."""
        return self.algorithm not in ("romma", "alma", "alma-p", "counted")

    @property
    def feature_map(self) -> FeatureMap | None:
        if self.view is None:
            return None
        return MAPS[self.view]() if self.view in MAPS else getattr(homemade, self.view)

    @property
    def conditioned_by(self) -> Preprocessing | None:
        return resolve_preprocessing(self.preprocessing, dense=True)

    def seen(self, X: Any, weights: Any = None, labels: Any = None) -> Any:
        """Return rows as their trials see them, in the oracle's words."""
        return conditioned(self.conditioned_by, X, weights, labels)

    @property
    def dense_only(self) -> bool:
        parts = (self.feature_map, self.conditioned_by)
        reads_zeros = any(part is not None and not part.zero_at_zero for part in parts)
        return reads_zeros or self.preconditioner == "second-order"

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
            return LinearMax(algorithm, hypotheses, view, self.preprocessing)
        return OnlineClassifier(
            hypotheses,
            view,
            self.update(C),
            self.linked_by,
            self.averaged,
            preprocessing=self.preprocessing,
            preconditioner=self.moved_in,
            on_new_class=self.on_new_class,
            half_life=self.half_life,
        )

    def oracle(self) -> list[dict[str, Any]]:
        view = None if self.view is None else ORACLE_MAPS[self.view]
        parts = [
            {"kind": kind, "map": view if mapped else None, "groups": list(SETS.values())}
            for kind, mapped in FAMILIES[self.family].kinds
        ]
        if self.settings == "words":
            parts.append({**parts[-1], "map": {"view": reference_pooled.plain_contrast}})
        return parts


def has_norm(link: str) -> bool:
    """Return whether steps can be measured in the norm of a link."""
    made = resolve_link(link) if link in LINKS else getattr(homemade, link)
    return made.exponent is not None


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
        for link in [*LINKS, "bent", "rising"]
        if row.rule in ("perceptron", "simproj") and row.view in (None, "product-mean")
        if row.family in ("multi", "single", "hybrid", "grouped-view", "born")
        if row.rule != "simproj" or has_norm(link)
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
        replace(row, preprocessing=preprocessing)
        for row in [
            Row("pa1", "multi", None),
            Row("perceptron", "hybrid", "frequency"),
            Row("mira", "grouped-view", "product-mean"),
            Row("simproj", "hybrid", "product-mean", "exponential"),
            Row("perceptron", "all-three", "product", averaged=True),
            Row("perceptron", "multi", None, algorithm="romma"),
        ]
        for preprocessing in PREPROCESSINGS
        if preprocessing != "none"
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
    """The defaults for words, and for measurements with a map."""
    words = Row(
        *("ovr-hinge", "hybrid", "contrast"),
        preprocessing="information",
        preconditioner="adagrad",
        on_new_class="inherit",
        settings="words",
    )
    measurements = Row(
        *("softmax", "hybrid", "gaussian-ratio"),
        preprocessing="z-scores",
        preconditioner="adagrad",
        on_new_class="learn",
        invariant=True,
        settings="measurements",
    )
    return [words, measurements]


def _sparse() -> list[Row]:
    """Learners whose weights are stored in sparse rows."""
    return [
        Row("perceptron", "multi", None, sparse=True),
        Row("pa1", "multi", None, sparse=True),
        Row("pa2", "multi", None, sparse=True, half_life=2.0),
        Row("hinge", "multi", None, sparse=True, on_new_class="learn"),
    ]


def _forgetting() -> list[Row]:
    """Learners with different decaying state; after 40 rows all of it is rescaled."""
    return [
        Row("pa1", "hybrid", "product-mean", half_life=2.0),
        Row("perceptron", "single", "frequency", half_life=5.0),
        Row("ovr-squared", "all-three", "product-mean", preconditioner="adagrad", half_life=2.0),
        Row("ovr-squared", "hybrid", "contrast", preconditioner="adagrad", half_life=2.0),
        Row("softmax", "hybrid", "gaussian-ratio", preconditioner="adagrad", half_life=2.0),
        Row(
            "ovr-squared",
            "multi",
            None,
            preconditioner="adagrad",
            on_new_class="inherit",
            half_life=1.0,
        ),
        Row("pa1", "multi", None, half_life=2.0),
        Row("simproj", "hybrid", "frequency", preconditioner="confidence", half_life=2.0),
        Row("softmax", "hybrid", "product-mean", preconditioner="slowing", half_life=2.0),
        Row("softmax", "multi", None, preconditioner="confidence", half_life=5.0),
        Row("hinge", "hybrid", "frequency", preconditioner="distance-adagrad", half_life=5.0),
        Row("pa1", "multi", None, preprocessing="idf", half_life=2.0),
        Row("pa1", "multi", None, preprocessing="information", half_life=2.0),
        Row("pa1", "hybrid", "distance", preprocessing="z-scores", half_life=2.0),
    ]


def _adaptive() -> list[Row]:
    """Metrics, new classes and steps that do not overshoot, each with parts that differ."""
    view = "product-mean"
    return [
        # Each preconditioner, where few classes move and where all do, over every way of sharing.
        *(
            Row(rule, family, view if family in WITH_MAP else None, preconditioner=preconditioner)
            for preconditioner in [
                *(name for name in PRECONDITIONERS if name not in SCALED),
                "slowing",
            ]
            if preconditioner not in ("euclidean", "coin-betting", "second-order")
            for rule, family in [
                *(("pa1", "multi"), ("simproj", "hybrid"), ("ovr-squared", "multi")),
                *(("mira", "multi"), ("mira", "hybrid")),
                *(("softmax", "grouped-view"), ("ovr-squared", "all-three")),
            ]
        ),
        *(
            Row(rule, family, view if family in WITH_MAP else None, preconditioner="coin-betting")
            for rule, family in [
                *(("hinge", "multi"), ("simperc", "hybrid"), ("ovr-squared", "multi")),
                *(("softmax", "grouped-view"), ("ovr-squared", "all-three")),
            ]
        ),
        Row("hinge", "multi", None, preconditioner="coin-betting", averaged=True),
        # Over x itself, as one matrix requires.
        *(
            Row(rule, family, None, preconditioner="second-order")
            for rule, family in [
                *(("perceptron", "multi"), ("pa1", "multi"), ("simproj", "grouped")),
                *(("mira", "multi"), ("softmax", "born"), ("least-squares", "multi")),
            ]
        ),
        Row("softmax", "hybrid", "distance", preconditioner="adagrad"),
        Row("perceptron", "own-view", "frequency", preconditioner="adagrad", averaged=True),
        *(
            Row(rule, family, None, preconditioner=preconditioner)
            for preconditioner in SCALED
            for rule, family in [("ovr-squared", "multi"), ("pa1", "grouped"), ("softmax", "born")]
        ),
        *(
            Row(rule, family, map_, preconditioner=preconditioner, on_new_class=on_new_class)
            for on_new_class in ("learn", "inherit")
            for rule, family, map_, preconditioner in [
                ("ovr-squared", "hybrid", "frequency", "adagrad"),
                ("softmax", "multi", None, "adagrad"),
                ("pa1", "all-three", "distance", "auto"),
                ("scw1", "hybrid", view, "auto"),
                ("ovr-hinge", "multi", None, "scale-free-adagrad"),
                ("softmax", "hybrid", "frequency", "coin-betting"),
            ]
        ),
        Row("simproj", "multi", None, on_new_class="inherit", averaged=True),
        Row("mira", "hybrid", "difference", on_new_class="inherit"),
        *(Row(rule, "hybrid", view, invariant=True) for rule in ("hinge", "softmax", "logistic")),
        Row(
            "softmax",
            "hybrid",
            "distance",
            preconditioner="adagrad",
            on_new_class="learn",
            invariant=True,
        ),
    ]


ROWS = _rows()


def covering(rows: Sequence[Any], *pairs_with: str, of: Callable[[Any], Any] = vars) -> list[Any]:
    """Return a few of the rows, the same every time, for laws that hardly depend on the row.

    Every value of every part that is in any row is in one of them, and so is every pair of values
    of which one belongs to a part in `pairs_with`. `of` returns the parts of a row by name.
    """
    marks = {id(row): _marks(of(row), pairs_with) for row in rows}
    missing, chosen = set().union(*marks.values()), []
    while missing:
        chosen.append(max(rows, key=lambda row: len(marks[id(row)] & missing)))
        missing -= marks[id(chosen[-1])]
    return [row for row in rows if row in chosen]


def _marks(parts: dict[str, Any], pairs_with: Sequence[str]) -> set[Any]:
    values = set(parts.items())
    return values | {
        frozenset({(name, parts[name]), other})
        for name in pairs_with
        for other in values
        if other[0] != name
    }
