"""Ctrl-C while rows are learnt: whole rows are, no names of others remain, and it is prompt."""

from __future__ import annotations

import gc
import itertools
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from kesler import Ensemble, OnlineClassifier, OnlineMultilabelClassifier, load
from kesler.data.rows import Vocabulary
from kesler.interrupts import LONGEST, Postponed, pieces_of
from kesler.learner.learner import Learner
from kesler.online.contract import exclusive, exclusive_trials, unchanged_on_error

LEARNERS: dict[str, Callable[[], Any]] = {
    "default": OnlineClassifier,
    "pa1": lambda: OnlineClassifier("multi", update="pa1"),
    "hybrid": lambda: OnlineClassifier("hybrid", update="pa1", averaged=True),
    "kernel": lambda: OnlineClassifier(kernel="rbf", sigma=1.0),
    "ensemble": lambda: Ensemble([OnlineClassifier("multi", update="pa1"), OnlineClassifier()]),
    "multilabel": OnlineMultilabelClassifier,
}
THREADS: list[threading.Timer] = []
"""All threads, which are kept: an interrupt while one is collected would be lost."""
PROMPT = 0.2
"""The longest that an interrupt may wait, in seconds of processor time."""


def events(n_rows: int, seed: int = 0) -> list[dict[str, float]]:
    """Rows that go on naming new features."""
    rng = np.random.default_rng(seed)
    return [
        {f"f{j}": float(rng.random()) for j in rng.integers(5 + i // 2, size=6)}
        for i in range(n_rows)
    ]


def labels(n_rows: int, name: str) -> list[Any]:
    found = [f"c{int(np.sqrt(i)) * 7 % 40}" for i in range(n_rows)]
    return [{each} for each in found] if name == "multilabel" else found


class Interrupting:
    """Context that sends SIGINT to the main thread after a number of seconds."""

    def __init__(self, after: float) -> None:
        self.sent = 0.0
        self._timer = threading.Timer(after, self._send)
        THREADS.append(self._timer)

    def _send(self) -> None:
        self.sent = time.process_time()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def __enter__(self) -> Interrupting:
        gc.disable()  # an interrupt in a callback of the collector would be lost
        self._hook, sys.unraisablehook = sys.unraisablehook, self._told
        self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()
        self._timer.join()
        sys.unraisablehook = self._hook
        gc.enable()

    def _told(self, lost: Any) -> None:
        """Let one be lost in the callback of a weak reference, where Python cannot raise it."""
        if lost.exc_type is not KeyboardInterrupt:
            self._hook(lost)


def interrupted(call: Callable[[], Any], after: float) -> float | None:
    """Call until SIGINT comes; return how long it then took to end, None if it came too late."""
    interrupting = Interrupting(after)
    try:
        with interrupting:
            call()
    except KeyboardInterrupt:
        return time.process_time() - interrupting.sent
    return None


def assert_learnt_whole(model: Any, name: str, X: Any, y: Any, n_rows: int) -> None:
    """The model equals one that has learnt the first rows, bit for bit, and knows no more."""
    other = LEARNERS[name]()
    for x, target in zip(X[:n_rows], y[:n_rows], strict=True):
        other.learn_one(x, target)
    assert model.n_trials_ == n_rows and model.n_mistakes_ == other.n_mistakes_
    assert model.classes_.tolist() == other.classes_.tolist()
    if isinstance(X[0], dict):
        assert model.vocabulary_.names == other.vocabulary_.names
    learners = [each._learner.members for each in (model, other)]
    for one, two in zip(*learners, strict=True):
        assert one.n_features == two.n_features
        found, wanted = one.arrays(), two.arrays()
        assert found.keys() == wanted.keys()
        for key, array in wanted.items():
            np.testing.assert_array_equal(found[key], array, key)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_batch_ends_between_two_rows(name):
    n_rows = 4_000 if name == "kernel" else 40_000
    X, y = events(n_rows), labels(n_rows, name)
    whole = LEARNERS[name]().partial_fit(X[:200], y[:200])  # compiled before
    began = time.perf_counter()
    whole.partial_fit(X[200:n_rows], y[200:])
    longest, rng, n_ended = time.perf_counter() - began, random.Random(name), 0
    for after in (rng.uniform(0, longest) for _ in range(5)):
        model = LEARNERS[name]().partial_fit(X[:200], y[:200])
        waited = interrupted(lambda m=model: m.partial_fit(X[200:], y[200:]), after)
        if waited is None:
            continue
        assert waited < PROMPT, f"{waited:.3f} s, sent after {after:.3f} s"
        n_ended += 1
        n_learnt = model.n_trials_
        assert 200 <= n_learnt <= n_rows
        if n_learnt < 3000:
            assert_learnt_whole(model, name, X, y, n_learnt)
        model.partial_fit(X[:50], y[:50])
        assert model.n_trials_ == n_learnt + 50
    assert n_ended


@pytest.mark.parametrize("name", LEARNERS)
def test_events_end_between_two_rows(name):
    """Many interrupts at random moments: the loop goes on with the first row not learnt."""
    n_rows, rng, n_ended = 1500, random.Random(name), 0
    X, y = events(n_rows), labels(n_rows, name)
    model = LEARNERS[name]()
    for x, target in zip(X, y, strict=True):  # all is compiled before
        model.learn_one(x, target)
    model = LEARNERS[name]().learn_one(X[0], y[0])

    def learn() -> None:
        for i in range(model.n_trials_, n_rows):
            model.learn_one(X[i], y[i])

    while model.n_trials_ < n_rows:
        n_ended += interrupted(learn, rng.uniform(0, 0.004)) is not None
    assert n_ended
    assert_learnt_whole(model, name, X, y, n_rows)


def test_an_interrupted_fit_leaves_the_model_as_it_was():
    X, y = np.random.default_rng(0).random((200_000, 30)), np.arange(200_000) % 50
    model = OnlineClassifier(update="pa1").fit(X[:500], y[:500] % 3)
    waited = interrupted(lambda: model.fit(X, y), 0.05)
    assert waited is not None and waited < PROMPT
    assert model.n_trials_ == 500 and model.classes_.tolist() == [0, 1, 2]


def test_the_first_batch_keeps_the_rows_before_the_interrupt():
    X, y = np.random.default_rng(0).random((200_000, 30)), np.arange(200_000) % 50
    OnlineClassifier().fit(X[:100], y[:100])
    model, delay = OnlineClassifier(), 0.3
    while not model.__sklearn_is_fitted__():  # later, if the first row has not been reached
        waited = interrupted(partial(model.partial_fit, X, y), delay)
        assert waited is not None and waited < PROMPT
        delay *= 2
    assert 0 < model.n_trials_ < 200_000 and model.n_features_in_ == 30
    assert model.predict(X[:3]).shape == (3,)


@pytest.mark.parametrize("method", [exclusive, exclusive_trials, unchanged_on_error])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("n_before", [0, 1, 2])
@pytest.mark.parametrize("n_learnt", [0, 1, 2])
def test_an_error_takes_attributes_back_unless_rows_were_learnt_before_an_interrupt(
    method, error, n_before, n_learnt
):
    X, y = events(6), labels(6, "pa1")
    model = OnlineClassifier("multi", update="pa1")
    for i in range(n_before):
        model.learn_one(X[i], y[i])

    def learn_and_fail(self: Any) -> None:
        for i in range(n_learnt):
            self.learn_one(X[i], y[i])
        self.notes_ = {"set": "before the error"}
        raise error

    with pytest.raises(error):
        method(learn_and_fail)(model)
    is_kept = method is exclusive_trials and error is KeyboardInterrupt and n_learnt > 0
    assert ("notes_" in vars(model)) == is_kept
    assert (model._learner is None) == (not n_before and not is_kept)


def before_piece(n: int, act: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Do something before a call learns a piece of 8 rows or more, of which 0 is the first."""
    learn, pieces = Learner.learn_observed, itertools.count()

    def learn_observed(learner: Learner, *given: Any) -> Any:
        if next(pieces) == n:
            act()
        return learn(learner, *given)

    monkeypatch.setattr("kesler.online.training.first_rows", lambda: 8)
    monkeypatch.setattr(Learner, "learn_observed", learn_observed)


ROWS_OF_NAMES = [{f"row {i}": 1.0} for i in range(30)]
LETTERS = [*"abc"] * 10


@pytest.mark.parametrize("n_pieces", [0, 1])
@pytest.mark.parametrize("n_before", [0, 3])
@pytest.mark.parametrize("n_given", [0, 2, 20])
def test_names_given_and_learnt_remain_after_an_interrupt(n_given, n_before, n_pieces, monkeypatch):
    names = [f"given {i}" for i in range(n_given)]
    model = OnlineClassifier("multi", update="pa1")
    if names:
        model.name_features(Vocabulary.of(names))
    if n_before:
        model.partial_fit(ROWS_OF_NAMES[:n_before], LETTERS[:n_before])

    def interrupt() -> None:
        raise KeyboardInterrupt

    before_piece(n_pieces, interrupt, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(ROWS_OF_NAMES[n_before:], LETTERS[n_before:])
    names += [f"row {i}" for i in range(n_before + 8 * n_pieces)]
    assert (model.vocabulary_.names if names else model.vocabulary_) == (names or None)


def test_a_file_written_within_a_call_names_what_has_been_learnt(tmp_path, monkeypatch):
    """As by a handler of the records of progress; the model in it goes on with the other rows."""
    model, path = OnlineClassifier("multi", update="pa1"), tmp_path / "model"
    before_piece(1, lambda: model.save(path), monkeypatch)
    model.partial_fit(ROWS_OF_NAMES, LETTERS)
    other = load(path)
    assert other.n_trials_ == 8 and other.vocabulary_.names == [f"row {i}" for i in range(8)]
    other.partial_fit(ROWS_OF_NAMES[8:], LETTERS[8:])
    for each, name in ((model, "model"), (other, "other")):
        each.save(tmp_path / name)
    assert (tmp_path / "model").read_bytes() == (tmp_path / "other").read_bytes()


def test_a_handler_that_returns_lets_learning_go_on():
    X, y = np.random.default_rng(0).random((60_000, 30)), np.arange(60_000) % 50
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        model = OnlineClassifier()
        assert interrupted(lambda: model.partial_fit(X, y), 0.1) is None
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT] and model.n_trials_ == 60_000


def test_other_threads_learn_without_handlers():
    X, y = np.random.default_rng(0).random((2000, 5)), np.arange(2000) % 4
    model, before = OnlineClassifier(), signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=lambda: model.partial_fit(X, y))
    thread.start()
    thread.join()
    assert model.n_trials_ == 2000 and signal.getsignal(signal.SIGINT) is before


def test_a_context_within_another_waits_for_the_outer_one():
    steps = []
    with pytest.raises(KeyboardInterrupt), Postponed():
        with Postponed():
            signal.raise_signal(signal.SIGINT)
            steps.append("inner")
        steps.append("outer")
    assert steps == ["inner", "outer"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_pieces_cover_the_rows_and_follow_their_cost():
    lengths = []
    for piece in pieces_of(20_000):
        lengths.append(piece.stop - piece.start)
        time.sleep(2e-4 * lengths[-1] if lengths[-1] < 1000 else LONGEST)
    assert sum(lengths) == 20_000
    assert 100 < lengths[1] < 2 * LONGEST / 2e-4
