"""What journals write: rows, answers and names as JSON, and the same again when they are read."""

from __future__ import annotations

import json
from datetime import date, datetime, time, timedelta
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from histories import file_of, learnt_anew
from kesler import KeslerError, OnlineClassifier
from kesler.durable import Journal, replica
from kesler.durable.contents import (
    LONGEST_NAME,
    answer_from_text,
    answer_to_text,
    require_name,
    row_from_text,
    row_to_text,
    value_to_text,
)

PAIR = np.array([0, 3]), np.array([0.5, 2.0])
ROWS: list[tuple[Any, str, str]] = [
    ("win café", "text", '"win café"'),
    ({}, "mapping", "[[],[]]"),
    ({"é": 1}, "mapping", '[["é"],1]'),
    ({"a": 2.5, "b": 2.5}, "mapping", '[["a","b"],2.5]'),
    ({"a": 1, "b": 2}, "mapping", '[["a","b"],[1,2]]'),
    ({"a": 1, "b": True, "c": 1.0}, "mapping", '[["a","b","c"],[1,true,1.0]]'),
    (np.array([1.0, 2.5]), "array", "[1.0,2.5]"),
    (np.array([True, False]), "array", "[true,false]"),
    (PAIR, "pair", "[[0,3],[0.5,2.0]]"),
    ({"a": "café", "n": 3, "x": None}, "cells", '{"a":"café","n":3,"x":null}'),
    (np.array([np.nan, 2.0, -0.0]), "array", "[null,2.0,-0.0]"),
    ({"n": float("inf"), "m": 2.0}, "cells", '{"n":{"number":"inf"},"m":2.0}'),
    ({"on": date(2026, 1, 2)}, "cells", '{"on":{"date":"2026-01-02"}}'),
    ({"at": datetime(2026, 1, 2, 3)}, "cells", '{"at":{"time":"2026-01-02T03:00:00"}}'),
    ({"tags": ["b", "a", date(2026, 1, 2)]}, "cells",
     '{"tags":{"list":["b","a",{"date":"2026-01-02"}]}}'),
]  # fmt: skip


def described(x: Any) -> Any:
    """Return a row with the types of all its parts, so that 1, 1.0 and True differ."""
    if isinstance(x, np.ndarray):
        return x.dtype, [*map(repr, x.tolist())]
    if isinstance(x, (tuple, list)):
        return type(x), [*map(described, x)]
    return {name: described(each) for name, each in x.items()} if isinstance(x, dict) else repr(x)


@pytest.mark.parametrize(("row", "form", "text"), ROWS, ids=str)
def test_a_row_is_written_as_json_and_read_as_it_was(row, form, text):
    assert row_to_text(row) == (form, text)
    assert described(row_from_text(form, text)) == described(row)


@pytest.mark.parametrize(
    ("row", "form", "text"),
    [
        ([], "array", "[]"),
        ([1, 2], "array", "[1,2]"),
        ((1.0, 2.0), "array", "[1.0,2.0]"),
        ((1.0, 2.0, 3.0), "array", "[1.0,2.0,3.0]"),
        (np.ma.array([1, 2], mask=[False, True]), "array", "[1.0,null]"),
        (np.array([np.nan, 0.5], dtype=np.float32), "array", "[null,0.5]"),
        ({"tags": {"b", "a"}}, "cells", '{"tags":{"list":["a","b"]}}'),
        ({"tags": ("b", "a")}, "cells", '{"tags":{"list":["b","a"]}}'),
        ({"on": pd.NaT, "n": pd.NA, "x": "a"}, "cells", '{"on":null,"n":null,"x":"a"}'),
        ({"on": np.datetime64("NaT")}, "cells", '{"on":null}'),
        ({"at": time(1, 2), "for": timedelta(days=1)}, "cells", '{"at":3720.0,"for":86400.0}'),
        ({"in": pd.Period("2026")}, "cells", '{"in":{"time":"2026-01-01T00:00:00"}}'),
        ({"v": np.array([1.0, 2.5])}, "cells", '{"v":{"list":[1.0,2.5]}}'),
        (sparse.csr_array([[0, 2.0, 0]]), "sparse", "[[1],[2.0],3]"),
        (sparse.coo_array([0, 2.0, 0]), "sparse", "[[1],[2.0],3]"),
    ],
)
def test_a_row_of_another_type_is_written_as_its_values(row, form, text):
    assert row_to_text(row) == (form, text)


