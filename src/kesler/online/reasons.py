"""Reasons: the words, pairs and cells of a row that its features belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.data.texts import BEGINS
from kesler.data.wording import Wording
from kesler.learner.explanations import Explanation, MarkedText, Span, Terms

if TYPE_CHECKING:
    from kesler.data.schema.features import Moments
    from kesler.data.schema.schema import Column, Schema

Doubles = npt.NDArray[np.float64]
Reason = tuple[str | None, str]
"""The column that a reason is of, and its name; a word and a cell may have the same name."""
Shares = list[tuple[Reason, float]]
"""Reasons with the share of a feature that belongs to each; the shares sum to 1."""

SIGNS = ":~<=@&["
"""What follows the name of a column in those of its features; see `data/schema/features.py`."""


class Reasons:
    """What the features of a row are summed into.

    A word has all features of its letters, a pair of words its own, a cell of another kind than a
    text all of its features.

    Parameters
    ----------
    texts : the texts of the row by column, by None if it is a text alone.
    cells : the other cells of the row, by column.
    schema : the columns; None if the row is a text alone.
    moments : those of the numbers learnt so far.
    names : those of its features in their order, if they are listed.
    """

    def __init__(
        self,
        texts: Mapping[str | None, str],
        cells: Mapping[str, Any] | None = None,
        schema: Schema | None = None,
        moments: Moments | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self.names = names
        self.texts, self._cells = texts, cells or {}
        learnt = [] if schema is None else schema.learnt
        self._alone = len(learnt) < 2
        self._columns = _by_prefix(learnt)
        self._means = {name: mean for name, (n, mean, _) in (moments or {}).items() if n}

    @classmethod
    def of_cells(cls, row: Mapping[str, Any], schema: Schema, moments: Moments) -> Reasons:
        """Return the reasons of a row of a table, given its parsed cells."""
        kinds = {column.name: column.kind for column in schema.learnt}
        present = {name: cell for name, cell in row.items() if name in kinds and cell is not None}
        texts: dict[str | None, str] = {n: c for n, c in present.items() if kinds[n] == "text"}
        others = {name: cell for name, cell in present.items() if name not in texts}
        return cls(texts, others, schema, moments)

    @cached_property
    def wordings(self) -> dict[str | None, Wording]:
        """The words of the texts, by column."""
        return {
            name: Wording(text, of_column=name is not None) for name, text in self.texts.items()
        }

    # ---- sums -------------------------------------------------------------------------------

    def summed(self, terms: Terms, names: Sequence[str | int]) -> Terms:
        """Return the contributions of reasons, given those of features and their names."""
        if None in self.texts and _are_words(names):
            return terms._replace(values=np.full(len(names), np.nan))
        numbers: dict[Reason, int] = {}
        of_terms, of_reasons, shares = list[int](), list[int](), list[float]()
        for i, name in enumerate(names):
            for reason, share in self._shares(str(name)):
                of_terms.append(i)
                of_reasons.append(numbers.setdefault(reason, len(numbers)))
                shares.append(share)
        table = np.zeros((len(numbers), *terms.table.shape[1:]))
        np.add.at(table, of_reasons, np.array(shares)[:, None, None] * terms.table[of_terms])
        found = [name for _, name in numbers]
        values = np.array([self._value(column) for column, _ in numbers], dtype=float)
        return terms._replace(
            numbers=np.arange(len(found)),
            values=values,
            table=table,
            n_features=len(found),
            name_of=lambda i: found[i],
        )

    def marks(self, terms: Terms, names: Sequence[str | int]) -> Marking | None:
        """Return what marks the texts of the row, given contributions of features; None without."""
        return Marking(self, names, terms) if self.texts else None

    def compared(self, why: Explanation) -> Explanation:
        """Return an explanation by cells with the means of their numbers."""
        compared = (
            each if each.value is None else each._replace(mean=self._means.get(str(each.feature)))
            for each in why.contributions
        )
        return replace(why, contributions=tuple(compared))

    def _value(self, column: str | None) -> float:
        cell = None if column is None else self._cells.get(column)
        return cell if isinstance(cell, float) else np.nan

    # ---- features ---------------------------------------------------------------------------

    def _shares(self, feature: str) -> Shares:
        """Return the reasons that a feature belongs to; itself if it is of no other."""
        if (known := self.of_text(feature)) is not None:
            column, part, is_run = known
            before = "" if self._alone else f"{column}: "
            shares = self.wordings[column].shares(part, is_run=is_run)
            named = [((column, before + name), share) for name, share in shares]
            return named or [((column, feature), 1.0)]
        cell, rest = self._parted(feature)
        if cell is None:
            return [((None, feature), 1.0)]
        return [((cell.name, self._cell_of(cell, rest)), 1.0)]

    def of_text(self, feature: str) -> tuple[str | None, str, bool | None] | None:
        """Return the column of a feature of a text, its characters, and whether they are a run.

        None if it is of no text; whether it is a run is not known of a text alone.
        """
        if None in self.texts:
            return None, feature, None
        column, rest = self._parted(feature)
        if column is None or column.name not in self.texts:
            return None
        return column.name, rest[1:], rest[:1] != ":"

    def _parted(self, feature: str) -> tuple[Column | None, str]:
        """Return the column of a feature of a table, and what follows its name."""
        for prefix, column in self._columns.items():
            rest = feature.removeprefix(prefix)
            if feature.startswith(prefix) and (not rest or rest[0] in SIGNS):
                return column, rest
        return None, feature

    def _cell_of(self, column: Column, rest: str) -> str:
        """Return the name of the reason that a feature of a cell belongs to."""
        if rest.startswith("&"):
            other, _ = self._parted(rest[1:])
            return " & ".join(self._cell(each.name) for each in (column, other) if each is not None)
        if column.kind == "tags":
            return column.name + rest
        return (
            f"{column.name}: {rest[1:]}" if column.kind == "sequence" else self._cell(column.name)
        )

    def _cell(self, name: str) -> str:
        return name_of_cell(name, self._cells.get(name))


class Marking:
    """What computes the marked texts of a row from the contributions of its features.

    Parameters
    ----------
    reasons : those of the row.
    names, terms : the names and the contributions of its features.
    """

    def __init__(self, reasons: Reasons, names: Sequence[str | int], terms: Terms) -> None:
        self._reasons, self._names, self._terms = reasons, names, terms

    def texts(self) -> tuple[MarkedText, ...]:
        """Return the texts of the row, with what each of their words contributes."""
        wordings = self._reasons.wordings
        found = {column: [0.0] * len(each.pieces) for column, each in wordings.items()}
        for name, margin in zip(self._names, self._terms.margins.tolist(), strict=True):
            if (known := self._reasons.of_text(str(name))) is not None:
                column, feature, is_run = known
                places = wordings[column].places(feature, is_run=is_run)
                for place in places:
                    found[column][place] += margin / len(places)
        return tuple(
            MarkedText(column, wording.text, _spans(wording, found[column]))
            for column, wording in wordings.items()
        )


def _are_words(names: Sequence[str | int]) -> bool:
    """Return whether the features of a text alone are words of ASCII: they have no spaces."""
    joined = " ".join(map(str, names))
    return joined.isascii() and BEGINS not in joined and joined.count(" ") == len(names) - 1


def name_of_cell(column: str, cell: Any) -> str:
    """Return the name of a cell: that of its column, and the category or the date in it."""
    return column if isinstance(cell, (float, list)) or cell is None else f"{column}={cell}"


def _by_prefix(columns: Sequence[Column]) -> dict[str, Column]:
    """Return columns by what the names of their features begin with, the longest first."""
    from kesler.data.schema.features import escaped

    found = {escaped(column.name): column for column in columns}
    return {name: found[name] for name in sorted(found, key=len, reverse=True)}


def _spans(wording: Wording, margins: Sequence[float]) -> tuple[Span, ...]:
    """Return the places of words with what they contribute; words of unknown place have none."""
    return tuple(
        Span(piece.start, piece.end, margin)
        for piece, margin in zip(wording.pieces, margins, strict=True)
        if piece.start < piece.end
    )
