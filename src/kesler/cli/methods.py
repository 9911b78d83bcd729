"""Methods: the settings given on the command line, and the progress of a model."""

from __future__ import annotations

import zlib
from argparse import Namespace
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from kesler.cli.class_files import OF_FILES
from kesler.cli.files import reading, reading_of_new
from kesler.cli.kinds import columns
from kesler.data.model_file import is_model_file
from kesler.errors import KeslerError
from kesler.evaluation.named import learner_of
from kesler.online.classifier import OnlineClassifier
from kesler.online.loading import load
from kesler.readers.compression import STANDARD_INPUT
from kesler.readers.sql import is_database
from kesler.settings.table import SETTINGS
from kesler.updates import PARAMETERS
from kesler.updates.rule import UpdateRule


def chosen(options: Namespace) -> dict[str, Any]:
    """Return the settings that are given on the command line."""
    # Other settings may have the names of other options: --shuffle is of the rows of a run.
    names = [name for name, setting in SETTINGS.items() if setting.read is not None]
    given = {name: getattr(options, name, None) for name in names}
    found = {name: value for name, value in given.items() if value is not None}
    read = {name: of_file(found[name]) for name, of_file in OF_FILES.items() if name in found}
    return {**found, **read, **{name: None for name in found if found[name] == "none"}}


START = 1 << 16  # bytes by which a file is recognized


@dataclass(frozen=True, slots=True)
class Progress:
    """The method, input and position of a model that is being learnt.

    Parameters
    ----------
    reading : dict
        The reading options of its input.
    input : str
        The last part of the path of its input.
    shuffle : int or None
        The seed with which the rows were shuffled.
    n_rows : int
        Number of rows of the input that have been learnt.
    finished : bool
        Whether the whole input has been learnt.
    start : str
        The length and a checksum of the first bytes of the input; empty if it has no path.
    """

    reading: dict[str, Any]
    input: str
    shuffle: int | None
    n_rows: int = 0
    epoch: int = 0
    finished: bool = False
    start: str = ""

    def is_in(self, options: Namespace) -> bool:
        """Return whether INPUT is the input of this progress, which may have grown."""
        same_name = (self.input, self.shuffle) == (_name(options), options.shuffle)
        return same_name and options.input != STANDARD_INPUT and _begins(options.input, self.start)


def begun(options: Namespace) -> tuple[OnlineClassifier, Progress]:
    """Return a new learner and its progress; raise KeslerError if the model file exists."""
    _require_order(options)
    if Path(options.model).exists():
        advice = (
            "continue with --resume, or name another file"
            if is_model_file(options.model)
            else "it is no model file: name that first, which is written, and then INPUT"
        )
        raise KeslerError(f"{options.model} exists already: {advice}")
    progress = Progress(
        reading_of_new(options),
        _name(options),
        options.shuffle,
        start=_start(options.input),
    )
    model = learner_of(chosen(options))
    kinds = columns(options, is_table="as_table" in progress.reading)
    return (model if kinds is None else model.set_params(columns=kinds)), progress


def resumed(options: Namespace) -> tuple[OnlineClassifier, Progress]:
    """Return the learner of a model file, and its position in INPUT or the start of INPUT."""
    model = loaded(options)
    progress = progress_of(model)
    _require_same_settings(options, model)
    kinds = columns(options, is_table="as_table" in progress.reading)
    if kinds is not None and kinds != model.columns:
        raise KeslerError(
            f"{options.model} was learnt with the kinds of columns {model.columns!r}, which cannot "
            "change when resuming: omit the options of kinds"
        )
    if progress.finished and not progress.is_in(options):
        progress = replace(
            progress,
            input=_name(options),
            shuffle=options.shuffle,
            n_rows=0,
            finished=False,
        )
    _require_same_input(options, progress)
    progress = replace(progress, start=_start(options.input))  # a bad row may have been mended
    return model, replace(progress, reading={**progress.reading, **reading(options)})


def loaded(options: Namespace) -> OnlineClassifier:
    """Return the classifier in the model file of a command."""
    _require_order(options)
    model = load(options.model)
    if not isinstance(model, OnlineClassifier):
        raise KeslerError(
            f"{options.model} contains an {type(model).__name__}, but the command line supports "
            "only single-label classifiers: use kesler.load in Python"
        )
    return model


def _require_order(options: Namespace) -> None:
    """Raise if MODEL and INPUT are in each other's place."""
    given, source = options.model, options.input
    if is_model_file(source) and not is_model_file(given):
        raise KeslerError(
            f"{source} is a model file, and {given} is none: name the model first, kesler "
            f"{options.command} {source} {given}"
        )


def progress_of(model: OnlineClassifier) -> Progress:
    """Return the progress in the notes of a model; models without it are finished."""
    absent = asdict(Progress({}, "", None, finished=True))
    stored = model.notes_.get("learning", absent)
    return Progress(**{name: value for name, value in stored.items() if name != "method"})


def _require_same_settings(options: Namespace, model: OnlineClassifier) -> None:
    own = model.get_params(deep=False)
    own |= model.notes_.get("learning", {}).get("method", {})  # of files before version 2
    rule = model.resolved_.get_params(deep=False).get("update")
    in_use = vars(rule) if isinstance(rule, UpdateRule) else {}
    own |= {name: in_use[name] for name in PARAMETERS if name in in_use}
    for name, value in chosen(options).items():
        if own.get(name) != value:
            raise KeslerError(
                f"{options.model} was not learnt with {SETTINGS[name].option} "
                f"{getattr(options, name)}, and options cannot change when resuming: omit "
                f"{SETTINGS[name].option}"
            )


def _require_same_input(options: Namespace, progress: Progress) -> None:
    if (progress.input, progress.shuffle) != (_name(options), options.shuffle):
        order = "" if progress.shuffle is None else f" --shuffle {progress.shuffle}"
        raise KeslerError(
            f"{options.model} was stopped after {progress.n_rows:,} rows of "
            f"{progress.input}{order}: continue with that input first"
        )


def _name(options: Namespace) -> str:
    return Path(options.input).name


def _start(source: str, n_bytes: int = START) -> str:
    """Return the length and a checksum of up to `n_bytes` at the start of a file, or nothing.

    Of a folder it is that of the names of its files: new ones may be read before the others. What a
    database begins with changes with its rows, of which nothing is noted.
    """
    path = Path(source)
    if is_database(source):
        return ""
    if path.is_file():
        with path.open("rb") as file:
            begun = file.read(n_bytes)
    elif path.is_dir():
        begun = "\n".join(sorted(str(each) for each in path.rglob("*"))).encode()
    else:
        return ""
    return f"{len(begun)}:{zlib.crc32(begun):08x}"


def _begins(source: str, start: str) -> bool:
    """Return whether a file begins as it did when `start` was noted, if anything was noted."""
    return not start or _start(source, int(start.partition(":")[0] or 0)) == start
