"""Input streams and output files of the commands."""

from __future__ import annotations

import io
import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from kesler.cli.json_output import STANDARD_OUTPUT
from kesler.cli.kinds import columns, texts
from kesler.data.rows import Rows
from kesler.data.schema.inference import N_ROWS, infer
from kesler.data.schema.measurements import are_measurements
from kesler.data.schema.records import Unfit, table_of
from kesler.data.schema.schema import Column, Schema
from kesler.datasets.dataset import RecordDataset
from kesler.datasets.loaders import load
from kesler.errors import KeslerError
from kesler.evaluation.comparison import Comparison, Line
from kesler.readers.compression import STANDARD_INPUT, Begun, require_standard_input
from kesler.readers.jsonl import TEXT
from kesler.readers.lines import Lines
from kesler.readers.opening import PREFIX, format_of, has_columns, open_stream, split_query
from kesler.readers.reader import parse_number
from kesler.readers.stream import Block, Stream

if TYPE_CHECKING:
    from kesler.bounds.mistakes import MistakeBound


LINES_AHEAD, MOST_AHEAD = 1024, 1 << 20
"""Lines and bytes of standard input by which its reading is found."""
READING = (
    *("format", "label", "text", "encoding", "delimiter", "quote", "escape", "skip_lines"),
    *("sheet", "sql", "labels"),
)
"""The options that are arguments of `open_stream` by the same names."""


def reading(options: Namespace) -> dict[str, Any]:
    """Return the reading options that are given on the command line."""
    given = {name: getattr(options, name) for name in READING}
    given["header"] = False if options.no_header else None
    found = {name: value for name, value in given.items() if value is not None}
    if "text" in found:
        found["text"] = ",".join(name for name, _ in texts(options))
    has_vectors = getattr(options, "vectors", None) is not None  # which belong to columns of texts
    is_table = has_vectors or columns(options) is not None
    return {**found, "as_table": True} if is_table else found


def of_source(options: Namespace, source: str) -> Namespace:
    """Return the options for one of several sources, which may have a query behind it."""
    path, query = split_query(source)
    if query is not None and options.sql is not None:
        raise KeslerError(f"{path} has a query behind it and in --sql: give one of them")
    return Namespace(**{**vars(options), "input": path, "sql": query or options.sql})


def reading_of_new(options: Namespace) -> dict[str, Any]:
    """Return the reading options for a new model: those given, and whether INPUT is a table.

    Without options of columns, a file is a table if one of its first rows holds a text of several
    words, a date, a list, an identifier or a number in another notation than 1234.5: as a category,
    each of these would be new in most rows. It is also a table if there are categories or numbers
    with gaps, or if JSON holds the same numbers in each row. Columns of texts are a table, unless
    JSON has one of long texts.
    """
    if options.input == STANDARD_INPUT:
        with start_of_standard_input() as path, suppress(KeslerError):  # raised again with its name
            start = of_source(options, path)
            found = reading_of_new(start)
            options.text = start.text
            return found
        return reading(options)
    if options.text is None and columns(options) is None and _is_of_fasttext(options):
        options.text = TEXT  # texts however few of them differ
    found = reading(options)
    if "as_table" in found:
        return found
    if "text" in found:
        has_features = any(features for _, features in texts(options))
        are_words = not has_features and _is_of_long_texts(options, found)
        return found if are_words else {**found, "as_table": True}
    if options.input.startswith(PREFIX):
        return {**found, "as_table": True} if _is_of_short_texts(options.input) else found
    rows = first_rows(options, found) if can_be_read_again(options.input) else None
    if rows is None:
        return found
    schema = infer(rows.columns, {})
    if _has_texts(options) and _is_of_words_alone(schema):
        return found  # words alone are read without a schema, in much less time
    needs_kinds = any(_is_not_one_hot(column, rows.columns[column.name]) for column in schema)
    is_measured = _is_measured(schema, rows, of_json=_has_texts(options))
    categories = (rows.columns[each.name] for each in schema.of_kind("category"))
    is_table = needs_kinds or is_measured or not all(map(_are_plain, categories))
    return {**found, "as_table": True} if is_table else found


