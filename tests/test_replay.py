"""Replay: the reservoir and its order against NumPy, laws of learners that replay, and epochs."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from kesler import (
    Ensemble,
    KeslerError,
    OnlineClassifier,
    load,
    mistake_bound,
    progressive_validate,
    update_rule,
)
from kesler.data import model_file
from kesler.data.rows import Rows
from kesler.datasets import load as load_data
from kesler.distributed.mixing import require_mixable
from kesler.learner import state
from kesler.online.defaults import of_measurements
from kesler.preprocessing import Bins, RandomFourier, Replay
from streams import (
    assert_labels_are_only_names,
    assert_same_arrays,
    assert_same_in_any_split,
    held,
    make_stream,
    streams,
    whole_arrays,
)

SMALL = Replay(2, size=7, seed=3)
EARLY = Replay(2, size=7, seed=3, until=25)
LEARNERS: dict[str, Any] = {
    "pa1": {"update": "pa1", "replay": SMALL},
    "z-scores": {"update": "softmax", "preprocessing": "z-scores", "intercept": 1.0, "replay": 1},
    "early": {"update": "pa1", "replay": EARLY},
    "early, expanded": {
        "update": "softmax",
        "preprocessing": ["z-scores", RandomFourier(20, information=True)],
        "replay": EARLY,
    },
    "expanded": {
        "update": "softmax",
        "preconditioner": "adagrad",
        "preprocessing": [Bins(4), RandomFourier(20), "z-scores"],
        "replay": SMALL,
    },
    "half-life": {
        "update": "pa1",
        "preprocessing": [Bins(3), "z-scores"],
        "half_life": 10.0,
        "replay": SMALL,
    },
    "map": {"hypotheses": "hybrid", "update": "pa1", "on_new_class": "learn", "replay": SMALL},
    "inherit": {"update": "ovr-hinge", "on_new_class": "inherit", "replay": 1},
    "averaged": {"update": "perceptron", "averaged": True, "replay": SMALL},
    "link": {"update": "perceptron", "link": "exponential", "replay": SMALL},
    "scale-free": {"update": "hinge", "preconditioner": "scale-free", "replay": SMALL},
    "product": {
        "hypotheses": "hybrid",
        "feature_map": "product",
        "update": "pa1",
        "replay": SMALL,
    },
    "counts": {
        "update": "softmax",
        "preprocessing": "counts",
        "preconditioner": "adagrad",
        "replay": SMALL,
    },
    "default": {"hypotheses": "auto", "replay": 1},
}
OF_SPARSE = ["pa1", "early", "product", "inherit", "averaged", "link", "scale-free", "counts"]
"""Learners of rows that list only non-zeros."""


def as_names(X: Any) -> list[dict[str, float]]:
    return [{f"w{j}": float(row[j]) for j in np.flatnonzero(row)} for row in X]


def as_texts(X: Any) -> list[str]:
    counts = np.ceil(np.abs(X)).astype(int)
    return [" ".join(f"word{j}" for j, n in enumerate(row) for _ in range(n)) for row in counts]


FORMS: dict[str, Any] = {
    "array": lambda X: X,
    "CSR": sparse.csr_array,
    "names": as_names,
    "texts": as_texts,
}
MEMBERS = ["pa1", "expanded"]
NAMES = [*LEARNERS, "ensemble"]
every_learner = pytest.mark.parametrize("name", NAMES)


def made(name: str) -> OnlineClassifier:
    if name == "ensemble":
        return Ensemble([*map(made, MEMBERS), OnlineClassifier("multi", update="pa2")])
    return OnlineClassifier(**{"hypotheses": "multi"} | LEARNERS[name])


# ---- the reservoir and the order, against NumPy --------------------------------------------------


def share(number: int, seed: int) -> float:
    """SplitMix64 (Steele, Lea and Flood 2014), in Python's integers."""
    word = 2**64 - 1
    x = (seed + number * 0x9E3779B97F4A7C15) & word
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & word
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & word
    return ((x ^ (x >> 31)) >> 11) / 2.0**53


