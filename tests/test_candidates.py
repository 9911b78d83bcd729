"""Candidates: what learners of many classes say and learn, and what changes nothing of it."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from kesler import KeslerError, OnlineClassifier, load
from kesler.candidates import Candidates
from kesler.compiled.candidates import entries as compiled_entries
from kesler.data import model_file
from kesler.data.texts import with_runs
from kesler.datasets import load as load_data
from kesler.learner.entries import Entries
from reference_candidates import ReferenceCandidates, Tables
from streams import in_order_of_appearance, learnt

SETTINGS = [(2, 2, 2000), (3, 5, 10), (4, 10, 1), (8, 8, 24)]
every_setting = pytest.mark.parametrize("setting", SETTINGS, ids=str)


def learner(setting: tuple[int, ...] = SETTINGS[1], **settings: Any) -> OnlineClassifier:
    return OnlineClassifier(candidates=Candidates(*setting), **settings)


@dataclass(frozen=True)
class Words:
    """Rows of counts of words, classes in the order of their appearance, and weights."""

    X: Any
    y: Any
    weights: Any

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: slice) -> Words:
        return Words(self.X[rows], self.y[rows], self.weights[rows])


def words(
    seed: int, n_rows: int = 160, n_classes: int = 30, n_words: int = 60, *, longest: int = 6
) -> Words:
    """Rows of Zipf's words, half of them typical of their class; some rows are empty."""
    rng = np.random.default_rng(seed)
    y = in_order_of_appearance(np.minimum(rng.zipf(1.5, size=n_rows), n_classes))
    X = np.zeros((n_rows, n_words))
    for t in range(n_rows):
        drawn = rng.zipf(1.4, size=rng.integers(longest))
        typical = rng.random(len(drawn)) < 0.5
        np.add.at(X[t], np.where(typical, 7 * y[t] + drawn, drawn) % n_words, 1)
    return Words(sparse.csr_array(X), y, rng.choice([0.5, 1.0, 2.0], size=n_rows))


def real_texts(name: str, n_rows: int, seed: int = 0) -> tuple[list[str], Any]:
    """Return texts of a set in random order, and their classes as they appear."""
    data = load_data(name)
    rows = np.random.default_rng(seed).permutation(len(data.y))[:n_rows]
    texts = [data.records[row]["text"] for row in rows]
    return texts, in_order_of_appearance(np.asarray(data.y)[rows])


def as_counts(texts: list[str]) -> Any:
    """Return the features of short texts, numbered as they appear."""
    entries = [with_runs(text) for text in texts]
    names = {name: i for i, name in enumerate(dict.fromkeys(n for e in entries for n in e))}
    X = np.zeros((len(texts), len(names)))
    for t, entry in enumerate(entries):
        X[t, [names[name] for name in entry]] = [*entry.values()]
    return X


# ---- entries ------------------------------------------------------------------------------------


@pytest.fixture
def blocks(monkeypatch):
    """The functions of blocks of entries, interpreted."""
    for name, function in vars(compiled_entries).copy().items():
        if hasattr(function, "py_func"):
            monkeypatch.setattr(compiled_entries, name, function.py_func)
    return compiled_entries


def test_lengths_of_blocks_are_numbered_and_seldom_a_quarter_more_than_needed(blocks):
    found = [blocks.size_of(n) for n in range(1, 5_000)]
    lengths = sorted({length for _, length in found})
    assert [blocks.size_of(length) for length in lengths] == [*enumerate(lengths)]
    for n, (_, length) in enumerate(found, 1):
        assert n <= length <= 1.25 * n
    for i, length in enumerate(lengths):
        assert sum(lengths[: i + 1]) < blocks.SUM_OF_LENGTHS * length + 1


