"""
Sets of labels
==============

Each row may have several labels, or none. The learner outputs a probability for each label, and
predicts a set. The picture shows precision and recall for each label at each threshold.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import precision_recall_curve

from kesler import OnlineMultilabelClassifier
from kesler.plots import COLOURS

rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 6))
Y = (X[:, :3] + [0.2, 0.5, 1.0] * rng.normal(size=(2000, 3)) > 0.4).astype(int)
model = OnlineMultilabelClassifier().fit(X[:1000], Y[:1000])

# %%
# The third label has the most noise, so its curve is the lowest.

chances = model.predict_proba(X[1000:])
figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
for label, line in enumerate(("solid", "dashed", "dotted")):
    precision, recall, _ = precision_recall_curve(Y[1000:, label], chances[:, label])
    name = f"label {label}"
    ax.plot(100 * recall, 100 * precision, color=COLOURS[label], linestyle=line, label=name)
ax.set(title="Precision and recall of each label", xlabel="recall in %", ylabel="precision in %")
ax.legend()
plt.show()
