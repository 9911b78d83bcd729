"""Labels that are paths: against a walk through dictionaries, and what is refused."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kesler import (
    NEW,
    BanditClassifier,
    CostSensitiveClassifier,
    Ensemble,
    KeslerError,
    LinearMax,
    OnlineClassifier,
    load,
)
from kesler.data import inputs
from kesler.trees import PathAnswer, Tree, tree_of_paths
from kesler.trees.paths import PathNodes, ranks_of

TAXA = ["k;p;g;s", "k;p;g;t", "k;p;h", "k;q;g;s", "k;q;g", "m"]
"""Ragged paths; the genus g is below two phyla, and one class is above another."""


def learner(**settings):
    rng = np.random.default_rng(3)
    rows = [{f"w{i}": 1.0 for i in rng.integers(0, 12, 3)} for _ in range(150)]
    labels = [TAXA[i] for i in rng.integers(0, len(TAXA), 150)]
    return OnlineClassifier(**settings).partial_fit(rows, labels), rows, labels


def walked(probabilities, new, shares, least, separator=";"):
    """The answer for a row by dictionaries: a sum for each path, and a step for each rank."""
    sums = {(): sum(probabilities.values())}
    for label, p in probabilities.items():
        names = label.split(separator)
        for depth in range(1, len(names) + 1):
            above = tuple(names[:depth])
            sums[above] = sums.get(above, 0) + p
    path, nodes, best = (), {}, ("", sums[()])
    while below := [node for node in sums if len(node) == len(path) + 1 and node[:-1] == path]:
        path = max(below, key=sums.__getitem__)
        p = sums[path] * (1 - new * shares[len(path)])
        nodes[separator.join(path)] = p
        if p >= least:
            best = separator.join(path), p
    return best, nodes


def shares_of(counts):
    """For each rank, the share of classes of one row whose path down to it no other row has."""
    rows = [tuple(label.split(";")) for label, n in counts.items() for _ in range(n)]
    once = [path for path in set(rows) if rows.count(path) == 1]

    def below(node):
        return sum(path[: len(node)] == node for path in rows)

    found = [0.0]
    for depth in range(1, max(map(len, rows)) + 1):
        alone = [
            path for path in once if sum(p[: len(path[:depth])] == path[:depth] for p in rows) == 1
        ]
        n_nodes = len({path[:depth] for path in rows})
        found.append((n_nodes / len(set(rows)) + len(alone)) / (1 + len(once)))
    return found


@pytest.mark.parametrize("least", [0, 0.2, 0.5, 0.7, 0.9, 1])
@pytest.mark.parametrize("uncertainty", [True, False])
def test_answers_equal_a_walk_through_dictionaries(least, uncertainty):
    model, rows, labels = learner(uncertainty=uncertainty)
    model, labels = model.learn_one({"w50": 1}, "m;n"), [*labels, "m;n"]
    shares = shares_of(Counter(labels))
    assert shares[1] < shares[2]
    for row, found in zip(rows[:40], model.predict_path(rows[:40], least), strict=True):
        new = model.predict_proba_one(row, new=True)[NEW] if uncertainty else 0.0
        (path, p), nodes = walked(model.predict_proba_one(row), new, shares, least)
        assert (found.path, found.probability) == (path, pytest.approx(p, abs=1e-9))
        assert found.nodes == pytest.approx(nodes, abs=1e-9) and [*found.nodes] == [*nodes]
        ranks = {node: new * shares[1 + node.count(";")] for node in nodes}
        assert found.new == (pytest.approx(ranks, abs=1e-9) if uncertainty else {})


LABELS = st.lists(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join),
    min_size=1,
    max_size=9,
    unique=True,
)


@settings(max_examples=150, deadline=None)
@given(labels=LABELS, seed=st.integers(0, 99), least=st.sampled_from([0.0, 0.3, 0.6, 1.0]))
def test_any_paths_equal_the_walk_and_no_node_is_below_its_descendants(labels, seed, least):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(len(labels), 0.5), size=4)
    nodes = PathNodes(labels, "/")
    total = nodes.sums(P)
    assert (total[1:] <= total[nodes.parent[1:]]).all()
    assert nodes.names == sorted(nodes.names, key=len)
    for p, found in zip(P, nodes.answers(total, np.empty((4, 0)), least), strict=True):
        (path, sure), on_path = walked(
            dict(zip(labels, p.tolist(), strict=True)), 0.0, np.zeros(9), least, "/"
        )
        assert found.nodes == pytest.approx(on_path)
        if not any(abs(q - least) < 1e-9 for q in on_path.values()):
            assert (found.path, found.probability) == (path, pytest.approx(sure))


@settings(max_examples=60, deadline=None)
@given(counts=st.dictionaries(LABELS.map("".join), st.integers(1, 3), min_size=1, max_size=8))
def test_the_share_of_new_paths_is_that_of_leaving_each_row_out(counts):
    counts = {label.replace("/", ";"): n for label, n in counts.items()}
    found = PathNodes([*counts]).new_shares(np.array([*counts.values()], dtype=float))
    assert found.tolist() == pytest.approx(shares_of(counts))
    assert (np.diff(found) >= 0).all()


# ---- labels --------------------------------------------------------------------------------------


def test_empty_ranks_at_the_end_and_spaces_do_not_count():
    assert ranks_of("k__F; p__A;c__;o__; ", ";") == ("k__F", "p__A")
    assert ranks_of("D_0__F;D_1__A;D_2__", ";") == ("D_0__F", "D_1__A")
    assert ranks_of("k__F;p__;c__A;o__", ";") == ("k__F", "p__", "c__A")
    assert ranks_of("one;two", "/") == ("one;two",)


def test_classes_that_end_at_one_node_are_summed():
    nodes = PathNodes(["k__F;p__A;c__", "k__F;p__B", "k__F; p__A"])
    total = nodes.sums(np.array([[0.3, 0.45, 0.25]]))
    found = next(nodes.answers(total, np.empty((1, 0)), 0.5))
    assert found == PathAnswer("k__F;p__A", 0.55, {"k__F": 1.0, "k__F;p__A": 0.55}, {})


def test_what_all_classes_share_is_certain_whatever_is_rounded():
    nodes = PathNodes([f"k;{i}" for i in range(9)])
    p = np.random.default_rng(0).dirichlet(np.ones(9), size=50)
    assert nodes.sums(p)[0].min() < 1
    for found in nodes.answers(nodes.sums(p), np.empty((50, 0)), 1.0):
        assert (found.path, found.probability) == ("k", 1.0)


def test_ties_go_to_the_class_seen_first():
    for labels in (["k;b", "k;a"], ["k;a", "k;b"]):
        nodes = PathNodes(labels)
        total = nodes.sums(np.array([[0.5, 0.5]]))
        found = next(nodes.answers(total, np.empty((1, 0)), 0.5))
        assert found.path == labels[0]


def test_trees_of_paths_are_those_of_the_separator_but_for_empty_ranks():
    tree, plain = tree_of_paths(TAXA), Tree(";")
    assert all(tree.path(label) == plain.path(label) for label in TAXA)
    ragged = tree_of_paths(["a|b|c__", "a|d"], separator="|")
    assert ragged.path("a|b|c__") == ["a|b|c__", "a|b", "a", ""]
    assert ragged.distance("a|b|c__", "a|d") == 3
    model = OnlineClassifier("multi", update="pa", tree=tree_of_paths(TAXA))
    assert model.learn_one({"a": 1}, TAXA[0]).tree_.path(TAXA[0])[1] == "k;p;g"


# ---- estimators ----------------------------------------------------------------------------------


def test_one_row_equals_a_batch_and_blocks_of_one_row(monkeypatch):
    model, rows, _ = learner()
    whole = model.predict_path(rows, 0.6)
    for row, found in zip(rows[:10], whole, strict=False):
        assert model.predict_path_one(row, 0.6) == found
    monkeypatch.setattr(inputs, "BLOCK_ENTRIES", 1)
    assert model.predict_path(rows, 0.6) == whole


def test_a_loaded_model_answers_as_the_saved_one(tmp_path):
    model, rows, _ = learner()
    model.save(tmp_path / "taxa.kesler")
    assert load(tmp_path / "taxa.kesler").predict_path(rows) == model.predict_path(rows)


def test_dense_rows_and_other_classifiers():
    X = np.random.default_rng(0).normal(size=(60, 4))
    y = ["a;b" if x[0] > 0 else "a;c" for x in X]
    models = [
        OnlineClassifier(),
        OnlineClassifier(uncertainty="full"),
        Ensemble(),
        LinearMax("romma"),
    ]
    for model in models:
        found = model.fit(X, y).predict_path(X)
        assert {each.path for each in found} <= {"a", "a;b", "a;c"}
        assert found[7] == model.predict_path_one(X[7])
    bandit = BanditClassifier().partial_fit(X, y)
    assert bandit.predict_path_one(X[0], 0).path in {"a;b", "a;c"}
    costs = CostSensitiveClassifier("multi", update="pa1").learn_one({"w": 1}, {"a;b": 0, "a;c": 1})
    assert costs.predict_path_one({"w": 1}, 0).path == "a;b"


def test_one_class_is_certain_without_estimates_and_may_be_wrong_with_them():
    rows = [{"a": 1}] * 3
    sure = OnlineClassifier(uncertainty=False).partial_fit(rows, ["k;s"] * 3)
    assert sure.predict_path(rows[:1], 1) == [PathAnswer("k;s", 1.0, {"k": 1.0, "k;s": 1.0}, {})]
    model = OnlineClassifier().partial_fit(rows, ["k;s"] * 3)
    found = model.predict_path_one({"a": 1}, 0)
    assert found.path == "k;s" and 0 < found.new["k;s"] == pytest.approx(1 - found.probability)
    assert model.predict_path_one({"a": 1}, 1).path == ""


def test_a_class_that_is_declared_is_no_answer():
    model = OnlineClassifier().partial_fit([{"a": 1}] * 2, ["k;s"] * 2, classes=["k;s", "k__"])
    assert model.predict_path_one({"a": 1}, 0).path == "k;s"


@pytest.mark.parametrize(
    ("label", "options", "words"),
    [
        (7, {}, "the label 7 is no text"),
        (("a", "b"), {}, "is no text"),
        ("k__; p__", {}, "'k__; p__' names no rank"),
        ("a;b", {"separator": ""}, "separator=''"),
        ("a;b", {"separator": 7}, "separator=7"),
        ("a;b", {"min_confidence": 1.5}, "must be a finite number from 0 to 1"),
        ("a;b", {"min_confidence": None}, "must be a finite number from 0 to 1"),
    ],
)
def test_refusals(label, options, words):
    model = OnlineClassifier().learn_one({"a": 1}, label)
    for ask in (lambda: model.predict_path([{"a": 1}], **options),) * 2 + (
        lambda: model.predict_path_one({"a": 1}, **options),
    ):
        with pytest.raises(KeslerError, match=words):
            ask()
    if "min_confidence" not in options:
        with pytest.raises(KeslerError, match=words):
            tree_of_paths([label], **options)
