"""
As far as the ranks are sure
============================

Species have names that are paths, from the phylum on. An answer can end at the genus or the family,
where the species is not sure. The tree and its DNA are made by chance; of three reads, one is of a
species that was learnt, one of another species of a known genus, one of another genus.
"""

import random

import matplotlib.pyplot as plt

from kesler import OnlineClassifier
from kesler.plots import COLOURS

draw = random.Random(0)
ranks = ("phylum", "class", "order", "family", "genus", "species")


def mutated(letters, share):
    """Return DNA in which a share of the letters is drawn again."""
    return [draw.choice("ACGT") if draw.random() < share else letter for letter in letters]


def below(nodes, share):
    """Return two nodes below each node of a tree: names and sequences."""
    return {f"{path};{i}": mutated(dna, share) for path, dna in nodes.items() for i in "ab"}


levels = [{"p": draw.choices("ACGT", k=250)}]
for share in (0.4, 0.3, 0.25, 0.2, 0.15):
    levels.append(below(levels[-1], share))
families, genera, species = levels[3:]
names = draw.choices([*species], k=600)
rows = [{"sequence": "".join(mutated(species[name], 0.05))} for name in names]
model = OnlineClassifier(ranks=";").partial_fit(rows, names)

# %%
# ``predict_path_one`` returns the probability of each node on the most probable path. The answer is
# the last node of at least `min_confidence`, here the larger mark.

reads = {
    "a species that was learnt": mutated(species["p;a;b;a;b;a"], 0.05),
    "a new species": mutated(genera["p;b;a;b;a"], 0.15),
    "a new genus": mutated(mutated(families["p;a;a;b"], 0.2), 0.15),
}
figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
ax.axhline(80, color="grey", linestyle="dotted")
for (name, dna), colour, style in zip(reads.items(), COLOURS, ("o-", "s--", "^:"), strict=False):
    answer = model.predict_path_one({"sequence": "".join(dna)}, min_confidence=0.8)
    chances = [100 * p for p in answer.nodes.values()]
    depth = len(answer.path.split(";")) - 1
    ax.plot(ranks[: len(chances)], chances, style, color=colour, label=name)
    ax.plot(ranks[depth], chances[depth], style[0], color=colour, markersize=14)
ax.set(xlabel="rank", ylabel="probability in %", ylim=(0, 105))
ax.legend(loc="lower left")
plt.show()
