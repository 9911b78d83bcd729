"""
One pass, or the optimum?
=========================

How near a learner of one pass comes to the optimum over the same rows.
"""

import matplotlib.pyplot as plt

from kesler import CrammerSingerClassifier, OnlineClassifier
from kesler.datasets import load_pendigits

data = load_pendigits()
n = data.n_train
X, y = data.X / 100, data.y
sizes = [100, 200, 400, 800, 1600]
figure, axes = plt.subplots(layout="constrained")
for name, make, mark in (
    ("optimum (Crammer and Singer)", lambda: CrammerSingerClassifier(C=1.0), "o-"),
    ("one pass (PA-I)", lambda: OnlineClassifier("multi", update="pa1"), "s--"),
    ("one pass (default)", lambda: OnlineClassifier(), "^:"),
):
    errors = [100 * (1 - make().fit(X[:m], y[:m]).score(X[n:], y[n:])) for m in sizes]
    axes.plot(sizes, errors, mark, label=name)
axes.set(xlabel="rows", ylabel="error on other rows in %", xscale="log", ylim=(0, None))
axes.legend()
