"""Every bad row of a text format is one sentence that names the source and the line."""

import gzip
import tarfile
import time
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from kesler.errors import KeslerError, ReadingWarning
from kesler.readers import open_stream
from kesler.readers.csv_table import MOST_COLUMNS
from kesler.readers.lines import CHUNK
from kesler.readers.records import Fields
from test_readers import entries, read, write

BAD_ROWS = {
    "svmlight": (
        "rows.svm",
        "1 0:1\n",
        {},
        [
            ("1 0:x", "'0:x' is not index:value"),
            ("1 a:1", "'a:1' is not index:value"),
            ("1 0.5:1", "'0.5:1' is not index:value"),
            ("1 0:1:2", "'0:1:2' is not index:value"),
            ("1 0:1 7", "'7' is not index:value"),
            ("1 0:1_0", "holds '_'"),
            ("1 0:nan", "feature 0 is nan"),
            ("1 0:1 3:inf", "feature 3 is inf"),
            ("1 3:1e39", "feature 3 is 1e\\+39"),
            ("1 4:1 4:2", "an index stands twice"),
            ("1 -1:2", "an index is not from 0 to 2147483646"),
            ("1 2147483647:2", "an index is not from 0 to 2147483646"),
            (b"1 0:1 # \xff", "byte 9 is not UTF-8"),
        ],
    ),
    "vw": (
        "rows.vw",
        "1 |f a\n",
        {},
        [
            ("1 a b", r"there is no '\|'"),
            ("1 |f a:x", "'a:x' is not name or name:value"),
            ("1 |f a:", "'a:' is not name or name:value"),
            ("1 |f :2", "':2' is not name or name:value"),
            ("1 |f a:b:1", "'a:b:1' is not name or name:value"),
            ("1 |f:x a", "'f:x' is not name or name:value"),
            ("1 |f a:nan", r"feature 'f\^a' is nan"),
            ("1 |f a:3e38 a:3e38", r"feature 'f\^a' is 6e\+38"),
            ("1 -1 |f a", "the importance '-1' is not a finite number from 0 on"),
            ("1 inf |f a", "the importance 'inf' is not"),
            ("1 x |f a", "the importance 'x' is not"),
            ("1 2 3 |f a", "more than a label, an importance and a tag"),
            (b"1 |f \xff", "byte 6 is not UTF-8"),
        ],
    ),
    "csv, dense": (
        "rows.csv",
        "y,a,b\n1,2,3\n",
        {"label": "y", "missing": False},
        [
            ("1,2", "it has 2 fields and the header 3"),
            ("1,2,3,4", "it has 4 fields and the header 3"),
            ("1,2,", "'b' is missing, and this learner takes no missing values"),
            ("1,x,2", "'a' holds 'x', which is no number: the first record"),
            ("1,2,nan", "'b' is missing, and this learner takes no missing values"),
            ("1,-inf,2", "feature 'a' is -inf"),
            ("1,1e99,2", "feature 'a' is 1e\\+99"),
            ('1,2,"3', "it is not CSV"),
            ('1,2,"3"4', "it is not CSV"),
            (b"1,\xff,3", "not UTF-8"),
            ("1,2\r3,4", "'a' holds '2 3', which is no number: the first record"),
            ("1,2," + "3" * 140_000, "feature 'b' is inf, not a finite number"),
        ],
    ),
    "csv, sparse": (
        "rows.csv",
        "y,a,b\n1,2,x\n",
        {"label": "y"},
        [("1,nan,x", "feature 'a' is nan"), ("1,2,x,3", "it has 4 fields")],
    ),
    "jsonl, text": (
        "rows.jsonl",
        '{"label": 1, "text": "a"}\n',
        {},
        [
            ("{", "it is not JSON"),
            ("{'label': 1}", "it is not JSON"),
            ("[1]", "it is an array of JSON, not an object"),
            ("3", "it is a number of JSON, not an object"),
            ("[" * 100_000, "it is not JSON"),
            ("1" * 5000, "it is not JSON"),
            ('{"label": [1], "text": "a"}', "the label is a list"),
            ('{"label": {}, "text": "a"}', "the label {} is costs of classes"),
            ('{"label": 1}', "there is no text field 'text'"),
            ('{"label": 1, "text": 3}', "the text field 'text' holds neither"),
            ('{"label": 1, "text": ["a", 3]}', "the text field 'text' holds neither"),
            (b'{"label": 1, "text": "\xff"}', "byte 23 is not UTF-8"),
            ('{"label": "\\ud800", "text": "a"}', r"the escape \\ud800 is half of a character"),
        ],
    ),
    "jsonl, sparse": (
        "rows.jsonl",
        '{"label": 1, "a": "x"}\n',
        {},
        [
            ('{"label": 1, "a": [1]}', "'a' holds a list"),
            ('{"label": 1, "a": {"b": [1]}}', "'a.b' holds a list"),
        ],
    ),
}
CASES = [
    pytest.param(name, good, options, bad, sentence, id=f"{kind}: {bad[:25]!r}")
    for kind, (name, good, options, rows) in BAD_ROWS.items()
    for bad, sentence in rows
]


