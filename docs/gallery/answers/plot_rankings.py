"""
Rankings
========

The target of a row is an order of all labels. Kendall's tau compares the predicted order with the
right one: 1 if they agree, 0 for chance.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import kendalltau

from kesler import OnlineLabelRanker
from kesler.plots import COLOURS

rng = np.random.default_rng(0)
X = rng.normal(size=(1500, 6))
values = X[:, :4] + 0.3 * rng.normal(size=(1500, 4))
ranks = np.argsort(np.argsort(-values, axis=1), axis=1) + 1

# %%
# Learn from more and more rows, and measure on the last 500.

model, sizes, taus = OnlineLabelRanker(), (10, 20, 50, 100, 200, 500, 1000), []
for start, stop in zip((0, *sizes), sizes, strict=False):
    model.partial_fit(X[start:stop], ranks[start:stop])
    found = model.predict(X[1000:])
    each = [kendalltau(a, b)[0] for a, b in zip(found, ranks[1000:], strict=True)]
    taus.append(np.mean(each))
figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
ax.semilogx(sizes, taus, "o-", color=COLOURS[0])
ax.set(title="Rankings learnt from few rows", xlabel="rows learnt", ylabel="Kendall's tau")
plt.show()
