"""Ratings: the numbers that sub-experts give to the classes in each row."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.matrices import well_formed
from kesler.data.sparse_rows import SparseRows, as_float32, is_sparse, joined, picked, run_of
from kesler.errors import KeslerError

Label = Hashable
MAX_SUB_EXPERTS = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True)
class Ratings:
    r"""The rated classes of each row, and the ratings of each by n sub-experts.

    .. math:: \phi(x, r) = (x_1^r, \dots, x_n^r)

    where :math:`x_i^r` is the rating that sub-expert i gives class r; higher is better. A
    sub-expert or a class that a row does not list has the rating 0. Such a class may still be
    predicted, so ratings should be merits above 0, not costs.

    Create ratings with :meth:`from_dense`, :meth:`from_sparse` or :meth:`from_sparse_rows`, and
    pass them to an estimator in place of X.

    Parameters
    ----------
    starts : int64 array of shape (n_rows + 1,)
        The bounds of the rated classes of each row.
    rated : int64 array of shape (n_rated,)
        The index in `labels` of each rated class.
    vectors : SparseRows
        The ratings of each rated class, by the number of the sub-expert.
    labels : tuple of labels
        The labels that are rated in any row, whether learnt yet or not.
    n_sub_experts : int
        Number of sub-experts; every index is below it.
    names : tuple of str or None, default None
        The names of the sub-experts; None if they are identified by number.
    attributes : rows in any form that an estimator takes, or None, default None
        Additional features of the rows, for hypotheses that use them: "multi+sub-experts", not
        "sub-experts" alone.

    Notes
    -----
    Memory: 8 bytes per rating.

    References
    ----------
    Mesterharm (2001), Sections 2.1, 5.3 and 6.

    Examples
    --------
    >>> two_rows = [[[0.9, 0.1], [0.1, 0.2]], [[0.5, 0.0], [0.5, 1.0]]]
    >>> ratings = Ratings.from_dense(two_rows, labels=["spam", "work"])
    >>> len(ratings), ratings.n_sub_experts, ratings.labels
    (2, 2, ('spam', 'work'))
    """

    starts: npt.NDArray[np.int64]
    rated: npt.NDArray[np.int64]
    vectors: SparseRows
    labels: tuple[Label, ...]
    n_sub_experts: int
    names: tuple[str, ...] | None = None
    attributes: Any = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def shape(self) -> tuple[int]:
        """The number of rows, which scikit-learn requires of data that it splits."""
        return (len(self),)

    def without_later(self) -> Ratings:
        """Return the ratings with no more sub-experts than they have ratings of."""
        return replace(self, n_sub_experts=int(self.vectors.indices.max(initial=-1)) + 1)

    def __getitem__(self, rows: Any) -> Ratings:
        """Return a slice of the rows as views, or selected rows as copies; with attributes."""
        if isinstance(rows, tuple):  # scikit-learn writes data[numbers, ...]
            rows = rows[0]
        if not isinstance(rows, slice):
            numbers = np.arange(len(self))[np.atleast_1d(rows)]
            some = self.attributes
            if isinstance(some, (list, tuple)):
                some = [some[i] for i in numbers.tolist()]
            elif some is not None:
                some = some.iloc[numbers] if hasattr(some, "iloc") else some[numbers]
            return replace(self.take(numbers), attributes=some)
        start, stop = run_of(rows, len(self))
        starts = self.starts[start : stop + 1]
        low, high = starts[0], starts[-1]
        return replace(
            self,
            starts=starts - low,
            rated=self.rated[low:high],
            vectors=self.vectors[low:high],
            attributes=None if self.attributes is None else self.attributes[start:stop],
        )

    # ---- construction -----------------------------------------------------------------------

    @staticmethod
    def from_dense(
        values: npt.ArrayLike, labels: Iterable[Label], attributes: Any = None
    ) -> Ratings:
        """Create ratings from an array.

        Parameters
        ----------
        values : array of shape (n_rows, n_classes, n_sub_experts).
        labels : the label of each of the n_classes, whether learnt yet or not.
        attributes : additional features of the rows, in any form that an estimator takes.

        Raises
        ------
        KeslerError
            If the array has another shape or holds anything but finite numbers, or the labels are
            not distinct or not one per class.
        """
        array = _array(values)
        if array.ndim != 3:
            raise KeslerError(
                f"the ratings have the shape {array.shape}: give an array of shape (n_rows, "
                "n_classes, n_sub_experts), what each sub-expert says of each class in each row"
            )
        n_rows, n_classes, n = array.shape
        labels = _distinct(labels, n_classes)
        vectors = SparseRows(
            np.arange(n_rows * n_classes + 1, dtype=np.int64) * n,
            np.tile(np.arange(n, dtype=np.int32), n_rows * n_classes),
            np.array(array, order="C").reshape(-1),
        )
        return _same_classes(n_rows, labels, vectors, n, attributes)

    @staticmethod
    def from_sparse(
        matrices: Sequence[Any], labels: Iterable[Label], attributes: Any = None
    ) -> Ratings:
        """Create ratings from scipy sparse matrices, one per row, if there are many sub-experts.

        Parameters
        ----------
        matrices : sequence of sparse matrices of shape (n_classes, n_sub_experts).
        labels, attributes : as in `from_dense`.

        Raises
        ------
        KeslerError
            If the matrices differ in shape, or for the reasons of `from_dense`.
        """
        matrices = list(matrices)
        if not matrices or not all(is_sparse(matrix) for matrix in matrices):
            raise KeslerError(
                "sparse ratings are a list of scipy sparse matrices of shape (n_classes, "
                "n_sub_experts), one a row: for an array use Ratings.from_dense"
            )
        shape = matrices[0].shape
        odd = next((i for i, matrix in enumerate(matrices) if matrix.shape != shape), None)
        if odd is not None or len(shape) != 2:
            raise KeslerError(
                f"the ratings of row {odd or 0} have the shape {matrices[odd or 0].shape}, those "
                f"of the first row {shape}: give each row a matrix (n_classes, n_sub_experts)"
            )
        from scipy import sparse

        matrices = [well_formed(each, f"the matrix of row {i}") for i, each in enumerate(matrices)]
        labels = _distinct(labels, shape[0])
        stacked = sparse.csr_array(sparse.vstack(matrices, format="csr"))
        stacked.sum_duplicates()
        vectors = SparseRows(
            stacked.indptr.astype(np.int64),
            stacked.indices.astype(np.int32),
            _array(stacked.data),
        )
        return _same_classes(len(matrices), labels, vectors, int(shape[1]), attributes)

    @staticmethod
    def from_sparse_rows(
        entries: Mapping[Any, Any] | Iterable[Mapping[Any, Any]], attributes: Any = None
    ) -> Ratings:
        """Create ratings from one mapping {label: ratings} per row; each may rate any classes.

        Parameters
        ----------
        entries : one mapping, or a list of them.
            The ratings of a label are a vector, as an array or a sparse matrix of one row, or a
            mapping {sub-expert: rating}. All of them identify sub-experts by number, or all by
            name.
        attributes : as in `from_dense`.

        Raises
        ------
        KeslerError
            If a row is not a mapping, sub-experts are identified both by number and by name, or a
            rating is not a finite number.

        Examples
        --------
        >>> ratings = Ratings.from_sparse_rows([{"spam": {"filter": 0.9}}, {"work": {"boss": 1}}])
        >>> ratings.names, ratings.labels
        (('filter', 'boss'), ('spam', 'work'))
        """
        rows = [entries] if isinstance(entries, Mapping) else list(entries)
        labels: dict[Label, int] = {}
        rated, gathered, starts = list[int](), _Gathered(), [0]
        for number, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise KeslerError(
                    f"the ratings of row {number} are a {type(row).__name__}, not a mapping from "
                    "labels to their ratings, such as {'spam': [0.9, 0.1]}"
                )
            for label, vector in row.items():
                rated.append(labels.setdefault(label, len(labels)))
                gathered.add(vector, f"the ratings of label {label!r} in row {number}")
            starts.append(len(rated))
        return _checked(
            Ratings(
                np.array(starts, dtype=np.int64),
                np.array(rated, dtype=np.int64),
                gathered.entries(),
                tuple(labels),
                gathered.n_sub_experts,
                gathered.known_names,
                attributes,
            )
        )

    # ---- operations on rows -----------------------------------------------------------------

    @staticmethod
    def concatenate(pieces: Sequence[Ratings]) -> Ratings:
        """Return the ratings of all pieces, at least one, without attributes."""
        labels = {label: None for piece in pieces for label in piece.labels}
        names = {name: None for piece in pieces for name in piece.names or ()}
        places = {label: place for place, label in enumerate(labels)}
        numbers = {name: number for number, name in enumerate(names)}
        same = [
            piece
            if piece.names is None
            else piece.numbered([numbers[name] for name in piece.names], len(names))
            for piece in pieces
        ]
        return Ratings(
            joined([piece.starts for piece in pieces]),
            np.concatenate([p.numbers_of_rated(places.__getitem__) for p in pieces]),
            SparseRows(
                joined([piece.vectors.indptr for piece in same]),
                np.concatenate([piece.vectors.indices for piece in same]),
                np.concatenate([piece.vectors.values for piece in same]),
            ),
            tuple(labels),
            max(piece.n_sub_experts for piece in same),
            tuple(names) or None,
        )

    def take(self, numbers: npt.NDArray[np.int64]) -> Ratings:
        """Return copies of the rows of the given numbers, in this order, without attributes."""
        starts, stored = picked(self.starts, numbers)
        return replace(
            self,
            starts=starts,
            rated=self.rated[stored],
            vectors=self.vectors.take(stored),
            attributes=None,
        )

    def numbers_of_rated(self, number: Callable[[Label], int | None]) -> npt.NDArray[np.int64]:
        """Return the number of each rated class, from a function of its label; -1 for None."""
        numbers = [number(label) for label in self.labels]
        codes = [-1 if code is None else code for code in numbers]
        return np.array(codes, dtype=np.int64)[self.rated]

    def numbered(self, numbers: Sequence[int], n_sub_experts: int) -> Ratings:
        """Return the ratings with names replaced by numbers, all below `n_sub_experts`."""
        places = np.array(numbers, dtype=np.int32)
        vectors = replace(self.vectors, indices=places[self.vectors.indices])
        return replace(self, vectors=vectors, n_sub_experts=n_sub_experts, names=None)

    def with_unseen_as(self, number: int) -> Ratings:
        """Return the ratings with every sub-expert above this number replaced by this number."""
        if self.n_sub_experts <= number:
            return self
        indices = np.minimum(self.vectors.indices, np.int32(number))
        return replace(self, vectors=replace(self.vectors, indices=indices))

    def without_zeros(self) -> Ratings:
        """Return the ratings without those that are 0; the same object if there are none."""
        return replace(self, vectors=self.vectors.without_zeros())


class _Gathered:
    """Collects the ratings of one class after the other, in any of their forms."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._by_name: set[bool] = set()
        self._indices: list[Any] = [np.empty(0, dtype=np.int32)]
        self._values: list[Any] = [np.empty(0, dtype=np.float32)]
        self._ends = [0]
        self.n_sub_experts = 0

    def add(self, vector: Any, what: str) -> None:
        """Add the ratings of one class; error messages refer to them as `what`."""
        if isinstance(vector, Mapping):
            indices, values = self._mapped(vector, what)
        else:
            indices, values = _listed(vector, what)
        if len(indices):
            self._by_name.add(isinstance(vector, Mapping) and isinstance(next(iter(vector)), str))
            self.n_sub_experts = max(self.n_sub_experts, int(max(indices)) + 1)
        if len(self._by_name) > 1:
            raise KeslerError(
                f"{what} and those before identify sub-experts in different ways, by number and by "
                "name: choose one way for all"
            )
        self._indices.append(indices)
        self._values.append(values)
        self._ends.append(self._ends[-1] + len(indices))

    def entries(self) -> SparseRows:
        return SparseRows(
            np.array(self._ends, dtype=np.int64),
            np.concatenate(self._indices).astype(np.int32),
            as_float32(np.concatenate(self._values)),
        )

    @property
    def known_names(self) -> tuple[str, ...] | None:
        return tuple(self._names) or None

    def _mapped(self, entry: Mapping[Any, Any], what: str) -> tuple[list[int], Any]:
        values = _numbers(list(entry.values()), what)
        if all(isinstance(key, str) for key in entry):
            return [self._names.setdefault(name, len(self._names)) for name in entry], values
        for key in entry:
            if not isinstance(key, (int, np.integer)) or not 0 <= key < MAX_SUB_EXPERTS:
                raise KeslerError(
                    f"{what} name the sub-expert {key!r}: sub-experts go by number from 0 on, or "
                    "all by name"
                )
        return [int(key) for key in entry], values


