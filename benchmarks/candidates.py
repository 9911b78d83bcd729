"""The learners that the study compares, for each kind of rows; a new one needs one entry here.

An entry named "BASE without PART" is the entry BASE of the same kind with one part switched off:
the study reports what the part gains. The other entries are alternatives to the default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kesler import Ensemble, OnlineClassifier
from kesler.hypotheses import PerClass, Shared
from kesler.maps import FeatureMap, Frequency
from kesler.online.defaults import (
    members_of_default,
    of_mapped,
    of_measurements,
    of_words,
)
from kesler.preconditioners import SecondOrder
from kesler.preprocessing import Bins, Concatenated, Counts, Pairs, RandomFourier, ZScores
from kesler.updates import AROW, OneVsRestSquared, SoftmaxGradient

Make = Callable[[], OnlineClassifier]

DEFAULT, ENSEMBLE = "default", "ensemble"
JUDGED = (DEFAULT, ENSEMBLE)
"""The learners that the targets are of; they also run in random orders, and on drifting streams."""

SETTINGS: dict[str, Callable[[], dict[str, Any]]] = {
    "text": of_words,
    "dense": of_measurements,
    "table": of_words,
}
"""The default settings by kind of rows."""


def changed(kind: str, **others: Any) -> Make:
    """Return the default learner of a kind of rows, with some settings changed."""
    return lambda: OnlineClassifier(**{**SETTINGS[kind](), **others})


def with_steps(kind: str, times: float) -> Make:
    """Return the default learner with steps of another length."""
    rule = SETTINGS[kind]()["update"]
    return changed(kind, update=replace(rule, eta=times * rule.eta))


def with_map(kind: str, feature_map: FeatureMap) -> Make:
    """Return the default learner with another feature map for the shared hypothesis."""
    return changed(kind, hypotheses=[PerClass(), Shared(feature_map)])


def named(kind: str, update: str) -> Make:
    """Return the default learner with another rule, and the preconditioner of that rule."""
    return changed(kind, update=update, preconditioner="auto")


def together(*members: dict[str, Any]) -> Make:
    """Return an ensemble of learners with these settings."""
    return lambda: OnlineClassifier(update=[OnlineClassifier(**each) for each in members])


def parts_of_words(kind: str) -> dict[str, Make]:
    """Return the candidates for rows that list only non-zeros."""
    arow = {"update": "arow", "preconditioner": "auto"}
    contrasts = [each for each in of_words()["hypotheses"][1:] if each.feature_map.relative]
    return {
        DEFAULT: OnlineClassifier,
        ENSEMBLE: lambda: OnlineClassifier(update="ensemble"),
        "default without preprocessing": changed(kind, preprocessing=None),
        "default without information": changed(kind, preprocessing=Counts()),
        "default without maps": changed(kind, hypotheses="multi"),
        "default without second map": changed(kind, hypotheses=[PerClass(), *contrasts]),
        "default without preconditioner": changed(kind, preconditioner="euclidean"),
        "default without inheritance": changed(kind, on_new_class="learn"),
        "default without first rows": changed(kind, on_new_class="register"),
        "squared": changed(kind, update=OneVsRestSquared()),
        "half steps": with_steps(kind, 0.5),
        "double steps": with_steps(kind, 2.0),
        "softmax": changed(kind, update=SoftmaxGradient(1.5, invariant=True)),
        "Fink's map": with_map(kind, Frequency()),
        "idf": changed(kind, preprocessing=Counts(idf=True)),
        "AROW": changed(kind, **arow),
        "AROW, idf": changed(kind, **arow, preprocessing=Counts(idf=True)),
        "SCW-I": named(kind, "scw1"),
        "PA-I": named(kind, "pa1"),
        "PA-I, as Fink": lambda: OnlineClassifier(update="pa1"),
    }


def parts_of_measurements() -> dict[str, Make]:
    """Return the candidates for rows that list every feature."""
    first, second = members_of_default(dense=True)

    def expanded(*blocks: Any) -> Make:
        return together({**first, "preprocessing": Concatenated((ZScores(), *blocks))}, second)

    return {
        DEFAULT: OnlineClassifier,
        ENSEMBLE: lambda: OnlineClassifier(update="ensemble"),
        "default without ridge regression": lambda: OnlineClassifier(**first),
        "default without softmax": lambda: OnlineClassifier(**second),
        "default without bins": expanded(Pairs()),
        "default without pairs": expanded(Bins()),
        "default without expansions": together(
            {**first, "preprocessing": ZScores()}, {**second, "preprocessing": ZScores()}
        ),
        "default without pool": lambda: Ensemble(
            [OnlineClassifier(**first), OnlineClassifier(**second)], "mixture"
        ),
        "ensemble without large steps": OnlineClassifier,
        "with random features": expanded(Bins(), RandomFourier(), Pairs()),
        "random features for pairs": expanded(Bins(), RandomFourier()),
        "with Gaussian map": together(first, second, of_mapped()),
        "Gaussian map, as before": lambda: OnlineClassifier(**of_mapped()),
        "half-life 250": changed("dense", half_life=250),
        "half-life 1,000": changed("dense", half_life=1000),
        "half steps": with_steps("dense", 0.5),
        "double steps": with_steps("dense", 2.0),
        "AROW": named("dense", "arow"),
        "PA-I, as Fink": lambda: OnlineClassifier(update="pa1"),
    }


CANDIDATES: dict[str, dict[str, Make]] = {
    "text": parts_of_words("text"),
    "table": parts_of_words("table"),
    "dense": parts_of_measurements(),
}
"""Learners by kind of rows and name.