def test_an_entry_is_found_where_it_was_put_until_its_block_grows(blocks):
    rng = np.random.default_rng(5)
    entries, most = Entries(2, 1), blocks.length_for(960)
    drawn = np.unique(rng.integers(0, 10**6, size=100_000))
    at_the_end = [r for r in drawn.tolist() if blocks.hashed(r, most) > most - 4][:12]
    others = [r for r in rng.permutation(drawn).tolist() if 0 < blocks.hashed(r, most) < most - 4]
    classes = [*at_the_end, *others[:1_500]]
    for n, r in enumerate(classes, 1):
        for i in (0, 1):  # whose blocks take turns
            while not blocks.has_capacity_for(entries.bound(), np.array([i]), 1):
                entries.reserve_places(int(entries.stored["pool"]["n_needed"][0]))
            place = blocks.append(entries.bound(), i, r)
            entries.stored["numbers"][place] = r + i / 2
        if n in (769, 960, 961, len(classes)):
            found = [blocks.place_of(entries.bound(), 1, each) for each in classes[:n]]
            assert len({*found}) == n
            assert entries.stored["owners"][found].tolist() == classes[:n]
            assert entries.stored["numbers"][found, 0].tolist() == [c + 0.5 for c in classes[:n]]
            absent = [blocks.place_of(entries.bound(), 1, each) for each in classes[n:]]
            assert {*absent} <= {blocks.NONE}


def test_features_of_few_and_of_many_classes_keep_their_entries():
    rng = np.random.default_rng(4)
    lengths = np.array([0, 1, 2, 3, 5, 767, 0, 768, 769, 960, 961, 4_000])
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    classes = [np.sort(rng.choice(10**6, size=n, replace=False)) for n in lengths]
    numbers = rng.normal(size=(starts[-1], 3)).astype(np.float32)
    entries = Entries(len(lengths), 3)
    entries.put(starts, np.concatenate(classes).astype(np.int32), numbers)
    found = entries.listed(len(lengths))
    np.testing.assert_array_equal(found[0], starts)
    np.testing.assert_array_equal(found[1], np.concatenate(classes))
    np.testing.assert_array_equal(found[2], numbers)
    assert entries.n_entries == len(numbers)
    n_used = int(entries.stored["pool"]["n_used"][0])
    assert len(numbers) <= n_used <= 5 / 3 * len(numbers) + len(lengths)


# ---- as the oracle says -------------------------------------------------------------------------


def follow(model: OnlineClassifier, rows: Any, X: Any, y: Any, weights: Any) -> Any:
    """Teach a model row by row beside the oracle; return the oracle, and how many were unclear.

    The oracle goes on from what the model has after rows that rounding decides, and after others
    once they were compared.
    """
    setting = model.candidates
    of_setting = setting.most, setting.beyond, setting.budget
    constant = 1.0 if model.intercept == "auto" else model.intercept
    if constant:
        X = np.hstack([np.full((len(X), 1), constant), X])
    oracle = ReferenceCandidates(X.shape[1], int(y.max()) + 1, *of_setting, constant)
    n_unclear = 0
    for t in range(len(y)):
        said = what_is_said(model, rows[t : t + 1]) if t else None
        expected = oracle.said(X[t])  # while no class comes that moves weights to entries
        trial = oracle.step(X[t], int(y[t]), weights[t])
        model.partial_fit(rows[t : t + 1], y[t : t + 1], sample_weight=weights[t : t + 1])
        if trial.is_clear:
            if said is not None:
                assert_said(said, expected)
            assert_as_learnt(model, oracle)
        n_unclear += not trial.is_clear
        oracle.mistakes = model.n_mistakes_
        oracle.take_over(model._learner)
    return oracle, n_unclear


def what_is_said(model: OnlineClassifier, row: Any) -> tuple[Any, Any, Any]:
    """Return the prediction, scores and probabilities of one row; two classes have one score."""
    scores = model.decision_function(row)
    return model.predict(row)[0], scores[0] if scores.ndim == 2 else None, model.predict_proba(row)