def trials(n: int, replay: Replay, decay: float = 1.0) -> tuple[list[tuple[int, bool]], list[int]]:
    """Return which row each trial learns and whether it is a replay, and the reservoir after."""
    seed = int(np.random.SeedSequence(replay.seed).generate_state(1, np.uint64)[0]) >> 1
    order: list[tuple[int, bool]] = []
    reservoir: list[int] = []
    for t in range(n):
        numbers = [share(t * (1 + replay.n_rows) + j, seed) for j in range(1 + replay.n_rows)]
        order.append((t, False))
        if t >= replay.end:
            continue
        if reservoir:
            order += [(reservoir[int(each * len(reservoir))], True) for each in numbers[1:]]
        if len(reservoir) < replay.size:
            reservoir.append(t)
        else:
            chance = min(1.0, max(replay.size / (t + 1), replay.size * (1 - decay)))
            slot = int(numbers[0] * replay.size / chance)
            if slot < replay.size:
                reservoir[slot] = t
    return order, reservoir


def rows_kept(model: Any) -> Any:
    """Return the rows of the reservoir as an array, without the constant feature."""
    arrays, learner = model._learner.arrays(), model._learner
    if "replay.rows" in arrays:
        return arrays["replay.rows"]
    lists = tuple(arrays[f"replay.{name}"] for name in ("values", "features", "starts"))
    shape = len(lists[2]) - 1, learner.n_features
    return sparse.csr_array(lists, shape=shape).toarray()[:, bool(learner.constant) :].copy()


@pytest.mark.parametrize("half_life", [None, 10.0])
@pytest.mark.parametrize(
    ("preprocessing", "form"),
    [(Bins(3), "array"), (None, "array"), (None, "CSR")],
    ids=["expanded", "array", "CSR"],
)
def test_the_reservoir_holds_the_rows_of_algorithm_r(preprocessing, half_life, form):
    stream = make_stream(1, n_rows=90)
    given = {"replay": SMALL, "half_life": half_life, "preprocessing": preprocessing}
    model = OnlineClassifier("multi", update="pa1", intercept=1.0, **given)
    model.fit(FORMS[form](stream.X), stream.y, sample_weight=stream.weights)
    _, kept = trials(90, SMALL, 1.0 if half_life is None else 2 ** (-1 / half_life))
    stored = model._learner.stored
    assert_array_equal(rows_kept(model), stream.X[kept].astype(np.float32))
    assert_array_equal(stored["replay.codes"], stream.y[kept])
    assert_array_equal(stored["replay.weights"], stream.weights[kept])
    assert max(kept) > 60


def test_the_memory_of_kept_rows_is_that_of_their_entries():
    """8 bytes for each entry of at most `size` rows, however many rows and features come."""
    X = sparse.random_array((400, 5000), density=0.002, rng=0, format="csr")
    model = OnlineClassifier("multi", update="pa1", intercept=0.0, replay=SMALL)
    model.fit(X, [*"ab"] * 200)
    _, kept = trials(400, SMALL)
    arrays = model._learner.arrays()
    assert len(arrays["replay.starts"]) == SMALL.size + 1
    n_bytes = arrays["replay.features"].nbytes + arrays["replay.values"].nbytes
    assert n_bytes == 8 * X[kept].nnz
    lists = model._learner.kept_lists._lists
    assert sum(each.base is None for row in lists for each in row) == 2 * SMALL.size  # no views


@pytest.mark.parametrize("settings_", [{}, {"feature_map": "contrast"}, {"uncertainty": "full"}])
def test_kept_rows_with_missing_values_are_saved(settings_, tmp_path):
    stream = make_stream(3, n_rows=60)
    X = stream.X.astype(np.float32)
    X[1:, 1] = np.nan
    model = OnlineClassifier(replay=SMALL, columns=None, **settings_).fit(X, stream.y)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    for each in (model, loaded):
        each.partial_fit(X, stream.y)
    assert_array_equal(model.predict_proba(X), loaded.predict_proba(X))


OF_NEW_ROWS = (
    *("counts", "statistics.", "preprocessing.", "expansion.", "relevance.", "calibration"),
    *("decay.", "imperfect"),
)


OF_FORMS = [("array", name) for name in LEARNERS if name != "default"]
OF_FORMS += [(form, name) for form in ("CSR", "names", "texts") for name in OF_SPARSE]