def test_a_sparse_row_is_read_as_one():
    row = sparse.csr_array([[0, 2.0, 0, 0.5]])
    read = row_from_text(*row_to_text(row))
    assert read.shape == (1, 4) and read.toarray().tolist() == row.toarray().tolist()


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (7, "a int is no row"),
        (["a", "b"], "its values are not numbers, but <U1 of shape (2,)"),
        (np.ones((2, 2)), "its values are not numbers, but float64 of shape (2, 2)"),
        (np.array([1j]), "its values are not numbers, but complex128 of shape (1,)"),
        ((np.ones((2, 2)), np.ones(2)), "its values are float64 of shape (2, 2)"),
        ((np.array([0]), np.array(["a"])), "its values are <U1 of shape (1,)"),
        ((1.0, np.array([2.0])), "inhomogeneous"),
        (np.array([1.0, np.inf]), "a value is infinite"),
        ([np.nan, -np.inf], "a value is infinite"),
        ([None, 1.0], "its values are not numbers, but object of shape (2,)"),
        ((np.array([0]), np.array([np.nan])), "or NaN where each value listed is a number"),
        (sparse.csr_array([[0, np.nan]]), "or NaN where each value listed is a number"),
        ({3: 1.0}, "the name 3 is not text"),
        ({"a": 1j}, "1j (complex)"),
    ],
    ids=str,
)
def test_what_is_no_row_is_refused_in_one_sentence(row, why):
    with pytest.raises(KeslerError) as refused:
        row_to_text(row)
    said = str(refused.value)
    assert said.startswith("the row ") and "cannot be kept in a journal (" in said
    assert why in said and said.endswith("a pair of arrays (indices, values)") and "\n" not in said


@pytest.mark.parametrize(
    "write",
    [row_to_text, answer_to_text, value_to_text, lambda text: row_to_text({text: 1}),
     lambda text: require_name(text, "id"), lambda text: answer_to_text([text])],
)  # fmt: skip
def test_half_a_surrogate_pair_is_said_to_be_one(write):
    with pytest.raises(KeslerError, match=r"^the text .* holds half a surrogate pair"):
        write("half \ud800")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("é", '"é"'),
        (True, "true"),
        (1, "1"),
        (2.5, "2.5"),
        (np.int64(3), "3"),
        (np.float32(0.5), "0.5"),
        ({"b", "a"}, '["a","b"]'),
        (("b", "a"), '["b","a"]'),
        ([True, 1], "[true,1]"),
        ([], "[]"),
    ],
)
def test_an_answer_is_written_as_json(answer, text):
    assert answer_to_text(answer) == text
    assert repr(answer_from_text(text)) == repr(json.loads(text))


@pytest.mark.parametrize("answer", [float("nan"), float("inf"), None, b"a", {"a": 1}])
def test_what_is_no_label_is_refused(answer):
    for each in (answer, [answer]):
        with pytest.raises(KeslerError, match="cannot be kept in a journal: map labels"):
            answer_to_text(each)


def test_labels_of_two_types_have_no_order_in_which_to_be_written():
    with pytest.raises(KeslerError, match=r"'a'.* cannot be ordered: use one type"):
        answer_to_text({"a", 1})


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), {1, 2}, b"a", [object()]])
def test_what_json_cannot_hold_is_not_kept(value):
    with pytest.raises(KeslerError, match=r"cannot be kept in a journal .*: give what JSON holds"):
        value_to_text(value)
    assert value_to_text({"é": [1, None]}) == '{"é":[1,null]}'


def test_names_have_1_to_500_characters():
    assert LONGEST_NAME == 500
    for name in ("a", "é" * 500):
        assert require_name(name, "id") == name
    for name in ("", "a" * 501, "a\0b", 3, None, b"a"):
        with pytest.raises(KeslerError, match=r"^id=.*: give a text of 1 to 500 characters"):
            require_name(name, "id")


def texts(i):
    return f"w{i % 3} café{i % 5}"


def pairs(i):
    return np.array([i % 3, 4]), np.array([1.0, i + 0.5])


def sparse_rows(i):
    return sparse.csr_array(([1.0, i + 0.5], [i % 3, 4], [0, 2]), shape=(1, 6))


def arrays(i):
    return np.array([i % 3, 1, 4]) if i % 4 else np.array([0.5, i % 3, 2.5])


def named_cells(i):
    """Rows of a table, of which those after the first have the form of names with numbers."""
    return {"kind": "red" if i % 7 == 0 else i % 2, "hours": i % 5}


def moments(i):
    """Rows as data frames list them, with gaps and with what JSON has no form for."""
    gap = i % 4 == 2
    return {
        "on": pd.NaT if gap else pd.Timestamp(2026, 1, 1 + i),
        "for": pd.NaT if gap else pd.Timedelta(hours=i % 5),
        "n": pd.NA if gap else i % 3,
    }


def names(i):
    return {f"n{i % 7}": 1.0, f"v{i % 5}": i % 3 + 0.5} if i % 4 else {f"n{i}": 1}


@pytest.mark.parametrize(
    "make", [OnlineClassifier, partial(OnlineClassifier, "multi", update="pa1")]
)
@pytest.mark.parametrize("row", [texts, pairs, sparse_rows, arrays, named_cells, moments, names])
def test_rows_of_every_form_are_learnt_again_as_at_first(row, make, tmp_path, monkeypatch):
    monkeypatch.setattr(replica, "BLOCK", 5)
    given = [(row(i), "abc"[i % 3]) for i in range(24)]
    with Journal(tmp_path / "desk.db") as journal:
        model = journal.open("m", make())
        receipts = model.learn_many(given)
        assert file_of(model, tmp_path) == file_of(learnt_anew(make, given), tmp_path)
        model.undo(receipts[3].id)
        anew = learnt_anew(make, given[:3] + given[4:])
        assert file_of(model, tmp_path) == file_of(anew, tmp_path)
        assert journal.check() == []
    with Journal(tmp_path / "desk.db") as journal:
        assert file_of(journal.open("m"), tmp_path) == file_of(anew, tmp_path)
