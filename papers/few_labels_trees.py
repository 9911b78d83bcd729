"""Trees of classes: flat hypotheses compared with those of the nodes of a tree.

After Dekel, Keshet and Singer (2004), "Large margin hierarchical classification". Each rule learns
with one vector for each class ("flat"), the same with distances in the tree as costs, one vector
for each node with all costs 1, and both ("tree", which is the `tree=` of OnlineClassifier), so that
the two effects can be told apart. Their bound is evaluated on every run with costs.

    python papers/few_labels_trees.py        # all, into papers/results/few_labels_trees.md
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction import DictVectorizer
from sklearn.metrics import confusion_matrix

from kesler import KeslerError, OnlineClassifier, progressive_validate
from kesler.bounds import tree_bound
from kesler.data.texts import tokenize
from kesler.datasets import load, load_letter
from kesler.evaluation.results import ProgressiveResult
from kesler.hypotheses import Grouped, PerClass
from kesler.trees import Tree, level_errors, tree_distances, tree_of_confusions
from kesler.updates import MIRA, PredictionBased
from report import Report, table
from script_arguments import script_parser

USERS = ("beck-s", "farmer-d", "kaminski-v", "kitchen-l", "lokay-m", "sanders-r", "williams-w3")
SEEDS = (0, 1)
MOST_ROWS = 3000


RULES: dict[str, dict[str, Any]] = {
    "PA on the prediction (the source)": {"update": PredictionBased(variant=0)},
    "the same, averaged": {"update": PredictionBased(variant=0), "averaged": True},
    "PA on the largest loss": {"update": "pa"},
    "MIRA": {"update": MIRA()},
}
DEFAULT = "default"


@dataclass(frozen=True)
class Stream:
    """Rows with labels in a tree, in one or several orders.

    Parameters
    ----------
    name : str
    X : rows for the default; those of the other rules are divided by their length.
    y : labels.
    tree : the tree of the labels.
    orders : the numbers of the rows, in each order.
    """

    name: str
    X: Any
    y: npt.NDArray[Any]
    tree: Tree
    orders: Sequence[npt.NDArray[np.int64]]


# ---- streams -------------------------------------------------------------------------------------


def newsgroups(n_rows: int) -> Stream:
    """Return 20 Newsgroups, shuffled, in the tree of the dotted names."""
    found = load("20newsgroups")
    texts = [list(record.values()) for record in found.records]
    return _of_words("20 Newsgroups, dotted names", texts, list(found.y), Tree("."), n_rows)


def mail(n_rows: int) -> Stream:
    """Return the mail of seven Enron users, shuffled, in the tree of users and folders."""
    texts, labels = list[list[str]](), list[str]()
    for user in USERS:
        found = load(f"enron/{user}")
        texts += [[r["from"], r["to"], r["subject"], r["body"]] for r in found.records]
        labels += [f"{user}/{folder}" for folder in found.y]
    return _of_words("Enron, users and folders", texts, labels, Tree("/"), n_rows)


def rescues(n_rows: int) -> Stream:
    """Return the animal rescues of London in their order, in the tree of service categories."""
    path = Path(os.environ["KESLER_DATA"], "mixed_tables/london_animal_rescues.csv.gz")
    rows = list(csv.DictReader(io.StringIO(gzip.decompress(path.read_bytes()).decode())))[:n_rows]
    label, above = "special service type", "special service type category"
    fields = ("final description", "property type", "property category", "animal group parent")
    texts = [[row[name] for name in fields] for row in rows]
    parents = {row[label]: f"category {row[above]}" for row in rows}
    labels = [row[label] for row in rows]
    title = "London rescues, service categories"
    return _of_words(title, texts, labels, Tree(parents), n_rows, seeds=())


def letters(n_rows: int) -> Stream:
    """Return LETTER after its first quarter, from whose confusions the tree is learnt."""
    found = load_letter()
    X, y = found.X / 15.0, found.y
    first = min(len(y), 4 * n_rows) // 4
    result = progressive_validate(OnlineClassifier("multi", update="pa"), X[:first], y[:first])
    seen = ~result.first_seen
    names = np.unique(y).tolist()
    counts = confusion_matrix(result.targets[seen], result.predictions[seen], labels=names)
    tree = tree_of_confusions(counts, names, sizes=(4, 12))
    rest = np.arange(first, min(len(y), first + 3 * n_rows))
    return Stream("LETTER, tree of confusions", X, y, tree, [rest])


def _of_words(
    name: str,
    texts: Sequence[Sequence[str]],
    labels: Sequence[str],
    tree: Tree,
    n_rows: int,
    seeds: Sequence[int] = SEEDS,
) -> Stream:
    """Return rows of the words of texts; without seeds they keep their order."""
    n = len(labels)
    orders = [np.random.default_rng(seed).permutation(n)[:n_rows] for seed in seeds]
    kept = np.unique(np.concatenate(orders)) if orders else np.arange(n)
    words = (dict.fromkeys(tokenize(" ".join(texts[i])), 1.0) for i in kept.tolist())
    X = sparse.csr_array(DictVectorizer(dtype=np.float32).fit_transform(words))
    places = [np.searchsorted(kept, order) for order in orders]
    return Stream(name, X, np.array(labels)[kept], tree, places or [np.arange(n)])


STREAMS: tuple[Callable[[int], Stream], ...] = (newsgroups, mail, rescues, letters)


# ---- runs ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """The means of the figures of one learner over the orders of a stream.

    Parameters
    ----------
    rule, hypotheses : str
    error, tree_loss : mistakes, and distances in the tree, divided by the trials.
    levels : the error at each level of the tree.
    share : of the bound that the distances reach, at most; NaN without a bound.
    """

    rule: str
    hypotheses: str
    error: float
    tree_loss: float
    levels: npt.NDArray[np.float64]
    share: float


def learners(rule: str, tree: Tree) -> dict[str, OnlineClassifier]:
    """Return the learners of a rule, by their hypotheses."""
    if rule == DEFAULT:
        return {"flat": OnlineClassifier("auto"), "tree": OnlineClassifier(tree=tree)}
    given = RULES[rule]
    return {
        "flat": OnlineClassifier([PerClass()], **given),
        "flat, distances as costs": OnlineClassifier([PerClass()], costs=tree, **given),
        "nodes, costs of 1": OnlineClassifier([Grouped(tree)], **given),
        "tree": OnlineClassifier("multi", tree=tree, **given),
    }


def compare(stream: Stream) -> list[Row]:
    """Return the figures of all learners on a stream."""
    found = []
    for rule in (*RULES, DEFAULT):
        for name, learner in _fair(learners(rule, stream.tree), stream).items():
            runs = [_run(learner, stream, order, rule) for order in stream.orders]
            figures, shares = [run[0] for run in runs], [run[1] for run in runs]
            depth = max(len(levels) for _, _, levels in figures)
            levels = [np.pad(each, (0, depth - len(each)), "edge") for _, _, each in figures]
            error, loss = np.mean([each[:2] for each in figures], axis=0)
            found.append(Row(rule, name, error, loss, np.mean(levels, axis=0), max(shares)))
    return found


def _fair(made: dict[str, OnlineClassifier], stream: Stream) -> dict[str, OnlineClassifier]:
    """Return the learners; the default for measurements without its ensemble, as with a tree."""
    if "nodes, costs of 1" not in made and not sparse.issparse(stream.X):
        made["flat"] = OnlineClassifier([PerClass()])
    return made


def _run(
    learner: OnlineClassifier, stream: Stream, order: npt.NDArray[np.int64], rule: str
) -> tuple[tuple[float, float, npt.NDArray[np.float64]], float]:
    """Return the figures of a run, and the share of the bound that its distances reach."""
    X = stream.X[order] if rule == DEFAULT else _unit(stream.X[order])
    result = progressive_validate(
        learner.__class__(**learner.get_params(deep=False)), X, stream.y[order]
    )
    return _figures(result, stream.tree), _share(result)


def _unit(X: Any) -> Any:
    """Return rows divided by their length."""
    if not sparse.issparse(X):
        return X / np.sqrt((X**2).sum(axis=1, keepdims=True))
    lengths = np.sqrt(np.asarray((X**2).sum(axis=1)).ravel())
    return sparse.csr_array(sparse.diags_array(1 / np.maximum(lengths, 1e-12)) @ X)


def _figures(result: ProgressiveResult, tree: Tree) -> tuple[float, float, Any]:
    asked = result.targets, result.predictions, tree, result.wrong
    return result.error, float(tree_distances(*asked).mean()), level_errors(*asked)


def _share(result: ProgressiveResult) -> float:
    """Return the distances divided by their bound, NaN where no theorem covers the run."""
    try:
        found = tree_bound(result)
    except KeslerError:
        return float("nan")
    return found.distance / found.bound


# ---- the page ------------------------------------------------------------------------------------


def tables(n_rows: int = MOST_ROWS) -> dict[str, list[Row]]:
    """Return the figures of each stream.

    Parameters
    ----------
    n_rows : the number of rows of a stream; of LETTER, a quarter of it.
    """
    streams = map(partial(_made, n_rows=n_rows), STREAMS)
    return {stream.name: compare(stream) for stream in streams}


def _made(make: Callable[[int], Stream], n_rows: int) -> Stream:
    return make(n_rows)


def page_table(rows: Sequence[Row]) -> str:
    """Return the figures of a stream as a table."""
    depth = max(len(row.levels) for row in rows)
    heading = ["rule", "hypotheses", "mistakes %", "tree loss"]
    heading += [f"level {i + 1} %" for i in range(depth)]
    lines = []
    for row in rows:
        levels = [
            f"{100 * each:.1f}" for each in np.pad(row.levels, (0, depth - len(row.levels)), "edge")
        ]
        share = "-" if np.isnan(row.share) else f"{100 * row.share:.1f}"
        figures = [f"{100 * row.error:.2f}", f"{row.tree_loss:.4f}", *levels, share]
        lines.append([row.rule, row.hypotheses, *figures])
    return table([*heading, "of bound %"], lines)


def main() -> int:
    """Write the page; return 1 if a check failed."""
    folder = script_parser(__doc__, __file__).parse_args().results
    report = Report("few_labels_trees", "Trees of classes", folder)
    report.add(
        "Mistakes in %, and distances in the tree (tree loss) per trial, before each row is "
        f"learnt. Text: {len(SEEDS)} random orders of {MOST_ROWS:,} rows, means over the orders; "
        "rescues in their order of time; letters after the first quarter, from whose confusions "
        "the tree is learnt. Rows of words have length 1, but for the default, which prepares rows "
        "itself; the default has no margin, so that a tree has no costs there, and the class of "
        "the least expected distance is predicted. Level 1 is below the root. "
        "The last column: the sum of distances as a share of its bound, at most over orders."
    )
    for name, rows in tables().items():
        report.add(f"## {name}", page_table(rows))
        _check(report, name, rows)
    return report.write()


def _check(report: Report, name: str, rows: Sequence[Row]) -> None:
    loss = {(row.rule, row.hypotheses): row.tree_loss for row in rows}
    for rule in (*RULES, DEFAULT):
        flat, tree = loss[rule, "flat"], loss[rule, "tree"]
        report.check(f"{name}, {rule}: tree loss {tree:.4f}, below {flat:.4f} of flat", tree < flat)
    shares = [row.share for row in rows if not np.isnan(row.share)]
    report.check(f"{name}: the bound holds on all {len(shares)} learners", max(shares) <= 1)


if __name__ == "__main__":
    sys.exit(main())
