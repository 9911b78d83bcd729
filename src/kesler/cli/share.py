"""kesler share: selection of features shared by all classes, and export of a predictor."""

from __future__ import annotations

import sys
import warnings
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from kesler import plots
from kesler.cli import files, spoken
from kesler.cli.files import Table
from kesler.cli.json_output import write_json
from kesler.cli.table import counted
from kesler.errors import KeslerError
from kesler.readers.stream import Stream
from kesler.sharing.exports.export import export, require_exportable
from kesler.sharing.exports.predictor import CompactPredictor
from kesler.sharing.shareboost import ShareBoostClassifier

# The seed for drawing held-out rows.
SEED = 0


def run(options: Namespace) -> None:
    """Select features, print the path, and write the output files."""
    _require_outputs(options)
    stream = files.open_input(options, files.reading(options))
    table, held_out = _parted(options, stream, files.whole(stream))
    if len(np.unique(table.y)) < 2:
        raise KeslerError(f"{stream.source} has rows of one class only: give two classes or more")
    model = _fitted(options, table, held_out)
    if stream.vocabulary is not None:
        # scikit-learn reads names from data frames only; output files need them.
        model.feature_names_in_ = np.array(stream.vocabulary.names, dtype=object)

    account = _account(stream, model, len(table.y))
    print(_statement(stream, model, account))
    for line in _lines(account["path"]):
        print(line)
    print(f"\n{account['cost']:,} multiply-accumulates per instance")
    _write(options, stream, model, account)


def _require_outputs(options: Namespace) -> None:
    files.require_distinct(options, "valid", "plot", "export", "json")
    for path in (options.plot, options.export, options.json):
        files.require_writable(path)
    if options.plot is not None:
        plots.require_drawable(options.plot)
    if options.export is not None:
        require_exportable(options.export)


def _parted(options: Namespace, stream: Stream, table: Table) -> tuple[Table, Table | None]:
    """Return the training rows and the validation rows."""
    if options.valid is not None:
        return table, _read_alike(options, stream, table.X.shape[1])
    if options.holdout is None:
        return table, None
    n_rows = len(table.y)
    n_held_out = round(options.holdout * n_rows)
    if not 0 < n_held_out < n_rows:
        raise KeslerError(
            f"{options.holdout:g} of {counted(n_rows, 'row')} are {n_held_out}: give another share"
        )
    order = np.random.default_rng(SEED).permutation(n_rows)
    return table.take(np.sort(order[n_held_out:])), table.take(np.sort(order[:n_held_out]))


def _read_alike(options: Namespace, stream: Stream, n_features: int) -> Table:
    """Read the rows of --valid with the features of INPUT; other features are ignored."""
    again = Namespace(**{**vars(options), "input": options.valid})
    names = {"vocabulary": stream.vocabulary, "grow": False}
    table = files.whole(files.open_input(again, files.reading(options), **names))
    if not isinstance(table.X, np.ndarray):
        return replace(table, X=_first_columns(table.X, n_features))
    if table.X.shape[1] != n_features:
        raise KeslerError(
            f"the rows of {options.valid} have {table.X.shape[1]} features, those of "
            f"{stream.source} {n_features}: give rows with the same features"
        )
    return table


def _first_columns(X: Any, n_features: int) -> Any:
    """Return sparse rows truncated or padded to `n_features` columns."""
    known = X.indices < n_features
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[known]
    places = rows, X.indices[known]
    return sparse.csr_array((X.data[known], places), shape=(X.shape[0], n_features))


def _fitted(options: Namespace, table: Table, held_out: Table | None) -> ShareBoostClassifier:
    """Return the fitted model; options that are not given have the estimator's defaults."""
    named = {name: getattr(options, name) for name in ("choice", "penalty", "alpha")}
    given = {name: value for name, value in named.items() if value is not None}
    if options.scale is not None:
        given["scale"] = None if options.scale == "none" else options.scale
    model = ShareBoostClassifier(options.features, dictionary=options.dictionary, **given)
    eval_set = None if held_out is None else (held_out.X, held_out.y)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        model.fit(table.X, table.y, table.weights, eval_set=eval_set)
    for each in warned:
        print(f"kesler: {spoken(str(each.message))}", file=sys.stderr)
    return model


def _account(stream: Stream, model: ShareBoostClassifier, n_fitted: int) -> dict[str, Any]:
    """Return a run as a JSON object."""
    predictor = CompactPredictor.of(model)
    rounds = zip(predictor.names, model.path_, strict=True)
    return {
        "input": stream.source,
        "rows": n_fitted,
        "bad_rows": stream.n_bad,
        "unlabelled_rows": stream.losses.n_unlabelled,
        "features": predictor.n_features,
        "classes": predictor.classes,
        "cost": predictor.cost,
        "path": [
            {
                "feature": name,
                "loss": each.loss,
                "gradient_norm": each.gradient_norm,
                "seconds": each.seconds,
                "validation_error": each.validation_error,
            }
            for name, each in rounds
        ],
    }


def _statement(stream: Stream, model: ShareBoostClassifier, account: dict[str, Any]) -> str:
    counts = [
        counted(account["rows"], "row"),
        counted(account["features"], "feature"),
        counted(len(model.classes_), "class", "classes"),
    ]
    skipped = f"; {counted(stream.n_bad, 'bad row')} skipped" if stream.n_bad else ""
    return f"{stream.source}: {', '.join(counts)}{skipped}\n"


def _lines(path: list[dict[str, Any]]) -> list[str]:
    r"""Return the lines of the table of selected features.

    Examples
    --------
    >>> first = {"feature": "x3", "loss": 0.5, "gradient_norm": 0.25, "seconds": 0.125}
    >>> print("\n".join(_lines([{**first, "validation_error": 0.1}])))
        n  feature         loss    gradient   error %    seconds
        1  x3           0.50000     0.25000     10.00       0.12
    """
    width = max(7, *(len(each["feature"]) for each in path))
    lines = [
        f"{'n':>5}  {'feature':{width}}{'loss':>13}{'gradient':>12}{'error %':>10}{'seconds':>11}"
    ]
    for i, each in enumerate(path, start=1):
        error = each["validation_error"]
        percent = "-" if error is None else f"{100 * error:.2f}"
        lines.append(
            f"{i:>5}  {each['feature']:{width}}{each['loss']:>13.5f}{each['gradient_norm']:>12.5f}"
            f"{percent:>10}{each['seconds']:>11.2f}"
        )
    return lines


def _write(
    options: Namespace, stream: Stream, model: ShareBoostClassifier, account: dict[str, Any]
) -> None:
    if options.export is not None:
        export(model, options.export)
        print(f"export: {options.export}")
    if options.plot is not None:
        measure: plots.Measure = (
            "loss" if account["path"][0]["validation_error"] is None else "error"
        )
        title = f"{measure.capitalize()} by number of features on {Path(stream.source).name}"
        curves = {"ShareBoost": plots.path_curve(model, measure)}
        plots.save_feature_curves(curves, options.plot, title, measure)
        print(f"figure: {options.plot}")
    if options.json is not None:
        write_json(options, account)
