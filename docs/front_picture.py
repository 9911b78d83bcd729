"""Draw the picture of the front page: python docs/front_picture.py."""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier

from kesler import OnlineClassifier, progressive_validate
from kesler.datasets import load

matplotlib.use("Agg")
import matplotlib.pyplot as plt

TARGET = Path(__file__).parent / "_static" / "classes-appear.png"
WINDOW = 1000


def main() -> None:
    """Learn 13,083 questions to a bank, one after another, and draw recent mistakes."""
    data = load("banking77/stream")
    texts, labels = [record["text"] for record in data.records], np.asarray(data.y)
    hashed = HashingVectorizer(n_features=2**14).transform(texts)
    runs = {
        "scikit-learn, SGD on hashed words": (SGDClassifier(random_state=0), hashed),
        "Kesler": (OnlineClassifier(), texts),
    }
    figure, axes = plt.subplots(figsize=(7.2, 4.0), layout="constrained")
    for (name, (model, rows)), style in zip(runs.items(), ("--", "-"), strict=True):
        result = progressive_validate(model, rows, labels)
        draw(axes, name, np.asarray(result.curve), style)
    mark(axes, np.sort(np.unique(labels, return_index=True)[1]))
    figure.savefig(TARGET, dpi=110)


def draw(axes: Axes, name: str, mistakes: np.ndarray, style: str) -> None:
    """Draw the share of wrong answers among the latest rows."""
    counts = np.arange(WINDOW, len(mistakes), 50)
    recent = 100 * (mistakes[counts] - mistakes[counts - WINDOW]) / WINDOW
    colour = "#0072B2" if style == "-" else "#D55E00"
    axes.plot(counts, recent, style, color=colour, linewidth=2)
    at = len(counts) // 3  # the lines fall from there on, and leave room for words
    axes.annotate(f"{name}: {recent[-1]:.0f} % at the end", (counts[at], recent[at]), (6, 12),
                  textcoords="offset points", color=colour)  # fmt: skip


def mark(axes: Axes, first: np.ndarray) -> None:
    """Mark the rows in which a class appears, and name the axes."""
    axes.plot(first + 1, np.full(len(first), 1.0), "|", color="#000000", markersize=10)
    axes.annotate(f"each mark: one of {len(first)} classes appears", (first[-1] + 200, 0.4))
    axes.set(xlabel="questions so far", xlim=(0, None), ylim=(0, None))
    axes.set_ylabel(f"wrong among the last {WINDOW:,} answers, in %")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
