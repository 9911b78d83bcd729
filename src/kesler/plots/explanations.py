"""Bars of the contributions of features to the score of a class and its margin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kesler.plots.drawing import COLOURS, FAINT, INK, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.figure import Figure

    from kesler.learner.explanations import Contribution, Explanation

LONGEST = 36  # characters of a name
MOST_OF_TITLE = 64  # characters of a line
# The parts of a contribution to the margin: names, colours, and hatches for black and white.
PARTS = (
    ("own hypotheses", COLOURS[0], ""),
    ("shared hypotheses", COLOURS[4], "///"),
    ("score of {rival}, negative", COLOURS[1], "..."),
)


class ExplanationDisplay:
    """The contributions of an explanation as horizontal bars, the largest on top.

    The bars of a feature are what own and shared hypotheses add to the score of the class, and
    minus what the feature adds to the score of the rival: those above 0 extend to the right, those
    below to the left. A dot marks their sum, the contribution to the margin. The remainder and the
    intercept are below the features.

    Parameters
    ----------
    explanation : Explanation

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure drawn on.
    ax_ : matplotlib Axes
        The axes drawn on.
    bars_ : list of matplotlib BarContainer
        The bars of own hypotheses, of shared ones and of the rival; those that are 0 everywhere are
        left out.

    Raises
    ------
    KeslerError
        When drawing, if matplotlib is not installed.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kesler import OnlineClassifier
    >>> from kesler.plots import ExplanationDisplay
    >>> X, y = [[2.0, 0.0], [0.0, 2.0], [2.0, 1.0]], ["a", "b", "a"]
    >>> model = OnlineClassifier("multi", update="perceptron", on_new_class="learn").fit(X, y)
    >>> display = ExplanationDisplay.from_estimator(model, [1.0, 0.5], ax=Figure().subplots())
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['feature 0', 'feature 1', 'intercept']
    """

    figure_: Figure
    ax_: Axes
    bars_: list[BarContainer]

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation

    @classmethod
    def from_explanation(
        cls, explanation: Explanation, *, ax: Axes | None = None
    ) -> ExplanationDisplay:
        """Draw an explanation.

        Parameters
        ----------
        explanation : Explanation
            As :meth:`~kesler.OnlineClassifier.explain_one` returns it.
        ax : Axes, optional
            Axes to draw on; new axes of a suitable height by default.
        """
        return cls(explanation).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        x: Any,
        *,
        label: Any = None,
        rival: Any = None,
        n: int = 10,
        ax: Axes | None = None,
    ) -> ExplanationDisplay:
        """Explain one row with a fitted online estimator, and draw the explanation.

        Parameters
        ----------
        model : online estimator
            Fitted.
        x, label, rival, n : as in :meth:`~kesler.OnlineClassifier.explain_one`.
        ax : Axes, optional
            Axes to draw on; new axes of a suitable height by default.
        """
        return cls(model.explain_one(x, label, rival, n)).plot(ax)

    def plot(self, ax: Axes | None = None) -> ExplanationDisplay:
        """Draw on `ax`, or on new axes; return the display itself."""
        shown = [each for each in self.explanation.summands if each.n_features]
        shown.append(self.explanation.intercept)
        self.ax_ = new_axes((8.0, 1.6 + 0.32 * len(shown))) if ax is None else ax
        self.figure_ = self.ax_.figure  # type: ignore[assignment]
        self.bars_ = self._draw(shown)
        margins = [each.margin for each in shown]
        dots: dict[str, Any] = {"color": INK, "markeredgecolor": "white", "markersize": 6}
        self.ax_.plot(margins, range(len(shown)), "o", label="sum", **dots)
        self._name(shown)
        return self

    def _draw(self, shown: list[Contribution]) -> list[BarContainer]:
        """Draw the bars of each part, beside those of the parts before of the same sign."""
        bars, right, left = list[Any](), [0.0] * len(shown), [0.0] * len(shown)
        lengths = (
            [each.own for each in shown],
            [each.shared for each in shown],
            [-each.rival for each in shown],
        )
        for (name, colour, hatch), widths in zip(PARTS, lengths, strict=True):
            if not any(widths):
                continue
            starts = [a if w > 0 else b for w, a, b in zip(widths, right, left, strict=True)]
            bars.append(
                self.ax_.barh(
                    range(len(shown)),
                    widths,
                    left=starts,
                    height=0.7,
                    label=name.format(rival=self.explanation.rival),
                    color=colour,
                    hatch=hatch,
                    edgecolor="white",
                )
            )
            right = [a + max(w, 0.0) for a, w in zip(right, widths, strict=True)]
            left = [b + min(w, 0.0) for b, w in zip(left, widths, strict=True)]
        return bars

    def _name(self, shown: list[Contribution]) -> None:
        """Write the names and values of the features, the title and the legend."""
        headline = self.explanation.headline
        if len(headline) > MOST_OF_TITLE:
            headline = headline.replace(", ", ",\n", 1)
        self.ax_.set_title(headline, loc="left", color=INK)
        what = "score" if self.explanation.rival_score is None else "margin"
        self.ax_.set_xlabel(f"contribution to the {what}", color=INK)
        self.ax_.set_ylabel("feature" if self.explanation.by_feature else "reason", color=INK)
        self.ax_.set_yticks(range(len(shown)), [_cut(each.label) for each in shown])
        self.ax_.invert_yaxis()
        self.ax_.axvline(0, color=INK, linewidth=0.8)
        self.ax_.grid(axis="x", color=FAINT, linewidth=0.6)
        self.ax_.set_axisbelow(True)
        self.ax_.spines[["top", "right", "left"]].set_visible(False)
        self.ax_.tick_params(colors=INK, length=0)
        self.ax_.legend(loc="best", frameon=False, labelcolor=INK)


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 3] + "..."
