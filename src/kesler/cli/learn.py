"""kesler learn: learn a stream and write the model."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace

from kesler.cli import inputs, outputs, table
from kesler.cli.progress import Progress, begun, resumed
from kesler.errors import KeslerError
from kesler.estimators import OnlineClassifier
from kesler.progressive import Comparison
from kesler.readers import Block, Stream


def run(options: Namespace) -> None:
    """Print the table while the model learns, write it, and print the summary."""
    outputs.require_distinct(options, "model", "json")
    outputs.require_writable(options.model)
    outputs.require_writable(options.json)
    model, progress = resumed(options) if options.resume else begun(options)
    stream, blocks = _opened(options, model, progress)
    session = Session(model, progress, options.model, options.checkpoint)
    comparison = Comparison({progress.method.get("hypotheses", "model"): model})
    try:
        lines = table.print_run(comparison, session.learning(blocks))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(session.interrupted()) from None
    if not model.n_known_:
        raise KeslerError(f"{stream.source} holds no row of a weight above 0: check it")
    session.save(finished=True)

    print(f"\n{table.statement(stream, comparison)}\n\n{table.summary(comparison.results(), {})}")
    print(f"\nmodel: {options.model} ({model.n_trials_:,} trials, {model.n_known_:,} classes)")
    if options.json is not None:
        account = outputs.account(stream, comparison, lines, {})
        outputs.write_json(options.json, {"model": options.model, **account})


def _opened(
    options: Namespace, model: OnlineClassifier, progress: Progress
) -> tuple[Stream, Iterable[Block]]:
    """Open INPUT where the model is in it."""
    seed, n_rows = progress.shuffle, progress.n_rows
    stream = inputs.open_input(
        options,
        progress.reading,
        vocabulary=model.vocabulary_,
        skip_rows=n_rows if seed is None else 0,
    )
    model.name_features(stream.vocabulary)
    return stream, stream if seed is None else [inputs.shuffled(stream, seed)[n_rows:]]


class Session:
    """A model on its way through INPUT.

    Parameters
    ----------
    model : OnlineClassifier
        What learns.
    progress : Progress
        Where it is.
    path : str
        Where it is kept.
    every : int or None
        After how many rows of INPUT it is written, each time; None is never.
    """

    def __init__(
        self, model: OnlineClassifier, progress: Progress, path: str, every: int | None
    ) -> None:
        self._model = model
        self._progress = progress
        self._path = path
        self._every = every or sys.maxsize
        self._n_saved = 0

    def learning(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Hand out blocks to learn, cut where the model is to be written."""
        for block in blocks:
            start = 0
            while start < len(block):
                piece = block[start : start + self._every - self._progress.n_rows % self._every]
                yield piece
                # Whoever took the piece comes back for more: it is learnt.
                start += len(piece)
                self._advance(len(piece))

    def save(self, *, finished: bool) -> None:
        """Write the model and its progress."""
        self._progress = replace(self._progress, finished=finished)
        notes = {**getattr(self._model, "notes_", {}), "learning": asdict(self._progress)}
        self._model.save(self._path, **notes)
        self._n_saved = self._progress.n_rows

    def interrupted(self) -> str:
        """Return what to say when the run is cut off."""
        if not self._n_saved:
            return "stopped; nothing was written"
        return f"stopped; {self._path} holds the first {self._n_saved:,} rows: go on with --resume"

    def _advance(self, n_rows: int) -> None:
        self._progress = replace(self._progress, n_rows=self._progress.n_rows + n_rows)
        if self._progress.n_rows % self._every == 0 and self._model.n_known_:
            self.save(finished=False)