def assert_said(said: Any, trial: Any) -> None:
    predicted, scores, probabilities = said
    assert predicted == trial.scores.argmax()
    if scores is not None:
        np.testing.assert_allclose(scores, trial.scores, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(probabilities[0], trial.probabilities, atol=1e-4)


def assert_as_learnt(model: OnlineClassifier, oracle: ReferenceCandidates) -> None:
    """Require the same weights and evidence of entries and of all beside them, and counts."""
    stored = model._learner.arrays()
    weights, evidence, counts = oracle.of_learner(model._learner)
    assert model.n_mistakes_ == oracle.mistakes
    # Shares that are equal but for rounding errors move a weight in full if they are its first.
    is_noise = (evidence.shared > 0) & (evidence.shared < 1e-12)
    for found, expected in ((weights, oracle.w), (evidence, oracle.g)):
        assert_same_tables(found, expected, oracle, is_noise)
    held = oracle.calibration
    np.testing.assert_allclose(
        stored["calibration"].tolist(),
        [held.inverse, held.information, held.lapse, held.encoded],
        rtol=1e-3,
    )
    assert ("entries.starts" in stored) == oracle.is_sparse
    if not oracle.is_sparse:
        return
    np.testing.assert_array_equal(counts, oracle.counts)
    assert stored["entries.recall"].tolist() == [*oracle.recall, oracle.frequent]
    assert stored["entries.missing"][0] == pytest.approx(oracle.missing, abs=1e-12)
    recalled = model._learner.comparing.recall
    if oracle.recall[0]:
        assert recalled == pytest.approx(oracle.recall[1] / oracle.recall[0])
    table = model._learner.hypothesis_weights()[0]
    assert sparse.issparse(table)
    assert table.nnz <= (oracle.counts > 0).sum()
    own = np.where(oracle.counts > 0, oracle.w.own, 0)[: table.shape[0], : table.shape[1]]
    np.testing.assert_allclose(table.toarray(), own, rtol=1e-3, atol=1e-4)


def assert_same_tables(
    found: Tables, expected: Tables, oracle: ReferenceCandidates, is_noise: Any
) -> None:
    k = oracle.k
    is_entry = (oracle.counts > 0)[:, :k] | (not oracle.is_sparse)
    np.testing.assert_allclose(
        np.where(is_entry, found.own[:, :k], 0),
        np.where(is_entry, expected.own[:, :k], 0),
        rtol=1e-3,
        atol=1e-4,
    )
    np.testing.assert_allclose(found.virtual, expected.virtual, rtol=1e-3, atol=1e-4)
    is_met = (oracle.with_feature > 0) & ~is_noise  # of others a table may have no row
    np.testing.assert_allclose(
        np.where(is_met, found.shared, 0),
        np.where(is_met, expected.shared, 0),
        rtol=1e-3,
        atol=1e-4,
    )


@pytest.mark.parametrize("intercept", [0.0, 0.5])
@pytest.mark.parametrize("weighs", [False, True])
@pytest.mark.parametrize("setting", [*SETTINGS, (5, 9, 40), (64, 128, 2000)], ids=str)
def test_each_row_is_said_and_learnt_as_the_oracle_does(setting, weighs, intercept):
    stream, model = words(sum(setting) + weighs), learner(setting, intercept=intercept)
    weights = stream.weights if weighs else np.ones(len(stream))
    oracle, n_unclear = follow(model, stream.X, stream.X.toarray(), stream.y, weights)
    assert oracle.k > 12
    # Steps that do not overshoot leave a loss of 0, which rows of the intercept alone meet again.
    assert n_unclear < len(stream) / (2 if intercept else 10)
    if oracle.is_sparse:
        assert 0 < oracle.recall[1] < oracle.recall[0]


def test_long_rows_of_many_words_are_learnt_as_the_oracle_does():
    stream = words(5, n_rows=60, n_classes=12, n_words=400, longest=300)
    oracle, n_unclear = follow(
        learner((3, 4, 300)), stream.X, stream.X.toarray(), stream.y, stream.weights
    )
    assert oracle.is_sparse and n_unclear < 15


@pytest.mark.data
@pytest.mark.parametrize("name", ["banking77", "clinc150"])
def test_real_texts_are_learnt_as_the_oracle_does(name):
    texts, y = real_texts(name, 120)
    X = as_counts(texts)
    oracle, n_unclear = follow(learner((8, 16, 400)), sparse.csr_array(X), X, y, np.ones(len(y)))
    assert oracle.k > 50 and n_unclear < 15


def test_a_word_that_a_thousand_classes_have_is_learnt_as_the_oracle_does():
    rng = np.random.default_rng(8)
    n_rows = 1_020
    is_new = rng.random(n_rows) < 0.97
    n_known = np.maximum(1, np.cumsum(is_new))
    y = np.where(is_new, n_known - 1, rng.integers(0, n_known))
    X = np.zeros((n_rows, 7))
    X[:, 0] = 1.0  # the word of every class
    X[np.arange(n_rows), rng.integers(1, 7, size=n_rows)] = 1.0
    assert y.max() > 960  # its entries become a hash table, which grows once
    X = sparse.csr_array(X)
    oracle, n_unclear = follow(learner((6, 6, 3_000)), X, X.toarray(), y, np.ones(n_rows))
    assert oracle.is_sparse
    assert n_unclear < 0.1 * n_rows


def test_a_stream_without_doubts_is_learnt_as_the_oracle_does_alone():
    """No weight of the learner's is taken over: errors of rounding do not add up."""
    found = []
    for seed in range(8):
        stream, setting = words(seed, n_rows=80), (4, 6, 30)
        oracle = ReferenceCandidates(60, int(stream.y.max()) + 1, *setting)
        X = stream.X.toarray()
        trials = [oracle.step(x, int(y)) for x, y in zip(X, stream.y, strict=True)]
        n = next((t for t, trial in enumerate(trials) if not trial.is_clear), len(trials))
        oracle = ReferenceCandidates(60, int(stream.y.max()) + 1, *setting)
        for x, y in zip(X[:n], stream.y, strict=False):
            oracle.step(x, int(y))
        model = learner(setting, intercept=0.0).partial_fit(stream.X[:n], stream.y[:n])
        assert_as_learnt(model, oracle)
        found.append(oracle.is_sparse)
    assert sum(found) > 2


# ---- what changes nothing -----------------------------------------------------------------------

ANSWERS = ("predict", "predict_proba", "confidence", "predict_set", "decision_function")


def assert_same(one: OnlineClassifier, other: OnlineClassifier, probes: Any) -> None:
    """Require the same state and answers, bit for bit."""
    assert learnt(one) == learnt(other)
    assert one.n_mistakes_ == other.n_mistakes_
    assert_same_answers(one, other, probes)


def assert_same_answers(one: OnlineClassifier, other: OnlineClassifier, probes: Any) -> None:
    for name in ANSWERS:
        found, expected = (getattr(model, name)(probes) for model in (one, other))
        if isinstance(found, list):
            assert found == expected
        else:
            np.testing.assert_array_equal(found, expected, strict=True)


def taught(stream: Any, setting: Any = SETTINGS[1], **settings: Any) -> OnlineClassifier:
    return learner(setting, **settings).partial_fit(
        stream.X, stream.y, sample_weight=stream.weights
    )


@every_setting
def test_batches_and_single_rows_teach_the_same(setting):
    stream = words(sum(setting))
    whole, pieces, events = taught(stream, setting), learner(setting), learner(setting)
    for start, end in pairwise([0, 1, 4, 7, 50, 51, 160]):
        part = stream[start:end]
        pieces.partial_fit(part.X, part.y, sample_weight=part.weights)
    for t, (y, weight) in enumerate(zip(stream.y, stream.weights, strict=True)):
        events.partial_fit(stream.X[t : t + 1], [y], sample_weight=[weight])
    assert_same(whole, pieces, stream.X)
    assert_same(whole, events, stream.X)


@every_setting
def test_texts_and_words_are_learnt_in_any_batches(setting):
    texts, y = made_texts(8)
    whole, events, both = learner(setting).partial_fit(texts, y), learner(setting), learner(setting)
    predictions = [
        both.learn_predict_one(text, label) for text, label in zip(texts, y, strict=True)
    ]
    for text, label in zip(texts, y, strict=True):
        events.learn_one(text, label)
    for model in (events, both):
        assert_same(whole, model, texts)
    known = [t for t in range(len(y)) if y[t] in y[:t]]
    assert sum(predictions[t] != y[t] for t in known) == whole.n_mistakes_


def made_texts(seed: int, n_rows: int = 120) -> tuple[list[str], list[str]]:
    """Return texts of up to five words, also none, and labels that their words hint at."""
    rng = np.random.default_rng(seed)
    stream = words(seed, n_rows)
    texts = []
    for t in range(n_rows):
        row = stream.X[t : t + 1].tocoo()
        drawn = np.repeat(row.coords[1], row.data.astype(int))
        texts.append(" ".join(f"w{i}" for i in rng.permutation(drawn)))
    return texts, [f"class {r}" for r in stream.y]


def test_the_order_of_words_in_a_row_chooses_no_candidates():
    """Sums of another order differ in their last bits, and nothing else does."""
    stream = words(15, longest=12)
    rows = [{f"w{i}": float(row[i]) for i in np.flatnonzero(row)} for row in stream.X.toarray()]
    other = [dict(reversed(row.items())) for row in rows]
    numbered = [{f"w{i}": 1.0 for i in range(60)}]  # so that both number features alike
    found = []
    for given in (rows, other):
        model = learner((3, 5, 20), columns=None).partial_fit(numbered + given, [0, *stream.y])
        found.append(model.predict_proba(rows))
    np.testing.assert_allclose(*found, atol=1e-3)


@every_setting
def test_declared_classes_change_nothing(setting):
    stream = words(3)
    plain, declared = taught(stream, setting), learner(setting)
    labels = range(-3, int(stream.y.max()) + 40)
    declared.partial_fit(stream.X[:50], stream.y[:50], labels, stream.weights[:50])
    declared.partial_fit(stream.X[50:], stream.y[50:], sample_weight=stream.weights[50:])
    assert learnt(plain) == learnt(declared)
    columns = declared.classes_.tolist()
    seen = [columns.index(label) for label in plain.classes_]
    for name in ("decision_function", "predict_proba"):
        found = getattr(declared, name)(stream.X)
        np.testing.assert_array_equal(found[:, seen], getattr(plain, name)(stream.X))
    assert declared.predict(stream.X).tolist() == plain.predict(stream.X).tolist()
    assert declared.predict_set(stream.X) == plain.predict_set(stream.X)


@every_setting
@pytest.mark.parametrize("cut", [3, 80])
def test_saved_and_pickled_learners_go_on_as_if_never_stopped(setting, cut, tmp_path):
    stream = words(4)
    whole = taught(stream, setting)
    begun = taught(stream[:cut], setting)
    begun.save(tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(begun))):
        assert_same(again, begun, stream.X)
        rest = stream[cut:]
        again.partial_fit(rest.X, rest.y, sample_weight=rest.weights)
        assert_same(again, whole, stream.X)


