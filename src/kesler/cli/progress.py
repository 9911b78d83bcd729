"""Progress: how a model has been learnt and how far, as the notes in its file keep it."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from kesler.cli.inputs import reading
from kesler.cli.methods import Method, chosen
from kesler.errors import KeslerError
from kesler.estimators import OnlineClassifier
from kesler.estimators.files import load


@dataclass(frozen=True, slots=True)
class Progress:
    """How a model has been learnt, and how far.

    Parameters
    ----------
    method : dict
        The fields of its :class:`~kesler.cli.methods.Method`; empty if it was not made here.
    reading : dict
        How its input was read.
    input : str
        The last part of the path of its input.
    shuffle : int or None
        The seed of the order in which the rows were taken.
    n_rows : int
        How many rows of the input have been learnt.
    finished : bool
        Whether these were all.
    """

    method: dict[str, Any]
    reading: dict[str, Any]
    input: str
    shuffle: int | None
    n_rows: int = 0
    finished: bool = False


def begun(options: Namespace) -> tuple[OnlineClassifier, Progress]:
    """Return a new learner; raises KeslerError if there is a model already."""
    if Path(options.model).exists():
        raise KeslerError(
            f"{options.model} exists already: go on with it by --resume, or name another file"
        )
    method = Method(**chosen(options))
    progress = Progress(
        asdict(method.spelt_out()), reading(options), _name(options), options.shuffle
    )
    return method.learner(), progress


def resumed(options: Namespace) -> tuple[OnlineClassifier, Progress]:
    """Return the learner that a model file holds, in its place in INPUT or at its beginning."""
    model = loaded(options.model)
    progress = progress_of(model)
    _require_same_method(options, progress)
    if progress.finished:
        progress = replace(
            progress, input=_name(options), shuffle=options.shuffle, n_rows=0, finished=False
        )
    _require_same_input(options, progress)
    return model, replace(progress, reading={**progress.reading, **reading(options)})


def loaded(path: str) -> OnlineClassifier:
    """Return the classifier in a model file."""
    model = load(path)
    if not isinstance(model, OnlineClassifier):
        raise KeslerError(
            f"{path} holds an {type(model).__name__}, and the command line learns and predicts "
            "single classes: use kesler.load in Python"
        )
    return model


def progress_of(model: OnlineClassifier) -> Progress:
    """Return what the notes of a model say; a model made elsewhere has finished."""
    elsewhere = asdict(Progress({}, {}, "", None, finished=True))
    return Progress(**model.notes_.get("learning", elsewhere))


def _require_same_method(options: Namespace, progress: Progress) -> None:
    for name, value in chosen(options).items():
        if progress.method.get(name) != value:
            option = "--" + name.replace("_", "-")
            raise KeslerError(
                f"{options.model} was not learnt with {option} {value}, and a model goes on as it "
                f"began: leave {option} out"
            )


def _require_same_input(options: Namespace, progress: Progress) -> None:
    if (progress.input, progress.shuffle) != (_name(options), options.shuffle):
        order = "" if progress.shuffle is None else f" --shuffle {progress.shuffle}"
        raise KeslerError(
            f"{options.model} was stopped after {progress.n_rows:,} rows of "
            f"{progress.input}{order}: go on with that first"
        )


def _name(options: Namespace) -> str:
    return Path(options.input).name
