"""Columns of any type of Parquet, Arrow, pandas and polars: read as plain cells, or ignored."""

import datetime as dt
import enum
import sqlite3
import sys
import uuid
from contextlib import closing
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from commands import kesler
from kesler import KeslerError, OnlineClassifier
from kesler.data.labels import class_of
from kesler.data.schema.records import Unfit, table_of
from kesler.errors import ReadingWarning
from kesler.readers import open_stream


class Colour(enum.Enum):
    RED = 1
    BLUE = "blue"


BERLIN = dt.timezone(dt.timedelta(hours=1))
UUIDS = [uuid.UUID(int=n) for n in (1, 2)]
# Two cells of each type as Python has it, and the plain cells that they stand for.
CELLS = {
    "decimal": ([Decimal("3.50"), Decimal("NaN")], [3.5, None]),
    "duration": ([dt.timedelta(minutes=1, seconds=1.5), dt.timedelta(0)], [61.5, 0.0]),
    "time": ([dt.time(8, 30), dt.time(0, 0, 1, 500_000, BERLIN)], [30_600.0, 1.5]),
    "uuid": (UUIDS, list(map(str, UUIDS))),
    "enum": ([Colour.RED, Colour.BLUE], ["RED", "blue"]),
    "NumPy's duration": ([np.timedelta64(1500, "ms"), np.timedelta64("NaT")], [1.5, None]),
    "date and time zone": (
        [dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 8, tzinfo=BERLIN)],
        [dt.datetime(2024, 2, 29), dt.datetime(2024, 2, 29, 8)],
    ),
    "interval": (list(pd.cut([1.0, 2.0], [0, 1, 2])), ["(0, 1]", "(1, 2]"]),
    "period": (
        list(pd.period_range("2024-01", periods=2, freq="M")),
        [dt.datetime(2024, 1, 1), dt.datetime(2024, 2, 1)],
    ),
    "missing": ([pd.NA, pd.NaT], [None, None]),
}


@pytest.mark.parametrize("cells, plain", CELLS.values(), ids=CELLS)
def test_cells_of_python(cells, plain):
    for rows in (
        [{"x": cell} for cell in cells],
        pd.DataFrame({"x": pd.Series(cells, dtype=object)}),
    ):
        assert table_of(rows).columns == {"x": plain}


@pytest.mark.parametrize("cell", [b"x", 1j, [["a"]], np.datetime64("30000000", "Y"), object()])
def test_cells_that_no_column_can_hold_are_named(cell):
    (found,) = table_of([{"x": cell}]).columns["x"]
    assert isinstance(found, Unfit) and found.what


# ---- columns of frames, as arrays of Arrow ------------------------------------------------------

DAY = dt.date(2024, 2, 29)
ARROW = {
    "decimal128": (pa.array([Decimal("1.25"), None], pa.decimal128(9, 2)), [1.25, None]),
    "decimal256": (pa.array([Decimal("1.25"), None], pa.decimal256(50, 2)), [1.25, None]),
    "time32": (pa.array([dt.time(1), None], pa.time32("s")), [3600.0, None]),
    "time64 in ns": (pa.array([1_500_000_000, None], pa.time64("ns")), [1.5, None]),
    "duration in s": (pa.array([90, None], pa.duration("s")), [90.0, None]),
    "duration in ns": (pa.array([1_500_000_000, None], pa.duration("ns")), [1.5, None]),
    "date32": (pa.array([DAY, None]), [dt.datetime(2024, 2, 29), None]),
    "timestamp in ns": (
        pa.array([1_700_000_000_123_456_000, None], pa.timestamp("ns")),
        [dt.datetime(2023, 11, 14, 22, 13, 20, 123_456), None],
    ),
    "timestamp of a zone": (
        pa.array([1_700_000_000, None], pa.timestamp("s", "Europe/Berlin")),
        [dt.datetime(2023, 11, 14, 23, 13, 20), None],
    ),
    "dictionary": (pa.array(["a", None]).dictionary_encode(), ["a", None]),
    "boolean": (pa.array([True, None]), [True, None]),
    "float16": (pa.array([np.float16(1.5), None], pa.float16()), [1.5, None]),
    "large string": (pa.array(["a", None], pa.large_string()), ["a", None]),
    "uuid": (pa.array([UUIDS[0].bytes, None], pa.uuid()), [str(UUIDS[0]), None]),
    "list of texts": (pa.array([["a", "b"], None]), [["a", "b"], None]),
    "list of numbers": (pa.array([[1.5, 2.0], None]), [[1.5, 2.0], None]),
    "list of fixed size": (pa.array([[1, 2], None], pa.list_(pa.int64(), 2)), [[1, 2], None]),
    "null": (pa.nulls(2), [None, None]),
}
NESTED = {
    "struct": (
        pa.array([{"a": 1, "in": {"b": "x"}}, None]),
        {"x.a": [1, None], "x.in.b": ["x", None]},
    ),
    "map": (
        pa.array([[("a", 1.5), ("b", 2.5)], [("b", 3.5)]], pa.map_(pa.string(), pa.float64())),
        {"x.a": [1.5, None], "x.b": [2.5, 3.5]},
    ),
    "map of numbers": (
        pa.array([[(7, 1.5)], []], pa.map_(pa.int64(), pa.float64())),
        {"x.7": [1.5, None]},
    ),
}
EVERY = {name: (array, {"x": cells}) for name, (array, cells) in ARROW.items()} | NESTED
every = pytest.mark.parametrize("array, columns", EVERY.values(), ids=EVERY)


