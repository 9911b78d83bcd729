"""
Why this class?
===============

The score of a class is a sum of contributions. The picture shows which words and pairs of words
speak for the predicted class, and which speak for its rival.
"""

import matplotlib.pyplot as plt

from kesler import OnlineClassifier
from kesler.datasets import load
from kesler.plots import ExplanationDisplay

data = load("banking77/stream")
texts = [record["text"] for record in data.records[:3000]]
model = OnlineClassifier().partial_fit(texts, data.y[:3000])
why = model.explain_one("my card has not arrived in the post", n=8)
print(f"{why.label} rather than {why.rival}")

# %%
# Each bar has the part of the class's own weights and that of shared ones.

display = ExplanationDisplay.from_explanation(why)
display.ax_.set_ylabel("word or pair of words")
plt.show()
