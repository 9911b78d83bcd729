"""Rows that come one at a time: in every form, the short way to a trial is that of a batch."""

from __future__ import annotations

import os
import pickle
from collections import Counter, OrderedDict, defaultdict
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from kesler import (
    Ensemble,
    KeslerError,
    LinearMax,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
)
from kesler.data.rows import Vocabulary
from kesler.data.texts import counted
from kesler.hypotheses import PerClass, Shared
from kesler.learner.events import Event
from kesler.maps import Contrast
from streams import of_words

NAMES = [f"w{number}" for number in range(12)]
MAKERS = {
    "default": OnlineClassifier,
    "PA-I": lambda: OnlineClassifier("multi", update="pa1"),
    "with an intercept": lambda: OnlineClassifier("multi", update="pa1", intercept=2.0),
    "by distance": lambda: OnlineClassifier("hybrid", "product-mean", update="perceptron"),
    "over a kernel": lambda: OnlineClassifier("multi", update="pa1", kernel="rbf", sigma=1.0),
    "fading": lambda: OnlineClassifier(half_life=5.0),
    "averaged": lambda: OnlineClassifier("multi", update="pa1", averaged=True),
    "winnow": LinearMax,
    "ordinal": OnlineOrdinalClassifier,
    "an ensemble": Ensemble,
    "votes": lambda: Ensemble(
        [OnlineClassifier(), OnlineClassifier("multi", update="pa1")], "majority"
    ),
}
every_maker = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)

values = st.one_of(
    st.floats(-9, 9, width=32), st.integers(-5, 5), st.booleans(), st.just(np.float64(0.1))
)
entries = st.dictionaries(st.sampled_from(NAMES), values, max_size=8)
labels = st.integers(0, 3)
event_lists = st.lists(st.tuples(entries, labels), min_size=1, max_size=12)


def in_batches(model: Any, events: list[tuple[Any, Any]]) -> Any:
    for x, y in events:
        model.partial_fit([x], [y])
    return model


def by_events(model: Any, events: list[tuple[Any, Any]]) -> Any:
    for x, y in events:
        model.learn_one(x, y)
    return model


def stored(model: Any) -> dict[str, bytes]:
    """Return all that a learner, or each of an ensemble, has learnt."""
    learner = model._learner
    found = {name: array.tobytes() for name, array in learner.arrays().items()}
    return found | {"labels": repr(learner.classes.labels).encode()}


def assert_same(one: Any, other: Any, probes: Any) -> None:
    """Require that two learners have the same state and predictions, bit for bit."""
    assert stored(one) == stored(other)
    assert one.n_mistakes_ == other.n_mistakes_
    assert np.array_equal(one.predict(probes), other.predict(probes))


# ---- the same as batches ------------------------------------------------------------------------


@every_maker
@settings(max_examples=25)
@given(events=event_lists)
def test_named_events_are_learnt_and_predicted_as_batches_are(make, events):
    batches, singles = in_batches(make(), events), by_events(make(), events)
    rows = [x for x, _ in events] + [{"never seen": 1.5, "w0": 1.0}, {}]
    assert_same(batches, singles, rows)
    assert singles.vocabulary_.names == batches.vocabulary_.names
    assert [singles.predict_one(x) for x in rows] == batches.predict(rows).tolist()


@every_maker
@settings(max_examples=15)
@given(events=event_lists)
def test_a_trial_predicts_then_learns(make, events):
    # Not the first rows of a table, which are learnt again once they show other kinds of columns.
    apart, at_once = of_words(make()), of_words(make())
    for x, y in events:
        expected = apart.predict_one(x) if apart.n_known_ else None
        apart.learn_one(x, y)
        assert at_once.learn_predict_one(x, y) == expected
    assert_same(apart, at_once, [x for x, _ in events])


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("name", ["default", "with an intercept", "over a kernel", "by distance"])
def test_arrays_are_learnt_as_batches_are(name, dtype):
    X = np.random.default_rng(0).integers(-3, 4, (40, 6)).astype(dtype)
    y = np.arange(40) % 3
    singles = by_events(MAKERS[name](), list(zip(X, y, strict=True)))
    assert_same(MAKERS[name]().partial_fit(X, y), singles, X)
    strided = np.repeat(X, 2, axis=1)[:, ::2]
    assert [singles.predict_one(x) for x in strided] == singles.predict(X).tolist()