def test_files_of_equal_learners_are_equal(tmp_path):
    stream = words(4)
    begun = taught(stream[:80])
    begun.save(tmp_path / "model")
    load(tmp_path / "model").save(tmp_path / "again")
    assert (tmp_path / "model").read_bytes() == (tmp_path / "again").read_bytes()


@every_setting
def test_labels_are_only_names(setting):
    stream = words(6)
    names = np.array([f"{(37 * r) % 101:03}" for r in range(stream.y.max() + 1)])
    plain, named = taught(stream, setting), learner(setting)
    named.partial_fit(stream.X, names[stream.y], sample_weight=stream.weights)
    found, expected = learnt(named), learnt(plain)
    changed = {name for name in found if found[name] != expected[name]}
    assert changed <= {"labels", "types"}
    assert named.predict(stream.X).tolist() == names[plain.predict(stream.X)].tolist()
    order = np.argsort(names[plain.classes_])
    np.testing.assert_array_equal(
        named.predict_proba(stream.X), plain.predict_proba(stream.X)[:, order]
    )


@pytest.mark.parametrize("intercept", ["auto", 0.0])
@pytest.mark.parametrize("more", [0, 1, 40])
def test_as_many_candidates_as_classes_are_all_classes(more, intercept):
    stream = words(7)
    n = int(stream.y.max()) + 1 + more
    found = [
        OnlineClassifier(candidates=choice, intercept=intercept).partial_fit(stream.X, stream.y)
        for choice in (None, n, Candidates(2, beyond=n), Candidates(n, beyond=n), "auto")
    ]
    for model in found[1:]:
        assert_same(model, found[0], stream.X)


