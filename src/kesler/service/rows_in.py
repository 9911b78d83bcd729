"""What clients send: names, labels, ids and rows, checked before anything is done with them."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from math import isfinite
from typing import Any, NamedTuple

from msgspec import UNSET

from kesler.data.labels import class_of, is_missing
from kesler.data.schema.cells import UnfitError, plain
from kesler.readers.records import listed
from kesler.service.bodies import (
    MOST_CHARACTERS,
    LearnRequest,
    Row,
    TaughtRow,
    converted,
)
from kesler.service.import_options import ID, LABEL, PERSON, TEXT, ImportOptions
from kesler.service.refusals import BAD_REQUEST, NOT_VALID, Refusal
from kesler.service.uploads import File, Record, contents_of

MOST_DEPTH = 3
ROW_IN_WORDS = "send a text, a list of numbers, or an object of names and values"
MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
ROW = "row"
SURROGATE = re.compile("[\ud800-\udfff]")
UNSHOWN = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Control characters, ends of lines, and overrides of the direction of text."""


class Taught(NamedTuple):
    """A row to file: with its answer if it has one."""

    row: Any
    answer: Any = None
    id: str | None = None
    subject: str | None = None


# ---- values -------------------------------------------------------------------------------------


def require_fields(body: Mapping[str, Any], allowed: Iterable[str], what: str) -> None:
    """Raise if a body has other fields than those allowed."""
    for name in body:
        if name not in allowed:
            raise Refusal(
                NOT_VALID,
                f"{what} has no field {name[:40]!r}: choose of {', '.join(sorted(allowed))}",
            )


def model_name(value: Any) -> str:
    """Return the name of a model; raise unless it is one.

    Examples
    --------
    >>> model_name("mail-2026")
    'mail-2026'
    """
    if not isinstance(value, str) or not MODEL_NAME.fullmatch(value):
        raise Refusal(
            NOT_VALID,
            "a model's name has 1 to 64 letters, digits, _ and -, and begins with a letter or a "
            "digit",
        )
    return value


def label(value: Any, what: str = "the answer") -> Any:
    r"""Return a label as the library learns it: a text, a number, or a list for several labels.

    Texts may have any characters, which pages escape where they cannot be shown.

    Raises
    ------
    Refusal
        With status 422.

    Examples
    --------
    >>> label(" spam\n"), label(1.5), label([7, "a"])
    ('spam', 1.5, [7, 'a'])
    """
    if isinstance(value, list):
        return [label(each, what) for each in value]
    if not isinstance(value, (str, int, float)) or (
        isinstance(value, float) and not isfinite(value)
    ):
        raise Refusal(NOT_VALID, f"{what} is no text, no number and no list of these")
    if isinstance(value, str):
        return _short_text(class_of(value), what)
    if abs(value) >= 1 << 53:
        raise Refusal(NOT_VALID, f"{what} is a number of more than 53 bits: send a text")
    return value


def named(value: Any, what: str) -> str:
    """Return a text of 1 to 200 characters without spaces around it, which pages can show.

    Joiners, marks of direction and spaces of every kind are parts of words. Control characters and
    overrides of the direction of text are not, since they could make one name look like another.

    Raises
    ------
    Refusal
        With status 422.

    Examples
    --------
    >>> named(" invoices ", "the class")
    'invoices'
    """
    if not isinstance(value, str):
        raise Refusal(NOT_VALID, f"{what} is no text")
    text = _short_text(str(value).strip(), what)
    if UNSHOWN.search(text):
        raise Refusal(NOT_VALID, f"{what} contains characters that cannot be shown: remove them")
    return text


def _short_text(text: str, what: str) -> str:
    if not 1 <= len(text) <= MOST_CHARACTERS:
        raise Refusal(NOT_VALID, f"{what} must have 1 to {MOST_CHARACTERS} characters")
    if SURROGATE.search(text):
        raise Refusal(NOT_VALID, f"{what} contains half a character, which is no text in UTF-8")
    return text


def optional(value: Any, what: str) -> str | None:
    """Return a text as `named` does, or None."""
    return None if value is None else named(value, what)


def row(value: Any) -> Any:
    """Return a row of the right type: a text, numbers, or a mapping of names to values.

    Raises
    ------
    Refusal
        With status 422, if a list is empty or a mapping is too deep.
    """
    if value == [] or not _is_within(value, MOST_DEPTH):
        raise Refusal(
            NOT_VALID, f"a row has 1 value or more, in at most {MOST_DEPTH} levels: {ROW_IN_WORDS}"
        )
    return value


