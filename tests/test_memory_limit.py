"""Limits on memory: which features remain, and what does not depend on how rows come."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from commands import kesler, write_jsonl, write_svmlight
from kesler import (
    CostSensitiveClassifier,
    Ensemble,
    KeslerError,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
    load,
)
from kesler.data import model_file
from kesler.data.rows import Rows, Vocabulary
from kesler.distributed.parameter_mixing import mixable
from kesler.durable import Journal
from kesler.learner.entries import Entries
from kesler.learner.memory import Memory, resolve_memory_limit
from kesler.online.blocks import learn_rows

EVERY = 256


def words(seed: int, n_rows: int, n_classes: int = 6) -> tuple[list[list[str]], list[str]]:
    """Rows of Zipf's words, some of their class, and of words that never come again."""
    rng = np.random.default_rng(seed)
    rows, labels = [], []
    for t in range(n_rows):
        c = min(int(rng.zipf(1.5)) - 1, n_classes - 1)
        own = [f"class{c}of{i}" for i in rng.integers(8, size=2)]
        common = [f"w{i}" for i in rng.zipf(1.3, size=7)]
        rows.append([*dict.fromkeys([*own, *common, f"row{t}", f"once{t}"])])
        labels.append(f"c{c}")
    return rows, labels


def as_mappings(rows: list[list[str]]) -> list[dict[str, float]]:
    return [dict.fromkeys(row, 1.0) for row in rows]


def as_texts(rows: list[list[str]]) -> list[str]:
    return [" ".join(row) for row in rows]


def as_tables(rows: list[list[str]]) -> list[dict[str, Any]]:
    return [{"text": " ".join(row), "first": row[0], "n": len(row)} for row in rows]


# ---- as the policy says -------------------------------------------------------------------------

OF_FEATURES = {
    *("weights.values", "weights.listed", "weights.is_listed", "preconditioner.evidence"),
    *("statistics.sums", "statistics.pooled", "preprocessing.statistics"),
}