@every_setting
def test_questions_change_nothing(setting):
    stream = words(9)
    model = taught(stream, setting)
    before = learnt(model)
    for name in (*ANSWERS, "predict_top"):
        getattr(model, name)(stream.X)
    model.predict_proba(stream.X, new=True), model.score(stream.X, stream.y)
    assert learnt(model) == before


def test_predictions_do_not_depend_on_the_rows_beside_them():
    stream = words(9)
    model = taught(stream)
    alone = np.vstack([model.predict_proba(stream.X[t : t + 1]) for t in range(len(stream))])
    np.testing.assert_array_equal(model.predict_proba(stream.X), alone)
    np.testing.assert_array_equal(model.predict_proba(stream.X[::-1]), alone[::-1])


def test_a_row_of_weight_zero_and_values_of_zero_are_not_there():
    stream = words(10)
    plain = taught(stream)
    weightless, with_zeros = learner(), learner()
    for t in range(len(stream)):
        row, y = stream.X[t : t + 1], stream.y[t : t + 1]
        given = sparse.csr_array(
            (np.append(row.data, 0.0), np.append(row.indices, 59), [0, row.nnz + 1]), row.shape
        )
        weight = stream.weights[t : t + 1]
        given = row if row.toarray()[0, 59] else given
        with_zeros.partial_fit(given, y, sample_weight=weight)
        weightless.partial_fit(row, y, sample_weight=weight)
        weightless.partial_fit(row, y, sample_weight=[0.0])
        weightless.partial_fit(row, [99], sample_weight=[0.0])
    assert_same(plain, with_zeros, stream.X)
    assert plain.predict(stream.X).tolist() == weightless.predict(stream.X).tolist()


