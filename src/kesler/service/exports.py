"""Exports: the answers of a model as CSV and JSON lines, and the CSV read back as the same rows."""

from __future__ import annotations

import csv
import io
import json
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kesler.readers.dialects import Dialect

COLUMNS = ("text", "row", "label", "id", "person")
FIRST_LINE = b"text,row,label,id,person\r\n"


class Kept(NamedTuple):
    """A row with its answer, as JSON can hold them."""

    row: Any
    label: Any
    id: str
    person: str | None


def as_json_lines(kept: Iterable[Kept]) -> Iterator[str]:
    """Yield rows as JSON lines."""
    for each in kept:
        content = {"text": each.row} if isinstance(each.row, str) else {"row": each.row}
        values = content | {"label": each.label, "id": each.id}
        if each.person is not None:
            values["person"] = each.person
        yield json.dumps(values, ensure_ascii=False) + "\n"


def as_csv(kept: Iterable[Kept]) -> Iterator[str]:
    """Yield rows as lines of CSV, below the names of the columns.

    Rows and labels that are no texts are JSON, and so are labels that would be read as JSON.
    """
    yield FIRST_LINE.decode()
    for each in kept:
        content = [each.row, ""] if isinstance(each.row, str) else ["", to_cell(each.row)]
        line = io.StringIO(newline="")
        csv.writer(line).writerow([*content, to_cell(each.label), each.id, each.person or ""])
        yield line.getvalue()


def is_export(columns: Sequence[str]) -> bool:
    """Return whether a table has the columns of an export."""
    return tuple(columns) == COLUMNS


def records_of_export(data: bytes) -> list[tuple[int, dict[str, Any]]] | None:
    r"""Return the records of an export as it was written, each with the number of its first line.

    Nothing is found out from its cells, whose texts may look like anything. The result is None for
    other tables, also for exports that another program has changed.

    Examples
    --------
    >>> records_of_export(FIRST_LINE + b"'NA',,null,m1,\r\n")
    [(2, {'text': "'NA'", 'label': None, 'id': 'm1', 'person': ''})]
    """
    if not data.removeprefix(BOM_UTF8).startswith(FIRST_LINE):
        return None
    try:
        return [*_records(data.decode("utf-8-sig"))]
    except (csv.Error, ValueError):
        return None


def _records(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    rows = Dialect(",", '"').reader(io.StringIO(text, newline=""))
    next(rows)
    line = rows.line_num + 1
    for cells in rows:
        if cells:
            yield line, of_export(dict(zip(COLUMNS, cells, strict=True)))
        line = rows.line_num + 1


def of_export(cells: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of the cells of an export, of which a reader leaves empty ones out.

    A row with an answer alone is an empty text.
    """
    if not any(cells.values()):
        return {}
    text, row, label, id, person = map(cells.get, COLUMNS)
    content = {"row": from_cell(row)} if row else {"text": text or ""}
    return content | {"label": from_cell(label), "id": id, "person": person}


def to_cell(value: Any) -> str:
    """Return a row or a label as a cell of CSV, from which `from_cell` returns it.

    Examples
    --------
    >>> to_cell("win"), to_cell("7"), to_cell([1, 2])
    ('win', '"7"', '[1, 2]')
    """
    is_text = isinstance(value, str) and from_cell(value) == value
    return value if is_text else json.dumps(value, ensure_ascii=False)


def from_cell(cell: Any) -> Any:
    """Return the value of a cell: a text unless it is JSON."""
    try:
        return json.loads(cell)
    except (TypeError, ValueError, RecursionError):
        return cell