@pytest.mark.parametrize(("form", "name"), OF_FORMS)
def test_the_state_is_that_of_the_trials_in_this_order(name, form):
    """A learner without replay is taught the same trials one by one.

    What counts new rows only is put back after each row that is learnt again.
    """
    stream, settings_ = make_stream(2, n_rows=60), {"hypotheses": "multi"} | LEARNERS[name]
    X = FORMS[form](stream.X)
    model = made(name).partial_fit(X, stream.y, sample_weight=stream.weights)
    plain = OnlineClassifier(**settings_ | {"replay": 0})
    replay = model._learner.replay
    for row, again in trials(60, replay, 2 ** (-1 / settings_.get("half_life", np.inf)))[0]:
        stored = plain._learner.stored if again else {}
        before = {n: a.copy() for n, a in stored.items() if n.startswith(OF_NEW_ROWS)}
        part = slice(row, row + 1)
        plain.partial_fit(X[part], stream.y[part], sample_weight=stream.weights[part])
        for array, values in before.items():
            plain._learner.stored[array][:] = values
    found = {n: a for n, a in model._learner.arrays().items() if not n.startswith("replay.")}
    expected = plain._learner.arrays()
    assert found.keys() == expected.keys()
    for array, values in expected.items():
        assert_array_equal(found[array], values, err_msg=array)
    assert model.n_trials_ == 60


def test_every_row_is_in_the_reservoir_with_the_same_probability():
    counts = np.zeros(40)
    for seed in range(400):
        counts[trials(40, Replay(1, 10, seed))[1]] += 1
    # 400 draws of probability 1/4 have a deviation of 8.7.
    assert abs(counts - 100).max() < 40
    firsts = {tuple(trials(40, Replay(1, 10, seed))[1]) for seed in range(5)}
    assert len(firsts) == 5


@pytest.mark.parametrize("name", ["z-scores", "expanded", "map", "half-life"])
def test_rows_learnt_again_are_not_added_to_statistics_or_counts(name):
    stream = make_stream(3, n_rows=60)
    model = made(name).fit(stream.X, stream.y)
    plain = OnlineClassifier(**{"hypotheses": "multi"} | LEARNERS[name] | {"replay": 0})
    plain.fit(stream.X, stream.y)
    assert model.n_trials_ == 60
    compared = 0
    for array, values in plain._learner.arrays().items():
        if array.startswith(("statistics.", "preprocessing.", "expansion.", "decay.")):
            assert_array_equal(model._learner.arrays()[array], values, err_msg=array)
            compared += 1
    assert compared
    weights = [each._learner.arrays()["weights.values.0"] for each in (model, plain)]
    assert not np.array_equal(*weights)


# ---- laws ----------------------------------------------------------------------------------------


@every_learner
@settings(max_examples=4)
@given(stream=streams(), cuts=st.lists(st.integers(0, 40), max_size=4))
def test_any_split_into_batches_is_the_same(name, stream, cuts):
    assert_same_in_any_split(lambda: made(name), stream, cuts)


@every_learner
def test_what_is_predicted_before_a_target_is_what_validation_reports(name):
    stream = make_stream(3, n_rows=30)
    result = progressive_validate(made(name), stream.X, stream.y)
    model = made(name)
    for t, (x, y) in enumerate(zip(stream.X, stream.y.tolist(), strict=True)):
        if t:
            before = held(model)
            assert model.predict_one(x) == result.predictions[t]
            assert model.predict(stream.X[t : t + 1])[0] == result.predictions[t]
            assert held(model) == before
        model.learn_one(x, y)


@every_learner
def test_scores_and_probabilities_of_new_rows_are_those_before_their_trials(name):
    stream = make_stream(5, n_rows=30)
    model, events = made(name), made(name)
    found = model._run_trials(stream.X, stream.y, keep_scores=True, keep_probabilities=True)
    for t, (x, y) in enumerate(zip(stream.X, stream.y.tolist(), strict=True)):
        if t:
            n_known = events._learner.n_known
            scores = events._scores(stream.X[t : t + 1])[0]
            assert_array_equal(found.scores[t, :n_known], scores)
            said = events.predict_proba_one(x)
            expected = [said[events.predict_one(x)], said.get(y, np.nan)]
            if y in said:
                assert_array_equal(found.probabilities[t], expected)
        events.learn_one(x, y)


