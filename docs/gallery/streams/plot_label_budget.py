"""
One label in five
=================

Labels cost the time of a person. With a budget the learner chooses the rows whose labels it asks
for. The picture compares its choice with rows chosen at random: mistakes are counted on all rows.
"""

import matplotlib.pyplot as plt

from kesler import OnlineClassifier, progressive_validate
from kesler.datasets import load_pendigits
from kesler.plots import LabelCurveDisplay
from kesler.queries import RandomQuery

data = load_pendigits()
X, y = data.X[:4000], data.y[:4000]
budgets = {"by doubt": 0.2, "at random": RandomQuery(0.2)}

# %%
# Both ask for about a fifth of the labels.

results = {
    name: progressive_validate(OnlineClassifier(), X, y, label_budget=budget)
    for name, budget in budgets.items()
}
LabelCurveDisplay.from_results(results)
plt.show()
