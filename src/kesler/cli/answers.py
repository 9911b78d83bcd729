"""Answers of kesler predict: lines of text or JSON, and files of CSV, Parquet or JSON lines."""

from __future__ import annotations

import csv
import io
import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from kesler.data.labels import NEW, TopLabel, name_in_line
from kesler.data.whole_file import whole_file
from kesler.errors import KeslerError
from kesler.readers.reader import Origin, parse_number

Ranking = list[TopLabel]
"""The classes of highest score of one row, best first; empty if they are not asked for."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said of one row.

    Parameters
    ----------
    label : the predicted class, None if the confidence is too low or the row was skipped.
    ranking : the best classes that are asked for; None if the row was skipped.
    confidence : the probability that the prediction is right, None if it is not asked for.
    members : the prediction set, None if it is not asked for.
    nodes : the nodes of the path with their probabilities, None if it is not asked for.
    origin : where the row comes from, None if it is not asked for.
    """

    label: Any
    ranking: Ranking | None
    confidence: float | None = None
    members: list[Any] | None = None
    nodes: list[dict[str, Any]] | None = None
    origin: Origin | None = None


Write = Callable[[Sequence[Answer]], None]


@contextmanager
def writing(options: Namespace, classes: npt.NDArray[Any]) -> Iterator[Write]:
    """Open what `--output` names, or standard output, and yield the function that writes answers.

    Parameters
    ----------
    options : the arguments of the command.
    classes : the classes of the model, whose type that of the column of labels follows.
    """
    if options.output is None:
        line_of = json_line if options.json_lines else text_line
        yield lambda answers: _print(line_of(each, options) for each in answers)
        return
    write_file = _FILES[_suffix(options.output)]
    with whole_file(options.output) as file, write_file(file, options, classes) as write:
        yield write