@every_learner
def test_files_and_pickles_continue_as_if_never_stopped(name, tmp_path):
    stream = make_stream(4, n_rows=60)
    whole = made(name).partial_fit(stream.X, stream.y)
    model = made(name).partial_fit(stream.X[:30], stream.y[:30])
    model.save(tmp_path / "model")
    copies = load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), model
    for copy in copies:
        copy.partial_fit(stream.X[30:], stream.y[30:])
        assert_same_arrays(whole, copy, stream.X)
    if name not in ("default", "ensemble"):
        assert {copy.resolved_.replay for copy in copies} == {model._learner.replay}
    if name == "default":
        for copy in copies:
            assert [each.replay for each in copy._learner.members] == [*[Replay(1), None] * 2, None]


@every_learner
def test_declared_classes_and_names_of_labels_change_nothing_else(name):
    assert_labels_are_only_names(lambda: made(name))


def test_more_rows_than_the_reservoir_holds_are_learnt_in_any_split():
    stream = make_stream(6, n_rows=2500, n_classes=3)
    given = {"update": "pa1", "preprocessing": Bins(4), "replay": 1}
    whole = OnlineClassifier("multi", **given).fit(stream.X, stream.y)
    pieces = OnlineClassifier("multi", **given)
    for start in range(0, 2500, 70):
        part = slice(start, start + 70)
        pieces.partial_fit(stream.X[part], stream.y[part])
    assert_same_arrays(whole, pieces, stream.X[:50])


@pytest.mark.parametrize("name", ["pa1", "z-scores", "expanded"])
def test_steps_of_a_further_pass_are_those_without_replay(name):
    stream, given = make_stream(4, n_rows=60), {"hypotheses": "multi"} | LEARNERS[name]
    learner = OnlineClassifier(**given | {"intercept": 1.0}).fit(stream.X, stream.y)._learner
    plain = OnlineClassifier(**given | {"intercept": 1.0, "replay": 0}).fit(stream.X, stream.y)
    for array, values in learner.stored.items():
        if not array.startswith("replay."):
            plain._learner.stored[array][:] = values
    rows = Rows.from_dense(stream.X)
    for each in (learner, plain._learner):
        each.take_steps(rows, stream.y.tolist())
    found, expected = learner.arrays(), plain._learner.arrays()
    for array, values in expected.items():
        assert_array_equal(found[array], values, err_msg=array)


# ---- rows that list only non-zeros --------------------------------------------------------------


@pytest.mark.parametrize("form", ["CSR", "names", "texts"])
@pytest.mark.parametrize("name", [*OF_SPARSE, "default"])
@settings(max_examples=4)
@given(stream=streams(), cuts=st.lists(st.integers(0, 40), max_size=4))
def test_any_split_of_sparse_rows_is_the_same_with_a_file_in_between(
    name, form, tmp_path_factory, stream, cuts
):
    X, path = FORMS[form](stream.X), tmp_path_factory.mktemp("models") / "model"
    whole, pieces, events = made(name).partial_fit(X, stream.y), made(name), made(name)
    for start, end in pairwise(sorted({0, *(min(cut, len(stream)) for cut in cuts), len(stream)})):
        pieces.partial_fit(X[start:end], stream.y[start:end]).save(path)
        pieces = load(path)
    for i, y in enumerate(stream.y.tolist()):
        events.learn_one(X[i], y)
    assert_same_arrays(whole, pieces, X)
    assert_same_arrays(whole, events, X)
    again = pickle.loads(pickle.dumps(whole)).partial_fit(X, stream.y)
    assert_same_arrays(again, pieces.partial_fit(X, stream.y), X)


@pytest.mark.parametrize("name", [name for name in OF_SPARSE if name != "counts"])
def test_arrays_and_sparse_rows_teach_the_same(name):
    stream = make_stream(4, n_rows=60)
    X = sparse.csr_array(stream.X)
    whole, listed = made(name).fit(stream.X, stream.y), made(name).fit(X, stream.y)
    assert_same_arrays(whole, listed, stream.X)
    mixed = made(name).partial_fit(X[:30], stream.y[:30])
    assert_same_arrays(mixed.partial_fit(stream.X[30:], stream.y[30:]), whole, stream.X)


