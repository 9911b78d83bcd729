"""Metadata of model files: each entry is checked against what it must be, on both sides of it."""

from __future__ import annotations

import copy
import json
import math
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kesler import (
    CostSensitiveClassifier,
    KeslerError,
    LinearMax,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    load,
)
from kesler.data import model_file
from kesler.data.schema.inference import N_ROWS
from kesler.hypotheses import Grouped, PerClass
from kesler.online.metadata import require_members, validated
from kesler.online.table_state import TableState, restored
from kesler.state.uncertainty import LARGEST_SCORE

MOST_FEATURES, MOST_ROWS = 2**31 - 1, 2**62  # numbers of features are int32
SETTINGS = {"name": "OnlineClassifier", "parameters": {}}
OF_LEARNER = {
    "labels": ["a", 1],
    "n_features": 3,
    "n_sub_experts": 0,
    "n_inputs": 0,
    "groups": [["g", 2]],
    "memberships": [[[0], [0, 1]]],
}
OF_FILE = {
    "settings": SETTINGS,
    "resolved": SETTINGS,
    "dense": True,
    "learners": [OF_LEARNER],
    "names": None,
    "sub_experts": None,
    "width": None,
    "declared": [],
    "texts": None,
    "table": None,
    "uncertainty": None,
    "ranks": [],
    "notes": {},
}

COUNTS = [0, MOST_FEATURES], [-1, MOST_FEATURES + 1, True, 1.0, "1", None]
LABELS = [[], ["a", 1, 2.5, False]], [["a", "a"], [1, True], [None], [["a"]], [math.inf], "ab", {}]
NAMES = [None, [], ["a", None, 2]], [["a", "a"], [None, None], [math.nan], "ab", 3]
NOTES = [{}, {"a": 1}], [[], None, "notes"]
BAD_SETTINGS = [None, [], {}, {"name": "x"}, {"parameters": {}}, {"name": 1, "parameters": {}}]
ESTIMATES = {"remembers": True, "n_inputs": 4}

VALUES: dict[str, tuple[list[Any], list[Any]]] = {
    "settings": ([SETTINGS], [*BAD_SETTINGS, {"name": "x", "parameters": []}]),
    "resolved": ([SETTINGS], [*BAD_SETTINGS, {"name": "x", "parameters": []}]),
    "dense": ([True, False], [0, 1, None, "true"]),
    "learners": ([[]], [None, {}, [1], [OF_LEARNER, None]]),
    "names": NAMES,
    "sub_experts": NAMES,
    "width": ([None, *COUNTS[0]], COUNTS[1][:-1]),
    "declared": LABELS,
    "texts": (
        [None, [0, 0], [MOST_ROWS, MOST_ROWS]],
        [[1], [1, 2, 3], [-1, 0], [0, MOST_ROWS + 1], [True, 0], [1.0, 2], {}, 7],
    ),
    "table": ([None, {}], [[], "table", 0]),
    "uncertainty": (
        [None, ESTIMATES, ESTIMATES | {"remembers": False}]
        + [ESTIMATES | {"n_inputs": n, "largest_score": LARGEST_SCORE} for n in COUNTS[0]],
        [{}, [], {"remembers": True}, {"n_inputs": 4}, ESTIMATES | {"other": 1}]
        + [ESTIMATES | {"largest_score": LARGEST_SCORE + 1}, ESTIMATES | {"remembers": 1}]
        + [ESTIMATES | {"n_inputs": n} for n in COUNTS[1]],
    ),
    "ranks": ([[]], [None, {}, [1]]),
    "notes": NOTES,
}
OF_LEARNERS: dict[str, tuple[list[Any], list[Any]]] = {
    "labels": LABELS,
    "n_features": COUNTS,
    "n_sub_experts": COUNTS,
    "n_inputs": COUNTS,
    "groups": ([[], [[]], [["a", 1], ["a"]]], [["a"], [["a", "a"]], [[None]], None, {}]),
    "memberships": (
        [[], [[]], [[[]]], [[[0, MOST_FEATURES]]]],
        [[0], [[0]], [[["0"]]], [[[-1]]], [[[True]]], [[[MOST_FEATURES + 1]]], None],
    ),
}


def with_entry(path: str, value: Any) -> Any:
    """Return metadata of a file in which one entry, of the file or of its learner, is another."""
    found = copy.deepcopy(OF_FILE)
    holder: Any = found["learners"][0] if path.startswith("learners[0].") else found  # type: ignore[index]
    holder[path.rsplit(".", 1)[-1]] = value
    return found


