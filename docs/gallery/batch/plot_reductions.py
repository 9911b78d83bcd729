"""
Reductions to binary problems
=============================

Any binary classifier of scikit-learn becomes a multiclass one. The picture compares the error of
the reductions with the number of binary predictions that one row costs.
"""

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

from kesler import ErrorCorrectingCode, FilterTree, LabelTree, OneVsOne, OneVsRest
from kesler.datasets import load_pendigits
from kesler.plots import COLOURS

data = load_pendigits()
n, X, y = data.n_train, data.X / 100, data.y
reductions = (OneVsRest, OneVsOne, ErrorCorrectingCode, FilterTree, LabelTree)

# %%
# Points near the lower left corner are best: few mistakes at a low price.

figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
for reduction, colour, marker in zip(reductions, COLOURS, "osD^v", strict=False):
    model = reduction(LogisticRegression()).fit(X[:1000], y[:1000])
    error = 100 * (1 - model.score(X[n:], y[n:]))
    name = f"{reduction.__name__}: {error:.1f} %"
    ax.plot(model.n_evaluations_, error, marker, color=colour, markersize=9, label=name)
ax.set(title="Error and price of reductions", ylabel="error in %", xlim=(0, 50), ylim=(0, 32))
ax.set_xlabel("binary predictions for one row")
ax.legend(loc="lower left")
plt.show()
