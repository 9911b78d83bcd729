"""Curves: error by number of features or of rows answered, and cumulative mistakes by trials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError
from kesler.plots.drawing import (
    INK,
    dress,
    name_lines,
    new_axes,
    show_counts,
    spread,
    style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from kesler.evaluation.confidence import RiskCoverage

Measure = Literal["error", "loss"]
Curve = tuple[npt.ArrayLike, npt.ArrayLike]


class FeatureCurveDisplay:
    """Error or loss by number of features, with a line for each method.

    Parameters
    ----------
    curves : mapping of str to (sizes, values)
        The methods by name: increasing numbers of features, and the value for each.
    measure : {'error', 'loss'}, default 'error'
        The kind of values; errors are shares of rows, from 0 to 1, and are drawn in %.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure drawn on.
    ax_ : matplotlib Axes
        The axes drawn on.
    lines_ : list of matplotlib Line2D
        One for each method.

    Raises
    ------
    KeslerError
        If there is no curve, a curve is empty, or the numbers of sizes and values differ; when
        drawing, if matplotlib is not installed.

    References
    ----------
    Shalev-Shwartz, Wexler and Shashua (2011), Figures 3 and 4.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kesler import ShareBoostClassifier
    >>> from kesler.datasets import load_pendigits
    >>> from kesler.plots import FeatureCurveDisplay
    >>> pens = load_pendigits()
    >>> model = ShareBoostClassifier(5).fit(pens.X[:500] / 50 - 1, pens.y[:500])
    >>> display = FeatureCurveDisplay.from_estimator(
    ...     model, measure="loss", rivals={"a guess": ([1, 5], [2.2, 2.2])}, ax=Figure().subplots()
    ... )
    >>> [(line.get_label(), len(line.get_xdata())) for line in display.lines_]
    [('ShareBoost', 5), ('a guess', 2)]
    """

    figure_: Figure
    ax_: Axes
    lines_: list[Line2D]

    def __init__(self, curves: Mapping[str, Curve], *, measure: Measure = "error") -> None:
        if measure not in get_args(Measure):
            raise KeslerError(f"measure={measure!r}: choose 'error' or 'loss'")
        if not curves:
            raise KeslerError("there is nothing to draw: give at least one curve")
        self.curves = {name: _checked(name, *curve) for name, curve in curves.items()}
        self.measure = measure

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        measure: Measure = "error",
        name: str = "ShareBoost",
        rivals: Mapping[str, Curve] | None = None,
        ax: Axes | None = None,
    ) -> FeatureCurveDisplay:
        """Draw the path of a fitted ShareBoostClassifier, and curves of other methods.

        Parameters
        ----------
        model : ShareBoostClassifier
            Fitted, with an `eval_set` if the measure is the error.
        measure : {'error', 'loss'}, default 'error'
            The error on the `eval_set`, or the training loss.
        name : str, default 'ShareBoost'
            Name of the line.
        rivals : mapping of str to (sizes, values), optional
            Curves of other methods, with the same measure.
        ax : Axes, optional
            Axes to draw on; new axes by default.
        """
        return cls({name: path_curve(model, measure), **(rivals or {})}, measure=measure).plot(ax)

    def plot(self, ax: Axes | None = None) -> FeatureCurveDisplay:
        """Draw on `ax`, or on new axes; return the display itself."""
        self.ax_ = new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure  # type: ignore[assignment]
        self.lines_ = [self._draw(i, name) for i, name in enumerate(self.curves)]
        in_percent = self.measure == "error"
        unit = "error in %" if in_percent else "loss"
        dress(self.ax_, _title(self.measure), "features", unit)
        self.ax_.locator_params(axis="x", integer=True)
        ends = [values[-1] for _, values in self.curves.values()]
        spelt = [f"{100 * end:.2f} %" if in_percent else f"{end:.4g}" for end in ends]
        texts = [f"{name}  {end}" for name, end in zip(self.curves, spelt, strict=True)]
        name_lines(self.ax_, self.lines_, texts)
        return self

    def _draw(self, i: int, name: str) -> Line2D:
        sizes, values = self.curves[name]
        drawn = 100 * values if self.measure == "error" else values
        marker = "o" if len(sizes) <= 60 else None
        [line] = self.ax_.plot(sizes, drawn, label=name, marker=marker, markersize=3, **style(i))
        return line


def path_curve(model: Any, measure: Measure) -> Curve:
    """Return numbers of features and the measure for each, from the path of a fitted model.

    Examples
    --------
    >>> from kesler import ShareBoostClassifier
    >>> from kesler.datasets import make_shared
    >>> from kesler.plots import path_curve
    >>> sizes, losses = path_curve(ShareBoostClassifier(3).fit(*make_shared(n=200)), "loss")
    >>> sizes.tolist(), bool(losses[0] > losses[-1])
    ([1, 2, 3], True)
    """
    rounds = model.path_
    if measure == "error" and rounds[0].validation_error is None:
        raise KeslerError(
            "the path has no validation errors: fit with eval_set=(X, y), or draw measure='loss'"
        )
    field = "validation_error" if measure == "error" else "loss"
    sizes = np.array([each.n_chosen for each in rounds])
    return sizes, np.array([getattr(each, field) for each in rounds])


def save_feature_curves(
    curves: Mapping[str, Curve], path: str, title: str, measure: Measure
) -> None:
    """Draw curves into a file, in the format of its suffix.

    Examples
    --------
    >>> import tempfile
    >>> from kesler.plots import save_feature_curves
    >>> path = tempfile.mkdtemp() + "/curve.png"
    >>> save_feature_curves({"chosen": ([1, 2, 3], [0.5, 0.2, 0.1])}, path, "Few features", "error")
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    ax = figure.subplots()
    FeatureCurveDisplay(curves, measure=measure).plot(ax)
    ax.set_title(title, loc="left", color=INK)
    figure.savefig(path, dpi=150)