def _print(lines: Iterator[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


# ---- lines --------------------------------------------------------------------------------------


def text_line(answer: Answer, options: Namespace) -> str:
    """Return the line of a row; the label is an empty field if it is None."""
    label = "" if answer.label is None else name_in_line(answer.label)
    if answer.members is not None:
        return "\t".join(map(name_in_line, answer.members))
    ranking = answer.ranking or []
    if options.scores:
        return "\t".join([label, *(f"{name_in_line(r)}:{score:.7g}" for r, score, _ in ranking)])
    return "\t".join([label, *(name_in_line(r) for r, *_ in ranking[1:])])


def json_line(answer: Answer, options: Namespace) -> str:
    """Return the line of a row as a JSON object."""
    return json.dumps(record_of(answer, options), ensure_ascii=False, default=str)


def record_of(answer: Answer, options: Namespace) -> dict[str, Any]:
    """Return an answer as names and values, the same names for each row of a run."""
    record: dict[str, Any] = {}
    if answer.origin is not None:
        record |= {} if options.id is None else {"id": answer.origin.id}
        record |= {"path": answer.origin.place} if isinstance(answer.origin.place, str) else {}
        record["row"] = answer.origin.number
    record["label"] = answer.label
    if options.assessed:
        record["confidence"] = answer.confidence and round(answer.confidence, 6)
    if options.coverage is not None:
        members = answer.members
        record["set"] = members and [label for label in members if label is not NEW]
        record["may_be_new"] = None if members is None else NEW in members
    if options.path is not None:
        record["nodes"] = answer.nodes
    if options.scores:
        scores = answer.ranking
        record["scores"] = scores and {str(label): score for label, score, _ in scores}
    if options.n is not None:
        top = answer.ranking
        record["top"] = None if top is None else [each._asdict() for each in top]
    return record


# ---- files --------------------------------------------------------------------------------------

BATCH_ROWS = 4096


@contextmanager
def _json_file(file: Any, options: Namespace, classes: npt.NDArray[Any]) -> Iterator[Write]:
    def write(answers: Sequence[Answer]) -> None:
        file.writelines(f"{json_line(each, options)}\n".encode() for each in answers)

    yield write


@contextmanager
def _csv_file(file: Any, options: Namespace, classes: npt.NDArray[Any]) -> Iterator[Write]:
    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    table = csv.writer(text, lineterminator="\n")
    quoted = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    columns = list[str]()

    def write(answers: Sequence[Answer]) -> None:
        records = [record_of(each, options) for each in answers]
        if records and not columns:
            columns.extend(_columns(records))
            table.writerow(columns)
        for record in records:
            cells = [csv_cell(record.get(name)) for name in columns]
            # A return alone ends a row for many readers, but not for this writer.
            is_plain = not any(isinstance(cell, str) and "\r" in cell for cell in cells)
            (table if is_plain else quoted).writerow(cells)

    yield write
    text.detach()


def csv_cell(value: Any) -> Any:
    """Return a value as a cell of CSV: lists as JSON, and no text as a formula.

    A spreadsheet runs a text that begins with =, +, -, @, a tab or a line end; an apostrophe before
    it prevents that. Numbers remain as they are.

    Examples
    --------
    >>> csv_cell(["a", 1]), csv_cell("=1+1"), csv_cell("-1"), csv_cell(-1), csv_cell(None)
    ('["a", 1]', "'=1+1", '-1', -1, '')
    """
    if value is None:
        return ""
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value
    is_formula = (
        isinstance(text, str) and text[:1] in {*"=+-@\t\r\n"} and parse_number(text) is None
    )
    return f"'{text}" if is_formula else text


@contextmanager
def _parquet_file(file: Any, options: Namespace, classes: npt.NDArray[Any]) -> Iterator[Write]:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    labels = pa.array(classes.tolist()).type if len(classes) else pa.string()
    given = {"label": labels, "confidence": pa.float64(), "set": pa.list_(labels)}
    top = {"label": labels, "score": pa.float64(), "probability": pa.float64()}
    given |= {"top": pa.list_(pa.struct([*top.items()]))}
    node = {"path": pa.string(), "probability": pa.float64(), "new": pa.float64()}
    given |= {"nodes": pa.list_(pa.struct([*node.items()]))}
    given |= {"scores": pa.map_(pa.string(), pa.float64())}
    given |= {"row": pa.int64(), "path": pa.string(), "may_be_new": pa.bool_()}
    writer: Any = None

    def write(answers: Sequence[Answer]) -> None:
        nonlocal writer
        records = [_with_pairs(record_of(each, options)) for each in answers]
        if writer is None:
            ids = pa.array([record.get("id") for record in records]).type
            given["id"] = pa.string() if pa.types.is_null(ids) else ids
            schema = pa.schema([(name, given[name]) for name in _columns(records)])
            writer = ParquetWriter(file, schema)
        try:
            writer.write_table(pa.Table.from_pylist(records, writer.schema))
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise KeslerError(
                f"{options.output}: the column of --id holds values of several types ({error}): "
                "write .csv or .jsonl"
            ) from None

    yield write
    if writer is not None:
        writer.close()


def _with_pairs(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record whose scores are pairs, as a map of Arrow is made of."""
    scores = record.get("scores")
    return record if scores is None else record | {"scores": [*scores.items()]}


def _columns(records: Sequence[dict[str, Any]]) -> list[str]:
    """Return the names of the fullest record; a row that was skipped may lack some."""
    return [*max(records, key=len)]


_FILES: dict[str, Callable[..., Any]] = {
    ".csv": _csv_file,
    ".parquet": _parquet_file,
    ".jsonl": _json_file,
}


def _suffix(path: str) -> str:
    return Path(path).suffix.lower()


def require_format(path: str | None) -> None:
    """Raise unless the name of a file tells one of the formats."""
    if path is not None and _suffix(path) not in _FILES:
        raise KeslerError(
            f"--output {path}: its name tells no format: end it with {', '.join(_FILES)}"
        )


def aligned(answers: Iterator[Answer], n_before: int) -> Iterator[Answer]:
    """Yield answers with an empty one for each row that was skipped before or between them.

    Parameters
    ----------
    answers : those of a block, with their origins.
    n_before : the number of the last row before them.
    """
    for answer in answers:
        assert answer.origin is not None
        yield from skipped(n_before, answer.origin.number)
        n_before = answer.origin.number
        yield answer


def skipped(after: int, before: int) -> Iterator[Answer]:
    """Yield the answers of skipped rows, whose numbers are between two others."""
    for number in range(after + 1, before):
        yield Answer(None, None, origin=Origin(number, number))
