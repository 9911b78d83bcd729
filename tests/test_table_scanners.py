"""CSV and Parquet in batches against the parsers in Python."""

import csv
import io
import warnings

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from kesler.errors import KeslerError, ReadingWarning
from kesler.readers import csv_cells, lines, open_stream, parquet_files, parquet_table, stream
from test_readers import write
from test_readers_laws import mutations
from test_scanners import labels, mostly, numbers, plain_numbers, plain_words, read_all, words

KNOWN = {
    "none": [],
    "columns": ["c", "a", "b"],
    "more columns": ["z", "b"],
    "sparse": ["b", "a=spam", "never"],
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


def row_by_row(path, **options):
    """Return all that a stream tells if no row is read with others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_table.Batches, "is_long", False)
        return read_all(path, 1 << 40, **options)


def same(path, *, small=-1, chunk=1 << 20, **options):
    """Require that both ways tell the same, and return it."""
    expected = row_by_row(path, label="y", **options)
    assert read_all(path, small, chunk, label="y", **options) == expected
    return expected


almost_numbers = st.sampled_from(
    [
        "inf",
        "Infinity",
        "-nan",
        "+e5",
        "any",
        "fine",
        "tea",
        "1_0",
        "2020-01-01",
        "- 1",
        "1.2.3",
        "a:b",
    ]
)
plain_cells = {
    "dense": mostly(plain_numbers, numbers),
    "sparse": mostly(plain_numbers | plain_words | st.just(""), numbers | words | almost_numbers),
}
odd_cells = st.sampled_from(
    ['"', '"1"', "' '", "1 ", " 1", "\t2", "1\r", "1;2", "1,2", "x\ny", '"a"b', "", "\xa0", "nan"]
)
plain_labels = st.sampled_from(["a", "b", "007", "two words", " é ", "日本"])
odd_labels = labels | odd_cells
endings = st.sampled_from(["\n", "\r\n"])


@st.composite
def tables(draw):
    """Rows of a table as they may be written, by the csv module or without its care."""
    file, end = io.StringIO(), draw(mostly(st.just("\n"), endings))
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]))
    delimiter = draw(st.sampled_from(",,,;\t"))
    is_careful = draw(mostly(st.just(True), st.just(False)))
    table = csv.writer(file, delimiter=delimiter, quoting=quoting, lineterminator=end)
    header = draw(
        st.sampled_from([["y", "a", "b"], ["b", "y", "c", "a"], ["y"], ["a", "y", "b=c"]])
    )
    table.writerow(header)
    cell = mostly(plain_cells[draw(st.sampled_from(["dense", "sparse"]))], odd_cells)
    label = mostly(plain_labels, odd_labels)
    for _ in range(draw(st.integers(0, 8))):
        row = [draw(label if column == "y" else cell) for column in header]
        row += draw(mostly(st.just([]), st.sampled_from([["1"], [""], ["", " "], ["", "1"]])))
        if is_careful:
            table.writerow(row)
        else:
            file.write(delimiter.join(row) + end)
        file.write(draw(mostly(st.just(""), endings)))
    content = file.getvalue().encode()
    if draw(st.booleans()):
        content = content.removesuffix(end.encode())
    return draw(mutations(content)) if draw(st.integers(0, 4)) == 0 else content


ways = st.fixed_dictionaries(
    {
        "require_labels": st.booleans(),
        "skip_bad": st.booleans(),
        "block_rows": st.integers(1, 4),
        "skip_rows": st.sampled_from([0, 0, 0, 1, 2, 5]),
        "grow": st.booleans(),
        "vocabulary": st.sampled_from([[], [], [], *KNOWN.values()]),
    }
)


@settings(max_examples=120)
@given(
    content=tables(),
    way=ways,
    chunk=st.integers(1, 9) | st.just(1 << 20),
    small=st.just(-1) | st.just(30),
)
def test_csv_is_what_the_parser_says(directory, content, way, chunk, small):
    same(write(directory, "rows.csv", content), chunk=chunk, small=small, **way)


def read_cells(path, small, chunk=1 << 20, **options):
    """Return the tables of a stream with the places of their rows, and what it says of others."""
    found = []
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadingWarning)
        patch.setattr(lines, "SMALL", small)
        patch.setattr(lines, "CHUNK", chunk)
        patch.setattr(csv_cells, "MOST_LINES", 3)
        try:
            stream = open_stream(path, label="y", as_table=True, **options)
            found += [(block.labels, block.weights, block.rows) for block in stream]
        except KeslerError as refusal:
            return found, str(refusal)
    return found, stream.n_rows, stream.n_bad, stream.losses


@settings(max_examples=150)
@given(
    content=tables(),
    way=ways,
    chunk=st.integers(1, 9) | st.integers(30, 60) | st.just(1 << 20),
    small=st.just(-1) | st.just(30),
)
def test_cells_of_csv_are_what_the_parser_says(directory, content, way, chunk, small):
    path = write(directory, "cells.csv", content)
    given = {name: way[name] for name in ("require_labels", "skip_bad", "block_rows", "skip_rows")}
    assert read_cells(path, small, chunk, **given) == read_cells(path, 1 << 40, **given)


@pytest.mark.parametrize(("length", "most"), [(60, 4096), (400, 1024)])
@pytest.mark.parametrize("skip_rows", [0, 9000])
def test_blocks_of_many_short_lines_are_larger(directory, length, most, skip_rows):
    rows = [f"c{i % 3},{'x' * length},{i}" for i in range(20_000)]
    path = write(directory, "lengths.csv", "\n".join(["y,title,size", *rows]))
    way = {"label": "y", "as_table": True, "skip_rows": skip_rows}
    found = [block.rows.columns["size"] for block in open_stream(path, **way)]
    assert [size for sizes in found for size in sizes] == [*map(str, range(skip_rows, 20_000))]
    assert max(map(len, found)) == most and (skip_rows or len(found[0]) == 1024)
    small = [len(block) for block in open_stream(path, **way, block_rows=700)]
    assert {*small[:-1]} == {700}


@pytest.mark.parametrize(
    "content",
    [
        b"y,a\nc,1\nd,\xe9\ne,2\n",
        b"y\nc\n  \nd\n",
        b"y,a\nc,1\n,2\nd,3\n",
        b'y,a\nc,1\nd,"1\n2"\ne,3\n',
    ],
    ids=["no UTF-8", "an empty line", "no label", "two lines"],
)
@pytest.mark.parametrize("require_labels", [True, False])
def test_rows_that_are_not_plain_are_parsed(directory, content, require_labels):
    path = write(directory, "odd.csv", content)
    way = {"require_labels": require_labels, "skip_bad": True, "encoding": "utf-8"}
    assert read_cells(path, -1, **way) == read_cells(path, 1 << 40, **way)


def test_plain_rows_of_a_table_are_read_together(directory, monkeypatch):
    rows = [f'c{i % 3},"words, and {i}",{i}' for i in range(40)]
    path = write(directory, "together.csv", "\n".join(["y,title,size", *rows, "c1,odd"]))
    alone = []
    example = stream.Admission.example

    def noted(self, *row):
        alone.append(row)
        return example(self, *row)

    monkeypatch.setattr(stream.Admission, "example", noted)
    found, n_rows, n_bad, _ = read_cells(path, -1, skip_bad=True, block_rows=16)
    assert (n_rows, n_bad, len(alone)) == (40, 1, 2)  # the first row, and the last
    table = found[1][2]
    assert found[1][0] == [f"c{i % 3}" for i in range(16, 32)]
    assert table.columns["title"] == [f"words, and {i}" for i in range(16, 32)]
    assert (table.first_row, table.place(0)) == (16, f"{path}, line 18")


def test_numbers_have_the_decimal_signs_of_their_columns(directory):
    cells = [["1.200", "1,200.5"], ["0,5", "7"], ["n/a", "0.5"], ["1,200.5", "$3"]] * 3
    expected = [[1200, 1200.5], [0.5, 7], [np.nan, 0.5], [np.nan, 3]] * 3
    names = [["a", "b", "y"], *([*row, "c"] for row in cells)]
    path = write(directory, "signs.csv", "\n".join(";".join(row) for row in names))
    way = {"decimals": {"a": ",", "b": "."}}
    found, *_ = same(path, **way)
    values = np.frombuffer(b"".join(found[3::5]), dtype=np.float32).reshape(-1, 2)
    np.testing.assert_array_equal(values, np.array(expected, dtype=np.float32))
    columns = {name: [row[i] for row in names[1:]] for i, name in enumerate(names[0])}
    path = directory / "signs.parquet"
    parquet.write_table(pyarrow.table(columns), path)
    assert same(path, **way)[0] == found


def arrays(n_rows):
    """Columns of numbers, text or neither, with or without gaps, as pyarrow has them."""
    floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
    usual = {
        pyarrow.float64(): floats,
        pyarrow.float32(): floats,
        pyarrow.int64(): st.integers(-(2**63), 2**63 - 1),
        pyarrow.uint8(): st.integers(0, 255),
        pyarrow.bool_(): st.booleans(),
    }
    odd = {
        pyarrow.float64(): st.floats() | st.sampled_from([3.5e38, -3.4028235677973366e38]),
        pyarrow.string(): st.sampled_from(["", "red", "b=c", "é"]),
        pyarrow.large_string(): words,
        pyarrow.dictionary(pyarrow.int8(), pyarrow.string()): st.sampled_from(["", "x"]),
        pyarrow.list_(pyarrow.int8()): st.just([1]),
        pyarrow.null(): st.none(),
    }

    def column(kind, values):
        gaps = mostly(st.just(values), st.just(values | st.none()))
        lists = gaps.flatmap(lambda each: st.lists(each, min_size=n_rows, max_size=n_rows))
        return lists.map(lambda found: pyarrow.array(found, kind))

    def of(kinds):
        return st.sampled_from(list(kinds)).flatmap(lambda kind: column(kind, kinds[kind]))

    return mostly(of(usual), of(odd)) | mostly(of(usual), of(odd)) | of(usual | odd)


@st.composite
def parquet_tables(draw):
    n_rows = draw(st.integers(0, 9))
    names = draw(st.sampled_from([["y", "a", "b"], ["b", "y", "c", "a"], ["y"], ["a", "b=c", "y"]]))
    return pyarrow.table({name: draw(arrays(n_rows)) for name in names})


@settings(max_examples=120)
@given(table=parquet_tables(), way=ways, batch=st.integers(1, 5))
def test_parquet_is_what_the_parser_says(directory, table, way, batch):
    path = directory / "rows.parquet"
    parquet.write_table(table, path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_files, "BATCH_ROWS", batch)
        same(path, **way)


PLAIN = {
    "dense.csv": b"a,y,b\n" + b'1,x,2\n-0.5,"y, z",1e3\r\n\n" 7",007, 8 \n' * 3,
    "trailing.csv": b'a;y;b;;\n1;x;2;;\n2;z;-0.5; ;\r\n3;"y";"007";;\n4;x;5\n5;x;6;\n',
    "sparse.csv": 'y;a;b\né;;2\nx;1;\n z;;\nx;red; 20 cm \nx;"light; blue";tea\n'.encode(),
    "dense.parquet": {"y": ["a", "b"] * 4, "a": [1, 2] * 4, "b": [0.5, 1e30] * 4},
    "sparse.parquet": {"y": [1, 2] * 4, "a": [1, None] * 4, "b": ["red", None, "", "blue"] * 2},
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_rows_are_not_left_to_python(tmp_path, name, monkeypatch):
    path = tmp_path / name
    if name.endswith("csv"):
        path.write_bytes(PLAIN[name])
    else:
        parquet.write_table(pyarrow.table(PLAIN[name]), path)
    expected = row_by_row(path, label="y")
    read = []
    example = stream.Admission.example
    monkeypatch.setattr(
        stream.Admission, "example", lambda *row: [read.append(row), example(*row)][1]
    )
    assert read_all(path, -1, label="y") == expected
    assert len(read) == 1


def test_a_cell_may_go_on_in_the_next_chunk_and_lines_count(tmp_path):
    content = 'y,a\nx,1\n"two\nlines\n",2\nz,3\nw,4,5\n'
    path = write(tmp_path, "rows.csv", content)
    for chunk in (1, 9, 20, 1 << 20):
        found = same(path, chunk=chunk)
        assert "line 7: it has 3 fields and the header 2" in found[1]
        same(write(tmp_path, "open.csv", content + '"x,1\ny,2\n'), chunk=chunk, skip_bad=True)


def test_text_that_is_not_utf8_is_a_sentence(tmp_path):
    letters = pyarrow.array([b"a", b"\xff"]).view(pyarrow.string())
    parquet.write_table(pyarrow.table({"y": [1, 2], "a": letters}), tmp_path / "rows.parquet")
    assert "can't be read as Parquet" in same(tmp_path / "rows.parquet")[1]


def test_names_that_never_join_are_not_stored(tmp_path, monkeypatch):
    from kesler.readers import records

    monkeypatch.setattr(records, "MOST_UNKNOWN", 5)
    rows = "".join(f"x,w{i},{i}\n" for i in range(40))
    path = write(tmp_path, "rows.csv", "y,a,b\n" + rows)
    assert same(path, grow=False, vocabulary=["a=w3", "b"], block_rows=2)[-1] == ["a=w3", "b"]
    table = pyarrow.table({"y": ["x"] * 40, "a": [f"w{i}" for i in range(40)]})
    parquet.write_table(table, tmp_path / "rows.parquet")
    monkeypatch.setattr(parquet_files, "BATCH_ROWS", 3)
    same(tmp_path / "rows.parquet", grow=False, vocabulary=["a=w3"], block_rows=2)


def test_long_tables_are_what_the_parser_says(tmp_path):
    generator = np.random.default_rng(3)
    X, y = generator.normal(size=(4000, 5)), generator.integers(0, 4, 4000)
    lines = [",".join(map(repr, row)) for row in X.tolist()]
    content = "a,b,c,d,e,y\n" + "".join(f"{line},{k}\n" for line, k in zip(lines, y, strict=True))
    path = write(tmp_path, "rows.csv", content)
    same(path, small=1 << 14, block_rows=500, skip_rows=700)
    with pytest.raises(KeslerError, match=r"line 4002: it has 1 fields"):
        list(open_stream(write(tmp_path, "bad.csv", content + "x\n"), label="y"))
