"""JSON lines: one JSON object per line."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from kesler.readers.features import Names
from kesler.readers.lines import Lines, decode, require_text
from kesler.readers.reader import BadRow, Example, Reader
from kesler.readers.records import Fields, Records, listed

LABEL = "label"
TEXT = "text"


def jsonl_reader(lines: Lines, fields: Fields, names: Names) -> Reader:
    """Read JSON lines, one object a line.

    By default the label is the field ``label``, of its type in JSON, and the text is the field
    ``text``. Without a text field, each field is a feature, and missing fields are zero.
    """
    fields = replace(fields, label=fields.label or LABEL)
    records = Records(fields, names, default_text=TEXT, same_fields=False)

    def parse(line: bytes) -> Example:
        record = parse_object(line)
        if fields.require_labels and fields.label not in record:
            raise BadRow(f"there is no label field {fields.label!r}, only {listed(record)}")
        return records.example(record)

    return Reader("line", lines.filled(), parse, records.gather, names.vocabulary)


def begins_jsonl(line: str) -> bool:
    """Return whether a first line is JSON: it begins with ``{``."""
    return line.startswith("{")


def parse_object(line: bytes) -> dict[str, Any]:
    """Parse the JSON object on a line.

    Examples
    --------
    >>> parse_object(b'{"label": "spam", "text": "Free!"}')
    {'label': 'spam', 'text': 'Free!'}
    """
    text = decode(line)
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRow(f"it is not JSON ({error})") from None
    if not isinstance(record, dict):
        raise BadRow(f"it is a JSON {type(record).__name__}, not an object {{...}}")
    if "\\u" in text:
        # Escapes may encode lone surrogates, which cannot be written as UTF-8 later.
        require_text(json.dumps(record, ensure_ascii=False))
    return record