def stated(columns):
    """Return the columns that have a cell."""
    return {name: cells for name, cells in columns.items() if cells != [None, None]}


@every
def test_columns_of_arrow(array, columns):
    assert stated(table_of(pa.table({"x": array})).columns) == stated(columns)


@every
def test_columns_of_parquet(tmp_path, array, columns):
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"y": ["one", "two"], "x": array}), path)
    (block,) = open_stream(path, label="y", as_table=True)
    assert stated(block.rows.columns) == stated(columns)
    assert block.labels == ["one", "two"]


@pytest.mark.parametrize("name", [n for n in EVERY if n not in ("decimal256", "uuid", *NESTED)])
def test_columns_of_polars(name):
    array, columns = EVERY[name]
    frame = pl.from_arrow(pa.table({"x": array}))
    assert stated(table_of(frame).columns) == stated(columns)


@pytest.mark.parametrize("name", [name for name in EVERY if name != "uuid"])
def test_columns_of_pandas_with_types_of_arrow(name):
    array, columns = EVERY[name]
    frame = pa.table({"x": array}).to_pandas(types_mapper=pd.ArrowDtype)
    assert stated(table_of(frame).columns) == stated(columns)


FRAMES = {
    "Int64": (pd.array([1, None], "Int64"), [1, None]),
    "Float64": (pd.array([1.5, None], "Float64"), [1.5, None]),
    "boolean": (pd.array([True, None], "boolean"), [True, None]),
    "string": (pd.array(["a", None], "string"), ["a", None]),
    "string[pyarrow]": (pd.array(["a", None], "string[pyarrow]"), ["a", None]),
    "category": (pd.Categorical(["a", None]), ["a", None]),
    "timedelta": (pd.to_timedelta(["1min", None]), [60.0, None]),
    "sparse": (pd.arrays.SparseArray([0.0, 1.5]), [0.0, 1.5]),
    "Decimal": (pl.Series([Decimal("1.5"), None]), [1.5, None]),
    "Duration": (pl.Series([dt.timedelta(seconds=3), None]), [3.0, None]),
    "Time": (pl.Series([dt.time(1), None]), [3600.0, None]),
    "Enum": (pl.Series(["a", None], dtype=pl.Enum(["a", "b"])), ["a", None]),
    "Categorical": (pl.Series(["a", None], dtype=pl.Categorical), ["a", None]),
    "List": (pl.Series([["a"], None]), [["a"], None]),
    "Array": (pl.Series([[1, 2], None], dtype=pl.Array(pl.Int64, 2)), [[1, 2], None]),
}


@pytest.mark.parametrize("column, cells", FRAMES.values(), ids=FRAMES)
def test_columns_of_frames(column, cells):
    frame = (pl if isinstance(column, pl.Series) else pd).DataFrame({"x": column})
    assert table_of(frame).columns == {"x": cells}


def test_structs_of_polars_are_columns():
    frame = pl.DataFrame({"x": [{"a": 1, "b": "u"}, {"a": 2, "b": None}], "n": [3, 4]})
    assert table_of(frame).columns == {"x.a": [1, 2], "x.b": ["u", None], "n": [3, 4]}


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(KeslerError, match=r"row 1 of X names the column 'a\.b' twice"):
        table_of([{"a": 1}, {"a.b": 1, "a": {"b": 2}}])


# ---- learning -----------------------------------------------------------------------------------

N_ROWS = 90
KINDS = ["low", "middle", "high"]
VALUES = {
    "amount": lambda i: Decimal(f"{10 * (i % 3)}.50"),
    "took": lambda i: dt.timedelta(minutes=10 * (i % 3) + 1),
    "at": lambda i: dt.time(8 + 5 * (i % 3)),
    "colour": lambda i: ["red", "green", "blue"][i % 3],
    "when": lambda i: dt.datetime(2024, 1, 1) + dt.timedelta(days=100 * (i % 3)),
}


def table(name):
    return pa.table(
        {name: [VALUES[name](i) for i in range(N_ROWS)], "y": [KINDS[i % 3] for i in range(N_ROWS)]}
    )