A name means the same for all kinds. The choice with a group left out is among all but ensembles."""


def third_members() -> dict[str, dict[str, Any]]:
    """Return settings of learners beside the two of the default for measurements."""
    first, second = members_of_default(dense=True)
    linear = {**first, "preprocessing": ZScores()}
    ridge = {**second, "preprocessing": ZScores()}
    small, large = (SoftmaxGradient(eta, invariant=True) for eta in (0.2, 6.0))
    return {
        "RBF": {"kernel": "rbf"},
        "RBF of 500 rows": {"kernel": "rbf", "budget": 500},
        "linear": linear,
        "slow linear": {**linear, "update": small},
        "averaged linear": {**linear, "averaged": True},
        "replayed linear": {**linear, "replay": 4},
        "linear ridge regression": {**ridge, "preconditioner": SecondOrder(ridge=5.0)},
        "AROW": {**linear, "update": AROW(), "preconditioner": "auto"},
        "half-life": {**first, "half_life": 250},
        "large steps": {**first, "update": large},
    }


def of_members() -> dict[str, Make]:
    """Return ensembles for measurements that change or add a member of the default."""
    first, second = members_of_default(dense=True)
    added = {f"with {name}": together(first, second, s) for name, s in third_members().items()}
    replayed = {n: {**first, "replay": n} for n in (1, 2, 4)}
    rbf, gaussian = {"kernel": "rbf"}, of_mapped()
    return {
        **added,
        **{f"replay of {n}": together(each, second) for n, each in replayed.items()},
        "replay of 2 and 1": together(replayed[2], {**second, "replay": 1}),
        "replay of 2, with Gaussian map": together(replayed[2], second, gaussian),
        "replay of 2, with RBF": together(replayed[2], second, rbf),
        "replay of 2, with RBF and Gaussian map": together(replayed[2], second, rbf, gaussian),
    }


CHOICES: dict[str, dict[str, Make]] = {
    **CANDIDATES,
    "dense": {**CANDIDATES["dense"], **of_members()},
}
"""Learners for `choosing.py`: the candidates, and others that are too slow to run on every set."""


def base_and_part(name: str) -> tuple[str, str] | None:
    """Return the candidate that has a part, and the part that another lacks; None if none.

    Examples
    --------
    >>> base_and_part("default without map"), base_and_part("squared")
    (('default', 'map'), None)
    """
    base, without, part = name.partition(" without ")
    return (base, part) if without else None


def is_ensemble(name: str) -> bool:
    """Return whether a candidate is an ensemble of learners, or one without a part."""
    return name.startswith(ENSEMBLE)
