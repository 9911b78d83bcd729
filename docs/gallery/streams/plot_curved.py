"""
Curved boundaries without a kernel
==================================

Bins and random Fourier features let a linear learner find boundaries that are not straight.
"""

import matplotlib.pyplot as plt
import numpy as np

from kesler import OnlineClassifier
from kesler.preprocessing import RandomFourier

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(3000, 2))
y = (np.hypot(*X.T) < 0.6).astype(int) + (X[:, 0] * X[:, 1] > 0)
model = OnlineClassifier("multi", update="softmax", preprocessing=[RandomFourier(200)])
model.partial_fit(X, y)

ticks = np.linspace(-1, 1, 120)
points = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(layout="constrained")
image = axes.pcolormesh(ticks, ticks, model.predict(points).reshape(120, 120), cmap="cividis")
figure.colorbar(image, label="predicted class", ticks=[0, 1, 2])
axes.set(xlabel="first feature", ylabel="second feature")
