"""Rows that would need more memory than the machine has are refused, and nothing changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from kesler import (
    CrammerSingerClassifier,
    Ensemble,
    KeslerError,
    OnlineClassifier,
    OnlineMultilabelClassifier,
    SoftmaxClassifier,
)
from kesler.state import capacity
from kesler.state.capacity import machine_memory, require_memory

LARGE = 200_000_000
ONLINE: dict[str, Any] = {
    "default": OnlineClassifier,
    "hybrid": lambda: OnlineClassifier("hybrid", update="pa1"),
    "sparse rows": lambda: OnlineClassifier("multi", update="pa1"),
    "ensemble": lambda: Ensemble([OnlineClassifier("multi", update="pa1"), OnlineClassifier()]),
    "multilabel": OnlineMultilabelClassifier,
}


@pytest.fixture(autouse=True)
def a_small_machine(monkeypatch):
    monkeypatch.setattr(capacity, "machine_memory", lambda: 1 << 30)


def matrix(index: int) -> Any:
    return sparse.csr_array((np.ones(2), ([0, 1], [0, index])), shape=(2, index + 1))


def label(name: str, value: int) -> Any:
    return {value} if name == "multilabel" else value


@pytest.mark.parametrize("name", ONLINE)
def test_a_row_that_is_refused_changes_nothing(name):
    model = ONLINE[name]().learn_one((np.array([0]), np.array([1.0])), label(name, 0))
    before = model._learner
    learners = before.members
    arrays = [each.arrays() for each in learners]
    with pytest.raises(KeslerError, match=r"features would take \d+ GiB, more than the memory"):
        model.learn_one((np.array([LARGE]), np.array([1.0])), label(name, 1))
    assert model.classes_.tolist() == [0] and model.n_trials_ == 1
    for each, saved in zip(learners, arrays, strict=True):
        assert len(each.classes) == each.n_known
        for key, array in each.arrays().items():
            np.testing.assert_array_equal(array, saved[key])
    model.learn_one((np.array([5]), np.array([1.0])), label(name, 1))
    assert model.n_trials_ == 2


@pytest.mark.parametrize("name", ONLINE)
def test_a_matrix_that_is_refused_leaves_the_estimator_unfitted(name):
    model = ONLINE[name]()
    with pytest.raises(KeslerError, match="more than the memory of this machine"):
        model.partial_fit(matrix(LARGE), [label(name, 0), label(name, 1)])
    assert not model.__sklearn_is_fitted__() and not hasattr(model, "n_features_in_")
    model.fit(matrix(9), [label(name, 0), label(name, 1)])
    assert model.classes_.tolist() == [0, 1]


@pytest.mark.parametrize("estimator", [SoftmaxClassifier, CrammerSingerClassifier])
def test_batch_learners_refuse_too_many_columns(estimator):
    with pytest.raises(KeslerError, match="more than the memory of this machine"):
        estimator().fit(matrix(LARGE), [0, 1])


def test_what_is_too_wide_for_all_pairs_of_columns_is_told_what_takes_it():
    wide = np.zeros((4, 1_000_000))
    wide[::2, 0] = 1.0
    with pytest.raises(KeslerError, match=r"numbers of all pairs of them, would.*name an update"):
        OnlineClassifier().fit(wide, [0, 1, 0, 1])
    assert OnlineClassifier(update="pa1").fit(wide, [0, 1, 0, 1]).predict(wide[:2]).tolist() == [
        0,
        1,
    ]


def test_what_fits_is_taken():
    model = OnlineClassifier("multi", update="pa1")
    model.learn_one((np.array([50_000_000]), np.array([1.0])), 0)
    assert model.n_trials_ == 1 and model._learner.n_features > 50_000_000


# ---- the memory of a machine --------------------------------------------------------------------


def test_the_memory_of_a_machine_is_that_of_its_pages(monkeypatch):
    pages = {"SC_PAGE_SIZE": 1 << 12, "SC_PHYS_PAGES": 1 << 20}
    monkeypatch.setattr("os.sysconf", pages.get, raising=False)
    monkeypatch.setattr(capacity, "machine_memory", machine_memory.__wrapped__)  # not kept
    require_memory(1 << 32, "a table")
    with pytest.raises(KeslerError, match="a table would take 4 GiB, more than the memory"):
        require_memory((1 << 32) + 1, "a table")


@pytest.mark.parametrize("error", [AttributeError, OSError, ValueError])
def test_a_machine_that_does_not_say_its_memory_is_taken_to_have_64_gib(monkeypatch, error):
    def silent(name):
        raise error(name)

    monkeypatch.setattr("os.sysconf", silent, raising=False)
    monkeypatch.setattr(capacity, "machine_memory", machine_memory.__wrapped__)
    require_memory(1 << 36, "a table")
    with pytest.raises(KeslerError, match="a table would take 64 GiB, more than the memory"):
        require_memory((1 << 36) + 1, "a table")
