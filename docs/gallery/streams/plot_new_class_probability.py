"""
How probable is a new class?
============================

The default estimates, before each row is learnt, how probable it is that the row has a class that
was never seen. It is high where classes do appear.
"""

import matplotlib.pyplot as plt
import numpy as np

import kesler
from kesler import OnlineClassifier
from kesler.datasets import load

data = load("banking77/stream")
model, found, is_new = OnlineClassifier(), [], []
for record, label in zip(data.records[:1500], data.y[:1500], strict=True):
    if found or is_new:
        found.append(model.predict_proba_one(record["text"], new=True)[kesler.NEW])
        is_new.append(label not in model.classes_)
    else:
        is_new, found = [True], [1.0]
    model.learn_one(record["text"], label)

found, is_new = np.array(found), np.array(is_new)
bins = np.geomspace(1e-3, 1, 16)
figure, axes = plt.subplots(layout="constrained")
for kind, hatch in ((False, ""), (True, "//")):
    axes.hist(
        found[is_new == kind], bins, density=True, alpha=0.6, hatch=hatch,
        label="first row of a class" if kind else "known class",
    )  # fmt: skip
axes.set(xscale="log", xlabel="estimated probability of a new class", ylabel="density of rows")
axes.legend()