def pairs_of(matrix: Any) -> list[tuple[Any, Any]]:
    rows = [matrix[[row]] for row in range(matrix.shape[0])]
    return [(row.indices, row.data) for row in rows]


@pytest.mark.parametrize("name", ["default", "with an intercept", "over a kernel", "an ensemble"])
def test_pairs_and_sparse_rows_are_learnt_as_sparse_matrices_are(name):
    rng, y = np.random.default_rng(0), np.arange(40) % 3
    dense = np.where(rng.random((40, 15)) < 0.3, rng.random((40, 15)), 0.0)
    dense[0, 14] = 1.0  # so that a pair determines the number of features
    X = sparse.csr_array(dense)
    whole = MAKERS[name]().partial_fit(X, y)
    singles = by_events(MAKERS[name](), list(zip(pairs_of(X), y, strict=True)))
    assert stored(singles) == stored(whole)
    assert [singles.predict_one(x) for x in pairs_of(X)] == whole.predict(X).tolist()
    assert [whole.predict_one(X[[row]]) for row in range(40)] == whole.predict(X).tolist()
    shuffled = [(i[::-1].copy(), v[::-1].copy()) for i, v in pairs_of(X)]
    assert [whole.predict_one(x) for x in shuffled] == whole.predict(X).tolist()


def test_a_text_stands_for_its_tokens():
    texts = [("Win CASH, win!", "spam"), ("Lunch at one?", "work"), ("cash prize", "spam")]
    tokens = [({"win": 1.0, "cash": 1.0}, "spam"), ({"lunch": 1, "at": 1, "one": 1}, "work")]
    tokens += [({"cash": 1, "prize": 1}, "spam")]
    model = OnlineClassifier([PerClass(), Shared(Contrast())], update="ovr-hinge")
    named, settings = by_events(model, tokens), by_events(clone(model), texts)
    assert_same(named, settings, [x for x, _ in tokens])
    assert settings.predict_one("the CASH") == named.predict_one({"the": 1, "cash": 1}) == "spam"
    assert settings.predict_proba_one("lunch") == named.predict_proba_one({"lunch": 1})


@pytest.mark.parametrize(
    ("make", "answers"),
    [(OnlineMultilabelClassifier, [{"a"}, {"a", "b"}, set(), {"c"}]),
     (OnlineLabelRanker, [["a", "b"], ["b", "a"], ["c", "a", "b"], ["a", "b"]])],
    ids=["multilabel", "ranking"],
)  # fmt: skip
def test_answers_of_many_labels_take_the_same_way(make, answers):
    generator = np.random.default_rng(1)
    rows = [dict.fromkeys(generator.choice(NAMES, 4, replace=False), 1.0) for _ in range(24)]
    events = list(zip(rows, answers * 6, strict=True))
    apart, at_once = make(), make()
    for x, y in events:
        expected = apart.predict_one(x) if apart.n_known_ else type(y)()
        apart.partial_fit([x], [y])
        assert at_once.learn_predict_one(x, y) == expected
    assert_same(apart, at_once, rows)


# ---- in whatever mapping and number -------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [Counter, OrderedDict, lambda x: defaultdict(float, x)],
    ids=["Counter", "ordered", "default"],
)
def test_every_mapping_is_read_alike(kind):
    events = [({"a": 1, "b": 2}, 0), ({"b": 1, "c": 3}, 1), ({"a": 2, "c": 1}, 0)]
    other = by_events(OnlineClassifier(), [(kind(x), y) for x, y in events])
    assert_same(by_events(OnlineClassifier(), events), other, [x for x, _ in events])


@pytest.mark.parametrize(
    "number",
    [2**60 + 1, True, np.int8(3), np.float16(0.1), np.float32(0.1), np.int64(2**62 + 7), -0.0],
)
def test_every_number_is_rounded_as_in_a_batch(number):
    events = [({"a": 1.0}, 0), ({"a": number, "b": 1}, 1), ({"a": number}, 0)]
    assert_same(
        in_batches(MAKERS["PA-I"](), events),
        by_events(MAKERS["PA-I"](), events),
        [{"a": 1.0}],
    )


