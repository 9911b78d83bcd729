"""JSON lines: one JSON object per line."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kesler.readers.features import Names
from kesler.readers.lines import Lines, decode
from kesler.readers.reader import BadRow, Example, Reader, Unlabelled
from kesler.readers.records import Fields, Records, listed

LABEL = "label"
TEXT = "text"
DEEPEST = 8  # levels of objects within objects whose fields have names


def jsonl_reader(lines: Lines, fields: Fields, names: Names) -> Reader:
    """Read JSON lines, one object a line.

    By default the label is the field ``label``, of its type in JSON, and the text is the field
    ``text``. Without a text field, each field is a feature, and missing fields are zero. The fields
    of an object within another are ``outer.inner``.
    """
    records = objects(fields, names)
    example = example_of(fields, records)

    def parse(line: bytes) -> Example:
        return example(parse_object(line))

    return Reader("line", lines.filled(), parse, records.gather, names.vocabulary)


def objects(fields: Fields, names: Names) -> Records:
    """Return the conversion of JSON objects, each of which has its own fields."""
    given = replace(fields, label=fields.label or LABEL)
    return Records(given, names, default_text=TEXT, same_fields=False)


def example_of(fields: Fields, records: Records) -> Callable[[dict[str, Any]], Example]:
    """Return the function that converts a JSON object to an example."""
    label = fields.label or LABEL
    is_inner = any("." in name for name in (label, fields.id or "", *fields.text))

    def example(record: dict[str, Any]) -> Example:
        if _holds_columns(record, label):
            raise BadRow(
                "it holds columns, not rows, as pandas writes them by default: write rows, with "
                'to_json(..., orient="records")'
            )
        if is_inner:
            record = with_inner(record)
        if fields.require_labels and label not in record:
            what = f"{listed(record)}{_hint(record, fields.source)}"
            raise Unlabelled(f"there is no label field {label!r}, only {what}")
        return records.example(record)

    return example


def _holds_columns(record: dict[str, Any], label: str) -> bool:
    """Return whether the fields of an object are columns of a frame, by the same names of rows."""
    columns = [*record.values()]
    if len(columns) < 2 or not all(isinstance(each, dict) for each in columns):
        return False
    rows = columns[0].keys()
    if not rows or any(each.keys() != rows for each in columns):
        return False
    has_text = any(isinstance(cell, str) for each in columns for cell in each.values())
    return has_text or (label in record and [*rows] == [*map(str, range(len(rows)))])


def _hint(record: dict[str, Any], source: str) -> str:
    """Return how the rows that are wanted can be had from a field that may hold them."""
    for name, value in record.items():
        if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            query = shlex.quote(f".[{json.dumps(name)}][]")
            file = shlex.quote(source)
            return f" (if {name!r} is the rows, write these: jq -c {query} {file} > rows.jsonl)"
    return ""


def with_inner(record: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return an object with the fields of objects within it as its own, named ``outer.inner``.

    Examples
    --------
    >>> with_inner({"id": 3, "from": {"name": "Ann"}})
    {'id': 3, 'from.name': 'Ann'}
    """
    found = dict[str, Any]()
    for name, value in record.items():
        is_outer = isinstance(value, dict) and prefix.count(".") < DEEPEST
        inner = with_inner(value, f"{prefix}{name}.") if is_outer else {f"{prefix}{name}": value}
        twice = next(iter(inner.keys() & found.keys()), None)
        if twice is not None:
            raise BadRow(f"it has two fields {twice!r}, one of them within another")
        found.update(inner)
    return found


def begins_jsonl(line: str) -> bool:
    """Return whether a first line is one of JSON lines: one object from ``{`` to ``}``."""
    return line.startswith("{") and line.endswith("}") and "}{" not in line


def _object(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these fields; raise BadRow if one of them has two values."""
    record = dict(fields)
    if len(record) < len(fields):
        seen = dict[str, Any]()
        for name, value in fields:
            if seen.setdefault(name, value) != value:
                raise BadRow(f"it has two values of {name!r}, {seen[name]!r} and {value!r}")
    return record


NAMES = {
    list: "an array",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "a truth value",
    type(None): "null",
}
"""What values of JSON are called, by their types in Python."""

HALF = re.compile(r"[\ud800-\udfff]")

JSON = json.JSONDecoder(object_pairs_hook=_object)
"""The decoder of all rows in JSON."""


def parse_object(line: bytes) -> dict[str, Any]:
    """Parse the JSON object on a line.

    Examples
    --------
    >>> parse_object(b'{"label": "spam", "text": "Free!"}')
    {'label': 'spam', 'text': 'Free!'}
    """
    text = decode(line)
    try:
        record = JSON.decode(text)
    except (ValueError, RecursionError) as error:
        raise BadRow(f"it is not JSON ({error})") from None
    return checked_object(record, text)


def checked_object(record: Any, text: str) -> dict[str, Any]:
    """Return an object that was parsed from a text; raise BadRow if it is none."""
    if not isinstance(record, dict):
        raise BadRow(f"it is {NAMES[type(record)]} of JSON, not an object {{...}}")
    if "\\u" in text and (half := HALF.search(json.dumps(record, ensure_ascii=False))):
        raise BadRow(
            f"the escape \\u{ord(half[0]):04x} is half of a character, which is written as two "
            "escapes: write both, or the character itself"
        )
    return record