EVERY = [*VALUES.items(), *((f"learners[0].{n}", of) for n, of in OF_LEARNERS.items())]


@pytest.mark.parametrize(("path", "values"), EVERY, ids=[path for path, _ in EVERY])
def test_an_entry_is_what_it_must_be_or_named(path: str, values: tuple[list[Any], list[Any]]):
    good, bad = values
    for value in good:
        given = with_entry(path, value)
        assert validated(given) == given
    for value in bad:
        shown = re.escape(f"the model's {path} is {value!r}"[:60])
        with pytest.raises(KeslerError, match=f"{shown}.*, not .*: the file is damaged"):
            validated(with_entry(path, value))
            pytest.fail(repr(value))


@pytest.mark.parametrize("path", [path for path, _ in EVERY if path not in ("settings", "ranks")])
def test_an_entry_that_lacks_is_named(path: str):
    given = with_entry(path, None)
    holder = given["learners"][0] if path.startswith("learners[0].") else given
    del holder[path.rsplit(".", 1)[-1]]
    with pytest.raises(KeslerError, match=re.escape(f"metadata have no {path}:")):
        validated(given)


def test_metadata_are_an_object_and_may_lack_ranks():
    for odd in ([], None, "text"):
        with pytest.raises(KeslerError, match="metadata are not an object"):
            validated(odd)
    before = {name: value for name, value in OF_FILE.items() if name != "ranks"}
    assert validated(before) == OF_FILE


@pytest.mark.parametrize("n", [40, 80])
def test_a_long_value_is_shown_in_part(n: int):
    with pytest.raises(KeslerError) as caught:
        validated(with_entry("dense", "x" * n))
    (shown,) = re.findall(r"dense is (.*), not true or false", str(caught.value))
    assert shown == repr("x" * n) if n == 40 else len(shown) == 60 and shown.endswith("xxx...")


GROUPS, MEMBERS = [[], ["a", "b"]], [[0], [0, 1], [1]]
OF_PARTS = "not one for each of its parts"
MEMBERSHIPS: list[tuple[Any, Any, str]] = [
    (GROUPS[1:], [[], MEMBERS], OF_PARTS),
    (GROUPS, [MEMBERS], OF_PARTS),
    ([*GROUPS, []], [[], MEMBERS, []], OF_PARTS),
    (GROUPS, [[[]], MEMBERS], "memberships are those of 1 classes, not of 0"),
    (GROUPS, [[], MEMBERS[1:]], "memberships are those of 2 classes, not of 3"),
    (GROUPS, [[], [[0], [1, 0], [1]]], r"name groups \[1, 0\], of 2"),
    (GROUPS, [[], [[0], [0, 0], [1]]], r"name groups \[0, 0\], of 2"),
    (GROUPS, [[], [[0], [0, 1], [2]]], r"name groups \[2\], of 2"),
    (GROUPS, [[], [[0, 2], [0, 1], [1]]], r"name groups \[0, 2\], of 2"),
]


def test_each_class_is_in_groups_that_exist():
    sharing = Grouped({"a": [0, 1], "b": [1, 2]})
    model = OnlineClassifier([PerClass(), sharing], update="pa1").fit(
        [[0.0], [1.0], [2.0]], range(3)
    )
    learner = model._learner
    assert learner.memberships == [[], MEMBERS]
    require_members(learner, GROUPS, [[], MEMBERS])
    require_members(learner, GROUPS, [[], [[], [0, 1], []]])
    for groups, memberships, words in MEMBERSHIPS:
        with pytest.raises(KeslerError, match=words):
            require_members(learner, groups, memberships)
            pytest.fail(str(memberships))


# ---- the table of a model ------------------------------------------------------------------------

ROWS = [{"note": "win cash", "size": 3.5}, {"note": None, "size": 1.0}, {"note": "hi", "size": 2.0}]
NUMBERS = [{"a": 1.0, "b": 2.0}, {"a": 2.0, "b": math.nan}, {"a": 3.0, "b": 0.5}]
MADE: dict[str, tuple[Any, Any]] = {
    "class": (OnlineClassifier, ["x", "y", "x"]),
    "sets": (OnlineMultilabelClassifier, [["x", "y"], [], ["y"]]),
    "levels": (OnlineLabelRanker, [["x", "y"], ["y"], ["y", "x"]]),
    "costs": (CostSensitiveClassifier, [{"x": 0.0, "y": 2.0}, {"y": 1.0}, {"x": 1.0, "y": 0.0}]),
}


