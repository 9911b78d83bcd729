"""Targets that are costs of classes: against a reference, the ordinary learner, and bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from commands import kesler, refused
from kesler import (
    CostSensitiveClassifier,
    KeslerError,
    OnlineClassifier,
    load,
    progressive_validate,
)
from kesler.online.cost_vectors import targets_of_costs
from kesler.readers import open_stream
from streams import learnt
from test_scanners import same

LABELS = ["a", "b", "c", "d", "e"]
REFERENCES = ("pa", "pa1", "pa2", "hinge", "simproj", "mira")


class Oracle:
    """The learner of cost vectors in NumPy, with a vector for each class."""

    def __init__(self, rule, C, n_features, *, learns_first):
        self.rule, self.C, self.learns_first = rule, C, learns_first
        self.n_features, self.w = n_features, {}
        self.n_mistakes, self.total = 0, 0.0

    def learn(self, x, costs):
        scores = {label: float(w @ x) for label, w in self.w.items()}
        said = max(scores, key=scores.get) if scores else None
        least = min(costs.values())
        best = [label for label in costs if costs[label] == least]
        if said is not None:
            self.total += costs.get(said, max(costs.values()))
        new = sorted(set(costs) - set(self.w), key=lambda label: costs[label] > least)
        known = [label for label in costs if label in self.w]
        is_compared = {True, False} == {label in best for label in known}
        self.n_mistakes += is_compared and said not in best
        if self.learns_first:
            self.join(costs, new)
            known = list(costs)
        self.move(x, costs, [r for r in best if r in known], [s for s in known if s not in best])
        self.join(costs, new)

    def join(self, costs, new):
        order = [label for label in costs if label in new]
        least = min(costs.values())
        for label in sorted(order, key=lambda each: costs[each] > least):
            self.w.setdefault(label, np.zeros(self.n_features))

    def place(self, pair):
        """Of equal losses, the pair of the classes seen first."""
        order = list(self.w)
        return [order.index(label) for label in pair]

    def move(self, x, costs, best, others):
        pairs = [(r, s) for r in best for s in others]
        losses = {
            (r, s): costs[s] - costs[r] - float((self.w[r] - self.w[s]) @ x) for r, s in pairs
        }
        if self.rule in ("simproj", "mira"):
            chosen = [p for p in pairs if losses[p] > 0]
        else:
            violated = [p for p in sorted(pairs, key=self.place) if losses[p] > 0]
            chosen = [max(violated, key=losses.get)] if violated else []
        if not chosen:
            return
        places = {label: i for i, label in enumerate(self.w)}
        d = np.zeros((len(chosen), len(places), len(x)))
        for i, (r, s) in enumerate(chosen):
            d[i, places[r]] += x
            d[i, places[s]] -= x
        d = d.reshape(len(chosen), -1)
        loss = np.array([losses[p] for p in chosen])
        alpha = reference.RULES[self.rule](loss, (d * d).sum(axis=1), d @ d.T, self.C)
        moves = (alpha @ d).reshape(len(places), -1)
        for label, i in places.items():
            self.w[label] = self.w[label] + moves[i]


def vectors(draw, n_rows):
    """Costs of some of the labels, ties of the least cost included."""
    one = st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.25])
    return [
        draw(st.dictionaries(st.sampled_from(LABELS), one, min_size=1, max_size=5))
        for _ in range(n_rows)
    ]


@st.composite
def streams(draw):
    n_rows = draw(st.integers(1, 25))
    X = np.random.default_rng(draw(st.integers(0, 99))).normal(size=(n_rows, 4))
    return X.astype(np.float32).astype(float), vectors(draw, n_rows)


@pytest.mark.parametrize("rule", REFERENCES)
@settings(max_examples=40, deadline=None)
@given(stream=streams(), C=st.sampled_from([0.05, 1.0]), learns_first=st.booleans())
def test_every_rule_equals_its_oracle(rule, stream, C, learns_first):
    (X, targets), strength = stream, "eta" if rule == "hinge" else "C"
    settings_of_rule = {} if rule == "pa" else {strength: C}
    model = CostSensitiveClassifier(
        "multi",
        update=rule,
        on_new_class="learn" if learns_first else "register",
        **settings_of_rule,
    )
    oracle = Oracle(rule, C, 4, learns_first=learns_first)
    for x, costs in zip(X, targets, strict=True):
        model.learn_one(x, costs)
        oracle.learn(x, costs)
    near = 3e-3 if rule == "mira" else 1e-4
    labels = model.classes_by_code_.tolist()
    assert labels == list(oracle.w)
    scores = model._fitted().scores(next(model._input.rows_to_score(model, X)))
    wanted = np.array([[float(oracle.w[label] @ x) for label in labels] for x in X])
    np.testing.assert_allclose(scores, wanted, atol=near * max(1.0, abs(wanted).max()))


@settings(max_examples=40, deadline=None)
@given(stream=streams())
def test_mistakes_and_costs_are_counted_by_what_was_predicted(stream):
    X, targets = stream
    oracle = Oracle("pa1", 1.0, 4, learns_first=False)
    for x, costs in zip(X, targets, strict=True):
        oracle.learn(x, costs)
    result = progressive_validate(CostSensitiveClassifier("multi", update="pa1"), X, targets)
    model = CostSensitiveClassifier("multi", update="pa1").partial_fit(X, targets)
    assert result.total_cost == pytest.approx(model.total_cost_) == pytest.approx(oracle.total)
    assert result.n_mistakes == model.n_mistakes_ == oracle.n_mistakes
    assert result.mean_cost == pytest.approx(oracle.total / max(1, len(X) - 1))


# ---- laws ----------------------------------------------------------------------------------------


def zeros_and_ones(y):
    """The costs of a class each: 0 for it, 1 for the others seen."""
    seen, found = [], []
    for label in y:
        seen += [label] if label not in seen else []
        found.append({each: float(each != label) for each in seen})
    return found


@pytest.mark.parametrize(
    "learner",
    [
        {"hypotheses": "multi", "update": rule}
        for rule in ("pa", "pa1", "pa2", "hinge", "simproj", "conproj", "margin-perceptron", "arow")
    ]
    + [
        {"hypotheses": "hybrid", "update": "mira", "on_new_class": "learn", "C": 0.1},
        {"hypotheses": "hybrid", "update": "simproj", "averaged": True},
        {"hypotheses": "multi", "update": "pa1", "kernel": "rbf", "sigma": 1.0},
        {"hypotheses": "multi", "update": "pa1", "preconditioner": "adagrad"},
        {"hypotheses": "multi", "update": "simproj", "half_life": 30.0},
        {"hypotheses": "multi", "update": "simproj", "link": "exponential"},
    ],
    ids=lambda each: "-".join(map(str, each.values())),
)
def test_costs_of_0_and_1_are_the_ordinary_learner(learner):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 6))
    y = [LABELS[i] for i in (X[:, :5] @ rng.normal(size=(5, 5))).argmax(axis=1)]
    plain = OnlineClassifier(**learner).partial_fit(X, y)
    priced = CostSensitiveClassifier(**learner).partial_fit(X, zeros_and_ones(y))
    assert priced.n_mistakes_ == plain.n_mistakes_
    np.testing.assert_array_equal(priced.decision_function(X), plain.decision_function(X))
    np.testing.assert_array_equal(priced.predict_proba(X), plain.predict_proba(X))


def rows_with_costs(n_rows=60, seed=1):
    rng = np.random.default_rng(seed)
    X, costs = rng.normal(size=(n_rows, 4)), rng.choice([0.0, 0.3, 1.0, 4.0], size=(n_rows, 5))
    costs[rng.random(costs.shape) < 0.3] = np.nan
    costs[np.isnan(costs).all(axis=1), 0] = 1.0
    return X, costs


def mappings(costs, names=LABELS):
    return [
        {name: cost for name, cost in zip(names, row, strict=True) if not np.isnan(cost)}
        for row in costs.tolist()
    ]


def test_batches_events_tables_and_files_are_one_stream(tmp_path):
    X, costs = rows_with_costs()
    make = lambda: CostSensitiveClassifier("multi", update="pa1")  # noqa: E731
    whole = make().partial_fit(X, costs, classes=LABELS)
    by_row = make()
    for x, target in zip(X[:20], mappings(costs[:20]), strict=True):
        by_row.learn_one(x, target)
    by_row.save(tmp_path / "model")
    resumed = load(tmp_path / "model")
    resumed.partial_fit(X[20:23], mappings(costs[20:23])).partial_fit(X[23:], mappings(costs[23:]))
    assert learnt(resumed) == learnt(whole)
    assert resumed.total_cost_ == whole.total_cost_ > 0


def test_renaming_changes_names_only():
    X, costs = rows_with_costs()
    one = CostSensitiveClassifier("multi", update="simproj").partial_fit(X, mappings(costs))
    names = ["z", "y", "x", "w", "v"]
    other = CostSensitiveClassifier("multi", update="simproj")
    other.partial_fit(X, mappings(costs, names))
    renamed = dict(zip(LABELS, names, strict=True))
    assert [renamed[label] for label in one.predict(X)] == other.predict(X).tolist()
    assert one.total_cost_ == other.total_cost_


def test_larger_costs_make_confusions_rarer():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = (X @ rng.normal(size=(3, 3)) + rng.normal(size=(3000, 3))).argmax(axis=1)
    equal = 1.0 - np.eye(3)[y]
    dear = equal * np.array([[0, 20, 1], [1, 0, 1], [1, 1, 0]])[y]
    said = {}
    for name, costs in (("equal", equal), ("dear", dear)):
        learner = CostSensitiveClassifier("multi", update="pa1", C=0.05, intercept=1.0)
        said[name] = progressive_validate(learner, X, costs).predictions
    confused = {name: ((said[name] == 1) & (y == 0)).sum() for name in said}
    assert confused["dear"] < confused["equal"] / 2


def test_sample_weights_of_0_leave_rows_out():
    X, costs = rows_with_costs()
    weights = (np.arange(len(X)) % 3 > 0).astype(float)
    kept = weights > 0
    some = progressive_validate(CostSensitiveClassifier(), X, costs, weights)
    rest = progressive_validate(CostSensitiveClassifier(), X[kept], costs[kept])
    assert some.n_mistakes == rest.n_mistakes and some.n_trials == kept.sum()
    np.testing.assert_array_equal(some.costs, rest.costs)
    none = progressive_validate(CostSensitiveClassifier(), X, costs, np.zeros(len(X)))
    assert (none.costs.tolist(), none.n_mistakes, none.n_trials) == ([], 0, 0)


def test_the_score_is_minus_the_mean_cost():
    X, costs = [[1.0, 0.0], [0.0, 1.0]] * 10, [{"a": 0, "b": 3}, {"b": 0, "a": 2}] * 10
    model = CostSensitiveClassifier("multi", update="pa").fit(X, costs)
    assert model.score(X[:2], costs[:2]) == 0.0
    assert model.score(X[:2], [{"a": 1.5}, {"a": 2.0, "never": 5.0}]) == -(1.5 + 5.0) / 2


def test_a_class_that_has_not_been_seen_is_not_the_one_predicted():
    """Each prediction costs as much as the costliest named class, for none is named."""
    X, labels = np.eye(5), list("abcde")
    costs = [{other: float(other != label) for other in labels} for label in labels]
    model = CostSensitiveClassifier("multi", update="pa").fit(X, costs)
    assert model.predict(X).tolist() == labels
    others = [{labels[i - 1]: 5.0, "never": 1.0} for i in range(5)]
    assert model.score(X, others) == -5.0


# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("costs", "part"),
    [
        ({}, "names no class"),
        ({"a": -1.0}, "a cost must be a finite number"),
        ({"a": float("nan")}, "a cost must be a finite number"),
        ({"a": float("inf"), "b": 0.0}, "a cost must be a finite number"),
        ({"a": "1"}, "a cost must be a finite number"),
        ("a", "has no costs"),
        (None, "has no costs"),
        ({3: 0.0, "b": 1.0}, "cannot be ordered"),
        ({None: 0.0}, "is no class"),
    ],
)
def test_bad_costs_are_a_sentence_and_nothing_is_learnt(costs, part):
    model = CostSensitiveClassifier("multi", update="pa1")
    model.learn_one({"x": 1.0}, {"b": 0.0, "c": 2.0})
    before = learnt(model)
    for learn in (
        lambda: model.learn_one({"x": 1.0, "new": 2.0}, costs),
        lambda: model.partial_fit([{"x": 1.0}, {"y": 1.0}], [{"b": 0.0}, costs]),
    ):
        with pytest.raises(KeslerError, match=part):
            learn()
        assert learnt(model) == before


def test_tables_are_validated():
    for table, part in (
        ([[0.0, -1.0]], "row 0 gives the label 1 a cost of -1.0"),
        ([[np.nan, np.nan]], "row 0 names no class"),
        ([[0.0, np.inf]], "a cost of inf"),
    ):
        with pytest.raises(KeslerError, match=part):
            targets_of_costs(np.array(table))
    with pytest.raises(KeslerError, match="2 columns, but classes= names 1 label"):
        targets_of_costs(np.zeros((1, 2)), ["a"])


def test_rules_without_margins_are_refused():
    for rule in ("perceptron", "softmax", "ovr-squared"):
        with pytest.raises(KeslerError, match="ignores margins"):
            CostSensitiveClassifier(update=rule).learn_one({"x": 1.0}, {"a": 0.0})


# ---- csoaa lines ---------------------------------------------------------------------------------

CSOAA = """\
spam:0 work:2.5 home:1 | win cash:2
work:0 home:0.5 'tag|w lunch |b agenda
home:0 | garden
3e1:0 | odd
"""


def test_csoaa_lines_are_costs(tmp_path):
    path = tmp_path / "rows.vw"
    path.write_text(CSOAA.rpartition("3e1")[0], encoding="utf-8")
    (block,) = open_stream(path)
    assert block.labels == [
        {"spam": 0.0, "work": 2.5, "home": 1.0},
        {"work": 0.0, "home": 0.5},
        {"home": 0.0},
    ]
    assert open_stream(path).vocabulary is not None
    unnamed = tmp_path / "rows"
    unnamed.write_text("1:0 2:1 3:2 4:3 5:4 | a b\n", encoding="utf-8")
    assert next(open_stream(unnamed)).labels == [{1: 0.0, 2: 1.0, 3: 2.0, 4: 3.0, 5: 4.0}]


LINES = st.lists(
    st.one_of(
        st.lists(
            st.tuples(
                st.sampled_from(["1", "2", "01", "10", "-3", "1e0", "0", "00", "2.5"]),
                st.sampled_from(["0", "1.5", "2e-3", "-1", "inf", "x", "", "1e39", "7"]),
            ).map(":".join),
            min_size=1,
            max_size=4,
        ).map(" ".join),
        st.sampled_from(["", "1", "1 2", "1:0 'tag", "1:0 2:1 3:4"]),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=150, deadline=None)
@given(rows=LINES, skip_bad=st.booleans())
def test_the_compiled_way_reads_costs_as_the_parser_does(rows, skip_bad, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "costs.vw"
    lines = ["1:0 2:1 | a b:2", *(f"{head} | a c" for head in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    same(path, skip_bad=skip_bad)


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("spam:0 spam:1 | a", "occurs twice"),
        ("spam:0 work:-1 | a", "not class:cost"),
        ("spam:0 work | a", "not class:cost"),
    ],
)
def test_bad_csoaa_lines_are_refused(line, part, tmp_path):
    path = tmp_path / "rows.vw"
    path.write_text(f"a:0 b:1 | x\n{line}\n", encoding="utf-8")
    with pytest.raises(KeslerError, match=part):
        list(open_stream(path))


def test_the_command_line_learns_from_costs(capsys, tmp_path):
    rows, model = tmp_path / "rows.vw", tmp_path / "model"
    rows.write_text(CSOAA.rpartition("3e1")[0] * 20, encoding="utf-8")
    done = kesler(capsys, "learn", model, rows, "--update", "pa1")
    assert done.code == 0, done.err
    found = load(model)
    assert isinstance(found, CostSensitiveClassifier)
    assert f"cost of predictions: {found.total_cost_ / 60:,.4g} a row" in done.out
    said = kesler(capsys, "predict", model, rows)
    assert said.lines[:2] == ["spam", "work"]
    more = kesler(capsys, "learn", model, rows, "--resume")
    assert more.code == 0 and "nothing was learnt" in more.out
    other = tmp_path / "plain.vw"
    other.write_text("spam | win\n", encoding="utf-8")
    refused(kesler(capsys, "learn", model, other, "--resume"), "labels of these rows")