def test_a_long_event_grows_the_buffers():
    long = {f"n{number}": float(number % 7) for number in range(5000)}
    events = [({"n1": 1.0}, 0), (long, 1), ({"n1": 2.0}, 0), (long, 0)]
    assert_same(
        in_batches(OnlineClassifier(), events), by_events(OnlineClassifier(), events), [long]
    )


# ---- refused alike ------------------------------------------------------------------------------

REFUSED = [
    {"new": "1.5"},
    {"new": None},
    {"new": [1.0]},
    {"new": float("nan")},
    {"new": float("inf")},
    {"new": 1e39},
    {"new": 10**400},
    {"new": Decimal("1.5")},
    {"new": 1j},
    {"new": 1.0, 3: 1.0},
    {"new": 1.0, ("a",): 1.0},
]


@pytest.mark.parametrize("x", REFUSED, ids=repr)
def test_a_named_event_is_refused_as_in_a_batch_and_leaves_no_trace(x):
    events = [({"a": 1.0}, 0), ({"b": 1.0}, 1)]
    model = by_events(OnlineClassifier(columns=None), events)
    with pytest.raises(KeslerError) as batch:
        model.partial_fit([x], [0])
    for refused in (model.learn_one, model.learn_predict_one):
        with pytest.raises(KeslerError) as event:
            refused(x, 0)
        assert str(event.value) == str(batch.value)
    assert_same(by_events(OnlineClassifier(columns=None), events), model, [{"a": 1.0}])
    assert model.vocabulary_.names == ["a", "b"]


@pytest.mark.parametrize("label", [float("nan"), None, [1]], ids=repr)
@pytest.mark.parametrize("columns", ["auto", None])
@pytest.mark.parametrize(
    "rows", [({"a": 1.0}, {"b": 1.0}, {"new": 1.0}), ("a", "b", "new")], ids=["named", "texts"]
)
def test_a_refused_label_leaves_no_name(rows, columns, label):
    model = by_events(OnlineClassifier(columns=columns), [(rows[0], 0), (rows[1], 1)])
    names = [*model.vocabulary_.names]
    with pytest.raises(KeslerError, match="label"):
        model.learn_one(rows[2], label)
    assert model.vocabulary_.names == names and model.n_trials_ == 2
    assert {"a", "b"} <= {*names} and "new" not in names


def array_of(*numbers: Any) -> Any:
    return np.array(numbers)


@pytest.mark.parametrize(
    ("x", "why"),
    [
        (array_of(1.0, 2.0), "expects 3 features"),
        (array_of(1.0, np.nan, 2.0), "feature 1 is NaN, and this learner takes no missing"),
        (array_of(1.0, 1e39, 2.0), "feature 1 is infinity or too large"),
        ((array_of(0, 3), array_of(1.0, 1.0)), "lists feature 3, but this model expects 3"),
        ((array_of(-1, 2), array_of(1.0, 1.0)), "lists feature -1"),
        ((array_of(1, 1), array_of(1.0, 1.0)), "lists feature 1 twice"),
        ((array_of(0, 1), array_of(1.0, np.inf)), "NaN, infinity or too large"),
        ((array_of(0, 1), array_of(1.0)), "as many of each"),
        ((array_of(0.5, 1), array_of(1.0, 2.0)), "whole numbers for the indices"),
        ((array_of(0, 1), array_of("1", "2")), "numbers for the values"),
        (sparse.csr_array(np.eye(3)), "one sparse row"),
        ({"a": 1.0}, "cannot match named features"),
        ("text", "cannot match named features"),
    ],
    ids=str,
)
def test_a_row_by_position_is_refused_with_a_reason(x, why):
    X, y = np.eye(3), [0, 1, 2]
    model = OnlineClassifier("multi", update="pa1").fit(X, y)
    for refused in (lambda: model.learn_one(x, 0), lambda: model.predict_one(x)):
        with pytest.raises(KeslerError, match=why):
            refused()
    assert_same(OnlineClassifier("multi", update="pa1").fit(X, y), model, X)


