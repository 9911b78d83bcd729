"""
The constant C of a support vector machine
==========================================

C weighs the losses of the rows against the squared norm of the weights. The picture shows the error
on rows that were learnt and on others, and the duality gap that certifies each solution.
"""

import matplotlib.pyplot as plt

from kesler import CrammerSingerClassifier
from kesler.datasets import load_pendigits
from kesler.plots import COLOURS

data = load_pendigits()
n, X, y = data.n_train, data.X / 100, data.y
levels = (0.001, 0.01, 0.1, 1.0, 10.0)
models = [CrammerSingerClassifier(C=C).fit(X[:500], y[:500]) for C in levels]

# %%
# The gap is an upper limit on how far each solution is from the optimum.

print({C: f"{model.duality_gap_:.1e}" for C, model in zip(levels, models, strict=True)})
learnt = [100 * (1 - model.score(X[:500], y[:500])) for model in models]
others = [100 * (1 - model.score(X[n:], y[n:])) for model in models]
figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
ax.semilogx(levels, learnt, "o-", color=COLOURS[0], label="rows learnt")
ax.semilogx(levels, others, "s--", color=COLOURS[1], label="other rows")
ax.set(title="Error by C", xlabel="C", ylabel="error in %", ylim=(0, None))
ax.legend()
plt.show()