FORMS = {
    "arrow": lambda found: found,
    "pandas": lambda found: found.to_pandas(),
    "pandas of arrow": lambda found: found.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", VALUES)
def test_frames_of_any_type_are_learnt(name, form):
    found = table(name)
    rows = FORMS[form](found.select([name]))
    labels = found["y"].to_pylist()
    model = OnlineClassifier().partial_fit(rows, labels)
    assert (model.predict(rows) == labels).mean() > 0.95


@pytest.mark.parametrize("name", VALUES)
def test_parquet_of_any_type_is_learnt_by_the_command(tmp_path, capsys, name):
    path = tmp_path / "rows.parquet"
    parquet.write_table(table(name), path)
    found = kesler(capsys, "learn", tmp_path / "m.kesler", path, "--label", "y")
    assert found.code == 0 and not found.err
    predicted = kesler(capsys, "predict", tmp_path / "m.kesler", path).out.split()
    assert np.mean(np.array(predicted) == [KINDS[i % 3] for i in range(N_ROWS)]) > 0.95


UNREADABLE = {
    "bytes": pa.array([b"x"] * N_ROWS),
    "fixed bytes": pa.array([b"x"] * N_ROWS, pa.binary(1)),
    "lists of lists": pa.array([[[1]]] * N_ROWS),
    "lists of structs": pa.array([[{"a": 1}]] * N_ROWS),
    "lists of dates": pa.array([[dt.date(2024, 1, 1)]] * N_ROWS),
}


@pytest.mark.parametrize("array", UNREADABLE.values(), ids=UNREADABLE)
def test_what_no_column_can_hold_is_left_out_with_a_warning_that_names_it(tmp_path, capsys, array):
    path, frame = tmp_path / "rows.parquet", table("amount").append_column("raw", array)
    parquet.write_table(frame, path)
    learnt = kesler(capsys, "learn", tmp_path / "m.kesler", path, "--label", "y")
    assert learnt.code == 0 and learnt.err.count("\n") == 1
    kind = str(array.type).replace("item", "element")  # as Parquet calls it
    assert "rows.parquet: columns whose cells are neither" in learnt.err
    assert f"not read: 'raw' ({kind})" in learnt.err
    for as_table in (True, False):
        with pytest.warns(ReadingWarning, match="'raw'"):
            stream = open_stream(path, label="y", as_table=as_table)
        assert sum(map(len, stream)) == N_ROWS
    assert isinstance(table_of(frame).columns["raw"][0], Unfit)


def test_bytes_of_a_database_are_told_once(tmp_path, capsys):
    path = tmp_path / "desk.db"
    with closing(sqlite3.connect(path)) as desk:
        desk.execute("create table t (y text, x text, raw blob)")
        desk.executemany(
            "insert into t values (?, 'a b', x'00')", [("ab"[i % 2],) for i in range(5000)]
        )
        desk.commit()
    learnt = kesler(capsys, "learn", tmp_path / "m.kesler", path, "--label", "y")
    assert learnt.code == 0 and learnt.err.count("\n") == 2
    assert "desk.db, row 1, column 'raw' holds b'\\x00' (bytes)" in learnt.err
    assert "column 'raw' holds cells in later rows" in learnt.err


def test_nested_fields_have_names_in_lists_of_features(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"label": "a", "n": {"x": 1, "in": {"y": "u"}}}\n{"label": "b", "n": null}\n')
    stream = open_stream(path)
    assert [len(block.rows.indices) for block in stream] == [2]
    assert stream.vocabulary.names == ["n.x", "n.in.y=u"]


def test_decimal_labels_are_numbers():
    assert [class_of(Decimal(text)) for text in ("3.00", "1.3", "NaN")] == [3, 1.3, None]
    assert type(class_of(Decimal("3.00"))) is int


def test_a_moment_that_python_cannot_hold_is_a_sentence(tmp_path):
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"y": ["a"], "x": pa.array([2**50], pa.duration("s"))}), path)
    with pytest.raises(KeslerError, match=r"rows\.parquet"):
        list(open_stream(path, label="y"))


def test_pandas_is_not_needed_for_nanoseconds(tmp_path, monkeypatch):
    path = tmp_path / "rows.parquet"
    columns = {"y": ["a"], **{f"x{i}": ARROW[name][0][:1] for i, name in enumerate(ARROW)}}
    del columns[f"x{list(ARROW).index('float16')}"]
    parquet.write_table(pa.table(columns), path)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert [len(block) for block in open_stream(path, label="y", as_table=True)] == [1]


@pytest.mark.parametrize("cells", [[b"x", b"y"], [None, None]], ids=["bytes", "gaps"])
def test_files_without_a_cell_to_learn_are_refused(tmp_path, capsys, cells):
    table = pa.table({"cell": pa.array(cells * 40), "kind": ["a", "b"] * 40})
    parquet.write_table(table, tmp_path / "rows.parquet")
    done = kesler(
        capsys,
        *("learn", tmp_path / "m.kesler", tmp_path / "rows.parquet", "--label", "kind"),
    )
    assert done.code == 2 and not (tmp_path / "m.kesler").exists()
    assert "holds nothing to learn from: no row has a feature beside its label" in done.err
