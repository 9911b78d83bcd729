"""Opening a source in any format as a stream."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kesler.data.rows import Vocabulary
from kesler.data.texts import counted
from kesler.datasets.dataset import Dataset, RecordDataset
from kesler.datasets.loaders import load
from kesler.errors import KeslerError
from kesler.readers.arrays import array_reader, npz_reader
from kesler.readers.compression import (
    LONGEST_MAGIC,
    STANDARD_INPUT,
    SUFFIXES,
    source_name,
    start_of,
)
from kesler.readers.csv_table import begins_csv, csv_reader
from kesler.readers.dialects import Dialect
from kesler.readers.encodings import wide_encoding
from kesler.readers.excel import excel_reader, holds_workbook
from kesler.readers.fasttext import begins_fasttext, fasttext_reader
from kesler.readers.features import Names
from kesler.readers.json_values import begins_json, json_reader
from kesler.readers.jsonl import begins_jsonl, jsonl_reader
from kesler.readers.lines import LONGEST_LINE, Lines
from kesler.readers.mail import begins_mail, mail_reader
from kesler.readers.parquet_files import begins_parquet, holds_parquet
from kesler.readers.parquet_table import parquet_reader
from kesler.readers.reader import Example, Reader
from kesler.readers.records import Fields, Records, Words
from kesler.readers.sequences import begins_fasta, begins_fastq, fasta_reader, fastq_reader
from kesler.readers.sql import begins_duckdb, begins_sqlite, duckdb_reader, sqlite_reader
from kesler.readers.stream import Stream
from kesler.readers.svmlight import begins_svmlight, svmlight_reader
from kesler.readers.unread import ENOUGH, require_no_other
from kesler.readers.vw import begins_ldf, begins_vw, vw_ldf_reader, vw_reader


@dataclass(frozen=True)
class Format:
    """How a format is recognised, and the function that opens a source in it.

    Parameters
    ----------
    open : callable (...) -> Reader
        The first line of its docstring is used in lists of formats. The names of its parameters
        determine its arguments, and thereby the options of the format:

        - ``lines``, the `Lines` of a file or of standard input, and ``path``, of a file;
        - ``names``, which number its features; without it features are positions;
        - ``fields``, for the options ``label`` and ``text``, which other formats do not take;
        - ``dialect``, for the options of CSV;
        - ``width``, the number of features of rows that leave out zeros, if these are features;
        - ``require_labels``, whether rows must have a label, and ``label_sets``, whether lists;
        - ``id``, for that option, which goes without ``fields``;
        - ``sheet``, ``sql`` and ``labels``, for the options of these names.
    suffixes : tuple of str
        The suffixes of files of this format, in lower case.
    begins : callable (first line) -> bool, or None
        Whether a source without a known suffix has this format, judged by its first line that is
        neither empty nor a ``#`` comment; None if the line does not show it.
    begins_bytes : callable (first bytes) -> bool, or None
        Whether a source that begins with these bytes has this format, whatever its name is.
    holds : callable (path) -> bool, or None
        Whether a file or directory has this format, judged by more of its content.
    directories : bool
        Whether a directory can have this format.
    """

    open: Callable[..., Reader]
    suffixes: tuple[str, ...] = ()
    begins: Callable[[str], bool] | None = None
    begins_bytes: Callable[[bytes], bool] | None = None
    holds: Callable[[str], bool] | None = None
    directories: bool = False

    @property
    def takes(self) -> tuple[str, ...]:
        """The names of the arguments of `open`."""
        return tuple(inspect.signature(self.open).parameters)

    @property
    def is_piped(self) -> bool:
        """Whether it can be read from standard input."""
        return "lines" in self.takes

    @property
    def is_text(self) -> bool:
        """Whether it is text in one encoding."""
        return self.is_piped and "path" not in self.takes

    @property
    def has_fields(self) -> bool:
        """Whether it takes the options ``label`` and ``text``."""
        return "fields" in self.takes

    @property
    def has_names(self) -> bool:
        """Whether its features have names; else they are positions."""
        return "names" in self.takes

    @property
    def is_binary(self) -> bool:
        """Whether its files are no text."""
        return not self.is_piped

    @property
    def summary(self) -> str:
        """A description of the format in one line."""
        return (inspect.getdoc(self.open) or "").partition("\n")[0]


READERS: dict[str, Format] = {
    "jsonl": Format(jsonl_reader, (".jsonl", ".ndjson"), begins_jsonl),
    "json": Format(json_reader, (".json", ".jsonl", ".ndjson"), begins_json),
    "parquet": Format(
        parquet_reader,
        (".parquet",),
        begins_bytes=begins_parquet,
        holds=holds_parquet,
        directories=True,
    ),
    "mail": Format(
        mail_reader,
        (".mbox", ".mbx", ".eml", ".emlx", ".msg"),
        begins_mail,
        holds=os.path.isdir,
        directories=True,
    ),
    "fasta": Format(
        fasta_reader, (".fasta", ".fa", ".fas", ".fna", ".ffn", ".faa", ".frn"), begins_fasta
    ),
    "fastq": Format(fastq_reader, (".fastq", ".fq"), begins_fastq),
    "fasttext": Format(fasttext_reader, (".fasttext",), begins_fasttext),
    "vw-ldf": Format(vw_ldf_reader, (".ldf",), begins_ldf),
    "vw": Format(vw_reader, (".vw",), begins_vw),
    "svmlight": Format(svmlight_reader, (".svmlight", ".svm", ".libsvm"), begins_svmlight),
    "csv": Format(csv_reader, (".csv", ".tsv"), begins_csv),
    "npz": Format(npz_reader, (".npz",)),
    "excel": Format(
        excel_reader, (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), holds=holds_workbook
    ),
    "sqlite": Format(sqlite_reader, (".db", ".sqlite", ".sqlite3"), begins_bytes=begins_sqlite),
    "duckdb": Format(duckdb_reader, (".duckdb",), begins_bytes=begins_duckdb),
}
"""The formats by the names that `open_stream` and the command line take.

