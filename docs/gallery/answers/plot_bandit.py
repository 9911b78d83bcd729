"""
Only the shown class is judged
==============================

With full labels, and where a learner is only told whether the class that it shows is right.
"""

from kesler import BanditClassifier, OnlineClassifier, progressive_validate
from kesler.datasets import load_pendigits
from kesler.plots import MistakeCurveDisplay

data = load_pendigits()
X, y = data.X[:4000] / 100, data.y[:4000]
MistakeCurveDisplay.from_results(
    {
        "all labels": progressive_validate(OnlineClassifier(), X, y),
        "shown class only": progressive_validate(BanditClassifier(range(10)), X, y),
    }
)