@contextmanager
def start_of_standard_input(n_lines: int = LINES_AHEAD) -> Iterator[str]:
    """Write the first lines of standard input, which remain to be read, to a file for a while."""
    require_standard_input()
    piped: Any = cast(io.TextIOWrapper, sys.stdin).detach()
    start = bytearray()
    while len(start) < MOST_AHEAD and start.count(b"\n") < n_lines:
        piece = piped.read1(MOST_AHEAD)
        if not piece:
            break
        start += piece
    else:
        piece = start[start.rfind(b"\n") + 1 :]  # of a row that goes on
    sys.stdin = io.TextIOWrapper(io.BufferedReader(Begun(piped, bytes(start))))
    with TemporaryDirectory() as folder:
        path = Path(folder, "rows")
        path.write_bytes(start.removesuffix(piece))
        yield str(path)


def _is_of_long_texts(options: Namespace, how: dict[str, Any]) -> bool:
    """Return whether the fields of texts are one of JSON, of which only the words are features."""
    if not _has_texts(options) or "," in how["text"] or not can_be_read_again(options.input):
        return False
    rows = first_rows(options, how)
    cells = None if rows is None else rows.columns.get(how["text"])
    return cells is None or _is_of_words_alone(
        infer({"text": cells}, {"text": Column("text", "text")})
    )


def left_out(options: Namespace, how: dict[str, Any]) -> list[str]:
    """Return the columns of INPUT that are not learnt beside those of texts."""
    learns_all = columns(options) is not None or ("as_table" in how and "text" not in how)
    if learns_all or not can_be_read_again(options.input):
        return []
    rows = first_rows(options, {name: each for name, each in how.items() if name != "text"})
    named = how.get("text", "text" if _has_texts(options) else "").split(",")
    names = set() if rows is None else {*rows.columns} - {how.get("label", "label")}
    learnt = names.intersection(named)
    return [name for name in rows.columns if name in names - learnt] if learnt else []


def can_be_read_again(source: str) -> bool:
    """Return whether a source is a file or a directory, and no pipe."""
    return os.path.isfile(source) or os.path.isdir(source)


def _is_measured(schema: Schema, rows: Any, *, of_json: bool) -> bool:
    """Return whether rows hold measurements that only a table gives their scale.

    These are numbers beside categories, numbers with gaps, and in JSON numbers that the objects
    have in common.
    """
    numbers = {each.name: rows.columns[each.name] for each in schema.of_kind("number")}
    if of_json:
        return are_measurements(numbers)
    has_others = len(numbers) < len(schema.learnt)
    return bool(numbers) and (has_others or any(None in cells for cells in rows.columns.values()))


def _is_not_one_hot(column: Column, cells: list[Any]) -> bool:
    """Return whether the cells of a column as categories would be new in most rows."""
    if any(isinstance(cell, Unfit) for cell in cells):
        return True  # ignored with a warning, where a list of names and values is refused
    if column.kind != "number":
        return column.kind in NOT_ONE_HOT
    return bool(column.options) or not _are_plain(cells)


def _are_plain(cells: list[Any]) -> bool:
    """Return whether all texts in cells are numbers such as 1234.5."""
    return all(not isinstance(cell, str) or parse_number(cell) is not None for cell in cells)


def _is_of_words_alone(schema: Schema) -> bool:
    """Return whether rows are a field "text" each, of which only the words are features."""
    return [(each.name, each.kind, each.options) for each in schema] == [("text", "text", {})]


def _is_of_short_texts(source: str) -> bool:
    """Return whether the rows of a data set are a short text each, with features beside words."""
    dataset = load(source.removeprefix(PREFIX))
    if not isinstance(dataset, RecordDataset):
        return False
    columns = [*infer(table_of(dataset.records[:N_ROWS]).columns, {})]
    return len(columns) == 1 and columns[0].kind == "text" and bool(columns[0].options)


def _has_texts(options: Namespace) -> bool:
    """Return whether the field "text" of INPUT is a text unless told otherwise, as in JSON."""
    return _format_of(options) in ("jsonl", "json", "fasttext")


def _is_of_fasttext(options: Namespace) -> bool:
    is_found = options.format is None and can_be_read_again(options.input)
    return (_format_of(options) if is_found else options.format) == "fasttext"


def _format_of(options: Namespace) -> str:
    lines = Lines(options.input, encoding=options.encoding)
    return str(options.format or format_of(options.input, lines))


def first_rows(options: Namespace, how: dict[str, Any]) -> Any:
    """Return the first rows of a file as a table; None if its format has no columns."""
    if not has_columns(options.input, options.format, options.encoding):
        return None
    given = {**how, "as_table": True, "block_rows": N_ROWS}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is said when the rows are learnt
            first = next(iter(open_stream(options.input, skip_bad=True, **given)), None)
    except KeslerError:  # raised again when the rows are learnt, with their numbers
        return None
    return None if first is None else first.rows


