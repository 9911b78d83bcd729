"""Threads: one predicts while another learns; what a call reads, it reads under the lock."""

import copy
import os
import pickle
import sys
import tempfile
import threading
from functools import partial
from itertools import count

import numpy as np
import pytest

from kesler import (
    BanditClassifier,
    Ensemble,
    KeslerError,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
    StructuredLearner,
    load,
)
from kesler.data.rows import Rows, Vocabulary
from kesler.hypotheses import Grouped
from kesler.learner.events import Event
from kesler.learner.learner import Learner
from kesler.learner.queries import Queries
from kesler.online.blocks import explain_rows, learn_rows


def test_predictions_while_another_thread_learns():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(3000, 8))
    model = OnlineClassifier("hybrid", "product-mean", update="pa1").partial_fit(X[:1], [0])
    alone = OnlineClassifier("hybrid", "product-mean", update="pa1").partial_fit(X[:1], [0])
    errors: list[BaseException] = []
    stop = threading.Event()

    def predict() -> None:
        try:
            while not stop.is_set():
                model.predict(X[:50])
        except BaseException as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=predict) for _ in range(2)]
    for thread in threads:
        thread.start()
    for i in range(1, 3000):
        model.learn_one(X[i], i // 5)
    stop.set()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    assert not errors
    for i in range(1, 3000):
        alone.learn_one(X[i], i // 5)
    np.testing.assert_array_equal(model.decision_function(X[:5]), alone.decision_function(X[:5]))


class Watched:
    """A lock that knows whether it is held."""

    def __init__(self) -> None:
        self.lock, self.depth = threading.RLock(), 0

    def __enter__(self) -> None:
        self.lock.acquire()
        self.depth += 1

    def __exit__(self, *error: object) -> None:
        self.depth -= 1
        self.lock.release()


class GuardedArrays(dict):
    """The arrays of a learner, which are to be read under its lock."""

    def __init__(self, arrays, lock):
        super().__init__(arrays)
        self.lock = lock

    def __getitem__(self, name):
        assert self.lock.depth > 0, f"{name} is read without the lock"
        return super().__getitem__(name)

    def __or__(self, other):
        assert self.lock.depth > 0, "all arrays are read without the lock"
        return super().__or__(other)

    def items(self):
        assert self.lock.depth > 0, "all arrays are read without the lock"
        return super().items()


class GuardedEvent(Event):
    """The row of a learner that is being read, which is to be used under its lock."""

    def __getattribute__(self, name):
        held = object.__getattribute__(self, "__dict__")["lock"].depth > 0
        assert held or name.startswith("__"), f"the event's {name} is used without the lock"
        return super().__getattribute__(name)


NUMBERING = "add", "extend", "learnt", "rows_learnt", "forget_from", "framed", "keep", "renumbered"


class GuardedNames(Vocabulary):
    """The names of features, which are to be numbered under the lock of the learner."""

    def __getattribute__(self, name):
        held = name not in NUMBERING or self.lock.depth
        assert held, f"{name} of the names is called without the lock"
        return super().__getattribute__(name)


class CopiedUnderLocks:
    """An attribute of a model that is to be copied under its locks."""

    def __init__(self, *locks):
        self.locks = locks

    def __deepcopy__(self, memo):
        assert all(lock.depth > 0 for lock in self.locks), "copied without a lock"
        return None


def guarded_arguments(learner):
    """A subclass of the learner's class, which calls compiled code and grows under the lock."""

    def arguments(self):
        assert self.lock.depth > 0, "compiled code is called without the lock"
        kept = vars(self)
        if "_kernel_arguments" not in kept:
            kept["_kernel_arguments"] = made(self)
        return kept["_kernel_arguments"]

    def reserve(self, *counts, **options):
        assert self.lock.depth > 0, "capacity is provided without the lock"
        plain.reserve(self, *counts, **options)

    plain, made = type(learner), type(learner)._kernel_arguments.func
    members = {"_kernel_arguments": property(arguments), "reserve": reserve}
    return type("Guarded", (plain,), members)


def guarded(model):
    """Let every array and the event of a model's learner, and of its members, be guarded."""
    learner = model._learner
    model._created_lock, lock = Watched(), Watched()  # members learn under that of the ensemble
    for each in {learner, *learner.members}:
        each.lock = lock
        if isinstance(each, Learner):
            each.__class__ = guarded_arguments(each)
        each.stored = GuardedArrays(each.stored, each.lock)
        vars(each.event)["lock"] = each.lock
        each.event.__class__ = GuardedEvent
    if model.vocabulary_ is not None:
        model._input.names = GuardedNames(model.vocabulary_.indices)
        model.vocabulary_.lock = lock
    return model


MODELS = {
    "table": lambda: OnlineClassifier("hybrid", "product-mean", update="pa1"),
    "average": lambda: OnlineClassifier("multi", update="pa1", averaged=True),
    "kernel": lambda: OnlineClassifier("multi", update="perceptron", kernel="rbf"),
    "mixture": lambda: OnlineClassifier(update="ensemble"),
    "best": lambda: Ensemble(two(), combine="best"),
    "majority": lambda: Ensemble(two(), combine="majority"),
}
CALLS = {
    "predict": lambda m: m.predict(ROWS),
    "decision_function": lambda m: m.decision_function(ROWS),
    "predict_proba": lambda m: m.predict_proba(ROWS),
    "predict_one": lambda m: m.predict_one(ROWS[0]),
    "predict_proba_one": lambda m: m.predict_proba_one(ROWS[0]),
    "save": lambda m: m.save(tempfile.mkdtemp() + "/model"),
    "partial_fit": lambda m: m.partial_fit(ROWS, [3, 4, 5] * 4),
    "learn_one": lambda m: m.learn_one(ROWS[0], 3),
    "predict of the learner": lambda m: m._learner.predict(rows_of(m)),
    "scores of the learner": lambda m: m._learner.scores(rows_of(m)),
    "probabilities of the learner": lambda m: m._learner.probabilities(rows_of(m)),
    "arrays of the learner": lambda m: m._learner.arrays(),
    "learn of the learner": lambda m: m._learner.learn(rows_of(m), [0] * len(ROWS)),
}
ROWS = np.random.default_rng(1).normal(size=(12, 4))


def rows_of(model):
    return next(model._input.rows_to_score(model, ROWS))


def two():
    return [OnlineClassifier("multi", update="pa1"), OnlineClassifier("single", update="pa1")]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", MODELS)
def test_a_call_reads_the_learner_under_its_lock(name, call):
    model = guarded(MODELS[name]().fit(ROWS, [0, 1, 2] * 4))
    CALLS[call](model)


def asking():
    return OnlineClassifier(label_budget=0.5)


QUESTIONS = [each for each in dir(asking()) if each.endswith("_one") and "learn" not in each]
OF_ONE = {
    **{each: (asking, each, {}) for each in QUESTIONS if each[0] != "_"},
    "predict_one, sure": (asking, "predict_one", {"min_confidence": 0.5}),
    "predict_proba_one, new": (asking, "predict_proba_one", {"new": True}),
    "explain_one, average": (MODELS["average"], "explain_one", {}),
    "explore_one": (BanditClassifier, "explore_one", {}),
    "exploration_proba_one": (BanditClassifier, "exploration_proba_one", {}),
}


@pytest.mark.parametrize("name", OF_ONE)
def test_one_row_is_answered_under_the_lock(name):
    make, call, given = OF_ONE[name]
    getattr(guarded(make().fit(ROWS, ["a;b", "a;c", "d"] * 4)), call)(ROWS[0], **given)


@pytest.mark.parametrize("call", ["predict_proba_one", "predict_top_one", "predict_set_one"])
def test_one_row_of_label_sets_is_answered_under_the_lock(call):
    model = OnlineMultilabelClassifier(uncertainty=True).fit(ROWS, [{"a"}, {"b"}, {"a", "c"}] * 4)
    getattr(guarded(model), call)(ROWS[0])


@pytest.mark.parametrize("make", [OnlineClassifier, MODELS["average"]])
def test_weights_of_features_are_read_under_the_lock(make):
    model = guarded(make().fit(NAMES * 3, [0, 1, 2] * 3))
    assert [name for name, _ in model.top_features(2, 1)] == ["c"]


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        ({"columns": None}, ROWS),
        ({}, [{"n": i, "kind": "pqr"[i % 3]} for i in range(12)]),
    ],
    ids=["numbers", "table"],
)
def test_each_row_of_a_block_is_explained_under_the_lock(given, rows):
    """The lock is free while the caller has an explanation."""
    model = guarded(OnlineClassifier("multi", update="pa1", **given).fit(rows, [0, 1, 2] * 4))
    block = rows if model.schema_ else rows_of(model)
    found = explain_rows(model, block, None, None, 3, features=True)
    assert [model._learner.lock.depth for _ in found] == [0] * 12