@pytest.mark.parametrize("name, good, options, bad, sentence", CASES)
def test_a_bad_row_is_a_sentence(tmp_path, name, good, options, bad, sentence):
    lines = good.encode() + (bad if isinstance(bad, bytes) else bad.encode()) + b"\n"
    path = write(tmp_path, name, lines)
    options = {**options, "encoding": "utf-8"}
    line = lines.count(b"\n")
    with pytest.raises(KeslerError, match=rf"{name}, line {line}: .*{sentence}") as raised:
        read(path, **options)
    assert raised.value.__class__ is KeslerError
    assert str(raised.value).endswith("; mend it, or skip such rows with skip_bad=True")
    assert "\n" not in str(raised.value)
    n_good = line - (2 if name == "rows.csv" else 1)
    assert len(read(path, skip_bad=True, **options)) == n_good


UNLABELLED = [
    ("rows.svm", "1 0:1\n", {}, "0:1 1:1"),
    ("rows.svm", "1 0:1\n", {}, "\x1c"),
    ("rows.vw", "1 |f a\n", {}, "1|f a"),
    ("rows.vw", "1 |f a\n", {}, "|f a"),
    ("rows.csv", "y,a\n1,2\n", {"label": "y"}, " ,2"),
    ("rows.csv", "y,a\n1,x\n", {"label": "y"}, ",x"),
    ("rows.jsonl", '{"label": 1, "a": 3}\n', {}, '{"a": 2}'),
    ("rows.jsonl", '{"label": 1, "a": 3}\n', {}, '{"a": 2, "label": null}'),
    ("rows.jsonl", '{"label": 1, "a": 3}\n', {}, '{"a": 2, "label": NaN}'),
    ("rows.jsonl", '{"label": 1, "a": 3}\n', {}, '{"a": 2, "label": ""}'),
]


@pytest.mark.parametrize("name, good, options, row", UNLABELLED)
@pytest.mark.parametrize("skip_bad", [False, True])
def test_rows_without_a_label_are_left_out_and_counted(
    tmp_path, name, good, options, row, skip_bad
):
    rows = read(write(tmp_path, name, good), **options)
    path = write(tmp_path, name, f"{good}{row}\n{row}\n")
    stream = open_stream(path, skip_bad=skip_bad, **options)
    line = good.count("\n") + 1
    said = rf"{name}: 2 rows without a label are left out; the first is line {line}: there is no"
    with pytest.warns(ReadingWarning, match=said):
        assert entries(stream) == rows
    assert (stream.n_rows, stream.n_bad, stream.losses.n_unlabelled) == (1, 0, 2)
    assert len(read(path, require_labels=False, **options)) == 3


@pytest.mark.parametrize("name, good, options, row", UNLABELLED)
def test_a_file_without_any_label_is_a_sentence(tmp_path, name, good, options, row):
    header = good.partition("\n")[0] + "\n" if name == "rows.csv" else ""
    path = write(tmp_path, name, f"{header}{row}\n")
    line = 2 if header else 1
    said = rf"{name}, line {line}: there is no label.*, nor in any row \(1 have none, 0 are bad\)"
    with pytest.raises(KeslerError, match=said + r".*label=\.\.\."):
        read(path, **options)


@pytest.mark.parametrize(
    "content, options, sentence",
    [
        ("y,a\n1,2\n", {}, r"say which column of .*rows\.csv holds the labels .* 'y', 'a'"),
        ("y,a\n1,2\n", {"label": "z"}, r"rows\.csv has no column 'z': it has 'y', 'a'"),
        ("y,a\n1,2\n", {"label": "y", "text": "b"}, "has no column 'b': it has 'y', 'a'"),
        ("y,a,a\n1,2,3\n", {"label": "y"}, "has more than one column 'a'"),
        (b"y,\xff\n1,2\n", {"label": "y", "encoding": "utf-8"}, r"rows\.csv, line 1: .*not UTF-8"),
    ],
)
def test_a_bad_header_is_a_sentence_before_any_row(tmp_path, content, options, sentence):
    with pytest.raises(KeslerError, match=sentence):
        open_stream(write(tmp_path, "rows.csv", content), **options)


def test_many_columns_are_listed_in_short(tmp_path):
    columns = ",".join(f"c{i}" for i in range(100))
    with pytest.raises(KeslerError, match=r"'c19', 80 more$"):
        read(write(tmp_path, "rows.csv", columns + "\n"), label="y")


