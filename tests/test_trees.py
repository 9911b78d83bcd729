"""Trees of classes: against a reference, the flat learner, their bound, and bad input."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kesler import KeslerError, OnlineClassifier, load, progressive_validate
from kesler.bounds import tree_bound
from kesler.durable import settings as journal_settings
from kesler.evaluation.reports.text import percent
from kesler.hypotheses import Grouped, PerClass, Shared
from kesler.maps import Frequency
from kesler.settings.codec import estimator_of
from kesler.trees import (
    Tree,
    level_errors,
    tree_distances,
    tree_loss,
    tree_of_confusions,
)
from kesler.updates import PassiveAggressive, PredictionBased
from streams import learnt

PARENTS = {"a1": "a", "a2": "a", "b1": "b", "b21": "b2", "b22": "b2", "b2": "b"}
LEAVES = ["a1", "a2", "b1", "b21", "b22", "c"]


def paths(parents, label):
    """The nodes from a label to the root, by hand."""
    found = [label]
    while found[-1] in parents:
        found.append(parents[found[-1]])
    return [*found, ""]


def apart(parents, one, other):
    return len(set(paths(parents, one)) ^ set(paths(parents, other)))


def rows(n_rows=120, seed=0, names=LEAVES):
    """Rows whose classes are near each other as in the tree."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(2, 5))
    centres = centres[[0, 0, 1, 1, 1, 0]] + 0.7 * rng.normal(size=(6, 5))
    y = rng.integers(6, size=n_rows)
    return centres[y] + rng.normal(size=(n_rows, 5)), [names[i] for i in y]


# ---- against a reference -------------------------------------------------------------------------


class Oracle:
    """The PA learner of Dekel, Keshet and Singer in NumPy, with a vector for each node."""

    def __init__(self, parents, variant, C, *, predicted=False):
        self.parents, self.variant, self.C, self.predicted = parents, variant, C, predicted
        self.w, self.known, self.errors = {}, [], 0

    def scores(self, x):
        zero = np.zeros(len(x))
        return {
            y: sum(float(self.w.get(v, zero) @ x) for v in paths(self.parents, y))
            for y in self.known
        }

    def learn(self, x, y):
        scores = self.scores(x)
        if y not in scores:
            self.known.append(y)
            return
        said = max(scores, key=scores.get)
        self.errors += apart(self.parents, y, said)
        rivals = [s for s in self.known if s != y]
        if not rivals or (self.predicted and said == y):
            return
        losses = {s: math.sqrt(apart(self.parents, y, s)) - scores[y] + scores[s] for s in rivals}
        s = said if self.predicted else max(rivals, key=losses.get)
        if losses[s] > 0:
            self.move(x, y, s, losses[s])

    def move(self, x, y, s, loss):
        square = apart(self.parents, y, s) * float(x @ x)
        step = {
            0: loss / square,
            1: min(self.C, loss / square),
            2: loss / (square + 0.5 / self.C),
        }[self.variant]
        ups, downs = set(paths(self.parents, y)), set(paths(self.parents, s))
        for node in ups - downs:
            self.w[node] = self.w.get(node, np.zeros(len(x))) + step * x
        for node in downs - ups:
            self.w[node] = self.w.get(node, np.zeros(len(x))) - step * x


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 50),
    n_rows=st.integers(1, 60),
    variant=st.sampled_from([0, 1, 2]),
    C=st.sampled_from([0.1, 1.0]),
    predicted=st.booleans(),
)
def test_updates_equal_those_of_the_source(seed, n_rows, variant, C, predicted):
    X, y = rows(n_rows, seed)
    X = X.astype(np.float32).astype(float)
    rule = (PredictionBased if predicted else PassiveAggressive)(C=C, variant=variant)
    result = progressive_validate(OnlineClassifier("multi", update=rule, tree=PARENTS), X, y)
    model = OnlineClassifier("multi", update=rule, tree=PARENTS).partial_fit(X, y)
    oracle = Oracle(PARENTS, variant, C, predicted=predicted)
    for x, label in zip(X, y, strict=True):
        oracle.learn(x, label)
    wanted = np.array([list(oracle.scores(x).values()) for x in X])
    found = model._fitted().scores(next(model._input.rows_to_score(model, X)))
    np.testing.assert_allclose(found, wanted, atol=2e-4 * max(1.0, abs(wanted).max()))
    assert result.tree_loss * n_rows == pytest.approx(oracle.errors)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 99),
    variant=st.sampled_from([0, 1, 2]),
    flat=st.booleans(),
    made=st.sampled_from([PassiveAggressive, PredictionBased]),
)
def test_the_bound_holds(seed, variant, flat, made):
    X, y = rows(80, seed)
    rule = made(C=0.3, variant=variant)
    hypotheses = {"costs": Tree(PARENTS)} if flat else {"tree": PARENTS}
    found = tree_bound(OnlineClassifier("multi", update=rule, **hypotheses), X, y)
    assert found.distance <= found.bound < math.inf


