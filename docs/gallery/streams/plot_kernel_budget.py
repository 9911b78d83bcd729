"""
A budget of support vectors
===========================

A kernel Perceptron stores a row for each mistake. With a budget it removes the oldest, or adds the
projection of an update on the rows that are stored.
"""

from kesler import OnlineClassifier, progressive_validate
from kesler.budgets import Budget
from kesler.datasets import load_letter
from kesler.plots import MistakeCurveDisplay

data = load_letter()
X, y = data.X[:4000] / 15, data.y[:4000]
budgets = {
    "no budget": None,
    "200, removed": Budget(200, "least-recent"),
    "200, projected": Budget(200, "projectron"),
}
MistakeCurveDisplay.from_results(
    {
        name: progressive_validate(
            OnlineClassifier("multi", update="perceptron", kernel="rbf", sigma=0.3, budget=budget),
            X,
            y,
        )
        for name, budget in budgets.items()
    }
)
