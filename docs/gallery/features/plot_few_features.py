"""
Few features for all classes
============================

ShareBoost adds one feature at a time, which all classes share. The picture shows the error on rows
that were not learnt, for each number of features.
"""

import matplotlib.pyplot as plt

from kesler import ShareBoostClassifier
from kesler.datasets import load_pendigits
from kesler.plots import FeatureCurveDisplay

data = load_pendigits()
n, X, y = data.n_train, data.X / 100, data.y
model = ShareBoostClassifier(20, dictionary="products")
model.fit(X[:2000], y[:2000], eval_set=(X[n:], y[n:]))

# %%
# ``model.at(k)`` is the predictor that uses the first k features.

FeatureCurveDisplay.from_estimator(model)
plt.show()