def test_the_bound_of_separable_rows_is_that_of_the_source():
    X = np.eye(6)[np.arange(60) % 6]
    y = [LEAVES[i % 6] for i in range(60)]
    found = tree_bound(OnlineClassifier("multi", update="pa", tree=PARENTS), X, y)
    assert found.loss == 0.0
    assert found.bound == pytest.approx(found.radius**2 * found.squared_norm)
    farthest = max(apart(PARENTS, a, b) for a in LEAVES for b in LEAVES)
    assert found.radius**2 == pytest.approx(farthest)
    assert 0 < found.distance <= found.bound


@pytest.mark.parametrize(
    "settings_",
    [
        {"update": "simproj", "tree": "."},
        {"update": "pa"},
        {"update": "pa", "tree": ".", "averaged": True},
        {"update": "pa", "tree": ".", "preprocessing": "z-scores"},
        {"update": "pa", "tree": ".", "on_new_class": "learn"},
        {"update": "pa", "tree": ".", "half_life": 10.0},
        {"update": "auto"},
    ],
)
def test_learners_that_the_theorem_does_not_cover_are_refused(settings_):
    X, y = rows(20)
    with pytest.raises(KeslerError, match="does not cover this learner"):
        tree_bound(OnlineClassifier(**settings_), X, y)


# ---- laws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("update", ["pa", "pa1", "simproj", "mira", "hinge", "softmax", "arow"])
def test_a_tree_of_one_level_is_multi_with_a_shared_hypothesis(update):
    X, y = rows()
    tree = OnlineClassifier("multi", update=update, tree=dict.fromkeys(LEAVES, "root"))
    costs = None if update == "softmax" else lambda one, other: math.sqrt(2)
    parts = [PerClass(), Grouped(lambda label: ["root"])]
    both = OnlineClassifier(parts, update=update, costs=costs)
    scores = [each.partial_fit(X, y).decision_function(X) for each in (tree, both)]
    if update == "mira":  # the order of the parts is that of the columns of its Gram matrix
        np.testing.assert_allclose(*scores, atol=1e-5)
    else:
        np.testing.assert_array_equal(*scores)


def test_without_a_tree_path_classes_hang_from_the_root():
    X, y = rows()
    flat = OnlineClassifier("multi", update="pa", costs=lambda one, other: math.sqrt(2))
    tree = OnlineClassifier("multi", update="pa", tree={"never": "seen"})
    scores = [each.partial_fit(X, y).decision_function(X) for each in (flat, tree)]
    np.testing.assert_array_equal(*scores)


@pytest.mark.parametrize(
    "learner",
    [
        {"hypotheses": "multi", "update": "pa"},
        {"hypotheses": "hybrid", "update": "mira", "on_new_class": "learn"},
        {"update": "auto"},
    ],
    ids=["pa", "mira", "default"],
)
def test_batches_events_and_files_are_one_stream(learner, tmp_path):
    X, y = rows(60)
    make = lambda: OnlineClassifier(**learner, tree=PARENTS)  # noqa: E731
    whole = make().partial_fit(X, y)
    by_row = make()
    for x, label in zip(X[:20], y[:20], strict=True):
        by_row.learn_one(x, label)
    by_row.save(tmp_path / "model")
    resumed = load(tmp_path / "model").partial_fit(X[20:50], y[20:50]).partial_fit(X[50:], y[50:])
    assert learnt(resumed) == learnt(whole)
    assert resumed.tree_ == whole.tree_ == Tree(PARENTS)