def test_more_columns_than_anybody_means_are_refused_before_any_row(tmp_path):
    for n_columns in (MOST_COLUMNS, MOST_COLUMNS + 1):
        header = "y" + "".join(f",{i}" for i in range(1, n_columns))
        path = write(tmp_path, "rows.csv", f"{header}\na{',1' * (n_columns - 1)}\n")
        for options in ({"label": "y"}, {"label": "y", "as_table": True}):
            if n_columns <= MOST_COLUMNS:
                open_stream(path, **options)
            else:
                with pytest.raises(
                    KeslerError, match=r"rows\.csv has 262,145 columns, .*transpose"
                ):
                    open_stream(path, **options)


def test_a_label_of_another_type_is_a_bad_row(tmp_path):
    path = write(tmp_path, "rows.svm", "1 0:1\nspam 1:1\n2 1:1\n")
    with pytest.raises(KeslerError, match=r"rows\.svm, line 2: the label 'spam' is text, but the"):
        list(open_stream(path))
    stream = open_stream(path, skip_bad=True)
    assert [label for block in stream for label in block.labels] == [1, 2]
    assert stream.n_bad == 1


def test_the_columns_of_a_wide_table_are_checked_in_linear_time():
    """10^6 names took hours where each was counted among all others."""
    columns = [f"column {i}" for i in range(1_000_000)]
    fields = Fields("a table", label="column 7", text=(), require_labels=True)
    started = time.process_time()
    fields.require_columns(columns)
    with pytest.raises(KeslerError, match="more than one column 'column 999999'"):
        fields.require_columns([*columns, "column 999999"])
    assert time.process_time() - started < 20


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("n_before", [0, 3, 5000])
def test_a_line_that_is_too_long_is_refused_and_one_that_is_not_is_read(tmp_path, n_before, suffix):
    """Below, at and above the limit, as the first line, among lines, and in a text of lines."""
    opened = gzip.open if suffix else open
    for excess in (-1, 0, 1, CHUNK, 3 * CHUNK):
        path = tmp_path / f"rows{excess}.vw{suffix}"
        long = "2 | " + "w" * (2 * CHUNK + excess - 4)
        with opened(path, "wt") as file:
            file.write("1 | a b\n" * n_before + long + "\n" + "1 | c\n" * 3)
        stream = open_stream(path, max_line=2 * CHUNK)
        if excess <= 0:
            assert sum(len(block) for block in stream) == n_before + 4
            continue
        with pytest.raises(KeslerError, match=f"line {n_before + 1} has more than 524,288 bytes"):
            list(stream)
    with pytest.raises(KeslerError, match="max_line=100 is too small"):
        open_stream(path, max_line=100)


def test_an_endless_line_takes_bounded_memory(tmp_path):
    """A compressed file of 1 MB that holds one line of 1 GB."""
    path = tmp_path / "rows.vw.gz"
    piece = gzip.compress(b"w" * (1 << 24))
    path.write_bytes(piece * 64)
    tracemalloc.start()
    with pytest.raises(KeslerError, match="line 1 has more than 1,048,576 bytes"):
        list(open_stream(path, format="vw", max_line=1 << 20))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 32 << 20


def _archive(path):
    with tarfile.open(path, "w:gz" if path.suffix == ".tgz" else "w") as archive:
        archive.addfile(tarfile.TarInfo("rows.csv"))


UNREAD = {
    "rows.npy": ("array of NumPy", lambda path: np.save(path, np.ones((3, 2)))),
    "rows.tar": ("archive of tar", _archive),
    "rows.fasta": ("archive of tar", _archive),
    "rows.tgz": ("archive of tar", _archive),
    "rows.xls": ("page of HTML", lambda path: pd.DataFrame({"kind": ["a"]}).to_html(path)),
    "rows.xml": ("HTML or XML", lambda path: path.write_text('<?xml version="1.0"?><Workbook/>')),
    "rows.feather": ("of Arrow", lambda path: pd.DataFrame({"kind": ["a"]}).to_feather(path)),
    "rows.pkl": ("pickle", lambda path: pd.DataFrame({"kind": ["a"]}).to_pickle(path)),
    "rows.orc": ("of ORC", lambda path: pd.DataFrame({"kind": ["a"]}).to_orc(path)),
}


@pytest.mark.parametrize("name", UNREAD)
def test_files_of_other_kinds_are_named(tmp_path, name):
    what, write_file = UNREAD[name]
    write_file(tmp_path / name)
    with pytest.raises(KeslerError, match=rf"{name} is an? .*{what}.*: \w+"):
        open_stream(tmp_path / name, label="kind")


def test_a_table_whose_first_column_is_called_orcid_is_read(tmp_path):
    path = write(tmp_path, "people", "ORCID,kind\na,x\nb,y\n")
    assert [label for label, _ in read(path, label="kind")] == ["x", "y"]
