r"""Iterative parameter mixing: online learners on rows that are distributed over machines.

In each epoch every shard starts with the same weights and learns from its rows once; then the
weights of all shards are mixed (McDonald, Hall and Mann 2010, Figure 3):

.. math:: w^{(i,n)} = \text{one pass over shard } i \text{ from } w^{(n-1)}, \qquad
    w^{(n)} = \sum_i \mu_{i,n} w^{(i,n)}, \qquad \sum_i \mu_{i,n} = 1
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, cast

import numpy as np
from sklearn.base import clone

from kesler.data.rows import Rows, Vocabulary
from kesler.distributed.mixing import Mixture, Numbering, require_mixable
from kesler.distributed.partitions import Partitions
from kesler.distributed.scattered import Scattered, resolve_client, sent
from kesler.distributed.shards import Description, Shard, require_alike
from kesler.distributed.tables import are_tables, with_features
from kesler.errors import KeslerError, integer_of, require_choice
from kesler.learner.learner import Learner
from kesler.learner.uncertainty import require_use
from kesler.online.base import OnlineLearner
from kesler.online.classifier import OnlineClassifier
from kesler.online.defaults import of_mapped
from kesler.progress import progress
from kesler.settings.table import given_of

Model = TypeVar("Model", bound=OnlineLearner)
Mixing = Literal["mistakes", "uniform"]


@dataclass(frozen=True)
class Epoch:
    """The result of one pass over all shards.

    Attributes
    ----------
    number : int
        Number of the epoch, from 1.
    n_rows, mistakes : tuples of int
        Trials and mistakes of each shard that has rows.
    shares : tuple of float
        The coefficient mu of the weights of each shard in the mixture.
    seconds : float

    Examples
    --------
    >>> from kesler.distributed import Epoch
    >>> epoch = Epoch(1, n_rows=(50, 50), mistakes=(4, 6), shares=(0.5, 0.5), seconds=0.1)
    >>> epoch.n_mistakes, epoch.mixed_mistakes
    (10, 5.0)
    """

    number: int
    n_rows: tuple[int, ...]
    mistakes: tuple[int, ...]
    shares: tuple[float, ...]
    seconds: float

    @property
    def n_mistakes(self) -> int:
        """Number of mistakes on all shards."""
        return sum(self.mistakes)

    @property
    def mixed_mistakes(self) -> float:
        """The quantity in the bound: the sum of the mistakes of each shard times its share."""
        return sum(mu * k for mu, k in zip(self.shares, self.mistakes, strict=True))

    def __str__(self) -> str:
        """Return one line of a report."""
        n_rows = sum(self.n_rows)
        return (
            f"epoch {self.number}: {self.n_mistakes:,} mistakes in {n_rows:,} rows "
            f"({self.n_mistakes / n_rows:.2%}) on {len(self.n_rows)} shards, {self.seconds:.1f} s"
        )


def learn(
    learner: Model,
    partitions: Partitions,
    *,
    epochs: int = 5,
    mixing: Mixing = "mistakes",
    client: Any = None,
    report: Callable[[Epoch], Any] | None = None,
) -> Model:
    r"""Learn from rows that are distributed over machines, by iterative parameter mixing.

    Parameters
    ----------
    learner : OnlineClassifier or another online learner
        The learner, of which only the parameters are used. It needs the linear link and features
        instead of ratings; kernels, ensembles, expansions of rows, half_life and estimates of
        uncertainty are not supported. With nothing chosen, measurements are learnt by z-scores
        with a Gaussian map.
    partitions : Partitions
        Each partition is a shard. Results depend on the assignment of rows to partitions and on
        their order, but not on the number of workers or the order of execution.
    epochs : int > 0, default 5
        Number of passes over the rows. Larger values mean fewer mistakes of the final weights and
        more time.
    mixing : "mistakes" or "uniform", default "mistakes"
        Whether the share of a shard is proportional to its mistakes in the epoch, or equal for all
        shards.
    client : distributed.Client or None, default None
        None means the client that was created last.
    report : callable or None, default None
        Called with each :class:`Epoch` when it ends; `print` shows one line.

    Returns
    -------
    A new learner of the same kind, fitted, which needs neither Dask nor the partitions and supports
    all methods, such as `partial_fit` and `save`. Its trials and mistakes are those of all shards.

    Raises
    ------
    KeslerError
        If the learner's parameters cannot be mixed, an argument is out of its range, partitions
        differ in kind or number of features, partitions are tables and the learner has
        ``columns=None``, or a worker raises an error for a row.

    Warns
    -----
    MismatchWarning
        If cells of a table do not fit their column and count as missing.

    Notes
    -----
    Weights are averaged with the shares, and so are the squared gradients of AdaGrad, the evidence
    of AROW, and the logarithm of the temperature of probabilities. Sums over rows (counts and
    moments of classes, statistics of preprocessing) are added up: the increases of all shards in
    the epoch. The first instance of a class is that of the first shard with the class; largest
    values are those over all shards. Averaged weights include the weights after every trial of
    every shard.

    Columns of texts, categories and dates, and columns with missing cells, make partitions tables.
    Their kinds are inferred once, from the first 50 rows of the first partitions, and numbers and
    dates are scaled by the mean and the deviation of all rows; on one machine, by those of the rows
    so far. Rows are then learnt by a single learner of the features of their cells, or as an array
    if all columns are numbers and the learner takes missing values.

    Shards add classes and feature names independently. Classes are numbered in the order in which
    they were seen, one partition after the other. A class or feature that a shard has not seen has
    its initial weights there.

    For the Perceptron on rows separable with margin gamma by u with ||u|| = 1,

    .. math:: \sum_n \sum_i \mu_{i,n} k_{i,n} \le R^2 / \gamma^2

    with k the mistakes of shard i in epoch n and R the largest norm of a difference of two feature
    maps of a row (Theorem 3 of the source). The left side is the sum of `Epoch.mixed_mistakes`.

    An epoch sends the learner to each worker and back, and takes as long as the largest shard.

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
    shards, state = partitions.read(client), None
    descriptions = shards.collect(Shard.description)
    filled = [number for number, each in enumerate(descriptions) if each.n_rows]
    shards = shards.some(filled)
    if are_tables(descriptions):
        takes_missing = _takes_missing(learner)
        shards, state = with_features(shards, learner, takes_missing=takes_missing)
        descriptions = shards.collect(Shard.description)
    kind = require_alike(descriptions)
    shards = shards.each(Shard.widened, kind.n_features)
    model: Any = mixable(learner, dense=kind.kind == "dense")
    # Raise before learning if the learner cannot be mixed.
    require_mixable(clone(model)._new_learner(dense=kind.kind == "dense"))
    with progress("parameter mixing", "epochs", epochs) as task:
        for number in task.count(range(1, epochs + 1)):
            model, epoch = _epoch(number, model, shards, kind, mixing)
            if report is not None:
                report(epoch)
    if kind.columns is not None:
        model.feature_names_in_ = np.array(kind.columns, dtype=object)
        model._input.names = Vocabulary.of(kind.columns)
    model._input.columns.state = state
    return cast(Model, model)


