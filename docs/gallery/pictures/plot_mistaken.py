"""
Images that are mistaken
========================

Look at the mistakes: some are hard for people too, and some have wrong labels.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from kesler import OnlineClassifier
from kesler.plots import MistakenImagesDisplay

X, y = load_digits(return_X_y=True)
model = OnlineClassifier().partial_fit(X[:1000], y[:1000])
print(f"{model.score(X[1000:], y[1000:]):.1%} right on the other rows")

# %%
# Above each image: the right digit and the predicted one.

MistakenImagesDisplay.from_estimator(model, X[1000:], y[1000:], (8, 8), most=30)
plt.show()