The first format that matches the content, or a first line, is chosen. The first line also tells
formats apart that share a suffix.
"""


def format_of(source: str, lines: Lines) -> str:
    """Return the format of a source.

    It is the first format of `READERS` that a source has by its first bytes or more of its content,
    such as those of Parquet. Otherwise the suffix, without that of a compression, determines the
    format. Without a known suffix, as on standard input, it is the first format that matches the
    first line that is neither empty nor a ``#`` comment.

    Parameters
    ----------
    source : str
        A path, or ``-`` for standard input.
    lines : Lines
        The lines of the source; the lines that are inspected remain to be read.

    Raises
    ------
    KeslerError
        If neither the name nor the first line shows the format, or there is no first line.
    """
    first = lines.first() if lines.is_piped else b""
    start = lines.start if lines.is_piped else start_of(source, LONGEST_MAGIC)
    for name, each in READERS.items():
        if each.begins_bytes is not None and each.begins_bytes(start):
            return name
        if each.holds is not None and os.path.exists(source) and each.holds(source):
            return name
    suffixes = [suffix.lower() for suffix in Path(source).suffixes]
    plain = [suffix for suffix in suffixes if suffix not in SUFFIXES]
    named = [name for name, each in READERS.items() if plain and plain[-1] in each.suffixes]
    is_misnamed = bool(named) and READERS[named[0]].is_binary and _is_text(start)
    if len(named) == 1 and not is_misnamed:
        if READERS[named[0]].is_text and not lines.is_piped:
            require_no_other(source_name(source), start_of(source, ENOUGH))
        return named[0]
    first = first or lines.first()
    require_no_other(source_name(source), lines.seen)
    found = _formats_of_line(first, source_name(source))
    if len(named) > 1:
        return _of_one_suffix(named, found, first, lines)
    of_line = [*found, *named]
    if not of_line:
        raise KeslerError(
            f"neither its name nor its first line tells the format of {source_name(source)}: "
            f"give format=... one of {', '.join(READERS)}"
        )
    return of_line[0]


def _of_one_suffix(named: list[str], found: list[str], first: bytes, lines: Lines) -> str:
    """Return which of the formats of one suffix a source has.

    If its first line is not the whole row that the first of them begins with, but may be one cut
    short, the second line decides.
    """
    is_layout = first.startswith(b"[") or first.endswith(b",")
    begins = READERS[named[0]].begins
    if named[0] not in found and not is_layout and begins is not None:
        second = lines.first().decode(errors="replace").strip()
        return named[0] if begins(second) else named[-1]
    return next((name for name in found if name in named), named[0])


def _is_text(start: bytes) -> bool:
    """Return whether the first bytes of a file can be text, as of tables that are called .xls."""
    return bool(start) and (min(start) >= ord("\t") or wide_encoding(start) is not None)


def _formats_of_line(line: bytes, source: str) -> list[str]:
    """Return the formats that a first line can have."""
    if not line:
        raise KeslerError(f"{source} holds no rows: check it")
    text = line.decode(errors="replace").strip()
    readers = READERS.items()
    return [name for name, each in readers if each.begins is not None and each.begins(text)]


PREFIX = "dataset:"


def dataset_reader(source: str, names: Names, fields: Fields) -> Reader:
    """Read a data set; the features of a text record are those of all its fields together.

    Raises
    ------
    KeslerError
        If the data set does not exist or cannot be loaded, or its rows do not have one class each.
    """
    dataset = load(source.removeprefix(PREFIX))
    if isinstance(dataset, RecordDataset):
        return _record_reader(dataset, names, fields)
    if fields.as_table:
        raise KeslerError(f"{source} holds numbers, whose columns have one kind: name no kinds")
    return array_reader(dataset.X, _classes(source, dataset))


def _record_reader(dataset: RecordDataset, names: Names, fields: Fields) -> Reader:
    def parse(pair: tuple[str, dict[str, str]]) -> Example:
        label, record = pair
        return Example(label, record if fields.as_table else fields.words([*record.values()]))

    rows = enumerate(zip(dataset.y, dataset.records, strict=True), start=1)
    is_of_counts = fields.words is counted and not fields.as_table
    gather = names.gather_words if is_of_counts else Records(fields, names).gather
    return Reader("record", rows, parse, gather, names.vocabulary)


def _classes(source: str, dataset: Dataset) -> list[int | str]:
    if dataset.y.ndim != 1 or dataset.y.dtype.kind not in "iuU":
        raise KeslerError(
            f"the targets of {source} are not one class per row (their shape is {dataset.y.shape}, "
            f"their type {dataset.y.dtype}): choose classes, for example dataset:letter"
        )
    classes: list[int | str] = dataset.y.tolist()
    return classes


def open_stream(
    source: str | os.PathLike[str],
    *,
    format: str | None = None,
    label: str | None = None,
    text: str | Sequence[str] | None = None,
    id: str | None = None,
    origins: bool = False,
    label_sets: bool = False,
    as_table: bool = False,
    words: Words = counted,
    vocabulary: Vocabulary | None = None,
    grow: bool = True,
    require_labels: bool = True,
    skip_bad: bool = False,
    skip_rows: int = 0,
    block_rows: int | None = None,
    max_line: int = LONGEST_LINE,
    encoding: str | None = None,
    delimiter: str | None = None,
    quote: str | None = None,
    escape: str | None = None,
    skip_lines: int | None = None,
    header: bool | None = None,
    width: int | None = None,
    sheet: str | None = None,
    sql: str | None = None,
    labels: str | os.PathLike[str] | None = None,
    missing: bool = True,
    on_mismatch: str = "missing",
    decimals: Mapping[str, str] | None = None,
) -> Stream:
    r"""Open a source of rows in any format as a stream of blocks.

    Parameters
    ----------
    source : str or path
        A file, compressed (gzip, bzip2, xz, Zstandard, a zip archive of one file) or not; a
        directory of mail; ``-`` for standard input; ``dataset:letter`` or another set of
        :func:`kesler.datasets.load`.
    format : str, optional
        A name of `kesler.readers.READERS`. By default it is inferred from the name of the source or
        from the first line; see `kesler.readers.opening`.
    label : str, optional
        The column of the labels, required for tables; by default ``label`` in JSON.
    text : str or sequence of str, optional
        The columns or fields whose tokens are the features, separated by commas in a string. By
        default this is the field ``text`` of JSON if there is one; other sources are tables.
    id : str, optional
        The column or field that identifies each row in its origin; it remains a column. In mail,
        the header, such as "Message-ID".
    origins : bool, default False
        If True, blocks say where their rows come from (`Block.origins`), for which rows of numbers
        are read one by one.
    label_sets : bool, default False
        If True, the label of a row is a list of labels, as
        :class:`~kesler.OnlineMultilabelClassifier` learns them: lists in JSON and Parquet, all of
        the user's labels in mail of Gmail. Rows are then read one by one.
    as_table : bool, default False
        If True, the rows of a block are a table of raw cells, for learners of tables (parameter
        `columns`), which may be of files with columns and of data sets of texts; `text` is then
        ignored.
    words : function, default the counts of words
        The features of the texts of a row as a dictionary, given these texts. By default learners
        without the preprocessing :class:`~kesler.preprocessing.Counts` take each word as 1; values
        of another function are learnt as they are.
    vocabulary : Vocabulary, optional
        The names of the known features; it grows in place.
    grow : bool
        If False, no name is added to the vocabulary, as prediction requires: unknown features get
        numbers beyond it, except for columns of a dense table, which are omitted.
    require_labels : bool
        If True, rows without a label are left out, with a `ReadingWarning` at the end that counts
        them; it is an error if no row has one. If False, rows may have no label, which is then
        None.
    skip_bad : bool
        If True, unreadable rows are skipped and counted; if False, the first one raises an error.
    skip_rows : int
        How many rows to skip first, not counting bad ones, to continue an interrupted run.
    block_rows : int or None
        Maximum number of rows in a block. Larger blocks need more memory and are read and learnt
        faster, the more so the shorter the rows are. None for 1,024, and for 4,096 after the
        beginning of a text file whose lines have at most 256 bytes on average.
    max_line : int, default 64 MiB
        Maximum number of bytes of a line of text, after decompression, at least 256 KiB. A longer
        line is an error, before more memory is taken.
    encoding : str, optional
        The encoding of text, such as ``"windows-1252"``. By default it is that of the byte order
        mark, or else UTF-8 if the text can be; or else it is found, with a `ReadingWarning`.
    delimiter : str, optional
        The character between the cells of CSV. By default it is the one of comma, semicolon, tab
        and ``|`` by which the first rows have the same number of cells.
    quote : str, optional
        The character around cells of CSV; empty if quotes are letters as others. By default it is
        ``"``, or an apostrophe where the cells of the first rows are in apostrophes.
    escape : str, optional
        The character before letters of CSV without their special meaning. By default it is a
        backslash where the first rows can be read only so, else there is none.
    skip_lines : int, optional
        The number of lines before the header of CSV. By default these are comments, titles that
        fill one cell and lines above the first that names the columns `label`, `text` and `id`,
        with a `ReadingWarning`.
    header : bool, optional
        Whether the first row of CSV names the columns. By default it does, unless `label` is a
        number and the first row holds numbers, with a `ReadingWarning`. Columns without a header
        are named by their numbers, from ``"1"``.
    width : int, optional
        The number of features of Vowpal Wabbit and svmlight text of measurements, whose rows then
        list them all, with zeros; 0 for rows that do not. By default the first 50 rows say it where
        there is no vocabulary: they are measurements if they name the same features, with real
        values.
    sheet : str, optional
        The sheet of a workbook. By default it is the first.
    sql : str, optional
        The query whose rows are read from a database of SQLite or DuckDB, which may also stand
        behind its path: ``"desk.db?select team, body from tickets"``. By default the rows are those
        of its only table.
    labels : str or path, optional
        A file of the labels of FASTA and FASTQ, by their identifiers: an identifier, a tab and a
        label in each line, as taxonomies are kept.
    missing : bool, default True
        Whether cells of tables of numbers may be missing, which are NaN in the rows. If False, such
        a row is bad: for learners that take no missing values.
    on_mismatch : "missing" or "raise", default "missing"
        The effect of a cell that is no number in a table of numbers, below its first row: it is
        missing, which is counted and said at the end, or its row is bad.
    decimals : mapping of str to str, optional
        The decimal signs of columns of a table of numbers, such as ``{"price": ","}``, whose
        thousands are then separated by points. By default it is a point in each column.

    Returns
    -------
    Stream
        The blocks, read once and lazily: memory does not grow with the length of the source,
        except for the arrays of a .npz file, the index of a mail directory, and a sheet of a
        workbook, which is in a process of its own.

    Raises
    ------
    KeslerError
        Here or on iteration, if the arguments do not fit the source or it cannot be read.

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
    if (block_rows is not None and block_rows < 1) or skip_rows < 0:
        raise KeslerError("block_rows should be at least 1 and skip_rows at least 0")
    path, query = split_query(os.fsdecode(source))
    if query is not None and sql is not None:
        raise KeslerError(f"{path} has a query behind it and in sql=...: give one of them")
    texts = () if as_table else _split(text)
    given = label, texts, require_labels, as_table, words, id, missing, label_sets, on_mismatch
    fields = Fields(source_name(path), *given, decimals or {})
    width = 0 if width is None and vocabulary else width
    names = Names(Vocabulary() if vocabulary is None else vocabulary, grow, width)
    lines = Lines(path, max_line, encoding)
    dialect = Dialect(delimiter, quote, escape, skip_lines, header)
    own = {
        "sheet": sheet,
        "sql": query if sql is None else sql,
        "labels": None if labels is None else os.fsdecode(labels),
    }
    return Stream(
        reader_of(path, lines, format, fields, names, dialect, own),
        fields.source,
        require_labels=require_labels,
        skip_bad=skip_bad,
        skip_rows=skip_rows,
        origins=origins,
        label_sets=label_sets,
        block_rows=block_rows,
        share=lambda: lines.share,
    )


