"""kesler compare: several methods side by side over one stream."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from kesler import plots
from kesler.cli import inputs, outputs, table
from kesler.cli.methods import Method, chosen, named_learners
from kesler.errors import KeslerError
from kesler.progressive import Comparison


def run(options: Namespace) -> None:
    """Print the table while the methods learn, then the summary; write what else is asked for."""
    learners = named_learners(options.methods, Method(**chosen(options)))
    outputs.require_distinct(options, "json", "plot")
    outputs.require_writable(options.json)
    outputs.require_writable(options.plot)
    if options.plot is not None:
        plots.require_drawable(options.plot)

    stream = inputs.open_input(options, inputs.reading(options))
    seed = options.shuffle
    blocks = stream if seed is None else [inputs.shuffled(stream, seed)]
    comparison = Comparison(learners)
    lines = table.print_run(comparison, blocks)
    if not comparison.n_trials:
        raise KeslerError(f"{stream.source} holds no row of a weight above 0: check it")

    results = comparison.results()
    print(f"\n{table.statement(stream, comparison)}\n\n{table.summary(results)}")
    if options.json is not None:
        outputs.write_json(options.json, outputs.account(stream, comparison, lines))
    if options.plot is not None:
        title = f"Mistakes made while learning {Path(stream.source).name}"
        plots.save_mistake_curves(results, options.plot, title)
        print(f"\nfigure: {options.plot}")
