"""Quantities that trials keep by recursion equal what follows from the weights and rows themselves.

One registry: how to make a learner, what it stores, and the same recomputed in float64. Weights are
float32, so that a sum that follows their steps as computed, not as stored, drifts away from them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from kesler import LinearMax, OnlineClassifier
from kesler.algorithms import ALMA, ROMMA
from kesler.hypotheses import PerClass, Shared
from kesler.links import Exponential, PNorm
from kesler.maps import Contrast, Frequency, GaussianRatio, ProductMean

Array = Any
N_ROWS = 300 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 3000
N_FEATURES, N_CLASSES = 6, 4
MOST = 2.0**20  # at which a decayed weight of rows is divided by it


@dataclass
class Run:
    """A learner, the rows that it has learnt, and what was seen between two trials."""

    model: Any
    X: Array
    y: Array
    sample_weight: Array
    n: int = 0
    sum_of_weights: Array = 0.0
    predicted: list[int] = field(default_factory=list)

    @property
    def stored(self) -> dict[str, Array]:
        return self.model._learner.stored

    @property
    def seen(self) -> Array:
        return self.X[: self.n].astype(np.float64)

    @property
    def weights(self) -> Array:
        """The weights of all hypotheses, as they are stored."""
        return self.model._learner.weights[:N_FEATURES].astype(np.float64)

    @property
    def row_weights(self) -> Array:
        """The weights with which rows are counted after their trials, decay included."""
        half_life, weights = self.model._learner.half_life, self.sample_weight[: self.n]
        if half_life is None:
            return weights
        ages = np.arange(self.n) - (self.n - 1)
        return weights * 2.0 ** (ages / half_life) * self.stored["decay.row"]["weight"][0]

    def learn(self, stop: int, *, one_by_one: bool) -> None:
        rows, labels, weights = self.X, self.y, self.sample_weight
        if not one_by_one:
            some = slice(self.n, stop)
            weighted = {} if (weights == 1).all() else {"sample_weight": weights[some]}
            self.model.partial_fit(rows[some], labels[some], **weighted)
        for t in range(self.n, stop) if one_by_one else ():
            self.predicted.append(self.model.learn_predict_one(rows[t], int(labels[t])))
            self.sum_of_weights = self.sum_of_weights + self.weights
        self.n = stop


@dataclass(frozen=True)
class Quantity:
    """What a learner stores, and the same recomputed.

    scale, offset : of the rows, which are in [-1, 1] otherwise; one_by_one : whether the
    recomputation needs what is seen after each trial.
    """

    make: Callable[[], Any]
    stored: Callable[[Run], Array]
    recomputed: Callable[[Run], Array]
    rtol: float
    one_by_one: bool = False
    weighted: bool = False
    offset: float = 0.0
    spread: float = 0.0


def of_record(name: str, *keys: str) -> Callable[[Run], Array]:
    return lambda run: np.array([float(run.stored[name][key][0]) for key in keys])


def of_array(name: str, *place: Any) -> Callable[[Run], Array]:
    return lambda run: run.stored[name][place].astype(np.float64)


# ---- links and algorithms ------------------------------------------------------------------------


def sums_of_link(run: Run) -> Array:
    """The sums of the features and hypotheses met so far, over all parts."""
    seen, offsets = run.stored["link.is_seen"], run.model._learner._offsets
    counts, sums = run.stored["link.n_hypotheses"], run.stored["weights.states"][0]
    found = [
        sums[seen[:, part], start : start + n].ravel()
        for part, (start, n) in enumerate(zip(offsets, counts, strict=True))
    ]
    return np.concatenate(found)


def mass(run: Run) -> Array:
    link, v = run.model._learner.link, sums_of_link(run)
    reference = float(run.stored["link.scale"]["reference"][0])
    if isinstance(link, PNorm):
        return np.array([((abs(v) / reference) ** link.p).sum()])
    eta = np.log(link.alpha)
    return np.exp(np.array([eta, -eta] if link.balanced else [eta])[:, None] * v - reference).sum()


def scale(run: Run) -> Array:
    link, v = run.model._learner.link, sums_of_link(run)
    reference = float(run.stored["link.scale"]["reference"][0])
    if isinstance(link, PNorm):  # weights are relative to the (p - 1)-th power of the reference
        return reference ** (link.p - 1) / np.linalg.norm(v, link.p) ** (link.p - 2)
    return link.total / mass(run)


def linked(link: Any, **more: Any) -> Callable[[], Any]:
    return lambda: OnlineClassifier(
        [PerClass(), Shared(ProductMean())], update="perceptron", link=link, **more
    )


def sum_of_squares(run: Run) -> Array:
    return (run.weights**2).sum()


def sum_of_powers(run: Run) -> Array:
    reference, p = run.stored["algorithm.numbers"][5], run.model._learner.rule.p
    return ((abs(run.stored["weights.states"][0]) / reference) ** p).sum()


# ---- means of weights and totals of preconditioners ----------------------------------------------


def mean_of_weights(run: Run) -> Array:
    return run.weights - run.stored["weights.states"][0, :N_FEATURES] / run.n


def averaged(update: Any, preconditioner: str = "auto", hypotheses: Any = "multi") -> Any:
    return lambda: OnlineClassifier(
        hypotheses, update=update, averaged=True, preconditioner=preconditioner
    )


def squared_gradients(run: Run) -> Array:
    """The rows of a mistake, squared, for the right class and the predicted one."""
    total = np.zeros((N_FEATURES, run.stored["preconditioner.evidence"].shape[1]))
    for t, (x, y, r) in enumerate(zip(run.seen, run.y, run.predicted, strict=False)):
        if y in run.y[:t] and r != y:
            total[:, [y, r]] += (x**2)[:, None]
    return total


def scaled_lengths(run: Run) -> Array:
    """These are counted before the trial, when the weight of rows has not grown yet."""
    largest = np.maximum.accumulate(abs(run.seen), axis=0)
    weights = run.row_weights * 2.0 ** (-1 / (run.model._learner.half_life or np.inf))
    return np.array([weights.sum(), (weights[:, None] * (run.seen / largest) ** 2).sum()])


# ---- statistics and preprocessing ----------------------------------------------------------------


def per_class(values: Array, run: Run) -> Array:
    """The sums of weighted rows of each class, (feature, class)."""
    of_class = run.y[: run.n, None] == np.arange(N_CLASSES)
    return values.T @ (of_class * run.row_weights[:, None])


def deviations(values: Array, weights: Array) -> Array:
    """Means, and sums of squared deviations from them, (2, feature)."""
    means = weights @ values / weights.sum()
    return np.array([means, weights @ (values - means) ** 2])


def moments(run: Run) -> Array:
    of_class = [run.y[: run.n] == r for r in range(N_CLASSES)]
    return np.stack([deviations(run.seen[own], run.row_weights[own]) for own in of_class], axis=1)


def preprocessed(preprocessing: str, **more: Any) -> Callable[[], Any]:
    return lambda: OnlineClassifier("multi", update="pa1", preprocessing=preprocessing, **more)


def mapped(map_: Any, **more: Any) -> Callable[[], Any]:
    return lambda: OnlineClassifier([Shared(map_)], update="pa1", **more)


# ---- kernels -------------------------------------------------------------------------------------


def squared_norms(run: Run) -> Array:
    panels = run.model._learner.supports.stored["panels"].astype(np.float64)
    return (panels[:, :, :N_FEATURES] ** 2).sum(axis=2).reshape(len(panels), -1)


def stored_norms(run: Run) -> Array:
    supports = run.model._learner.supports.stored
    n_stored = supports["panels"].shape[1] * supports["panels"].shape[3]
    found = np.zeros((len(supports["panels"]), n_stored))
    norms = supports["squared_norms"]
    found[:, : norms.shape[1]] = norms
    return found


def nonzero(run: Run) -> Array:
    return (run.seen != 0).astype(np.float64)


def decayed(run: Run) -> Array:
    weight = 2.0 ** (run.n / run.model._learner.half_life)
    weight /= MOST ** np.floor(np.log2(weight) / 20 + 1e-12)
    return np.array([weight, np.sqrt(weight)])


MEANS, SQUARES = 0, 1

QUANTITIES: dict[str, Quantity] = {
    **{
        f"{what} of {link!r}": Quantity(
            linked(link), of_record("link.scale", key), recomputed, rtol=1e-9
        )
        for link in [Exponential(1.5), Exponential(1.5, balanced=False), PNorm(3), PNorm(50)]
        for what, key, recomputed in [("mass", "mass", mass), ("scale", "value", scale)]
    },
    **{
        f"numbers of {rule!r}": Quantity(
            lambda rule=rule: LinearMax(rule),
            of_array("algorithm.numbers", 1),
            recomputed,
            rtol=1e-9,
        )
        for rule, recomputed in [
            (ROMMA(), sum_of_squares),
            (ROMMA(aggressive=True), sum_of_squares),
            (ALMA(), sum_of_squares),
            (ALMA(p=3), sum_of_powers),
            (ALMA(p=50), sum_of_powers),
        ]
    },
    **{
        f"means, {update}, {preconditioner}, {hypotheses}": Quantity(
            averaged(update, preconditioner, hypotheses),
            mean_of_weights,
            lambda run: run.sum_of_weights / run.n,
            rtol=1e-9,
            one_by_one=True,
            spread=1.0,
        )
        for update, preconditioner, hypotheses in [
            ("perceptron", "auto", "multi"),
            ("pa1", "auto", "hybrid"),
            ("simproj", "adagrad", "multi"),
            ("hinge", "scale-free", "multi"),
            ("hinge", "scale-free-adagrad", "multi"),
            ("arow", "auto", "multi"),
        ]
    },
    "evidence": Quantity(
        lambda: OnlineClassifier("multi", update="perceptron", preconditioner="adagrad"),
        lambda run: run.stored["preconditioner.evidence"][:N_FEATURES, :N_CLASSES],
        lambda run: squared_gradients(run)[:, :N_CLASSES],
        rtol=1e-5,  # float32
        one_by_one=True,
    ),
    **{
        f"scaled lengths, half-life {half_life}": Quantity(
            lambda half_life=half_life: OnlineClassifier(
                "multi", update="pa1", preconditioner="scale-free", half_life=half_life
            ),
            of_record("preconditioner.rates", "n_scaled", "scaled_length"),
            scaled_lengths,
            rtol=1e-6,  # scales are float32
            weighted=True,
            spread=1.0,
        )
        for half_life in (None, 300)
    },
    **{
        f"decay over {half_life} rows": Quantity(
            lambda half_life=half_life: OnlineClassifier(
                "multi", update="pa1", half_life=half_life
            ),
            of_record("decay.row", "weight", "root"),
            decayed,
            rtol=1e-9,
        )
        for half_life in (3, 40, 1000.5)
    },
    **{
        f"z-scores, half-life {half_life}, from {offset:g}, {column}": Quantity(
            preprocessed("z-scores", half_life=half_life),
            of_array("preprocessing.statistics", slice(N_FEATURES), column),
            lambda run, column=column: deviations(run.seen, run.row_weights)[column],
            rtol=1e-9,
            weighted=True,
            offset=offset,
        )
        for half_life in (None, 300)
        for offset in (0.0, 1000.0)
        for column in (MEANS, SQUARES)
    },
    "counts": Quantity(
        preprocessed("idf"),
        of_array("preprocessing.statistics", slice(N_FEATURES), 0),
        lambda run: run.row_weights @ nonzero(run),
        rtol=1e-9,
        weighted=True,
    ),
    **{
        f"sums of {map_!r}, half-life {half_life}": Quantity(
            mapped(map_, half_life=half_life),
            of_array("statistics.sums", 0, slice(N_FEATURES), slice(N_CLASSES)),
            lambda run, of=of: per_class(of(run), run),
            rtol=rtol,
            weighted=True,
        )
        for half_life in (None, 300)
        for map_, of, rtol in [
            (ProductMean(), lambda run: run.seen, 1e-6),
            (Frequency(), nonzero, 1e-5),
            (Contrast(), nonzero, 1e-5),
        ]
    },
    **{
        f"moments of all rows, {offset:g}, {column}": Quantity(
            mapped(GaussianRatio()),
            of_array("statistics.pooled", slice(N_FEATURES), 1 + column),
            lambda run, column=column: deviations(run.seen, run.row_weights)[column],
            rtol=1e-6,
            weighted=True,
            offset=offset,
        )
        for offset in (0.0, 1000.0)
        for column in (MEANS, SQUARES)
    },
    **{
        f"moments of classes, {offset:g}, {column}": Quantity(
            mapped(GaussianRatio()),
            of_array("statistics.moments", column, slice(N_CLASSES), slice(N_FEATURES)),
            lambda run, column=column: moments(run)[column],
            rtol=1e-6,
            weighted=True,
            offset=offset,
        )
        for offset in (0.0, 1000.0)
        for column in (MEANS, SQUARES)
    },
    **{
        f"norms of support vectors, budget {budget}": Quantity(
            lambda budget=budget: OnlineClassifier(
                "multi", update="perceptron", kernel="rbf", budget=budget
            ),
            stored_norms,
            squared_norms,
            rtol=1e-6,
        )
        for budget in (None, 70)
    },
}


@pytest.mark.parametrize("name", QUANTITIES)
def test_what_is_kept_follows_from_what_is_stored(name):
    quantity, rng = QUANTITIES[name], np.random.default_rng(3)
    X = quantity.offset + rng.uniform(-1, 1, size=(N_ROWS, N_FEATURES))
    X[:2] = quantity.offset + np.array([[-1], [1]])
    X *= np.exp(quantity.spread * rng.normal(size=(N_ROWS, 1)))
    weights = rng.uniform(0.1, 3, size=N_ROWS) if quantity.weighted else np.ones(N_ROWS)
    y = np.append(np.arange(N_CLASSES), rng.integers(N_CLASSES, size=N_ROWS - N_CLASSES))
    run = Run(quantity.make(), X.astype(np.float32), y, weights)
    for moment in [*np.sort(rng.integers(10, N_ROWS, size=5)).tolist(), N_ROWS]:
        run.learn(moment, one_by_one=quantity.one_by_one)
        ours, expected = quantity.stored(run), np.asarray(quantity.recomputed(run))
        size = abs(expected).max()
        assert size > 0
        np.testing.assert_allclose(ours, expected, rtol=0, atol=quantity.rtol * size)
