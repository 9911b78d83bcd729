"""
A tree of classes: nearer mistakes
==================================

Digits hang under groups of similar shapes. The picture shows how many rows are wrong, and how many
are in a wrong group.
"""

import matplotlib.pyplot as plt

from kesler import OnlineClassifier, progressive_validate
from kesler.datasets import load_pendigits

data = load_pendigits()
X, y = data.X[:3000] / 100, [str(digit) for digit in data.y[:3000]]
groups = {"round": "0689", "straight": "147", "bent": "235"}
parents = {digit: group for group, digits in groups.items() for digit in digits}
result = progressive_validate(OnlineClassifier("multi", update="pa", tree=parents), X, y)

figure, axes = plt.subplots(layout="constrained")
axes.bar(["any mistake", "wrong group"], [100 * e for e in result.level_errors[::-1]][:2])
axes.set(xlabel="level of the tree", ylabel="rows in %")
