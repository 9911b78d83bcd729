r"""Iterative parameter mixing: online learners on rows that are spread over machines.

Each epoch every shard begins with the same weights and learns its rows once; then the weights of
all are mixed (McDonald, Hall and Mann 2010, Figure 3):

.. math:: w^{(i,n)} = \text{one pass over shard } i \text{ from } w^{(n-1)}, \qquad
    w^{(n)} = \sum_i \mu_{i,n} w^{(i,n)}, \qquad \sum_i \mu_{i,n} = 1
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

import numpy as np
from sklearn.base import clone

from kesler.distributed.mixing import Mixture, Numbering, require_mixable
from kesler.distributed.partitions import Partitions
from kesler.distributed.scattered import Scattered, resolve_client, sent
from kesler.distributed.shards import Description, Shard, require_alike
from kesler.errors import KeslerError
from kesler.estimators.base import OnlineLearner
from kesler.machine import Machine
from kesler.rows import Rows, Vocabulary

Learner = TypeVar("Learner", bound=OnlineLearner)
Mixing = Literal["mistakes", "uniform"]


@dataclass(frozen=True)
class Epoch:
    """What came of one pass over all shards.

    Attributes
    ----------
    number : int
        From 1 on.
    n_rows, mistakes : tuples of int
        Of each shard that holds rows: trials, and those in which it predicted a wrong class.
    shares : tuple of float
        What the weights of each count in the mixture, mu.
    seconds : float
    """

    number: int
    n_rows: tuple[int, ...]
    mistakes: tuple[int, ...]
    shares: tuple[float, ...]
    seconds: float

    @property
    def n_mistakes(self) -> int:
        """Mistakes on all shards."""
        return sum(self.mistakes)

    @property
    def mixed_mistakes(self) -> float:
        """What the bound speaks of: the mistakes of the shards, each counted as its weights are."""
        return sum(mu * k for mu, k in zip(self.shares, self.mistakes, strict=True))

    def __str__(self) -> str:
        """Return one line of a report."""
        n_rows = sum(self.n_rows)
        return (
            f"epoch {self.number}: {self.n_mistakes:,} mistakes in {n_rows:,} rows "
            f"({self.n_mistakes / n_rows:.2%}) on {len(self.n_rows)} shards, {self.seconds:.1f} s"
        )


def learn(
    learner: Learner,
    partitions: Partitions,
    *,
    epochs: int = 5,
    mixing: Mixing = "mistakes",
    client: Any = None,
    report: Callable[[Epoch], Any] | None = None,
) -> Learner:
    r"""Learn rows that are spread over machines, by iterative parameter mixing.

    Parameters
    ----------
    learner : OnlineClassifier or another online learner
        Its parameters; what it has learnt is not looked at, and it is not changed. Rules in the
        linear link, over features, that do not forget; no kernels and no banks.
    partitions : Partitions
        Each is a shard. Results depend on which rows are in which, and on their order; they do not
        depend on how many workers there are, nor on which of them does what, nor when.
    epochs : int > 0, default 5
        Passes over the rows. More: fewer mistakes of the last weights, and more time.
    mixing : "mistakes" or "uniform", default "mistakes"
        Whether the weights of a shard count in proportion to its mistakes in the epoch, or as those
        of all others.
    client : distributed.Client or None, default None
        None takes the one that was made last.
    report : callable or None, default None
        Is called with each :class:`Epoch` as it ends; `print` shows one line.

    Returns
    -------
    A new learner of the same kind, fitted, which needs neither Dask nor the partitions. It goes on
    as any other: `partial_fit`, `save`. Its trials and mistakes are those of all shards.

    Raises
    ------
    KeslerError
        If the learner's parameters cannot be mixed, an argument is out of its range, partitions
        differ in kind or width, or a row is refused; the sentence is that of the worker.

    Notes
    -----
    Weights are mixed, and likewise the squares of gradients behind AdaGrad, the evidence behind
    AROW, and the temperature of probabilities, as its logarithm. What is a sum over rows (counts
    and moments of classes, what conditioning keeps) is what it would be after all shards: each adds
    what it added in the epoch. A class keeps the first instance that the first shard had; largest
    values are those of all. Averages are over the weights after every trial of every shard.

    Shards discover classes and names of features by themselves. Classes are numbered as they were
    met, one partition after the other; a class that a shard has not met has there the weights that
    it would begin with. So does a feature.

    For separable rows, ||u|| = 1 and margin gamma, and the Perceptron

    .. math:: \sum_n \sum_i \mu_{i,n} k_{i,n} \le R^2 / \gamma^2

    with k the mistakes of shard i in epoch n and R the longest difference of two views of a row
    (Theorem 3 of the source): `Epoch.mixed_mistakes` sums up to the left side.

    An epoch sends the learner to each worker and back, and takes the time of the largest shard.

    References
    ----------
    McDonald, Hall and Mann (2010), "Distributed training strategies for the structured perceptron".

    Examples
    --------
    >>> from distributed import Client  # doctest: +SKIP
    >>> from kesler.distributed import Partitions, learn  # doctest: +SKIP
    >>> rows = Partitions.from_parquet("rows/", label="team")  # doctest: +SKIP
    >>> model = learn(OnlineClassifier(), rows, client=Client(), report=print)  # doctest: +SKIP
    """
    _require_arguments(learner, epochs, mixing)
    client = resolve_client(client)
    shards = partitions.read(client)
    told = shards.collect(Shard.description)
    kind = require_alike(told)
    filled = [number for number, each in enumerate(told) if each.n_rows]
    shards = shards.some(filled).each(Shard.widened, kind.n_features)
    # A learner that cannot be mixed is refused before it learns.
    require_mixable(clone(learner)._new_machine(dense=kind.kind == "dense"))
    model: Any = clone(learner)
    for number in range(1, epochs + 1):
        model, epoch = _epoch(number, model, shards, kind, mixing)
        if report is not None:
            report(epoch)
    if kind.columns is not None:
        model.feature_names_in_ = np.array(kind.columns, dtype=object)
        model._vocabulary = Vocabulary.of(kind.columns)
    return cast(Learner, model)


def _epoch(
    number: int, model: Any, shards: Scattered, kind: Description, mixing: Mixing
) -> tuple[Any, Epoch]:
    """Return the learner after one more epoch, and what is to be told of it."""
    begun, before = time.perf_counter(), _counters(model)
    learnt = shards.each(_learnt, sent(shards.client, model))
    told = learnt.collect(_told)
    n_rows = tuple(each.n_trials - before[0] for each in told)
    mistakes = tuple(each.n_mistakes - before[1] for each in told)
    shares = shares_of(mistakes, mixing)
    base = getattr(model, "_machine", None)
    everyone = Numbering.merged(
        [
            *([] if base is None else [Numbering.of(base, _names(model))]),
            *(each.numbering for each in told),
        ],
        bool(told[0].constant),
    )
    mixed = _blank(model, kind)
    mixture = Mixture(mixed._machine, everyone, base, _names(model))
    for one, share in zip(learnt.results(), shares, strict=True):
        mixture.add(one._machine, _names(one), share)
    mixed._machine = mixture.machine()
    if everyone.names is not None:
        mixed._vocabulary = Vocabulary.of(everyone.names)
    seconds = time.perf_counter() - begun
    return mixed, Epoch(number, n_rows, mistakes, shares, seconds)


def shares_of(mistakes: tuple[int, ...], mixing: Mixing) -> tuple[float, ...]:
    """Return what the weights of each shard count.

    Examples
    --------
    >>> shares_of((3, 1), "mistakes"), shares_of((3, 1), "uniform"), shares_of((0, 0), "mistakes")
    ((0.75, 0.25), (0.5, 0.5), (0.5, 0.5))
    """
    if mixing == "uniform" or not sum(mistakes):
        return (1 / len(mistakes),) * len(mistakes)
    return tuple(k / sum(mistakes) for k in mistakes)


@dataclass(frozen=True)
class Told:
    """What a shard's learner tells before it is sent: counters, and who is who."""

    n_trials: int
    n_mistakes: int
    constant: float
    numbering: Numbering


