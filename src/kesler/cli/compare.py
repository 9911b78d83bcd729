"""kesler compare: several methods side by side over one stream."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kesler.cli import inputs, outputs, table
from kesler.cli.methods import Method, chosen, named_learners
from kesler.errors import KeslerError
from kesler.estimators import OnlineClassifier
from kesler.progressive import Comparison, MethodResult
from kesler.readers import Block

if TYPE_CHECKING:
    from kesler.bounds import MistakeBound


def run(options: Namespace) -> None:
    """Print the table while the methods learn, then the summary; write what else is asked for."""
    learners = named_learners(options.methods, Method(**chosen(options)))
    outputs.require_distinct(options, "json", "plot")
    outputs.require_writable(options.json)
    outputs.require_writable(options.plot)
    if options.plot is not None:
        from kesler import plots

        plots.require_drawable(options.plot)

    stream = inputs.open_input(options, inputs.reading(options))
    seed = options.shuffle
    blocks = stream if seed is None else [inputs.shuffled(stream, seed)]
    kept = list(blocks) if options.bounds else []
    comparison = Comparison(learners)
    lines = table.print_run(comparison, kept or blocks)
    if not comparison.n_trials:
        raise KeslerError(f"{stream.source} holds no row of a weight above 0: check it")

    results = comparison.results()
    bounds = bounds_of(learners, results, kept) if options.bounds else {}
    print(f"\n{table.statement(stream, comparison)}\n\n{table.summary(results, bounds)}")
    if options.json is not None:
        outputs.write_json(options.json, outputs.account(stream, comparison, lines, bounds))
    if options.plot is not None:
        title = f"Mistakes made while learning {Path(stream.source).name}"
        plots.save_mistake_curves(results, options.plot, title)
        print(f"\nfigure: {options.plot}")


def bounds_of(
    learners: Mapping[str, OnlineClassifier],
    results: Mapping[str, MethodResult],
    blocks: Sequence[Block],
) -> dict[str, MistakeBound | KeslerError]:
    """Return the mistake bound of each method over the blocks, or why there is none."""
    from kesler.bounds import bound_on_blocks

    bounds: dict[str, MistakeBound | KeslerError] = {}
    for name, learner in learners.items():
        try:
            bounds[name] = bound_on_blocks(learner, blocks, results[name].n_mistakes)
        except KeslerError as error:
            bounds[name] = error
    return bounds