def split_query(source: str) -> tuple[str, str | None]:
    """Return the path of a database and the query behind it; others have None.

    Examples
    --------
    >>> split_query("rows.csv")
    ('rows.csv', None)
    """
    path, mark, query = source.partition("?")
    if not mark or os.path.exists(source) or not os.path.exists(path):
        return source, None
    return path, query


def _split(text: str | Sequence[str] | None) -> Sequence[str]:
    if isinstance(text, str):
        return [field.strip() for field in text.split(",")]
    return text or ()


def reader_of(
    path: str,
    lines: Lines,
    format: str | None,
    fields: Fields,
    names: Names,
    dialect: Dialect,
    own: Mapping[str, str | None],
) -> Reader:
    """Return the reader of a source, for the arguments of `open_stream`.

    Raises
    ------
    KeslerError
        If the arguments do not fit the source or it cannot be read.
    """
    if path.startswith(PREFIX):
        given = (format, fields.label, fields.id, lines.encoding, *own.values())
        if fields.text or any(each is not None for each in given):
            raise KeslerError(
                f"{path} needs no format, label, text, id, encoding, sheet, sql or labels: leave "
                "them out"
            )
        return dataset_reader(path, names, fields)
    if path != STANDARD_INPUT and not os.path.exists(path):
        raise KeslerError(f"{path} does not exist: check the path")
    found = _fitting(format or format_of(path, lines), path, fields, names)
    if lines.encoding is not None and not found.is_text:
        raise KeslerError(
            f"{fields.source} is read in a format that says its own encoding: leave out "
            "encoding=..."
        )
    if dialect != Dialect() and "dialect" not in found.takes:
        raise KeslerError(
            f"{fields.source} is read in a format without delimiter=..., quote=..., escape=..., "
            'skip_lines=... and header=...: leave them out, or give format="csv"'
        )
    for option, value in own.items():
        if value is not None and option not in found.takes:
            raise KeslerError(
                f"{fields.source} is read in a format without {option}=...: leave it out (it is "
                f"for {', '.join(name for name, each in READERS.items() if option in each.takes)})"
            )
    arguments = {
        "lines": lines,
        "dialect": dialect,
        "path": path,
        "fields": fields,
        "names": names,
        "width": names.width,
        "require_labels": fields.require_labels,
        "label_sets": fields.label_sets,
        "id": fields.id,
        **own,
    }
    return found.open(**{name: arguments[name] for name in found.takes})


