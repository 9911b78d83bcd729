"""
How far from the optimum?
=========================

The duality gap says how far a solution may be from the optimum, whatever the solver did. More
passes, smaller gaps.
"""

import warnings

import matplotlib.pyplot as plt

from kesler import CrammerSingerClassifier
from kesler.datasets import load_pendigits

data = load_pendigits()
X, y = data.X[:1500] / 100, data.y[:1500]
passes, gaps = [1, 2, 4, 8, 16, 32, 64], []
for n in passes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it stopped before the optimum
        gaps.append(CrammerSingerClassifier(C=0.1, max_iter=n, tol=1e-9).fit(X, y).duality_gap_)

figure, axes = plt.subplots(layout="constrained")
axes.plot(passes, gaps, "o-", color="#0072B2")
axes.set(xlabel="passes allowed", ylabel="duality gap", xscale="log", yscale="log")
