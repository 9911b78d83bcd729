"""
Is confidence right?
====================

A confidence of 80 % should be right for 80 % of the rows. The picture compares both over the
stream, where each confidence was given before the row was learnt.
"""

import matplotlib.pyplot as plt
import numpy as np

from kesler import OnlineClassifier, progressive_validate
from kesler.datasets import load_letter
from kesler.plots import COLOURS

data = load_letter()
result = progressive_validate(OnlineClassifier(), data.X[:6000], data.y[:6000])
print(f"calibration error: {result.calibration_error:.3f}")

# %%
# Rows are put into ten groups of equal size by their confidence.

known = ~np.isnan(result.confidences)
sure, right = result.confidences[known], ~result.wrong[known]
groups = np.array_split(np.argsort(sure), 10)
figure, ax = plt.subplots(figsize=(6, 6), layout="constrained")
ax.plot([0, 100], [0, 100], color="grey", linestyle="dotted", label="equal")
said = [100 * sure[group].mean() for group in groups]
held = [100 * right[group].mean() for group in groups]
ax.plot(said, held, "o-", color=COLOURS[0], label="default learner")
ax.set(title="Confidence and truth", xlabel="confidence in %", ylabel="right answers in %")
ax.legend()
plt.show()
