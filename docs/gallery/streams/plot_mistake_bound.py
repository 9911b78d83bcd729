"""
Mistakes, and how many theory allows
====================================

Theorems bound the mistakes of a run by how well some fixed hypothesis would have done. On groups
that are far apart the bound is small.
"""

import numpy as np

from kesler import OnlineClassifier, progressive_validate
from kesler.plots import MistakeBoundDisplay

rng = np.random.default_rng(0)
y = rng.integers(0, 5, 2000)
X = np.eye(5)[y] + 0.1 * rng.normal(size=(2000, 5))
result = progressive_validate(OnlineClassifier("multi", update="perceptron"), X, y)
MistakeBoundDisplay.from_result(result)
