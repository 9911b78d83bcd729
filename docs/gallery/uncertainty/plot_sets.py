"""
Sets of classes
===============

Asked for a coverage of 90 %, the learner answers with a set of classes that holds the right one
nine times in ten. Higher coverage needs larger sets.
"""

import matplotlib.pyplot as plt
import numpy as np

from kesler import OnlineClassifier
from kesler.datasets import load_letter
from kesler.plots import COLOURS

data = load_letter()
model = OnlineClassifier().partial_fit(data.X[:5000], data.y[:5000])
rows, labels = data.X[5000:6000], data.y[5000:6000]

# %%
# These four levels are tracked. More than 80 % of the predictions are right here, so that sets of
# one class already hold more than the lowest level asks for.

levels = np.array([0.8, 0.9, 0.95, 0.99])
answers = [model.predict_set(rows, coverage=level) for level in levels]
held = [np.mean([y in s for y, s in zip(labels, sets, strict=True)]) for sets in answers]
sizes = [np.mean([len(s) for s in sets]) for sets in answers]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.5), layout="constrained")
left.plot([80, 100], [80, 100], color="grey", linestyle="dotted", label="as asked")
left.plot(100 * levels, 100 * np.array(held), "o-", color=COLOURS[0], label="measured")
left.set(title="Coverage", xlabel="coverage asked for in %", ylabel="right class in the set, in %")
left.legend()
right.plot(100 * levels, sizes, "s--", color=COLOURS[1])
right.set(title="Size", xlabel="coverage asked for in %", ylabel="classes in a set")
plt.show()