def state_of(kind: str, rows: Any = ROWS) -> TableState:
    make, y = MADE[kind]
    found: TableState = make().partial_fit(rows, y)._input.columns.state
    return found


def read(kind: str, stored: Any) -> TableState:
    return restored(stored, kind, int(kind == "sets"), takes_missing=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [ROWS, NUMBERS], ids=["cells", "entries"])
@pytest.mark.parametrize("kind", MADE)
def test_a_table_is_restored_as_it_was_stored(kind: str, rows: Any):
    state = state_of(kind, rows)
    stored = json.loads(json.dumps(state.to_json()))
    again = read(kind, stored)
    assert again.to_json() == stored
    (one,), (other,) = state.kept or (), again.kept or ()
    for name in ("rest", "threshold", "columns", "labels"):
        assert getattr(one.targets, name) == getattr(other.targets, name)
    assert repr(one.table) == repr(other.table)
    assert (again.named, again.by_name, again.inputs) == (state.named, state.by_name, state.inputs)


def test_dates_and_infinite_cells_are_restored():
    stored = state_of("class").to_json()
    cells = ["1e400", {"number": "-inf"}, {"date": "2026-03-01T10:30:00"}]
    stored["kept"][0]["cells"]["size"] = cells
    again = read("class", stored)
    assert again.to_json() == stored
    (batch,) = again.kept or ()
    found = batch.table.columns["size"]
    assert [*found] == ["1e400", -math.inf, datetime(2026, 3, 1, 10, 30)]


def test_a_table_of_before_had_no_rows_by_name():
    stored = state_of("class").to_json()
    del stored["by_name"]
    assert read("class", stored).by_name is False


def kept(**changes: Any) -> Any:
    return lambda stored: stored["kept"][0].update(changes)


def single_rows(stored: Any, n: int) -> list[Any]:
    """Return the first row n times, each in a batch of its own."""
    (batch,) = stored["kept"]
    cells = {name: column[:1] for name, column in batch["cells"].items()}
    first = {name: batch[name][:1] for name in ("labels", "levels")}
    return [batch | first | {"n_rows": 1, "cells": cells, "indptr": [0, 1]}] * n


def moment(*numbers: Any) -> Any:
    return lambda stored: stored["moments"].update(size=list(numbers))