def mixable(learner: Model, *, dense: bool) -> Any:
    """Return an unfitted copy; if nothing is chosen, with settings of a single learner.

    The default for measurements is an ensemble over expanded rows, which cannot be mixed. Nor can
    estimates of uncertainty, which the copy does not have.

    Raises
    ------
    KeslerError
        If estimates of uncertainty or a limit on memory are asked for, or the learner explores.
    """
    model = clone(learner)
    if model.explores:
        raise KeslerError(
            f"{model!r:.60} draws the classes that it shows one after another, which shards "
            "cannot: use OnlineClassifier where targets are known"
        )
    if model.get_params(deep=False).get("ranks") is not None:
        raise KeslerError(
            f"ranks={model.ranks!r}: shards mix the weights of one learner, and each rank has its "
            "own: leave it out, or learn the rows in one place"
        )
    _require_unlimited(model)
    _leave_out_uncertainty(model)
    _compare_all_classes(model)
    own = model.get_params(deep=False)
    given = given_of(own)
    is_default = isinstance(model, OnlineClassifier) and not {"update", "learners"} & given.keys()
    if dense and is_default and model._maker.members(own, dense=True) is not None:
        model.set_params(**{**of_mapped(), **given})
    return model


def _takes_missing(learner: Any) -> bool:
    """Return whether a copy that learns arrays takes missing values."""
    model = mixable(learner, dense=True)
    return bool(model._input.takes_missing(model))


def _require_unlimited(model: Any) -> None:
    """Raise if the memory of the learner has a limit."""
    limit = model.memory_limit
    if limit is not None:
        raise KeslerError(
            f"memory_limit={limit!r}: shards drop different features, so their weights cannot be "
            "mixed: leave it out, or learn on one machine"
        )