@pytest.mark.parametrize("name", MODELS)
def test_what_is_saved_shares_no_memory_with_the_learner(name):
    """The file is written after the lock is free."""
    learner = MODELS[name]().fit(ROWS, [0, 1, 2] * 4)._learner
    members = {learner, *learner.members}
    stored = [array for each in members for array in each.stored.values()]
    stored += [
        a for each in members if hasattr(each, "supports") for a in each.supports.stored.values()
    ]
    for key, array in learner.arrays().items():
        assert not any(np.shares_memory(array, other) for other in stored), key


def test_thresholds_are_read_under_the_lock():
    model = guarded(OnlineOrdinalClassifier().fit(ROWS, [0, 1, 2] * 4))
    assert len(model.thresholds_) == 2


@pytest.mark.parametrize(
    ("owner", "name", "call"),
    [
        (type(OnlineMultilabelClassifier.answer), "encoded", "fit"),
        (OnlineMultilabelClassifier, "_label_sets", "predict_label_sets"),
    ],
    ids=["fit", "predict_label_sets"],
)
def test_what_follows_a_call_of_label_sets_is_done_under_its_lock(owner, name, call, monkeypatch):
    """`fit` judges the labels at the end; `predict_label_sets` scores parts of the rows."""
    y = [{"a"}, {"b"}, {"a", "c"}] * 4
    model = guarded(OnlineMultilabelClassifier().fit(ROWS, y))
    lock = model._lock if call == "fit" else model._learner.lock
    plain, depths = getattr(owner, name), []

    def watched(self, *arguments):
        depths.append(lock.depth)
        return plain(self, *arguments)

    monkeypatch.setattr(owner, name, watched)
    getattr(model, call)(*((ROWS, y) if call == "fit" else (ROWS,)))
    assert depths and all(depths)