def test_renaming_changes_names_only():
    X, y = rows()
    names = {name: f"n{i}" for i, name in enumerate([*LEAVES, "a", "b", "b2"])}
    renamed = {names[child]: names[parent] for child, parent in PARENTS.items()}
    one = OnlineClassifier("multi", update="pa", tree=PARENTS).partial_fit(X, y)
    other = OnlineClassifier("multi", update="pa", tree=renamed)
    other.partial_fit(X, [names[label] for label in y])
    assert [names[label] for label in one.predict(X)] == other.predict(X).tolist()


@pytest.mark.parametrize("tree", [".", lambda name: name.rpartition(".")[0] or None])
def test_separators_and_functions_are_mappings(tree):
    names = ["a.x", "a.y", "b.x", "b.y.u", "b.y.v", "c"]
    parents = {"a.x": "a", "a.y": "a", "b.x": "b", "b.y.u": "b.y", "b.y.v": "b.y", "b.y": "b"}
    X, y = rows(names=names)
    learners = [OnlineClassifier("multi", update="pa", tree=each) for each in (tree, parents)]
    one, other = (each.partial_fit(X, y) for each in learners)
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))


def test_a_mapping_with_one_top_has_it_as_root():
    tree = Tree({"a": "top", "b": "top", "c": "a"})
    assert tree.root == "top" and tree.path("c") == ["c", "a", "top"]
    assert tree.path("new") == ["new", "top"]
    assert Tree({"a": "top", "b": None}).path("a") == ["a", "top", ""]


def test_inner_nodes_are_predicted_only_if_they_are_classes():
    X, y = rows()
    model = OnlineClassifier("multi", update="pa", tree=PARENTS).partial_fit(X, y)
    assert set(model.classes_) == set(LEAVES)
    model.learn_one(X[0], "b")
    assert "b" in model.classes_ and model.predict_proba(X).shape == (len(X), 7)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-1, 6), min_size=8, max_size=8))
def test_distances_are_a_metric_of_edges(above):
    parents = {i: above[i] for i in range(8) if 0 <= above[i] < i}
    tree = Tree(parents) if parents else Tree([])
    for i in range(8):
        for j in range(8):
            assert tree.distance(i, j) == tree.distance(j, i)
            assert (tree.distance(i, j) == 0) == (i == j)
            both = set(tree.path(i)) & set(tree.path(j))
            steps = len(tree.path(i)) + len(tree.path(j)) - 2 * len(both)
            assert tree.distance(i, j) == steps
            assert tree.distance(i, j) <= tree.distance(i, 0) + tree.distance(0, j)


# ---- classes that appear later -------------------------------------------------------------------


def test_later_classes_hang_where_they_are_told_to(tmp_path):
    X, y = rows()
    model = OnlineClassifier("multi", update="pa", tree=PARENTS).partial_fit(X, y)
    model.hang("a3", under="a").hang("a31", under="a3").hang("d")
    model.save(tmp_path / "model")
    for each in (model, load(tmp_path / "model")):
        each.learn_one(X[0], "a31").learn_one(X[1], "e")
        assert each.tree_.path("a31") == ["a31", "a3", "a", ""]
        assert each.tree_.path("d") == ["d", ""] == ["d", *each.tree_.path("e")[1:]]
        own = each._learner.memberships[0][each._learner.classes.code("a31")]
        named = {column: name for name, column in each._learner.groups[0].items()}
        assert {named[column] for column in own} == {"a31", "a3", "a", ""}
    assert learnt(model) == learnt(load_again(tmp_path, X))


def load_again(folder, X):
    return load(folder / "model").learn_one(X[0], "a31").learn_one(X[1], "e")


