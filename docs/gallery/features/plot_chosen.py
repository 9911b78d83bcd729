"""
The weights of chosen features
==============================

ShareBoost gives each chosen feature a weight for each class. The picture shows the table of
weights, in the order in which the features were chosen.
"""

import matplotlib.pyplot as plt

from kesler import ShareBoostClassifier
from kesler.datasets import load_pendigits
from kesler.plots import ChosenFeaturesDisplay

data = load_pendigits()
X, y = data.X[:2000] / 100, data.y[:2000]
model = ShareBoostClassifier(10, penalty="frobenius").fit(X, y)

# %%
# Given the rows, weights are multiplied by the spread of their feature, so that they compare.

ChosenFeaturesDisplay.from_estimator(model, X)
plt.show()
