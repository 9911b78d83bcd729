"""kesler compare: comparison of several methods on one stream."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kesler.cli import files, table
from kesler.cli.methods import Method, chosen, named_learners
from kesler.data.readers.stream import Block
from kesler.errors import KeslerError
from kesler.evaluation.comparison import Comparison, MethodResult
from kesler.online.classifier import OnlineClassifier

if TYPE_CHECKING:
    from kesler.evaluation.bounds import MistakeBound


def run(options: Namespace) -> None:
    """Print the table while the methods learn, then the summary; write the output files."""
    learners = named_learners(options.methods, Method(**chosen(options)))
    files.require_distinct(options, "json", "plot")
    files.require_writable(options.json)
    files.require_writable(options.plot)
    if options.plot is not None:
        from kesler import plots

        plots.require_drawable(options.plot)

    stream = files.open_input(options, files.reading(options))
    kinds = files.columns(options)
    if kinds is not None:
        learners = {name: each.set_params(columns=kinds) for name, each in learners.items()}
    seed = options.shuffle
    blocks = stream if seed is None else [files.shuffled(stream, seed)]
    stored = list(blocks) if options.bounds else []
    comparison = Comparison(learners)
    lines = table.print_run(comparison, stored or blocks, stream)
    if not comparison.n_trials:
        raise KeslerError(f"{stream.source} has no row of weight above 0: check the input")

    results = comparison.results()
    bounds = bounds_of(learners, results, stored) if options.bounds else {}
    print(f"\n{table.statement(stream, comparison)}\n\n{table.summary(results, bounds)}")
    if options.json is not None:
        files.write_json(options.json, files.account(stream, comparison, lines, bounds))
    if options.plot is not None:
        title = f"Mistakes made while learning {Path(stream.source).name}"
        plots.save_mistake_curves(results, options.plot, title)
        print(f"\nfigure: {options.plot}")


def bounds_of(
    learners: Mapping[str, OnlineClassifier],
    results: Mapping[str, MethodResult],
    blocks: Sequence[Block],
) -> dict[str, MistakeBound | KeslerError]:
    """Return the mistake bound of each method over the blocks, or the error without one."""
    from kesler.evaluation.bounds import bound_on_blocks

    bounds: dict[str, MistakeBound | KeslerError] = {}
    for name, learner in learners.items():
        try:
            bounds[name] = bound_on_blocks(learner, blocks, results[name].n_mistakes)
        except KeslerError as error:
            bounds[name] = error
    return bounds
