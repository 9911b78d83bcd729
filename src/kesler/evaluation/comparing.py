"""compare: several methods of any kind on one set of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kesler.errors import KeslerError, MismatchWarning, warn
from kesler.evaluation.adapters import Refit, method_of, require_refit
from kesler.evaluation.comparison import Comparison
from kesler.evaluation.methods import BASELINES, KeslerMethod, Method, require_delay
from kesler.evaluation.named import default_methods, named_method
from kesler.evaluation.results import ProgressiveResult
from kesler.evaluation.summary import table_of, top_columns
from kesler.evaluation.tables import Piece, Table, data_frame
from kesler.metrics import PlaceCounts
from kesler.progress import progress


@dataclass(frozen=True)
class ComparisonResult(Mapping[str, ProgressiveResult]):
    """The results of several methods on the same rows: a mapping from names; `str` is a table.

    Parameters
    ----------
    results : dict of str to ProgressiveResult
        The results in the order of the methods.
    top : int or None, default None
        As in :func:`kesler.compare`.
    """

    results: dict[str, ProgressiveResult]
    top: int | None = None

    def __getitem__(self, name: str) -> ProgressiveResult:
        return self.results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __str__(self) -> str:
        return table_of(self.results, top_columns(self._place_counts(), self.top))

    def _place_counts(self) -> dict[str, PlaceCounts | None]:
        """Return how often the class of a row is among the `top`, by the names of the methods."""
        return {
            name: None
            if each.places is None or self.top is None
            else PlaceCounts.of(each.places, self.top)
            for name, each in self.results.items()
        }

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for each method.

        Returns
        -------
        pandas.DataFrame with the columns method, trials, mistakes, first_seen, error (mistakes
        divided by trials) and rows_per_second; with `top`, also recall_at_K and ndcg_at_K, NaN for
        methods that score no classes.

        Raises
        ------
        KeslerError
            If pandas is not installed.
        """
        each = self.results.values()
        columns = {
            "method": list(self.results),
            "trials": [result.n_trials for result in each],
            "mistakes": [result.n_mistakes for result in each],
            "first_seen": [result.n_first_seen for result in each],
            "error": [result.error for result in each],
            "rows_per_second": [result.rows_per_second for result in each],
        }
        for name in ("recall", "ndcg") if self.top is not None else ():
            columns[f"{name}_at_{self.top}"] = [
                float("nan") if counts is None else getattr(counts, name)(self.top)
                for counts in self._place_counts().values()
            ]
        return data_frame(columns)


def compare(
    methods: Mapping[str, Any] | Sequence[Any] | str | None,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    classes: Any = None,
    refit: Refit = None,
    n_threads: int | None = None,
    top: int | None = None,
    delay: int = 0,
) -> ComparisonResult:
    """Validate several methods progressively on the same rows.

    Parameters
    ----------
    methods : dict of str to method, list of methods, name, or None
        Each method is any of those of :func:`kesler.progressive_validate`, or a name: "default",
        "ensemble", "kernel", "HYPOTHESES[:UPDATE[:C]]" as on the command line, such as
        "hybrid:pa1:0.01", or that of a baseline, "most frequent class" or "last answer again". In a
        list, methods without a name are called by the names of their classes or functions. Objects
        learn in place; a warning says which have learnt rows before.

        None stands for the default learner, the ensemble, the three ways of sharing hypotheses
        ("multi", "single" and "hybrid", under PA-I), for dense rows of at most 100 features a
        kernel (with at most 20,000 support vectors), and both baselines.
    X, y, sample_weight, classes, refit : as in :func:`kesler.progressive_validate`
        Rows are given to all methods in the same form. `refit` applies to classifiers with `fit`
        and `predict` that are not Kesler's.
    n_threads : int or None, default None
        The maximum number of methods that learn at the same time. None means the number of cores if
        all methods are Kesler's, else 1.
    top : int of 1 or more, or None, default None
        A number of classes: the table and the data frame then say how often the class of a row is
        among so many of highest score, and how near to the first, as `recall_at` and `ndcg_at` of
        the results do for any number. None leaves this out.
    delay : int of 0 or more, default 0
        As in :func:`kesler.progressive_validate`, for all methods; results have `late` as those of
        that function. Each row costs as much time and memory for each method as there.

    Returns
    -------
    ComparisonResult
        A mapping from names to :class:`~kesler.evaluation.results.ProgressiveResult`, in the order
        of the methods, with `to_frame`. `print` shows it as a table, and
        :class:`kesler.plots.MistakeCurveDisplay` draws it.

    Raises
    ------
    KeslerError
        If there is no method, two have the same name, a name is unknown, `top` or `delay` is no
        such number, a method learns all rows at once and a delay is given, or a method raises an
        error for the rows.

    Examples
    --------
    >>> import kesler
    >>> from sklearn.naive_bayes import MultinomialNB
    >>> pens = kesler.datasets.load_pendigits()
    >>> methods = ["default", MultinomialNB(), "most frequent class"]
    >>> found = kesler.compare(methods, pens.X[:500], pens.y[:500])
    >>> {name: result.n_mistakes for name, result in found.items()}
    {'default': 40, 'MultinomialNB': 90, 'most frequent class': 440}
    """
    from kesler.compiled.jit.background import in_foreground

    require_refit(refit)
    require_delay(delay)
    table = Table.of(X, y, sample_weight)
    chosen = _chosen(methods, table)
    wrapped = {name: method_of(each, table, classes, refit, delay) for name, each in chosen.items()}
    _warn_of_learnt(wrapped)
    if n_threads is None and not all(map(_is_own, wrapped.values())):
        n_threads = 1  # methods in Python gain nothing from threads, and may not be made for them
    comparison = Comparison(wrapped, n_threads, keep_predictions=True, top=top)
    rows = Piece(table, 0, len(table))
    comparison.ask_for_loops(rows)
    # Times are those of compiled loops.
    with in_foreground(alone=False), progress("comparing", "rows", len(table)) as task:
        for line in comparison.run([rows]):
            task.report(line.n_trials)
    return ComparisonResult(comparison.validated(), top)


def _warn_of_learnt(methods: Mapping[str, Method]) -> None:
    for name, method in methods.items():
        if isinstance(method, KeslerMethod) and method.n_known:
            warn(
                f"{name} has learnt {method.learner.n_trials_:,} rows before this comparison, and "
                "goes on from them: give sklearn.base.clone(model) to begin anew",
                MismatchWarning,
            )


def _is_own(method: Method) -> bool:
    return isinstance(method, (KeslerMethod, *BASELINES.values()))


def _chosen(methods: Any, table: Table) -> dict[str, Any]:
    """Return the methods by name, with learners for names."""
    if methods is None:
        dense = table.is_dense
        return dict(default_methods({}, dense=dense, n_features=table.width if dense else 0))
    if isinstance(methods, str) or not isinstance(methods, (Mapping, Sequence)):
        methods = [methods]
    pairs = methods.items() if isinstance(methods, Mapping) else [(_name(m), m) for m in methods]
    found = dict[str, Any]()
    for name, method in pairs:
        if name in found:
            raise KeslerError(
                f"two methods are called {name!r}: give a dict of names to methods instead"
            )
        found[name] = named_method(method, {}) if isinstance(method, str) else method
    return found


def _name(method: Any) -> str:
    if isinstance(method, str):
        return method
    return str(getattr(method, "__name__", type(method).__name__))