def _listed(vector: Any, what: str) -> tuple[Any, Any]:
    """Return the indices and values of a vector, dense or sparse."""
    if is_sparse(vector):
        from scipy import sparse

        row = vector if vector.ndim == 2 else vector.reshape(1, -1)
        row = sparse.csr_array(well_formed(row, what))
        if row.shape[0] != 1:
            raise KeslerError(f"{what} have the shape {row.shape}: give a matrix of one row")
        row.sum_duplicates()
        return row.indices, _numbers(row.data, what)
    values = _numbers(vector, what)
    return np.arange(len(values), dtype=np.int32), values


def _numbers(values: Any, what: str) -> npt.NDArray[Any]:
    """Return values as a one-dimensional array of numbers."""
    try:
        array = np.asarray(values)
    except ValueError:  # some values are lists
        array = np.empty((0, 0), dtype=object)
    if array.ndim != 1 or (array.dtype.kind not in "biuf" and array.size):
        raise KeslerError(
            f"{what} are {values!r:.60}: give numbers, one for each sub-expert, or a mapping from "
            "sub-experts to numbers"
        )
    return array.astype(np.float64) if array.size == 0 else array


def _array(values: Any) -> npt.NDArray[np.float32]:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise KeslerError(f"ratings must be an array of numbers ({error})") from None
    if array.dtype.kind not in "biuf":
        raise KeslerError(
            f"ratings are an array of {array.dtype}, not of numbers: pass ragged ratings as "
            "mappings to Ratings.from_sparse_rows"
        )
    array = as_float32(array)
    return array if array.flags.writeable else array.copy()


