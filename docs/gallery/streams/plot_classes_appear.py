"""
Classes that appear
===================

A class exists from its first example. The texts of a bank's customers come in an order where new
intents keep appearing. Each text is a mark, in the line of its class: classes are numbered in the
order in which they appear.
"""

import matplotlib.pyplot as plt
import numpy as np

from kesler import OnlineClassifier, progressive_validate
from kesler.datasets import load
from kesler.plots import COLOURS

data = load("banking77/stream")
texts = [record["text"] for record in data.records[:2500]]
result = progressive_validate(OnlineClassifier(), texts, data.y[:2500])
print(
    f"{result.error:.1%} of the predictions are wrong; first examples of classes are not counted."
)

# %%
# ``first_seen`` marks the rows that are the first of their class: no learner can predict these. Of
# the next four rows of a class more than half are answered wrongly, from the 21st on one in ten.

places = {label: i + 1 for i, label in enumerate(dict.fromkeys(result.targets))}
place = np.array([places[label] for label in result.targets])
kinds = {
    "right": (~result.wrong & ~result.first_seen, "."),
    "wrong": (result.wrong & ~result.first_seen, "x"),
    "first of its class": (result.first_seen, ">"),
}
figure, ax = plt.subplots(figsize=(8, 6), layout="constrained")
for (name, (rows, mark)), colour in zip(kinds.items(), COLOURS, strict=False):
    at = np.flatnonzero(rows)
    ax.plot(at, place[at], mark, color=colour, markersize=4, label=name)
ax.set(xlabel="rows", ylabel="class, by its first row")
ax.legend(loc="upper left")
plt.show()