def _leave_out_uncertainty(model: Any) -> None:
    """Set the learner to estimate no uncertainty; raise if it is asked to."""
    if "uncertainty" not in model.get_params(deep=False):
        return
    use = require_use(model.uncertainty)
    if use is True or use == "full":
        raise KeslerError(
            f"uncertainty={use!r}: it is learnt from what a learner says of each row, one after "
            "the other, and shards are learnt apart, so it cannot be mixed: leave it out"
        )
    model.set_params(uncertainty=False)


def _compare_all_classes(model: Any) -> None:
    """Set the learner to compare all classes; raise if it is asked to compare candidates."""
    candidates = model.get_params(deep=False).get("candidates")
    if candidates is None:
        return
    if "candidates" in given_of(model.get_params(deep=False)):
        raise KeslerError(
            f"candidates={candidates!r}: shards have different candidates, so their weights cannot "
            "be mixed: leave it out"
        )
    model.set_params(candidates=None)


def _epoch(
    number: int, model: Any, shards: Scattered, kind: Description, mixing: Mixing
) -> tuple[Any, Epoch]:
    """Return the learner after one more epoch, and the result of the epoch."""
    begun, before = time.perf_counter(), _counters(model)
    learnt = shards.each(_learnt, sent(shards.client, model))
    summaries = learnt.collect(_summary)
    n_rows = tuple(each.n_trials - before[0] for each in summaries)
    mistakes = tuple(each.n_mistakes - before[1] for each in summaries)
    shares = shares_of(mistakes, mixing)
    base = model._learner
    everyone = Numbering.merged(
        [
            *([] if base is None else [Numbering.of(base, _names(model))]),
            *(each.numbering for each in summaries),
        ],
        bool(summaries[0].constant),
    )
    mixed = _blank(model, kind)
    mixture = Mixture(mixed._learner, everyone, base, _names(model))
    for one, share in zip(learnt.results(), shares, strict=True):
        mixture.add(one._learner, _names(one), share)
    mixed._learner = mixture.learner()
    if everyone.names is not None:
        mixed._input.names = Vocabulary.of(everyone.names)
    seconds = time.perf_counter() - begun
    return mixed, Epoch(number, n_rows, mistakes, shares, seconds)


def shares_of(mistakes: tuple[int, ...], mixing: Mixing) -> tuple[float, ...]:
    """Return the share of each shard in the mixture.

    Examples
    --------
    >>> shares_of((3, 1), "mistakes"), shares_of((3, 1), "uniform"), shares_of((0, 0), "mistakes")
    ((0.75, 0.25), (0.5, 0.5), (0.5, 0.5))
    """
    if mixing == "uniform" or not sum(mistakes):
        return (1 / len(mistakes),) * len(mistakes)
    return tuple(k / sum(mistakes) for k in mistakes)


@dataclass(frozen=True)
class Summary:
    """The counters and numbering of a shard's learner, sent before its arrays."""

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
    targets = model.answer.encoded(shard.y, None, model._known_classes())
    model._learn(rows, targets)
    return model


def _renumbered(rows: Rows, names: list[str], vocabulary: Vocabulary) -> Rows:
    """Return rows with features numbered by a vocabulary, to which new names are added."""
    numbers = np.array([vocabulary.add(name) for name in names], dtype=np.int32)
    indices = numbers[rows.indices]
    return replace(rows, indices=indices, n_features=len(vocabulary), numbering=None)


def _summary(model: Any) -> Summary:
    learner: Learner = model._learner
    numbering = Numbering.of(learner, _names(model))
    return Summary(learner.n_trials, learner.n_mistakes, learner.constant, numbering)


def _names(model: Any) -> list[str] | None:
    """Return the names of the features that a learner has seen, or None."""
    vocabulary = model.vocabulary_
    return None if vocabulary is None else vocabulary.names


def _counters(model: Any) -> tuple[int, int]:
    learner = model._learner
    return (0, 0) if learner is None else (learner.n_trials, learner.n_mistakes)


def _blank(model: Any, kind: Description) -> Any:
    """Return an unfitted estimator with the same parameters and an initialized learner."""
    blank = clone(model)
    blank._learner = blank._new_learner(dense=kind.kind == "dense")
    if kind.kind != "named":
        blank.n_features_in_ = kind.n_features
    return blank


def _require_arguments(learner: Any, epochs: Any, mixing: Any) -> None:
    if not isinstance(learner, OnlineLearner):
        raise KeslerError(
            f"{type(learner).__name__} is not an online learner: pass an online learner such as "
            "OnlineClassifier to learn, and a SoftmaxClassifier or ShareBoostClassifier to fit"
        )
    integer_of("epochs", epochs, 1)
    require_choice("mixing", mixing, ("mistakes", "uniform"))
