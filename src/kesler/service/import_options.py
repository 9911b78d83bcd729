"""Options of an import: which columns of a file are what, and how it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from kesler.readers.dialects import NAMED
from kesler.service.refusals import NOT_VALID, Refusal

SEQUENCES = ("fasta", "fastq")
FORMATS = ("csv", "jsonl", "json", "parquet", "excel", "mail", *SEQUENCES)
"""The formats whose rows are texts, or names and values."""
TEXT, LABEL, ID, PERSON = "text", "label", "id", "person"

COLUMNS: dict[str, tuple[type[Any], str]] = {
    name: (str, f"the column of the {name}, if it has another name; outer.inner within objects")
    for name in (TEXT, LABEL, ID, PERSON)
}
READING: dict[str, tuple[type[Any], str]] = {
    "format": (str, f"one of {', '.join(FORMATS)}, if it is not found"),
    "encoding": (str, "the encoding of text, such as windows-1252, if it is not found"),
    "delimiter": (str, "the character between the cells of CSV, or tab"),
    "quote": (str, "the character around cells of CSV, or none"),
    "escape": (str, "the character before others of CSV without their special meaning"),
    "skip_lines": (int, "the number of lines before the header of CSV"),
    "header": (bool, "false if the first row of CSV names no columns: they are 1, 2, 3, ..."),
    "sheet": (str, "the sheet of a workbook, if it is not the first"),
}
OPTIONS: dict[str, tuple[type[Any], str]] = {
    **COLUMNS,
    **READING,
    "skip_bad": (bool, "true to refuse rows that cannot be used alone, and file the others"),
    "name": (str, "the name of the file, whose ending may tell its format"),
}
"""The options of an import, each with its type and what it is."""
FILE, LABELS = "file", "labels"
FILES = {
    FILE: "the file",
    LABELS: "a file of the labels of FASTA and FASTQ: an identifier, a tab and its label in each "
    "line",
}
"""The files of a form, of which the first is required."""


class ImportOptions(NamedTuple):
    """What a client says of a file.

    Parameters
    ----------
    columns : mapping
        The columns that are the text, the label, the id or the person, by these words, where they
        have other names; the text may be several, separated by commas.
    reading : mapping
        How the file is read, as by :func:`kesler.readers.opening.open_stream`.
    skip_bad : bool
        Whether rows that cannot be used are refused alone; otherwise the first refuses the file.
    name : str
        The name of the file.
    """

    columns: Mapping[str, str] = {}
    reading: Mapping[str, Any] = {}
    skip_bad: bool = False
    name: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> ImportOptions:
        r"""Return the options that texts say, of a query or a form; empty ones are not given.

        Raises
        ------
        Refusal
            With status 422, if there is no such option, or it is of another type.

        Examples
        --------
        >>> ImportOptions.of({"label": "team", "header": "false", "delimiter": "tab"}).reading
        {'delimiter': '\t', 'header': False}
        """
        read = {name: _read(name, text) for name, text in given.items() if text}
        return cls(
            {name: read[name] for name in COLUMNS if name in read},
            {name: read[name] for name in READING if name in read},
            **{name: read[name] for name in ("skip_bad", "name") if name in read},
        )

    @property
    def texts(self) -> list[str]:
        """The columns that are the text, if they are named."""
        return [each for part in self.columns.get(TEXT, "").split(",") if (each := part.strip())]


def _read(name: str, text: str) -> Any:
    """Return the value of an option."""
    kind, words = OPTIONS[name]
    if name in ("delimiter", "quote", "escape"):
        return NAMED.get(text.lower(), text)
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError:
        raise Refusal(NOT_VALID, f"{name}={text[:40]}: give {words}") from None
