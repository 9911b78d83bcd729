"""Uploads: the records of a file that a client sends, read as the command line reads files."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, NamedTuple

from kesler.errors import KeslerError, ReadingWarning
from kesler.readers.lines import Lines
from kesler.readers.opening import format_of, open_stream
from kesler.service.bodies import decoded
from kesler.service.refusals import BAD_REQUEST, Refusal

IN_PYTHON = re.compile(
    r"(?:; mend it|, or skip such rows|: give format=|: if letters are wrong).*", re.DOTALL
)
_ONE_AT_A_TIME = Lock()
ROW, LABEL = "row", "label"


class Record(NamedTuple):
    """A record of a file, and where it stands there, in words."""

    place: str
    values: dict[str, Any]


class File(NamedTuple):
    """The bytes of a file, and its name if it has one."""

    data: bytes
    name: str = ""


def file_of(body: bytes, content_type: str) -> File:
    """Return the file in the body of a request, which may be a form with one file.

    Raises
    ------
    Refusal
        With status 400, if a form has no file or more than one.
    """
    if not content_type.lower().startswith("multipart/form-data"):
        return File(body)
    from python_multipart import parse_form
    from python_multipart.exceptions import FormParserError

    found: list[File] = []

    def add(file: Any) -> None:
        file.file_object.seek(0)
        name = (file.file_name or b"").decode(errors="replace")
        found.append(File(file.file_object.read(), name))

    try:
        headers = {"Content-Type": content_type.encode("latin-1", "replace")}
        parse_form(headers, BytesIO(body), lambda field: None, add)
    except (FormParserError, ValueError) as error:
        raise Refusal(BAD_REQUEST, f"the form cannot be read ({error})") from None
    if len(found) != 1:
        raise Refusal(BAD_REQUEST, f"the form has {len(found)} files: send one")
    return found[0]


class Contents(NamedTuple):
    """The records of a file, and sentences about how it was read."""

    records: list[Record]
    notes: list[str]


def contents_of(file: File) -> Contents:
    r"""Return the records of a file: JSON lines, a JSON array, CSV, a workbook or mail.

    The encoding, the delimiter and the compression are found as by the command line. Records of
    mail have the fields text and, of mail with labels of Gmail, label. CSV with a column "row" is
    what the service exports: its rows and labels are JSON where they are no texts.

    Raises
    ------
    Refusal
        With status 400, if it cannot be read.

    Examples
    --------
    >>> contents_of(File(b"text;label\nhello;greeting\n")).records
    [Record(place='line 2 of the file', values={'text': 'hello', 'label': 'greeting'})]
    """
    text = file.data.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"{"):
        return Contents([*_of_json_lines(file.data)], [])
    if text.startswith(b"["):
        records = decoded(file.data, list[dict[str, Any]], "the file")
        places = (f"record {i} of the file" for i in range(1, len(records) + 1))
        return Contents([*map(Record, places, records)], [])
    return _read(file)


def _of_json_lines(data: bytes) -> Iterator[Record]:
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line.strip():
            place = f"line {number} of the file"
            yield Record(place, decoded(line, dict[str, Any], place))


def _read(file: File) -> Contents:
    """Return the records of a file that the readers of the command line know."""
    with TemporaryDirectory() as directory, _noted() as said:
        path = Path(directory, f"file{Path(file.name).suffix[:10]}")
        path.write_bytes(file.data)
        try:
            records = [*_OPENED.get(_format(path), _of_table)(path)]
        except KeslerError as error:
            raise Refusal(BAD_REQUEST, _in_words(error, path)) from None
    own = [each.message for each in said if issubclass(each.category, ReadingWarning)]
    return Contents(records, [_in_words(message, path) for message in own])


@contextmanager
def _noted() -> Iterator[list[warnings.WarningMessage]]:
    """Note warnings, of one file at a time since the filters are those of all threads."""
    with _ONE_AT_A_TIME, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ReadingWarning)
        yield said


def _in_words(said: Exception | str, path: Path) -> str:
    """Return what a reader says without what only callers of Python can do."""
    return IN_PYTHON.sub("", str(said)).replace(str(path), "the file")


def _format(path: Path) -> str:
    """Return the format of a file; CSV of one column has no mark of its own."""
    try:
        return format_of(str(path), Lines(str(path)))
    except KeslerError:
        return "csv"


def _of_table(path: Path, format: str = "csv") -> Iterator[Record]:
    given: dict[str, Any] = {"format": format, "as_table": True, "require_labels": False}
    unit = "line" if format == "csv" else "row"
    for block in open_stream(path, origins=True, **given):
        table: Any = block.rows
        is_own = ROW in table.columns
        rows = zip(*table.columns.values(), strict=True)
        for origin, cells in zip(block.origins or (), rows, strict=True):
            plain = dict(zip(table.columns, map(_plain, cells), strict=True))
            yield Record(
                f"{unit} {origin.place} of the file", _of_export(plain) if is_own else plain
            )


def _plain(cell: Any) -> Any:
    """Return a cell as JSON can hold it."""
    return cell.isoformat() if isinstance(cell, datetime) else cell


def _of_export(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of `export.csv`."""
    return {
        column: from_cell(cell) if column in (ROW, LABEL) else cell
        for column, cell in values.items()
    }


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


def _of_mail(path: Path) -> Iterator[Record]:
    from kesler.readers.mail import messages

    for place, text, label in messages(str(path)):
        yield Record(f"message {place}", {"text": text} | ({LABEL: label} if label else {}))


_OPENED: dict[str, Callable[[Path], Iterator[Record]]] = {
    "mail": _of_mail,
    "excel": lambda path: _of_table(path, "excel"),
}