def test_rows_to_ask_about_are_decided_and_counted_under_the_lock(monkeypatch):
    settings = {"update": "pa1", "label_budget": 0.5}
    model = guarded(OnlineClassifier(**settings).fit(ROWS, [0, 1, 2] * 4))
    decide, depths = Queries.decide, []

    def watched(queries, estimates):
        depths.append(model._lock.depth)
        return decide(queries, estimates)

    monkeypatch.setattr(Queries, "decide", watched)
    for x in ROWS:
        model.query_one(x)
    assert len(depths) == len(ROWS) and all(depths)


@pytest.mark.parametrize("call", ["fit", "learn_one", "predict"])
def test_a_structured_learner_reads_and_learns_under_its_lock(call):
    lock = Watched()

    def features(x, y):
        assert lock.depth > 0
        return {f"{x},{y}": 1.0}

    def infer(weights, x):
        assert lock.depth > 0
        return max("ab", key=lambda y: weights.get(f"{x},{y}", 0.0))

    def instances():
        for x in (1, 2, 1, 2):
            assert lock.depth > 0
            yield x

    model = StructuredLearner(features, infer)
    model._created_lock = lock
    if call == "learn_one":
        model.learn_one(1, "a")
        return
    with lock:
        model.fit([1, 2, 1, 2], list("abab"))
    if call == "fit":
        model.fit(instances(), list("abab"))
    else:
        assert model.predict(instances()) == list("abab")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_model_is_copied_under_its_locks(copied):
    model = guarded(OnlineClassifier(update="pa1").fit(ROWS, [0, 1, 2] * 4))
    model.probe_ = CopiedUnderLocks(model._lock, model._learner.lock)
    model._learner.stored = dict(model._learner.stored)
    model._learner.__class__ = Learner
    copied(model)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_structured_learner_is_copied_under_its_lock(copied):
    model = StructuredLearner(len, len)
    model._created_lock = Watched()
    model.cost = CopiedUnderLocks(model._lock)
    copied(model)


