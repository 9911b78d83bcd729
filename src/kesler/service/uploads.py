"""Uploads: the records of a file that a client sends, read as the command line reads files."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, NamedTuple

from kesler.data.rows import Vocabulary
from kesler.errors import KeslerError, ReadingWarning, warn
from kesler.readers.compression import is_compressed
from kesler.readers.csv_table import begins_csv
from kesler.readers.dialects import N_LINES, Dialect
from kesler.readers.features import Names
from kesler.readers.lines import Lines
from kesler.readers.opening import READERS, format_of, reader_of
from kesler.readers.reader import BadRow, Reader
from kesler.readers.records import Fields
from kesler.service.exports import is_export, of_export, records_of_export
from kesler.service.import_options import (
    FORMATS,
    ID,
    LABEL,
    LABELS,
    SEQUENCES,
    TEXT,
    ImportOptions,
)
from kesler.service.refusals import BAD_REQUEST, NOT_VALID, TOO_LARGE, Refusal

OTHERS = {
    b"%PDF-": "a PDF document",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF8": "a picture",
    b"{\\rtf": "a document in RTF",
    b"<": "a page of HTML or XML",
}
"""What is often sent and is no table, by its first bytes."""
IN_PLACE = "send CSV with a header, JSON lines, a JSON array, Parquet, a workbook, mail or FASTA"
IN_PYTHON = re.compile(
    r"; mend it, or skip such rows.*| \(text=\.\.\.\)|, or allow more bytes .*", re.DOTALL
)
"""What only callers of Python can do."""
ALL_FORMATS = re.compile("(?<=format=... one of ).*")
SUFFIXES = re.compile(r"\.[A-Za-z0-9]{1,8}")
MOST_UNPACKED = 256 << 20  # characters of the texts of all records
_ONE_AT_A_TIME = Lock()


class Record(NamedTuple):
    """A record of a file, where it stands there, and what is wrong with it, both in words."""

    place: str
    values: dict[str, Any]
    fault: str = ""


class File(NamedTuple):
    """The bytes of a file, its name if it has one, and what else is in its form.

    That are the other fields, and a file of labels.
    """

    data: bytes
    name: str = ""
    fields: Mapping[str, str] = {}
    labels: bytes | None = None


def file_of(body: bytes, content_type: str) -> File:
    """Return the file in the body of a request, which may be a form with it and one of labels.

    Raises
    ------
    Refusal
        With status 400, if a form has no file or more than one of a kind, or a field twice.
    """
    if not content_type.lower().startswith("multipart/form-data"):
        return File(body)
    from python_multipart import parse_form
    from python_multipart.exceptions import FormParserError

    found, labels, fields = list[File](), list[File](), list[tuple[str, str]]()

    def add(file: Any) -> None:
        file.file_object.seek(0)
        kind = labels if _text(file.field_name) == LABELS else found
        kind.append(File(file.file_object.read(), _text(file.file_name)))

    def add_field(field: Any) -> None:
        fields.append((_text(field.field_name), _text(field.value)))

    try:
        headers = {"Content-Type": content_type.encode("latin-1", "replace")}
        parse_form(headers, BytesIO(body), add_field, add)
    except (FormParserError, ValueError) as error:
        raise Refusal(BAD_REQUEST, f"the form cannot be read ({error})") from None
    if len(found) != 1 or len(labels) > 1:
        raise Refusal(
            BAD_REQUEST,
            f"the form has {len(found)} files, and {len(labels)} of labels: send one, and beside "
            "FASTA and FASTQ at most one of their labels, as labels=@...",
        )
    if len(dict(fields)) < len(fields):
        raise Refusal(BAD_REQUEST, "the form has a field twice: send each once")
    return found[0]._replace(fields=dict(fields), labels=labels[0].data if labels else None)


def _text(sent: bytes | None) -> str:
    return (sent or b"").decode(errors="replace")


class Contents(NamedTuple):
    """The records of a file, and sentences about how it was read."""

    records: list[Record]
    notes: list[str]


def contents_of(file: File, most: int, options: ImportOptions) -> Contents:
    r"""Return the records of a file: CSV, JSON, Parquet, a workbook, mail, FASTA or FASTQ.

    The format, the encoding, the delimiter and the compression are found as by the command line.
    Records of mail have the fields text and, of mail with labels of Gmail, label; those
    of FASTA and FASTQ have id and sequence. In the rows and labels of CSV that the service exports,
    JSON is what no text is.

    Raises
    ------
    Refusal
        With status 400 if it cannot be read, 413 if it has more than `most` rows.

    Examples
    --------
    >>> contents_of(File(b"text;label\nhello;greeting\n"), 9, ImportOptions()).records
    [Record(place='line 2 of the file', values={'text': 'hello', 'label': 'greeting'}, fault='')]
    """
    suffixes = SUFFIXES.findall((options.name or file.name).lower())[-2:]
    with TemporaryDirectory() as directory, _noted() as said:
        path, labels = Path(directory, "file" + "".join(suffixes)), None
        path.write_bytes(file.data)
        if file.labels is not None:
            labels = path.with_name(LABELS)
            labels.write_bytes(file.labels)
        try:
            records = [*_bounded(_records(file.data, path, options, labels), most)]
            if labels is not None:
                _report_unlabelled(records, path)
        except KeslerError as error:
            if isinstance(error, Refusal):
                raise
            raise Refusal(BAD_REQUEST, _in_words(error, path)) from None
    own = [each.message for each in said if issubclass(each.category, ReadingWarning)]
    return Contents(records, [*dict.fromkeys(_in_words(message, path) for message in own)])


@contextmanager
def _noted() -> Iterator[list[warnings.WarningMessage]]:
    """Note warnings, of one file at a time since the filters are those of all threads."""
    with _ONE_AT_A_TIME, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ReadingWarning)
        yield said


def _in_words(said: Exception | str, path: Path) -> str:
    """Return what a reader says with the options of an import."""
    words = ALL_FORMATS.sub(", ".join(FORMATS), IN_PYTHON.sub("", str(said)))
    words = words.replace("header=False", "header=false").replace("labels=...", "labels=@...")
    words = words.replace(str(path.with_name(LABELS)), "the file of labels")
    return words.replace(str(path), "the file")


def _bounded(records: Iterator[Record], most: int) -> Iterator[Record]:
    """Yield the records of a file; raise if there are too many, or their texts too long."""
    n_characters = 0
    for record in islice(records, most):
        n_characters += sum(len(each) for each in record.values.values() if isinstance(each, str))
        if n_characters > MOST_UNPACKED:
            raise Refusal(
                TOO_LARGE,
                f"the texts of the file have more than {MOST_UNPACKED} characters: send it in "
                "parts",
            )
        yield record
    if next(records, None) is not None:
        raise Refusal(TOO_LARGE, f"the file has more than {most} rows: send it in parts")


def _report_unlabelled(records: list[Record], path: Path) -> None:
    """Warn of records without a label in the file of labels; raise if none has one."""
    n_labelled = sum(LABEL in each.values for each in records)
    if records and not n_labelled:
        raise Refusal(
            BAD_REQUEST,
            f"the file of labels has no label of any of the {len(records)} identifiers of the "
            f"file, such as {str(records[0].values.get(ID))[:40]!r}: send that of this file",
        )
    if n_labelled < len(records):
        warn(
            f"{path}: {len(records) - n_labelled} of {len(records)} identifiers have no label in "
            "the file of labels: they wait for an answer",
            ReadingWarning,
        )


def _records(
    data: bytes, path: Path, options: ImportOptions, labels: Path | None
) -> Iterator[Record]:
    own = None if options.reading or options.columns or labels else records_of_export(data)
    if own is not None:
        yield from (Record(f"line {line} of the file", each) for line, each in own)
        return
    format = options.reading.get("format") or _format(path, options)
    if format not in FORMATS:
        raise Refusal(
            BAD_REQUEST,
            f"the file is read as {format[:40]}, which has no texts and no columns: {IN_PLACE}; if "
            "it is one of these, name its format with format=...",
        )
    if format != "mail":
        yield from _rows(_reader(path, format, options, labels), format, path, options)
        return
    given = [*([LABELS] if labels else []), *(options.reading.keys() - {"format"})]
    if given:
        raise Refusal(NOT_VALID, f"mail is read without {given[0]}: leave it out")
    yield from _messages(path)


def _format(path: Path, options: ImportOptions) -> str:
    """Return the format of a file; CSV may begin with a title, or have one column of texts."""
    try:
        format = format_of(str(path), Lines(str(path), encoding=options.reading.get("encoding")))
    except KeslerError:
        first = _require_known(path)
        name = first.decode(errors="replace").strip("\"' ")
        is_column = name in options.texts or name.casefold() == TEXT
        if not (is_column or any(map(_is_csv, Lines(str(path)).ahead(N_LINES)))):
            raise
        return "csv"
    if READERS[format].is_text:
        _require_known(path)
    return format


def _is_csv(line: bytes) -> bool:
    return begins_csv(line.decode(errors="replace"))


def _require_known(path: Path) -> bytes:
    """Return the first line of a file; raise unless it can be that of a text."""
    first = Lines(str(path)).first()
    what = next((each for start, each in OTHERS.items() if first.startswith(start)), "")
    if what or re.search(rb"[\0-\x08\x0e-\x1a]", first):
        raise Refusal(BAD_REQUEST, f"the file is {what or 'no text'}: {IN_PLACE}")
    return first


def _rows(reader: Reader, format: str, path: Path, options: ImportOptions) -> Iterator[Record]:
    """Yield the records of a file with columns or fields."""
    is_own = None
    for number, (place, raw) in enumerate(reader.rows, 1):
        where = f"{reader.unit} {place} of the file"
        if format == "json":
            where = f"record {number} of the file, on line {place}"
        try:
            label, record, *_ = reader.parse(raw)
        except BadRow as fault:
            yield Record(where, {}, _in_words(str(fault), path))
            continue
        if format == "csv":
            record = {name: cell or None for name, cell in record.items()}
        if label is not None:
            record = {**record, options.columns.get(LABEL, LABEL): label}
        is_own = is_export([*record]) if is_own is None and format == "csv" else is_own
        yield Record(where, of_export(record) if is_own else record)


def _reader(path: Path, format: str, options: ImportOptions, labels: Path | None) -> Reader:
    reading = dict(options.reading)
    own = {"sheet": reading.pop("sheet", None), "sql": None, LABELS: labels and str(labels)}
    lines = Lines(str(path), encoding=reading.pop("encoding", None))
    reading.pop("format", None)
    columns = options.columns
    fields = Fields(
        "the file", columns.get(LABEL), options.texts, require_labels=False, as_table=True,
        id=columns.get(ID, ID if format in SEQUENCES else None),
    )  # fmt: skip
    names = Names(Vocabulary(), grow=True)
    return reader_of(str(path), lines, format, fields, names, Dialect(**reading), own)


def _messages(path: Path) -> Iterator[Record]:
    from kesler.readers.mail import without_deleted
    from kesler.readers.mail.index import index
    from kesler.readers.mail.labels import how_labelled
    from kesler.readers.mail.message import message_texts

    plain = _unpacked(path) if is_compressed(str(path)) else path
    found = sorted(index(str(plain)), key=lambda each: each.offset)
    numbers = {place.offset: number for number, place in enumerate(found, 1)}
    found = without_deleted(found, str(path))
    if said := how_labelled(found, are_required=False, are_sets=False):
        warn(f"{path}: {said}", ReadingWarning)
    for place in found:
        where = f"message {numbers[place.offset]} of the file"
        try:
            text = "\n".join(filter(None, message_texts(place.message())))
        except BadRow as fault:
            yield Record(where, {}, str(fault))
            continue
        label = None if place.labels is None else place.label
        yield Record(where, {TEXT: text} | ({LABEL: label} if label else {}))


def _unpacked(path: Path) -> Path:
    """Write what is in a compressed file beside it; return the path."""
    plain = path.with_name("mail" + "".join(path.suffixes[:-1]))
    n_bytes = 0
    with plain.open("wb") as file:
        for line in Lines(str(path)).as_they_are():
            n_bytes += file.write(line)
            if n_bytes > MOST_UNPACKED:
                raise Refusal(TOO_LARGE, f"the file has more than {MOST_UNPACKED} bytes unpacked")
    return plain
