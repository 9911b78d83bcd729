"""Folders of Parquet files: plain, or with columns in the names of directories."""

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from pyarrow import parquet

from commands import kesler
from kesler.errors import KeslerError, ReadingWarning
from kesler.readers import open_stream
from kesler.readers.lines import Lines
from kesler.readers.opening import format_of

N_ROWS = 9_000
COLUMNS = {
    "x": (np.arange(N_ROWS) % 7 * 0.5).tolist(),
    "colour": ["red", "green", "sky blue/é"] * (N_ROWS // 3),
    "team": ["hr", "cards", "it"] * (N_ROWS // 3),
    "year": [2023, 2024] * (N_ROWS // 2),
    "code": ["007", "7"] * (N_ROWS // 2),
}
TABLE = pa.table(COLUMNS)
ROWS = sorted(zip(*COLUMNS.values(), strict=True))


def rows_of(path, **options):
    """Return all rows as tuples in the order of the columns above, sorted."""
    found = []
    for block in open_stream(path, label="team", as_table=True, **options):
        columns = {**block.rows.columns, "team": block.labels}
        found += zip(*(columns[name] for name in COLUMNS), strict=True)
    return sorted(found)


def by_hand(path):
    path.mkdir()
    for i in range(3):
        part = TABLE.slice(i * N_ROWS // 3, N_ROWS // 3)
        parquet.write_table(part, path / f"part-{i}.parquet", row_group_size=700)


def by_duckdb(path):
    rows = TABLE
    duckdb.connect().execute(
        f"copy (select * from rows) to '{path}' (format parquet, partition_by (colour, code, year))"
    )
    assert len(rows)


WRITERS = {
    "one folder": by_hand,
    "pyarrow": lambda path: pyarrow.dataset.write_dataset(
        TABLE, path, format="parquet", partitioning=["team", "code"], partitioning_flavor="hive"
    ),
    "pandas": lambda path: TABLE.to_pandas().to_parquet(path, partition_cols=["year", "code"]),
    "polars": lambda path: pl.from_arrow(TABLE).write_parquet(
        f"{path}/", partition_by=["team", "colour"], mkdir=True
    ),
    "DuckDB": by_duckdb,
}
writers = pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)


@writers
def test_a_folder_has_the_rows_that_were_written(tmp_path, write):
    path = tmp_path / "rows"
    write(path)
    assert format_of(str(path), Lines(str(path))) == "parquet"
    assert rows_of(path) == ROWS
    assert len(rows_of(path, skip_rows=4_000)) == N_ROWS - 4_000


@writers
def test_rows_of_a_folder_are_scanned_as_those_of_a_file(tmp_path, write):
    write(tmp_path / "rows")
    names, found = open_stream(tmp_path / "rows", label="team"), []
    for block in names:
        bounds = zip(block.rows.indptr, block.rows.indptr[1:], block.labels, strict=False)
        for start, end, label in bounds:
            features = [names.vocabulary.names[i] for i in block.rows.indices[start:end]]
            values = block.rows.values[start:end].tolist()
            found.append((label, *sorted(zip(features, values, strict=True))))
    wanted = (
        (
            team,
            *sorted([("x", x), (f"colour={colour}", 1.0), (f"code={code}", 1.0), ("year", year)]),
        )
        for x, colour, team, year, code in ROWS
    )
    assert sorted(found) == sorted(wanted)


def test_partitions_without_a_value_and_with_several_levels(tmp_path):
    rows = pa.table({"a": [1, 2, 3], "k": ["x", None, "y"], "team": ["p", "q", "r"]})
    assert len(rows)
    duckdb.connect().execute(
        f"copy (select * from rows) to '{tmp_path}/rows' (format parquet, partition_by (k))"
    )
    (block,) = open_stream(tmp_path / "rows", label="team", as_table=True)
    found = dict(zip(block.labels, block.rows.columns["k"], strict=True))
    assert found == {"p": "x", "q": None, "r": "y"}


def test_files_with_other_columns_and_types_are_joined(tmp_path):
    parquet.write_table(pa.table({"y": ["a"], "n": [1]}), tmp_path / "1.parquet")
    parquet.write_table(pa.table({"n": [2.5], "y": ["b"], "new": ["u"]}), tmp_path / "2.parquet")
    parquet.write_table(pa.table({"y": ["c"], "n": pa.nulls(1)}), tmp_path / "3.PARQUET")
    (block,) = open_stream(tmp_path, label="y", as_table=True)
    assert block.labels == ["a", "b", "c"]
    assert block.rows.columns == {"n": [1.0, 2.5, None], "new": [None, "u", None]}


def test_types_that_do_not_fit_are_a_sentence_that_names_the_file(tmp_path):
    parquet.write_table(pa.table({"y": ["a"], "n": [1]}), tmp_path / "1.parquet")
    parquet.write_table(pa.table({"y": ["b"], "n": ["x"]}), tmp_path / "2.parquet")
    with pytest.raises(KeslerError, match=r"2\.parquet has columns of other types .*n"):
        open_stream(tmp_path, label="y")


@pytest.mark.parametrize("as_table", [True, False])
def test_a_row_is_named_by_its_file(tmp_path, as_table):
    for i, labels in enumerate((["a"] * 50, [*["b"] * 5_000, None, "b"], ["c"])):
        columns = {"y": labels, "n": np.arange(len(labels)) * 0.5}
        parquet.write_table(pa.table(columns), tmp_path / f"{i}.parquet")
    stream = open_stream(tmp_path, label="y", as_table=as_table)
    with pytest.warns(ReadingWarning, match=r"row 5001 of 1\.parquet: there is no label"):
        assert sum(map(len, stream)) == 50 + 5_001 + 1


def test_a_damaged_file_is_named(tmp_path):
    parquet.write_table(pa.table({"y": ["a"], "n": [1]}), tmp_path / "1.parquet")
    tmp_path.joinpath("2.parquet").write_bytes(tmp_path.joinpath("1.parquet").read_bytes()[:-9])
    with pytest.raises(KeslerError, match=r"2\.parquet can't be read as Parquet"):
        open_stream(tmp_path, label="y")


def test_other_files_are_named_and_hidden_ones_are_not_read(tmp_path):
    parquet.write_table(pa.table({"y": ["a"], "n": [1]}), tmp_path / "1.parquet")
    for name in ("_SUCCESS", ".1.parquet.crc", "README.md", "rows.csv"):
        tmp_path.joinpath(name).write_text("x")
    with pytest.warns(ReadingWarning, match=r": README\.md, rows\.csv are no files \*\.parquet"):
        stream = open_stream(tmp_path, label="y")
    assert [block.labels for block in stream] == [["a"]]


def test_folders_of_mail_are_mail(tmp_path):
    for name in ("cur", "new", "tmp"):
        tmp_path.joinpath("box", name).mkdir(parents=True)
    tmp_path.joinpath("box", "cur", "1.parquet").write_text("Subject: a\n\nb\n")
    box = str(tmp_path / "box")
    assert format_of(box, Lines(box)) == "mail"
    with pytest.raises(KeslerError, match=r"empty holds no files \*\.parquet"):
        tmp_path.joinpath("empty").mkdir()
        open_stream(tmp_path / "empty", format="parquet", label="y")


def test_parquet_is_known_by_its_content(tmp_path):
    parquet.write_table(pa.table({"y": ["a"], "n": [1]}), tmp_path / "rows.dat")
    assert [block.labels for block in open_stream(tmp_path / "rows.dat", label="y")] == [["a"]]


def test_commands_take_folders(tmp_path, capsys):
    path, model = tmp_path / "rows", tmp_path / "m.kesler"
    by_hand(path)
    learnt = kesler(capsys, "learn", model, path, "--label", "team")
    assert learnt.code == 0 and f"{N_ROWS:,} rows" in learnt.out
    tested = kesler(capsys, "test", model, path)
    assert tested.code == 0 and not tested.err
    predicted = kesler(capsys, "predict", model, path).out.split()
    assert np.mean(np.array(predicted) == COLUMNS["team"]) > 0.95
    again = kesler(capsys, "learn", model, path, "--label", "team", "--resume")
    assert "nothing was learnt" in again.out
