"""
Mistakes of several learners
============================

In progressive validation each row is predicted before it is learnt. The picture compares the
default learner, a named rule, and the Perceptron on pen-written digits.
"""

import matplotlib.pyplot as plt

from kesler import OnlineClassifier, progressive_validate
from kesler.datasets import load_pendigits
from kesler.plots import MistakeCurveDisplay

data = load_pendigits()
X, y = data.X[:4000], data.y[:4000]
learners = {
    "default": OnlineClassifier(),
    "PA-I": OnlineClassifier("multi", update="pa1", preprocessing="z-scores"),
    "Perceptron": OnlineClassifier("multi", update="perceptron", preprocessing="z-scores"),
}

# %%
# A line that bends down means that the learner still improves.

results = {name: progressive_validate(model, X, y) for name, model in learners.items()}
MistakeCurveDisplay.from_results(results)
plt.show()
