"""Methods: learners by the names of the command line, and the progress of a model."""

from __future__ import annotations

import zlib
from argparse import Namespace
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from kesler.cli.files import columns, reading
from kesler.data.readers.lines import STANDARD_INPUT
from kesler.errors import KeslerError
from kesler.learner.combinations import require_half_life
from kesler.online.classifier import OnlineClassifier
from kesler.online.defaults import OPEN
from kesler.online.loading import load
from kesler.parts.hypotheses import Shared, resolve_hypotheses
from kesler.parts.kernels import resolve_kernel
from kesler.parts.links import resolve_link
from kesler.parts.maps import resolve_map
from kesler.parts.preconditioners import resolve_preconditioner
from kesler.parts.preprocessing import resolve_preprocessing
from kesler.parts.updates import resolve_rule
from kesler.parts.updates.rule import UpdateRule


@dataclass(frozen=True, slots=True)
class Method:
    """A learner by the names of its parts.

    Parameters
    ----------
    hypotheses, update, map : str
        As in :class:`kesler.OnlineClassifier`.
    C : float or None
        Aggressiveness of the update: its C, delta or eta, if it has one; None for its default.
    link, averaged : str, bool
        As in :class:`kesler.OnlineClassifier`.
    preconditioner, on_new_class : str
        As in :class:`kesler.OnlineClassifier`.
    kernel, sigma, budget : str or None, float or "auto", int or None
        As in :class:`kesler.OnlineClassifier`.
    preprocessing, half_life : str or None, float or None
        As in :class:`kesler.OnlineClassifier`.
    """

    hypotheses: str = OPEN
    update: str = OPEN
    C: float | None = None
    link: str = "linear"
    averaged: bool = False
    map: str = "auto"
    kernel: str | None = None
    sigma: float | Literal["auto"] = "auto"
    budget: int | None = None
    preconditioner: str = "auto"
    on_new_class: str = OPEN
    preprocessing: str | None = OPEN
    half_life: float | None = None

    def learner(self) -> OnlineClassifier:
        """Return a new learner; raise KeslerError if a name is unknown."""
        if self.hypotheses != OPEN:
            resolve_hypotheses(self.hypotheses, lambda: Shared(resolve_map("product", dense=False)))
        resolve_map(self.map, dense=False)
        resolve_link(self.link)
        resolve_preconditioner(self.preconditioner)
        if self.preprocessing != OPEN:
            resolve_preprocessing(self.preprocessing, dense=False)
        require_half_life(self.half_life)
        if self.kernel is not None:
            resolve_kernel(self.kernel, self.sigma)
        return OnlineClassifier(
            self.hypotheses,
            feature_map=self.map,
            update=self._rule(),
            link=self.link,
            averaged=self.averaged,
            kernel=self.kernel,
            sigma=self.sigma,
            budget=self.budget,
            preconditioner=self.preconditioner,
            on_new_class=self.on_new_class,
            preprocessing=self.preprocessing,
            half_life=self.half_life,
        )

    def resolved(self) -> Method:
        """Return the method with the default of `C` resolved."""
        rule = self._rule()
        if isinstance(rule, str) or rule.strength is None:
            return replace(self, C=None)
        strength = getattr(rule, rule.strength)
        return replace(self, C=strength)

    def _rule(self) -> UpdateRule | str:
        """Return the rule, or the name "ensemble" or "default"."""
        if self.update in ("ensemble", OPEN):
            if self.C is not None:
                raise KeslerError(
                    f"C={self.C:g} has no effect on the update {self.update}, which has its own "
                    "setting: omit it, or name a rule such as pa1"
                )
            return self.update
        rule = resolve_rule(self.update)
        if self.C is None or rule.strength is None:
            return rule
        return replace(rule, **{rule.strength: self.C})


def chosen(options: Namespace) -> dict[str, Any]:
    """Return the options of a method that are given on the command line.

    Examples
    --------
    >>> chosen(Namespace(update="pa2", C=None, map="product", input="-"))
    {'update': 'pa2', 'map': 'product'}
    """
    given = {field.name: getattr(options, field.name, None) for field in fields(Method)}
    return {name: value for name, value in given.items() if value is not None}