INDPTR = "targets that do not fit each other"
REFUSED: dict[str, list[tuple[Any, str]]] = {
    "class": [
        (kept(indptr=[1, 2, 3]), INDPTR),
        (kept(indptr=[[0, 1], [2, 3]]), INDPTR),
        (kept(indptr=[0, 1, 2]), INDPTR),
        (kept(indptr=[0, 0, 2, 3]), INDPTR),
        (kept(indptr=[0, 2, 3], n_rows=2, cells={}), INDPTR),
        (kept(indptr=[0, 1, 2], labels=["x", "y"], levels=[0, 0]), "2 targets of 3 rows"),
        (kept(levels=[0, 0]), INDPTR),
        (kept(levels=[[0], [0], [0]]), INDPTR),
        (kept(levels=[0, -1, 0]), INDPTR),
        (kept(labels=["x", None, "y"]), INDPTR),
        (kept(labels=["x", ["y"], "y"]), INDPTR),
        (kept(columns=["x", "y"]), INDPTR),
        (kept(costs=[0.0, 0.0, 0.0]), INDPTR),
        (kept(n_rows=2), "columns of different lengths"),
        (kept(n_rows=3.0), "columns of different lengths"),
        (kept(cells={"note": ["a"] * 3, "size": [1.0] * 2}), "columns of different lengths"),
        (kept(entries=[{"a": 1.0}] * 2), "columns of different lengths"),
        (kept(entries=[{}, {}]), "columns of different lengths"),
        (kept(weights=[1.0, 2.0]), "^sample_weight has shape"),
        (kept(weights=[1.0, -2.0, 1.0]), "^sample_weight of row 1"),
        (moment(-1.0, 0.0, 0.0), "moments"),
        (moment(1.0, 0.0, -1.0), "moments"),
        (moment(1.0, "inf", 1.0), "moments"),
        (moment("nan", 0.0, 1.0), "moments"),
        (moment(1.0, 0.0), "columns are not described"),
        (lambda stored: stored.update(named=1), "neither have names nor lack them"),
        (lambda stored: stored.update(by_name="no"), "neither have names nor lack them"),
        (lambda stored: stored.update(kept=single_rows(stored, N_ROWS)), "first rows are too many"),
    ],
    "sets": [
        (kept(indptr=[0, 2, 1, 3]), INDPTR),
        (kept(indptr=[1, 1, 2, 3]), INDPTR),
        (kept(indptr=[0, 1, 1, 2]), INDPTR),
        (kept(levels=[0, 0, 1]), INDPTR),
        (kept(levels=[0, 0, 2]), INDPTR),
        (kept(columns=[None]), INDPTR),
    ],
    "levels": [
        (kept(levels=[0, 1, 0, 0, 5]), INDPTR),
        (kept(levels=[0, 1, 0, 0, -1]), INDPTR),
    ],
    "costs": [
        (kept(levels=[0, 1, 0, 1, 2]), INDPTR),
        (kept(costs=[0.0, 2.0, 1.0, 1.0]), INDPTR),
        (kept(costs=[0.0, 2.0, 1.0, 1.0, math.inf]), INDPTR),
    ],
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_table_that_contradicts_itself_is_refused(kind: str):
    stored = state_of(kind).to_json()
    for change, words in REFUSED[kind]:
        altered = json.loads(json.dumps(stored))
        change(altered)
        with pytest.raises(KeslerError, match=words):
            read(kind, altered)
            pytest.fail(str(altered))


def test_the_bounds_of_a_table_are_in_it():
    stored = state_of("class").to_json()
    moment(0.0, 0.0, 0.0)(stored)
    stored["kept"] = single_rows(stored, N_ROWS - 1)
    assert read("class", stored).n_open == 1
    assert read("class", stored | {"kept": None}).n_open == 0
    levels = state_of("levels").to_json()
    kept(levels=[0, 1, 0, 0, 4])(levels)
    (batch,) = read("levels", levels).kept or ()
    assert batch.targets.levels.tolist() == [0, 1, 0, 0, 4]


@pytest.mark.parametrize("n", [1, 2])
def test_first_rows_whose_targets_have_other_columns_are_kept_apart(n: int):
    model, columns = OnlineMultilabelClassifier(), [("x",), ("x", "y"), ("x", "y", "z")]
    for names in columns:
        for _ in range(n):
            model.partial_fit(ROWS[:1], np.ones((1, len(names))), classes=names)
    state: TableState = model._input.columns.state
    assert [(each.targets.columns, len(each)) for each in state.kept or ()] == [
        (names, n) for names in columns
    ]
    assert state.n_open == N_ROWS - 3 * n


def test_a_table_of_an_estimator_without_columns_is_refused(tmp_path: Path):
    path = tmp_path / "model"
    LinearMax().fit([[0.0], [1.0]], ["x", "y"]).save(path)
    arrays, metadata = model_file.load(path)
    model_file.save(path, arrays, metadata | {"table": state_of("class").to_json()})
    with pytest.raises(KeslerError, match="table does not fit LinearMax: the file is damaged"):
        load(path)


# ---- counts --------------------------------------------------------------------------------------


def test_a_count_is_written_if_it_can_be_read(tmp_path: Path):
    path = tmp_path / "model"
    model = OnlineClassifier(update="pa1").fit([[0.0], [1.0]], ["x", "y"])
    model._learner.trials_run[0] = MOST_ROWS
    model.save(path)
    model._learner.trials_run[0] = MOST_ROWS + 1
    words = f"holds {MOST_ROWS + 1}, and the maximum of a count is {MOST_ROWS}"
    with pytest.raises(KeslerError, match=f"not written, since .* {words}"):
        model.save(path)
    assert load(path).n_trials_ == MOST_ROWS


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf], ids=str)
@pytest.mark.parametrize("name", ["weights.values", "calibration"])
def test_numbers_that_are_not_finite_are_not_written(name: str, value: float, tmp_path: Path):
    path = tmp_path / "model"
    model = OnlineClassifier("multi", update="pa1").fit([[0.0], [1.0]], ["x", "y"])
    model.save(path)
    before = path.read_bytes()
    model._learner.stored[name].flat[0] = value
    with pytest.raises(KeslerError, match=f"not written, since {name}.* holds .* rescale"):
        model.save(path)
    assert path.read_bytes() == before