class Reference:
    """The names that remain, in plain Python; it asks the model for its weights only."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.counts: dict[str, float] = {}
        self.n_dropped = 0

    def before(self, t: int, model: Any) -> None:
        """Drop names before row t, if it is row 256, 512, ... and they take too much."""
        if t == 0 or t % EVERY:
            return
        learner, names = model._learner, [*self.counts]
        numbers = learner.stored["preprocessing.statistics"].shape[1]
        # Weights, their evidence and counts for 16 classes, and what else there is of a feature.
        each = 3 * 4 * 16 + 8 + 8 * numbers + 8 + 1 + 160 + 8
        fixed = sum(a.nbytes for n, a in learner.stored.items() if n not in OF_FEATURES)
        fixed += 400 * learner.n_known
        sizes = {name: each + len(name.encode()) for name in names}
        if fixed + sum(sizes.values()) + min(512 * len(names), 2**25) <= self.limit:
            return
        # The first feature is that of the intercept.
        table = learner.hypothesis_weights()[learner._of_classes][1:, : learner.n_known]
        worth = {n: self.counts[n] * abs(table[i]).max() for i, n in enumerate(names)}
        best = sorted(range(len(names)), key=lambda i: (worth[names[i]], i), reverse=True)
        held, kept = float(fixed), set[str]()
        for i in best:
            held += sizes[names[i]]
            if held + min(512 * (len(kept) + 1), 2**25) > 0.75 * self.limit:
                break
            kept.add(names[i])
        self.n_dropped += len(names) - len(kept)
        self.counts = {name: self.counts[name] * 0.9 for name in names if name in kept}

    def learn(self, row: list[str]) -> None:
        for name in row:
            self.counts[name] = self.counts.get(name, 0.0) + 1


@pytest.mark.parametrize("limit", [900_000, 2_000_000])
def test_the_features_that_remain_are_those_of_most_worth(limit):
    rows, labels = words(1, 1600)
    model, reference = OnlineClassifier(memory_limit=limit), Reference(limit)
    for t, (row, label) in enumerate(zip(rows, labels, strict=True)):
        reference.before(t, model)
        model = model.partial_fit(as_mappings([row]), [label])
        reference.learn(row)
        if t % EVERY < 2:
            assert model.vocabulary_.names == [*reference.counts]
            counts = model._learner.memory.stored["counts"][: len(reference.counts)]
            np.testing.assert_array_equal(counts, [*reference.counts.values()])
    assert model.n_dropped_ == reference.n_dropped > 1000


def test_a_dropped_word_is_a_new_word():
    rows, labels = words(2, 700)
    model = OnlineClassifier(memory_limit=600_000).partial_fit(as_mappings(rows), labels)
    dropped = next(name for row in rows for name in row if name not in model.vocabulary_)
    n = len(model.vocabulary_)
    model = model.learn_one({dropped: 1.0}, "c0")
    assert model.vocabulary_.indices[dropped] == n


@pytest.mark.parametrize("places", [1, 1 << 20])
def test_entries_that_are_kept_are_those_of_their_features(places, monkeypatch):
    monkeypatch.setattr("kesler.learner.entries.PLACES_AT_ONCE", places)
    rng = np.random.default_rng(3)
    lengths = rng.integers(0, 12, size=50) * rng.integers(0, 2, size=50)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    classes = np.concatenate([np.sort(rng.permutation(40)[:n]) for n in lengths]).astype(np.int32)
    numbers = rng.normal(size=(len(classes), 3)).astype(np.float32)
    entries = Entries(50, 3)
    entries.put(starts, classes, numbers)
    table = np.zeros((50, 40))
    table[np.repeat(np.arange(50), lengths), classes] = numbers[:, 0]
    np.testing.assert_array_equal(entries.largest(50), abs(table).max(axis=1))
    kept = np.flatnonzero(rng.random(50) < 0.5)
    n_used = int(entries.stored["pool"]["n_used"][0])
    entries.keep(kept, 50)
    of_kept = [slice(starts[i], starts[i + 1]) for i in kept]
    found = entries.listed(len(kept))
    np.testing.assert_array_equal(np.diff(found[0]), lengths[kept])
    np.testing.assert_array_equal(found[1], np.concatenate([classes[some] for some in of_kept]))
    np.testing.assert_array_equal(found[2], np.concatenate([numbers[some] for some in of_kept]))
    assert not entries.stored["lengths"][len(kept) :].any()
    in_use = int(entries.stored["pool"]["n_used"][0])
    assert entries.bytes_of_place * in_use == entries.block_bytes.sum() < 16 * n_used


# ---- laws ---------------------------------------------------------------------------------------


def sets_of(labels: list[str]) -> list[list[str]]:
    return [[label, "all"] if i % 3 else [label] for i, label in enumerate(labels)]


def ranked(labels: list[str]) -> list[list[str]]:
    return [[label, *sorted(set(labels) - {label})] for label in labels]


def costs_of(labels: list[str]) -> list[dict[str, float]]:
    return [{each: float(each != label) for each in set(labels)} for label in labels]


FEEDS: dict[str, tuple[Any, Callable[..., Any], Callable[..., Any], int, str]] = {
    "texts": (OnlineClassifier, as_texts, list, 6, "700 kB"),
    "mappings": (OnlineClassifier, as_mappings, list, 6, "700 kB"),
    "tables": (OnlineClassifier, as_tables, list, 6, "700 kB"),
    "more classes": (OnlineClassifier, as_texts, list, 100, "1.5 MB"),
    "candidates": (OnlineClassifier, as_texts, list, 300, "2.5 MB"),
    "pa1": (lambda **own: OnlineClassifier(update="pa1", **own), as_mappings, list, 6, "700 kB"),
    "averaged": (
        lambda **own: OnlineClassifier("multi", update="hinge", averaged=True, **own),
        *(as_mappings, list, 6, "900 kB"),
    ),
    "half-life": (
        lambda **own: OnlineClassifier(half_life=300, **own),
        *(as_mappings, list, 6, "700 kB"),
    ),
    "moments": (
        lambda **own: OnlineClassifier(feature_map="product-mean", update="pa1", **own),
        *(as_mappings, list, 6, "900 kB"),
    ),
    "multilabel": (OnlineMultilabelClassifier, as_texts, sets_of, 6, "700 kB"),
    "ordinal": (OnlineOrdinalClassifier, as_mappings, list, 6, "700 kB"),
    "ranking": (OnlineLabelRanker, as_mappings, ranked, 6, "700 kB"),
    "costs": (CostSensitiveClassifier, as_mappings, costs_of, 6, "700 kB"),
}
every_feed = pytest.mark.parametrize("feed", FEEDS)
N_ROWS = 900


def given(feed: str) -> tuple[Any, Any, Any]:
    """Return a new model, and the rows and targets of a feed."""
    make, form, targets, n_classes, limit = FEEDS[feed]
    rows, labels = words(4, N_ROWS, n_classes)
    if n_classes > 20:
        rng = np.random.default_rng(5)
        labels = [f"c{int(c)}" for c in n_classes * rng.random(N_ROWS) ** 2]
    return make(memory_limit=limit), form(rows), targets(labels)


def state(model: Any, tmp_path: Any) -> bytes:
    """Return the model file without the settings as given."""
    model.save(tmp_path / "state")
    return bytes((tmp_path / "state").read_bytes())


def in_steps(model: Any, X: Any, y: Any, step: int, first: int = 0, last: int = N_ROWS) -> Any:
    for start in range(first, last, step):
        model.partial_fit(X[start : min(last, start + step)], y[start : min(last, start + step)])
    return model


@every_feed
def test_the_model_does_not_depend_on_how_rows_are_split(feed, tmp_path):
    model, X, y = given(feed)
    expected = state(model.partial_fit(X, y), tmp_path)
    assert model.n_dropped_ > 0
    for step in (1, 100, 257):
        assert state(in_steps(given(feed)[0], X, y, step), tmp_path) == expected, step


@every_feed
def test_single_rows_are_learnt_as_batches_are(feed, tmp_path):
    model, X, y = given(feed)
    expected = state(model.partial_fit(X, y), tmp_path)
    single = given(feed)[0]
    for row, target in zip(X, y, strict=True):
        single = single.learn_one(row, target)
    assert state(single, tmp_path) == expected


@every_feed
def test_loaded_and_copied_models_go_on_as_before(feed, tmp_path):
    model, X, y = given(feed)
    in_steps(model, X, y, 100, last=600).save(tmp_path / "model")
    others = [load(tmp_path / "model"), pickle.loads(pickle.dumps(model))]
    expected = state(in_steps(model, X, y, 100, first=600), tmp_path)
    for other in others:
        assert state(in_steps(other, X, y, 77, first=600), tmp_path) == expected


def test_long_calls_are_read_in_parts(tmp_path, monkeypatch):
    model, X, y = given("texts")
    expected = state(model.partial_fit(X, y), tmp_path)
    monkeypatch.setattr("kesler.online.training.BLOCK_ROWS", 110)
    assert state(given("texts")[0].partial_fit(X, y), tmp_path) == expected
    for weights in (np.arange(N_ROWS) % 3, np.r_[np.zeros(500), np.ones(N_ROWS - 500)]):
        of_weights = given("mappings")[0], given("mappings")[1], weights
        alone = of_weights[0].partial_fit(of_weights[1], y, sample_weight=weights)
        learnt = np.flatnonzero(weights)
        some = given("mappings")[0].partial_fit(
            [of_weights[1][i] for i in learnt],
            [y[i] for i in learnt],
            sample_weight=weights[learnt],
        )
        assert state(alone, tmp_path) == state(some, tmp_path)


@pytest.mark.parametrize("feed", ["texts", "mappings"])
def test_a_long_call_holds_no_names_of_parts_that_are_still_to_be_read(feed, monkeypatch):
    monkeypatch.setattr("kesler.online.training.BLOCK_ROWS", 110)
    model, X, y = given(feed)
    learn, n_learnt = OnlineClassifier._learn, 0

    def watched(self, rows, *others, **keep):
        nonlocal n_learnt
        assert not any(f"row{t}" in self.vocabulary_ for t in range(n_learnt + 110, N_ROWS))
        n_learnt += len(rows)
        return learn(self, rows, *others, **keep)

    monkeypatch.setattr(OnlineClassifier, "_learn", watched)
    model.partial_fit(X, y)
    assert n_learnt == N_ROWS and f"row{N_ROWS - 1}" in model.vocabulary_


def test_a_refused_row_leaves_a_long_call_unlearnt(tmp_path, monkeypatch):
    monkeypatch.setattr("kesler.online.training.BLOCK_ROWS", 110)
    model, X, y = given("mappings")
    before = state(in_steps(model, X, y, 100, last=400), tmp_path)
    with pytest.raises(KeslerError, match="finite"):
        model.partial_fit([*X[400:800], {"odd": float("nan")}], y[400:801])
    assert state(model, tmp_path) == before


def test_rows_in_hand_are_numbered_again(tmp_path):
    """Blocks of a file are numbered before others that change the numbers have been learnt."""
    model, X, y = given("mappings")
    expected = state(model.partial_fit(X, y), tmp_path)
    names, model = Vocabulary(), given("mappings")[0]
    model.name_features(names)
    rows = names.rows_learnt(X)
    for start in range(0, N_ROWS, 150):
        learn_rows(model, rows[start : start + 150], y[start : start + 150])
    assert state(model, tmp_path) == expected


def test_names_of_rows_that_are_not_learnt_are_left_out(tmp_path):
    """Rows that a resumed run skips have been numbered too."""
    model, X, y = given("mappings")
    expected = state(model.partial_fit(X[:700], y[:700]), tmp_path)
    given("mappings")[0].partial_fit(X[:600], y[:600]).save(tmp_path / "model")
    model = load(tmp_path / "model")
    names = model.vocabulary_
    names.rows_learnt(X[:600])
    learn_rows(model, names.rows_learnt(X[600:700]), y[600:700])
    assert state(model, tmp_path) == expected


def test_without_a_limit_a_large_one_changes_nothing(tmp_path):
    _, X, y = given("texts")
    model, other = OnlineClassifier(), OnlineClassifier(memory_limit="1 GB")
    found = [each.partial_fit(X, y)._learner.arrays() for each in (model, other)]
    assert other.n_dropped_ == 0
    for name, array in found[0].items():
        np.testing.assert_array_equal(array, found[1][name])


# ---- memory -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [6, 300])
def test_arrays_and_names_stay_within_the_limit(n_classes):
    limit, sizes = 8_000_000, []
    model = OnlineClassifier(memory_limit=limit)
    for seed in range(40):
        rows, _ = words(seed, EVERY)
        labels = [f"c{(7 * seed + t) % n_classes}" for t in range(EVERY)]
        model.partial_fit([{f"{word}s{seed}": 1.0 for word in row} for row in rows], labels)
        learner, names = model._learner, model.vocabulary_
        assert len(names) == learner.n_named_features
        held = Memory(limit).measured(learner, names, learner.n_known)
        assert held <= 1.4 * limit  # with the words of the last 256 rows
        entries = {} if learner.comparing is None else learner.comparing.entries.stored
        arrays = [*learner.stored.values(), *learner.memory.stored.values(), *entries.values()]
        sizes.append(sum(array.nbytes for array in arrays))
    assert model.n_dropped_ > 20_000
    assert sizes[-1] == sizes[19]


# ---- files and journals -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("memory.counts", lambda counts: counts[:-1]),
        ("memory.counts", lambda counts: -1 - counts),
        ("memory.counts", lambda counts: counts * np.nan),
        ("memory.counts", lambda counts: counts.astype(np.float32)),
        ("memory.counts", lambda counts: counts + 1e300),
        ("memory.counts", None),
        ("memory.dropped", lambda dropped: -1 - dropped),
        ("memory.dropped", None),
    ],
)
def test_damaged_files_are_refused(name, damage, tmp_path):
    model, X, y = given("mappings")
    model.partial_fit(X, y).save(tmp_path / "model")
    arrays, metadata = model_file.load(tmp_path / "model")
    if damage is None:
        del arrays[name]
    else:
        arrays[name] = damage(arrays[name])
    model_file.save(tmp_path / "other", arrays, metadata)
    with pytest.raises(KeslerError, match=r"memory\.(counts|dropped)"):
        load(tmp_path / "other")


@pytest.mark.parametrize("cut", [slice(0, -1), slice(0, 0)])
def test_files_with_too_few_names_are_refused(cut, tmp_path):
    model, X, y = given("mappings")
    model.partial_fit(X, y).save(tmp_path / "model")
    arrays, metadata = model_file.load(tmp_path / "model")
    metadata["names"] = metadata["names"][cut] or None
    model_file.save(tmp_path / "other", arrays, metadata)
    with pytest.raises(KeslerError, match="names are"):
        load(tmp_path / "other")


def test_journals_replay_what_was_dropped(tmp_path):
    _, X, y = given("mappings")
    with Journal(tmp_path / "journal.db") as journal:
        desk = journal.open("desk", OnlineClassifier(memory_limit="700 kB"))
        rows = [(x, label, f"r{i}", None) for i, (x, label) in enumerate(zip(X, y, strict=True))]
        desk.learn_many(rows)
        assert desk.n_trials_ == N_ROWS
        for i in (700, 300, 5):
            desk.undo(f"r{i}")
            desk.learn_one({"more": 1.0, f"other{i}": 1.0}, "c0", id=f"s{i}")
            assert desk._replica.differences() == []
        desk.relabel("r100", "c1")
        assert desk._replica.differences() == []
        assert desk._replica.learner.n_dropped_ > 0


def test_the_command_line_learns_and_shows_the_same(tmp_path, capsys):
    rows, labels = words(6, 600)
    path = write_jsonl(tmp_path / "rows.jsonl", list(zip(labels, rows, strict=True)))
    for name, options in {"whole": (), "pieces": ("--checkpoint", 130)}.items():
        limit = ("--memory-limit", "500kB", "--text", "text", *options)
        done = kesler(capsys, "learn", tmp_path / name, path, *limit)
        assert done.code == 0, done.err
    whole, pieces = (load(tmp_path / name) for name in ("whole", "pieces"))
    assert whole.n_dropped_ == pieces.n_dropped_ > 0
    for name, array in whole._learner.arrays().items():
        np.testing.assert_array_equal(array, pieces._learner.arrays()[name])
    assert whole.vocabulary_ == pieces.vocabulary_
    lines = kesler(capsys, "show", tmp_path / "whole").lines
    shown = {line[:20].strip(): line[20:] for line in lines}
    assert shown["memory limit"] == "500,000 bytes"
    assert shown["dropped"] == f"{whole.n_dropped_:,}"


# What the command line says of a model without a limit, whose memory grows with new names.
ADVICE = "--memory-limit 500MB"


def learnt_while_large(capsys, monkeypatch, path, *options):
    """What `kesler learn` says on standard error if a large model is one of 100,000 bytes."""
    from kesler.cli import learn

    monkeypatch.setattr(learn, "LARGE", 100_000)
    done = kesler(capsys, "learn", path.parent / "model", path, "--checkpoint", 200, *options)
    assert done.code == 0, done.err
    return done.err


def test_large_models_are_told_of_the_limit_once(tmp_path, capsys, monkeypatch):
    rows, labels = words(6, 1_000)
    path = write_jsonl(tmp_path / "rows.jsonl", list(zip(labels, rows, strict=True)))
    said = learnt_while_large(capsys, monkeypatch, path)
    assert said.count(ADVICE) == 1
    model = load(tmp_path / "model")
    n_rows, n_features = (int(n.replace(",", "")) for n in re.findall(r"[\d,]{3,}", said)[:2])
    assert n_rows < model.n_trials_
    assert 100 < n_features < len(model.vocabulary_)


@pytest.mark.parametrize(
    "options", [("--memory-limit", "1MB"), ("--kernel", "rbf", "--update", "pa1")]
)
def test_others_are_not_told_of_it(options, tmp_path, capsys, monkeypatch):
    rows, labels = words(6, 400)
    path = write_jsonl(tmp_path / "rows.jsonl", list(zip(labels, rows, strict=True)))
    assert ADVICE not in learnt_while_large(capsys, monkeypatch, path, *options)


def test_rows_of_an_array_are_not_told_of_it(tmp_path, capsys, monkeypatch):
    path = write_svmlight(tmp_path / "rows.svm", 400)
    assert ADVICE not in learnt_while_large(capsys, monkeypatch, path)


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("limit", ["", "many", "200 XB", 0, -5, "0 MB", True, [1], float("nan")])
def test_limits_are_bytes(limit):
    with pytest.raises(KeslerError, match="memory_limit="):
        resolve_memory_limit(limit)


def test_units():
    assert resolve_memory_limit("200 MB") == resolve_memory_limit("200mb") == 200_000_000
    assert resolve_memory_limit("2KiB") == 2048
    assert resolve_memory_limit(np.int64(300)) == resolve_memory_limit("300") == 300


ROWS_BY_POSITION = {
    "array": np.eye(4),
    "matrix": sparse.csr_array(np.eye(4)),
    "rows": Rows.from_sparse(sparse.csr_array(np.eye(4))),
}


@pytest.mark.parametrize("rows", ROWS_BY_POSITION)
def test_rows_without_names_are_refused(rows):
    model = OnlineClassifier(memory_limit="200 MB")
    with pytest.raises(KeslerError, match="memory_limit='200 MB'"):
        model.partial_fit(ROWS_BY_POSITION[rows], list("abab"))
    assert not model.__sklearn_is_fitted__()


@pytest.mark.parametrize(
    "settings",
    [{"kernel": "rbf"}, {"link": "exponential"}, {"update": "ensemble"},
     {"update": [OnlineClassifier(update="pa1"), OnlineClassifier(update="pa")]},
     {"preconditioner": "second-order", "hypotheses": "multi", "update": "least-squares"},
     {"replay": 1}],
    ids=lambda each: next(iter(each)),
)  # fmt: skip
def test_learners_that_cannot_drop_features_refuse(settings):
    model = OnlineClassifier(memory_limit="200 MB", **settings)
    with pytest.raises(KeslerError, match="memory_limit="):
        model.partial_fit([{"a": 1.0}, {"b": 1.0}], ["x", "y"])


def test_members_with_a_limit_are_refused():
    with pytest.raises(KeslerError, match="memory_limit='1 MB' does not fit an ensemble"):
        Ensemble([OnlineClassifier(memory_limit="1 MB", update="pa1")]).learn_one({"a": 1.0}, "x")


def test_shards_with_a_limit_are_refused():
    with pytest.raises(KeslerError, match="memory_limit='1 MB': shards"):
        mixable(OnlineClassifier(memory_limit="1 MB"), dense=False)


def test_a_limit_that_is_too_small_names_the_least(tmp_path):
    model, X, y = given("mappings")
    model.set_params(memory_limit="50 kB").partial_fit(X[:EVERY], y[:EVERY])
    before = state(model, tmp_path)
    with pytest.raises(
        KeslerError, match=r"memory_limit=50,000 bytes is too small for 6 "
    ) as error:
        model.partial_fit(X[EVERY:], y[EVERY:])
    assert state(model, tmp_path) == before
    least = int(str(error.value).split("at least ")[1].split(" ")[0].replace(",", ""))
    other = given("mappings")[0].set_params(memory_limit=least).partial_fit(X[:300], y[:300])
    assert other.n_dropped_ > 0
    with pytest.raises(KeslerError, match="too small"):
        given("mappings")[0].set_params(memory_limit=least - 1).partial_fit(X[:300], y[:300])
