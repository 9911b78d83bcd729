"""kesler compare: comparison of several methods on one stream, or on each of several."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kesler.cli import files, table
from kesler.cli.json_output import write_json
from kesler.cli.kinds import columns
from kesler.cli.methods import chosen
from kesler.data.rows import Rows
from kesler.errors import KeslerError
from kesler.evaluation.comparison import Comparison, MethodResult
from kesler.evaluation.methods import BASELINES
from kesler.evaluation.named import Learner, default_methods, named_methods
from kesler.online.classifier import OnlineClassifier
from kesler.readers.stream import Block

if TYPE_CHECKING:
    from kesler.bounds.mistakes import MistakeBound


@dataclass(frozen=True)
class Compared:
    """The comparison on one input.

    Parameters
    ----------
    source : str
        The input.
    results : dict of str to MethodResult
        The result of each method.
    account : dict
        The run as a JSON object.
    """

    source: str
    results: dict[str, MethodResult]
    account: dict[str, Any]


def run(options: Namespace) -> None:
    """Compare the methods on each input, then write the output files."""
    if options.delay and options.bounds:
        raise KeslerError(
            "--delay and --bounds exclude each other: bounds are for answers that arrive at once"
        )
    _methods(options, dense=False, n_features=0)  # refuses unknown names before anything is read
    of_each = [files.of_source(options, source) for source in options.inputs]
    for each in of_each:
        files.require_distinct(each, "json", "plot")
    files.require_writable(options.json)
    files.require_writable(options.plot)
    if options.plot is not None:
        from kesler import plots

        plots.require_drawable(options.plot)

    runs = list[Compared]()
    for each in of_each:
        if runs:
            print()
        runs.append(_compare(each))
    if options.json is not None:
        accounts = [each.account for each in runs]
        write_json(options, accounts[0] if len(accounts) == 1 else accounts)
    if options.plot is not None:
        plots.save_mistake_curves({_title(each): _drawn(each) for each in runs}, options.plot)
        print(f"\nfigure: {options.plot}")


def _compare(options: Namespace) -> Compared:
    """Print the table of an input while the methods learn, then the summary."""
    from kesler.compiled.jit.background import in_foreground

    stream = files.open_input(options, files.reading_of_new(options))
    seed = options.shuffle
    blocks: Iterable[Block] = stream if seed is None else [files.shuffled(stream, seed)]
    stored = list(blocks) if options.bounds else []
    rest = iter(stored or blocks)
    first = next(rest, Block(Rows.empty(0), []))
    methods = _methods_for(first, options)
    comparison = Comparison(methods, top=options.top, delay=options.delay)
    comparison.ask_for_loops(first)
    with in_foreground(alone=False):  # the rows per second are those of compiled loops
        lines = table.print_run(comparison, chain([first], rest), stream)
    if not comparison.n_trials:
        raise KeslerError(f"{stream.source} has no row of weight above 0: check the input")

    results = comparison.results()
    bounds, asked = bounds_of(methods, results, stored) if options.bounds else {}, asked_by(methods)
    summary = table.summary(results, bounds, asked, options.top)
    print(f"\n{table.statement(stream, comparison, options.delay)}\n\n{summary}")
    table.print_first_rows(results)
    table.print_columns(methods.values())
    account = files.account(stream, comparison, lines, bounds, asked)
    return Compared(stream.source, results, {**account, "delay": options.delay})


def _methods_for(first: Block, options: Namespace) -> dict[str, Learner]:
    """Return the methods for the rows of a stream, given its first block."""
    if isinstance(first.rows, Rows):
        return _methods(options, dense=first.rows.dense, n_features=first.rows.n_features)
    methods = _methods(options, dense=False, n_features=0)
    kinds = columns(options, is_table=True)
    for each in methods.values() if kinds is not None else ():
        if isinstance(each, OnlineClassifier):
            each.set_params(columns=kinds)
    return methods


def _methods(options: Namespace, *, dense: bool, n_features: int) -> dict[str, Learner]:
    """Return the methods that are asked for, or those for rows of this kind."""
    given = chosen(options)
    if options.methods is None:
        return default_methods(given, dense=dense, n_features=n_features)
    return named_methods(options.methods, given)


def _title(run: Compared) -> str:
    name = run.source if run.source.startswith("dataset:") else Path(run.source).name
    return f"Mistakes made while learning {name}"


def _drawn(run: Compared) -> dict[str, MethodResult]:
    """Return the results to draw; beside those of the baselines the others would be flat."""
    results = {name: each for name, each in run.results.items() if name not in BASELINES}
    return results or run.results


def asked_by(methods: Mapping[str, Learner]) -> dict[str, int]:
    """Return how many labels each learner with a label budget has asked for: those it learnt."""
    learners = {name: each for name, each in methods.items() if isinstance(each, OnlineClassifier)}
    return {
        name: each.n_trials_ for name, each in learners.items() if each.label_budget is not None
    }


def bounds_of(
    methods: Mapping[str, Learner],
    results: Mapping[str, MethodResult],
    blocks: Sequence[Block],
) -> dict[str, MistakeBound | KeslerError]:
    """Return the mistake bound of each learner over the blocks, or the error without one."""
    from kesler.bounds.mistakes import bound_on_blocks

    bounds: dict[str, MistakeBound | KeslerError] = {}
    for name, learner in methods.items():
        if not isinstance(learner, OnlineClassifier):
            continue
        try:
            bounds[name] = bound_on_blocks(learner, blocks, results[name].n_mistakes)
        except KeslerError as error:
            bounds[name] = error
    return bounds