@pytest.mark.parametrize("columns", ["auto", None])
def test_positions_mean_nothing_to_a_learner_of_names(columns):
    model = OnlineClassifier(columns=columns).learn_one({"a": 1.0}, 0)
    for x in (np.ones(1), (np.array([0]), np.ones(1)), sparse.csr_array([[1.0]])):
        for refused in (lambda x=x: model.learn_one(x, 0), lambda x=x: model.predict_one(x)):
            with pytest.raises(KeslerError, match="learns from named features"):
                refused()


# ---- what it leaves alone -----------------------------------------------------------------------


@every_maker
def test_predicting_changes_nothing_and_an_event_is_not_kept(make):
    events = [({"a": 1.0}, 0), ({"b": 1.0, "c": 2.0}, 1), ({"c": 1.0}, 0)]
    model, x = by_events(make(), events), {"a": 1.0, "unmet": 3.0}
    before = stored(model)
    first = model.predict_one(x)
    model.predict_one({"b": 1.0})
    assert model.predict_one(x) == first
    assert x == {"a": 1.0, "unmet": 3.0}
    assert stored(model) == before
    assert model.vocabulary_.names == ["a", "b", "c"]
    copied = pickle.loads(pickle.dumps(model))
    assert_same(by_events(copied, events), by_events(model, events), [x])


reads_mappings = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="Python reads mappings"
)


@reads_mappings
def test_what_cannot_be_read_is_left_to_python():
    event, names = Event(), Vocabulary({"a": 0})
    assert event.read_mapping({"b": 2, "a": 1.5}, names, joins=True)
    assert (event.n_entries, event.n_features, names.indices) == (2, 2, {"a": 0, "b": 1})
    assert not event.read_mapping({"c": "1"}, names, joins=False)
    assert not event.read_mapping({1: 1.0}, names, joins=True)
    assert not event.read_mapping({"\ud800": 1.0}, names, joins=True)
    assert not event.read_array(np.array([[1.0]]))
    assert not event.read_pair(np.array([2, 1]), np.ones(2), None)
    assert names.indices == {"a": 0, "b": 1}


def numbers_read(event, entry, names, *, joins):
    """Return the numbers that names are read as."""
    assert event.read_mapping(entry, names, joins=joins)
    return event._entries[0][: event.n_entries].tolist()


@reads_mappings
@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.text("ab\0\xe9\u20ac", max_size=20), st.just(1.0), max_size=12),
            st.sampled_from(["learn", "predict", "forget", "another"]),
        ),
        max_size=12,
    )
)
def test_names_are_read_as_their_numbers(steps):
    event, names = Event(), Vocabulary()
    for entry, what in steps:
        if what == "forget":
            names.forget_from(len(names) // 2)
        elif what == "another":
            names = Vocabulary.of(names.names[::-1])
        known, joins = dict(names.indices), what != "predict"
        for name in entry if joins else ():
            known.setdefault(name, len(known))
        found = numbers_read(event, entry, names, joins=joins)
        assert found == [known.get(name, len(known)) for name in entry]
        assert names.indices == known


LETTERS = "abZ0'_ -.\n\xc4\xdf\u0130\u0131\u6f22\u0660\u00b2\U0001f642\U0001d518"
"""Letters of one to four bytes, among them some of which lower case is longer, and no letters."""
SCRIPTS = "हि्เสืמ\u064e\u200cצ״한’\u0301\ufe0f\ud800"
SIGNS = "ab dpoxD3'!?:;=-^()[]{}|/\\*@$<>+#_.,\xdf\xe9"
"""Letters, and the characters of which signs such as :-( and words such as C++ are made."""


@reads_mappings
@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.one_of(
                st.text(LETTERS, max_size=60),
                st.text(LETTERS + SCRIPTS, max_size=30),
                st.text(SIGNS, max_size=20),
                st.lists(st.text("ab", min_size=7, max_size=40), max_size=60).map(" ".join),
            ),
            st.booleans(),
        ),
        max_size=6,
    )
)
def test_texts_are_read_as_their_words(steps):
    """Each word with its count, in the order of the first of them, as Python finds them."""
    texts, mappings = Event(), Event()
    ours, theirs = Vocabulary(), Vocabulary()
    for text, joins in steps:
        assert texts.read_text(text, ours, joins=joins)
        assert mappings.read_mapping(counted([text]), theirs, joins=joins)
        n = texts.n_entries
        assert n == mappings.n_entries and texts.n_features == mappings.n_features
        for found, wanted in zip(texts._entries[:2], mappings._entries[:2], strict=True):
            np.testing.assert_array_equal(found[:n], wanted[:n])
        assert ours.names == theirs.names
        assert not texts._met.any()