def _distinct(labels: Iterable[Label], n_classes: int) -> tuple[Label, ...]:
    found = tuple(labels.tolist() if isinstance(labels, np.ndarray) else labels)
    if len(found) != n_classes:
        raise KeslerError(
            f"the ratings are of {n_classes} classes, but there are {len(found)} labels: give the "
            "label of each"
        )
    try:
        distinct = len(set(found)) == len(found)
    except TypeError as error:
        raise KeslerError(f"a rated label is invalid ({error}): use numbers or text") from None
    if not distinct:
        raise KeslerError(
            f"the labels of the ratings, {found!r:.80}, are not distinct: name each once"
        )
    return found


def _same_classes(
    n_rows: int, labels: tuple[Label, ...], vectors: SparseRows, n_sub_experts: int, attributes: Any
) -> Ratings:
    """Return ratings whose rows rate the same classes."""
    k = len(labels)
    starts = np.arange(n_rows + 1, dtype=np.int64) * k
    rated = np.tile(np.arange(k, dtype=np.int64), n_rows)
    return _checked(Ratings(starts, rated, vectors, labels, n_sub_experts, None, attributes))


def _checked(ratings: Ratings) -> Ratings:
    """Return the ratings; raise an error that names the first that is NaN or infinite."""
    entry = ratings.vectors.first_odd()
    if entry is None:
        return ratings
    place = ratings.vectors.list_of(entry)
    row = int(np.searchsorted(ratings.starts, place, side="right")) - 1
    label, number = ratings.labels[ratings.rated[place]], int(ratings.vectors.indices[entry])
    sub_expert = number if ratings.names is None else repr(ratings.names[number])
    raise KeslerError(
        f"row {row}, label {label!r}: the rating by sub-expert {sub_expert} is NaN, infinity or "
        "too large for float32: leave out what is not rated"
    )
