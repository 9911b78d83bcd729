"""
How many rows may be answered?
==============================

A learner that leaves rows of low confidence to a person makes fewer mistakes on the others. The
curve shows the error among the rows that are answered, for every share of answered rows.
"""

import matplotlib.pyplot as plt

from kesler import OnlineClassifier, progressive_validate
from kesler.datasets import load_letter, load_pendigits
from kesler.plots import RiskCoverageDisplay

results = {}
for name, load in (("letters", load_letter), ("digits", load_pendigits)):
    data = load()
    results[name] = progressive_validate(OnlineClassifier(), data.X[:4000], data.y[:4000])

# %%
# ``threshold_for`` reads such a curve: the confidence from which at most 5 % of answers are wrong.

print({name: round(each.threshold_for(error=0.05).confidence, 2) for name, each in results.items()})
RiskCoverageDisplay.from_results(results)
plt.show()