@pytest.mark.parametrize(
    "settings",
    [
        {"preprocessing": None},
        {"preprocessing": "idf"},
        {"hypotheses": "multi"},
        {"uncertainty": False},
        {"intercept": 0.0},
    ],
    ids=str,
)
def test_other_settings_of_words_are_learnt_in_any_batches(settings, tmp_path):
    stream = words(11)
    whole, pieces = taught(stream, **settings), learner(**settings)
    for start, end in pairwise([0, 5, 6, 90, 160]):
        part = stream[start:end]
        pieces.partial_fit(part.X, part.y, sample_weight=part.weights)
        pieces.save(tmp_path / "model")
        pieces = load(tmp_path / "model")
    assert learnt(whole) == learnt(pieces)
    np.testing.assert_array_equal(whole.predict_proba(stream.X), pieces.predict_proba(stream.X))


# ---- what holds of any stream -------------------------------------------------------------------


def streams_that_grow() -> Iterator[tuple[list[dict[str, float]], list[int]]]:
    """Yield rows that were too much for a buffer once: long ones, of one word, of none, of new."""
    rng = np.random.default_rng(2)
    labels = rng.integers(40, size=60).tolist()
    yield [{f"w{i}": 1.0 for i in rng.integers(9000, size=3000)} for _ in labels], labels
    yield [{f"w{r}": 1.0} for r in labels], labels
    yield [{} for _ in labels], labels
    yield [{f"row {t} {i}": 1.0 for i in range(t)} for t in range(60)], labels
    yield [{f"w{i}": 1.0 for i in range(1 if t % 9 else 3000)} for t in range(60)], [*range(60)]


@every_setting
def test_learners_grow(setting, tmp_path):
    for rows, labels in streams_that_grow():
        model, events = learner(setting, columns=None), learner(setting, columns=None)
        model.partial_fit(rows, labels)
        for row, label in zip(rows, labels, strict=True):
            events.learn_one(row, label)
        assert learnt(events) == learnt(model)
        probes = [*rows[::20], {}, {"unseen": 2.0}, {f"unseen {i}": 1.0 for i in range(3000)}]
        assert_sums_to_one(model, probes)
        model.save(tmp_path / "model")
        assert_same(load(tmp_path / "model"), model, probes)


def assert_sums_to_one(model: OnlineClassifier, probes: Any) -> None:
    """Require probabilities, whose sums are 1, with a new class and without."""
    for new in (False, True):
        found = model.predict_proba(probes, new=new)
        assert found.shape[1] == len(model.classes_) + new
        assert ((found >= 0) & (found <= 1)).all()
        np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
    known, with_new = model.predict_proba(probes), model.predict_proba(probes, new=True)
    np.testing.assert_allclose(with_new[:, :-1], known * (1 - with_new[:, -1:]), atol=1e-12)


@every_setting
def test_answers_agree_with_one_another(setting):
    stream = words(12)
    model = taught(stream, setting)
    assert_sums_to_one(model, stream.X)
    scores, proba = model.decision_function(stream.X), model.predict_proba(stream.X)
    predicted = model.predict(stream.X)
    assert np.isfinite(scores).all()
    for t, answers in enumerate(model.predict_top(stream.X, 5)):
        assert answers[0].label == predicted[t]
        assert len({answer.label for answer in answers}) == 5
        columns = [model.classes_.tolist().index(answer.label) for answer in answers]
        assert [answer.probability for answer in answers] == proba[t, columns].tolist()
        assert [answer.score for answer in answers] == scores[t, columns].tolist()
        assert scores[t, columns].tolist() == sorted(scores[t], reverse=True)[:5]
    largest = proba.max(axis=1)
    np.testing.assert_array_equal(proba[np.arange(len(predicted)), predicted], largest)
    n_rest = (scores == scores.min(axis=1, keepdims=True)).sum(axis=1)
    assert (n_rest >= scores.shape[1] - setting[0]).all()


