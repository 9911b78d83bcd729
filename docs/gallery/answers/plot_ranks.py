"""
Ranks
=====

Grades have an order, so a prediction may be nearly right. The ordinal learner predicts the median
of its probabilities, which has the least expected distance in ranks.
"""

import matplotlib.pyplot as plt
import numpy as np

from kesler import OnlineOrdinalClassifier, progressive_validate
from kesler.plots import COLOURS

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 5))
values = X @ [1.0, 0.7, 0.4, 0.2, 0.0] + 0.5 * rng.normal(size=3000)
grades = np.digitize(values, [-1.5, -0.5, 0.5, 1.5]) + 1
result = progressive_validate(OnlineOrdinalClassifier(order=[1, 2, 3, 4, 5]), X, grades)
print(f"{result.error:.1%} wrong, {result.mean_absolute_error:.2f} ranks off on average")

# %%
# Most mistakes are off by one rank. The first rows have no prediction and are left out.

pairs = zip(result.predictions, result.targets, strict=True)
off = np.array([int(p) - int(t) for p, t in pairs if p is not None])
distances, counts = np.unique(off, return_counts=True)
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
bars = ax.bar(distances, counts, color=COLOURS[0])
ax.bar_label(bars)
ax.set(title="How far from the right rank", xlabel="predicted minus right rank", ylabel="rows")
plt.show()
