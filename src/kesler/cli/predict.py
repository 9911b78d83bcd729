"""kesler predict: prediction of the class of each row."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import Any

from kesler.cli.answers import Answer, Ranking, aligned, require_format, skipped, writing
from kesler.cli.files import require_distinct, require_writable
from kesler.cli.methods import loaded
from kesler.cli.model_input import blocks_for, opened_for, report_misfits
from kesler.data.inputs import BLOCK_ENTRIES
from kesler.data.rows import Rows
from kesler.online.answers import top_of_rows
from kesler.online.blocks import assess_rows, estimates, path_rows, readable_rows, sets_of
from kesler.online.classifier import OnlineClassifier
from kesler.readers.stream import Block


def run(options: Namespace) -> None:
    """Write an answer for each row."""
    require_format(options.output)
    require_distinct(options, "model", "output")
    require_writable(options.output)
    model = loaded(options)
    has_origins = options.skip_bad or options.id is not None or options.output is not None
    stream = opened_for(model, options, require_labels=False, id=options.id, origins=has_origins)
    given = (options.min_confidence, options.coverage, options.path)
    is_sure = any(option is not None for option in given)
    options.assessed = is_sure or (options.output is not None and estimates(model))
    n_before = 0  # the number of the last row that was written
    with writing(options, model.classes_by_code_) as write:
        blocks = blocks_for(model, stream, options)
        for block in (part for whole in blocks for part in _parts(model, whole, options)):
            answers = _answers(model, block, options)
            write([*(aligned(answers, n_before) if has_origins else answers)])
            n_before = block.origins[-1].number if block.origins else n_before
        if options.skip_bad:
            write([*skipped(n_before, stream.n_rows + stream.n_bad + 1)])
    report_misfits(model)


def _parts(model: OnlineClassifier, block: Block, options: Namespace) -> Iterator[Block]:
    """Yield parts of a block for which the numbers of all classes fit into memory, if needed."""
    step = len(block)
    if options.scores or options.assessed:
        step = max(1, BLOCK_ENTRIES // model.n_known_)
    for start in range(0, max(1, len(block)), max(1, step)):
        yield block[start : start + step] if step < len(block) else block


def _answers(model: OnlineClassifier, block: Block, options: Namespace) -> Iterator[Answer]:
    rows = readable_rows(model, block.rows)
    origins: Sequence[Any] = [None] * len(block) if block.origins is None else block.origins
    if options.path is not None:
        least = 0.9 if options.min_confidence is None else options.min_confidence
        paths = path_rows(model, rows, least, options.path)
        for found, origin in zip(paths, origins, strict=True):
            label, nodes = found.path or None, found.to_list()
            yield Answer(label, [], found.probability, nodes=nodes, origin=origin)
        return
    rankings = _rankings(model, rows, options)
    if not options.assessed:
        labels = _labels(model, rows)
        for label, ranking, origin in zip(labels, rankings, origins, strict=True):
            yield Answer(label, ranking, origin=origin)
        return
    said, least = assess_rows(model, rows), options.min_confidence or 0.0
    sets: list[Any] = [None] * len(block)
    if options.coverage is not None:
        sets = sets_of(model, said, options.coverage)
    labels, confidence = model.classes_by_code_[said.predictions].tolist(), said.confidence.tolist()
    for label, ranking, p, members, origin in zip(
        labels, rankings, confidence, sets, origins, strict=True
    ):
        yield Answer(label if p >= least else None, ranking, p, members, origin=origin)


def _labels(model: OnlineClassifier, rows: Rows) -> list[Any]:
    labels: list[Any] = model.classes_by_code_[model._fitted().predict(rows)].tolist()
    return labels


def _rankings(model: OnlineClassifier, rows: Rows, options: Namespace) -> list[Ranking]:
    n = model.n_known_ if options.scores else options.n
    return [[]] * len(rows) if n is None else top_of_rows(model, rows, n)
