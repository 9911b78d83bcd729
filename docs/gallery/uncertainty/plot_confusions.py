"""
Which classes are confused?
===========================

The confusions of a report, as counts.
"""

import matplotlib.pyplot as plt

from kesler import OnlineClassifier, progressive_validate
from kesler.datasets import load_letter

data = load_letter()
result = progressive_validate(OnlineClassifier(), data.X[:6000], data.y[:6000])
worst = result.report().confusions[:12]

figure, axes = plt.subplots(layout="constrained")
names = [f"{pair.target} taken for {pair.predicted}" for pair in worst]
axes.barh(names[::-1], [pair.count for pair in worst][::-1], color="#0072B2")
axes.set(xlabel="rows", ylabel="confusion")
