"""INPUT as the rows of a model: read as those that it learnt, with what it does not know."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from kesler.cli.files import (
    LINES_AHEAD,
    can_be_read_again,
    first_rows,
    of_source,
    open_input,
    reading,
    start_of_standard_input,
)
from kesler.cli.kinds import columns
from kesler.cli.methods import progress_of
from kesler.data.rows import Rows
from kesler.data.schema.kinds import KINDS, NOT_LEARNT
from kesler.data.schema.schema import Column, Schema
from kesler.errors import KeslerError, MismatchError
from kesler.online.classifier import OnlineClassifier
from kesler.readers.compression import STANDARD_INPUT
from kesler.readers.opening import has_columns
from kesler.readers.reader import BadRow
from kesler.readers.records import listed
from kesler.readers.stream import Block, Stream

ENOUGH_ROWS = 20  # rows whose features are not all new by accident


def known_by(model: OnlineClassifier) -> dict[str, Any]:
    """Return the arguments of `open_stream` that follow from a model."""
    missing = model._input.takes_missing(model)
    return {
        "vocabulary": model.vocabulary_,
        "width": model.width_,
        "missing": missing,
        "on_mismatch": model.on_mismatch,
    }


def report_misfits(model: OnlineClassifier) -> None:
    """Say on standard error which cells of the rows that were scored did not fit their columns."""
    scored = model._input.columns.scored
    for column in scored or ():
        if column.n_misfits:
            advice = KINDS[column.kind].advice.format(name=column.name)
            how = f"; if they are, say how they are written: {advice}" if advice else ""
            misfits = f"column {column.name!r}: {column.counted_misfits}"
            print(f"kesler: {misfits}{how if column.is_wrong else ''}", file=sys.stderr)


def opened_for(
    model: OnlineClassifier, options: Namespace, *, require_labels: bool, **given: Any
) -> Stream:
    """Open INPUT as the model's own input was read.

    Rows from a pipe are read one by one if they need no labels, since each has an answer. Further
    arguments are those of `open_stream`.
    """
    has_no_columns = os.path.isfile(options.input) and not has_columns(
        options.input, options.format
    )
    of_tables = {} if model.schema_ is None or has_no_columns else {"as_table": True}
    learnt = {name: each for name, each in progress_of(model).reading.items() if name != "labels"}
    how = {**of_texts(model, options), **learnt, **reading(options)}
    how |= of_tables
    how = _of_numbers(model, options, how, require_labels=require_labels)
    more: dict[str, Any] = {**known_by(model), "grow": False, **given}
    if not require_labels and options.input == STANDARD_INPUT:
        more["block_rows"] = 1
    stream = open_input(options, how, require_labels=require_labels, **more)
    model.name_features(stream.vocabulary)
    model._input.columns.count_scored()
    return stream


def blocks_for(model: OnlineClassifier, stream: Stream, options: Namespace) -> Iterator[Block]:
    """Yield the blocks of INPUT, whose texts have the names of those that the model learnt.

    What the model does not know of the first block, or the block lacks, is said on standard error.
    """
    renamed = _renamed(model, options)
    for i, block in enumerate(stream):
        found = block
        if renamed and not isinstance(block.rows, Rows):
            cells = {renamed.get(name, name): each for name, each in block.rows.columns.items()}
            found = replace(block, rows=replace(block.rows, columns=cells))
        if i == 0:
            _tell_unknown(model, found, stream.source)
            _read_as_written(model, found, options)
        found = without_misfits(model, found, stream, learn=False)
        if len(found):
            yield found


def without_misfits(model: OnlineClassifier, block: Block, stream: Stream, *, learn: bool) -> Block:
    """Return the rows of a block whose cells fit, if others are errors and bad rows are skipped."""
    if not stream.skip_bad or model.on_mismatch != "raise" or isinstance(block.rows, Rows):
        return block
    while len(block):
        try:
            model._input.columns.require_fit(model, block.rows, learn=learn)
            break
        except MismatchError as error:
            places: Any = block.rows.places
            fault = BadRow(error.said, block.labels[error.row])
            stream.refuse(f"{places.unit} {places.numbers[error.row]}", fault)
            block = block.without(error.row)
    return block


def _renamed(model: OnlineClassifier, options: Namespace) -> Mapping[str, str]:
    """Return the names of texts that the model learnt, by those that are given for them."""
    given, learnt = (
        how.get("text", "").split(",") for how in (reading(options), progress_of(model).reading)
    )
    return dict(zip(given, learnt, strict=True)) if len(given) == len(learnt) else {}


def _tell_unknown(model: OnlineClassifier, block: Block, source: str) -> None:
    if isinstance(block.rows, Rows):
        if _is_unknown(model, block):
            print(
                f"kesler: the model knows none of the features of the first {len(block):,} rows: "
                "read them as those that it learnt, for instance with --text NAME",
                file=sys.stderr,
            )
        return
    names = [each.name for each in model.schema_ or () if each.kind not in NOT_LEARNT]
    missing = [name for name in names if name not in block.rows.columns]
    if missing:
        print(
            f"kesler: {source} lacks {listed(missing)}, which the model learnt: their cells count "
            f"as missing (it has {listed(block.rows.columns)})",
            file=sys.stderr,
        )


def _read_as_written(model: OnlineClassifier, block: Block, options: Namespace) -> None:
    """Read numbers and dates as INPUT writes them."""
    reader = model._input.columns
    if not isinstance(block.rows, Rows) and reader.state is not None:
        reader.score_as(_as_written(reader.state.schema, block.rows, options))


def _of_numbers(
    model: OnlineClassifier, options: Namespace, how: dict[str, Any], *, require_labels: bool
) -> dict[str, Any]:
    """Return how INPUT is read, with its decimal signs if the model learnt numbers alone."""
    names = model.vocabulary_
    if model.schema_ is not None or not model.width_ or names is None:
        return how
    ahead = (LINES_AHEAD,) if require_labels else UP_TO_A_ROW
    rows = _first_rows(options, {**how, "require_labels": require_labels}, ahead)
    if rows is None:
        return how
    schema = Schema(tuple(Column(name, "number") for name in names.names))
    found = _as_written(schema, rows, options)
    signs = {each.name: each.options["decimal"] for each in found if "decimal" in each.options}
    # Kinds of columns, which may be given with a decimal sign, make no table for this model.
    return {name: each for name, each in how.items() if name != "as_table"} | {"decimals": signs}


UP_TO_A_ROW = 1, 2
"""Numbers of lines up to the first row of a pipe, which is answered before more are awaited."""


def _first_rows(options: Namespace, how: dict[str, Any], ahead: Iterable[int]) -> Any:
    """Return the first rows of INPUT as a table; None if it has no columns or is another pipe.

    Of standard input they are within the first of some numbers of lines that hold a row.
    """
    if options.input != STANDARD_INPUT:
        return first_rows(options, how) if can_be_read_again(options.input) else None
    for n_lines in ahead:
        found, is_table = None, False
        with start_of_standard_input(n_lines) as path, suppress(KeslerError):
            is_table = has_columns(path, options.format, options.encoding)
            found = first_rows(of_source(options, path), how) if is_table else None
        if found is not None or not is_table:
            return found
    return None


def _as_written(schema: Schema, rows: Any, options: Namespace) -> Schema:
    """Return the columns of a model as INPUT writes them; say so where its cells alone show it."""
    from kesler.data.schema.other_files import as_written
    from kesler.data.schema.reading import held_by
    from kesler.data.schema.schema import OTHERS, given_columns

    given = given_columns(columns(options) or {})
    found = as_written(schema, rows.columns, given)
    for before, after in zip(schema, found, strict=True):
        if before.options != after.options and after.name not in given and OTHERS not in given:
            print(
                f"kesler: column {after.name!r} is read as {held_by(after)}, which its first "
                f"{len(rows):,} cells show; the model learnt {held_by(before)}: if that is wrong, "
                f"name it with {KINDS[after.kind].advice.format(name=after.name)}",
                file=sys.stderr,
            )
    return found


def _is_unknown(model: OnlineClassifier, block: Block) -> bool:
    """Return whether no feature of a block is known, of enough rows that this is no accident."""
    names, rows = model.vocabulary_, block.rows
    if names is None or not isinstance(rows, Rows) or rows.dense or len(block) < ENOUGH_ROWS:
        return False
    return len(rows.indices) > 0 and int(rows.indices.min()) >= len(names)


def of_texts(model: OnlineClassifier, options: Namespace) -> dict[str, Any]:
    """Return how a file is read for a model that learnt short texts in Python: as such texts."""
    if not model.has_text_lengths_:
        return {}
    may_look = options.format is not None or can_be_read_again(options.input)
    has_fields = may_look and has_columns(options.input, options.format, options.encoding)
    words = partial(model._input.words_of, model)
    return {"words": words, **({"text": "text"} if has_fields else {})}
