"""Trees of classes: as hypotheses and costs, learnt from confusions, and measures of mistakes."""

from kesler.evaluation.learnt_trees import tree_of_confusions
from kesler.evaluation.tree_bounds import TreeBound, tree_bound
from kesler.evaluation.tree_measures import level_errors, tree_distances, tree_loss
from kesler.parts.trees import Tree, restore_tree

__all__ = [
    "Tree",
    "TreeBound",
    "level_errors",
    "restore_tree",
    "tree_bound",
    "tree_distances",
    "tree_loss",
    "tree_of_confusions",
]
