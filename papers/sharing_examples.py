"""The two examples of Section 6 of ShareBoost's source, and the columns that each method needs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler import MixedNormClassifier, ShareBoostClassifier, SoftmaxClassifier

Array = npt.NDArray[Any]

# The selection is the default; a small penalty keeps weights finite if no row is wrong.
CHOICE: Mapping[str, Any] = {"penalty": "frobenius", "alpha": 1e-5}
# Weights below this share of the largest count as zero: solvers only approach the optimum.
NOTHING = 1e-3
# The duality gap of the norm. If blocks differ in few rows only, the objective hardly depends on
# how they share the weights: at the default of 1e-4 some columns have no weight yet, although all
# weights are equal at the optimum; at this gap they are equal to a tenth.
GAP = 1e-6


def error(model: Any, X: Any, y: Array) -> float:
    """Return the share of wrongly predicted rows, in %."""
    return 100 * float(np.mean(model.predict(X) != y))


def first_without_error(models: Iterable[Any], X: Any, y: Array) -> Any:
    """Return the first model without a wrong prediction, None if there is none."""
    return next((model for model in models if error(model, X, y) == 0), None)


def along(model: Any) -> Iterator[Any]:
    """Yield the models of a ShareBoost path with 1 feature, 2 features and so on."""
    return (model.at(n) for n in range(1, len(model.path_) + 1))


def n_columns(coef: Array) -> int:
    """Return the number of nonzero columns of weights of shape (n_classes, n_columns)."""
    sizes = np.abs(coef).max(axis=0)
    return int(np.sum(sizes > NOTHING * sizes.max()))


def codes(k: int) -> Array:
    """Return the numbers 0 to k - 1 in binary, as rows of -1 and 1."""
    return 2.0 * (np.arange(k)[:, None] >> np.arange(round(math.log2(k))) & 1) - 1


def code_and_unit(k: int) -> tuple[Array, Array]:
    """Return two rows for each class: its code, then 2 ln(k) in a separate column."""
    X = np.hstack([codes(k), 2 * math.log(k) * np.eye(k)])
    return np.tile(X, (2, 1)), np.tile(np.arange(k), 2)


def columns_of_shareboost(X: Array, y: Array, most: int) -> int | None:
    """Return the columns that ShareBoost needs for no error, None if more than `most`."""
    model = ShareBoostClassifier(min(most, X.shape[1]), **CHOICE).fit(X, y)
    found = first_without_error(along(model), X, y)
    return None if found is None else len(found.support_)


def columns_of_l1(X: Array, y: Array) -> int | None:
    """Return the columns that the largest L1 penalty without errors uses."""
    return columns_of_norm(X, y, "1-1", 0.9 ** np.arange(1, 60), fit_intercept=False)


def columns_of_norm(X: Array, y: Array, norm: str, shares: Array, **settings: Any) -> int | None:
    """Return the columns that the largest penalty by a norm without errors uses, None without."""
    model = MixedNormClassifier(alpha=1.0, norm=norm, warm_start=True, **settings)
    largest = model.fit(X, y).alpha_max_
    models = (model.set_params(alpha=share * largest).fit(X, y) for share in shares)
    found = first_without_error(models, X, y)
    return None if found is None else n_columns(found.coef_)


def columns_of_frobenius(X: Array, y: Array) -> int | None:
    """Return the columns that the largest squared-norm penalty without errors uses."""
    models = (
        SoftmaxClassifier(C, loss="margin-softmax", fit_intercept=False).fit(X, y)
        for C in 10.0 ** np.arange(-3, 4)
    )
    found = first_without_error(models, X, y)
    return None if found is None else n_columns(found.coef_)


def code_blocks(k: int, n_blocks: int, in_turn: bool) -> tuple[Array, Array]:
    """Return rows of equal blocks, the code of the class, one of them zero in half the rows.

    A class has one row with a zero block per block, and as many rows without. The zero block is
    each in turn, as the argument by Jensen's inequality requires, or drawn at random.
    """
    y = np.repeat(np.arange(k), n_blocks)
    whole = np.tile(codes(k)[y][:, None], (1, n_blocks, 1))
    zeroed = whole.copy()
    drawn = np.random.default_rng(0).integers(n_blocks, size=len(y))
    zeroed[np.arange(len(y)), np.arange(len(y)) % n_blocks if in_turn else drawn] = 0
    return np.concatenate([whole, zeroed]).reshape(2 * len(y), -1), np.tile(y, 2)


def columns_of_mixed_norm(X: Array, y: Array) -> int | None:
    """Return the columns that the largest inf-1 penalty without errors uses."""
    return columns_of_norm(X, y, "inf-1", 0.8 ** np.arange(1, 40), tol=GAP)
