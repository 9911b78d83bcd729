"""kesler predict: prediction of the class of each row."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.cli.answers import Answer, Ranking, aligned, require_format, skipped, writing
from kesler.cli.files import require_distinct, require_writable
from kesler.cli.methods import loaded
from kesler.cli.model_input import blocks_for, opened_for, report_misfits
from kesler.data.rows import Rows
from kesler.online.blocks import (
    assess_rows,
    estimates,
    path_rows,
    readable_rows,
    score_rows,
    sets_of,
)
from kesler.online.classifier import OnlineClassifier
from kesler.readers.stream import Block


def run(options: Namespace) -> None:
    """Write an answer for each row."""
    require_format(options.output)
    require_distinct(options, "model", "output")
    require_writable(options.output)
    model = loaded(options.model)
    has_origins = options.skip_bad or options.id is not None or options.output is not None
    stream = opened_for(model, options, require_labels=False, id=options.id, origins=has_origins)
    given = (options.min_confidence, options.coverage, options.path)
    is_sure = any(option is not None for option in given)
    options.assessed = is_sure or (options.output is not None and estimates(model))
    n_before = 0  # the number of the last row that was written
    with writing(options, model.classes_by_code_) as write:
        for block in blocks_for(model, stream, options):
            answers = _answers(model, block, options)
            write([*(aligned(answers, n_before) if has_origins else answers)])
            n_before = block.origins[-1].number if block.origins else n_before
        if options.skip_bad:
            write([*skipped(n_before, stream.n_rows + stream.n_bad + 1)])
    report_misfits(model)


def _answers(model: OnlineClassifier, block: Block, options: Namespace) -> Iterator[Answer]:
    rows = readable_rows(model, block.rows)
    origins: Sequence[Any] = [None] * len(block) if block.origins is None else block.origins
    if options.path is not None:
        least = 0.9 if options.min_confidence is None else options.min_confidence
        paths = path_rows(model, rows, least, options.path)
        for found, origin in zip(paths, origins, strict=True):
            yield Answer(found.path or None, [], found.probability, origin=origin)
        return
    rankings = _rankings(model, rows, options)
    if not options.assessed:
        labels = _labels(model, rows, rankings)
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
        yield Answer(label if p >= least else None, ranking, p, members, origin)


def _labels(model: OnlineClassifier, rows: Rows, rankings: list[Ranking]) -> list[Any]:
    """Return the predicted labels: those of the highest scores, or the medians of ranks."""
    if model.answer.kind != "rank":
        return [ranking[0][0] for ranking in rankings]
    codes = model._fitted().predict(rows)
    labels: list[Any] = model.classes_by_code_[codes].tolist()
    return labels


def _rankings(model: OnlineClassifier, rows: Rows, options: Namespace) -> list[Ranking]:
    n_best = model.n_known_ if options.scores else options.n or 1
    classes, scores = model.classes_by_code_.tolist(), score_rows(model, rows)
    best = _best(scores, n_best).tolist()
    return [
        [(classes[i], row[i]) for i in codes]
        for row, codes in zip(scores.tolist(), best, strict=True)
    ]


def _best(scores: npt.NDArray[np.float32], n_best: int) -> npt.NDArray[np.int64]:
    """Return the codes of the classes of highest score; ties are in the order of codes.

    Examples
    --------
    >>> _best(np.array([[0.5, 2.0, 0.5]]), 2).tolist()
    [[1, 0]]
    """
    order: npt.NDArray[np.int64] = (
        scores.argmax(axis=1)[:, None] if n_best == 1 else np.argsort(-scores, kind="stable")
    )
    return order[:, :n_best]
