"""The table of the state: what follows from it holds for every field of every kind of learner."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kesler import BanditClassifier, LinearMax, OnlineClassifier, OnlineOrdinalClassifier, load
from kesler.budgets import Budget
from kesler.data import model_file
from kesler.errors import KeslerError
from kesler.learner import state as memory_module
from kesler.preprocessing import Replay
from kesler.state.fields import (
    Field,
    Given,
    bind,
    converted,
    declared_in,
    fields_of,
    number_type,
    record,
    require_lists,
    valid_array,
)
from kesler.state.forest import Forest
from kesler.state.records import (
    EnsembleRecord,
    LearnerRecord,
    SavedLists,
    SparseWeights,
    SupportVectors,
    TableWeights,
)
from kesler.updates import SOBA
from streams import make_stream

FILLED = ("weights.values", "relevance.weights", "relevance.of_norms")
STREAM = make_stream(5, n_rows=40, n_classes=5)
LEARNERS = {
    "default": lambda: OnlineClassifier(),
    "counts": lambda: OnlineClassifier("hybrid", update="pa1", preprocessing="idf"),
    "mean": lambda: OnlineClassifier("single", "product-mean", update="pa1", averaged=True),
    "adagrad": lambda: OnlineClassifier(
        "multi", update="hinge", preconditioner="scale-free-adagrad"
    ),
    "arow": lambda: OnlineClassifier("multi", update="arow", half_life=9.0),
    "pace": lambda: OnlineClassifier(
        "multi", update="pa1", preconditioner="distance-adagrad", half_life=9.0
    ),
    "bets": lambda: OnlineClassifier("hybrid", update="softmax", preconditioner="coin-betting"),
    "link": lambda: OnlineClassifier("multi", update="perceptron", link="exponential"),
    "algorithm": lambda: LinearMax("alma"),
    "costs": lambda: OnlineClassifier("multi", update="pa1", costs={(0, 1): 3.0}),
    "ranks": lambda: OnlineOrdinalClassifier(update="simproj", averaged=True),
    "kernel": lambda: OnlineClassifier(kernel="rbf"),
    "kernel of lists": lambda: OnlineClassifier(
        "multi", update="perceptron", kernel="rbf", sigma=1.0
    ),
    "projectron": lambda: OnlineClassifier(
        "multi", update="perceptron", kernel="rbf", budget=Budget(9, "projectron")
    ),
    "forgetron": lambda: OnlineClassifier(
        "multi", update="perceptron", kernel="rbf", budget=Budget(9, "forgetron")
    ),
    "replay": lambda: OnlineClassifier("multi", update="pa1", replay=Replay(1, size=20)),
    "ensemble": lambda: OnlineClassifier(update="ensemble"),
    "bandit": lambda: BanditClassifier(range(5), "banditron"),
    "bandit of second order": lambda: BanditClassifier(range(5), "soba"),
    "diagonal bandit": lambda: BanditClassifier(range(5), SOBA(diagonal=True)),
}
GROUPS = [LearnerRecord, EnsembleRecord, TableWeights, SparseWeights, SupportVectors]
every_learner = pytest.mark.parametrize("name", LEARNERS)


def learnt(name: str, n_rows: int = 40) -> Any:
    rows: Any = STREAM.X[:n_rows]
    if name == "kernel of lists":
        rows = [{f"x{j}": v for j, v in enumerate(row) if v} for row in rows.tolist()]
    return LEARNERS[name]().fit(rows, STREAM.y[:n_rows])


def stored_of(learner: Any) -> dict[str, Any]:
    """Return all arrays of a learner: its own, and those of its support vectors and members."""
    found = dict(learner.stored)
    for i, member in enumerate(each for each in learner.members if each is not learner):
        found |= {f"{i}.{name}": array for name, array in stored_of(member).items()}
    if hasattr(learner, "supports"):
        found |= {f"supports.{n}": array for n, array in learner.supports.stored.items()}
    return found


# ---- the table -----------------------------------------------------------------------------------


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_every_line_is_a_field_a_given_array_a_setting_or_a_record(group: Any) -> None:
    for name, kind in declared_in(group).items():
        is_record = isinstance(kind, type) and hasattr(kind, "_fields")
        assert is_record or kind in (int, float) or isinstance(kind, (Field, Given)), name
    for name, field in fields_of(group).items():
        assert number_type(field).kind in "fiub", name
        assert field.axes or np.dtype(field.dtype).names, f"{name}: numbers without an axis"


def test_names_of_records_are_no_methods_of_numpy() -> None:
    """``record.sum`` would be a method, and what is written to it would be lost."""
    for name, field in {**fields_of(LearnerRecord), **fields_of(SupportVectors)}.items():
        for number in np.dtype(field.dtype).names or ():
            assert not hasattr(np.void, number), f"{name}.{number}"


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_compiled_types_are_those_of_what_is_bound(group: Any) -> None:
    from numba import typeof

    from kesler.compiled.jit.record_types import tuple_type

    if group is LearnerRecord:
        bound, expected = learnt("counts")._learner._record, tuple_type(group, TableWeights)
    else:
        bound, expected = bind(group, _Ones(group)), tuple_type(group)
    assert typeof(bound) == expected


class _Ones(dict[str, Any]):
    """Arrays of one number along each axis, and 1 for settings, whatever is asked for."""

    def __init__(self, group: type) -> None:
        super().__init__()
        self.group = group
        self.fields = fields_of(group)
        self.given = _given_in(group)

    def __missing__(self, name: str) -> Any:
        if name in self.fields:
            field = self.fields[name]
            return np.zeros((1,) * max(1, len(field.axes)), field.dtype)
        if name in self.given:
            return np.zeros((1,) * self.given[name].n_axes, self.given[name].dtype)
        return converted(self.group, {name: 1})[name]


def _given_in(group: type, prefix: str = "") -> dict[str, Given]:
    found: dict[str, Given] = {}
    for name, kind in declared_in(group).items():
        if isinstance(kind, Given):
            found[prefix + name] = kind
        elif isinstance(kind, type) and hasattr(kind, "_fields"):
            found |= _given_in(kind, f"{prefix}{name}.")
    return found


def test_numbers_of_a_record_are_written_where_it_stands() -> None:
    counts = np.zeros(1, record(n_trials="i8", n_mistakes="i8"))
    counts[0].n_mistakes += 2
    assert counts["n_mistakes"].tolist() == [2]


# ---- copies --------------------------------------------------------------------------------------


@every_learner
def test_copies_have_arrays_of_their_own(name: str) -> None:
    model = learnt(name)
    before = {key: array.tobytes() for key, array in stored_of(model._learner).items()}
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        theirs = stored_of(other._learner)
        assert theirs.keys() == before.keys()
        other.partial_fit(*_more(name))
        assert any(array.tobytes() != before.get(key) for key, array in theirs.items())
    assert {key: array.tobytes() for key, array in stored_of(model._learner).items()} == before


def _more(name: str) -> tuple[Any, Any]:
    rows: Any = STREAM.X[:9]
    if name == "kernel of lists":
        rows = [{f"x{j}": v for j, v in enumerate(row) if v} for row in rows.tolist()]
    return rows, STREAM.y[9:18]


@every_learner
@settings(max_examples=5)
@given(n_classes=st.integers(0, 40), n_features=st.integers(0, 200))
def test_room_that_is_made_changes_nothing_that_is_stored(
    name: str, n_classes: int, n_features: int
) -> None:
    model = learnt(name, 25)
    before, scores = model._learner.arrays(), model.decision_function(_more(name)[0])
    model._learner.reserve(n_classes, n_features)
    for key, array in model._learner.arrays().items():
        used = tuple(map(slice, before[key].shape))
        np.testing.assert_array_equal(array[used], before[key], err_msg=key)
        rest = array.copy()
        rest[used] = 0
        assert key.endswith(FILLED) or not rest.any()
    np.testing.assert_array_equal(model.decision_function(_more(name)[0]), scores)


# ---- what a file brings --------------------------------------------------------------------------


BOUNDS: Any = [
    (Field(np.int32, ("entry",), index_into="class"), 0, 2),
    (Field(np.int64, ("entry",), at_least=1, at_most="class"), 1, 3),
    (Field(np.float64, ("entry",), at_least=-1.5, at_most=7), -1.5, 7.0),
]
"""Fields, with the least and the greatest of their values where there are three classes."""


@pytest.mark.parametrize(("field", "least", "most"), BOUNDS)
def test_values_reach_the_bounds_of_their_field(field: Any, least: Any, most: Any) -> None:
    def valid(*values: Any) -> Any:
        array = np.array(values, field.dtype)
        found = valid_array("codes", {"codes": array}, field, array.shape, {"class": 3})
        return found is array

    assert valid() and valid(least, most)
    with pytest.raises(KeslerError, match=rf"codes holds {least - 1}, and the minimum is {least}:"):
        valid(most, least - 1)
    with pytest.raises(KeslerError, match=rf"codes holds {most + 1}, and the maximum is {most:g}:"):
        valid(least, most + 1)


def test_lists_of_a_file_begin_at_0_and_follow_each_other_to_the_last_item() -> None:
    for starts, n_items in ([0], None), ([0], 0), ([0, 0, 3, 3], None), ([0, 0, 3, 3], 3):
        require_lists("starts", np.array(starts), n_items)
    for starts, n_items in (
        *(([1, 3], None), ([1, 3], 3), ([-1, 3], 3)),
        *(([0, 2, 1], None), ([0, 2, 1, 3], 3)),
        *(([0, 2], 3), ([0, 4], 3)),
    ):
        with pytest.raises(KeslerError, match="starts are not the positions of lists that follow"):
            require_lists("starts", np.array(starts), n_items)


def damages(name: str, array: Any) -> dict[str, Any]:
    """Return what may have become of an array."""
    found: dict[str, Any] = {"flat": np.append(array.ravel(), array.ravel()[:1])}
    field = field_named(name)
    if field is None or not field.new:  # files of earlier versions lack new arrays
        found["missing"] = None
    found["longer"] = np.concatenate([array, array[-1:]]) if len(array) else np.ones(1)
    found["other type"] = array.astype(np.bool_ if array.dtype != np.bool_ else np.int64)
    if array.dtype.kind == "f" and array.size:
        odd = array.copy()
        odd.flat[0] = np.inf if field is not None and field.allows_nan else np.nan
        found["not finite"] = odd
    if array.dtype.kind == "i" and array.size:
        beyond = 2 ** (8 * array.itemsize - 2) + 1
        for way, number in (("below", -beyond), ("above", beyond)):
            odd = array.copy()
            odd.flat[-1] = number
            found[way] = odd
    return found


def field_named(key: str) -> Any:
    """Return the field of an array of a file, None if it is of no table."""
    fields = {**fields_of(LearnerRecord), **fields_of(SupportVectors), **fields_of(EnsembleRecord)}
    fields |= {f"replay.{own}": field for own, field in fields_of(SavedLists).items()}
    fields |= {f"forest.{own}": field for own, field in fields_of(Forest).items()}
    return fields.get(re.sub(r"^(\d+\.)?(supports\.|ensemble\.)?", "", key))


def has_maximum(key: str) -> bool:
    """Return whether the table bounds the numbers of an array of a file."""
    field = field_named(key)
    if key.endswith("owners"):  # compared with the hypotheses of each part
        return True
    return field is None or bool(field.at_most or field.index_into)


@every_learner
def test_every_array_of_a_file_is_checked(name: str, tmp_path: Any) -> None:
    path = tmp_path / "model"
    learnt(name).save(path)
    arrays, metadata = model_file.load(path)
    refused = 0
    for key, array in arrays.items():
        for way, damaged in damages(key, array).items():
            if way == "above" and not has_maximum(key):
                continue
            if (
                damaged is not None
                and damaged.shape == array.shape
                and damaged.dtype == array.dtype
            ):
                if np.array_equal(damaged, array):
                    continue
            changed = {k: a for k, a in arrays.items() if k != key}
            if damaged is not None:
                changed[key] = damaged
            model_file.save(path, changed, metadata)
            with pytest.raises(KeslerError, match=r"model|file"):
                load(path).predict(_more(name)[0])
                pytest.fail(f"{key} {way}")
            refused += 1
    assert refused >= 4 * len(arrays) - 4


def test_sparse_rows_of_a_file_are_checked(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(memory_module, "LARGEST_TABLE", 0)
    path = tmp_path / "model"
    model = OnlineClassifier("multi", update="pa1").fit(STREAM.X, STREAM.y)
    assert model.keeps_sparse_rows_
    model.save(path)
    arrays, metadata = model_file.load(path)
    for key in ("sparse.starts", "sparse.classes", "sparse.weights"):
        for way, damaged in damages(key, arrays[key]).items():
            changed = {k: a for k, a in arrays.items() if k != key}
            if damaged is not None:
                changed[key] = damaged
            elif key == "sparse.starts":
                continue  # then there are no sparse rows
            model_file.save(path, changed, metadata)
            with pytest.raises(KeslerError):
                load(path)
                pytest.fail(f"{key} {way}")
