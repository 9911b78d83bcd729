"""Columns: the positions of the hypotheses of each part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import types

from kesler import OnlineClassifier, load
from kesler.compiled.jit.decorators import FLOATS, INT, kernel
from kesler.compiled.jit.record_types import LEARNER_RECORD
from kesler.compiled.trial.records import BLOCKS, Blocks, make_scratch
from kesler.compiled.trial.variants import score
from kesler.hypotheses import Grouped, Ordered, Part, PerClass, Shared
from kesler.learner.events import no_ratings
from kesler.learner.weights import columns_of, n_beside, n_columns
from kesler.maps import Contrast, Frequency
from kesler.state.capacity import SIMD_WIDTH
from streams import Stream, make_stream

PARTS = [PerClass(), Shared(Frequency()), Shared(Contrast()), Grouped(str), Ordered()]


@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=5), st.integers(1, 4))
def test_parts_have_columns_of_their_own(parts: list[Part], n_lines: int) -> None:
    class_capacity, n_groups = n_lines * SIMD_WIDTH, 3
    offsets, width = columns_of(parts, class_capacity, [n_groups] * len(parts))
    n_classes = class_capacity - n_beside(parts)
    taken = [
        column
        for part, offset in zip(parts, offsets, strict=True)
        for column in range(offset, offset + n_columns(part, n_classes, n_groups))
    ]
    assert len(set(taken)) == len(taken)
    assert max(taken) < width
    assert PerClass() not in parts or offsets[parts.index(PerClass())] == 0


@pytest.mark.parametrize(("n_classes", "capacity"), [(13, 16), (14, 32), (29, 32), (30, 64)])
def test_one_column_more_takes_no_line_more(n_classes: int, capacity: int) -> None:
    """The columns of a new class and of the two shared parts follow those of the classes."""
    model = OnlineClassifier()
    for label in range(n_classes):
        model.learn_one({f"w{label}": 1.0, "the": 1.0}, label)
    learner = model._learner
    assert learner.weights.shape[1] == learner.stored["statistics.sums"].shape[2] == capacity
    assert [w.shape[1] for w in learner.hypothesis_weights()] == [n_classes + 1, 1, 1]


def test_there_may_be_more_single_columns_than_a_line_holds() -> None:
    X, shared = np.eye(3), [Shared(Contrast(), begins_at=0.1)] * 33
    model = OnlineClassifier([PerClass(), *shared], update="pa1").partial_fit(X, [0, 1, 2])
    assert model._learner.weights.shape[1] == 48
    assert sum(w.shape[1] for w in model._learner.hypothesis_weights()) == 3 + 33


def words(n_classes: int) -> Stream:
    """Rows of a third of 60 words, of classes that appear one after another."""
    return make_stream(44, 6 * n_classes, n_classes, 60, density=0.3, whole=True)


@pytest.mark.parametrize("update", ["auto", "pa1", "softmax"])
@pytest.mark.parametrize("parts", [1, -1], ids=["classes first", "shared first"])
def test_room_that_is_made_row_by_row_changes_nothing(
    tmp_path: Any, update: str, parts: int
) -> None:
    """33 classes pass the ends of one line, of two and of three."""
    stream = words(33)
    hypotheses: Any = [PerClass(), Shared(Contrast(), begins_at=0.1)][::parts]
    settings = (
        {"preconditioner": "adagrad", "on_new_class": "inherit"} if update == "softmax" else {}
    )
    made = {"hypotheses": hypotheses, "update": update, **settings}
    whole = OnlineClassifier(**made).partial_fit(stream.X, stream.y)
    pieces = OnlineClassifier(**made)
    for row, label in zip(stream.X[:150], stream.y[:150], strict=True):
        pieces.partial_fit(row[None], [label])
    pieces.save(tmp_path / "half")
    pieces = load(tmp_path / "half")
    pieces.partial_fit(stream.X[150:], stream.y[150:])
    found, expected = pieces._learner.arrays(), whole._learner.arrays()
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


@kernel(types.void(LEARNER_RECORD, BLOCKS, INT, FLOATS))
def score_lines(learner: Any, rows: Any, k: int, out: Any) -> None:
    """Write what a trial leaves of the scores of a row, behind the last class too."""
    scratch = make_scratch(learner, rows)
    scratch.upcoming[1] = scratch.upcoming[0]
    score(learner, rows.indices, rows.values, k, scratch, scratch.scores)
    for r in range(out.shape[0]):
        out[r] = scratch.scores[r]


def test_what_stands_behind_the_classes_is_no_score() -> None:
    """Their lines are summed whole; a calibration that read on would learn from it."""
    stream = words(20)
    hypotheses = [PerClass(), Shared(Contrast(), begins_at=5.0)]
    model = OnlineClassifier(hypotheses, update="pa1").fit(stream.X, stream.y)
    X, learner, scores = np.ones((1, 60)), model._learner, np.full(32, np.float32(9))
    indices, values = np.arange(60, dtype=np.int32), np.ones(60, dtype=np.float32)
    rows = Blocks(np.array([0, 60]), indices, values, no_ratings())
    score_lines(learner._record, rows, learner.n_known, scores)
    assert (learner.weights[:60, 20:].sum(axis=0) != 0).any()
    np.testing.assert_allclose(scores[:20], model.decision_function(X)[0], rtol=1e-4)
    assert (scores[20:32] == 0).all()


# ---- the cost of the first rows ------------------------------------------------------------------


@pytest.mark.parametrize(
    "row", [{"n": 1.5}, {"n": 1, "kind": "a"}, {"text": "one of many words"}], ids=str
)
def test_the_forms_of_rows_are_found_once_for_the_same_settings(row, monkeypatch):
    model, n_found = OnlineClassifier(), []
    find = type(model._maker).forms
    monkeypatch.setattr(
        type(model._maker), "forms", lambda *given: n_found.append(1) or find(*given)
    )
    for i in range(20):
        model.learn_one(row, "ab"[i % 2])
    assert len(n_found) == 1
    model.set_params(update="pa1", epochs=2).learn_one(row, "a")
    assert len(n_found) == 2
    members = [OnlineClassifier(update="pa1"), OnlineClassifier(update="perceptron")]
    model = OnlineClassifier(update=members)  # which may change while the list does not
    for i in range(20):
        model.learn_one(row, "ab"[i % 2])
    are_columns = row != {"n": 1.5}  # of which members without missing values know nothing
    assert len(n_found) == (22 if are_columns else 2)