def _learnt(shard: Shard, model: Any) -> Any:
    """Return a copy of a learner after one pass over a shard."""
    model = copy.deepcopy(model)
    if not isinstance(shard.X, Rows):
        return model.partial_fit(shard.X, shard.y)
    vocabulary = model.vocabulary_ or Vocabulary()
    rows = _renumbered(shard.X, shard.names or [], vocabulary)
    model.name_features(vocabulary)
    model._learn(rows, model._tell(shard.y))
    return model


def _renumbered(rows: Rows, names: list[str], vocabulary: Vocabulary) -> Rows:
    """Return rows whose features have the numbers of a vocabulary, which new ones join."""
    numbers = np.array([vocabulary.add(name) for name in names], dtype=np.int32)
    return Rows(
        rows.indptr, numbers[rows.indices], rows.values, len(vocabulary), rows.dense, rows.ratings
    )


def _told(model: Any) -> Told:
    machine: Machine = model._machine
    numbering = Numbering.of(machine, _names(model))
    return Told(machine.n_trials, machine.n_mistakes, machine.constant, numbering)


def _names(model: Any) -> list[str] | None:
    """Return the names of the features that a learner has met."""
    vocabulary = model.vocabulary_
    return None if vocabulary is None else vocabulary.names


def _counters(model: Any) -> tuple[int, int]:
    machine = getattr(model, "_machine", None)
    return (0, 0) if machine is None else (machine.n_trials, machine.n_mistakes)


def _blank(model: Any, kind: Description) -> Any:
    """Return a learner with the same parameters and a machine that has learnt nothing."""
    blank = clone(model)
    blank._machine = blank._new_machine(dense=kind.kind == "dense")
    if kind.kind != "named":
        blank.n_features_in_ = kind.n_features
    return blank


def _require_arguments(learner: Any, epochs: Any, mixing: Any) -> None:
    if not isinstance(learner, OnlineLearner):
        raise KeslerError(
            f"{type(learner).__name__} does not learn online: give an OnlineClassifier or one of "
            "its kin to learn, and a SoftmaxClassifier or ShareBoostClassifier to fit"
        )
    if not (isinstance(epochs, int) and not isinstance(epochs, bool) and epochs > 0):
        raise KeslerError(f"epochs={epochs!r} must be a whole number above 0")
    if mixing not in ("mistakes", "uniform"):
        raise KeslerError(f"mixing={mixing!r} is not known: use 'mistakes' or 'uniform'")
