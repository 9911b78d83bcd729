"""Opening a stream: the one call that takes a source in any format."""

from __future__ import annotations

import os
from collections.abc import Sequence

from kesler.errors import KeslerError
from kesler.readers.arrays import npz_reader
from kesler.readers.csv_table import csv_reader
from kesler.readers.datasets import PREFIX, dataset_reader
from kesler.readers.features import Names
from kesler.readers.formats import FORMATS, format_of
from kesler.readers.jsonl import jsonl_reader
from kesler.readers.lines import STANDARD_INPUT, Lines, source_name
from kesler.readers.mail import mail_reader
from kesler.readers.parquet_table import parquet_reader
from kesler.readers.reader import Reader
from kesler.readers.records import Fields
from kesler.readers.stream import Stream
from kesler.readers.svmlight import svmlight_reader
from kesler.readers.vw import vw_reader
from kesler.readers.vw_ldf import vw_ldf_reader
from kesler.rows import Vocabulary

OF_RECORDS = ("csv", "parquet", "jsonl")
OF_POSITIONS = ("svmlight", "npz")
NOT_PIPED = ("parquet", "npz", "mail")


def open_stream(
    source: str | os.PathLike[str],
    *,
    format: str | None = None,
    label: str | None = None,
    text: str | Sequence[str] | None = None,
    vocabulary: Vocabulary | None = None,
    grow: bool = True,
    require_labels: bool = True,
    skip_bad: bool = False,
    skip_rows: int = 0,
    block_rows: int = 1024,
) -> Stream:
    r"""Open a source of rows, in whatever format, as a stream of blocks.

    Parameters
    ----------
    source : str or path
        A file, compressed (.gz, .bz2, .xz) or not; a directory of mail; ``-`` for standard input;
        ``dataset:letter`` or another set that :func:`kesler.datasets.load` knows.
    format : {'svmlight', 'vw', 'vw-ldf', 'csv', 'parquet', 'jsonl', 'npz', 'mail'}, optional
        By default the name tells it, or else the first line: see `kesler.readers.formats`.
    label : str, optional
        The column of the labels, needed for CSV and Parquet; ``label`` in JSON lines.
    text : str or sequence of str, optional
        The columns or fields to take the tokens of, separated by commas in a string. By default
        JSON lines take the field ``text`` if there is one, and all else counts as a table.
    vocabulary : Vocabulary, optional
        The names of the features that are known already; it grows in place.
    grow : bool
        If False, nothing joins the vocabulary, as prediction needs: features that are not in it
        have numbers beyond it, but columns of a dense table are left out.
    require_labels : bool
        If False, rows may lack their label, which is None then.
    skip_bad : bool
        If True, rows that can't be read are skipped and counted; if False, the first one raises.
    skip_rows : int
        How many rows to pass over first, bad ones not counted, to go on where a run stopped.
    block_rows : int
        Most rows in a block. Larger blocks cost memory and are read a little faster.

    Returns
    -------
    Stream
        The blocks, read once and lazily: memory doesn't grow with the length of the source,
        except with the arrays of a .npz file and the index of a mail directory.

    Raises
    ------
    KeslerError
        Here or on iteration: one sentence that says what is wrong, where, and what to do.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     path = Path(directory, "pets.csv")
    ...     _ = path.write_text("kind,legs,wings\ncat,4,0\nparrot,2,2\n")
    ...     stream = open_stream(path, label="kind")
    ...     for block in stream:
    ...         print(block.labels, block.rows.values.tolist())
    ['cat', 'parrot'] [4.0, 0.0, 2.0, 2.0]
    >>> stream.n_rows, stream.vocabulary.names
    (2, ['legs', 'wings'])
    """
    if block_rows < 1 or skip_rows < 0:
        raise KeslerError("block_rows should be at least 1 and skip_rows at least 0")
    path = os.fsdecode(source)
    fields = Fields(source_name(path), label, _split(text), require_labels)
    names = Names(Vocabulary() if vocabulary is None else vocabulary, grow)
    return Stream(
        _reader(path, format, fields, names),
        fields.source,
        require_labels=require_labels,
        skip_bad=skip_bad,
        skip_rows=skip_rows,
        block_rows=block_rows,
    )


def _split(text: str | Sequence[str] | None) -> Sequence[str]:
    if isinstance(text, str):
        return [field.strip() for field in text.split(",")]
    return text or ()


def _reader(path: str, format: str | None, fields: Fields, names: Names) -> Reader:
    if path.startswith(PREFIX):
        if format or fields.label is not None or fields.text:
            raise KeslerError(f"{path} needs no format, label or text: leave them out")
        return dataset_reader(path, names)
    if path != STANDARD_INPUT and not os.path.exists(path):
        raise KeslerError(f"{path} does not exist: check the path")
    lines = Lines(path)
    format = format or format_of(path, lines)
    _require_fit(format, path, fields, names)
    return _format_reader(format, path, lines, fields, names)


def _require_fit(format: str, path: str, fields: Fields, names: Names) -> None:
    """Raise a sentence if the format can't go with the rest of what is asked."""
    source = fields.source
    if format not in FORMATS:
        raise KeslerError(f"there is no format {format!r}: choose one of {', '.join(FORMATS)}")
    if path == STANDARD_INPUT and format in NOT_PIPED:
        raise KeslerError(f"{format} can't be read from standard input: give a path")
    if os.path.isdir(path) and format != "mail":
        raise KeslerError(f"{source} is a directory, which only mail can be: give a {format} file")
    if (fields.label is not None or fields.text) and format not in OF_RECORDS:
        raise KeslerError(
            f"{source} is read as {format}, which has no fields for label=... and text=...: "
            f"leave them out (they are for {', '.join(OF_RECORDS)})"
        )
    if len(names.vocabulary) and format in OF_POSITIONS:
        raise KeslerError(
            f"{source} is read as {format}, whose features are positions, but the vocabulary "
            "holds names: give it rows in the format that was learnt from"
        )


def _format_reader(format: str, path: str, lines: Lines, fields: Fields, names: Names) -> Reader:
    match format:
        case "svmlight":
            return svmlight_reader(lines)
        case "vw":
            return vw_reader(lines, names)
        case "vw-ldf":
            return vw_ldf_reader(lines, names)
        case "csv":
            return csv_reader(lines, fields, names)
        case "parquet":
            return parquet_reader(path, fields, names)
        case "jsonl":
            return jsonl_reader(lines, fields, names)
        case "npz":
            return npz_reader(path, fields.require_labels)
        case _:
            return mail_reader(path, names)