def test_names_are_numbered_and_forgotten_under_the_lock():
    model = guarded(OnlineClassifier(update="pa1").fit(NAMES, [0, 1, 2]))
    model.partial_fit([{"d": 1.0}], [0])
    model.learn_one({"e": 1.0}, 0)
    learn_rows(model, Rows.empty(1), [1])
    with pytest.raises(KeslerError):
        model.learn_one({"f": "text"}, 0)
    with pytest.raises(KeslerError):
        model.partial_fit([{"g": 1.0}, {"h": float("nan")}], [0, 1])
    assert model.vocabulary_.names == [*"abcde"]


def test_names_of_rows_left_out_are_dropped_under_the_lock_where_memory_is_limited():
    model = OnlineClassifier("multi", update="pa1", memory_limit=10**8).fit(NAMES, [0, 1, 2])
    guarded(model).partial_fit(
        [{"d": 1.0}, {"left out": 1.0}, {"e": 1.0}], [0, 1, 2], sample_weight=[1, 0, 1]
    )
    assert model.vocabulary_.names == [*"abcde"]


class BegunAgain:
    """The lock of a learner: while the first call waits for it, another begins again."""

    def __init__(self, begin):
        self.begin = begin

    def __enter__(self):
        begin, self.begin = self.begin, lambda: None
        begin()

    def __exit__(self, *error):
        pass


def test_a_row_that_waited_while_another_call_began_again_is_learnt_after_it():
    def begin(model):
        return model.fit(ROWS[:6], [2, 1, 0] * 2)

    model, other = (OnlineClassifier("multi", update="pa1") for _ in range(2))
    model.fit(ROWS, [0, 1, 2] * 4)._learner.lock = BegunAgain(partial(begin, model))
    model.learn_one(ROWS[7], 3)
    begin(other).learn_one(ROWS[7], 3)
    assert model.n_trials_ == 7 and model.classes_.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(model.decision_function(ROWS), other.decision_function(ROWS))


OF_ONE_ROW = "predict_one predict_proba_one predict_set_one predict_top_one explain_one"


@pytest.mark.parametrize("call", [*OF_ONE_ROW.split(), "confidence_one", "sure"])
def test_a_row_is_answered_by_one_state_while_another_call_begins_again(call):
    def fitted(y):
        return OnlineClassifier("multi", update="pa1", uncertainty=True).fit(ROWS, y)

    def answer(model):
        if call == "sure":
            return model.predict_one(ROWS[1], min_confidence=0.0)
        found = getattr(model, call)(ROWS[1])
        return found.to_dict() if call == "explain_one" else found

    model, y = fitted([0, 1, 2] * 4), [*"aabbc"] * 2 + [*"ab"]
    expected = [answer(model), answer(fitted(y))]
    assert expected[0] != expected[1]
    model._learner.lock = BegunAgain(lambda: model.fit(ROWS, y))
    assert answer(model) in expected
    assert model.classes_.tolist() == [*"abc"]  # the other call came in between


