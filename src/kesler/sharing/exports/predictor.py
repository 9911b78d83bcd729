"""CompactPredictor: the parts of a fitted ShareBoostClassifier that predictions need.

Exported Python modules contain copies of the functions below, which therefore may use only `np`,
`npt` and `sliding_window_view`, and may not call each other.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.utils.validation import check_is_fitted

from kesler.dictionaries.steps import (
    Column,
    Piece,
    Product,
    Step,
    Stump,
    Template,
    area,
    box_of,
)
from kesler.errors import KeslerError


def columns(X: npt.NDArray[np.float64], index: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return features as they are."""
    return X[:, index]


def products(
    X: npt.NDArray[np.float64], left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return products of two features."""
    return np.asarray(X[:, left] * X[:, right])


def stumps(
    X: npt.NDArray[np.float64], index: npt.NDArray[np.int64], threshold: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return 1 where a feature is below its threshold, else 0."""
    return (X[:, index] < threshold).astype(np.float64)


def pieces(
    X: npt.NDArray[np.float64],
    centres: npt.NDArray[np.float64],
    centre: npt.NDArray[np.int64],
    squared_radius: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Return 1 and the offset from a centre where rows are near to it, else zeros."""
    values = np.zeros((len(X), len(centre), 1 + X.shape[1]))
    for number, point in enumerate(centres):
        offsets = X - point
        distances = np.square(offsets).sum(axis=1)
        for i in np.flatnonzero(centre == number):
            near = distances < squared_radius[i]
            values[near, i, 0] = 1.0
            values[near, i, 1:] = offsets[near]
    return values.reshape(len(X), -1)


def templates(
    X: npt.NDArray[np.float64],
    image_shape: tuple[int, int],
    padding: int,
    fading: float | None,
    patches: npt.NDArray[np.float64],
    masks: npt.NDArray[np.float64],
    patch: npt.NDArray[np.int64],
    mask: npt.NDArray[np.int64],
) -> npt.NDArray[np.float64]:
    """Return the largest masked responses of patches, image by image."""
    values = np.empty((len(X), len(patch)))
    flat_patches = patches.reshape(len(patches), -1).T
    weights = masks.reshape(len(masks), -1).T[:, mask]
    for i, pixels in enumerate(X):
        image = np.pad(pixels.reshape(image_shape), padding)
        windows = sliding_window_view(image, patches.shape[1:]).reshape(len(weights), -1)
        responses = windows @ flat_patches
        if fading is not None:
            responses /= windows.std(axis=1, keepdims=True) + fading
        values[i] = (responses[:, patch] * weights).max(axis=0)
    return values


Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Table(ABC):
    """Steps of one kind, as arrays.

    Attributes
    ----------
    evaluate : function
        A function of :mod:`kesler.sharing.exports.predictor` that computes the columns from rows
        and the fields of the table.
    """

    evaluate: ClassVar[Callable[..., Floats]]

    @property
    def parts(self) -> dict[str, Any]:
        """The fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def width(self) -> int:
        """Number of columns of the steps; by default one per element of the last field."""
        return len(getattr(self, fields(self)[-1].name))

    @property
    @abstractmethod
    def cost(self) -> int:
        """Maximum multiply-accumulates per instance, without weights; shared work counts once."""

    @property
    @abstractmethod
    def reads(self) -> Ints:
        """The features that the steps read, possibly repeated."""

    def values(self, X: Floats) -> Floats:
        """Return the columns of all steps on some rows."""
        return type(self).evaluate(X, **self.parts)


@dataclass(frozen=True, eq=False)
class IndexTable(Table):
    """Steps that read one feature each, without multiplications."""

    index: Ints

    @property
    def cost(self) -> int:
        """The cost, which is 0."""
        return 0

    @property
    def reads(self) -> Ints:
        """The features that the steps read."""
        return self.index


@dataclass(frozen=True, eq=False)
class ColumnTable(IndexTable):
    """Features as they are."""

    evaluate = staticmethod(columns)

    @staticmethod
    def of(steps: Sequence[Column]) -> ColumnTable:
        """Return the table of some columns."""
        return ColumnTable(_numbers(step.index for step in steps))


@dataclass(frozen=True, eq=False)
class ProductTable(Table):
    """Products of two features."""

    evaluate = staticmethod(products)
    left: Ints
    right: Ints

    @property
    def cost(self) -> int:
        """The cost: one multiplication per product."""
        return len(self.left)

    @property
    def reads(self) -> Ints:
        """The factors of all products."""
        return np.concatenate([self.left, self.right])

    @staticmethod
    def of(steps: Sequence[Product]) -> ProductTable:
        """Return the table of some products."""
        return ProductTable(
            _numbers(step.left for step in steps), _numbers(step.right for step in steps)
        )


@dataclass(frozen=True, eq=False)
class StumpTable(IndexTable):
    """Features below thresholds."""

    evaluate = staticmethod(stumps)
    threshold: Floats

    @staticmethod
    def of(steps: Sequence[Stump]) -> StumpTable:
        """Return the table of some stumps."""
        thresholds = np.array([step.threshold for step in steps], dtype=np.float64)
        return StumpTable(_numbers(step.index for step in steps), thresholds)


@dataclass(frozen=True, eq=False)
class PieceTable(Table):
    """Pieces, sorted by centre; each distinct centre is stored once."""

    evaluate = staticmethod(pieces)
    centres: Floats
    centre: Ints
    squared_radius: Floats

    @property
    def width(self) -> int:
        """Number of columns: per piece, the constant and one per feature."""
        return len(self.centre) * (1 + int(self.centres.shape[1]))

    @property
    def cost(self) -> int:
        """The cost of the distances to all centres."""
        return int(self.centres.size)

    @property
    def reads(self) -> Ints:
        """All features."""
        return np.arange(self.centres.shape[1])

    @staticmethod
    def of(steps: Sequence[Piece]) -> PieceTable:
        """Return the table of some pieces."""
        centres, centre = _once([step.centre for step in steps])
        return PieceTable(centres, centre, np.array([float(step.radius) ** 2 for step in steps]))


@dataclass(frozen=True, eq=False)
class TemplateTable(Table):
    """Templates with one image shape and one patch shape, sorted by patch."""

    evaluate = staticmethod(templates)
    image_shape: tuple[int, int]
    padding: int
    fading: float | None
    patches: Floats
    masks: Floats
    patch: Ints
    mask: Ints

    @property
    def cost(self) -> int:
        """The cost of patches on their boxes, nonzero mask weights, and contrasts on all boxes."""
        size = int(self.patches[0].size)
        weights = int((self.masks[self.mask] != 0).sum())
        contrasts = 0 if self.fading is None else area(self.box) * size
        return sum(area(box) * size for box in self.boxes) + weights + contrasts

    @property
    def boxes(self) -> Ints:
        """The places (first row, end, first column, end) that the masks of each patch need."""
        seen = [(self.masks[self.mask[self.patch == i]] != 0) for i in range(len(self.patches))]
        return np.array([box_of(each.any(axis=0)) for each in seen])

    @property
    def box(self) -> Ints:
        """The places that any mask needs."""
        return box_of((self.masks != 0).any(axis=0))

    @property
    def reads(self) -> Ints:
        """All pixels."""
        return np.arange(math.prod(self.image_shape))

    @staticmethod
    def of(steps: Sequence[Template]) -> TemplateTable:
        """Return the table of some templates."""
        patches, patch = _once([step.patch for step in steps])
        masks, mask = _once([step.mask for step in steps])
        shape, padding, fading = steps[0].image_shape, steps[0].padding, steps[0].fading
        return TemplateTable(shape, padding, fading, patches, masks, patch, mask)


TABLES: dict[type[Step], Any] = {
    Column: ColumnTable,
    Product: ProductTable,
    Stump: StumpTable,
    Piece: PieceTable,
    Template: TemplateTable,
}


def arranged(steps: Sequence[Step]) -> tuple[list[Table], Ints]:
    """Return steps as tables, and the steps' column numbers of the tables' columns.

    Raises
    ------
    KeslerError
        If a step has a custom class.
    """
    ends = np.cumsum([step.width for step in steps])
    kinds: dict[Any, list[int]] = {}
    for i, step in enumerate(steps):
        kinds.setdefault(_kind(step), []).append(i)
    tables, order = [], list[int]()
    for (kind, *_), members in kinds.items():
        members.sort(key=lambda i: _shared_part(steps[i]))
        tables.append(TABLES[kind].of([steps[i] for i in members]))
        order.extend(j for i in members for j in range(ends[i] - steps[i].width, ends[i]))
    return tables, np.array(order, dtype=np.int64)


def _kind(step: Step) -> tuple[Any, ...]:
    """Return the properties that all steps of a table have in common."""
    if type(step) not in TABLES:
        raise KeslerError(
            f"{type(step).__name__} is a custom step, which cannot be exported: let "
            f"step(candidate) return one of {', '.join(kind.__name__ for kind in TABLES)}"
        )
    if isinstance(step, Template):
        return Template, step.image_shape, step.patch.shape, step.padding, step.fading
    return (type(step),)


def _shared_part(step: Step) -> bytes:
    """Return the centre or patch of a step as a sort key, so that shared ones are adjacent."""
    shared = getattr(step, "centre", getattr(step, "patch", None))
    return b"" if shared is None else np.ascontiguousarray(shared, np.float64).tobytes()


def _numbers(numbers: Any) -> Ints:
    return np.fromiter(numbers, dtype=np.int64)


def _once(arrays: Sequence[Floats]) -> tuple[Floats, Ints]:
    """Return the distinct arrays in the order of first occurrence, and the number of each array."""
    numbers: dict[bytes, int] = {}
    distinct, which = list[Floats](), list[int]()
    for array in arrays:
        array = np.ascontiguousarray(array, dtype=np.float64)
        number = numbers.setdefault(array.tobytes(), len(distinct))
        if number == len(distinct):
            distinct.append(array)
        which.append(number)
    return np.array(distinct), np.array(which, dtype=np.int64)


Label = str | int | float


@dataclass(frozen=True, eq=False)
class CompactPredictor:
    """Chosen features as tables, their weights, and the classes.

    Parameters
    ----------
    tables : sequence of Table
        The computation of the features, by kind.
    weights : array of shape (n_columns, n_classes)
        In the order of the tables' columns.
    intercept : array of shape (n_classes,)
    classes : list of labels
        Among equal scores, the first class wins.
    n_features : int
        Number of features of an instance.
    names : list of str
        The names of the chosen features, in the order of choice.
    dtype : dtype
        The precision of the rows of the fit, float64 or float32.

    Attributes
    ----------
    cost : int
        Maximum number of multiply-accumulates per instance: those of the features, where shared
        work (one patch with two masks, one centre with two radii) counts once, and one per weight.
    reads : list of int
        The features that the predictor reads.

    Examples
    --------
    >>> from kesler import ShareBoostClassifier
    >>> from kesler.sharing.exports.predictor import CompactPredictor
    >>> from kesler.datasets import load_pendigits
    >>> pens = load_pendigits()
    >>> X = pens.X[:500] / 50 - 1
    >>> model = ShareBoostClassifier(6).fit(X, pens.y[:500])
    >>> predictor = CompactPredictor.of(model)
    >>> predictor.cost  # 6 features, 10 classes
    60
    >>> bool((predictor.predict(X) == model.predict(X)).all())
    True
    """

    tables: Sequence[Table]
    weights: Floats = field(repr=False)
    intercept: Floats = field(repr=False)
    classes: list[Label]
    n_features: int
    names: list[str]
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, model: Any) -> CompactPredictor:
        """Return the predictor of a fitted ShareBoostClassifier.

        Raises
        ------
        NotFittedError
            If it is not fitted.
        KeslerError
            If its dictionary does not define steps, or a label is neither text nor a number.
        """
        steps, names = chosen_steps(model)
        tables, order = arranged(steps)
        weights = np.asarray(model.coef_, dtype=np.float64).T
        return cls(
            tables,
            np.ascontiguousarray(weights[order]),
            np.asarray(model.intercept_, dtype=np.float64),
            plain_labels(model.classes_),
            int(model.n_features_in_),
            names,
            model.dtype_,
        )

    @property
    def cost(self) -> int:
        """Maximum number of multiply-accumulates per instance."""
        return sum(table.cost for table in self.tables) + self.weights.size

    @property
    def reads(self) -> list[int]:
        """The numbers of the features that are read; all others are unused."""
        numbers: list[int] = np.unique(
            np.concatenate([each.reads for each in self.tables])
        ).tolist()
        return numbers

    def scores(self, X: npt.ArrayLike) -> Floats:
        """Return the score of each class for each row, two columns for two classes."""
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise KeslerError(
                f"X is of shape {rows.shape}, not (n_rows, {self.n_features}): give the features "
                "of the fit"
            )
        scores = np.tile(self.intercept, (len(rows), 1))
        first = 0
        for table in self.tables:
            scores += table.values(rows) @ self.weights[first : first + table.width]
            first += table.width
        return scores

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the label with the highest score for each row."""
        return np.asarray(np.array(self.classes)[self.scores(X).argmax(axis=1)])


def chosen_steps(model: Any) -> tuple[list[Step], list[str]]:
    """Return the steps of the chosen features of a fitted model, and their names."""
    if not hasattr(type(model), "export"):
        raise KeslerError(
            f"{type(model).__name__} cannot be exported, as it does not choose few features for "
            "all classes: give a fitted ShareBoostClassifier or MixedNormClassifier, or export "
            "kesler.compact.CompactClassifier.of(model) of a model of texts"
        )
    check_is_fitted(model, "support_")
    steps = [model.dictionary_.step(int(candidate)) for candidate in model.support_]
    named = getattr(model, "feature_names_in_", None)
    features = [f"x{i}" for i in range(model.n_features_in_)] if named is None else named
    return steps, [step.name(list(map(str, features))) for step in steps]


def plain_labels(classes: npt.NDArray[Any]) -> list[Label]:
    """Return labels as Python's text and numbers; raise if one is neither."""
    labels: list[Label] = classes.tolist()
    for label in labels:
        if not isinstance(label, (str, int, float)):
            raise KeslerError(
                f"the label {label!r} is of type {type(label).__name__}, which no file can hold: "
                "use text or numbers as labels"
            )
    return labels


def encoded(label: str) -> bytes:
    """Return a label in UTF-8.

    Raises
    ------
    KeslerError
        If it contains half of a surrogate pair, which UTF-8 cannot represent.
    """
    try:
        return label.encode()
    except UnicodeEncodeError as error:
        raise KeslerError(
            f"the label {label!r:.60} contains half of a surrogate pair, which UTF-8 cannot "
            "represent: rename the class"
        ) from error
