"""Joint features of an instance and an output, phi(x, y), and the weights that score them.

The user's function returns phi as a mapping of names to values, as an array, or as a sparse row.
The weights have the same kind: a mapping that returns 0 for unseen names, or an array.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.matrices import well_formed
from kesler.data.sparse_rows import is_sparse
from kesler.errors import KeslerError

Names = dict[Hashable, float]
SparseRows = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]


class Space:
    """A weight vector, and the vector operations that a learner needs.

    Vectors are the return values of `read`, which converts the output of the user's function.
    """

    weights: Any

    @abstractmethod
    def read(self, phi: Any) -> Any:
        """Return a vector; raise KeslerError if its kind or width is wrong, or it is not finite."""

    @abstractmethod
    def difference(self, one: Any, other: Any) -> Any:
        """Return the difference of two vectors."""

    @abstractmethod
    def dot(self, one: Any, other: Any) -> float:
        """Return the inner product of two vectors."""

    @abstractmethod
    def score(self, vector: Any) -> float:
        """Return the inner product of the weights and a vector."""

    @abstractmethod
    def add(self, step: float, vector: Any) -> None:
        """Add a multiple of a vector to the weights."""

    @abstractmethod
    def view(self) -> Any:
        """Return a read-only view of the weights."""

    @abstractmethod
    def less(self, other: Any, share: float) -> Any:
        """Return a space with the weights ``self.weights - share * other.weights``."""

    def view_less(self, other: Any, share: float) -> Any:
        """Return the view of the space of `less`, valid until the weights of a space change."""
        return self.less(other, share).view()

    @abstractmethod
    @contextmanager
    def moved(self, steps: npt.NDArray[np.float64], vectors: list[Any]) -> Iterator[None]:
        """Add steps along vectors to the weights temporarily; restore them exactly on exit."""


class NamedSpace(Space):
    """Features by name; names that have not been seen have weight 0.

    Examples
    --------
    >>> space = NamedSpace()
    >>> space.add(0.5, space.read({"a": 1, ("b", 2): 4}))
    >>> space.view()["a"], space.view()["never seen"], space.score({"a": 3.0})
    (0.5, 0, 1.5)
    """

    def __init__(self, weights: Mapping[Hashable, float] | None = None) -> None:
        self.weights: Counter[Hashable] = Counter(weights)  # a missing name counts 0

    def read(self, phi: Any) -> Names:  # noqa: D102
        if not isinstance(phi, Mapping):
            raise _another_kind("a mapping of names to values", phi)
        try:
            vector = {name: float(value) for name, value in phi.items()}
        except (TypeError, ValueError) as error:
            raise KeslerError(
                f"features(x, y) must map names to numbers ({error}): turn text and categories "
                "into names, such as {('word', 'the', 'DET'): 1}"
            ) from None
        odd = next((name for name, value in vector.items() if not math.isfinite(value)), None)
        if odd is not None:
            raise KeslerError(
                f"features(x, y) gave {odd!r} the value {vector[odd]}: every value must be finite"
            )
        return vector

    def difference(self, one: Names, other: Names) -> Names:  # noqa: D102
        vector = dict(one)
        for name, value in other.items():
            vector[name] = vector.get(name, 0.0) - value
        return {name: value for name, value in vector.items() if value}

    def dot(self, one: Names, other: Names) -> float:  # noqa: D102
        return sum(value * other.get(name, 0.0) for name, value in one.items())

    def score(self, vector: Names) -> float:  # noqa: D102
        weights = self.weights
        return sum(value * weights[name] for name, value in vector.items())

    def add(self, step: float, vector: Names) -> None:  # noqa: D102
        for name, value in vector.items():
            self.weights[name] += step * value  # type: ignore[assignment]

    def view(self) -> Mapping[Hashable, float]:  # noqa: D102
        return MappingProxyType(self.weights)

    def less(self, other: NamedSpace, share: float) -> NamedSpace:  # noqa: D102
        weights = {name: w - share * other.weights[name] for name, w in self.weights.items()}
        return NamedSpace(weights)

    def view_less(self, other: NamedSpace, share: float) -> Differences:  # noqa: D102
        return Differences(self.weights, other.weights, share)

    @contextmanager
    def moved(self, steps: npt.NDArray[np.float64], vectors: list[Names]) -> Iterator[None]:  # noqa: D102
        before = {name: self.weights.get(name) for vector in vectors for name in vector}
        for step, vector in zip(steps.tolist(), vectors, strict=True):
            self.add(step, vector)
        try:
            yield
        finally:
            for name, weight in before.items():
                if weight is None:
                    del self.weights[name]
                else:
                    self.weights[name] = weight


class Differences(Mapping[Hashable, float]):
    """The weights that `NamedSpace.less` returns, each computed when it is read.

    Examples
    --------
    >>> weights = Differences(Counter(a=3.0), Counter(a=2.0), 0.5)
    >>> weights["a"], weights["never seen"], dict(weights)
    (2.0, 0, {'a': 2.0})
    """

    def __init__(self, weights: Counter[Hashable], others: Counter[Hashable], share: float) -> None:
        self._weights, self._others, self._share = weights, others, share

    def __getitem__(self, name: Hashable) -> float:
        if name not in self._weights:
            return 0
        return self._weights[name] - self._share * self._others[name]

    def __contains__(self, name: object) -> bool:
        return name in self._weights

    def get(self, name: Hashable, default: Any = None) -> Any:  # noqa: D102
        return self[name] if name in self._weights else default

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._weights)

    def __len__(self) -> int:
        return len(self._weights)


class ArraySpace(Space):
    """Features by position, given as arrays or sparse rows of one width.

    Examples
    --------
    >>> space = ArraySpace(3)
    >>> space.add(0.5, space.read([0, 2, 0]))
    >>> space.view().tolist()
    [0.0, 1.0, 0.0]
    """

    def __init__(self, width: int) -> None:
        self.weights = np.zeros(width)
        self._scratch = np.zeros(width)

    def read(self, phi: Any) -> SparseRows:  # noqa: D102
        indices, values, width = _entries(phi)
        if width != len(self.weights):
            raise KeslerError(
                f"features(x, y) returned {width} numbers, but {len(self.weights)} the first time: "
                "return arrays of one width, or a mapping if the width is not known"
            )
        if not np.isfinite(values).all():
            feature = indices[~np.isfinite(values)][0]
            raise KeslerError(
                f"features(x, y) is NaN or infinite at feature {feature}: every value must be "
                "finite"
            )
        return indices, values

    def difference(self, one: SparseRows, other: SparseRows) -> SparseRows:  # noqa: D102
        indices, place = np.unique(np.concatenate([one[0], other[0]]), return_inverse=True)
        values = np.bincount(place, np.concatenate([one[1], -other[1]]), len(indices))
        stored = values != 0
        return indices[stored], values[stored]

    def dot(self, one: SparseRows, other: SparseRows) -> float:  # noqa: D102
        self._scratch[other[0]] = other[1]
        product = float(one[1] @ self._scratch[one[0]])
        self._scratch[other[0]] = 0
        return product

    def score(self, vector: SparseRows) -> float:  # noqa: D102
        return float(vector[1] @ self.weights[vector[0]])

    def add(self, step: float, vector: SparseRows) -> None:  # noqa: D102
        self.weights[vector[0]] += step * vector[1]

    def view(self) -> npt.NDArray[np.float64]:  # noqa: D102
        view = self.weights.view()
        view.flags.writeable = False
        return view

    def less(self, other: ArraySpace, share: float) -> ArraySpace:  # noqa: D102
        space = ArraySpace(len(self.weights))
        space.weights = self.weights - share * other.weights
        return space

    @contextmanager
    def moved(self, steps: npt.NDArray[np.float64], vectors: list[SparseRows]) -> Iterator[None]:  # noqa: D102
        before = [(indices, self.weights[indices]) for indices, _ in vectors]
        for step, vector in zip(steps.tolist(), vectors, strict=True):
            self.add(step, vector)
        try:
            yield
        finally:
            for indices, weights in before:
                self.weights[indices] = weights


def space_for(phi: Any) -> Space:
    """Return a space with zero weights for joint features of this kind."""
    return NamedSpace() if isinstance(phi, Mapping) else ArraySpace(_entries(phi)[2])


def gram(space: Space, vectors: list[Any]) -> npt.NDArray[np.float64]:
    """Return the Gram matrix of vectors.

    Examples
    --------
    >>> gram(NamedSpace(), [{"a": 1.0}, {"a": 2.0, "b": 1.0}]).tolist()
    [[1.0, 2.0], [2.0, 5.0]]
    """
    products = np.zeros((0, 0))
    for end in range(1, len(vectors) + 1):
        products = bordered(space, products, vectors[:end])
    return products


def bordered(
    space: Space, products: npt.NDArray[np.float64], vectors: list[Any]
) -> npt.NDArray[np.float64]:
    """Return the Gram matrix of vectors, given that of all vectors but the last."""
    border = [space.dot(vectors[-1], vector) for vector in vectors]
    wider = np.pad(products, (0, 1))
    wider[-1], wider[:, -1] = border, border
    return wider


def _entries(phi: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], int]:
    """Return the indices and values of the non-zeros of an array or sparse row, and its width."""
    if is_sparse(phi):
        from scipy import sparse

        row: Any = sparse.coo_array(well_formed(phi, "the row that features(x, y) returned"))
        if row.ndim == 2 and row.shape[0] != 1:
            raise _another_kind("one row", phi)
        row.sum_duplicates()
        return row.coords[-1].astype(np.int64), row.data.astype(np.float64), int(row.shape[-1])
    try:
        array = np.asarray(phi, dtype=np.float64)
    except (TypeError, ValueError):
        raise _another_kind("numbers", phi) from None
    if array.ndim != 1:
        raise _another_kind("an array of shape (n_features,)", phi)
    indices = np.flatnonzero(array)
    return indices, array[indices], len(array)


def _another_kind(wanted: str, phi: Any) -> KeslerError:
    found = f"shape {phi.shape}" if hasattr(phi, "shape") else repr(phi)[:60]
    return KeslerError(
        f"features(x, y) must return {wanted} here, not {type(phi).__name__} ({found}): return a "
        "mapping of names to values, an array of shape (n_features,) or a sparse row, always the "
        "same kind"
    )