def has_columns(source: str, format: str | None = None, encoding: str | None = None) -> bool:
    """Return whether a file has columns, or fields, as CSV, JSON and databases have.

    Examples
    --------
    >>> has_columns("a file", "csv"), has_columns("a file", "svmlight")
    (True, False)
    """
    name = format or format_of(source, Lines(source, encoding=encoding))
    return name in READERS and READERS[name].has_fields


def _fitting(name: str, path: str, fields: Fields, names: Names) -> Format:
    """Return a format by its name; raise KeslerError if other arguments do not fit it."""
    source = fields.source
    if name not in READERS:
        raise KeslerError(f"there is no format {name!r}: choose one of {', '.join(READERS)}")
    format = READERS[name]
    if path == STANDARD_INPUT and not format.is_piped:
        raise KeslerError(f"{name} can't be read from standard input: give a path")
    if os.path.isdir(path) and not format.directories:
        of_directories = _listed(lambda each: each.directories)
        raise KeslerError(
            f"{source} is a directory, which only {of_directories} can be: give a {name} file"
        )
    id = None if "id" in format.takes else fields.id
    has_options = (fields.label, id) != (None, None) or fields.text or fields.as_table
    if has_options and not format.has_fields:
        raise KeslerError(
            f"{source} is read as {name}, which has no fields for label=..., text=... and id=...: "
            f"leave them out (they are for {_listed(lambda each: each.has_fields)})"
        )
    if len(names.vocabulary) and not format.has_names:
        raise KeslerError(
            f"{source} is read as {name}, whose features are positions, but the vocabulary "
            "holds names: give it rows in the format of the training data"
        )
    return format


def _listed(is_wanted: Callable[[Format], bool]) -> str:
    return ", ".join(name for name, format in READERS.items() if is_wanted(format))