def test_groups_are_joined_under_the_lock():
    hypotheses = Grouped({"all": [0, 1, 2]})
    model = guarded(OnlineClassifier(hypotheses, update="pa1").fit(ROWS, [0, 1, 2] * 4))
    for group in range(40):
        model._learner.join_group(1, group)
    assert len(model._learner.groups[0]) == 41


class Contended:
    """A lock that another thread gets each time just before and just after it is held."""

    def __init__(self, other):
        self.other, self.depth, self.is_busy = other, 0, False

    def __enter__(self):
        if not self.depth:
            self._meanwhile()
        self.depth += 1

    def __exit__(self, *error):
        self.depth -= 1
        if not self.depth:
            self._meanwhile()

    def _meanwhile(self):
        if not self.is_busy:
            self.is_busy = True
            self.other()
            self.is_busy = False


NAMES = [{"a": 1.0}, {"b": 1.0, "a": 0.5}, {"c": 2.0}]
TARGETS = {
    OnlineClassifier: lambda i: f"y{i}",
    OnlineMultilabelClassifier: lambda i: {f"y{i}"},
    OnlineLabelRanker: lambda i: [f"y{i}", f"y{i + 1}"],
}


def contended(estimator, *, calls=False):
    """A model whose locks other threads get whenever they are free, to learn of new classes.

    At the lock of the learner come events, and with `calls` come batches at that of the estimator.
    """
    model = estimator(preprocessing=None)
    target, n = TARGETS[estimator], count(3)
    model.partial_fit(NAMES, [target(i) for i in range(3)])

    def event():
        i = next(n)
        for _ in range(3):
            model.learn_one({f"n{i}": 5.0}, target(i))

    def batch():
        i = next(n)
        model.partial_fit([{f"m{i}": 5.0}] * 3, [target(i)] * 3)

    if calls:
        model._created_lock = Contended(batch)
    else:
        model._learner.lock = Contended(event)
    return model


def settled(model):
    """Let no other thread get the locks any more."""
    model._learner.lock, model._created_lock = threading.RLock(), threading.RLock()
    return model


@pytest.mark.parametrize(
    ("estimator", "call"),
    [
        *((estimator, call) for estimator in TARGETS for call in ("predict", "decision_function")),
        (OnlineClassifier, "predict_proba"),
        (OnlineMultilabelClassifier, "predict_label_sets"),
    ],
)
def test_names_that_others_add_are_unknown_to_a_call(estimator, call):
    """An unknown name has no weights, whatever another thread has learnt of it meanwhile."""
    unknown, known = ({"unknown": 3.0, "a": 1.0}, {"a": 1.0})
    found = getattr(contended(estimator), call)([unknown])
    np.testing.assert_array_equal(found, getattr(contended(estimator), call)([known]))


@pytest.mark.parametrize("call", ["predict_one", "predict_proba_one"])
def test_names_that_others_add_are_unknown_to_an_event(call):
    found = getattr(contended(OnlineClassifier), call)({"unknown": 3.0, "a": 1.0})
    assert found == getattr(contended(OnlineClassifier), call)({"a": 1.0})


def test_chances_are_those_of_the_classes_of_one_moment():
    """Another thread names a class just before they are computed, and one just after."""
    model, i = BanditClassifier(["a", "b"], preprocessing=None), count()
    model.learn_one({"x": 1.0}, "a")
    model._learner.lock = Contended(lambda: model.learn_one({"x": 1.0}, f"y{next(i)}"))
    found = model.exploration_proba_one({"x": 1.0})
    *before, last = settled(model).exploration_proba_one({"x": 1.0})
    assert [*found] == before and sum(found.values()) == pytest.approx(1)
    assert last == f"y{next(i) - 1}" != "y0"


