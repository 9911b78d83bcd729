"""Competitors: fixed weights that a learner is compared with, found in hindsight or given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from kesler.bounds.theorems import Array, Competition
from kesler.errors import KeslerError
from kesler.estimators.base import OnlineLearner
from kesler.estimators.replay import Replay
from kesler.hypotheses import Grouped, PerClass
from kesler.machine import Machine
from kesler.updates import PassiveAggressive

Competitor = Literal["hindsight"] | OnlineLearner | Sequence[npt.ArrayLike]

# The search in hindsight: the caps of PA-I, of a step that parts the longest difference by 1, after
# how many passes the weights are looked at, and how many weights of a pass are averaged.
CAPS = (0.01, 0.1, 1.0, 100.0)
LOOKS = (1, 3, 10)
PIECES = 16


def competitions(
    replay: Replay, learner: OnlineLearner, competitor: Competitor
) -> Iterator[Competition]:
    """Yield what theorems are evaluated on, for the competitors that a user asks for.

    Raises
    ------
    KeslerError
        If `competitor` is none that can be, or has other hypotheses than the run.
    """
    machine = replay.machine(PassiveAggressive())
    _go_through(replay, machine)
    if not isinstance(competitor, str):
        _give(machine, competitor, learner)
        margins, norm = replay.measure(machine), _squared_norm(machine)
        yield _competition(replay, machine, margins, norm, np.ones(1))
        return
    if competitor != "hindsight":
        raise KeslerError(
            f"competitor={competitor!r} is not known: give 'hindsight', an estimator of the same "
            "hypotheses, or a list of arrays, one for each part"
        )
    for margins, norm in _in_hindsight(replay, machine):
        yield _competition(replay, machine, margins, norm, _scales(margins))


def _competition(
    replay: Replay, machine: Machine, margins: Array, squared_norm: float, scales: Array
) -> Competition:
    """Return the losses and norms of weights, given their margins, at several scales.

    The worst pair of a trial is the same at every scale, so that the loss of a u in it is
    max(0, 1 - a margin): of sorted margins, sums over those below 1 / a.
    """
    ordered = np.sort(margins)
    sums, squares = (np.concatenate([[0.0], np.cumsum(ordered**p)]) for p in (1, 2))
    with np.errstate(divide="ignore"):
        n = np.searchsorted(ordered, 1 / scales)
    view, difference = np.sqrt(replay.squared_lengths).tolist()
    squared = n - 2 * scales * sums[n] + scales**2 * squares[n]
    return Competition(
        n_compared=len(margins),
        loss=np.maximum(0.0, n - scales * sums[n]),
        squared_loss=np.maximum(0.0, squared),
        squared_norm=scales**2 * squared_norm,
        view=view,
        difference=difference,
        sharing=_sharing(machine),
    )


def _scales(margins: Array) -> Array:
    """Return the scales to try: 0, those at which a trial has no loss any more, and some between.

    Bounds are smooth between them. A hair above 1 / margin, lest rounding leave a loss.
    """
    kinks = (1 + 1e-9) / margins[margins > 1e-30]
    if not len(kinks):
        return np.zeros(1)
    between = np.geomspace(kinks.min() / 100, kinks.max(), 100)
    return np.concatenate([[0.0], kinks, between])


def _in_hindsight(replay: Replay, machine: Machine) -> Iterator[tuple[Array, float]]:
    """Yield the margins and the squared norm of weights that several passes lead to."""
    machine.weights[:] = 0
    yield replay.measure(machine), 0.0
    longest = replay.squared_lengths[1]
    for cap in CAPS:
        machine.begin_with(PassiveAggressive(cap / longest if longest else cap))
        for n_passes in range(1, LOOKS[-1] + 1):
            mean = _mean_of_pass(replay, machine)
            if n_passes in LOOKS:
                last = machine.weights.copy()
                machine.weights[:] = mean
                yield replay.measure(machine), _squared_norm(machine)
                machine.weights[:] = last


def _mean_of_pass(replay: Replay, machine: Machine) -> Array:
    """Let a machine go through the trials; return the mean of its weights on the way."""
    total, n = np.zeros(machine.weights.shape), 0
    for _ in replay.learn(machine, PIECES):
        total += machine.weights
        n += 1
    return total / n


def _go_through(replay: Replay, machine: Machine) -> None:
    """Let a machine meet every class and feature of the stream."""
    for _ in replay.learn(machine):
        pass


def _squared_norm(machine: Machine) -> float:
    """Return ||u||^2 over all hypotheses."""
    return float(np.square(machine.weights, dtype=np.float64).sum())


def _sharing(machine: Machine) -> int:
    """Return rho, the most hypotheses that a class belongs to."""
    counts = np.zeros(len(machine.classes), dtype=np.int64)
    for part, classes in zip(machine.parts, machine.memberships, strict=True):
        counts += [len(c) for c in classes] if isinstance(part, Grouped) else 1
    return int(counts.max(initial=0))


# ---- weights that are given ---------------------------------------------------------------------


def _give(machine: Machine, competitor: Any, learner: OnlineLearner) -> None:
    """Set the weights of a machine that has gone through the stream to those of a competitor."""
    given = machine.hypothesis_weights()
    if isinstance(competitor, OnlineLearner):
        weights = _aligned(machine, competitor, learner)
    else:
        weights = [np.asarray(each, dtype=np.float32) for each in competitor]
    shapes, wanted = [w.shape for w in weights], [w.T.shape for w in given]
    if shapes != wanted:
        raise KeslerError(
            f"the competitor has weights of shapes {shapes}, but the hypotheses of the run need "
            f"{wanted}: one array (n_hypotheses, n_features) for each part"
        )
    for into, each in zip(given, weights, strict=True):
        into[:] = each.T


def _aligned(
    machine: Machine, competitor: OnlineLearner, learner: OnlineLearner
) -> list[npt.NDArray[np.float32]]:
    """Return the weights of another model in the order of classes and features of this run."""
    other = competitor._fitted()
    if other.parts != machine.parts or other.constant != machine.constant:
        raise KeslerError(
            "the competitor has other hypotheses than the run: give an estimator of the same "
            "hypotheses, feature map and intercept"
        )
    features = _places(_feature_names(learner, machine), _feature_names(competitor, other))
    weights = []
    for i, here in enumerate(machine.hypothesis_weights()):
        found = np.zeros_like(here)
        hypotheses = _places(_hypothesis_names(machine, i), _hypothesis_names(other, i))
        there = other.hypothesis_weights()[i]
        found[np.ix_(features[0], hypotheses[0])] = there[np.ix_(features[1], hypotheses[1])]
        weights.append(found.T)
    return weights


def _places(here: list[Any], there: list[Any]) -> tuple[list[int], list[int]]:
    """Return where the names that both lists hold are in each."""
    places = {name: i for i, name in enumerate(there)}
    both = [(i, places[name]) for i, name in enumerate(here) if name in places]
    return [i for i, _ in both], [j for _, j in both]


def _feature_names(learner: OnlineLearner, machine: Machine) -> list[Any]:
    """Return the names of the features, or their numbers, after that of the constant one."""
    vocabulary = learner.vocabulary_
    n = machine.n_named_features
    names = list(range(n)) if vocabulary is None else vocabulary.names[:n]
    return [("constant",), *names] if machine.constant else names


def _hypothesis_names(machine: Machine, i: int) -> list[Any]:
    """Return what tells the hypotheses of a part apart: labels, groups, or nothing."""
    part = machine.parts[i]
    if isinstance(part, Grouped):
        return list(machine.groups[i])
    if isinstance(part, PerClass):
        return [*((n,) for n in range(machine.classes.n_virtual)), *machine.classes.labels]
    return [None]
