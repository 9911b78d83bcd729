"""Competitors: fixed weights that a learner is compared with, found in hindsight or given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from kesler.bounds.theorems import Array, Competition
from kesler.errors import KeslerError
from kesler.estimators.base import OnlineLearner
from kesler.estimators.replay import Replay
from kesler.hypotheses import Grouped, PerClass
from kesler.links import Exponential, Link
from kesler.machine import Machine
from kesler.updates import PassiveAggressive

Competitor = Literal["hindsight"] | OnlineLearner | Sequence[npt.ArrayLike]

# The search in hindsight: the caps of PA-I, of a step that parts the longest difference by 1, after
# how many passes but the first the weights are looked at, and how many of a pass are averaged.
CAPS = (0.01, 0.1, 1.0, 100.0)
LOOKS = (1, 3, 10)
# Of exponentiated gradient: the sums of all weights, and what steps multiply them by.
TOTALS, ALPHA = (2.0, 5.0, 10.0, 30.0, 100.0), 1.5
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
    replay.find_largest(machine)
    if not isinstance(competitor, str):
        _give(machine, competitor, learner, positive=_must_be_positive(replay.link))
        yield _competition(replay, machine, replay.measure(machine), lambda margins: np.ones(1))
        return
    if competitor != "hindsight":
        raise KeslerError(
            f"competitor={competitor!r} is not known: give 'hindsight', an estimator of the same "
            "hypotheses, or a list of arrays, one for each part"
        )
    for margins in _in_hindsight(replay, machine):
        yield _competition(replay, machine, margins, _scales)


def _competition(
    replay: Replay, machine: Machine, margins: Array, scales_of: Callable[[Array], Array]
) -> Competition:
    """Return the losses and norms of weights, given their margins, at several scales.

    The worst pair of a trial is the same at every scale, so that the loss of a u in it is
    max(0, 1 - a margin): of sorted margins, sums over those below 1 / a.
    """
    ordered, scales = np.sort(margins), scales_of(margins)
    sums, squares = (np.concatenate([[0.0], np.cumsum(ordered**p)]) for p in (1, 2))
    with np.errstate(divide="ignore"):
        n = np.searchsorted(ordered, 1 / scales)
    view, difference = np.sqrt(replay.squared_lengths).tolist()
    squared = n - 2 * scales * sums[n] + scales**2 * squares[n]
    return Competition(
        n_compared=len(margins),
        loss=np.maximum(0.0, n - scales * sums[n]),
        squared_loss=np.maximum(0.0, squared),
        squared_norm=scales**2 * float(np.square(machine.weights, dtype=np.float64).sum()),
        view=view,
        difference=difference,
        sharing=_sharing(machine),
        sum_of_sizes=scales * float(np.abs(machine.weights).sum(dtype=np.float64)),
        entropy=_entropy(machine),
        largest=replay.largest,
        n_weights=machine.n_weights,
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


def _in_hindsight(replay: Replay, machine: Machine) -> Iterator[Array]:
    """Yield the margins of weights that several passes lead to, while the machine holds them."""
    machine.weights[:] = 0
    yield replay.measure(machine)
    for searcher in _searchers(replay):
        _go_through(replay, searcher)
        for n_passes in range(1, LOOKS[-1] + 1):
            means = _means_of_pass(replay, searcher)
            if n_passes in LOOKS:
                for weights, mean in zip(machine.hypothesis_weights(), means, strict=True):
                    weights[:] = mean
                if _must_be_positive(replay.link):
                    _make_positive(machine)
                yield replay.measure(machine)


def _searchers(replay: Replay) -> Iterator[Machine]:
    """Yield learners whose weights may be good competitors, in the learner's own geometry."""
    longest, largest = replay.squared_lengths[1], replay.largest
    for cap in CAPS:
        yield replay.machine(PassiveAggressive(cap / longest if longest else cap))
    if isinstance(replay.link, Exponential) and largest:
        # The larger the sum of weights, the larger the margin that they reach.
        for total in TOTALS:
            link = replace(replay.link, alpha=ALPHA, total=total / largest)
            yield replay.machine(PassiveAggressive(), link)


def _means_of_pass(replay: Replay, machine: Machine) -> list[Array]:
    """Let a machine go through the trials; return the means of its weights on the way."""
    totals: list[Any] = [0.0] * len(machine.parts)
    n = 0
    for _ in replay.learn(machine, PIECES):
        n += 1
        now = [weights * machine.scale for weights in machine.hypothesis_weights()]
        totals = [total + each for total, each in zip(totals, now, strict=True)]
    return [total / n for total in totals]


def _go_through(replay: Replay, machine: Machine) -> None:
    """Let a machine meet every class and feature of the stream."""
    for _ in replay.learn(machine):
        pass


def _entropy(machine: Machine) -> float:
    """Return that of the sizes of all weights, scaled to sum to 1."""
    from scipy.stats import entropy

    sizes = np.abs(machine.weights[machine.weights != 0].astype(np.float64))
    return float(entropy(sizes)) if len(sizes) else 0.0


def _must_be_positive(link: Link) -> bool:
    """Whether a learner under the link has positive weights only, and so its competitors."""
    return isinstance(link, Exponential) and not link.balanced


def _make_positive(machine: Machine) -> None:
    """Leave no weight below 0: what all classes have in common in a feature tells none apart."""
    for part, weights in zip(machine.parts, machine.hypothesis_weights(), strict=True):
        if isinstance(part, PerClass) and part.feature_map is None:
            weights -= np.minimum(weights.min(axis=1, keepdims=True), 0)
        np.maximum(weights, 0, out=weights)


def _sharing(machine: Machine) -> int:
    """Return rho, the most hypotheses that a class belongs to."""
    counts = np.zeros(len(machine.classes), dtype=np.int64)
    for part, classes in zip(machine.parts, machine.memberships, strict=True):
        counts += [len(c) for c in classes] if isinstance(part, Grouped) else 1
    return int(counts.max(initial=0))


# ---- weights that are given ---------------------------------------------------------------------


def _give(machine: Machine, competitor: Any, learner: OnlineLearner, *, positive: bool) -> None:
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
    if positive and any((each < 0).any() for each in given):
        raise KeslerError(
            "the competitor has weights below 0, but those of the learner are all positive: give "
            "positive ones, or a learner with balanced=True"
        )


def _aligned(
    machine: Machine, competitor: OnlineLearner, learner: OnlineLearner
) -> list[npt.NDArray[np.float32]]:
    """Return the weights of another model in the order of classes and features of this run."""
    other = competitor._single()
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
        there: Any = other.hypothesis_weights()[i]
        if hasattr(there, "toarray"):  # of sparse rows
            there = there.toarray()
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