def test_weights_in_sparse_rows_are_learnt_again_alike(monkeypatch):
    stream = make_stream(4, n_rows=60, density=0.2)
    X = sparse.csr_array(stream.X)
    table = made("pa1").fit(X, stream.y)
    monkeypatch.setattr(state, "LARGEST_TABLE", 0)
    monkeypatch.setattr(state, "FULL_TABLE", 1.0)
    listed = made("pa1").fit(X, stream.y)
    assert listed.keeps_sparse_rows_ and not table.keeps_sparse_rows_
    found, expected = (whole_arrays(each._learner) for each in (listed, table))
    assert found.keys() == expected.keys()
    for array, values in expected.items():
        assert_array_equal(found[array], values, err_msg=array)


def test_members_that_read_words_replay_as_well():
    rows = [{"body": f"word{i % 7} and {i}", "size": i % 5} for i in range(60)]
    y = [str(i % 7 > 3) for i in range(60)]
    models = [OnlineClassifier(replay=n).partial_fit(rows, y) for n in (0, 1)]
    members = models[1]._learner.members
    assert {each.replay for each in members if each.gains_from_repetition} == {Replay(1)}
    of_words = [m for m in members if m.replay and not m.lists_all]
    assert of_words and all(each._n_kept == 60 for each in of_words)


def test_files_of_before_hold_a_table_of_the_rows(tmp_path):
    stream, path = make_stream(12, n_rows=60), tmp_path / "model"
    model = made("pa1").set_params(intercept=1.0).partial_fit(stream.X, stream.y)
    model.save(path)
    arrays, metadata = model_file.load(path)
    table = rows_kept(model)
    for name in ("starts", "features", "values"):
        del arrays[f"replay.{name}"]
    (contents,) = metadata["learners"]
    before = metadata | {"learners": [contents | {"n_inputs": table.shape[1]}]}
    model_file.save(path, arrays | {"replay.rows": table}, before)
    loaded = load(path)
    assert_same_arrays(loaded, model, stream.X)
    assert_same_arrays(*(m.partial_fit(stream.X, stream.y) for m in (loaded, model)), stream.X)
    for odd in (table + np.inf, table[:, :-1].copy(), table[:-1]):
        model_file.save(path, arrays | {"replay.rows": odd}, before)
        with pytest.raises(KeslerError, match=r"replay\.rows"):
            load(path)


# ---- what it is for ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [of_measurements(), {"hypotheses": "multi", "update": "pa1", "C": 0.1,
                         "preprocessing": "z-scores"}],
    ids=["softmax", "pa1"],
)  # fmt: skip
def test_one_pass_with_replay_makes_fewer_errors_on_letters(given):
    """Errors on LETTER, before each target in one pass over 16,000 rows, and on 4,000 new rows.

    Softmax over expansions: 0.165 and 0.116 without replay, 0.145 and 0.102 with one row replayed
    per row.
    """
    data = load_data("letter")
    X, y, n = data.X, data.y, data.n_train
    errors = []
    for replay in (0, 1):
        model = OnlineClassifier(**given, replay=replay).partial_fit(X[:n], y[:n])
        new = float(np.mean(model.predict(X[n:]) != y[n:]))
        errors.append((model.n_mistakes_ / model.n_trials_, new))
    assert errors[1] < errors[0] and errors[1][1] < errors[0][1]
    if given["update"] != "pa1":
        expected = [(0.165, 0.116), (0.145, 0.102)]
        np.testing.assert_allclose(errors, expected, atol=0.004)


# ---- epochs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pa1", "expanded"])
def test_fit_makes_several_passes_in_the_order_given(name):
    stream = make_stream(7)
    model = made(name).set_params(epochs=3).fit(stream.X, stream.y)
    passes = made(name)
    with passes._rows_as_set():
        passes.partial_fit(stream.X, stream.y)
        with passes.rows_again():
            passes.partial_fit(stream.X, stream.y).partial_fit(stream.X, stream.y)
    assert_same_arrays(model, passes, stream.X)
    assert model.n_trials_ == 3 * len(stream)


