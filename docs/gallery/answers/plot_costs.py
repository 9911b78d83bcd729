"""
Costs move the boundary
=======================

If it costs more to take ham for spam than spam for ham, fewer rows are called spam.
"""

import matplotlib.pyplot as plt
import numpy as np

from kesler import OnlineClassifier

rng = np.random.default_rng(0)
y = rng.choice(["ham", "spam"], 3000)
X = rng.normal(size=(3000, 4)) + (y == "spam")[:, None] * 0.8
costs, ham, spam = [1, 2, 5, 10, 20], [], []
for cost in costs:
    model = OnlineClassifier(
        "multi", update="hinge", averaged=True, intercept=1.0, costs={("ham", "spam"): cost}
    )
    found = model.fit(X[:2000], y[:2000]).predict(X[2000:])
    ham.append(100 * np.mean(found[y[2000:] == "ham"] == "spam"))
    spam.append(100 * np.mean(found[y[2000:] == "spam"] == "ham"))

figure, axes = plt.subplots(layout="constrained")
axes.plot(costs, ham, "o-", label="ham taken for spam")
axes.plot(costs, spam, "s--", label="spam taken for ham")
axes.set(xlabel="cost of taking ham for spam", ylabel="rows in %", xscale="log")
axes.legend()
