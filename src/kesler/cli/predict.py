"""kesler predict: prediction of the class of each row."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.cli.methods import loaded, opened_for, warn_of_unknown
from kesler.data.labels import NEW
from kesler.data.rows import Rows
from kesler.online.blocks import assess_rows, score_rows, sets_of
from kesler.online.classifier import OnlineClassifier

Ranking = list[tuple[Any, float]]
"""Classes of one row with their scores, best first."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is printed of one row.

    Parameters
    ----------
    label : the predicted class, None if the confidence is too low.
    ranking : the best classes with their scores.
    confidence : the probability that the prediction is right, None if it is not asked for.
    members : the prediction set, None if it is not asked for.
    """

    label: Any
    ranking: Ranking
    confidence: float | None = None
    members: list[Any] | None = None


def run(options: Namespace) -> None:
    """Print a line for each row."""
    model = loaded(options.model)
    stream = opened_for(model, options, require_labels=False)
    write = _json_line if options.json_lines else _line
    for block in warn_of_unknown(model, stream):
        answers = _answers(model, block.rows, options)
        sys.stdout.writelines(write(each, options) + "\n" for each in answers)
        sys.stdout.flush()
    if stream.n_bad:
        print(f"kesler: {stream.n_bad} bad rows of {stream.source} were skipped", file=sys.stderr)


def _answers(model: OnlineClassifier, rows: Rows, options: Namespace) -> Iterator[Answer]:
    rankings = _rankings(model, rows, options)
    if options.min_confidence is None and options.coverage is None:
        yield from map(Answer, _labels(model, rows, rankings), rankings)
        return
    said, least = assess_rows(model, rows), options.min_confidence or 0.0
    sets: list[Any] = [None] * len(rows)
    if options.coverage is not None:
        sets = sets_of(model, said, options.coverage)
    labels, confidence = model.classes_by_code_[said.predictions].tolist(), said.confidence.tolist()
    for label, ranking, p, members in zip(labels, rankings, confidence, sets, strict=True):
        yield Answer(label if p >= least else None, ranking, p, members)


def _labels(model: OnlineClassifier, rows: Rows, rankings: list[Ranking]) -> list[Any]:
    """Return the predicted labels: those of the highest scores, or the medians of ranks."""
    if model.answer.kind != "rank":
        return [ranking[0][0] for ranking in rankings]
    codes = model._fitted().predict(model._input.readable(model, rows))
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


def _line(answer: Answer, options: Namespace) -> str:
    """Return the line of a row; the label is an empty field if it is None."""
    label = "" if answer.label is None else str(answer.label)
    if answer.members is not None:
        return "\t".join(map(str, answer.members))
    if options.scores:
        return "\t".join([label, *(f"{r}:{score:.7g}" for r, score in answer.ranking)])
    return "\t".join([label, *(str(r) for r, _ in answer.ranking[1:])])


def _json_line(answer: Answer, options: Namespace) -> str:
    line: dict[str, Any] = {"label": answer.label}
    if answer.confidence is not None:
        line["confidence"] = round(answer.confidence, 6)
    if answer.members is not None:
        line["set"] = [label for label in answer.members if label is not NEW]
        line["may_be_new"] = NEW in answer.members
    if options.scores:
        line["scores"] = {str(label): score for label, score in answer.ranking}
    if options.n is not None:
        line["top"] = [label for label, _ in answer.ranking]
    return json.dumps(line, ensure_ascii=False)