def test_one_row_is_said_as_all_are():
    texts, y = made_texts(8)
    model = learner().partial_fit(texts, y)
    found = [model.predict_proba_one(text) for text in texts[:20]]
    expected = model.predict_proba(texts[:20])
    for one, row in zip(found, expected, strict=True):
        assert [one[label] for label in model.classes_] == row.tolist()
    assert [model.predict_one(text) for text in texts] == model.predict(texts).tolist()
    assert [model.confidence_one(text) for text in texts] == model.confidence(texts).tolist()


def test_rows_of_unseen_words_are_of_the_class_of_most_rows():
    """No feature gives points: only the first class that reached the largest number is left."""
    model = learner((2, 2, 100), columns=None)
    model.partial_fit([{f"w{i}": 1.0} for i in range(7)], [*"abcddcb"])
    assert model.predict([{"new": 1.0}, {}]).tolist() == ["d", "d"]
    model.learn_one({"w9": 1.0}, "c").learn_one({"w9": 1.0}, "b").learn_one({"w8": 1.0}, "a")
    assert model.predict([{"new": 1.0}, {}]).tolist() == ["c", "c"]


def test_one_thread_predicts_while_another_learns():
    stream = words(13, n_rows=400, n_classes=60)
    expected, model, failures = taught(stream), taught(stream[:30]), []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            try:
                proba = model.predict_proba(stream.X[:40])
                np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-9)
                model.predict(stream.X[:40])
            except Exception as error:
                failures.append(error)
                return

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for start in range(30, 400, 5):
            part = stream[start : start + 5]
            model.partial_fit(part.X, part.y, sample_weight=part.weights)
    finally:
        done.set()
        asking.join()
    assert not failures
    assert_same(model, expected, stream.X)


def test_threads_that_ask_at_once_are_answered_as_one_is():
    stream = words(13, n_rows=400, n_classes=60)
    model = taught(stream)
    expected = model.predict_proba(stream.X)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(model.predict_proba, [stream.X] * 40):
            np.testing.assert_array_equal(found, expected)


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, 1, -3, 2**20 + 1, "x", True, 2.5, [64]], ids=repr)
def test_other_numbers_of_candidates_are_refused(value):
    with pytest.raises(KeslerError, match="candidates="):
        OnlineClassifier(candidates=value).fit(["a", "b"], ["x", "y"])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"most": 1}, "most"),
        ({"most": 2.0}, "most"),
        ({"most": 8, "beyond": 7}, "beyond"),
        ({"beyond": True}, "beyond"),
        ({"budget": 0}, "budget"),
        ({"budget": None}, "budget"),
    ],
    ids=str,
)
def test_other_candidates_are_refused(arguments, named):
    with pytest.raises(KeslerError, match=rf"Candidates\({named}="):
        Candidates(**arguments)


@pytest.mark.parametrize("settings", [{"update": "pa1"}, {"on_new_class": "learn"}], ids=str)
def test_learners_that_compare_all_classes_refuse_candidates(settings):
    with pytest.raises(KeslerError, match="candidates=64 has no effect"):
        OnlineClassifier(candidates=64, **settings).fit(["a b", "c"], ["x", "y"])


def test_measurements_refuse_candidates():
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(KeslerError, match="candidates=64 has no effect"):
        OnlineClassifier(candidates=64).fit(X, [0, 1] * 10)
    OnlineClassifier(candidates=None).fit(X, [0, 1] * 10)


# ---- files --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory: Any) -> Any:
    """Return the arrays and metadata of a learner with entries."""
    path = tmp_path_factory.mktemp("candidates") / "model"
    taught(FILED).save(path)
    return model_file.load(path)


FILED = words(14, n_rows=100)


def with_value(array: Any, at: Any, value: Any) -> Any:
    array = array.copy()
    array[at] = value
    return array