def _is_within(value: Any, levels: int) -> bool:
    """Return whether objects and lists stand in each other to so many levels at most."""
    if not isinstance(value, (dict, list)):
        return True
    within = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_within(each, levels - 1) for each in within)


def whole(text: str, what: str, least: int, most: int) -> int:
    """Return an integer between two limits that a text says; raise a refusal otherwise.

    Examples
    --------
    >>> whole("20", "limit", 1, 100)
    20
    """
    with suppress(ValueError):
        if least <= (number := int(text)) <= most:
            return number
    raise Refusal(NOT_VALID, f"{what} must be an integer from {least} to {most}")


def taught(body: LearnRequest | TaughtRow) -> Taught:
    """Return the row of a body with its answer.

    Raises
    ------
    Refusal
        With status 422, if a field is missing or cannot be used.
    """
    if body.row is UNSET or body.answer is UNSET:
        raise Refusal(NOT_VALID, "the request needs row and answer")
    id, subject = optional(body.id, ID), optional(body.subject, "subject")
    return Taught(row(body.row), label(body.answer), id, subject)


# ---- files --------------------------------------------------------------------------------------


class Upload(NamedTuple):
    """The rows of a file, and how it was read.

    Parameters
    ----------
    rows : list of Taught
        The rows that can be used.
    places : list of str
        Where each stands in the file.
    refused : list of Refusal
        Why others cannot be used, with their places.
    ignored : list of str
        The columns that are not used.
    notes : list of str
        Sentences about how the file was read.
    """

    rows: list[Taught]
    places: list[str]
    refused: list[Refusal]
    ignored: list[str]
    notes: list[str]


def rows_of_file(file: File, most: int, options: ImportOptions | None = None) -> Upload:
    r"""Return the rows of a file, which is read as by :func:`~kesler.service.uploads.contents_of`.

    The columns ``text``, ``label``, ``id`` and ``person`` are the text, its answer if it has one,
    its id, and the person whom it is about; without a column ``text``, all others are the row. In
    these columns, only what is empty is missing. Rows without an id get one from their content, so
    that the same file can be sent twice. "Text", "LABEL" and "Id" are such names as well.

    Parameters
    ----------
    file : File
        CSV, JSON, Parquet, a workbook, mail, FASTA or FASTQ.
    most : int
        The most rows.
    options : ImportOptions or None, default None
        What the client says of the file.

    Raises
    ------
    Refusal
        With status 400, 413 or 422, which names the first row that cannot be used, unless such rows
        are to be refused alone.

    Examples
    --------
    >>> found = rows_of_file(File(b"text,label,day\nhello,,Monday\nNA,spam,Friday\n"), 9)
    >>> [(each.row, each.answer) for each in found.rows], found.ignored
    ([('hello', None), ('NA', 'spam')], ['day'])
    """
    options = options or ImportOptions()
    contents = contents_of(file, most, options)
    names = dict.fromkeys(name for each in contents.records for name in each.values)
    _require_columns(names, options)
    upload = Upload([], [], [], [], [*contents.notes, *_said_of_labels(names, options)])
    seen, ignored = Counter[str](), dict[str, None]()
    for record in contents.records:
        try:
            taught, unused = _filed(record, options, seen)
        except Refusal as refusal:
            upload.refused.append(refusal_at(record.place, refusal))
            if not options.skip_bad:
                raise _of_file(upload.refused[0]) from None
            continue
        upload.rows.append(taught)
        upload.places.append(record.place)
        ignored |= dict.fromkeys(unused)
    if not contents.records:
        why = "; ".join(contents.notes) or "send CSV with a header, or JSON lines"
        raise Refusal(BAD_REQUEST, f"the file has no rows: {why}")
    upload.ignored.extend(ignored)
    return upload


def refusal_at(place: str, refusal: Refusal) -> Refusal:
    """Return a refusal of a row with the place of the row."""
    return Refusal(refusal.status, f"{place}: {refusal}")


def _of_file(refusal: Refusal) -> Refusal:
    """Return the refusal of a whole file for one of its rows."""
    return Refusal(
        refusal.status,
        f"{refusal}; mend it, or have such rows refused alone with skip_bad=true: nothing was "
        "filed",
    )


def _said_of_labels(names: Iterable[str], options: ImportOptions) -> list[str]:
    """Return a sentence if there are columns, but none is the label."""
    folded = {name.strip().casefold() for name in names} - {TEXT, ID, PERSON, ROW}
    if not folded or LABEL in folded or LABEL in options.columns:
        return []
    return [
        "no column is the label, so that the rows wait for an answer: if one is, name it with "
        "label=..."
    ]


