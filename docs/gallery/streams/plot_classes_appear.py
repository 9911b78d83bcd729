"""
Classes that appear
===================

A class exists from its first example. The texts of a bank's customers come in an order where new
intents keep appearing; the picture shows how many classes are known, and how the error falls.
"""

import matplotlib.pyplot as plt
import numpy as np

from kesler import OnlineClassifier, progressive_validate
from kesler.datasets import load
from kesler.plots import COLOURS

data = load("banking77/stream")
texts = [record["text"] for record in data.records[:2500]]
result = progressive_validate(OnlineClassifier(), texts, data.y[:2500])
print(
    f"{result.error:.1%} of the predictions are wrong; first examples of classes are not counted."
)

# %%
# ``first_seen`` marks the rows that are the first of their class: no learner can predict these.

known = np.cumsum(result.first_seen)
blocks = result.wrong.reshape(25, 100).mean(axis=1)
figure, (above, below) = plt.subplots(2, sharex=True, figsize=(8, 6), layout="constrained")
above.plot(known, color=COLOURS[0])
above.set(title="Classes that appear during the stream", xlabel="rows", ylabel="classes so far")
below.step(np.arange(25) * 100, 100 * blocks, where="post", color=COLOURS[1], linestyle="dashed")
below.set(xlabel="rows", ylabel="error in % of 100 rows", ylim=(0, None))
plt.show()