@pytest.mark.parametrize("calls", [False, True])
@pytest.mark.parametrize("how", ["save", "pickle", "deepcopy", "copy"])
def test_a_copy_is_a_state_between_two_trials(how, calls, tmp_path):
    model = contended(OnlineClassifier, calls=calls)
    if how == "save":
        model.save(tmp_path / "model")
        copied = load(tmp_path / "model")
    elif how == "pickle":
        copied = pickle.loads(pickle.dumps(model))
    else:
        copied = getattr(copy, how)(model)
    learner = settled(copied)._learner
    assert len(copied.vocabulary_) == learner.n_named_features
    assert learner.n_known == len(copied.classes_)
    settled(model).learn_one({"later": 1.0}, "y0")
    assert copied.n_trials_ < model.n_trials_
    copied.learn_one({"other": 1.0}, "y1")
    assert "other" not in model.vocabulary_.indices


def test_a_batch_and_events_share_no_numbers():
    """Names get numbers one at a time, also where a batch is refused after it was numbered."""
    model = contended(OnlineClassifier)
    model.partial_fit([{"p": 1.0, "q": 1.0}], ["y1"])
    with pytest.raises(KeslerError):
        model.partial_fit([{"r": 1.0}, {"s": 1.0}], ["y1", 3])
    numbers = list(settled(model).vocabulary_.indices.values())
    assert numbers == list(range(len(numbers)))
    assert model._learner.n_named_features >= len(numbers) - 1


@pytest.mark.parametrize(
    "call",
    ["fit", "partial_fit", "learn_one", "learn_rows", "save", "join_group", "name_features"],
)
def test_calls_that_change_a_model_follow_each_other(call, tmp_path):
    model = OnlineClassifier(Grouped({"g": ["a", "b"]}), update="pa1").fit(ROWS, ["a", "b"] * 6)
    arguments = {
        "fit": (ROWS, ["a", "b"] * 6),
        "partial_fit": (ROWS, ["a", "b"] * 6),
        "learn_one": ([1.0, "wrong"], "a"),
        "learn_rows": (rows_of(model), ["a"] * 12),
        "name_features": (None,),
        "save": (tmp_path / "model",),
        "join_group": ("a", "h"),
    }[call]
    finished = threading.Event()

    calls = {"learn_rows": partial(learn_rows, model)}

    def run():
        try:
            calls.get(call, getattr(model, call, None))(*arguments)
        except (KeslerError, ValueError):
            assert call == "learn_one"
        finished.set()

    with model._lock:
        before = dict(vars(model))
        thread = threading.Thread(target=run)
        thread.start()
        assert not finished.wait(0.05)
        assert vars(model) == before
    thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_a_process_forked_beside_a_learning_thread_goes_on():
    model = OnlineClassifier("multi", update="pa1").fit(ROWS, [0, 1, 2] * 4)
    stop = threading.Event()

    def learn():
        while not stop.is_set():
            model.partial_fit(np.tile(ROWS, (50, 1)), [0, 1, 2] * 200)

    thread = threading.Thread(target=learn)
    thread.start()
    try:
        for _ in range(10):
            child = os.fork()
            if not child:
                n = model.n_trials_
                copied = copy.deepcopy(model.learn_one(ROWS[0], 3))
                os._exit(0 if copied.partial_fit(ROWS, [3] * 12).n_trials_ == n + 13 else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_a_model_that_a_thread_was_writing_is_refused_in_the_child(monkeypatch):
    """A fork does not wait for long: of a model that is being written, the child has a half."""
    monkeypatch.setattr("kesler.learner.locks.MOST_SECONDS", 0.0)
    model = OnlineClassifier("multi", update="pa1").fit(ROWS, [0, 1, 2] * 4)
    other = OnlineClassifier("multi", update="pa1").fit(ROWS, [0, 1, 2] * 4)
    writes, stop = threading.Event(), threading.Event()

    def write():
        with model._learner.lock:
            writes.set()
            stop.wait()

    thread = threading.Thread(target=write)
    thread.start()
    writes.wait()
    try:
        child = os.fork()
        if not child:
            other.learn_one(ROWS[0], 1)
            try:
                model.learn_one(ROWS[0], 1)
            except KeslerError as error:
                os._exit(0 if "half of a row" in str(error) else 1)
            os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join()
    assert model.learn_one(ROWS[0], 1).n_trials_ == 13
