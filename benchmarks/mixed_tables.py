"""Tables of text, numbers, categories and dates: progressive errors of the default and others.

    KESLER_DATA=... python benchmarks/mixed_tables.py            # all; about ten minutes
    KESLER_DATA=... python benchmarks/mixed_tables.py --quick    # without the refitted model

Each table is read as text, in the order of time, without the columns that state the label in other
words. Every method predicts a row before it learns from it; the first row of a class is no mistake.
Vowpal Wabbit is told the number of classes beforehand. scikit-learn's pipeline is fitted again on
all rows so far whenever their number has doubled, and knows no row after that. Both are told which
columns are texts, and given the kinds that Kesler infers for the others: Vowpal Wabbit dates as
seconds, the pipeline their places in the day, the week and the year, since later dates are out of
the range that it was fitted on; its numbers are clipped.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kesler import OnlineClassifier, progressive_validate
from kesler.data.schema.features import CLIP, CYCLES, cycles_of
from kesler.data.schema.records import table_of
from kesler.data.schema.schema import Schema
from kesler.data.schema.values import Values, parse
from kesler.data.texts import tokenize

sys.path.append(str(Path(__file__).parents[1] / "papers"))
from script_arguments import script_parser  # isort: skip

FIRST_FIT = 100  # rows before the first fit of a model that is refitted
Row = dict[str, str]
Kinds = dict[str, str]


@dataclass(frozen=True)
class Source:
    """A table: its file, its label, and what is known of its columns.

    Parameters
    ----------
    file, encoding : the file.
    label : the column of the labels.
    leaks : columns that state the label in other words, or are filled for some labels only.
    texts : the columns of text.
    order : function of a row whose values increase with time; None if rows are in order.
    """

    file: str
    encoding: str
    label: str
    leaks: tuple[str, ...]
    texts: tuple[str, ...]
    order: Callable[[Row], Any] | None = None

    def rows(self) -> tuple[list[Row], list[str]]:
        """Return the rows and the labels, in the order of time."""
        path = Path(os.environ["KESLER_DATA"]) / "mixed_tables" / f"{self.file}.csv.gz"
        with gzip.open(path, "rt", encoding=self.encoding, newline="") as file:
            rows = list(csv.DictReader(file))
        if self.order is not None:
            rows.sort(key=self.order)
        labels = [row.pop(self.label) for row in rows]
        for row in rows:
            for leak in self.leaks:
                del row[leak]
        return rows, labels


TORNADO = ("F_SCALE", "LENGTH", "WIDTH", "OTHER_WFO", "OTHER_CZ_STATE", "OTHER_CZ_FIPS")
SOURCES = {
    "storm events": Source(
        "storm_events_2017q1",
        "latin-1",
        "EVENT_TYPE",
        (
            *(f"TOR_{name}" for name in (*TORNADO, "OTHER_CZ_NAME")),
            *("FLOOD_CAUSE", "MAGNITUDE", "MAGNITUDE_TYPE"),
        ),
        ("EPISODE_NARRATIVE", "EVENT_NARRATIVE"),
        lambda row: datetime.strptime(row["BEGIN_DATE_TIME"], "%d-%b-%y %H:%M:%S"),
    ),
    "animal rescues": Source(
        "london_animal_rescues",
        "utf-8",
        "special service type",
        ("special service type category",),
        ("final description", "street", "property type"),
    ),
    "vulnerabilities": Source(
        "nvd_cve_2019",
        "utf-8",
        "cwe_code",
        ("cwe_name",),
        ("summary",),
        lambda row: row["pub_date"],
    ),
}


def error(predictions: list[Any], y: list[str]) -> float:
    """Return the share of mistakes in %; the first row of a class is none."""
    seen, n_mistakes = set[str](), 0
    for predicted, label in zip(predictions, y, strict=True):
        n_mistakes += predicted != label and label in seen
        seen.add(label)
    return 100 * n_mistakes / len(y)


def of_kesler(rows: list[Row], y: list[str], **settings: Any) -> list[Any]:
    """Return the predictions of the default learner."""
    result = progressive_validate(OnlineClassifier(**settings), rows, y)
    return list(result.predictions)


# ---- peers ----------------------------------------------------------------------------------


def parsed(rows: list[Row], texts: Kinds) -> tuple[Values, Schema]:
    """Return the parsed cells and the kinds of the columns: texts, and those that Kesler infers."""
    model = OnlineClassifier(columns=texts).fit(rows[:50], ["a"] * 50)
    assert model.schema_ is not None
    return parse(table_of(rows), model.schema_, {}, "missing", learn=True)


def of_vw(rows: list[Row], y: list[str], texts: Kinds) -> list[Any]:
    """Return the predictions of Vowpal Wabbit, with a namespace for each column."""
    from vowpalwabbit import Workspace

    codes = {label: code for code, label in enumerate(dict.fromkeys(y), start=1)}
    labels = ["", *codes]
    workspace = Workspace(f"--oaa {len(codes)} -b 22 --quiet")
    predictions = []
    for line, label in zip(vw_lines(rows, texts), y, strict=True):
        example = workspace.example(f"{codes[label]} {line}")
        workspace.learn(example)
        predictions.append(labels[int(example.get_prediction())])
        workspace.finish_example(example)
    return predictions


def vw_lines(rows: list[Row], texts: Kinds) -> Iterator[str]:
    """Yield the lines of rows: counts of words, categories, and numbers as z-scores."""
    values, schema = parsed(rows, texts)
    scale = {
        column.name: moments(values[column.name])
        for column in schema
        if column.kind in ("number", "date")
    }
    for i in range(len(rows)):
        spaces = []
        for place, column in enumerate(schema):
            cell = values[column.name][i] if column.name in values else None
            if cell is None:
                continue
            if column.kind == "text":
                words = " ".join(tokenize(cell))
            elif column.kind == "category":
                words = "".join(c if c.isalnum() else "_" for c in cell)
            else:
                mean, deviation = scale[column.name]
                words = f"z:{(number_in(cell) - mean) / deviation:.5g}"
            spaces.append(f"|n{place} {words}")
        yield " ".join(spaces)


def number_in(cell: Any) -> float:
    """Return a number, or the seconds of a date."""
    return (
        (cell - datetime(1970, 1, 1)) / timedelta(seconds=1) if isinstance(cell, datetime) else cell
    )


def moments(cells: list[Any]) -> tuple[float, float]:
    """Return the mean and the deviation of all rows, which favours the peer."""
    numbers = np.array([number_in(cell) for cell in cells if cell is not None])
    return float(numbers.mean()), float(numbers.std()) or 1.0


def of_sklearn(rows: list[Row], y: list[str], texts: Kinds) -> list[Any]:
    """Return the predictions of a pipeline that is fitted again whenever rows have doubled."""
    values, schema = parsed(rows, texts)
    frame = frame_of(values, schema, len(rows))
    predictions: list[Any] = [None] * FIRST_FIT
    start = FIRST_FIT
    while start < len(rows):
        stop = min(len(rows), 2 * start)
        model = pipeline(schema, frame[:start])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(frame[:start], y[:start])
            predictions += model.predict(frame[start:stop]).tolist()
        start = stop
    return predictions


def frame_of(values: Values, schema: Schema, n_rows: int) -> Any:
    """Return a data frame of texts, categories and numbers; missing texts are empty."""
    import pandas as pd

    columns: dict[str, Any] = {}
    for column in schema:
        cells = values.get(column.name, [None] * n_rows)
        if column.kind == "number":
            columns[column.name] = np.array([np.nan if c is None else c for c in cells])
        elif column.kind == "date":
            places = np.array(
                [[np.nan] * len(CYCLES) if c is None else cycles_of(c) for c in cells]
            )
            columns |= {f"{column.name}@{cycle}": places[:, i] for i, cycle in enumerate(CYCLES)}
        elif column.kind in ("text", "category"):
            columns[column.name] = ["" if cell is None else cell for cell in cells]
    return pd.DataFrame(columns)


def pipeline(schema: Schema, known: Any) -> Any:
    """Return words by TF-IDF, categories as indicators, numbers as z-scores, and softmax."""
    from sklearn.compose import ColumnTransformer
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

    def named(*kinds: str) -> list[str]:
        return [c.name for c in schema if c.kind in kinds and known[c.name].astype(bool).any()]

    words = [
        (name, TfidfVectorizer(sublinear_tf=True), name)
        for name in named("text")
        if any(map(tokenize, known[name]))
    ]
    clip = FunctionTransformer(np.clip, kw_args={"a_min": -CLIP, "a_max": CLIP})
    numbers = make_pipeline(SimpleImputer(), StandardScaler(), clip)
    measured = known.select_dtypes("number").dropna(axis=1, how="all").columns
    columns = ColumnTransformer(
        [
            *words,
            ("categories", OneHotEncoder(handle_unknown="ignore"), named("category")),
            ("numbers", numbers, list(measured)),
        ]
    )
    return make_pipeline(columns, LogisticRegression(C=10.0, max_iter=100))


# ---- the table ------------------------------------------------------------------------------


def methods(source: Source, rows: list[Row], *, quick: bool) -> dict[str, Callable[..., list[Any]]]:
    """Return the methods by name."""
    texts = dict.fromkeys(source.texts, "text")
    others = dict.fromkeys(source.texts, "ignore")
    alone = {name: texts.get(name, "ignore") for name in rows[0]}
    found: dict[str, Callable[..., list[Any]]] = {
        "default": of_kesler,
        "default, texts named": lambda X, y: of_kesler(X, y, columns=texts),
        "texts alone": lambda X, y: of_kesler(X, y, columns=alone),
        "all but the texts": lambda X, y: of_kesler(X, y, columns=others),
        "ensemble": lambda X, y: of_kesler(X, y, update="ensemble"),
        "Vowpal Wabbit": partial(of_vw, texts=texts),
    }
    return found if quick else {**found, "scikit-learn, refitted": partial(of_sklearn, texts=texts)}


def main() -> None:
    """Run all methods on all tables; write the errors and the seconds."""
    parser = script_parser(__doc__, __file__)
    parser.add_argument("--quick", action="store_true", help="leave the refitted model out")
    options = parser.parse_args()
    quick, path = options.quick, options.results / "mixed_tables"
    figures: dict[str, dict[str, tuple[float, float]]] = {}
    for name, source in SOURCES.items():
        rows, y = source.rows()
        for method, run in methods(source, rows, quick=quick).items():
            start = time.perf_counter()
            wrong = error(run(rows, y), y)
            seconds = time.perf_counter() - start
            figures.setdefault(method, {})[name] = (round(wrong, 2), round(seconds, 1))
            print(f"{name:16} {method:24} {wrong:6.2f} % {seconds:8.1f} s", flush=True)
        if not quick:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".json").write_text(json.dumps(figures, indent=1) + "\n")
            path.with_suffix(".md").write_text(table(figures))
    print(table(figures))


def table(figures: dict[str, dict[str, tuple[float, float]]]) -> str:
    """Return the page of results."""
    lines = [
        "# Mixed tables",
        "",
        "Progressive error in %, and seconds with all preparation; `benchmarks/mixed_tables.py`.",
        "",
        "| method | " + " | ".join(SOURCES) + " |",
        "| :-- |" + " --: |" * len(SOURCES),
    ]
    for method, of_tables in figures.items():
        known = (of_tables.get(name) for name in SOURCES)
        cells = ("-" if each is None else f"{each[0]:.2f} ({each[1]:.0f} s)" for each in known)
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