@reads_mappings
def test_letters_that_are_rare_are_left_to_python():
    event, names = Event(), Vocabulary()
    for text in ("one two \U00020000", "\U00020000 one"):
        assert not event.read_text(text, names, joins=True)
        assert not event._met.any() and not len(names)
    model = OnlineClassifier(update="pa1")
    model = model.learn_one("one two", "a").learn_one("one two \U00020000", "b")
    assert model.vocabulary_.names == ["one", "two", "\U00020000"]


@reads_mappings
def test_names_met_of_late_are_kept_as_their_table_grows():
    event, names = Event(), Vocabulary()
    for start in range(0, 5000, 50):
        entry = {f"{place}{'x' * (place % 19)}": 1.0 for place in range(start, start + 50)}
        assert numbers_read(event, entry, names, joins=True) == list(range(start, start + 50))
    filled = event._recent[event._recent[:, 2] != 0]
    assert len(filled) > 2500
    spelt = {name.encode(): number for name, number in names.indices.items()}
    for first, last, longer_by_one, number in filled.tolist():
        n = longer_by_one - 1
        letters = first.to_bytes(8, "little", signed=True) + last.to_bytes(8, "little", signed=True)
        name = letters[:n] if n < 8 else letters[:8] + letters[16 - (n - 8) :]
        assert spelt[name] == number


@reads_mappings
@pytest.mark.parametrize(
    "form", ["word{}", "{}", "colour={:07d}", "{:x}", "word{}, one", "n{0}/{0}"]
)
def test_names_that_are_much_alike_stand_apart(form):
    event, names = Event(), Vocabulary()
    entry = {form.format(i): 1.0 for i in range(100_000, 160_000)}
    for _ in range(2):  # the second time the capacity suffices
        numbers_read(event, entry, names, joins=True)
    filled = event._recent[event._recent[:, 2] != 0]
    # Strewn by chance, two to a line: eight in a thousand find no place.
    assert len(event._recent) == 1 << 19
    assert len(filled) > 0.985 * len(names)


@pytest.mark.parametrize("made", [OnlineClassifier, lambda: OnlineClassifier(update="pa1")])
@pytest.mark.parametrize("kind", ["array", "mapping", "text", "table"])
def test_a_weight_of_one_row_is_that_of_a_batch(made, kind):
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(30, 3)).round(2), rng.integers(3, size=30).tolist()
    forms = {
        "array": list(X),
        "mapping": [dict(zip("abc", row, strict=True)) for row in X.tolist()],
        "text": [" ".join(f"w{int(10 * abs(v))}" for v in row) for row in X.tolist()],
        "table": [{"a": row[0], "kind": "one" if row[1] > 0 else "two"} for row in X.tolist()],
    }
    rows, weights = forms[kind], [0.0 if i % 7 == 3 else 0.25 + i % 4 for i in range(30)]
    one, batch = made(), made()
    for x, label, weight in zip(rows, y, weights, strict=True):
        one.learn_one(x, label, weight)
        if weight:
            row = np.array([x]) if kind == "array" else [x]
            batch.partial_fit(row, [label], sample_weight=[weight])
    assert one.n_trials_ == batch.n_trials_ == sum(map(bool, weights))
    mine, others = one._learner.arrays(), batch._learner.arrays()
    for name, array in mine.items():
        np.testing.assert_array_equal(array, others[name], err_msg=name)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf, "much"])
def test_a_weight_of_one_row_that_is_none_is_refused(weight):
    model = OnlineClassifier().learn_one([1.0, 2.0], "a")
    with pytest.raises(KeslerError, match="weight"):
        model.learn_one([1.0, 2.0], "a", weight)
    assert model.n_trials_ == 1
