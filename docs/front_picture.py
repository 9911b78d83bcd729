"""Draw the picture of the front page: python docs/front_picture.py."""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes

from kesler import OnlineClassifier, progressive_validate
from kesler.datasets import load

matplotlib.use("Agg")
import matplotlib.pyplot as plt

TARGET = Path(__file__).parent / "_static" / "classes-appear.png"


def main() -> None:
    """Learn 13,083 questions to a bank, one after the other, and draw mistakes and classes."""
    data = load("banking77/stream")
    texts = [record["text"] for record in data.records]
    result = progressive_validate(OnlineClassifier(), texts, data.y)
    wrong = np.asarray([p != t for p, t in zip(result.predictions, result.targets, strict=True)])
    figure, axes = plt.subplots(figsize=(7.2, 4.0), layout="constrained")
    draw(axes, wrong, first_trials(np.asarray(data.y)))
    figure.savefig(TARGET, dpi=110)


def first_trials(labels: np.ndarray) -> np.ndarray:
    """Return the trials in which a class is met for the first time."""
    return np.sort(np.unique(labels, return_index=True)[1])


def draw(axes: Axes, wrong: np.ndarray, first: np.ndarray) -> None:
    """Draw the mistakes so far, with a mark where each class appears."""
    mistakes = np.cumsum(wrong)
    axes.plot(np.arange(1, len(wrong) + 1), mistakes, color="#0072B2", linewidth=2)
    axes.plot(first + 1, mistakes[first], "o", color="#D55E00", markersize=5)
    axes.annotate(
        f"{len(first)} classes, each marked where it appears first",
        (first[-1], mistakes[first[-1]]), (4200, 500), color="#A84300",
        arrowprops={"arrowstyle": "-", "color": "#A84300"},
    )  # fmt: skip
    axes.set(xlabel="questions so far", ylabel="mistakes so far", xlim=(0, None), ylim=(0, None))
    axes.set_title(
        f"Mistakes flatten while classes appear: {wrong.mean():.1%} of all answers are wrong"
    )
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
