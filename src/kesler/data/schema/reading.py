"""Cells of a column as values; what does not fit, and options that later cells rule out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kesler.data.schema.cells import UnfitError, short
from kesler.data.schema.durations import CLOCK
from kesler.data.schema.schema import Column, Reading
from kesler.errors import MismatchError, MismatchWarning, warn

TEXTS = {str, type(None)}
PIECE = 256  # cells that are tried in another reading at a time

Odd = dict[int, str]
"""What the cells are that a column cannot hold, by their rows."""


@dataclass(frozen=True, slots=True)
class ColumnReader:
    """Parses the cells of columns.

    Parameters
    ----------
    place : function of the number of a row that says where it is, for messages.
    on_mismatch : "raise", or "missing": a cell that its column cannot hold is then missing.
    learn : whether the rows are learnt, so that they can rule out the options of a column.
    count : whether cells are counted.
    """

    place: Callable[[int], str]
    on_mismatch: str
    learn: bool
    count: bool = True

    def read(
        self, column: Column, cells: Sequence[Any], start: int = 0
    ) -> tuple[list[Any], Column]:
        """Return the parsed cells, and the column after them, of rows from a number on.

        From the first cell on that only other options can read, the column has these.

        Raises
        ------
        KeslerError
            If a cell does not fit the column, unless such cells count as missing.
        """
        found, odd = parsed(column, cells)
        if self.learn and column.others and not _are_whole(column, cells):
            others, row = _followed(column, cells, found, odd)
            column, found = replace(column, others=others), found[:row]
            odd = {at: what for at, what in odd.items() if at < row}
        self._report(column, odd, start)
        if self.count:
            n_cells = len(found) - cells[: len(found)].count(None)
            column = column.counted(n_cells, len(odd), [*odd.values()])
        n = len(found)
        if n == len(cells):
            return found, _without_settled_example(column) if column.example else column
        self._warn_of_change(column, cells[n], self.place(start + n))
        more, column = self.read(_changed(column), cells[n:], start + n)
        return [*found, *more], column

    def _report(self, column: Column, odd: Odd, start: int) -> None:
        """Raise an error for the first cell that does not fit, or warn of the first of all."""
        if odd:
            row, what = next(iter(odd.items()))
            said = self.place(start + row), column.name, held_by(column), what
            if self.on_mismatch == "raise":
                raise mismatch(*said, start + row)
            if not column.n_misfits:
                warn_of(*said)

    def _warn_of_change(self, column: Column, cell: Any, place: str) -> None:
        """Warn that a column has other options from a cell on, if earlier cells were others."""
        after = _changed(column)
        if n := column.others[0].n_cells:
            cells = f"{n:,} cell before was" if n == 1 else f"{n:,} cells before were"
            warn(
                f"{place}, column {column.name!r} holds {short(cell)}, so that it "
                f"holds {held_by(after)}, not {held_by(column)}: from here on it is read so, and "
                f"{cells} learnt as another value; to learn all cells so, name it: {after.remedy}",
                MismatchWarning,
            )


def parsed(column: Column, cells: Sequence[Any]) -> tuple[list[Any], Odd]:
    """Return the values of cells, None where one is missing, and those that do not fit."""
    texts = [*{*cells}] if len(cells) > 1 and {*map(type, cells)} <= TEXTS else cells
    if 2 * len(texts) > len(cells):
        found = column.parser.parse_all(cells, column.options)
        if found is not None:
            return found, {}
    if texts is cells:
        return _each(column, cells)
    together = column.parser.parse_all(texts, column.options)  # equal texts are read once
    values, unfit = _each(column, texts) if together is None else (together, Odd())
    known = dict(zip(texts, values, strict=True))
    found = [*map(known.__getitem__, cells)]
    if not unfit:
        return found, {}
    odd = {texts[i]: what for i, what in unfit.items()}
    return found, {row: odd[cell] for row, cell in enumerate(cells) if cell in odd}


def _each(column: Column, cells: Sequence[Any]) -> tuple[list[Any], Odd]:
    kind, options = column.parser, column.options
    found, odd = list[Any](), Odd()
    for row, cell in enumerate(cells):
        try:
            found.append(None if cell is None else kind.parse(cell, options))
        except UnfitError as error:
            found.append(None)
            odd[row] = str(error)
    return found, odd


def _are_whole(column: Column, cells: Sequence[Any]) -> bool:
    """Return whether cells are whole numbers without signs, which any notation reads alike."""
    texts = (cell for cell in cells if type(cell) is str)
    return column.kind == "number" and all(map(str.isdigit, texts))


def _followed(
    column: Column, cells: Sequence[Any], found: list[Any], odd: Odd
) -> tuple[tuple[Reading, ...], int]:
    """Return the other readings that remain, and the row up to which the options hold.

    That is the first row whose cell they cannot read, but one of the others, by which all cells
    before can be read; it comes first of those that remain.
    """
    n, read = len(cells), [_read_until(column, each, cells, odd) for each in column.others]
    ends = [
        next((row for row in odd if row < len(values) and row not in unfit), n)
        for values, unfit in read
    ]
    end = min(ends)
    remaining = []
    for each, (values, _), at in zip(column.others, read, ends, strict=True):
        if at == end <= len(values):
            differing = sum(map(_differ, found[:end], values[:end]))
            remaining.append(replace(each, n_cells=each.n_cells + differing))
    return tuple(remaining), end


def _read_until(
    column: Column, reading: Reading, cells: Sequence[Any], odd: Odd
) -> tuple[list[Any], Odd]:
    """Return the values of cells in another reading, up to the first that only the column reads."""
    column = replace(column, options=reading.options)
    found = column.parser.parse_all(cells, column.options)
    if found is not None:
        return found, {}
    values, unfit = list[Any](), Odd()
    for start in range(0, len(cells), PIECE):
        more, unfit_more = parsed(column, cells[start : start + PIECE])
        values += more
        unfit |= {start + row: what for row, what in unfit_more.items()}
        if unfit.keys() - odd.keys():
            return values[: min(unfit.keys() - odd.keys())], unfit
    return values, unfit


def _differ(one: Any, other: Any) -> bool:
    return one is not None and one != other


def _changed(column: Column) -> Column:
    """Return the column with the first of its other readings."""
    first, *others = column.others
    return replace(column, options=first.options, others=tuple(others), example="")


def _without_settled_example(column: Column) -> Column:
    """Return the column without an example of a doubt that its cells have settled."""
    is_open = any(each.n_cells for each in column.others)
    return column if is_open else replace(column, example="")


def held_by(column: Column) -> str:
    """Return what a column holds, in words."""
    what = column.parser.what
    if column.options.get("format"):
        what += f" in the form {column.options['format']}"
    if column.options.get("unit") == CLOCK:
        what = "a time or a duration"
    if column.options.get("decimal"):
        what += f" with the decimal sign {column.options['decimal']!r}"
    if column.options.get("length"):
        what += f" of the length {column.options['length']}"
    return what


def warn_of(place: str, name: str, what: str, found: str) -> None:
    """Warn of a cell that counts as missing."""
    warn(
        f"{place}, column {name!r} holds {found}, but the column holds {what} in each row: "
        'such cells count as missing; on_mismatch="raise" refuses them',
        MismatchWarning,
    )


def warn_of_later(name: str, what: str) -> None:
    """Warn of such cells in later rows, by one sentence for all of them, which is said once."""
    warn(
        f"column {name!r} holds cells in later rows that are not {what}: they count as missing; "
        'on_mismatch="raise" names the first',
        MismatchWarning,
    )


def mismatch(place: str, name: str, what: str, found: str, row: int) -> MismatchError:
    """Return the error for a cell that its column cannot hold."""
    said = f"column {name!r} holds {found}, but the column holds {what} in each row"
    return MismatchError(
        f'{place}, {said}: correct the cell, set on_mismatch="missing" so that such cells count as '
        f'missing, or name another kind with columns={{{name!r}: "category"}} or '
        f'columns={{{name!r}: "ignore"}}',
        said,
        row,
    )