DAMAGED: dict[str, Any] = {
    "starts of float64": lambda a: {"starts": a["starts"].astype(float)},
    "starts of int32": lambda a: {"starts": a["starts"].astype(np.int32)},
    "starts of two axes": lambda a: {"starts": a["starts"].reshape(1, -1)},
    "no starts": lambda a: {"starts": None},
    "empty starts": lambda a: {"starts": a["starts"][:0]},
    "too few starts": lambda a: {"starts": a["starts"][:-1]},
    "starts from 1": lambda a: {"starts": with_value(a["starts"], 0, 1)},
    "starts that end early": lambda a: {"starts": with_value(a["starts"], -1, 3)},
    "starts beyond": lambda a: {"starts": with_value(a["starts"], -1, a["starts"][-1] + 1)},
    "starts that fall": lambda a: {"starts": with_value(a["starts"], 2, a["starts"][-1])},
    "negative starts": lambda a: {"starts": with_value(a["starts"], 1, -1)},
    "huge starts": lambda a: {"starts": with_value(a["starts"], 1, 2**62)},
    "classes of int64": lambda a: {"classes": a["classes"].astype(np.int64)},
    "too few classes": lambda a: {"classes": a["classes"][:-1]},
    "negative classes": lambda a: {"classes": with_value(a["classes"], 0, -1)},
    "classes beyond": lambda a: {"classes": with_value(a["classes"], 0, 10**6)},
    "the virtual class": lambda a: {"classes": with_value(a["classes"], 0, FILED.y.max() + 1)},
    "one class twice": lambda a: {"classes": np.zeros_like(a["classes"])},
    "classes that fall": lambda a: {"classes": a["classes"][::-1].copy()},
    "numbers of float64": lambda a: {"numbers": a["numbers"].astype(float)},
    "two numbers": lambda a: {"numbers": a["numbers"][:, :2]},
    "four numbers": lambda a: {"numbers": np.hstack([a["numbers"], a["numbers"][:, :1]])},
    "too few numbers": lambda a: {"numbers": a["numbers"][:-1]},
    "weights of NaN": lambda a: {"numbers": with_value(a["numbers"], (0, 0), np.nan)},
    "infinite weights": lambda a: {"numbers": with_value(a["numbers"], (0, 0), np.inf)},
    "negative evidence": lambda a: {"numbers": with_value(a["numbers"], (0, 1), -1)},
    "evidence of NaN": lambda a: {"numbers": with_value(a["numbers"], (0, 1), np.nan)},
    "negative counts": lambda a: {"numbers": with_value(a["numbers"], (0, 2), -1)},
    "counts of zero": lambda a: {"numbers": with_value(a["numbers"], (slice(None), 2), 0)},
    "a count of zero": lambda a: {"numbers": with_value(a["numbers"], (0, 2), 0)},
    "counts of NaN": lambda a: {"numbers": with_value(a["numbers"], (0, 2), np.nan)},
    "infinite counts": lambda a: {"numbers": with_value(a["numbers"], (0, 2), np.inf)},
    "more found than rows": lambda a: {"recall": with_value(a["recall"], 1, 10**6)},
    "negative rows": lambda a: {"recall": with_value(a["recall"], 0, -1)},
    "frequent beyond": lambda a: {"recall": with_value(a["recall"], 2, 10**6)},
    "frequent far beyond": lambda a: {"recall": with_value(a["recall"], 2, 2**61)},
    "frequent just beyond": lambda a: {"recall": with_value(a["recall"], 2, FILED.y.max() + 1)},
    "negative frequent": lambda a: {"recall": with_value(a["recall"], 2, -1)},
    "recall of float64": lambda a: {"recall": a["recall"].astype(float)},
    "two of recall": lambda a: {"recall": a["recall"][:2]},
    "missing above 1": lambda a: {"missing": np.array([1.5])},
    "negative missing": lambda a: {"missing": np.array([-0.5])},
    "missing of NaN": lambda a: {"missing": np.array([np.nan])},
    "two of missing": lambda a: {"missing": np.array([0.1, 0.1])},
    "nothing": lambda a: dict.fromkeys(a),
}
"""What was done to the arrays of entries, by their names without the first word."""


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_damaged_files_are_refused(damage, saved, tmp_path):
    arrays, metadata = saved
    own = {n.removeprefix("entries."): a for n, a in arrays.items() if n.startswith("entries.")}
    changed = arrays | {f"entries.{name}": array for name, array in damage(own).items()}
    changed = {name: array for name, array in changed.items() if array is not None}
    model_file.save(tmp_path / "damaged", changed, metadata)
    with pytest.raises(KeslerError, match="damaged"):
        load(tmp_path / "damaged")
