"""
How far to move
===============

The same hypotheses and rows with four update rules.
"""

from kesler import OnlineClassifier, progressive_validate
from kesler.datasets import load_pendigits
from kesler.plots import MistakeCurveDisplay

data = load_pendigits()
X, y = data.X[:5000], data.y[:5000]
MistakeCurveDisplay.from_results(
    {
        rule: progressive_validate(
            OnlineClassifier("multi", update=rule, preprocessing="z-scores"), X, y
        )
        for rule in ("perceptron", "pa1", "arow", "least-squares")
    }
)
