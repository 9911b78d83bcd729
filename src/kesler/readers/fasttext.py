"""fastText's text format: one line per example, ``__label__spam win cash now``."""

from __future__ import annotations

import re
from dataclasses import replace

from kesler.errors import KeslerError
from kesler.readers.features import Names
from kesler.readers.jsonl import LABEL, TEXT
from kesler.readers.lines import Lines, decode
from kesler.readers.reader import BadRow, Example, Reader
from kesler.readers.records import Fields, Records

PREFIX = "__label__"
WORD = re.compile(r"[^ \n\r\t\v\f\0]+")  # of fastText, which knows no other space


def fasttext_reader(lines: Lines, fields: Fields, names: Names) -> Reader:
    """Read fastText's lines, a text and the words ``__label__class`` that are its labels.

    Labels may stand anywhere in a line, and are strings without their prefix; the option ``label``
    names another prefix. A line with several labels is for learners of label sets. The rest of the
    line is the column ``text``. Where rows need no labels, empty lines are rows too, as fastText
    predicts each line.
    """
    prefix = fields.label or PREFIX
    if fields.id is not None or [*fields.text] not in ([], [TEXT]):
        raise KeslerError(f"{fields.source} has no columns beside its texts: leave out text and id")
    records = Records(replace(fields, label=LABEL), names, default_text=TEXT)

    def parse(line: bytes) -> Example:
        labels, text = labels_and_text(decode(line), prefix)
        label = (labels or None) if fields.label_sets else _only(labels)
        return records.example({LABEL: label, TEXT: text})

    rows = lines.filled() if fields.require_labels else lines
    return Reader("line", rows, parse, records.gather, names.vocabulary)


def begins_fasttext(line: str) -> bool:
    """Return whether a first line is fastText's: its first word is ``__label__`` and a class."""
    return line.startswith(PREFIX) and not line[len(PREFIX) : len(PREFIX) + 1].isspace()


def labels_and_text(line: str, prefix: str = PREFIX) -> tuple[list[str], str]:
    """Return the labels of a line, each once, and its text.

    Examples
    --------
    >>> labels_and_text("__label__spam win cash __label__offer now")
    (['spam', 'offer'], 'win cash now')
    """
    words = WORD.findall(line)
    labels = [word.removeprefix(prefix) for word in words if word.startswith(prefix)]
    if "" in labels:
        raise BadRow(f"{prefix!r} stands without a label behind it")
    text = " ".join(word for word in words if not word.startswith(prefix))
    return [*dict.fromkeys(labels)], text


def _only(labels: list[str]) -> str | None:
    """Return the label of a line that may have one."""
    if len(labels) > 1:
        raise BadRow(
            f"there are {len(labels)} labels, {labels[0]!r} and others: learn label sets "
            "(OnlineMultilabelClassifier), or keep one label in each line"
        )
    return labels[0] if labels else None