def test_epochs_concern_fit_only_and_not_the_choice_of_the_learner(tmp_path):
    stream = make_stream(8)
    model = OnlineClassifier(epochs=2).partial_fit(stream.X, stream.y)
    assert held(model) == held(OnlineClassifier().partial_fit(stream.X, stream.y))
    model.learn_one(stream.X[0], int(stream.y[0]))
    assert model.n_trials_ == len(stream) + 1
    single = OnlineClassifier("multi", update="pa1", epochs=2).fit(stream.X, stream.y)
    single.save(tmp_path / "model")
    assert load(tmp_path / "model").epochs == single.resolved_.epochs == 2
    assert model.resolved_.epochs == 2


@pytest.mark.parametrize("epochs", [0, -1, 1.5, True, "2", None])
def test_epochs_other_than_integers_above_0_are_refused_before_anything_is_forgotten(epochs):
    stream = make_stream(8)
    model = OnlineClassifier("multi", update="pa1").fit(stream.X, stream.y)
    before = held(model)
    with pytest.raises(KeslerError, match="must be an integer of 1 or more"):
        model.set_params(epochs=epochs).fit(stream.X, stream.y)
    assert held(model) == before


# ---- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Replay(0), "n_rows must be an integer from 1 to 1,000"),
        (lambda: Replay(1.5), "n_rows must be an integer"),
        (lambda: Replay(1001), "n_rows must be an integer"),
        (lambda: Replay(size=0), "size must be an integer"),
        (lambda: Replay(until=0), "until must be an integer from 1 to"),
        (lambda: Replay(size=True), "size must be an integer"),
        (lambda: Replay(seed=-1), "seed must be an integer of 0 or more"),
    ],
)
def test_parts_out_of_their_range_are_refused(make, words):
    with pytest.raises(KeslerError, match=words):
        make()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"replay": -1}, "give the number of rows"),
        ({"replay": True}, "give the number of rows"),
        ({"replay": "some"}, "give the number of rows"),
        ({"replay": 1, "kernel": "rbf"}, "leave the kernel out"),
        ({"replay": 1, "link": "exponential", "averaged": True}, "sums the scales"),
        ({"replay": 1, "update": [OnlineClassifier()]}, "has no effect on an ensemble"),
    ],
)
def test_learners_that_cannot_replay_are_refused(given, words):
    stream = make_stream(9)
    model = OnlineClassifier(**{"hypotheses": "multi", "update": "perceptron"} | given)
    if isinstance(model.update, list):
        model.set_params(hypotheses="auto")
    with pytest.raises(KeslerError, match=words):
        model.fit(stream.X, stream.y)


def test_ratings_are_refused():
    rows = [{"a": {"one": 1.0}, "b": {"one": 0.0}}] * 2
    with pytest.raises(KeslerError, match="ratings by sub-experts are not kept"):
        OnlineClassifier("sub-experts", replay=1).fit(rows, ["a", "b"])


@pytest.mark.parametrize("name", ["pa1", "expanded"])
def test_other_widths_are_refused_and_nothing_is_learnt(name):
    stream = make_stream(10)
    odd = [stream.X[:, :-1], np.full_like(stream.X, np.inf)]
    if name == "expanded":
        odd.append(sparse.csr_array(stream.X))
        with pytest.raises(KeslerError, match="sparse"):
            made(name).fit(sparse.csr_array(stream.X), stream.y)
        with pytest.raises(KeslerError, match="sparse"):
            made(name).fit([{"a": 1.0}, {"b": 1.0}], [0, 1])
    model = made(name).fit(stream.X, stream.y)
    before = held(model)
    for rows in odd:
        with pytest.raises((KeslerError, ValueError)):
            model.partial_fit(rows, stream.y)
    with pytest.raises(KeslerError, match="cannot be ordered"):
        model.partial_fit(stream.X[:3], ["a", 1, "b"])
    with pytest.raises(KeslerError, match="cannot be ordered"):
        model.learn_one(stream.X[0], "a")
    assert held(model) == before


