"""Threads: one predicts while another learns; what a call reads, it reads under the lock."""

import sys
import tempfile
import threading

import numpy as np
import pytest

from kesler import Ensemble, OnlineClassifier
from kesler.hypotheses import Grouped
from kesler.learner.events import Event


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


class GuardedEvent(Event):
    """The row of a learner that is being read, which is to be used under its lock."""

    def __getattribute__(self, name):
        held = object.__getattribute__(self, "__dict__")["lock"].depth > 0
        assert held or name.startswith("__"), f"the event's {name} is used without the lock"
        return super().__getattribute__(name)


def guarded(model):
    """Let every array and the event of a model's learner, and of its members, be guarded."""
    learner = model._learner
    for each in (learner, *getattr(learner, "members", ())):
        each.lock = Watched()
        each.stored = GuardedArrays(each.stored, each.lock)
        vars(each.event)["lock"] = each.lock
        each.event.__class__ = GuardedEvent
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
}
ROWS = np.random.default_rng(1).normal(size=(12, 4))


def two():
    return [OnlineClassifier("multi", update="pa1"), OnlineClassifier("single", update="pa1")]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", MODELS)
def test_a_call_reads_the_learner_under_its_lock(name, call):
    model = guarded(MODELS[name]().fit(ROWS, [0, 1, 2] * 4))
    CALLS[call](model)


def test_groups_are_joined_under_the_lock():
    hypotheses = Grouped({"all": [0, 1, 2]})
    model = guarded(OnlineClassifier(hypotheses, update="pa1").fit(ROWS, [0, 1, 2] * 4))
    for group in range(40):
        model._learner.join_group(1, group)
    assert len(model._learner.groups[0]) == 41