def named_learners(methods: str, defaults: Method) -> dict[str, OnlineClassifier]:
    """Return a learner for each method of a list "HYPOTHESES[:UPDATE[:C]],...".

    Hypotheses without an update use that of `defaults`, or pa1; "default" alone uses defaults.

    Examples
    --------
    >>> named_learners("multi,hybrid:simproj:0.1", Method())["hybrid:simproj:0.1"].update
    SimProj(C=0.1)
    """
    names = [name.strip() for name in methods.split(",")]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise KeslerError(f"the method {twice!r} is named twice: name each method once")
    return {name: _method(name, defaults).learner() for name in names}


def _method(name: str, defaults: Method) -> Method:
    hypotheses, update, C, *more = [*name.split(":"), "", ""]
    try:
        strength = float(C) if C else defaults.C
    except ValueError:
        more.append(C)
    if any(more):
        raise KeslerError(
            f"the method {name!r} is not HYPOTHESES[:UPDATE[:C]], such as hybrid:simproj:0.01"
        )
    update = update or (defaults.update if defaults.update != OPEN else _unnamed(hypotheses))
    return replace(defaults, hypotheses=hypotheses, update=update, C=strength)


def _unnamed(hypotheses: str) -> str:
    """Return the default update of named hypotheses."""
    return OPEN if hypotheses == OPEN else "pa1"


START = 1 << 16  # bytes by which a file is recognized


@dataclass(frozen=True, slots=True)
class Progress:
    """The method, input and position of a model that is being learnt.

    Parameters
    ----------
    method : dict
        The fields of its :class:`~kesler.cli.methods.Method`; empty if it was learnt in Python.
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

    method: dict[str, Any]
    reading: dict[str, Any]
    input: str
    shuffle: int | None
    n_rows: int = 0
    finished: bool = False
    start: str = ""

    def is_in(self, options: Namespace) -> bool:
        """Return whether INPUT is the input of this progress, which may have grown."""
        same_name = (self.input, self.shuffle) == (_name(options), options.shuffle)
        return same_name and options.input != STANDARD_INPUT and _begins(options.input, self.start)


def begun(options: Namespace) -> tuple[OnlineClassifier, Progress]:
    """Return a new learner and its progress; raise KeslerError if the model file exists."""
    if Path(options.model).exists():
        raise KeslerError(
            f"{options.model} exists already: continue with --resume, or name another file"
        )
    method = Method(**chosen(options))
    progress = Progress(
        asdict(method.resolved()),
        reading(options),
        _name(options),
        options.shuffle,
        start=_start(options.input),
    )
    model = method.learner()
    kinds = columns(options)
    return (model if kinds is None else model.set_params(columns=kinds)), progress


def resumed(options: Namespace) -> tuple[OnlineClassifier, Progress]:
    """Return the learner of a model file, and its position in INPUT or the start of INPUT."""
    model = loaded(options.model)
    progress = progress_of(model)
    _require_same_method(options, progress)
    kinds = columns(options)
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


def loaded(path: str) -> OnlineClassifier:
    """Return the classifier in a model file."""
    model = load(path)
    if not isinstance(model, OnlineClassifier):
        raise KeslerError(
            f"{path} contains an {type(model).__name__}, but the command line supports only "
            "single-label classifiers: use kesler.load in Python"
        )
    return model


def progress_of(model: OnlineClassifier) -> Progress:
    """Return the progress in the notes of a model; models without it are finished."""
    absent = asdict(Progress({}, {}, "", None, finished=True))
    return Progress(**model.notes_.get("learning", absent))


def _require_same_method(options: Namespace, progress: Progress) -> None:
    for name, value in chosen(options).items():
        if progress.method.get(name) != value:
            option = "--" + name.replace("_", "-")
            raise KeslerError(
                f"{options.model} was not learnt with {option} {value}, and options cannot "
                f"change when resuming: omit {option}"
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

    Of a folder it is that of the names of its files: new ones may be read before the others.
    """
    path = Path(source)
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
