"""What the study of trees must show, on a stream that takes seconds."""

import numpy as np
import pytest

import few_labels_trees as study


@pytest.fixture(scope="module")
def rows():
    return study.compare(study.letters(2000))


def test_trees_learnt_from_confusions_lower_the_distance_of_mistakes(rows):
    loss = {(row.rule, row.hypotheses): row.tree_loss for row in rows}
    for rule in study.RULES:
        assert loss[rule, "tree"] < loss[rule, "flat"], rule


def test_the_bound_holds_where_there_are_costs_of_a_tree(rows):
    shares = {(row.rule, row.hypotheses): row.share for row in rows}
    bounded = [name for name, share in shares.items() if not np.isnan(share)]
    assert len(bounded) == 4 and all("flat" in name[1] or name[1] == "tree" for name in bounded)
    assert all(0 < shares[name] <= 1 for name in bounded)


def test_the_last_level_is_that_of_classes(rows):
    for row in rows:
        assert row.levels[-1] == pytest.approx(row.error)
        assert (np.diff(row.levels) >= 0).all()
