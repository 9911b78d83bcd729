"""kesler learn: learn from a stream and write the model."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from typing import Any

from kesler.cli import files, table
from kesler.cli.json_output import write_json
from kesler.cli.methods import Progress, begun, resumed
from kesler.cli.model_input import known_by, of_texts, without_misfits
from kesler.errors import KeslerError
from kesler.evaluation.comparison import Comparison
from kesler.learner.combinations import require_epochs
from kesler.online.backing_off import warn_if_flat
from kesler.online.classifier import OnlineClassifier
from kesler.progress import say
from kesler.readers.compression import STANDARD_INPUT
from kesler.readers.stream import Block, Stream
from kesler.settings.table import AUTO

LARGE = 10**9
"""The bytes of a model of ever new features from which on a sentence says how to limit them."""


def run(options: Namespace) -> None:
    """Print the table while the model learns, write it, and print the summary."""
    files.require_distinct(options, "model", "json")
    files.require_writable(options.model)
    files.require_writable(options.json)
    model, progress = resumed(options) if options.resume else begun(options)
    stream, blocks = _opened(options, model, progress)
    session = Session(model, progress, stream, options)
    try:
        first = next(blocks, None)
        if first is not None:
            session.model = model = fitting(model, first)
        comparison = Comparison({options.hypotheses or "default": model})
        if first is None and progress.n_rows:
            _end(options, session, progress)
            return
        rest = blocks if first is None else chain([first], blocks)
        again = partial(_again, options, model)
        lines = table.print_run(comparison, session.learning_all(rest, again), stream)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(session.interrupted()) from None
    if not model.n_known_:
        raise KeslerError(f"{stream.source} has no row of weight above 0: check the input")
    model._input.columns.require_given(model)
    if not (comparison.n_features or model._takes_ratings()):
        raise KeslerError(
            f"{stream.source} holds nothing to learn from: no row has a feature beside its label"
        )
    session.save(finished=True)

    print(
        f"\n{table.statement(stream, comparison)}\n\n{table.summary(comparison.results(), {}, {})}"
    )
    table.print_first_rows(comparison.results())
    table.print_columns([model])
    table.print_left_out(files.left_out(options, progress.reading))
    if model.answer.kind == "costs":
        print(f"\ncost of predictions: {total_cost(model) / model.n_trials_:,.4g} a row")
    print(f"\nmodel: {options.model} ({model.n_trials_:,} trials, {model.n_known_:,} classes)")
    print(_of_first_rows(model, comparison), end="")
    if options.json is not None:
        account = files.account(stream, comparison, lines, {}, {})
        write_json(options, {"model": options.model, **account})


def _of_first_rows(model: Any, comparison: Comparison) -> str:
    """Return a line with the mistakes of a model that learnt its first rows again in this run.

    It is empty where they are those of the run, and after a run that continues another.
    """
    (found,) = comparison.results().values()
    is_whole = found.n_trials == model.n_trials_ and model._input.columns.learnt_again
    if not is_whole or found.n_mistakes == model.n_mistakes_:
        return ""
    return (
        f"mistakes: {found.n_mistakes:,} on the way, as in the table; {model.n_mistakes_:,} of the "
        "model, as kesler show prints: it learnt its first rows again when later ones among them "
        "changed how the columns are read\n"
    )


def total_cost(model: Any) -> float:
    """Return the cost of the predictions of a model whose targets are costs."""
    found: float = model.total_cost_
    return found


def fitting(model: OnlineClassifier, first: Block) -> OnlineClassifier:
    """Return the model, or one for costs with its parameters if the labels of rows are costs.

    Raises
    ------
    KeslerError
        If the model has learnt labels of the other kind.
    """
    has_costs = isinstance(first.labels[0], dict)
    if has_costs == (model.answer.kind == "costs"):
        return model
    if model.n_known_:
        which = "costs of classes" if has_costs else "one class each"
        raise KeslerError(
            f"the labels of these rows are {which}, but the model learnt from other ones: continue "
            "with rows such as those that it learnt from"
        )
    from kesler.online.cost_sensitive import CostSensitiveClassifier

    given = model.get_params(deep=False)
    names = CostSensitiveClassifier().get_params(deep=False)
    made = CostSensitiveClassifier(**{name: given[name] for name in names})
    made.name_features(model.vocabulary_)
    return made


def _end(options: Namespace, session: Session, progress: Progress) -> None:
    """Say that all rows have been learnt, and note that where a run was stopped after the last."""
    if not progress.finished:
        session.save(finished=True)
    print(
        f"model: {options.model} has learnt all {progress.n_rows:,} rows of {options.input}: "
        "nothing was learnt"
    )


def _opened(
    options: Namespace, model: OnlineClassifier, progress: Progress
) -> tuple[Stream, Iterator[Block]]:
    """Open INPUT at the first row that the model has not learnt."""
    seed, n_rows = progress.shuffle, progress.n_rows
    stream = files.open_input(
        options,
        {**of_texts(model, options), **progress.reading},
        **known_by(model),
        skip_rows=n_rows if seed is None else 0,
    )
    model.name_features(stream.vocabulary)
    if seed is None:
        return stream, stream
    rows = files.shuffled(stream, seed)
    if progress.finished and len(rows) > n_rows:
        raise KeslerError(
            f"{options.input} has {len(rows):,} rows, of which {options.model} has learnt "
            f"{n_rows:,} in another order: give the new rows in a file of their own"
        )
    return stream, iter([rows[n_rows:]] if len(rows) > n_rows else [])


def _again(options: Namespace, model: OnlineClassifier, progress: Progress) -> Iterator[Block]:
    """Open INPUT once more, for another pass over its rows."""
    if options.input == STANDARD_INPUT:
        raise KeslerError(
            "epochs=2 or more: standard input can be read once: write the rows to a file first"
        )
    return _opened(options, model, progress)[1]


class Session:
    """A model that learns from INPUT and is saved at checkpoints.

    Parameters
    ----------
    model : OnlineClassifier
        The model.
    progress : Progress
        Its progress in INPUT.
    stream : Stream
        INPUT, whose rows with cells that do not fit are left out where bad rows are skipped.
    options : Namespace
        The model file, and the number of rows between checkpoints; None means no checkpoints.
    """

    def __init__(
        self, model: OnlineClassifier, progress: Progress, stream: Stream, options: Namespace
    ) -> None:
        self.model = model
        self._progress = progress
        self._stream = stream
        self._path: str = options.model
        self._every: int = options.checkpoint or sys.maxsize
        self._n_saved = 0
        self._is_large = False

    def learning_all(
        self, blocks: Iterable[Block], again: Callable[[Progress], Iterable[Block]]
    ) -> Iterator[Block]:
        """Yield blocks to learn, and those of the further passes over the rows, opened again."""
        asked = self.model.epochs
        n_epochs = 1 if asked == AUTO else require_epochs(asked, self.model.update)
        with self.model.rows_again() if self._progress.epoch else nullcontext():
            yield from self.learning(blocks)
        while self._progress.epoch + 1 < n_epochs:
            self._progress = replace(self._progress, epoch=self._progress.epoch + 1, n_rows=0)
            with self.model.rows_again():
                yield from self.learning(again(self._progress))

    def learning(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Yield blocks to learn, split at checkpoints."""
        for block in blocks:
            start = 0
            while start < len(block):
                piece = block[start : start + self._every - self._progress.n_rows % self._every]
                fitting = without_misfits(self.model, piece, self._stream, learn=True)
                if len(fitting):
                    yield fitting
                # The consumer asks for more after it has learnt the piece.
                start += len(piece)
                self._advance(len(piece))

    def save(self, *, finished: bool) -> None:
        """Write the model and its progress."""
        self._progress = replace(self._progress, finished=finished)
        if finished:
            self.model.end_sequence()
            warn_if_flat(self.model._fitted())
        notes = {**getattr(self.model, "notes_", {}), "learning": asdict(self._progress)}
        self.model.save(self._path, **notes)
        self._n_saved = self._progress.n_rows

    def interrupted(self) -> str:
        """Return the message for an interrupted run."""
        if not self._n_saved:
            return "stopped; nothing was written"
        return f"stopped; {self._path} has learnt {self._n_saved:,} rows: continue with --resume"

    def _advance(self, n_rows: int) -> None:
        self._progress = replace(self._progress, n_rows=self._progress.n_rows + n_rows)
        if self._progress.n_rows % self._every == 0 and self.model.n_known_:
            self.save(finished=False)
        if not self._is_large and growing_bytes(self.model) > LARGE:
            self._is_large = True
            say(_of_large(self.model), sys.stderr)


def growing_bytes(model: OnlineClassifier) -> int:
    """Return about how many bytes a model holds that grows with each new name of a feature.

    It is 0 for a model that does not, and for one whose memory is limited, or cannot be.
    """
    from kesler.learner.learner import Learner
    from kesler.learner.memory import held, why_unlimited

    learner = model._learner
    if not isinstance(learner, Learner) or model.vocabulary_ is None or model.width_:
        return 0
    if learner.memory is not None or why_unlimited(learner) is not None:
        return 0
    return held(learner, learner.n_known)


def _of_large(model: OnlineClassifier) -> str:
    """Return the sentence on a large model, with the option that limits another one."""
    return (
        f"kesler: after {model.n_trials_:,} rows the model takes {growing_bytes(model) / 1e9:,.1f} "
        f"GB, for {len(model.vocabulary_ or ()):,} features, and each new word adds to it: "
        "--memory-limit 500MB, given when a model is begun, drops those that matter least"
    )
