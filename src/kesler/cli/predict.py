"""kesler predict: prediction of the class of each row."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.cli import files
from kesler.cli.methods import loaded, progress_of
from kesler.data.rows import Rows
from kesler.online.classifier import OnlineClassifier

Ranking = list[tuple[Any, float]]
"""Classes of one row with their scores, best first."""


def run(options: Namespace) -> None:
    """Print a line for each row."""
    model = loaded(options.model)
    stream = files.open_input_of_model(options, model, progress_of(model).reading)
    line = _line_maker(options)
    n_best = model.n_known_ if options.scores else options.top or 1
    for block in stream:
        sys.stdout.writelines(line(best) + "\n" for best in _rankings(model, block.rows, n_best))
        sys.stdout.flush()
    if stream.n_bad:
        print(f"kesler: {stream.n_bad} bad rows of {stream.source} were skipped", file=sys.stderr)


def _rankings(model: OnlineClassifier, rows: Rows, n_best: int) -> Iterator[Ranking]:
    classes, scores = model.classes_by_code_.tolist(), model.score_rows(rows)
    for row, best in zip(scores.tolist(), _best(scores, n_best).tolist(), strict=True):
        yield [(classes[i], row[i]) for i in best]


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


def _line_maker(options: Namespace) -> Callable[[Ranking], str]:
    if options.json_lines:
        return partial(_json_line, scores=options.scores, top=options.top is not None)
    return _scores_line if options.scores else _labels_line


def _labels_line(ranking: Ranking) -> str:
    return "\t".join(str(label) for label, _ in ranking)


def _scores_line(ranking: Ranking) -> str:
    return "\t".join([str(ranking[0][0]), *(f"{label}:{score:.7g}" for label, score in ranking)])


def _json_line(ranking: Ranking, *, scores: bool, top: bool) -> str:
    line: dict[str, Any] = {"label": ranking[0][0]}
    if scores:
        line["scores"] = {str(label): score for label, score in ranking}
    if top:
        line["top"] = [label for label, _ in ranking]
    return json.dumps(line, ensure_ascii=False)
