"""Models as functions of SQL: real databases return what `predict` and `confidence` return."""

import sqlite3

import duckdb
import numpy as np
import pandas as pd
import pytest

import kesler.duckdb
import kesler.sqlite
from kesler import OnlineClassifier, OnlineMultilabelClassifier
from kesler.errors import KeslerError

TEXTS = ["wrong invoice", "cannot log in", "card lost", "refund my invoice", ""] * 30
TEAMS = ["billing", "support", "cards", "billing", "support"] * 30
FRAME = pd.DataFrame(
    {
        "body": [f"{text} please help me now" for text in TEXTS],
        "hours": [None if i % 7 == 0 else i * 0.5 for i in range(150)],
        "channel": ["phone", "web", None] * 50,
        "ticket": [f"T{i:05}" for i in range(150)],
        "opened": pd.date_range("2026-01-01", periods=150),
    }
)
COLUMNS = ["body", "hours", "channel", "opened"]


@pytest.fixture(scope="module")
def of_texts():
    return OnlineClassifier().fit(TEXTS, TEAMS)


@pytest.fixture(scope="module")
def of_table():
    return OnlineClassifier().fit(FRAME, TEAMS)


def test_duckdb_classifies_texts(of_texts):
    rows = ["an invoice", "log in", "", ""] * 1500
    connection = duckdb.connect()
    connection.execute("create table texts as select nullif(unnest(?), '') as text", [rows])
    assert kesler.duckdb.register(connection, of_texts) == {"text": "VARCHAR"}
    found = connection.sql("select classify(text), classify_confidence(text) from texts").fetchall()
    assert [team for team, _ in found] == of_texts.predict(rows).tolist()
    np.testing.assert_array_equal([sure for _, sure in found], of_texts.confidence(rows))


def test_duckdb_classifies_rows_of_tables_with_gaps(of_table, tmp_path):
    of_table.save(tmp_path / "desk.kesler")
    connection = duckdb.connect()
    types = kesler.duckdb.register(connection, tmp_path / "desk.kesler", "team")
    assert types == dict(zip(COLUMNS, ["VARCHAR", "DOUBLE", "VARCHAR", "TIMESTAMP"], strict=True))
    connection.register("frame", FRAME)
    call = ", ".join(COLUMNS)
    found = connection.sql(f"select team({call}), team_confidence({call}) from frame").fetchall()
    assert [team for team, _ in found] == of_table.predict(FRAME).tolist()
    np.testing.assert_allclose([sure for _, sure in found], of_table.confidence(FRAME))


def test_duckdb_classifies_lists_of_numbers():
    X, y = np.eye(3).repeat(5, axis=0), np.arange(3).repeat(5)
    connection = duckdb.connect()
    types = kesler.duckdb.register(connection, OnlineClassifier().fit(X, y))
    assert types == {"numbers": "DOUBLE[]"}
    assert connection.sql("select classify([0, 1, 0]) + 1").fetchall() == [(2,)]
    with pytest.raises(duckdb.InvalidInputException, match="a row is NULL"):
        connection.sql("select classify(null)").fetchall()


def test_a_model_is_replaced_by_one_of_the_same_name(of_texts):
    connection = duckdb.connect()
    kesler.duckdb.register(connection, of_texts)
    other = OnlineClassifier().fit(["invoice", "lost"] * 5, ["a", "b"] * 5)
    kesler.duckdb.register(connection, other)
    assert connection.sql("select classify('invoice')").fetchall() == [("a",)]


def test_sqlite_classifies_row_by_row(of_table, of_texts):
    connection = sqlite3.connect(":memory:")
    assert kesler.sqlite.register(connection, of_table, "team") == COLUMNS
    assert kesler.sqlite.register(connection, of_texts) == ["text"]
    FRAME.assign(opened=FRAME.opened.astype(str)).to_sql("tickets", connection)
    call = ", ".join(COLUMNS)
    query = f"select team({call}), team_confidence({call}), classify(body) from tickets"
    found = connection.execute(query).fetchall()
    assert [team for team, _, _ in found] == of_table.predict(FRAME).tolist()
    np.testing.assert_allclose([sure for _, sure, _ in found], of_table.confidence(FRAME))
    assert [team for _, _, team in found] == of_texts.predict([*FRAME.body]).tolist()
    assert connection.execute("select classify(null)").fetchall() == [(of_texts.predict([""])[0],)]


@pytest.mark.parametrize(
    ("model", "name", "said"),
    [
        (
            OnlineMultilabelClassifier().learn_one("a", ["b"]),
            "classify",
            "is a OnlineMultilabelClassifier",
        ),
        (OnlineClassifier().learn_one("a", "b"), "my function", "letters, digits and underscores"),
        (3, "classify", "the model is a int"),
    ],
)
def test_what_is_no_function_is_refused(model, name, said):
    for module, connection in ((kesler.duckdb, duckdb.connect()), (kesler.sqlite, None)):
        with pytest.raises(KeslerError, match=said):
            module.register(connection, model, name)


def test_truth_values_are_those_of_the_database():
    rows = pd.DataFrame({"paid": [True, False] * 30, "late": [True, None, False] * 20})
    model = OnlineClassifier().fit(rows, ["a", "b"] * 30)
    expected = [*zip(model.predict(rows), model.confidence(rows), strict=True)]
    query = "select classify(paid, late), classify_confidence(paid, late) from kept"
    in_duckdb, in_sqlite = duckdb.connect(), sqlite3.connect(":memory:")
    kesler.duckdb.register(in_duckdb, model)
    in_duckdb.execute("create table kept as select paid, late::boolean as late from rows")
    kesler.sqlite.register(in_sqlite, model)
    rows.to_sql("kept", in_sqlite)
    for found in (in_duckdb.sql(query).fetchall(), in_sqlite.execute(query).fetchall()):
        assert [team for team, _ in found] == [team for team, _ in expected]
        np.testing.assert_allclose([sure for _, sure in found], [sure for _, sure in expected])


def test_sqlite_refuses_lists():
    model = OnlineClassifier().fit(np.eye(3), [0, 1, 2])
    with pytest.raises(KeslerError, match=r"use kesler\.duckdb"):
        kesler.sqlite.register(sqlite3.connect(":memory:"), model)