@update_rule(requires="norms")
def fails_on_heavy_rows(parameters, weight, losses, squared_norms, gram, steps):
    steps[10**9 if weight > 100 else 0] = losses[0] / (squared_norms[0] + 1.0)


def test_a_function_that_fails_leaves_the_reservoir_of_the_rows_that_were_learnt():
    stream = make_stream(11, n_rows=30)
    given = {"update": fails_on_heavy_rows, "preprocessing": Bins(3), "replay": SMALL}
    model = OnlineClassifier("multi", **given).partial_fit(stream.X, stream.y)
    heavy = np.ones(30)
    heavy[20:] = 200.0
    with pytest.raises(KeslerError, match="fails_on_heavy_rows failed"):
        model.partial_fit(stream.X, stream.y, sample_weight=heavy)
    assert 50 <= model.n_trials_ < 60
    stored = model._learner.stored
    assert stored["replay.offered"]["n_rows"][0] == model.n_trials_
    assert stored["expansion.seen"]["n_rows"][0] == model.n_trials_
    kept = [row % 30 for row in trials(model.n_trials_, SMALL)[1]]
    assert_array_equal(stored["replay.rows"], stream.X[kept].astype(np.float32))


@pytest.mark.parametrize("name", ["pa1", "expanded"])
def test_damaged_files_are_refused(name, tmp_path):
    stream, path = make_stream(12), tmp_path / "model"
    made(name).fit(stream.X, stream.y).save(path)
    arrays, metadata = model_file.load(path)
    (contents,), resolved = metadata["learners"], metadata["resolved"]
    fields = resolved["parameters"]["replay"]["part"]["fields"]

    def replaying(fields):
        replay = {"part": {"name": "preprocessing.Replay", "fields": fields}}
        return {"resolved": resolved | {"parameters": resolved["parameters"] | {"replay": replay}}}

    for change in (
        *([{"learners": [contents | {"n_inputs": 0}]}] if name == "expanded" else []),
        {"learners": [contents | {"n_inputs": contents["n_inputs"] + 1}]},
        replaying(fields | {"size": 0}),
        replaying(fields | {"size": 2**31 - 1}),
        replaying({}),
    ):
        model_file.save(path, arrays, metadata | change)
        with pytest.raises(KeslerError):
            load(path)
    odd = {
        "replay.codes": arrays["replay.codes"] + 100,
        "replay.weights": -arrays["replay.weights"],
        "replay.offered": arrays["replay.offered"] - 1000,
    }
    if name == "expanded":
        odd["replay.rows"] = arrays["replay.rows"] + np.inf
    else:
        odd["replay.values"] = arrays["replay.values"] + np.inf
        odd["replay.features"] = arrays["replay.features"] + 100
        odd["replay.starts"] = arrays["replay.starts"][::-1].copy()
    for array, value in odd.items():
        model_file.save(path, arrays | {array: value}, metadata)
        with pytest.raises(KeslerError, match=array):
            load(path)
        model_file.save(path, {n: a for n, a in arrays.items() if n != array}, metadata)
        with pytest.raises(KeslerError, match="replay"):
            load(path)


def test_rows_of_more_entries_than_features_are_refused(tmp_path):
    """Learning would read beyond what it keeps of each pair of features."""
    stream, path = make_stream(12), tmp_path / "model"
    made("pa1").fit(stream.X, stream.y).save(path)
    arrays, metadata = model_file.load(path)
    starts = arrays["replay.starts"]
    one = np.r_[0, np.full(len(starts) - 1, starts[-1])]  # the first row has all entries
    model_file.save(path, arrays | {"replay.starts": one.astype(starts.dtype)}, metadata)
    with pytest.raises(KeslerError, match="a row of more entries than the"):
        load(path)


def test_what_assumes_that_each_row_is_learnt_once_refuses_replay():
    stream = make_stream(13)
    model = OnlineClassifier("multi", update="perceptron", replay=1)
    with pytest.raises(KeslerError, match="no theorem covers rows that are learnt again"):
        mistake_bound(model, stream.X, stream.y)
    with pytest.raises(KeslerError, match="sample of the rows of one learner"):
        require_mixable(model.fit(stream.X, stream.y)._learner)
