"""Answers: what a model says of a row, as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kesler.data.labels import NEW, plain
from kesler.errors import KeslerError
from kesler.service.bodies import MOST_FEATURES, PredictRequest


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted beside the predicted class.

    Parameters
    ----------
    coverage : float or None, default None
        The share of rows whose set contains the right class; None for no set.
    probabilities : int, default 0
        The number of the most probable classes whose probabilities are given.
    explain : int, default 0
        The number of features of the explanation, 0 for none.
    separator : str or None, default None
        What separates the names of classes that are paths; None for no answer by paths.
    min_confidence : float or None, default None
        The least probability of what is answered. With a separator that is the path, which ends at
        a node of at least this probability, 0.9 if it is None; else the class, which is None below.
    """

    coverage: float | None = None
    probabilities: int = 0
    explain: int = 0
    separator: str | None = None
    min_confidence: float | None = None

    @classmethod
    def of(cls, body: PredictRequest) -> Wanted:
        """Return what a request asks for."""
        n_classes = MOST_FEATURES if body.probabilities is True else int(body.probabilities)
        return cls(body.coverage, n_classes, body.explain, body.separator, body.min_confidence)

    @property
    def least_of_label(self) -> float | None:
        """The least confidence in the class; None for any, as where the path is bounded."""
        return self.min_confidence if self.separator is None else None


def answer_of(estimator: Any, row: Any, wanted: Wanted) -> dict[str, Any]:
    """Return what a model says of a row.

    Parameters
    ----------
    estimator : estimator with `predict_one`
        All that is said belongs to one state of it.
    row : a row as the model learns it.
    wanted : Wanted
        What is said beside the class.

    Returns
    -------
    dict with "label", None before any class is known and where it is not sure enough; "confidence"
    where the model has one; and what is wanted.

    Raises
    ------
    KeslerError
        If something is wanted that the model has not, such as confidences.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> model = OnlineClassifier().learn_one("win cash", "spam").learn_one("team lunch", "work")
    >>> answer_of(model, "cash", Wanted())["label"]
    'spam'
    """
    if not estimator.n_known_:
        return {"label": None, "confidence": None}
    with estimator._between_trials():
        label, confidence = estimator.predict_one(row), _confidence(estimator, row, wanted)
        is_sure = confidence is None or confidence >= (wanted.least_of_label or 0.0)
        answer: dict[str, Any] = {"label": jsonable(label) if is_sure else None}
        answer["confidence"] = confidence
        if wanted.coverage is not None:
            found = estimator.predict_set_one(row, wanted.coverage)
            answer["set"] = [jsonable(each) for each in found if each is not NEW]
            answer["may_be_new"] = any(each is NEW for each in found)
        if wanted.probabilities:
            answer["probabilities"] = [
                {"label": label, "probability": p}
                for label, p in ranked(estimator, row, wanted.probabilities)
            ]
        if wanted.explain:
            answer["explanation"] = estimator.explain_one(row, n=wanted.explain).to_dict()
        if wanted.separator is not None:
            answer["path"] = _path(estimator, row, wanted)
    return answer


def _path(estimator: Any, row: Any, wanted: Wanted) -> dict[str, Any]:
    from kesler.online.blocks import path_of_row

    least = {} if wanted.min_confidence is None else {"min_confidence": wanted.min_confidence}
    found = path_of_row(estimator, row, separator=wanted.separator, **least)
    return {"path": found.path, "probability": found.probability, "nodes": found.to_list()}


def ranked(estimator: Any, row: Any, n: int) -> list[tuple[Any, float]]:
    """Return the n known classes of highest score with their probabilities, the highest first."""
    found = estimator.predict_top_one(row, n)
    return [(jsonable(label), probability) for label, _, probability in found]


def _confidence(estimator: Any, row: Any, wanted: Wanted) -> float | None:
    """Return the confidence in the prediction, None where the model has none and needs none."""
    try:
        return float(estimator.confidence_one(row))
    except (AttributeError, KeslerError) as error:
        if wanted.least_of_label is None:
            return None
        raise KeslerError(
            f"min_confidence needs the confidence of a label, but {error}; or leave min_confidence "
            "out of the request"
        ) from error


def jsonable(value: Any) -> Any:
    """Return a label, a set of labels or a ranking as JSON can hold it.

    Examples
    --------
    >>> import numpy as np
    >>> jsonable(np.str_("a")), jsonable({"b", "a"})
    ('a', ['a', 'b'])
    """
    if isinstance(value, (set, frozenset)):
        return sorted((jsonable(each) for each in value), key=str)
    if isinstance(value, np.ndarray):
        return [jsonable(each) for each in value.tolist()]
    if isinstance(value, (list, tuple)):
        return [jsonable(each) for each in value]
    return plain(value)