def _require_columns(found: Mapping[str, None], options: ImportOptions) -> None:
    """Raise if no record has a column that is named."""
    named = {*options.texts, *(each for name, each in options.columns.items() if name != TEXT)}
    absent = sorted(named - found.keys())
    if absent and found:
        raise Refusal(
            NOT_VALID, f"no row of the file has a column {absent[0][:40]!r}: it has {listed(found)}"
        )


def _parted(
    record: dict[str, Any], options: ImportOptions
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values of a record that have a meaning, by this, and its other columns."""
    columns = {name: _column(name, record, options) for name in (LABEL, ID, PERSON)}
    texts = options.texts or [each for each in [_column(TEXT, record, options)] if each]
    given = {name: record.get(column) for name, column in columns.items() if column}
    if texts:
        given[TEXT] = record.get(texts[0]) if len(texts) == 1 else _joined(record, texts)
    used = {*texts, *columns.values()}
    return given, {name: value for name, value in record.items() if name not in used}


def _column(meaning: str, record: Mapping[str, Any], options: ImportOptions) -> str | None:
    """Return the column that has a meaning: that named, that of its name, or so in capitals."""
    named = options.columns.get(meaning)
    if named is not None or meaning in record:
        return named or meaning
    folded = [] if meaning == PERSON else [n for n in record if n.strip().casefold() == meaning]
    if len(folded) > 1:
        raise Refusal(
            NOT_VALID,
            f"{folded[0]!r} and {folded[1]!r} can both be the {meaning}: name one with "
            f"{meaning}=...",
        )
    return folded[0] if folded else None


def _joined(record: Mapping[str, Any], texts: Sequence[str]) -> str | None:
    given = [_text(record[each]) for each in texts if not is_missing(record.get(each))]
    return "\n".join(map(str, given)) if given else None


def _filed(record: Record, options: ImportOptions, seen: Counter[str]) -> tuple[Taught, list[str]]:
    """Return the row of a record and the columns that are not used.

    Rows of the same content are numbered.
    """
    if record.fault:
        raise Refusal(BAD_REQUEST, record.fault)
    given, values = _parted(record.values, options)
    has_text = TEXT in given
    found = _text_of(given[TEXT]) if has_text else _content(values)
    content = row(converted(found, Row, TEXT if has_text else ROW))
    id = _name(given, ID) or _id_of(content, seen)
    taught = Taught(content, _answer(given.get(LABEL)), id, _name(given, PERSON))
    return taught, [*values] if has_text else []


def _name(given: Mapping[str, Any], what: str) -> str | None:
    """Return the id or the person of a record as a text, None if it has none."""
    value = given.get(what)
    if is_missing(value) or value == "":
        return None
    if isinstance(value, (list, dict, bool)):
        raise Refusal(NOT_VALID, f"{what} is no text and no number")
    return named(_written(value) if not isinstance(value, str) else value, what)


def _text_of(value: Any) -> Any:
    if is_missing(value):
        raise Refusal(NOT_VALID, "it has no text")
    return _text(value)


def _content(values: Mapping[str, Any]) -> Any:
    """Return what is to be learnt or filed of the columns of a record."""
    if set(values) == {ROW} and not isinstance(values[ROW], str):
        return values[ROW]
    cells = {name: _cell(name, value) for name, value in values.items()}
    found = {name: cell for name, cell in cells.items() if cell is not None}
    if not found:
        raise Refusal(NOT_VALID, "it has no text and no other columns")
    return found


def _text(value: Any) -> Any:
    """Return a value of a column of texts: numbers and dates are texts; JSON may be of any type."""
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return "\n".join(value)
    return value if isinstance(value, (str, list, dict)) else _written(value)


def _written(value: Any) -> str:
    """Return a value that is no text as it is written."""
    if isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, float) and not isfinite(value):
        raise Refusal(NOT_VALID, f"it holds {value}, which is no finite number")
    return value.isoformat() if isinstance(value, (date, time)) else str(value)


def _cell(name: str, value: Any) -> Any:
    """Return a cell of a row with columns, as JSON can hold it."""
    if isinstance(value, (list, dict)):
        return value
    try:
        cell = plain(value)
    except UnfitError as error:
        raise Refusal(NOT_VALID, f"{name!r} holds {error}, which no column can hold") from None
    return cell.isoformat() if isinstance(cell, datetime) else cell


def _answer(value: Any) -> Any:
    """Return the answer of a row, None if it has none."""
    value = _written(value) if isinstance(value, date) else value
    missing = class_of(value) in (None, "") if not isinstance(value, list) else not value
    return None if missing else label(value)


def _id_of(content: Any, seen: Counter[str]) -> str:
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
    seen[digest] += 1
    return digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