@pytest.mark.parametrize(
    ("label", "under", "part"),
    [
        ("new", "nowhere", "no node of the tree"),
        ("a1", "b", "has been seen"),
        ("b2", "a", "a node of the tree already"),
        ("", "a", "empty name"),
        (["x"], "a", "not hashable"),
    ],
)
def test_bad_places_are_a_sentence_and_nothing_changes(label, under, part):
    X, y = rows()
    model = OnlineClassifier("multi", update="pa", tree=PARENTS).partial_fit(X, y)
    before, tree = learnt(model), model.tree_
    with pytest.raises(KeslerError, match=part):
        model.hang(label, under=under)
    assert learnt(model) == before and model.tree_ == tree


def test_without_a_tree_nothing_hangs():
    model = OnlineClassifier("multi", update="pa").learn_one([1.0], "a")
    with pytest.raises(KeslerError, match="no tree of classes"):
        model.hang("b")
    assert model.tree_ is None
    with pytest.raises(KeslerError, match="has no tree"):
        _ = progressive_validate(model, [[1.0]], ["a"]).tree_loss


@pytest.mark.parametrize(
    ("tree", "part"),
    [
        ({"a": "b", "b": "c", "c": "a"}, "no cycle"),
        ({"a": "a"}, "its own parent"),
        ([("a", "b"), ("a", "c")], "two parents"),
        ({"a": ["b", "c"]}, "has the parents"),
        ({"": "b"}, "empty name"),
        ({"a": ""}, "empty name"),
        ({"a": {}}, "not hashable"),
        ("", "separator"),
        (3, "give a mapping"),
        ([("a",)], "give a mapping"),
        (lambda label: label, "its own parent"),
        (lambda label: label + "x", "more than 1000 nodes"),
        (lambda label: {}, "not hashable"),
    ],
)
def test_bad_trees_are_a_sentence_and_nothing_is_learnt(tree, part):
    model = OnlineClassifier("multi", update="pa", tree=tree)
    with pytest.raises(KeslerError, match=part):
        model.learn_one([1.0], "a")
    assert not model.__sklearn_is_fitted__()


def test_labels_that_are_no_text_have_no_separator():
    with pytest.raises(KeslerError, match="the label 3 is no text"):
        OnlineClassifier("multi", update="pa", tree=".").learn_one([1.0], 3)


def test_hypotheses_without_vectors_of_classes_take_no_tree():
    with pytest.raises(KeslerError, match="hypotheses have none"):
        OnlineClassifier([Shared(Frequency())], update="pa", tree=".").learn_one([1.0], "a")


def test_costs_that_are_given_replace_distances():
    X, y = rows()
    given = OnlineClassifier("multi", update="pa", tree=PARENTS, costs={("a1", "a2"): 2.0})
    parts = OnlineClassifier([Grouped(Tree(PARENTS))], update="pa", costs={("a1", "a2"): 2.0})
    scores = [each.partial_fit(X, y).decision_function(X) for each in (given, parts)]
    np.testing.assert_array_equal(*scores)


# ---- rules without a margin ----------------------------------------------------------------------

NO_MARGIN = {
    "default": {},
    "softmax": {"hypotheses": "multi", "update": "softmax", "averaged": True},
    "registers": {"hypotheses": "hybrid", "update": "softmax", "on_new_class": "register"},
    "squared": {"hypotheses": "multi", "update": "ovr-squared", "half_life": 50},
    "kernel": {"hypotheses": "multi", "update": "softmax", "kernel": "rbf", "sigma": 1.0},
}


def excess(found, labels, predicted):
    """How much further than the nearest class the predicted one is expected to be."""
    between = np.array([[apart(PARENTS, one, other) for other in labels] for one in labels])
    expected = np.asarray(found) @ between
    return expected[labels.index(predicted)] - expected.min()


