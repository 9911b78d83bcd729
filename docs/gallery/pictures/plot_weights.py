"""
Weights as images
=================

A linear learner of small images has one weight for each pixel and class. Drawn as images they show
where ink speaks for a digit, and where it speaks against it.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from kesler import SoftmaxClassifier

X, y = load_digits(return_X_y=True)
model = SoftmaxClassifier(1e-2).fit(X / 16, y)

# %%
# Dark pixels speak for the digit, light ones against it.

largest = abs(model.coef_).max()
figure, axes = plt.subplots(2, 5, figsize=(8, 4), layout="constrained")
for digit, ax in enumerate(axes.ravel()):
    image = ax.imshow(model.coef_[digit].reshape(8, 8), "cividis_r", vmin=-largest, vmax=largest)
    ax.set(title=str(digit), xticks=[], yticks=[])
figure.colorbar(image, ax=axes, label="weight")
plt.show()