NOT_ONE_HOT = {"text", "sequence", "date", "tags", "vector", "identifier"}


def open_input(options: Namespace, how: dict[str, Any], **more: Any) -> Stream:
    """Open INPUT with options from `reading` and further arguments of `open_stream`."""
    given = {} if options.max_line is None else {"max_line": options.max_line}
    stream = open_stream(options.input, skip_bad=options.skip_bad, **given, **how, **more)
    options.opened.setdefault(options.input, stream)
    return stream


@dataclass(frozen=True)
class Table:
    """All rows of a stream.

    Parameters
    ----------
    X : float32 array or CSR array of shape (n_rows, n_features)
    y : array of shape (n_rows,)
    weights : array of shape (n_rows,) or None
    """

    X: Any
    y: npt.NDArray[Any]
    weights: npt.NDArray[np.float64] | None

    def take(self, numbers: npt.NDArray[np.int64]) -> Table:
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[numbers]
        return Table(self.X[numbers], self.y[numbers], weights)


def whole(blocks: Iterable[Block]) -> Table:
    """Read all blocks and return their rows as a table.

    Raises
    ------
    KeslerError
        If the rows have ratings by sub-experts.
    """
    pieces = list(blocks)
    rows = Rows.concatenate([piece.rows for piece in pieces]).with_presence()
    if rows.ratings is not None:
        raise KeslerError(
            "these rows are ratings by sub-experts, from which no features can be selected: "
            "give rows of features"
        )
    labels = np.array([label for piece in pieces for label in piece.labels])
    if all(piece.weights is None for piece in pieces):
        return Table(_matrix(rows), labels, None)
    weights = [np.ones(len(p)) if p.weights is None else p.weights for p in pieces]
    return Table(_matrix(rows), labels, np.concatenate(weights))


def _matrix(rows: Rows) -> Any:
    if rows.dense:
        return rows.values.reshape(rows.shape)
    from scipy import sparse

    return sparse.csr_array((rows.values, rows.indices, rows.indptr), shape=rows.shape)


def shuffled(blocks: Iterable[Block], seed: int) -> Block:
    """Read all blocks and return their rows as one block, shuffled with a seed."""
    pieces = list(blocks)
    kind: Any = type(pieces[0].rows)
    labels = [label for piece in pieces for label in piece.labels]
    weights = [np.ones(len(p)) if p.weights is None else p.weights for p in pieces]
    order = np.random.default_rng(seed).permutation(len(labels))
    return Block(
        kind.concatenate([piece.rows for piece in pieces]).take(order),
        [labels[i] for i in order],
        np.concatenate(weights)[order],
    )


def require_writable(path: str | None) -> None:
    """Raise if a file cannot be written at this path; None means no file."""
    if path is None or path == STANDARD_OUTPUT:
        return
    folder = Path(path).parent
    if Path(path).is_dir() or not os.access(folder, os.W_OK):
        raise KeslerError(f"{path} cannot be written: name a file in a writable folder")


def require_distinct(options: Namespace, *names: str) -> None:
    """Raise if two of INPUT, MODEL and the output files are the same file."""
    taken: dict[Path, str] = {}
    if getattr(options, "input", STANDARD_INPUT) != STANDARD_INPUT:
        taken[Path(options.input).resolve()] = "INPUT"
    for name in names:
        path = getattr(options, name)
        if path is None:
            continue
        place, said = Path(path).resolve(), "MODEL" if name == "model" else f"--{name}"
        if place in taken:
            raise KeslerError(
                f"{said} {path} is the same file as {taken[place]}: give a different file"
            )
        taken[place] = said


def account(
    stream: Stream,
    comparison: Comparison,
    lines: list[Line],
    bounds: Mapping[str, MistakeBound | KeslerError],
    asked: Mapping[str, int],
) -> dict[str, Any]:
    """Return a run as a JSON object: the input, the table, and the result of each method."""
    methods = {name: each.to_json() for name, each in comparison.results().items()}
    for name, bound in bounds.items():
        methods[name]["bound"] = None if isinstance(bound, KeslerError) else bound.to_json()
    for name, n_asked in asked.items():
        methods[name]["asked"] = n_asked
    return {
        "input": stream.source,
        "rows": stream.n_rows,
        "bad_rows": stream.n_bad,
        "unlabelled_rows": stream.losses.n_unlabelled,
        "features": comparison.n_features,
        "classes": comparison.n_classes,
        "table": [line.to_json() for line in lines],
        "methods": methods,
    }
