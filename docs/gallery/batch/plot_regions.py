"""
Regions of classes
==================

Three classes in the plane, and the regions where each is predicted: by linear scores, and by scores
of a kernel.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from kesler import CrammerSingerClassifier
from kesler.plots import COLOURS

rng = np.random.default_rng(0)
y = rng.integers(0, 3, 300)
radius = 0.5 + y + 0.25 * rng.normal(size=300)
angle = rng.uniform(0, np.pi, 300)
X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])

# %%
# Rings have no linear boundaries. The Gaussian kernel finds them.

across, up = np.meshgrid(np.linspace(-3.5, 3.5, 120), np.linspace(-1, 3.5, 90))
plane = np.column_stack([across.ravel(), up.ravel()])
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for ax, kernel in zip(axes, (None, "rbf"), strict=True):
    model = CrammerSingerClassifier(C=1.0, kernel=kernel).fit(X, y)
    regions = model.predict(plane).reshape(across.shape)
    ax.pcolormesh(across, up, regions, cmap=ListedColormap(COLOURS[:3]), alpha=0.3, vmax=2, vmin=0)
    for label, marker in enumerate("o^s"):
        ax.scatter(*X[y == label].T, s=18, c=COLOURS[label], marker=marker, label=f"class {label}")
    title = f"{kernel or 'linear'}: {1 - model.score(X, y):.0%} wrong"
    ax.set(title=title, xlabel="first column", ylabel="second column")
axes[0].legend()
plt.show()