@pytest.mark.parametrize("given_", NO_MARGIN.values(), ids=NO_MARGIN)
def test_without_a_margin_the_class_of_the_least_expected_distance_is_predicted(given_):
    X, y = rows(200, seed=3)
    learner = OnlineClassifier(**given_, tree=PARENTS)
    n_mistakes = n_others = 0
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        if i:
            found, said = learner.predict_proba_one(x), learner.predict_one(x)
            assert excess(list(found.values()), list(found), said) < 1e-5
            n_others += said != max(found, key=found.get)
            n_mistakes += label in found and said != label
        learner.learn_one(x, label)
    assert n_others > 0
    assert learner.n_mistakes_ == n_mistakes
    whole = OnlineClassifier(**given_, tree=PARENTS)
    assert progressive_validate(whole, X, y).n_mistakes == n_mistakes
    found = learner.predict_proba(X)
    said = zip(found, learner.predict(X), strict=True)
    assert max(excess(p, learner.classes_.tolist(), label) for p, label in said) < 1e-5
    explained = learner.explain_one(X[0])
    assert explained.label == learner.predict_one(X[0])


def test_with_a_margin_the_class_of_the_highest_score_is_predicted():
    X, y = rows(200, seed=3)
    for update in ("pa", "hinge", "mira"):
        learner = OnlineClassifier("multi", update=update, tree=PARENTS).partial_fit(X, y)
        highest = learner.classes_[learner.decision_function(X).argmax(axis=1)]
        assert learner.predict(X).tolist() == highest.tolist()


def test_distances_lower_the_tree_loss():
    """What it is for: nearer mistakes, by the same probabilities."""
    X, y = rows(3000, seed=5)
    X += 1.5 * np.random.default_rng(0).normal(size=X.shape)
    learner = OnlineClassifier("multi", update="softmax", tree=PARENTS).fit(X[:1500], y[:1500])
    highest = learner.classes_[learner.decision_function(X[1500:]).argmax(axis=1)]
    nearest = learner.predict(X[1500:])
    assert tree_loss(y[1500:], nearest, PARENTS) < tree_loss(y[1500:], highest, PARENTS)


def test_distances_without_a_tree_are_refused():
    from kesler.learner.classes import ClassTable
    from kesler.learner.learner import Learner
    from kesler.updates import SoftmaxGradient

    with pytest.raises(KeslerError, match="decision='distance' is unknown"):
        Learner([PerClass()], SoftmaxGradient(), ClassTable(), decision="distance")


# ---- measures and reports ------------------------------------------------------------------------


def test_measures_are_those_counted_by_hand():
    y, said = ["a1", "b21", "b22", "c", "c"], ["a1", "b22", "a1", "c", "b1"]
    assert tree_distances(y, said, PARENTS).tolist() == [0, 2, 5, 0, 3]
    assert tree_loss(y, said, PARENTS) == 2.0
    np.testing.assert_allclose(level_errors(y, said, PARENTS), [0.4, 0.4, 0.6])
    assert Tree(PARENTS).ancestor("b21", 1) == "b" and Tree(PARENTS).ancestor("c", 3) == "c"
    with pytest.raises(KeslerError, match="5 targets, but 1 predictions"):
        tree_distances(y, said[:1], PARENTS)


def test_results_and_reports_show_the_tree(tmp_path):
    X, y = rows()
    result = progressive_validate(OnlineClassifier("multi", update="pa", tree=PARENTS), X, y)
    wrong = result.wrong
    by_hand = [apart(PARENTS, a, b) for a, b in zip(y, result.predictions, strict=True)]
    assert result.tree_loss == pytest.approx(np.array(by_hand)[wrong].sum() / len(y))
    assert result.level_errors[-1] == pytest.approx(result.error)
    assert (np.diff(result.level_errors) >= 0).all()
    report = result.report()
    assert report.tree_loss == pytest.approx(result.tree_loss)
    assert report.level_errors == pytest.approx(tuple(result.level_errors))
    assert f"tree loss {result.tree_loss:.3f}" in str(report)
    assert "Error by level of the tree" in str(report)
    page = tmp_path / "report.html"
    report.to_html(page)
    shown = page.read_text()
    assert 'id="error-by-level"' in shown
    after = shown[shown.index('id="error-by-level"') :].partition("</table>")[0]
    assert all(f">{percent(each)}</td>" in after for each in report.level_errors)
    assert report.to_dict()["level_errors"] == list(report.level_errors)
    flat = replace(result, tree=None).report()
    assert flat.tree_loss is None and "tree" not in str(flat)


