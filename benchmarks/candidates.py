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
from kesler.preprocessing import Bins, Concatenated, Counts, Pairs, ZScores
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
    first, ridge, lines, kernel, trees = members = members_of_default(dense=True)
    others = ridge, lines, kernel, trees

    def expanded(*blocks: Any) -> Make:
        return together({**first, "preprocessing": Concatenated((ZScores(), *blocks))}, *others)

    return {
        DEFAULT: OnlineClassifier,
        ENSEMBLE: lambda: OnlineClassifier(update="ensemble"),
        "default without bins and pairs": together(*others),
        "default without ridge regression": together(first, lines, kernel, trees),
        "default without small steps": together(first, ridge, kernel, trees),
        "default without kernel": together(first, ridge, lines, trees),
        "default without trees": together(first, ridge, lines, kernel),
        "default without replay": together({**first, "replay": 0}, *others),
        "default without bins": expanded(Pairs()),
        "default without pairs": expanded(Bins()),
        "default without pool": lambda: Ensemble(
            [OnlineClassifier(**each) for each in members], "mixture"
        ),
        "ensemble without large steps": OnlineClassifier,
        "two members, as before": together({**first, "replay": 0}, ridge),
        "with Gaussian map": together(*members, of_mapped()),
        "half-life 250": changed("dense", half_life=250),
        "half-life 1,000": changed("dense", half_life=1000),
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


def further_members() -> dict[str, dict[str, Any]]:
    """Return settings of learners beside those of the default for measurements."""
    first, ridge, lines, kernel, _ = members_of_default(dense=True)
    return {
        "kernel of all rows": {**kernel, "budget": None},
        "averaged linear": {**lines, "averaged": True},
        "replayed linear": {**lines, "replay": 4},
        "linear ridge regression": {
            **ridge,
            "preprocessing": Concatenated((ZScores(),)),
            "preconditioner": SecondOrder(ridge=5.0),
        },
        "AROW": {**lines, "update": AROW(), "preconditioner": "auto"},
        "half-life": {**first, "half_life": 250},
        "large steps": {**first, "update": SoftmaxGradient(6.0, invariant=True)},
        "replayed Gaussian map": {**of_mapped(), "replay": 2},
    }


def of_members() -> dict[str, Make]:
    """Return ensembles for measurements that change or add a member of the default."""
    members = members_of_default(dense=True)
    first, *others = members
    added = {f"with {name}": together(*members, s) for name, s in further_members().items()}
    replayed = {f"replay of {n}": together({**first, "replay": n}, *others) for n in (1, 4)}
    return {**added, **replayed}


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