def _title(measure: Measure) -> str:
    return "Error" * (measure == "error") + "Loss" * (measure == "loss") + " by number of features"


def _checked(
    name: str, sizes: npt.ArrayLike, values: npt.ArrayLike
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    sizes, values = np.asarray(sizes), np.asarray(values, dtype=np.float64)
    if sizes.ndim != 1 or sizes.shape != values.shape or not len(sizes):
        raise KeslerError(
            f"the curve {name!r} has sizes of shape {sizes.shape} and values of shape "
            f"{values.shape}: give 1-D arrays of equal length, with at least one value"
        )
    return sizes, values


class Record(Protocol):
    """The interface of results that can be drawn: ProgressiveResult and MethodResult."""

    @property
    def trials(self) -> npt.NDArray[np.int64]: ...  # noqa: D102
    @property
    def curve(self) -> npt.NDArray[np.int64]: ...  # noqa: D102
    @property
    def error(self) -> float: ...  # noqa: D102


R = TypeVar("R", bound="WithError")
Self = TypeVar("Self", bound="_Curves[Any]")


class WithError(Protocol):
    """The interface of results with an error."""

    @property
    def error(self) -> float: ...  # noqa: D102


class _Curves(Generic[R]):
    """Cumulative mistakes of methods, each a line that ends with its name and its error."""

    title: ClassVar[str]
    counted: ClassVar[str]

    figure_: Figure
    ax_: Axes
    lines_: list[Line2D]

    def __init__(self, results: Mapping[str, R]) -> None:
        if not results:
            raise KeslerError("there is nothing to draw: give at least one result")
        self.results = dict(results)

    @classmethod
    def from_results(cls: type[Self], results: Mapping[str, R], ax: Axes | None = None) -> Self:
        """Draw results on `ax`, or on new axes; return the display."""
        return cls(results).plot(ax)

    def plot(self: Self, ax: Axes | None = None) -> Self:
        """Draw on `ax`, or on new axes; return the display itself."""
        self.ax_ = new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure  # type: ignore[assignment]
        self.lines_ = [self._draw(i, name) for i, name in enumerate(self.results)]
        dress(self.ax_, self.title, self.counted, "mistakes so far")
        show_counts(self.ax_)
        errors = [f"{name}  {100 * each.error:.2f} %" for name, each in self.results.items()]
        name_lines(self.ax_, self.lines_, errors)
        return self

    def _draw(self, i: int, name: str) -> Line2D:
        counts, mistakes = self._points(self.results[name])
        [line] = self.ax_.plot(counts, mistakes, label=name, **style(i))
        return line

    def _points(self, result: R) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return at most 2,000 points of a line."""
        raise NotImplementedError


class MistakeCurveDisplay(_Curves[Record]):
    """Cumulative mistakes by trials, with a line for each method (Fink et al. 2006, Fig. 1).

    Parameters
    ----------
    results : mapping of str to result
        The methods by name, each a result of :func:`kesler.progressive_validate` or of a
        :class:`kesler.evaluation.comparison.Comparison`; or what :func:`kesler.compare` returns.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure drawn on.
    ax_ : matplotlib Axes
        The axes drawn on.
    lines_ : list of matplotlib Line2D
        One line for each method, of at most 2,000 points.

    Raises
    ------
    KeslerError
        If there are no results; when drawing, if matplotlib is not installed.

    References
    ----------
    Fink, Shalev-Shwartz, Singer and Ullman (2006), Figure 1.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kesler import OnlineClassifier, progressive_validate
    >>> from kesler.datasets import make_shared
    >>> from kesler.plots import MistakeCurveDisplay
    >>> X, y = make_shared(n=500)
    >>> results = {name: progressive_validate(OnlineClassifier(name), X, y)
    ...            for name in ("multi", "single")}
    >>> display = MistakeCurveDisplay.from_results(results, ax=Figure().subplots())
    >>> [line.get_label() for line in display.lines_]
    ['multi', 'single']
    """

    title = "Mistakes made while learning"
    counted = "trials"

    def _points(self, result: Record) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        stored = spread(len(result.curve))
        return result.trials[stored], result.curve[stored]


class Confident(Protocol):
    """The interface of results whose predictions have confidences: ProgressiveResult."""

    def risk_coverage(self) -> RiskCoverage: ...  # noqa: D102


class RiskCoverageDisplay:
    """Error among the rows of highest confidence by the share of rows, a line for each method.

    Parameters
    ----------
    curves : mapping of str to RiskCoverage
        The methods by name, each with what `ProgressiveResult.risk_coverage` returns.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure drawn on.
    ax_ : matplotlib Axes
        The axes drawn on.
    lines_ : list of matplotlib Line2D
        One line for each method, of at most 2,000 points.

    Raises
    ------
    KeslerError
        If there are no curves; when drawing, if matplotlib is not installed.

    References
    ----------
    El-Yaniv and Wiener (2010).

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kesler import OnlineClassifier, progressive_validate
    >>> from kesler.datasets import load_pendigits
    >>> from kesler.plots import RiskCoverageDisplay
    >>> pens = load_pendigits()
    >>> results = {name: progressive_validate(OnlineClassifier(name), pens.X[:500], pens.y[:500])
    ...            for name in ("multi", "single")}
    >>> display = RiskCoverageDisplay.from_results(results, ax=Figure().subplots())
    >>> [line.get_label() for line in display.lines_]
    ['multi', 'single']
    """

    figure_: Figure
    ax_: Axes
    lines_: list[Line2D]

    def __init__(self, curves: Mapping[str, RiskCoverage]) -> None:
        if not curves:
            raise KeslerError("there is nothing to draw: give at least one curve")
        self.curves = dict(curves)

    @classmethod
    def from_results(
        cls, results: Mapping[str, Confident], ax: Axes | None = None
    ) -> RiskCoverageDisplay:
        """Draw the curves of results on `ax`, or on new axes; return the display.

        Raises
        ------
        KeslerError
            If no prediction of a result has a confidence.
        """
        return cls({name: each.risk_coverage() for name, each in results.items()}).plot(ax)

    def plot(self, ax: Axes | None = None) -> RiskCoverageDisplay:
        """Draw on `ax`, or on new axes; return the display itself."""
        self.ax_ = new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure  # type: ignore[assignment]
        self.lines_ = [self._draw(i, name) for i, name in enumerate(self.curves)]
        title = "Error among the rows of highest confidence"
        dress(self.ax_, title, "rows answered in %", "error of these in %")
        self.ax_.set_xlim(0, 100)
        areas = [f"{name}  area {each.area:.4f}" for name, each in self.curves.items()]
        name_lines(self.ax_, self.lines_, areas)
        return self

    def _draw(self, i: int, name: str) -> Line2D:
        curve = self.curves[name]
        shown = spread(len(curve.thresholds))
        coverage, risk = 100 * curve.coverage[shown], 100 * curve.risk[shown]
        [line] = self.ax_.plot(coverage, risk, label=name, **style(i))
        return line


class Queried(Protocol):
    """The interface of results of runs that asked for labels: QueriedResult."""

    @property
    def by_labels(self) -> npt.NDArray[np.int64]: ...  # noqa: D102
    @property
    def error(self) -> float: ...  # noqa: D102


class LabelCurveDisplay(_Curves[Queried]):
    """Cumulative mistakes by labels asked for, with a line for each method.

    Parameters
    ----------
    results : mapping of str to result
        The methods by name, each a result of :func:`kesler.progressive_validate` with a label
        budget.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure drawn on.
    ax_ : matplotlib Axes
        The axes drawn on.
    lines_ : list of matplotlib Line2D
        One line for each method, of at most 2,000 points.

    Raises
    ------
    KeslerError
        If there are no results, or no labels were asked for in one of them, as without a label
        budget; when drawing, if matplotlib is not installed.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kesler import OnlineClassifier, progressive_validate
    >>> from kesler.datasets import load_pendigits
    >>> from kesler.plots import LabelCurveDisplay
    >>> from kesler.queries import RandomQuery
    >>> pens, rules = load_pendigits(), {"doubt": 0.1, "at random": RandomQuery(0.1)}
    >>> results = {name: progressive_validate(OnlineClassifier("multi", update="pa1"),
    ...                                       pens.X[:500], pens.y[:500], label_budget=rule)
    ...            for name, rule in rules.items()}
    >>> display = LabelCurveDisplay.from_results(results, ax=Figure().subplots())
    >>> [line.get_label() for line in display.lines_]
    ['doubt', 'at random']
    """

    title = "Mistakes by labels"
    counted = "labels asked for"

    def __init__(self, results: Mapping[str, Queried]) -> None:
        super().__init__(results)
        for name, each in results.items():
            if not hasattr(each, "by_labels"):
                raise KeslerError(
                    f"{name} learnt every row: give results of progressive_validate with "
                    "label_budget=..., such as 0.2"
                )

    def _points(self, result: Queried) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        shown = result.by_labels[spread(len(result.by_labels))]
        return shown[:, 0], shown[:, 1]


def save_mistake_curves(panels: Mapping[str, Mapping[str, Record]], path: str) -> None:
    """Draw results, a panel for each title, into a file in the format of its suffix.

    Examples
    --------
    >>> import tempfile
    >>> from kesler import OnlineClassifier, progressive_validate
    >>> from kesler.datasets import make_shared
    >>> from kesler.plots import save_mistake_curves
    >>> result = progressive_validate(OnlineClassifier(), *make_shared(n=200))
    >>> save_mistake_curves({"Shared": {"default": result}}, tempfile.mkdtemp() + "/curve.png")
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8 * len(panels), 5), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for ax, (title, results) in zip(axes, panels.items(), strict=True):
        MistakeCurveDisplay.from_results(results, ax)
        ax.set_title(title, loc="left", color=INK)
    figure.savefig(path, dpi=150)
