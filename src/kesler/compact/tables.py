"""Tables: chosen steps of one kind side by side, with what they share stored once."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from kesler.compact import evaluation
from kesler.dictionaries.steps import Column, Piece, Product, Step, Stump, Template, area, box_of
from kesler.errors import KeslerError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Table(ABC):
    """Steps of one kind.

    Attributes
    ----------
    evaluate : function
        Of :mod:`kesler.compact.evaluation`: it takes rows and the fields of the table.
    """

    evaluate: ClassVar[Callable[..., Floats]]

    @property
    def parts(self) -> dict[str, Any]:
        """The fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def width(self) -> int:
        """How many columns the steps have: one each, by the last field, unless told otherwise."""
        return len(getattr(self, fields(self)[-1].name))

    @property
    @abstractmethod
    def cost(self) -> int:
        """Multiply-accumulates per instance at most, shared work counted once, weights apart."""

    @property
    @abstractmethod
    def reads(self) -> Ints:
        """The features that it reads, each once or more."""

    def values(self, X: Floats) -> Floats:
        """Return the columns of all steps on some rows."""
        return type(self).evaluate(X, **self.parts)


@dataclass(frozen=True, eq=False)
class IndexTable(Table):
    """Steps that look at one feature each, and multiply nothing."""

    index: Ints

    @property
    def cost(self) -> int:
        """Nothing."""
        return 0

    @property
    def reads(self) -> Ints:
        """Those features."""
        return self.index


@dataclass(frozen=True, eq=False)
class ColumnTable(IndexTable):
    """Features as they are."""

    evaluate = staticmethod(evaluation.columns)

    @staticmethod
    def of(steps: Sequence[Column]) -> ColumnTable:
        """Set columns side by side."""
        return ColumnTable(_numbers(step.index for step in steps))


@dataclass(frozen=True, eq=False)
class ProductTable(Table):
    """Products of two features."""

    evaluate = staticmethod(evaluation.products)
    left: Ints
    right: Ints

    @property
    def cost(self) -> int:
        """A product each."""
        return len(self.left)

    @property
    def reads(self) -> Ints:
        """Both factors."""
        return np.concatenate([self.left, self.right])

    @staticmethod
    def of(steps: Sequence[Product]) -> ProductTable:
        """Set products side by side."""
        return ProductTable(
            _numbers(step.left for step in steps), _numbers(step.right for step in steps)
        )


@dataclass(frozen=True, eq=False)
class StumpTable(IndexTable):
    """Features below thresholds."""

    evaluate = staticmethod(evaluation.stumps)
    threshold: Floats

    @staticmethod
    def of(steps: Sequence[Stump]) -> StumpTable:
        """Set stumps side by side."""
        thresholds = np.array([step.threshold for step in steps], dtype=np.float64)
        return StumpTable(_numbers(step.index for step in steps), thresholds)


@dataclass(frozen=True, eq=False)
class PieceTable(Table):
    """Balls, in the order of their centres, of which each stands there once."""

    evaluate = staticmethod(evaluation.pieces)
    centres: Floats
    centre: Ints
    squared_radius: Floats

    @property
    def width(self) -> int:
        """The constant and one a feature each."""
        return len(self.centre) * (1 + int(self.centres.shape[1]))

    @property
    def cost(self) -> int:
        """The distance to each centre."""
        return int(self.centres.size)

    @property
    def reads(self) -> Ints:
        """All."""
        return np.arange(self.centres.shape[1])

    @staticmethod
    def of(steps: Sequence[Piece]) -> PieceTable:
        """Set pieces side by side."""
        centres, centre = _once([step.centre for step in steps])
        return PieceTable(centres, centre, np.array([float(step.radius) ** 2 for step in steps]))


@dataclass(frozen=True, eq=False)
class TemplateTable(Table):
    """Templates over images of one shape, with patches of one shape, in the order of patches."""

    evaluate = staticmethod(evaluation.templates)
    image_shape: tuple[int, int]
    padding: int
    fading: float | None
    patches: Floats
    masks: Floats
    patch: Ints
    mask: Ints

    @property
    def cost(self) -> int:
        """Each patch on its box, masks where they are not 0, and contrasts once, on all boxes."""
        size = int(self.patches[0].size)
        weights = int((self.masks[self.mask] != 0).sum())
        contrasts = 0 if self.fading is None else area(self.box) * size
        return sum(area(box) * size for box in self.boxes) + weights + contrasts

    @property
    def boxes(self) -> Ints:
        """The places (first row, end, first column, end) that the masks of each patch need."""
        met = [(self.masks[self.mask[self.patch == i]] != 0) for i in range(len(self.patches))]
        return np.array([box_of(each.any(axis=0)) for each in met])

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
        """Set templates side by side."""
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
    """Return steps as tables, and which of the steps' columns the columns of the tables are.

    Raises
    ------
    KeslerError
        If a step is of a kind of one's own.
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
    """Return what steps of one table have in common."""
    if type(step) not in TABLES:
        raise KeslerError(
            f"{type(step).__name__} is a step of your own, which exports cannot write: let "
            f"step(candidate) return one of {', '.join(kind.__name__ for kind in TABLES)}"
        )
    if isinstance(step, Template):
        return Template, step.image_shape, step.patch.shape, step.padding, step.fading
    return (type(step),)


def _shared_part(step: Step) -> bytes:
    """Return what steps of a table may share: steps that do should stand side by side."""
    shared = getattr(step, "centre", getattr(step, "patch", None))
    return b"" if shared is None else np.ascontiguousarray(shared, np.float64).tobytes()


def _numbers(numbers: Any) -> Ints:
    return np.fromiter(numbers, dtype=np.int64)


def _once(arrays: Sequence[Floats]) -> tuple[Floats, Ints]:
    """Return the different ones of some arrays in the order met, and which one each is."""
    numbers: dict[bytes, int] = {}
    kept, which = list[Floats](), list[int]()
    for array in arrays:
        array = np.ascontiguousarray(array, dtype=np.float64)
        number = numbers.setdefault(array.tobytes(), len(kept))
        if number == len(kept):
            kept.append(array)
        which.append(number)
    return np.array(kept), np.array(which, dtype=np.int64)
