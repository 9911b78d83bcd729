"""The report: what a method got wrong, in which classes, when, and how sure it was."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kesler.errors import integer_of
from kesler.evaluation.confidence import RiskCoverage, Threshold
from kesler.evaluation.reports import measures
from kesler.evaluation.reports.coding import ScoredRows, scored_rows
from kesler.metrics import calibration_error, log_loss

if TYPE_CHECKING:
    from kesler.evaluation.results import ProgressiveResult
    from kesler.trees.tree import Tree

ERRORS = (0.01, 0.02, 0.05, 0.1)
"""The errors for which a report gives thresholds of confidence."""

ALL_WITHOUT = (
    "The predictions have no confidences, so that calibration, the error by confidence and the "
    "rows most surely wrong are left out."
)


@dataclass(frozen=True, slots=True)
class Report:
    """A report on scored rows, with `str`, `to_dict`, `to_json`, `to_frame` and `to_html`.

    Attributes
    ----------
    learns : bool
        Whether the method learnt from each row after its prediction, as in progressive validation;
        False for a model that was tested as it was.
    n_rows : int
        Number of rows.
    n_classes : int
        Number of classes among them.
    n_mistakes : int
        Number of rows of known classes for which another class was predicted.
    n_first_seen : int
        Number of rows of classes that the method had not seen before, which are no mistakes: the
        first row of each class, or all of them if the method did not learn.
    error : float
        Mistakes divided by rows, or by those of known classes if the method did not learn (NaN if
        there are none).
    top_accuracy : tuple of TopAccuracy
        How often the class is among the 1, 3 and 5 of highest score, with the NDCG; without those
        that include all classes, and empty if the method scores no classes.
    log_loss : float
        Mean of -ln of the probability of the target, over rows of known classes; NaN without
        probabilities.
    calibration_error : float
        The expected calibration error of the predictions, in 15 bins; NaN without confidences.
    mean_absolute_error : float or None
        Mean absolute difference of predicted and true ranks, for ordinal results.
    tree_loss : float or None
        Distances of mistakes from their targets in the tree of classes, divided by rows, if the
        learner has a tree.
    level_errors : tuple of float
        The error at each level of the tree, from below the root to the classes; empty without one.
    classes : tuple of ClassFigures
        Rows, precision, recall, F1 and calibration of each class, those with the most rows first.
        Rows of classes that had not been seen are left out of precision, recall and F1.
    confusions : tuple of Confusion
        The pairs of classes that were confused most often.
    windows : tuple of Window
        The error of consecutive rows.
    ages : tuple of AgeGroup
        The error by the number of rows of the class so far; empty if the method did not learn.
    surely_wrong : tuple of WrongRow
        The mistakes of the highest confidence, some of which may be wrong labels.
    reliability : tuple of ReliabilityBin
        Accuracy by confidence, in ten bins; empty without confidences.
    risk_coverage : RiskCoverage or None
        The error by the share of rows answered; None without confidences.
    matrix : Matrix
        The confusion matrix of the 15 classes with the most rows.
    growth : Growth
        Mistakes and classes so far.
    notes : tuple of str
        Sentences about what had to be left out.

    Examples
    --------
    >>> from kesler import OnlineClassifier, progressive_validate
    >>> from kesler.datasets import load_pendigits
    >>> pens = load_pendigits()
    >>> report = progressive_validate(OnlineClassifier(), pens.X[:500], pens.y[:500]).report()
    >>> report.n_rows, report.n_classes, report.n_first_seen, report.classes[0].label
    (500, 10, 10, 0)
    >>> [(group.least, group.rows) for group in report.ages]
    [(1, 40), (6, 50), (11, 100), (21, 277), (51, 23), (101, 0), (501, 0)]
    """

    learns: bool
    n_rows: int
    n_classes: int
    n_mistakes: int
    n_first_seen: int
    error: float
    top_accuracy: tuple[measures.TopAccuracy, ...]
    log_loss: float
    calibration_error: float
    mean_absolute_error: float | None
    tree_loss: float | None
    level_errors: tuple[float, ...]
    classes: tuple[measures.ClassFigures, ...]
    confusions: tuple[measures.Confusion, ...]
    windows: tuple[measures.Window, ...]
    ages: tuple[measures.AgeGroup, ...]
    surely_wrong: tuple[measures.WrongRow, ...]
    reliability: tuple[measures.ReliabilityBin, ...]
    risk_coverage: RiskCoverage | None
    matrix: measures.Matrix
    growth: measures.Growth
    notes: tuple[str, ...]

    @staticmethod
    def of_result(result: ProgressiveResult, top: int = 10) -> Report:
        """Return the report of a progressive validation; see `ProgressiveResult.report`."""
        absolute, notes = getattr(result, "mean_absolute_error", None), _notes_of_delay(result)
        scored = scored_rows(result)
        return Report.of(scored, top, mean_absolute_error=absolute, tree=result.tree, notes=notes)

    @staticmethod
    def of(
        scored: ScoredRows,
        top: int = 10,
        *,
        mean_absolute_error: float | None = None,
        tree: Tree | None = None,
        notes: tuple[str, ...] = (),
    ) -> Report:
        """Return the report of scored rows.

        Parameters
        ----------
        scored : ScoredRows
            At least one row.
        top : int of 1 or more, default 10
            The number of confused pairs and of rows most surely wrong that are listed.
        mean_absolute_error : float or None
            As the attribute.
        tree : Tree or None
            The tree of classes of the learner.
        notes : tuple of str
            Sentences that precede those of the report.

        Notes
        -----
        The cost is that of sorting the rows.
        """
        integer_of("top", top, 1, why=": it is the number of rows to list")
        known, wrong, unseen = scored.known, scored.wrong, scored.unseen
        n_wrong, n_unseen = int(wrong.sum()), int(unseen.sum())
        n_asked = len(scored) - (0 if scored.learns else n_unseen)
        curve = scored.risk_coverage() if known.any() else None
        loss, errors = (None, ()) if tree is None else measures.tree_figures(scored, tree)
        return Report(
            learns=scored.learns,
            n_rows=len(scored),
            n_classes=len(np.unique(scored.answers)),
            n_mistakes=n_wrong,
            n_first_seen=n_unseen,
            error=measures.share(n_wrong, n_asked),
            top_accuracy=measures.top_accuracies(scored),
            log_loss=log_loss(scored.of_targets[scored.seen]),
            calibration_error=calibration_error(scored.confidences[known], scored.right[known]),
            mean_absolute_error=mean_absolute_error,
            tree_loss=loss,
            level_errors=errors,
            classes=measures.class_figures(scored),
            confusions=measures.confusions(scored, top),
            windows=measures.windows(scored),
            ages=measures.age_groups(scored),
            surely_wrong=measures.surely_wrong(scored, top),
            reliability=measures.reliability(scored),
            risk_coverage=curve,
            matrix=measures.confusion_matrix(scored),
            growth=measures.growth(scored),
            notes=(*notes, *_notes(scored)),
        )

    def thresholds(self) -> dict[float, Threshold | None]:
        """Return the lowest confidence for each of the errors 1, 2, 5 and 10 %.

        An error that no confidence reaches has None; without confidences there are no errors.
        """
        curve = self.risk_coverage
        if curve is None:
            return {}
        least = curve.risk.min()
        return {each: curve.threshold_for(each) if least <= each else None for each in ERRORS}

    def __str__(self) -> str:
        from kesler.evaluation.reports.text import text_of

        return text_of(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as dictionaries, lists, numbers and text, which JSON can hold.

        Labels that are neither text nor numbers are text; measures that are not defined are None.

        Examples
        --------
        >>> from kesler import progressive_validate
        >>> report = progressive_validate(lambda X, y, x: y[-1], [[0], [0]], ["a", "a"]).report()
        >>> found = report.to_dict()
        >>> found["n_rows"], found["classes"][0]["recall"], found["log_loss"]
        (2, 1.0, None)
        """
        found: dict[str, Any] = {
            field.name: plain(getattr(self, field.name))
            for field in fields(self)
            if field.name != "risk_coverage"
        }
        curve = self.risk_coverage
        found["risk_coverage"] = None if curve is None else plain(_points(curve))
        found["thresholds"] = {f"{e:g}": plain(each) for e, each in self.thresholds().items()}
        return found

    def to_json(self, indent: int | None = 1) -> str:
        """Return `to_dict` as a JSON text; `indent` is that of `json.dumps`."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def to_frame(self) -> Any:
        """Return the classes as a pandas data frame.

        Returns
        -------
        pandas.DataFrame with a row for each class and the columns label, first, rows, mistakes,
        predictions, precision, recall, f1 and calibration_error, as in `classes`.

        Raises
        ------
        KeslerError
            If pandas is not installed.
        """
        from kesler.evaluation.tables import data_frame

        names = [field.name for field in fields(measures.ClassFigures)]
        return data_frame({name: [getattr(each, name) for each in self.classes] for name in names})

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        title: str = "Evaluation",
        texts: Mapping[int, str] | None = None,
        explanations: Mapping[int, Any] | None = None,
    ) -> None:
        """Write the report as one page of HTML, which needs no other file and no network.

        Labels and texts are escaped, and the page forbids browsers to run anything but its own
        script, which sorts tables, and to load anything.

        Parameters
        ----------
        path : str or path
            The file to write; one that exists is replaced.
        title : str, default "Evaluation"
            The heading of the page.
        texts : dict of int to str or None, default None
            Texts to show for the rows most surely wrong, by row numbers.
        explanations : dict of int to explanation or None, default None
            Explanations of these rows: objects with `contributions`, each of which has a `feature`
            and a `margin`, and `remainder.margin`, as `explain_one` of a classifier returns.

        Raises
        ------
        KeslerError
            If Jinja2 is not installed (``pip install 'kesler[report]'``), or the file cannot be
            written.
        """
        from kesler.evaluation.reports.page import page_of, write

        write(path, page_of(self, title, texts or {}, explanations or {}))


def _notes_of_delay(result: ProgressiveResult) -> tuple[str, ...]:
    """Return what a reader must know if answers arrived late."""
    if not result.delay:
        return ()
    arrived = f"Each answer arrived {result.delay:,} {'row' if result.delay == 1 else 'rows'} late."
    return (arrived,) if result.late is None else (f"{arrived} {result.late}",)


def _notes(scored: ScoredRows) -> tuple[str, ...]:
    """Return what a reader must know about rows without confidences."""
    n_known, n_seen = int(scored.known.sum()), int(scored.seen.sum())
    if n_seen == 0:
        return ("No row is of a class that the method had seen, so that none could be right.",)
    if n_known == 0:
        return (ALL_WITHOUT,)
    if n_known < n_seen:
        return (
            f"{n_seen - n_known:,} of {n_seen:,} predictions have no confidence and are left out "
            "of calibration and of the error by confidence.",
        )
    return ()


def _points(curve: RiskCoverage) -> dict[str, Any]:
    """Return a curve with at most 201 evenly spaced points."""
    n_points = len(curve.thresholds)
    at = np.unique(np.linspace(0, n_points - 1, min(n_points, measures.MOST_POINTS)).astype(int))
    return {
        "coverage": curve.coverage[at].tolist(),
        "risk": curve.risk[at].tolist(),
        "confidence": curve.thresholds[at].tolist(),
        "area": curve.area,
        "n_left_out": curve.n_left_out,
    }


def plain(value: Any) -> Any:
    """Return a value as what JSON can hold."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
