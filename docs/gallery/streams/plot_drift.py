"""
A stream that drifts
====================

The boundary between two classes turns around every 1,000 rows. A half-life lets the learner
forget what it learnt from old rows, so that its error falls soon after each turn.
"""

import matplotlib.pyplot as plt
import numpy as np

from kesler import OnlineClassifier, progressive_validate
from kesler.plots import COLOURS

rng = np.random.default_rng(0)
X = rng.normal(size=(4000, 10))
turn = np.repeat([1, -1, 1, -1], 1000)
y = np.where(X[:, 0] * turn > 0, "up", "down")

# %%
# The same learner with and without a half-life of 100 rows.

figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
for half_life, colour, line in ((None, COLOURS[0], "solid"), (100, COLOURS[1], "dashed")):
    model = OnlineClassifier(
        "multi", update="softmax", preconditioner="adagrad", half_life=half_life
    )
    error = progressive_validate(model, X, y).wrong.reshape(80, 50).mean(axis=1)
    name = f"half-life {half_life or 'none'}: {error.mean():.1%}"
    ax.plot(25 + 50 * np.arange(80), 100 * error, color=colour, linestyle=line, label=name)
ax.set(title="Error around each turn", xlabel="rows", ylabel="error in % of 50 rows")
ax.legend()
plt.show()
