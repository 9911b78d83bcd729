"""
Beside learners of scikit-learn
===============================

`compare` takes estimators of scikit-learn beside those of Kesler. Those without `partial_fit` are
fitted again whenever the number of rows has doubled.
"""

from sklearn.linear_model import SGDClassifier
from sklearn.neighbors import KNeighborsClassifier

import kesler
from kesler.datasets import load_pendigits
from kesler.plots import MistakeCurveDisplay

data = load_pendigits()
methods = {
    "default": "default",
    "SGD": SGDClassifier(random_state=0),
    "neighbours": KNeighborsClassifier(1),
}
MistakeCurveDisplay.from_results(kesler.compare(methods, data.X[:3000] / 100.0, data.y[:3000]))
