"""Formats: which one a source is in, by its name or by a look at its first line."""

from __future__ import annotations

import re
from pathlib import Path

from kesler.errors import KeslerError
from kesler.readers.csv_table import DELIMITERS
from kesler.readers.lines import COMPRESSED, Lines, source_name

FORMATS = ("svmlight", "vw", "vw-ldf", "csv", "parquet", "jsonl", "npz", "mail")

FORMAT_OF_SUFFIX = {
    ".svmlight": "svmlight",
    ".svm": "svmlight",
    ".libsvm": "svmlight",
    ".vw": "vw",
    ".ldf": "vw-ldf",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".npz": "npz",
    ".mbox": "mail",
    ".mbx": "mail",
}

LDF = re.compile(r"(?:shared|\*\*\*shared\*\*\*|[^\s|,;]+:[-+.0-9e]+)\s+(?:'\S*\s*)?")
PAIR = re.compile(r"(?:[0-9]+|qid):\S+")


def format_of(source: str, lines: Lines) -> str:
    """Tell the format of a source.

    A directory is mail; a suffix, in front of that of a compression, says the rest. Where there
    is no known suffix, as on standard input, the first line is looked at, empty lines and ``#``
    comments passed over. The first of these that fits is it:

    - ``jsonl`` if it begins with ``{``;
    - ``mail`` if it begins with ``From`` and a space, as an mbox does;
    - ``vw-ldf`` if what stands before a ``|`` is ``shared`` or ``class:cost``;
    - ``vw`` if a ``|`` stands in it, and before that at most a label, an importance and a tag;
    - ``svmlight`` if it is a label and then nothing but ``index:value``;
    - ``csv`` if it holds a comma, a semicolon or a tab.

    Parameters
    ----------
    source : str
        A path, or ``-`` for standard input.
    lines : Lines
        The lines of the source; what is looked at stays to be read.

    Raises
    ------
    KeslerError
        If neither the name nor the first line tells, or there is no first line.
    """
    if Path(source).is_dir():
        return "mail"
    suffixes = [suffix.lower() for suffix in Path(source).suffixes]
    plain = [suffix for suffix in suffixes if suffix not in COMPRESSED]
    known = FORMAT_OF_SUFFIX.get(plain[-1]) if plain else None
    return known or _format_of_line(lines.first(), source_name(source))


def _format_of_line(line: bytes, name: str) -> str:
    if not line:
        raise KeslerError(f"{name} holds no rows: check it")
    text = line.decode(errors="replace").strip()
    head, bar, _ = text.partition("|")
    pairs = text.partition("#")[0].split()[1:]
    if text.startswith("{"):
        return "jsonl"
    if text.startswith("From "):
        return "mail"
    if bar and LDF.fullmatch(head):
        return "vw-ldf"
    if bar and len(head.split()) <= 3 and not set(head) & set(DELIMITERS):
        return "vw"
    if pairs and all(PAIR.fullmatch(pair) for pair in pairs):
        return "svmlight"
    if set(text) & set(DELIMITERS):
        return "csv"
    raise KeslerError(
        f"neither its name nor its first line tells the format of {name}: "
        f"give format=... one of {', '.join(FORMATS)}"
    )
