"""Tables: columns of plain cells, from all the forms in which users have rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from kesler.data.schema.arrow import arrow_columns
from kesler.data.schema.cells import Cell, UnfitError, plain, plain_column, short
from kesler.data.schema.schema import OF_ARRAY, OF_TEXTS
from kesler.data.sparse_rows import is_sparse
from kesler.errors import KeslerError

NUMBERS = frozenset((int, float, bool))
SIMPLE = NUMBERS | {str, type(None)}
DEEPEST = 8  # levels of mappings within mappings that are columns


@dataclass(frozen=True, slots=True)
class Unfit:
    """A cell that no column can hold; it is refused, or counts as missing, once this is known."""

    what: str


@dataclass(frozen=True, slots=True)
class Places:
    """Where rows come from.

    Parameters
    ----------
    source, unit : str
        The name of a file, and what its rows are counted in, such as lines; empty where rows come
        from several files, so that their places name these.
    numbers : list of int or str
        The place of each row, as in messages.
    """

    source: str
    unit: str
    numbers: list[int | str]

    def __getitem__(self, row: int) -> str:
        """Return where a row is, as messages say it."""
        number = self.numbers[row]
        return f"{self.source}, {self.unit} {number}" if self.source else str(number)


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of plain cells, all of one length.

    Parameters
    ----------
    n_rows : int
        The number of rows.
    columns : dict of str to list
        The cells of each column; None is missing.
    named : bool
        Whether the names of columns are the user's, not those of the positions in an array.
    first_row : int
        The number of the first row in its source, for messages.
    places : Places or None
        Where the rows come from, if it is no object of Python.
    """

    n_rows: int
    columns: dict[str, list[Any]]
    named: bool = True
    first_row: int = 0
    places: Places | None = None

    def __len__(self) -> int:
        return self.n_rows

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return len(self.columns)

    @property
    def with_cells(self) -> list[str]:
        """The names of the columns that have a cell, not only missing ones."""
        return [n for n, cells in self.columns.items() if any(c is not None for c in cells)]

    def __getitem__(self, rows: slice) -> Table:
        """Return a slice of the rows."""
        taken = range(*rows.indices(self.n_rows))
        columns = {name: cells[rows] for name, cells in self.columns.items()}
        first, places = self.first_row + taken.start, self._places_of(taken)
        return Table(len(taken), columns, self.named, first, places)

    def _places_of(self, rows: Iterable[int]) -> Places | None:
        known = self.places
        return known and replace(known, numbers=[known.numbers[row] for row in rows])

    def place(self, row: int) -> str:
        """Return where a row is, as messages say it."""
        return f"row {self.first_row + row}" if self.places is None else self.places[row]

    def take(self, numbers: Iterable[int]) -> Table:
        """Return the rows of these numbers."""
        rows = [int(number) for number in numbers]
        columns = {name: [cells[i] for i in rows] for name, cells in self.columns.items()}
        return Table(len(rows), columns, self.named, places=self._places_of(rows))

    def of_columns(self, names: set[str]) -> Table:
        """Return the table with those of its columns that have one of these names."""
        kept = {name: cells for name, cells in self.columns.items() if name in names}
        return replace(self, columns=kept)

    def mappings(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as mappings of names to the cells that are not missing."""
        columns = self.columns.items()
        for i in range(self.n_rows):
            yield {name: cells[i] for name, cells in columns if cells[i] is not None}

    @staticmethod
    def concatenate(tables: Sequence[Table]) -> Table:
        """Return the rows of all tables, at least one."""
        first, n_rows = tables[0], sum(map(len, tables))
        columns, places = concatenated(tables), _places_of_all(tables)
        return Table(n_rows, columns, first.named, first.first_row, places)


def _places_of_all(tables: Sequence[Table]) -> Places | None:
    """Return where the rows of tables come from; None if all are objects of Python."""
    known = [table.places for table in tables if table.places is not None]
    if not known:
        return None
    if len(known) == len(tables) and len({(each.source, each.unit) for each in known}) == 1:
        return replace(known[0], numbers=[*chain.from_iterable(each.numbers for each in known)])
    return Places("", "", [table.place(row) for table in tables for row in range(len(table))])


def concatenated(tables: Sequence[Table]) -> dict[str, list[Cell]]:
    """Return the cells of each column of all tables; columns that one lacks are missing there."""
    columns: dict[str, list[Cell]] = {}
    n_before = 0
    for table in tables:
        for name, cells in table.columns.items():
            columns.setdefault(name, [None] * n_before).extend(cells)
        n_before += table.n_rows
        for cells in columns.values():
            cells.extend([None] * (n_before - len(cells)))
    return columns


def is_table(X: Any) -> bool:
    """Return whether rows hold anything but numbers: text, dates, missing cells or lists.

    Arrays and frames of numbers, sparse matrices and mappings of names to numbers are no tables.
    """
    if isinstance(X, np.ndarray):
        return X.ndim == 2 and X.dtype.kind in "OSUM" and _has_text(X.ravel().tolist())
    if isinstance(X, Mapping):
        return not is_sparse(X) and _holds_more(X.values())
    if isinstance(X, (list, tuple)) and X and isinstance(X[0], Mapping):
        return any(isinstance(row, Mapping) and _holds_more(row.values()) for row in X)
    if isinstance(X, (list, tuple)) and X and isinstance(X[0], (list, tuple)):
        return _has_text(chain.from_iterable(r for r in X if isinstance(r, (list, tuple))))
    return isinstance(X, Table) or (is_frame(X) and not _is_numeric(X))


def is_frame(X: Any) -> bool:
    """Return whether X is a data frame or an Arrow table."""
    kind = type(X)  # a lazy frame computes its attributes
    return hasattr(kind, "columns") and (hasattr(kind, "dtypes") or hasattr(kind, "schema"))


def _holds_more(cells: Iterable[Any]) -> bool:
    return any(kind not in NUMBERS and not issubclass(kind, np.number) for kind in map(type, cells))


def _has_text(cells: Iterable[Any]) -> bool:
    """Return whether cells include a text, a date or None, and no mapping."""
    kinds = set(map(type, cells))
    return not any(issubclass(kind, Mapping) for kind in kinds) and any(
        issubclass(kind, (str, bytes, type(None))) or hasattr(kind, "isoformat") for kind in kinds
    )


def _is_numeric(frame: Any) -> bool:
    """Return whether all columns of a frame hold numbers or truth values."""
    if _library_of(frame) == "pandas":  # needs no further library
        if all(getattr(dtype, "kind", "O") in "biuf" for dtype in frame.dtypes):
            return True
    import narwhals as nw

    dtypes = [column.dtype for column in _columns_of(frame)]
    return all(dtype.is_numeric() or dtype == nw.Boolean for dtype in dtypes)


def _library_of(frame: Any) -> str:
    return type(frame).__module__.partition(".")[0]


def _columns_of_pandas(frame: Any) -> tuple[list[Any], list[list[Any]]]:
    """Return the names and the cells of the columns of a frame, in fewer calls than narwhals."""
    names = list(frame)
    if len(set(names)) < len(names):
        twice = max(names, key=names.count)
        raise KeslerError(f"X names a column twice ({twice!r}): rename its columns")
    # Column by column would take 40 calls of pandas each.
    return names, frame.to_numpy(dtype=object).T.tolist()


def _columns_of(frame: Any) -> list[Any]:
    """Return the columns of a frame as narwhals reads them, with different names."""
    import narwhals as nw

    try:
        return list(nw.from_native(frame, eager_only=True).iter_columns())
    except nw.exceptions.DuplicateError as error:
        raise KeslerError(f"X names a column twice ({error}): rename its columns") from None
    except TypeError:
        raise KeslerError(
            f"X is a {type(frame).__name__}, whose rows are not at hand: give a data frame of "
            "pandas or polars or an Arrow table (a lazy frame after .collect())"
        ) from None


def texts_in(X: Any) -> list[str] | None:
    """Return the texts in a list, an array or a series of texts, or in one text; None if not so.

    Raises
    ------
    KeslerError
        If a list of texts holds something else.
    """
    if isinstance(X, str):
        return [X]
    if isinstance(X, np.ndarray):
        texts: list[Any] | None = X.tolist() if X.ndim == 1 and X.dtype.kind in "OU" else None
    else:
        texts = list(X) if isinstance(X, (list, tuple)) else _of_series(X)
    if not texts or not isinstance(texts[0], str):
        return None
    odd = next((row for row, text in enumerate(texts) if not isinstance(text, str)), None)
    if odd is not None:
        raise KeslerError(
            f"row {odd} is {short(texts[odd])} ({type(texts[odd]).__name__}), but row 0 is a text: "
            'give a text in each row, "" where there is none'
        )
    return texts


def _of_series(X: Any) -> list[Any] | None:
    """Return the items of a series of pandas, polars or Arrow."""
    for method in ("to_pylist", "to_list"):
        if hasattr(X, method) and not is_frame(X):
            return list(getattr(X, method)())
    return None


def table_of(X: Any, text: str = OF_TEXTS) -> Table:
    """Return the table in any form of rows: texts, mappings, lists, arrays, frames.

    Parameters
    ----------
    X : the rows, or one row as a mapping or a text.
    text : the name of the column of texts that have none.

    Raises
    ------
    KeslerError
        If it is no such form, or rows are not of one length.

    Examples
    --------
    >>> table_of([{"a": 1}, {"b": "NA"}]).columns
    {'a': [1, None], 'b': [None, None]}
    """
    if isinstance(X, Table):
        return X
    texts = texts_in(X)
    if texts is not None:
        return Table(len(texts), {text: _cells(texts)})
    if isinstance(X, Mapping) and not is_sparse(X):
        return _of_mappings([X])
    if isinstance(X, (list, tuple)):
        return _of_mappings(X) if X and isinstance(X[0], Mapping) else _of_lists(X)
    if isinstance(X, np.ndarray) and X.ndim == 2:
        return _of_lists(X.astype(object).tolist() if X.dtype.kind == "M" else X.tolist())
    if not is_frame(X):
        raise KeslerError(
            f"X is a {type(X).__name__}, which is no table of columns: give mappings of names of "
            "columns to cells, texts, a data frame, an Arrow table or a 2-D array"
        )
    return _of_frame(X)


def _of_frame(X: Any) -> Table:
    library = _library_of(X)
    if library == "pandas":
        given, lists = _columns_of_pandas(X)
    elif library == "pyarrow":
        arrays = arrow_columns(X)
        given, lists = [*arrays], [array.to_pylist() for array in arrays.values()]
    else:
        columns = _columns_of(X)
        given, lists = [column.name for column in columns], [c.to_list() for c in columns]
    names = [name for name in given if isinstance(name, str)]
    if names and len(names) < len(given):
        odd = next(name for name in given if not isinstance(name, str))
        raise KeslerError(f"the column name {odd!r} is not text: rename the columns of X")
    named = names or [f"{OF_ARRAY}{i}" for i in range(len(given))]
    cells: dict[str, list[Any]] = {}
    for name, found in zip(named, lists, strict=True):
        cells.update(_columns_in(name, found))
    return Table(len(X), cells, named=bool(names))


def _columns_in(name: str, cells: list[Any]) -> dict[str, list[Any]]:
    """Return a column, or the columns of the fields of its mappings as ``outer.inner``."""
    found = plain_column(cells)
    kinds = {*map(type, cells)} - SIMPLE
    if found is None and kinds and any(nested(cell) is not None for cell in cells):
        return _of_mappings([{} if cell is None else {name: cell} for cell in cells]).columns
    return {name: list(map(_cell, cells)) if found is None else found}


def _of_lists(rows: Sequence[Any]) -> Table:
    width = len(rows[0]) if rows and isinstance(rows[0], (list, tuple)) else 0
    for number, row in enumerate(rows):
        if not isinstance(row, (list, tuple)) or len(row) != width:
            has = f"{len(row)} cells" if isinstance(row, (list, tuple)) else f"{short(row)}"
            raise KeslerError(
                f"row {number} of X is {has}, but row 0 has {width} cells: give as many cells in "
                "each row, None where one is missing, or mappings of names to cells"
            )
    columns = {f"{OF_ARRAY}{i}": _cells([row[i] for row in rows]) for i in range(width)}
    return Table(len(rows), columns, named=False)


def _of_mappings(rows: Sequence[Any]) -> Table:
    found = _of_same_names(rows) if len(rows) > 1 else None
    if found is not None:
        return Table(len(rows), found)
    columns: dict[str, list[Any]] = {}
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise KeslerError(
                f"row {number} of X is {short(row)} ({type(row).__name__}), but row 0 is a "
                "mapping: give a mapping of names of columns to cells for each row"
            )
        for name, cell in flat(row, number):
            cells = columns.get(name)
            if cells is None:
                cells = columns[name] = [None] * len(rows)
            cells[number] = cell
    return Table(len(rows), columns)


def _of_same_names(rows: Sequence[Any]) -> dict[str, list[Any]] | None:
    """Return the columns of dictionaries that have the same names in the same order, else None.

    It takes a fifth of the time of a call for each cell.
    """
    first = list(rows[0])
    is_one_table = {*map(type, rows)} == {dict} and all(map(first.__eq__, map(list, rows)))
    if not is_one_table or {*map(type, first)} != {str}:
        return None
    columns = dict(zip(first, map(list, zip(*map(dict.values, rows), strict=True)), strict=True))
    found = {name: plain_column(cells) for name, cells in columns.items()}
    others = [name for name, cells in found.items() if cells is None]
    if any(nested(cell) is not None for name in others for cell in columns[name]):
        return None
    return {
        name: list(map(_cell, columns[name])) if cells is None else cells
        for name, cells in found.items()
    }


def flat(row: Mapping[Any, Any], number: int = 0, prefix: str = "") -> Iterable[tuple[str, Any]]:
    """Yield the cells of a mapping; those of a mapping within it as ``outer.inner``.

    Raises
    ------
    KeslerError
        If a name is not text.

    Examples
    --------
    >>> dict(flat({"size": 3, "from": {"name": "Ann", "team": None}}))
    {'size': 3, 'from.name': 'Ann', 'from.team': None}
    """
    for name, cell in row.items():
        if not isinstance(name, str):
            raise KeslerError(
                f"row {number} of X names a column {short(name)} ({type(name).__name__}): names of "
                "columns are texts"
            )
        may_be = type(cell) not in SIMPLE and prefix.count(".") < DEEPEST
        inner = nested(cell) if may_be else None
        if inner is None:
            yield f"{prefix}{name}", _cell(cell)
            continue
        for whole, each in flat(inner, number, f"{prefix}{name}."):
            if whole.removeprefix(prefix) in row:
                raise KeslerError(f"row {number} of X names the column {whole!r} twice: rename one")
            yield whole, each


def nested(cell: Any) -> Mapping[Any, Any] | None:
    """Return the fields of a mapping, or of pairs, as Arrow gives maps; None of other cells.

    Examples
    --------
    >>> nested({"a": 1}), nested([("a", 1), (2, 3)]), nested(["a", "b"])
    ({'a': 1}, {'a': 1, '2': 3}, None)
    """
    if isinstance(cell, Mapping):
        return {str(name): value for name, value in cell.items()}
    if type(cell) is not list or not all(type(each) is tuple and len(each) == 2 for each in cell):
        return None
    return {str(name): value for name, value in cell} or None


def _cells(column: list[Any]) -> list[Any]:
    found = plain_column(column)
    return list(map(_cell, column)) if found is None else found


def _cell(cell: Any) -> Any:
    try:
        return plain(cell)
    except UnfitError as error:
        return Unfit(str(error))
    except RecursionError:
        return Unfit("a list in itself")