# ---- learnt trees --------------------------------------------------------------------------------


def test_confused_classes_are_near():
    counts = np.full((6, 6), 1.0)
    for group in ([0, 1], [2, 3, 4]):
        counts[np.ix_(group, group)] = 20.0
    tree = tree_of_confusions(counts, LEAVES, sizes=(3,))
    assert tree.distance("a1", "a2") == tree.distance("b1", "b22") == 2
    assert tree.distance("a1", "b1") == 4 and tree.path("c") == ["c", ""]
    whole = tree_of_confusions(counts, LEAVES)
    assert whole.distance("a1", "a2") == 2 and set(LEAVES) < set(whole.nodes)
    numbers = tree_of_confusions(counts, range(6), sizes=(2, 3))
    assert numbers.path(0)[0] == 0 and numbers.distance(0, 1) == 2


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 7), seed=st.integers(0, 99), size=st.integers(0, 5))
def test_every_class_is_a_leaf_of_a_learnt_tree(n, seed, size):
    counts = np.random.default_rng(seed).integers(0, 9, size=(n, n))
    sizes = (size,) if 1 < size < n else ()
    tree = tree_of_confusions(counts, list(range(n)), sizes)
    for label in range(n):
        assert tree.path(label)[0] == label and tree.path(label)[-1] == tree.root
    tops = {tree.ancestor(label, 1) for label in range(n)}
    assert len(tops) == (size if sizes else min(n, 2))


@pytest.mark.parametrize(
    ("counts", "labels", "sizes", "part"),
    [
        (np.ones((2, 3)), ["a", "b"], (), "square table"),
        (np.ones((2, 2)), ["a", "a"], (), "square table"),
        (-np.ones((2, 2)), ["a", "b"], (), "must be counts"),
        (np.full((2, 2), np.nan), ["a", "b"], (), "must be counts"),
        (np.ones((0, 0)), [], (), "must be counts"),
        (np.ones((3, 3)), ["a", "b", "c"], (3,), "ascend"),
        (np.ones((4, 4)), list("abcd"), (3, 2), "ascend"),
        (np.ones((3, 3)), ["a", "b", "c"], (1,), "ascend"),
    ],
)
def test_bad_confusions_are_refused(counts, labels, sizes, part):
    with pytest.raises(KeslerError, match=part):
        tree_of_confusions(counts, labels, sizes)


# ---- files ---------------------------------------------------------------------------------------


def test_a_function_is_named_in_the_file_and_given_on_loading(tmp_path):
    model = OnlineClassifier("multi", update="pa", tree=above).learn_one([1.0], "a.b")
    model.save(tmp_path / "model")
    with pytest.raises(KeslerError, match="above"):
        load(tmp_path / "model")
    assert load(tmp_path / "model", custom=[above]).tree_.path("a.b") == ["a.b", "a", ""]


def above(name):
    return name.rpartition(".")[0] or None


def test_names_that_a_file_cannot_hold_are_refused(tmp_path):
    model = OnlineClassifier("multi", update="pa", tree={"a": ("x", 1)}).learn_one([1.0], "a")
    with pytest.raises(KeslerError, match="numbers or text"):
        model.save(tmp_path / "model")


def test_a_journal_keeps_trees_and_knows_that_they_name_classes():
    for tree in (".", PARENTS, Tree(PARENTS, {"a3": "a"})):
        model = OnlineClassifier("multi", update="pa", tree=tree)
        written = json.loads(json.dumps(journal_settings.settings_of(model)))
        assert estimator_of(written).tree == tree
        assert journal_settings.depends_on_names(model)
    grouped = OnlineClassifier([Grouped(Tree(PARENTS))], update="pa")
    assert set(PARENTS) <= set(journal_settings.labels_in(grouped))
    assert not journal_settings.depends_on_names(OnlineClassifier("multi", update="pa"))
