"""What clients send: names, labels, ids and rows, checked before anything is done with them."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import UNSET

from kesler.service.bodies import (
    MOST_CHARACTERS,
    LearnRequest,
    Row,
    TaughtRow,
    converted,
)
from kesler.service.refusals import BAD_REQUEST, NOT_VALID, TOO_LARGE, Refusal
from kesler.service.uploads import LABEL, ROW, File, contents_of

MOST_DEPTH = 3
ROW_IN_WORDS = "send a text, a list of numbers, or an object of names and values"
MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
TEXT, ID, PERSON = "text", "id", "person"


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
    """Return a label: a text, an integer, or a list of these for several labels.

    Raises
    ------
    Refusal
        With status 422.
    """
    if isinstance(value, list) and all(isinstance(each, (str, int)) for each in value):
        return [label(each, what) for each in value]
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise Refusal(NOT_VALID, f"{what} is no text, no integer and no list of these")
    if isinstance(value, int):
        if abs(value) >= 1 << 53:
            raise Refusal(NOT_VALID, f"{what} is an integer of more than 53 bits: send a text")
        return value
    return named(value, what)


def named(value: Any, what: str) -> str:
    """Return a text of 1 to 200 visible characters, without spaces around it.

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
    text = str(value).strip()
    if not 1 <= len(text) <= MOST_CHARACTERS:
        raise Refusal(NOT_VALID, f"{what} must have 1 to {MOST_CHARACTERS} characters")
    if not text.isprintable():
        raise Refusal(NOT_VALID, f"{what} contains characters that cannot be shown: remove them")
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


def whole(value: Any, what: str, least: int, most: int) -> int:
    """Return an integer between two limits; raise a refusal otherwise.

    Examples
    --------
    >>> whole("20", "limit", 1, 100)
    20
    """
    try:
        if isinstance(value, (bool, float)):
            raise ValueError
        number = int(value)
    except (TypeError, ValueError):
        number = least - 1
    if not least <= number <= most:
        raise Refusal(NOT_VALID, f"{what} must be an integer from {least} to {most}")
    return number


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
    """The rows of a file, its columns that are not used, and sentences about how it was read."""

    rows: list[Taught]
    ignored: list[str]
    notes: list[str]


def rows_of_file(file: File, most: int, columns: Mapping[str, str] | None = None) -> Upload:
    r"""Return the rows of a file, which is read as by :func:`~kesler.service.uploads.contents_of`.

    The columns ``text``, ``label``, ``id`` and ``person`` are the text, its answer if it has one,
    its id, and the person whom it is about; without a column ``text``, all others are the row. Rows
    without an id get one from their content, so that the same file can be sent twice.

    Parameters
    ----------
    file : File
        CSV, JSON lines, a JSON array, a workbook or mail.
    most : int
        The most rows.
    columns : mapping or None, default None
        The column that is the text, the label, the id or the person, by these words, where it has
        another name; the text may be several, separated by commas. "Text", "LABEL" and "Id" are
        such names as well.

    Raises
    ------
    Refusal
        With status 400, 413 or 422, which names the first row that cannot be used.

    Examples
    --------
    >>> found = rows_of_file(File(b"text,label,day\nhello,,Monday\nwin,spam,Friday\n"), 9)
    >>> [(each.row, each.answer) for each in found.rows], found.ignored
    ([('hello', None), ('win', 'spam')], ['day'])
    """
    given = {each: meant for each, meant in (columns or {}).items() if each != TEXT}
    texts = list(filter(None, map(str.strip, (columns or {}).get(TEXT, "").split(","))))
    found, seen, ignored = list[Taught](), Counter[str](), dict[str, None]()
    absent = {*given.values(), *texts}
    contents = contents_of(file)
    if len(contents.records) > most:
        raise Refusal(TOO_LARGE, f"the file has more than {most} rows: send it in parts")
    for place, values in contents.records:
        absent -= values.keys()
        record = {name: value for name, value in values.items() if value is not None}
        try:
            taught, unused = _filed(_renamed(record, given, texts), seen)
        except Refusal as refusal:
            raise Refusal(refusal.status, f"{place}: {refusal}") from None
        found.append(taught)
        ignored |= dict.fromkeys(unused)
    if absent:
        raise Refusal(NOT_VALID, f"no row of the file has a column {min(absent)[:40]!r}")
    if not found:
        raise Refusal(BAD_REQUEST, "the file has no rows: send CSV with a header, or JSON lines")
    return Upload(found, [*ignored], contents.notes)


def _renamed(
    record: dict[str, Any], columns: Mapping[str, str], texts: Sequence[str]
) -> dict[str, Any]:
    """Return a record with the names of the columns that have a meaning; others are as given."""
    meaning = {column: name for name, column in columns.items()}
    taken = {*meaning.values(), *([TEXT] if texts else ())}
    for name in record:
        folded = name.strip().casefold()
        if name not in meaning and folded in (TEXT, LABEL, ID) and folded not in taken:
            meaning[name] = folded
    found = {meaning.get(name, name): value for name, value in record.items()}
    parts = [found.pop(each) for each in texts if each in found]
    return (
        {**found, TEXT: "\n".join(map(str, parts)) if len(parts) > 1 else parts[0]}
        if parts
        else found
    )


def _filed(record: dict[str, Any], seen: Counter[str]) -> tuple[Taught, list[str]]:
    """Return the row of a record and the columns that are not used.

    Rows of the same content are numbered.
    """
    record = dict(record)
    given = {name: record.pop(name, None) for name in (LABEL, ID, PERSON)}
    if not record:
        raise Refusal(NOT_VALID, "it has no text and no other columns")
    alone = ROW if set(record) == {ROW} else TEXT
    content = row(converted(record.get(alone, record), Row, alone))
    answer = label(given[LABEL]) if given[LABEL] not in (None, "") else None
    own = given[ID] if isinstance(given[ID], (str, type(None))) else str(given[ID])
    id = named(own, ID) if own else _id_of(content, seen)
    unused = [name for name in record if name != alone] if alone in record else []
    return Taught(content, answer, id, optional(given[PERSON], PERSON)), unused


def _id_of(content: Any, seen: Counter[str]) -> str:
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
    seen[digest] += 1
    return digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
